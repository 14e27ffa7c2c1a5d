"""Rows that are not independent: how much more a mean scatters where clusters share their luck, at every threshold.

The variance of a mean goes by the squares of the totals of clusters (Liang and Zeger, 1986). What it is more than that
of single rows, the design effect, divides the rows that an interval or a test counts with (Korn and Graubard, 1998).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from calframe._kernels._binned import added, changes, power_of_two, running_sum
from calframe._kernels._clusters import few_clusters
from calframe._typing import Floats, Ints

_STEPS = 12  # an end of an interval and the design effect there hardly move after so many
_LEAST_ROWS = 1e-6  # of a single cluster, which tells nothing
_NO_SCATTER = 1e-12  # relative: what rounding leaves of a sum of squares

Ends = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Squares:
    """Sums of squares ``sum (v - m w)^2`` for any mean m: the sums of ``v^2``, ``v w`` and ``w^2``."""

    value: Floats
    mixed: Floats
    weight: Floats

    def each(self, work: Callable[[Floats], Floats]) -> Self:
        """Return the same with something done to every array."""
        return type(self)(value=work(self.value), mixed=work(self.mixed), weight=work(self.weight))

    def about(self, mean: Floats | float) -> Floats:
        """Return the sum of squares about a mean."""
        found = self.value - 2.0 * mean * self.mixed + mean * mean * self.weight
        return np.where(found > _NO_SCATTER * (self.value + mean * mean * self.weight), found, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterSums:
    """Squares of the totals of clusters, and of the values of their rows; arrays of one shape.

    Attributes
    ----------
    clusters, rows : Squares
        Those of clusters and of single rows.
    count : ndarray
        Kish's effective number of clusters, ``(sum w)^2 / sum w_c^2``.
    """

    clusters: Squares
    rows: Squares
    count: Floats

    @classmethod
    def running(cls, cluster: Ints, row: Ints | None, cell: Ints, events: Events, starts: Ints, cells: int) -> Self:
        """Add up events from the first cell of each segment on, for every cell at once, in units of a power of two.

        Parameters
        ----------
        cluster : ndarray of int64, shape (n_events,)
            A number for the cluster of each event; none lies in two segments.
        row : ndarray of int64, shape (n_events,), or None
            A number for its row; None where each row has one event.
        cell : ndarray of int64
            The cell that an event happens in.
        events : Events
            What it adds.
        starts : ndarray of int64
            The first cell of each segment.
        cells : int
            The number of cells.

        Examples
        --------
        Rows of one cluster with the values 1, 1 and 0, then one by itself with 1: totals of 1, 2, 2, and 2 and 1.

        >>> events = Events.of_rows(np.array([1.0, 1.0, 0.0, 1.0]))
        >>> found = ClusterSums.running(np.array([0, 0, 0, 1]), None, np.arange(4), events, np.array([0]), 4)
        >>> alone = found.rows.value[0]  # the units are those of sums that stay near 1
        >>> found.clusters.value / alone, found.rows.value / alone, found.count.round(2)
        (array([1., 4., 4., 5.]), array([1., 2., 2., 3.]), array([1. , 1. , 1. , 1.6]))
        """
        segment = np.searchsorted(starts, cell, side="right") - 1
        unit = power_of_two(added(segment, events.counted, len(starts)))[segment]
        clusters = _Joined.of(cluster, cell, starts, cells).squares(events, events.together / unit)
        weight = running_sum(added(cell, events.counted / unit, cells), starts)
        return cls(
            clusters=clusters,
            rows=_Joined.of(row, cell, starts, cells).squares(events, events.alone / unit),
            count=weight * weight / np.where(clusters.weight > 0.0, clusters.weight, np.inf),
        )

    def each(self, work: Callable[[Floats], Floats]) -> Self:
        """Return the same with something done to every array, such as taking some of the cells."""
        clusters, rows = (part.each(work) for part in (self.clusters, self.rows))
        return type(self)(clusters=clusters, rows=rows, count=work(self.count))

    @property
    def most(self) -> Floats:
        """The design effect where all rows of a cluster are alike: so many rows are one."""
        return np.maximum(self.clusters.weight / np.where(self.rows.weight > 0.0, self.rows.weight, np.inf), 1.0)

    def effect(self, mean: Floats) -> Floats:
        """Return the design effect of values that scatter about a mean: at least 1, `most` where none scatters."""
        single = self.rows.about(mean)
        some = single > 0.0
        return np.where(some, np.maximum(self.clusters.about(mean) / np.where(some, single, 1.0), 1.0), self.most)

    def interval(self, ends: Callable[[Floats], Ends], rows: Floats, *, level: float) -> Ends:
        """Return an interval that counts with the rows that are left.

        At each end the design effect is that of residuals from the end, as a score test has it, so that rows that are
        all alike count as their clusters. Few clusters widen it as Student's t does.

        Parameters
        ----------
        ends : callable
            Both ends of the interval of independent rows, from their number.
        rows : ndarray
            Rows, or the effective number of rows.
        level : float
            Confidence level of both ends together.

        References
        ----------
        Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected number of
        positive counts estimated from survey data. Survey Methodology 24, 193-201.
        """
        rows = rows / few_clusters(self.count, (1.0 - level) / 2.0)

        def left(effect: Floats) -> Floats:
            return np.maximum(rows / effect, _LEAST_ROWS)

        low, high = ends(left(self.most))  # from the safe side
        for _ in range(_STEPS):
            low, high = ends(left(self.effect(low)))[0], ends(left(self.effect(high)))[1]
        return low, high


def ends_left(interval: Callable[..., Ends], rows: Floats, clusters: ClusterSums | None, *, level: float) -> Ends:
    """Return an interval from rows, or from what clusters leave of them; it is called with their number and a level."""
    ends = partial(interval, level=level)
    return ends(rows) if clusters is None else clusters.interval(ends, rows, level=level)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Events:
    """What rows add where they are counted, or where a rule changes its mind about them.

    Attributes
    ----------
    value, weight : ndarray of float64
        What an event adds to the sum of a row, and to that of its weights, in units of the row's weight.
    together, alone : ndarray of float64
        The weight of the row in the total of its cluster, and by itself, where squares are taken: of w rows that count
        one by one the root of w.
    counted : ndarray of float64
        What the event adds to the weight of all rows.
    """

    value: Floats
    weight: Floats
    together: Floats
    alone: Floats
    counted: Floats

    @classmethod
    def of_rows(cls, value: Floats) -> Self:
        """Return the events of rows without weights, one each."""
        one = np.ones_like(value)
        return cls(value=value, weight=one, together=one, alone=one, counted=one)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Joined:
    """Events cluster by cluster, in the order in which they happen."""

    order: Ints
    first: Ints
    cell: Ints
    starts: Ints
    cells: int

    @classmethod
    def of(cls, group: Ints | None, cell: Ints, starts: Ints, cells: int) -> Self:
        """Sort events by their group, or leave each by itself."""
        if group is None:
            every = np.arange(len(cell))
            return cls(order=every, first=every, cell=cell, starts=starts, cells=cells)
        order = np.lexsort((cell, group))
        return cls(
            order=order, first=np.flatnonzero(changes(group[order])), cell=cell[order], starts=starts, cells=cells
        )

    def squares(self, events: Events, scale: Floats) -> Squares:
        value, weight = (events.value * scale)[self.order], (events.weight * scale)[self.order]
        totals = running_sum(value, self.first), running_sum(weight, self.first)
        return Squares(
            value=self._running(value * (2.0 * totals[0] - value)),
            mixed=self._running(value * totals[1] + weight * totals[0] - value * weight),
            weight=self._running(weight * (2.0 * totals[1] - weight)),
        )

    def _running(self, change: Floats) -> Floats:
        """Return the running sum of what events change."""
        return running_sum(added(self.cell, change, self.cells), self.starts)
