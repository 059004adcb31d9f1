"""HTML that is escaped because there is no other way to make it: text becomes markup only through `tag`."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"br", "hr", "input", "meta"})
_UNSEEN = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "�"),
    ord("\t"): "\t",
    ord("\n"): "\n",
    ord("\r"): "␍",
    # These turn the reading order around, so that a line can show what it does not say.
    **{code: f"⟨U+{code:04X}⟩" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))},
}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: str) -> Markup:
    """`value` as the reader should see it, whatever stands in it."""
    return value if isinstance(value, Markup) else Markup(escape(value.translate(_UNSEEN)))


def many(parts: Iterable[str]) -> Markup:
    return Markup("".join(text(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: str | float | bool | None) -> Markup:
    """One element. `class_` and `aria_label` are `class` and `aria-label`; False and None leave an attribute out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    return Markup(f"<{name}{written}>" if name in _VOID else f"<{name}{written}>{many(children)}</{name}>")


def percent(share: float) -> str:
    """A place along an axis, so that a drawing is as wide as there is room."""
    return f"{number(100 * share)}%"


def number(value: float) -> str:
    """At most two decimals, the same on every machine."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"


def _attribute(key: str, value: str | float | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    return f' {name}="{text(value) if isinstance(value, str) else number(value)}"'
