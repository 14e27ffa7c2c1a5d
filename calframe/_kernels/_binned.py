"""Errors over score bins, from the sums of each cell."""

from __future__ import annotations

import numpy as np

from calframe._typing import Floats, Ints


def segment_sum(values: Floats, starts: Ints) -> Floats:
    """Sum cells within each segment, pairwise, so that errors do not grow with the number of cells.

    Examples
    --------
    >>> segment_sum(np.array([1.0, 2.0, 3.0]), np.array([0, 2]))
    array([3., 3.])
    """
    return np.add.reduceat(values, starts)


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
        path -= np.repeat(left, np.diff(np.append(starts, len(values))))
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
