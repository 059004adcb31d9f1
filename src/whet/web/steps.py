"""What each step tried, and why it was kept or not: a line a record, and the whole of it when it is opened."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from whet.core import Edit, EditResult, FailurePattern, Op, Ruling, Source
from whet.training import Report, StepRecord
from whet.training.records import RecordKind, TrainingRecord
from whet.web import tables
from whet.web.markup import Markup, many, tag
from whet.web.outcomes import Outcome, count, given_up, label, outcome_of, why
from whet.web.words import plural, sentence, share, spaced

_FEW = 60
"""Up to so many records, all epochs are open."""
_SIGNS = {Outcome.ACCEPTED: "●", Outcome.REJECTED: "×", Outcome.PUT_IN: "◆", Outcome.SKIPPED: "–"}

Numbered = tuple[int, StepRecord]


def steps(report: Report) -> Markup:
    if not report.steps:
        return tables.section("steps", "Steps", tag("p", "No step has ended yet.", class_="empty"))
    epochs = groupby(enumerate(report.steps), key=lambda numbered: numbered[1].epoch)
    opened = len(report.steps) <= _FEW
    shown = [_epoch(report, epoch, list(records), opened) for epoch, records in epochs]
    return tables.section("steps", "Steps", _filter() if len(report.steps) > 1 else "", *shown)


def _filter() -> Markup:
    """It works without a script: the style sheet looks at what is chosen."""
    choices = (("all", "everything"), ("kept", "what was kept"), ("not-kept", "what was not"))
    radios = (
        tag("label", tag("input", type="radio", name="show", id=f"show-{name}", checked=name == "all"), f" {said}")
        for name, said in choices
    )
    every = tag("label", tag("input", type="checkbox", id="open-all"), " open all", class_="open-all")
    return tag("fieldset", tag("legend", "Show"), *radios, every, class_="filter")


def _epoch(report: Report, epoch: int, records: Sequence[Numbered], opened: bool) -> Markup:
    counts = ", ".join(
        f"{number} {outcome}" for outcome in Outcome if (number := count([record for _, record in records], outcome))
    )
    summary = many([tag("strong", f"Epoch {epoch}"), tag("span", f" {counts}", class_="fine")])
    by_gain = report.rule == "paired"
    heads = ("", "", "why", "played", "edits", "gain" if by_gain else "score")
    head = tag("p", *(tag("span", name) for name in heads), class_="row heads", aria_hidden="true")
    return tables.folded(
        summary, head, *(_record(*numbered, by_gain) for numbered in records), opened=opened, class_="epoch"
    )


def _record(place: int, record: StepRecord, by_gain: bool) -> Markup:
    outcome = outcome_of(record)
    class_ = f"record {outcome.replace(' ', '-')} {'kept' if outcome.kept else 'not-kept'}"
    body = tag(
        "div",
        _numbers(record),
        _ruling(record),
        _part("Reasoning", tables.paragraphs(record.reasoning)) if record.reasoning.strip() else "",
        _training(record),
        _patterns(record.patterns),
        _edits(record),
        _part("Reminders, kept whatever was ruled", tables.bullets(record.notes)) if record.notes else "",
        _part("Answers that could not be used", tables.bullets(record.fallbacks)) if record.fallbacks else "",
        class_="body",
    )
    return tag("details", tag("summary", _row(record, outcome, by_gain)), body, class_=class_, id=f"record-{place}")


def _row(record: StepRecord, outcome: Outcome, by_gain: bool) -> Markup:
    mark = tag("span", tag("span", _SIGNS[outcome], class_="sign", aria_hidden="true"), f" {outcome}", class_="outcome")
    return tag(
        "span",
        tag("span", label(record), class_="label"),
        mark,
        tag("span", why(record), class_="why"),
        tag("span", share(record.played.hard) if record.played.count else "", class_="n played"),
        tag("span", _edit_count(record), class_="n edits"),
        tag("span", _score(record.ruling, by_gain), class_="n score"),
        class_="row",
    )


def _edit_count(record: StepRecord) -> str:
    changed = sum(done.status.changed for done in record.edits)
    return f"{changed} of {len(record.edits)}" if record.edits else ""


def _score(ruling: Ruling | None, by_gain: bool) -> str:
    """A gate that tests compares policies on as many tasks as it takes: its scores alone are not comparable."""
    if ruling is not None and by_gain:
        return f"{ruling.candidate - ruling.incumbent:+.3f}"
    return "" if ruling is None else f"{'≤ ' if given_up(ruling) else ''}{share(ruling.candidate)}"


def _numbers(record: StepRecord) -> Markup:
    rows: list[tuple[str, str]] = []
    if record.played.count:
        rows.append(("Played", f"{plural(record.played.count, 'train task')}, {share(record.played.hard)} passed"))
    if record.kind is RecordKind.STEP:
        rows.append(("Edit budget", "no limit" if record.budget is None else plural(record.budget, "edit")))
    rows.append(("Began with", tag("code", record.current[:8])))
    if record.candidate:
        rows.append(("Candidate", tag("code", record.candidate[:8])))
    return tables.pairs(rows, "about")


def _training(record: StepRecord) -> Markup:
    """How an adapter came about: its loss is told, and never taken for a score."""
    made = record.training
    if made is None:
        return Markup("")
    metrics = made.metrics
    valid = f"{share(made.mean)} ({share(made.interval.low)} to {share(made.interval.high)}), best {share(made.best)}"
    rows = [
        ("Learned from", f"{made.picked} of {plural(made.played, 'try', 'tries')}"),
        ("Of these tries", f"{share(made.valid)} in the right form, {share(made.diversity)} distinct answers"),
        ("Their mean credit", valid),
        *((source, plural(number, "example")) for source, number in made.sources.items()),
        ("Updates", f"{metrics.steps}, the weights of update {metrics.kept_step} kept, {metrics.precision}"),
        ("Loss on its examples", f"{metrics.first_loss:.3f} to {metrics.last_loss:.3f}"),
        *_held_out(made),
        ("Adapter", tag("code", made.adapter[:12])),
    ]
    without = tag("p", "The skill that it learned with is not in its prompt.") if made.distilled else ""
    return _part("Training", tables.pairs(rows, "about"), without)


def _held_out(made: TrainingRecord) -> list[tuple[str, str]]:
    """What says whether it learned more than its examples."""
    before, after, assessed = made.metrics.held_out_before, made.metrics.held_out_after, made.assessed
    rows: list[tuple[str, str]] = []
    if before is not None and after is not None:
        rows.append(("Loss on examples held out", f"{before:.3f} to {after:.3f}"))
    if assessed is not None:
        rows.append(("Played, train tasks held out", f"{share(assessed.hard)} of {assessed.count} passed"))
    return rows


def _ruling(record: StepRecord) -> Markup:
    ruling = record.ruling
    if ruling is None:
        return _part("No ruling", tag("p", sentence(why(record))))
    kept = outcome_of(record).kept
    reason = f": {ruling.reason}" if ruling.reason else f", {share(ruling.candidate)} against {share(ruling.incumbent)}"
    said = [
        f"{'Accepted' if kept else 'Rejected'}{sentence(reason)}",
        f"On the selection tasks: {ruling.fixed} fixed, {ruling.broke} broken, {ruling.both} passed with both,"
        f" {ruling.neither} with neither.",
    ]
    if ruling.p is not None:
        said.append(f"So good by chance: p {ruling.p:.2g}; the rule asks for at most {ruling.level:g}.")
    if ruling.saved:
        said.append(f"{plural(ruling.saved, 'play')} of the plan {'was' if ruling.saved == 1 else 'were'} not needed.")
    if ruling.new_best:
        said.append("It was the best so far.")
    return _part("Ruling", *(tag("p", line) for line in said))


def _patterns(patterns: Sequence[FailurePattern]) -> Markup:
    if not patterns:
        return Markup("")
    return _part("Failure patterns", tables.bullets(_pattern(pattern) for pattern in _joined(patterns)))


def _joined(patterns: Sequence[FailurePattern]) -> list[FailurePattern]:
    """Reflections on several batches name the same pattern each: once is enough, the most frequent first."""
    found: dict[tuple[str, str], FailurePattern] = {}
    for pattern in patterns:
        same = found.get((pattern.failure_type, pattern.description), FailurePattern(""))
        tasks = tuple(dict.fromkeys((*same.task_ids, *pattern.task_ids)))
        count = same.count + pattern.count
        joined = FailurePattern(pattern.failure_type, pattern.description, tasks, count)
        found[joined.failure_type, joined.description] = joined
    return sorted(found.values(), key=lambda pattern: -pattern.count)


def _pattern(pattern: FailurePattern) -> Markup:
    many_times = f" ({pattern.count})" if pattern.count else ""
    about = f": {pattern.description}" if pattern.description else ""
    tasks = tag("span", f" {', '.join(pattern.task_ids)}", class_="fine") if pattern.task_ids else ""
    return tag("span", tag("strong", f"{pattern.failure_type}{many_times}"), about, tasks)


def _edits(record: StepRecord) -> Markup:
    if not record.edits:
        return Markup("")
    return _part("Edits", tag("ol", *(tag("li", _edit(record, done)) for done in record.edits), class_="edits"))


def _edit(record: StepRecord, done: EditResult) -> Markup:
    edit = done.edit
    if record.kind is RecordKind.SLOW_UPDATE:
        # Its target is the name of the region that holds the guidance, and no text of the skill.
        return many([tag("p", tag("strong", "guidance"), f" in {edit.file}"), _change("", edit.content)])
    status = tag("span", spaced(done.status), class_="status" if done.status.changed else "status not-applied")
    note = tag("span", f" {done.note}", class_="fine") if done.note else ""
    line = tag("p", tag("strong", spaced(edit.op)), f" in {edit.file}{learned_from(edit)} ", status, note)
    removed = edit.target if edit.op in (Op.REPLACE, Op.DELETE) else ""
    after = tag("p", "after: ", tag("code", edit.target), class_="fine") if edit.target and not removed else ""
    return many([line, after, _change(removed, edit.content)])


def learned_from(edit: Edit) -> str:
    if edit.source is None:
        return ""
    kind = "failed" if edit.source is Source.FAILURE else "successful"
    return f", learned from {plural(edit.support, f'{kind} try', f'{kind} tries')}"


def _change(removed: str, added: str) -> Markup:
    lines = [tag("del", f"− {line}") for line in removed.splitlines()]
    lines += [tag("ins", f"+ {line}") for line in added.splitlines()]
    return tag("div", *lines, class_="change") if lines else Markup("")


def _part(title: str, *content: str) -> Markup:
    return tag("div", tag("h4", title), *content, class_="part")
