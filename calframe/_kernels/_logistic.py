"""Calibration intercept and slope, and calibration-in-the-large: logistic regressions on the logit of the score.

Whether a segment has a finite fit is tested beforehand, exactly: on separable data Newton's iteration looks converged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from calframe._kernels._binned import last_cells, segment_sum, starts_of
from calframe._kernels._intervals import normal_quantile
from calframe._kernels._newton import Regression, crossed, maximum_likelihood, solved
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

FLOOR = 1e-12  # a score of exactly 0 has no logit
_DISTANCE = 8.0  # the largest squared distance of the classes, in standard deviations, that is believed at first
_FAR = 700.0  # exp() of it is still finite
_SAME = 1e-12  # relative change of an end that is none
_ROUNDS = 100  # 5 are usual
_ROUNDING = 1e-12  # sums of weights are off by less, relatively


class Status(IntEnum):
    """Why a segment has no finite fit."""

    FINE = 0
    SEPARABLE = 1
    ONE_CLASS = 2
    ONE_SCORE = 3


def status_of(feature: Floats, positive: Floats, negative: Floats, starts: Ints) -> Ints:
    """Return, for regressions on one feature and a constant, the `Status` of each segment.

    There is no finite fit if only one class occurs, if the feature has one value, or if a value of it separates the
    classes: no negative above it and no positive below it, or the reverse. On the value itself both may lie.

    Parameters
    ----------
    feature : ndarray of shape (n_cells,)
        Not descending within a segment.
    positive, negative : ndarray of shape (n_cells,)
        Weight of the positives and of the negatives.
    starts : ndarray of int64, shape (n_segments,)
        The first cell of each segment.

    References
    ----------
    Albert, A. and Anderson, J. A. (1984). On the existence of maximum likelihood estimates in logistic regression
    models. Biometrika 71, 1-10. https://doi.org/10.1093/biomet/71.1.1
    """
    last = last_cells(starts, len(feature))
    low, high, some = _range(feature, positive > 0, starts, last)
    low_no, high_no, some_no = _range(feature, negative > 0, starts, last)
    status = np.where((high_no <= low) | (high <= low_no), Status.SEPARABLE, Status.FINE).astype(np.int64)
    status[feature[starts] == feature[last]] = Status.ONE_SCORE
    status[~(some & some_no)] = Status.ONE_CLASS
    return status


@dataclass(frozen=True, slots=True, kw_only=True)
class CoxFit:
    """Calibration intercept and slope of each segment; NaN where `status` is not 0.

    Attributes
    ----------
    intercept, slope : ndarray of shape (n_segments,)
        0 and 1 are perfect.
    intercept_variance, slope_variance, covariance : ndarray
        Their variances and covariance.
    status : ndarray of int64
        0 fine, 1 separable (or so nearly that no finite fit can be computed), 2 one class, 3 one distinct score.
    """

    intercept: Floats
    slope: Floats
    intercept_variance: Floats
    slope_variance: Floats
    covariance: Floats
    status: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class CitlFit:
    """Calibration-in-the-large of each segment; NaN where `status` is not 0.

    Attributes
    ----------
    citl, variance : ndarray of shape (n_segments,)
        The intercept at slope 1, 0 is perfect, and its variance.
    status : ndarray of int64
        0 fine, 2 one class.
    """

    citl: Floats
    variance: Floats
    status: Ints


def logit(score: Floats, floor: float = FLOOR) -> Floats:
    """Return ``ln(max(s, floor) / max(1 - s, floor))``."""
    rest: Floats = 1.0 - score
    if not (score.size and score.min() >= floor and rest.min() >= floor):  # two comparisons cost more than two minima
        score = np.maximum(score, floor)
        np.maximum(rest, floor, out=rest)
    np.divide(score, rest, out=rest)
    return np.log(rest, out=rest)


def rows_at_ends(tally: Tally, floor: float = FLOOR) -> Ints:
    """Return the number of rows of each segment whose score is so near 0 or 1 that the floor is its logit."""
    there = np.minimum(tally.score, 1.0 - tally.score) < floor
    return np.rint(tally.total(tally.rows * there)).astype(np.int64)


def negative_weight(weight: Floats, positive: Floats) -> Floats:
    """Return the weight of the negatives; what sums of weights leave by rounding is none."""
    rest = weight - positive
    rest *= rest > _ROUNDING * weight
    return rest


def cox_fit(tally: Tally, *, floor: float = FLOOR) -> CoxFit:
    """Fit ``logit P(positive) = intercept + slope logit(score)`` in each segment, by maximum likelihood.

    The variances are those of the Fisher information where weights are counts of rows or, as rows, all the same.
    Else weights are importance weights, and the variances are those of the sandwich with the squared weights, but not
    less than with ``p (1 - p)`` for ``(y - p)^2`` in it: with few rows of one class the sandwich alone is far too
    small.

    References
    ----------
    Cox, D. R. (1958). Two further applications of a model for binary regression. Biometrika 45, 562-565.
    https://doi.org/10.1093/biomet/45.3-4.562
    White, H. (1982). Maximum likelihood estimation of misspecified models. Econometrica 50, 1-25.
    https://doi.org/10.2307/1912526

    Examples
    --------
    At score 0.5 four of ten are positive, at score 0.8 six of ten. So the intercept is logit 0.4, and the slope
    (logit 0.6 - logit 0.4) / ln 4.

    >>> ten = np.array([10.0, 10.0])
    >>> tally = Tally.of_counts(np.array([0]), np.array([0.5, 0.8]), ten, np.array([4.0, 6.0]))
    >>> fit = cox_fit(tally)
    >>> fit.intercept.round(9), fit.slope.round(9)
    (array([-0.40546511]), array([0.5849625]))
    """
    z, negative = logit(tally.score, floor), negative_weight(tally.weight, tally.positive)
    status = status_of(z, tally.positive, negative, tally.starts)
    fine = status == Status.FINE
    regression, centre, start = _cox_regression(tally, z, negative, fine)
    theta, information = maximum_likelihood(regression, start=start)
    lost: Bools = np.asarray(np.isnan(theta).any(axis=0))
    if lost.any():  # a start where every chance is 0 or 1 to rounding leads nowhere; the middle is slower, but safe
        theta[:, lost], information[..., lost] = maximum_likelihood(regression.only(lost))
    one = np.ones_like(centre)
    back = np.array([[one, 0.0 * one], [-centre, one]])  # from the level at the mean to the intercept
    slope, intercept = np.einsum("ijs,js->is", back, theta)
    spread = _covariance(regression, theta, information, back, _squares(tally, fine))
    status[fine] = np.where(np.isnan(slope), Status.SEPARABLE, Status.FINE)
    return CoxFit(
        intercept=_among(fine, intercept),
        slope=_among(fine, slope),
        intercept_variance=_among(fine, spread[1, 1]),
        slope_variance=_among(fine, spread[0, 0]),
        covariance=_among(fine, spread[0, 1]),
        status=status,
    )


def citl_fit(tally: Tally, *, floor: float = FLOOR) -> CitlFit:
    """Fit calibration-in-the-large, ``logit P(positive) = citl + logit(score)``, in each segment; see `cox_fit`.

    This is not the intercept of `cox_fit`, whose slope is free. It is finite as soon as both classes occur.

    Examples
    --------
    The table of `cox_fit`: ``expit(a) + expit(a + ln 4) = 1`` at ``a = -ln 2``.

    >>> ten = np.array([10.0, 10.0])
    >>> tally = Tally.of_counts(np.array([0]), np.array([0.5, 0.8]), ten, np.array([4.0, 6.0]))
    >>> citl_fit(tally).citl.round(9)
    array([-0.69314718])
    """
    z, negative = logit(tally.score, floor), negative_weight(tally.weight, tally.positive)
    yes, no = tally.total(tally.positive), tally.total(negative)
    fine = (yes > 0) & (no > 0)
    whole = Regression(starts=tally.starts, positive=tally.positive, negative=negative, features=(None,), offset=z)
    regression = whole.only(fine)
    start = np.log(yes[fine] / no[fine]) - (tally.total(tally.weight * z) / tally.total(tally.weight))[fine]
    theta, information = maximum_likelihood(regression, start=start[None, :])
    spread = _covariance(regression, theta, information, np.ones((1, *theta.shape)), _squares(tally, fine))
    status = np.where(fine, Status.FINE, Status.ONE_CLASS).astype(np.int64)
    return CitlFit(citl=_among(fine, theta[0]), variance=_among(fine, spread[0, 0]), status=status)


def wald_interval(estimate: Floats, variance: Floats, *, level: float) -> tuple[Floats, Floats]:
    """Return ``estimate ± z sqrt(variance)``, and the whole line where either is unknown: nothing bounds it there."""
    known = np.isfinite(estimate) & (variance >= 0.0)
    centre, half = np.where(known, estimate, 0.0), normal_quantile(level) * np.sqrt(np.where(known, variance, np.inf))
    return centre - half, centre + half


def cox_interval(fit: CoxFit, *, level: float) -> dict[str, tuple[Floats, Floats]]:
    """Return Wald intervals of `intercept` and `slope`.

    A segment without a finite fit has the whole line: it says nothing (one class, one distinct score), or bounds the
    slope on one side at most (separable).

    Examples
    --------
    >>> ten = np.array([10.0, 10.0])
    >>> tally = Tally.of_counts(np.array([0]), np.array([0.5, 0.8]), ten, np.array([4.0, 6.0]))
    >>> low, high = cox_interval(cox_fit(tally), level=0.9)["slope"]
    >>> low.round(3), high.round(3)
    (array([-0.498]), array([1.668]))
    """
    return {
        "intercept": wald_interval(fit.intercept, fit.intercept_variance, level=level),
        "slope": wald_interval(fit.slope, fit.slope_variance, level=level),
    }


def citl_interval(tally: Tally, fit: CitlFit, *, level: float, floor: float = FLOOR) -> tuple[Floats, Floats]:
    """Return Wald intervals of calibration-in-the-large, and exact half-lines where one class is all there is.

    Without positives the upper end is the largest `a` that shows none with probability ``(1 - level) / 2``,
    ``prod_i (1 - expit(a + logit s_i)) = (1 - level) / 2``, as in the interval of Clopper and Pearson; without
    negatives, mirrored. Weights count as effective rows, ``w sum w / sum w^2``.

    Examples
    --------
    Twenty scores of a half and no positive: a chance of up to ``1 - 0.05^(1/20) = 0.139108`` shows that.

    >>> tally = Tally.of_counts(np.array([0]), np.array([0.5]), np.array([20.0]), np.array([0.0]))
    >>> low, high = citl_interval(tally, citl_fit(tally), level=0.9)
    >>> float(low[0]), round(float(1 / (1 + np.exp(-high[0]))), 6)
    (-inf, 0.139108)
    """
    low, high = wald_interval(fit.citl, fit.variance, level=level)
    lone = fit.status == Status.ONE_CLASS
    if lone.any():
        none = tally.total(tally.positive)[lone] == 0
        ends = _exact_end(tally, lone, none, -np.log((1.0 - level) / 2.0), floor)
        high[lone] = np.where(none, ends, np.inf)
        low[lone] = np.where(none, -np.inf, -ends)
    return low, high


def _exact_end(tally: Tally, lone: Bools, none: Bools, bound: float, floor: float) -> Floats:
    """Return a with ``sum_i w_i log(1 + exp(a + z_i)) = bound``, z mirrored where all are positive.

    The sum is convex and rises, so from the second step on Newton's iteration comes down to the root.
    """
    cells = tally.spread(lone)
    sizes = tally.sizes[lone]
    starts = starts_of(sizes)
    z = logit(tally.score[cells], floor) * np.repeat(np.where(none, 1.0, -1.0), sizes)
    scale = tally.total(tally.weight)[lone] / tally.total(tally.squared)[lone]
    weight = tally.weight[cells] * np.repeat(scale, sizes)
    end = np.log(bound / segment_sum(weight * np.exp(z), starts))
    for _ in range(_ROUNDS):
        x = np.repeat(end, sizes) + z
        above = segment_sum(weight * np.logaddexp(0.0, x), starts) - bound
        move = above / segment_sum(weight / (1.0 + np.exp(np.minimum(-x, _FAR))), starts)
        end = end - move
        if (np.abs(move) <= _SAME * (1.0 + np.abs(end))).all():
            break
    return end


def _among(fine: Bools, values: Floats) -> Floats:
    """Return values of the segments marked, and NaN for the others."""
    out = np.full(len(fine), np.nan)
    out[fine] = values
    return out


def _cox_regression(tally: Tally, z: Floats, negative: Floats, fine: Bools) -> tuple[Regression, Floats, Floats]:
    """Return the regressions on the logit less its mean, those means, and where to begin.

    The beginning is Fisher's linear discriminant of the cells, exact for normal classes of equal variance; it is
    bounded where they hardly overlap.
    """
    whole = Regression(starts=tally.starts, positive=tally.positive, negative=negative, features=(None,))
    regression = whole.only(fine)
    starts, sizes = regression.starts, regression.sizes
    z = z if fine.all() else z[tally.spread(fine)]
    yes, no = segment_sum(regression.positive, starts), segment_sum(regression.negative, starts)
    weight = regression.positive + regression.negative
    centre = segment_sum(weight * z, starts) / (yes + no)
    x = z - np.repeat(centre, sizes)
    mean = segment_sum(regression.positive * x, starts) / yes
    mean_no = segment_sum(regression.negative * x, starts) / no
    weight *= x
    weight *= x
    gap = mean - mean_no
    within = segment_sum(weight, starts) / (yes + no) - yes * no * (gap / (yes + no)) ** 2
    slope = gap / np.maximum(within, gap**2 / _DISTANCE)
    start = np.array([slope, np.log(yes / no) - slope * (mean + mean_no) / 2.0])
    return replace(regression, features=(x, None)), centre, start


@dataclass(frozen=True, slots=True, kw_only=True)
class _Squares:
    """What the squares of the weights say of the segments that are fitted."""

    squares: Regression  # squared weights in place of weights
    even: Bools  # where weights are counts of rows, or all equal
    ratio: Floats  # sum w^2 / sum w


def _squares(tally: Tally, fine: Bools) -> _Squares | None:
    """Return the squared weights; None where all weights are counts of rows."""
    if np.array_equal(tally.squared, tally.weight):
        return None
    ratio = tally.total(tally.squared) / tally.total(tally.weight)
    uneven = np.abs(tally.squared - tally.spread(ratio) * tally.weight) > _ROUNDING * tally.squared
    uneven |= np.abs(tally.squared * tally.rows - tally.weight**2) > _ROUNDING * tally.weight**2
    odd = [tally.total(cells.astype(np.float64)) > 0 for cells in (tally.squared != tally.weight, uneven)]
    negative = negative_weight(tally.squared, tally.squared_positive)
    whole = Regression(starts=tally.starts, positive=tally.squared_positive, negative=negative, features=(None,))
    return _Squares(squares=whole.only(fine), even=~(odd[0] & odd[1])[fine], ratio=ratio[fine])


def _covariance(
    regression: Regression, theta: Floats, information: Floats, back: Floats, squared: _Squares | None
) -> Floats:
    """Return the covariance of `back` times the coefficients, for each segment; see `cox_fit`."""
    size, many = theta.shape
    half = np.einsum("ijs,jks->iks", back, solved(information, np.repeat(np.eye(size)[:, :, None], many, axis=2)))
    usual: Floats = np.einsum("ijs,kjs->iks", half, back)
    if squared is None:
        return usual
    usual *= squared.ratio
    if squared.even.all():
        return usual
    yes, no = squared.squares.positive, squared.squares.negative
    robust = crossed(regression, theta, lambda p, q, cells: yes[cells] * q * q + no[cells] * p * p)
    model = crossed(regression, theta, lambda p, q, cells: (yes[cells] + no[cells]) * p * q)
    spread, least = (np.einsum("ijs,jks,lks->ils", half, meat, half) for meat in (robust, model))
    for j in range(size):
        spread[j, j] = np.maximum(spread[j, j], least[j, j])
    return np.where(squared.even, usual, spread)


def _range(feature: Floats, there: Bools, starts: Ints, last: Ints) -> tuple[Floats, Floats, Bools]:
    """Return the feature at the first and at the last cell marked in each segment, and whether there is one."""
    marked = np.append(np.flatnonzero(there), len(feature))
    first = marked[np.searchsorted(marked, starts)]
    final = marked[np.searchsorted(marked, last, side="right") - 1]
    return feature[np.minimum(first, last)], feature[np.minimum(final, last)], first <= last
