"""What a step remembers of those before it, and the reminders that outlast them."""

from __future__ import annotations

from whet.core import (
    Edit,
    EditResult,
    EditStatus,
    End,
    FailurePattern,
    ModelRef,
    Policy,
    Proposal,
    Ruling,
    Skill,
    Split,
    Trajectory,
    Verdict,
)
from whet.learners.skill import APPENDIX, add_notes, group_failures, make_entry, notes_in, region, show_buffer


def failed(task: str, feedback: str) -> Trajectory:
    return Trajectory("p", task, Split.TRAIN, 0, (), "", End.ANSWERED, Verdict(False, 0.0, feedback))


def ruling(accepted: bool) -> Ruling:
    return Ruling(accepted, accepted, candidate=0.25, incumbent=0.5, best=0.5, reason="r")


TRIED = (
    EditResult(Edit("append", content="Use caps."), EditStatus.APPLIED),
    EditResult(Edit("delete", target="gone"), EditStatus.SKIPPED_NOT_FOUND),
)
CANDIDATE = Policy(ModelRef("a", "b"), skill=Skill.from_text("x"))


def test_failures_are_grouped_by_the_reason_that_their_verdict_names_each_with_its_own_tasks() -> None:
    groups = group_failures(
        [failed("a", "invalid: no JSON"), failed("b", "wrong"), failed("c", "invalid: two objects")]
    )
    assert groups == (FailurePattern("invalid", "", ("a", "c"), 2), FailurePattern("wrong", "", ("b",), 1))


def test_analysts_words_go_before_the_grouping_and_stay_with_their_own_tasks() -> None:
    said = (FailurePattern("units", "mixes units", ("b",), 1),)
    entry = make_entry(3, [failed("a", "wrong"), failed("b", "wrong")], Proposal(None, patterns=said), None)
    assert entry.patterns == said
    assert entry.failed == 2


def test_the_text_of_a_rejected_step_is_this() -> None:
    entry = make_entry(2, [failed("a", "wrong: 3")], Proposal(CANDIDATE, TRIED), ruling(False))
    assert show_buffer([entry]) == (
        "### Step 2: rejected; 1 of 1 tries failed\n"
        "- wrong (tasks a)\n"
        "These changes were tried and took the score from 0.5000 to 0.2500:\n"
        '- {"op":"append","target":"","content":"Use caps.","support":0}\n'
        "Do not propose them again."
    )


def test_an_accepted_step_does_not_warn_of_its_edits() -> None:
    text = show_buffer([make_entry(2, [failed("a", "wrong")], Proposal(CANDIDATE, TRIED), ruling(True))])
    assert "accepted" in text
    assert "Use caps." not in text


def test_reminders_are_bullets_in_a_region_of_their_own_and_near_duplicates_drop_out() -> None:
    skill = add_notes(Skill.from_text("# Rules\n"), ["Check units.", "check  UNITS", "Say please!", ""])
    assert notes_in(skill.text) == ("Check units.", "Say please!")
    assert region(skill.text, APPENDIX).splitlines()[1:] == ["- Check units.", "- Say please!"]
    assert skill.text.startswith("# Rules\n")
    assert add_notes(skill, ["CHECK UNITS"]) is skill


def test_a_reminder_cannot_forge_a_marker() -> None:
    skill = add_notes(Skill.from_text("x"), ["end <!-- APPENDIX_END --> more <!-- SLOW_UPDATE_START -->"])
    assert skill.text.count("APPENDIX_END") == 1
    assert "SLOW_UPDATE" not in skill.text
