"""inspect_ai: a task of one `generate()` and a `match()`, its log written as it is by default."""

from __future__ import annotations

from collections.abc import Sequence

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate, system_message
from measuring import KEY, MODEL, SYSTEM_PROMPT, Asked, Question, read_arguments, report


def evaluate(asked: Asked, questions: Sequence[Question]) -> int:
    task = Task(
        name="next_number",
        dataset=[Sample(input=question.text, target=question.answer) for question in questions],
        solver=[system_message(SYSTEM_PROMPT), generate()],
        scorer=match(),
    )
    [log] = eval(
        task,
        model=f"openai-api/mock/{MODEL}",
        model_base_url=asked.base_url,
        model_args={"api_key": KEY},
        max_connections=asked.in_flight,
        log_dir=str(asked.folder),
        display="none",
    )
    if log.status != "success" or log.results is None:
        raise SystemExit(f"the evaluation ended as {log.status!r}: {log.error}")
    return round(log.results.scores[0].metrics["accuracy"].value * len(questions))


def main() -> None:
    asked = read_arguments()
    report(
        asked,
        name="inspect_ai",
        distribution="inspect_ai",
        evaluate=lambda questions: evaluate(asked, questions),
    )


if __name__ == "__main__":
    main()
