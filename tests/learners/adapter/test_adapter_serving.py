"""The same adapter on the same weights says the same by PEFT and by llama.cpp, where users get it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from whet.core import AdapterRef, ModelRequest, Sampling, user
from whet.models.embedded import EmbeddedModel, EmbeddedSettings, original, pull

pytestmark = pytest.mark.slow
MODEL = "smollm2-135m"
BEGINNINGS = ("The best way to", "A short story about", "In the year 1900 the", "To cook a good meal, you")
BEGINNINGS += ("The capital of France is", "My favourite animal is the", "Water is made of", "The teacher said that")
PROMPTS = [f"{beginning}{end}" for beginning in BEGINNINGS for end in ("", " dog", " we", " the old", " if")]
TIE = 0.02
"""Logits nearer to each other than this may be ordered either way: llama.cpp keeps what it has seen in 16 bits."""


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """Fetched once for all processes; a registry that cannot be reached is a failure, not a reason to skip."""
    cache = Path(os.environ.get("WHET_TEST_CACHE", Path(tempfile.gettempdir()) / "whet-test-cache"))
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pull(MODEL, cache)
    found = original(MODEL, cache)
    assert found is not None
    return found


def widened(file: Path, wide: Path) -> Path:
    """The same weights in fp32: llama.cpp rounds what goes into quantised products, which is no fault of an adapter."""
    import gguf

    from whet.learners.adapter.weights import GgufFile

    writer = gguf.GGUFWriter(str(wide), "llama")
    for name, field in gguf.GGUFReader(str(file)).fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind is gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, 0 if name == "general.file_type" else field.contents(), kind, sub_type=inner)
    with GgufFile(file) as opened:
        for name in opened.tensors:
            writer.add_tensor(name, opened.tensor(name))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return wide


async def answers(file: Path, lora: Path) -> Sequence[tuple[tuple[int, ...], tuple[int, ...]]]:
    async with EmbeddedModel(file, adapters=lambda ref: lora, settings=EmbeddedSettings(threads=1)) as model:

        async def one(prompt: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
            ref = AdapterRef("drawn", model.base)
            sampling = Sampling(max_tokens=10, temperature=0.0)
            request = ModelRequest((user(prompt),), plain=True, sampling=sampling, adapter=ref)
            reply = await model.send(request, 600, {})
            tokens = await model.tokens(reply.text)
            assert reply.usage is not None
            # A text can be cut into other tokens than those that it was made of, and then says nothing of them.
            known = len(tokens) == reply.usage.output_tokens
            return await model.prompt_tokens(request), tokens if known else ()

        return await asyncio.gather(*(one(prompt) for prompt in PROMPTS))


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
def test_llama_cpp_says_what_peft_says(smollm2: Path, tmp_path: Path) -> None:
    import torch
    from peft import PeftModel

    from whet.learners.adapter.base import as_transformers, load_base
    from whet.learners.adapter.conversion import read_adapter, write_adapter, write_lora
    from whet.learners.adapter.lora import Lora

    shape, weights = load_base(smollm2)
    lora = Lora(shape, 16, 7)
    lora.weights.copy_(0.02 * torch.randn(lora.weights.shape, generator=torch.Generator().manual_seed(3)))
    folder = tmp_path / "adapter"
    write_adapter(folder, lora.named(lora.weights), rank=16, alpha=32, base="smol", model="smol")
    write_lora(read_adapter(folder, shape, base="smol"), shape, tmp_path / "adapter.gguf")
    wide = widened(smollm2, tmp_path / "wide.gguf")
    said = asyncio.run(answers(wide, tmp_path / "adapter.gguf"))
    wide.unlink()

    reference: Any = PeftModel.from_pretrained(as_transformers(shape, weights), str(folder))
    changed = 0
    told = [(prompt, *each) for prompt, each in zip(PROMPTS, said, strict=True) if each[1]]
    assert len(told) >= 32
    for prompt, before, after in told:
        with torch.no_grad():
            whole, start = torch.tensor([(*before, *after[:-1])]), len(before) - 1
            logits = reference(input_ids=whole).logits[0, start:]
            with reference.disable_adapter():
                bare = reference(input_ids=whole).logits[0, start:]
        behind = logits.max(dim=-1).values - logits[torch.arange(len(after)), torch.tensor(after)]
        assert behind.max() <= TIE, (prompt, after, behind)
        changed += bare.argmax(dim=-1).tolist() != list(after)
    # With an adapter that changes nothing, agreeing would show nothing.
    assert changed >= len(told) // 2
