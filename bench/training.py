"""How fast LoRA weights are learned: whet's trainer in its ways, beside transformers and PEFT in the same torch.

The base is SmolLM2-135M as pulled; rank 16 on all linear layers. Tokens are drawn by seed, for what they say does not
change how long they take. `short`: 20 tokens of prompt and 10 of answer, nothing in common. `skill`: the same behind a
prompt of 200 tokens that all examples share. `peft` pads each batch and passes it through the model as their
documentation has it, in fp32 and by autocast in bf16. Each row is a process of its own; CPU seconds are of that process
with its threads and count what wall time cannot on a machine that others use too. Writes results/training.json and .md;
exit code 1 if a promise is not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import table, write_results
from whet.learners.adapter import AdapterSettings, Example, Precision, TrainingOrder, train_adapter
from whet.models.embedded import original
from whet.project import data_folder

BATCH, PROMPT, ANSWER, SKILL = 16, 20, 10, 200
MOST_RATIO = 1.1
"""CPU seconds a token that whet may take for each that PEFT takes at the same precision; a tenth is noise."""
WAYS: dict[str, dict[str, Any]] = {
    "fp32": {"precision": Precision.FP32},
    "bf16": {"precision": Precision.BF16},
    "auto": {"precision": Precision.AUTO},
    "bf16, rows of 256": {"precision": Precision.BF16, "row_tokens": 256},
    "bf16, rows of 1024": {"precision": Precision.BF16, "row_tokens": 1024},
    "bf16, not packed": {"precision": Precision.BF16, "packing": False},
}


def drawn(count: int, shared: int) -> tuple[Example, ...]:
    chance = random.Random(7)

    def tokens(number: int) -> tuple[int, ...]:
        return tuple(chance.randrange(20, 49000) for _ in range(number))

    head = tokens(shared)
    return tuple(Example((*head, *tokens(PROMPT)), tokens(ANSWER), "bench", f"t{n}", 1.0) for n in range(count))


def whet(base: Path, way: dict[str, Any], examples: tuple[Example, ...], steps: int) -> dict[str, Any]:
    settings = AdapterSettings(**way, steps=steps, held_out=0.1, batch_size=BATCH)
    order = TrainingOrder(str(base), "bench", examples, settings.training, 1)
    with tempfile.TemporaryDirectory(prefix="whet-training-") as name:
        began, cpu = time.perf_counter(), children()
        metrics = asyncio.run(train_adapter(order, Path(name), lambda told: None)).metrics
        wall, cpu = time.perf_counter() - began, children() - cpu
    took = metrics.seconds
    return {
        "precision": metrics.precision,
        "tokens": metrics.tokens,
        "evaluated": metrics.evaluated,
        "tokens_per_s": metrics.tokens / took["train"],
        "evaluated_per_s": metrics.evaluated / took["train"],
        "cpu_s": cpu,
        "wall_s": wall,
        "start_s": wall - sum(took.values()),
        **{f"{stage}_s": took[stage] for stage in ("load", "train", "evaluate", "convert")},
    }


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def by_peft(base: Path, precision: str, examples: tuple[Example, ...], steps: int) -> dict[str, Any]:
    """In a process of its own, like whet's."""
    began, cpu = time.perf_counter(), children()
    told = json.dumps([str(base), precision, [(each.prompt, each.completion) for each in examples], steps, BATCH])
    environment = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ}
    done = subprocess.run(
        [sys.executable, __file__, "--peft"], input=told, capture_output=True, text=True, check=True, env=environment
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    found |= {"cpu_s": children() - cpu, "wall_s": time.perf_counter() - began}
    return found


def peft_process() -> None:
    import torch
    from peft import LoraConfig, get_peft_model

    from whet.learners.adapter.base import as_transformers, load_base

    base, precision, examples, steps, size = json.loads(sys.stdin.read())
    began = time.perf_counter()
    config = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM")
    model: Any = get_peft_model(as_transformers(*load_base(Path(base))), config)
    model.train()
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-3)
    loaded, tokens = time.perf_counter(), 0
    for step in range(steps):
        batch = [examples[(step * size + place) % len(examples)] for place in range(size)]
        whole = torch.tensor([(*prompt, *answer) for prompt, answer in batch])
        labels = torch.tensor([(*([-100] * len(prompt)), *answer) for prompt, answer in batch])
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = model(input_ids=whole, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        tokens += whole.numel()
    train = time.perf_counter() - loaded
    rate = tokens / train
    found = {"precision": precision, "tokens": tokens, "evaluated": tokens, "tokens_per_s": rate}
    found |= {"evaluated_per_s": rate, "start_s": 0.0, "load_s": loaded - began, "train_s": train}
    print(json.dumps(found | {"evaluate_s": 0.0, "convert_s": 0.0}))


def train_cpu(row: dict[str, Any]) -> float:
    """CPU milliseconds a token learned from, by the share of wall time that training was."""
    return 1000 * row["cpu_s"] * row["train_s"] / row["wall_s"] / row["tokens"]


def problems(rows: list[dict[str, Any]]) -> list[str]:
    by = {(row["data"], row["way"]): row["cpu_ms_a_token"] for row in rows}
    found: list[str] = []
    for precision in ("fp32", "bf16"):
        for data in ("short", "skill"):
            ours, theirs = by.get((data, precision)), by.get((data, f"peft {precision}"))
            if ours and theirs and ours > MOST_RATIO * theirs:
                found.append(f"{data}, {precision}: {ours / theirs:.2f} times PEFT's CPU time a token")
    return found


def measured(base: Path, steps: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for data, shared in (("short", 0), ("skill", SKILL)):
        examples = drawn(BATCH * 5, shared)
        for way, settings in WAYS.items():
            if data == "short" or way in ("fp32", "bf16", "bf16, not packed"):
                rows.append({"data": data, "way": way, **whet(base, settings, examples, steps)})
        for precision in ("fp32", "bf16"):
            fewer = steps if data == "short" else max(1, steps // 2)
            found = by_peft(base, precision, examples, fewer)
            rows.append({"data": data, "way": f"peft {precision}", **found})
        for row in rows:
            print(json.dumps(row), file=sys.stderr)
    return [{**row, "cpu_ms_a_token": train_cpu(row)} for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, default=None, help="a GGUF file in place of the pulled SmolLM2")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("--peft", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.peft:
        peft_process()
        return 0
    base = asked.base or original("smollm2-135m", data_folder(os.environ))
    if base is None:
        print("There is no model to measure with. whet models pull smollm2-135m", file=sys.stderr)
        return 2
    rows = [
        {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}
        for row in measured(base, asked.steps)
    ]
    wrong = problems(rows)
    shown = [{key: value for key, value in row.items() if key != "precision"} for row in rows]
    text = table(shown)
    print(text)
    where = {} if asked.results is None else {"folder": asked.results}
    write_results("training", rows, text, **where)
    for problem in wrong:
        print(problem, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
