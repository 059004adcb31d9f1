"""`whet diff`: what changed between two skills of a run."""

from __future__ import annotations

from pathlib import Path

import click

from whet.cli.loading import find_folder
from whet.cli.options import examples, json_option, project_option
from whet.cli.output import print_diff, print_json
from whet.cli.skills import diff_lines
from whet.cli.standing import Lineage, lineage_of, report_of, skill_of
from whet.core import InputError, Skill
from whet.store import RunReader
from whet.training import StepRecord
from whet.training.folder import STORE_FILE

_SHORTEST_FINGERPRINT = 4


@click.command("diff", epilog=examples("whet diff run-1", "whet diff run-1 best 7", "whet diff run-1 start last"))
@click.argument("run")
@click.argument("before", metavar="[A]", default="start")
@click.argument("after", metavar="[B]", default="best")
@project_option
@json_option
def command(run: str, before: str, after: str, project: Path, as_json: bool) -> None:
    """Line by line, what changed from skill A (start) to skill B (best) of RUN.

    A and B are start, best, last, the number of a step for what it proposed, or the beginning of a fingerprint.
    """
    folder = find_folder(project, run)
    with RunReader(folder / STORE_FILE) as reader:
        old, new = (named_skill(reader, folder, name) for name in (before, after))
    lines = list(diff_lines(old, new, before, after))
    if as_json:
        print_json({"before": before, "after": after, "diff": lines})
    elif lines:
        print_diff(lines)
    else:
        click.echo(f"no difference between {before} and {after}")


def named_skill(reader: RunReader, folder: Path, name: str) -> Skill:
    """The skill that a name, a step's number or a fingerprint stands for."""
    steps = reader.decisions("step", StepRecord)
    lineage = lineage_of(reader, steps, report_of(folder))
    policy = _policy_named(reader, lineage, steps, name)
    skill = skill_of(reader, policy, steps) if policy else None
    if skill is None:
        raise InputError(
            f"{folder.name} has no policy {name!r}",
            hint="It is start, best, last, a step that proposed something, or the beginning of a fingerprint.",
        )
    return skill


def _policy_named(reader: RunReader, lineage: Lineage, steps: list[StepRecord], name: str) -> str:
    """Its fingerprint; empty if there is none."""
    names = {"start": lineage.start, "best": lineage.best, "last": lineage.current}
    if name in names:
        return names[name]
    if name.isdigit() and int(name) <= len(steps):
        return next((step.candidate for step in steps if step.number == int(name)), "")
    matching = [policy.fingerprint for policy in reader.policies() if policy.fingerprint.startswith(name)]
    return matching[0] if len(matching) == 1 and len(name) >= _SHORTEST_FINGERPRINT else ""
