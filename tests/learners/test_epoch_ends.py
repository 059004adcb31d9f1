"""What the end of an epoch compares, and what it teaches."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from whet.core import (
    End,
    ModelRef,
    ModelReply,
    ModelRequest,
    Policy,
    Priority,
    Purpose,
    Sampling,
    Skill,
    Split,
    Task,
    Trajectory,
    Verdict,
    assistant,
    user,
)
from whet.learners.skill import (
    SLOW_UPDATE,
    Advisor,
    Change,
    EpochEnd,
    Pair,
    PairPolicy,
    Prompts,
    SkillLearner,
    SkillSettings,
    UpdateMode,
    kept,
    region,
)
from whet.learners.skill.epoch import compare
from whet.learners.skill.pairs import show_pairs

OLD = Policy(ModelRef("scripted", "x"), skill=Skill.from_text("Old rule.\n"))
NEW = OLD.with_skill(Skill.from_text("New rule.\n"))
TASKS = [Task(f"t{n}", Split.TRAIN, {"n": n}) for n in range(40)]
END = EpochEnd(2, b"epoch-two", OLD, NEW)


def played(task: str, hard: bool, policy: Policy = OLD) -> Trajectory:
    said = (user(f"do {task}"), assistant("done"))
    return Trajectory(policy.fingerprint, task, Split.TRAIN, 0, said, "done", End.ANSWERED, Verdict(hard, float(hard)))


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (True, False, Change.REGRESSED),
        (False, True, Change.IMPROVED),
        (True, True, Change.STABLE_SUCCESS),
        (False, False, Change.PERSISTENT_FAIL),
    ],
)
def test_a_pair_is_named_by_how_it_came_out(before: bool, after: bool, change: Change) -> None:
    pair = Pair(played("a", before), played("a", after))
    assert pair.change is change
    assert kept([pair], PairPolicy.MIXED) == (pair,)
    changed = change in (Change.REGRESSED, Change.IMPROVED)
    assert kept([pair], PairPolicy.CHANGED) == ((pair,) if changed else ())
    assert kept([pair], PairPolicy.UNCHANGED) == (() if changed else (pair,))


def test_what_got_worse_is_shown_first() -> None:
    pairs = [Pair(played("better", False), played("better", True)), Pair(played("worse", True), played("worse", False))]
    shown = show_pairs(pairs)
    assert shown.index("task worse") < shown.index("task better")


class Playing:
    """Every fifth task changes between the two policies. Counts what is asked at once."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def __call__(self, policy: Policy, tasks: Sequence[Task], sample: int = 0) -> list[Trajectory]:
        self.asked.append(len(tasks))
        return [played(task.id, int(task.id[1:]) % 5 == 0 and policy is NEW, policy) for task in tasks]


async def test_changed_pairs_are_topped_up_many_at_a_time_until_none_are_left() -> None:
    play = Playing()
    pairs = await compare(END, TASKS, play, SkillSettings(slow_samples=20, pairs=PairPolicy.CHANGED))
    assert len(pairs) == 8
    assert all(pair.changed for pair in pairs)
    assert play.asked == [20, 20, 20, 20]


async def test_mixed_pairs_are_one_sample_of_the_train_tasks() -> None:
    play = Playing()
    pairs = await compare(END, TASKS, play, SkillSettings(slow_samples=12))
    assert len(pairs) == 12
    assert play.asked == [12, 12]
    assert [pair.before.task for pair in pairs] == [
        pair.before.task for pair in await compare(END, TASKS, Playing(), SkillSettings(slow_samples=12))
    ]


class Scribe:
    """An optimizer that answers by purpose and keeps what it was told."""

    ref = ModelRef("scripted", "scribe")

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.told: dict[str, str] = {}

    async def complete(
        self, request: ModelRequest, *, purpose: Purpose, salt: bytes = b"", priority: Priority = Priority.CRITICAL
    ) -> ModelReply:
        self.told[purpose] = request.messages[0].text
        return ModelReply(self.answers[purpose])


def learner(scribe: Scribe, settings: SkillSettings) -> SkillLearner:
    return SkillLearner(Advisor(scribe, Sampling(), Prompts(), UpdateMode.PATCH), settings, Playing())


SLOW = '{"reasoning": "r", "slow_update_content": "Mind the lamp. <!-- APPENDIX_START --> sly"}'
MEMORY = '{"reasoning": "r", "meta_skill_content": "short rules work"}'


async def test_guidance_goes_into_its_region_and_nowhere_else() -> None:
    scribe = Scribe(slow_update=SLOW, memory=MEMORY)
    proposal = await learner(scribe, SkillSettings()).end_epoch(END, TASKS)
    assert proposal.candidate is not None
    text = proposal.candidate.skill.text
    assert text.startswith("New rule.\n")
    assert region(text, SLOW_UPDATE) == "Mind the lamp.  sly"
    assert "Old rule." in scribe.told["slow_update"]
    assert "(none yet)" in scribe.told["slow_update"]
    assert "short rules work" not in text, "the memory is the optimizer's, not the agent's"


async def test_the_next_guidance_replaces_the_last_and_is_shown_it() -> None:
    scribe = Scribe(slow_update=SLOW, memory=MEMORY)
    first = await learner(scribe, SkillSettings()).end_epoch(END, TASKS)
    assert first.candidate is not None
    scribe.answers["slow_update"] = '{"slow_update_content": "Mind the door."}'
    again = EpochEnd(3, b"epoch-three", NEW, first.candidate)
    second = await learner(scribe, SkillSettings()).end_epoch(again, TASKS)
    assert second.candidate is not None
    assert "Mind the lamp." in scribe.told["slow_update"].partition("## The present guidance")[2]
    assert second.candidate.skill.text.count("SLOW_UPDATE_START") == 1
    assert region(second.candidate.skill.text, SLOW_UPDATE) == "Mind the door."


async def test_memory_is_made_from_the_same_pairs_when_the_slow_update_is_off() -> None:
    scribe = Scribe(memory=MEMORY)
    proposal = await learner(scribe, SkillSettings(slow_update=False)).end_epoch(END, TASKS)
    assert proposal.candidate is None
    assert "improved" in scribe.told["memory"]


async def test_an_unusable_guidance_changes_nothing_and_is_told() -> None:
    scribe = Scribe(slow_update="no json", memory=MEMORY)
    proposal = await learner(scribe, SkillSettings()).end_epoch(END, TASKS)
    assert proposal.candidate is None
    assert proposal.skipped == "skip_no_change"
    assert any("slow_update" in line for line in proposal.fallbacks)
