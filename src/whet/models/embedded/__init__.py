"""Models that run within this process, on llama.cpp: where they come from, what they are, and how they are asked.

This room knows nothing of runs, money or tasks; to the rest of `models` it is one more sender.
"""

from whet.models.embedded.catalogue import KNOWN, Known
from whet.models.embedded.header import Header, read_header
from whet.models.embedded.identity import base_of
from whet.models.embedded.model import EmbeddedModel, FindAdapter
from whet.models.embedded.pulling import original, pull, pulled
from whet.models.embedded.settings import EmbeddedSettings, shape_for

__all__ = [
    "KNOWN",
    "EmbeddedModel",
    "EmbeddedSettings",
    "FindAdapter",
    "Header",
    "Known",
    "base_of",
    "original",
    "pull",
    "pulled",
    "read_header",
    "shape_for",
]
