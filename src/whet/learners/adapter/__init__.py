"""The adapter lever: LoRA weights are learned from what an agent did and the world found good.

This room curates, lays examples out, trains and converts; it never plays and never judges. Torch is loaded in the
process that trains, not by importing this.
"""

from whet.learners.adapter.backends import Backend, PeftBackend, open_backend
from whet.learners.adapter.job import job_folder, train_adapter, trained
from whet.learners.adapter.orders import Example, Metrics, Progress, TrainedAdapter, TrainingOrder
from whet.learners.adapter.settings import AdapterSettings, BackendName, Pick, Precision, TrainingSettings

__all__ = [
    "AdapterSettings",
    "Backend",
    "BackendName",
    "Example",
    "Metrics",
    "PeftBackend",
    "Pick",
    "Precision",
    "Progress",
    "TrainedAdapter",
    "TrainingOrder",
    "TrainingSettings",
    "job_folder",
    "open_backend",
    "train_adapter",
    "trained",
]
