"""Inductive Venn-Abers maps of all segments: what isotonic fits say of a row if its label were 0, and were 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._fitting._fitted import Knots
from calframe._fitting._steps import ROWS, count_below, joined, outcome_of
from calframe._kernels._binned import last_cells, ranges, run_starts, sizes_of, spread, starts_of
from calframe._kernels._isotonic import Blocks, blocks
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

_BITS = 62  # of the weight of a segment: its sums are whole numbers, which int64 adds and subtracts exactly
_MOST = 1000  # a row is at most 2^1000 times the unit of its segment


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VennAbers:
    """Two step functions in each segment; both have runs of equal values only once.

    Attributes
    ----------
    low : Knots
        The fit if the label were 0. A value holds from its knot up to, not including, the next; 0 before the first.
    high : Knots
        The fit if the label were 1. A value holds up to its knot, that included, from the one before; 1 after the
        last.
    """

    low: Knots
    high: Knots


def venn_abers(tally: Tally) -> VennAbers:
    """Find, for every score there can be, the isotonic fit with one more row at that score, of either label.

    ``p0(s)`` is the value at s of the isotonic regression on the rows and ``(s, 0)``, and ``p1(s)`` that on the rows
    and ``(s, 1)``. The row added has weight 1, whatever the weights of the others are: weights count rows. If rows are
    exchangeable, one of the two is perfectly calibrated, and their distance tells how little the rows say.

    Both are steps: p0 changes at distinct scores only and is continuous from the right there, p1 from the left.
    At the score of cell i,

        ``p0 = max_{a <= i} min_{b >= i} sum_{a..b} positive / (sum_{a..b} weight + 1)``,

    where a need only be the first cell of a block of the fit without the row, and b a cell of the block of i. The row
    pulls the value down: its pool takes in what stands before the cell in its block, and earlier blocks that are now
    as high, and may leave out what stands after it. p0 does not decrease, and with b the last cell that attains the
    minimum it is the same from i to b. So the middle cell of a block leaves two smaller problems, and all problems of
    all segments are solved together: ``O(n log n)`` for n cells, with a handful of steps of the search for a. (The
    published algorithm moves a point through the cumulative sum diagram, one cell after the other.)
    p1 is p0 of the mirror image, with scores and labels reversed.

    Parameters
    ----------
    tally : Tally
        Distinct scores; only their order matters.

    References
    ----------
    Vovk, V., Petej, I. and Fedorova, V. (2015). Large-scale probabilistic predictors with and without guarantees of
    validity. NIPS 2015. https://doi.org/10.48550/arXiv.1511.00213

    Examples
    --------
    A negative at 0.2 and a positive at 0.6. A negative at 0.6 would halve the rate there:

    >>> fit = venn_abers(Tally.of_counts(np.array([0]), np.array([0.2, 0.6]), np.ones(2), np.array([0.0, 1.0])))
    >>> fit.low.x, fit.low.y
    (array([0.2, 0.6]), array([0. , 0.5]))
    >>> fit.high.x, fit.high.y
    (array([0.2, 0.6]), array([0.5, 1. ]))
    """
    parts = [_of_chunk(part) for _, part in tally.chunks()]
    return VennAbers(low=joined([low for low, _ in parts]), high=joined([high for _, high in parts]))


def evaluate_venn_abers(fit: VennAbers, segment: Ints, x: Floats) -> tuple[Floats, Floats, Floats]:
    """Read the two step functions, and merge them: ``p = p1 / (1 - p0 + p1)``, which minimises the largest log regret.

    Parameters
    ----------
    fit : VennAbers
        The step functions.
    segment : ndarray of int64, shape (n,)
        The segment of each point.
    x : ndarray of shape (n,)
        The points; NaN gives NaN.

    Returns
    -------
    low, high, merged : ndarray of shape (n,)
        p0, p1 and p, none of which decreases with x; p lies between p0 and p1.

    Examples
    --------
    >>> fit = venn_abers(Tally.of_counts(np.array([0]), np.array([0.2, 0.6]), np.ones(2), np.array([0.0, 1.0])))
    >>> low, high, merged = evaluate_venn_abers(fit, np.zeros(2, dtype=np.int64), np.array([0.4, 0.6]))
    >>> low, high, merged.round(3)
    (array([0. , 0.5]), array([1., 1.]), array([0.5  , 0.667]))
    """
    low, high = np.empty(len(x)), np.empty(len(x))
    for begin in range(0, len(x), ROWS):
        cut = slice(begin, begin + ROWS)
        at, missing = x[cut], np.isnan(x[cut])
        passed, first, _ = _passed(fit.low, segment[cut], at, equal=True)
        low[cut] = np.where(passed > 0, fit.low.y[first + np.maximum(passed - 1, 0)], 0.0)
        passed, first, size = _passed(fit.high, segment[cut], at, equal=False)
        high[cut] = np.where(passed < size, fit.high.y[first + np.minimum(passed, size - 1)], 1.0)
        low[cut][missing] = high[cut][missing] = np.nan
    return low, high, 1.0 / (1.0 + (1.0 - low) / high)  # in this form rounding reverses no order


def _passed(knots: Knots, segment: Ints, x: Floats, *, equal: bool) -> tuple[Ints, Ints, Ints]:
    """Return how many knots of its segment lie below each point, the first of them, and their number."""
    first, size = knots.starts[segment], sizes_of(knots.starts, len(knots.x))[segment]
    return count_below(knots.x, first, size, x, equal=equal), first, size


def _of_chunk(tally: Tally) -> tuple[Knots, Knots]:
    sums, cells = _Sums.of(tally), len(tally.score)
    row, outcome = tally.spread(sums.row), outcome_of(tally)
    weight, positive = sums.between(*_pools(tally))
    low = _not_falling(positive / (weight + row), tally)
    last, first = (cells - 1 - found[::-1] for found in _pools(_mirrored(tally)))
    weight, positive = sums.between(first, last)
    high = _not_falling(np.maximum((positive + row) / (weight + row), low), tally)
    of_low, of_high = run_starts(low, tally.starts), run_starts(high, tally.starts)
    to_high = last_cells(of_high, cells)
    return (
        Knots(starts=np.searchsorted(of_low, tally.starts), x=tally.score[of_low], y=low[of_low], outcome=outcome),
        Knots(starts=np.searchsorted(of_high, tally.starts), x=tally.score[to_high], y=high[to_high], outcome=outcome),
    )


def _mirrored(tally: Tally) -> Tally:
    """Return the tally with scores reversed and classes exchanged; segments are in reverse order, too."""
    return Tally(
        starts=starts_of(tally.sizes[::-1]),
        score=-tally.score[::-1],
        rows=tally.rows[::-1],
        weight=tally.weight[::-1],
        positive=tally.negative[::-1],
        squared=tally.squared[::-1],
        squared_positive=tally.squared_negative[::-1],
    )


def _not_falling(values: Floats, tally: Tally) -> Floats:
    """Lift what rounding put below a value before it in its segment: running maxima over 2, 4, 8, ... cells."""
    segment, stride = tally.segment, 1
    if not (_same(segment, 1) & (values[1:] < values[:-1])).any():
        return values
    while stride < tally.sizes.max():
        higher = np.maximum(values[stride:], values[:-stride])
        values[stride:] = np.where(_same(segment, stride), higher, values[stride:])
        stride *= 2
    return values


def _same(segment: Ints, stride: int) -> Bools:
    same: Bools = segment[stride:] == segment[:-stride]
    return same


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sums:
    """Running sums of weights in whole units; each segment has its own unit, a power of two.

    Attributes
    ----------
    weight, positive : ndarray of int64, shape (n_cells + 1,)
        They go on through all segments and may pass the largest integer and come round: differences are right.
    row : ndarray of float64, shape (n_segments,)
        The weight of one row.
    """

    weight: Ints
    positive: Ints
    row: Floats

    @classmethod
    def of(cls, tally: Tally) -> Self:
        shift = _BITS - np.frexp(tally.total(tally.weight))[1]
        return cls(
            weight=_running(tally.weight, tally.spread(shift)),
            positive=_running(np.minimum(tally.positive, tally.weight), tally.spread(shift)),
            row=np.ldexp(1.0, np.minimum(shift, _MOST)),
        )

    def between(self, first: Ints, last: Ints) -> tuple[Floats, Floats]:
        """Return the weight, and that of the positives, from a first to a last cell."""
        weight = self.weight[last + 1] - self.weight[first]
        positive = self.positive[last + 1] - self.positive[first]
        return weight.astype(np.float64), positive.astype(np.float64)


def _running(values: Floats, shift: Ints) -> Ints:
    return np.append(0, np.cumsum(np.rint(np.ldexp(values, shift)).astype(np.int64)))


def _pools(tally: Tally) -> tuple[Ints, Ints]:
    """Return, for each cell, the first and the last cell that one more negative row there is pooled with.

    A problem asks for the cells from `begin` to `end`, whose pools end at `bound` at the latest. It starts as a block.
    """
    search = _Search.of(tally)
    first, last = np.empty((2, len(tally.score)), dtype=np.int64)
    fit = search.fit
    block, begin, end, bound = np.arange(len(fit.value)), fit.first_cell, fit.last_cell, fit.last_cell
    while len(block):
        middle = (begin + end) // 2
        left, right = search.pool(block, middle, bound)
        settled = np.minimum(right, end) - middle + 1
        cells = ranges(middle, settled)
        first[cells], last[cells] = np.repeat(left, settled), np.repeat(right, settled)
        lower, upper = begin < middle, right < end
        block = np.append(block[lower], block[upper])
        begin = np.append(begin[lower], right[upper] + 1)
        end = np.append(middle[lower] - 1, end[upper])
        bound = np.append(right[lower], bound[upper])
    return first, last


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Search:
    """What the search for pools needs: the fit without the row, sums, and per block its row and its segment's blocks.

    Attributes
    ----------
    fit : Blocks
        The isotonic fit of the tally.
    sums : _Sums
        The sums of its cells.
    row : ndarray of float64, shape (n_blocks,)
        The weight of one row.
    start : ndarray of int64, shape (n_blocks,)
        The first block of the segment.
    """

    fit: Blocks
    sums: _Sums
    row: Floats
    start: Ints

    @classmethod
    def of(cls, tally: Tally) -> Self:
        fit, sums = blocks(tally), _Sums.of(tally)
        count = len(fit.value)
        row, start = spread(sums.row, fit.starts, count), spread(fit.starts, fit.starts, count)
        return cls(fit=fit, sums=sums, row=row, start=start)

    def pool(self, block: Ints, cell: Ints, bound: Ints) -> tuple[Ints, Ints]:
        """Return the first and last cell of the pool of a cell of each block, which ends at `bound` at the latest.

        From the start of its block: the value is the least over all ends; blocks before it with a value at least as
        high are pooled, too, which raises the value, until it does not.
        """
        first = self.fit.first_cell[block]
        value, last = self._least(block, first, cell, bound)
        some = np.arange(len(block))
        while len(some):
            start = self.start[block[some]]
            below = count_below(self.fit.value, start, block[some] - start + 1, value[some], equal=False)
            begin = self.fit.first_cell[np.minimum(start + below, block[some])]
            moved = begin != first[some]
            some, begin = some[moved], begin[moved]
            higher, end = self._least(block[some], begin, cell[some], bound[some])
            better = higher > value[some]
            some = some[better]
            first[some], value[some], last[some] = begin[better], higher[better], end[better]
        return first, last

    def _least(self, block: Ints, first: Ints, cell: Ints, bound: Ints) -> tuple[Floats, Ints]:
        """Return the least rate with the row, over ends from `cell` to `bound`, and the last end that has it."""
        sizes = bound - cell + 1
        ends = ranges(cell, sizes)
        weight, positive = self.sums.between(np.repeat(first, sizes), ends)
        rate = positive / (weight + np.repeat(self.row[block], sizes))
        starts = starts_of(sizes)
        if not len(starts):
            return rate, ends
        least = np.minimum.reduceat(rate, starts)
        return least, np.maximum.reduceat(np.where(rate == np.repeat(least, sizes), ends, -1), starts)
