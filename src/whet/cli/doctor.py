"""`whet doctor`: what works on this machine, and the command that mends what does not."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import click
import msgspec

from whet import __version__
from whet.cli.boundary import NO
from whet.cli.embedded import running
from whet.cli.models import ProviderLine, key_state, provider_lines
from whet.cli.options import examples, json_option, project_option
from whet.cli.output import print_json, print_table, rest, text, title, width
from whet.cli.progress import is_live
from whet.project import data_folder
from whet.sandbox import Level, Survey, survey
from whet.store.reader import sqlite_version

EXTRAS = {
    "azure": ("azure.identity", "signing in to Azure without a key"),
    "skillopt": ("yaml", "reading SkillOpt configurations"),
    "local": ("xllamacpp", "models that run within whet (local/…)"),
    "train": ("peft", "training adapters"),
    "mcp": ("mcp", "playing worlds by MCP, and MCP servers as worlds"),
    "worlds": ("fastapi", "worlds whose tools are generated programs (awm)"),
    "reasoning-gym": ("reasoning_gym", "the puzzles of reasoning_gym"),
    "textworld": ("textworld", "text adventures made offline"),
}
"""By the name of the extra: a module that it brings, and what it is good for."""

_OLDEST_PYTHON = (3, 11)
_OLDEST_SQLITE = (3, 30)


class Finding(msgspec.Struct, frozen=True):
    what: str
    works: bool
    says: str
    mend: str = ""
    """The command, or what else to do."""
    optional: bool = False
    """Nothing is broken without it."""
    could_be_better: bool = False
    """It works, and `mend` says what makes it stronger."""

    @property
    def can_be_mended(self) -> bool:
        return not self.works or self.could_be_better


@click.command("doctor", epilog=examples("whet doctor", "whet doctor -C my-project"))
@project_option
@json_option
def command(project: Path, as_json: bool) -> None:
    """What works on this machine, and the command that mends what does not.

    Keys are named, never shown. Exit code 1: something that is needed does not work.
    """
    findings = examine(project, os.environ)
    print_json(findings) if as_json else _print(findings)
    if any(not finding.works and not finding.optional for finding in findings):
        click.get_current_context().exit(NO)


def examine(project: Path, environ: Mapping[str, str]) -> list[Finding]:
    return [
        Finding("whet", True, __version__),
        _python(),
        _sqlite(),
        _writable("project folder", project),
        _writable("data folder", data_folder(environ)),
        _terminal(environ),
        sandbox_finding(survey()),
        *(_extra(name, module, use) for name, (module, use) in EXTRAS.items()),
        _embedded(environ),
        *(_key(line) for line in provider_lines(environ)),
    ]


def _python() -> Finding:
    works = sys.version_info >= _OLDEST_PYTHON
    return Finding("Python", works, f"{platform.python_version()}, {sys.executable}", "install Python 3.11 or later")


def _sqlite() -> Finding:
    version = sqlite_version()
    works = tuple(int(part) for part in version.split(".")[:2]) >= _OLDEST_SQLITE
    return Finding("SQLite", works, version, "use a Python that is built with SQLite 3.30 or later")


def _writable(what: str, folder: Path) -> Finding:
    """A folder that is not there yet is as good as the nearest one above it that is."""
    path = folder.absolute()
    there = next(place for place in (path, *path.parents) if place.exists())
    works = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    made = "" if there == path else ", made when it is needed"
    if what == "data folder":
        mend = "export WHET_HOME=/a/folder/you/may/write"
    else:
        mend = f"chmod u+rwx {there}" if there.is_dir() else f"{there} is not a folder: name another with -C"
    return Finding(what, works, f"{path}{made}", mend)


def _terminal(environ: Mapping[str, str]) -> Finding:
    columns = width()
    if columns is None:
        return Finding("terminal", True, "output goes to a pipe or file: plain lines")
    colour = "no colour (NO_COLOR)" if environ.get("NO_COLOR") else "colour"
    live = "live progress" if is_live(environ, plain=False) else "plain lines (TERM)"
    return Finding("terminal", True, f"{columns} columns, {colour}, {live}")


def sandbox_finding(found: Survey) -> Finding:
    """What is in force; and of a stronger level why it is not, with the command that mends it."""
    strongest = found.levels[0]
    rules = f", Landlock {found.landlock}" if found.landlock else ""
    says = f"level {found.in_force}{rules}"
    if found.in_force is Level.PROCESS:
        says += f": limits only, no walls. Code that whet did not write could {found.standing.leaves[0]}"
    if strongest.available:
        return Finding("sandbox", True, says)
    why = f"{says}; no {strongest.level}: {strongest.why_not}"
    mend = strongest.mend or "use Linux 5.13 or later, where namespaces are allowed"
    walls = found.in_force is not Level.PROCESS
    return Finding("sandbox", walls, why, mend, optional=True, could_be_better=True)


def _extra(name: str, module: str, use: str) -> Finding:
    works = _is_installed(module)
    says = f"installed, for {use}" if works else f"not installed, for {use}"
    return Finding(f"extra {name}", works, says, f"pip install 'whet[{name}]'", optional=True)


def _embedded(environ: Mapping[str, str]) -> Finding:
    told = running(environ)
    mend = "whet models pull smollm2-135m"
    return Finding("embedded models", bool(told), told or "none is pulled", mend, optional=True)


def _is_installed(module: str) -> bool:
    """Looks for every package on the way, because a missing one would be an error."""
    parts = module.split(".")
    return all(find_spec(".".join(parts[: length + 1])) is not None for length in range(len(parts)))


def _key(line: ProviderLine) -> Finding:
    works = line.key_found or not line.needs_key
    return Finding(
        f"{line.provider} key",
        works,
        key_state(line),
        f"export {line.key_names[0]}=…",
        optional=True,
    )


def _print(findings: list[Finding]) -> None:
    print_table(
        (text(""), text("what"), rest("found")),
        [(_mark(finding), finding.what, finding.says) for finding in findings],
    )
    for heading, optional in (("To mend", False), ("If you want it", True)):
        wanted = [finding for finding in findings if finding.can_be_mended and finding.optional is optional]
        if wanted:
            title(heading)
            print_table((text("what"), rest("do")), [(finding.what, finding.mend) for finding in wanted])


def _mark(finding: Finding) -> str:
    if finding.works:
        return "ok"
    return "-" if finding.optional else "NO"
