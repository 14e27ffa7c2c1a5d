"""Kernels that need the order of scores: bins of about equal weight."""

from __future__ import annotations

import numpy as np

from calframe._kernels._binned import segment_sum
from calframe._typing import Floats, Ints


def quantile_bins(weight: Floats, starts: Ints, counts: Ints) -> Ints:
    """Return bins of about equal weight for cells in score order, each cell whole.

    A cell goes to bin ``floor(M (weight before it + half its own) / total)``, so equal scores stay together and
    doubling every weight changes nothing. Bins may stay empty where one cell is heavy.

    Parameters
    ----------
    weight : ndarray of shape (n_cells,)
        Weight of each cell, ascending in score within a segment.
    starts : ndarray of shape (n_segments,)
        The first cell of each segment.
    counts : ndarray of shape (n_segments,)
        Bins wanted in each segment, M.

    Examples
    --------
    >>> quantile_bins(np.array([6.0, 1.0, 1.0, 2.0]), np.array([0]), np.array([5]))
    array([1, 3, 3, 4])
    """
    sizes = np.diff(np.append(starts, len(weight)))
    total = segment_sum(weight, starts)
    running = np.cumsum(weight)
    before = running - weight
    before -= np.repeat(before[starts], sizes)
    many = np.repeat(counts, sizes).astype(np.float64)
    share = (before + weight / 2.0) / np.repeat(np.where(total > 0, total, 1.0), sizes)
    bins: Ints = np.minimum(np.floor(many * share), many - 1.0).astype(np.int64)
    return bins
