"""`whet export`: what a run stored, one JSON object a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from whet.cli.loading import find_folder
from whet.cli.numbers import plural
from whet.cli.options import examples, project_option
from whet.cli.output import print_json
from whet.core import ModelReply, ModelRequest, Trajectory
from whet.store import RunReader
from whet.training import StepRecord
from whet.training.folder import STORE_FILE


class What(StrEnum):
    STEPS = "steps"
    ROLLOUTS = "rollouts"
    CALLS = "calls"


class StepLine(msgspec.Struct, frozen=True, tag="step"):
    step: StepRecord


class RolloutLine(msgspec.Struct, frozen=True, tag="rollout"):
    at: float
    seconds: float
    trajectory: Trajectory


class CallLine(msgspec.Struct, frozen=True, tag="call"):
    role: str
    purpose: str
    model: str
    request: ModelRequest | None
    """Not kept for rollouts, whose trajectories say it."""
    reply: ModelReply


@click.command(
    "export", epilog=examples("whet export run-1 --out run-1.jsonl", "whet export run-1 --what rollouts | head -1")
)
@click.argument("run")
@click.option("--out", type=click.Path(path_type=Path), help="The file to write; without it, standard output.")
@click.option(
    "--what",
    "kinds",
    type=click.Choice([what.value for what in What]),
    multiple=True,
    help="Only these; may be given several times.",
)
@click.option("--json", "as_json", is_flag=True, help="With --out, say what was written as JSON.")
@project_option
def command(run: str, out: Path | None, kinds: tuple[str, ...], as_json: bool, project: Path) -> None:
    """Write the steps, rollouts and calls of RUN as lines of JSON, each with a "type".

    It takes the same memory however long the run is, and works while the run is being trained.
    """
    folder = find_folder(project, run)
    wanted = [What(kind) for kind in kinds] or list(What)
    with RunReader(folder / STORE_FILE) as reader:
        if out is None:
            _write(reader, wanted, sys.stdout.buffer)
            return
        # Whole or not at all: a broken-off export must not look like one.
        beside = out.with_name(f".{out.name}.part")
        with beside.open("wb") as file:
            count = _write(reader, wanted, file)
        beside.replace(out)
    if as_json:
        print_json({"file": str(out), "lines": count})
    else:
        click.echo(f"wrote {plural(count, 'line')} to {out}")


def _write(reader: RunReader, wanted: list[What], file: BinaryIO) -> int:
    encode = msgspec.json.Encoder().encode
    count = 0
    for what in wanted:
        for line in _lines(reader, what):
            file.write(encode(line) + b"\n")
            count += 1
    file.flush()
    return count


def _lines(reader: RunReader, what: What) -> Iterator[StepLine | RolloutLine | CallLine]:
    match what:
        case What.STEPS:
            yield from (StepLine(step) for step in reader.decisions("step", StepRecord))
        case What.ROLLOUTS:
            for stored in reader.rollouts():
                yield RolloutLine(stored.at, stored.seconds, stored.trajectory)
        case What.CALLS:
            for call in reader.calls():
                yield CallLine(call.role, call.purpose, call.model, call.request, call.reply)
