from __future__ import annotations

from pathlib import Path

import pytest
from scripted_optimizer import Known

from whet.worlds import load_world
from whet.worlds.pack.export import export_world


@pytest.fixture(scope="session")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scenarios of the pack as files; what is in there must not be changed."""
    folder = tmp_path_factory.mktemp("pack")
    export_world(load_world("pack", {"scenarios": ["library", "shop"]}, base_dir=folder), folder)
    return folder


@pytest.fixture
def library(pack: Path) -> Known:
    return Known(pack, "library", 2)
