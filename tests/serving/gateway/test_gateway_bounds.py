"""Malformed, huge, abandoned, too many, from elsewhere: each is told so, and harms no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gateway_house import BASE, House, house, skilled
from hypothesis import given, settings
from hypothesis import strategies as st

from whet.core import ConfigError, ModelRef, Policy
from whet.serving.gateway import Guard, Limits, guard_for
from whet.serving.gateway.asked import Asked, read_chat, read_text
from whet.serving.gateway.refusal import Refusal
from whet.serving.gateway.rendering import request_of

CHAT = "/v1/chat/completions"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("model", "messages", "tools", "stop", "seed", "n", "stream", "response_format", "prompt", "temperature")


def refusal_of(read: Callable[[bytes], Asked], body: bytes) -> Refusal | None:
    """None where it becomes a request to a model."""
    try:
        request_of(Policy(ModelRef("local", "small")), read(body))
    except Refusal as refusal:
        return refusal
    return None


@given(st.binary(max_size=200) | st.dictionaries(st.sampled_from(FIELDS), json_values).map(msgspec.json.encode))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_a_request_or_are_refused(body: bytes) -> None:
    for read in (read_chat, read_text):
        refusal = refusal_of(read, body)
        assert refusal is None or (refusal.status == 400 and msgspec.json.decode(refusal.body)["error"]["message"])


parts = st.fixed_dictionaries({"type": st.sampled_from(["text", "image_url", "file"])}, optional={"text": st.text()})
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "system", "tool", "assistant", "clown"])},
    optional={
        "content": st.none() | st.text() | st.lists(parts, max_size=2),
        "tool_call_id": st.text(max_size=4),
        "tool_calls": st.lists(json_values, max_size=1),
    },
)


@given(st.lists(messages, max_size=4), st.dictionaries(st.sampled_from(FIELDS[2:]), json_values, max_size=2))
@settings(max_examples=200, deadline=None)
def test_conversations_that_are_nearly_right_are_answered_or_refused(said: list[Any], more: dict[str, Any]) -> None:
    body = msgspec.json.encode({"model": "w", "messages": said, **more})
    refusal = refusal_of(read_chat, body)
    assert refusal is None or refusal.status == 400
    if not any(message["role"] == "user" for message in said):
        assert refusal is not None


async def refused(gateway: House, body: bytes, **headers: str) -> tuple[int, str]:
    answer = await gateway.http.post(CHAT, content=body, headers=headers)
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return answer.status_code, error["code"]


async def test_malformed_requests_are_told_in_openai_s_form_and_others_go_on(tmp_path: Path) -> None:
    async with house(tmp_path, limits=Limits(body_bytes=5000)) as gateway:
        gateway.publish(skilled("Be brief."), channel="stable")
        await gateway.switchboard.start()
        assert await refused(gateway, b"{") == (400, "invalid_json")
        assert await refused(gateway, b'{"model": 5}') == (400, "invalid_request")
        assert await refused(gateway, b"[" * 4000) == (400, "invalid_request")
        assert await refused(gateway, b'{"model": "' + b"x" * 6000) == (413, "request_too_large")
        assert (await gateway.ask("Where?")).status_code == 200


async def test_a_large_request_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """One that says its size, and one that does not."""
    read: list[int] = []
    sent: list[dict[str, Any]] = []

    async def endless() -> dict[str, Any]:
        read.append(1)
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async with house(tmp_path, limits=Limits(body_bytes=10_000)) as gateway:
        scope = {"type": "http", "method": "POST", "path": CHAT}
        await gateway.gateway({**scope, "headers": [(b"content-length", b"10001")]}, endless, send)
        assert (sent[0]["status"], len(read)) == (413, 0)
        await gateway.gateway({**scope, "headers": []}, endless, send)
        assert (sent[2]["status"], len(read)) == (413, 11)


async def test_a_request_that_does_not_arrive_is_given_up(tmp_path: Path) -> None:
    async def never() -> Any:
        await asyncio.Event().wait()

    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async with house(tmp_path, limits=Limits(body_seconds=0.02)) as gateway:
        await gateway.gateway({"type": "http", "method": "POST", "path": CHAT, "headers": []}, never, send)
    assert sent[0]["status"] == 408


async def test_who_takes_nothing_of_an_answer_is_given_up_and_its_place_is_free(tmp_path: Path) -> None:
    async with house(tmp_path, limits=Limits(send_seconds=0.02), most_at_once=1) as gateway:
        body = msgspec.json.encode({"model": BASE.name, "stream": True, "messages": [{"role": "user", "content": "a"}]})
        messages = [{"type": "http.request", "body": body}]

        async def receive() -> Any:
            if not messages:
                await asyncio.Event().wait()
            return messages.pop()

        async def stuck(message: Any) -> None:
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

        await gateway.gateway({"type": "http", "method": "POST", "path": CHAT, "headers": []}, receive, stuck)
        assert gateway.gateway.turnstile.inside == 0
        assert (await gateway.ask("a", BASE.name)).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_an_abandoned_request_ends_its_generation_and_frees_its_place(stream: bool, tmp_path: Path) -> None:
    async with house(tmp_path, most_at_once=1) as gateway:
        await gateway.switchboard.start()
        gateway.model.open.clear()
        gone = asyncio.Event()
        body = {"model": BASE.name, "stream": stream, "messages": [{"role": "user", "content": "a"}]}
        incoming = [{"type": "http.request", "body": msgspec.json.encode(body)}]

        async def receive() -> Any:
            if incoming:
                return incoming.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            raise AssertionError("nobody is there")

        scope = {"type": "http", "method": "POST", "path": CHAT, "headers": []}
        asking = asyncio.create_task(gateway.gateway(scope, receive, send))
        while not gateway.model.requests:
            await asyncio.sleep(0)
        gone.set()
        await asking
        assert gateway.model.cancelled == 1
        assert gateway.gateway.turnstile.inside == 0
        gateway.model.open.set()
        assert (await gateway.ask("a", BASE.name)).status_code == 200
        assert 'code="499"' in (await gateway.http.get("/metrics")).text


async def test_more_than_may_wait_are_told_when_to_come_again(tmp_path: Path) -> None:
    async with house(tmp_path, limits=Limits(at_once=2, waiting=3)) as gateway:
        await gateway.switchboard.start()
        gateway.model.open.clear()
        asking = [asyncio.create_task(gateway.ask("a", BASE.name)) for _ in range(5)]
        while gateway.gateway.turnstile.waiting < 3:
            await asyncio.sleep(0)
        late = await gateway.ask("a", BASE.name)
        assert late.status_code == 429
        assert int(late.headers["retry-after"]) >= 1
        asking[3].cancel()
        await asyncio.wait([asking[3]])
        assert gateway.gateway.turnstile.waiting == 2
        gateway.model.open.set()
        done = await asyncio.gather(*(task for number, task in enumerate(asking) if number != 3))
        assert {answer.status_code for answer in done} == {200}
        assert (gateway.gateway.turnstile.inside, gateway.gateway.turnstile.waiting) == (0, 0)


async def test_a_request_has_its_time_and_no_more(tmp_path: Path) -> None:
    async with house(tmp_path, limits=Limits(at_once=1, seconds=0.03)) as gateway:
        await gateway.switchboard.start()
        gateway.model.open.clear()
        answers = await asyncio.gather(gateway.ask("a", BASE.name), gateway.ask("a", BASE.name))
        assert {answer.status_code for answer in answers} == {504}
        assert gateway.gateway.turnstile.inside == 0


async def test_keys(tmp_path: Path) -> None:
    guard = guard_for("0.0.0.0", {"WHET_API_KEYS": "one, two"}, is_open=False)
    async with house(tmp_path, guard=guard) as gateway:
        body = {"model": BASE.name, "messages": [{"role": "user", "content": "a"}]}
        for header, status in (
            ({}, 401),
            ({"authorization": "Bearer three"}, 401),
            ({"authorization": "Bearer "}, 401),
            ({"authorization": "Basic one"}, 401),
            ({"authorization": "Bearer one"}, 200),
            ({"authorization": "bearer two"}, 200),
        ):
            assert (await gateway.http.post(CHAT, json=body, headers=header)).status_code == status
            assert (await gateway.http.get("/v1/models", headers=header)).status_code == status
            assert (await gateway.http.get("/metrics", headers=header)).status_code == status
        assert (await gateway.http.get("/healthz")).json() == {"status": "ok"}
        assert "serving" in (await gateway.http.get("/healthz", headers={"authorization": "Bearer one"})).json()


async def test_without_keys_web_pages_and_borrowed_names_are_not_answered(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        for headers in ({"origin": "http://evil.example"}, {"host": "evil.example"}):
            assert (await gateway.http.get("/v1/models", headers=headers)).status_code == 403
        own = {"origin": "http://localhost:8080", "host": "localhost:8080"}
        assert (await gateway.http.get("/v1/models", headers=own)).status_code == 200


def test_others_are_not_answered_without_keys() -> None:
    with pytest.raises(ConfigError, match="no keys"):
        guard_for("0.0.0.0", {}, is_open=False)
    with pytest.raises(ConfigError, match="no keys"):
        guard_for("192.168.0.7", {"WHET_API_KEYS": " , "}, is_open=False)
    assert guard_for("0.0.0.0", {}, is_open=True) == Guard((), loopback=False)
    assert guard_for("127.0.0.1", {}, is_open=False) == Guard((), loopback=True)
