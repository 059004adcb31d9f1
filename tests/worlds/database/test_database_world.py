from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from whet.core import Act, ConfigError, ForkableSession, InputError, Solution, Split, Task, ToolFault, WorldFault
from whet.worlds import SessionOver, ToolRefusal, load_world
from whet.worlds.database import (
    DatabaseWorld,
    Draft,
    Rule,
    Scenario,
    ScenarioSettings,
    SplitBy,
    State,
    act,
    any_of,
    difference,
    done,
    draw,
    insert,
    number,
    restore,
    update,
)
from whet.worlds.solving import play


def water(state: State, plant_id: int, litres: int = 1) -> str:
    """Water a plant."""
    state.insert("waterings", plant_id=plant_id, litres=litres)
    if state.get("plants", plant_id)["kind"] == "cactus":
        raise ToolRefusal("a cactus has had enough")
    return "watered"


def fell(state: State, plant_id: int) -> None:
    """Fell a tree."""
    state.delete("plants", plant_id)
    raise RuntimeError("the saw broke")


def fill(state: State, rng: Random) -> None:
    state.connection.execute("INSERT INTO clock VALUES ('2031-05-06 07:00')")
    for kind in ("fern", "fern", "cactus"):
        state.insert("plants", kind=kind, age=rng.randrange(100))


def water_fern(state: State, rng: Random) -> Draft:
    first, second = state.values("SELECT id FROM plants WHERE kind = 'fern'")
    ways = [[insert("waterings", plant_id=plant, litres=2)] for plant in (first, second)]
    return Draft("Water a fern with 2 litres.", (act(water, plant_id=first, litres=2),), any_of(*ways), ("cacti",))


def count(state: State, rng: Random) -> Draft:
    return Draft(f"How many plants are {rng.randrange(1000)}?", (), number(3))


def age(state: State, rng: Random) -> Draft:
    return Draft("Make plant 1 a year older.", (), done(update("plants", 1, age=1)))


GARDEN = Scenario(
    name="garden",
    about="A garden.",
    conduct="You keep a garden.",
    schema="CREATE TABLE plants (id INTEGER PRIMARY KEY, kind TEXT, age INTEGER);"
    "CREATE TABLE waterings (id INTEGER PRIMARY KEY, plant_id INTEGER, litres INTEGER);",
    fill=fill,
    rules=(Rule("cacti", "watering", "Cacti are not watered."),),
    tools=(water, fell),
    templates=(water_fern, count, age),
    stray=lambda state: act(water, plant_id=1),
)


def garden(**settings: Any) -> DatabaseWorld:
    return DatabaseWorld("garden", (GARDEN,), ScenarioSettings(**settings))


def first(world: DatabaseWorld, split: Split = Split.TRAIN) -> Task:
    return world.tasks(split)[0]


async def test_a_refused_call_leaves_nothing_behind() -> None:
    world = garden()
    session = await world.open(first(world), 0)
    assert (await session.call("water", {"plant_id": 1})).text == "watered"
    refused = await session.call("water", {"plant_id": 3})
    assert (refused.text, refused.fault) == ("a cactus has had enough", ToolFault.REFUSED)
    verdict = await session.judge("")
    assert verdict.facts["difference"] == "+ waterings: id 1, plant_id 1, litres 1"


@pytest.mark.parametrize("topic", ["%", "_" * 2_000, "x\x00y", "'; DROP TABLE plants; --", "\U0001f600", ""])
async def test_any_text_can_be_asked_for(topic: str) -> None:
    world = garden()
    session = await world.open(first(world), 0)
    assert (await session.call("read_handbook", {"topic": topic})).fault is ToolFault.REFUSED
    assert (await session.call("water", {"plant_id": 1, "litres": 2})).fault is None
    assert (await session.judge("")).hard


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("read_handbook", {"topic": "x" * 100_000}, "'topic' has more than 2000 characters"),
        ("read_handbook", {"topic": "\ud800"}, "'topic' is not valid text"),
        ("water", {"plant_id": 10**30}, "'plant_id' is too large a number"),
        ("water", {"plant_id": [[10**30]]}, "'plant_id' is too large a number"),
    ],
)
async def test_what_sqlite_cannot_hold_is_an_invalid_argument(name: str, arguments: Any, says: str) -> None:
    world = garden()
    session = await world.open(first(world), 0)
    result = await session.call(name, arguments)
    assert (result.fault, result.text) == (ToolFault.INVALID_ARGUMENTS, f"{name} was not called: {says}")


async def test_a_tool_that_breaks_is_the_worlds_fault() -> None:
    world = garden()
    session = await world.open(first(world), 0)
    with pytest.raises(
        WorldFault, match=r"world garden, task garden/water_fern/0: the tool fell raised RuntimeError: the saw broke"
    ):
        await session.call("fell", {"plant_id": 1})


async def test_any_one_way_is_right_and_two_at_once_are_not() -> None:
    world = garden()
    waters = [Act("water", {"plant_id": plant, "litres": 2}) for plant in (1, 2)]
    for acts, passed in ((waters[:1], True), (waters[1:], True), (waters, False), ([], False)):
        assert (await play(await world.open(first(world), 0), Solution(tuple(acts)))).hard is passed


async def test_sessions_do_not_see_each_other_and_a_fork_goes_its_own_way() -> None:
    world = garden()
    one, other = await world.open(first(world), 0), await world.open(first(world), 0)
    assert isinstance(one, ForkableSession)
    await one.call("water", {"plant_id": 1, "litres": 2})
    fork = await one.fork()
    await one.call("water", {"plant_id": 2})
    assert (await fork.judge("")).hard
    assert not (await one.judge("")).hard
    assert not (await other.judge("")).hard


async def test_a_fork_keeps_what_is_known_of_the_calls_before_it() -> None:
    world = garden()
    session = await world.open(first(world), 0)
    await session.call("water", {"plant": 1})
    fork = await session.fork()
    assert (await fork.judge("")).facts["reward_type"] == "format_error"


async def test_a_session_ends_with_its_verdict() -> None:
    world = garden()
    session = await world.open(first(world), 0)
    await session.judge("")
    for again in (session.judge(""), session.call("get_time", {}), session.fork()):
        with pytest.raises(SessionOver):
            await again
    await session.close()
    await session.close()


@pytest.mark.parametrize("name", ["judge", "close", "fork", "fill", "known_good", "__init__"])
async def test_what_is_not_in_the_list_cannot_be_called(name: str) -> None:
    world = garden()
    session = await world.open(first(world), 0)
    assert name not in {tool.name for tool in session.tools}
    assert (await session.call(name, {})).fault is ToolFault.UNKNOWN_TOOL


async def test_the_handbook_and_the_clock_are_tools_of_every_scenario() -> None:
    world = garden()
    session = await world.open(first(world), 0)
    assert (await session.call("get_time", {})).text == "2031-05-06 07:00"
    assert (await session.call("list_handbook", {})).text == '["watering"]'
    assert "Cacti are not watered." in (await session.call("read_handbook", {"topic": "watering"})).text
    assert (await session.call("read_handbook", {"topic": "x"})).fault is ToolFault.REFUSED


async def test_a_column_that_was_not_to_change_fails_and_so_does_a_change_of_the_schema() -> None:
    world = garden()
    for statement, passed in (
        ("UPDATE plants SET age = 1 WHERE id = 1", True),
        ("UPDATE plants SET age = 1, kind = 'oak' WHERE id = 1", False),
        ("UPDATE plants SET age = 1", False),
        ("UPDATE plants SET age = 1 WHERE id = 1; CREATE INDEX i ON plants (age)", False),
    ):
        session = await world.open(first(world, Split.TEST), 0)
        session._connection.executescript(statement)  # pyright: ignore[reportPrivateUsage]
        assert (await session.judge("")).hard is passed, statement


def test_templates_keep_their_split_and_more_variants_move_no_task() -> None:
    few, many = garden(), garden(variants=5, confirm=2)
    for split in (Split.TRAIN, Split.SELECTION, Split.TEST):
        assert few.tasks(split)[0] == many.tasks(split)[0]
        assert len(many.tasks(split)) == 5
        assert len({task.id.split("/")[1] for task in many.tasks(split)}) == 1
    confirming = many.tasks(Split.CONFIRM)
    assert [task.id for task in confirming] == ["garden/age/1000000", "garden/age/1000001"]


def test_splits_by_variant_have_every_kind_of_task_and_share_none() -> None:
    world = garden(variants=7, split_by=SplitBy.VARIANT, confirm=1)
    tasks = {split: world.tasks(split) for split in Split}
    assert {split: len(tasks[split]) for split in Split} == {"train": 9, "selection": 6, "test": 6, "confirm": 3}
    assert all({task.id.split("/")[1] for task in some} == {"water_fern", "count", "age"} for some in tasks.values())
    assert len({task.fingerprint for some in tasks.values() for task in some}) == 24


def test_the_same_number_draws_the_same_data_and_another_draws_other() -> None:
    assert draw(GARDEN, 3) == draw(GARDEN, 3)
    assert draw(GARDEN, 3).state != draw(GARDEN, 4).state
    assert garden().fingerprint == garden().fingerprint != garden(variants=2).fingerprint


def test_what_is_wrong_with_a_scenario_is_said() -> None:
    def writes(state: State, rng: Random) -> Draft:
        state.insert("plants", kind="weed", age=0)
        return count(state, rng)

    def invents(state: State, rng: Random) -> Draft:
        return Draft("?", (), number(1), ("no-such-rule",))

    def leaves_no_way(state: State, rng: Random) -> Draft:
        return Draft("?", (), any_of())

    wrong = {
        writes: "writes changes the state",
        invents: "the rule no-such-rule",
        leaves_no_way: "lists no way to pass",
    }
    for template, says in wrong.items():
        broken = Scenario(
            **{name: getattr(GARDEN, name) for name in GARDEN.__struct_fields__} | {"templates": (template,)}
        )
        with pytest.raises(WorldFault, match=says):
            DatabaseWorld("garden", (broken,), ScenarioSettings())


def test_a_tool_that_would_wait_is_refused() -> None:
    async def wait(state: State) -> None: ...

    broken = Scenario(**{name: getattr(GARDEN, name) for name in GARDEN.__struct_fields__} | {"tools": (wait,)})
    with pytest.raises(InputError, match=r"garden\.wait is async"):
        DatabaseWorld("garden", (broken,), ScenarioSettings())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"scenarios": ["shp"]}, "world.scenarios: there is no scenario 'shp'. Did you mean 'shop'?"),
        ({"variants": 0}, "world.variants"),
        ({"split_by": "variant"}, "needs variants of at least 3"),
        ({"split_by": "kind"}, "world.split_by"),
    ],
)
def test_settings_that_cannot_be_are_told(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_world("pack", settings, base_dir=Path())
    assert says in str(caught.value)


def test_a_task_of_another_world_is_refused() -> None:
    with pytest.raises(InputError, match="has no task x"):
        garden().known_good(Task("x", Split.TRAIN, {}))


def test_the_state_speaks_of_rows() -> None:
    drawn = draw(GARDEN, 0)
    connection, before = restore(drawn.image), restore(drawn.image)
    state = State(connection)
    assert state.row("SELECT kind FROM plants WHERE id = 9") is None
    assert state.value("SELECT kind FROM plants WHERE id = 9") is None
    with pytest.raises(ToolRefusal, match="there is no plant 9"):
        state.get("plants", 9)
    new = state.insert("plants", kind="moss", age=0)
    state.update("plants", new, age=1)
    state.delete("plants", 1)
    assert difference(before, connection).text().splitlines()[0] == "+ plants: id 4, kind 'moss', age 1"
    assert str(state.today) == "2031-05-06"
    connection.close()
    before.close()
