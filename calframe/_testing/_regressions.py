"""Miller's likelihood-ratio tests of the line ``logit P(positive) = a + b logit(score)`` against a = 0 and b = 1."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._logistic import Status, citl_fit, cox_fit, logit, negative_weight, rows_at_ends
from calframe._kernels._tally import Tally
from calframe._notes import at_ends
from calframe._testing._clusters import Clustered, clustered_pvalues
from calframe._testing._draws import Drawing, resampled
from calframe._testing._found import FAR, Found
from calframe._typing import Bools, Floats

_FEW_EVENTS = 40.0  # expected rows of the rarer class, below which the chi-square law is put to the test
_ENOUGH_EVENTS = 100.0  # from which its far tail is good, too: at 0.00005 of 50 it is off by a quarter
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
    rarer = np.minimum(expected, tally.total(tally.weight) - expected)
    rare, few = rarer < _FEW_EVENTS, (rarer >= _FEW_EVENTS) & (rarer < _ENOUGH_EVENTS)
    lone = (tally.total(tally.positive) <= 0) | (tally.total(tally.negative) <= 0)
    found = {}
    for seen, (name, df) in zip(ratios, HYPOTHESES.items(), strict=True):
        one = Found.of_law(seen, special.gammaincc(df / 2.0, seen / 2.0), "chi2", df=df)
        one = one.noted(lone & np.isnan(seen), ONE_CLASS).noted(~lone & np.isnan(seen), SEPARABLE)
        found[name] = _with_ends(one.of_many(rows), tally, floor)
    far = drawing.beyond_doubt
    asked = np.any([one.in_doubt(rare) | one.in_doubt(few, below=FAR, above=far) for one in found.values()], axis=0)
    if not asked.any():
        return found
    drawn = np.full((2, *ratios.shape), np.nan)
    ratio = partial(likelihood_ratios, floor=floor)
    drawn[:, :, asked] = resampled(tally.only(asked), ratio, ratios[:, asked], side="greater", drawing=drawing)
    least = drawing.least("greater")
    settled = {}
    for (name, one), pvalue, error in zip(found.items(), *drawn, strict=True):
        redraw = partial(_of_both, pvalue, error)
        one = one.settled(rare, redraw, floor=least)  # noqa: PLW2901  the same, better known
        settled[name] = one.settled(few, redraw, floor=least, below=FAR, above=far)
    return settled


def _of_both(pvalue: Floats, error: Floats, where: Bools) -> tuple[Floats, Floats]:
    return pvalue[where], error[where]


def clustered_cox(rows: Clustered, drawing: Drawing, *, floor: float) -> dict[str, Found]:
    """Test the same by drawing labels cluster by cluster, one fit a draw for all three."""
    ratio = partial(likelihood_ratios, floor=floor)
    seen = ratio(rows.tally)
    drawn = clustered_pvalues(rows, ratio, seen, side="greater", drawing=drawing)
    least = drawing.least("greater")
    return {
        name: _with_ends(rows.told(Found.of_draws(*one, floor=least)), rows.tally, floor)
        for name, one in zip(HYPOTHESES, zip(seen, *drawn, strict=True), strict=True)
    }


def _with_ends(found: Found, tally: Tally, floor: float) -> Found:
    """Note where rows with a score of 0 or 1 have most say in the line."""
    rows = rows_at_ends(tally, floor) * ~np.isnan(found.statistic)
    for count in np.unique(rows[rows > 0]):
        found = found.noted(rows == count, at_ends(int(count), floor))
    return replace(found, at_ends=rows.astype(np.float64))


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
