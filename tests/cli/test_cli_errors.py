"""Whatever a user gets wrong: one line, exit code 2, no traceback, and nothing written."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from calling_whet import Whet


def _config(project: Path, before: str, after: str) -> None:
    path = project / "whet.toml"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def _tasks(project: Path, split: str) -> list[str]:
    return (project / f"tasks/{split}.jsonl").read_text().splitlines(keepends=True)


def bad_toml(project: Path) -> None:
    _config(project, "[gate]", "[gate")


def unknown_key(project: Path) -> None:
    _config(project, "epochs = 3", "epoch = 3")


def unknown_table(project: Path) -> None:
    _config(project, "[optimizer]", "[optimiser]")


def wrong_type(project: Path) -> None:
    _config(project, "epochs = 3", 'epochs = "three"')


def impossible_value(project: Path) -> None:
    _config(project, 'rule = "strict"', 'rule = "sure"')


def no_key_for_target(project: Path) -> None:
    _config(project, "scripted/models.py:student", "openai/gpt-5.4-mini")


def no_key_for_optimizer(project: Path) -> None:
    _config(project, "scripted/models.py:coach", "openai/gpt-5.4-mini")


def no_optimizer(project: Path) -> None:
    _config(project, 'model = "scripted/models.py:coach"', "max_tokens = 100")


def unknown_provider(project: Path) -> None:
    _config(project, "scripted/models.py:student", "opnai/gpt")


def no_such_function(project: Path) -> None:
    _config(project, "models.py:student", "models.py:pupil")


def broken_models(project: Path) -> None:
    (project / "models.py").write_text("def student(:\n")


def no_such_world(project: Path) -> None:
    _config(project, 'use = "jsonl"', 'use = "jsonk"')


def empty_split(project: Path) -> None:
    (project / "tasks/selection.jsonl").write_text("")


def missing_tasks(project: Path) -> None:
    (project / "tasks/train.jsonl").unlink()


def shared_task(project: Path) -> None:
    shared = json.loads(_tasks(project, "test")[0]) | {"id": "train-new"}
    with (project / "tasks/train.jsonl").open("a") as file:
        file.write(json.dumps(shared) + "\n")


def price_unknown(project: Path) -> None:
    _config(project, "scripted/models.py:student", "vllm/some")
    _config(project, "# usd = 5.0", "usd = 5.0")
    _config(project, "scripted/models.py:coach", 'openrouter/some/model"\napi_key_env = "WHET_TEST_KEY')


def nothing(project: Path) -> None:
    pass


CASES: list[tuple[Callable[[Path], None], list[str], str]] = [
    (bad_toml, [], "whet.toml is not TOML"),
    (unknown_key, [], "train.epoch: there is no such setting. Did you mean 'epochs'?"),
    (unknown_table, [], "[optimiser]: there is no such table. Did you mean 'optimizer'?"),
    (wrong_type, [], "train.epochs: expected `int`, got `str`"),
    (impossible_value, [], "there is no rule 'sure'"),
    (no_key_for_target, [], "no key for openai. Export OPENAI_API_KEY"),
    (no_key_for_optimizer, [], "no key for openai. Export OPENAI_API_KEY"),
    (no_optimizer, [], "optimizer.model is missing"),
    (unknown_provider, [], "unknown provider 'opnai' in 'opnai/gpt'. Did you mean 'openai'?"),
    (no_such_function, [], "has no 'pupil'"),
    (broken_models, [], "models.py:1: "),
    (no_such_world, [], "there is no world 'jsonk'. Did you mean 'jsonl'?"),
    (empty_split, [], "has no selection tasks"),
    (missing_tasks, [], "tasks/train.jsonl"),
    (shared_task, [], "is the same task as"),
    (price_unknown, [], "the price of optimizer.model = 'openrouter/some/model' is not known"),
    (nothing, ["--set", "train.epochs"], "--set train.epochs: not of the form table.key=value"),
    (nothing, ["--set", "train.epocs=2"], "train.epocs: there is no such setting. Did you mean 'epochs'?"),
    (nothing, ["--set", "train.epochs=two"], "train.epochs: expected `int`, got `str`"),
    (nothing, ["--set", "trian.epochs=2"], "[trian]: there is no such table. Did you mean 'train'?"),
    (nothing, ["--run", "../elsewhere"], "'../elsewhere' cannot be the name of a run"),
    (nothing, ["--rnu", "x"], "no such option '--rnu'. Did you mean '--run'? See `whet train --help`."),
]


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize(("spoil", "arguments", "said"), CASES, ids=lambda case: getattr(case, "__name__", None))
def test_one_line_exit_code_2_and_nothing_written(
    whet: Whet, project: Path, spoil: Callable[[Path], None], arguments: list[str], said: str
) -> None:
    spoil(project)
    before = contents(project)
    done = whet("train", project / "whet.toml", *arguments, WHET_TEST_KEY="secret-of-the-test")
    assert done.exit_code == 2
    assert done.stderr.startswith("whet: ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.output
    assert "secret-of-the-test" not in done.output
    assert contents(project) == before


def test_an_unreachable_endpoint_is_one_line_and_can_be_gone_on_with(whet: Whet, project: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    _config(project, "scripted/models.py:student", "vllm/some")
    done = whet("train", project, "--set", f"target.base_url=http://127.0.0.1:{port}/v1", "--set", "target.retries=0")
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert f"127.0.0.1:{port}: no connection" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "-C", "{}", "run-7"], "there is no run 'run-7'. There are: run-1."),
        (["diff", "-C", "{}", "run-7"], "there is no run 'run-7'"),
        (["diff", "-C", "{}", "run-1", "start", "99"], "run-1 has no policy '99'"),
        (["report", "-C", "{}", "run-7"], "there is no run 'run-7'"),
        (["export", "-C", "{}", "run-7"], "there is no run 'run-7'"),
        (["watch", "-C", "{}", "run-7"], "there is no run 'run-7'"),
        (["show", "-C", "{}", "--step", "99"], "run-1 has no step 99. It has steps 1 to 12 so far."),
        (["show", "-C", "{}", "--task", "nope"], "run-1 has not played a task 'nope'"),
        (["show", "-C", "{}", "--task", "x", "--step", "1"], "give one of them. See `whet show --help`."),
        (["eval", "{}", "--policy", "nope"], "there is no policy 'nope'"),
        (["eval", "{}", "--policy", "best", "--set", "train.seed=9"], "there is no run with these settings"),
        (["eval", "{}", "--split", "tset"], "'tset'"),
        (["runs", "-C", "{}/nowhere"], "there is no folder"),
        (["world", "show", "jsonk"], "there is no world 'jsonk'. Did you mean 'jsonl'?"),
        (["world", "check", "jsonk"], "there is no world 'jsonk'"),
        (["models", "check", "{}/nowhere.toml"], "there is no"),
        (["shwo"], "there is no command 'shwo'. Did you mean 'show'? See `whet --help`."),
        (["models", "chekc"], "'chekc'"),
    ],
)
def test_other_commands_too(whet: Whet, trained: Path, arguments: list[str], said: str) -> None:
    done = whet(*(argument.format(trained) for argument in arguments))
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_no_runs_yet_is_an_error_for_show_and_a_hint_for_runs(whet: Whet, project: Path) -> None:
    assert "Start one with `whet train`" in whet("show", "-C", project).stderr
    listed = whet("runs", "-C", project)
    assert listed.exit_code == 0
    assert listed.stdout == "No runs yet: `whet train` starts one.\n"


def test_a_mistake_in_code_shows_its_type_and_place_and_how_to_see_more(whet: Whet, project: Path) -> None:
    (project / "models.py").write_text("def student(request):\n    return 1 / 0\n\n\ncoach = student\n")
    done = whet("train", project)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"whet: unexpected ZeroDivisionError at {project}/models.py:2: division by zero.")
    assert "WHET_DEBUG=1" in done.stderr
    assert "Traceback" not in done.stderr
    shown = whet("train", project, WHET_DEBUG="1")
    assert shown.exit_code == 2
    assert "Traceback" in shown.stderr


def test_a_folder_that_cannot_be_written_is_one_line(whet: Whet, project: Path) -> None:
    (project / "runs").write_text("in the way")
    done = whet("train", project)
    assert done.exit_code == 2
    assert f"{project / 'runs'}" in done.stderr
    assert "unexpected" not in done.stderr


@pytest.mark.parametrize("command", [("audit", "--verifier-only"), ("world", "check")], ids=" ".join)
def test_what_asks_no_model_needs_no_key(whet: Whet, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "whet.toml").write_text('[world]\nuse = "house_commands"\n[target]\nmodel = "openai/gpt-5.5"\n')
    assert whet(*command, tmp_path / "whet.toml").exit_code == 0
    assert whet("train", tmp_path).exit_code == 2
