"""Measures of probability vectors by their definitions, row by row: slow, and written without the package."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from statistics import median

Row = tuple[int, tuple[float, ...], float]  # class that happened, scores, weight
Binary = tuple[int, float, float]  # did it happen, score, weight
Bin = Callable[[float], Hashable]


def top(scores: Sequence[float]) -> int:
    """Return the first of the largest scores."""
    return max(range(len(scores)), key=lambda c: (scores[c], -c))


def total(rows: Iterable[tuple[int, object, float]]) -> Fraction:
    return sum((Fraction(w) for _, _, w in rows), Fraction())


def accuracy(rows: Sequence[Row]) -> Fraction:
    return sum((Fraction(w) for y, p, w in rows if top(p) == y), Fraction()) / total(rows)


def brier(rows: Sequence[Row]) -> Fraction:
    loss = sum(Fraction(w) * sum((Fraction(s) - (y == c)) ** 2 for c, s in enumerate(p)) for y, p, w in rows)
    return Fraction(loss) / total(rows)


def log_loss(rows: Sequence[Row]) -> float:
    return math.fsum(w * (-math.log(p[y]) if p[y] else math.inf) for y, p, w in rows) / float(total(rows))


def bin_gaps(rows: Sequence[Binary], bin_of: Bin) -> list[tuple[Fraction, Fraction]]:
    """Return the weight and the absolute gap of each bin that holds rows."""
    bins = defaultdict(list)
    for row in rows:
        bins[bin_of(row[1])].append(row)
    return [
        (total(cell), abs(sum((Fraction(w) * (Fraction(s) - y) for y, s, w in cell), Fraction()) / total(cell)))
        for cell in bins.values()
    ]


def binary_ece(rows: Sequence[Binary], bin_of: Bin) -> Fraction:
    return sum((w * gap for w, gap in bin_gaps(rows, bin_of)), Fraction()) / total(rows)


def binary_mce(rows: Sequence[Binary], bin_of: Bin) -> Fraction:
    return max(gap for _, gap in bin_gaps(rows, bin_of))


def confidence_rows(rows: Sequence[Row]) -> list[Binary]:
    return [(int(top(p) == y), max(p), w) for y, p, w in rows]


def class_rows(rows: Sequence[Row], c: int) -> list[Binary]:
    return [(int(y == c), p[c], w) for y, p, w in rows]


def classwise(rows: Sequence[Row], bin_of: Bin, measure: Callable[[Sequence[Binary], Bin], Fraction]) -> list[Fraction]:
    return [measure(class_rows(rows, c), bin_of) for c in range(len(rows[0][1]))]


def toplabel_ece(rows: Sequence[Row], bin_of: Bin) -> Fraction:
    """Return the errors within each predicted class, weighted by how often it is predicted."""
    error = Fraction()
    for c in range(len(rows[0][1])):
        predicted = [row for row in rows if top(row[1]) == c]
        if predicted:
            error += total(predicted) * binary_ece(confidence_rows(predicted), bin_of)
    return error / total(rows)


def full_ece(rows: Sequence[Row], bin_of: Bin) -> Fraction:
    """Return the distance of mean scores and frequencies, summed over classes, over cells of the simplex."""
    error = Fraction()
    for cell in _groups(rows, lambda p: tuple(map(bin_of, p))):
        for c in range(len(rows[0][1])):
            error += abs(sum((Fraction(w) * (Fraction(p[c]) - (y == c)) for y, p, w in cell), Fraction()))
    return error / total(rows)


def by_equal_vector(rows: Sequence[Row]) -> dict[str, float]:
    """Return the survey's decomposition of both losses, by rows of equal scores."""
    parts = {"calibration": Fraction(), "refinement": Fraction()}
    logs = {"calibration_log": 0.0, "refinement_log": 0.0}
    for cell in _groups(rows, tuple):
        weight, scores = total(cell), cell[0][1]
        for c, score in enumerate(scores):
            often = total([row for row in cell if row[0] == c]) / weight
            parts["calibration"] += weight * (Fraction(score) - often) ** 2
            parts["refinement"] += weight * often * (1 - often)
            if often:
                cross = -math.log(score) if score else math.inf
                logs["calibration_log"] += float(weight * often) * (cross + math.log(often))
                logs["refinement_log"] -= float(weight * often) * math.log(often)
    both = {**parts, **logs}
    return {name: float(value) / float(total(rows)) for name, value in both.items()}


def skce(rows: Sequence[tuple[int, Sequence[float]]], bandwidth: float | None = None) -> float:
    """Return the mean of `h` over pairs of rows, with the median distance as the bandwidth where none is given."""
    pairs = list(combinations(rows, 2))
    width = bandwidth or median(distance(one[1], other[1]) for one, other in pairs) or 1.0
    return math.fsum(pair_value(one, other, width) for one, other in pairs) / len(pairs)


def distance(p: Sequence[float], q: Sequence[float]) -> float:
    return sum(abs(a - b) for a, b in zip(p, q, strict=True))


def pair_value(one: tuple[int, Sequence[float]], other: tuple[int, Sequence[float]], width: float) -> float:
    """Return `h` of two rows, as the paper spells it out for the kernel exp(-|p - q| / width) 1[y = z]."""
    (y, p), (z, q) = one, other
    inner = (y == z) - p[z] - q[y] + sum(a * b for a, b in zip(p, q, strict=True))
    return math.exp(-distance(p, q) / width) * inner


def _groups(rows: Sequence[Row], key: Callable[[tuple[float, ...]], Hashable]) -> list[list[Row]]:
    groups = defaultdict(list)
    for row in rows:
        groups[key(row[1])].append(row)
    return list(groups.values())
