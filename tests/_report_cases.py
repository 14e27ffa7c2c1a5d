"""Tables of every kind for the claims of a report: corners made by hand, and sixty random ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from calframe._report._findings import Findings
from tests._findings import drawn, gathered


def _scores(rng: np.random.Generator, n: int) -> np.ndarray:
    shapes: tuple[Callable[[], np.ndarray], ...] = (
        lambda: rng.random(n),
        lambda: rng.beta(0.4, 0.4, n),
        lambda: rng.beta(1.5, 8.0, n),
        lambda: rng.beta(1.0, 400.0, n),
        lambda: np.round(rng.random(n), 1),
        lambda: np.full(n, rng.random()),
        lambda: rng.integers(0, 2, n).astype(np.float64),
    )
    return shapes[rng.integers(len(shapes))]()


def random_table(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([7, seed])
    n = int(rng.choice([1, 5, 120, 700, 4000, 15_000]))
    segments = int(rng.choice([0, 1, 2, 5, 40]))
    periods = int(rng.choice([0, 1, 4, 12]))
    off = rng.choice([0.0, 0.0, 0.02, 0.08, -0.08]) * (rng.random(n) < rng.choice([0.3, 1.0]))
    if periods and rng.random() < 0.4:
        off = np.where(np.arange(n) % periods >= periods - 2, rng.choice([-0.12, 0.12]), 0.0)
    if segments and rng.random() < 0.4:
        off = np.where(np.arange(n) % segments < 3, rng.choice([-0.15, 0.1]), off)
    table = drawn(rng, _scores(rng, n), off=off, segments=segments, periods=periods)
    if rng.random() < 0.5:
        keep = pl.Series(rng.random(n) > rng.choice([0.03, 0.3, 1.0]))
        table = table.with_columns(p=pl.when(keep).then("p"))
    arguments: dict[str, Any] = {"tolerance": float(rng.choice([0.01, 0.03, 0.1]))}
    if segments:
        table = table.with_columns(
            other=pl.when(pl.int_range(n) % 7 > 1).then(pl.int_range(n) % 3),
        )
        arguments["by"] = ["group", "other"] if rng.random() < 0.4 else "group"
    if periods:
        arguments["time"] = "day"
    if rng.random() < 0.25:
        table = table.with_columns(w=pl.Series(rng.choice([0.0, 1.0, 2.5], n)))
        arguments["weight"] = "w"
    return {"table": table, **arguments}


def _flat(n: int, *, label: Any = 1, score: Any = 0.5, **more: Any) -> dict[str, Any]:
    columns = {"y": [label] * n, "p": [score] * n, "group": ["a"] * n}
    return {"table": pl.DataFrame(columns, schema_overrides={"y": pl.Int64, "p": pl.Float64}), "by": "group", **more}


CORNERS: dict[str, dict[str, Any]] = {
    "no score at all": _flat(300, score=None),
    "no label at all": _flat(300, label=None),
    "all ones": _flat(300),
    "all zeros": _flat(300, label=0),
    "one row": _flat(1),
    "scores of nothing but 0": _flat(5000, label=0, score=0.0),
    "scores of nothing but 1 and no event": _flat(5000, label=0, score=1.0),
    "without segments": {"table": _flat(500)["table"]},
    "one undecided segment": {
        "table": pl.DataFrame({"y": [0, 1] * 100, "p": [0.5] * 200, "group": ["a"] * 200}),
        "by": "group",
    },
    "forty segments, all undecided": {
        "table": drawn(np.random.default_rng(1), np.random.default_rng(2).random(6000), segments=40),
        "by": "group",
    },
    "all within": {
        "table": drawn(np.random.default_rng(3), np.random.default_rng(4).uniform(0.1, 0.3, 60_000), segments=3),
        "by": "group",
    },
    "all far off": {
        "table": drawn(np.random.default_rng(3), np.random.default_rng(4).random(6000), off=0.3, segments=3),
        "by": "group",
    },
    "one large segment within, one small one clear": {
        "table": pl.concat(
            [
                pl.DataFrame({"y": [0] * 24_500 + [1] * 25_500, "p": [0.53] * 50_000, "group": ["large"] * 50_000}),
                pl.DataFrame({"y": [0] * 700 + [1] * 300, "p": [0.5] * 1000, "group": ["small"] * 1000}),
                pl.DataFrame({"y": [0] * 700 + [1] * 300, "p": [0.48] * 1000, "group": ["other"] * 1000}),
            ]
        ),
        "by": "group",
        "tolerance": 0.05,
    },
    "a gap that was always there": {
        "table": drawn(np.random.default_rng(5), np.random.default_rng(6).random(8000), off=0.2, periods=8),
        "time": "day",
    },
    "a shift at the end": {
        "table": drawn(
            np.random.default_rng(5),
            np.random.default_rng(6).uniform(0.2, 0.8, 12_000),
            off=np.where(np.arange(12_000) % 12 >= 10, 0.12, 0.0),
            periods=12,
        ),
        "time": "day",
    },
}
TABLES = list(CORNERS) + list(range(60))


@cache
def found_in(case: str | int) -> Findings:
    given = dict(CORNERS[case] if isinstance(case, str) else random_table(case))
    return gathered(given.pop("table"), **given)
