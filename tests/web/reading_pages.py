"""Reports to render, and pages read as a browser reads them."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from whet.core import Edit, EditResult, EditStatus, FailurePattern, Ruling, Score, Source
from whet.gate import Interval, wilson
from whet.store import AnsweredLine, FailureLine, SpendingLine
from whet.training import Comparison, PolicyScore, Report, StepRecord, load_config, prepare, train
from whet.training.records import RecordKind
from whet.web import ChangedTask, Facts, Timing

VOID = {"br", "hr", "input", "meta"}


class Page(HTMLParser):
    """Every element with its attributes, and the text outside the style sheet; an unbalanced tag is an error."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.style = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["style"]:
            self.style += data
        else:
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data!r}")

    def named(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def ruling(candidate: float, incumbent: float, count: int = 20, *, accepted: bool = True) -> Ruling:
    """Of a candidate that passes what the incumbent does, and more or less."""
    ours, theirs = round(candidate * count), round(incumbent * count)
    return Ruling(
        accepted,
        accepted,
        candidate,
        incumbent,
        incumbent,
        f"it scores {candidate:.4f}",
        fixed=max(0, ours - theirs),
        broke=max(0, theirs - ours),
        both=min(ours, theirs),
        neither=count - max(ours, theirs),
    )


def step(
    number: int, *, text: str = "A rule.", decided: Ruling | None = None, skill: str = "", **more: object
) -> StepRecord:
    record = StepRecord(
        number=number,
        epoch=1 + (number - 1) // 4,
        played=Score(0.5, 0.5, 8),
        current=f"p{number - 1}",
        candidate=f"p{number}" if decided is not None else "",
        edits=(
            EditResult(Edit("append", content=text, source=Source.FAILURE, support=3), EditStatus.APPLIED),
            EditResult(Edit("replace", text, text), EditStatus.SKIPPED_NOT_FOUND, text),
        ),
        reasoning=text,
        patterns=(FailurePattern(text, text, (text,), 2),),
        skipped="" if decided is not None else "skip_no_patches",
        fallbacks=(text,),
        ruling=decided,
        notes=(text,),
        budget=4,
        candidate_skill={"SKILL.md": skill} if decided is not None else {},
    )
    return record if not more else StepRecord(**{**_fields(record), **more})  # pyright: ignore[reportArgumentType]


def _fields(record: StepRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


def score(policy: str, passed: int, count: int = 20, kinds: tuple[str, ...] = ()) -> PolicyScore:
    rate = passed / count
    by_kind = {kind: Score(rate, rate, count // len(kinds)) for kind in kinds}
    return PolicyScore(policy, rate, rate, rate, count, passed, wilson(passed, count), by_kind)


def report(*steps: StepRecord, text: str = "", **more: object) -> Report:
    """A run that began at 10 of 20 and whose best policy is the last one accepted."""
    best = next((one for one in reversed(steps) if one.ruling is not None and one.ruling.accepted), None)
    fields: dict[str, object] = {
        "run": f"run-1{text}",
        "world": f"house{text}",
        "target": f"scripted/student{text}",
        "optimizer": f"scripted/coach{text}",
        "seed": 42,
        "metric": "hard",
        "rule": "strict",
        "steps_planned": len(steps),
        "stopped": "",
        "steps": steps,
        "start": "p0",
        "best": best.candidate if best else "p0",
        "last": best.candidate if best else "p0",
        "selection": (score("p0", 10),),
        "test": (),
        "comparison": None,
        "calls": (AnsweredLine("target", "rollout", 40, 4000, 400, 1_000_000),),
        "skill": best.candidate_skill if best else {"SKILL.md": "Start.\n"},
    }
    return Report(**{**fields, **more})  # pyright: ignore[reportArgumentType]


def after_test(best: int, fixed: int, broke: int, **more: object) -> Report:
    """A run of one accepted step, tested on 20 tasks of which the start passed 10."""
    low, high = (0.1, 0.4) if fixed > broke + 4 else (-0.2, 0.3)
    found = Comparison(
        (fixed - broke) / 20,
        Interval(low, high),
        tuple(f"test-{n}" for n in range(fixed)),
        tuple(f"test-{n}" for n in range(fixed, fixed + broke)),
        0.04,
    )
    kinds = ("door", "light")
    tests = (score("p0", 10, kinds=kinds), score("p1", best, kinds=kinds))
    made = step(1, decided=ruling(0.7, 0.5), skill="Start.\nA rule.\n")
    return report(made, comparison=found, test=tests, **more)


def facts(text: str = "Start.\n") -> Facts:
    changed = ChangedTask("test-0", text, text, text, text, text)
    return Facts({"SKILL.md": text}, {}, (changed,), {"test-0": text})


def timing(text: str = "", lost: int = 0) -> Timing:
    line = SpendingLine("target", f"rollout{text}", 42 + lost, 40, 1, 1, lost, 4400, 1_100_000, 12.5)
    return Timing((line,), 75.0, 1_800_000_000.0, 1, (FailureLine(f"world{text}", f"test-1{text}", f"broke{text}"),))


def slow_update(number: int, epoch: int, *, skill: str, decided: Ruling | None = None) -> StepRecord:
    return step(
        number,
        kind=RecordKind.SLOW_UPDATE,
        epoch=epoch,
        played=Score(0.0, 0.0, 0),
        current=f"p{number}",
        candidate=f"p{number}-slow",
        candidate_skill={"SKILL.md": skill},
        skipped="",
        ruling=decided,
    )


SCRIPT = """\
import os, pathlib, signal
from whet.testing.simulation import coach as make_coach, student as plain

coach = make_coach()
calls = 0


def student(request):
    global calls
    calls += 1
    order = pathlib.Path(__file__).with_name("die-at")
    if order.exists() and calls >= int(order.read_text()):
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(request)
"""
CONFIG = """\
[world]
use = "whet.testing.simulation:SimulatedWorld"
train = 40
selection = 24
test = 30

[target]
model = "scripted/models.py:student"

[optimizer]
model = "scripted/models.py:coach"

[skill]
skill_aware = true
slow_gate = false
learning_rate = 2

[train]
batch_size = 10
epochs = 3
"""


def write_project(folder: Path) -> Path:
    """A project whose student dies at the call that a file beside it names."""
    folder.mkdir(parents=True)
    (folder / "models.py").write_text(SCRIPT)
    (folder / "whet.toml").write_text(CONFIG)
    return folder


async def train_in(folder: Path, *overrides: str) -> Report:
    project = prepare(load_config(folder / "whet.toml", overrides), folder)
    return await train(project, folder / "runs" / "run-1")
