"""Kernels that need the order of scores: bins of about equal weight, ranking, cumulative differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import (
    effective_rows,
    last_cells,
    power_of_two,
    ratio,
    running_sum,
    segment_max,
    segment_sum,
    spread,
)
from calframe._kernels._intervals import normal_quantile
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

_FEW_ROWS = 4.0 - 1e-9  # fewer effective rows of a class say nothing of its spread
_RARE_ROWS, _RARE_SHARE = 10.0, 0.05  # below both, the spread of a class is known badly, and its AUC is skewed
_ONE_ROW = 1.0 + 1e-9  # effective rows of a single row, with room for rounding
_ROUNDING = 1e-12  # sums of weights that are not whole are off by less, relatively
_EXACT = 2.0**52  # sums of whole numbers and their halves are exact up to here
_HALVINGS = 64  # of an interval within [0, 1]: down to the spacing of numbers
_TERMS = 10  # of the series below, the others are less than 1e-19 of the sum


def quantile_bins(weight: Floats, starts: Ints, counts: Ints) -> Ints:
    """Return bins of about equal weight for cells in score order, each cell whole.

    A cell goes to bin ``floor(M (weight before it + half its own) / total)``, so equal scores stay together and
    doubling every weight changes nothing. Bins may stay empty where one cell is heavy.

    Parameters
    ----------
    weight : ndarray of shape (n_cells,)
        Weight of each cell, ascending in score within a segment.
    starts : ndarray of shape (n_segments,)
        The first cell of each segment.
    counts : ndarray of shape (n_segments,)
        Bins wanted in each segment, M.

    Examples
    --------
    >>> quantile_bins(np.array([6.0, 1.0, 1.0, 2.0]), np.array([0]), np.array([5]))
    array([1, 3, 3, 4])
    """
    many = spread(counts, starts, len(weight)).astype(np.float64)
    middle, total = middles(weight, starts)
    bins: Ints = np.minimum(np.floor(many * middle / total), many - 1.0).astype(np.int64)
    return bins


def middles(weight: Floats, starts: Ints) -> tuple[Floats, Floats]:
    """Return for each cell the weight before it and half its own, and that of its segment, both in some unit.

    Sums of whole weights are exact. Otherwise what lies just below a multiple of a share of the total by rounding is
    lifted over it, so that no bin depends on the unit of weights.
    """
    cells = len(weight)
    middle, total = _running_middle(weight, starts)
    whole = np.logical_and.reduceat(weight == np.floor(weight), starts) & (segment_sum(weight, starts) < _EXACT)
    middle *= spread(np.where(whole, 1.0, 1.0 + _ROUNDING), starts, cells)
    return middle, spread(total, starts, cells)


def share_below(weight: Floats, starts: Ints) -> Floats:
    """Return the share of its segment's weight that lies below each cell, half its own included; 0 without weight.

    Examples
    --------
    >>> share_below(np.array([1.0, 2.0, 1.0]), np.array([0]))
    array([0.125, 0.5  , 0.875])
    """
    share, total = _running_middle(weight, starts)
    share /= spread(total, starts, len(weight))
    return np.minimum(share, 1.0, out=share)


def _running_middle(weight: Floats, starts: Ints) -> tuple[Floats, Floats]:
    """Return the weight before each cell and half its own, and the total of each segment (1 where it is 0)."""
    total = segment_sum(weight, starts)
    unit = power_of_two(total)
    scaled = weight / spread(unit, starts, len(weight))
    middle = running_sum(scaled, starts)
    middle -= scaled / 2.0
    return np.maximum(middle, 0.0, out=middle), np.where(total > 0, total / unit, 1.0)


def auc(tally: Tally) -> Floats:
    """Return the probability that a positive outranks a negative, ties counting half; NaN with one class.

    ``sum_ij w_i w_j (1[s_i > s_j] + 1[s_i = s_j] / 2) / (sum_i w_i sum_j w_j)`` over positives i and negatives j:
    the area under the ROC curve. Scores may be any numbers, such as logits.

    References
    ----------
    Hanley, J. A. and McNeil, B. J. (1982). The meaning and use of the area under a receiver operating characteristic
    (ROC) curve. Radiology 143, 29-36. https://doi.org/10.1148/radiology.143.1.7063747

    Examples
    --------
    A positive at 0.4 and one at 0.8 against negatives at 0.1 and 0.4: of four pairs three are right and one is tied.

    >>> rows, positive = np.array([1.0, 2.0, 1.0]), np.array([0.0, 1.0, 1.0])
    >>> auc(Tally.of_counts(np.array([0]), np.array([0.1, 0.4, 0.8]), rows, positive))
    array([0.875])
    """
    negative = tally.negative
    above = tally.total(tally.positive * share_below(negative, tally.starts))
    value = np.clip(ratio(above, tally.total(tally.positive)), 0.0, 1.0)
    return np.where(tally.total(negative) > 0, value, np.nan)


def auc_interval(tally: Tally, *, level: float) -> tuple[Floats, Floats]:
    """Return a confidence interval for `auc`: the normal interval with DeLong's variance, cut at 0 and 1.

    With placement values ``V_i``, the share of the other class that row i outranks, the variance is the sum over both
    classes of ``sum w_i^2 (V_i - mean V)^2 / (sum w_i)^2 * m / (m - 1)``, ``m = (sum w)^2 / sum w^2`` the effective
    rows of the class: without weights DeLong's ``S / m``. It says next to nothing where a class has fewer than four
    rows, and is 0 where the classes are separated (AUC 0 or 1). There the interval is the set of all values a that
    Hoeffding's inequality for two-sample U statistics does not reject,
    ``k (A ln(A / a) + (1 - A) ln((1 - A) / (1 - a))) <= ln(2 / alpha)``
    with A the AUC and k the effective rows of the smaller class. Without weights this set covers at least `level` of
    the time, whatever the distributions; at A = 1 it is Clopper-Pearson's ``[(alpha / 2)^(1 / k), 1]`` of k right.

    Where a class has fewer than ten rows and fewer than one in twenty, it is Student's interval of the log odds of the
    AUC with that variance: the few rows say little of their own spread, and their AUC is skewed.

    Two tables, of two rows a class or more, keep the width 0 of DeLong's interval, as in pROC: one distinct score (it
    ranks nothing: 1/2), and hard labels in place of scores, 0 for one class and 1 for the other.

    Parameters
    ----------
    tally : Tally
        Scores may be any numbers.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray of shape (n_segments,)
        In [0, 1]; NaN with one class.

    References
    ----------
    DeLong, E. R., DeLong, D. M. and Clarke-Pearson, D. L. (1988). Comparing the areas under two or more correlated
    receiver operating characteristic curves. Biometrics 44, 837-845. https://doi.org/10.2307/2531595

    Hoeffding, W. (1963). Probability inequalities for sums of bounded random variables. Journal of the American
    Statistical Association 58, 13-30. https://doi.org/10.1080/01621459.1963.10500830

    Examples
    --------
    Two positives above two negatives: AUC 1, and hardly anything is known.

    >>> rows, positive = np.ones(4), np.array([0.0, 0.0, 1.0, 1.0])
    >>> low, high = auc_interval(Tally.of_counts(np.array([0]), np.arange(4.0), rows, positive), level=0.95)
    >>> low.round(4), high
    (array([0.1581]), array([1.]))
    """
    negative, value = tally.negative, auc(tally)
    above, positives = _placement_variance(tally, tally.positive, tally.squared_positive, negative, value)
    below, negatives = _placement_variance(tally, negative, tally.squared_negative, tally.positive, 1.0 - value)
    error = np.sqrt(above + below)
    half = normal_quantile(level) * error
    low, high = np.maximum(value - half, 0.0), np.minimum(value + half, 1.0)
    fewest = np.minimum(positives, negatives)
    rare = (fewest < _RARE_ROWS) & (fewest < _RARE_SHARE * (positives + negatives)) & (fewest > _ONE_ROW)
    low[rare], high[rare] = _student_interval(value[rare], error[rare], fewest[rare], level=level)
    known = (tally.sizes == 1) | _hard_labels(tally)
    unsure = (fewest <= _ONE_ROW) | (((fewest < _FEW_ROWS) | _separated(tally)) & ~known)
    unsure &= ~np.isnan(value)
    low[unsure], high[unsure] = _hoeffding_interval(value[unsure], fewest[unsure], level=level)
    return low, high


def _placement_variance(
    tally: Tally, own: Floats, squared: Floats, other: Floats, mean: Floats
) -> tuple[Floats, Floats]:
    """Return one class's part of the variance of the AUC (NaN with one row), and its effective rows."""
    off = share_below(other, tally.starts) - tally.spread(mean)
    total = tally.total(own)
    rows = effective_rows(total, tally.total(squared))
    many = np.where(rows > _ONE_ROW, rows, np.nan)
    return ratio(tally.total(squared * off**2), total**2) * many / (many - 1.0), rows


def _separated(tally: Tally) -> Bools:
    """Return whether all scores of one class are above all of the other: the cells say it without rounding."""
    first, last = [], []
    cell, beyond = np.arange(len(tally.score)), len(tally.score)
    for has in (tally.positive > 0, tally.negative > 0):
        first.append(np.minimum.reduceat(np.where(has, cell, beyond), tally.starts))
        last.append(np.maximum.reduceat(np.where(has, cell, -1), tally.starts))
    apart: Bools = (last[1] < first[0]) | (last[0] < first[1])
    return apart


def _hard_labels(tally: Tally) -> Bools:
    """Return whether the scores of a segment are 0 and 1."""
    last = last_cells(tally.starts, len(tally.score))
    hard: Bools = (last == tally.starts + 1) & (tally.score[tally.starts] == 0.0) & (tally.score[last] == 1.0)
    return hard


def _student_interval(value: Floats, error: Floats, rows: Floats, *, level: float) -> tuple[Floats, Floats]:
    """Return Student's interval of the log odds of the AUC, with the degrees of freedom of the rare class."""
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = special.logit(value)
        half = special.stdtrit(rows - 1.0, (1.0 + level) / 2.0) * error / (value * (1.0 - value))
        low, high = special.expit(centre - half), special.expit(centre + half)
    return np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)


def _hoeffding_interval(value: Floats, pairs: Floats, *, level: float) -> tuple[Floats, Floats]:
    limit = np.log(2.0 / (1.0 - level)) / pairs
    return _lower_end(value, limit), 1.0 - _lower_end(1.0 - value, limit)


def _lower_end(value: Floats, limit: Floats) -> Floats:
    """Return the smallest chance whose relative entropy from `value` is within the limit, by bisection."""
    low, high = np.zeros_like(value), value.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        far = special.rel_entr(value, middle) + special.rel_entr(1.0 - value, 1.0 - middle) > limit
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    return np.where(value >= 1.0, np.exp(-limit), high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ecce:
    """Cumulative calibration errors per segment.

    Attributes
    ----------
    range : ndarray
        Largest less smallest cumulative difference, `ecce_r`; 0 is perfect.
    largest : ndarray
        The cumulative difference farthest from 0, `ecce_mad`, without its sign.
    sigma : ndarray
        Standard deviation of the last cumulative difference if the scores are right.
    """

    range: Floats
    largest: Floats
    sigma: Floats


def ecce(tally: Tally) -> Ecce:
    """Return the cumulative calibration errors: how far sums of ``label - score`` wander from 0 along the scores.

    ``C_k = sum_{i: s_i <= s_(k)} w_i (y_i - s_i) / W`` at the distinct scores ``s_(k)``, and ``C_0 = 0``. The range is
    ``max C - min C``, the largest deviation ``max |C|``; both have ``sigma = sqrt(sum w_i^2 s_i (1 - s_i)) / W`` as
    unit: the ratios have the laws of `ecce_range_pvalue` and `ecce_mad_pvalue` on many rows.

    References
    ----------
    Arrieta-Ibarra, I., Gujral, P., Tannen, J., Tygert, M. and Xu, C. (2022). Metrics of calibration for probabilistic
    predictions. Journal of Machine Learning Research 23(351). https://doi.org/10.48550/arXiv.2205.09680

    Examples
    --------
    >>> rows, positive = np.array([2.0, 2.0]), np.array([1.0, 1.0])
    >>> found = ecce(Tally.of_counts(np.array([0]), np.array([0.25, 0.75]), rows, positive))
    >>> found.range, found.largest
    (array([0.125]), array([0.125]))
    """
    total = tally.total(tally.weight)
    unit = power_of_two(total)
    path = running_sum((tally.positive - tally.weight * tally.score) / tally.spread(unit), tally.starts)
    top = np.maximum(segment_max(path, tally.starts), 0.0)
    bottom = np.minimum(np.minimum.reduceat(path, tally.starts), 0.0)
    variance = tally.total(tally.squared * (tally.score * (1.0 - tally.score)))
    whole = total / unit
    return Ecce(
        range=(top - bottom) / whole,
        largest=np.maximum(top, np.abs(bottom)) / whole,
        sigma=np.sqrt(variance) / total,
    )


def ecce_noise(tally: Tally, found: Ecce) -> Floats:
    """Return the standard deviation of the last cumulative difference, whatever the true rates are.

    ``sigma^2 = sum w^2 (y - s)^2 / W^2``, which the gaps between rates and scores only make larger, or the sigma of
    right scores where that is larger.
    """
    squares = tally.squared_positive * (1.0 - tally.score) ** 2 + tally.squared_negative * tally.score**2
    return np.maximum(np.sqrt(tally.total(squares)) / tally.total(tally.weight), found.sigma)


def ecce_range_interval(found: Ecce, noise: Floats, *, level: float) -> tuple[Floats, Floats]:
    """Return an interval for the range, per segment, that holds at least `level`.

    The observed path of cumulative differences is the true one plus noise, so that the error is not off by more than
    the error of the noise alone. That has the law of `ecce_range_pvalue` with the sigma of `ecce_noise`. The interval
    is the error seen, that quantile of the noise to either side, cut at 0 and 1: wide, but hardly ever too short.
    """
    return _around(found.range, noise, ecce_range_pvalue, level=level)


def ecce_mad_interval(found: Ecce, noise: Floats, *, level: float) -> tuple[Floats, Floats]:
    """Return an interval for the largest deviation: as `ecce_range_interval`, with the law of `ecce_mad_pvalue`."""
    return _around(found.largest, noise, ecce_mad_pvalue, level=level)


def _around(value: Floats, noise: Floats, pvalue: Callable[[Floats], Floats], *, level: float) -> tuple[Floats, Floats]:
    reach = _quantile_of(pvalue, 1.0 - level) * noise
    return np.maximum(value - reach, 0.0), np.minimum(value + reach, 1.0)


def _quantile_of(pvalue: Callable[[Floats], Floats], tail: float) -> float:
    """Return the value whose p-value is `tail`, by bisection."""
    low, high = 0.0, 40.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if float(pvalue(np.array([middle]))[0]) > tail else (low, middle)
    return high


def ecce_range_pvalue(ratio_to_sigma: Floats) -> Floats:
    """Return the chance that the range of Brownian motion on [0, 1] is at least this, to its last digits.

    ``P(R >= x) = 8 sum_{j >= 1} (-1)^(j - 1) j Q(j x)``, Q the upper tail of the normal law; below 1 by the series
    ``P(R < x) = sum_{k >= 0} (8 / x^2 + 2 / u^2) exp(-2 u^2 / x^2)`` with ``u = (k + 1/2) pi``.

    References
    ----------
    Feller, W. (1951). The asymptotic distribution of the range of sums of independent random variables. Annals of
    Mathematical Statistics 22, 427-432. https://doi.org/10.1214/aoms/1177729589

    Examples
    --------
    >>> ecce_range_pvalue(np.array([0.0, 2.49767])).round(5)
    array([1.  , 0.05])
    """
    x, small, large = _halves(ratio_to_sigma)
    tail, body = np.zeros_like(x), np.zeros_like(x)
    for j in range(1, _TERMS + 1):
        tail += 8.0 * (-1.0) ** (j - 1) * j * special.ndtr(-j * large)
    for k in range(_TERMS):
        square = ((k + 0.5) * np.pi) ** 2
        body += (8.0 / small**2 + 2.0 / square) * np.exp(-2.0 * square / small**2)
    return _pvalue(x, tail, body)


def ecce_mad_pvalue(ratio_to_sigma: Floats) -> Floats:
    """Return the chance that the largest deviation of Brownian motion on [0, 1] is at least this, to its last digits.

    ``P(max |B| >= x) = 4 sum_{j >= 0} (-1)^j Q((2 j + 1) x)``, Q the upper tail of the normal law; below 1 by the
    series ``P(max |B| < x) = 2 sum_{k >= 0} (-1)^k / u exp(-u^2 / (2 x^2))`` with ``u = (k + 1/2) pi``.

    References
    ----------
    Feller, W. (1971). An Introduction to Probability Theory and Its Applications, volume 2, 2nd edition, section X.5.
    Wiley.

    Examples
    --------
    >>> ecce_mad_pvalue(np.array([0.0, 2.2414])).round(5)
    array([1.  , 0.05])
    """
    x, small, large = _halves(ratio_to_sigma)
    tail, body = np.zeros_like(x), np.zeros_like(x)
    for j in range(_TERMS):
        root = (j + 0.5) * np.pi
        tail += 4.0 * (-1.0) ** j * special.ndtr(-(2 * j + 1) * large)
        body += 2.0 * (-1.0) ** j / root * np.exp(-0.5 * (root / small) ** 2)
    return _pvalue(x, tail, body)


def _halves(ratio_to_sigma: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the argument, and its parts below and above 1 with 1 elsewhere; below 1e-3 nothing changes any more."""
    x = np.asarray(ratio_to_sigma, dtype=np.float64)
    return x, np.clip(x, 1e-3, 1.0), np.maximum(x, 1.0)


def _pvalue(x: Floats, tail: Floats, body: Floats) -> Floats:
    found = np.where(x > 1.0, tail, 1.0 - body)
    return np.where(np.isnan(x), np.nan, np.clip(found, 0.0, 1.0))
