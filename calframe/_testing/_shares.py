"""Shares of scores in bins where rows are in clusters: how they scatter, and the law of the stability index then.

A statistic of several shares is a sum of squares, each of which clusters make wider. Its law is that of a chi-squared
number with the same mean and variance (Rao and Scott, 1981, and Satterthwaite's second-order correction).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import ranges
from calframe._kernels._tally import Tally
from calframe._testing._scatter import TINY, Scatter, added
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
    cluster : ndarray of int64
        The cluster of each part; -1 where each row is one of its own.
    part, sample : ndarray of int64
        Pairs of a part and the sample that it is in; a part may be in several.
    """

    tally: Tally
    cluster: Ints
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
    Four rows in two clusters of equal scores: there are two scores, not four.

    >>> tally = Tally.of_counts(np.array([0, 1]), np.array([0.2, 0.7]), np.array([2.0, 2.0]), np.zeros(2))
    >>> parts = ClusterParts(tally=tally, cluster=np.array([0, 1]), part=np.array([0, 1]), sample=np.array([0, 0]))
    >>> both = Tally.of_counts(np.array([0]), np.array([0.2, 0.7]), np.array([2.0, 2.0]), np.zeros(2))
    >>> times = Scatter(count=np.array([2.0]), effect=np.array([1.0])).times(0.025)
    >>> (share_scatter(parts, both, np.array([0, 1]), 2, tail=0.025).effect() / times).round(9)
    array([2.])
    """
    sizes = parts.tally.sizes[parts.part]
    cells = ranges(parts.tally.starts[parts.part], sizes)
    sample, cluster = (np.repeat(values, sizes) for values in (parts.sample, parts.cluster[parts.part]))
    weight, squared = parts.tally.weight[cells], parts.tally.squared[cells]
    bin_ = bins[_place(samples, sample, parts.tally.score[cells])]
    size = len(samples)
    whole, squares = added(sample, weight, size), added(sample, squared, size)
    share = _by_bin(sample, bin_, weight, size, count) / np.maximum(whole, TINY)[:, None]
    alone = cluster < 0
    lone = _by_bin(sample[alone], bin_[alone], squared[alone], size, count)
    known = np.flatnonzero(~alone)
    known = known[np.lexsort((cluster[known], sample[known]))]
    ends = np.searchsorted(sample[known], np.arange(size + 1))
    clusters, products = np.zeros(size), np.zeros((size, count, count))
    for i in range(size):
        mine = known[ends[i] : ends[i + 1]]
        number = np.unique(cluster[mine], return_inverse=True)[1]
        totals = _by_bin(number, bin_[mine], weight[mine], int(number.max(initial=-1)) + 1, count)
        of_cluster = totals.sum(axis=1)
        off = totals - of_cluster[:, None] * share[i]
        q, p = lone[i], share[i]
        products[i] = off.T @ off + np.diag(q) - np.outer(q, p) - np.outer(p, q) + q.sum() * np.outer(p, p)
        clusters[i] = (of_cluster**2).sum() + q.sum()
    count_ = whole**2 / np.maximum(clusters, TINY)
    times = Scatter(count=count_, effect=np.ones(size)).times(tail) / np.maximum(whole, TINY) ** 2
    return ShareScatter(
        share=share, covariance=products * times[:, None, None], rows=whole**2 / np.maximum(squares, TINY)
    )


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
