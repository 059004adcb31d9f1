"""Skills on disk: a folder with SKILL.md, or a bare markdown file."""

from __future__ import annotations

from pathlib import Path

from whet.core import SKILL_FILE, InputError, Skill

_LARGEST = 1_000_000
_KEPT = ("references", "scripts", "assets")


def read_skill(path: Path) -> Skill:
    """The skill at `path`; nothing there is an empty skill. Only text files are read."""
    if path.is_file():
        return Skill.from_text(_read(path))
    if not path.is_dir():
        return Skill({})
    inside = [file for folder in _KEPT for file in sorted((path / folder).rglob("*")) if file.is_file()]
    head = path / SKILL_FILE
    files = [head, *inside] if head.is_file() else inside
    return Skill({file.relative_to(path).as_posix(): _read(file) for file in files})


def write_skill(skill: Skill, folder: Path) -> None:
    """Write the package; each file is there whole or as it was before."""
    for name, text in skill.files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_text(target, text)
    if not skill.files:
        folder.mkdir(parents=True, exist_ok=True)
        replace_text(folder / SKILL_FILE, "")


def replace_text(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.part")
    beside.write_text(text, encoding="utf-8", newline="")
    beside.replace(path)


def _read(path: Path) -> str:
    if path.stat().st_size > _LARGEST:
        raise InputError(f"{path} is larger than {_LARGEST:,} bytes", hint="A skill is text for a prompt.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text", hint="Skills are made of text files.") from error
