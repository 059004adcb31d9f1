"""The frozen model as torch has it: weights of a GGUF file under the names that transformers gives them."""

# Types of torch are not all told.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from whet.core import InputError
from whet.learners.adapter.shapes import SITES, Shape, read_shape, sizes
from whet.learners.adapter.weights import GgufFile

_NORMS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
}


def load_base(path: Path, dtype: torch.dtype = torch.float32) -> tuple[Shape, dict[str, Tensor]]:
    """Without a hub, without pickles; a wrong or cut-off file is an InputError that says where."""
    with GgufFile(path) as file:
        shape = read_shape(file)
        weights = {
            "model.embed_tokens.weight": _tensor(file, "token_embd.weight", (shape.vocabulary, shape.width)),
            "model.norm.weight": _tensor(file, "output_norm.weight", (shape.width,)),
        }
        if "output.weight" in file.tensors:
            weights["lm_head.weight"] = _tensor(file, "output.weight", (shape.vocabulary, shape.width))
        for layer in range(shape.layers):
            weights |= _block(file, shape, layer)
        weights = {name: weight.to(dtype) for name, weight in weights.items()}
        if "rope_freqs.weight" in file.tensors:
            weights["rope_factors"] = _tensor(file, "rope_freqs.weight", (shape.head_size // 2,))
    return shape, weights


def _block(file: GgufFile, shape: Shape, layer: int) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for site in SITES:
        outputs, inputs = sizes(shape, site)
        for part, expected in (("weight", (outputs, inputs)), ("bias", (outputs,))):
            name = f"blk.{layer}.{site.gguf}.{part}"
            if part == "bias" and name not in file.tensors:
                continue
            tensor = _tensor(file, name, expected)
            if shape.permuted and site.gguf in ("attn_q", "attn_k"):
                tensor = in_halves(tensor, outputs // shape.head_size)
            found[f"model.layers.{layer}.{site.name}.{part}"] = tensor
    for name, short in _NORMS.items():
        norm = f"blk.{layer}.{short}.weight"
        if norm in file.tensors or short in ("attn_norm", "ffn_norm"):
            size = shape.head_size if "self_attn" in name else shape.width
            found[f"model.layers.{layer}.{name}.weight"] = _tensor(file, norm, (size,))
    return found


def _tensor(file: GgufFile, name: str, shape: tuple[int, ...]) -> Tensor:
    numbers = file.tensor(name)
    if numbers.shape != shape:
        raise InputError(f"{file.path}: tensor {name} has the shape {numbers.shape}, not {shape}")
    return torch.from_numpy(numbers)


def in_halves(rows: Tensor, heads: int) -> Tensor:
    """Rows of q or k as transformers has them, from llama.cpp's order."""
    return rows.view(heads, -1, 2, *rows.shape[1:]).transpose(1, 2).reshape(rows.shape).contiguous()


def in_pairs(rows: Tensor, heads: int) -> Tensor:
    """Rows of q or k as llama.cpp has them, from transformers' order."""
    return rows.view(heads, 2, -1, *rows.shape[1:]).transpose(1, 2).reshape(rows.shape).contiguous()


def as_transformers(shape: Shape, weights: dict[str, Tensor]) -> Any:
    """The same model as a class of transformers, for trainers that want one (and for tests)."""
    from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

    kinds: dict[str, Any] = {"llama": LlamaConfig, "qwen2": Qwen2Config, "qwen3": Qwen3Config}
    config = kinds[shape.family](
        vocab_size=shape.vocabulary,
        hidden_size=shape.width,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_size,
        max_position_embeddings=shape.context,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_base},
        rms_norm_eps=shape.norm_epsilon,
        tie_word_embeddings="lm_head.weight" not in weights,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    if "rope_factors" in weights:
        raise InputError("this model stretches its positions, which is not carried over to transformers here")
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(config)
    model.to_empty(device="cpu")
    tied = {} if "lm_head.weight" in weights else {"lm_head.weight": weights["model.embed_tokens.weight"]}
    model.load_state_dict({**weights, **tied}, assign=True)
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    return model.eval()
