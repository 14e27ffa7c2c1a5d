"""The score grid that a report reads, and its cells worked out row by row."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tests._definitions import bin_of

FINE = 960  # score bins that a report reads, so that each edge of 15, of 24 and of 40 is one of theirs
GRID = [float(Fraction(k, FINE)) for k in range(FINE + 1)]


def near_edges() -> np.ndarray:
    """Return every edge k / 960 and its two neighbours among the floating-point numbers."""
    edges = np.array(GRID)
    return np.concatenate([edges, np.nextafter(edges, 0.0), np.nextafter(edges, 1.0)])


def cells(scores: Sequence[float], labels: Sequence[int], grid: Sequence[float] = GRID) -> dict[int, list[Fraction]]:
    """Return rows, sum of scores and positives per fine bin, row by row."""
    found: dict[int, list[Fraction]] = {}
    for score, label in zip(scores, labels, strict=True):
        cell = found.setdefault(bin_of(score, grid, closed="left"), [Fraction()] * 3)
        found[bin_of(score, grid, closed="left")] = [cell[0] + 1, cell[1] + Fraction(score), cell[2] + label]
    return dict(sorted(found.items()))
