"""What the drivers share: what they were asked, and the way to whet. A peer's Python has no more than the library."""

from __future__ import annotations

import json
import sys
import urllib.request
from importlib.metadata import version
from pathlib import Path
from typing import Any


class Asked:
    """The question, from the file that the command line names."""

    def __init__(self) -> None:
        told = json.loads(Path(sys.argv[1]).read_text())
        self.url: str = told["url"]
        self.skill: str = told["skill"]
        self.seed: int = told["seed"]
        self.budget: int = told["budget"]
        self.folder = Path(told["folder"])
        self.train: list[dict[str, Any]] = told["tasks"]["train"]
        self.selection: list[dict[str, Any]] = told["tasks"]["selection"]

    def play(self, skill: str, tasks: list[str]) -> list[dict[str, Any]]:
        return self._post("/play", {"skill": skill, "tasks": tasks})

    def ask(self, messages: list[dict[str, str]]) -> str:
        reply = self._post("/v1/chat/completions", {"messages": messages})
        return reply["choices"][0]["message"]["content"]

    def spent(self) -> int:
        """Calls so far, plays and questions together."""
        with urllib.request.urlopen(f"{self.url}/spent") as response:
            return json.load(response)["calls"]

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request) as response:
            return json.load(response)


def ship(skill: str, distribution: str, settings: str) -> None:
    said = {"skill": skill, "version": version(distribution), "settings": settings}
    sys.stdout.write("\n" + json.dumps(said) + "\n")
