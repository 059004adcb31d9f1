"""`whet registry`: what is published, what is active where, and how that changes."""

from __future__ import annotations

import getpass
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from whet.cli.boundary import NO
from whet.cli.loading import find_folder
from whet.cli.numbers import plural, share, when
from whet.cli.options import examples, json_option, project_option, run_argument
from whet.cli.output import pairs, paragraph, print_diff, print_json, print_table, rest, text, title
from whet.core import InputError, SystemClock
from whet.gate import read_certificate
from whet.project import data_folder
from whet.registry import (
    STABLE,
    Activation,
    Measure,
    Proof,
    Record,
    Registry,
    difference,
    open_registry,
    read_archive,
    tree,
    write_archive,
)
from whet.training import load_config, prepare
from whet.training.folder import CONFIG_COPY
from whet.training.publishing import draft_of

channel_option = click.option("--channel", default=STABLE, show_default=True, help="Users ask for one by name.")
record_argument = click.argument("record", metavar="ID")


class RecordFacts(msgspec.Struct, frozen=True):
    record: Record
    active: tuple[Activation, ...]
    certificates: tuple[Any, ...]
    damaged: tuple[str, ...]
    skill: dict[str, str]


@contextmanager
def opened() -> Generator[Registry]:
    with open_registry(data_folder(os.environ), SystemClock(), _who()) as registry:
        yield registry


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in a container
        return ""


@click.group(
    "registry", epilog=examples("whet registry list", "whet registry publish run-1", "whet registry activate 3f2a")
)
def command() -> None:
    """Published policies: where they come from, what speaks for them, and which one is served.

    A record is named by its id or the beginning of it. What is active for a world is what `whet serve` answers with and
    what `--policy active` means.
    """


@command.command("list", epilog=examples("whet registry list", "whet registry list --world grid_ctf --json"))
@click.option("--world", default="", help="Only this world's.")
@json_option
def list_records(world: str, as_json: bool) -> None:
    """Every record under the one that it was made from, and what is active."""
    with opened() as registry:
        records, active = registry.records(world), registry.active()
    if as_json:
        print_json({"records": records, "active": active})
        return
    if not records:
        click.echo("Nothing is published. `whet registry publish` publishes what a run kept.")
        return
    columns = (text("record"), text("state"), text("world"), text("base"), text("test"), text("proof"), rest("made"))
    print_table(columns, [_line(line.branch, line.record) for line in tree(records)])
    forced = [one for one in active if one.forced]
    if forced:
        click.echo(f"\nActive without a certificate: {', '.join(one.record for one in forced)}.")


def _line(branch: str, record: Record) -> tuple[str, ...]:
    measured = next((one for one in record.body.evidence if one.what == "test"), None)
    made = f"{when(record.at)} {record.body.who}".strip()
    return (
        f"{branch}{record.id} {record.kind}",
        record.state,
        record.world,
        record.base.name,
        share(measured.value) if measured else "-",
        "certificate" if record.certified else "none",
        f"{made}, imported" if record.imported else made,
    )


@command.command("show", epilog=examples("whet registry show 3f2a"))
@record_argument
@json_option
def show(record: str, as_json: bool) -> None:
    """One record in full: how it was made, what it was measured to do, its certificates, its skill."""
    with opened() as registry:
        found = registry.record(record)
        facts = RecordFacts(
            found,
            tuple(one for one in registry.active() if one.record == found.id),
            tuple(msgspec.json.decode(one) for one in registry.certificates(found.id)),
            tuple(registry.damaged(found)),
            registry.policy(found.id).skill.files,
        )
    print_json(facts) if as_json else _print(facts)
    if facts.damaged:
        click.get_current_context().exit(NO)


def _print(facts: RecordFacts) -> None:
    record, body = facts.record, facts.record.body
    pairs(
        [
            ("record", f"{record.id}, {record.kind}, {record.state}{_why(record)}"),
            ("world", record.world),
            ("base", f"{record.base.name} ({record.base.fingerprint[:12]})"),
            ("policy", record.policy),
            ("made", f"{when(record.at)} by {body.who or 'nobody named'}, {body.origin.run or 'no run'}"),
            ("from", ", ".join(body.parents) or "nothing that is published"),
            *(("active", f"on {one.channel} since {when(one.at)}{_how(one)}") for one in facts.active),
            *([("note", body.note)] if body.note else []),
            *([("DAMAGED", ", ".join(facts.damaged))] if facts.damaged else []),
        ]
    )
    _print_evidence(body.evidence)
    for certificate in facts.certificates:
        title("Certificate")
        claim = certificate.get("claim", {})
        pairs(
            [
                ("over", str(claim.get("incumbent", ""))[:12]),
                ("gain", f"{certificate.get('gain', 0.0):+.3f} on {certificate.get('played', 0)} tasks"),
                ("evidence", f"{certificate.get('e_value', 0.0):.3g} times over chance"),
                ("play it again", str(claim.get("replay", ""))),
            ]
        )
    for name, written in facts.skill.items():
        title(name)
        paragraph(written.rstrip())


def _why(record: Record) -> str:
    return f": {record.rejected}" if record.rejected else ""


def _how(one: Activation) -> str:
    parts = [", by force, without a certificate" if one.forced else "", ", rolled back to" if one.restored else ""]
    return "".join(parts)


def _print_evidence(evidence: tuple[Measure, ...]) -> None:
    if not evidence:
        return
    title("Measured")
    columns = (text("what"), text("metric"), text("value"), text("95% interval"), text("tasks"))
    rows = [
        (one.what, one.metric, f"{one.value:.3f}", f"{one.low:.3f} to {one.high:.3f}", str(one.count))
        for one in evidence
    ]
    print_table(columns, rows)


@command.command("publish", epilog=examples("whet registry publish", "whet registry publish run-1 --activate"))
@run_argument
@click.option("--note", default="", help="A line for people.")
@click.option("--activate", "then_activate", is_flag=True, help="And make it active, if a certificate allows it.")
@click.option("--force", is_flag=True, help="With --activate: also without a certificate; it is marked so.")
@project_option
@json_option
def publish(run: str | None, note: str, then_activate: bool, force: bool, project: Path, as_json: bool) -> None:
    """Publish the best policy of RUN with its files and evidence, and its certificate if there is one."""
    folder = find_folder(project, run)
    made = prepare(load_config(folder / CONFIG_COPY), project)
    with opened() as registry:
        record = registry.publish(draft_of(made, folder, registry, note))
        click.echo(f"published {record.id}: {record.kind} for {record.world} on {record.base.name}", err=as_json)
        if then_activate:
            _activated(registry, record.id, STABLE, force, err=as_json)
        if as_json:
            print_json(registry.record(record.id))


@command.command("activate", epilog=examples("whet registry activate 3f2a", "whet registry activate 3f2a --force"))
@record_argument
@channel_option
@click.option("--force", is_flag=True, help="Also without a certificate; it is marked so wherever it is shown.")
@json_option
def activate(record: str, channel: str, force: bool, as_json: bool) -> None:
    """Make a record what is served for its world and base model. Servers follow within a second."""
    with opened() as registry:
        done = _activated(registry, record, channel, force, err=as_json)
    if as_json:
        print_json(done)


def _activated(registry: Registry, record: str, channel: str, force: bool, *, err: bool) -> Activation:
    done = registry.activate(record, channel=channel, force=force)
    click.echo(f"active for {done.world} on {done.channel}: {done.record}{_how(done)}", err=err)
    return done


@command.command("rollback", epilog=examples("whet registry rollback house_commands"))
@click.argument("world")
@click.option("--base", default="", help="Which base model, where the world has several: the beginning of its name.")
@channel_option
@json_option
def rollback(world: str, base: str, channel: str, as_json: bool) -> None:
    """Make what was active before for WORLD active again."""
    with opened() as registry:
        places = [one for one in registry.active() if (one.world, one.channel) == (world, channel)]
        names = {one.base: registry.record(one.record).base.name for one in places}
        fitting = [one for one in places if names[one.base].startswith(base)]
        if len(fitting) != 1:
            known = ", ".join(sorted(names.values())) or "none"
            why = "several base models" if fitting else "nothing"
            raise InputError(f"{why} active for {world} on {channel}", hint=f"--base says which: {known}.")
        done = registry.rollback(world, fitting[0].base, channel=channel)
    print_json(done) if as_json else click.echo(f"active for {world} on {channel}: {done.record}")


@command.command("reject", epilog=examples('whet registry reject 3f2a --why "it leaks names"'))
@record_argument
@click.option("--why", required=True, help="Shown wherever the record is.")
@json_option
def reject(record: str, why: str, as_json: bool) -> None:
    """Mark a record as never to be used. What is active cannot be rejected."""
    with opened() as registry:
        registry.reject(record, why)
        found = registry.record(record)
    print_json(found) if as_json else click.echo(f"rejected {found.id}")


@command.command("delete", epilog=examples("whet registry delete 3f2a"))
@record_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def delete(record: str, yes: bool, as_json: bool) -> None:
    """Remove a record and its files. What is active cannot be deleted."""
    with opened() as registry:
        found = registry.record(record)
        if not yes:
            click.confirm(f"Delete {found.id} ({found.kind} for {found.world}) with its files?", abort=True)
        registry.delete(found.id)
    print_json({"deleted": found.id}) if as_json else click.echo(f"deleted {found.id}")


@command.command("diff", epilog=examples("whet registry diff 3f2a 90bc"))
@click.argument("before")
@click.argument("after")
@json_option
def diff(before: str, after: str, as_json: bool) -> None:
    """What differs between two records: settings, scores, files, the skill's text."""
    with opened() as registry:
        records = registry.record(before), registry.record(after)
        texts = tuple(registry.policy(record.id).skill.files for record in records)
    found = difference(*records, (texts[0], texts[1]))
    if as_json:
        print_json(found)
        return
    for heading, lines in (("Settings", found.settings), ("Measured", found.evidence), ("Files", found.files)):
        if lines:
            title(heading)
            for line in lines:
                click.echo(f"  {line}")
    title("Skill")
    print_diff(found.skill) if found.skill else click.echo("  the same")


@command.command("export", epilog=examples("whet registry export 3f2a policy.whet"))
@record_argument
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def export(record: str, file: Path, as_json: bool) -> None:
    """Write a record with its files and certificates to FILE, for another registry."""
    with opened() as registry:
        found = registry.record(record)
        write_archive(registry, found, file)
    files = plural(len(found.body.files), "file")
    print_json(found) if as_json else click.echo(f"wrote {file}: {found.id}, {files}")


def _proof(text: str) -> Proof:
    """Raises InputError where the text is no certificate."""
    claim = read_certificate(text).claim
    return Proof(claim.candidate, claim.incumbent, text)


@command.command("import", epilog=examples("whet registry import policy.whet"))
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def import_record(file: Path, as_json: bool) -> None:
    """Add the record that another registry exported to FILE. Its files are compared with their hashes, never run."""
    with opened() as registry:
        found = read_archive(registry, file, _proof)
    print_json(found) if as_json else click.echo(f"imported {found.id}: {found.kind} for {found.world}")
