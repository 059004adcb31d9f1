from __future__ import annotations

import pytest

from whet.core import Harness, ModelRef, Policy, Sampling, Skill


@pytest.fixture
def policy() -> Policy:
    return Policy(
        ModelRef("test", "model"),
        Sampling(max_tokens=100, temperature=0.5, stop=("END",)),
        Skill({"SKILL.md": "Do it.", "references/a.md": "More."}),
        harness=Harness(max_turns=3),
    )
