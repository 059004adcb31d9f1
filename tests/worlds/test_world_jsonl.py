from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from whet.core import ConfigError, InputError, Split, World, WorldFault

PNG = b"\x89PNG\r\n\x1a\n"


def all_tasks(world: World) -> list[Any]:
    return [task for split in Split for task in world.tasks(split)]


async def test_the_answer_is_not_in_the_inputs_and_unused_fields_are_not_either(project: Any) -> None:
    world = project.questions({"question": "2+2?", "answer": 4, "solution": "count", "id": "a", "kind": "sum"})
    (task,) = world.tasks(Split.TRAIN)
    assert (task.id, task.kind, task.inputs) == ("a", "sum", {"question": "2+2?"})
    assert world.known_good(task) == "4"


async def test_a_file_of_each_kind_gives_the_same_tasks(project: Any) -> None:
    project.write("a.jsonl", '{"question": "q1", "answer": "1"}\r\n\n{"question": "q2", "answer": "2"}')
    project.write("a.json", '[{"question": "q1", "answer": "1"}, {"question": "q2", "answer": "2"}]')
    project.write("a.csv", "\ufeffquestion,answer\nq1,1\nq2,2\n")
    worlds = [project.load(path=name) for name in ("a.jsonl", "a.json", "a.csv")]
    assert len({world.fingerprint for world in worlds}) == 1
    assert all(len(all_tasks(world)) == 2 for world in worlds)


def test_bad_lines_are_told_together_each_with_its_place(project: Any) -> None:
    lines = [
        '{"question": "q", "answer": 1}',
        "{",
        "[1]",
        '{"question": ""}',
        '{"answer": 1}',
        '{"question": "w"}',
        "\xff",
    ]
    project.write("tasks/train.jsonl", "\n".join(lines).encode("latin-1"))
    with pytest.raises(InputError) as caught:
        project.load(train="tasks/train.jsonl")
    told = str(caught.value).splitlines()
    assert told[0] == "6 problems in the task files:"
    assert [line.strip().split(" ")[0] for line in told[1:6]] == [f"tasks/train.jsonl:{n}:" for n in (2, 3, 4, 5, 6)]
    assert told[6].strip() == "and 1 more"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"question": " ", "answer": 1}, "the question is empty"),
        ({"prompt": "q", "answer": 1}, "the field 'question' is missing (the row has prompt, answer)"),
        ({"question": "q"}, "the answer is missing"),
        ({"question": "q", "answer": {"a": 1}}, "the answer must be text or a number"),
        ({"question": "q", "answer": "?!"}, "has no words; use exact"),
        ({"question": "q", "answer": 1, "id": [1]}, "the id must be text or a whole number"),
        ({"question": "q", "answer": 1, "split": "dev"}, "there is no split 'dev'"),
        ({"question": "q", "answer": 1, "choices": ["x"]}, "choices must be a list of 2 to 26"),
        ({"question": "q", "answer": 1, "images": "no.png"}, "there is no image no.png"),
        ({"question": "q", "answer": 1, "images": "no.exe"}, "is not one of .png"),
        ({"question": "q", "answer": 10**30}, "must be JSON values"),
    ],
)
def test_a_row_that_is_no_task_says_why(project: Any, row: dict[str, Any], says: str) -> None:
    project.rows("all.jsonl", {"question": "good", "answer": 1}, row)
    with pytest.raises(InputError) as caught:
        project.load(path="all.jsonl", scorer="normalised")
    assert says in str(caught.value)


def test_the_usual_field_names_are_found_and_a_set_name_wins(project: Any) -> None:
    row = {"prompt": "p", "input": "i", "expected": "e", "other": "o"}
    assert project.questions(row).tasks(Split.TRAIN)[0].inputs == {"input": "i"}
    assert project.questions(row, question="other").tasks(Split.TRAIN)[0].inputs == {"other": "o"}


async def test_a_template_shows_its_fields_only(project: Any) -> None:
    row = {"name": "Ann {x}", "age": 3, "answer": "y", "secret": "s"}
    world = project.questions(row, template='{name} is {age}: {{"json": 1}} {not a field}', instructions="Be short.")
    (task,) = world.tasks(Split.TRAIN)
    session = await world.open(task, 0)
    assert session.brief.text == 'Be short.\n\nAnn {x} is 3: {"json": 1} {not a field}'
    assert task.inputs == {"name": "Ann {x}", "age": 3}


def test_a_template_cannot_name_what_is_not_there_or_the_answer(project: Any) -> None:
    with pytest.raises(InputError, match=r"the template's '\{nam\}' is missing"):
        project.questions({"name": "Ann", "answer": 1}, template="{nam}")
    with pytest.raises(ConfigError, match="shows the answer field 'answer'"):
        project.questions({"name": "Ann", "answer": 1}, template="{name} {answer}")


def test_a_template_without_a_field_is_refused(project: Any) -> None:
    with pytest.raises(ConfigError, match=r"world\.template: it has no \{field\}"):
        project.questions({"question": "q", "answer": 1}, template="What is it?")


async def test_choices_are_lettered_in_the_brief(project: Any, judge_answer: Any) -> None:
    world = project.questions({"question": "Capital of France?", "choices": ["Rome", "Paris"], "answer": "Paris"})
    session = await world.open(world.tasks(Split.TRAIN)[0], 0)
    assert session.brief.text.splitlines()[2:4] == ["A) Rome", "B) Paris"]
    assert (await judge_answer(world, "b")).hard


async def test_an_image_is_shown_and_its_content_names_the_world(project: Any) -> None:
    project.write("pictures/cat.png", PNG)
    row = {"question": "What is it?", "answer": "cat", "images": "pictures/cat.png"}
    world = project.questions(row)
    session = await world.open(world.tasks(Split.TRAIN)[0], 0)
    assert [(image.media_type, image.data) for image in session.brief.images] == [("image/png", PNG)]
    project.write("pictures/cat.png", PNG + b"another")
    assert project.questions(row).fingerprint != world.fingerprint


def test_an_image_outside_of_the_folder_is_refused(project: Any, tmp_path: Path) -> None:
    (tmp_path.parent / "outside.png").write_bytes(PNG)
    with pytest.raises(InputError, match=r"there is no image \.\./outside\.png"):
        project.questions({"question": "q", "answer": "a", "images": "../outside.png"})


async def test_the_reference_is_for_learners_and_can_be_kept_back(project: Any, judge_answer: Any) -> None:
    row = {"question": "q", "answer": ["Rome", "Roma"]}
    assert (await judge_answer(project.questions(row), "x")).reference == "Rome | Roma"
    assert (await judge_answer(project.questions(row, show_reference=False), "x")).reference == ""


def test_rows_say_their_split_or_are_drawn(project: Any) -> None:
    rows = [{"question": f"q{n}", "answer": n, "split": "test"} for n in range(20)]
    project.rows("all.jsonl", *rows)
    assert len(project.load(path="all.jsonl").tasks(Split.TEST)) == 20
    project.rows("all.jsonl", *({**row, "split": None} for row in rows))
    drawn = project.load(path="all.jsonl", split_ratio={"train": 1, "confirm": 1})
    assert len(drawn.tasks(Split.TRAIN)) + len(drawn.tasks(Split.CONFIRM)) == 20
    assert drawn.tasks(Split.TEST) == ()


def test_the_fingerprint_follows_what_can_change_a_verdict(project: Any) -> None:
    row = {"question": "q", "answer": "a"}
    same = [project.questions(row), project.questions({**row, "id": "named", "note": "x"}, show_reference=False)]
    others = [
        project.questions({**row, "answer": "b"}),
        project.questions(row, scorer="exact"),
        project.questions(row, instructions="Be short."),
        project.questions({**row, "question": "p"}),
    ]
    assert len({world.fingerprint for world in same}) == 1
    assert len({world.fingerprint for world in [same[0], *others]}) == 5


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "give either one file"),
        ({"path": "a.jsonl", "train": "b.jsonl"}, "give either one file"),
        ({"path": "a.jsonl", "scorre": "f1"}, "world.scorre: there is no such setting. Did you mean 'scorer'?"),
        ({"path": "a.jsonl", "scorer": "numerc"}, "Did you mean 'numeric'?"),
        (
            {"path": "a.jsonl", "scorer": {"use": "f1", "treshold": 1}},
            "world.scorer.treshold: there is no such setting",
        ),
        ({"path": "a.jsonl", "scorer": {"use": "f1", "threshold": 2}}, "world.scorer: the threshold is above 0"),
        ({"path": "a.jsonl", "split_ratio": {"trian": 1}}, "world.split_ratio.trian: there is no such setting"),
        ({"path": "a.jsonl", "split_ratio": "2:1"}, "world.split_ratio: expected `object`, got `str`"),
        ({"path": "a.jsonl", "limits": {"train": -1}}, "world.limits.train: expected `int` >= 0"),
        ({"path": "a.jsonl", "duplicates": "dorp"}, "Did you mean 'drop'?"),
    ],
)
def test_a_wrong_setting_is_told_by_its_path(project: Any, settings: dict[str, Any], says: str) -> None:
    project.rows("a.jsonl", {"question": "q", "answer": 1})
    with pytest.raises(ConfigError) as caught:
        project.load(**settings)
    assert says in str(caught.value)


def test_a_file_that_is_not_there_or_of_no_kind_is_told(project: Any) -> None:
    with pytest.raises(InputError, match=r"no\.jsonl cannot be read"):
        project.load(path="no.jsonl")
    project.write("a.txt", "x")
    with pytest.raises(InputError, match=r"a\.txt is not one of \.jsonl"):
        project.load(path="a.txt")
    project.write("a.json", "{}")
    with pytest.raises(InputError, match=r"a\.json is not a JSON list"):
        project.load(path="a.json")
    project.write("a.csv", "question,answer\nq,1,2\n")
    with pytest.raises(InputError, match=r"a\.csv:2: another number of cells"):
        project.load(path="a.csv")


def test_an_empty_file_is_a_world_without_tasks(project: Any) -> None:
    project.write("a.jsonl", "\n")
    assert all_tasks(project.load(path="a.jsonl")) == []


async def test_a_function_of_the_user_scores_and_its_faults_are_the_worlds(project: Any, judge_answer: Any) -> None:
    project.write(
        "score.py",
        "def near(answer, reference, row):\n    return 1 / (1 + abs(float(answer) - reference) * row['k'])\n",
    )
    row = {"question": "q", "answer": 3, "k": 1}
    world = project.questions(row, scorer={"use": "python", "function": "score.py:near", "pass_mark": 0.5})
    assert (await judge_answer(world, "3")).soft == 1.0
    assert (await judge_answer(world, "4")).hard
    assert not (await judge_answer(world, "9")).hard
    with pytest.raises(WorldFault, match=r"world jsonl, task .*: judge raised ValueError: .*score\.py:2"):
        await judge_answer(world, "three")


@pytest.mark.parametrize(
    ("scorer", "says"),
    [
        ({"use": "python", "function": "score:f", "trusted": False}, "must be in a file"),
        ({"use": "python", "function": "score.py:g"}, "has no 'g'"),
        ({"use": "python", "function": "f"}, "is no place"),
        ({"use": "python", "function": "none.py:f"}, "there is no file"),
        ({"use": "python"}, "world.scorer.function: missing"),
        ({"use": "json_schema", "schema": {"type": "int"}}, "world.scorer.schema.type must be one of"),
        ({"use": "json_schema", "schema": "no.json"}, "no.json cannot be read"),
        ({"use": "llm_judge", "rubric": "r"}, "needs a model that judges"),
        ({"use": "llm_judge"}, "give either rubric or rubric_file"),
    ],
)
def test_a_scorer_that_cannot_be_is_told(project: Any, scorer: dict[str, Any], says: str) -> None:
    project.write("score.py", "def f(answer):\n    return True\n")
    with pytest.raises(ConfigError) as caught:
        project.questions({"question": "q", "answer": 1}, scorer=scorer)
    assert says in str(caught.value)


def test_a_function_that_cannot_be_imported_is_told_with_its_line(project: Any) -> None:
    project.write("score.py", "x = 1\nraise RuntimeError('no')\n")
    with pytest.raises(InputError, match=r"score\.py:2: RuntimeError: no"):
        project.questions({"question": "q", "answer": 1}, scorer={"use": "python", "function": "score.py:f"})
    project.write("score.py", "def f(:\n")
    with pytest.raises(InputError, match=r"score\.py:1: "):
        project.questions({"question": "q", "answer": 1}, scorer={"use": "python", "function": "score.py:f"})


@pytest.mark.slow
def test_a_hundred_thousand_rows_are_one_pass(project: Any) -> None:
    lines = (f'{{"id": "t{n}", "question": "What is {n} and one more?", "answer": {n + 1}}}\n' for n in range(100_000))
    project.write("big.jsonl", "".join(lines))
    world = project.load(path="big.jsonl")
    assert sum(len(world.tasks(split)) for split in Split) == 100_000
