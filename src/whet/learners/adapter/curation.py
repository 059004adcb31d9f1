"""Which tries are learned from. Pure: the same tries in any order give the same picks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from whet.core import InputError, Split, Trajectory, content_key
from whet.learners.adapter.settings import AdapterSettings, Pick


class CurationReport(msgspec.Struct, frozen=True):
    tries: int
    """Scored ones; the rest says nothing about the agent."""
    unscored: int
    duplicates: int
    diversity: float
    """Distinct answers / answers, of all scored tries: where it is low, learning from oneself stalls."""
    mean_soft: float
    """Of all scored tries; an invalid answer is one with 0."""
    tasks: int
    picked: int
    picked_tasks: int
    picked_mean_soft: float
    by_source: dict[str, int]
    """Picked tries by the policy that played them."""


class Curated(msgspec.Struct, frozen=True):
    picked: tuple[Trajectory, ...]
    """By task, the best first."""
    report: CurationReport


def curate(tries: Sequence[Trajectory], settings: AdapterSettings) -> Curated:
    _require_train(tries)
    scored = sorted((each for each in tries if _is_scored(each)), key=_place)
    distinct = _once(scored)
    picked = _evenly(_picked(distinct, settings), settings)
    answers = Counter(each.answer for each in scored)
    report = CurationReport(
        tries=len(scored),
        unscored=len(tries) - len(scored),
        duplicates=len(scored) - len(distinct),
        diversity=len(answers) / max(1, len(scored)),
        mean_soft=_mean(scored),
        tasks=len({each.task for each in scored}),
        picked=len(picked),
        picked_tasks=len({each.task for each in picked}),
        picked_mean_soft=_mean(picked),
        by_source=dict(sorted(Counter(each.policy for each in picked).items())),
    )
    return Curated(tuple(picked), report)


def _require_train(tries: Iterable[Trajectory]) -> None:
    for each in tries:
        if each.split is not Split.TRAIN:
            raise InputError(
                f"task {each.task} is of the {each.split.value} split, which is never learned from",
                hint="Only train tasks may be played for learning",
            )


def _is_scored(each: Trajectory) -> bool:
    return each.failure is None and each.verdict is not None and each.verdict.scored


def _place(each: Trajectory) -> tuple[str, float, int, str, str]:
    """By task, the best first; whatever else decides does not depend on when it was played."""
    return each.task, -each.soft, each.sample, each.policy, each.answer


def _once(ordered: Iterable[Trajectory]) -> list[Trajectory]:
    """Tries in which exactly the same was said teach the same thing; the first of them stays."""
    found: dict[bytes, Trajectory] = {}
    for each in ordered:
        said = [(message.speaker.value, message.text, len(message.tool_calls)) for message in each.messages]
        calls = [(call.name, call.arguments) for message in each.messages for call in message.tool_calls]
        found.setdefault(content_key("said", said, calls), each)
    return list(found.values())


def _picked(distinct: Sequence[Trajectory], settings: AdapterSettings) -> list[Trajectory]:
    """In the order in which they came: by task, the best first."""
    if settings.conditioned:
        # What is not good is learned as what it is.
        return list(distinct)
    good = [each for each in distinct if each.soft >= settings.min_soft]
    match settings.pick:
        case Pick.THRESHOLD:
            return good
        case Pick.BEST_OF:
            best: dict[str, float] = {}
            for each in good:
                best.setdefault(each.task, each.soft)
            return [each for each in good if each.soft == best[each.task]]
        case Pick.TOP:
            count = round(settings.top_share * len(distinct))
            top = sorted(good, key=lambda each: (-each.soft, *_place(each)))[:count]
            return sorted(top, key=_place)


def _evenly(picked: Sequence[Trajectory], settings: AdapterSettings) -> list[Trajectory]:
    """At most so many a task; balanced, no task has more than its even share of what is left."""
    capped = _at_most(picked, settings.per_task)
    if settings.balance and capped:
        capped = _at_most(capped, -(-len(capped) // len({each.task for each in capped})))
    return capped


def _at_most(picked: Iterable[Trajectory], most: int) -> list[Trajectory]:
    taken: Counter[str] = Counter()
    kept: list[Trajectory] = []
    for each in picked:
        if taken[each.task] < most:
            taken[each.task] += 1
            kept.append(each)
    return kept


def _mean(tries: Sequence[Trajectory]) -> float:
    return sum(each.soft for each in tries) / max(1, len(tries))
