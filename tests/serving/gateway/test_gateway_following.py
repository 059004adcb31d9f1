"""What is activated is served, at once and without a failure; and a canary gets its share."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest
from gateway_house import BASE, REF, WORLD, House, Told, house, last_word, skilled

from whet.core import AdapterRef, ModelReply, ModelRequest, Policy, RequestRefused
from whet.serving.gateway import Local
from whet.serving.gateway.routes import share_of
from whet.testing import FakeClock
from whet.training.adapters import Shelf

ADAPTER = AdapterRef("a" * 32, BASE.fingerprint)


def files(home: Path, content: bytes = b"weights") -> Path:
    home.mkdir(exist_ok=True)
    (home / "adapter.gguf").write_bytes(content)
    return home


async def record_of(gateway: House, model: str = WORLD) -> str:
    answer = await gateway.ask("Where?", model)
    assert answer.status_code == 200
    return answer.headers["x-whet-policy"]


async def following(gateway: House) -> asyncio.Task[None]:
    await gateway.switchboard.start()
    return asyncio.create_task(gateway.switchboard.follow())


async def test_an_activation_and_a_rollback_are_served_within_a_quarter_of_a_second(tmp_path: Path) -> None:
    clock = FakeClock()
    async with house(tmp_path, clock=clock) as gateway:
        first = gateway.publish(skilled("First."), channel="stable")
        task = await following(gateway)
        assert await record_of(gateway) == first.id
        second = gateway.publish(skilled("Second."), channel="stable")
        await clock.advance(0.25)
        assert await record_of(gateway) == second.id
        gateway.registry.rollback(WORLD, BASE.fingerprint)
        await clock.advance(0.25)
        assert await record_of(gateway) == first.id
        task.cancel()


async def test_a_request_under_way_ends_with_what_it_began_with(tmp_path: Path) -> None:
    clock = FakeClock()
    async with house(tmp_path, clock=clock) as gateway:
        first = gateway.publish(skilled("First."), channel="stable")
        task = await following(gateway)
        gateway.model.open.clear()
        begun = asyncio.create_task(gateway.ask("Where?"))
        while not gateway.model.requests:
            await asyncio.sleep(0)
        second = gateway.publish(skilled("Second."), channel="stable")
        await clock.advance(0.25)
        gateway.model.open.set()
        assert (await begun).headers["x-whet-policy"] == first.id
        assert (await begun).json()["choices"][0]["message"]["content"] == "First. | Where?"
        assert await record_of(gateway) == second.id
        task.cancel()


async def test_an_adapter_is_loaded_before_it_is_switched_to(tmp_path: Path) -> None:
    clock = FakeClock()
    async with house(tmp_path / "home", clock=clock) as gateway:
        first = gateway.publish(skilled("First."), channel="stable")
        task = await following(gateway)
        gateway.model.open.clear()
        second = gateway.publish(Policy(REF, adapter=ADAPTER), channel="stable", adapter=files(tmp_path / "adapter"))
        await clock.advance(0.25)
        assert gateway.model.warmed[-1].adapter == ADAPTER
        assert [route.record for _, route in gateway.switchboard.table.names()] == [first.id, "base"]
        gateway.model.open.set()
        await clock.advance(0.0)
        assert await record_of(gateway) == second.id
        task.cancel()


async def test_candidates_are_loaded_in_advance_and_a_rollback_loads_nothing(tmp_path: Path) -> None:
    clock = FakeClock()
    async with house(tmp_path / "home", clock=clock) as gateway:
        first = gateway.publish(Policy(REF, adapter=ADAPTER), channel="stable", adapter=files(tmp_path / "one"))
        task = await following(gateway)
        other = AdapterRef("b" * 32, BASE.fingerprint)
        second = gateway.publish(Policy(REF, adapter=other), adapter=files(tmp_path / "two", b"others"))
        await clock.advance(0.25)
        assert gateway.switchboard.ready == {first.id, second.id}
        assert await record_of(gateway) == first.id
        loaded = len(gateway.model.warmed)
        gateway.registry.activate(second.id, force=True)
        await clock.advance(0.25)
        assert await record_of(gateway) == second.id
        gateway.registry.rollback(WORLD, BASE.fingerprint)
        await clock.advance(0.25)
        assert await record_of(gateway) == first.id
        assert len(gateway.model.warmed) == loaded
        gateway.registry.reject(second.id, "it was worse")
        await clock.advance(0.25)
        assert gateway.switchboard.ready == {first.id}
        assert (await gateway.ask("Where?", f"{WORLD}@{second.id}")).status_code == 404
        task.cancel()


async def test_what_cannot_be_loaded_is_an_error_and_nothing_answers_in_its_place(tmp_path: Path) -> None:
    broken = {"now": True}

    def refuse(request: ModelRequest) -> ModelReply:
        if request.adapter is not None and broken["now"]:
            raise RequestRefused("the file is no adapter")
        return last_word(request)

    clock = FakeClock()
    async with house(tmp_path / "home", clock=clock, model=Told(refuse)) as gateway:
        gateway.publish(skilled("First."), channel="stable")
        other = gateway.publish(skilled("Other."), world="othello", channel="stable")
        task = await following(gateway)
        second = gateway.publish(Policy(REF, adapter=ADAPTER), channel="stable", adapter=files(tmp_path / "adapter"))
        await clock.advance(0.25)
        answer = await gateway.ask("Where?")
        assert answer.status_code == 503
        assert "no adapter" in answer.json()["error"]["message"]
        health = await gateway.http.get("/healthz")
        assert health.status_code == 503
        assert "no adapter" in health.json()["troubles"][WORLD]
        assert await record_of(gateway, "othello") == other.id
        broken["now"] = False
        await clock.advance(6.0)
        assert await record_of(gateway) == second.id
        assert (await gateway.http.get("/healthz")).status_code == 200
        task.cancel()


async def test_only_the_last_of_several_activations_is_served(tmp_path: Path) -> None:
    """The slow one is ready after the one that took its place."""
    clock = FakeClock()
    async with house(tmp_path / "home", clock=clock) as gateway:
        gateway.publish(skilled("First."), channel="stable")
        task = await following(gateway)
        gateway.model.open.clear()
        gateway.publish(Policy(REF, adapter=ADAPTER), channel="stable", adapter=files(tmp_path / "adapter"))
        await clock.advance(0.25)
        third = gateway.publish(skilled("Third."), channel="stable")
        await clock.advance(0.25)
        gateway.model.open.set()
        await clock.advance(0.25)
        assert await record_of(gateway) == third.id
        task.cancel()


async def test_damaged_files_are_told_and_not_served(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        record = gateway.publish(skilled("First."), channel="stable")
        (gateway.registry.package(record) / "skill" / "SKILL.md").write_text("Something else.")
        await gateway.switchboard.start()
        answer = await gateway.ask("Where?")
    assert answer.status_code == 503
    assert record.id in answer.json()["error"]["message"]


async def test_another_base_s_policies_are_not_served(tmp_path: Path) -> None:
    from whet.registry import Base

    elsewhere = Base("local/other", "c" * 32)
    async with house(tmp_path) as gateway:
        record = gateway.publish(skilled("Other."), base=elsewhere, channel="stable")
        gateway.publish(skilled("Mine."))
        await gateway.switchboard.start()
        assert (await gateway.ask("Where?")).status_code == 404
        answer = await gateway.ask("Where?", f"{WORLD}@{record.id}")
    assert answer.status_code == 404
    assert "local/other" in answer.json()["error"]["message"]


async def test_a_canary_gets_its_share_and_is_counted_apart(tmp_path: Path) -> None:
    count, share = 2000, 0.1
    async with house(tmp_path, canary=share) as gateway:
        stable = gateway.publish(skilled("Stable."), channel="stable")
        trial = gateway.publish(skilled("Trial."), channel="canary")
        await gateway.switchboard.start()
        choose = gateway.switchboard.choose
        chosen = [(await choose(WORLD, f"request-{number}", share)).route.record for number in range(count)]
        for number in range(60):
            await gateway.http.post(
                "/v1/chat/completions",
                json={"model": WORLD, "messages": [{"role": "user", "content": "a"}]},
                headers={"x-request-id": f"request-{number}"},
            )
        assert await record_of(gateway, f"{WORLD}@champion") == stable.id
        assert await record_of(gateway, f"{WORLD}@canary") == trial.id
        metrics = gateway.gateway.metrics
        page = (await gateway.http.get("/metrics")).text
    width = 4 * math.sqrt(share * (1 - share) / count)
    assert abs(chosen.count(trial.id) / count - share) < width
    assert metrics.count(policy=trial.id) == chosen[:60].count(trial.id) + 1
    assert metrics.count(policy=stable.id) == chosen[:60].count(stable.id) + 1
    assert f'policy="{trial.id}",channel="canary"' in page


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_shares_are_even(share: float) -> None:
    count = 20_000
    under = sum(share_of(f"key {number}") < share for number in range(count))
    assert abs(under / count - share) < 4 * math.sqrt(share * (1 - share) / count)


async def test_an_embedded_model_refuses_what_it_does_not_know_before_it_is_asked(tmp_path: Path) -> None:
    model = Told()
    local = Local(model, BASE, Shelf(), most_at_once=2)
    async with house(tmp_path, model=model, upstream=local) as gateway:
        assert (await gateway.ask("a", BASE.name, best_of=3)).status_code == 400
    assert model.requests == []
