"""Neighbourhoods on distinct scores: where a given mass of rows lies, and what lies around a point.

Where all weights of a segment are whole numbers they count rows: every rule is the one that loess applies to the table
with each row written out that often, roundings included. Otherwise they are importances: masses are shares of the
segment's weight, and no rule rounds, so that neither a common factor nor the splitting of a row's weight over copies
of it changes anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._kernels._binned import last_cells, segment_count
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

SLACK = 1e-10  # of a segment's mass: what rounding may add to or take from a sum of shares


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbours:
    """The masses of a tally's scores, and what lies around a point.

    Attributes
    ----------
    tally : Tally
        The distinct scores; at most some 10^5 segments, as in a chunk of it.
    whole : ndarray of bool, shape (n_segments,)
        Whether the weights of the segment count rows.
    total : ndarray of shape (n_segments,)
        The mass of the segment: its rows, or 1 where masses are shares.
    share : ndarray of shape (n_cells,)
        The share of its segment's weight at each score.
    end : ndarray of shape (n_cells,)
        The mass of the segment up to each score, that included.
    place : ndarray of shape (n_cells,)
        The same as a share of the segment, plus the segment's number: one ascending array for all of them.
    """

    tally: Tally
    whole: Bools
    total: Floats
    share: Floats
    end: Floats
    place: Floats

    @classmethod
    def of(cls, tally: Tally) -> Self:
        """Weigh the scores of a tally."""
        sums = tally.total(tally.weight)
        whole = segment_count(tally.weight != np.floor(tally.weight), tally.starts) == 0
        share = tally.weight / tally.spread(sums)
        end = tally.running(share)
        place = end + tally.segment
        end = masses(tally, end, whole, sums)
        return cls(tally=tally, whole=whole, total=np.where(whole, sums, 1.0), share=share, end=end, place=place)

    @property
    def stops(self) -> Ints:
        """The cell after the last of each segment."""
        return last_cells(self.tally.starts, len(self.share)) + 1

    def mass(self, share: float, *, slack: float = 0.0, least: float = 0.0) -> Floats:
        """Return a share of each segment, rounded down to rows where weights count them, but at least `least` rows."""
        rows = np.maximum(np.floor(self.total * share + slack), np.minimum(least, self.total))
        return np.where(self.whole, rows, share)

    def find(self, segment: Ints, mass: Floats) -> Ints:
        """Return the first score up to which a segment has that mass; the first cell after it where it has less."""
        return np.searchsorted(self.place, segment + mass / self.total[segment] - SLACK)

    def before(self, cell: Ints, segment: Ints) -> Floats:
        """Return the mass of a segment below a cell."""
        return np.where(cell > self.tally.starts[segment], self.end[cell - 1], 0.0)

    def around(self, segment: Ints, at: Floats, mass: Floats) -> tuple[Ints, Ints, Floats]:
        """Return the first and last cell that may lie within the smallest radius that holds a mass, and that radius.

        Among the intervals of scores that hold the mass, each from one score to the first that completes it, the
        farther end of the best is as near as can be. The farther end is the right one from some interval on.
        """
        score, cells = self.tally.score, np.arange(len(self.share))
        own = self.tally.segment
        reach = self.find(own, self.before(cells, own) + mass[own])
        beyond = reach >= self.stops[own]
        right = np.where(beyond, np.inf, score[np.minimum(reach, len(cells) - 1)])
        start, stop = self.tally.starts[segment], self.stops[segment]
        from_here = first_where(start, stop, lambda cell: right[cell] - at >= at - score[cell])
        here, left = np.minimum(from_here, stop - 1), np.maximum(from_here - 1, start)
        to_right = np.where(from_here < stop, right[here] - at, np.inf)
        to_left = np.where(from_here > start, at - score[left], np.inf)
        return left, np.minimum(reach[here], stop - 1), np.minimum(to_left, to_right)


def masses(tally: Tally, end: Floats, whole: Bools, sums: Floats) -> Floats:
    """Turn running shares into running numbers of rows, rid of rounding, where weights count rows."""
    return np.where(tally.spread(whole), np.rint(end * tally.spread(sums)), end)


def first_where(low: Ints, high: Ints, test: Callable[[Ints], Bools]) -> Ints:
    """Return the first number from `low` up to `high` that passes a test that all after it pass, too; else `high`.

    Examples
    --------
    >>> first_where(np.array([0, 5]), np.array([9, 9]), lambda n: n * n >= 10)
    array([4, 5])
    """
    low, high = low.copy(), high.copy()
    while np.any(open_ := low < high):
        middle = (low + high) // 2
        passed = test(np.where(open_, middle, low - 1)) & open_
        high = np.where(passed, middle, high)
        low = np.where(open_ & ~passed, middle + 1, low)
    return low
