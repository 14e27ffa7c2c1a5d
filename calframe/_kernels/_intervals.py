"""Confidence intervals in closed form, for arrays of segments or cells."""

from __future__ import annotations

import numpy as np

from calframe._kernels import _special as special
from calframe._typing import Floats, RateInterval

_ONE_ROW = 1.0 + 1e-9  # effective rows of a single row, with room for rounding
_NO_VARIANCE = 1e-14  # what rounding leaves of the variance of equal losses, in their mean square


def normal_quantile(level: float) -> float:
    """Return the two-sided standard normal quantile of a confidence level.

    Examples
    --------
    >>> round(normal_quantile(0.95), 6)
    1.959964
    """
    return float(-special.ndtri((1.0 - level) / 2.0))


def rate_interval(rate: Floats, n: Floats, *, level: float, method: RateInterval = "wilson") -> tuple[Floats, Floats]:
    """Return an interval for a rate observed on (effectively) `n` rows.

    Parameters
    ----------
    rate : ndarray
        Observed rates in [0, 1]; NaN where there are no rows.
    n : ndarray
        Rows, or the effective number ``(sum w)^2 / sum w^2``.
    level : float
        Confidence level in (0, 1).
    method : {"wilson", "clopper_pearson", "jeffreys"}
        Wilson inverts the score test; Clopper-Pearson never covers less than `level`; Jeffreys is the equal-tailed
        Bayes interval under the Beta(1/2, 1/2) prior.

    References
    ----------
    Brown, L. D., Cai, T. T. and DasGupta, A. (2001). Interval estimation for a binomial proportion.
    Statistical Science 16, 101-133. https://doi.org/10.1214/ss/1009213286

    Examples
    --------
    >>> low, high = rate_interval(np.array([0.0]), np.array([5.0]), level=0.95)
    >>> float(low[0]), round(float(high[0]), 12)
    (0.0, 0.434482464783)
    """
    known = np.isfinite(rate) & (n > 0)
    rate, n = np.where(known, rate, 0.5), np.where(known, n, 1.0)
    low, high = _METHODS[method](rate, n, level=level)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def recovered_interval(
    value: Floats, ends: tuple[Floats, Floats], other: Floats, other_ends: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Return an interval for the difference of two independent values, from the interval of each.

    Its ends lie as far from the difference as those of both together: variances are recovered from intervals that need
    not be symmetrical (of proportions by Wilson's intervals: Newcombe's method 10).

    Parameters
    ----------
    value, other : ndarray
        The values; the difference is that of the first less the second.
    ends, other_ends : tuple of ndarray
        Lower and upper ends of the interval of each.

    References
    ----------
    Newcombe, R. G. (1998). Interval estimation for the difference between independent proportions: comparison of eleven
    methods. Statistics in Medicine 17, 873-890.
    https://doi.org/10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I

    Zou, G. Y., Huang, W. and Zhang, X. (2009). A note on confidence interval estimation for a linear function of
    binomial proportions. Computational Statistics & Data Analysis 53, 1080-1085.
    https://doi.org/10.1016/j.csda.2008.09.033

    Examples
    --------
    >>> ends = np.array([0.4]), np.array([0.7])
    >>> low, high = recovered_interval(np.array([0.5]), ends, np.array([0.25]), (np.array([0.2]), np.array([0.4])))
    >>> [round(float(end[0]), 4) for end in (low, high)]
    [0.0697, 0.4562]
    """
    difference = value - other
    return (
        difference - np.hypot(value - ends[0], other_ends[1] - other),
        difference + np.hypot(ends[1] - value, other - other_ends[0]),
    )


def score_test(rate: Floats, expected: Floats, n: Floats) -> Floats:
    """Return the two-sided p-value of the score test of a rate: Wilson's interval holds what this does not reject.

    Parameters
    ----------
    rate, expected : ndarray
        The observed rate, and the rate under the hypothesis.
    n : ndarray
        Rows, or the effective number of rows.

    References
    ----------
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. Journal of the
    American Statistical Association 22, 209-212. https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    >>> float(score_test(np.array([0.6]), np.array([0.5]), np.array([100.0])).round(6)[0])
    0.0455
    """
    off = np.abs(rate - expected)
    spread = np.sqrt(expected * (1.0 - expected) / n)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = off / spread
    z = np.where(np.isfinite(rate) & (off == 0.0), 0.0, z)  # a certain score that is right is no evidence
    pvalue: Floats = 2.0 * special.ndtr(-z)
    return pvalue


def loss_interval(
    mean: Floats, second: Floats, n: Floats, *, right: Floats, wrong: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return an interval for the mean of losses, such as the Brier score or the log loss.

    Wilson's interval for losses of any size. An end is the mean at which the score test no longer rejects that some of
    the rows seen are replaced by rows with the loss of a wrong prediction (upper end), or of a right one (lower end).
    For equal scores, whose loss has two values, that is Wilson's interval of the rate; for many rows it is the usual
    normal interval of the mean. It holds the mean seen, and a higher level gives a longer one.

    Parameters
    ----------
    mean, second : ndarray
        Mean of the losses, and mean of their squares. A loss that is infinite in the sample is so in the population.
    n : ndarray
        Rows, or the effective number of rows.
    right, wrong : ndarray
        Loss of a typical right and of a typical wrong prediction, infinite where one wrong row would make the mean so.
        Where the losses seen are lower or higher, the two values with their mean and variance take their place.
    level : float
        Confidence level in (0, 1).

    References
    ----------
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. Journal of the
    American Statistical Association 22, 209-212. https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    Twenty rows of score 0.1, all negative: one positive among the next would have a log loss of 2.3.

    >>> loss, wrong = -np.log(np.array([0.9])), -np.log(np.array([0.1]))
    >>> low, high = loss_interval(loss, loss**2, np.array([20.0]), right=loss, wrong=wrong, level=0.9)
    >>> low.round(3), high.round(3)
    (array([0.105]), array([0.367]))
    """
    with np.errstate(all="ignore"):
        variance = second - mean * mean
        variance = np.where(variance <= _NO_VARIANCE * second, 0.0, variance)
        above = np.fmax(wrong, second / mean) - mean
        below = mean - np.fmin(right, mean - np.where(variance > 0.0, variance / above, 0.0))
        low, high = mean - _reach(below, variance, n, level=level), mean + _reach(above, variance, n, level=level)
    certain = np.isinf(mean)
    low, high = np.where(certain, mean, np.maximum(low, 0.0)), np.where(certain | np.isinf(wrong), np.inf, high)
    return np.where(np.isnan(mean), np.nan, low), np.where(np.isnan(mean), np.nan, high)


def difference_interval(mean: Floats, second: Floats, n: Floats, *, level: float) -> tuple[Floats, Floats]:
    """Return the normal interval for the mean of paired differences; NaN for a single row.

    Parameters
    ----------
    mean, second : ndarray
        Mean of the differences, and mean of their squares.
    n : ndarray
        Rows, or the effective number of rows.
    level : float
        Confidence level in (0, 1).

    Examples
    --------
    >>> low, high = difference_interval(np.array([0.02]), np.array([0.04]), np.array([401.0]), level=0.95)
    >>> low.round(5), high.round(5)
    (array([0.0005]), array([0.0395]))
    """
    with np.errstate(invalid="ignore"):
        rows = np.where(n > _ONE_ROW, n - 1.0, np.nan)
        half = normal_quantile(level) * np.sqrt(np.maximum(second - mean**2, 0.0) / rows)
        return mean - half, mean + half


def _reach(away: Floats, variance: Floats, n: Floats, *, level: float) -> Floats:
    """Return how far the mean may move towards a loss that is `away` from it.

    With a share t of the rows replaced, the mean moves by ``t away``, and one row has the variance
    ``(1 - t) variance + t (1 - t) away^2``: the root of ``n (t away)^2 = z^2`` times that.
    """
    z2 = normal_quantile(level) ** 2
    apart = z2 * (away * away - variance)
    root = np.sqrt(apart * apart + 4.0 * z2 * (n + z2) * variance * away * away)
    plus = (apart + root) / (2.0 * (n + z2) * away)
    minus = 2.0 * z2 * variance * away / (root - apart)  # the same, where the sum would cancel
    return np.nan_to_num(np.where(apart >= 0.0, plus, minus))


def largest_gap(score: Floats, rate: Floats, n: Floats, *, level: float) -> Floats:
    """Return the largest distance of mean score and rate that Wilson's interval of the rate allows.

    No calibration error that adds up distances is smaller than that of the means, so no upper end of its interval may
    be: where a rare outcome was never seen, other laws see no variance at all.

    Parameters
    ----------
    score, rate : ndarray
        Mean score, and observed rate.
    n : ndarray
        Rows, or the effective number of rows.
    level : float
        Confidence level in (0, 1).

    Examples
    --------
    >>> largest_gap(np.array([0.001]), np.array([0.0]), np.array([60.0]), level=0.9).round(3)
    array([0.042])
    """
    low, high = rate_interval(rate, n, level=level)
    return np.maximum(np.abs(score - low), np.abs(high - score))


def sidak_level(level: float, comparisons: int) -> float:
    """Return the confidence level of each of several intervals that all hold together with at least `level`.

    References
    ----------
    Šidák, Z. (1967). Rectangular confidence regions for the means of multivariate normal distributions. Journal of
    the American Statistical Association 62, 626-633. https://doi.org/10.1080/01621459.1967.10482935

    Examples
    --------
    >>> round(sidak_level(0.95, 7), 6)
    0.992699
    """
    return float(level ** (1.0 / max(comparisons, 1)))


def _wilson(rate: Floats, n: Floats, *, level: float) -> tuple[Floats, Floats]:
    z2 = normal_quantile(level) ** 2
    centre = rate + z2 / (2.0 * n)
    half = np.sqrt(z2 * (rate * (1.0 - rate) / n + z2 / (4.0 * n * n)))
    scale = 1.0 + z2 / n
    high = (centre + half) / scale
    low = rate * rate / (scale * high)  # the product of both ends is known, their difference would cancel
    high = np.where(rate >= 1.0, 1.0, high)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


def _clopper_pearson(rate: Floats, n: Floats, *, level: float) -> tuple[Floats, Floats]:
    tail, hits = (1.0 - level) / 2.0, rate * n
    misses = n - hits
    low = special.betaincinv(np.maximum(hits, 1e-300), misses + 1.0, tail)
    high = special.betaincinv(hits + 1.0, np.maximum(misses, 1e-300), 1.0 - tail)
    return np.where(hits <= 0.0, 0.0, low), np.where(misses <= 0.0, 1.0, high)


def _jeffreys(rate: Floats, n: Floats, *, level: float) -> tuple[Floats, Floats]:
    tail, hits = (1.0 - level) / 2.0, rate * n
    misses = n - hits
    return (
        special.betaincinv(hits + 0.5, misses + 0.5, tail),
        special.betaincinv(hits + 0.5, misses + 0.5, 1.0 - tail),
    )


_METHODS = {"wilson": _wilson, "clopper_pearson": _clopper_pearson, "jeffreys": _jeffreys}
