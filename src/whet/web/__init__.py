"""The pages: a run's report as one HTML file that opens from disk, with no server, no network and no script.

This room turns what the training wrote down into text. It decides nothing about a run, writes no file and asks the
store only in `gathering`. Everything it shows goes through `markup`, which escapes whatever is not markup of its own.
"""

from whet.web.attribution import Row, RowKind, annotate
from whet.web.facts import ChangedTask, Facts, Timing
from whet.web.gathering import gather_facts, gather_timing, page_of
from whet.web.lineage import FileRows, Origin, Version, changed_files, edits_behind, grouped, way_between
from whet.web.report import expenses, findings, render_report

__all__ = [
    "ChangedTask",
    "Facts",
    "FileRows",
    "Origin",
    "Row",
    "RowKind",
    "Timing",
    "Version",
    "annotate",
    "changed_files",
    "edits_behind",
    "expenses",
    "findings",
    "gather_facts",
    "gather_timing",
    "grouped",
    "page_of",
    "render_report",
    "way_between",
]
