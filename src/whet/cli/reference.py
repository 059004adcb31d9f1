"""Makes docs/configuration.md from the texts under the fields of `training.config`.

`python -m whet.cli.reference docs/configuration.md` writes it anew; without a path it is printed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
from msgspec import inspect as shape

from whet.cli.fields import Field, fields_of
from whet.models import RoleSettings
from whet.training import Config

_HEAD = """\
<!-- Made by `python -m whet.cli.reference docs/configuration.md` from the docstrings under the settings themselves. -->

# Configuration

A project is described by one file, `whet.toml`. An unknown key is an error that names the nearest right one, a value of
the wrong type is one that says what was expected. Secrets are never in it: they are read from the environment.

- `whet train --set train.epochs=2` changes a setting for one run; the value is TOML, or a bare text.
- `extends = "base.toml"`, at the top of a file, takes over all that the other file says and this one does not.
- Settings that results depend on make a new run when they change; those that do not, such as caps, prices, addresses
  and timeouts, do not.
"""


def reference() -> str:
    """The whole page."""
    texts = {field.name: field for field in fields_of(Config)}
    tables = msgspec.structs.fields(Config)
    sections = [_section(table.encode_name, texts[table.name], _struct_of(table.type)) for table in tables]
    return "\n".join([_HEAD, *sections, _roles()])


def _section(name: str, field: Field, kind: type[msgspec.Struct] | None) -> str:
    heading = '[prices."provider/model"]' if name == "prices" else f"[{name}]"
    lines = [f"## `{heading}`", "", field.text]
    if name == "world":
        lines += ["", *_world_lines()]
    elif kind is not None and issubclass(kind, RoleSettings):
        lines += ["", *_role_lines(kind)]
    elif kind is not None:
        lines += ["", *_table(fields_of(kind))]
    return "\n".join(lines) + "\n"


def _role_lines(kind: type[RoleSettings]) -> list[str]:
    shared = {field.name for field in fields_of(RoleSettings)}
    own = [field for field in fields_of(kind) if field.name not in shared]
    link = "[keys of every role](#keys-of-every-role)"
    return [*_table(own), "", f"And the {link}."] if own else [f"It has the {link}."]


def _roles() -> str:
    """Said once for all roles."""
    return "\n".join(["## Keys of every role", "", *_table(fields_of(RoleSettings))]) + "\n"


def _world_lines() -> list[str]:
    return [
        "| key | type | default | meaning |",
        "|---|---|---|---|",
        '| `use` | text | required | A name from `whet world list`, or `"file.py:Name"` for a world of your own. |',
        "",
        "All other keys are the world's own: `whet world show jsonl` lists them.",
    ]


def _table(fields: list[Field]) -> list[str]:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for field in fields:
        default = "required" if field.required else f"`{field.default}`" if field.default else ""
        rows.append(f"| `{field.name}` | {_cell(field.kind)} | {default} | {_cell(field.text)} |")
    return rows


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _struct_of(kind: object) -> type[msgspec.Struct] | None:
    """The struct behind a table, also where it is one of many by name, as prices are."""
    described = shape.type_info(kind)
    if isinstance(described, shape.DictType):
        described = described.value_type
    return described.cls if isinstance(described, shape.StructType) else None


def main() -> None:
    text = reference()
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
