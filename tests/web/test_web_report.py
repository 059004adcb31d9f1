"""What the page says of a run, and that it is whole for runs of every size."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading_pages import Page, after_test, facts, report, ruling, score, slow_update, step, timing

from whet.core import Purpose, Ruling, Score
from whet.gate import Interval
from whet.training import Comparison, Report, verdict_line
from whet.training.records import RecordKind
from whet.web import Facts, expenses, findings, render_report
from whet.web.costs import STAGES
from whet.web.lineage import Origin, way_to_best


def long_run(count: int) -> Report:
    steps = [
        step(n, decided=ruling(min(1.0, 0.5 + n / 1000), 0.5, 1000, accepted=n % 7 == 0) if n % 3 else None)
        for n in range(1, count + 1)
    ]
    return report(*steps)


RUNS = {
    "nothing yet": report(selection=(), calls=(), skill={}),
    "one step": report(step(1, decided=ruling(0.4, 0.5, accepted=False))),
    "one skipped step": report(step(1)),
    "better": after_test(16, 6, 0),
    "not shown": after_test(12, 5, 3),
    "stopped early": report(step(1, decided=ruling(0.7, 0.5)), stopped="budget.calls is used up", steps_planned=12),
    "two hundred steps": long_run(200),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_page_is_whole_and_names_every_place_it_leads_to(name: str) -> None:
    page = Page(render_report(RUNS[name], facts(), timing(), "[train]\nepochs = 4\n"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        named = (*attributes.get("aria-labelledby", "").split(), attributes.get("href", "").removeprefix("#"))
        assert {one for one in named if one} <= set(ids)
    assert len(page.named("h1")) == 1
    assert len(page.named("title")) >= 1
    assert page.named("html") == [{"lang": "en"}]


@pytest.mark.parametrize("name", RUNS)
def test_drawings_have_words_and_numbers_have_tables(name: str) -> None:
    page = Page(render_report(RUNS[name], facts(), timing()))
    for drawing in page.named("svg"):
        assert drawing.get("aria-hidden") == "true" or drawing.get("aria-labelledby") == "drawing-title drawing-desc"
    assert len(page.named("caption")) == len(page.named("table"))
    assert all("scope" in head for head in page.named("th"))


def test_every_record_is_a_fold_that_the_curve_leads_to() -> None:
    page = Page(render_report(long_run(200), facts()))
    records = [one for one in page.named("details") if one.get("class", "").startswith("record")]
    assert [one["id"] for one in records] == [f"record-{n}" for n in range(200)]
    leads = [one["href"] for one in page.named("a") if one["href"].startswith("#record-")]
    assert set(leads) >= {f"#{one['id']}" for one in records}


def test_epochs_of_a_long_run_are_folded_and_those_of_a_short_one_are_not() -> None:
    def opened(run: Report) -> set[bool]:
        epochs = (one for one in Page(render_report(run, facts())).named("details") if one.get("class") == "epoch")
        return {"open" in one for one in epochs}

    assert opened(long_run(200)) == {False}
    assert opened(long_run(12)) == {True}


def test_the_verdict_is_the_headline_and_the_title() -> None:
    for run in RUNS.values():
        page = Page(render_report(run, facts()))
        said = verdict_line(run)
        assert f"{run.run}: {said}" in page.text
        assert said.partition(" (")[0].rstrip(".") in page.text


def test_a_gain_whose_interval_holds_0_is_not_shown() -> None:
    html = findings(RUNS["not shown"], facts())
    assert "A gain is not shown" in html
    assert "<td>not shown</td>" in html
    assert "Better by" not in html
    assert "Better by +0.300" in findings(RUNS["better"], facts())
    assert "<td>yes</td>" in findings(RUNS["better"], facts())


def test_the_last_policy_is_compared_too() -> None:
    worse = Comparison(-0.2, Interval(-0.3, -0.1), (), ("test-1",), 0.01)
    html = findings(after_test(16, 6, 0, last="p9"), msgspec.structs.replace(facts(), last=worse))
    assert "<td>no, worse</td>" in html


def test_task_by_task_the_four_parts_are_the_whole() -> None:
    text = Page(findings(after_test(13, 6, 3), facts())).text
    assert "7 passed by both" in text
    assert "6 fixed: passed only by the best" in text
    assert "3 broken: passed only by the start" in text
    assert "4 passed by neither" in text


def test_a_run_that_goes_on_says_so_and_claims_nothing() -> None:
    note = "Not at its end: the run is being trained, and has done 1 of 12 steps."
    text = Page(findings(RUNS["stopped early"], Facts(note=note))).text
    assert note in text
    assert "No gain is claimed" in text
    assert "Stopped early" not in text


def test_a_step_shows_what_was_tried_and_why_it_was_kept() -> None:
    made = step(1, text="Name the room.", decided=ruling(0.7, 0.5))
    text = Page(findings(report(made), facts())).text
    for said in (
        "Accepted: it scores 0.7000.",
        "4 fixed, 0 broken",
        "learned from 3 failed tries",
        "skipped not found",
    ):
        assert said in text
    assert text.count("Name the room.") >= 7


def test_a_skipped_step_says_why() -> None:
    assert "nothing was proposed" in Page(findings(RUNS["one skipped step"], facts())).text


def test_a_score_that_is_only_a_bound_is_marked_as_one() -> None:
    early = msgspec.structs.replace(ruling(0.5, 0.5, accepted=False), saved=7, both=3, neither=2)
    html = findings(report(step(1, decided=early)), facts())
    assert "≤ 0.500" in html
    assert "#mark-bound" in html
    assert "#mark-rejected" not in html


def test_a_rule_that_tests_is_told_by_gains() -> None:
    sure = msgspec.structs.replace(ruling(0.7, 0.5), p=0.004, level=0.025, reason="")
    html = findings(report(step(1, decided=sure), rule="paired"), facts())
    assert ">+0.200</span>" in html
    assert "Accepted, 0.700 against 0.500." in html
    assert "So good by chance: p 0.004; the rule asks for at most 0.025." in html
    assert "as far from the current policy as it differed from it" in html


@pytest.mark.parametrize("kind", RecordKind)
def test_every_kind_of_record_has_a_name(kind: RecordKind) -> None:
    made = step(3, kind=kind, decided=ruling(0.7, 0.5))
    assert {
        "adapter": "Adapter 0",
        "step": "Step 3",
        "slow_update": "End of epoch 1",
        "tidy": "Tidying, epoch 1",
        "join": "Joining, epoch 1",
        "last": "Last policy",
    }[kind] in Page(findings(report(made), facts())).text


@pytest.mark.parametrize("purpose", Purpose)
def test_every_purpose_of_a_call_has_a_stage(purpose: Purpose) -> None:
    assert purpose in STAGES


def test_what_one_reflection_after_another_found_is_told_once() -> None:
    made = step(1, text="door", decided=ruling(0.7, 0.5))
    twice = msgspec.structs.replace(made, patterns=made.patterns * 2)
    html = findings(report(twice), facts())
    assert html.count("<strong>door (4)</strong>") == 1


def test_each_line_says_which_step_brought_it() -> None:
    first = step(1, text="A rule.", decided=ruling(0.6, 0.5), skill="Start.\nA rule.\n")
    second = step(2, text="B rule.", decided=ruling(0.7, 0.6), skill="Start.\nA rule.\nB rule.\n")
    html = findings(report(first, second), facts())
    _, _, learned = html.partition('<section id="skill"')
    learned = learned.partition("</section>")[0]
    assert "2 lines added, 0 removed, brought by 2 changes" in learned
    a_rule, b_rule = learned.index("+ A rule."), learned.index("+ B rule.")
    assert a_rule < learned.index("#record-0") < b_rule < learned.index("#record-1")


def test_a_rejected_step_brought_nothing() -> None:
    first = step(1, decided=ruling(0.4, 0.5, accepted=False), skill="Start.\nHarm.\n")
    second = step(2, decided=ruling(0.7, 0.5), skill="Start.\nB rule.\n")
    way = way_to_best(report(first, second), facts())
    assert [version.origin for version in way] == [None, Origin(1)]


def test_reminders_are_not_laid_to_the_next_step() -> None:
    first = step(1, decided=ruling(0.4, 0.5, accepted=False), skill="Start.\nHarm.\n")
    second = step(2, decided=ruling(0.7, 0.5), skill="Start.\nReminder.\nB rule.\n", current="p0-reminded")
    known = Facts({"SKILL.md": "Start.\n"}, {"p0-reminded": {"SKILL.md": "Start.\nReminder.\n"}})
    way = way_to_best(report(first, second), known)
    assert [version.origin for version in way] == [None, Origin(0, after=True), Origin(1)]
    assert "a reminder, kept whatever was ruled" in findings(report(first, second), known)


def test_guidance_without_a_gate_and_a_last_policy_are_on_the_way() -> None:
    first = step(1, decided=ruling(0.6, 0.5), skill="Start.\nA rule.\n")
    slow = slow_update(1, 1, skill="Start.\nA rule.\nGuidance.\n")
    won = ruling(0.8, 0.6)
    last = step(2, kind=RecordKind.LAST, decided=won, candidate="p1-slow", current="p1-slow", played=Score(0.0, 0.0, 0))
    last = msgspec.structs.replace(last, candidate_skill={"SKILL.md": "Start.\nA rule.\nGuidance.\n"})
    whole = report(first, slow, last, best="p1-slow", last="p1-slow", skill=last.candidate_skill)
    assert [version.origin for version in way_to_best(whole, facts())] == [None, Origin(0), Origin(1)]
    html = findings(whole, facts())
    assert "#mark-put-in" in html
    assert "End of epoch 1" in html


def test_what_another_branch_brought_is_not_laid_to_the_best() -> None:
    """A search that keeps several policies goes on from any of them."""
    first = step(1, decided=ruling(0.6, 0.5), skill="Start.\nA rule.\n")
    aside = step(2, decided=ruling(0.55, 0.5), skill="Start.\nAside.\n", current="p0")
    third = step(3, decided=ruling(0.7, 0.6), skill="Start.\nA rule.\nC rule.\n", current="p1")
    way = way_to_best(report(first, aside, third), facts())
    assert [version.origin for version in way] == [None, Origin(0), Origin(2)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), max_size=8), st.integers(0, 5))
def test_every_way_ends_whatever_the_records_say(drawn: list[tuple[int, int, bool]], best: int) -> None:
    steps = [
        step(n, decided=ruling(0.7, 0.5, accepted=kept), skill=f"{made}\n", current=f"p{began}", candidate=f"p{made}")
        for n, (began, made, kept) in enumerate(drawn, start=1)
    ]
    whole = report(*steps, best=f"p{best}", skill={"SKILL.md": f"{best}\n"})
    assert way_to_best(whole, facts())[-1].files == whole.skill


def test_the_way_ends_at_the_best_skill_whatever_the_records_say() -> None:
    whole = report(step(1, decided=ruling(0.7, 0.5), skill="A.\n"), skill={"SKILL.md": "B.\n"})
    assert way_to_best(whole, facts())[-1].files == {"SKILL.md": "B.\n"}


def test_kinds_say_what_changed_in_them_if_that_is_known() -> None:
    known = msgspec.structs.replace(facts(), kinds={f"test-{n}": ("door", "light")[n % 2] for n in range(9)})
    text = findings(after_test(13, 6, 3), known)
    assert "3 / 1" in text
    assert "3 / 2" in text
    assert "not known" in findings(after_test(13, 6, 3), facts())


def test_what_was_lost_and_sent_again_is_in_the_part_that_timing_changes() -> None:
    whole = RUNS["better"]
    assert "Lost: the process died" in expenses(timing(lost=2))
    assert "Lost" not in findings(whole, facts())
    assert "42" in Page(expenses(timing())).text


def test_calls_that_were_all_answered_at_once_are_one_sentence() -> None:
    line = msgspec.structs.replace(timing().spending[0], attempts=40, failed=0, abandoned=0)
    html = expenses(msgspec.structs.replace(timing(), spending=(line,)))
    assert "40 calls were sent, and each was answered at its first sending." in html


def test_a_score_that_is_not_a_rate_has_no_interval() -> None:
    soft = Ruling(True, True, 0.61, 0.5, 0.5, "", fixed=4, both=8, neither=8)
    html = findings(report(step(1, decided=soft), selection=(score("p0", 10),), metric="soft"), facts())
    assert html.count('class="interval accepted"') == 1, "the one of the legend"
    rate = findings(report(step(1, decided=ruling(0.6, 0.5))), facts())
    assert rate.count('class="interval accepted"') == 2
