"""Tests on sums over rows, each a label less its score times something: Brier score, log loss, and gap.

``S = sum w_i c(s_i) (y_i - s_i)`` has mean 0 and variance ``sum w_i^2 c(s_i)^2 s_i (1 - s_i)`` if the scores are right.
Its law is nearly normal where no row moves it by more than a fifth of its standard deviation and its skewness is below
a fifth.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import segment_max
from calframe._kernels._tally import Tally
from calframe._testing._draws import Drawing, resampled
from calframe._testing._exact import MOST_ROWS, count_pvalue
from calframe._testing._found import FEW_ROWS, Found
from calframe._typing import Bools, Floats

Factor: TypeAlias = Callable[[Floats], Floats]

_FAR, _SKEW = 0.2, 0.2  # what a row may move the sum by, in standard deviations, and its skewness, for the normal law
CERTAIN = "the labels of right scores are certain, so the statistic has no spread"


def spiegelhalter(tally: Tally, drawing: Drawing) -> Found:
    """Test that the Brier score is what right scores would give, either way.

    ``z = sum w (y - s)(1 - 2 s) / sqrt(sum w^2 (1 - 2 s)^2 s (1 - s))``: above 0 the Brier score is larger than that.

    References
    ----------
    Spiegelhalter, D. J. (1986). Probabilistic prediction in patient management and clinical trials. Statistics in
    Medicine 5, 421-433. https://doi.org/10.1002/sim.4780050506

    Examples
    --------
    Two rows of score 0.1, one of them positive: ``z = (0.9 - 0.1) 0.8 / (0.8 sqrt(0.18))``.

    >>> table = Tally.of_counts(np.array([0]), np.array([0.1]), np.array([2.0]), np.array([1.0]))
    >>> spiegelhalter(table, Drawing(n_resamples=99, rng=np.random.default_rng(0))).statistic.round(12)
    array([1.88561808])
    """
    return of_sum(tally, brier_factor, drawing)


def gap(tally: Tally, drawing: Drawing) -> Found:
    """Test that the rate is the mean score: ``z = sum w (s - y) / sqrt(sum w^2 s (1 - s))``, above 0 says too much.

    Where the normal law is doubtful, or of fewer than 25 rows, and rows count once, the p-value is exact: twice the
    smaller tail of the number of positives, a sum of independent Bernoulli draws.

    References
    ----------
    Hosmer, D. W., Hosmer, T., Le Cessie, S. and Lemeshow, S. (1997). A comparison of goodness-of-fit tests for the
    logistic regression model. Statistics in Medicine 16, 965-980.
    https://doi.org/10.1002/(SICI)1097-0258(19970515)16:9<965::AID-SIM509>3.0.CO;2-O
    """
    found, rows, doubtful = _of_law(tally, gap_factor), tally.total(tally.rows), _doubtful(tally, gap_factor)
    once = (tally.total(np.abs(tally.weight - tally.rows)) == 0.0) & (rows <= MOST_ROWS)
    few = once & (rows < FEW_ROWS)

    def exact(where: Bools) -> tuple[Floats, Floats]:
        pvalue = count_pvalue(tally.only(where))
        return pvalue, np.full(len(pvalue), np.nan)

    found = found.settled(few, exact, floor=0.0, law="exact", below=np.inf)
    found = found.of_many(np.where(few & np.isfinite(found.statistic), np.inf, rows))
    found = found.settled(doubtful & once & ~few, exact, floor=0.0, law="exact")
    return _redrawn(found, doubtful & ~once, tally, gap_factor, drawing)


def brier_factor(score: Floats) -> Floats:
    """Return what a label is times in the Brier score: ``(s - y)^2 = s^2 + y (1 - 2 s)``."""
    return 1.0 - 2.0 * score


def gap_factor(score: Floats) -> Floats:
    """Return what a label is times in the gap."""
    return np.full_like(score, -1.0)


def log_loss_factor(score: Floats) -> Floats:
    """Return what a label is times in the log loss: ``-y ln s - (1 - y) ln(1 - s) = -ln(1 - s) - y logit(s)``."""
    with np.errstate(divide="ignore"):
        return np.log1p(-score) - np.log(score)


def of_sum(tally: Tally, factor: Factor, drawing: Drawing) -> Found:
    """Test a sum of labels less scores, each times a factor of its score, two-sided."""
    found = _of_law(tally, factor).of_many(tally.total(tally.rows))
    return _redrawn(found, _doubtful(tally, factor), tally, factor, drawing)


def _redrawn(found: Found, doubtful: Bools, tally: Tally, factor: Factor, drawing: Drawing) -> Found:
    """Return the same with labels drawn where the normal law is doubtful; more often than asked, where that is cheap.

    There the p-values that matter most lie near those of a law that is not far wrong, so that few draws tell little.
    """
    often = drawing.patient(int(tally.sizes[doubtful].sum()))

    def redraw(where: Bools) -> tuple[Floats, Floats]:
        part, seen = tally.only(where), found.statistic[where]
        ratio = partial(sum_ratio, factor=factor)
        return resampled(part, ratio, seen, side="two-sided", drawing=often)

    return found.settled(doubtful, redraw, floor=often.least("two-sided"))


def _of_law(tally: Tally, factor: Factor) -> Found:
    z = sum_ratio(tally, factor)
    found = Found.of_law(z, 2.0 * special.ndtr(-np.abs(z)), "normal")
    return found.noted(np.isnan(z), CERTAIN)


def sum_ratio(tally: Tally, factor: Factor) -> Floats:
    """Return the sum in units of its standard deviation, NaN where that is 0; infinite where a certain row is wrong."""
    chance = tally.score * (1.0 - tally.score)
    times = np.where(chance > 0.0, factor(tally.score), 0.0)
    spread = np.sqrt(tally.total(tally.squared * times**2 * chance))
    moved = tally.total(times * (tally.positive - tally.weight * tally.score))
    sure = chance == 0.0
    if sure.any():
        moved = moved + _of_certain(tally, factor, sure)
    with np.errstate(divide="ignore", invalid="ignore"):
        z: Floats = moved / spread
    return z


def _of_certain(tally: Tally, factor: Factor, sure: Bools) -> Floats:
    """Return by how much certain rows that are wrong move the sum."""
    off = np.where(sure, tally.positive - tally.weight * tally.score, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return tally.total(np.where(off != 0.0, factor(tally.score) * off, 0.0))


def _doubtful(tally: Tally, factor: Factor) -> Bools:
    chance = tally.score * (1.0 - tally.score)
    times = np.where(chance > 0.0, factor(tally.score), 0.0)
    weight = tally.squared / tally.weight  # of a row, on average by weight
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(tally.total(tally.squared * times**2 * chance))
        farthest = segment_max(np.abs(weight * times), tally.starts) / spread
        skew = tally.total(tally.squared * weight * times**3 * chance * (1.0 - 2.0 * tally.score)) / spread**3
    return np.asarray((spread > 0.0) & ((farthest > _FAR) | (np.abs(skew) > _SKEW)))
