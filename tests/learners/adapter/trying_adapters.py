"""Small tries, small models and small orders to learn from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from whet.core import End, ModelRequest, Split, Trajectory, Verdict, assistant, user
from whet.learners.adapter import AdapterSettings, Example, Precision, TrainingOrder

END = 3
VOCABULARY = 64


class Letters:
    """Tokens that can be read: one a letter. What a request is rendered to is kept."""

    end_token = END

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []

    async def prompt_tokens(self, request: ModelRequest) -> tuple[int, ...]:
        self.asked.append(request)
        if request.plain:
            return letters(request.as_text)
        return letters("".join(f"<{each.speaker.value}>{each.text}" for each in request.messages) + "<assistant>")

    async def tokens(self, text: str) -> tuple[int, ...]:
        return letters(text)


def letters(text: str) -> tuple[int, ...]:
    return tuple(ord(letter) for letter in text)


def spelled(tokens: Sequence[int]) -> str:
    return "".join(chr(token) for token in tokens)


def a_try(
    task: str,
    answer: str,
    soft: float,
    *,
    sample: int = 0,
    split: Split = Split.TRAIN,
    scored: bool = True,
    policy: str = "p",
) -> Trajectory:
    verdict = Verdict(soft >= 0.5, soft, scored=scored)
    said = (user(f"Do {task}."), assistant(answer))
    return Trajectory(policy, task, split, sample, said, answer, End.ANSWERED, verdict)


def some_examples(count: int, seed: int = 0, *, longest: int = 12, shared: int = 6) -> tuple[Example, ...]:
    """Some begin alike, some are alike but for the answer, none has a token that is not one."""
    drawn = random.Random(seed)

    def tokens(most: int) -> tuple[int, ...]:
        return tuple(drawn.randrange(4, VOCABULARY) for _ in range(drawn.randint(1, most)))

    heads = [tokens(shared) for _ in range(2)]
    prompts = [(*drawn.choice(heads), *tokens(longest)) for _ in range(max(1, count * 2 // 3))]
    return tuple(
        Example(drawn.choice(prompts), (*tokens(longest), END), "p", f"t{number % 7}", 1.0) for number in range(count)
    )


def an_order(base: Path, settings: AdapterSettings, examples: Sequence[Example], seed: int = 5) -> TrainingOrder:
    return TrainingOrder(str(base), "tiny", tuple(examples), settings.training, seed)


def quick(**changes: object) -> AdapterSettings:
    asked: dict[str, object] = {
        "rank": 4,
        "alpha": 8,
        "learning_rate": 0.02,
        "epochs": 2,
        "batch_size": 6,
        "row_tokens": 64,
        "precision": Precision.FP32,
        "held_out": 0.2,
    }
    return AdapterSettings(**(asked | changes))  # type: ignore[arg-type]


def tiny_model(path: Path, family: str = "llama", *, layers: int = 2, width: int = 32, seed: int = 1) -> Path:
    """A language model of random weights, as a GGUF file."""
    import gguf
    import numpy

    heads, kv_heads, inner, head = 4, 2, 48, width // 4
    drawn = numpy.random.default_rng(seed)
    writer = gguf.GGUFWriter(str(path), family)
    writer.add_block_count(layers)
    writer.add_context_length(256)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)

    def add(name: str, *shape: int, around: float = 0.0) -> None:
        spread = 0.3 if len(shape) == 2 else 0.1
        writer.add_tensor(name, (around + spread * drawn.standard_normal(shape)).astype(numpy.float32))

    add("token_embd.weight", VOCABULARY, width)
    add("output_norm.weight", width, around=1.0)
    for layer in range(layers):
        at = f"blk.{layer}."
        add(f"{at}attn_norm.weight", width, around=1.0)
        add(f"{at}ffn_norm.weight", width, around=1.0)
        for name, outputs, inputs in (
            ("attn_q", width, width),
            ("attn_k", kv_heads * head, width),
            ("attn_v", kv_heads * head, width),
            ("attn_output", width, width),
            ("ffn_gate", inner, width),
            ("ffn_up", inner, width),
            ("ffn_down", width, inner),
        ):
            add(f"{at}{name}.weight", outputs, inputs)
            if family == "qwen2" and name in ("attn_q", "attn_k", "attn_v"):
                add(f"{at}{name}.bias", outputs)
        if family == "qwen3":
            add(f"{at}attn_q_norm.weight", head, around=1.0)
            add(f"{at}attn_k_norm.weight", head, around=1.0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
