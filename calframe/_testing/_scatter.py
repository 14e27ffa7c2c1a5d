"""Rows that are not independent: how much wider the gap of a sample scatters where clusters share their luck.

The variance of a gap is the sum of squares of the totals of clusters (Liang and Zeger, 1986), each made up for what it
takes off the mean that it is compared with. What it is more than that of independent rows, the design effect, divides
the effective rows (Korn and Graubard, 1998). With few clusters the variance itself is uncertain, which the quantile of
Student's t in the place of the normal one allows for; clusters of unequal size count as Kish's effective number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._kernels._binned import added
from calframe._kernels._clusters import TINY, few_clusters, less_part
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

CLUSTER_TERMS = ("w2_square", "w2_residual")
"""The terms of rows that it takes besides those of a gap."""
HUGE = 1e100
_ROUNDING = 1e-12  # of a sum of weights, relatively


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scatter:
    """How the clusters of samples scatter.

    Attributes
    ----------
    count : ndarray
        Kish's effective number of clusters, ``(sum w)^2 / sum w_c^2``; a row without a cluster is one.
    effect : ndarray
        Variance of the gap by the totals of clusters over that by single rows, at least 1.
    """

    count: Floats
    effect: Floats

    @classmethod
    def of(cls, weight: Floats, squares: Floats, clustered: Floats, single: Floats) -> Self:
        """Return it from sums of w, of squared weights of clusters, and of squares of totals and of rows."""
        return cls(
            count=weight**2 / np.maximum(squares, TINY),
            effect=np.maximum(clustered / np.maximum(single, TINY), 1.0),
        )

    def times(self, tail: float | Floats) -> Floats:
        """Return by how much effective rows are fewer, for intervals with so much in each tail; finite, if huge."""
        times = self.effect * few_clusters(self.count, tail)
        return np.where(np.isfinite(times), times, HUGE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterCells:
    """Sums over the rows of a group (such as a segment's day) and a cluster.

    Attributes
    ----------
    group : ndarray of int64
        The group of each cell.
    cluster : ndarray of int64
        The cluster of each cell, counted from 0 over all groups; -1 for rows that are a cluster of their own each.
    weight, positive, residual : ndarray
        Sums of w, of w y, and of w (y - s).
    squares : tuple of ndarray
        Sums of w^2 times 1, y - s, and its square.
    """

    group: Ints
    cluster: Ints
    weight: Floats
    positive: Floats
    residual: Floats
    squares: tuple[Floats, Floats, Floats]

    @classmethod
    def of_terms(cls, group: Ints, cluster: Ints, total: Callable[[str], Floats]) -> Self:
        """Return them from what the cells add up to, by the name of the term."""
        return cls(
            group=group,
            cluster=cluster,
            weight=total("w"),
            positive=total("wy"),
            residual=total("wy") - total("wp"),
            squares=(total("w2"), total("w2_residual"), total("w2_square")),
        )

    @classmethod
    def of_tally(cls, group: Ints, cluster: Ints, tally: Tally) -> Self:
        """Return them from a tally, whose segments are the cells."""
        score = tally.score
        first = tally.squared_positive - score * tally.squared
        return cls(
            group=group,
            cluster=cluster,
            weight=tally.total(tally.weight),
            positive=tally.total(tally.positive),
            residual=tally.total(tally.positive - tally.weight * score),
            squares=(
                tally.total(tally.squared),
                tally.total(first),
                tally.total(tally.squared_positive * (1.0 - 2.0 * score) + score**2 * tally.squared),
            ),
        )

    def samples(self, sample: Ints, count: int) -> Samples:
        """Return so many samples, by the sample of each group; -1 is in none."""
        place = sample[self.group]
        inside = np.flatnonzero(place >= 0)
        return Samples.of(self, inside, place[inside], count)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """The clusters of samples: a pair is a sample and a cluster in it.

    Attributes
    ----------
    cells : ClusterCells
        The cells.
    inside, place : ndarray of int64
        Which cells are in a sample, and in which one. A cell may be in several.
    size : int
        The number of samples.
    known : ndarray of bool
        Which of those cells have a cluster.
    of_cell : ndarray of int64
        The pair of each cell with a cluster.
    where, cluster : ndarray of int64
        Sample and cluster of each pair.
    """

    cells: ClusterCells
    inside: Ints
    place: Ints
    size: int
    known: Bools
    of_cell: Ints
    where: Ints
    cluster: Ints

    @classmethod
    def of(cls, cells: ClusterCells, inside: Ints, place: Ints, size: int) -> Self:
        """Find the pairs."""
        known = cells.cluster[inside] >= 0
        width = int(cells.cluster.max(initial=0)) + 1
        codes, of_cell = np.unique(place[known] * width + cells.cluster[inside][known], return_inverse=True)
        return cls(
            cells=cells,
            inside=inside,
            place=place,
            size=size,
            known=known,
            of_cell=of_cell,
            where=codes // width,
            cluster=codes % width,
        )

    def scatter(self, gap: Floats) -> Scatter:
        """Return how they scatter about their gaps; a cluster takes its share of the whole off its own total.

        Where one outcome is all there is, outcomes say nothing of what the rows of a cluster share, and it may be all.
        """
        g, weight, whole = np.nan_to_num(gap), self.paired(self.cells.weight), self.summed(self.cells.weight)
        total = (self.paired(self.cells.residual) + g[self.where] * weight) / less_part(weight, whole[self.where])
        alone = self.cells.cluster < 0
        squared, lone = self.summed(self.cells.squares[0] * alone), self.summed(self.cells.weight * alone)
        typical = squared / np.maximum(lone, TINY)  # weight of a row without a cluster
        alike, positive = self.over(weight**2) + squared, self.summed(self.cells.positive)
        found = Scatter.of(
            whole,
            alike,
            self.over(total**2) + self.squares(g, alone) / less_part(typical, whole) ** 2,
            self.squares(g),
        )
        one_outcome = np.minimum(positive, whole - positive) <= _ROUNDING * whole
        most = alike / np.maximum(self.summed(self.cells.squares[0]), TINY)
        return Scatter(count=found.count, effect=np.where(one_outcome, np.maximum(found.effect, most), found.effect))

    def paired(self, values: Floats) -> Floats:
        """Add values of cells up by pair."""
        return added(self.of_cell, values[self.inside][self.known], len(self.where))

    def summed(self, values: Floats) -> Floats:
        """Add values of cells up by sample."""
        return added(self.place, values[self.inside], self.size)

    def over(self, values: Floats) -> Floats:
        """Add values of pairs up by sample."""
        return added(self.where, values, self.size)

    def squares(self, gap: Floats, kept: Bools | None = None) -> Floats:
        """Return the sum of squares ``w^2 (y - s + gap)^2`` over the rows of each sample, or some of them."""
        one, first, second = (self.summed(part if kept is None else part * kept) for part in self.cells.squares)
        return second + 2.0 * gap * first + gap**2 * one
