"""Shares of scores in bins where rows are in clusters: how they scatter, and the law of the stability index then.

A statistic of several shares is a sum of squares, each of which clusters make wider. Its law is that of a chi-squared
number with the same mean and variance (Rao and Scott, 1981, and Satterthwaite's second-order correction).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import added, ranges
from calframe._kernels._clusters import TINY, less_part
from calframe._kernels._tally import Tally
from calframe._testing._scatter import ClusterCells, Scatter
from calframe._typing import Floats, Ints

MOST_BINS = 100  # of which covariances are worked out
_NOTHING = 1e-12  # relative: what rounding leaves of a variance of 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterParts:
    """Rows of samples by cluster.

    Attributes
    ----------
    tally : Tally
        The scores of parts, rows of one cluster each.
    cells : ClusterCells
        What the parts add up to, and the cluster of each.
    part, sample : ndarray of int64
        Pairs of a part and the sample that it is in; a part may be in several.
    """

    tally: Tally
    cells: ClusterCells
    part: Ints
    sample: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShareScatter:
    """How the shares of bins scatter, sample by sample.

    Attributes
    ----------
    share : ndarray, shape (n_samples, n_bins)
        The shares.
    covariance : ndarray, shape (n_samples, n_bins, n_bins)
        Their covariances by the totals of clusters; huge where there is a single cluster.
    rows : ndarray, shape (n_samples,)
        The effective rows, if rows were independent.
    """

    share: Floats
    covariance: Floats
    rows: Floats

    def at(self, index: Ints) -> ShareScatter:
        """Return that of some samples."""
        return ShareScatter(share=self.share[index], covariance=self.covariance[index], rows=self.rows[index])

    def effect(self) -> Floats:
        """Return the mean of the design effects of the shares, at least 1, by which the effective rows are fewer."""
        there = self.share > 0.0
        own = np.diagonal(self.covariance, axis1=1, axis2=2) / np.where(there, self.share, 1.0)
        free = np.maximum(there.sum(axis=1) - 1.0, 1.0)
        effect: Floats = np.maximum(self.rows * np.where(there, own, 0.0).sum(axis=1) / free, 1.0)
        return effect

    def largest(self) -> Floats:
        """Return the largest design effect of a cumulative share, at least 1."""
        below = np.cumsum(self.share, axis=1)
        single = below * (1.0 - below)
        clustered = np.diagonal(np.cumsum(np.cumsum(self.covariance, axis=1), axis=2), axis1=1, axis2=2)
        known = single > _NOTHING
        effects = np.where(known, self.rows[:, None] * clustered / np.where(known, single, 1.0), 1.0)
        found: Floats = np.maximum(effects, 1.0).max(axis=1)
        return found


def share_scatter(parts: ClusterParts, samples: Tally, bins: Ints, count: int, *, tail: float) -> ShareScatter:
    """Return how the shares of bins scatter.

    Parameters
    ----------
    parts : ClusterParts
        The rows of the samples.
    samples : Tally
        All scores of each sample.
    bins : ndarray of int64
        The bin of each of these.
    count : int
        The number of bins.
    tail : float
        The tail in which few clusters make the quantile of Student's t larger than the normal one.

    Examples
    --------
    Four rows in two clusters of equal scores: there are two scores, not four, of which one share is free.

    >>> tally = Tally.of_counts(np.array([0, 1]), np.array([0.2, 0.7]), np.array([2.0, 2.0]), np.zeros(2))
    >>> cells = ClusterCells.of_tally(np.arange(2), np.array([0, 1]), tally)
    >>> parts = ClusterParts(tally=tally, cells=cells, part=np.array([0, 1]), sample=np.array([0, 0]))
    >>> both = Tally.of_counts(np.array([0]), np.array([0.2, 0.7]), np.array([2.0, 2.0]), np.zeros(2))
    >>> times = Scatter(count=np.array([2.0]), effect=np.array([1.0])).times(0.025)
    >>> (share_scatter(parts, both, np.array([0, 1]), 2, tail=0.025).effect() / times).round(9)
    array([8.])
    """
    cells = _Cells.of(parts, samples, bins)
    size = len(samples)
    whole, squares = added(cells.sample, cells.weight, size), added(cells.sample, cells.squared, size)
    share = _by_bin(cells.sample, cells.bin, cells.weight, size, count) / np.maximum(whole, TINY)[:, None]
    ends = np.searchsorted(cells.sample, np.arange(size + 1))
    found = [cells.part(first, last).products(p) for first, last, p in zip(ends[:-1], ends[1:], share, strict=True)]
    effective = whole**2 / np.maximum([clusters for clusters, _ in found], TINY)
    times = Scatter(count=effective, effect=np.ones(size)).times(tail) / np.maximum(whole, TINY) ** 2
    covariance = np.array([products for _, products in found]).reshape(size, count, count) * times[:, None, None]
    return ShareScatter(share=share, covariance=covariance, rows=whole**2 / np.maximum(squares, TINY))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cells:
    """Rows of equal score of a part: their sample, cluster and bin, and sums of w and w^2; sorted by sample."""

    sample: Ints
    cluster: Ints
    bin: Ints
    weight: Floats
    squared: Floats

    @classmethod
    def of(cls, parts: ClusterParts, samples: Tally, bins: Ints) -> _Cells:
        """Find the bin of each score of each part."""
        sizes = parts.tally.sizes[parts.part]
        cells = ranges(parts.tally.starts[parts.part], sizes)
        sample, cluster = (np.repeat(values, sizes) for values in (parts.sample, parts.cells.cluster[parts.part]))
        order = np.argsort(sample, kind="stable")
        cells, sample, cluster = cells[order], sample[order], cluster[order]
        return cls(
            sample=sample,
            cluster=cluster,
            bin=bins[_place(samples, sample, parts.tally.score[cells])],
            weight=parts.tally.weight[cells],
            squared=parts.tally.squared[cells],
        )

    def part(self, first: int, last: int) -> _Cells:
        """Return some of the cells."""
        return _Cells(**{field.name: getattr(self, field.name)[first:last] for field in fields(self)})

    def products(self, share: Floats) -> tuple[float, Floats]:
        """Return the sums over clusters of a sample of squared weights, and of products of what bins have too much.

        Each is made up for what it takes off the shares that it is compared with.
        A single cluster does not show how it scatters: it stands for what one row would.
        """
        alone, count, whole = self.cluster < 0, len(share), self.weight.sum()
        names, number = np.unique(self.cluster[~alone], return_inverse=True)
        totals = _by_bin(number, self.bin[~alone], self.weight[~alone], len(names), count)
        lone = added(self.bin[alone], self.squared[alone], count)
        squares = float((totals.sum(axis=1) ** 2).sum() + lone.sum())
        outer = np.outer(share, share)
        if squares >= whole**2 * (1.0 - _NOTHING):
            return squares, whole**2 * (np.diag(share) - outer)
        weight = totals.sum(axis=1, keepdims=True)
        off = (totals - weight * share) / less_part(weight, whole)
        crossed, typical = np.outer(lone, share), lone.sum() / max(self.weight[alone].sum(), TINY)
        single = np.diag(lone) - crossed - crossed.T + lone.sum() * outer
        return squares, off.T @ off + single / less_part(typical, whole) ** 2


def clustered_stability(pooled: Floats, one: ShareScatter, other: ShareScatter) -> tuple[Floats, Floats]:
    """Return what chance makes of the stability index on average, and the degrees of freedom of its law.

    To second order the index is chi-squared with so many degrees of freedom, times their quotient.

    Parameters
    ----------
    pooled : ndarray, shape (n, n_bins)
        The shares of the bins in both samples together.
    one, other : ShareScatter
        The samples.

    References
    ----------
    Rao, J. N. K. and Scott, A. J. (1981). The analysis of categorical data from complex sample surveys: chi-squared
    tests for goodness of fit and independence in two-way tables. Journal of the American Statistical Association 76,
    221-230. https://doi.org/10.1080/01621459.1981.10481633
    """
    there = pooled > 0.0
    root = np.where(there, 1.0 / np.sqrt(np.where(there, pooled, 1.0)), 0.0)
    scaled = (one.covariance + other.covariance) * root[:, :, None] * root[:, None, :]
    mean = np.trace(scaled, axis1=1, axis2=2)
    spread = (scaled**2).sum(axis=(1, 2))
    return mean, mean**2 / np.maximum(spread, TINY)


def clustered_pvalue(index: Floats, mean: Floats, df: Floats) -> Floats:
    """Return the p-value of a stability index by that law."""
    pvalue: Floats = special.chdtrc(df, index * df / np.maximum(mean, TINY))
    return pvalue


def _place(samples: Tally, sample: Ints, score: Floats) -> Ints:
    """Return the cell of each score in its sample."""
    known, rank = np.unique(samples.score, return_inverse=True)
    code = samples.segment * len(known) + rank
    return np.searchsorted(code, sample * len(known) + np.searchsorted(known, score))


def _by_bin(place: Ints, bin_: Ints, values: Floats, size: int, count: int) -> Floats:
    return added(place * count + bin_, values, size * count).reshape(size, count)
