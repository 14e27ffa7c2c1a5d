"""The interval of a mean of paired differences that take three values: a gain, nothing, or a loss."""

from __future__ import annotations

import numpy as np

from calframe._kernels._intervals import rate_interval
from calframe._typing import Floats


def paired_interval(
    won: Floats, lost: Floats, n: Floats, *, gain: float, loss: float, level: float
) -> tuple[Floats, Floats]:
    """Return an interval for ``gain won - loss lost``, the mean of differences of `gain`, 0 and ``-loss``.

    Variances are recovered from the intervals of both shares (as in `recovered_interval`), with the correlation that
    shares of the same rows have at those ends. Those are Clopper and Pearson's: one rare gain among few rows proves
    little, and no event seen is not no event ever. Where every row gains or loses, the interval is that of the rate.

    Parameters
    ----------
    won, lost : ndarray
        Shares of the rows with a gain, and with a loss.
    n : ndarray
        Rows, or the effective number of rows.
    gain, loss : float
        Their sizes, 0 or more.
    level : float
        Confidence level in (0, 1); each end by itself has half of the error.

    References
    ----------
    Newcombe, R. G. (1998). Improved confidence intervals for the difference between binomial proportions based on
    paired data. Statistics in Medicine 17, 2635-2650.
    https://doi.org/10.1002/(SICI)1097-0258(19981130)17:22<2635::AID-SIM954>3.0.CO;2-C

    Zou, G. Y., Huang, W. and Zhang, X. (2009). A note on confidence interval estimation for a linear function of
    binomial proportions. Computational Statistics & Data Analysis 53, 1080-1085.
    https://doi.org/10.1016/j.csda.2008.09.033

    Examples
    --------
    None of twenty rows gains or loses:

    >>> nothing, rows = np.array([0.0]), np.array([20.0])
    >>> low, high = paired_interval(nothing, nothing, rows, gain=1.0, loss=4.0, level=0.9)
    >>> low.round(3), high.round(3)
    (array([-0.556]), array([0.139]))
    """
    of_won, of_lost = (rate_interval(share, n, level=level, method="clopper_pearson") for share in (won, lost))
    value = gain * won - loss * lost
    low = value - _together(of_won[0], of_lost[1], gain * (won - of_won[0]), loss * (of_lost[1] - lost))
    high = value + _together(of_lost[0], of_won[1], loss * (lost - of_lost[0]), gain * (of_won[1] - won))
    return low, high


def _together(smaller: Floats, larger: Floats, first: Floats, second: Floats) -> Floats:
    """Return how far both shares move the mean, at the end of the interval of each: of one the lower, one the upper."""
    with np.errstate(invalid="ignore", divide="ignore"):
        odds = smaller * larger / ((1.0 - smaller) * (1.0 - larger))
    against = np.sqrt(np.clip(np.nan_to_num(odds), 0.0, 1.0))  # shares of the same rows: less their correlation
    moved: Floats = np.sqrt(first * first + second * second + 2.0 * against * first * second)
    return moved
