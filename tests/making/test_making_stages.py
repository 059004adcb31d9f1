"""Each stage of a making: a wrong answer is tried, told in words, and asked for again; a stage may also be given up."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from scripted_optimizer import STAGES, Known, stage_of
from workshop import THEME, Author, files_in, make
from wrong_answers import texts, wrong_answers

from whet.core import Speaker
from whet.making import Made, Order
from whet.worlds.awm import read_layout

pytestmark = pytest.mark.slow


class Corrected(msgspec.Struct, frozen=True):
    """A making whose author was wrong in every way that is listed before it was right."""

    made: Made
    author: Author
    wrong: dict[str, list[tuple[Any, str]]]
    folder: Path
    outside: Path


@pytest.fixture(scope="module")
def corrected(pack: Path, tmp_path_factory: pytest.TempPathFactory) -> Corrected:
    folder = tmp_path_factory.mktemp("corrected")
    outside = tmp_path_factory.mktemp("outside") / "ours.txt"
    for name, content in lines_of(pack, "shop").items():
        (folder / name).write_bytes(content)
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.MonkeyPatch.context() as environ:
        environ.setenv("WHET_TEST_KEY", "sk-test")
        known, near = Known(pack, "library", 2), Known(pack, "shop", 2)
        wrong = wrong_answers(known, near, str(outside), listening.getsockname()[1])
        author = Author(known, {stage: [answer for answer, _ in listed] for stage, listed in wrong.items()})
        made = asyncio.run(make(folder, author, Order(THEME, tasks=2, corrections=20)))
    return Corrected(made, author, wrong, folder, outside)


def lines_of(pack: Path, name: str) -> dict[str, bytes]:
    return {
        path.name: b"".join(
            line + b"\n"
            for line in path.read_bytes().splitlines()
            if msgspec.json.decode(line).get("scenario", msgspec.json.decode(line).get("name")) == name
        )
        for path in pack.glob("*.jsonl")
    }


@pytest.mark.parametrize("stage", STAGES)
def test_what_is_wrong_with_each_answer_is_told_and_the_right_one_is_taken(corrected: Corrected, stage: str) -> None:
    told, wrong = corrected.author.told(stage), corrected.wrong[stage]
    assert len(told) == len(wrong) >= 5
    for said, (answer, words) in zip(told, wrong, strict=True):
        assert words in said.split("What was wrong with answers before it")[0], answer
    assert "What was wrong with answers before it" not in told[0]
    for said, (_, words) in zip(told[2:], wrong[1:], strict=False):
        assert words[:40] in said.split("What was wrong with answers before it")[1]


@pytest.mark.parametrize("stage", STAGES)
def test_a_correction_shows_the_question_the_answer_and_its_problem(corrected: Corrected, stage: str) -> None:
    first, *later = corrected.author.of(stage)
    assert [message.speaker for message in first.messages] == [Speaker.USER]
    for request, answer in zip(later, texts(corrected.wrong[stage]), strict=True):
        question, shown, _ = request.messages
        assert (question, shown.text) == (first.messages[0], answer)
    assert len({request.seed for request in (first, *later)}) == 1 + len(later)


def test_what_was_right_in_the_end_is_made_admitted_and_audited(corrected: Corrected) -> None:
    made = corrected.made
    assert [(one.name, one.tasks, one.left_out, one.given_up) for one in made.scenarios] == [("library", 2, (), "")]
    assert [(report.name, report.admitted, report.problems) for report in made.reports] == [("library", True, ())]
    assert (made.sound, made.stopped) == (2, "")
    for audit in made.audit:
        assert audit.sound, audit
        assert set(audit.outcomes.values()) == {"sound"}


def test_nothing_that_was_tried_got_out_of_the_sandbox(corrected: Corrected) -> None:
    assert not corrected.outside.exists()
    for stage in ("program", "verifier"):
        assert sum("reached: nothing" in said.split("What was")[0] for said in corrected.author.told(stage)) == 1


def test_what_was_in_the_folder_stays_line_for_line(corrected: Corrected, pack: Path) -> None:
    there = files_in(corrected.folder)
    for name, content in lines_of(pack, "shop").items():
        assert there[name].startswith(content)
    layout = read_layout(corrected.folder)
    assert set(layout.scenarios) == {"library", "shop"}
    assert not layout.problems


def test_later_stages_are_asked_about_what_earlier_ones_answered(corrected: Corrected) -> None:
    known = corrected.author.known
    first = {stage: corrected.author.of(stage)[0].messages[0].text for stage in STAGES}
    assert "- shop: " in first["scenario"]
    assert all(text in first[stage] for text in known.tasks for stage in ("schema", "sample", "spec"))
    assert all(table["ddl"] in first[stage] for table in known.tables for stage in ("sample", "spec", "program"))
    assert known.data[1]["insert_statements"][0] in first["solution"]
    assert '"name":"take_back"' in first["solution"]
    assert "take_back" in first["verifier"]
    assert "charges" in first["verifier"].partition("Rows that it changed:")[2]


@pytest.mark.parametrize("stage", STAGES)
async def test_a_stage_that_is_never_right_is_given_up_with_the_reason(
    corrected: Corrected, library: Known, tmp_path: Path, stage: str
) -> None:
    # The first of the scenario's are about form, and the last of them about a folder that is empty here.
    answer, words = corrected.wrong[stage][-1 if stage != "scenario" else 6]
    author = Author(library, {stage: [answer]}, always=stage)
    made = await make(tmp_path, author, Order(THEME, tasks=2, corrections=2))
    assert len(author.of(stage)) == 3
    (one,) = made.scenarios
    if stage in ("solution", "verifier"):
        (left,) = one.left_out
        assert (left.text, one.tasks, made.sound) == (library.tasks[0], 1, 1)
        reason = left.reason
    else:
        assert (one.tasks, made.sound, made.reports) == (0, 0, ())
        assert not files_in(tmp_path), "of a scenario that did not come about there is nothing"
        assert not any(STAGES.index(stage_of(one)) > STAGES.index(stage) for one in author.asked)
        reason = one.given_up
    assert reason.startswith(f"{stage}: 3 answers, none of them sound; of the last: ")
    assert words in reason


async def test_a_scenario_none_of_whose_tasks_come_about_is_not_in_the_folder(library: Known, tmp_path: Path) -> None:
    library.tasks = library.tasks[:1]
    author = Author(library, {"solution": ["no"]}, always="solution")
    made = await make(tmp_path, author, Order(THEME, tasks=1, corrections=0))
    (one,) = made.scenarios
    assert one.given_up == "none of its tasks came about"
    assert len(one.left_out) == 1
    assert not files_in(tmp_path)
