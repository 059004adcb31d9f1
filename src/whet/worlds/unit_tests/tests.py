"""In the tests' sandbox: they run in a thread, which waits whenever they need something of the answer."""

from __future__ import annotations

import ast
import builtins
import queue
import sys
import threading
import unittest
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import msgspec

from whet.core import Json
from whet.worlds.unit_tests.messages import Do, Done, FromTests, Listed, Load, ToTests, Tried
from whet.worlds.unit_tests.values import Foreign, NotData, pack, unpack

_MOST_TEXT = 300
_NAMES = ("solution", "answer")
"""By which tests may import the answer."""
_decode: Callable[[bytes], ToTests] = msgspec.json.Decoder(ToTests).decode


class TestsHost:
    """See `whet.sandbox`. Each request goes on with the tests until they are done or need the answer."""

    def __init__(self, settings: Json) -> None:
        self._said: queue.SimpleQueue[FromTests] = queue.SimpleQueue()
        self._heard: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._far = Far(self._ask)
        self._tests: list[tuple[str, Callable[[], object]]] = []

    def load(self) -> None:
        pass

    def start(self, scratch: str) -> None:
        pass

    def answer(self, request: bytes) -> bytes:
        message = _decode(request)
        if isinstance(message, Done):
            self._heard.put(message)
        else:
            work = self._listed if isinstance(message, Load) else self._tried
            threading.Thread(target=lambda: self._said.put(work(message)), daemon=True).start()
        return msgspec.json.encode(self._said.get())

    def _ask(self, order: Do) -> Done:
        self._said.put(order)
        return self._heard.get()

    def _listed(self, order: Any) -> FromTests:
        try:
            self._tests = collected(order, self._far)
        except NotData as error:
            return Tried(False, fault=str(error))
        except BaseException as error:  # noqa: BLE001 (tests that do not load with this answer fail)
            return Tried(False, _told(error))
        return Listed(tuple(name for name, _ in self._tests))

    def _tried(self, order: Any) -> FromTests:
        try:
            self._tests[order.place][1]()
        except NotData as error:
            return Tried(False, fault=str(error))
        except BaseException as error:  # noqa: BLE001 (whatever stops a test, it has failed)
            return Tried(False, _told(error))
        return Tried(True)


class Far:
    """The answer, as the tests see it."""

    def __init__(self, ask: Callable[[Do], Done]) -> None:
        self._ask = ask
        self._known: dict[int, Any] = {}

    def do(self, number: int, what: str, *arguments: Any, **named: Any) -> Any:
        sent = [pack(each, _number_of) for each in arguments]
        done = self._ask(Do(number, what, ["list", sent], pack(named, _number_of) if named else None))
        if done.raised is not None:
            raise self._error(done)
        for mine, before, after in zip(arguments, sent, _items(done.arguments), strict=True):
            if before != after:
                _follow(mine, unpack(after, self.found))
        return unpack(done.value, self.found)

    def module(self, names: Iterable[str]) -> ModuleType:
        """Without what Python itself calls by these names: no answer says what `len` or `sum` is in a test."""
        module = ModuleType("solution")
        for name in names:
            if not hasattr(builtins, name):
                setattr(module, name, self.do(0, "get", name))
        return module

    def found(self, foreign: Foreign) -> Any:
        """The same object is the same here, too."""
        if foreign.number not in self._known:
            self._known[foreign.number] = self._exception(foreign) if foreign.exception else Object(self, foreign)
        return self._known[foreign.number]

    def _exception(self, foreign: Foreign) -> type[BaseException]:
        base: Any = getattr(builtins, foreign.exception, None)
        if not (isinstance(base, type) and issubclass(base, BaseException)):
            raise RuntimeError(f"the answer has no exception {foreign.kind}")
        if foreign.kind == foreign.exception:
            return base
        return type(foreign.kind, (base,), {"_whet_foreign": foreign})

    def _error(self, done: Done) -> BaseException:
        assert isinstance(done.raised, list)
        kind, arguments = unpack(done.raised[0], self.found), unpack(done.raised[1], self.found)
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            return RuntimeError(f"the answer raised {done.raised_kind}")
        try:
            error = kind(*arguments)
        except TypeError:
            error = RuntimeError(f"{done.raised_kind}: {arguments}")
        # Only what a test can expect may pass for an exception of its own.
        return error if isinstance(error, Exception) else RuntimeError(f"the answer raised {done.raised_kind}")


class Object:
    """An object that stays with the answer. It is never equal to data, less than data, or data itself."""

    __slots__ = ("_whet_far", "_whet_foreign")
    _whet_far: Far
    _whet_foreign: Foreign

    def __init__(self, far: Far, foreign: Foreign) -> None:
        object.__setattr__(self, "_whet_far", far)
        object.__setattr__(self, "_whet_foreign", foreign)

    def _whet_do(self, what: str, *arguments: Any, **named: Any) -> Any:
        return self._whet_far.do(self._whet_foreign.number, what, *arguments, **named)

    def __getattr__(self, name: str) -> Any:
        return self._whet_do("get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._whet_do("set", name, value)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._whet_do("call", *arguments, **named)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Object) and (other is self or self._whet_do("equal", other) is True)

    def __lt__(self, other: object) -> bool:
        return self._whet_do("less", other) is True if isinstance(other, Object) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._whet_do("less_or_equal", other) is True if isinstance(other, Object) else NotImplemented

    def __hash__(self) -> int:
        return _of(self._whet_do("hash"), int)

    def __bool__(self) -> bool:
        return _of(self._whet_do("bool"), bool)

    def __len__(self) -> int:
        return _of(self._whet_do("len"), int)

    def __str__(self) -> str:
        return _of(self._whet_do("str"), str)

    def __repr__(self) -> str:
        return _of(self._whet_do("repr"), str)

    def __iter__(self) -> Iterator[Any]:
        far = self._whet_do("iter")
        while True:
            try:
                yield far._whet_do("next")
            except StopIteration:
                return

    def __next__(self) -> Any:
        return self._whet_do("next")

    def __getitem__(self, key: Any) -> Any:
        return self._whet_do("getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._whet_do("setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        self._whet_do("delitem", key)

    def __add__(self, other: Any) -> Any:
        return self._whet_do("add", other)

    def __sub__(self, other: Any) -> Any:
        return self._whet_do("subtract", other)

    def __mul__(self, other: Any) -> Any:
        return self._whet_do("multiply", other)

    def __enter__(self) -> Any:
        return self._whet_do("enter")

    def __exit__(self, *_: object) -> None:
        self._whet_do("leave")


def collected(order: Load, far: Far) -> list[tuple[str, Callable[[], object]]]:
    """Several texts are a test each; of one, what it defines, or else all of it."""
    module = far.module(order.names)
    for name in _NAMES:
        sys.modules[name] = module
    offered = {name: value for name, value in vars(module).items() if not name.startswith("__")}
    first, *others = order.source
    if others or not defines_tests(first):
        texts = enumerate(order.source, start=1)
        return [(f"test {place}", lambda text=text: _execute(text, dict(offered))) for place, text in texts]
    names = _execute(first, offered)
    return list(_defined(names, order.candidate))


def defines_tests(text: str) -> bool:
    """Whether a test file has functions or classes of tests, rather than being one."""
    return any(
        isinstance(each, ast.ClassDef | ast.FunctionDef)
        and (each.name.startswith(("test", "Test")) or each.name == "check" or isinstance(each, ast.ClassDef))
        for each in ast.parse(text).body
    )


def _execute(text: str, names: dict[str, Any]) -> dict[str, Any]:
    names["__name__"] = "tests"
    exec(compile(text, "<tests>", "exec", dont_inherit=True), names)  # noqa: S102 (what this sandbox is for)
    return names


def _defined(names: dict[str, Any], candidate: str) -> Iterator[tuple[str, Callable[[], object]]]:
    for name, value in list(names.items()):
        if isinstance(value, Object) or not callable(value):
            continue
        if isinstance(value, type):
            yield from _methods(name, value)
        elif name == "check":
            yield name, partial(_check, value, names, candidate)
        elif name.startswith("test"):
            yield name, value


def _methods(name: str, kind: type[Any]) -> Iterator[tuple[str, Callable[[], object]]]:
    if issubclass(kind, unittest.TestCase):
        for method in unittest.defaultTestLoader.getTestCaseNames(kind):
            yield f"{name}.{method}", partial(_run_case, kind, method)


def _check(check: Callable[[Any], object], names: dict[str, Any], candidate: str) -> None:
    check(names[candidate])


def _run_case(kind: type[unittest.TestCase], method: str) -> None:
    found = unittest.TestResult()
    unittest.TestSuite([kind(method)]).run(found)
    told: list[str] = [text for _, text in found.errors + found.failures + found.skipped]
    if told or found.testsRun != 1 or found.unexpectedSuccesses:
        if any("NotData" in text for text in told):
            raise NotData(told[0].strip().splitlines()[-1])
        raise AssertionError(told[0].strip().splitlines()[-1] if told else "it did not run")


def _number_of(value: Any) -> Foreign:
    """Of what came from the answer. The tests' own objects have no place there."""
    if isinstance(value, Object):
        return object.__getattribute__(value, "_whet_foreign")
    known = getattr(value, "_whet_foreign", None)
    if isinstance(known, Foreign):
        return known
    raise NotData(f"the tests give the answer a {type(value).__name__}, and only data can be given")


def _follow(mine: Any, now: Any) -> None:
    """What the answer did to a container that it was given."""
    if type(mine) is not type(now):
        return
    if type(mine) in (list, bytearray):
        mine[:] = now
    elif type(mine) in (dict, set):
        mine.clear()
        mine.update(now)


def _items(packed: Json) -> list[Json]:
    if isinstance(packed, list) and len(packed) == 2 and isinstance(packed[1], list):
        return packed[1]
    raise RuntimeError("the answer's reply cannot be read")


def _of(value: Any, kind: type[Any]) -> Any:
    """Python insists on these being what they should be."""
    if type(value) is not kind:
        raise TypeError(f"not a {kind.__name__}: {type(value).__name__}")
    return value


def _told(error: BaseException) -> str:
    said = str(error)
    return (f"{type(error).__name__}: {said}" if said else type(error).__name__)[:_MOST_TEXT]
