"""Tests with the squared kernel calibration error: no bins, any number of classes."""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import segment_max
from calframe._kernels._skce import ALL_PAIRS, skce_with_error
from calframe._kernels._vectors import Vectors
from calframe._testing._draws import Drawing, Drawn, lots, staged
from calframe._testing._found import Found
from calframe._testing._luck import Luck
from calframe._testing._multinomial import in_order
from calframe._typing import Floats, Ints

KernelLaw: TypeAlias = Literal["resampled", "asymptotic", "block", "distribution_free"]

_BOUND = 2.0  # of |h|: the kernel is at most 1, and so is half the distance of two residuals
_TOO_MANY = f"more than {ALL_PAIRS:,} rows: pairs within blocks"
_NO_LAW = f"more than {ALL_PAIRS:,} rows in clusters: no law of pairs within blocks"
_RULED_OUT = "a class happened that its score rules out, which is impossible if scores are right"
_LOT = 2**22  # numbers drawn at once


def kernel(vectors: Vectors, *, law: KernelLaw, drawing: Drawing) -> Found:
    """Test that the squared kernel calibration error is 0, one-sided.

    Parameters
    ----------
    vectors : Vectors
        Rows that count once.
    law : {"resampled", "asymptotic", "block", "distribution_free"}
        Labels drawn from the scores, which holds its level for any number of rows; a bootstrap of the limit law of
        the mean over all pairs; the normal law of the mean over pairs of rows (blocks of two); or a bound that holds
        for every distribution and finds little. Of more than 2,000 rows, the first two take blocks.
    drawing : Drawing
        How labels are drawn.

    References
    ----------
    Widmann, D., Lindsten, F. and Zachariah, D. (2019). Calibration tests in multi-class classification: a unifying
    framework. NeurIPS 2019. https://doi.org/10.48550/arXiv.1910.11385

    Arcones, M. A. and Giné, E. (1992). On the bootstrap of U and V statistics. Annals of Statistics 20, 655-674.
    https://doi.org/10.1214/aos/1176348650
    """
    value, error = skce_with_error(vectors)
    if law == "distribution_free":
        half = vectors.sizes // 2
        bound = np.exp(-half * (np.maximum(value, 0.0) / _BOUND) ** 2 / 2.0)
        return Found.of_law(value, np.where(np.isnan(value), np.nan, bound), "bound")
    large, said = vectors.sizes > ALL_PAIRS, _TOO_MANY
    if vectors.cluster is not None:
        error, said = np.where(large, np.nan, error), _NO_LAW
    with np.errstate(invalid="ignore", divide="ignore"):
        found = Found.of_law(value, special.ndtr(-value / error), "normal").noted(large & (law != "block"), said)
    for segment in np.flatnonzero(~large & ~np.isnan(value)):
        part = vectors.part(int(segment), int(segment) + 1)
        _put(found, int(segment), part, float(value[segment]), law=law, drawing=drawing)
    if law != "resampled":
        found = found.of_many(vectors.sizes.astype(np.float64))
    ruled_out = segment_max((vectors.happened() <= 0.0).astype(np.float64), vectors.starts) > 0.0
    found = found.certain(ruled_out & ~np.isnan(value), _RULED_OUT)
    return found.noted(vectors.sizes < 2, "fewer than 2 rows: no pair")


def _put(found: Found, segment: int, part: Vectors, value: float, *, law: KernelLaw, drawing: Drawing) -> None:
    found.decides[segment] = True
    part = in_order(part) if law != "block" else part
    similar, residual = _kernel_matrix(part.scores), _residuals(part, part.label)
    if law in ("resampled", "asymptotic"):
        h = similar * (residual @ residual.T)
        seen = value if law == "resampled" else _off_degenerate(h)
        draws = partial(_drawn, part, similar) if law == "resampled" else partial(_bootstrapped, h)
        pvalue, error = staged(np.array([seen]), lambda _, how: draws(how), side="greater", drawing=drawing)
        found.pvalue[segment], found.pvalue_se[segment], found.law[segment] = pvalue[0], error[0], law
        found.least[segment], found.floor[segment] = pvalue[0], drawing.least("greater")
    else:
        pairs = _pairs(part, similar)
        z = pairs.mean() / (pairs.std(ddof=1) / np.sqrt(len(pairs))) if len(pairs) > 1 and pairs.std() > 0 else np.nan
        found.statistic[segment] = pairs.mean()
        found.pvalue[segment] = found.least[segment] = float(special.ndtr(-z))
        found.law[segment] = "normal"


def _drawn(part: Vectors, similar: Floats, drawing: Drawing) -> Drawn:
    """Give the mean over pairs under classes drawn from the scores."""
    luck = Luck.of(part)
    for lot in lots(part.scores.size, drawing.n_resamples, most=_LOT):
        drawn = np.stack([_residuals(part, luck.classes(drawing.rng)) for _ in range(lot)], axis=1)
        yield slice(None), _mean_of_pairs(similar, drawn)[:, None]


def _residuals(part: Vectors, label: Ints) -> Floats:
    """Return 1 for the class that happened less the scores."""
    out = -np.asarray(part.scores, dtype=np.float64)
    out[np.arange(len(label)), label] += 1.0
    return out


def _kernel_matrix(scores: Floats) -> Floats:
    """Return ``exp(-|p - p'|_1 / median)``, the median over pairs of different rows, 1 where it is 0."""
    distance = np.zeros((len(scores), len(scores)))
    for column in scores.T:
        distance += np.abs(column[:, None] - column[None, :])
    width = float(np.median(distance[np.triu_indices(len(scores), 1)])) if len(scores) > 1 else 1.0
    return np.asarray(np.exp(-distance / (width or 1.0)), dtype=np.float64)


def _mean_of_pairs(similar: Floats, residuals: Floats) -> Floats:
    """Return the mean of h over pairs of different rows for residuals of shape (rows, draws, classes)."""
    rows, draws, classes = residuals.shape
    product = (similar @ residuals.reshape(rows, draws * classes)).reshape(rows, draws, classes)
    total = np.einsum("idc,idc->d", product, residuals) - np.einsum(
        "idc,idc,i->d", residuals, residuals, similar.diagonal()
    )
    return np.asarray(total / (rows * (rows - 1.0)))


def _off_degenerate(h: Floats) -> float:
    """Return ``n / (n - 1) U - V``."""
    rows, whole = len(h), h.sum()
    unbiased = (whole - h.diagonal().sum()) / (rows * (rows - 1.0))
    return float(rows / (rows - 1.0) * unbiased - whole / rows**2)


def _bootstrapped(h: Floats, drawing: Drawing) -> Drawn:
    """Give the same by a bootstrap of its degenerate limit."""
    rows, side, diagonal = len(h), h.sum(axis=1), h.diagonal()
    for lot in lots(rows, drawing.n_resamples, most=_LOT):
        counts = drawing.rng.multinomial(rows, np.full(rows, 1.0 / rows), size=lot).astype(np.float64)
        pairs = np.einsum("di,di->d", counts @ h, counts) - counts @ diagonal
        yield slice(None), ((rows / (rows - 1.0) * pairs - 2.0 * (counts @ side)) / rows**2)[:, None]


def _pairs(part: Vectors, similar: Floats) -> Floats:
    """Return h of rows 1 and 2, 3 and 4, … in a fixed random order."""
    order = np.random.default_rng(0).permutation(len(part.label))[: len(part.label) // 2 * 2]
    first, second = order[::2], order[1::2]
    residual = _residuals(part, part.label)
    return np.asarray(similar[first, second] * (residual[first] * residual[second]).sum(axis=1))
