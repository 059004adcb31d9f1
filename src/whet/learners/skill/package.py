"""A skill as an Agent Skills package: its name and description in the front matter, and what makes it invalid. Pure."""

from __future__ import annotations

import json
import re

from whet.core import SKILL_FILE, Skill

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(?P<inside>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^(?P<key>[A-Za-z][\w-]*):[ \t]*(?P<value>.*(?:\n(?:[ \t]+.*|[ \t]*(?=\n[ \t]+)))*)", re.MULTILINE)
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1024
_KNOWN = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")


def front_matter(text: str) -> dict[str, str] | None:
    """The fields of the front matter as text; None if there is none. Nested fields stay as they are written."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return None
    return {field["key"]: _scalar(field["value"]) for field in _FIELD.finditer(match["inside"])}


def with_description(text: str, description: str) -> str | None:
    """The document with another description; None if it has no front matter to put it in."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return None
    line = f"description: {json.dumps(' '.join(description.split()), ensure_ascii=False)}"
    inside = match["inside"]
    for field in _FIELD.finditer(inside):
        if field["key"] == "description":
            inside = f"{inside[: field.start()]}{line}{inside[field.end() :]}"
            break
    else:
        inside = f"{inside.rstrip()}\n{line}\n"
    return f"---\n{inside}---\n{text[match.end() :]}"


def package_problems(skill: Skill) -> list[str]:
    """What keeps this from being a valid package; a bare document without front matter is none, and says so."""
    fields = front_matter(skill.text)
    if fields is None:
        return [f"{SKILL_FILE} has no front matter, so it is a document and not a package"]
    problems: list[str] = []
    name, description = fields.get("name", ""), fields.get("description", "")
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        problems.append(f"name {name!r}: 1 to {LONGEST_NAME} lower-case letters, digits and single hyphens")
    if not description.strip():
        problems.append("description is missing: it says what the skill does and when to use it")
    if len(description) > LONGEST_DESCRIPTION:
        problems.append(f"description has {len(description)} letters, and {LONGEST_DESCRIPTION} are allowed")
    problems += [f"front matter has an unknown field {key!r}" for key in fields if key not in _KNOWN]
    return problems


def _scalar(written: str) -> str:
    value = written.strip()
    if value[:1] in "|>" and "\n" in value:
        lines = [line.strip() for line in value.split("\n")[1:]]
        return ("\n" if value[0] == "|" else " ").join(lines).strip()
    if len(value) >= 2 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except json.JSONDecodeError:
            return value[1:-1]
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return " ".join(value.split())
