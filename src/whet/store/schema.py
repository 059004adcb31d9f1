"""The tables of a run, and how an older file becomes a newer one."""

from __future__ import annotations

import sqlite3

from whet.core import StoreTooNew

# Each entry lifts a file by one version, inside one transaction. Entries are never changed, only added to.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # An answer that was paid for. `request` is kept where no trajectory already says it.
        """CREATE TABLE calls (
            id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, role TEXT NOT NULL, purpose TEXT NOT NULL,
            model TEXT NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
            nanodollars INTEGER NOT NULL, request BLOB, reply BLOB NOT NULL)""",
        # Every sending of a call: answered, failed, given up, or still open when the process died.
        """CREATE TABLE attempts (
            id INTEGER PRIMARY KEY, call BLOB NOT NULL, role TEXT NOT NULL, purpose TEXT NOT NULL,
            status TEXT NOT NULL, tokens INTEGER NOT NULL, nanodollars INTEGER NOT NULL,
            at REAL NOT NULL, seconds REAL NOT NULL, note TEXT NOT NULL)""",
        "CREATE INDEX attempts_open ON attempts (status) WHERE status = 'open'",
        """CREATE TABLE rollouts (
            id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, policy TEXT NOT NULL, split TEXT NOT NULL,
            task TEXT NOT NULL, sample INTEGER NOT NULL, kind TEXT NOT NULL, hard INTEGER NOT NULL,
            soft REAL NOT NULL, at REAL NOT NULL, seconds REAL NOT NULL, body BLOB NOT NULL)""",
        "CREATE INDEX rollouts_by_policy ON rollouts (policy, split, hard, soft)",
        # A try that ended without a verdict. Never scored; the same rollout may succeed later.
        """CREATE TABLE failures (
            id INTEGER PRIMARY KEY, key BLOB NOT NULL, kind TEXT NOT NULL, task TEXT NOT NULL,
            message TEXT NOT NULL, at REAL NOT NULL)""",
        # What was decided: proposals, rulings, steps, the summary. `label` orders them within their kind.
        """CREATE TABLE decisions (
            id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, label TEXT NOT NULL,
            at REAL NOT NULL, body BLOB NOT NULL)""",
        "CREATE INDEX decisions_by_kind ON decisions (kind, label)",
        # Policies by fingerprint, so that a rollout names its policy in 32 letters.
        "CREATE TABLE policies (fingerprint TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    ),
    (
        # How long each process has worked on the run, for caps in seconds that hold over restarts.
        """CREATE TABLE sessions (
            id INTEGER PRIMARY KEY, started REAL NOT NULL, seconds REAL NOT NULL, pid INTEGER NOT NULL)""",
    ),
)

SCHEMA_VERSION = len(MIGRATIONS)


def version_of(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def migrate(connection: sqlite3.Connection, name: str, migrations: tuple[tuple[str, ...], ...] = MIGRATIONS) -> None:
    """Lift the file to this version of whet; each step is whole or not at all, also if two processes start at once."""
    while (version := version_of(connection)) < len(migrations):
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = version_of(connection)
            statements = migrations[version] if version < len(migrations) else ()
            number = version + bool(statements)
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        except sqlite3.Error:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    refuse_newer(version, name, len(migrations))


def refuse_newer(version: int, name: str, known: int = SCHEMA_VERSION) -> None:
    if version > known:
        raise StoreTooNew(
            f"{name} was written by a later whet (schema {version}; this one knows {known})",
            hint="Upgrade whet to open it.",
        )
