"""What is said of the machine's walls."""

from __future__ import annotations

import pytest

from whet.cli.doctor import sandbox_finding
from whet.sandbox import INSTALL_BUBBLEWRAP, Danger, Level, Standing, Survey

STRONG = Standing(Level.NAMESPACES, True, tuple(Danger), ())
KERNEL = Standing(Level.KERNEL, True, tuple(Danger), ())
PROCESS = Standing(Level.PROCESS, True, (Danger.SECRETS,), (Danger.READ, Danger.WRITE))
MISSING = Standing(Level.NAMESPACES, False, (), tuple(Danger), "bubblewrap is not installed", INSTALL_BUBBLEWRAP)
NO_KERNEL = Standing(Level.KERNEL, False, (), tuple(Danger), "this kernel has no Landlock")


@pytest.mark.parametrize(
    ("found", "works", "says", "mend"),
    [
        (Survey(Level.NAMESPACES, (STRONG, KERNEL, PROCESS), 7), True, "level namespaces, Landlock 7", ""),
        (
            Survey(Level.KERNEL, (MISSING, KERNEL, PROCESS), 5),
            True,
            "level kernel, Landlock 5; no namespaces: bubblewrap is not installed",
            "apt-get install bubblewrap",
        ),
        (
            Survey(Level.PROCESS, (MISSING, NO_KERNEL, PROCESS), 0),
            False,
            "level process: limits only, no walls. Code that whet did not write could read files",
            "apt-get install bubblewrap",
        ),
    ],
)
def test_doctor_says_which_walls_there_are_and_what_would_make_them_stronger(
    found: Survey, works: bool, says: str, mend: str
) -> None:
    finding = sandbox_finding(found)
    assert finding.works is works
    assert finding.says.startswith(says)
    assert finding.mend == mend
    assert finding.can_be_mended is bool(mend)
    assert finding.optional or finding.works
