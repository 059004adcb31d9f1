"""Adapters on disk: named by content, refused when wrong, and the same served by llama.cpp as by PEFT."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from trying_adapters import tiny_model

from whet.core import InputError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("base") / "tiny.gguf")


def shape_of(base: Path) -> Any:
    from whet.learners.adapter.shapes import read_shape
    from whet.learners.adapter.weights import GgufFile

    with GgufFile(base) as file:
        return read_shape(file)


def an_adapter(base: Path, folder: Path, *, rank: int = 4, spread: float = 0.1, seed: int = 1) -> Path:
    import torch

    from whet.learners.adapter.conversion import write_adapter
    from whet.learners.adapter.lora import Lora

    lora = Lora(shape_of(base), rank, seed)
    drawn = torch.randn(lora.weights.shape, generator=torch.Generator().manual_seed(seed))
    write_adapter(folder, lora.named(spread * drawn), rank=rank, alpha=2 * rank, base="tiny", model="m")
    return folder


def test_an_adapter_is_named_by_what_it_computes(base: Path, tmp_path: Path) -> None:
    from whet.learners.adapter.conversion import read_adapter

    shape = shape_of(base)
    one = an_adapter(base, tmp_path / "one")
    name = read_adapter(one, shape, base="tiny").fingerprint
    shutil.copytree(one, tmp_path / "two")
    os.utime(tmp_path / "two" / "adapter_model.safetensors", (1, 1))
    assert read_adapter(tmp_path / "two", shape).fingerprint == name
    assert read_adapter(an_adapter(base, tmp_path / "three", seed=2), shape).fingerprint != name
    config = msgspec.json.decode((one / "adapter_config.json").read_bytes())
    (one / "adapter_config.json").write_bytes(msgspec.json.encode(config | {"lora_alpha": 9}))
    assert read_adapter(one, shape).fingerprint != name


def cut_off(folder: Path) -> None:
    path = folder / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def pickled(folder: Path) -> None:
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")


def with_config(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = msgspec.json.decode((folder / "adapter_config.json").read_bytes())
        (folder / "adapter_config.json").write_bytes(msgspec.json.encode(config | changes))

    return change


def with_tensors(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def rewrite(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        tensors = load_file(folder / "adapter_model.safetensors")
        change(tensors)
        save_file(tensors, folder / "adapter_model.safetensors")

    return rewrite


QUERY_B = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (cut_off, "not a whole safetensors file"),
        (pickled, "is a pickle"),
        (with_config(revision="other"), "for another base model"),
        (with_config(r=8), "has the shape"),
        (with_config(r="many"), "does not describe an adapter"),
        (with_config(use_dora=True), "`use_dora` is not supported"),
        (with_config(bias="all"), "`bias` is not supported"),
        (with_config(lora_alpha=0), "not those of a LoRA"),
        (with_tensors(lambda each: each.pop(QUERY_B)), "is missing"),
        (with_tensors(lambda each: each.update(stray=each[QUERY_B].clone())), "tensor stray is not of a LoRA"),
        (with_tensors(lambda each: each[QUERY_B].fill_(float("nan"))), "holds what is not a number"),
        (with_tensors(lambda each: each.update({QUERY_B: each[QUERY_B][:-1].clone()})), "has the shape"),
        (lambda folder: (folder / "adapter_config.json").unlink(), "does not describe an adapter"),
        (lambda folder: (folder / "adapter_model.safetensors").unlink(), "has no adapter_model"),
    ],
)
def test_a_wrong_adapter_is_refused_in_one_line(
    base: Path, tmp_path: Path, spoil: Callable[[Path], object], said: str
) -> None:
    from whet.learners.adapter.conversion import read_adapter

    folder = an_adapter(base, tmp_path / "a")
    spoil(folder)
    with pytest.raises(InputError, match=said) as caught:
        read_adapter(folder, shape_of(base), base="tiny")
    assert "\n" not in str(caught.value)


def test_an_adapter_of_a_model_of_another_size_is_refused(base: Path, tmp_path: Path) -> None:
    from whet.learners.adapter.conversion import read_adapter

    wider = tiny_model(tmp_path / "wider.gguf", width=64)
    deeper = tiny_model(tmp_path / "deeper.gguf", layers=3)
    for other, said in ((wider, "has the shape"), (deeper, "is not of a LoRA of this model")):
        folder = an_adapter(other, tmp_path / other.stem)
        with pytest.raises(InputError, match=said):
            read_adapter(folder, shape_of(base))
