"""The headline, the test results, and the tasks that changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from whet.core import Score, Split, dollars
from whet.gate import wilson
from whet.training import Comparison, PolicyScore, Report, verdict_line
from whet.training.reporting import names_of
from whet.web import plots, tables
from whet.web.facts import ChangedTask, Facts
from whet.web.markup import Markup, tag, text
from whet.web.outcomes import Outcome, count, count_steps, outcome_of
from whet.web.words import in_order, interval, plural, sentence, share, signed_interval, whole

_OPEN_UP_TO = 8
"""Changed tasks that are shown without being asked for."""


_METHOD = (
    "Nothing was learned or chosen on these tasks: each policy played them once. Differences are taken task by task;"
    " p is how often so uneven a split of fixed and broken tasks would come by chance."
)


def headline(report: Report, facts: Facts) -> Markup:
    """The verdict first: what a reader who reads no further should know."""
    claim, numbers = _verdict(report)
    return tag(
        "header",
        tag("p", f"{report.run} · {report.world}", class_="run"),
        tag("h1", claim),
        tag("p", numbers, class_="numbers") if numbers else "",
        *(tag("p", said, class_="note") for said in _notes(report, facts)),
        _tiles(report),
        _about(report),
        class_="top shown" if report.comparison and report.comparison.shown else "top",
    )


def _verdict(report: Report) -> tuple[str, str]:
    """The sentence as it is, with what stands in its brackets set smaller."""
    claim, bracket, numbers = verdict_line(report).partition(" (")
    if not bracket or not numbers.endswith(")."):
        return verdict_line(report), ""
    return f"{claim}.", sentence(numbers.removesuffix(")."))


def _notes(report: Report, facts: Facts) -> list[str]:
    if facts.note:
        return [facts.note]
    return [f"Stopped early: {report.stopped.rstrip('.')}."] if report.stopped else []


def _tiles(report: Report) -> Markup:
    tiles = [("kept", f"{_kept(report)} of {len(report.steps)}", "proposals and what they came to")]
    tests = {score.policy: score for score in report.test}
    start, best = tests.get(report.start), tests.get(report.best)
    if start is not None:
        tiles.insert(0, ("start, on test", share(start.hard), f"{start.passed} of {start.count} tasks passed"))
    if best is not None and report.best != report.start:
        tiles.insert(1, ("best, on test", share(best.hard), f"{best.passed} of {best.count} tasks passed"))
    tiles[-1] = ("changes kept", str(_kept(report)), f"of {plural(_ruled(report), 'candidate')}, in {_steps(report)}")
    tiles.append(("model calls", whole(sum(line.calls for line in report.calls)), _bill(report)))
    return tag("ul", *(_tile(*tile) for tile in tiles), class_="tiles")


def _tile(name: str, value: str, more: str) -> Markup:
    spans = (("name", name), ("value", value), ("more", more))
    return tag("li", *(tag("span", said, class_=class_) for class_, said in spans))


def _kept(report: Report) -> int:
    return sum(outcome_of(record).kept for record in report.steps)


def _ruled(report: Report) -> int:
    return len(report.steps) - count(report.steps, Outcome.SKIPPED)


def _steps(report: Report) -> str:
    done = count_steps(report.steps)
    return plural(done, "step") if done == report.steps_planned else f"{done} of {plural(report.steps_planned, 'step')}"


def _bill(report: Report) -> str:
    tokens = sum(line.input_tokens + line.output_tokens for line in report.calls)
    amount = dollars(sum(line.nanodollars for line in report.calls))
    cost = f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}"
    return f"{plural(tokens, 'token')}, {cost}"


def _about(report: Report) -> Markup:
    rows = [
        ("Agent", report.target),
        ("Optimizer", report.optimizer or "none"),
        ("Gate", f"{report.rule}, by {report.metric} score"),
        ("Seed", str(report.seed)),
        ("Best policy", report.best[:8]),
    ]
    return tables.pairs(((name, tag("span", said)) for name, said in rows), "about")


def test_results(report: Report, facts: Facts) -> Markup:
    if not report.test:
        missing = tag("p", "The test split was not played, so nothing is claimed about new tasks.", class_="empty")
        return tables.section("test", "On the test tasks", missing, _scores(report) if report.selection else "")
    return tables.section(
        "test",
        "On the test tasks",
        tag("p", _METHOD, class_="lead"),
        _scores(report),
        _differences(report, facts),
        _paired(report),
        _by_kind(report, facts),
    )


_DIFFERENCES = (
    tables.words("Policy"),
    *(tables.numbers(name) for name in ("Difference, 95% interval", "Fixed / broken", "Exact p")),
    tables.words("Better?"),
)


def _differences(report: Report, facts: Facts) -> Markup:
    """Task by task. A difference is claimed only if the whole interval is on one side of 0."""
    best = report.comparison if report.best != report.start else None
    found = [(name, one) for name, one in (("best", best), ("last", facts.last)) if one is not None]
    if not found:
        return Markup("")
    names = {"best": names_of(report, report.best), "last": "last"}
    rows = [_difference(names[name], one) for name, one in found]
    return tables.table("Differences from the start, task by task", _DIFFERENCES, rows)


def _difference(name: str, found: Comparison) -> tuple[str, ...]:
    better = "yes" if found.shown else "no, worse" if found.interval.high < 0.0 else "not shown"
    changed = f"{len(found.fixed)} / {len(found.broke)}"
    gain = _with_interval(f"{found.gain:+.3f}", signed_interval(found.interval))
    return (name, gain, changed, f"{found.p:.2g}", better)


def _with_interval(value: str, bounds: str) -> Markup:
    return tag("span", value, " ", tag("small", bounds))


_SCORES = (
    tables.words("Policy"),
    tables.words("Tasks"),
    tables.numbers("Passed"),
    tables.numbers("Rate, 95% interval"),
    tables.drawing("0 to 1"),
)


def _scores(report: Report) -> Markup:
    found = [(Split.SELECTION, score) for score in report.selection] + [(Split.TEST, score) for score in report.test]
    rows = [_score_row(report, split, score) for split, score in found]
    return tables.table("Pass rates, each with where the true rate lies with 95%", _SCORES, rows)


def _score_row(report: Report, split: Split, score: PolicyScore) -> tuple[str, ...]:
    class_ = "start" if score.policy == report.start else "best" if score.policy == report.best else "last"
    return (
        names_of(report, score.policy),
        split,
        f"{score.passed} of {score.count}",
        _with_interval(share(score.hard), interval(score.interval)),
        plots.interval_plot(score.hard, score.interval, class_),
    )


def _paired(report: Report) -> Markup:
    """Start and best on the same tasks: the four things that can happen to one."""
    found = report.comparison
    best = next((score for score in report.test if score.policy == report.best), None)
    if found is None or best is None or report.best == report.start:
        return Markup("")
    fixed, broke = len(found.fixed), len(found.broke)
    both = best.passed - fixed
    parts = [("both", both), ("fixed", fixed), ("broke", broke), ("neither", best.count - both - fixed - broke)]
    said = {
        "both": "passed by both",
        "fixed": "fixed: passed only by the best",
        "broke": "broken: passed only by the start",
        "neither": "passed by neither",
    }
    legend = (tag("li", tag("span", class_=f"swatch {name}"), f"{many} {said[name]}") for name, many in parts)
    title = tag("h3", f"Start and best, task by task, on {plural(best.count, 'test task')}")
    return tag("div", title, plots.parts_plot(parts), tag("ul", *legend, class_="legend"), class_="paired")


def _by_kind(report: Report, facts: Facts) -> Markup:
    tests = {score.policy: score for score in report.test}
    start, best = tests.get(report.start), tests.get(report.best)
    if start is None or best is None or len(start.by_kind) < 2:
        return Markup("")
    last = tests.get(report.last) if report.last not in (report.start, report.best) else None
    others = [score for score in (best if best is not start else None, last) if score is not None]
    names = ["start", *(["best"] if best is not start else []), *(["last"] if last else [])]
    columns = (
        tables.words("Kind"),
        tables.numbers("Tasks"),
        *(tables.numbers(f"{name.capitalize()}, 95% interval") for name in names),
        *((tables.numbers("Fixed / broken"), tables.drawing("Start to best")) if others else ()),
    )
    counts = _changes_by_kind(report.comparison, facts.kinds)
    rows = [_kind_row(kind, [start, *others], counts) for kind in sorted(start.by_kind, key=in_order)]
    return tables.table("By kind of task", columns, rows)


def _kind_row(
    kind: str, scores: Sequence[PolicyScore], counts: tuple[Counter[str], Counter[str]] | None
) -> tuple[str, ...]:
    found = [score.by_kind.get(kind, Score(0.0, 0.0, 0)) for score in scores]
    cells = (kind, str(found[0].count), *(_rate(score) for score in found))
    if len(scores) == 1:
        return cells
    changed = "not known" if counts is None else f"{counts[0][kind]} / {counts[1][kind]}"
    return (*cells, changed, plots.move_plot(found[0].hard, found[1].hard))


def _rate(score: Score) -> Markup:
    return _with_interval(share(score.hard), interval(wilson(round(score.hard * score.count), score.count)))


def _changes_by_kind(found: Comparison | None, kinds: Mapping[str, str]) -> tuple[Counter[str], Counter[str]] | None:
    """Only if the kind of each task that changed is known."""
    if found is None or any(task not in kinds for task in (*found.fixed, *found.broke)):
        return None
    return Counter(kinds[task] for task in found.fixed), Counter(kinds[task] for task in found.broke)


def changed_tasks(report: Report, facts: Facts) -> Markup:
    found = report.comparison
    if found is None or report.best == report.start:
        return Markup("")
    known = {change.task: change for change in facts.changed}
    groups = (("broken", found.broke), ("fixed", found.fixed))
    content = [_changed_group(name, tasks, known) for name, tasks in groups]
    return tables.section("changed", "Test tasks that changed", *content)


def _changed_group(name: str, tasks: Sequence[str], known: dict[str, ChangedTask]) -> Markup:
    if not tasks:
        return tag("p", f"None was {name}.", class_="empty")
    shown = [_changed_task(known[task]) for task in tasks if task in known]
    others = [task for task in tasks if task not in known]
    rest = tag("p", "Also: ", ", ".join(others), class_="fine") if others else ""
    summary = tag("span", f"{plural(len(tasks), 'task')} {name}", class_=f"count {name}")
    return tables.folded(summary, *shown, rest, opened=len(tasks) <= _OPEN_UP_TO, class_=f"group {name}")


def _changed_task(change: ChangedTask) -> Markup:
    rows = [
        ("Task", tables.paragraphs(change.question, "text")),
        ("Start answered", tables.paragraphs(change.before or "(nothing)", "text")),
        ("Best answered", tables.paragraphs(change.after or "(nothing)", "text")),
    ]
    if change.feedback:
        rows.append(("Verdict on what failed", tables.paragraphs(change.feedback, "text")))
    kind = tag("span", f" {change.kind}", class_="fine") if change.kind else text("")
    return tables.folded(tag("span", change.task, kind), tables.pairs(rows), class_="task")
