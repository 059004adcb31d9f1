"""The page of a run: its sections in their order, and the document around them."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from whet import __version__
from whet.training import Report, verdict_line
from whet.web import costs, results, tables
from whet.web.course import course_of
from whet.web.curve import learning_curve
from whet.web.facts import Facts, Timing
from whet.web.markup import Markup, many, tag
from whet.web.settings import settings
from whet.web.skill import best_skill
from whet.web.steps import steps

STYLE = "report.css"

_PLACES = (
    ("curve", "Curve"),
    ("test", "Test"),
    ("skill", "What was learned"),
    ("changed", "Changed tasks"),
    ("steps", "Steps"),
    ("cost", "Cost"),
    ("time", "Time"),
    ("settings", "Settings"),
)


def render_report(report: Report, facts: Facts, timing: Timing | None = None, config: str = "") -> str:
    """One HTML file. It needs nothing beside it and runs no script."""
    content = many([findings(report, facts), "" if timing is None else expenses(timing), settings(config)])
    foot = tag("footer", f"whet {__version__}. {report.run}, best policy {report.best}.")
    body = many([_places(content), tag("main", content), foot])
    return _document(f"{report.run}: {verdict_line(report)}", body)


def findings(report: Report, facts: Facts) -> Markup:
    """All that follows from what was played: to the byte the same, however often the run was killed."""
    return many(
        [
            results.headline(report, facts),
            _curve(report),
            results.test_results(report, facts),
            best_skill(report, facts),
            results.changed_tasks(report, facts),
            steps(report),
            costs.answered_calls(report),
        ]
    )


def expenses(timing: Timing) -> Markup:
    """What depends on when calls ended, and on how often they had to be sent."""
    return many([costs.sent_calls(timing), costs.time_spent(timing)])


def _curve(report: Report) -> Markup:
    course = course_of(report)
    if course.points and course.drawable:
        return tables.section("curve", "Learning curve", learning_curve(course, report))
    return tables.section("curve", "Learning curve", tag("p", "Nothing has been ruled on.", class_="empty"))


def _places(content: Markup) -> Markup:
    there = [(name, said) for name, said in _PLACES if f'<section id="{name}"' in content]
    links = (tag("a", said, href=f"#{name}") for name, said in there)
    return tag("nav", *links, aria_label="Sections")


def _document(title: str, body: Markup) -> str:
    style = files("whet.web").joinpath(STYLE).read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def _policy(style: str) -> str:
    """Nothing is loaded and no script runs: the style sheet is let in by its hash."""
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
