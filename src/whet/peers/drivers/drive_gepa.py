"""GEPA by `gepa.optimize` with its defaults: an adapter that has whet play, a reflection model that whet asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gepa
from asking import Asked, ship
from gepa.core.adapter import EvaluationBatch

COMPONENT = "skill"


class PlayedByWhet:
    """What GEPA calls an adapter: scores of a batch, and what its reflection is shown of it."""

    propose_new_texts = None

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def evaluate(self, batch: list[Any], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        played = self.asked.play(candidate[COMPONENT], [one["id"] for one in batch])
        scores = [float(one["soft"]) for one in played]
        return EvaluationBatch(played, scores, played if capture_traces else None)

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        shown = [
            {
                "Inputs": "\n".join(said["content"] for said in one["conversation"] if said["role"] == "user"),
                "Generated Outputs": one["answer"],
                "Feedback": feedback(one),
            }
            for one in eval_batch.trajectories
        ]
        return dict.fromkeys(components_to_update, shown)


class Silent:
    def log(self, message: str) -> None:
        pass


def feedback(played: dict[str, Any]) -> str:
    outcome = "This is right." if played["hard"] else "This is not right."
    right = f" The right answer is: {played['reference']}" if played["reference"] else ""
    return f"{outcome} {played['feedback']}{right}".strip()


def main() -> None:
    asked = Asked()

    def reflect(prompt: Any) -> str:
        return asked.ask([{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt))

    found = gepa.optimize(
        # An empty text is not a candidate for GEPA.
        seed_candidate={COMPONENT: asked.skill.strip() or "Do the task."},
        trainset=asked.train,
        valset=asked.selection,
        adapter=PlayedByWhet(asked),
        reflection_lm=reflect,
        stop_callbacks=lambda state: asked.spent() >= asked.budget,
        logger=Silent(),
        seed=asked.seed,
    )
    ship(found.best_candidate[COMPONENT], "gepa", "gepa.optimize with its defaults, stopped at the budget")


if __name__ == "__main__":
    main()
