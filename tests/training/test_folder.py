"""Which run a training goes on with."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from whet.core import ConfigError, InputError, StoreError
from whet.store import MIGRATIONS, SCHEMA_VERSION, MetaRow, open_run
from whet.training import choose_run, find_run, run_folders

MINE = {"train.epochs": 4, "train.levers": ["skill"], "target.temperature": 0.5}


async def make_run(base: Path, name: str, settings: Mapping[str, Any] | None, at: int = 0) -> Path:
    folder = base / "runs" / name
    store = open_run(folder / "run.db")
    if settings is not None:
        await store.write(MetaRow("settings", msgspec.json.encode(settings).decode()))
    await store.aclose()
    os.utime(folder / "run.db", (at, at))
    return folder


def make_older(folder: Path, version: int) -> None:
    """As it was written by the whet of an earlier schema."""
    with closing(sqlite3.connect(folder / "run.db", isolation_level=None)) as db:
        kept = db.execute("SELECT name, value FROM meta").fetchall()
    (folder / "run.db").unlink()
    with closing(sqlite3.connect(folder / "run.db", isolation_level=None)) as db:
        for statement in (statement for statements in MIGRATIONS[:version] for statement in statements):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {version}")
        if version:
            db.executemany("INSERT INTO meta VALUES (?, ?)", kept)


def test_the_first_run_is_run_1(tmp_path: Path) -> None:
    chosen = choose_run(tmp_path, MINE, None)
    assert (chosen.path, chosen.note) == (tmp_path / "runs" / "run-1", "new run run-1")
    assert list(tmp_path.iterdir()) == []


async def test_the_same_settings_go_on(tmp_path: Path) -> None:
    run = await make_run(tmp_path, "run-1", MINE)
    await make_run(tmp_path, "run-2", {**MINE, "train.epochs": 2}, at=5)
    chosen = choose_run(tmp_path, MINE, None)
    assert (chosen.path, chosen.note) == (run, "going on with run-1")


async def test_other_settings_make_a_new_run_and_the_change_is_named(tmp_path: Path) -> None:
    await make_run(tmp_path, "run-1", MINE)
    await make_run(tmp_path, "run-7", MINE, at=5)
    chosen = choose_run(tmp_path, {**MINE, "train.epochs": 2}, None)
    assert chosen.path.name == "run-8"
    assert chosen.note == "new run run-8: since run-7, train.epochs (4, now 2) changed"


async def test_a_named_run_is_not_gone_on_with_by_chance(tmp_path: Path) -> None:
    await make_run(tmp_path, "mine", MINE)
    assert choose_run(tmp_path, MINE, None).path.name == "run-1"


async def test_a_run_by_name_goes_on_or_is_new(tmp_path: Path) -> None:
    assert choose_run(tmp_path, MINE, "mine").note == "new run mine"
    run = await make_run(tmp_path, "mine", MINE)
    assert choose_run(tmp_path, MINE, "mine").path == run
    with pytest.raises(ConfigError, match=r"mine was made with other settings: train\.epochs \(4, now 2\)"):
        choose_run(tmp_path, {**MINE, "train.epochs": 2}, "mine")


@pytest.mark.parametrize("name", ["", "..", "../other", "a/b", ".hidden", "-x", "x" * 65, "new\nline"])
def test_a_name_that_would_lead_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the name of a run"):
        choose_run(tmp_path, MINE, name)


async def test_a_run_that_was_killed_before_its_settings_were_stored_can_go_on(tmp_path: Path) -> None:
    run = await make_run(tmp_path, "mine", None)
    assert choose_run(tmp_path, MINE, "mine").path == run
    make_older(run, 0)
    assert choose_run(tmp_path, MINE, "mine").path == run


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
async def test_a_run_of_an_older_whet_can_go_on(tmp_path: Path, version: int) -> None:
    run = await make_run(tmp_path, "run-1", MINE)
    make_older(run, version)
    assert choose_run(tmp_path, MINE, None).path == run
    assert choose_run(tmp_path, MINE, "run-1").path == run
    open_run(run / "run.db").close()


async def test_a_run_that_cannot_be_read_does_not_keep_a_new_one_from_being_made(tmp_path: Path) -> None:
    damaged = await make_run(tmp_path, "run-1", MINE)
    (damaged / "run.db").write_bytes(b"not a database" * 100)
    newer = await make_run(tmp_path, "run-2", MINE)
    with closing(sqlite3.connect(newer / "run.db")) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    assert choose_run(tmp_path, MINE, None).note == "new run run-3"
    for name in ("run-1", "run-2"):
        with pytest.raises(StoreError, match=r"run\.db"):
            choose_run(tmp_path, MINE, name)


async def test_runs_are_found_by_name_by_path_and_by_age(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no runs"):
        find_run(tmp_path, None)
    young = await make_run(tmp_path, "a", MINE, at=9)
    old = await make_run(tmp_path, "b", MINE, at=3)
    (tmp_path / "runs" / "no-run").mkdir()
    assert run_folders(tmp_path) == [old, young]
    assert find_run(tmp_path, None) == young
    assert find_run(tmp_path, "b") == find_run(tmp_path, str(old)) == old
    with pytest.raises(InputError, match=r"there is no run 'c'.*b, a"):
        find_run(tmp_path, "c")
