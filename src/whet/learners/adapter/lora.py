"""The weights being learned, all in one stretch of memory: so that an update is a handful of operations, and a
checkpoint three tensors. Knows the names that PEFT gives them.
"""

# Types of torch are not all told.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math

import torch
from torch import Tensor

from whet.learners.adapter.decoder import Low
from whet.learners.adapter.shapes import Shape, fused_sites, lora_name, sizes

_BETAS = (0.9, 0.999)
_EPSILON = 1e-8
_MOST_NORM = 1.0
"""Longer gradients are shortened to this."""


class Lora:
    def __init__(self, shape: Shape, rank: int, seed: int) -> None:
        self.shape, self.rank = shape, rank
        self._sizes: list[tuple[int, int]] = []
        self._names: list[tuple[str, ...]] = []
        for layer, sites in fused_sites(shape):
            self._sizes.append((rank * len(sites), sizes(shape, sites[0])[1]))
            self._names.append(tuple(lora_name(layer, site, "A") for site in sites))
            for site in sites:
                self._sizes.append((sizes(shape, site)[0], rank))
                self._names.append((lora_name(layer, site, "B"),))
        count = sum(rows * columns for rows, columns in self._sizes)
        self.weights = torch.zeros(count)
        self.gradients = torch.zeros(count)
        self.first = torch.zeros(count)
        self.second = torch.zeros(count)
        generator = torch.Generator().manual_seed(seed)
        for names, tensor in zip(self._names, self._cut(self.weights), strict=True):
            if names[0].endswith("lora_A.weight"):
                bound = 1 / math.sqrt(tensor.shape[1])
                tensor.uniform_(-bound, bound, generator=generator)

    def _cut(self, stretch: Tensor) -> list[Tensor]:
        parts = stretch.split([rows * columns for rows, columns in self._sizes])
        return [part.view(size) for part, size in zip(parts, self._sizes, strict=True)]

    def leaves(self, dtype: torch.dtype) -> list[Tensor]:
        """The weights as a pass uses them, in its precision; their gradients are collected by `take`."""
        return [part.detach().requires_grad_() for part in self._cut(self.weights.to(dtype))]

    def lows(self, leaves: list[Tensor]) -> list[Low]:
        """The LoRA of every `Fused` of the decoder, in its order."""
        lows: list[Low] = []
        left = iter(leaves)
        for _, sites in fused_sites(self.shape):
            lows.append(Low(next(left), tuple(next(left) for _ in sites)))
        return lows

    def take(self, leaves: list[Tensor]) -> None:
        for total, leaf in zip(self._cut(self.gradients), leaves, strict=True):
            if leaf.grad is not None:
                total.copy_(leaf.grad)

    def update(self, step: int, rate: float) -> None:
        """Adam, counting steps from 1."""
        gradients = self.gradients
        norm = float(gradients.norm())
        if norm > _MOST_NORM:
            gradients.mul_(_MOST_NORM / norm)
        one, two = _BETAS
        self.first.lerp_(gradients, 1 - one)
        self.second.mul_(two).addcmul_(gradients, gradients, value=1 - two)
        spread = (self.second / (1 - two**step)).sqrt_().add_(_EPSILON)
        self.weights.addcdiv_(self.first, spread, value=-rate / (1 - one**step))

    def named(self, weights: Tensor) -> dict[str, Tensor]:
        """As PEFT has them."""
        found: dict[str, Tensor] = {}
        for names, tensor in zip(self._names, self._cut(weights), strict=True):
            for name, part in zip(names, tensor.chunk(len(names)), strict=True):
                found[name] = part.clone()
        return found
