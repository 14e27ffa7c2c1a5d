"""Confidence intervals in closed form, for arrays of segments or cells."""

from __future__ import annotations

import numpy as np

from calframe._kernels import _special as special
from calframe._typing import Floats, RateInterval


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


def mean_of_squares_interval(
    mean: Floats, second: Floats, score: Floats, n: Floats, *, level: float
) -> tuple[Floats, Floats]:
    """Return an interval for the mean of ``(score - label)^2``.

    The normal interval of the mean, after adding ``z^2 / 2`` rows of either class at the mean score (for equal
    scores this is the Agresti-Coull interval of the rate): with few or no rows of one class the plain normal interval
    is far too short.

    Parameters
    ----------
    mean, second : ndarray
        Mean of the squares, and mean of their squares.
    score : ndarray
        Mean score.
    n : ndarray
        Rows, or the effective number of rows.
    level : float
        Confidence level in (0, 1).

    References
    ----------
    Agresti, A. and Coull, B. A. (1998). Approximate is better than "exact" for interval estimation of binomial
    proportions. The American Statistician 52, 119-126. https://doi.org/10.1080/00031305.1998.10480550
    """
    z = normal_quantile(level)
    added = z * z
    square = (score**2 + (1.0 - score) ** 2) / 2.0
    fourth = (score**4 + (1.0 - score) ** 4) / 2.0
    total = n + added
    centre = (n * mean + added * square) / total
    spread = np.maximum((n * second + added * fourth) / total - centre**2, 0.0)
    half = z * np.sqrt(spread / total)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def holm(pvalue: Floats) -> Floats:
    """Return p-values adjusted by Holm's step-down method; NaN stays and does not count.

    References
    ----------
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6,
    65-70. https://www.jstor.org/stable/4615733

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(6)
    array([0.03, 0.06, 0.06])
    """
    out = np.full(pvalue.shape, np.nan)
    known = np.flatnonzero(~np.isnan(pvalue))
    order = known[np.argsort(pvalue[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(pvalue[order] * factors), 1.0)
    return out


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
