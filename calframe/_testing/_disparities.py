"""Largest difference between segments, with an interval: selection makes the observed one too large."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._intervals import rate_interval
from calframe._typing import Floats

_NODES = 601  # of the integral below, over the normal density within nine deviations
_REACH = 9.0
_HALVINGS = 50
_BLOCK = 1024  # segments compared with all others at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Disparity:
    """The largest difference between any two of some values.

    Attributes
    ----------
    value : float
        Largest less smallest observed value; NaN with fewer than two values.
    low, high : float
        Ends of an interval for largest less smallest *true* value.
    top, bottom : int
        Places of the two values; -1 where there are none.
    """

    value: float
    low: float
    high: float
    top: int
    bottom: int


@lru_cache(maxsize=256)
def range_quantile(count: int, level: float) -> float:
    """Return the quantile of the range of `count` standard normal numbers: the studentized range at infinite degrees.

    ``P(R <= q) = k int phi(z) (Phi(z + q) - Phi(z))^(k - 1) dz``.

    References
    ----------
    Tukey, J. W. (1949). Comparing individual means in the analysis of variance. Biometrics 5, 99-114.
    https://doi.org/10.2307/3001913

    Examples
    --------
    The range of two has the law of sqrt(2) |Z|:

    >>> round(range_quantile(2, 0.95) / 2**0.5, 6)
    1.959964
    """
    z = np.linspace(-_REACH, _REACH, _NODES)
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    below = special.ndtr(z)
    low, high = 0.0, 2.0 * _REACH
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        inside = np.trapezoid(density * (special.ndtr(z + middle) - below) ** (count - 1), z) * count
        low, high = (low, middle) if inside > level else (middle, high)
    return high


def largest_gap_difference(rate: Floats, score: Floats, rows: Floats, *, level: float) -> Disparity:
    """Return the largest difference of the gaps ``score - rate`` of segments, with an interval for the true one.

    Parameters
    ----------
    rate, score : ndarray of shape (n_segments,)
        Observed rate and mean score.
    rows : ndarray of shape (n_segments,)
        Rows, or the effective number of rows.
    level : float
        Confidence level in (0, 1).

    Notes
    -----
    With the true gaps g, the true value is the largest ``g_i - g_j``. Its upper end is the largest upper end that
    any pair has by itself (the pair that is truly farthest apart is among them, so that one bound has to hold), its
    lower end the largest lower end that the pairs have together, 0 if none is above 0. Together means: with the
    normal quantile replaced by that of the studentized range over sqrt(2), which Tukey and Kramer's theorem allows
    for unequal variances, too. The bounds of a pair come from Clopper-Pearson bounds of its two rates by the method
    of variance estimates recovery, so that few events do not make them too short. Each end is wrong in at most half of
    ``1 - level``. The observed value is itself biased upwards: of equal segments the farthest two differ.

    References
    ----------
    Hayter, A. J. (1984). A proof of the conjecture that the Tukey-Kramer multiple comparisons procedure is
    conservative. Annals of Statistics 12, 61-75. https://doi.org/10.1214/aos/1176346392

    Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect measures: a general approach.
    Statistics in Medicine 27, 1693-1702. https://doi.org/10.1002/sim.3095

    Examples
    --------
    >>> rate, score = np.array([0.30, 0.50]), np.array([0.40, 0.40])
    >>> found = largest_gap_difference(rate, score, np.array([1000.0, 1000.0]), level=0.95)
    >>> round(found.value, 6), round(found.low, 3), round(found.high, 3)
    (0.2, 0.151, 0.242)
    """
    if len(rate) < 2:
        return _NONE
    alone, together = _levels(len(rate), level)
    ends = []
    for each in (alone, together):
        low, high = rate_interval(rate, rows, level=each, method="clopper_pearson")
        ends.append((score - high, score - low))
    return _largest(score - rate, *ends)


def smallest_ratio(rate: Floats, score: Floats, rows: Floats, *, level: float) -> Disparity:
    """Return the smallest over the largest of the ratios ``rate / score``, with an interval for the true one.

    1 is perfect, and smaller is worse; `top` and `bottom` are the segments of the largest and smallest ratio. It is the
    largest difference of the logarithms; arguments, and how the ends are made, are as in `largest_gap_difference`.
    A segment of score 0 has no ratio. With a rate of 0 the ratio is 0 and so is its lower end.

    Examples
    --------
    >>> found = smallest_ratio(np.array([0.3, 0.6]), np.array([0.4, 0.4]), np.array([1000.0, 1000.0]), level=0.95)
    >>> round(found.value, 6), round(found.low, 3), round(found.high, 3)
    (0.5, 0.448, 0.565)
    """
    usable = np.flatnonzero(score > 0.0)
    rate, score, rows = rate[usable], score[usable], rows[usable]
    if len(rate) < 2:
        return _NONE
    alone, together = _levels(len(rate), level)
    with np.errstate(divide="ignore"):
        ends = []
        for each in (alone, together):
            low, high = rate_interval(rate, rows, level=each, method="clopper_pearson")
            ends.append((np.log(low / score), np.log(high / score)))
        found = _largest(np.log(rate / score), *ends)
    if found.top < 0:
        return found
    return Disparity(
        value=float(np.exp(-found.value)),
        low=float(np.exp(-found.high)),
        high=float(np.exp(-found.low)),
        top=int(usable[found.top]),
        bottom=int(usable[found.bottom]),
    )


_NONE = Disparity(value=np.nan, low=np.nan, high=np.nan, top=-1, bottom=-1)


def _levels(count: int, level: float) -> tuple[float, float]:
    """Return the levels of the bounds of a segment for pairs alone, one-sided, and for all pairs together."""
    together = range_quantile(count, (1.0 + level) / 2.0) / np.sqrt(2.0)
    return level, float(1.0 - 2.0 * special.ndtr(-together))


def _largest(value: Floats, alone: tuple[Floats, Floats], together: tuple[Floats, Floats]) -> Disparity:
    """Return the largest difference of values with given ends, block after block of segments."""
    if np.all(value == value[0]) and not np.isfinite(value[0]):  # no ratio is above 0
        return _NONE
    low, high = 0.0, 0.0
    for start in range(0, len(value), _BLOCK):
        block = slice(start, start + _BLOCK)
        low = max(low, float(np.max(_lower(value, *together, block))))
        high = max(high, float(np.max(_upper(value, *alone, block))))
    top, bottom = int(np.argmax(value)), int(np.argmin(value))
    return Disparity(value=float(value[top] - value[bottom]), low=low, high=high, top=top, bottom=bottom)


def _lower(value: Floats, low: Floats, high: Floats, block: slice) -> Floats:
    """Return lower ends of ``value_i - value_j``, i in the block."""
    with np.errstate(invalid="ignore"):
        return _end(value, value - low, high - value, low[block, None] - high[None, :], block, sign=-1.0)


def _upper(value: Floats, low: Floats, high: Floats, block: slice) -> Floats:
    """Return upper ends of ``value_i - value_j``, i in the block."""
    with np.errstate(invalid="ignore"):
        return _end(value, high - value, value - low, high[block, None] - low[None, :], block, sign=1.0)


def _end(value: Floats, own: Floats, other: Floats, farthest: Floats, block: slice, *, sign: float) -> Floats:
    """Recover an end of a difference from distances of ends; where a value is infinite, from the ends alone."""
    away = np.sqrt(own[block, None] ** 2 + other[None, :] ** 2)
    found = value[block, None] - value[None, :] + sign * away
    usable = np.isfinite(value[block, None]) & np.isfinite(value[None, :])
    return np.where(usable, found, np.nan_to_num(farthest, nan=0.0, posinf=np.inf, neginf=-np.inf))
