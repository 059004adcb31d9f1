"""`whet world`, `whet models` and `whet doctor`."""

from __future__ import annotations

import json
from importlib.metadata import metadata
from pathlib import Path

from calling_whet import Whet

from whet.cli.doctor import EXTRAS, examine
from whet.models import PROVIDERS
from whet.project import data_folder

SECRET = "sk-secret-of-the-test"


def test_worlds_are_listed_and_described(whet: Whet) -> None:
    assert "jsonl" in whet("world", "list").stdout
    assert {world["name"] for world in json.loads(whet("world", "list", "--json").stdout)} >= {"jsonl", "grid_ctf"}
    shown = whet("world", "show", "jsonl").stdout
    assert "show_reference  true or false, default true\n    Whether learners are shown the right answer" in shown
    settings = json.loads(whet("world", "show", "jsonl", "--json").stdout)["settings"]
    assert all(setting["text"] for setting in settings)


def test_a_sound_world_is_0(whet: Whet, project: Path) -> None:
    checked = whet("world", "check", project)
    assert checked.exit_code == 0
    assert checked.stdout.startswith("jsonl: sound\n")
    assert whet("world", "check", "grid_ctf").exit_code == 0


LEAKY = """
import whet.worlds as worlds


@worlds.world("leaky")
class Leaky:
    def tasks(self):
        for number in range(4):
            yield {"id": str(number), "split": "train", "n": number}

    def brief(self, task):
        return "Do it."

    def judge(self, task, answer):
        return True
"""


def test_a_world_that_is_passed_by_doing_nothing_is_1(whet: Whet, project: Path) -> None:
    (project / "leaky.py").write_text(LEAKY)
    (project / "leaky.toml").write_text(
        '[world]\nuse = "leaky.py:Leaky"\n[target]\nmodel = "scripted/models.py:student"\n'
    )
    checked = whet("world", "check", project / "leaky.toml")
    assert checked.exit_code == 1, checked.output
    assert "it is passed by doing nothing" in checked.stdout
    assert json.loads(whet("world", "check", project / "leaky.toml", "--json").stdout)["problems"]


def test_models_list_tells_whether_a_key_is_set_and_never_the_key(whet: Whet) -> None:
    for arguments in (["models", "list"], ["models", "list", "--json"], ["doctor"], ["doctor", "--json"]):
        listed = whet(*arguments, OPENAI_API_KEY=SECRET)
        assert SECRET not in listed.output
    found = json.loads(whet("models", "list", "--json", OPENAI_API_KEY=SECRET).stdout)
    keys = {line["provider"]: line["key_found"] for line in found["providers"]}
    assert keys["openai"]
    assert set(keys) == set(PROVIDERS)
    assert found["prices"]


def test_models_check_makes_one_call_a_role_and_touches_no_run(whet: Whet, project: Path) -> None:
    checked = whet("models", "check", project)
    assert checked.exit_code == 0
    assert "optimizer  scripted/models.py:coach    yes" in checked.stdout
    assert "Ready." in checked.stdout
    assert not (project / "runs").exists()


def test_models_check_is_1_if_one_does_not_answer_and_asks_the_others_all_the_same(whet: Whet, project: Path) -> None:
    checked = whet("models", "check", project, "--json", "--set", "target.model=openai/gpt-5.4-mini")
    assert checked.exit_code == 1
    target, optimizer = json.loads(checked.stdout)
    assert (target["answered"], optimizer["answered"]) == (False, True)
    assert target["text"] == "no key for openai. Export OPENAI_API_KEY"


def test_doctor_is_0_where_everything_that_is_needed_works(whet: Whet, project: Path) -> None:
    done = whet("doctor", "-C", project, WHET_HOME=str(project / "data"))
    assert done.exit_code == 0
    assert f"{project / 'data'}, made when it is needed" in done.stdout
    assert "pip install 'whet[azure]'" in done.stdout


def test_doctor_is_1_and_gives_the_command_where_a_folder_is_none(whet: Whet, project: Path) -> None:
    done = whet("doctor", "-C", project, WHET_HOME=str(project / "whet.toml" / "data"))
    assert done.exit_code == 1
    assert "export WHET_HOME=/a/folder/you/may/write" in done.stdout


def test_doctor_knows_the_extras_that_the_package_has() -> None:
    assert set(EXTRAS) == set(metadata("whet").get_all("Provides-Extra") or []) - {"dev"}


def test_doctor_names_what_a_provider_needs() -> None:
    findings = {finding.what: finding for finding in examine(Path(), {"ANTHROPIC_API_KEY": SECRET})}
    assert findings["anthropic key"].works
    assert not findings["openai key"].works
    assert findings["openai key"].mend == "export OPENAI_API_KEY=…"


def test_the_data_folder_follows_the_environment() -> None:
    assert data_folder({"WHET_HOME": "/a"}) == Path("/a")
    assert data_folder({"XDG_DATA_HOME": "/b"}) == Path("/b/whet")
    assert data_folder({}) == Path.home() / ".local/share/whet"
