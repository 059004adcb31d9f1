"""All tasks of the pack, played through: what must fail fails, what must pass passes, at any time of the machine."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from whet.core import Act, Json, Solution, Split, Task, ToolFault, Verdict
from whet.worlds import check_world
from whet.worlds.check import EMPTY_PROMISES
from whet.worlds.database import DatabaseWorld, ScenarioSettings
from whet.worlds.pack import SCENARIOS, pack
from whet.worlds.solving import play

NAMES = [scenario.name for scenario in SCENARIOS]
SOURCE = Path(__file__).parents[3] / "src/whet/worlds"
THEN = Path(__file__).with_name("at_another_time.py")


def world(*names: str, **settings: int | str) -> DatabaseWorld:
    return pack(msgspec.convert({"scenarios": names, **settings}, ScenarioSettings))


def tasks_of(made: DatabaseWorld) -> list[Task]:
    return [task for split in Split for task in made.tasks(split)]


async def judged(made: DatabaseWorld, task: Task, solution: Solution) -> Verdict:
    session = await made.open(task, 0)
    try:
        return await play(session, solution)
    finally:
        await session.close()


def test_there_are_six_scenarios_of_ten_tasks_with_eight_to_fifteen_tools() -> None:
    made = world()
    assert len(NAMES) == 6
    assert len(tasks_of(made)) == 60
    assert {split: len(made.tasks(split)) for split in Split} == {
        "train": 24,
        "selection": 18,
        "test": 18,
        "confirm": 0,
    }
    for scenario in SCENARIOS:
        assert 8 <= len(scenario.tools) + 3 <= 15


@pytest.mark.parametrize("name", NAMES)
async def test_nothing_and_talking_fail_the_known_good_passes_and_every_damaged_one_fails(name: str) -> None:
    made = world(name)
    for task in tasks_of(made):
        good, damaged = made.known_good(task), made.damaged(task)
        for talk in EMPTY_PROMISES:
            assert not (await judged(made, task, Solution(answer=talk))).hard, task.id
        verdict = await judged(made, task, good)
        assert verdict.hard, (task.id, verdict.feedback)
        assert verdict == await judged(made, task, good)
        assert verdict.facts["reward_type"] == "complete"
        assert len(damaged) >= 2
        assert len(damaged) == len({msgspec.json.encode(each) for each in damaged})
        for each in damaged:
            failed = await judged(made, task, each)
            assert not failed.hard, (task.id, each)
            assert failed.feedback.partition(":")[0] in REASONS, failed.feedback


REASONS = {
    "nothing was changed",
    "incomplete",
    "wrong change",
    "unasked change",
    "wrong answer",
    "no answer",
    "broke a house rule",
}


@pytest.mark.parametrize("name", NAMES)
async def test_no_call_of_a_known_good_solution_is_refused_and_it_reads_before_it_writes(name: str) -> None:
    made = world(name)
    lengths: list[int] = []
    for task in tasks_of(made):
        session = await made.open(task, 0)
        acts = made.known_good(task).acts
        for act in acts:
            assert (await session.call(act.tool, act.arguments)).fault is None
        await session.close()
        lengths.append(len(acts))
    assert 1 <= min(lengths) <= max(lengths) <= 9


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
async def test_thirty_draws_of_each_task_are_as_sound_as_the_first(name: str) -> None:
    made = world(name, variants=30)
    texts = {task.inputs["text"] for task in tasks_of(made)}
    assert len(texts) > 150
    for task in tasks_of(made):
        verdict = await judged(made, task, made.known_good(task))
        assert verdict.hard, (task.id, verdict.feedback)
        assert not (await judged(made, task, Solution(answer=EMPTY_PROMISES[-1]))).hard
        for each in made.damaged(task):
            assert not (await judged(made, task, each)).hard, (task.id, each)


TEXTS = ("", "%", "a", "returns", "FL 1", "\x00", "2031-05-06", "2031-02-31", "10:00", "23:59", "12:60")


def anything(schema: dict[str, Any], rng: Random) -> Json:
    """A value that may or may not fit."""
    forms: list[dict[str, Any]] = schema.get("anyOf", [schema])
    form = rng.choice(forms)
    if "enum" in form:
        return rng.choice(form["enum"])
    if form.get("type") == "integer":
        return rng.choice((1, 2, 3, 5, 20, 100, 0, -1, 2**40))
    return rng.choice(TEXTS) if form.get("type") == "string" else rng.choice((True, False, None))


@pytest.mark.parametrize("name", NAMES)
async def test_whatever_an_agent_calls_every_call_is_answered(name: str) -> None:
    made, rng = world(name), Random(7)
    answered: Counter[ToolFault | None] = Counter()
    for task in tasks_of(made) * 3:
        session = await made.open(task, 0)
        for tool in rng.choices(session.tools, k=30):
            properties: dict[str, Any] = tool.parameters["properties"]
            arguments = {each: anything(schema, rng) for each, schema in properties.items()}
            answered[(await session.call(tool.name, arguments)).fault] += 1
        verdict = await session.judge("")
        assert verdict.scored
        verdict.feedback.encode()
        await session.close()
    assert answered[None] > 100 < answered[ToolFault.REFUSED]


def test_every_house_rule_runs_through_more_than_one_split() -> None:
    """A rule that is learned must be of use on tasks that it was not learned from."""
    places = {place: split for split, places in SPLITS.items() for place in places}
    shared = 0
    for drawn in world().drawn:
        met: dict[str, set[str]] = {}
        for place, draft in enumerate(drawn.drafts):
            for rule in draft.rules:
                met.setdefault(rule, set()).add(places[place])
        assert set(met) == {rule.name for rule in drawn.scenario.rules}
        shared += sum(1 for splits in met.values() if "train" in splits and len(splits) > 1)
        assert any("train" in splits and "test" in splits for splits in met.values())
    assert shared >= 18


SPLITS = {"train": (0, 3, 5, 7), "selection": (1, 4, 8), "test": (2, 6, 9)}


def test_rules_are_found_with_the_tools_and_not_told_with_the_task() -> None:
    for drawn in world().drawn:
        told = " ".join([drawn.scenario.conduct, *(draft.text for draft in drawn.drafts)])
        assert not [rule for rule in drawn.scenario.rules if rule.text in told]


@pytest.mark.slow
def test_another_date_of_the_machine_changes_nothing() -> None:
    seen = {
        days: subprocess.run(
            [sys.executable, str(THEN), days], capture_output=True, text=True, timeout=100, check=True
        ).stdout
        for days in ("0", "1000", "-7000")
    }
    assert len(set(seen.values())) == 1
    assert len(seen["0"]) > 30


def test_no_statement_and_no_tool_asks_the_machine_for_the_time() -> None:
    asks = re.compile(
        r"'now'|CURRENT_(?:DATE|TIME)|\.today\(\)|\.now\(\)|\bimport time\b|(?<!\.)random\(\)|randomblob", re.IGNORECASE
    )
    for path in [*(SOURCE / "pack").glob("*.py"), *(SOURCE / "database").glob("*.py")]:
        assert asks.search(path.read_text("utf-8")) is None, path.name


async def test_feedback_names_what_was_too_much_and_no_value_of_what_is_missing() -> None:
    made = world("library")
    task = next(task for task in tasks_of(made) if "/return_late/" in task.id)
    *_, charge = made.known_good(task).acts
    verdict = await judged(made, task, Solution((Act("charge", {"member_id": 1, "cents": 777, "reason": "lost"}),)))
    assert verdict.feedback.startswith(
        "wrong change: missing is a new row in charges, a change in loans; not asked for was"
    )
    assert "cents 777" in verdict.feedback
    assert "house rule overdue: What comes back late" in verdict.feedback
    assert f"cents {charge.arguments['cents']}" not in verdict.feedback
    assert str(verdict.facts["difference"]).startswith("+ charges: id ")


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+(?:[.-]\w+)*", text))


@pytest.mark.parametrize("name", NAMES)
async def test_feedback_never_holds_whom_or_how_much(name: str) -> None:
    """What a task's own words and the house rules do not say, feedback on doing nothing does not say either."""
    made = world(name, variants=3)
    drafts = {draft.text: draft for drawn in made.drawn for draft in drawn.drafts}
    for task in tasks_of(made):
        draft = drafts[str(task.inputs["text"])]
        wanted = [
            value for way in draft.check.ways for one in way for value in (*one.key.values(), *one.columns.values())
        ]
        if draft.check.answer is not None and draft.check.answer.kind != "refused":
            value = draft.check.answer.value
            wanted += value if isinstance(value, list) else [value]
        rules = " ".join(f"{rule.name} {rule.text}" for rule in world(name).drawn[0].scenario.rules)
        secret = {str(value) for value in wanted if len(str(value)) >= 3} - words(rules)
        feedback = (await judged(made, task, Solution())).feedback
        assert not secret & words(feedback), (task.id, feedback)


async def test_the_check_of_worlds_finds_nothing_wrong() -> None:
    report = await check_world(world(variants=2), again=lambda: world(variants=2))
    assert report.sound, report.problems
    assert not [problem for problem in report.problems if problem.severity == "error"]
