"""The smooth calibration error: residuals smoothed by a Gaussian kernel that is reflected at 0 and 1.

The reflected Gaussian is the heat kernel of [0, 1] with closed ends, so that the cosine transform makes it diagonal:
frequency ``j`` shrinks by ``exp(-(pi j sigma)^2 / 2)``. Residuals are split onto a grid of cells once; after that
smoothing at any bandwidth costs one short inverse transform, for all segments at once.
"""

from __future__ import annotations

import numpy as np

from calframe._kernels._binned import ranges
from calframe._kernels._tally import Tally
from calframe._typing import Floats, Ints

LEAST_BANDWIDTH = 1e-3  # as relplot, the authors' own package: the smallest bandwidth that is looked at
GRIDS = (256, 1024, 8192)  # cells of the grids, coarse to fine; the last resolves the least bandwidth
_GRID_LIMITS = (500, 30_000)  # segments of more distinct scores begin on the next finer grid
_RESOLVED = 8  # cells a bandwidth must span: linear binning is then good to about 1e-6
_SAMPLES = 4  # points a bandwidth must span when the absolute value is integrated
_POINTS = 64  # and points there are at least
_NIL = 2.9  # exp(-(pi 2.9)^2 / 2) < 1e-17: higher multiples of 1 / sigma are gone
_SPLIT_VARIANCE = 1.0 / 6.0  # in squared cells: what splitting onto two neighbours adds, mean over positions
_TOLERANCE = 1e-6  # of the bandwidth, relative, before a last secant step
_NOTHING = 1e-300  # stands for 0 in logarithms
_STEPS = 60  # a guard that is not reached: a dozen do
_BLOCK = 2**18  # grid cells worked on at a time: 2 MB stay in the cache
_ROWS = 2**17  # rows binned at a time


def smooth_error(tally: Tally) -> tuple[Floats, Floats]:
    """Return the smooth calibration error, smECE, of each segment, and the bandwidth it is taken at.

    With ``r`` the residuals ``w (y - s) / sum w`` and ``K`` the Gaussian reflected at 0 and 1,
    ``smECE_sigma = int |sum_i r_i K_sigma(t, s_i)| dt`` never grows with sigma. The bandwidth is the smallest
    ``sigma >= 0.001`` with ``smECE_sigma <= sigma``, and the error is ``smECE_sigma`` there: the two are equal
    unless the bandwidth is 0.001. The kernel is not cut off, and mass at exactly 0 and 1 counts in full.

    Parameters
    ----------
    tally : Tally
        Scores in [0, 1].

    Returns
    -------
    error, bandwidth : ndarray of shape (n_segments,)
        Errors lie in [0, 1], 0 is perfect. They are within about 1e-5 of the definition.

    References
    ----------
    Blasiok, J. and Nakkiran, P. (2023). Smooth ECE: principled reliability diagrams via kernel smoothing.
    https://doi.org/10.48550/arXiv.2309.12236

    Examples
    --------
    Where every residual has the same sign, smoothing takes nothing away, and the error is the gap:

    >>> ones = np.ones(2)
    >>> tally = Tally.of_counts(np.array([0]), np.array([0.2, 0.6]), ones, ones)
    >>> error, bandwidth = smooth_error(tally)
    >>> error.round(9), bandwidth.round(9)
    (array([0.6]), array([0.6]))
    """
    error, bandwidth = np.empty(len(tally)), np.empty(len(tally))
    grids = np.asarray(GRIDS)
    level = np.searchsorted(_GRID_LIMITS, tally.sizes, side="left")
    for first, part in tally.chunks():
        cut = slice(first, first + len(part))
        error[cut], bandwidth[cut] = _on_grids(part, grids[level[cut]])
    return error, bandwidth


def _on_grids(tally: Tally, cells: Ints) -> tuple[Floats, Floats]:
    """Solve each segment on its grid, and again on the next finer one where its bandwidth spans too few cells."""
    error, bandwidth = np.empty(len(tally)), np.empty(len(tally))
    residual = (tally.positive - tally.weight * tally.score) / tally.spread(tally.total(tally.weight))
    for size in GRIDS:
        some = cells == size
        for rows in _blocks(np.flatnonzero(some), size):
            inside, segment = _of_segments(tally, rows)
            grid = residual_grid(segment, tally.score[inside], residual[inside], len(rows), cells=size)
            error[rows], bandwidth[rows] = smooth_error_of_sums(grid)
        coarse = some & (bandwidth * size < _RESOLVED)
        cells = np.where(coarse, _finer(size), cells)
    return error, bandwidth


def _finer(size: int) -> int:
    return GRIDS[min(GRIDS.index(size) + 1, len(GRIDS) - 1)]


def _blocks(rows: Ints, cells: int) -> list[Ints]:
    """Cut rows of a grid into blocks whose cells stay in the cache."""
    height = max(_BLOCK // cells, 1)
    return [rows[first : first + height] for first in range(0, len(rows), height)]


def _of_segments(tally: Tally, rows: Ints) -> tuple[Ints | slice, Ints]:
    """Return where the cells of some segments stand, and the place of their segment among these."""
    sizes = tally.sizes[rows]
    segment = np.repeat(np.arange(len(rows)), sizes)
    if len(rows) == len(tally):
        return slice(None), segment
    return ranges(tally.starts[rows], sizes), segment


def residual_grid(segment: Ints, score: Floats, residual: Floats, n_segments: int, *, cells: int) -> Floats:
    """Split residuals linearly onto the two nearest centres of equal cells of [0, 1]: sums per segment and cell.

    Rows come in any order. What lies in the outer half of the first or last cell goes to that cell, as its mirror
    image does.

    Parameters
    ----------
    segment : ndarray of int64, shape (n_rows,)
        Segment of each row, from 0.
    score, residual : ndarray of shape (n_rows,)
        Scores in [0, 1], and what is summed: ``w (y - s) / sum w`` for `smooth_error_of_sums`.
    n_segments : int
        Number of segments.
    cells : int
        Number of cells, a power of two; `GRIDS` has those that `smooth_error` uses.

    Returns
    -------
    ndarray of shape (n_segments, cells)

    Examples
    --------
    The centres of four cells are .125, .375, .625 and .875:

    >>> residual_grid(np.array([0, 0]), np.array([0.25, 1.0]), np.array([0.5, -0.5]), 1, cells=4)
    array([[ 0.25,  0.25,  0.  , -0.5 ]])
    """
    width = cells + 2  # and a mirror cell on either side
    grid = np.zeros(n_segments * width)
    height = max(_ROWS, 4 * len(grid))  # so that adding up the blocks costs less than filling them
    for first in range(0, len(score), height):
        cut = slice(first, first + height)
        place = score[cut] * cells + 0.5
        left = place.astype(np.int64)
        share = residual[cut] * (place - left)
        left += segment[cut] * width
        grid += np.bincount(left, residual[cut] - share, len(grid))
        grid[1:] += np.bincount(left, share, len(grid) - 1)
    cell = grid.reshape(n_segments, width)
    cell[:, 1] += cell[:, 0]
    cell[:, -2] += cell[:, -1]
    return np.ascontiguousarray(cell[:, 1:-1])


def smooth_error_of_sums(grid: Floats) -> tuple[Floats, Floats]:
    """Return the smooth calibration error and its bandwidth from residuals on a grid, one row a segment.

    This is `smooth_error` without a tally: raw rows need no sorting. The value is good where the bandwidth spans
    eight cells or more (``bandwidth * cells >= 8``); 8192 cells are enough for every bandwidth.

    Parameters
    ----------
    grid : ndarray of shape (n_segments, cells)
        From `residual_grid`, the residuals divided by the total weight of their segment.

    Returns
    -------
    error, bandwidth : ndarray of shape (n_segments,)
        As `smooth_error`.

    Examples
    --------
    >>> grid = residual_grid(np.zeros(2, dtype=np.int64), np.array([0.2, 0.6]), np.array([0.4, 0.2]), 1, cells=256)
    >>> error, bandwidth = smooth_error_of_sums(grid)
    >>> error.round(9), bandwidth.round(9)
    (array([0.6]), array([0.6]))
    """
    waves = cosine_transform(grid)
    low = np.maximum(np.abs(grid.sum(axis=1)), LEAST_BANDWIDTH)
    at_low = smoothed_size(waves, low)
    error, bandwidth = at_low.copy(), low.copy()
    open_ = np.flatnonzero(at_low > low * (1.0 + _TOLERANCE))
    if len(open_):
        high = np.minimum(np.abs(grid).sum(axis=1), at_low)[open_]
        bandwidth[open_] = _fixed_point(waves[open_], low[open_], at_low[open_], high)
        error[open_] = bandwidth[open_]
    return error, bandwidth


def _fixed_point(waves: Floats, low: Floats, at_low: Floats, high: Floats) -> Floats:
    """Return sigma with ``smECE_sigma = sigma`` for each row; smECE falls, so every value is a bound on the other side.

    Secant steps in logarithms, where pure noise gives a straight line of slope -3/2, kept inside the bounds.
    """
    root, rows = np.empty(len(low)), np.arange(len(low))
    low, high = np.log(low), np.log(high)
    old, off_old = low, np.log(at_low) - low
    new = np.minimum(low + off_old / 1.5, high)
    for _ in range(_STEPS):
        off = np.log(np.maximum(smoothed_size(waves[rows], np.exp(new)), _NOTHING)) - new
        low = np.where(off > 0, new, np.maximum(low, new + off))
        high = np.where(off > 0, np.minimum(high, new + off), new)
        step = np.clip(new - off / _slope(old, off_old, new, off), low, high)
        root[rows] = step
        open_ = (np.abs(off) > _TOLERANCE) & (high - low > _TOLERANCE)
        if not open_.any():
            break
        rows, low, high = rows[open_], low[open_], high[open_]
        old, off_old, new = new[open_], off[open_], step[open_]
    solved: Floats = np.exp(root)
    return solved


def _slope(old: Floats, off_old: Floats, new: Floats, off: Floats) -> Floats:
    """Return the slope between two points; it is -1 at most, because smECE falls."""
    slope = np.full(len(old), -1.0)
    np.divide(off - off_old, new - old, out=slope, where=new != old)
    steepest: Floats = np.minimum(slope, -1.0)
    return steepest


def resolving(bandwidth: Floats, share: int) -> Ints:
    """Return the power of two of cells of which each bandwidth spans at least `share`."""
    exponent = np.ceil(np.log2(share / bandwidth)).astype(np.int64)
    cells: Ints = 2 ** np.maximum(exponent, 0)
    return cells


def cosine_transform(grid: Floats) -> Floats:
    """Return the cosine coefficients of each row of a grid of sums, so scaled that the first is the row's sum."""
    from scipy.fft import dct  # noqa: PLC0415  importing the package must not load SciPy

    waves: Floats = dct(grid, type=2, axis=1)
    waves /= 2.0
    return waves


def smoothed(waves: Floats, bandwidth: Floats, points: int) -> Floats:
    """Return the density of each row, smoothed, at the centres of `points` equal cells.

    Parameters
    ----------
    waves : ndarray of shape (n_rows, cells)
        From `cosine_transform`.
    bandwidth : ndarray of shape (n_rows,)
        Bandwidth of each row.
    points : int
        At most the number of cells.
    """
    from scipy.fft import idct  # noqa: PLC0415  importing the package must not load SciPy

    kept = damped(waves, bandwidth, points)
    field: Floats = idct(kept, type=2, n=points, axis=1)
    field *= 2.0 * points
    return field


def damped(waves: Floats, bandwidth: Floats, most: int) -> Floats:
    """Return the coefficients that smoothing leaves, at most `most` a row.

    Splitting onto two neighbouring cells has smoothed a little; that much less is smoothed here.
    """
    kept = int(min(most, np.ceil(_NIL / bandwidth.min())))
    variance = np.maximum(bandwidth**2 - _SPLIT_VARIANCE / waves.shape[1] ** 2, 0.0)
    left: Floats = (np.arange(kept) * np.pi) ** 2 * (variance[:, None] / -2.0)
    np.exp(left, out=left)
    left *= waves[:, :kept]
    return left


def smoothed_size(waves: Floats, bandwidth: Floats) -> Floats:
    """Return ``smECE_sigma``, the integral of the absolute smoothed residual, at each row's own bandwidth."""
    out = np.empty(len(bandwidth))
    points = np.minimum(np.maximum(resolving(bandwidth, _SAMPLES), _POINTS), waves.shape[1])
    for size in np.unique(points):
        rows = np.flatnonzero(points == size)
        out[rows] = mean_absolute(smoothed(waves[rows], bandwidth[rows], int(size)))
    return out


def mean_absolute(field: Floats) -> Floats:
    """Return the integral over [0, 1] of the absolute value of fields known at the centres of equal cells.

    The mean of the values is off by ``-h B(a) (|f| + |g|)`` where the field changes sign between neighbours f and
    g, ``a = |f| / (|f| + |g|)``, ``B(a) = a^2 - a + 1/6``: the Euler-Maclaurin formula on both sides of the zero.
    """
    size = np.abs(field)
    total: Floats = size.sum(axis=-1)
    crossing = np.nonzero(np.signbit(field[..., 1:]) != np.signbit(field[..., :-1]))
    left, right = size[..., :-1][crossing], size[..., 1:][crossing]
    both = left + right
    share = np.divide(left, both, out=np.zeros_like(both), where=both > 0)
    np.add.at(total, crossing[:-1], (share * share - share + 1.0 / 6.0) * both)
    total /= field.shape[-1]
    return total
