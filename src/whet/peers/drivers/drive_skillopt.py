"""SkillOpt by its ReflACTTrainer in its documented default configuration, with an environment that has whet play."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import skillopt
from asking import Asked, ship
from skillopt.datasets.base import SplitDataLoader
from skillopt.engine.trainer import ReflACTTrainer
from skillopt.envs.base import EnvAdapter

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
    "eval_test": False,
}
MOST_EPOCHS = 4


class PlayedByWhet(EnvAdapter):
    def __init__(self, asked: Asked, tasks: Path) -> None:
        self.asked = asked
        self.dataloader = SplitDataLoader(split_dir=str(tasks), split_mode="split_dir", seed=asked.seed)
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
        played = self.asked.play(skill_content, [item["id"] for item in env_manager])
        return [
            kept(item, one, Path(out_dir) / "predictions" / str(number))
            for number, (item, one) in enumerate(zip(env_manager, played, strict=True))
        ]

    def get_task_types(self) -> list[str]:
        return sorted({item["task_type"] for item in self.dataloader.train_items})


def kept(item: dict[str, Any], played: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A play in the form that the trainer's analysts read."""
    said = [{"role": one["role"], "content": one["content"]} for one in played["conversation"]]
    folder = folder.with_name(item["id"].replace("/", "_"))
    folder.mkdir(parents=True, exist_ok=True)
    verdict = {"role": "system", "content": played["feedback"] or "right"}
    (folder / "conversation.json").write_text(json.dumps([*said, verdict]))
    return {
        "id": item["id"],
        "hard": played["hard"],
        "soft": played["soft"],
        "predicted_answer": played["answer"],
        "task_description": item["question"],
        "task_type": item["task_type"],
        "fail_reason": played["feedback"],
        "n_turns": 1,
    }


def epochs_within(asked: Asked) -> int:
    """The trainer has no cap on calls: as many of its epochs as fit, reckoned at their worst."""
    train, selection = len(asked.train), len(asked.selection)
    batch, minibatch = min(DEFAULTS["batch_size"], train), DEFAULTS["minibatch_size"]
    analysts, merges_and_rank = -(-batch // minibatch) + 1, 4
    epoch = -(-train // batch) * (batch + analysts + merges_and_rank + selection)
    slow = 2 * DEFAULTS["slow_update_samples"] + 2
    return max(1, min(MOST_EPOCHS, (asked.budget - 2 * selection + slow) // (epoch + slow)))


def require_prompts() -> None:
    if not list((Path(skillopt.__file__).parent / "prompts").glob("*.md")):
        sys.exit("this skillopt has no prompt files (the package on PyPI lacks them): install it from its repository")


def write_tasks(asked: Asked, folder: Path) -> Path:
    for split, items in (("train", asked.train), ("val", asked.selection), ("test", [])):
        (folder / split).mkdir(parents=True, exist_ok=True)
        (folder / split / "items.json").write_text(json.dumps(items))
    return folder


def main() -> None:
    asked = Asked()
    require_prompts()
    start = asked.folder / "start.md"
    start.write_text(asked.skill)
    epochs = epochs_within(asked)
    endpoint = {
        "azure_openai_endpoint": f"{asked.url}/v1",
        "azure_openai_api_key": "none",
        "azure_openai_auth_mode": "openai_compatible",
        "optimizer_backend": "openai_chat",
        "target_backend": "openai_chat",
        "optimizer_model": "optimizer",
        "target_model": "target",
    }
    run = {"skill_init": str(start), "out_root": str(asked.folder / "out"), "env": "whet", "seed": asked.seed}
    trainer = ReflACTTrainer(
        {**DEFAULTS, **endpoint, **run, "num_epochs": epochs},
        PlayedByWhet(asked, write_tasks(asked, asked.folder / "tasks")),
    )
    with (asked.folder / "log.txt").open("w") as log, redirect_stdout(log):
        trainer.train()
    shipped = (asked.folder / "out" / "best_skill.md").read_text()
    ship(shipped, "skillopt", f"ReflACTTrainer with its documented defaults, {epochs} epochs to fit the budget")


if __name__ == "__main__":
    main()
