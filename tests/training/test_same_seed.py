"""One seed gives one result, whatever the order in which calls come back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from whet.core import ModelReply
from whet.testing.endpoint import StandInEndpoint, StandInRequest
from whet.testing.project import KEY, KEY_VARIABLE, answer_with, write_project
from whet.training import Report, load_config, prepare, train

RESULTS = ("best/SKILL.md", "report.json", "report.md")


async def train_once(folder: Path, base_url: str, *overrides: str) -> tuple[Report, dict[str, bytes]]:
    config = load_config(write_project(folder, f"{base_url}/v1", in_flight=64), overrides)
    run = folder / "runs" / "run-1"
    report = await train(prepare(config, folder, environ={KEY_VARIABLE: KEY}), run)
    return report, {name: (run / name).read_bytes() for name in RESULTS}


@pytest.mark.slow
async def test_ten_runs_with_random_latencies_end_byte_identical(tmp_path: Path) -> None:
    chance = Random(7)
    answer = answer_with()

    async def late(request: StandInRequest) -> ModelReply:
        await asyncio.sleep(chance.expovariate(200.0))
        return answer(request)

    async with StandInEndpoint(late) as endpoint:
        runs = [await train_once(tmp_path / str(number), endpoint.base_url) for number in range(10)]
        assert endpoint.most_in_flight >= 48, "the runs were not dense enough to mix up anything"
    report, first = runs[0]
    assert report.comparison is not None
    assert report.comparison.shown, "a run in which nothing is learned shows nothing"
    assert any(step.ruling and not step.ruling.accepted for step in report.steps)
    for _, other in runs[1:]:
        assert other == first


@pytest.mark.slow
async def test_another_seed_gives_another_run(tmp_path: Path) -> None:
    async with StandInEndpoint(answer_with()) as endpoint:
        _, one = await train_once(tmp_path / "a", endpoint.base_url)
        _, other = await train_once(tmp_path / "b", endpoint.base_url, "train.seed=43")
    assert one["report.json"] != other["report.json"]
