"""dspy: `Evaluate` over a `Predict` with an exact match, caches off, its history kept as it is by default."""

from __future__ import annotations

from collections.abc import Sequence

import dspy
from measuring import KEY, MODEL, SYSTEM_PROMPT, Asked, Question, read_arguments, report


def right(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> bool:
    return example.answer == prediction.answer


def evaluate(asked: Asked, program: dspy.Module, questions: Sequence[Question]) -> int:
    examples = [dspy.Example(question=each.text, answer=each.answer).with_inputs("question") for each in questions]
    outcome = dspy.Evaluate(devset=examples, metric=right, num_threads=asked.in_flight)(program)
    return sum(score for _, _, score in outcome.results)


def main() -> None:
    asked = read_arguments()
    dspy.configure(lm=dspy.LM(f"openai/{MODEL}", api_base=asked.base_url, api_key=KEY, cache=False))
    program = dspy.Predict(dspy.Signature("question -> answer", SYSTEM_PROMPT))
    report(asked, name="dspy", distribution="dspy", evaluate=lambda questions: evaluate(asked, program, questions))


if __name__ == "__main__":
    main()
