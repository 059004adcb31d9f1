"""A decoder of the llama family (llama, mistral, smollm, qwen2, qwen3) as training needs it, and nothing more.

Weights are frozen and stay as they are; LoRA is part of each linear layer, so a pass makes no copies for it. One row
of tokens is read at a time; which token sees which is said by a mask, so many examples can lie in one row. Knows
nothing of files, examples or optimizers. That it computes what transformers and PEFT compute is tested, not assumed:
importing those takes longer than the shortest useful training.
"""

# Types of torch are not all told.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from whet.learners.adapter.shapes import Shape


class Fused(msgspec.Struct, frozen=True):
    """Linear layers with the same input, computed as one."""

    weight: Tensor
    """[all outputs, inputs]."""
    bias: Tensor | None
    outputs: tuple[int, ...]


class Layer(msgspec.Struct, frozen=True):
    before_attention: Tensor
    qkv: Fused
    output: Fused
    before_mlp: Tensor
    gate_up: Fused
    down: Fused
    query_norm: Tensor | None
    key_norm: Tensor | None


class Low(msgspec.Struct, frozen=True):
    """The LoRA of one `Fused`: A of all its layers stacked, B of each apart."""

    a: Tensor
    b: tuple[Tensor, ...]


class Decoder:
    def __init__(self, shape: Shape, weights: dict[str, Tensor]) -> None:
        """`weights` by the names that transformers gives them, in the precision to compute in."""
        self.shape = shape
        self.embedding = weights["model.embed_tokens.weight"]
        self.norm = weights["model.norm.weight"]
        self.head = weights.get("lm_head.weight", self.embedding)
        self.layers = [_layer(shape, weights, number) for number in range(shape.layers)]
        factors = weights.get("rope_factors")
        half = torch.arange(0, shape.head_size, 2, dtype=torch.float32)
        turns = 1.0 / (shape.rope_base ** (half / shape.head_size))
        self._turns = turns if factors is None else turns / factors

    def hidden(
        self, tokens: Tensor, positions: Tensor, mask: Tensor | None, low: Sequence[Low], scale: float
    ) -> Tensor:
        """What the last layer says at each token. `mask`: which token (row) sees which; None: all see all before."""
        x = F.embedding(tokens, self.embedding)
        turned = self._turned(positions, x.dtype)
        for number, layer in enumerate(self.layers):
            qkv, output, gate_up, down = low[4 * number : 4 * number + 4]
            heads = self._attention(
                layer, linear(rms(x, layer.before_attention, self._eps), layer.qkv, qkv, scale), turned, mask
            )
            x = x + linear(heads, layer.output, output, scale)
            inner = swiglu(linear(rms(x, layer.before_mlp, self._eps), layer.gate_up, gate_up, scale))
            x = x + linear(inner, layer.down, down, scale)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(rms(hidden, self.norm, self._eps), self.head)

    @property
    def _eps(self) -> float:
        return self.shape.norm_epsilon

    def _turned(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        angles = torch.outer(positions.float(), self._turns)
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(dtype), angles.sin().to(dtype)

    def _attention(self, layer: Layer, qkv: Tensor, turned: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        shape = self.shape
        each = qkv.view(qkv.shape[0], -1, shape.head_size).transpose(0, 1)
        query, key, value = each.split((shape.heads, shape.kv_heads, shape.kv_heads))
        if layer.query_norm is not None and layer.key_norm is not None:
            query, key = rms(query, layer.query_norm, self._eps), rms(key, layer.key_norm, self._eps)
        query, key = rotate(query, turned), rotate(key, turned)
        seen = F.scaled_dot_product_attention(
            query[None],
            key[None],
            value[None],
            attn_mask=mask,
            is_causal=mask is None,
            enable_gqa=shape.heads != shape.kv_heads,
        )
        return seen[0].transpose(0, 1).reshape(qkv.shape[0], shape.heads * shape.head_size)


class _Linear(torch.autograd.Function):
    """y = x W' + s (x A') B', with gradients for x, A and B. W is frozen."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, scale: float, a: Tensor, *b: Tensor
    ) -> Tensor:
        y = F.linear(x, weight, bias)
        low = (x @ a.t()).mul_(scale)
        rank, start = a.shape[0] // len(b), 0
        for number, each in enumerate(b):
            y[:, start : start + each.shape[0]].addmm_(low[:, number * rank : (number + 1) * rank], each.t())
            start += each.shape[0]
        ctx.save_for_backward(x, low, weight, a, *b)
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        x, low, weight, a, *b = ctx.saved_tensors
        rank, start = a.shape[0] // len(b), 0
        of_b: list[Tensor] = []
        of_low = torch.empty_like(low)
        for number, each in enumerate(b):
            part, columns = grad[:, start : start + each.shape[0]], slice(number * rank, (number + 1) * rank)
            torch.mm(part, each, out=of_low[:, columns])
            of_b.append(part.t() @ low[:, columns])
            start += each.shape[0]
        of_low.mul_(ctx.scale)
        of_x = None
        if ctx.needs_input_grad[0]:
            of_x = grad @ weight
            of_x.addmm_(of_low, a)
        return of_x, None, None, None, of_low.t() @ x, *of_b


class _Rms(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        wide = x.float()
        inverse = torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
        ctx.save_for_backward(x, weight, inverse)
        return (wide * inverse).to(x.dtype) * weight

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, inverse = ctx.saved_tensors
        grad = (grads[0] * weight).float()
        even = x.float() * inverse
        grad -= even * (grad * even).mean(-1, keepdim=True)
        return (grad * inverse).to(x.dtype), None, None


def linear(x: Tensor, layer: Fused, low: Low, scale: float) -> Tensor:
    return _Linear.apply(x, layer.weight, layer.bias, scale, low.a, *low.b)  # pyright: ignore


def rms(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return _Rms.apply(x, weight, epsilon)  # pyright: ignore


def swiglu(both: Tensor) -> Tensor:
    gate, up = both.chunk(2, dim=-1)
    return F.silu(gate) * up


def rotate(x: Tensor, turned: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = turned
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def _layer(shape: Shape, weights: dict[str, Tensor], number: int) -> Layer:
    at = f"model.layers.{number}."

    def fused(*names: str) -> Fused:
        parts = [weights[f"{at}{name}.weight"] for name in names]
        biases = [weights.get(f"{at}{name}.bias") for name in names]
        bias = torch.cat([b for b in biases if b is not None]) if all(b is not None for b in biases) else None
        return Fused(torch.cat(parts), bias, tuple(part.shape[0] for part in parts))

    return Layer(
        weights[f"{at}input_layernorm.weight"],
        fused("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        fused("self_attn.o_proj"),
        weights[f"{at}post_attention_layernorm.weight"],
        fused("mlp.gate_proj", "mlp.up_proj"),
        fused("mlp.down_proj"),
        weights.get(f"{at}self_attn.q_norm.weight"),
        weights.get(f"{at}self_attn.k_norm.weight"),
    )
