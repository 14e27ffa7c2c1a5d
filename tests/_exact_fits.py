"""Isotonic fits and the parts of losses by their definitions, in rational arithmetic: written without the package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from calframe._kernels._tally import Tally

Cell = tuple[float, float, float]  # score, weight, positive


def tally_of(*segments: Sequence[Cell]) -> Tally:
    """Put cells into a tally; each cell is taken for one row, as far as variances go."""
    sizes = np.array([len(cells) for cells in segments])
    score, weight, positive = (np.array([cell[i] for cells in segments for cell in cells]) for i in range(3))
    return Tally(
        starts=np.cumsum(sizes) - sizes,
        score=score,
        rows=np.ones_like(score),
        weight=weight,
        positive=positive,
        squared=weight**2,
        squared_positive=positive**2,
    )


def cells_of(score: Any, label: Any, weight: Any = None) -> list[Cell]:
    """Gather rows into cells; the sums are exact for whole and half weights."""
    weight = np.ones(len(score)) if weight is None else np.asarray(weight, dtype=float)
    used = weight > 0
    score, label, weight = (np.asarray(column, dtype=float)[used] for column in (score, label, weight))
    distinct, cell = np.unique(score, return_inverse=True)
    sums = (np.bincount(cell, weights=each) for each in (weight, weight * label))
    return list(zip(distinct.tolist(), *(each.tolist() for each in sums), strict=True))


# ---------------------------------------------------------------- by definition, exactly
def pooled(cells: Sequence[Cell]) -> list[tuple[int, int, Fraction, Fraction]]:
    """Pool adjacent violators in rational arithmetic: first and last cell, weight, positives."""
    out: list[tuple[int, int, Fraction, Fraction]] = []
    for i, (_, w, k) in enumerate(cells):
        first, weight, positive = i, Fraction(w), Fraction(k)
        while out and out[-1][3] * weight >= positive * out[-1][2]:
            first, _, w0, k0 = out.pop()
            weight, positive = weight + w0, positive + k0
        out.append((first, i, weight, positive))
    return out


def max_min(cells: Sequence[Cell]) -> list[Fraction]:
    """The isotonic fit by its closed form: the largest over starts of the smallest over ends of the mean between."""
    w, k = ([Fraction(cell[i]) for cell in cells] for i in (1, 2))
    n = len(cells)
    return [
        max(min(sum(k[i : j + 1]) / sum(w[i : j + 1]) for j in range(at, n)) for i in range(at + 1)) for at in range(n)
    ]


def ln(value: Fraction) -> Decimal:
    return Decimal(value.numerator).ln() - Decimal(value.denominator).ln()


def log_sum(parts: Iterable[tuple[Fraction, Fraction]]) -> Decimal:
    """Return -sum a ln(b), with 0 ln 0 = 0."""
    some = [(a, b) for a, b in parts if a]
    if any(b == 0 for _, b in some):
        return Decimal("inf")
    return -sum((Decimal(a.numerator) / Decimal(a.denominator) * ln(b) for a, b in some), Decimal())


def losses(table: Iterable[tuple[Fraction, Fraction, Fraction]]) -> tuple[Fraction, Decimal]:
    """Return the summed squared error and log loss of (weight, positives, prediction)."""
    table = list(table)
    square = sum((w * q * q - 2 * k * q + k for w, k, q in table), Fraction())
    return square, log_sum(pair for w, k, q in table for pair in ((k, q), (w - k, 1 - q)))


def exact(cells: Sequence[Cell]) -> dict[str, float]:
    """All parts as differences of losses, with 60 digits."""
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 60, 10**6, -(10**6)
        fractions = [(Fraction(w), Fraction(k), Fraction(s)) for s, w, k in cells]
        weight, positive = sum(w for w, _, _ in fractions), sum(k for _, k, _ in fractions)
        of_score = losses(fractions)
        of_rate = losses((w, k, k / w) for w, k, _ in fractions)
        of_fit = losses((w, k, k / w) for _, _, w, k in pooled(cells))
        of_all = losses([(weight, positive, positive / weight)])
        out = {}
        for i, log in enumerate(("", "_log")):
            total: Any = weight if i == 0 else Decimal(weight.numerator) / Decimal(weight.denominator)
            for name, value in {
                "mcb": of_score[i] - of_fit[i],  # type: ignore[operator]
                "dsc": of_all[i] - of_fit[i],  # type: ignore[operator]
                "unc": of_all[i],
                "calibration_loss": of_score[i] - of_rate[i],  # type: ignore[operator]
                "refinement_loss": of_rate[i],
                "loss": of_score[i],
            }.items():
                out[name + log] = float(value / total)
        return out
