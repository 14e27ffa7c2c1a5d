"""The largest statistic of all segments together, as a correction for their number."""

from __future__ import annotations

import numpy as np

from calframe._testing._draws import Side
from calframe._testing._found import Found
from calframe._typing import Floats

ROUNDING = 1e-9  # statistics in units of their spread that differ by less are equal


def adjusted_by_largest(found: Found, *, side: Side) -> Floats:
    """Return p-values adjusted over segments: how often the largest standardised statistic drawn reaches that seen.

    Each segment's statistic is standardised by the mean and the standard deviation of its draws and itself, so that no
    segment counts more than another, and that seen is to the draws as each of them is to the rest; by the draws alone
    it would lie further out than they do. Draws without a value reach nothing, for nothing is rejected without one.
    Where nothing varies the p-value is its own.

    References
    ----------
    Westfall, P. H. and Young, S. S. (1993). Resampling-Based Multiple Testing. Wiley.
    """
    draws = found.draws
    if draws is None:
        return found.least
    finite, known = np.isfinite(draws), ~np.isnan(found.statistic)
    told = np.isfinite(found.statistic)
    seen = np.where(told, found.statistic, 0.0)
    many = np.maximum(finite.sum(axis=0) + told, 1)
    mean = (np.where(finite, draws, 0.0).sum(axis=0) + seen) / many
    squares = (np.where(finite, draws - mean, 0.0) ** 2).sum(axis=0) + np.where(told, seen - mean, 0.0) ** 2
    spread = np.sqrt(squares / many)
    moving = spread > 0.0
    out = np.where(finite.all(axis=0), found.least, np.minimum(found.least * known.sum(), 1.0))
    if not moving.any():
        return out
    sign = {"greater": np.positive, "less": np.negative, "two-sided": np.abs}[side]
    standard = sign((draws[:, moving] - mean[moving]) / spread[moving])
    far = np.where(np.isnan(standard), -np.inf, standard).max(axis=1)
    own = sign((found.statistic[moving] - mean[moving]) / spread[moving])
    out[moving] = np.maximum(pvalue_of_largest(own, far), found.least[moving])
    return out


def pvalue_of_largest(seen: Floats, largest: Floats) -> Floats:
    """Return how often the largest statistic of a draw reaches each of those seen: ``(1 + #{L* >= T}) / (1 + draws)``.

    Parameters
    ----------
    seen : ndarray of shape (n_segments,)
        The statistics, in units in which a difference of 1e-9 is rounding.
    largest : ndarray of shape (n_draws,)
        The largest one of each draw.

    Examples
    --------
    >>> pvalue_of_largest(np.array([2.0, 5.0]), np.array([1.0, 2.0, 3.0]))
    array([0.75, 0.25])
    """
    reached = len(largest) - np.searchsorted(np.sort(largest), seen - ROUNDING, side="left")
    return np.asarray((1.0 + reached) / (1.0 + len(largest)), dtype=np.float64)
