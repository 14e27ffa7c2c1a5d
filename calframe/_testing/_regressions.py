"""Miller's likelihood-ratio tests of the line ``logit P(positive) = a + b logit(score)`` against a = 0 and b = 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._logistic import Status, citl_fit, cox_fit, logit, negative_weight
from calframe._kernels._tally import Tally
from calframe._testing._draws import Drawing, resampled
from calframe._testing._found import Found
from calframe._typing import Bools, Floats

Statistic: TypeAlias = Callable[[Tally], Floats]

_FEW_EVENTS = 40.0  # expected rows of the rarer class, below which the chi-square law is put to the test
HYPOTHESES = {"joint": 2, "intercept": 1, "slope": 1}  # with their degrees of freedom
ONE_CLASS = "one class only: no line can be fitted"
SEPARABLE = "scores separate the classes, or are all equal: no line can be fitted"


def cox(tally: Tally, drawing: Drawing, *, floor: float) -> dict[str, Found]:
    """Test the calibration line, by likelihood ratios: jointly, its intercept at slope 1, and its slope.

    ``joint``: a = 0 and b = 1 (two degrees of freedom); ``intercept``: a = 0 where b = 1; ``slope``: b = 1 where a is
    free (one each). The last two statistics add up to the first.

    References
    ----------
    Miller, M. E., Hui, S. L. and Tierney, W. M. (1991). Validation techniques for logistic regression models.
    Statistics in Medicine 10, 1213-1226. https://doi.org/10.1002/sim.4780100805

    Cox, D. R. (1958). Two further applications of a model for binary regression. Biometrika 45, 562-565.
    https://doi.org/10.1093/biomet/45.3-4.562
    """
    ratios = likelihood_ratios(tally, floor)
    rows, expected = tally.total(tally.rows), tally.total(tally.weight * tally.score)
    rare = np.minimum(expected, tally.total(tally.weight) - expected) < _FEW_EVENTS
    lone = (tally.total(tally.positive) <= 0) | (tally.total(tally.negative) <= 0)
    found = {}
    for place, (name, df) in enumerate(HYPOTHESES.items()):
        seen = ratios[place]
        one = Found.of_law(seen, special.gammaincc(df / 2.0, seen / 2.0), "chi2", df=df)
        one = one.noted(lone & np.isnan(seen), ONE_CLASS).noted(~lone & np.isnan(seen), SEPARABLE)
        found[name] = one.of_many(rows).settled(rare, _redraw(tally, place, seen, drawing, floor))
    return found


def _redraw(
    tally: Tally, place: int, seen: Floats, drawing: Drawing, floor: float
) -> Callable[[Bools], tuple[Floats, Floats]]:
    def redraw(where: Bools) -> tuple[Floats, Floats]:
        return resampled(
            tally.only(where),
            lambda part: likelihood_ratios(part, floor)[place],
            seen[where],
            side="greater",
            drawing=drawing,
        )

    return redraw


def likelihood_ratios(tally: Tally, floor: float) -> Floats:
    """Return twice the gain in log-likelihood of both, of the intercept, and of the slope."""
    z = logit(tally.score, floor)
    line, large = cox_fit(tally, floor=floor), citl_fit(tally, floor=floor)
    fixed = _likelihood(tally, z)
    with np.errstate(invalid="ignore"):
        level = _likelihood(tally, tally.spread(large.citl) + z)
        free = _likelihood(tally, tally.spread(line.intercept) + tally.spread(line.slope) * z)
    level = np.where(large.status == Status.ONE_CLASS, 0.0, level)  # the limit, where every row is given what it is
    free = np.where(line.status == Status.FINE, free, np.nan)
    both, first, second = 2.0 * (free - fixed), 2.0 * (level - fixed), 2.0 * (free - level)
    return np.asarray(np.maximum([both, first, second], 0.0), dtype=np.float64)


def _likelihood(tally: Tally, eta: Floats) -> Floats:
    negative = negative_weight(tally.weight, tally.positive)
    found: Floats = tally.total(tally.positive * special.log_expit(eta) + negative * special.log_expit(-eta))
    return found
