"""Prints the table in references.json, made with scipy: an independent computation of what whet computes by itself.

python -m venv /tmp/scipy && /tmp/scipy/bin/pip install scipy==1.17.1
/tmp/scipy/bin/python tests/gate/make_references.py > tests/gate/references.json
"""

from __future__ import annotations

import json
import random
from typing import Any

import numpy
import scipy
from scipy.stats import binom, binomtest, bootstrap, permutation_test

SIDES = {"greater": "greater", "less": "less", "both": "two-sided"}


def draws(seed: int, count: int, low: float, high: float, digits: int) -> list[float]:
    source = random.Random(seed)
    return [round(source.uniform(low, high), digits) for _ in range(count)]


def intervals() -> list[dict[str, Any]]:
    rows = []
    for passed, count in ((0, 1), (1, 1), (0, 10), (3, 10), (10, 10), (17, 50), (49, 50), (250, 1000)):
        found = binomtest(passed, count)
        wilson = found.proportion_ci(method="wilson")
        exact = found.proportion_ci(method="exact")
        rows.append({"passed": passed, "count": count, "wilson": list(wilson), "clopper_pearson": list(exact)})
    return rows


def binomials() -> list[dict[str, Any]]:
    cases = (
        (3, 10, 0.5),
        (9, 10, 0.5),
        (0, 4, 0.5),
        (12, 40, 0.2),
        (41, 100, 0.5),
        (700, 1000, 0.68),
        (5, 2000, 0.001),
    )
    return [
        {"k": k, "n": n, "p": p, **{side: binomtest(k, n, p, name).pvalue for side, name in SIDES.items()}}
        for k, n, p in cases
    ]


def sign_flips() -> list[dict[str, Any]]:
    lists = [
        [1.0, 1.0, 1.0, -1.0, 0.0, 1.0, 1.0, 0.0, 1.0],
        [-1.0, -1.0, 0.0, 1.0],
        draws(1, 12, -0.4, 0.6, 2),
        draws(2, 10, -0.9, 0.5, 3),
        [0.25, 0.5, 0.5, -0.25, 1.0, 0.75, 0.0, 0.25, -0.5, 0.5, 0.25, 0.75, 0.5],
    ]
    rows = []
    for values in lists:
        row: dict[str, Any] = {"differences": values}
        for side, name in SIDES.items():
            found = permutation_test(
                (numpy.array(values),),
                lambda sample, axis: numpy.sum(sample, axis=axis),
                permutation_type="samples",
                vectorized=True,
                n_resamples=numpy.inf,
                alternative=name,
            )
            row[side] = float(found.pvalue)
        rows.append(row)
    return rows


def bootstraps() -> list[dict[str, Any]]:
    lists = [
        draws(3, 40, -0.4, 0.6, 2),
        [1.0] * 9 + [-1.0] * 3 + [0.0] * 38,
        [round(value**3, 3) for value in draws(4, 60, -0.5, 1.0, 3)],
    ]
    rows = []
    for values in lists:
        found = bootstrap((numpy.array(values),), numpy.mean, n_resamples=400_000, method="BCa", rng=7, batch=2_000)
        rows.append({"differences": values, "interval": [float(end) for end in found.confidence_interval]})
    return rows


def powers() -> list[dict[str, Any]]:
    rows = []
    for tasks, discordant, gain, level in (
        (50, 0.3, 0.1, 0.025),
        (50, 0.3, 0.2, 0.025),
        (200, 0.2, 0.08, 0.05),
        (30, 0.4, 0, 0.025),
    ):
        better, power = (1 + gain / discordant) / 2, 0.0
        for count in range(tasks + 1):
            needed = next((k for k in range(count + 1) if binom.sf(k - 1, count, 0.5) <= level), count + 1)
            power += binom.pmf(count, tasks, discordant) * binom.sf(needed - 1, count, better)
        rows.append({"tasks": tasks, "discordant": discordant, "gain": gain, "level": level, "power": float(power)})
    return rows


def main() -> None:
    made = {
        "scipy": scipy.__version__,
        "intervals": intervals(),
        "binomials": binomials(),
        "sign_flips": sign_flips(),
        "bootstraps": bootstraps(),
        "powers": powers(),
    }
    lines = [f"{json.dumps(name)}: {_table(rows)}" for name, rows in made.items()]
    print("{\n" + ",\n".join(lines) + "\n}")  # noqa: T201


def _table(rows: Any) -> str:
    return json.dumps(rows) if isinstance(rows, str) else "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"


if __name__ == "__main__":
    main()
