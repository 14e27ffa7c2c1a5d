"""Score tests of the calibration line, and of curvature beyond it, for segments of any size and weights.

With residuals ``r_i = w_i (y_i - c_i)`` from chances ``c_i``, a direction x has the sum ``U = sum x_i r_i`` of variance
``V = sum w_i^2 c_i (1 - c_i) x_i^2``. Over directions that are orthogonal in that variance ``sum U^2 / V``
is nearly chi-square, one degree of freedom each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import ratio, run_starts, segment_max
from calframe._kernels._logistic import CoxFit, Status, cox_fit, logit
from calframe._kernels._ranked import quantile_bins
from calframe._kernels._tally import Tally
from calframe._testing._draws import Drawing, resampled
from calframe._testing._found import Found
from calframe._typing import Bools, Floats, Ints

FEW_EVENTS = 40.0  # expected rows of the rarer outcome, below which the chi-square law is put to the test
FAR = 0.2  # what one row may move the test by, in standard deviations, before it is, too
_NOTHING = 1e-9  # the share of a direction's variance that counts as none, once others are taken off
MOST_REFITS = 10_000  # further draws, each with a line fitted anew
_CELLS = 100  # runs of scores that stand for more of them where labels are drawn


def line_test(tally: Tally, drawing: Drawing, *, floor: float) -> Found:
    """Test intercept 0 and slope 1 together, by the score test of ``logit P = a + b logit(score)``.

    Two degrees of freedom, one where there is one distinct score.

    References
    ----------
    Cox, D. R. (1958). Two further applications of a model for binary regression. Biometrika 45, 562-565.
    https://doi.org/10.1093/biomet/45.3-4.562
    Rao, C. R. (1948). Large sample tests of statistical hypotheses concerning several parameters with applications to
    problems of estimation. Mathematical Proceedings of the Cambridge Philosophical Society 44, 50-57.
    https://doi.org/10.1017/S0305004100023987

    Examples
    --------
    One hundred rows of score 0.5, 60 positive: ``z = 10 / 5``.

    >>> table = Tally.of_counts(np.array([0]), np.array([0.5]), np.array([100.0]), np.array([60.0]))
    >>> found = line_test(table, Drawing(n_resamples=99, rng=np.random.default_rng(0)), floor=1e-12)
    >>> found.statistic, found.df, found.pvalue.round(4)
    (array([4.]), array([1.]), array([0.0455]))
    """

    def directions(part: Tally) -> tuple[Floats, list[Floats]]:
        return part.score, orthogonal(part, part.score, [np.ones_like(part.score), logit(part.score, floor)])

    return _tested(tally, directions, drawing)


def curve_test(tally: Tally, fit: CoxFit, drawing: Drawing, *, floor: float) -> Found:
    """Test whether the fitted calibration line leaves curvature, by the score test at that line.

    Directions are the second and third Legendre polynomial of the place of a score, from -1 to 1 such that equal
    steps hold equal information ``w c (1 - c)``; what intercept and slope can take up is taken off. Two degrees of
    freedom, fewer for two or three distinct scores; NaN where there is no line.

    Parameters
    ----------
    tally : Tally
        Distinct scores, as probabilities.
    fit : CoxFit
        Its calibration line.
    drawing : Drawing
        How labels are drawn where the law is doubtful: from the line, which is then fitted anew.
    floor : float
        The least score that enters a logit.
    """
    fine = fit.status == Status.FINE
    drawing = replace(drawing, further=min(drawing.further, MOST_REFITS))
    found = blank(len(tally))
    if not fine.any():
        return found
    some = tally.only(fine)
    line = chances(tally, fit, floor=floor)[tally.spread(fine)]
    law = _law(some, line, bends(some, line, floor))
    doubtful = _doubtful(some, line, bends(some, line, floor))

    def redraw(where: Bools) -> tuple[Floats, Floats]:
        part = some.only(where)
        part = part.merged(coarse_runs(part))
        chance = chances(part, cox_fit(part, floor=floor), floor=floor)
        keep = part.total(np.isnan(chance).astype(np.float64)) == 0.0
        pvalue, error = np.full(len(part), np.nan), np.full(len(part), np.nan)
        if keep.any():
            kept, centre = part.only(keep), chance[part.spread(keep)]
            seen = refitted(kept, floor)
            pvalue[keep], error[keep] = resampled(
                kept, lambda drawn: refitted(drawn, floor), seen, side="greater", drawing=drawing, chance=centre
            )
        return np.where(np.isnan(pvalue), 1.0, pvalue), error

    law = law.settled(doubtful, redraw, floor=drawing.least("greater"))
    found.put(fine, law)
    return found


def chances(tally: Tally, fit: CoxFit, *, floor: float) -> Floats:
    """Return the chance of each cell by the calibration line of its segment; NaN where there is none."""
    eta = tally.spread(fit.intercept) + tally.spread(fit.slope) * logit(tally.score, floor)
    chance: Floats = special.expit(eta)
    return chance


def _tested(tally: Tally, directions: Callable[[Tally], tuple[Floats, list[Floats]]], drawing: Drawing) -> Found:
    chance, along = directions(tally)

    def redraw(where: Bools) -> tuple[Floats, Floats]:
        part = tally.only(where)
        return resampled(
            part,
            lambda drawn: squares_over_spread(drawn, *directions(drawn))[0],
            found.statistic[where],
            side="greater",
            drawing=drawing,
        )

    found = _law(tally, chance, along)
    return found.settled(_doubtful(tally, chance, along), redraw, floor=drawing.least("greater"))


def _law(tally: Tally, chance: Floats, along: Sequence[Floats]) -> Found:
    statistic, df = squares_over_spread(tally, chance, along)
    pvalue = np.where(df > 0, special.gammaincc(np.maximum(df, 1.0) / 2.0, statistic / 2.0), np.nan)
    found = Found.of_law(np.where(df > 0, statistic, np.nan), pvalue, "chi2")
    return replace(found, df=np.where(df > 0, df, np.nan))


def squares_over_spread(tally: Tally, chance: Floats, along: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return the sum of squares over directions, and how many there are."""
    residual = tally.positive - tally.weight * chance
    spread = tally.squared * chance * (1.0 - chance)
    statistic, df = np.zeros(len(tally)), np.zeros(len(tally))
    for x in along:
        variance = tally.total(spread * x * x)
        there = variance > 0.0
        statistic += np.where(there, tally.total(x * residual) ** 2 / np.where(there, variance, 1.0), 0.0)
        df += there
    return statistic, df


def _doubtful(tally: Tally, chance: Floats, along: Sequence[Floats]) -> Bools:
    """Return where few rows of an outcome are expected, or one row moves the sums far."""
    spread, row = tally.squared * chance * (1.0 - chance), tally.squared / tally.weight
    reach = np.zeros_like(chance)
    for x in along:
        variance = tally.spread(tally.total(spread * x * x))
        reach += np.where(
            (variance > 0.0) & (spread > 0.0), (row * x) ** 2 / np.where(variance > 0.0, variance, 1.0), 0
        )
    size = ratio(tally.total(tally.weight), tally.total(tally.squared))
    expected = tally.total(tally.weight * chance) * size
    rare = np.minimum(expected, tally.total(tally.weight) * size - expected) < FEW_EVENTS
    return np.asarray(rare | (segment_max(reach, tally.starts) > FAR**2))


def orthogonal(tally: Tally, chance: Floats, along: Sequence[Floats]) -> list[Floats]:
    """Return directions made orthogonal, one after the other, in the variance; 0 where nothing is left."""
    spread = tally.squared * chance * (1.0 - chance)
    made: list[Floats] = []
    for x in along:
        made.append(_less(tally, x, made, spread))
    return made


def _less(tally: Tally, x: Floats, others: Sequence[Floats], spread: Floats) -> Floats:
    """Return a direction less its part along others, which are orthogonal by `spread`."""
    before = tally.total(spread * x * x)
    for other in (*others, *others):  # twice: what rounding leaves of the first time
        size = tally.total(spread * other * other)
        part = np.where(size > 0.0, tally.total(spread * x * other) / np.where(size > 0.0, size, 1.0), 0.0)
        x = x - tally.spread(part) * other
    left = tally.total(spread * x * x)
    return x * tally.spread(left > _NOTHING * before)


def bends(tally: Tally, chance: Floats, floor: float) -> list[Floats]:
    """Return the directions of curvature, less what intercept and slope take up."""
    information = tally.weight * chance * (1.0 - chance)
    total = tally.total(information)
    place = ratio(2.0 * tally.running(information) - information, tally.spread(total)) - 1.0
    ones, z = np.ones_like(place), logit(tally.score, floor)
    line = [ones, _less(tally, z, [ones], information)]
    curves = [(3.0 * place**2 - 1.0) / 2.0, (5.0 * place**3 - 3.0 * place) / 2.0]
    free = [_less(tally, curve, line, information) for curve in curves]
    return orthogonal(tally, chance, free)


def refitted(tally: Tally, floor: float) -> Floats:
    """Return the statistic of curvature with the line fitted to these labels; NaN where there is none."""
    fit = cox_fit(tally, floor=floor)
    fine = fit.status == Status.FINE
    found = np.full(len(tally), np.nan)
    if fine.any():
        some, chance = tally.only(fine), chances(tally, fit, floor=floor)[tally.spread(fine)]
        statistic, df = squares_over_spread(some, chance, bends(some, chance, floor))
        found[fine] = np.where(df > 0, statistic, np.nan)
    return found


def coarse_runs(tally: Tally) -> Ints:
    """Return where at most so many runs of neighbouring scores begin, of equal information, or of rows."""
    spread = tally.weight * tally.score * (1.0 - tally.score) + 1e-6 * tally.weight
    asked = np.where(tally.sizes > _CELLS, _CELLS, 0)
    bins = quantile_bins(spread, tally.starts, np.maximum(asked, 1))
    own = np.arange(len(tally.score))
    return run_starts(np.where(tally.spread(asked) > 0, bins, own), tally.starts)


def blank(segments: int) -> Found:
    """Return what is found of segments without a line: nothing."""
    nothing = np.full(segments, np.nan)
    return Found.of_law(nothing.copy(), nothing.copy(), "")
