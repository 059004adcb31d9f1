"""The house is as its plan says: rooms, names, sizes, prompts."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import whet
from whet.core import WhetError, errors
from whet.core.errors import EndpointError
from whet.core.prompts import fill, strip_header

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "whet"
HEAVY = ("aiohttp", "rich", "click", "starlette", "uvicorn", "torch", "transformers", "ray", "mcp", "azure")
PACKAGES = ["whet", *(found.name for found in pkgutil.walk_packages(whet.__path__, "whet.") if found.ispkg)]
MODULES = sorted(path for path in SOURCE.rglob("*.py"))
PROMPTS = sorted(path for path in SOURCE.rglob("*.md") if path.parent.name == "prompts")


def fresh(source: str) -> str:
    """What a process of its own prints."""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_is_there_and_named_once(name: str) -> None:
    package = importlib.import_module(name)
    public = list(getattr(package, "__all__", ()))
    assert len(set(public)) == len(public)
    assert [each for each in public if not hasattr(package, each)] == []


@pytest.mark.parametrize("path", [path for path in MODULES if path.name == "__init__.py"], ids=lambda p: p.parent.name)
def test_every_room_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ["whet", "whet.core", "whet.store", "whet.gate", "whet.project"])
def test_importing_a_room_loads_nothing_heavy(name: str) -> None:
    loaded = fresh(f"import sys, {name}; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert loaded == "[]"


def test_a_training_loads_the_network_only_when_it_calls() -> None:
    heavy = [name for name in HEAVY if name != "click"]
    assert fresh(f"import sys, whet.training; print([m for m in {heavy!r} if m in sys.modules])") == "[]"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_is_longer_than_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def drawn_tree(text: str) -> dict[str, str]:
    """Each class of a drawn tree with the one above it."""
    parents: dict[str, str] = {}
    above: list[str] = []
    for line in text.splitlines():
        found = re.match(r"([│├└─ ]*)([A-Z]\w+)\s{2,}\S", line)
        if found:
            depth = len(found[1]) // 4
            parents[found[2]] = above[depth - 1] if depth else ""
            above[depth:] = [found[2]]
    return parents


def real_tree(module: ModuleType, root: type[Exception]) -> dict[str, str]:
    classes = [each for _, each in inspect.getmembers(module, inspect.isclass) if issubclass(each, root)]
    return {each.__name__: "" if each is root else each.__bases__[0].__name__ for each in classes}


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    drawn = drawn_tree(errors.__doc__ or "")
    assert drawn == real_tree(errors, WhetError)
    assert drawn["EndpointBusy"] == "EndpointError"


def test_every_error_can_be_told_in_one_line() -> None:
    for name in real_tree(errors, WhetError):
        error = getattr(errors, name)("it broke", hint="Mend it.")
        assert str(error) == "it broke. Mend it."
        assert isinstance(error, EndpointError) == hasattr(error, "retryable")


def header_of(text: str) -> str:
    found = re.match(r"<!--(.*?)-->|---\n(.*?)\n---\n", text, re.DOTALL)
    assert found, "a prompt begins with a header"
    return found[1] or found[2]


def named_inputs(header: str) -> set[str]:
    """What follows "Inputs:", without what is said of each in brackets."""
    if "No inputs" in header:
        return set()
    found = re.search(r"[Ii]nputs:\s*(.*?)\.?\s*$", re.sub(r"\([^)]*\)", "", header), re.DOTALL)
    assert found, "its header names its inputs"
    return set(re.findall(r"[a-z_]+", found[1]))


def body_of(text: str) -> str:
    return strip_header(text) if text.startswith("<!--") else text[text.index("\n---\n") + 5 :]


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: path.stem)
def test_every_prompt_names_its_inputs_and_renders_with_exactly_these(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    inputs = {name: f"<{name}>" for name in named_inputs(header_of(text))}
    rendered = fill(body_of(text), inputs)
    assert [name for name, value in inputs.items() if value not in rendered] == []
    assert "<!--" not in rendered
    assert rendered.strip()


def test_there_are_prompts_to_look_at() -> None:
    assert {"tools", "rank", "reflect_failure", "merge_final"} <= {path.stem for path in PROMPTS}


@pytest.mark.slow
def test_rooms_import_downwards_only() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout
