"""gepa: `DefaultAdapter.evaluate` over a batch, with the traces that its reflection reads."""

from __future__ import annotations

from collections.abc import Sequence

from gepa.adapters.default_adapter.default_adapter import DefaultAdapter
from measuring import KEY, MODEL, SYSTEM_PROMPT, Question, read_arguments, report


def evaluate(adapter: DefaultAdapter, questions: Sequence[Question]) -> int:
    batch = [{"input": each.text, "answer": each.answer, "additional_context": {}} for each in questions]
    played = adapter.evaluate(batch, {"system_prompt": SYSTEM_PROMPT}, capture_traces=True)
    return sum(score == 1.0 for score in played.scores)


def main() -> None:
    asked = read_arguments()
    adapter = DefaultAdapter(
        model=f"openai/{MODEL}",
        max_litellm_workers=asked.in_flight,
        litellm_batch_completion_kwargs={"api_base": asked.base_url, "api_key": KEY},
    )
    report(asked, name="gepa", distribution="gepa", evaluate=lambda questions: evaluate(adapter, questions))


if __name__ == "__main__":
    main()
