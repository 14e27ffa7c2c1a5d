"""Pointwise regions around an isotonic reliability curve, by resampling.

A consistency region lies around the diagonal: where the curve of a sample with right scores would run. A confidence
region lies around the curve itself. In each resample rows are drawn with replacement, their labels anew from the
score or from the fit, and the curve is fitted again. A tally resamples as well as its rows: a Multinomial draw gives
the rows at each score, a Binomial draw their positives.

Weights: a score with weight ``W`` and sum of squared weights ``Q`` counts as ``W^2 / Q`` rows of weight ``Q / W``. That
is exact where the rows of a score weigh the same, and with weights that are counts of rows. Otherwise it keeps the
variance of the weighted positives at each score.

References
----------
Dimitriadis, T., Gneiting, T. and Jordan, A. I. (2021). Stable reliability diagrams for probabilistic classifiers.
PNAS 118(8), e2016191118. https://doi.org/10.1073/pnas.2016191118
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calframe._kernels._binned import last_cells, ranges, run_starts, segment_count, sizes_of, starts_of
from calframe._kernels._isotonic import blocks
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

_BATCH = 2_000_000  # resampled scores held at a time
_MOST_SCORES = 2_000  # a curve of more points looks the same, and takes longer
_MOST_ROWS = 2.0**53  # counts above are not exact, and chance has no say there

Region = tuple[Floats, Floats]


def consistency_region(
    tally: Tally, *, level: float, n_resamples: int, rng: np.random.Generator, most_scores: int = _MOST_SCORES
) -> Region:
    """Return, for each cell, the range that the isotonic fit there keeps to if every score is right.

    At each score, with probability about `level`, the fit of a calibrated sample lies inside: pointwise, not
    everywhere at once.

    Parameters
    ----------
    tally : Tally
        Distinct scores in [0, 1].
    level : float
        Probability, in (0, 1). The ends are the quantiles ``(1 -+ level) / 2`` of the fits (linear, type 7).
    n_resamples : int
        Resamples of each segment. Between two drawn scores a fit is interpolated linearly; beyond its first and last
        score it says nothing, unless it has only one.
    rng : numpy.random.Generator
        Each segment has a child of it to itself, in order, so that the result for a segment does not depend on the
        segments beside it, nor on how they are put into chunks.
    most_scores : int
        A segment with more distinct scores is resampled as this many runs of neighbouring scores (fewer where
        resamples times scores would pass 2,000,000), each at its mean score, and interpolated between.

    Returns
    -------
    low, high : ndarray of shape (n_cells,)
        Non-decreasing in the score, but for scores that some resamples do not reach. A score that none reaches has
        the range [0, 1].

    Examples
    --------
    One hundred rows with score 0.3 have 30 positives, give or take 7.5:

    >>> tally = Tally.of_counts(np.array([0]), np.array([0.3]), np.array([100.0]), np.array([30.0]))
    >>> consistency_region(tally, level=0.9, n_resamples=1001, rng=np.random.default_rng(0))
    (array([0.22]), array([0.38]))
    """
    grid = _thinned(tally, _cap(most_scores, n_resamples))
    low, high = _quantile_curves(grid, grid.score, level=level, n_resamples=n_resamples, rng=rng)
    return _at_cells(tally, grid, low), _at_cells(tally, grid, high)


def confidence_region(
    tally: Tally, *, level: float, n_resamples: int, rng: np.random.Generator, most_scores: int = _MOST_SCORES
) -> Region:
    """Return, for each cell, a range for the true rate there: labels are drawn from the isotonic fit.

    Labels drawn where the fit is exactly 0 or 1 never vary, so the ends of the region are interpolated there, between
    the outermost scores and the nearest scores whose fit is strictly between.

    It is a rough guide, not an exact interval: the plain bootstrap of an isotonic fit is not consistent. At level 0.9
    it held the true rate at .82 to .96 of evenly spread scores in simulations, but at .69 to .87 of scores that pile
    up near 0, where a fit of 0 says too much.

    Parameters
    ----------
    tally, level, n_resamples, rng, most_scores
        As in `consistency_region`.

    Returns
    -------
    low, high : ndarray of shape (n_cells,)

    References
    ----------
    Sen, B., Banerjee, M. and Woodroofe, M. (2010). Inconsistency of bootstrap: the Grenander estimator. Annals of
    Statistics 38, 1953-1977. https://doi.org/10.1214/09-AOS777

    Examples
    --------
    >>> tally = Tally.of_counts(np.array([0]), np.array([0.3]), np.array([100.0]), np.array([50.0]))
    >>> confidence_region(tally, level=0.9, n_resamples=1001, rng=np.random.default_rng(0))
    (array([0.42]), array([0.58]))
    """
    grid = _thinned(tally, _cap(most_scores, n_resamples))
    fit = blocks(grid)
    value = fit.spread(fit.value)
    low, high = _quantile_curves(grid, value, level=level, n_resamples=n_resamples, rng=rng)
    known = (value > 0) & (value < 1)
    known[grid.starts] = True
    known[last_cells(grid.starts, len(value))] = True
    low, high = (_interpolated(known, end[known], grid.score, grid.starts) for end in (low, high))
    return _at_cells(tally, grid, low), _at_cells(tally, grid, high)


def _cap(most_scores: int, n_resamples: int) -> int:
    """Return how many scores of a segment are resampled at most."""
    return max(1, min(most_scores, _BATCH // n_resamples))


def _thinned(tally: Tally, most: int) -> Tally:
    """Return a tally of at most this many scores a segment: runs of neighbouring scores, about equally many in each."""
    sizes = tally.sizes
    if sizes.max() <= most:
        return tally
    place = ranges(np.zeros_like(sizes), sizes)
    run = place * tally.spread(np.minimum(sizes, most)) // tally.spread(sizes)
    return tally.merged(run_starts(run, tally.starts))


def _at_cells(tally: Tally, grid: Tally, values: Floats) -> Floats:
    """Return values of the grid at the scores of the tally; beyond the outermost ones they are constant."""
    out = np.empty_like(tally.score)
    cells, points = _slices(tally), _slices(grid)
    for cell, point in zip(cells, points, strict=True):  # cheap beside the resamples of a segment
        if cell.stop - cell.start == point.stop - point.start:
            out[cell] = values[point]
        else:
            out[cell] = np.interp(tally.score[cell], grid.score[point], values[point])
    return out


def _slices(tally: Tally) -> list[slice]:
    """Return the cells of each segment."""
    return [slice(begin, begin + size) for begin, size in zip(tally.starts.tolist(), tally.sizes.tolist(), strict=True)]


# ---------------------------------------------------------------- resamples
def _quantile_curves(
    grid: Tally, chance: Floats, *, level: float, n_resamples: int, rng: np.random.Generator
) -> Region:
    """Return the two quantiles of the resampled fits at each score."""
    low, high = np.empty_like(grid.score), np.empty_like(grid.score)
    for first, part in grid.chunks(_BATCH // n_resamples):
        begin = int(grid.starts[first])
        here = chance[begin : begin + len(part.score)]
        draws = _draw(part, here, n_resamples, rng)
        for cells, fits in _fits(part, draws, n_resamples):  # segments differ in their numbers of scores
            low[begin:][cells], high[begin:][cells] = _central(fits, level=level)
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Draws:
    """Resamples of all segments of a part, one after the other, each with all scores of its segment.

    Attributes
    ----------
    drawn : ndarray of bool
        Whether the score was drawn.
    weight, positive : ndarray
        For the drawn ones: weight of the rows, and of the positives.
    """

    drawn: Bools
    weight: Floats
    positive: Floats


def _draw(part: Tally, chance: Floats, n_resamples: int, rng: np.random.Generator) -> _Draws:
    """Draw rows and labels for each resample of each segment."""
    unit = part.squared / part.weight
    rows = part.weight / unit
    chance = np.clip(chance, 0.0, 1.0)
    drawn, weight, positive = [], [], []
    # a stream to each segment: its draws are then the same whatever stands beside it
    for cells, stream in zip(_slices(part), rng.spawn(len(part)), strict=True):
        total = rows[cells].sum()
        count = stream.multinomial(int(min(np.rint(total), _MOST_ROWS)), rows[cells] / total, size=n_resamples)
        _, cell = np.nonzero(count)
        some = count[count > 0]
        drawn.append((count > 0).ravel())
        weight.append(some * unit[cells][cell])
        positive.append(stream.binomial(some, chance[cells][cell]) * unit[cells][cell])
    return _Draws(drawn=np.concatenate(drawn), weight=np.concatenate(weight), positive=np.concatenate(positive))


def _fits(part: Tally, draws: _Draws, n_resamples: int) -> Iterator[tuple[slice, Floats]]:
    """Fit all resamples at once; give for each segment its cells and its fits, one row a score."""
    slices = _slices(part)
    score = np.concatenate([np.tile(part.score[cells], n_resamples) for cells in slices])
    sizes = np.repeat(part.sizes, n_resamples)
    starts = starts_of(sizes)
    counts = segment_count(draws.drawn, starts)
    resamples = Tally.of_counts(starts_of(counts), score[draws.drawn], draws.weight, draws.positive)
    fit = blocks(resamples)
    curve = _interpolated(draws.drawn, fit.spread(fit.value), score, starts)
    for cells in slices:
        span = slice(cells.start * n_resamples, cells.stop * n_resamples)
        yield cells, np.ascontiguousarray(curve[span].reshape(n_resamples, -1).T)


def _interpolated(known: Bools, values: Floats, score: Floats, starts: Ints) -> Floats:
    """Return values at all scores from those at the known ones, linearly within each run of scores.

    Beyond the known scores of a run it is NaN, unless only one is known: then it is constant.
    """
    sizes = sizes_of(starts, len(score))
    counts = segment_count(known, starts)
    last = np.cumsum(counts) - 1
    gaps = np.flatnonzero(~known)
    first, last = (np.repeat(end, sizes - counts) for end in (last - counts + 1, last))
    right = gaps - np.arange(len(gaps))  # the known ones before a gap
    left = right - 1
    beyond = ((left < first) | (right > last)) & (first < last)
    left, right = np.maximum(left, first), np.minimum(right, last)
    at = score[known]
    below, step = at[left], at[right] - at[left]
    share = np.zeros(len(gaps))
    np.divide(score[gaps] - below, step, out=share, where=step > 0)
    filled = values[left] + share * (values[right] - values[left])
    filled[beyond] = np.nan
    out = np.empty_like(score)
    out[known], out[gaps] = values, filled
    return out


def _central(fits: Floats, *, level: float) -> Region:
    """Return the two quantiles of each row, leaving out NaN; 0 and 1 where there is nothing else."""
    fits.sort(axis=1)
    count = fits.shape[1] - np.isnan(fits).sum(axis=1)
    tail = (1.0 - level) / 2.0
    low, high = (_quantile(fits, count, share) for share in (tail, 1.0 - tail))
    return np.where(count > 0, low, 0.0), np.where(count > 0, high, 1.0)


def _quantile(ordered: Floats, count: Ints, share: float) -> Floats:
    """Return the type-7 quantile of the first `count` values of each row."""
    place = np.maximum(count - 1, 0) * share
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(count - 1, 0))
    row = np.arange(len(ordered))
    floor, ceiling = ordered[row, below], ordered[row, above]
    found: Floats = floor + (place - below) * (ceiling - floor)
    return found
