"""With the real small model: the tokens of training, evaluation and serving are the same, and adapters change hands."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import openai
import pytest
from gateway_house import WORLD, House, house

from whet.core import (
    AdapterRef,
    Brief,
    End,
    Harness,
    ModelRef,
    ModelReply,
    ModelRequest,
    Policy,
    Rendering,
    Sampling,
    Skill,
    Split,
    Trajectory,
    Usage,
    Verdict,
    assistant,
    user,
)
from whet.learners.adapter.examples import examples_of, quality
from whet.models.embedded import EmbeddedModel, EmbeddedSettings, base_of
from whet.registry import Base
from whet.rollout.render import render, request_for
from whet.serving.gateway import Listening, Local, serving
from whet.training.adapters import Shelf

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

REF = ModelRef("local", "smollm2-135m")
SKILL = Skill.from_text("---\nname: flags\n---\nAnswer in one short sentence.\n")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"side": {"enum": ["left", "right"]}},
    "required": ["side"],
    "additionalProperties": False,
}
TASK = "On which side of the field is the flag?"
GREEDY = Sampling(max_tokens=12, temperature=0.0)


class Listened:
    """The real model, with what it was asked."""

    def __init__(self, model: EmbeddedModel) -> None:
        self.model = model
        self.requests: list[ModelRequest] = []

    async def send(self, request: ModelRequest, timeout: float, headers: dict[str, str]) -> ModelReply:
        self.requests.append(request)
        return await self.model.send(request, timeout, headers)

    def stream(self, request: ModelRequest) -> AsyncGenerator[str | ModelReply]:
        self.requests.append(request)
        return self.model.stream(request)


@asynccontextmanager
async def embedded(home: Path, file: Path, **kwargs: Any) -> AsyncGenerator[tuple[House, Listened, Base]]:
    shelf = Shelf()
    base = Base("local/smollm2-135m", base_of(file))
    async with EmbeddedModel(file, adapters=shelf, settings=EmbeddedSettings(threads=1)) as model:
        listened = Listened(model)
        local = Local(listened, base, shelf, most_at_once=8)
        async with house(home, upstream=local, **kwargs) as gateway:
            yield gateway, listened, base


def write_adapter(folder: Path, seed: int) -> Path:
    """Rank 1, in the last layer: enough to change what is said."""
    folder.mkdir()
    writer = gguf.GGUFWriter(folder / "adapter.gguf", "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 1.0)
    drawn = np.random.default_rng(seed)
    writer.add_tensor("blk.29.ffn_down.weight.lora_a", drawn.standard_normal((1, 1536)).astype(np.float32))
    writer.add_tensor("blk.29.ffn_down.weight.lora_b", (20 * drawn.standard_normal((576, 1))).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return folder


async def trained_on(policy: Policy, model: EmbeddedModel, *, conditioned: bool) -> tuple[int, ...]:
    """The prompt that a training example of this policy's best play has."""
    played = Trajectory(
        policy.fingerprint, "task-1", Split.TRAIN, 0, (user(TASK), assistant("Left.")), "Left.", End.ANSWERED,
        Verdict(True, 1.0), Usage(), 1, 0,
    )  # fmt: skip
    (example,) = await examples_of(played, policy, (), model, conditioned=conditioned)
    return tuple(example.prompt)


async def test_training_evaluation_and_serving_see_the_same_tokens(smollm2: Path, tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", 1)
    async with embedded(tmp_path / "home", smollm2, schemas={WORLD: SCHEMA}) as (gateway, listened, base):
        plain, held = Harness(rendering=Rendering.PLAIN), Harness(constrained=True)
        ref = AdapterRef("a" * 32, base.fingerprint)
        best = AdapterRef("a" * 32, base.fingerprint, quality(1.0))
        policies = {
            "chat": Policy(REF, GREEDY),
            "skill": Policy(REF, GREEDY, SKILL),
            "plain": Policy(REF, GREEDY, SKILL, harness=plain),
            "constrained": Policy(REF, GREEDY, SKILL, harness=held),
            "adapter": Policy(REF, GREEDY, SKILL, ref),
            "condition": Policy(REF, GREEDY, SKILL, best),
            "plain with condition": Policy(REF, GREEDY, SKILL, best, plain),
        }
        records = [
            gateway.publish(policy, base=base, adapter=adapter if policy.adapter else None)
            for policy in policies.values()
        ]
        await gateway.switchboard.start()
        for policy, record in zip(policies.values(), records, strict=True):
            answer = await gateway.ask(TASK, f"{WORLD}@{record.id}", seed=3)
            assert answer.status_code == 200
            said = answer.json()
            rendered = render(policy, Brief(TASK, answer_schema=SCHEMA), ())
            evaluated = request_for(policy, rendered, rendered.opening, 3)
            assert listened.requests[-1] == evaluated
            tokens = await listened.model.prompt_tokens(evaluated)
            assert said["usage"]["prompt_tokens"] == len(tokens)
            assert tokens == await trained_on(
                policy, listened.model, conditioned=bool(policy.adapter and policy.adapter.condition)
            )
            measured = await listened.model.send(evaluated, 60, {})
            assert said["choices"][0]["message"]["content"] == measured.text
            if policy.harness.constrained:
                assert measured.text.lstrip("{ \n").startswith('"side"')


async def test_the_official_client_streams_and_holds_answers_to_a_schema(smollm2: Path, tmp_path: Path) -> None:
    async with embedded(tmp_path / "home", smollm2) as (gateway, _, base):
        gateway.publish(Policy(REF, GREEDY, SKILL), base=base, channel="stable")
        await gateway.switchboard.start()
        asked: Any = {"model": WORLD, "messages": [{"role": "user", "content": TASK}]}
        whole = await gateway.openai.chat.completions.create(**asked)
        stream = await gateway.openai.chat.completions.create(**asked, stream=True)
        pieces = [chunk.choices[0].delta.content async for chunk in stream]
        form: Any = {"type": "json_schema", "json_schema": {"name": "side", "schema": SCHEMA}}
        held = await gateway.openai.chat.completions.create(**asked, response_format=form, max_tokens=40)
        tool: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
        with pytest.raises(openai.BadRequestError, match="tools"):
            await gateway.openai.chat.completions.create(**asked, tools=[tool])
    assert "".join(piece for piece in pieces if piece) == whole.choices[0].message.content
    assert len(pieces) > 4
    assert json.loads(held.choices[0].message.content or "")["side"] in ("left", "right")


async def test_adapters_are_activated_under_load_within_a_second_of_being_loaded(smollm2: Path, tmp_path: Path) -> None:
    folders = [write_adapter(tmp_path / f"adapter-{seed}", seed) for seed in (1, 2)]
    async with embedded(tmp_path / "home", smollm2) as (gateway, _, base):
        first = gateway.publish(Policy(REF, Sampling(4, 0.0), SKILL), base=base, channel="stable")
        texts: dict[str, set[str]] = {}
        seen: list[tuple[float, str]] = []
        delays: list[float] = []
        ended = asyncio.Event()
        async with serving(gateway.gateway, gateway.switchboard, Listening()) as address:
            client = openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)

            async def ask_on() -> None:
                while not ended.is_set():
                    begun = time.monotonic()
                    answer = await client.chat.completions.create(
                        model=WORLD, messages=[{"role": "user", "content": TASK}]
                    )
                    record = str(answer.system_fingerprint)
                    seen.append((begun, record))
                    texts.setdefault(record, set()).add(str(answer.choices[0].message.content))

            async def until(record: str) -> None:
                """Until it answers; how long after the change new requests are its own."""
                changed = time.monotonic()
                while (await client.models.retrieve(WORLD)).model_dump()["policy"] != record:
                    await asyncio.sleep(0.01)
                delays.append(time.monotonic() - changed)
                since = time.monotonic()
                while not (found := [found for begun, found in seen if begun > since]):
                    await asyncio.sleep(0.01)
                assert found[0] == record

            async with client, asyncio.TaskGroup() as group:
                for _ in range(3):
                    group.create_task(ask_on())
                await until(first.id)
                records = [first.id]
                for number, folder in enumerate(folders):
                    ref = AdapterRef(f"{number}" * 32, base.fingerprint)
                    record = gateway.publish(Policy(REF, Sampling(4, 0.0), SKILL, ref), base=base, adapter=folder)
                    while record.id not in gateway.switchboard.ready:
                        await asyncio.sleep(0.01)
                    gateway.registry.activate(record.id, force=True)
                    records.append(record.id)
                    await until(record.id)
                back = gateway.registry.rollback(WORLD, base.fingerprint)
                assert back.record == records[1]
                await until(records[1])
                ended.set()
    assert max(delays) < 1.0
    # Batches round differently, so one adapter may say two things; what matters is that none says another's.
    said = [text for found in texts.values() for text in found]
    assert texts.keys() == set(records)
    assert len(said) == len(set(said))
