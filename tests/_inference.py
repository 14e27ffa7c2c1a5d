"""Tables to test, and the row of one test."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import calframe


def one(data: Any, **arguments: Any) -> dict[str, Any]:
    """Return the only row of a test of label y and score p."""
    table = calframe.test(data, **{"label": "y", "score": "p", **arguments}).table
    (row,) = table.iter_rows(named=True)
    return dict(row)


def drawn(n: int, *, seed: int = 0, power: float = 1.0, digits: int | None = None) -> pl.DataFrame:
    """Return rows with weights and segments; labels happen with the score to this power, so that 1 is right."""
    rng = np.random.default_rng(seed)
    score = rng.beta(2.0, 2.0, n)
    score = score if digits is None else np.round(score, digits)
    return pl.DataFrame(
        {
            "y": (rng.random(n) < score**power).astype(np.int64),
            "p": score,
            "w": rng.uniform(1.0, 4.0, n),
            "k": rng.integers(0, 4, n),
            "g": np.arange(n) % 3,
        }
    )


def class_table(n: int, *, seed: int = 0, segments: int = 1) -> pl.DataFrame:
    """Return rows of three classes whose scores are right."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 20, (n, 3)).astype(np.float64)
    scores /= scores.sum(axis=1, keepdims=True)
    label = (scores.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    columns = {f"p{i}": scores[:, i] for i in range(3)}
    return pl.DataFrame({"y": label, **columns, "k": rng.integers(1, 4, n), "g": np.arange(n) % segments})


CLASSES = {0: "p0", 1: "p1", 2: "p2"}
