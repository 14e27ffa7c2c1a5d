"""Tables that show patterns of wrong scores, and what `diagnose` says of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from calframe._diagnose import Diagnosis, diagnose
from tests._tables import Maker

POLARS = Maker("polars")
PATTERNS = {"none found", "within tolerance", "says too much", "says too little", "over-confident", "under-confident"}
PATTERNS |= {"crossing", "collapse", "extreme", "not decided"}


def found(columns: Any, make: Maker = POLARS, **arguments: Any) -> Diagnosis:
    return diagnose(make(columns), **{"label": "y", "score": "p", **arguments})


def only(columns: Any, **arguments: Any) -> dict[str, Any]:
    (row,) = found(columns, **arguments).table.to_dicts()
    return row


def counts(*cells: tuple[float, int, int]) -> dict[str, list[Any]]:
    """Return rows from scores with positives and negatives."""
    return {
        "p": [score for score, yes, no in cells for _ in range(yes + no)],
        "y": [label for _, yes, no in cells for label in [1] * yes + [0] * no],
    }


def drawn(n: int = 600, *, seed: int = 0) -> dict[str, Any]:
    """Return rows with ties, two models, weights and segments."""
    rng = np.random.default_rng(seed)
    score = np.where(rng.random(n) < 0.5, rng.integers(0, 11, n) / 10, rng.random(n))
    return {
        "y": (rng.random(n) < score**2).astype(int).tolist(),
        "p": score.tolist(),
        "q": np.round(rng.random(n), 1).tolist(),
        "w": rng.choice([0.5, 1.0, 2.5], n).tolist(),
        "k": rng.choice([1, 2, 3], n).tolist(),
        "g": rng.choice(["a", "b", "c"], n).tolist(),
    }


# Each pattern on a table that shows it, made by hand

SHOWN = {
    "none found": (counts((0.2, 20, 80), (0.5, 50, 50), (0.8, 80, 20)), None),
    "within tolerance": (counts((0.2, 21_000, 79_000), (0.5, 51_000, 49_000), (0.8, 81_000, 19_000)), None),
    "says too much": (counts((0.4, 20, 80), (0.6, 36, 64), (0.8, 60, 40)), "platt"),
    "says too little": (counts((0.2, 40, 60), (0.4, 64, 36), (0.6, 80, 20)), "platt"),
    "over-confident": (counts((0.1, 30, 70), (0.5, 50, 50), (0.9, 70, 30)), "temperature"),
    "under-confident": (counts((0.3, 10, 90), (0.5, 50, 50), (0.7, 90, 10)), "temperature"),
    "crossing": (counts((0.2, 50, 50), (0.4, 20, 80), (0.6, 80, 20), (0.8, 50, 50)), "isotonic"),
    "collapse": (counts((0.49, 60, 90), (0.51, 90, 60)), "platt"),
    "extreme": (counts((0.999, 60, 40), (0.6, 60, 40), (0.3, 30, 70)), "isotonic"),
    "not decided": (counts((0.9, 20, 20)), None),
}
