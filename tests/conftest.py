import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from whet.models.embedded import original, pull


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def models_home() -> Path:
    """A data folder with the small model, pulled once for all workers and kept for the next run of the tests."""
    home = Path(os.environ.get("WHET_TEST_CACHE") or Path(tempfile.gettempdir(), "whet-test-cache"))
    home.mkdir(parents=True, exist_ok=True)
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pull("smollm2-135m", home)
    return home


@pytest.fixture(scope="session")
def smollm2(models_home: Path) -> Path:
    """The small model's file as it was fetched."""
    file = original("smollm2-135m", models_home)
    assert file is not None, "it was pulled"
    return file
