"""Which parts of a skill document no step may touch: its front matter, and regions between marker comments."""

from __future__ import annotations

import re

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n.*?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
SLOW_UPDATE = "SLOW_UPDATE"
APPENDIX = "APPENDIX"
_NAMES = (SLOW_UPDATE, APPENDIX)
_MARKER = re.compile(r"<!--\s*(?:" + "|".join(_NAMES) + r")_(?:START|END)\s*-->", re.IGNORECASE)
_REGIONS = tuple(
    re.compile(rf"<!--\s*{name}_START\s*-->.*?(?:<!--\s*{name}_END\s*-->|\Z)", re.DOTALL | re.IGNORECASE)
    for name in _NAMES
)

Span = tuple[int, int]


def protected_spans(text: str) -> list[Span]:
    """In order. A region whose end marker is missing reaches to the end of the document."""
    found = [match.span() for pattern in (_FRONT_MATTER, *_REGIONS) for match in pattern.finditer(text)]
    stray = [match.span() for match in _MARKER.finditer(text)]
    return _joined(sorted(found + stray))


def protected_texts(text: str) -> list[str]:
    """What must stay as it is, but for line ends after it."""
    patterns = (_FRONT_MATTER, *_REGIONS, _MARKER)
    return [match.group().rstrip("\r\n") for pattern in patterns for match in pattern.finditer(text)]


def append_position(text: str) -> int:
    """Where appended text goes: before the first region, else at the end; never into the front matter."""
    matter = _FRONT_MATTER.match(text)
    starts = [m.start() for pattern in _REGIONS for m in pattern.finditer(text, matter.end() if matter else 0)]
    return min(starts, default=len(text))


def without_markers(text: str) -> str:
    """Text from a model, with nothing left that looks like a marker: not even what removing one would form."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    while (cleaned := _MARKER.sub("", text)) != text:
        text = cleaned
    return text


def region(text: str, name: str) -> str:
    """What stands in the region of this name; empty if there is none."""
    match = _pattern(name).search(text)
    return _MARKER.sub("", match.group()).strip() if match else ""


def with_region(text: str, name: str, content: str) -> str:
    """The document with `content` as its one region of this name, where it was before, else at the end."""
    block = f"<!-- {name}_START -->\n{without_markers(content).strip()}\n<!-- {name}_END -->"
    pattern = _pattern(name)
    first = pattern.search(text)
    if first is None:
        return f"{text.rstrip()}\n\n{block}\n".lstrip("\n")
    rest = pattern.sub("", text[first.end() :])
    return f"{text[: first.start()]}{block}{rest}"


def with_body(text: str, body: str) -> str:
    """A rewritten document that keeps the front matter and the regions of the old one."""
    matter = _FRONT_MATTER.match(text)
    own = without_regions(body)
    while _FRONT_MATTER.match(own):
        own = _FRONT_MATTER.sub("", own, count=1).lstrip()
    document = (matter.group() if matter else "") + own.strip() + "\n"
    for name in _NAMES:
        if _pattern(name).search(text):
            document = with_region(document, name, region(text, name))
    return document


def without_regions(text: str) -> str:
    for pattern in _REGIONS:
        text = pattern.sub("", text)
    return without_markers(text)


def _pattern(name: str) -> re.Pattern[str]:
    return _REGIONS[_NAMES.index(name)]


def overlaps(span: Span, protected: list[Span]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in protected)


def _joined(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
