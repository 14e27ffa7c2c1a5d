"""Bins of about equal weight, made of whole cells of a tally."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calframe._kernels._binned import last_cells, run_starts, segment_sum, sizes_of, spread
from calframe._kernels._ranked import quantile_bins
from calframe._kernels._tally import Tally
from calframe._typing import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EqualMass:
    """The non-empty bins of some segments.

    Attributes
    ----------
    starts : ndarray of int64
        The first bin of each segment.
    bin : ndarray of int64
        The number of each bin, among those asked for.
    asked : ndarray of int64
        How many bins were asked for in each segment.
    lower, upper : ndarray of float64
        The lowest and highest score in each bin.
    sums : dict of str to ndarray
        Sums of each bin by name, as aggregates of rows have them.
    """

    starts: Ints
    bin: Ints
    asked: Ints
    lower: Floats
    upper: Floats
    sums: dict[str, Floats]

    @property
    def sizes(self) -> Ints:
        """The number of bins of each segment."""
        return sizes_of(self.starts, len(self.bin))

    @property
    def segment(self) -> Ints:
        """The segment of each bin, counted from 0."""
        return spread(np.arange(len(self.starts)), self.starts, len(self.bin))


def automatic_count(weight: Floats) -> Ints:
    """Return the number of bins for segments of some weight: the cube root of the weight, at least 1.

    With as many bins as the cube root of the rows, the width of a bin and the standard error of its rate shrink at the
    same speed, and the number never falls as rows are added.

    Examples
    --------
    >>> automatic_count(np.array([1.0, 100.0, 1000.0, 1e6]))
    array([  1,   4,  10, 100])
    """
    counts: Ints = np.maximum(np.floor(np.cbrt(weight) + 1e-9), 1.0).astype(np.int64)
    return counts


def equal_mass(tally: Tally, count: int | None) -> EqualMass:
    """Cut each segment into `count` bins of about equal weight, equal scores whole; None takes `automatic_count`.

    Examples
    --------
    >>> rows = np.array([6.0, 1.0, 1.0, 2.0])
    >>> score = np.array([0.0, 0.1, 0.3, 0.9])
    >>> bins = equal_mass(Tally.of_counts(np.array([0]), score, rows, np.zeros(4)), 5)
    >>> bins.bin, bins.sums["n"], bins.upper
    (array([1, 3, 4]), array([6., 2., 2.]), array([0. , 0.3, 0.9]))
    """
    total = tally.total(tally.weight)
    asked = automatic_count(total) if count is None else np.full(len(tally), count)
    bins = quantile_bins(tally.weight, tally.starts, asked)
    first = run_starts(bins, tally.starts)
    score, weight, positive = tally.score, tally.weight, tally.positive
    spread = score * (1.0 - score)
    terms = {
        "n": tally.rows,
        "w": weight,
        "wp": weight * score,
        "wy": positive,
        "w2": tally.squared,
        "variance": weight * spread,
        "w2_variance": tally.squared * spread,
        "square": weight * score * score + positive * (1.0 - 2.0 * score),
    }
    return EqualMass(
        starts=np.searchsorted(first, tally.starts),
        bin=bins[first],
        asked=asked,
        lower=score[first],
        upper=score[last_cells(first, len(bins))],
        sums={name: segment_sum(values, first) for name, values in terms.items()},
    )
