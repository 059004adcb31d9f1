"""What the gate lets through, what it misses and what it costs, by simulation: no model, no clock, every seed fixed.

Tasks have pass rates drawn from Beta(0.8, 0.6); there are 50; a play passes or fails. A useless candidate has the
incumbent's rates; one that is better by 10 points has 0.10 more on every task, 1 at most. A campaign is 20 useless
candidates in a row, the incumbent's plays remembered as a run's store does. Writes results/gate.json and .md; exit
code 1 if a promise of the table is not kept.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from multiprocessing import Pool
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

from machine import table, write_results
from whet.core import Ruling, Split, Task, seed_from
from whet.gate import AlphaLedger, Arm, Ask, Certifier, Claim, Evidence, make_rule

TASKS = 50
CANDIDATES = 20
MAX_PASSES = 6
NAMES = [str(number) for number in range(TASKS)]
SELECTION = (0.8, 0.6)

Rates = list[float]
Plays = dict[tuple[str, int], bool]


class Case(NamedTuple):
    """One row: what is measured, and what it has to be."""

    name: str
    value: float
    least: float = -math.inf
    most: float = math.inf
    error: float = 0.0
    proven: bool = False
    """It holds by construction, and tests enumerate it, so a simulation may be off by its error."""

    @property
    def kept(self) -> bool:
        slack = self.error if self.proven else 0.0
        return self.least <= self.value <= self.most + slack

    def row(self, rule: str, repeats: int) -> dict[str, Any]:
        promised = (
            f">= {self.least:g}" if self.least > -math.inf else f"<= {self.most:g}" if self.most < math.inf else ""
        )
        return {
            "rule": rule,
            "what": self.name,
            "measured": self.value,
            "+-": self.error,
            "promised": promised,
            "repeats": repeats,
        }


def rates_of(random: Random, tasks: int = TASKS) -> Rates:
    return [random.betavariate(*SELECTION) for _ in range(tasks)]


def better(rates: Rates, gain: float) -> Rates:
    return [min(1.0, rate + gain) for rate in rates]


def judge(
    random: Random,
    candidate: Rates,
    incumbent: Rates,
    *,
    rule: str,
    known: Plays | None = None,
    repeatable: bool = False,
    **settings: Any,
) -> tuple[Ruling, int, Plays]:
    """One ruling, the plays that had to be made for it, and the candidate's. `known` are the incumbent's so far.

    A repeatable agent says the same each time: its first play of a task is all its plays.
    """
    evidence, made = Evidence(), 0
    theirs: Plays = {} if known is None else known
    ours: Plays = {}
    machine = make_rule(rule, tasks=NAMES, **settings)
    while isinstance(step := machine.next(evidence), Ask):
        for name, arm, sample in step.plays:
            plays, rates = (ours, candidate) if arm is Arm.CANDIDATE else (theirs, incumbent)
            key = (name, 0 if repeatable else sample)
            if key not in plays:
                plays[key] = random.random() < rates[int(name)]
                made += 1
            evidence.add(name, arm, sample, hard=plays[key], soft=plays[key])
    return step, made, ours


def single(seed: int, *, rule: str, gain: float) -> tuple[bool, float, float]:
    random = Random(seed)
    rates = rates_of(random)
    ruling, made, _ = judge(
        random, better(rates, gain), rates, rule=rule, **({"chunk": TASKS} if rule == "strict" else {})
    )
    return ruling.accepted, made / (2 * TASKS), ruling.gain


def campaign(seed: int, *, rule: str) -> tuple[int, float, float]:
    """How many of the useless were accepted, the gain reported at the end, and passes of both arms a candidate."""
    return strict_campaign(seed) if rule == "strict" else paired_campaign(seed)


def paired_campaign(seed: int) -> tuple[int, float, float]:
    random = Random(seed)
    rates = rates_of(random)
    known: Plays = {}
    accepted, total, reported = 0, 0, 0.0
    for _ in range(CANDIDATES):
        first = accepted * MAX_PASSES
        ruling, made, _ = judge(random, rates, rates, rule="paired", known=known, first_sample=first)
        total += made
        if ruling.accepted:
            accepted, reported, known = accepted + 1, reported + ruling.gain, {}
    return accepted, reported, total / (2 * TASKS * CANDIDATES)


def strict_campaign(seed: int) -> tuple[int, float, float]:
    random = Random(seed)
    rates = rates_of(random)
    known = {(name, 0): random.random() < rates[int(name)] for name in NAMES}
    start = best = sum(known.values()) / TASKS
    accepted, total = 0, TASKS
    for _ in range(CANDIDATES):
        ruling, made, played = judge(random, rates, rates, rule="strict", known=known, best=best, chunk=TASKS)
        total += made
        if ruling.accepted:
            accepted, known = accepted + 1, played
        if ruling.new_best:
            best = ruling.candidate
    return accepted, best - start, total / (2 * TASKS * CANDIDATES)


def curtailed(seed: int, *, gain: float) -> tuple[float, float, float]:
    """Shares of a candidate's plays saved: by the rule, and by a look after each play in one order and in the other."""
    random = Random(seed)
    rates = rates_of(random)
    theirs = {(name, 0): random.random() < rates[int(name)] for name in NAMES}
    ruling, _, _ = judge(random, better(rates, gain), rates, rule="strict", known=theirs)
    ours = {name: random.random() < rate for name, rate in zip(NAMES, better(rates, gain), strict=True)}
    failed_first = sorted(NAMES, key=lambda name: theirs[name, 0])
    passed_first = sorted(NAMES, key=lambda name: not theirs[name, 0])
    spare = TASKS - sum(theirs.values())
    return ruling.saved / TASKS, _saved(failed_first, ours, spare), _saved(passed_first, ours, spare)


def _saved(order: Sequence[str], ours: dict[str, bool], spare: int) -> float:
    """Failures are counted up to `spare`; with one more than it may have, the candidate cannot be better."""
    failures = 0
    for played, name in enumerate(order, 1):
        failures += not ours[name]
        if failures >= spare:
            return (TASKS - played) / TASKS
    return 0.0


def repeatable(seed: int, *, rule: str) -> tuple[bool, float]:
    """An agent that says the same each time, and a useless candidate that has three tasks in ten decided anew."""
    random = Random(seed)
    rates = rates_of(random)
    outcomes = [float(random.random() < rate) for rate in rates]
    anew = [float(random.random() < rate) for rate in rates]
    changed = [new if random.random() < 0.3 else old for new, old in zip(anew, outcomes, strict=True)]
    settings = {"chunk": TASKS} if rule == "strict" else {}
    ruling, _, _ = judge(random, changed, outcomes, rule=rule, repeatable=True, **settings)
    return ruling.accepted, ruling.rollouts / (2 * TASKS)


def trade(seed: int, *, rule: str) -> tuple[bool, float]:
    """A candidate that passes five tasks more often by 0.5, and fails five more often by as much."""
    random = Random(seed)
    rates = [*[0.25] * 5, *[0.75] * 5, *rates_of(random, TASKS - 10)]
    changed = [*[0.75] * 5, *[0.25] * 5, *rates[10:]]
    settings = {"chunk": TASKS} if rule == "strict" else {}
    ruling, made, _ = judge(random, changed, rates, rule=rule, **settings)
    return ruling.accepted, made / (2 * TASKS)


def certify(random: Random, candidate: Rates, incumbent: Rates, alpha: float, **claim: Any) -> tuple[bool, float]:
    tasks = [Task(str(number), Split.CONFIRM, {"number": number}) for number in range(len(incumbent))]
    about = Claim("candidate", "incumbent", "world", "content", "confirm", "", **claim)
    machine, evidence = Certifier(about, tasks, alpha, campaign_alpha=0.05), Evidence()
    while isinstance(step := machine.next(evidence), Ask):
        for name, arm, sample in step.plays:
            rates = candidate if arm is Arm.CANDIDATE else incumbent
            passed = random.random() < rates[int(name)]
            evidence.add(name, arm, sample, hard=passed, soft=passed)
    return step.certificate is not None, step.rollouts / (2 * len(tasks))


def certificates_for_nothing(seed: int) -> tuple[bool]:
    """A campaign of ten attempts on the same tasks, none of them with a gain; it ends with its first certificate."""
    random = Random(seed)
    rates = rates_of(random, 60)
    ledger = AlphaLedger()
    for attempt in range(10):
        ledger, alpha = ledger.open(str(attempt))
        certified, _ = certify(random, rates, rates, alpha, seed=seed, samples=2, first_sample=2 * attempt)
        ledger = ledger.close(str(attempt), certified)
        if certified:
            return (True,)
    return (False,)


def certificate_for(seed: int, *, gain: float, tasks: int) -> tuple[bool, float]:
    random = Random(seed)
    rates = rates_of(random, tasks)
    _, alpha = AlphaLedger().open("first")
    return certify(random, better(rates, gain), rates, alpha, seed=seed)


def columns(pool: Any, play: Callable[..., tuple[Any, ...]], repeats: int, **settings: Any) -> list[list[float]]:
    """Each thing that `play` measures, over all repeats, which differ by their seeds alone."""
    seeds = [seed_from("bench gate", number) for number in range(repeats)]
    rows = pool.map(partial(play, **settings), seeds, chunksize=max(1, repeats // 64))
    return [[float(value) for value in column] for column in zip(*rows, strict=True)]


def case(name: str, values: Iterable[float], *, proven: bool = False, **bound: float) -> Case:
    """A mean, with twice its standard error."""
    numbers = list(values)
    mean = fmean(numbers)
    variance = math.fsum((number - mean) ** 2 for number in numbers) / len(numbers)
    return Case(name, mean, error=2 * math.sqrt(variance / len(numbers)), proven=proven, **bound)


def promise(rule: str, **bound: float) -> dict[str, float]:
    """`strict` promises nothing: it is there to be compared with."""
    return bound if rule == "paired" else {}


def rule_cases(pool: Any, rule: str, repeats: int, campaigns: int) -> tuple[list[Case], list[Case]]:
    """With `repeats` repeats, and with `campaigns`."""
    useless = columns(pool, single, repeats, rule=rule, gain=0.0)
    good = columns(pool, single, repeats, rule=rule, gain=0.1)
    great = columns(pool, single, campaigns, rule=rule, gain=0.3)
    series = columns(pool, campaign, campaigns, rule=rule)
    same = columns(pool, repeatable, campaigns, rule=rule)
    traded = columns(pool, trade, campaigns, rule=rule)
    kept = [gain for accepted, gain in zip(good[0], good[2], strict=True) if accepted]
    singles = [
        case("useless: accepted, against a fresh incumbent", useless[0], proven=True, **promise(rule, most=0.025)),
        case("useless: passes of both arms, nothing remembered", useless[1], **promise(rule, most=2.0)),
        case("10 points better: accepted", good[0], **promise(rule, least=0.70)),
        case("10 points better: passes of both arms, nothing remembered", good[1], **promise(rule, most=6.0)),
        case("10 points better: gain reported if accepted", kept),
    ]
    many = [
        case("20 useless: accepted, each", (number / CANDIDATES for number in series[0]), **promise(rule, most=0.025)),
        case("20 useless: at least one accepted", (number > 0 for number in series[0]), **promise(rule, most=0.40)),
        case("20 useless: gain reported that is not there", series[1], **promise(rule, most=0.015)),
        case("20 useless: passes of both arms, each", series[2], **promise(rule, most=2.0)),
        case("30 points better: accepted", great[0]),
        case("30 points better: passes of both arms", great[1]),
        case("useless, an agent that repeats itself: accepted", same[0], **promise(rule, most=0.025)),
        case("useless, an agent that repeats itself: passes", same[1]),
        case("better on 5 tasks, worse on 5: accepted", traded[0], **promise(rule, most=0.025)),
    ]
    return singles, many


def curtailed_cases(pool: Any, repeats: int) -> list[Case]:
    cases: list[Case] = []
    for name, gain in (("useless", 0.0), ("10 points better", 0.1)):
        saved, failed_first, passed_first = columns(pool, curtailed, repeats, gain=gain)
        cases += [
            case(f"{name}: share of the candidate's plays saved", saved),
            case(f"{name}: the same with a look after each play", failed_first),
            case(f"{name}: and with tasks that the incumbent passes first", passed_first),
        ]
    return cases


def certificate_powers(pool: Any, repeats: int) -> list[Case]:
    cases: list[Case] = []
    for tasks in (50, 100, 200):
        for gain in (0.1, 0.2):
            found = columns(pool, certificate_for, repeats, gain=gain, tasks=tasks)
            name = f"{100 * gain:.0f} points better, {tasks} tasks"
            cases += [case(f"{name}: certified", found[0]), case(f"{name}: passes of both arms", found[1])]
    return cases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--repeats", type=int, default=20_000, help="of single comparisons; campaigns take 2,000 or more"
    )
    parser.add_argument(
        "--quick", action="store_true", help="200 repeats: shows that it works; promises are not checked"
    )
    options = parser.parse_args()
    repeats = 200 if options.quick else options.repeats
    campaigns = 200 if options.quick else max(2_000, repeats // 5)
    rows: list[dict[str, Any]] = []
    broken: list[Case] = []

    def add(rule: str, cases: Sequence[Case], count: int) -> None:
        rows.extend(one.row(rule, count) for one in cases)
        broken.extend(one for one in cases if not one.kept)

    with Pool() as pool:
        for rule in ("strict", "paired"):
            singles, many = rule_cases(pool, rule, repeats, campaigns)
            add(rule, singles, repeats)
            add(rule, many, campaigns)
        add("strict, curtailed", curtailed_cases(pool, campaigns), campaigns)
        (nothing,) = columns(pool, certificates_for_nothing, campaigns)
        add("certificate", [case("no gain, 10 attempts on 60 tasks: certified", nothing, most=0.05)], campaigns)
        add("certificate", certificate_powers(pool, campaigns // 4), campaigns // 4)
    text = table(rows)
    print(text)
    if options.quick:
        return 0
    write_results("gate", rows, text)
    for one in broken:
        print(f"not kept: {one.name}: {one.value:.4f}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
