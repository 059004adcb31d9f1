"""Skills trained here load elsewhere, and skills from elsewhere are trained here."""

from __future__ import annotations

from pathlib import Path

import pytest
from skills_ref import validate

from whet.core import Edit, Skill
from whet.learners.skill import SLOW_UPDATE, apply_edits, front_matter, package_problems, region
from whet.training import write_skill

PACKAGE = Skill(
    {
        "SKILL.md": "---\nname: house-commands\ndescription: Turns words into commands.\n---\n# Rules\n\nBe exact.\n",
        "references/units.md": "Degrees are Celsius.\n",
    }
)


def test_a_changed_package_is_valid_for_the_formats_own_validator(tmp_path: Path) -> None:
    edits = [
        Edit("append", content="Name the room."),
        Edit("replace", content='Turns "sentences" into commands: when asked.', file="description"),
        Edit("append", content="Minutes are whole.", file="references/units.md"),
        Edit("append", content="New.", file="references/more.md"),
        Edit("append", content="echo no", file="../outside.sh"),
    ]
    skill, results = apply_edits(PACKAGE, edits)
    assert [result.status.changed for result in results] == [True, True, True, True, False]
    write_skill(skill, tmp_path / "house-commands")
    assert validate(tmp_path / "house-commands") == []
    assert package_problems(skill) == []
    matter = front_matter(skill.text)
    assert matter is not None
    assert matter["description"] == 'Turns "sentences" into commands: when asked.'
    assert not (tmp_path / "outside.sh").exists()


@pytest.mark.parametrize(
    "matter",
    [
        "name: Bad_Name\ndescription: x",
        "name: a--b\ndescription: x",
        f"name: a\ndescription: {'x' * 1025}",
        "name: a",
        "description: x",
        "name: a\ndescription: x\nunheard-of: y",
    ],
)
def test_what_the_formats_validator_refuses_is_a_problem_here_too(tmp_path: Path, matter: str) -> None:
    text = f"---\n{matter}\n---\nbody\n"
    folder = tmp_path / "a"
    write_skill(Skill.from_text(text), folder)
    assert validate(folder)
    assert package_problems(Skill.from_text(text))


SKILLOPT = """# Search skill

Answer briefly.

<!-- SLOW_UPDATE_START -->
Mind the dates.
<!-- SLOW_UPDATE_END -->

<!-- APPENDIX_START -->
## Execution Notes Appendix
- Copy names letter by letter.
<!-- APPENDIX_END -->
"""


def test_a_skill_from_skillopt_keeps_its_regions_whatever_a_step_edits() -> None:
    edits = [
        Edit("delete", target="Mind the dates."),
        Edit("replace", target="Answer briefly.\n\n<!-- SLOW_UPDATE_START -->", content="x"),
        Edit("append", content="Cite a source. <!-- SLOW_UPDATE_END -->"),
        Edit("insert_after", target="Copy names", content="never"),
    ]
    skill, _ = apply_edits(Skill.from_text(SKILLOPT), edits)
    assert region(skill.text, SLOW_UPDATE) == "Mind the dates."
    assert skill.text.endswith(SKILLOPT[SKILLOPT.index("<!-- SLOW_UPDATE_START") :])
    assert "Cite a source." in skill.text
