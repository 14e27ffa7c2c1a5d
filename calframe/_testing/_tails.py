"""Tails of sums of rare events, which reach further out than those of the normal law."""

from __future__ import annotations

import numpy as np

from calframe._kernels import _special as special
from calframe._typing import Floats

_NO_SKEW = 1e-6  # below it the normal law is the same


def upper_tail(z: Floats, skewness: Floats) -> Floats:
    """Return the chance that a sum lies at least z standard deviations above its mean.

    With a skewness above 0 it is that of a Poisson number of mean ``1 / skewness^2``, whose skewness is the same, taken
    between whole numbers by the incomplete gamma function; otherwise the normal one, which then is no smaller.

    Parameters
    ----------
    z : ndarray
        Standard deviations, 0 or more.
    skewness : ndarray
        Third central moment of the sum by the cube of its standard deviation.

    Examples
    --------
    Ten events are expected and twenty seen: P(K >= 20) is 0.00345, where the normal law says 0.00078.

    >>> z = np.array([10.0 / 10.0**0.5])
    >>> upper_tail(z, np.array([10.0**-0.5])).round(5), upper_tail(z, np.array([0.0])).round(5)
    (array([0.00345]), array([0.00078]))
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        skewed = (skewness > _NO_SKEW) & np.isfinite(z)
        mean = np.where(skewed, 1.0 / skewness**2, 1.0)
    far = np.where(skewed, z, 1.0)
    poisson = special.gammainc(mean + far * np.sqrt(mean), mean)
    tail: Floats = np.where(skewed, np.maximum(poisson, special.ndtr(-far)), special.ndtr(-z))
    return tail


def binomial_pvalue(rate: Floats, expected: Floats, rows: Floats) -> Floats:
    """Return the two-sided exact p-value of a rate, twice the smaller tail: Clopper and Pearson's interval inverts it.

    Parameters
    ----------
    rate, expected : ndarray
        The observed rate, and the rate under the hypothesis.
    rows : ndarray
        Rows; an effective number need not be whole, the tails are those of the incomplete beta function.

    Notes
    -----
    Rows with different chances whose mean is `expected` have smaller tails (Hoeffding), so that it holds for scores
    that vary, too.

    References
    ----------
    Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated in the case of the
    binomial. Biometrika 26, 404-413. https://doi.org/10.1093/biomet/26.4.404

    Hoeffding, W. (1956). On the distribution of the number of successes in independent trials. Annals of Mathematical
    Statistics 27, 713-721. https://doi.org/10.1214/aoms/1177728178

    Examples
    --------
    Nine or more heads of ten, or one or less: 2 x 11 / 1024.

    >>> float(binomial_pvalue(np.array([0.9]), np.array([0.5]), np.array([10.0]))[0]) * 1024
    22.0
    """
    known = np.isfinite(rate) & (rows > 0)
    hits = np.where(known, rate * rows, 1.0)
    misses = np.where(known, rows, 2.0) - hits
    with np.errstate(invalid="ignore"):
        above = np.where(hits > 0, special.betainc(np.maximum(hits, 1e-300), misses + 1.0, expected), 1.0)
        below = np.where(misses > 0, special.betaincc(hits + 1.0, np.maximum(misses, 1e-300), expected), 1.0)
    return np.where(known, np.minimum(2.0 * np.minimum(above, below), 1.0), np.nan)
