"""In the answer's sandbox: its code, and whatever the tests ask it to do."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgspec

from whet.core import Json
from whet.worlds.unit_tests.messages import Do, Done, Load, ToAnswer
from whet.worlds.unit_tests.values import Foreign, NotData, pack, unpack

_OPERATORS: dict[str, Callable[..., Any]] = {
    "get": getattr,
    "set": setattr,
    "call": operator.call,
    "len": len,
    "bool": bool,
    "str": str,
    "repr": repr,
    "hash": hash,
    "iter": iter,
    "next": next,
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
    "equal": operator.eq,
    "less": operator.lt,
    "less_or_equal": operator.le,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "enter": operator.methodcaller("__enter__"),
    "leave": operator.methodcaller("__exit__", None, None, None),
}
_decode: Callable[[bytes], ToAnswer] = msgspec.json.Decoder(ToAnswer).decode


class AnswerHost:
    """See `whet.sandbox`. The module is object 0, and each object that is not data gets the next number."""

    def __init__(self, settings: Json) -> None:
        self._module = ModuleType("solution")
        self._objects: list[Any] = [self._module]
        self._numbers = {id(self._module): 0}

    def load(self) -> None:
        pass

    def start(self, scratch: str) -> None:
        pass

    def answer(self, request: bytes) -> bytes:
        message = _decode(request)
        # Whatever the answer raises is told to the tests, who may have expected it.
        try:
            done = self._loaded(message) if isinstance(message, Load) else self._done(message)
        except BaseException as error:  # noqa: BLE001
            done = self._raised(error)
        return msgspec.json.encode(done)

    def _loaded(self, order: Load) -> Done:
        source = "\n".join(order.source)
        exec(compile(source, "<answer>", "exec", dont_inherit=True), vars(self._module))  # noqa: S102
        names: list[Json] = [name for name, value in vars(self._module).items() if _is_offered(name, value)]
        return Done(["list", names])

    def _done(self, order: Do) -> Done:
        arguments: list[Any] = unpack(order.arguments, self._found)
        named: dict[str, Any] = {} if order.named is None else unpack(order.named, self._found)
        value = _OPERATORS[order.what](self._objects[order.number], *arguments, **named)
        return Done(pack(value, self._keep), pack(arguments, self._keep))

    def _raised(self, error: BaseException) -> Done:
        kind = type(error)
        try:
            arguments = pack(list(error.args), self._keep)
        except (NotData, RecursionError):
            arguments = pack([str(error)], self._keep)
        return Done(raised=[pack(kind, self._keep), arguments], raised_kind=kind.__name__)

    def _keep(self, value: Any) -> Foreign:
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)
        base = _built_in(value) if isinstance(value, type) and issubclass(value, BaseException) else ""
        name = value.__name__ if isinstance(value, type) else type(value).__name__
        return Foreign(number, name, callable(value), base)

    def _found(self, foreign: Foreign) -> Any:
        return self._objects[foreign.number]


def _is_offered(name: str, value: Any) -> bool:
    return not (name.startswith("__") or isinstance(value, ModuleType))


def _built_in(kind: type[BaseException]) -> str:
    """The nearest exception that Python brings."""
    return next(each.__name__ for each in kind.__mro__ if getattr(builtins, each.__name__, None) is each)
