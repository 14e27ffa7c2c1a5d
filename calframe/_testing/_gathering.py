"""Segments of a tally gathered into larger ones: days into periods, periods into references."""

from __future__ import annotations

import numpy as np

from calframe._kernels._binned import changes, ranges, segment_sum
from calframe._kernels._tally import Tally
from calframe._typing import Ints


def gathered(tally: Tally, source: Ints, target: Ints) -> tuple[Tally, Ints]:
    """Return the tally of segments gathered by number, and the numbers, ascending.

    Parameters
    ----------
    tally : Tally
        The segments.
    source, target : ndarray of int64
        Pairs of a segment and the number it goes to; a segment may go to several, or to none.

    Examples
    --------
    >>> days = Tally.of_counts(np.arange(3), np.array([0.2, 0.2, 0.7]), np.ones(3), np.array([0.0, 1.0, 1.0]))
    >>> months, number = gathered(days, np.arange(3), np.array([4, 4, 9]))
    >>> number, months.starts, months.score, months.rows
    (array([4, 9]), array([0, 1]), array([0.2, 0.7]), array([2., 1.]))
    """
    sizes = tally.sizes[source]
    cells, code = ranges(tally.starts[source], sizes), np.repeat(target, sizes)
    order = np.lexsort((tally.score[cells], code))
    cells, code = cells[order], code[order]
    score = tally.score[cells]
    first = np.flatnonzero(changes(code) | changes(score))
    if not len(cells):
        return Tally(starts=cells, score=score, **tally.sums(lambda values: values[cells])), cells
    starts = np.flatnonzero(changes(code[first]))
    sums = tally.sums(lambda values: segment_sum(values[cells], first))
    return Tally(starts=starts, score=score[first], **sums), code[first][starts]
