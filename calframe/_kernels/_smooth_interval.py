"""A confidence interval for the smooth calibration error, by inverting a test along a path of hypotheses.

Noise lifts the plug-in error, so that neither its bootstrap nor a multiple of its standard error covers. A hypothesis
states rates ``q(s) = s + t d(s)`` at the scores seen, from calibrated (t = 0) through "as smoothed" (t = 1) and beyond.
Samples drawn from it show an error of at least T just when ``smECE_T`` of the sample is at least T, because smECE falls
with the bandwidth: one bandwidth serves all resamples, and each is still judged at its own. An end of the interval is
the error of the hypothesis whose samples just reach T in the share of cases that the level leaves.

The shape ``d`` is the residual smoothed as widely as leave-one-out prediction of the labels wants it, which is wider
than smECE smooths: at its own bandwidth, noise is half of the curve. Where the curve is within half a standard error
of 0, d is half a standard error, so that a perfect sample has a path, too.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._null import CellLaw, cell_law
from calframe._kernels._smooth import smooth_error
from calframe._kernels._smooth_shape import Block, blocks, shape_of
from calframe._kernels._tally import Tally
from calframe._typing import Floats, Ints

_FEW = 16.0  # expected events of a cell below which they are drawn exactly, above by Cornish and Fisher
_STEEPEST = 0.5  # the largest skewness that is drawn so
_DOUBLINGS = 6  # of t, so up to 64
_STEPS = 6  # of the search between two multiples
_CLOSE = 0.02  # standard deviations from the share wanted at which the search stops
_STEPS_OF_RATE = 754_877.666  # no fraction of counts lies on a step
_PLACING = 1.0 / 12.0  # in squared cells: what taking scores to the middle of their cell adds, mean over positions
_ROUNDING = 1e-9  # errors that differ by less, relatively or in all, are equal

Excess: TypeAlias = Callable[[Ints, Floats], Floats]


def smooth_error_interval(
    tally: Tally, *, level: float, n_resamples: int = 500, seed: int = 0
) -> tuple[Floats, Floats]:
    """Return a confidence interval for the smECE of the population of each segment.

    Parameters
    ----------
    tally : Tally
        Scores in [0, 1].
    level : float
        Confidence level in (0, 1).
    n_resamples : int
        Resamples of labels; at least ``10 / (1 - level)``, for an end needs a few beyond it.
    seed : int
        Random numbers come from it and the rows of the segment, so that no segment depends on its company.

    Returns
    -------
    low, high : ndarray of shape (n_segments,)
        `low` is 0 just where calibration is not rejected by the same resamples, at ``(1 - level) / 2``. `high` is at
        least that of a sample that shows the median error of calibrated scores: one that shows less is luck, no
        evidence. The error itself may lie above `high`, because noise lifts it.

    Notes
    -----
    Approximate: the path is one direction among all miscalibrations. Variances are those of the hypothesis,
    ``sum w^2 q (1 - q)``; few events are drawn from their binomial law. Ends leave out fewer resamples than the level
    allows, by the standard error of their number. In simulations with 200, 2,000 and 20,000 rows (right scores, shifts,
    slopes, rare events, ties, a wave) intervals of level 0.9 covered in 86 to 99 of 100 samples.

    References
    ----------
    Blasiok, J. and Nakkiran, P. (2023). Smooth ECE: principled reliability diagrams via kernel smoothing.
    https://doi.org/10.48550/arXiv.2309.12236
    Cowan, G., Cranmer, K., Gross, E. and Vitells, O. (2011). Power-constrained limits.
    https://doi.org/10.48550/arXiv.1105.3166

    Examples
    --------
    >>> rows = np.full(9, 100.0)
    >>> score = np.linspace(0.1, 0.9, 9)
    >>> right, wrong = rows * score, rows * np.minimum(score + 0.2, 1.0)
    >>> tally = Tally.of_counts(np.array([0, 9]), np.tile(score, 2), np.tile(rows, 2), np.append(right, wrong))
    >>> low, high = smooth_error_interval(tally, level=0.9)
    >>> float(low[0]), bool(high[0] < 0.05), bool(0.15 < low[1] < 0.19 < high[1] < 0.25)
    (0.0, True, True)
    """
    low, high = np.empty(len(tally)), np.empty(len(tally))
    for first, part in tally.chunks():
        for block in blocks(part, n_resamples):
            rows = first + block.rows
            low[rows], high[rows] = _ends(block, level, _normals(block, seed, n_resamples))
    return low, high


def _normals(block: Block, seed: int, n_resamples: int) -> Floats:
    """Return normal draws, shape (n_segments, cells, n_resamples), from the seed and the rows of each segment.

    So no segment depends on its company, and no unlucky set of numbers harms all of them.
    """
    tally = block.tally
    rate = np.floor(tally.positive / tally.weight * _STEPS_OF_RATE)  # not the bits: they change with the unit of weight
    bounds = np.append(tally.starts, len(tally.score))
    draws = np.empty((len(tally), block.cells, n_resamples))
    for i in range(len(tally)):  # a generator each
        cut = slice(bounds[i], bounds[i + 1])
        mark = zlib.crc32(rate[cut].tobytes(), zlib.crc32((tally.score[cut] + 0.0).tobytes()))
        np.random.default_rng([seed, mark]).standard_normal(out=draws[i])
    return draws


# ---------------------------------------------------------------- the law at a hypothesis
@dataclass(frozen=True, slots=True, kw_only=True)
class _Path:
    block: Block
    shape: Floats
    normals: Floats

    def part(self, rows: Ints) -> _Path:
        """Return the paths of some segments."""
        if len(rows) == len(self.block.rows):
            return self
        inside = np.isin(self.block.tally.segment, rows)
        return _Path(block=self.block.part(rows), shape=self.shape[inside], normals=self.normals[rows])

    def rate(self, multiple: Floats) -> Floats:
        """Return the rate that the hypothesis t states at each cell of the tally."""
        tally = self.block.tally
        return np.clip(tally.score + tally.spread(multiple) * self.shape, 0.0, 1.0)

    def error(self, multiple: Floats) -> Floats:
        """Return smECE of the hypothesis."""
        tally = self.block.tally
        return smooth_error(replace(tally, positive=tally.weight * self.rate(multiple)))[0]

    def shown(self, multiple: Floats) -> Floats:
        """Return what resamples of the hypothesis show, ``smECE`` at the sample's bandwidth, shape (n_segments, n)."""
        from scipy.fft import dct, idct  # noqa: PLC0415  importing the package must not load SciPy

        block, tally, rate = self.block, self.block.tally, self.rate(multiple)
        points = block.cells // 2
        sums = _departures(_law(block, rate), self.normals)
        sums += block.summed(tally.weight * (rate - tally.score))[:, :, None]
        waves = dct(sums, type=2, axis=1, overwrite_x=True)[:, :points]
        variance = block.bandwidth**2 - _PLACING / block.cells**2
        waves *= points * np.exp((np.pi * np.arange(points)) ** 2 * (variance[:, None] / -2.0))[:, :, None]
        field = idct(waves, type=2, axis=1, overwrite_x=True)
        np.abs(field, out=field)
        size: Floats = field.mean(axis=1)
        return size


def _law(block: Block, rate: Floats) -> CellLaw:
    """Return the law of the weighted positives of each grid cell."""
    tally, variance = block.tally, rate * (1.0 - rate)
    return cell_law(
        block.summed(tally.weight),
        block.summed(tally.weight * rate),
        block.summed(tally.weight * variance),
        block.summed(tally.squared * variance),
    )


def _departures(law: CellLaw, normals: Floats) -> Floats:
    """Return draws of what cells have more than their mean, shape (n_segments, cells, n_resamples).

    They grow with the normals, so that draws of neighbouring hypotheses are alike: ``spread (z + skew (z^2 - 1) / 6)``,
    and exact counts where few events are expected.
    """
    size, chance, scale = law.size.reshape(-1), law.chance.reshape(-1), (law.step * law.stretch).reshape(-1)
    mean = size * chance
    spread = np.sqrt(mean * (1.0 - chance))
    some = spread > 0.0
    skew = np.divide(1.0 - 2.0 * chance, spread, out=np.zeros_like(spread), where=some & (mean >= _FEW))
    bend = (np.clip(skew, -_STEEPEST, _STEEPEST) / 6.0 * spread * scale)[:, None]
    z = normals.reshape(len(size), -1)
    out = z * bend
    out += (spread * np.abs(scale))[:, None]
    out *= z
    out -= bend
    few = np.flatnonzero(some & (mean < _FEW))
    few = few[np.argsort(-mean[few])]
    if len(few):
        counts = _counts(size[few], chance[few], z[few] * np.sign(scale[few])[:, None])
        out[few] = (counts - mean[few, None]) * scale[few, None]
    return out.reshape(normals.shape)


def _counts(size: Floats, chance: Floats, z: Floats) -> Floats:
    """Return binomial counts at normal quantiles: the least k with ``P(K <= k) >= Phi(z)``.

    Rows are best in falling order of their mean, so that those still to be counted come first.
    """
    count, highest = np.zeros(z.shape), special.ndtr(z.max(axis=1))
    mass, odds = np.exp(size * np.log1p(-chance)), chance / (1.0 - chance)
    below, k, open_ = mass.copy(), 0, len(size)
    while open_:
        first = slice(0, open_)
        count[first] += z[first] > special.ndtri(np.minimum(below[first], 1.0))[:, None]
        k += 1
        mass = mass * odds * np.maximum(size - (k - 1.0), 0.0) / k
        below = np.where(k < size, below + mass, 1.0)
        waiting = np.flatnonzero(below[first] < highest[first])
        open_ = int(waiting[-1]) + 1 if len(waiting) else 0
    return count


# ---------------------------------------------------------------- the inversion
def _ends(block: Block, level: float, normals: Floats) -> tuple[Floats, Floats]:
    """Return both ends of the segments of a block; at the upper one the sample counts as no luckier than the median."""
    path = _Path(block=block, shape=shape_of(block), normals=normals)
    every = np.arange(len(block.rows))
    null, smooth = path.shown(np.zeros(len(every))), path.shown(np.ones(len(every)))
    wanted = _outside(level, normals.shape[2])
    seen = block.error * (1.0 - _ROUNDING) - _ROUNDING
    least = np.maximum(block.error, np.median(null, axis=1)) * (1.0 + _ROUNDING) + _ROUNDING

    def too_small(rows: Ints, shown: Floats) -> Floats:
        return _excess((shown >= seen[rows, None]).sum(axis=1), wanted, shown.shape[1])

    def too_large(rows: Ints, shown: Floats) -> Floats:
        return -_excess((shown <= least[rows, None]).sum(axis=1), wanted, shown.shape[1])

    high = path.error(_multiple(path, too_large, every, null, smooth))
    low = np.zeros_like(high)
    rejected = np.flatnonzero(too_small(every, null) < 0.0)
    if len(rejected):
        some = path.part(rejected)
        low[rejected] = some.error(_multiple(path, too_small, rejected, null, smooth)[rejected])
    return low, high


def _outside(level: float, n_resamples: int) -> int:
    """Return how many resamples lie beyond an end: their expected number less its standard error, at least 1.

    Otherwise half of the intervals would be shorter than more resamples make them.
    """
    tail = (1.0 - level) / 2.0
    expected = tail * n_resamples
    return max(int(expected - np.sqrt(expected * (1.0 - tail))), 1)


def _excess(count: Ints, wanted: int, n_resamples: int) -> Floats:
    """Return by how many standard deviations of a normal law a count is above the one wanted."""
    share = (np.append(count, wanted) + 0.5) / (n_resamples + 1.0)
    places: Floats = special.ndtri(share)
    above: Floats = places[:-1] - places[-1]
    return above


def _multiple(path: _Path, excess: Excess, rows: Ints, null: Floats, smooth: Floats) -> Floats:
    """Return the multiple at which the excess, which grows with it, is 0, by regula falsi with the Illinois rule."""
    low, high = np.zeros(len(null)), np.ones(len(null))
    below, above = np.zeros(len(null)), np.zeros(len(null))
    below[rows], above[rows] = excess(rows, null[rows]), excess(rows, smooth[rows])
    short = rows[above[rows] < 0.0]
    for _ in range(_DOUBLINGS):
        if not len(short):
            break
        low[short], below[short], high[short] = high[short], above[short], 2.0 * high[short]
        above[short] = excess(short, path.part(short).shown(high[short]))
        short = short[above[short] < 0.0]
    for _ in range(_STEPS):
        if not len(rows):
            break
        trial = _secant(low[rows], below[rows], high[rows], above[rows])
        off = excess(rows, path.part(rows).shown(trial))
        under, over = off <= _CLOSE, off >= -_CLOSE  # both where it is close enough
        low[rows[under]], high[rows[over]] = trial[under], trial[over]
        below[rows], above[rows] = np.where(under, off, below[rows] / 2.0), np.where(over, off, above[rows] / 2.0)
        rows = rows[~(under & over)]
    return _secant(low, below, high, above)


def _secant(low: Floats, below: Floats, high: Floats, above: Floats) -> Floats:
    rise = above - below
    share = np.clip(np.divide(-below, rise, out=np.full_like(rise, 0.5), where=rise > 0.0), 0.0, 1.0)
    return low + (high - low) * np.where(above < 0.0, 1.0, share)
