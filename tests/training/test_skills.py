"""Skills on disk come back as they were written."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whet.core import SKILL_FILE, InputError, Skill
from whet.training import read_skill, write_skill

NAMES = st.sampled_from([SKILL_FILE, "references/a.md", "references/deep/b.md", "scripts/run.sh", "assets/x.txt"])
# Line ends are read as "\n", whoever wrote them.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))


@pytest.mark.slow
@given(st.dictionaries(NAMES, TEXTS, min_size=1))
def test_a_skill_comes_back_as_it_was_written(files: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_skill(Skill(files), Path(folder))
        assert read_skill(Path(folder)) == Skill(files)
        assert {path.suffix for path in Path(folder).rglob("*")}.isdisjoint({".part"})


def test_a_bare_file_a_folder_and_nothing_are_skills(tmp_path: Path) -> None:
    assert read_skill(tmp_path / "gone") == Skill({})
    assert read_skill(tmp_path) == Skill({})
    (tmp_path / "rules.md").write_text("Be exact.\r\n", encoding="utf-8", newline="")
    assert read_skill(tmp_path / "rules.md") == Skill.from_text("Be exact.\n")


def test_files_of_no_skill_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / SKILL_FILE).write_text("Be exact.", encoding="utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_bytes(b"\xff")
    (tmp_path / "notes.md").write_text("mine", encoding="utf-8")
    assert read_skill(tmp_path).files == {SKILL_FILE: "Be exact."}


def test_an_empty_skill_is_an_empty_file(tmp_path: Path) -> None:
    write_skill(Skill({}), tmp_path / "best")
    assert (tmp_path / "best" / SKILL_FILE).read_text(encoding="utf-8") == ""


@pytest.mark.parametrize("name", [SKILL_FILE, "references/a.md"])
@pytest.mark.parametrize(("content", "told"), [(b"x" * 1_000_001, "larger than"), (b"\xff\xfe\x00", "not UTF-8")])
def test_what_is_no_text_for_a_prompt_is_refused(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(InputError, match=told):
        read_skill(tmp_path)
