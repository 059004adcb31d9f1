"""`whet audit`: before training, is the verifier any good, is the suite large enough, what will it cost?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from whet.cli.boundary import NO
from whet.cli.checking import opened_judge
from whet.cli.loading import load_for_training, load_project
from whet.cli.numbers import interval, plural, share
from whet.cli.options import config_argument, examples, json_option, plain_option, set_option
from whet.cli.output import number, pairs, paragraph, print_json, print_table, rest, text, title
from whet.cli.working import work_on
from whet.core import Policy, Purpose, Split, Task, Trajectory
from whet.models import Prices
from whet.training import Monitor, Project, choose_run, open_workshop, plan
from whet.training.audit import Bill, Suite, audit_suite, make_bill
from whet.training.judging import play_all
from whet.training.probing import Outcome, Probe, TaskAudit, audit_verifier


class Audit(msgspec.Struct, frozen=True):
    tasks: tuple[TaskAudit, ...]
    suite: Suite | None
    bill: Bill | None
    left_out: tuple[str, ...] = ()
    """What the world itself says that it did not take in, or took in with something wrong."""

    @property
    def sound(self) -> bool:
        return all(task.sound for task in self.tasks)


@click.command("audit", epilog=examples("whet audit", "whet audit --verifier-only", "whet audit --tasks 200"))
@config_argument
@click.option("--tasks", type=click.IntRange(min=1), default=60, show_default=True, help="Tasks to probe, all splits.")
@click.option("--verifier-only", is_flag=True, help="Make no model calls.")
@click.option("--each", is_flag=True, help="Show every task, not only what is wrong.")
@set_option
@plain_option
@json_option
def command(
    config: Path,
    tasks: int,
    verifier_only: bool,
    each: bool,
    overrides: tuple[str, ...],
    plain: bool,
    as_json: bool,
) -> None:
    """Probe the verifier task by task, play the selection tasks twice, and reckon what a training will take.

    An agent that does nothing, or only talks, must fail; a known good solution must pass and a damaged one fail;
    judging twice, and on another date, must agree; calling what is no tool, and tools with nonsense, must lead nowhere.
    What is played is kept, so the training that follows does not play it again. Exit code 1: the
    verifier is not sound.
    """
    project = load_project(config, overrides, agent=False) if verifier_only else load_for_training(config, overrides)
    probed = asyncio.run(_probe(project, tasks))
    suite = bill = None
    if not verifier_only:
        chosen = choose_run(project.base_dir, project.settings(), None)
        click.echo(chosen.note, err=as_json)
        (suite, bill), _ = work_on(
            lambda monitor: _play(project, chosen.path, monitor), project.clock, plain=plain, log=as_json
        )
    audit = Audit(tuple(probed), suite, bill, tuple(getattr(project.world, "left_out", ())))
    print_json(audit) if as_json else _print(audit, each=each)
    if not audit.sound:
        click.get_current_context().exit(NO)


async def _probe(project: Project, most: int) -> list[TaskAudit]:
    splits = [list(project.world.tasks(split)) for split in Split]
    # A few of each split rather than all of the first.
    order = [task for row in _rounds(splits) for task in row][:most]
    async with opened_judge(project):
        return await audit_verifier(project.world, order)


def _rounds(splits: Sequence[Sequence[Task]]) -> list[list[Task]]:
    longest = max(map(len, splits), default=0)
    return [[split[n] for split in splits if n < len(split)] for n in range(longest)]


async def _play(project: Project, folder: Path, monitor: Monitor) -> tuple[Suite, Bill]:
    selection = project.tasks(Split.SELECTION)
    others = [*project.tasks(Split.TRAIN), *project.world.tasks(Split.TEST)]
    async with open_workshop(project, folder) as workshop:
        monitor.started(folder.name, 0, workshop.ledger)

        async def play(sample: int) -> list[Trajectory]:
            stage = monitor.stage(f"selection, try {sample + 1}", len(selection))
            played = await play_all(
                workshop.engine, project.start, selection, stage, sample=sample, purpose=Purpose.ROLLOUT
            )
            monitor.ended(stage)
            return played

        began = project.clock.now()
        first, second = await play(0), await play(1)
        seconds = project.clock.now() - began
    sample = [*first, *second]
    return audit_suite(selection, others, first, second), _bill(project, sample, seconds)


def _bill(project: Project, sample: Sequence[Trajectory], seconds: float) -> Bill:
    config = project.config
    steps = plan(project.tasks(Split.TRAIN), config.train.epochs, config.train.batch_size, config.train.seed)
    selection, train = len(project.tasks(Split.SELECTION)), sum(len(step.tasks) for step in steps)
    test = len(project.world.tasks(Split.TEST)) if config.train.test else 0
    slow = 2 * config.skill.slow_samples * (config.train.epochs - 1) if config.skill.slow_update else 0
    reflections = sum(-(-len(step.tasks) // config.skill.minibatch_size) for step in steps)
    price = Prices(config.prices).cost(_ref(project.start), sum((one.usage for one in sample), start=sample[0].usage))
    return make_bill(
        sample,
        seconds,
        rollouts=train + selection * (len(steps) + 1) + 3 * test + slow,
        optimizer_calls=reflections + 4 * len(steps),
        usd_per_rollout=None if price is None else price / 1e9 / (len(sample) + 1),
    )


def _ref(policy: Policy):
    return policy.model


_MARKS = {Outcome.SOUND: "ok", Outcome.OFFENDING: "NO", Outcome.ABSENT: "-", Outcome.BROKEN: "broken"}


def _print_each(audits: Sequence[TaskAudit]) -> None:
    print_table(
        (text("task"), text("split"), *(text(probe.replace("_", " ")) for probe in Probe)),
        [(one.task, one.split, *(_MARKS[one.outcomes[probe]] for probe in Probe)) for one in audits],
    )
    click.echo()


def _print(audit: Audit, *, each: bool) -> None:
    title("Verifier")
    if each:
        _print_each(audit.tasks)
    print_probes(audit.tasks)
    sound = sum(task.sound for task in audit.tasks)
    click.echo(f"\n{sound} of {plural(len(audit.tasks), 'task')} sound.")
    unproven = sum(task.outcomes[Probe.KNOWN_GOOD] is Outcome.ABSENT for task in audit.tasks)
    if unproven:
        click.echo(f"{plural(unproven, 'task')} without a known good solution: that it can be passed is not shown.")
    if audit.left_out:
        title("Known before")
        for line in audit.left_out:
            paragraph(line, indent="  ")
    if audit.suite is not None:
        _print_suite(audit.suite)
    if audit.bill is not None:
        _print_bill(audit.bill)


def print_probes(audits: Sequence[TaskAudit]) -> None:
    """How often each probe came out how; and the first tasks with something against them."""
    rows = [(probe.replace("_", " "), *(_count(audits, probe, outcome) for outcome in Outcome)) for probe in Probe]
    print_table((text("probe"), *(number(outcome.value) for outcome in Outcome)), rows)
    offending = [task for task in audits if not task.sound]
    if offending:
        click.echo()
        print_table(
            (text("task"), text("split"), rest("what happened")), [(t.task, t.split, t.note) for t in offending[:20]]
        )


def _count(audits: Sequence[TaskAudit], probe: Probe, outcome: Outcome) -> str:
    return str(sum(task.outcomes.get(probe) is outcome for task in audits))


def _print_suite(suite: Suite) -> None:
    title("Suite")
    pairs(
        [
            ("selection", f"{plural(suite.tasks, 'task')}, each played twice with the starting policy"),
            ("passes", f"{share(suite.rate)} ({interval(suite.interval)})"),
            ("flips", f"{suite.flips} verdicts differ between identical tries"),
            ("always pass", str(len(suite.always))),
            ("never pass", str(len(suite.never))),
            ("twins", ", ".join(f"{a} = {b}" for a, b in suite.twins[:5]) or "none in two splits"),
            ("can see", _sees(suite)),
        ]
    )


def _sees(suite: Suite) -> str:
    seen = "no gain reliably" if suite.sees is None else f"a gain of {share(suite.sees)} or more"
    return f"{seen}; for 0.05 you need about {suite.needed_for_five_points} tasks"


def _print_bill(bill: Bill) -> None:
    title("Bill, at most")
    usd = "not known: say the price under [prices]" if bill.usd is None else f"${bill.usd:.2f} for the target"
    pairs(
        [
            ("rollouts", f"{bill.rollouts:,}"),
            ("calls", f"{bill.calls:,}"),
            ("tokens", f"{bill.tokens:,} for the target"),
            ("dollars", usd),
            ("minutes", f"{bill.minutes:.1f} of rollouts"),
        ]
    )
