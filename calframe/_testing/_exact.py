"""The exact law of a number of positives: a sum of independent Bernoulli draws with unequal chances."""

from __future__ import annotations

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._tally import Tally
from calframe._typing import Floats

MOST_ROWS = 2_000  # above, drawing is as good


def count_pvalue(tally: Tally) -> Floats:
    """Return twice the smaller tail of the number of positives in each segment, at most 1; rows count once.

    References
    ----------
    Hong, Y. (2013). On computing the distribution function for the Poisson binomial distribution. Computational
    Statistics & Data Analysis 59, 41-51. https://doi.org/10.1016/j.csda.2012.10.006

    Examples
    --------
    Two rows of score 0.1 and one of 0.5, two of them positive: ``P(K >= 2) = 0.01 0.5 + 0.18 0.5 + 0.01 0.5 = 0.1``.

    >>> rows = np.array([2.0, 1.0])
    >>> table = Tally.of_counts(np.array([0]), np.array([0.1, 0.5]), rows, np.array([1.0, 1.0]))
    >>> count_pvalue(table).round(12)
    array([0.2])
    """
    return np.array([_pvalue(part) for _, part in tally.chunks(1)])


def _pvalue(tally: Tally) -> float:
    mass = np.ones(1)
    for rows, score in zip(tally.rows, tally.score, strict=True):
        mass = np.convolve(mass, _binomial(int(rows), float(score)))
    count = round(float(tally.positive.sum()))
    tails = (float(mass[: count + 1].sum()), float(mass[count:].sum()))
    return min(2.0 * min(tails), 1.0)


def _binomial(rows: int, score: float) -> Floats:
    """Return the probabilities of 0 to `rows` positives."""
    k = np.arange(rows + 1.0)
    ways = special.gammaln(rows + 1.0) - special.gammaln(k + 1.0) - special.gammaln(rows - k + 1.0)
    mass: Floats = np.exp(ways + special.xlogy(k, score) + special.xlog1py(rows - k, -score))
    return mass
