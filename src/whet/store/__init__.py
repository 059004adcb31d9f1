"""The only SQL in the project: a run is one SQLite file, and everything that costs is a row under its content key.

This room knows nothing of models, worlds or training; it knows their structs from `core`. One process writes a run
(`open_run`), any number read it (`RunReader`).
"""

from whet.store.lock import writer_of
from whet.store.reader import (
    AnsweredLine,
    FailureLine,
    RunReader,
    SpendingLine,
    SplitScore,
    StoredCall,
    StoredRollout,
    meta_of,
)
from whet.store.rows import (
    AttemptRow,
    AttemptStatus,
    CallRow,
    DecisionRow,
    FailureRow,
    MetaRow,
    PolicyRow,
    RolloutRow,
    Row,
)
from whet.store.schema import MIGRATIONS, SCHEMA_VERSION
from whet.store.writer import LOCK_PATIENCE, RunStore, Spending, open_run

__all__ = [
    "LOCK_PATIENCE",
    "MIGRATIONS",
    "SCHEMA_VERSION",
    "AnsweredLine",
    "AttemptRow",
    "AttemptStatus",
    "CallRow",
    "DecisionRow",
    "FailureLine",
    "FailureRow",
    "MetaRow",
    "PolicyRow",
    "RolloutRow",
    "Row",
    "RunReader",
    "RunStore",
    "Spending",
    "SpendingLine",
    "SplitScore",
    "StoredCall",
    "StoredRollout",
    "meta_of",
    "open_run",
    "writer_of",
]
