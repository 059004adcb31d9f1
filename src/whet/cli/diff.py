"""`whet diff`: what changed between two skills of a run."""

from __future__ import annotations

from pathlib import Path

import click

from whet.cli.changes import Change, changes_between, print_changes
from whet.cli.loading import find_folder
from whet.cli.options import examples, json_option, project_option
from whet.cli.output import print_diff, print_json
from whet.cli.report import reported
from whet.cli.skills import diff_lines
from whet.cli.standing import Lineage, lineage_of, report_of, skill_of
from whet.core import InputError, Skill
from whet.store import RunReader
from whet.training import StepRecord
from whet.training.folder import STORE_FILE
from whet.web import gather_facts

_SHORTEST_FINGERPRINT = 4


@click.command("diff", epilog=examples("whet diff run-1", "whet diff run-1 best 7", "whet diff run-1 start last"))
@click.argument("run")
@click.argument("before", metavar="[A]", default="start")
@click.argument("after", metavar="[B]", default="best")
@click.option("--bare", is_flag=True, help="The unified diff alone, for other programs.")
@project_option
@json_option
def command(run: str, before: str, after: str, bare: bool, project: Path, as_json: bool) -> None:
    """What changed from skill A (start) to skill B (best) of RUN, and who brought each change.

    A and B are start, best, last, the number of a step for what it proposed, or the beginning of a fingerprint. Under
    each change stand the step that brought it, its reason, the tasks whose tries it was learned from, and the
    selection tasks that it fixed and broke. Where B did not come of A, there are only the lines.
    """
    folder = find_folder(project, run)
    report, _ = reported(folder)
    with RunReader(folder / STORE_FILE) as reader:
        (_, old), (policy, new) = (_named(reader, folder, name) for name in (before, after))
        files = changes_between(report, gather_facts(reader, report), old, new, policy)
    lines = list(diff_lines(old, new, before, after))
    if as_json:
        changes = [part for file in files for part in file.parts if isinstance(part, Change)]
        print_json({"before": before, "after": after, "diff": lines, "changes": changes})
    elif not lines:
        click.echo(f"no difference between {before} and {after}")
    elif bare:
        print_diff(lines)
    else:
        print_changes(files, before, after)


def named_skill(reader: RunReader, folder: Path, name: str) -> Skill:
    """The skill that a name, a step's number or a fingerprint stands for."""
    return _named(reader, folder, name)[1]


def _named(reader: RunReader, folder: Path, name: str) -> tuple[str, Skill]:
    """The policy and its skill."""
    steps = reader.decisions("step", StepRecord)
    lineage = lineage_of(reader, steps, report_of(folder))
    policy = _policy_named(reader, lineage, steps, name)
    skill = skill_of(reader, policy, steps) if policy else None
    if skill is None:
        raise InputError(
            f"{folder.name} has no policy {name!r}",
            hint="It is start, best, last, a step that proposed something, or the beginning of a fingerprint.",
        )
    return policy, skill


def _policy_named(reader: RunReader, lineage: Lineage, steps: list[StepRecord], name: str) -> str:
    """Its fingerprint; empty if there is none."""
    names = {"start": lineage.start, "best": lineage.best, "last": lineage.current}
    if name in names:
        return names[name]
    if name.isdigit() and int(name) <= len(steps):
        return next((step.candidate for step in steps if step.number == int(name)), "")
    matching = [policy.fingerprint for policy in reader.policies() if policy.fingerprint.startswith(name)]
    return matching[0] if len(matching) == 1 and len(name) >= _SHORTEST_FINGERPRINT else ""
