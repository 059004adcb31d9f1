"""What a model of the llama family looks like: sizes, and the names of tensors in GGUF, transformers and PEFT."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from whet.core import InputError
from whet.learners.adapter.weights import GgufFile

FAMILIES: Final = ("llama", "qwen2", "qwen3")
"""Those whose layers are built alike; mistral and smollm call themselves llama."""


class Site(msgspec.Struct, frozen=True):
    """A linear layer that LoRA changes, by its name inside a block."""

    name: str
    """In transformers and PEFT."""
    gguf: str


SITES: Final = (
    Site("self_attn.q_proj", "attn_q"),
    Site("self_attn.k_proj", "attn_k"),
    Site("self_attn.v_proj", "attn_v"),
    Site("self_attn.o_proj", "attn_output"),
    Site("mlp.gate_proj", "ffn_gate"),
    Site("mlp.up_proj", "ffn_up"),
    Site("mlp.down_proj", "ffn_down"),
)
_FUSED: Final = (SITES[0:3], SITES[3:4], SITES[4:6], SITES[6:7])
"""Sites with the same input, in the order in which a block computes them."""


class Shape(msgspec.Struct, frozen=True):
    family: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_size: int
    inner: int
    vocabulary: int
    context: int
    rope_base: float
    norm_epsilon: float

    @property
    def permuted(self) -> bool:
        """llama.cpp keeps the rows of q and k of this family in another order (pairs beside each other)."""
        return self.family == "llama"


def read_shape(file: GgufFile) -> Shape:
    family = file.settings.get("general.architecture")
    if family not in FAMILIES:
        raise InputError(
            f"{file.path} is a model of family {family!r}, for which adapters cannot be trained here",
            hint=f"Families that can: {', '.join(FAMILIES)}",
        )
    heads, width = file.number(f"{family}.attention.head_count"), file.number(f"{family}.embedding_length")
    sizes = file.settings
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise InputError(f"{file.path} has no table of tokens", hint="Is it a language model?")
    return Shape(
        family=str(family),
        layers=file.number(f"{family}.block_count"),
        width=width,
        heads=heads,
        kv_heads=_or(sizes.get(f"{family}.attention.head_count_kv"), heads),
        head_size=_or(sizes.get(f"{family}.attention.key_length"), width // heads),
        inner=file.number(f"{family}.feed_forward_length"),
        vocabulary=embedding.shape[0],
        context=file.number(f"{family}.context_length"),
        rope_base=file.real(f"{family}.rope.freq_base", 10000.0),
        norm_epsilon=file.real(f"{family}.attention.layer_norm_rms_epsilon", 1e-5),
    )


def _or(value: object, default: int) -> int:
    return value if isinstance(value, int) and value > 0 else default


def sizes(shape: Shape, site: Site) -> tuple[int, int]:
    """Outputs and inputs of a site."""
    attention, kv = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    return {
        "attn_q": (attention, shape.width),
        "attn_k": (kv, shape.width),
        "attn_v": (kv, shape.width),
        "attn_output": (shape.width, attention),
        "ffn_gate": (shape.inner, shape.width),
        "ffn_up": (shape.inner, shape.width),
        "ffn_down": (shape.width, shape.inner),
    }[site.gguf]


def fused_sites(shape: Shape) -> Iterator[tuple[int, tuple[Site, ...]]]:
    """Every block's sites, those with the same input together, in the order in which they are computed."""
    for layer in range(shape.layers):
        for sites in _FUSED:
            yield layer, sites


def lora_name(layer: int, site: Site, which: str) -> str:
    """Of LoRA's A or B of a site, as PEFT names it."""
    return f"base_model.model.model.layers.{layer}.{site.name}.lora_{which}.weight"
