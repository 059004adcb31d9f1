"""Sessions of generated programs, in the real sandbox: what an agent meets, and what neither side can reach."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from scenarios import PROGRAM, SECRET, VERIFIER, scenario, write_folder

from whet.core import InputError, ModelRef, ModelReply, ModelRequest, Purpose, Split, Task, ToolFault, WorldFault
from whet.worlds import load_world
from whet.worlds.authoring import SessionOver
from whet.worlds.awm import ADMISSION_FILE, Admission, AwmSession, AwmWorld, ScenarioReport, TaskReport, read_layout
from whet.worlds.awm.admission import content_of
from whet.worlds.database import RewardType

pytestmark = pytest.mark.slow


@asynccontextmanager
async def playing(folder: Path, *scenarios: dict[str, Any], **settings: Any) -> AsyncIterator[AwmWorld]:
    admit_by_hand(write_folder(folder, *scenarios))
    world = load_world("awm", {"path": str(folder), **settings}, base_dir=folder)
    assert isinstance(world, AwmWorld)
    try:
        yield world
    finally:
        await world.aclose()


def admit_by_hand(folder: Path) -> None:
    """Trials are tested elsewhere, and take their time."""
    reports = {
        name: ScenarioReport(name, content_of(one), True, (), tuple(map(TaskReport, range(len(one.tasks)))))
        for name, one in read_layout(folder).scenarios.items()
    }
    (folder / ADMISSION_FILE).write_bytes(msgspec.json.encode(Admission(False, reports)))


def the_task(world: AwmWorld) -> Task:
    (task,) = [task for split in Split for task in world.tasks(split)]
    return task


async def opened(world: AwmWorld, seed: int = 1) -> AwmSession:
    session = await world.open(the_task(world), seed)
    assert isinstance(session, AwmSession)
    return session


async def test_the_agent_is_told_the_task_and_its_tools_and_nothing_of_the_verifier(tmp_path: Path) -> None:
    async with playing(tmp_path, scenario()) as world:
        session = await opened(world)
        assert "buy milk" in session.brief.text
        assert [tool.name for tool in session.tools] == ["add_note", "find_notes", "get_note", "broken"]
        assert "verify" not in session.brief.text + json.dumps([tool.parameters for tool in session.tools])
        await session.close()


async def test_a_task_is_played_through_the_programs_own_tools_and_judged_by_its_verifier(tmp_path: Path) -> None:
    async with playing(tmp_path, scenario()) as world:
        session = await opened(world)
        added = json.loads((await session.call("add_note", {"owner": "ann", "text": "buy milk"})).text)
        assert added["id"] == 3
        found = await session.call("find_notes", {"owner": "ann", "newest": True})
        assert [note["text"] for note in json.loads(found.text)] == ["buy milk", "water plants"]
        verdict = await session.judge("done")
        assert (verdict.hard, verdict.facts["reward_type"]) == (True, RewardType.COMPLETE)
        assert "+ notes: id 3, owner 'ann', text 'buy milk'" in str(verdict.facts["difference"])


async def test_nothing_done_is_not_complete(tmp_path: Path) -> None:
    async with playing(tmp_path, scenario()) as world:
        verdict = await (await opened(world)).judge("I have completed the task.")
        assert (verdict.hard, verdict.soft) == (False, 0.0)
        assert verdict.feedback.startswith("nothing was changed:")


@pytest.mark.parametrize(
    ("tool", "arguments", "fault", "says"),
    [
        ("add_notes", {}, ToolFault.UNKNOWN_TOOL, "there is no tool 'add_notes'"),
        ("verify", {}, ToolFault.UNKNOWN_TOOL, "there is no tool"),
        ("done", {}, ToolFault.UNKNOWN_TOOL, "there is no tool"),
        ("openapi", {}, ToolFault.UNKNOWN_TOOL, "there is no tool"),
        ("add_note", {"owner": "ann"}, ToolFault.INVALID_ARGUMENTS, "text"),
        ("get_note", {"note_id": 0}, ToolFault.INVALID_ARGUMENTS, "note_id"),
        ("get_note", {"note_id": "1"}, ToolFault.INVALID_ARGUMENTS, "integer"),
        ("find_notes", {"limit": 51}, ToolFault.INVALID_ARGUMENTS, "limit"),
        ("get_note", {"note_id": 99}, ToolFault.REFUSED, "there is no such note"),
        ("broken", {}, ToolFault.REFUSED, "internal error"),
    ],
)
async def test_each_kind_of_failed_call_is_told_apart(
    tmp_path: Path, tool: str, arguments: dict[str, Any], fault: ToolFault, says: str
) -> None:
    async with playing(tmp_path, scenario()) as world:
        session = await opened(world)
        result = await session.call(tool, arguments)
        assert result.fault is fault
        assert says in result.text
        assert "secret" not in result.text
        malformed = fault is not ToolFault.REFUSED
        verdict = await session.judge("")
        assert verdict.facts["reward_type"] == (RewardType.FORMAT_ERROR if malformed else RewardType.OTHER)


async def test_an_honest_no_costs_nothing(tmp_path: Path) -> None:
    async with playing(tmp_path, scenario()) as world:
        session = await opened(world)
        await session.call("get_note", {"note_id": 99})
        await session.call("add_note", {"owner": "ann", "text": "buy milk"})
        assert (await session.judge("")).facts["reward_type"] == RewardType.COMPLETE


async def test_sessions_see_nothing_of_each_other_and_a_fork_goes_its_own_way(tmp_path: Path) -> None:
    async with playing(tmp_path, scenario()) as world:
        one, other = await opened(world), await opened(world)
        await one.call("add_note", {"owner": "ann", "text": "mine"})
        fork = await one.fork()
        await one.call("add_note", {"owner": "ann", "text": "after the fork"})

        async def texts(session: AwmSession) -> list[str]:
            return [note["text"] for note in json.loads((await session.call("find_notes", {})).text)][2:]

        assert (await texts(one), await texts(other), await texts(fork)) == (["mine", "after the fork"], [], ["mine"])
        for session in (one, other, fork):
            await session.close()


async def test_one_seed_gives_the_same_ids_and_the_clock_is_the_worlds(tmp_path: Path) -> None:
    async with playing(tmp_path, scenario()) as world:

        async def added(seed: int) -> dict[str, Any]:
            session = await opened(world, seed)
            note = json.loads((await session.call("add_note", {"owner": "ann", "text": "x"})).text)
            await session.close()
            return note

        first = await added(5)
        assert first == await added(5)
        assert first["code"] != (await added(6))["code"]
        assert first["created_at"].startswith("2026-01-01T09:00")
        assert first["seen_on"] == "2026-01-01"


async def test_judging_ends_the_session(tmp_path: Path) -> None:
    async with playing(tmp_path, scenario()) as world:
        session = await opened(world)
        await session.judge("")
        with pytest.raises(SessionOver):
            await session.call("find_notes", {})
        with pytest.raises(SessionOver):
            await session.judge("")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("def verify_task_completion(a, b, final_answer=None):\n    return 1 / 0\n", "ZeroDivisionError"),
        ('def verify_task_completion(a, b):\n    return {"result": "maybe"}\n', "must return"),
        ("def verify_task_completion(a, b):\n    return None\n", "must return"),
        ("x = 1\n", "no function that is named verify"),
    ],
)
async def test_a_verifier_that_errs_is_a_fault_and_no_score(tmp_path: Path, code: str, says: str) -> None:
    code = code.replace("(a, b", "(initial_db_path, final_db_path")
    async with playing(tmp_path, scenario(coded=[code])) as world:
        session = await opened(world)
        with pytest.raises(WorldFault, match=says):
            await session.judge("")


async def test_a_verifier_can_change_nothing_and_reach_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    code = f"""
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    import os, socket, sqlite3
    done = []
    for attack in (
        lambda: open({str(secret)!r}).read(),
        lambda: sqlite3.connect(final_db_path).execute("DELETE FROM notes").connection.commit(),
        lambda: open(initial_db_path, "ab").write(b"x"),
        lambda: socket.socket().connect(("127.0.0.1", 9)),
        lambda: os.kill(os.getppid(), 9),
    ):
        try:
            attack()
            done.append(1)
        except Exception:
            done.append(0)
    if any(done):
        raise RuntimeError(f"reached: {{done}}")
    return {{"result": "others"}}
"""
    async with playing(tmp_path / "awm", scenario(coded=[code])) as world:
        assert not (await (await opened(world)).judge("")).hard


async def test_a_program_that_swaps_its_database_for_a_link_gives_nothing_away(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    program = PROGRAM.replace(
        'raise RuntimeError("a secret of the program")',
        f"os.remove('session.db'); os.symlink({str(secret)!r}, 'session.db'); return 1",
    )
    async with playing(tmp_path / "awm", scenario(program=program)) as world:
        session = await opened(world)
        await session.call("broken", {})
        with pytest.raises(WorldFault) as fault:
            await session.judge("")
        assert SECRET not in str(fault.value)


async def test_a_program_reaches_no_other_session_and_no_verifier(tmp_path: Path) -> None:
    program = PROGRAM.replace(
        'raise RuntimeError("a secret of the program")',
        "seen = []\n"
        "    for place in ('..', '../..', '/tmp', os.path.dirname(os.getcwd())):\n"
        "        try:\n"
        "            seen += os.listdir(place)\n"
        "        except OSError:\n"
        "            pass\n"
        "    return seen",
    )
    async with playing(tmp_path, scenario(program=program)) as world:
        one, other = await opened(world), await opened(world)
        assert (await one.call("broken", {})).text == "[]"
        await one.close()
        await other.close()


async def test_a_program_that_ends_its_process_is_a_fault_of_that_session_alone(tmp_path: Path) -> None:
    program = PROGRAM.replace('raise RuntimeError("a secret of the program")', "import os; os._exit(0)")
    async with playing(tmp_path, scenario(program=program)) as world:
        session = await opened(world)
        with pytest.raises(WorldFault, match="lost"):
            await session.call("broken", {})
        await session.close()
        again = await opened(world)
        assert (await again.call("find_notes", {})).fault is None
        await again.close()


class Judge:
    def __init__(self, reply: str) -> None:
        self.ref = ModelRef("scripted", "judge")
        self.reply = reply
        self.asked: list[str] = []

    async def complete(self, request: ModelRequest, *, purpose: Purpose, **_: Any) -> ModelReply:
        assert purpose is Purpose.JUDGE
        self.asked.append(request.messages[0].text)
        return ModelReply(self.reply)


@pytest.mark.parametrize(
    ("reply", "kind", "soft"),
    [
        ('{"reason": "there", "result": "complete"}', RewardType.COMPLETE, 1.0),
        ('So: {"reason": "half", "result": "incomplete"}', RewardType.INCOMPLETE, 0.1),
        ('{"reason": "no", "result": "others"}', RewardType.OTHER, 0.0),
    ],
)
async def test_facts_are_judged_by_the_model_of_the_judge(
    tmp_path: Path, reply: str, kind: RewardType, soft: float
) -> None:
    admit_by_hand(write_folder(tmp_path, scenario()))
    judge = Judge(reply)
    world = load_world("awm", {"path": ".", "verifier": "judged"}, base_dir=tmp_path, judge=judge)
    assert isinstance(world, AwmWorld)
    try:
        verdict = await (await opened(world)).judge("I added it")
    finally:
        await world.aclose()
    assert (verdict.facts["reward_type"], verdict.soft) == (kind, soft)
    assert '"notes":2' in judge.asked[0].replace(" ", "")
    assert "I added it" in judge.asked[0]


async def test_many_sessions_leave_nothing_behind(tmp_path: Path) -> None:
    async with playing(tmp_path, scenario()) as world:
        await (await opened(world)).close()
        before = await at_rest()
        template = next(iter(world._stages._ready.values())).result().template.folder
        sessions = [await opened(world, seed) for seed in range(40)]
        for session in sessions:
            await session.call("find_notes", {})
            await session.close()
        assert await at_rest() == before
        assert [name for name in os.listdir(template) if name.startswith("session")] == []


async def at_rest() -> tuple[int, int]:
    """What is held once it stays so: a process that has ended is buried by its parent a moment later."""
    seen = [held()]
    async with asyncio.timeout(20):
        while len(seen) < 10 or len(set(seen[-10:])) > 1:
            await asyncio.sleep(0.02)
            seen.append(held())
    return seen[-1]


def held() -> tuple[int, int]:
    """Open files, and processes below this one."""
    above: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            above[int(fields["Pid"])] = int(fields["PPid"])
    mine, found = {os.getpid()}, 0
    while below := {pid for pid, parent in above.items() if parent in mine}:
        found, mine = found + len(below), below
    return len(os.listdir("/proc/self/fd")), found


def test_a_folder_that_was_not_admitted_says_how(tmp_path: Path) -> None:
    write_folder(tmp_path, scenario())
    with pytest.raises(InputError, match=r"has not been admitted.*whet world import awm"):
        load_world("awm", {"path": "."}, base_dir=tmp_path)


def test_a_scenario_that_changed_since_is_not_played(tmp_path: Path) -> None:
    admit_by_hand(write_folder(tmp_path, scenario()))
    write_folder(tmp_path, scenario(coded=[VERIFIER + "\n# changed\n"]))
    with pytest.raises(InputError, match="has changed since it was admitted"):
        load_world("awm", {"path": "."}, base_dir=tmp_path)
