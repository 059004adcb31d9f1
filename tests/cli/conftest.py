"""A project as `whet init` writes it, one that has been trained, and `whet` itself, called in this process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from calling_whet import Whet
from click.testing import CliRunner, Result

from whet.cli import main

NO_KEYS = {
    "OPENAI_API_KEY": None,
    "ANTHROPIC_API_KEY": None,
    "OPENAI_BASE_URL": None,
    "WHET_DEBUG": None,
    "NO_COLOR": None,
}


def call(*arguments: str | Path, **environ: str) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], env={**NO_KEYS, **environ})


@pytest.fixture
def whet() -> Whet:
    return call


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    assert call("init", folder).exit_code == 0
    return folder


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "project"
    assert call("init", folder).exit_code == 0
    assert call("train", folder / "whet.toml").exit_code == 0
    return folder


@pytest.fixture
def trained(trained_once: Path, tmp_path: Path) -> Path:
    """A copy, so that a test may change it."""
    return Path(shutil.copytree(trained_once, tmp_path / "trained"))
