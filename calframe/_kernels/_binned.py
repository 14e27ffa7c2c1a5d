"""Cells in segments, one flat array: sums, runs and spreads over them, and the errors of score bins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calframe._typing import Bools, Floats, Ints

T = TypeVar("T", bound=np.generic)


def sizes_of(starts: Ints, cells: int) -> Ints:
    """Return the number of cells of each segment, of so many cells."""
    return np.diff(np.append(starts, cells))


def starts_of(sizes: Ints) -> Ints:
    """Return the first cell of each segment, from the numbers of their cells."""
    return np.cumsum(sizes) - sizes


def last_cells(starts: Ints, cells: int) -> Ints:
    """Return the last cell of each segment, of so many cells."""
    return np.append(starts[1:], cells) - 1


def spread(values: NDArray[T], starts: Ints, cells: int) -> NDArray[T]:
    """Return the value of its segment for each cell.

    Examples
    --------
    >>> spread(np.array([0.5, 0.7]), np.array([0, 2]), 3)
    array([0.5, 0.5, 0.7])
    """
    return np.repeat(values, sizes_of(starts, cells))


def ranges(first: Ints, sizes: Ints) -> Ints:
    """Return ``first, first + 1, ...``, so many of each, one range after the other.

    Examples
    --------
    >>> ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    return np.repeat(first - starts_of(sizes), sizes) + np.arange(sizes.sum())


def changes(values: NDArray[Any]) -> Bools:
    """Return which values differ from the one before; the first does."""
    return np.append(True, values[1:] != values[:-1])


def run_starts(values: NDArray[Any], starts: Ints) -> Ints:
    """Return where runs of equal values begin; a run ends with its segment.

    Examples
    --------
    >>> run_starts(np.array([1, 1, 2, 2]), np.array([0, 3]))
    array([0, 2, 3])
    """
    new = changes(values)
    new[starts] = True
    return np.flatnonzero(new)


def chunk_bounds(starts: Ints, cells: int, most: int) -> Iterator[tuple[int, int]]:
    """Give ranges of whole segments of together at most `most` cells, or of one segment that alone has more.

    Examples
    --------
    >>> list(chunk_bounds(np.array([0, 2, 3, 9]), 10, 3))
    [(0, 2), (2, 3), (3, 4)]
    """
    first, bounds = 0, np.append(starts, cells)
    while first < len(starts):
        last = int(np.searchsorted(bounds, bounds[first] + most, side="right")) - 1
        last = min(max(last, first + 1), len(starts))
        yield first, last
        first = last


def segment_sum(values: Floats, starts: Ints) -> Floats:
    """Sum cells within each segment, pairwise, so that errors do not grow with the number of cells.

    Examples
    --------
    >>> segment_sum(np.array([1.0, 2.0, 3.0]), np.array([0, 2]))
    array([3., 3.])
    """
    return np.add.reduceat(values, starts)


def added(place: Ints, values: Floats, count: int) -> Floats:
    """Return the sum of the values of each place, of so many.

    Examples
    --------
    >>> added(np.array([2, 0, 2]), np.array([1.0, 5.0, 3.0]), 4)
    array([5., 0., 4., 0.])
    """
    return np.bincount(place, weights=values, minlength=count).astype(np.float64, copy=False)


def segment_count(marked: Bools, starts: Ints) -> Ints:
    """Return the number of cells marked in each segment."""
    return np.add.reduceat(marked, starts, dtype=np.int64)


def segment_max(values: Floats, starts: Ints) -> Floats:
    """Return the largest cell of each segment."""
    return np.maximum.reduceat(values, starts)


def running_sum(values: Floats, starts: Ints) -> Floats:
    """Return the running sum within each segment, the cell itself included, whatever other segments hold.

    One running sum over all cells loses the sum of a segment where the next begins. What rounding leaves of it there
    is taken off, too, so that it does not pile up over many segments. Bring segments to one scale by `power_of_two`
    of their totals first, or a heavy one drowns a light one.

    Examples
    --------
    >>> running_sum(np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 2]))
    array([ 1.,  3.,  4., 12.])
    """
    before = segment_sum(values, starts)[:-1]
    steps = values.astype(np.float64, copy=True)
    steps[starts[1:]] -= before
    path = np.cumsum(steps, out=steps)
    left = np.zeros(len(starts))
    left[1:] = path[starts[1:] - 1] - before
    if left.any():
        path -= spread(left, starts, len(values))
    return path


def power_of_two(total: Floats) -> Floats:
    """Return the power of two next above each number: dividing by it is exact.

    Examples
    --------
    >>> power_of_two(np.array([0.3, 5.0, 0.0]))
    array([0.5, 8. , 1. ])
    """
    return np.ldexp(1.0, np.frexp(total)[1])


def ratio(above: Floats, below: Floats) -> Floats:
    """Divide, with NaN where the divisor is 0: what has no rows has no mean."""
    out = np.full(np.shape(above), np.nan)
    np.divide(above, below, out=out, where=below != 0)
    return out


def effective_rows(weight: Floats, squared: Floats) -> Floats:
    """Return ``(sum w)^2 / sum w^2``, the number of equally weighted rows that would be as informative.

    Examples
    --------
    >>> effective_rows(np.array([4.0]), np.array([10.0]))  # weights 1 and 3
    array([1.6])
    """
    return ratio(weight**2, squared)


def cell_gaps(weight: Floats, score: Floats, label: Floats) -> Floats:
    """Return the absolute gap of each cell, ``|mean score - rate|``; 0 for a cell without weight."""
    return np.abs(np.nan_to_num(ratio(score - label, weight)))


def expected_error(weight: Floats, score: Floats, label: Floats, starts: Ints) -> Floats:
    """Return the expected calibration error, ``sum_b w_b |gap_b| / sum_b w_b``, per segment.

    Parameters
    ----------
    weight, score, label : ndarray of shape (n_cells,)
        Sums of the weight, of weight times score and of weight times label in each cell.
    starts : ndarray of shape (n_segments,)
        The first cell of each segment.
    """
    return ratio(segment_sum(np.abs(score - label), starts), segment_sum(weight, starts))


def largest_error(weight: Floats, score: Floats, label: Floats, starts: Ints) -> Floats:
    """Return the maximum calibration error, the largest absolute gap of a cell, per segment."""
    worst = segment_max(cell_gaps(weight, score, label), starts)
    return np.where(segment_sum(weight, starts) > 0, worst, np.nan)


def root_mean_square_error(weight: Floats, score: Floats, label: Floats, starts: Ints) -> Floats:
    """Return ``sqrt(sum_b w_b gap_b^2 / sum_b w_b)`` per segment."""
    squares = segment_sum(weight * cell_gaps(weight, score, label) ** 2, starts)
    return np.sqrt(ratio(squares, segment_sum(weight, starts)))


def average_error(weight: Floats, score: Floats, label: Floats, starts: Ints) -> Floats:
    """Return the mean absolute gap over the non-empty cells of each segment, every cell counting the same."""
    gaps = segment_sum(cell_gaps(weight, score, label), starts)
    return ratio(gaps, segment_sum((weight > 0).astype(np.float64), starts))
