"""Counts for Prometheus, in its text form."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

import msgspec

from whet.core import Usage

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class Labels(msgspec.Struct, frozen=True):
    """Only names that whet knows: callers cannot make new ones."""

    model: str = ""
    policy: str = ""
    channel: str = ""


class Done(msgspec.Struct, frozen=True):
    """One request, when it is over."""

    labels: Labels
    endpoint: str
    status: int
    """499: the caller left before the end."""
    seconds: float
    usage: Usage | None = None


class _Histogram:
    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(_BOUNDS, value)] += 1
        self.sum += value


class Metrics:
    def __init__(self) -> None:
        self._requests: Counter[tuple[Labels, str, int]] = Counter()
        self._seconds: dict[Labels, _Histogram] = {}
        self._tokens: Counter[tuple[Labels, str]] = Counter()
        self.captures_failed = 0

    def add(self, done: Done) -> None:
        self._requests[done.labels, done.endpoint, done.status] += 1
        self._seconds.setdefault(done.labels, _Histogram()).add(done.seconds)
        if done.usage is not None:
            self._tokens[done.labels, "in"] += done.usage.input_tokens
            self._tokens[done.labels, "out"] += done.usage.output_tokens

    def count(self, *, channel: str = "", policy: str = "") -> int:
        """Requests of a channel, or of a policy."""
        fits = (
            number
            for (labels, _, _), number in self._requests.items()
            if (not channel or labels.channel == channel) and (not policy or labels.policy == policy)
        )
        return sum(fits)

    def text(self, gauges: dict[str, float]) -> bytes:
        lines = ["# TYPE whet_requests_total counter"]
        for (labels, endpoint, status), number in sorted(self._requests.items(), key=str):
            lines.append(f'whet_requests_total{{{_written(labels)},endpoint="{endpoint}",code="{status}"}} {number}')
        lines.append("# TYPE whet_tokens_total counter")
        for (labels, direction), number in sorted(self._tokens.items(), key=str):
            lines.append(f'whet_tokens_total{{{_written(labels)},direction="{direction}"}} {number}')
        lines.append("# TYPE whet_request_seconds histogram")
        for labels, histogram in sorted(self._seconds.items(), key=str):
            lines += _buckets(_written(labels), histogram)
        lines += [line for name, value in gauges.items() for line in (f"# TYPE {name} gauge", f"{name} {value:g}")]
        lines += ["# TYPE whet_captures_failed_total counter", f"whet_captures_failed_total {self.captures_failed}"]
        return ("\n".join(lines) + "\n").encode()


def _buckets(labels: str, histogram: _Histogram) -> list[str]:
    lines: list[str] = []
    total = 0
    for bound, count in zip((*(f"{bound:g}" for bound in _BOUNDS), "+Inf"), histogram.counts, strict=True):
        total += count
        lines.append(f'whet_request_seconds_bucket{{{labels},le="{bound}"}} {total}')
    lines.append(f"whet_request_seconds_sum{{{labels}}} {histogram.sum:.6f}")
    lines.append(f"whet_request_seconds_count{{{labels}}} {total}")
    return lines


def _written(labels: Labels) -> str:
    return f'model="{_safe(labels.model)}",policy="{_safe(labels.policy)}",channel="{_safe(labels.channel)}"'


def _safe(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
