"""What `whet serve` shows of its requests."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from whet.cli.requests import Lines, Log, Screen
from whet.serving.gateway import Done
from whet.serving.gateway.metrics import Labels
from whet.serving.gateway.turnstile import Turnstile
from whet.testing import FakeClock

FINE = Done(Labels("grid_ctf", "3f2a", "stable"), "/v1/chat/completions", 200, 0.25)
FAILED = Done(Labels("grid_ctf", "3f2a", "stable"), "/v1/chat/completions", 502, 1.0)


def test_a_log_tells_failures_at_once_and_counts_once_in_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(FakeClock())
    log.show(Turnstile(4, 4))
    log.tick()
    for done in (FINE, FAILED, FINE):
        log.done(done)
    log.tick()
    log.tick()
    assert capsys.readouterr().err.splitlines() == [
        "grid_ctf: 502 after 1.00 s",
        "3 requests, 1 failed, 0 under way, 0 waiting, the last in 0.25 s",
    ]


def test_a_terminal_has_one_line_that_counts() -> None:
    page = io.StringIO()
    with Screen(FakeClock(), Console(file=page, force_terminal=True, width=80, highlight=False)) as screen:
        screen.show(Turnstile(4, 4))
        screen.done(FINE)
        screen.tick()
        screen.line("grid_ctf on stable: record 3f2a answers")
    assert "1 request, 0 under way" in page.getvalue()
    assert "record 3f2a answers" in page.getvalue()


def test_machines_get_each_request(capsys: pytest.CaptureFixture[str]) -> None:
    Lines(FakeClock()).done(FAILED)
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == 502
    assert "502" in err
