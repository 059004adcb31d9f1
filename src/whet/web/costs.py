"""What the run cost: the calls whose answers count, and what was sent and how long it took."""

from __future__ import annotations

from collections.abc import Sequence

from whet.core import Nanodollars, dollars
from whet.store import AnsweredLine, FailureLine, SpendingLine
from whet.training import Report
from whet.training.telling import duration
from whet.web import plots, tables
from whet.web.facts import Timing
from whet.web.markup import Markup, tag
from whet.web.words import moment, plural, spaced, whole

STAGES = {
    "rollout": "playing",
    "assess": "playing",
    "expert": "playing",
    "judge": "judging",
    "reflect_failure": "reflecting",
    "reflect_success": "reflecting",
    "merge_failure": "merging",
    "merge_success": "merging",
    "merge_final": "merging",
    "rank": "selecting",
    "budget": "selecting",
    "rewrite": "rewriting",
    "consolidate": "compacting reminders",
    "slow_update": "ends of epochs",
    "memory": "ends of epochs",
    "tidy": "ends of epochs",
    "make": "making worlds",
    "peer": "other trainers",
    "check": "checking",
}
"""The stage of the work that a call's purpose belongs to."""

_ANSWERED = (
    tables.words("Role"),
    tables.words("Purpose"),
    *(tables.numbers(name) for name in ("Calls", "Tokens in", "Tokens out", "Cost")),
    tables.drawing("Share of tokens"),
)


def answered_calls(report: Report) -> Markup:
    """The same however often calls had to be sent."""
    if not report.calls:
        return tables.section("cost", "What it took", tag("p", "No call was answered.", class_="empty"))
    whole_tokens = sum(_tokens(line) for line in report.calls) or 1
    rows = [(*_answered_row([line]), plots.bar_plot(_tokens(line) / whole_tokens)) for line in report.calls]
    sums = ("all", "", *_answered_row(report.calls)[2:], "")
    return tables.section("cost", "What it took", tables.table("Calls whose answers count", _ANSWERED, rows, sums))


def _answered_row(lines: Sequence[AnsweredLine]) -> tuple[str, ...]:
    return (
        lines[0].role,
        spaced(lines[0].purpose),
        whole(sum(line.calls for line in lines)),
        whole(sum(line.input_tokens for line in lines)),
        whole(sum(line.output_tokens for line in lines)),
        money(sum(line.nanodollars for line in lines)),
    )


def _tokens(line: AnsweredLine) -> int:
    return line.input_tokens + line.output_tokens


def money(amount: Nanodollars) -> str:
    usd = dollars(amount)
    return f"${usd:,.2f}" if usd >= 1 or amount == 0 else f"${usd:.4f}"


_SENT = (
    tables.words("Role"),
    tables.words("Purpose"),
    *(tables.numbers(name) for name in ("Sent", "Answered", "Failed", "Given up", "Lost", "Tokens", "Cost")),
)


def sent_calls(timing: Timing) -> Markup:
    """With what retries, second sendings and deaths of the process added."""
    if not timing.spending:
        return tables.section("sent", "What was sent", tag("p", "No call was sent.", class_="empty"))
    sent = sum(line.attempts for line in timing.spending)
    if sent == sum(line.answers for line in timing.spending):
        said = f"{plural(sent, 'call was', 'calls were')} sent, and each was answered at its first sending."
        return tables.section("sent", "What was sent", tag("p", said))
    rows = [_sent_row([line]) for line in timing.spending]
    sums = ("all", "", *_sent_row(timing.spending)[2:])
    notes = tables.bullets(_wasted(timing.spending), "fine")
    return tables.section("sent", "What was sent", tables.table("Every sending of a call", _SENT, rows, sums), notes)


def _sent_row(lines: Sequence[SpendingLine]) -> tuple[str, ...]:
    return (
        lines[0].role,
        spaced(lines[0].purpose),
        whole(sum(line.attempts for line in lines)),
        whole(sum(line.answers for line in lines)),
        whole(sum(line.failed for line in lines)),
        whole(sum(line.abandoned for line in lines)),
        whole(sum(line.lost for line in lines)),
        whole(sum(line.tokens for line in lines)),
        money(sum(line.nanodollars for line in lines)),
    )


def _wasted(spending: Sequence[SpendingLine]) -> list[str]:
    notes: list[str] = []
    if any(line.failed for line in spending):
        notes.append("Failed: the endpoint refused or broke off; sent again.")
    if any(line.abandoned for line in spending):
        notes.append("Given up: another sending of the same call answered first, or the run was stopped.")
    if any(line.lost for line in spending):
        notes.append("Lost: the process died while they were open; counted at what was reserved for them.")
    return notes


_TIME = (
    tables.words("Stage"),
    tables.words("Purpose"),
    tables.numbers("Time in calls"),
    tables.numbers("A call"),
    tables.drawing("Share"),
)


def time_spent(timing: Timing) -> Markup:
    """Calls wait at the same time, so their times add up to more than the clock shows."""
    said = f"Processes worked on the run for {_short_duration(timing.seconds)}, until {moment(timing.at)}."
    spent = sum(line.seconds for line in timing.spending)
    parts = [tag("p", said, class_="lead")]
    if spent:
        order = {purpose: place for place, purpose in enumerate(STAGES)}
        lines = sorted(timing.spending, key=lambda line: (order.get(line.purpose, len(order)), line.purpose, line.role))
        rows = [_time_row(line, spent) for line in lines]
        sums = ("all", "", _short_duration(spent), "", "")
        parts.append(tables.table("Time in calls, added up: many wait at once", _TIME, rows, sums))
    return tables.section("time", "Time", *parts, _failures(timing))


def _time_row(line: SpendingLine, spent: float) -> tuple[str, ...]:
    return (
        STAGES.get(line.purpose, "other"),
        f"{line.role}: {spaced(line.purpose)}",
        _short_duration(line.seconds),
        _short_duration(line.seconds / line.attempts) if line.attempts else "",
        plots.bar_plot(line.seconds / spent),
    )


def _short_duration(seconds: float) -> str:
    if seconds >= 1:
        return duration(seconds)
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.01 else f"{1000 * seconds:.1f} ms"


def _failures(timing: Timing) -> Markup:
    if not timing.failures:
        return Markup("")
    head = f"{plural(timing.failures, 'try', 'tries')} ended without a verdict, and were never scored"
    shown = tables.bullets(_failure(line) for line in timing.latest_failures)
    return tables.folded(head, tag("p", "The latest:", class_="fine"), shown, class_="group")


def _failure(line: FailureLine) -> str:
    return f"{line.kind}, {line.task}: {line.message}"
