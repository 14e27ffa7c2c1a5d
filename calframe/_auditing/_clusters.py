"""Rows that are not independent: how the clusters of segments, and of the rows that they are compared with, scatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calframe._auditing._crossings import Crossings
from calframe._auditing._finest import Finest
from calframe._kernels._binned import added
from calframe._kernels._clusters import LEAST_LEFT
from calframe._testing._scatter import ClusterCells, Samples, Scatter
from calframe._typing import Bools, Floats


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
    ends, cells = [*crossings.starts[1:], len(crossings)], _cells(finest)
    own, other = [], []
    for segment, first, last in zip(crossings.segment, crossings.starts, ends, strict=True):
        samples = cells.samples(np.where(segment >= 0, segment - first, -1), int(last - first))
        own.append(samples.scatter(gap[first:last]))
        other.append(_of_others(samples, others[first:last], segment >= 0 if group is None else group))
    return _joined(own), _joined(other)


def whole_scatter(finest: Finest, gap: Floats) -> Scatter:
    """Return how the clusters of all rows scatter."""
    return _cells(finest).samples(np.where(finest.once, 0, -1), 1).scatter(gap)


def _cells(finest: Finest) -> ClusterCells:
    """Return each crossing as a group of its own, of one cluster."""
    return ClusterCells.of_terms(np.arange(len(finest.n)), finest.cluster, finest.cells.total)


def _of_others(samples: Samples, gap: Floats, group: Bools) -> Scatter:
    """Return the scatter of the rows of a group that are not the samples' own.

    What a cluster takes off its own total is at most what one of the effective number of equal ones would, to the
    square root: that bound stands in for the shares.
    """
    h, cells = np.nan_to_num(gap), samples.cells
    there = group & (cells.cluster >= 0)
    most = int(cells.cluster.max(initial=-1)) + 1
    weight, residual = (added(cells.cluster[there], values[there], most) for values in (cells.weight, cells.residual))
    mine, luck = samples.paired(cells.weight * group), samples.paired(cells.residual * group)
    w, r, at = weight[samples.cluster], residual[samples.cluster], h[samples.where]
    squares = (weight**2).sum() + samples.over((w - mine) ** 2 - w**2)
    totals = (residual**2).sum() + 2.0 * h * (residual * weight).sum() + h**2 * (weight**2).sum()
    totals = totals + samples.over((r - luck + at * (w - mine)) ** 2 - (r + at * w) ** 2)
    everyone = np.ones(len(group), dtype=np.bool_)
    alone, rows = (_left(samples, h, group, kept) for kept in (cells.cluster < 0, everyone))
    lone = cells.squares[0] * (group & (cells.cluster < 0))
    found = Scatter.of(
        cells.weight[group].sum() - samples.summed(cells.weight * group),
        squares + lone.sum() - samples.summed(lone),
        totals + alone,
        rows,
    )
    bound = np.maximum(1.0 - np.sqrt(1.0 / np.maximum(found.count, 1.0)), LEAST_LEFT)
    return Scatter(count=found.count, effect=np.maximum(found.effect / bound**2, 1.0))


def _left(samples: Samples, gap: Floats, group: Bools, kept: Bools) -> Floats:
    """Return the sum of squares about a gap over the rows of a group that are not the samples' own."""
    chosen = group & kept
    one, first, second = (float((part * chosen).sum()) for part in samples.cells.squares)
    return np.maximum(second + 2.0 * gap * first + gap**2 * one - samples.squares(gap, chosen), 0.0)


def _joined(parts: Sequence[Scatter]) -> Scatter:
    return Scatter(
        count=np.concatenate([part.count for part in parts]), effect=np.concatenate([part.effect for part in parts])
    )
