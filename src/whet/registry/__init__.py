"""What is published: policies with their files, lineage and evidence; which one is active where; and the one resolver.

This room knows files and the index of `store`. It knows nothing of how a policy was trained, judged or is served: proof
of a gain is a text that names two policies, and whoever hands it in has read it.
"""

from whet.registry.archive import read_archive, write_archive
from whet.registry.lineage import Difference, TreeLine, difference, tree
from whet.registry.records import (
    STABLE,
    Activation,
    Base,
    Draft,
    Kind,
    Measure,
    Origin,
    Proof,
    Record,
    State,
)
from whet.registry.registry import Registry, open_registry

__all__ = [
    "STABLE",
    "Activation",
    "Base",
    "Difference",
    "Draft",
    "Kind",
    "Measure",
    "Origin",
    "Proof",
    "Record",
    "Registry",
    "State",
    "TreeLine",
    "difference",
    "open_registry",
    "read_archive",
    "tree",
    "write_archive",
]
