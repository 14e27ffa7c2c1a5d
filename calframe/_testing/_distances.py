"""How far the scores of one sample lie from those of another: stability index, Kolmogorov-Smirnov, Wasserstein.

Samples are segments of a tally, and each is compared with one segment of another tally, its reference. One reference
may serve many samples: every score is looked up in it once, so that the cost does not grow with their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import last_cells, ranges, ratio, segment_max, segment_sum
from calframe._kernels._tally import Tally
from calframe._testing._lattice import exceedance
from calframe._typing import Bools, Floats, Ints

LEAST_EXPECTED = 25.0  # rows of the smaller sample in every bin, below which the law of the stability index is off
MOST_PAIRS = 10_000  # of rows of both samples, up to which the law of the distance is worked out exactly


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Samples, their references, and where the scores of the samples lie among those of the references.

    Attributes
    ----------
    current, reference : Tally
        The samples, and the references.
    of : ndarray of int64, shape (n_samples,)
        The reference of each sample.
    before, upto : ndarray of int64, shape (n_current_cells,)
        For each score the number of cells of all references up to the last one of its own that lies below it, and up
        to the last one that does not lie above it.
    """

    current: Tally
    reference: Tally
    of: Ints
    before: Ints
    upto: Ints

    @classmethod
    def of_tallies(cls, current: Tally, reference: Tally, of: Ints) -> Self:
        """Look the scores of samples up in their references."""
        distinct, rank = np.unique(np.concatenate([current.score, reference.score]), return_inverse=True)
        width, cut = np.int64(len(distinct) + 1), len(current.score)
        known = reference.segment * width + rank[cut:]
        wanted = current.spread(of) * width + rank[:cut]
        return cls(
            current=current,
            reference=reference,
            of=of,
            before=np.searchsorted(known, wanted, side="left"),
            upto=np.searchsorted(known, wanted, side="right"),
        )

    @property
    def starts(self) -> Ints:
        """For each cell of a sample, the first cell of its reference."""
        return self.current.spread(self.reference.starts[self.of])

    def bins(self, reference_bins: Ints) -> Ints:
        """Return the bin of each score of a sample: that of the lowest score of its reference which is no lower.

        Bins made of whole scores of the reference thus reach from above the largest score of the bin below to their
        own largest one; the outermost are open.
        """
        last = self.current.spread(last_cells(self.reference.starts, len(self.reference.score))[self.of])
        return reference_bins[np.minimum(self.before, last)]

    def shares(self, cells: Ints) -> Floats:
        """Return the share of the reference in its cells before the given one, per cell of the samples."""
        running = _running_share(self.reference)
        some = cells > self.starts
        return np.where(some, running[np.maximum(cells - 1, 0)], 0.0)


def _running_share(tally: Tally) -> Floats:
    return np.minimum(tally.running(tally.weight) / tally.spread(_total(tally)), 1.0)


def bin_weights(tally: Tally, bins: Ints, count: int) -> Floats:
    """Return the weight of each segment in each of `count` bins, an array of segments by bins."""
    return bin_sums(tally, tally.weight, bins, count)


def bin_sums(tally: Tally, values: Floats, bins: Ints, count: int) -> Floats:
    """Sum values of the cells of each segment in each of `count` bins."""
    flat = np.bincount(tally.segment * count + bins, weights=values, minlength=len(tally) * count)
    return np.asarray(flat, dtype=np.float64).reshape(len(tally), count)


def stability_index(reference: Floats, current: Floats, *, floor: float | None = 1e-4) -> Floats:
    """Return the population stability index, ``sum_b (c_b - r_b) ln(c_b / r_b)``, natural logarithm.

    Parameters
    ----------
    reference, current : ndarray, shape (..., n_bins)
        Weights in the bins; they are divided by their sums. Bins that are empty in both add nothing.
    floor : float or None
        The share that stands for 0; with None a bin that is empty in one sample alone makes the index infinite.

    References
    ----------
    Yurdakul, B. and Naranjo, J. (2020). Statistical properties of the population stability index. Journal of Risk Model
    Validation 14(4), 89-100. https://doi.org/10.21314/JRMV.2020.227

    Examples
    --------
    All scores in one half, where there were equally many in both: ``0.5 ln 2 - 0.4999 ln(1e-4 / 0.5)``.

    >>> stability_index(np.array([2.0, 2.0]), np.array([4.0, 0.0])).round(9)
    np.float64(4.604318467)
    """
    r = ratio(reference, np.broadcast_to(reference.sum(axis=-1, keepdims=True), reference.shape))
    c = ratio(current, np.broadcast_to(current.sum(axis=-1, keepdims=True), current.shape))
    both = (r == 0.0) & (c == 0.0)
    least = 0.0 if floor is None else floor
    r, c = np.where(r == 0.0, least, r), np.where(c == 0.0, least, c)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (c - r) * (np.log(c) - np.log(r))
    total: Floats = np.where(both, 0.0, terms).sum(axis=-1)
    return total


def stability_expected(reference_rows: Floats, current_rows: Floats, bins: Floats | Ints) -> Floats:
    """Return what two samples of one law show by chance, on average: ``(bins - 1) (1 / n + 1 / m)``.

    The law is one of many rows in every bin; with about five it is a third more.

    References
    ----------
    Yurdakul, B. and Naranjo, J. (2020). Statistical properties of the population stability index. Journal of Risk Model
    Validation 14(4), 89-100. https://doi.org/10.21314/JRMV.2020.227

    Examples
    --------
    >>> stability_expected(np.array([100.0]), np.array([50.0]), np.array([10])).round(4)
    array([0.27])
    """
    expected: Floats = (bins - 1.0) * (1.0 / reference_rows + 1.0 / current_rows)
    return expected


def stability_pvalue(index: Floats, reference_rows: Floats, current_rows: Floats, bins: Floats | Ints) -> Floats:
    """Return the p-value of a stability index: ``index / (1 / n + 1 / m)`` is chi-squared with one df fewer than bins.

    The law is one of many rows in every bin: `LEAST_EXPECTED` (simulated: with 15 the test at 5 % rejects 6 %, with 5
    over 10 %). Bins may be made from the rows of the reference.

    Examples
    --------
    >>> stability_pvalue(np.array([0.031]), np.array([1316.0]), np.array([1323.0]), np.array([10])).round(4)
    array([0.0153])
    """
    scaled = index / (1.0 / reference_rows + 1.0 / current_rows)
    pvalue: Floats = special.chdtrc(bins - 1.0, scaled)
    return pvalue


def kolmogorov_smirnov(pairs: Pairs) -> Floats:
    """Return the largest distance of the distribution functions of each sample and its reference.

    The function of the sample is level between its scores, so that the distance is largest at one of them, or just
    below one.
    """
    tally = pairs.current
    here = _running_share(tally)
    below = here - tally.weight / tally.spread(tally.total(tally.weight))
    at = np.abs(here - pairs.shares(pairs.upto))
    just_below = np.abs(below - pairs.shares(pairs.before))
    distance: Floats = segment_max(np.maximum(at, just_below), tally.starts)
    return distance


def smirnov_pvalue(
    pairs: Pairs, distance: Floats, effects: tuple[Floats, Floats] | None = None
) -> tuple[Floats, Bools]:
    """Return the p-value of each distance, and for which it is exact; weights must be counts of rows.

    Up to `MOST_PAIRS` pairs of rows it is exact: the share of all ways to deal the pooled scores to both samples that
    give as large a distance, equal scores as they are. Otherwise it is that of the one-sample distance on
    ``n m / (n + m)`` rows, rounded, which is an upper bound where scores are equal. Where rows are in clusters it is
    always that, with the rows of sample and reference divided by `effects`, the largest design effects of their shares.

    References
    ----------
    Schröer, G. and Trenkler, D. (1995). Exact and randomization distributions of Kolmogorov-Smirnov tests two or three
    samples. Computational Statistics & Data Analysis 20, 185-202. https://doi.org/10.1016/0167-9473(94)00040-P
    """
    from scipy.stats import kstwo  # noqa: PLC0415  slow to load, and seldom needed

    n = np.rint(pairs.current.total(pairs.current.weight))
    m = np.rint(pairs.reference.total(pairs.reference.weight))[pairs.of]
    exact = n * m <= MOST_PAIRS if effects is None else np.zeros(len(n), dtype=np.bool_)
    if effects is not None:
        n, m = n / effects[0], m / effects[1]
    pvalue = np.full(len(n), np.nan)
    both = n + m
    many = np.maximum(np.rint(n * m / np.where(both > 0.0, both, 1.0)), 1.0)
    pvalue[~exact] = np.clip(kstwo.sf(distance[~exact], many[~exact]), 0.0, 1.0)
    if exact.any():
        pvalue[exact] = _exact(pairs, np.flatnonzero(exact), distance[exact])
    return pvalue, exact


def _exact(pairs: Pairs, samples: Ints, distance: Floats) -> Floats:
    """Return exact p-values of some samples, by the sizes of the groups of equal scores in both samples together."""
    keep = np.zeros(len(pairs.of), dtype=np.bool_)
    keep[samples] = True
    mine, theirs = pairs.current.only(keep), pairs.reference
    sizes = theirs.sizes[pairs.of[samples]]
    cells = ranges(theirs.starts[pairs.of[samples]], sizes)
    code = np.concatenate([mine.segment, np.repeat(np.arange(len(samples)), sizes)])
    score = np.concatenate([mine.score, theirs.score[cells]])
    rows = np.concatenate([mine.weight, theirs.weight[cells]])
    order = np.lexsort((score, code))
    code, score = code[order], score[order]
    first = np.flatnonzero(np.append(True, (code[1:] != code[:-1]) | (score[1:] != score[:-1])))
    ties = np.rint(segment_sum(rows[order], first)).astype(np.int64)
    n = np.rint(mine.total(mine.weight)).astype(np.int64)
    m = np.rint(theirs.total(theirs.weight)).astype(np.int64)[pairs.of[samples]]
    away = np.rint(distance * n * m).astype(np.int64)
    return exceedance(n, m, ties, np.searchsorted(code[first], np.arange(len(samples))), away)


def wasserstein(pairs: Pairs) -> Floats:
    """Return the mean distance that scores must move to become those of the reference: the area between both functions.

    Between two neighbouring scores of a sample its function is level, at F, and that of the reference crosses F once,
    at its quantile: on either side the area follows from the integral of the reference's function.

    References
    ----------
    Vallender, S. S. (1974). Calculation of the Wasserstein distance between probability distributions on the line.
    Theory of Probability & Its Applications 18, 784-786. https://doi.org/10.1137/1118101
    """
    tally, theirs = pairs.current, pairs.reference
    level, known = _running_share(tally), _running_share(theirs)
    area_at = theirs.score * known - theirs.running(theirs.weight * theirs.score) / theirs.spread(_total(theirs))
    here = _area(pairs, area_at, known)
    mean = theirs.total(theirs.weight * theirs.score) / _total(theirs)
    last = last_cells(tally.starts, len(level))
    upper, end = np.append(tally.score[1:], 1.0), np.append(here[1:], 0.0)
    upper[last], end[last] = 1.0, 1.0 - mean[pairs.of]
    cell = _quantile_cell(pairs, level, known)
    middle, mid = theirs.score[cell], area_at[cell]
    middle, mid = np.where(middle < upper, middle, upper), np.where(middle < upper, mid, end)
    middle, mid = np.where(middle > tally.score, middle, tally.score), np.where(middle > tally.score, mid, here)
    area = level * (middle - tally.score) - (mid - here) + (end - mid) - level * (upper - middle)
    area[tally.starts] += here[tally.starts]
    total: Floats = np.maximum(segment_sum(area, tally.starts), 0.0)
    return total


def _total(tally: Tally) -> Floats:
    return tally.total(tally.weight)


def _area(pairs: Pairs, area_at: Floats, known: Floats) -> Floats:
    """Return the integral of the reference's function up to each score of the samples."""
    some, cell = pairs.upto > pairs.starts, np.maximum(pairs.upto - 1, 0)
    gone = pairs.current.score - pairs.reference.score[cell]
    return np.where(some, area_at[cell] + known[cell] * gone, 0.0)


def _quantile_cell(pairs: Pairs, level: Floats, known: Floats) -> Ints:
    """Return for each cell of the samples the first cell of its reference at which its function reaches a level."""
    distinct, rank = np.unique(np.concatenate([level, known]), return_inverse=True)
    width, cut = np.int64(len(distinct) + 1), len(level)
    of = pairs.current.spread(pairs.of)
    cell = np.searchsorted(pairs.reference.segment * width + rank[cut:], of * width + rank[:cut], side="left")
    return np.minimum(cell, last_cells(pairs.reference.starts, len(known))[of])
