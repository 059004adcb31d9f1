"""What a test calls `whet` by."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import Result

Whet = Callable[..., Result]
