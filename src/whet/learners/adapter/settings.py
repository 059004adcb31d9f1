"""How the adapter lever learns: the `[adapter]` table of whet.toml."""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec


class Pick(StrEnum):
    BEST_OF = "best_of"
    TOP = "top"
    THRESHOLD = "threshold"


class Precision(StrEnum):
    AUTO = "auto"
    FP32 = "fp32"
    BF16 = "bf16"


class TrainingSettings(msgspec.Struct, frozen=True):
    """The part that decides what comes out of a set of examples; see `AdapterSettings` for what each one means."""

    rank: int
    alpha: int
    learning_rate: float
    epochs: int
    steps: int
    batch_size: int
    row_tokens: int
    max_length: int
    packing: bool
    precision: Precision
    held_out: float
    patience: int


class AdapterSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    pick: Pick = Pick.BEST_OF
    """best_of: of each task, the tries with its best score; top: the best share of all; threshold: all good ones."""
    min_soft: float = 0.5
    """The soft score that a try needs to be learned from, whatever `pick` says."""
    top_share: float = 0.25
    """The share of tries that `top` takes."""
    per_task: int = 4
    """Tries at one task that may be learned from at most."""
    samples: int = 4
    """Rollouts of each train task in a generation."""
    temperature: float = 0.8
    """Sampling temperature of these rollouts: at 0 all samples of a task are one."""
    balance: bool = True
    """Let no task give more than its even share of what is picked."""
    data: str = ""
    """A JSONL file of chats to learn from besides, one {"messages": [...]} a line; empty: none."""
    explore: int = 0
    """Proposals a task drawn from the strategy space, where a world can list one, played beside the model's own."""
    conditioned: bool = False
    """Learn from tries of every quality, each with its quality in its prompt; serving then asks for the best."""
    distill: bool = False
    """Learn from play made with the skill, rendered without it, so that what was text becomes weights."""
    generations: int = 1
    """How often to collect and train; each learns only from what the system itself proposed."""
    rank: int = 16
    """Rank of the LoRA of each linear layer."""
    alpha: int = 32
    """LoRA's scale is alpha / rank."""
    learning_rate: float = 1e-3
    """Peak of a schedule that warms up and goes down to 0; about ten times what tuning all weights would take."""
    epochs: int = 3
    """Times that each example is learned from, unless held-out loss says stop."""
    steps: int = 0
    """Updates to make in place of `epochs`; 0: by epochs."""
    batch_size: int = 16
    """Examples an update."""
    row_tokens: int = 512
    """Tokens evaluated at once; more need more memory. Changes speed, not what is learned."""
    max_length: int = 2048
    """Examples of more tokens are left out, and counted."""
    packing: bool = True
    """Lay the examples of an update in rows, what they begin with in common only once. Changes speed alone."""
    precision: Precision = Precision.AUTO
    """What the frozen weights are computed in; auto: bf16 where this processor computes it faster. LoRA stays fp32."""
    held_out: float = 0.1
    """Share of the training tasks whose examples are not learned from but tell when to stop; 0: none."""
    patience: int = 2
    """Looks at the held-out loss (one an epoch) without a new best after which training stops; the best is kept."""

    def __post_init__(self) -> None:
        least = {
            "per_task": 1,
            "samples": 1,
            "explore": 0,
            "generations": 1,
            "rank": 1,
            "alpha": 1,
            "epochs": 1,
            "steps": 0,
            "batch_size": 1,
            "row_tokens": 16,
            "max_length": 16,
            "patience": 1,
        }
        for name, value in least.items():
            if getattr(self, name) < value:
                raise ValueError(f"`{name}` is at least {value}")
        for name, most in {
            "min_soft": 1.0,
            "top_share": 1.0,
            "held_out": 0.5,
            "learning_rate": 1.0,
            "temperature": 10.0,
        }.items():
            if not (math.isfinite(getattr(self, name)) and 0.0 <= getattr(self, name) <= most):
                raise ValueError(f"`{name}` is between 0 and {most:g}")
        if self.learning_rate == 0.0:
            raise ValueError("`learning_rate` is above 0")

    @property
    def training(self) -> TrainingSettings:
        return msgspec.convert(self, TrainingSettings, from_attributes=True)
