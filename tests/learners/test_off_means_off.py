"""What is switched off leaves no trace in what the models are asked."""

from __future__ import annotations

import hashlib
from pathlib import Path

from whet.core import ModelReply
from whet.testing.endpoint import StandInEndpoint, StandInRequest
from whet.testing.project import KEY, KEY_VARIABLE, answer_with, write_project
from whet.training import load_config, prepare, train

OFF = ("skill.slow_update=false", "skill.memory=false", "gate.rule=off")
EXPECTED = "d908ba28fcf8b090"


async def requests_of(folder: Path, *overrides: str) -> list[str]:
    """All requests of a training, in an order of their own."""
    asked: list[str] = []
    answer = answer_with()

    def note(request: StandInRequest) -> ModelReply:
        asked.append(hashlib.blake2b(repr(request.body).encode(), digest_size=16).hexdigest())
        return answer(request)

    async with StandInEndpoint(note) as endpoint:
        path = write_project(folder, f"{endpoint.base_url}/v1", train=24, selection=12, test=6, epochs=2, batch_size=12)
        quiet = ("target.send_late_again=false", "optimizer.send_late_again=false")
        project = prepare(load_config(path, (*quiet, *overrides)), folder, environ={KEY_VARIABLE: KEY})
        await train(project, folder / "runs" / "run-1")
    return sorted(asked)


async def test_with_every_extra_off_the_requests_are_those_of_the_plain_lever(tmp_path: Path) -> None:
    asked = await requests_of(tmp_path, *OFF)
    assert hashlib.blake2b("".join(asked).encode(), digest_size=8).hexdigest() == EXPECTED


async def test_spelling_out_the_off_settings_changes_no_byte(tmp_path: Path) -> None:
    plain = await requests_of(tmp_path / "plain", *OFF)
    spelled = ("skill.skill_aware=false", "skill.max_tokens=0", "skill.proposals=1", "skill.consolidate_above=0")
    assert await requests_of(tmp_path / "spelled", *OFF, *spelled, "skill.appendix_source=failure_only") == plain


async def test_switching_one_on_does_change_them(tmp_path: Path) -> None:
    plain = await requests_of(tmp_path / "plain", *OFF)
    assert await requests_of(tmp_path / "aware", *OFF, "skill.skill_aware=true") != plain
    assert await requests_of(tmp_path / "several", *OFF, "skill.proposals=2") != plain
