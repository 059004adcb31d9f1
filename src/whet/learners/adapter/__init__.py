"""The adapter lever: LoRA weights are learned from what an agent did and the world found good.

This room curates, lays examples out, trains and converts; it never plays and never judges. Torch is loaded in the
process that trains, not by importing this.
"""

from whet.learners.adapter.backends import Backend, PeftBackend
from whet.learners.adapter.curation import Curated, CurationReport, curate
from whet.learners.adapter.examples import Tokens, best_condition, examples_of, examples_of_chat, quality
from whet.learners.adapter.job import job_folder, train_adapter, trained
from whet.learners.adapter.orders import Example, Metrics, Progress, TrainedAdapter, TrainingOrder
from whet.learners.adapter.outside import Chat, read_chats
from whet.learners.adapter.settings import AdapterSettings, Pick, Precision, TrainingSettings

__all__ = [
    "AdapterSettings",
    "Backend",
    "Chat",
    "Curated",
    "CurationReport",
    "Example",
    "Metrics",
    "PeftBackend",
    "Pick",
    "Precision",
    "Progress",
    "Tokens",
    "TrainedAdapter",
    "TrainingOrder",
    "TrainingSettings",
    "best_condition",
    "curate",
    "examples_of",
    "examples_of_chat",
    "job_folder",
    "quality",
    "read_chats",
    "train_adapter",
    "trained",
]
