"""An agent is trained on the pack, through its real tools, and ends better than it began on tasks it never saw."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from whet.core import Split
from whet.store import RunReader
from whet.training import load_config, prepare, train
from whet.worlds import load_world

CONFIG = """\
[world]
use = "pack"

[target]
model = "scripted/scripted_clerk.py:clerk"
max_turns = 20

[optimizer]
model = "scripted/scripted_clerk.py:coach"

[skill]
learning_rate = 8

[gate]
rule = "strict"

[train]
epochs = 4
batch_size = 12
seed = 1
"""


@pytest.mark.slow
async def test_a_scripted_agent_learns_the_house_rules_and_every_rollout_is_in_the_store(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("scripted_clerk.py"), tmp_path)
    (tmp_path / "whet.toml").write_text(CONFIG)
    run = tmp_path / "runs" / "run-1"
    report = await train(prepare(load_config(tmp_path / "whet.toml"), tmp_path, environ={}), run)

    world = load_world("pack", {}, base_dir=tmp_path)
    held_out = len(world.tasks(Split.TEST))
    assert report.comparison is not None
    scores = {score.policy: score for score in report.test}
    before, after = scores[report.start], scores[report.best]
    assert before.count == after.count == held_out == 18
    assert after.passed >= before.passed + 9
    assert report.comparison.interval.low > 0
    with RunReader(run / "run.db") as reader:
        rollouts = [one.trajectory for one in reader.rollouts()]
        played = [one.trajectory for one in reader.rollouts(policy=report.best, split=Split.TEST)]
    assert {one.task for one in played} == {task.id for task in world.tasks(Split.TEST)}
    assert all(one.verdict is not None and one.failure is None for one in rollouts)
    assert {one.split for one in rollouts} == {Split.TRAIN, Split.SELECTION, Split.TEST}
    called = [call.name for one in played for message in one.messages for call in message.tool_calls]
    assert {"read_handbook", "find_members", "assign_vehicle"} <= set(called)
    assert not any(one.tool_faults for one in played)
    assert sum(one.hard for one in played) == after.passed
