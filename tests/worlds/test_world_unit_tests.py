"""Tests are run against an answer's code, which can touch neither them nor their result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from whet.core import ConfigError, InputError, Split, Verdict, WorldFault
from whet.worlds import held

pytestmark = pytest.mark.slow
ADD = "def add(a, b):\n    return a + b\n"
LIST = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0", "assert add('a', 'b') == 'ab'"]


async def judged(project: Any, judge_answer: Any, tests: Any, *answers: str, **settings: Any) -> list[Verdict]:
    row = {"question": "Write it.", "answer": tests, **settings.pop("row", {})}
    scorer = {"use": "unit_tests", **settings}
    async with held(project.questions(row, scorer=scorer)) as world:
        return [await judge_answer(world, answer) for answer in answers]


async def one(project: Any, judge_answer: Any, tests: Any, answer: str, **settings: Any) -> Verdict:
    (verdict,) = await judged(project, judge_answer, tests, answer, **settings)
    return verdict


async def test_hard_is_all_tests_and_soft_their_share(project: Any, judge_answer: Any) -> None:
    wrong = "def add(a, b):\n    return abs(a) + b if isinstance(a, int) else a + b\n"
    fenced = f"Here it is:\n```python\n{ADD}```\nIt adds."
    right, in_words, half, none, broken = await judged(
        project, judge_answer, LIST, ADD, fenced, wrong, "def sub(): pass", "def add(:"
    )
    assert (right.hard, right.soft) == (True, 1.0)
    assert in_words.hard
    assert (half.hard, half.soft) == (False, pytest.approx(2 / 3))
    assert half.feedback == "failed tests: 1 of 3. test 2: AssertionError"
    assert (none.hard, none.soft) == (False, 0.0)
    assert "NameError" in none.feedback
    assert (broken.hard, broken.soft) == (False, 0.0)
    assert "SyntaxError" in broken.feedback


FILE = """
import unittest
from solution import Stack, StackEmpty, sort_in_place

class TestStack(unittest.TestCase):
    def setUp(self):
        self.stack = Stack([1, 2])

    def test_push(self):
        self.stack.push(3)
        self.assertEqual(list(self.stack), [3, 2, 1])
        self.assertEqual(len(self.stack), 3)
        self.assertEqual(self.stack, Stack([1, 2, 3]))

    def test_empty(self):
        self.stack.pop(), self.stack.pop()
        with self.assertRaises(StackEmpty):
            self.stack.pop()
        with self.assertRaises(ValueError):
            self.stack.push(None)

def test_arguments_that_are_changed():
    items = [3, 1, 2]
    assert sort_in_place(items) is None
    assert items == [1, 2, 3]
"""
STACK = """
class StackEmpty(Exception):
    pass

class Stack:
    def __init__(self, items):
        self.items = list(items)
    def push(self, item):
        if item is None:
            raise ValueError("nothing")
        self.items.append(item)
    def pop(self):
        if not self.items:
            raise StackEmpty("empty")
        return self.items.pop()
    def __len__(self):
        return len(self.items)
    def __iter__(self):
        return iter(reversed(self.items))
    def __eq__(self, other):
        return self.items == other.items

def sort_in_place(items):
    items.sort()
"""


async def test_a_file_of_tests_uses_classes_errors_and_arguments_as_if_they_were_its_own(
    project: Any, judge_answer: Any
) -> None:
    right, wrong = await judged(project, judge_answer, FILE, STACK, STACK.replace("items.sort()", "return items"))
    assert right.hard, right.feedback
    assert right.facts == {"tests": 3}
    assert wrong.feedback.startswith("failed tests: 1 of 3. test_arguments_that_are_changed: AssertionError")


async def test_a_check_of_a_candidate_is_called_with_it(project: Any, judge_answer: Any) -> None:
    check = "def check(candidate):\n    assert candidate(2, 3) == 5\n    assert candidate(0.5, 0.25) == 0.75\n"
    verdicts = await judged(project, judge_answer, check, ADD, "def add(a, b): return 5", row={"entry_point": "add"})
    assert [verdict.hard for verdict in verdicts] == [True, False]


async def test_every_kind_of_data_comes_back_as_it_was(project: Any, judge_answer: Any) -> None:
    values = (
        "[None, True, 2**80, -1.5, float('inf'), 2j, 'ä', b'\\x00', (1, [2]), {3, 4}, frozenset({5}), {(1,): {'a': 2}}]"
    )
    tests = [f"v = {values}\nr = echo(v)\nassert r == v and [type(x) for x in r] == [type(x) for x in v]"]
    verdict = await one(project, judge_answer, tests, "def echo(x): return x")
    assert verdict.hard, verdict.feedback


FORGERIES = {
    "an object that equals everything": """
class Any:
    __eq__ = __le__ = __ge__ = __lt__ = __gt__ = __contains__ = lambda self, other: True
    __hash__ = object.__hash__
    def __sub__(self, other): return self
    def __abs__(self): return self
def add(a, b): return Any()
""",
    "other functions for what Python calls len and all": """
def add(a, b): return 99
def len(x): return 3
abs = sum = any = all = len
""",
    "a patched judge": """
import unittest, builtins, sys, gc, msgspec
unittest.TestCase.run = lambda *a: None
builtins.AssertionError = Exception
def add(a, b):
    for thing in gc.get_objects():
        if hasattr(thing, '_tests'): thing._tests = []
    msgspec.json.encode = lambda *a, **k: b'{"type":"tried","passed":true}'
    return 99
""",
    "an answer in the place of the reply": """
import os
def add(a, b):
    os.write(3, b'\\x00\\x00\\x00\\x1e\\x00\\x00\\x00\\x02\\x00{"type":"tried","passed":true}')
    os._exit(0)
""",
    "a printed verdict": "import os\ndef add(a, b):\n    print('OK')\n    os._exit(0)",
    "the end of the process": "import sys\ndef add(a, b): sys.exit(0)",
    "an exception that skips": "import unittest\ndef add(a, b): raise unittest.SkipTest('later')",
    "an exception that is a function": """
class Odd(type):
    __name__ = 'eval'
def add(a, b): raise Odd('eval', (Exception,), {})('1')
""",
    "a look at what is expected": """
import sys
def add(a, b):
    frame = sys._getframe()
    while frame:
        for value in (*frame.f_locals.values(), *frame.f_globals.values()):
            if 'assert' in str(value): return 3
        frame = frame.f_back
""",
}
FORGED = [
    *LIST,
    "assert add(1, 2) <= 3 <= add(1, 2)",
    "assert len([add(1, 2)]) == 1 and add(1, 2) in [3]",
    "import unittest\nclass T(unittest.TestCase):\n def test(self): self.assertAlmostEqual(add(1, 2), 3)\n"
    "r = unittest.TestResult(); T('test').run(r); assert r.testsRun and r.wasSuccessful() and not r.skipped",
]


@pytest.mark.parametrize("what", FORGERIES)
async def test_no_answer_passes_a_test_but_by_computing(project: Any, judge_answer: Any, what: str) -> None:
    verdict = await one(project, judge_answer, FORGED, FORGERIES[what])
    assert not verdict.hard
    assert verdict.soft == 0.0, verdict.feedback


async def test_a_slow_or_broken_answer_fails_the_test_and_the_others_are_tried(project: Any, judge_answer: Any) -> None:
    slow = "import time\ndef add(a, b):\n    time.sleep(60 if a == -1 else 0)\n    return a + b"
    dying = "import os\ndef add(a, b):\n    if a == -1: os.abort()\n    return a + b"
    forever = "def add(a, b):\n    while True: pass"
    for answer, soft in ((slow, 2 / 3), (dying, 2 / 3), (forever, 0.0)):
        verdict = await one(project, judge_answer, LIST, answer, seconds=0.5)
        assert verdict.soft == pytest.approx(soft), verdict.feedback


async def test_an_answer_that_keeps_the_tests_busy_has_failed(project: Any, judge_answer: Any) -> None:
    endless = "def add(a, b):\n    while True: yield 1"
    huge = "def add(a, b): return 10 ** 12"
    assert not (await one(project, judge_answer, ["assert list(add(1, 2)) == [3]"], endless, seconds=1)).hard
    busy = ["for _ in range(add(1, 2)): pass"]
    assert not (await one(project, judge_answer, busy, huge, seconds=0.3)).hard


async def test_tests_that_break_by_themselves_are_a_fault_and_never_a_zero(project: Any, judge_answer: Any) -> None:
    with pytest.raises(WorldFault, match="its tests broke"):
        await one(project, judge_answer, ["while True: pass"], ADD, seconds=0.3)
    with pytest.raises(WorldFault, match="only data can be given"):
        await one(project, judge_answer, ["assert add(lambda: 1, 2) == 3"], ADD)
    with pytest.raises(WorldFault, match="define no test"):
        await one(project, judge_answer, "class Helper:\n    pass\n", ADD)


@pytest.mark.parametrize(("tests", "says"), [("assert (", "are not Python"), ([1], "must be text"), (None, "missing")])
def test_tests_that_cannot_be_run_are_told_when_the_tasks_are_listed(project: Any, tests: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        project.questions({"question": "q", "answer": tests}, scorer="unit_tests")


def test_a_known_solution_is_offered_to_the_check(project: Any) -> None:
    world = project.questions({"question": "q", "answer": LIST, "solution": ADD}, scorer="unit_tests")
    assert world.known_good(world.tasks(Split.TRAIN)[0]) == ADD


SCORING = """
import os, socket
from whet.core import Verdict

def near(answer, reference):
    return 1 - abs(float(answer) - reference) / 10

async def told(task, row, answer):
    return Verdict(True, 0.75, f"well: {task.inputs['question']} {row['more']} {answer}")

def curious(answer):
    open('/etc/passwd'); return True

def online(answer):
    socket.socket(); return True

def forging(answer):
    print('{"judged": true}'); os._exit(0)
"""


async def test_a_function_that_is_not_trusted_judges_in_the_sandbox(project: Any, judge_answer: Any) -> None:
    project.write("scoring.py", f"raise SystemExit if {str(project.folder)!r} in __import__('sys').path else None")
    project.write("scoring.py", SCORING)

    async def by(function: str, answer: str) -> Verdict:
        scorer = {"use": "python", "function": f"scoring.py:{function}", "trusted": False, "pass_mark": 0.7}
        row = {"question": "q", "answer": 5, "more": "m"}
        async with held(project.questions(row, scorer=scorer)) as world:
            return await judge_answer(world, answer)

    verdict = await by("near", "6")
    assert (verdict.hard, verdict.soft) == (True, 0.9)
    assert (await by("told", "a")).feedback == "well: q m a"
    for function in ("curious", "online", "forging"):
        with pytest.raises(WorldFault, match=f"scoring.py:{function} gave no verdict"):
            await by(function, "6")
    with pytest.raises(WorldFault, match="ValueError"):
        await by("near", "six")


@pytest.mark.parametrize(
    ("function", "says"),
    [("scoring:near", "must be in a file"), ("scoring.py:far", "has no function far"), ("none.py:f", "cannot be read")],
)
def test_what_is_not_trusted_is_never_imported(project: Any, function: str, says: str) -> None:
    project.write("scoring.py", "raise SystemExit('imported')\ndef near(answer): return True")
    with pytest.raises(ConfigError, match=says):
        project.questions(
            {"question": "q", "answer": 1}, scorer={"use": "python", "function": function, "trusted": False}
        )
    assert Path(project.folder / "scoring.py").exists()
