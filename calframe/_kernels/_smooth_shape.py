"""Segments on grids of equal cells, and the shape of the miscalibration that an interval of smECE supposes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._kernels._binned import ranges, starts_of
from calframe._kernels._smooth import cosine_transform, resolving, smooth_error, smoothed
from calframe._kernels._tally import Tally
from calframe._typing import Floats, Ints

_CELLS = 4  # cells that a bandwidth spans at least, half as many points
_FEWEST, _MOST = 32, 4096  # cells of a grid
_BLOCK = 2**20  # cells times resamples held at a time, 8 MB for each of some four fields
_WIDEST = 4.0  # a kernel of this width is flat on [0, 1]
_WIDER = 1.5  # from one width to the next
_UNLIKE = 0.5  # standard errors that a hypothesis departs from the scores at least, at t = 1
_EVEN = 0.1  # of the mean variance: keeps a score near 0 or 1 from deciding alone
_THIN = 1e-12  # stands for a density of 0
_OWN = 0.99  # the most that a row may have of its own prediction
_ROUNDING = 1e-9  # errors that differ by less, relatively, are equal


# ---------------------------------------------------------------- segments on grids
@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Segments on grids of equally many cells.

    Attributes
    ----------
    rows : ndarray of int64
        Their numbers.
    tally : Tally
        Their cells, with weights that add up to 1 in each segment.
    error, bandwidth : ndarray
        Their smECE and its bandwidth.
    cells : int
        Cells of the grid.
    place : ndarray of int64
        Grid cell of each tally cell, through all segments.
    """

    rows: Ints
    tally: Tally
    error: Floats
    bandwidth: Floats
    cells: int
    place: Ints

    def summed(self, values: Floats) -> Floats:
        """Return sums of tally cells over grid cells, shape (n_segments, cells)."""
        size = len(self.tally) * self.cells
        sums: Floats = np.bincount(self.place, values, size).astype(np.float64, copy=False)
        return sums.reshape(-1, self.cells)

    def part(self, rows: Ints) -> Block:
        """Return some of the segments."""
        return _block(self.tally, rows, self.error[rows], self.bandwidth[rows], self.cells)


def blocks(tally: Tally, n_resamples: int) -> Iterator[Block]:
    """Give all segments, in blocks that need bounded memory; which segments share one depends on their bandwidths."""
    error, bandwidth = smooth_error(tally)
    cells = np.clip(resolving(bandwidth, _CELLS), _FEWEST, _MOST)
    for size in np.unique(cells):
        some = np.flatnonzero(cells == size)
        height = max(_BLOCK // (int(size) * n_resamples), 1)
        for first in range(0, len(some), height):
            rows = some[first : first + height]
            yield _block(tally, rows, error[rows], bandwidth[rows], int(size))


def _block(tally: Tally, rows: Ints, error: Floats, bandwidth: Floats, cells: int) -> Block:
    sizes = tally.sizes[rows]
    inside = ranges(tally.starts[rows], sizes)
    whole = np.repeat(tally.total(tally.weight)[rows], sizes)
    part = Tally(
        starts=starts_of(sizes),
        score=tally.score[inside],
        rows=tally.rows[inside],
        weight=tally.weight[inside] / whole,
        positive=tally.positive[inside] / whole,
        squared=tally.squared[inside] / whole / whole,
        squared_positive=tally.squared_positive[inside] / whole / whole,
    )
    index = np.minimum((part.score * cells).astype(np.int64), cells - 1)
    place = part.segment * cells + index
    return Block(rows=rows, tally=part, error=error, bandwidth=bandwidth, cells=cells, place=place)


# ---------------------------------------------------------------- the shape of the path
@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """Sums over the cells of the grids, each of shape (n_segments, cells).

    They are those of ``w``, ``w r``, ``w r^2`` and ``w s (1 - s)``; `single` is the weight of one row of a cell.
    """

    weight: Floats
    residual: Floats
    square: Floats
    variance: Floats
    single: Floats

    @classmethod
    def of(cls, block: Block) -> Self:
        tally = block.tally
        score, weight, positive = tally.score, tally.weight, tally.positive
        total = block.summed(weight)
        return cls(
            weight=total,
            residual=block.summed(positive - weight * score),
            square=block.summed(positive * (1.0 - 2.0 * score) + weight * score * score),
            variance=block.summed(weight * score * (1.0 - score)),
            single=block.summed(tally.squared) / np.maximum(total, _THIN),
        )


def shape_of(block: Block) -> Floats:
    """Return the departure from the score that a hypothesis states for t = 1, at each cell of the tally.

    It is a smooth factor times ``s (1 - s)``, a smooth shift of the logit, unless a smooth shift of the probability
    predicts labels better, each row left out of its own prediction.
    """
    sums, tally = _Sums.of(block), block.tally
    loss, width, factor = _smoothest(sums, sums.variance, block.bandwidth)
    loss_plain, width_plain, factor_plain = _smoothest(sums, sums.weight, block.bandwidth)
    plain = loss_plain < loss * (1.0 - _ROUNDING)
    width, factor = np.where(plain, width_plain, width), np.where(plain[:, None], factor_plain, factor)
    base = np.where(tally.spread(plain), 1.0, tally.score * (1.0 - tally.score))
    gap = factor.reshape(-1)[block.place] * base
    return _padded(tally.score, gap, _rows_within(sums, width).reshape(-1)[block.place])


def _smoothest(sums: _Sums, base: Floats, bandwidth: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the least loss over widths for each segment, with its width and factor."""
    best, chosen, factor = np.full(len(base), np.inf), bandwidth.copy(), np.zeros_like(base)
    for width in _widths(bandwidth):
        found, loss = _factor(sums, base, width)
        better = loss < best * (1.0 - _ROUNDING)
        best[better], chosen[better], factor[better] = loss[better], width[better], found[better]
    return best, chosen, factor


def _factor(sums: _Sums, base: Floats, width: Floats) -> tuple[Floats, Floats]:
    """Return the smooth factor of a base, and the mean squared error of predictions without the row itself."""
    cells = base.shape[1]
    density = np.maximum(smoothed(cosine_transform(base), width, cells), _THIN)
    factor = smoothed(cosine_transform(sums.residual), width, cells) / density
    each = base / np.maximum(sums.weight, _THIN)
    gap = factor * each
    own = np.minimum(sums.single * each * _peak(width, cells) / density, _OWN)
    square = sums.square - 2.0 * gap * sums.residual + gap * gap * sums.weight
    noise = sums.variance / np.maximum(sums.weight, _THIN) + _EVEN * sums.variance.sum(axis=1, keepdims=True) + _THIN
    return factor, (square / noise / (1.0 - own) ** 2).sum(axis=1)


def _rows_within(sums: _Sums, width: Floats) -> Floats:
    """Return the effective number of rows that a smoothed value rests on."""
    cells = sums.weight.shape[1]
    density = np.maximum(smoothed(cosine_transform(sums.weight), width, cells), _THIN)
    squares = (sums.single * sums.weight).sum(axis=1, keepdims=True)
    rows: Floats = density / np.maximum(_peak(width, cells) / np.sqrt(2.0), 1.0) / squares
    return rows


def _widths(bandwidth: Floats) -> Iterator[Floats]:
    """Give widths of each segment from its bandwidth to a flat kernel."""
    width = bandwidth
    while width.min() < _WIDEST:
        yield width
        width = np.minimum(width * _WIDER, _WIDEST)
    yield width


def _peak(width: Floats, cells: int) -> Floats:
    """Return the height of the reflected kernel at its own centre, for every cell."""
    point = (np.arange(cells) + 0.5) / cells
    scale = -2.0 / (width * width)[:, None]
    images = 1.0 + np.exp(scale * point**2) + np.exp(scale * (1.0 - point) ** 2)
    height: Floats = np.maximum(images / (width * np.sqrt(2.0 * np.pi))[:, None], 1.0)
    return height


def _padded(score: Floats, gap: Floats, rows: Floats) -> Floats:
    """Return the gap, or part of its standard error where that is larger; a row of either class keeps it above 0."""
    rate = (np.clip(score + gap, 0.0, 1.0) * rows + 1.0) / (rows + 2.0)
    least = _UNLIKE * np.sqrt(rate * (1.0 - rate) / rows)
    inward = np.where(score < 0.5, least, -least)
    return np.where(np.abs(gap) >= least, gap, np.where(gap == 0.0, inward, np.copysign(least, gap)))
