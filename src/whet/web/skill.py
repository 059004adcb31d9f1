"""The best skill against the one at the start, with who brought each change and why."""

from __future__ import annotations

from collections.abc import Sequence

from whet.training import Report, StepRecord
from whet.web import tables
from whet.web.attribution import Row, RowKind
from whet.web.facts import Facts
from whet.web.lineage import FileRows, Origin, Version, changed_files, edits_behind, grouped, way_to_best
from whet.web.markup import Markup, many, tag
from whet.web.outcomes import label, why
from whet.web.steps import learned_from
from whet.web.words import plural, sentence, shortened

_AROUND = 3
"""Unchanged lines that are shown beside a change."""
_REASON = 280
_FEW_TASKS = 8


def best_skill(report: Report, facts: Facts) -> Markup:
    way = way_to_best(report, facts)
    files = changed_files(way)
    shown = [_file(report, way, found) for found in files]
    if not files:
        said = _nothing(report)
        shown = [tag("p", said, class_="empty")]
    else:
        shown.insert(0, tag("p", _summary(files, way), class_="lead"))
    return tables.section("skill", "What was learned", *shown, _whole(report))


def _nothing(report: Report) -> str:
    """Of a best policy whose skill is that of the start."""
    if report.adapter:
        return f"The skill is as it was at the start; what was learned is in weights, adapter {report.adapter[:12]}."
    return "Nothing was kept: the skill is as it was." if report.steps else "Nothing was tried yet."


def _summary(files: Sequence[FileRows], way: Sequence[Version]) -> str:
    rows = [row for found in files for row in found.rows if row.text.strip()]
    added, removed = (sum(row.kind is kind for row in rows) for kind in (RowKind.ADDED, RowKind.REMOVED))
    brought = len({way[row.by].origin for row in rows if row.by})
    return (
        f"The best skill against the one at the start: {plural(added, 'line')} added, {removed} removed, brought by"
        f" {plural(brought, 'change')}. Each says where it came from."
    )


def _file(report: Report, way: Sequence[Version], found: FileRows) -> Markup:
    groups = grouped(found.rows)
    shown: list[Markup] = []
    for place, (by, rows) in enumerate(groups):
        if by:
            shown.append(_hunk(report, way[by].origin, rows))
        else:
            shown.append(_unchanged(rows, first=place == 0, last=place == len(groups) - 1))
    return tag("div", tag("h3", tag("code", found.path)), tag("div", *shown, class_="diff"), class_="file")


def _unchanged(rows: Sequence[Row], *, first: bool, last: bool) -> Markup:
    """The nearest lines; those further off are folded away."""
    before, after = (0 if first else _AROUND), (0 if last else _AROUND)
    if len(rows) <= before + after + 2:
        return _lines(rows)
    middle = rows[before : len(rows) - after]
    hidden = tables.folded(plural(len(middle), "unchanged line"), _lines(middle), class_="unchanged")
    return many([_lines(rows[:before]), hidden, _lines(rows[len(rows) - after :])])


def _hunk(report: Report, origin: Origin | None, rows: Sequence[Row]) -> Markup:
    note = Markup("") if origin is None else _origin(report, origin, [row.text for row in rows])
    return tag("div", _lines(rows), note, class_="hunk")


def _origin(report: Report, origin: Origin, lines: Sequence[str]) -> Markup:
    record = report.steps[origin.record]
    link = tag("a", label(record), href=f"#record-{origin.record}")
    if origin.after:
        return tag("p", "After ", link, ": a reminder, kept whatever was ruled.", class_="origin")
    said = tag("p", link, f": {why(record)}.", class_="origin-head")
    reason = tag("p", sentence(shortened(record.reasoning.strip(), _REASON))) if record.reasoning.strip() else ""
    return tag("div", said, reason, _support(record, lines), _tasks_changed(record), class_="origin")


def _tasks_changed(record: StepRecord) -> Markup:
    ruling = record.ruling
    said = [] if ruling is None else [_named(ruling.fixed_tasks, "fixed "), _named(ruling.broke_tasks, "broke ")]
    said = [part for part in said if part]
    return tag("p", sentence("; ".join(said)), class_="fine") if said else Markup("")


def _support(record: StepRecord, lines: Sequence[str]) -> Markup:
    behind = edits_behind(record, lines)
    known = dict.fromkeys(learned_from(edit) for edit in behind)
    said = "; ".join(line.removeprefix(", learned ") for line in known if line)
    tasks = dict.fromkeys(task for edit in behind for task in edit.tasks)
    return tag("p", f"Learned {said}{_named(list(tasks), ': ')}.", class_="fine") if said else Markup("")


def _named(tasks: Sequence[str], before: str) -> str:
    """The first few."""
    more = f" and {len(tasks) - _FEW_TASKS} more" if len(tasks) > _FEW_TASKS else ""
    return f"{before}{', '.join(tasks[:_FEW_TASKS])}{more}" if tasks else ""


def _lines(rows: Sequence[Row]) -> Markup:
    return tag("div", *(_line(row) for row in rows), class_="lines") if rows else Markup("")


def _line(row: Row) -> Markup:
    match row.kind:
        case RowKind.ADDED:
            return tag("ins", f"+ {row.text}")
        case RowKind.REMOVED:
            return tag("del", f"− {row.text}")
        case RowKind.KEPT:
            return tag("span", f"  {row.text}")


def _whole(report: Report) -> Markup:
    files = (
        many([tag("h3", tag("code", path)), tag("pre", content or "(empty)", tabindex="0")])
        for path, content in sorted(report.skill.items())
    )
    name = "The whole skill" if report.best == report.start else "The whole best skill"
    return tables.folded(name, *files, class_="group") if report.skill else Markup("")
