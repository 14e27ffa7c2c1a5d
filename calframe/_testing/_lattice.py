"""The exact law of the two-sample Kolmogorov-Smirnov distance, equal scores included: steps on a lattice."""

from __future__ import annotations

import numpy as np

from calframe._kernels._binned import segment_sum, sizes_of
from calframe._typing import Bools, Floats, Ints

_AT_ONCE = 256  # problems that take their steps together


def exceedance(n: Ints, m: Ints, ties: Ints, starts: Ints, distance: Ints) -> Floats:
    """Return the chance that dealing pooled scores to two samples at random gives as large a distance.

    Scores are dealt in ascending order: with x of the first t in the first sample, the distribution functions there
    differ by ``x / n - (t - x) / m``. They are compared only where a group of equal scores ends.

    Parameters
    ----------
    n, m : ndarray of int64, shape (n_problems,)
        Rows of both samples.
    ties : ndarray of int64
        Sizes of the groups of equal scores, ascending in score, problem after problem.
    starts : ndarray of int64
        The first group of each problem.
    distance : ndarray of int64
        The largest difference seen, times ``n m``.

    Examples
    --------
    Of the six ways to deal four different scores, two keep two and two together: a distance of 1.

    >>> two = np.array([2])
    >>> exceedance(two, two, np.ones(4, dtype=np.int64), np.array([0]), np.array([4])).round(12)
    array([0.33333333])
    """
    total = n + m
    if not np.array_equal(segment_sum(ties.astype(np.float64), starts), total):
        msg = "groups of equal scores must add up to the rows of both samples"
        raise ValueError(msg)
    sizes = sizes_of(starts, len(ties))
    problem = np.repeat(np.arange(len(n)), sizes)
    ends = np.cumsum(ties) - np.repeat(np.cumsum(total) - total, sizes)
    out = np.empty(len(n))
    order = np.argsort(total, kind="stable")
    for begin in range(0, len(order), _AT_ONCE):
        these = order[begin : begin + _AT_ONCE]
        place = np.full(len(n), -1)
        place[these] = np.arange(len(these))
        row = place[problem]
        compared = np.zeros((len(these), int(total[these].max()) + 1), dtype=np.bool_)
        compared[row[row >= 0], ends[row >= 0]] = True
        out[these] = _walk(np.minimum(n, m)[these], total[these], compared, distance[these])
    return out


def _walk(few: Ints, total: Ints, compared: Bools, distance: Ints) -> Floats:
    """Return the chance of a path beyond the distance; x counts the scores dealt to the smaller sample."""
    x = np.arange(int(few.max()) + 1)
    many = total - few
    mass = np.zeros((len(few), len(x)))
    mass[:, 0] = 1.0
    lost = np.zeros(len(few))
    for t in range(1, compared.shape[1]):
        left = np.maximum(total - t + 1, 1)[:, None]
        gain = np.clip(few[:, None] - x, 0, None) / left
        stay = np.clip(many[:, None] - (t - 1 - x), 0, None) / left
        moved = mass * stay
        moved[:, 1:] += (mass * gain)[:, :-1]
        mass = np.where((t <= total)[:, None], moved, mass)
        away = np.abs(x * many[:, None] - (t - x) * few[:, None]) >= distance[:, None]
        out = np.where(away & compared[:, t, None], mass, 0.0)
        lost += out.sum(axis=1)
        mass -= out
    return np.minimum(lost, 1.0)
