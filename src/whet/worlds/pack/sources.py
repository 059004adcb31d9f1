"""A function's source with all that it uses, so that it runs where whet is not installed.

What a function names is followed: other functions of whet and constants are taken along, names of the standard library
are imported. Hints are left out, for they may name what is not there.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any, cast

from whet.core import InputError

_PLAIN = (str, int, float, bytes, tuple, list, dict, set, frozenset, type(None))


class Collected:
    """Imports, constants and definitions, each once, in the order in which they are met."""

    def __init__(self) -> None:
        self.imports: dict[str, None] = {}
        self.constants: dict[str, str] = {}
        self.definitions: dict[str, str] = {}

    def add(self, thing: Callable[..., Any]) -> None:
        name = thing.__name__
        if name in self.definitions:
            return
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
        self.definitions[name] = ""
        plain = ast.fix_missing_locations(_WithoutHints().visit(tree))
        known = vars(sys.modules[thing.__module__])
        for used in _names(plain):
            if used in known and used != name:
                self._add_used(used, known[used], name)
        self.definitions[name] = ast.unparse(plain)

    def text(self) -> str:
        constants = [f"{name} = {value}" for name, value in self.constants.items()]
        return "\n\n\n".join(["\n".join(constants), *self.definitions.values()]).strip()

    def _add_used(self, name: str, value: Any, user: str) -> None:
        if isinstance(value, ModuleType):
            self.imports[f"import {value.__name__}"] = None
        elif isinstance(value, FunctionType | type):
            if value.__module__.partition(".")[0] == "whet":
                self.add(value)
            else:
                self.imports[f"from {value.__module__} import {value.__name__}"] = None
        elif isinstance(value, _PLAIN):
            self.constants[name] = repr(cast("object", value))
        else:
            raise InputError(
                f"{user} uses {name}, which is {type(value).__name__}", hint="Exported code needs plain values"
            )


def collect(things: Iterable[Callable[..., Any]]) -> Collected:
    collected = Collected()
    for thing in things:
        collected.add(thing)
    return collected


def _names(tree: ast.AST) -> list[str]:
    """What is read in it and not set: a local name that is the same as a global one hides it."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    local = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    local |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return list(dict.fromkeys(node.id for node in names if node.id not in local))


class _WithoutHints(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        self.generic_visit(node)
        if node.value is None:
            return ast.Pass()
        return ast.Assign([node.target], node.value)
