"""The student and the optimizer that every trainer of this benchmark is given, behind the mock server.

What they decide knows nothing of who asks: the student obeys whatever its system prompt says, and the optimizer turns
"this skill, these failed tasks" into the same proposals at the same rates for all. Only how a question is read and how
an answer is written differs: whet's prompts, SkillOpt's and GEPA's.

All chance is a hash of the bench's seed, of what is asked, and of how often it was asked before, so that no trainer is
helped or hurt by the seeds that it sends or does not send.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import Any, TextIO

from whet.testing.simulation import HARMFUL, rule_of

HARMFUL_SHARE = 0.2
USELESS_SHARE = 0.2
MOST_PROPOSALS = 2
FLIPPED_SHARE = 0.05
"""Of the student's answers: right where it should fail, or wrong where it should pass."""

SEED_VARIABLE = "WHET_BENCH_SEED"
LOG_VARIABLE = "WHET_BENCH_LOG"

WHET_SKILL = re.compile(r"## The skill document\n\n(.*?)\n\n## Failed tries", re.S)
SKILLOPT_SKILL = re.compile(r"## Current Skill\n(.*?)\n\n## ", re.S)
GEPA_SKILL = re.compile(r"perform a task for me:\n```\n(.*?)\n```\n\nThe following are examples", re.S)
GEPA_EXAMPLES = re.compile(r"^# Example \d+\n", re.M)

Messages = Sequence[dict[str, Any]]


class Simulation:
    """One run's student and optimizer, and the log of what they were asked."""

    def __init__(self, seed: int, log: TextIO | None) -> None:
        self.seed = seed
        self.log = log
        self.asked: Counter[bytes] = Counter()

    def answer(self, messages: Messages) -> str:
        told = str(messages[-1]["content"])
        if told.startswith("Task "):
            skill = str(messages[0]["content"]) if messages[0]["role"] == "system" else ""
            reply, what = self.student(skill, told), told.split()[1]
        else:
            skill = ""
            what, reply = self.optimizer(told, self.chance("optimizer", *(str(one["content"]) for one in messages)))
        if self.log is not None:
            words_in = sum(len(str(one["content"]).split()) for one in messages)
            line = [what, name_of(skill) if told.startswith("Task ") else "", words_in, len(reply.split())]
            self.log.write(json.dumps(line) + "\n")
        return reply

    def chance(self, *asked: str) -> Random:
        key = blake2b(json.dumps(asked).encode(), digest_size=8).digest()
        self.asked[key] += 1
        return Random(f"{self.seed} {key.hex()} {self.asked[key]}")

    def student(self, skill: str, task: str) -> str:
        kind = kinds_in(task)[0]
        flipped = self.chance("student", skill.strip(), task).random() < FLIPPED_SHARE
        return f"code of {kind}" if solves(skill, kind) != flipped else "I do not know."

    def optimizer(self, told: str, chance: Random) -> tuple[str, str]:
        """The purpose of the call and the answer to it."""
        if "perform a task for me:" in told:
            return "reflect", rewritten(found(GEPA_SKILL, told), gepa_failures(told), chance)
        if "## Failed tries" in told:
            failures = told.partition("## Failed tries")[2]
            return "reflect", reflection(found(WHET_SKILL, told), failures, chance)
        if "## Failed Trajectories" in told:
            failures = told.partition("## Failed Trajectories")[2]
            return "reflect", reflection(found(SKILLOPT_SKILL, told), failures, chance)
        if "## Successful tries" in told or "## Successful Trajectories" in told:
            return "reflect", written({"patch": {"reasoning": "nothing to add", "edits": []}})
        return self.about_edits(told, chance)

    def about_edits(self, told: str, chance: Random) -> tuple[str, str]:
        if "## Patches to merge" in told or "## Two pre-merged patch groups" in told:
            items = [edit for patch in json.loads(told[told.index("\n[\n") :]) for edit in patch["edits"]]
            return "merge", merged(items)
        if '"selected_indices"' in told or " Pool (" in told:
            order = list(range(len(re.findall(r"^\[\d+\] ", told, re.M))))
            chance.shuffle(order)
            return "rank", written({"reasoning": "drawn", "selected_indices": order})
        if "## Longitudinal Comparison (same 20 tasks" in told:
            skill = told.partition("## Current Epoch's Skill\n")[2].partition("\n\n## Previous Slow Update")[0]
            return "slow_update", guidance(skill, compared_failures(told), chance)
        if "## Longitudinal Comparison" in told:
            return "memory", written({"reasoning": "seen", "meta_skill_content": "Rules that name a code help."})
        items = [json.loads(line.partition("] ")[2]) for line in told.splitlines() if re.match(r"\[\d+\] \{", line)]
        return "merge", merged(items)


def name_of(skill: str) -> str:
    return blake2b(skill.strip().encode(), digest_size=8).hexdigest()


def solves(skill: str, kind: str) -> bool:
    return HARMFUL not in skill and rule_of(kind) in skill


def kinds_in(text: str) -> list[str]:
    return re.findall(r"of category (\w+)", text)


def found(pattern: re.Pattern[str], told: str) -> str:
    match = pattern.search(told)
    if match is None:
        raise ValueError(f"no skill in a prompt that asks for a change of one: {told[:500]}")
    return match[1]


def proposals(skill: str, failed: Sequence[str], chance: Random) -> list[str]:
    """The optimizer's whole wisdom: for two of the kinds that failed and have no rule, one text each."""
    missing = sorted({kind for kind in failed if rule_of(kind) not in skill})
    chance.shuffle(missing)
    texts: list[str] = []
    for kind in missing[:MOST_PROPOSALS]:
        drawn = chance.random()
        if drawn < HARMFUL_SHARE:
            texts.append(HARMFUL)
        elif drawn < HARMFUL_SHARE + USELESS_SHARE:
            texts.append(f"Think well about {kind} ({chance.randrange(1000)}).")
        else:
            texts.append(rule_of(kind))
    return texts


def reflection(skill: str, failures: str, chance: Random) -> str:
    kinds = kinds_in(failures)
    edits = [{"op": "append", "target": "", "content": text} for text in proposals(skill, kinds, chance)]
    if HARMFUL in skill:
        edits.insert(0, {"op": "delete", "target": HARMFUL, "content": ""})
    summary = [{"failure_type": kind, "description": "its rule is missing", "count": 1} for kind in sorted(set(kinds))]
    return written({"patch": {"reasoning": "rules are missing", "edits": edits}, "failure_summary": summary})


def rewritten(skill: str, failed: Sequence[str], chance: Random) -> str:
    """The same proposals as a new text, which is what GEPA asks for."""
    kept = skill.replace(HARMFUL, "").rstrip()
    return "```\n" + "\n\n".join([kept, *proposals(skill, failed, chance)]) + "\n```"


def guidance(skill: str, failed: Sequence[str], chance: Random) -> str:
    content = "\n".join(proposals(skill, failed, chance)) or "Follow every rule."
    return written({"reasoning": "seen", "slow_update_content": content})


def merged(items: Sequence[dict[str, Any]]) -> str:
    """Each once."""
    bare = [{name: item.get(name, "") for name in ("op", "target", "content")} for item in items]
    return written({"reasoning": "each once", "edits": list({json.dumps(one): one for one in bare}.values())})


def gepa_failures(told: str) -> list[str]:
    examples = GEPA_EXAMPLES.split(told.partition("feedback on how the assistant's")[2])[1:]
    return [kind for example in examples if "response is incorrect" in example for kind in kinds_in(example)[:1]]


def compared_failures(told: str) -> list[str]:
    """Kinds of the tasks that fail with today's skill, from SkillOpt's comparison of two epochs."""
    tasks = told.partition("## Longitudinal Comparison Summary")[2].split("\n#### Task ")[1:]
    return [kind for task in tasks if "- Curr epoch: FAIL" in task for kind in kinds_in(task)[:1]]


def written(answer: dict[str, Any]) -> str:
    """As models like to: with words around it."""
    return f"Here is what I propose.\n```json\n{json.dumps(answer)}\n```\n"


_RUNNING: list[Simulation] = []


def answer(messages: Messages, seed: int | None) -> str:
    """What the mock server calls. The seed that a trainer sends is not used: not every trainer sends one."""
    if not _RUNNING:
        log = open(os.environ[LOG_VARIABLE], "w", buffering=1)  # noqa: SIM115 - open as long as the server runs
        _RUNNING.append(Simulation(int(os.environ[SEED_VARIABLE]), log))
    return _RUNNING[0].answer(messages)
