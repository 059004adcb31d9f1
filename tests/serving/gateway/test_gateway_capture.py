"""Capturing: what is written, what never is, and for how long."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from gateway_house import WORLD, house, skilled

from whet.core import WhetError
from whet.serving.gateway import Capture, Retention, redaction
from whet.testing import FakeClock


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def everything(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.iterdir())


async def test_requests_and_answers_are_written_after_redaction(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def clean(entry):\n"
        "    text = entry['request']['messages'][0]['content']\n"
        "    if 'private' in text:\n        return None\n"
        "    if 'broken' in text:\n        raise KeyError('oh')\n"
        "    entry['request']['messages'][0]['content'] = text.replace('Ann', '[name]')\n"
        "    return {'request': entry['request'], 'policy': entry['policy'],\n"
        "            'said': entry.get('answer') or entry['events']}\n"
    )
    file = tmp_path / "kept" / "traffic.jsonl"
    clock = FakeClock()
    capture = Capture(file, clock, redact=redaction("mine.py:clean", tmp_path), retention=Retention())
    async with house(tmp_path / "home", capture=capture) as gateway:
        record = gateway.publish(skilled("Be brief."), channel="stable")
        await gateway.switchboard.start()
        for text in ("Hello Ann", "this is private", "this is broken"):
            assert (await gateway.ask(text)).status_code == 200
        await gateway.ask("Ann again", stream=True)
        failed = gateway.gateway.metrics.captures_failed
    capture.close()
    whole, streamed = lines(file)
    assert whole["request"]["messages"][0]["content"] == "Hello [name]"
    assert whole["policy"] == record.id
    assert whole["said"]["choices"][0]["message"]["content"] == "Be brief. | Hello Ann"
    assert streamed["request"]["model"] == WORLD
    assert len(streamed["said"]) > 2
    assert failed == 1
    assert "private" not in file.read_text()
    assert "broken" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_no_more_is_kept_than_is_said(tmp_path: Path) -> None:
    clock = FakeClock()
    file = tmp_path / "traffic.jsonl"
    capture = Capture(file, clock, redact=None, retention=Retention(megabytes=0.02, days=30))
    for number in range(1000):
        capture.add({"number": number, "text": "x" * 80})
        total = sum(path.stat().st_size for path in tmp_path.iterdir())
        assert total <= 20_000
    assert lines(file)[-1]["number"] == 999
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


async def test_nothing_is_kept_longer_than_is_said_also_where_nobody_asks(tmp_path: Path) -> None:
    clock = FakeClock(wall=2_000_000_000.0)
    file = tmp_path / "traffic.jsonl"
    capture = Capture(file, clock, redact=None, retention=Retention(days=2))
    capture.add({"day": 0})
    for hour in range(1, 70):
        await clock.advance(3600)
        capture.tend()
        if hour == 30:
            capture.add({"day": 1})
    kept = everything(tmp_path)
    assert '"day":0' not in kept
    assert '"day":1' in kept


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(WhetError, match="cannot be written"):
        Capture(tmp_path, FakeClock(), redact=None, retention=Retention())
    (tmp_path / "mine.py").write_text("clean = 5\n")
    with pytest.raises(WhetError, match="not a function"):
        redaction("mine.py:clean", tmp_path)
