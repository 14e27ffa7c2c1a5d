"""The sweep: as many bins of about equal weight as leave the observed rates in order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calframe._kernels._binned import power_of_two, ranges, ratio, run_starts, running_sum, segment_sum, sizes_of
from calframe._kernels._ranked import middles, quantile_bins
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

_ROUNDING = 1e-12  # odds this close are equal: sums of weights are off by less
_CUTS = 2**17  # bin edges looked for at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The swept calibration error per segment.

    Attributes
    ----------
    error : ndarray of float64
        The expected calibration error over the bins found; 0 is perfect.
    bins : ndarray of int64
        The bins that have rows.
    """

    error: Floats
    bins: Ints


def sweep_error(tally: Tally) -> Sweep:
    """Return the expected calibration error with as many bins of about equal weight as keep the rates in order.

    The number of bins goes up from 1 until the observed rates of the bins first fail to be non-decreasing, and the
    last number before is taken; at most it is the number of distinct scores. The bins are those of `quantile_bins`
    (equal scores stay together; empty bins are passed over), the error is ``sum_b |sum_{i in b} w_i (s_i - y_i)| / W``.

    References
    ----------
    Roelofs, R., Cain, N., Shlens, J. and Mozer, M. C. (2022). Mitigating bias in calibration error estimation.
    AISTATS 2022. https://doi.org/10.48550/arXiv.2012.08668

    Examples
    --------
    Two bins have rates 0 and 1/2; three would have 0, 1, 0.

    >>> positive = np.array([0.0, 0.0, 1.0, 0.0])
    >>> found = sweep_error(Tally.of_counts(np.array([0]), np.array([0.1, 0.2, 0.6, 0.7]), np.ones(4), positive))
    >>> found.error.round(4), found.bins
    (array([0.15]), array([2]))
    """
    bins = quantile_bins(tally.weight, tally.starts, _most_bins(tally))
    edges = run_starts(bins, tally.starts)
    starts = np.searchsorted(edges, tally.starts)
    gaps = np.abs(segment_sum(tally.weight * tally.score - tally.positive, edges))
    return Sweep(
        error=ratio(segment_sum(gaps, starts), tally.total(tally.weight)),
        bins=sizes_of(starts, len(edges)),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Paths:
    """Running sums along the cells, and where bins can be out of order.

    Before `first`, the first cell with positives, all rates are 0; after `last`, the last with negatives, all are 1.
    """

    starts: Ints
    ends: Ints
    middle: Floats
    total: Floats
    positive: Floats
    negative: Floats
    first: Ints
    last: Ints

    def position(self, cell: Ints, count: Ints | int) -> Floats:
        """Return where cells stand when their segments are cut into so many bins, as `quantile_bins` does it."""
        return count * self.middle[cell] / self.total[cell]

    def upto(self, path: Floats, cell: Ints, start: Ints) -> Floats:
        """Return the sum of a segment's cells before this one."""
        return np.where(cell > start, path[cell - 1], 0.0)


def _paths(tally: Tally, positive: Floats, negative: Floats) -> _Paths:
    cell = np.arange(len(tally.score))
    ends = tally.starts + tally.sizes
    middle, total = middles(tally.weight, tally.starts)
    first = np.minimum.reduceat(np.where(positive > 0, cell, len(cell)), tally.starts)
    return _Paths(
        starts=tally.starts,
        ends=ends,
        middle=middle,
        total=total,
        positive=running_sum(positive, tally.starts),
        negative=running_sum(negative, tally.starts),
        first=np.minimum(first, ends - 1),
        last=np.maximum(np.maximum.reduceat(np.where(negative > 0, cell, -1), tally.starts), tally.starts),
    )


def _most_bins(tally: Tally) -> Ints:
    """Return the largest number of bins up to which the rates stay in order.

    All open segments are tried at once, with one number of bins or, where few cells matter, with several.
    """
    unit = tally.spread(power_of_two(tally.total(tally.weight)))
    positive, negative = tally.positive / unit, tally.negative / unit
    paths, most = _paths(tally, positive, negative), tally.sizes
    open_ = np.flatnonzero(_has_descent(positive, negative, tally.starts))  # rates in order stay so in any bins
    count = 2
    while open_.size:
        cuts = 2.0 + paths.position(paths.last[open_], count) - paths.position(paths.first[open_], count)
        many = int(np.clip(_CUTS // cuts.sum(), 1, count))
        ordered = _in_order(paths, open_, np.arange(count, count + many))
        broken = ~ordered.all(axis=1)
        failed = count + np.argmin(ordered[broken], axis=1)
        most[open_[broken]] = np.minimum(failed - 1, most[open_[broken]])
        count += many
        open_ = open_[~broken]
        open_ = open_[most[open_] >= count]
    return most


def _has_descent(positive: Floats, negative: Floats, starts: Ints) -> Bools:
    """Return whether the rate of a cell is ever above that of the next one in its segment."""
    descent = np.zeros(len(negative), dtype=bool)
    descent[1:] = _above(positive, negative)
    descent[starts] = False
    return np.logical_or.reduceat(descent, starts)


def _above(positive: Floats, negative: Floats) -> Bools:
    """Return whether the rate is above that of the next."""
    here, there = positive[:-1] * negative[1:], positive[1:] * negative[:-1]
    return here > there * (1.0 + _ROUNDING)


def _in_order(paths: _Paths, segments: Ints, counts: Ints) -> Bools:
    """Return whether the rates of so many bins are non-decreasing, shape (segments, counts)."""
    segment, count = np.repeat(segments, len(counts)), np.tile(counts, len(segments))
    lowest, highest = (
        np.minimum(np.floor(paths.position(cell[segment], count)).astype(np.int64), count - 1)
        for cell in (paths.first, paths.last)
    )
    edges = np.maximum(highest - lowest, 0) + 2  # of the bins that can be out of order
    job = np.repeat(np.arange(len(segment)), edges)
    number = ranges(lowest, edges)
    start = paths.starts[segment[job]]
    cell = _first_cell(paths, start, paths.ends[segment[job]], count[job], number)
    positive = np.diff(paths.upto(paths.positive, cell, start))
    negative = np.diff(paths.upto(paths.negative, cell, start))
    full = np.flatnonzero((np.diff(job) == 0) & (np.diff(cell) > 0))
    owner = job[full]
    wrong = _above(positive[full], negative[full]) & (np.diff(owner) == 0)
    ordered = np.ones(len(segment), dtype=bool)
    ordered[owner[:-1][wrong]] = False
    return ordered.reshape(len(segments), len(counts))


def _first_cell(paths: _Paths, start: Ints, end: Ints, count: Ints, number: Ints) -> Ints:
    """Return the first cell that `quantile_bins` puts into bin `number` or a later one, by bisection."""
    low, high = start.copy(), end.copy()
    for _ in range(int(np.max(end - start)).bit_length()):
        middle = np.minimum((low + high) // 2, end - 1)
        reached = paths.position(middle, count) >= number
        apart = low < high
        high = np.where(apart & reached, middle, high)
        low = np.where(apart & ~reached, middle + 1, low)
    return np.where(number >= count, end, low)
