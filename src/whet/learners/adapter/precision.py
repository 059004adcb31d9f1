"""Which precision this machine computes faster in."""

from __future__ import annotations

import time

import torch

from whet.learners.adapter.settings import Precision

_GAIN = 1.2
"""What bf16 has to bring: it is a little less exact, so it is not taken for nothing."""


def chosen(asked: Precision) -> Precision:
    if asked is not Precision.AUTO:
        return asked
    return Precision.BF16 if _has_instructions() and _gain() >= _GAIN else Precision.FP32


def _has_instructions() -> bool:
    """Processors without them emulate bf16 at a fraction of the speed of fp32."""
    capability = torch.backends.cpu.get_cpu_capability()
    flags = _flags()
    return ("AVX512" in capability and bool({"avx512_bf16", "amx_bf16"} & flags)) or "bf16" in flags


def _flags() -> set[str]:
    """Empty where the system does not say."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    return set(line.partition(":")[2].split())
    except OSError:
        pass
    return set()


def _gain() -> float:
    """How much faster a product of the size of a small model's is in bf16: a few milliseconds to find out."""
    wide = _seconds(torch.float32)
    return wide / _seconds(torch.bfloat16)


def _seconds(dtype: torch.dtype) -> float:
    left, right = torch.ones(512, 576, dtype=dtype), torch.ones(576, 1536, dtype=dtype)
    best = float("inf")
    for _ in range(7):
        began = time.perf_counter()
        torch.mm(left, right)
        best = min(best, time.perf_counter() - began)
    return best
