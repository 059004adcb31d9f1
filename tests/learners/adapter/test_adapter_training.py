"""Training: the same as transformers and PEFT compute, the same again, and the same after being killed."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from trying_adapters import VOCABULARY, an_order, quick, some_examples, tiny_model

from whet.core import InputError, WhetError
from whet.learners.adapter import Example, Progress, TrainingOrder, job_folder, train_adapter
from whet.learners.adapter.orders import write_order
from whet.learners.adapter.rows import rows_of

pytestmark = pytest.mark.slow

FAMILIES = ["llama", "qwen2", "qwen3"]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("base") / "tiny.gguf")


@pytest.fixture(scope="module")
def finished(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingOrder, Path, list[Progress]]:
    """A training in a process of its own, as users have it."""
    order = an_order(base, quick(), some_examples(40))
    folder = job_folder(order, tmp_path_factory.mktemp("jobs"))
    told: list[Progress] = []
    asyncio.run(train_adapter(order, folder, told.append))
    return order, folder, told


def trainer_of(order: TrainingOrder) -> Any:
    import torch

    from whet.learners.adapter.base import load_base
    from whet.learners.adapter.decoder import Decoder
    from whet.learners.adapter.lora import Lora
    from whet.learners.adapter.trainer import Trainer

    shape, weights = load_base(Path(order.base_file))
    lora = Lora(shape, order.settings.rank, order.seed)
    return Trainer(order, Decoder(shape, weights), lora, torch.float32)


def stirred(trainer: Any, seed: int = 3) -> Any:
    """With no B at 0, so that all of it takes part."""
    import torch

    trainer.lora.weights.copy_(
        torch.randn(trainer.lora.weights.shape, generator=torch.Generator().manual_seed(seed)) / 8
    )
    return trainer


def gradients(trainer: Any, examples: list[Example], most: int, *, packing: bool) -> tuple[float, Any]:
    loss = trainer.learn(rows_of(examples, most, packing=packing))
    return loss, trainer.lora.gradients.clone()


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
@pytest.mark.parametrize("family", FAMILIES)
def test_it_computes_what_peft_and_transformers_compute(family: str, tmp_path: Path) -> None:
    import torch
    from peft import PeftModel

    from whet.learners.adapter.base import as_transformers, load_base
    from whet.learners.adapter.conversion import write_adapter

    path = tiny_model(tmp_path / "m.gguf", family)
    examples = list(some_examples(9))
    trainer = stirred(trainer_of(an_order(path, quick(), examples)))
    lora = trainer.lora
    write_adapter(tmp_path / "a", lora.named(lora.weights), rank=4, alpha=8, base="tiny", model="m")
    reference: Any = PeftModel.from_pretrained(
        as_transformers(*load_base(path)), str(tmp_path / "a"), is_trainable=True
    )

    total, count = torch.zeros(()), sum(len(each.completion) for each in examples)
    for each in examples:
        whole = torch.tensor([(*each.prompt, *each.completion)])
        masked = torch.tensor([(*([-100] * len(each.prompt)), *each.completion)])
        total = total + reference(input_ids=whole, labels=masked).loss * len(each.completion) / count
    total.backward()
    loss, found = gradients(trainer, examples, 64, packing=True)
    assert loss == pytest.approx(total.item(), rel=1e-5)
    expected = {
        name.replace(".default", ""): each.grad for name, each in reference.named_parameters() if each.requires_grad
    }
    named = lora.named(found)
    assert named.keys() == expected.keys()
    for name, gradient in named.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("most", [8, 40, 500])
def test_packed_and_unpacked_learn_the_same(base: Path, most: int) -> None:
    import torch

    examples = list(some_examples(12, seed=2))
    trainer = stirred(trainer_of(an_order(base, quick(), examples)))
    packed, one = gradients(trainer, examples, most, packing=True)
    unpacked, other = gradients(trainer, examples, most, packing=False)
    assert packed == pytest.approx(unpacked, rel=1e-5)
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_only_completions_are_learned(base: Path) -> None:
    """With logits that are a constant, loss is that of the completion's tokens and of no other."""
    import torch

    (example,) = some_examples(1)
    trainer = stirred(trainer_of(an_order(base, quick(), [example])))
    seen: list[Any] = []
    trainer.decoder.logits = lambda hidden: (
        seen.append(hidden) or hidden.sum() * 0 + torch.arange(VOCABULARY).expand(hidden.shape[0], -1)
    )
    loss, _ = gradients(trainer, [example], 64, packing=True)
    each = torch.log_softmax(torch.arange(VOCABULARY).float(), dim=0)
    assert loss == pytest.approx(-sum(each[token].item() for token in example.completion) / len(example.completion))
    assert [hidden.shape[0] for hidden in seen] == [len(example.completion)]


def test_a_training_learns_tells_how_far_it_is_and_ends_with_its_files(
    finished: tuple[TrainingOrder, Path, list[Progress]],
) -> None:
    order, folder, told = finished
    assert told[0].stage == "load"
    assert told[-1].stage == "convert"
    steps = [each for each in told if each.stage == "train"]
    assert [each.step for each in steps] == list(range(1, steps[-1].of + 1))
    assert all(each.tokens_per_second > 0 for each in steps)
    assert steps[-1].seconds_left == 0
    result = asyncio.run(train_adapter(order, folder, told.append))
    assert result.ref.base == "tiny"
    assert result.metrics.last_loss < result.metrics.first_loss
    assert result.metrics.evaluated < result.metrics.tokens
    assert result.lora.read_bytes()[:4] == b"GGUF"
    assert sorted(each.name for each in folder.iterdir()) == sorted(
        ["adapter", "adapter.gguf", "examples.msgpack", "job.log", "metrics.json", "order.json"]
    )


def test_the_same_order_is_not_trained_twice(finished: tuple[TrainingOrder, Path, list[Progress]]) -> None:
    order, folder, _ = finished
    told: list[Progress] = []
    asyncio.run(train_adapter(order, folder, told.append))
    assert told == []


def test_killed_at_any_step_it_ends_with_the_same_bytes(
    finished: tuple[TrainingOrder, Path, list[Progress]], tmp_path: Path
) -> None:
    """A real process is ended by kill -9 again and again; each time the next one goes on."""
    order, folder, _ = finished
    write_order(order, tmp_path)
    source = (
        f"from pathlib import Path; from whet.learners.adapter.peft_job import main; main(Path({str(tmp_path)!r}), 0.0)"
    )
    resumed: list[int] = []
    for most in (2, 5):
        process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
        assert process.stdout is not None
        steps = 0
        for line in process.stdout:
            told = msgspec.json.decode(line, type=Progress)
            steps += told.stage == "train"
            if steps == 1 and told.stage == "train":
                resumed.append(told.step)
            if steps == most:
                process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
    result = asyncio.run(train_adapter(order, tmp_path, lambda told: None))
    assert resumed[0] == 1
    assert resumed[1] > 1
    assert result.metrics.resumed_at > resumed[1]
    for name in ("adapter/adapter_model.safetensors", "adapter/adapter_config.json", "adapter.gguf"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_trained_in_another_folder_and_process_the_bytes_are_the_same(
    finished: tuple[TrainingOrder, Path, list[Progress]], tmp_path: Path
) -> None:
    from whet.learners.adapter.conversion import WEIGHTS, write_adapter

    order, folder, _ = finished
    trainer = trainer_of(order)
    while not trainer.finished:
        trainer.advance()
    write_adapter(tmp_path, trainer.lora.named(trainer.kept), rank=4, alpha=8, base="tiny", model="tiny.gguf")
    assert (tmp_path / WEIGHTS).read_bytes() == (folder / "adapter" / WEIGHTS).read_bytes()


def test_cancelled_nothing_goes_on(base: Path, tmp_path: Path) -> None:
    order = an_order(base, quick(epochs=10_000), some_examples(10))
    begun: list[Progress] = []

    async def cancel() -> None:
        working = asyncio.create_task(train_adapter(order, tmp_path, begun.append))
        while not any(each.stage == "train" for each in begun):
            await asyncio.sleep(0.01)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

    asyncio.run(cancel())
    assert running(tmp_path) == []


def test_killed_whoever_ordered_it_takes_the_job_along(base: Path, tmp_path: Path) -> None:
    """Else the same command, given again, would find another one at work in its folder."""
    write_order(an_order(base, quick(epochs=10_000), some_examples(10)), tmp_path)
    source = (
        "import asyncio; from pathlib import Path; from whet.learners.adapter import PeftBackend; "
        f"asyncio.run(PeftBackend().train(Path({str(tmp_path)!r}), lambda told: print(told.stage, flush=True)))"
    )
    starter = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    while starter.stdout.readline() != "train\n":
        assert starter.poll() is None
    job = running(tmp_path)
    starter.kill()
    starter.communicate(timeout=30)
    ends = time.monotonic() + 30
    while set(job) & set(running(tmp_path)) and time.monotonic() < ends:
        time.sleep(0.05)
    assert job
    assert running(tmp_path) == []


def running(folder: Path) -> list[str]:
    """Jobs that work in a folder."""
    asked = ["pgrep", "-f", f"peft_job {folder}"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()


def test_training_stops_when_held_out_loss_says_so_and_keeps_the_best(base: Path) -> None:
    """What is held out contradicts what is learned, so learning on makes it worse."""
    right = [Example((4, 5, number), (6, 3), "p", f"r{number}", 1.0) for number in range(8, 40)]
    order = an_order(base, quick(epochs=40, held_out=0.25, patience=2, learning_rate=0.05), right)
    trainer = trainer_of(order)
    wrong = tuple(msgspec.structs.replace(each, completion=(7, 3)) for each in trainer.plan.held_out)
    trainer.plan = msgspec.structs.replace(trainer.plan, held_out=wrong)
    losses: list[float] = []
    while not trainer.finished:
        trainer.advance()
        losses.append(trainer.place.best or 0.0)
    assert trainer.place.step < trainer.plan.steps
    assert trainer.place.best == min(losses[trainer.plan.each_epoch - 1 :])
    assert trainer.place.step == trainer.place.best_step + 2 * trainer.plan.each_epoch
    assert not trainer.kept.equal(trainer.lora.weights)


def test_what_is_wrong_is_said_in_one_line(base: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(base.read_bytes()[:-5000])
    order = an_order(cut, quick(), some_examples(5))
    with pytest.raises(WhetError, match=r"cut\.gguf ends in the middle of tensor"):
        asyncio.run(train_adapter(order, tmp_path / "job", lambda told: None))
    with pytest.raises(InputError, match="no example"):
        asyncio.run(train_adapter(msgspec.structs.replace(order, examples=()), tmp_path / "none", lambda told: None))


def test_a_checkpoint_of_another_training_or_a_broken_one_is_refused(base: Path, tmp_path: Path) -> None:
    from whet.learners.adapter.checkpoint import load_checkpoint, save_checkpoint
    from whet.learners.adapter.settings import Precision

    order = an_order(base, quick(), some_examples(5))
    trainer = trainer_of(order)
    path, count = tmp_path / "c", trainer.lora.weights.numel()
    assert load_checkpoint(path, order.key, count) is None
    save_checkpoint(path, order.key, Precision.FP32, trainer)
    assert load_checkpoint(path, order.key, count) is not None
    for key, numbers, said in ((b"other", count, "another training"), (order.key, count + 1, "does not fit")):
        with pytest.raises(InputError, match=said):
            load_checkpoint(path, key, numbers)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="cannot be read"):
        load_checkpoint(path, order.key, count)
