"""What a verifier says of two states of a database: run in a sandbox of its own, from copies that it can only read.

A verifier that errs, or says what is none of the allowed results, is a fault of the world: it is never a 0.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import msgspec

from whet.core import (
    ConfigError,
    Json,
    Model,
    ModelRequest,
    Purpose,
    Sampling,
    WorldFault,
    content_key,
    fingerprint,
    user,
)
from whet.core.prompts import fill, load_prompt
from whet.sandbox import Limits, Outcome, Pool, Program
from whet.worlds.awm.inside.messages import Changes
from whet.worlds.awm.layout import Scenario, Verifier
from whet.worlds.database import RewardType
from whet.worlds.replies import objects_in

LIMITS = Limits(seconds=20.0, cpu_seconds=20, memory=512 << 20)

_TIME = """\
from whet.worlds.awm.inside import clock as _clock
_clock.install(_own := _clock.WorldClock({moment!r}))
_clock.teach_all(_own)
del _clock, _own
"""

_ENTRY = re.compile(r"^(?:async +)?def +(verify\w*)\s*\((.*?)\)\s*(?:->|:)", re.MULTILINE | re.DOTALL)
_ANSWER = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "result": {"enum": ["complete", "incomplete", "others"]}},
    "required": ["reason", "result"],
    "additionalProperties": False,
}
_MOST_FACTS = 20_000


class States(msgspec.Struct, frozen=True):
    """Both files as verifiers are given them."""

    start: Path
    end: Path
    moment: float


class Found(msgspec.Struct, frozen=True):
    """How a finished session came out."""

    result: RewardType
    reason: str = ""


async def run_verifier(pool: Pool, verifier: Verifier, states: States, answer: str) -> Json:
    """What its code returns."""
    entries = _ENTRY.findall(verifier.code)
    if not entries:
        raise WorldFault("the verifier has no function that is named verify…")
    name, parameters = next((one for one in entries if one[0] == "verify_task_completion"), entries[-1])
    arguments = _paths(states, "initial_db_path", "final_db_path")
    if "final_answer" in parameters:
        arguments["final_answer"] = answer
    program = Program(_TIME.format(moment=states.moment) + verifier.code, entry=name)
    return _value(await pool.run(program, arguments, read=_files(states), limits=LIMITS), "the verifier")


def read_result(said: Json) -> Found:
    """A coded verifier's word: complete or others, and nothing else."""
    result = said.get("result") if isinstance(said, dict) else None
    if result not in ("complete", "others"):
        raise WorldFault(f'the verifier must return {{"result": "complete" or "others"}}, not {str(said)[:120]!r}')
    return Found(RewardType(result))


class FactsJudge:
    """A model that judges what a verifier found out."""

    def __init__(self, model: Model | None) -> None:
        if model is None:
            hint = 'Add one to whet.toml: [judge] model = "provider/name", or set world.verifier = "code".'
            raise ConfigError("world.verifier: judged needs a model that judges", hint=hint)
        self._model = model
        self._prompt = load_prompt("whet.worlds.awm.prompts", "judge")
        self.content = f"{model.ref} {self._prompt}"

    async def judge(self, scenario: Scenario, task: str, changes: Changes, facts: Json, answer: str) -> Found:
        told = msgspec.json.encode(facts).decode()[:_MOST_FACTS]
        inputs = {
            "task": task,
            "description": scenario.description or scenario.title,
            "difference": changes.text or "(none)",
            "facts": told,
            "answer": answer or "(nothing)",
            # A line made of the content cannot be written by the one whose words it encloses.
            "mark": f"=== {fingerprint('judge', task, told, answer)[:12]} ===",
        }
        request = ModelRequest((user(fill(self._prompt, inputs)),), sampling=Sampling(1024, 0.0), schema=_ANSWER)
        salt = content_key("awm judge", scenario.name, task, answer)
        reply = await self._model.complete(request, purpose=Purpose.JUDGE, salt=salt)
        return _judged(reply.text)


def _judged(reply: str) -> Found:
    found = [one for one in objects_in(reply) if "result" in one]
    result = str(found[0]["result"]) if len(found) == 1 else ""
    if result not in ("complete", "incomplete", "others"):
        raise WorldFault(f"the judge's reply does not name one result: {reply[:120]!r}")
    return Found(RewardType(result), str(found[0].get("reason", "")))


def _paths(states: States, before: str, after: str) -> dict[str, Json]:
    return {before: str(states.start), after: str(states.end)}


def _files(states: States) -> tuple[Path, Path]:
    return states.start, states.end


def _value(outcome: Outcome, what: str) -> Any:
    if not outcome.done:
        raise WorldFault(f"{what} {_ended(outcome)}")
    return cast("Any", outcome.value)


def _ended(outcome: Outcome) -> str:
    return f"raised {outcome.error}" if outcome.kind == "raised" else f"ended by {outcome.kind}: {outcome.error}"
