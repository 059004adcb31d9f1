"""The generators of the package reasoning_gym: endless tasks by seed, judged by the generators' own scorers.

Some of these scorers evaluate the answer as Python to read it, so every answer is scored in the sandbox.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import msgspec

from whet.core import ConfigError, InputError, Json, Split, Task, Verdict
from whet.project import nearest
from whet.sandbox import Host, Limits, PoolOnDemand, Template, WorkerLost
from whet.worlds.games.seeds import SeedSettings, seeds
from whet.worlds.marking import world
from whet.worlds.reasoning_gym_host import Asked, Scored
from whet.worlds.splits import Listed
from whet.worlds.text import as_text, final_answer, shorten

_REFUSED = {
    "codeio": "the same seed gives another task each time",
    "composite": "name the generators themselves",
    "game_of_life_halting": "its scorer passes any words",
}
_NO_KNOWN_GOOD = ("boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour")
"""Their entries hold no answer that their own scorer passes."""

_DRAWN = (Split.TEST, Split.CONFIRM, Split.SELECTION, Split.TRAIN)
"""The order in which splits get their tasks: a question is in the first that drew it."""

_MISSES = 200
"""Seeds in a row that may give no new question."""

_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_INSTRUCTIONS = "Give your final answer alone between <answer> and </answer>."

_HOST = Host("whet.worlds.reasoning_gym_host:ScoringHost")
_LIMITS = Limits(seconds=20.0, memory=1 << 30)


class ReasoningGymSettings(SeedSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which generators, and how many tasks; `first` draws all of them anew."""

    generators: tuple[str, ...] = ("chain_sum", "leg_counting", "simple_equations", "word_sorting")
    """The generators that take turns, by the names that reasoning_gym gives them."""
    config: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict[str, dict[str, Any]])
    """Settings of a generator, by its name: `{chain_sum = {min_terms = 3}}`."""
    pass_mark: float = 1.0
    """Passed at this score or more."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.generators:
            raise ValueError("generators must name at least one")
        if not 0 < self.pass_mark <= 1:
            raise ValueError("pass_mark is above 0 and at most 1")


@world("reasoning_gym")
class ReasoningGym:
    """The 100 and more generators of the package reasoning_gym, with its own scorers."""

    hidden = ("answer",)

    def __init__(self, settings: ReasoningGymSettings) -> None:
        self._settings = settings
        self._package = _package()
        self._check_names()
        self._read = [Path(cast("str", self._package.__file__)).parents[1]]
        self._sandbox = PoolOnDemand()
        self._loading = asyncio.Lock()
        self._template: Template | None = None

    @property
    def content(self) -> Json:
        settings = self._settings
        return ["reasoning_gym 1", version("reasoning-gym"), cast("Json", settings.config), settings.pass_mark]

    def tasks(self) -> Iterator[Listed]:
        known: set[str] = set()
        for split in _DRAWN:
            wanted = len(seeds(self._settings, split))
            seed = seeds(self._settings, split).start
            for number in range(wanted):
                listed, seed = self._fresh(split, number, seed, known)
                yield listed

    def brief(self, task: Task) -> str:
        return f"{task.inputs['question']}\n\n{_INSTRUCTIONS}"

    async def judge(self, task: Task, key: dict[str, Json], answer: str) -> Verdict:
        given = _extracted(answer)
        generator, seed = task.inputs["generator"], task.inputs["seed"]
        assert isinstance(generator, str)
        assert isinstance(seed, int)
        asked = Asked(generator, self._settings.config.get(generator, {}), seed, given)
        scored = await self._scored(msgspec.json.encode(asked))
        right = as_text(key["answer"])
        if scored.unreadable:
            return Verdict(False, 0.0, f"unreadable: {shorten(given)!r} ({scored.unreadable})", reference=right)
        soft = min(1.0, max(0.0, scored.score))
        passed = soft >= self._settings.pass_mark
        return Verdict(passed, soft, "" if passed else f"wrong answer: {shorten(given)!r}", reference=right)

    def known_good(self, task: Task, key: dict[str, Json]) -> str | None:
        answer = key["answer"]
        if not isinstance(answer, str) or task.inputs["generator"] in _NO_KNOWN_GOOD:
            return None
        return f"<answer>{answer}</answer>"

    async def aclose(self) -> None:
        self._template = None
        await self._sandbox.aclose()

    async def _scored(self, request: bytes) -> Scored:
        """In a fork of its own. The generator reads its own answers, so what ends the fork is the agent's answer."""
        worker = await (await self._loaded()).fork(limits=_LIMITS)
        try:
            return msgspec.json.decode(await worker.ask(request), type=Scored)
        except WorkerLost as lost:
            return Scored(unreadable=lost.kind.value)
        finally:
            await worker.close()

    async def _loaded(self) -> Template:
        async with self._loading:
            if self._template is None:
                self._template = await (await self._sandbox.pool()).template(_HOST, read=self._read)
            return self._template

    def _fresh(self, split: Split, number: int, seed: int, known: set[str]) -> tuple[Listed, int]:
        """The next task of a split whose question is in no split yet, and the seed to go on with."""
        generator = self._settings.generators[number % len(self._settings.generators)]
        for tried in range(seed, seed + _MISSES):
            entry = self._drawn(generator, tried)
            question = str(entry["question"])
            if question not in known:
                known.add(question)
                inputs: dict[str, Json] = {"generator": generator, "seed": tried, "question": question}
                key: dict[str, Json] = {"answer": cast("Json", entry["answer"])}
                return Listed(inputs, f"{generator}-{tried}", split, generator, key), tried + 1
        hint = "Ask for fewer tasks, or set world.config so that there are more to draw from"
        raise InputError(f"world reasoning_gym: {generator} has no more new questions for {split}", hint=hint)

    def _drawn(self, generator: str, seed: int) -> dict[str, Any]:
        config = self._settings.config.get(generator, {})
        try:
            return self._package.create_dataset(generator, seed=seed, size=1, **config)[0]
        except (TypeError, ValueError, AssertionError) as error:
            raise ConfigError(f"world.config.{generator}: {error}") from error

    def _check_names(self) -> None:
        names: dict[str, Any] = self._package.factory.DATASETS
        for generator in self._settings.generators:
            if generator not in names:
                raise ConfigError(f"world.generators: there is no '{generator}'", hint=nearest(generator, names))
            if generator in _REFUSED:
                raise ConfigError(f"world.generators: {generator} cannot be used: {_REFUSED[generator]}")
        unused = [name for name in self._settings.config if name not in self._settings.generators]
        if unused:
            raise ConfigError(f"world.config.{unused[0]}: it is not among world.generators")


def _package() -> ModuleType:
    if find_spec("reasoning_gym") is None:
        raise ConfigError("the world reasoning_gym needs its package", hint="pip install 'whet[reasoning-gym]'")
    return import_module("reasoning_gym")


def _extracted(reply: str) -> str:
    tagged = _TAGGED.findall(reply)
    return (tagged[-1] if tagged else final_answer(reply)).strip()
