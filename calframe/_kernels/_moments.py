"""Intervals in closed form for means and variances of scores and losses, where the usual normal interval is too short.

All arguments are one value a segment; `n` is the (effective) number of rows, ``(sum w)^2 / sum w^2``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import ratio
from calframe._kernels._intervals import normal_quantile, rate_interval
from calframe._typing import Floats

Interval: TypeAlias = tuple[Floats, Floats]

_ONE_ROW = 1.0 + 1e-9  # effective rows of a single row, with room for rounding
_NO_VARIANCE = 1e-14  # what rounding leaves of the variance of equal scores


def mean_interval(mean: Floats, variance: Floats, n: Floats, *, level: float) -> Interval:
    """Return Student's interval for the mean of values in [0, 1], such as the scores; NaN for a single row.

    Parameters
    ----------
    mean, variance : ndarray
        Mean of the values, and mean square of their distance from it.
    n : ndarray
        Rows, or the effective number of rows.
    level : float
        Confidence level in (0, 1).

    Examples
    --------
    >>> low, high = mean_interval(np.array([0.3]), np.array([0.02]), np.array([3.0]), level=0.5)
    >>> low.round(4), high.round(4)
    (array([0.2184]), array([0.3816]))
    """
    half = _student_half(variance, n, level=level)
    return np.maximum(mean - half, 0.0), np.minimum(mean + half, 1.0)


def fourth_about_mean(first: Floats, second: Floats, third: Floats, fourth: Floats) -> Floats:
    """Return the fourth moment about the mean from the first four moments about any point.

    Examples
    --------
    Half 0, half 1, about 1: the distances from the mean are 1/2, their fourth powers 1/16.

    >>> half = np.array([0.5])
    >>> fourth_about_mean(-half, half, -half, half)
    array([0.0625])
    """
    moment = fourth - 4.0 * first * third + 6.0 * first**2 * second - 3.0 * first**4
    return np.maximum(moment, 0.0)


def variance_interval(variance: Floats, fourth: Floats, n: Floats, *, level: float) -> Interval:
    """Return an interval for a variance, such as the sharpness; NaN for a single row.

    The chi-squared interval with the degrees of freedom that give the variance of the sample variance (Satterthwaite).
    The kurtosis it needs is underestimated where scores are skewed; the first-order bias that it has under a Gamma law
    of the same kurtosis, ``(6 + 23 e + 11 e^2 / 3) / n`` for excess ``e``, is added first.

    Parameters
    ----------
    variance, fourth : ndarray
        Second and fourth moments about the mean.
    n : ndarray
        Rows, or the effective number of rows.
    level : float
        Confidence level in (0, 1).

    References
    ----------
    Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components. Biometrics Bulletin
    2, 110-114. https://doi.org/10.2307/3002019

    Examples
    --------
    >>> low, high = variance_interval(np.array([0.04]), np.array([0.0048]), np.array([400.0]), level=0.9)
    >>> low.round(4), high.round(4)
    (array([0.0358]), array([0.0453]))
    """
    kurtosis = np.maximum(np.nan_to_num(ratio(fourth, variance**2), nan=3.0), 1.0)
    excess = np.maximum(kurtosis - 3.0, 0.0)
    kurtosis = kurtosis + (6.0 + 23.0 * excess + 11.0 * excess**2 / 3.0) / n
    tail = (1.0 - level) / 2.0
    with np.errstate(all="ignore"):
        freedom = 2.0 * n / (kurtosis - 1.0)
        scaled = freedom * variance * ratio(n, n - 1.0)
        low, high = scaled / special.chdtri(freedom, tail), scaled / special.chdtri(freedom, 1.0 - tail)
    known = (n > _ONE_ROW) & np.isfinite(low) & np.isfinite(high)
    none = variance <= _NO_VARIANCE
    low, high = np.where(none, 0.0, np.minimum(low, variance)), np.where(none, 0.0, np.maximum(high, variance))
    known |= none & (n > _ONE_ROW)
    return np.where(known, low, np.nan), np.where(known, np.minimum(high, 0.25), np.nan)


def uncertainty_interval(rate: Floats, n: Floats, *, level: float) -> Interval:
    """Return an interval for ``rate (1 - rate)``: what that takes on over Wilson's interval of the rate.

    Examples
    --------
    >>> low, high = uncertainty_interval(np.array([0.5]), np.array([100.0]), level=0.9)
    >>> low.round(4), high
    (array([0.2434]), array([0.25]))
    """
    return _over_rates(lambda r: r * (1.0 - r), rate, n, level=level)


def entropy_interval(rate: Floats, n: Floats, *, level: float) -> Interval:
    """Return an interval for the entropy of the rate in nats: what that takes on over Wilson's interval of the rate.

    Examples
    --------
    >>> low, high = entropy_interval(np.array([0.5]), np.array([100.0]), level=0.9)
    >>> low.round(4), high.round(4)
    (array([0.6799]), array([0.6931]))
    """
    return _over_rates(lambda r: special.entr(r) + special.entr(1.0 - r), rate, n, level=level)


def brier_skill_interval(
    rate: Floats,
    score: Floats,
    positive: tuple[Floats, Floats],
    negative: tuple[Floats, Floats],
    n: Floats,
    *,
    level: float,
) -> Interval:
    """Return an interval for the Brier skill score, ``1 - brier / (rate (1 - rate))``; NaN where there is one class.

    The quotient is ``P / (1 - rate) + N / rate`` with the mean squared distances P of the positives and N of the
    negatives. Their intervals (Student's, with as many rows as there are of that class) and Wilson's interval of the
    rate are independent, and their distances from the estimate are put together as the root of the sum of squares.
    The quotient is not monotone in the rate, so for the rate it is the smallest and the largest value over the interval
    that count: near the smallest one the usual delta method sees no uncertainty of the rate at all.

    Parameters
    ----------
    rate, score : ndarray
        Rate of positives and mean score. The squared distance of the mean score counts as ``z^2 / 2`` further rows of
        either class where the spread is estimated, so that a few rows that are all alike do not seem certain.
    positive, negative : tuple of two ndarrays
        Mean of ``(score - label)^2``, and mean of its square, over the rows of that class.
    n : ndarray
        Rows, or the effective number of rows.
    level : float
        Confidence level in (0, 1).

    References
    ----------
    Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect measures: a general approach.
    Statistics in Medicine 27, 1693-1702. https://doi.org/10.1002/sim.3095

    Examples
    --------
    Scores 0.2 for 80 negatives and 20 positives, 0.8 for 20 negatives and 80 positives, have Brier score 0.16:

    >>> mean, second = np.array([0.16]), np.array([0.8 * 0.2**4 + 0.2 * 0.8**4])
    >>> half = np.array([0.5])
    >>> low, high = brier_skill_interval(half, half, (mean, second), (mean, second), np.array([200.0]), level=0.9)
    >>> low.round(2), high.round(2)
    (array([0.25]), array([0.47]))
    """
    both = (rate > 0.0) & (rate < 1.0)
    safe = np.where(both, rate, 0.5)
    hits, misses = np.nan_to_num(positive[0]), np.nan_to_num(negative[0])
    found = hits / (1.0 - safe) + misses / safe
    hit_low, hit_high = _class_mean(hits, np.nan_to_num(positive[1]), (1.0 - score) ** 2, n * safe, level=level)
    miss_low, miss_high = _class_mean(misses, np.nan_to_num(negative[1]), score**2, n * (1.0 - safe), level=level)
    least, most = _over_rate(hits, misses, safe, n, level=level)
    below = _length((hits - hit_low) / (1.0 - safe), (misses - miss_low) / safe, found - least)
    above = _length((hit_high - hits) / (1.0 - safe), (miss_high - misses) / safe, most - found)
    high = 1.0 - np.maximum(found - below, 0.0)
    return np.where(both, 1.0 - found - above, np.nan), np.where(both, high, np.nan)


def _student_half(variance: Floats, n: Floats, *, level: float) -> Floats:
    """Return half the length of Student's interval; NaN for a single row."""
    freedom = np.where(n > 1.0, n - 1.0, np.nan)
    half: Floats = special.stdtrit(freedom, (1.0 + level) / 2.0) * np.sqrt(np.maximum(variance, 0.0) / freedom)
    return half


def _class_mean(mean: Floats, second: Floats, guess: Floats, n: Floats, *, level: float) -> Interval:
    """Return Student's interval for a mean of values in [0, 1]; all of that for a single row."""
    added = normal_quantile(level) ** 2 / 2.0
    variance = (n * (second - mean**2) + added * (guess - mean) ** 2) / (n + added)
    half = np.nan_to_num(_student_half(variance, n, level=level), nan=1.0)
    return np.maximum(mean - half, 0.0), np.minimum(mean + half, 1.0)


def _over_rate(hits: Floats, misses: Floats, rate: Floats, n: Floats, *, level: float) -> Interval:
    """Return the smallest and largest ``hits / (1 - r) + misses / r`` over Wilson's interval of the rate r."""
    low, high = rate_interval(rate, n, level=level)
    roots = np.sqrt(hits), np.sqrt(misses)
    lowest = np.clip(np.nan_to_num(ratio(roots[1], roots[0] + roots[1]), nan=0.5), low, high)
    ends = hits / (1.0 - low) + misses / low, hits / (1.0 - high) + misses / high
    return hits / (1.0 - lowest) + misses / lowest, np.maximum(*ends)


def _length(*parts: Floats) -> Floats:
    with np.errstate(over="ignore"):
        length: Floats = np.sqrt(np.sum(np.square(parts), axis=0))
    return length


def _over_rates(function: Callable[[Floats], Floats], rate: Floats, n: Floats, *, level: float) -> Interval:
    """Return the least and greatest value of a function that rises up to 1/2 and then falls as it rose."""
    low, high = rate_interval(rate, n, level=level)
    at_low, at_high = function(low), function(high)
    top = np.where((low <= 0.5) & (high >= 0.5), function(np.full_like(low, 0.5)), np.maximum(at_low, at_high))
    return np.minimum(at_low, at_high), top
