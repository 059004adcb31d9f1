"""Things to publish."""

from __future__ import annotations

from pathlib import Path

from whet.core import AdapterRef, ModelRef, Policy, Skill
from whet.registry import Base, Draft, Measure, Origin, Proof

BASE = Base("local/small", "b" * 32)
WORLD = "grid_ctf"


def policy(text: str = "Be brief.") -> Policy:
    return Policy(ModelRef("local", "small"), skill=Skill.from_text(text))


def draft(text: str = "Be brief.", *, over: Policy | None = None, parents: tuple[str, ...] = ()) -> Draft:
    """With a proof of its gain over `over`, if that is given."""
    made = policy(text)
    proofs = (Proof(made.fingerprint, over.fingerprint, "{}"),) if over else ()
    return Draft(
        made,
        WORLD,
        BASE,
        Origin(run="run-1", code="0.1.0", config={"train.seed": 1}),
        parents=parents,
        evidence=(Measure("test", "hard", 0.8, 0.7, 0.9, 50),),
        proofs=proofs,
    )


def adapter_draft(folder: Path, content: bytes = b"GGUF weights") -> Draft:
    folder.mkdir()
    (folder / "adapter.gguf").write_bytes(content)
    (folder / "adapter_config.json").write_text("{}")
    made = Policy(ModelRef("local", "small"), adapter=AdapterRef("a" * 32, BASE.fingerprint))
    return Draft(made, WORLD, BASE, adapter=folder)
