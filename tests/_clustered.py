"""Tables whose rows are in clusters, and what few clusters cost, for tests."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import stats


def drawn(n: int = 400, *, seed: int = 0) -> pl.DataFrame:
    """Return rows with ties, two models, weights, segments and clusters that reach over segments."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), 2)
    return pl.DataFrame(
        {
            "y": (rng.random(n) < score).astype(np.int64),
            "p": score,
            "q": np.round(rng.random(n), 2),
            "w": rng.choice([1, 2, 3], n),
            "g": [(None, "a", "b")[i] for i in rng.integers(0, 3, n)],
            "c": [f"k{i}" if i % 5 else None for i in rng.integers(0, 60, n)],
        }
    )


def student(count: float, level: float = 0.95) -> float:
    """Return the squared ratio of the quantiles of t, for so many clusters, and of the normal law."""
    tail = (1 + level) / 2
    return float((stats.t.ppf(tail, count - 1) / stats.norm.ppf(tail)) ** 2)
