"""Where things are kept that outlive a project: the registry, its adapters, and embedded models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def data_folder(environ: Mapping[str, str]) -> Path:
    """WHET_HOME moves it."""
    if own := environ.get("WHET_HOME"):
        return Path(own)
    base = environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local/share") / "whet"
