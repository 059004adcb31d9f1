"""The embedded model with the real small model: what it is asked, what it answers, what it counts, what it leaves."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from adapter_files import embeddings, write_adapter

from whet.core import (
    AdapterRef,
    EndpointTimeout,
    Finish,
    ImagePart,
    InputError,
    ModelRequest,
    RequestRefused,
    Sampling,
    ToolSpec,
    assistant,
    system,
    user,
)
from whet.models.embedded import EmbeddedModel, EmbeddedSettings, base_of
from whet.models.embedded.storing import store_as

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.timeout(300)]

ONE_THREAD = EmbeddedSettings(threads=1)
"""Other tests use the cores too."""

PLACE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "size": {"enum": ["small", "large"]},
        "bias": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["name", "size", "bias"],
    "additionalProperties": False,
}


@pytest.fixture
async def model(smollm2: Path) -> AsyncGenerator[EmbeddedModel]:
    async with EmbeddedModel(smollm2, settings=ONE_THREAD) as model:
        yield model


def ask(text: str, most: int = 8, temperature: float = 0.0, **more: object) -> ModelRequest:
    return ModelRequest((user(text),), sampling=Sampling(most, temperature), **more)  # pyright: ignore[reportArgumentType]


async def test_tokens_are_counted_as_the_tokenizer_counts_them(model: EmbeddedModel) -> None:
    short = await model.send(ask("Say hello.", 6), 60, {})
    assert short.finish is Finish.LENGTH
    assert short.usage
    assert short.usage.output_tokens == 6 == len(await model.tokens(short.text))
    request = ask("What is the capital of France? One word.", 60)
    whole = await model.send(request, 60, {})
    assert whole.finish is Finish.STOP
    assert whole.usage
    assert whole.usage.input_tokens == len(await model.prompt_tokens(request))
    assert whole.usage.output_tokens == len(await model.tokens(whole.text)) + 1, "its end is a token too"


async def test_chat_is_rendered_by_the_model_s_own_template_and_plain_text_is_not(model: EmbeddedModel) -> None:
    chat = await model.prompt_tokens(ModelRequest((system("Be brief."), user("Hello"), assistant("Hi"), user("Bye"))))
    expected = (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
        "<|im_start|>assistant\nHi<|im_end|>\n"
        "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"
    )
    assert chat == await model.prompt_tokens(ModelRequest((user(expected),), plain=True))
    assert chat.count(model.end_token) == 4
    plain = ModelRequest((user("Once upon"), user("a time")), plain=True, sampling=Sampling(4, 0.0))
    assert await model.prompt_tokens(plain) == await model.tokens("Once upon\n\na time")
    reply = await model.send(plain, 60, {})
    assert reply.usage
    assert reply.usage.input_tokens == len(await model.tokens("Once upon\n\na time"))


async def test_an_answer_s_text_holds_no_special_tokens(model: EmbeddedModel) -> None:
    assert model.end_token not in await model.tokens("<|im_end|>")
    assert await model.tokens("") == ()


async def test_a_beginning_that_many_share_is_evaluated_once(model: EmbeddedModel) -> None:
    skill = system(" ".join(f"Rule {number}: mind the number {number * 7}." for number in range(40)))
    requests = [ModelRequest((skill, user(f"Say {number}.")), sampling=Sampling(2, 0.0)) for number in range(40)]
    sizes = [len(await model.prompt_tokens(request)) for request in requests]
    own = len(await model.prompt_tokens(ModelRequest((user("Say 39."),))))
    replies = await asyncio.gather(*(model.send(request, 300, {}) for request in requests))
    evaluated = sum(reply.usage.input_tokens - reply.usage.cached_tokens for reply in replies if reply.usage)
    assert evaluated == model.evaluated
    assert evaluated < max(sizes) + len(requests) * own
    assert sum(bool(reply.usage and reply.usage.cached_tokens < 100) for reply in replies) == 1


async def test_what_is_reused_changes_no_greedy_answer(model: EmbeddedModel, smollm2: Path) -> None:
    skill = system("Answer with one word. " * 30)
    requests = [
        ModelRequest((skill, user(f"The capital of {country}?")), sampling=Sampling(3, 0.0))
        for country in ("France", "Italy", "Japan")
    ]
    many = await asyncio.gather(*(model.send(request, 120, {}) for request in requests))
    again = await asyncio.gather(*(model.send(request, 120, {}) for request in requests))
    assert [reply.text for reply in many] == [reply.text for reply in again]
    exact = EmbeddedSettings(threads=1, exact=True)
    async with EmbeddedModel(smollm2, settings=exact) as alone:
        assert [(await alone.send(request, 120, {})).text for request in requests] == [reply.text for reply in many]


async def test_exact_settings_repeat_a_sampled_answer_bit_for_bit(smollm2: Path) -> None:
    request = ask("Tell a story about a lamp.", 24, 1.0, seed=7)
    other = ask("Tell a story about a lamp and a river.", 24, 1.0, seed=7)
    texts: list[str] = []
    async with EmbeddedModel(smollm2, settings=EmbeddedSettings(threads=1, exact=True)) as model:
        for asked in (request, other, request):
            texts.append((await model.send(asked, 120, {})).text)
        together = await asyncio.gather(model.send(request, 120, {}), model.send(other, 120, {}))
    assert texts[0] == texts[2] == together[0].text != texts[1]
    assert together[1].text == texts[1]


async def test_a_schema_holds_at_a_temperature_at_which_little_else_does(model: EmbeddedModel) -> None:
    requests = [ask(f"Describe place {number}.", 120, 1.5, schema=PLACE, seed=number) for number in range(28)]
    replies = await asyncio.gather(*(model.send(request, 300, {}) for request in requests))
    ended = [reply for reply in replies if reply.finish is Finish.STOP]
    assert len(ended) >= 20
    for reply in ended:
        place = json.loads(reply.text)
        assert set(place) == {"name", "size", "bias"}
        assert place["size"] in ("small", "large")
        assert len(place["name"]) <= 12
        assert place["bias"] in range(100)


async def test_a_schema_that_would_be_dropped_without_a_word_is_refused(model: EmbeddedModel) -> None:
    for schema in ({"type": "nonsense"}, {"type": "array", "uniqueItems": True}):
        with pytest.raises(RequestRefused, match="cannot be held to this schema"):
            await model.send(ask("A place.", schema=schema), 60, {})


async def test_what_cannot_be_asked_is_refused_before_anything_is_evaluated(model: EmbeddedModel) -> None:
    tool = ToolSpec("f", "", {"type": "object", "properties": {}})
    with pytest.raises(RequestRefused, match="knows no tools") as refused:
        await model.send(ask("x", tools=(tool,)), 60, {})
    assert 'target.tools = "text"' in refused.value.hint
    with pytest.raises(RequestRefused, match=r"the prompt has [\d,]+ tokens, and .* takes 8,192"):
        await model.send(ask("one two " * 8000), 60, {})
    with pytest.raises(RequestRefused, match="no images"):
        await model.send(ModelRequest((user((ImagePart("image/png", b"x"),)),)), 60, {})
    elsewhere = AdapterRef("a" * 32, "b" * 32)
    with pytest.raises(RequestRefused, match="made for another base model"):
        await model.send(ask("x", adapter=elsewhere), 60, {})
    with pytest.raises(RequestRefused, match="is not known here"):
        await model.send(ask("x", adapter=AdapterRef("a" * 32, model.base)), 60, {})
    assert model.evaluated == 0


async def test_an_answer_is_cut_where_the_context_ends(smollm2: Path) -> None:
    async with EmbeddedModel(smollm2, settings=EmbeddedSettings(threads=1, context_mib=6, slots=2)) as small:
        assert small.limit == 256
        reply = await small.send(ask("A very long list of animals: " + "cat, dog, " * 40, 2048, plain=True), 120, {})
    assert reply.finish is Finish.LENGTH
    assert reply.usage
    assert reply.usage.input_tokens + reply.usage.output_tokens == 256


async def test_more_than_fits_at_once_waits_for_its_turn(smollm2: Path) -> None:
    async with EmbeddedModel(smollm2, settings=EmbeddedSettings(threads=1, context_mib=12, slots=8)) as small:
        requests = [ask(f"{number} " + "word " * 150, 20) for number in range(8)]
        replies = await asyncio.gather(*(small.send(request, 300, {}) for request in requests))
    assert all(reply.usage and reply.usage.output_tokens for reply in replies)


async def test_stop_texts_end_an_answer_and_are_no_part_of_it(model: EmbeddedModel) -> None:
    counting = ModelRequest((user("1, 2, 3, 4, 5, 6,"),), plain=True, sampling=Sampling(30, 0.0, stop=("9",)))
    reply = await model.send(counting, 60, {})
    assert (reply.text, reply.finish) == (" 7, 8, ", Finish.STOP)


async def test_cancelling_ends_the_generation_and_what_waits_goes_on(smollm2: Path) -> None:
    async with EmbeddedModel(smollm2, settings=EmbeddedSettings(threads=1, slots=1)) as model:
        endless = asyncio.create_task(
            model.send(ask("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,", 8000, plain=True), 600, {})
        )
        await model.tokens("By the time this is answered, the other is under way.")
        waiting = asyncio.create_task(model.send(ask("Say hello.", 2), 60, {}))
        await asyncio.sleep(0)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        assert (await waiting).usage
        with pytest.raises(EndpointTimeout):
            await model.send(ask("1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,", 8000, plain=True), 0.5, {})
        assert (await model.send(ask("Say hello.", 2), 60, {})).usage
        spent = time.process_time()
        await asyncio.sleep(0.5)
        assert time.process_time() - spent < 0.25, "nothing is evaluated any more"


async def test_each_request_is_answered_with_its_own_adapter(smollm2: Path, tmp_path: Path) -> None:
    rows = embeddings(smollm2)
    for number in range(32):
        write_adapter(tmp_path / f"{number}.gguf", rows[1000 + 137 * number], number)
    base = base_of(smollm2)

    def request(number: int) -> ModelRequest:
        return ask("Say hello.", 3, adapter=AdapterRef(str(number), base))

    def file(adapter: AdapterRef) -> Path:
        return tmp_path / f"{adapter.fingerprint}.gguf"

    async with EmbeddedModel(smollm2, adapters=file, settings=ONE_THREAD) as model:
        plain = (await model.send(ask("Say hello.", 3), 60, {})).text
        first = [(await model.send(request(number), 60, {})).text for number in range(3)]
        together = await asyncio.gather(*(model.send(request(number), 300, {}) for number in range(32)))
        assert [reply.text for reply in together[:3]] == first
        assert len({reply.text for reply in together} | {plain}) > 20
        assert (await model.send(ask("Say hello.", 3), 60, {})).text == plain


async def test_what_one_adapter_evaluated_is_not_given_to_another(smollm2: Path, tmp_path: Path) -> None:
    rows = embeddings(smollm2)
    for number in range(2):
        write_adapter(tmp_path / f"{number}.gguf", rows[1000 + 137 * number], number)
    base, skill = base_of(smollm2), "Be kind. " * 40
    refs = [AdapterRef(str(number), base) for number in range(2)]
    requests = [ask(f"{skill}{number}", 2, adapter=ref) for number in range(3) for ref in (*refs, None)]
    async with EmbeddedModel(
        smollm2, adapters=lambda ref: tmp_path / f"{ref.fingerprint}.gguf", settings=ONE_THREAD
    ) as model:
        size = len(await model.prompt_tokens(requests[0]))
        replies = await asyncio.gather(*(model.send(request, 300, {}) for request in requests))
        assert 3 * (size - 1) <= model.evaluated < 3.5 * size, "once for each adapter, and once without"
    assert len({reply.text for reply in replies[:3]}) == 3


async def test_an_adapter_that_does_not_fit_keeps_no_other_out(smollm2: Path, tmp_path: Path) -> None:
    rows = embeddings(smollm2)
    write_adapter(tmp_path / "good.gguf", rows[1000], 1)
    write_adapter(tmp_path / "narrow.gguf", rows[1000], 1, inner=1000)
    write_adapter(tmp_path / "other.gguf", rows[1000], 1, architecture="qwen2")
    (tmp_path / "text.gguf").write_text("not a model at all")
    (tmp_path / "model.gguf").symlink_to(smollm2)
    base = base_of(smollm2)
    async with EmbeddedModel(
        smollm2, adapters=lambda ref: tmp_path / f"{ref.fingerprint}.gguf", settings=ONE_THREAD
    ) as model:
        named = ("good", "narrow", "other", "text", "model", "missing")
        requests = [ask("Hello.", 2, adapter=AdapterRef(name, base)) for name in named]
        answers = await asyncio.gather(*(model.send(one, 120, {}) for one in requests), return_exceptions=True)
        told = [str(answer) for answer in answers[1:]]
        assert all(isinstance(answer, RequestRefused) for answer in answers[1:]), told
        assert not isinstance(answers[0], BaseException), answers[0]
    for words, told_of_it in zip(
        ("narrow.gguf", "made for qwen2", "not a GGUF file", "no LoRA adapter", "cannot be read"), told, strict=True
    ):
        assert words in told_of_it


def damaged(file: Path, copy: Path) -> Path:
    """A whole GGUF file in which a tensor that the architecture needs has another name."""
    copy.write_bytes(file.read_bytes().replace(b"blk.7.ffn_up.weight", b"blk.7.ffn_xp.weight", 1))
    return copy


async def test_a_file_that_llama_cpp_does_not_take_is_one_clear_error(smollm2: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not take"):
        await EmbeddedModel.open(damaged(smollm2, tmp_path / "strange.gguf"))


async def test_the_same_weights_in_another_type_are_the_same_base(smollm2: Path, tmp_path: Path) -> None:
    copy = store_as("Q8_0", smollm2, tmp_path / "copy.gguf")
    async with EmbeddedModel(copy, settings=ONE_THREAD) as model:
        assert model.base == base_of(smollm2)
        assert (model.header.file_type, model.end_token) == ("Q8_0", 2)
        assert (await model.send(ask("Say hello.", 2), 60, {})).usage
    assert sorted(os.listdir(tmp_path)) == [".copy.gguf.seen", "copy.gguf"]


LEAVES = """
import asyncio, os, sys, threading
from pathlib import Path
from whet.core import ModelRequest, Sampling, user
from whet.models.embedded import EmbeddedModel, EmbeddedSettings

async def use():
    async with EmbeddedModel(Path(sys.argv[1]), settings=EmbeddedSettings(threads=2)) as model:
        for _ in range(2):
            asked = [ModelRequest((user(f"{n} " * 80),), sampling=Sampling(2, 0.0)) for n in range(3)]
            await asyncio.gather(*(model.send(one, 120, {}) for one in asked))

def left():
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")), threading.active_count()

counts = []
for _ in range(3):
    asyncio.run(use())
    for _ in range(100):
        if left()[0] <= 2:
            break
        threading.Event().wait(0.02)
    counts.append(left())
print(counts, "OMP_WAIT_POLICY" in os.environ)
"""


async def test_closing_leaves_no_thread_and_no_file_open_and_nothing_is_logged(smollm2: Path) -> None:
    """llama.cpp's own log has one thread a process, which sleeps; it is there from the first start on."""
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", LEAVES, str(smollm2)],
        capture_output=True,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    counts, said = ran.stdout.rsplit(" ", 1)
    found = json.loads(counts.replace("(", "[").replace(")", "]"))
    assert found[0] == found[1] == found[2]
    threads, _, of_python = found[0]
    assert (threads, of_python) == (2, 1)
    assert said.strip() == "False", "the process's own environment is as it was"


async def test_a_stream_says_the_same_as_it_arrives_and_leaving_it_frees_its_place(model: EmbeddedModel) -> None:
    request = ask("What is the capital of France?", 24)
    whole = await model.send(request, 120, {})
    pieces = [piece async for piece in model.stream(request)]
    assert len(pieces) > 5
    assert "".join(piece for piece in pieces[:-1] if isinstance(piece, str)) == whole.text
    last = pieces[-1]
    assert not isinstance(last, str)
    assert (last.text, last.finish) == (whole.text, whole.finish)
    assert last.usage is not None
    assert whole.usage is not None
    assert last.usage.output_tokens == whole.usage.output_tokens
    for _ in range(model.shape.slots + 2):
        stream = model.stream(ask("Count to a thousand.", 2000))
        await anext(stream)
        await stream.aclose()
    assert (await model.send(request, 120, {})).text == whole.text
