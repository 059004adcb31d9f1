"""From what a configuration says, `local/NAME` or `local/path/to/file.gguf`, to the file and its name."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

import msgspec

from whet.core import ConfigError, ModelRef
from whet.models.embedded.catalogue import KNOWN
from whet.models.embedded.identity import look
from whet.models.embedded.pulling import pulled

LOCAL = "local"


class LocalFile(msgspec.Struct, frozen=True):
    file: Path
    name: str

    @property
    def ref(self) -> ModelRef:
        """It changes with the file: what another file answered is not its own answer."""
        return ModelRef(LOCAL, f"{self.name}@{look(self.file).sha256[:8]}")


def local_file(role: str, named: str, *, base_dir: Path, data_folder: Path) -> LocalFile:
    """Raises ConfigError unless the file is there and can be run."""
    if find_spec("xllamacpp") is None:
        raise ConfigError(
            f"{role}.model = {f'{LOCAL}/{named}'!r} needs the extra `local`", hint="pip install 'whet[local]'"
        )
    if named.endswith(".gguf"):
        file = base_dir / named
        if not file.is_file():
            raise ConfigError(f"{role}.model: there is no file {file}")
        return LocalFile(file, file.stem)
    if named not in KNOWN:
        near = get_close_matches(named, KNOWN, n=1)
        known = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(KNOWN)}; or name a .gguf file."
        raise ConfigError(f"{role}.model: no embedded model is called {named!r}", hint=known)
    file = pulled(named, data_folder)
    if file is None:
        raise ConfigError(f"{role}.model: {named} is not pulled yet", hint=f"whet models pull {named}")
    return LocalFile(file, named)
