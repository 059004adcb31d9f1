"""Prompts are files with a header that names their inputs; this fills them in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from whet.core.errors import ConfigError

_HEADER = re.compile(r"\A<!--.*?-->\s*", re.DOTALL)
_INPUT = re.compile(r"\{([a-z_]+)\}")


@cache
def load_prompt(package: str, name: str) -> str:
    """The text of `name`.md in `package`, without its header."""
    return strip_header((files(package) / f"{name}.md").read_text(encoding="utf-8"))


def strip_header(text: str) -> str:
    return _HEADER.sub("", text, count=1).rstrip("\n")


def fill(prompt: str, inputs: Mapping[str, str]) -> str:
    """Put `inputs` in place of their `{name}`s, in one pass: braces inside an input are left alone.

    A prompt that names an input it is not given is a mistake of whoever wrote it.
    """
    missing = sorted(set(_INPUT.findall(prompt)) - set(inputs))
    if missing:
        raise ConfigError(
            f"a prompt asks for {{{missing[0]}}}, which it is not given",
            hint=f"It may use: {', '.join(sorted(inputs))}.",
        )
    return _INPUT.sub(lambda match: inputs[match.group(1)], prompt)
