"""The metrics by their definitions, row by row in exact rational arithmetic: slow, and written without the package."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import numpy as np
from scipy import stats

Row = tuple[int, float, float]  # label, score, weight

EXACT = (
    "rate",
    "mean_score",
    "gap",
    "ratio",
    "accuracy",
    "brier",
    "brier_skill",
    "log_loss",
    "ece",
    "mce",
    "rmsce",
    "ace",
    "sharpness",
)


def edges_of(count: int, *, single: bool = False) -> list[float]:
    """Return the edges k / count, each the nearest float64, or the float32 nearest to that."""
    edges = [float(Fraction(k, count)) for k in range(count + 1)]
    return [float(np.float32(edge)) for edge in edges] if single else edges


def bin_of(score: float, edges: Sequence[float], *, closed: str) -> int:
    """Return the bin of a score: the outermost bins are closed on both sides."""
    found = bisect_right(edges, score) if closed == "left" else bisect_left(edges, score)
    return min(max(found - 1, 0), len(edges) - 2)


def defined(
    metric: str, rows: Iterable[Row], *, edges: Sequence[float], closed: str = "left", clip: float = 0.0
) -> float | None:
    """Return a metric of complete rows; None where it has no value."""
    table = [(label, Fraction(score), Fraction(weight)) for label, score, weight in rows if weight > 0]
    if not table:
        return None
    if metric == "log_loss":
        return _log_loss(table, clip)
    if metric in _BINNED:
        return _BINNED[metric](_cells(table, edges, closed))
    found = _PLAIN[metric](table)
    return None if found is None else float(found)


def chance_gap(scores: Sequence[float]) -> float:
    """Return E|K - mu| of the positives of rows whose scores are right, by convolving their laws one by one."""
    law = np.ones(1)
    for score in scores:
        law = np.convolve(law, [1.0 - score, score])
    return float(law @ np.abs(np.arange(len(law)) - math.fsum(scores)))


def chance_gap_of_equal(score: float, n: int) -> float:
    """Return E|K - mu| of n rows of one score, summed over the Binomial law."""
    k = np.arange(n + 1)
    return math.fsum(stats.binom.pmf(k, n, score) * np.abs(k - n * score))


Table = list[tuple[int, Fraction, Fraction]]
Cell = tuple[Fraction, Fraction]  # weight, absolute gap


def _mean(table: Table, value: Callable[[int, Fraction], Fraction | int]) -> Fraction:
    return sum((w * value(y, s) for y, s, w in table), Fraction()) / sum(w for _, _, w in table)


def _rate(table: Table) -> Fraction:
    return _mean(table, lambda y, _: y)


def _score(table: Table) -> Fraction:
    return _mean(table, lambda _, s: s)


def _brier(table: Table) -> Fraction:
    return _mean(table, lambda y, s: (s - y) ** 2)


def _ratio(table: Table) -> Fraction | None:
    return _score(table) / _rate(table) if _rate(table) else None


def _skill(table: Table) -> Fraction | None:
    rate = _rate(table)
    return 1 - _brier(table) / (rate * (1 - rate)) if 0 < rate < 1 else None


_PLAIN: dict[str, Callable[[Table], Fraction | None]] = {
    "rate": _rate,
    "mean_score": _score,
    "gap": lambda table: _score(table) - _rate(table),
    "ratio": _ratio,
    "accuracy": lambda table: _mean(table, lambda y, s: int((s >= Fraction(1, 2)) == (y == 1))),
    "brier": _brier,
    "brier_skill": _skill,
    "sharpness": lambda table: _mean(table, lambda _, s: s**2) - _score(table) ** 2,
}


def _log_loss(table: Table, clip: float) -> float:
    losses = []
    for y, s, w in table:
        chance = min(max(float(s), clip), 1.0 - clip)
        chance = chance if y else 1.0 - chance
        losses.append(float(w) * (-math.log(chance) if chance > 0 else math.inf))
    return math.fsum(losses) / float(sum(w for _, _, w in table))


def _cells(table: Table, edges: Sequence[float], closed: str) -> list[Cell]:
    cells: dict[int, Table] = {}
    for row in table:
        cells.setdefault(bin_of(float(row[1]), edges, closed=closed), []).append(row)
    return [(sum(w for _, _, w in cell), abs(_score(cell) - _rate(cell))) for cell in cells.values()]


def _share(cells: list[Cell], power: int) -> float:
    return float(sum(w * gap**power for w, gap in cells) / sum(w for w, _ in cells))


_BINNED: dict[str, Callable[[list[Cell]], float]] = {
    "ece": lambda cells: _share(cells, 1),
    "mce": lambda cells: float(max(gap for _, gap in cells)),
    "rmsce": lambda cells: math.sqrt(_share(cells, 2)),
    "ace": lambda cells: float(sum(gap for _, gap in cells) / len(cells)),
}
