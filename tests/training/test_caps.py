"""No cap is ever exceeded, and what was learned until then is kept."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from whet.core import ModelReply, RunStopped, Usage, nanodollars
from whet.store import AttemptStatus, RunReader, open_run
from whet.testing.endpoint import StandInEndpoint, StandInRequest
from whet.testing.project import KEY, KEY_VARIABLE, answer_with, write_project
from whet.training import Report, load_config, prepare, read_report, train

PRICES = """
[prices."openai/student"]
input = 2.0
output = 8.0

[prices."openai/coach"]
input = 2.0
output = 8.0
"""

LIES = {
    "none": None,
    "nothing": Usage(0, 0),
    "absurd": Usage(10**9, 10**9),
    "negative": Usage(-5, -5),
}


def liar(usage: Usage | None):
    honest = answer_with()

    def answer(request: StandInRequest) -> ModelReply:
        return msgspec.structs.replace(honest(request), usage=usage)

    return answer


async def run(folder: Path, base_url: str, *overrides: str) -> Report:
    path = write_project(folder, f"{base_url}/v1", in_flight=256, more=PRICES)
    project = prepare(load_config(path, overrides), folder, environ={KEY_VARIABLE: KEY})
    return await train(project, folder / "runs" / "run-1")


def spent(folder: Path) -> tuple[int, int, int]:
    """Attempts, tokens and nano-dollars, as the store has them."""
    with RunReader(folder / "runs" / "run-1" / "run.db") as reader:
        lines = reader.spending()
    return sum(x.attempts for x in lines), sum(x.tokens for x in lines), sum(x.nanodollars for x in lines)


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
async def test_a_dollar_cap_holds_against_a_server_that_lies_about_usage(tmp_path: Path, lie: str) -> None:
    async with StandInEndpoint(liar(LIES[lie])) as endpoint:
        with pytest.raises(RunStopped, match=r"budget\.usd") as stopped:
            await run(tmp_path, endpoint.base_url, "budget.usd=0.12")
    assert "--set budget.usd" in stopped.value.hint
    attempts, _, nanos = spent(tmp_path)
    assert 0 < nanos <= nanodollars(0.12)
    assert attempts > 20, "the cap left room for more"
    report = read_report(tmp_path / "runs" / "run-1")
    assert report is not None
    assert "budget.usd" in report.stopped
    assert (tmp_path / "runs" / "run-1" / "best" / "SKILL.md").exists()


@pytest.mark.slow
async def test_a_run_stopped_by_a_cap_goes_on_under_a_higher_one_and_ends_like_a_run_without(tmp_path: Path) -> None:
    async with StandInEndpoint(answer_with()) as endpoint:
        once = ("target.send_late_again=false", "optimizer.send_late_again=false")
        whole = await run(tmp_path / "whole", endpoint.base_url, *once)
        calls = len(endpoint.requests)
        for cap in (100, 300):
            with pytest.raises(RunStopped, match=r"budget\.calls"):
                await run(tmp_path / "capped", endpoint.base_url, *once, f"budget.calls={cap}")
            assert spent(tmp_path / "capped")[0] <= cap
        ended = await run(tmp_path / "capped", endpoint.base_url, *once, "budget.calls=100000")
        assert ended == whole
        assert len(endpoint.requests) == 2 * calls, "no call was made twice"


@pytest.mark.slow
async def test_a_token_cap_holds(tmp_path: Path) -> None:
    async with StandInEndpoint(answer_with()) as endpoint:
        with pytest.raises(RunStopped, match=r"budget\.tokens"):
            await run(tmp_path, endpoint.base_url, "budget.tokens=50_000")
    assert 0 < spent(tmp_path)[1] <= 50_000


async def test_what_was_open_when_a_process_died_counts_against_the_cap(tmp_path: Path) -> None:
    from whet.store import AttemptRow

    path = tmp_path / "run.db"
    store = open_run(path)
    await store.write(AttemptRow(1, b"k" * 16, "target", "rollout", AttemptStatus.OPEN, 500, 7_000, at=1.0))
    store.close()
    store = open_run(path)
    assert (store.spending().tokens, store.spending().nanodollars) == (500, 7_000)
    store.close()
