"""Rows that are not independent: how much wider the gap of a segment scatters where clusters share their luck.

The variance of a gap is the sum of squares of the totals of clusters (Liang and Zeger, 1986), each made up for what it
takes off the mean that it is compared with. What it is more than that of independent rows, the design effect, divides
the effective rows (Korn and Graubard, 1998). With few clusters the variance itself is uncertain, which the quantile of
Student's t in the place of the normal one allows for; clusters of unequal size count as Kish's effective number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import narwhals.stable.v2 as nw
import numpy as np

from calframe._auditing._crossings import Crossings
from calframe._auditing._finest import Finest
from calframe._auditing._gaps import SegmentSums
from calframe._kernels._cluster_sums import few_clusters
from calframe._registry import Row
from calframe._typing import Bools, Floats, Ints

_TINY = 1e-300  # a quotient of nothing and nothing is 0
_LEAST_LEFT = 1e-9  # of the whole without the only cluster

CLUSTER_TERMS = ("w2_square", "w2_residual")


def squared_residual(row: Row) -> nw.Expr:
    """Return the term ``w^2 (y - s)``, of which the package's own terms have no sum."""
    return row.squared(row.label - row.score)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scatter:
    """How the clusters of segments scatter.

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
            count=weight**2 / np.maximum(squares, _TINY),
            effect=np.maximum(clustered / np.maximum(single, _TINY), 1.0),
        )

    def fewer(self, sums: SegmentSums, tail: float) -> SegmentSums:
        """Return sums with the effective rows that are left, for intervals with so much in each tail."""
        return sums.clustered(self.count, self.effect * few_clusters(self.count, tail))


def scatter(
    finest: Finest, crossings: Crossings, gap: Floats, group: Bools | None, others: Floats
) -> tuple[Scatter, Scatter]:
    """Return how the clusters of segments scatter about their gaps, and those of the rows they are compared with.

    Parameters
    ----------
    finest : Finest
        The sums of all crossings and clusters.
    crossings : Crossings
        The segments.
    gap, others : ndarray of shape (n_segments,)
        Their gaps, and those of the rows of the group that are not their own.
    group : ndarray of bool, shape (n_crossings,), or None
        The crossings of the group; None for all rows, which each reading of a column has once.
    """
    ends, cells = [*crossings.starts[1:], len(crossings)], _Cells.of(finest)
    own, other = [], []
    for segment, first, last in zip(crossings.segment, crossings.starts, ends, strict=True):
        pairs = _Pairs.of(cells, segment, int(first), int(last))
        own.append(pairs.own(gap[first:last]))
        other.append(pairs.other(others[first:last], segment >= 0 if group is None else group))
    return _joined(own), _joined(other)


def whole_scatter(finest: Finest, gap: Floats) -> Scatter:
    """Return how the clusters of all rows scatter."""
    return _Pairs.of(_Cells.of(finest), np.where(finest.once, 0, -1), 0, 1).own(gap)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cells:
    """Sums of each crossing and cluster: of w, w (y - s), and w^2 times 1, y - s and its square."""

    cluster: Ints
    weight: Floats
    residual: Floats
    squares: tuple[Floats, Floats, Floats]

    @classmethod
    def of(cls, finest: Finest) -> Self:
        total = finest.cells.total
        return cls(
            cluster=finest.cluster,
            weight=total("w"),
            residual=total("wy") - total("wp"),
            squares=(total("w2"), total("w2_residual"), total("w2_square")),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """The clusters of segments that share no row: a pair is a segment and a cluster in it."""

    cells: _Cells
    inside: Ints
    place: Ints
    size: int
    known: Bools
    of_cell: Ints
    where: Ints
    cluster: Ints

    @classmethod
    def of(cls, cells: _Cells, segment: Ints, first: int, last: int) -> Self:
        inside = np.flatnonzero(segment >= 0)
        place, known = segment[inside] - first, cells.cluster[inside] >= 0
        width = int(cells.cluster.max(initial=0)) + 1
        codes, of_cell = np.unique(place[known] * width + cells.cluster[inside][known], return_inverse=True)
        return cls(
            cells=cells,
            inside=inside,
            place=place,
            size=last - first,
            known=known,
            of_cell=of_cell,
            where=codes // width,
            cluster=codes % width,
        )

    def own(self, gap: Floats) -> Scatter:
        """Return the scatter of the segments; a cluster takes its share of the whole off its own total."""
        g, weight, whole = np.nan_to_num(gap), self._paired(self.cells.weight), self._summed(self.cells.weight)
        total = (self._paired(self.cells.residual) + g[self.where] * weight) / _less(weight, whole[self.where])
        alone = self.cells.cluster < 0
        squared, lone = self._summed(self.cells.squares[0] * alone), self._summed(self.cells.weight * alone)
        typical = squared / np.maximum(lone, _TINY)  # weight of a row without a cluster
        return Scatter.of(
            whole,
            self._over(weight**2) + squared,
            self._over(total**2) + self._squares(g, alone) / _less(typical, whole) ** 2,
            self._squares(g),
        )

    def other(self, gap: Floats, group: Bools) -> Scatter:
        """Return the scatter of the rows of a group that are not the segments' own.

        What a cluster takes off its own total is at most what one of the effective number of equal ones would, to the
        square root: that bound stands in for the shares.
        """
        h, cells = np.nan_to_num(gap), self.cells
        there = group & (cells.cluster >= 0)
        weight, residual = (_added(cells.cluster[there], values[there]) for values in (cells.weight, cells.residual))
        most = int(cells.cluster.max(initial=0)) + 1
        weight, residual = (np.pad(values, (0, most - len(values))) for values in (weight, residual))
        mine, luck = self._paired(cells.weight * group), self._paired(cells.residual * group)
        w, r, at = weight[self.cluster], residual[self.cluster], h[self.where]
        squares = (weight**2).sum() + self._over((w - mine) ** 2 - w**2)
        totals = (residual**2).sum() + 2.0 * h * (residual * weight).sum() + h**2 * (weight**2).sum()
        totals = totals + self._over((r - luck + at * (w - mine)) ** 2 - (r + at * w) ** 2)
        alone, rows = (self._left(h, group, kept) for kept in (cells.cluster < 0, np.ones(len(group), dtype=np.bool_)))
        lone = cells.squares[0] * (group & (cells.cluster < 0))
        found = Scatter.of(
            cells.weight[group].sum() - self._summed(cells.weight * group),
            squares + lone.sum() - self._summed(lone),
            totals + alone,
            rows,
        )
        bound = np.maximum(1.0 - np.sqrt(1.0 / np.maximum(found.count, 1.0)), _LEAST_LEFT)
        return Scatter(count=found.count, effect=np.maximum(found.effect / bound**2, 1.0))

    def _paired(self, values: Floats) -> Floats:
        return _added(self.of_cell, values[self.inside][self.known], len(self.where))

    def _summed(self, values: Floats) -> Floats:
        return _added(self.place, values[self.inside], self.size)

    def _over(self, values: Floats) -> Floats:
        return _added(self.where, values, self.size)

    def _squares(self, gap: Floats, kept: Bools | None = None) -> Floats:
        """Return the sum of squares ``w^2 (y - s + gap)^2`` over the rows of each segment, or some of them."""
        one, first, second = (self._summed(part if kept is None else part * kept) for part in self.cells.squares)
        return second + 2.0 * gap * first + gap**2 * one

    def _left(self, gap: Floats, group: Bools, kept: Bools) -> Floats:
        """Return the same over the rows of a group that are not the segments' own."""
        chosen = group & kept
        one, first, second = (float((part * chosen).sum()) for part in self.cells.squares)
        return np.maximum(second + 2.0 * gap * first + gap**2 * one - self._squares(gap, chosen), 0.0)


def _less(part: Floats, whole: Floats) -> Floats:
    """Return what is left of the whole without a part, as a share."""
    return np.maximum(1.0 - part / np.maximum(whole, _TINY), _LEAST_LEFT)


def _joined(parts: Sequence[Scatter]) -> Scatter:
    return Scatter(
        count=np.concatenate([part.count for part in parts]), effect=np.concatenate([part.effect for part in parts])
    )


def _added(place: Ints, values: Floats, count: int = 0) -> Floats:
    return np.bincount(place, weights=values, minlength=count).astype(np.float64, copy=False)
