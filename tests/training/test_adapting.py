"""The adapter lever as a training goes through it: what is learned from, what is kept apart, what survives a kill."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from whet.core import AdapterRef, ConfigError, InputError, ModelRef, Policy, Split, StoreError, Task
from whet.store import RunReader
from whet.training import load_config, prepare, read_report
from whet.training.adapters import Shelf, write_best
from whet.training.adapting import require_trainable, split_apart

SMALL = """
[world]
use = "house_commands"
train = 10
selection = 6
test = 4
[target]
model = "local/smollm2-135m"
max_tokens = 16
temperature = 0.0
stop = ["\\n"]
rendering = "plain"
[skill]
teacher = "demonstrations"
examples = 10
learning_rate = 10
schedule = "constant"
[adapter]
distill = true
min_soft = 0.5
samples = 2
steps = 3
batch_size = 4
[gate]
rule = "off"
[train]
epochs = 1
batch_size = 10
test = false
levers = ["skill", "adapter"]
[local]
threads = 1
exact = true
"""


def tasks(count: int) -> list[Task]:
    return [Task(f"t{number}", Split.TRAIN, {"text": str(number)}) for number in range(count)]


def test_what_is_assessed_with_is_never_learned_from() -> None:
    learn, held_out = split_apart(tasks(40), 0.25, seed=3)
    assert len(held_out) == 10
    assert not {task.id for task in learn} & {task.id for task in held_out}
    assert split_apart(tasks(40), 0.25, seed=3) == (learn, held_out)
    assert split_apart(tasks(40), 0.25, seed=4) != (learn, held_out)


@pytest.mark.parametrize("count", [1, 2])
def test_something_is_left_to_learn_from(count: int) -> None:
    learn, _ = split_apart(tasks(count), 0.5, seed=1)
    assert learn


def test_an_adapter_that_is_nowhere_is_said_to_be(tmp_path: Path) -> None:
    shelf = Shelf()
    shelf.look_in(tmp_path)
    ref = AdapterRef("f" * 32, "b")
    with pytest.raises(InputError, match="the same `whet train` makes them again"):
        shelf(ref)
    file = tmp_path / ref.fingerprint / "adapter.gguf"
    file.parent.mkdir()
    file.write_bytes(b"GGUF")
    assert shelf(ref) == file


def test_the_best_policy_is_written_with_an_adapter_that_was_published_before(tmp_path: Path) -> None:
    ref = AdapterRef("f" * 32, "b")
    published = tmp_path / "elsewhere" / "adapter.gguf"
    published.parent.mkdir()
    published.write_bytes(b"GGUF")
    shelf = Shelf()
    shelf.know(ref, published)
    policy = Policy(ModelRef("local", "small"), adapter=ref)
    write_best(policy, tmp_path / "run", shelf)
    assert (tmp_path / "run/best/adapter/adapter.gguf").read_bytes() == b"GGUF"
    write_best(policy.with_adapter(None), tmp_path / "run", shelf)
    assert not (tmp_path / "run/best/adapter").exists()


def test_a_model_whose_weights_are_elsewhere_cannot_learn_any(tmp_path: Path) -> None:
    (tmp_path / "whet.toml").write_text('[world]\nuse = "dates"\n[target]\nmodel = "openai/gpt-5.5"\n')
    project = prepare(load_config(tmp_path), tmp_path, environ={"OPENAI_API_KEY": "sk-none"})
    with pytest.raises(ConfigError, match="adapters cannot be trained"):
        require_trainable(project)


async def train(folder: Path, home: Path, kill_after: int | None = None) -> int:
    """With `kill_after`, SIGKILL once so many rollouts are stored, or once weights are being trained (-1)."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "whet", "train", "--plain"),
        cwd=folder,
        env={**os.environ, "WHET_HOME": str(home)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    waiting = asyncio.create_task(process.communicate())
    while kill_after is not None and not waiting.done():
        if reached(folder / "runs/run-1", kill_after):
            os.killpg(process.pid, signal.SIGKILL)
            break
        await asyncio.wait([waiting], timeout=0.05)
    _, said = await waiting
    assert process.returncode is not None
    assert process.returncode <= 0, said.decode()[-800:]
    return process.returncode


def reached(run: Path, kill_after: int) -> bool:
    if kill_after < 0:
        return any(run.glob("jobs/*/order.json"))
    if not (run / "run.db").is_file():
        return False
    try:
        with RunReader(run / "run.db") as reader:
            return sum(1 for _ in reader.rollouts()) >= kill_after
    except StoreError:  # it is being made
        return False


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_training_of_both_levers_that_was_killed_ends_like_one_that_was_not(
    tmp_path: Path, models_home: Path, smollm2: Path
) -> None:
    folders = tmp_path / "killed", tmp_path / "undisturbed"
    for folder in folders:
        folder.mkdir()
        (folder / "whet.toml").write_text(SMALL)
    kills = [await train(folders[0], models_home, after) for after in (8, -1)]
    assert kills == [-signal.SIGKILL, -signal.SIGKILL]
    for folder in folders:
        assert await train(folder, models_home) == 0
    killed, undisturbed = (folder / "runs" / "run-1" for folder in folders)
    assert (killed / "report.json").read_bytes() == (undisturbed / "report.json").read_bytes()
    report = read_report(killed)
    assert report is not None
    made = next(step.training for step in report.steps if step.training)
    assert made.picked > 0
    assert made.distilled
    assert (killed / "adapters" / made.adapter / "adapter.gguf").is_file()
