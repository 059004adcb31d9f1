"""GEPA as its README says: `gepa.optimize` on a system prompt, with the DefaultAdapter and LiteLLM.

All settings are its defaults but for what names the endpoint, and the stop: the reflections that `max_metric_calls`
does not count are counted here, so that the budget means the same calls for all.
"""

from __future__ import annotations

import time
from typing import Any

import gepa
import litellm  # noqa: F401 - loaded here, since gepa loads it within the first call
from gepa.adapters.default_adapter.default_adapter import DefaultAdapter
from gepa.lm import LM
from running import KEY, OPTIMIZER, STUDENT, Trained, read_arguments, report

COMPONENT = "system_prompt"


class Reflections:
    """The reflection model, counting."""

    def __init__(self, model: LM) -> None:
        self.model = model
        self.made = 0

    def __call__(self, prompt: Any) -> str:
        self.made += 1
        return self.model(prompt)


class Silent:
    def log(self, message: str) -> None:
        pass


def data(items: list[dict[str, Any]]) -> list[Any]:
    return [
        {"input": one["question"], "answer": f"code of {one['task_type']}", "additional_context": {}} for one in items
    ]


def main() -> None:
    asked = read_arguments()
    reach = {"api_base": asked.base_url, "api_key": KEY}
    reflections = Reflections(LM(f"openai/{OPTIMIZER}", **reach))
    adapter = DefaultAdapter(model=f"openai/{STUDENT}", litellm_batch_completion_kwargs=reach)
    began = time.perf_counter()
    found = gepa.optimize(
        seed_candidate={COMPONENT: asked.skill.read_text().strip()},
        trainset=data(asked.items("train")),
        valset=data(asked.items("val")),
        adapter=adapter,
        reflection_lm=reflections,
        stop_callbacks=lambda state: state.total_num_evals + reflections.made >= asked.budget,
        logger=Silent(),
        seed=asked.seed,
    )
    seconds = time.perf_counter() - began
    scores = found.val_aggregate_scores
    bests = [found.candidates[n][COMPONENT] for n in range(len(scores)) if scores[n] > max(scores[:n], default=-1.0)]
    settings = (
        "gepa.optimize, DefaultAdapter, LiteLLM; defaults: Pareto selection, minibatches of 3, full evaluation of what "
        "improves on its minibatch, no merge, 10 calls at once; stopped at the budget"
    )
    more = {"steps": found.num_candidates - 1}
    report(Trained(found.best_candidate[COMPONENT], bests, seconds, settings, more), "gepa")


if __name__ == "__main__":
    main()
