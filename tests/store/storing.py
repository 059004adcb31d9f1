"""Rows to write, and other eyes to look at a run's file with."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

from whet.core import End, ModelReply, Split, Trajectory, Verdict, content_key
from whet.store import AttemptRow, AttemptStatus, CallRow, RolloutRow


def call_row(number: int, *, text: str = "") -> CallRow:
    return CallRow(
        key=call_key(number),
        role="target",
        purpose="rollout",
        model="test/model",
        input_tokens=10,
        output_tokens=number,
        nanodollars=number * 1000,
        reply=ModelReply(text or f"answer {number}"),
    )


def call_key(number: int) -> bytes:
    return content_key("call", number)


def attempt_row(
    number: int, status: AttemptStatus, *, tokens: int = 100, nanodollars: int = 5000, seconds: float = 0.0
) -> AttemptRow:
    return AttemptRow(
        number, call_key(number), "target", "rollout", status, tokens, nanodollars, at=1.0, seconds=seconds
    )


def trajectory(number: int, *, hard: bool = True, policy: str = "p", split: Split = Split.TRAIN) -> Trajectory:
    return Trajectory(policy, f"task-{number}", split, 0, (), "42", End.ANSWERED, Verdict(hard, float(hard)))


def rollout_row(number: int, *, hard: bool = True, policy: str = "p", split: Split = Split.TRAIN) -> RolloutRow:
    key = content_key("rollout", number, policy)
    return RolloutRow(key, trajectory(number, hard=hard, policy=policy, split=split), at=2.0, seconds=0.5)


class Onlooker:
    """A connection of its own: it sees what a kill at this moment would leave behind."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None, timeout=0.0)

    def answers(self) -> list[int]:
        """The numbers of the calls that are stored, in the order in which they were written."""
        return [number for (number,) in self.db.execute("SELECT output_tokens FROM calls ORDER BY id")]

    def lock(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")

    def unlock(self) -> None:
        self.db.execute("ROLLBACK")

    def close(self) -> None:
        self.db.close()


def commits_in(wal: Path) -> int:
    """Transactions in a write-ahead log: each ends with a frame that says how large the file is after it."""
    content = wal.read_bytes()
    (page_size,) = struct.unpack(">I", content[8:12])
    starts = range(32, len(content), 24 + page_size)
    return sum(struct.unpack(">I", content[start + 4 : start + 8])[0] > 0 for start in starts)
