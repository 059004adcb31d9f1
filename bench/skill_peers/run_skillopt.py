"""SkillOpt as its guide says: ReflACTTrainer with an EnvAdapter that plays tasks by the trainer's own model client.

All settings are those of its documented default configuration. The package on PyPI comes without the prompt files
that it reads, so `skill.py` puts the ones of `skillopt_prompts/` in their place: they ask for the JSON that the trainer
reads.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from running import KEY, OPTIMIZER, STUDENT, Asked, Trained, read_arguments, report
from skillopt.datasets.base import SplitDataLoader
from skillopt.engine.trainer import ReflACTTrainer
from skillopt.envs.base import EnvAdapter
from skillopt.model import chat_target

DEFAULTS: dict[str, Any] = {
    "batch_size": 40,
    "accumulation": 1,
    "train_size": 0,
    "minibatch_size": 8,
    "merge_batch_size": 8,
    "analyst_workers": 16,
    "max_analyst_rounds": 3,
    "failure_only": False,
    "edit_budget": 4,
    "min_edit_budget": 2,
    "lr_scheduler": "cosine",
    "lr_control_mode": "fixed",
    "skill_update_mode": "patch",
    "use_slow_update": True,
    "slow_update_samples": 20,
    "longitudinal_pair_policy": "mixed",
    "use_meta_skill": True,
    "use_gate": True,
    "sel_env_num": 0,
    "test_env_num": 0,
    "eval_test": True,
}
MOST_EPOCHS = 4
WORKERS = 24
OVERSHOOT = 1.05


class SimulatedEnv(EnvAdapter):
    """One question, one answer, compared with the code that the task wants."""

    def __init__(self, tasks: Path, seed: int) -> None:
        self.dataloader = SplitDataLoader(split_dir=str(tasks), split_mode="split_dir", seed=seed)
        self.analyst_workers = DEFAULTS["analyst_workers"]
        self.failure_only = DEFAULTS["failure_only"]
        self.minibatch_size = DEFAULTS["minibatch_size"]
        self.edit_budget = DEFAULTS["edit_budget"]

    def setup(self, cfg: dict[str, Any]) -> None:
        super().setup(cfg)
        self.dataloader.setup(cfg)

    def get_dataloader(self) -> SplitDataLoader:
        return self.dataloader

    def build_env_from_batch(self, batch: Any, **kwargs: Any) -> list[dict[str, Any]]:
        return list(batch.payload or [])

    def build_train_env(self, batch_size: int, seed: int, **kwargs: Any) -> list[dict[str, Any]]:
        return self.build_env_from_batch(self.dataloader.build_train_batch(batch_size, seed, **kwargs))

    def build_eval_env(self, env_num: int, split: str, seed: int, **kwargs: Any) -> list[dict[str, Any]]:
        return self.build_env_from_batch(self.dataloader.build_eval_batch(env_num, split, seed, **kwargs))

    def rollout(
        self, env_manager: list[dict[str, Any]], skill_content: str, out_dir: str, **kwargs: Any
    ) -> list[dict[str, Any]]:
        predictions = Path(out_dir) / "predictions"
        with ThreadPoolExecutor(WORKERS) as workers:
            return list(workers.map(lambda item: play(item, skill_content, predictions), env_manager))

    def get_task_types(self) -> list[str]:
        return sorted({item["task_type"] for item in self.dataloader.train_items})


def play(item: dict[str, Any], skill: str, predictions: Path) -> dict[str, Any]:
    said, _ = chat_target(system=skill, user=item["question"], stage="rollout")
    right = said == f"code of {item['task_type']}"
    feedback = "" if right else f"wrong: {item['task_type']} tasks want their code"
    conversation = [{"role": "agent", "content": said}, {"role": "system", "content": feedback or "right"}]
    folder = predictions / item["id"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "conversation.json").write_text(json.dumps(conversation))
    return {
        "id": item["id"],
        "hard": int(right),
        "soft": float(right),
        "predicted_answer": said,
        "task_description": item["question"],
        "task_type": item["task_type"],
        "fail_reason": feedback,
        "n_turns": 1,
    }


def epochs_within(asked: Asked) -> int:
    """The trainer has no cap on calls: as many of its epochs as fit, at most those of its defaults.

    Reckoned at their worst, they may go over the budget by as much as one iteration of GEPA does.
    """
    train, selection = len(asked.items("train")), len(asked.items("val"))
    batch, minibatch = DEFAULTS["batch_size"], DEFAULTS["minibatch_size"]
    steps = -(-train // batch)
    analysts = -(-batch // minibatch) + 1
    merges_and_rank = 4
    epoch = steps * (batch + analysts + merges_and_rank + selection)
    slow = 2 * DEFAULTS["slow_update_samples"] + 2 + (selection if asked.gate_slow_update else 0)
    fit = (round(OVERSHOOT * asked.budget) - 2 * selection + slow) // (epoch + slow)
    return max(1, min(MOST_EPOCHS, fit))


def configuration(asked: Asked, out: Path) -> dict[str, Any]:
    endpoint = {
        "azure_openai_endpoint": asked.base_url,
        "azure_openai_api_key": KEY,
        "azure_openai_auth_mode": "openai_compatible",
        "optimizer_backend": "openai_chat",
        "target_backend": "openai_chat",
        "optimizer_model": OPTIMIZER,
        "target_model": STUDENT,
    }
    run = {"skill_init": str(asked.skill), "out_root": str(out), "env": "simulated", "seed": asked.seed}
    slow = {"slow_update_gate_with_selection": asked.gate_slow_update}
    return {**DEFAULTS, **endpoint, **run, **slow, "num_epochs": epochs_within(asked)}


def bests(out: Path, start: str, shipped: str) -> list[str]:
    history = json.loads((out / "history.json").read_text())
    accepted = [step["step"] for step in history if step["action"] == "accept_new_best"]
    found = [(out / "steps" / f"step_{step:04d}" / "candidate_skill.md").read_text() for step in accepted]
    return [start, *found, shipped]


def main() -> None:
    asked = read_arguments()
    out = asked.folder / "out"
    cfg = configuration(asked, out)
    trainer = ReflACTTrainer(cfg, SimulatedEnv(asked.tasks, asked.seed))
    with (asked.folder / "log.txt").open("w") as log, redirect_stdout(log):
        began = time.perf_counter()
        summary = trainer.train()
        seconds = time.perf_counter() - began
    shipped = (out / "best_skill.md").read_text()
    settings = (
        f"ReflACTTrainer with its default configuration: {cfg['num_epochs']} epochs (4, or as many as fit the budget), "
        f"batches of 40, minibatches of 8, 4 to 2 edits a step (cosine), slow update "
        f"({'gated' if asked.gate_slow_update else 'put in ungated'}) and meta skill on, gate on; "
        f"{WORKERS} rollouts and 16 analysts at once; its test rollouts on, not counted as training"
    )
    more = {"steps": summary["total_steps"], "accepted": summary["total_accepts"]}
    report(Trained(shipped, bests(out, asked.skill.read_text(), shipped), seconds, settings, more), "skillopt")


if __name__ == "__main__":
    main()
