"""Binary maps that are logistic in one known feature: Platt scaling and temperature scaling, all segments at once.

No map decreases. Where the best one would, the best of those that do not is constant, and known without an iteration:
by concavity the sign of one sum says so. Whether a finite maximum exists is tested beforehand, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from calframe._fitting._fitted import Outcome, Parameters
from calframe._kernels import _special as special
from calframe._kernels._binned import power_of_two, segment_count, segment_max, segment_sum, sizes_of, spread
from calframe._kernels._logistic import FLOOR, negative_weight
from calframe._kernels._newton import Regression, derivatives, maximum_likelihood
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

Smoothing: TypeAlias = bool | float

_ROUNDING = 1e-12  # sums are off by less, relatively
_DISTANCE = 8.0  # the largest squared distance of the classes, in standard deviations, that is believed at first
FLATTEST = 1000.0  # the temperature that stands for an infinite one


class Features(NamedTuple):
    """What maps are linear in, for each cell: ``ln p``, ``ln(1 - p)`` and their difference z, the logit."""

    ln_p: Floats
    ln_rest: Floats
    z: Floats


class Fit(NamedTuple):
    """A fit of some segments: values, information as in `Parameters`, and where a constraint holds it."""

    values: Floats
    information: Floats
    bound: Bools


def features_of(tally: Tally, *, is_logit: bool = False, floor: float = FLOOR) -> Features:
    """Return ``ln p``, ``ln(1 - p)`` and the logit of the scores.

    Of probabilities, p and 1 - p are floored. Logits need no floor, ``ln p = -ln(1 + exp(-z))``; see `finite`.

    Examples
    --------
    >>> features = features_of(Tally.of_counts(np.array([0]), np.array([0.0, 0.8]), np.ones(2), np.ones(2)))
    >>> features.ln_p.round(4), features.ln_rest.round(4), features.z.round(4)
    (array([-27.631 ,  -0.2231]), array([ 0.    , -1.6094]), array([-27.631 ,   1.3863]))
    """
    if is_logit:
        z = finite(tally, floor)
        return Features(special.log_expit(z), special.log_expit(-z), z)
    ln_p = np.log(np.maximum(tally.score, floor))
    ln_rest = np.log(np.maximum(1.0 - tally.score, floor))
    return Features(ln_p, ln_rest, ln_p - ln_rest)


def finite(tally: Tally, floor: float = FLOOR) -> Floats:
    """Return the scores as they are, infinite ones as ``± ln(1 / floor)``.

    If the segment has a finite score that is larger, as that, so that the order stays.
    """
    known = np.isfinite(tally.score)
    if known.all():
        return tally.score
    largest = segment_max(np.where(known, np.abs(tally.score), -np.log(floor)), tally.starts)
    bound = tally.spread(np.maximum(largest, -np.log(floor)))
    return np.clip(tally.score, -bound, bound)


def smoothed(tally: Tally, *, smoothing: Smoothing) -> tuple[Floats, Floats]:
    """Return the weights of the positives and of the negatives of each cell, by smoothed targets if asked.

    Parameters
    ----------
    tally : Tally
        Distinct scores.
    smoothing : bool or float
        False: the labels. True: Platt's targets ``(N+ + 1) / (N+ + 2)`` and ``1 / (N- + 2)``, with N+ and N- the
        weights of the classes in the segment. A number e in (0, 1): ``(1 - e) y + e / 2``.

    References
    ----------
    Platt, J. (1999). Probabilistic outputs for support vector machines and comparisons to regularized likelihood
    methods. Advances in Large Margin Classifiers, 61-74.
    Szegedy, C. et al. (2016). Rethinking the Inception architecture for computer vision. CVPR 2016.
    https://doi.org/10.1109/CVPR.2016.308

    Examples
    --------
    Six positives and four negatives have the targets 7/8 and 1/6.

    >>> ten = Tally.of_counts(np.array([0]), np.array([0.2, 0.7]), np.array([4.0, 6.0]), np.array([0.0, 6.0]))
    >>> smoothed(ten, smoothing=True)[0] / ten.weight
    array([0.16666667, 0.875     ])
    """
    positive, negative = tally.positive, negative_weight(tally.weight, tally.positive)
    if smoothing is False:
        return positive, negative
    if smoothing is True:
        lost = positive * tally.spread(1.0 / (tally.total(positive) + 2.0))
        won = negative * tally.spread(1.0 / (tally.total(negative) + 2.0))
    else:
        lost, won = positive * (smoothing / 2.0), negative * (smoothing / 2.0)
    return positive - lost + won, negative - won + lost


def platt(
    tally: Tally,
    *,
    on: Literal["logit", "score"] = "logit",
    is_logit: bool = False,
    floor: float = FLOOR,
    smoothing: Smoothing = False,
) -> Parameters:
    """Fit ``P = expit(slope x + intercept)`` with ``slope >= 0`` by maximum likelihood, in each segment.

    Parameters
    ----------
    tally : Tally
        Distinct scores.
    on : {"logit", "score"}
        What x is: the logit of the score, or the score as it is, of any size.
    is_logit : bool
        Whether the scores are logits.
    floor : float
        Of probabilities in logarithms; see `features_of`.
    smoothing : bool or float
        Of the targets; see `smoothed`.

    Returns
    -------
    fitted : Parameters
        Slope and intercept. BOUND: the slope is 0, for none above 0 fits better. SEPARABLE: no negative has a larger
        x than any positive, so the best slope is infinite; never with smoothed targets. ONE_CLASS: that of the labels,
        smoothed or not.

    References
    ----------
    Platt, J. (1999). Probabilistic outputs for support vector machines and comparisons to regularized likelihood
    methods. Advances in Large Margin Classifiers, 61-74.
    Albert, A. and Anderson, J. A. (1984). On the existence of maximum likelihood estimates in logistic regression
    models. Biometrika 71, 1-10. https://doi.org/10.1093/biomet/71.1.1

    Examples
    --------
    At score 0.5 four of ten are positive, at score 0.8 six of ten. So the intercept is logit 0.4, and the slope
    (logit 0.6 - logit 0.4) / ln 4.

    >>> ten = np.array([10.0, 10.0])
    >>> tally = Tally.of_counts(np.array([0]), np.array([0.5, 0.8]), ten, np.array([4.0, 6.0]))
    >>> platt(tally).values.round(9).tolist()
    [[0.584962501], [-0.405465108]]
    """

    def fit(part: Tally) -> Parameters:
        positive, negative = smoothed(part, smoothing=smoothing)
        x = finite(part, floor) if on == "score" else features_of(part, is_logit=is_logit, floor=floor).z
        regression = Regression(starts=part.starts, positive=positive, negative=negative, features=(x, None))
        outcome = outcome_of(one_class(part), constant(x, part.starts), separated(regression, x))
        return gathered(outcome, _line(regression.only(outcome == Outcome.FINE)))

    return in_chunks(tally, fit)


def temperature(
    tally: Tally, *, is_logit: bool = False, floor: float = FLOOR, smoothing: Smoothing = False
) -> Parameters:
    """Fit ``P = expit(z / T)`` with ``T > 0`` by maximum likelihood, z the logit of the score, in each segment.

    The likelihood is concave in 1 / T. Its maximum needs neither two classes nor two scores.

    Parameters
    ----------
    tally : Tally
        Distinct scores.
    is_logit, floor, smoothing
        As in `platt`.

    Returns
    -------
    fitted : Parameters
        The temperature T. BOUND: the larger T the better, and T is 1000; by concavity that is never worse than 1.
        SEPARABLE: no positive has z < 0 and no negative z > 0, so the best T is 0; never with smoothed targets.
        ONE_SCORE: every z is 0, and T has no effect. The information is that of T, not of 1 / T.

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks. ICML 2017,
    PMLR 70, 1321-1330. https://doi.org/10.48550/arXiv.1706.04599

    Examples
    --------
    At score 0.9 three of four are positive, at 0.1 one of four: T is ln 9 / ln 3.

    >>> four = np.array([4.0, 4.0])
    >>> tally = Tally.of_counts(np.array([0]), np.array([0.1, 0.9]), four, np.array([1.0, 3.0]))
    >>> temperature(tally).values.round(12)
    array([[2.]])
    """

    def fit(part: Tally) -> Parameters:
        positive, negative = smoothed(part, smoothing=smoothing)
        z = features_of(part, is_logit=is_logit, floor=floor).z
        regression = Regression(starts=part.starts, positive=positive, negative=negative, features=(z,))
        outcome = outcome_of(np.zeros(len(part), bool), segment_count(z != 0, part.starts) == 0, signed(regression, z))
        return gathered(outcome, _through_zero(regression.only(outcome == Outcome.FINE)))

    return in_chunks(tally, fit)


def in_chunks(tally: Tally, fit: Callable[[Tally], Parameters]) -> Parameters:
    """Fit some segments after others, so that the temporaries of a fit stay in the cache."""
    parts = [fit(part) for _, part in tally.chunks()] or [fit(tally)]
    return Parameters(
        values=np.concatenate([part.values for part in parts], axis=-1),
        outcome=np.concatenate([part.outcome for part in parts]),
        information=np.concatenate([part.information for part in parts], axis=-1),
    )


def one_class(tally: Tally) -> Bools:
    """Tell which segments have labels of one class."""
    columns = (tally.positive > 0.0, negative_weight(tally.weight, tally.positive) > 0.0)
    found: Bools = np.logical_or(*(segment_count(column, tally.starts) == 0 for column in columns))
    return found


def constant(feature: Floats, starts: Ints) -> Bools:
    """Tell in which segments a feature that does not descend has one value."""
    return np.equal(*_ends(feature, starts))


def separated(regression: Regression, feature: Floats) -> Bools:
    """Tell in which segments no negative has a larger feature than any positive; not if it is constant.

    A map that rises with the feature fits those the better the steeper it is. At one value both classes may lie.
    """
    cells, starts = len(feature), regression.starts
    positives, negatives = (np.flatnonzero(w > 0.0) for w in (regression.positive, regression.negative))
    first = np.append(positives, cells)[np.searchsorted(positives, starts)]
    last = np.append(negatives, -1)[np.searchsorted(negatives, starts + regression.sizes) - 1]
    in_order = feature[np.maximum(last, 0)] <= feature[np.minimum(first, cells - 1)]
    found: Bools = (in_order | (last < first)) & ~constant(feature, starts)
    return found


def signed(regression: Regression, feature: Floats) -> Bools:
    """Tell in which segments no positive has a negative feature and no negative a positive one; not if all are 0.

    A map that is 1/2 where the feature is 0 fits those the better the steeper it is.
    """
    below, above = feature < 0.0, feature > 0.0
    wrong = segment_count(below & (regression.positive > 0.0) | above & (regression.negative > 0.0), regression.starts)
    found: Bools = (wrong == 0) & (segment_count(below | above, regression.starts) > 0)
    return found


def outcome_of(one_class: Bools, one_score: Bools, separable: Bools) -> Ints:
    """Return the outcome of each segment before the fit; the first reason counts."""
    reasons = [int(Outcome.ONE_CLASS), int(Outcome.ONE_SCORE), int(Outcome.SEPARABLE)]
    return np.select([one_class, one_score, separable], reasons, int(Outcome.FINE))


def gathered(outcome: Ints, fit: Fit) -> Parameters:
    """Put the fits of the segments that are FINE so far between those that have none."""
    known = outcome == Outcome.FINE
    values, information = (np.full((*v.shape[:-1], len(outcome)), np.nan) for v in (fit.values, fit.information))
    values[..., known], information[..., known] = fit.values, fit.information
    lost: Bools = np.asarray(np.isnan(fit.values).any(axis=0))  # so nearly separable that no maximum can be computed
    how = [int(Outcome.SEPARABLE), int(Outcome.BOUND)]
    outcome[known] = np.select([lost, fit.bound], how, int(Outcome.FINE))
    return Parameters(values=values, outcome=outcome, information=information)


def feature(regression: Regression, number: int = 0) -> Floats:
    """Return a feature of the cells; the constant is 1."""
    x = regression.features[number]
    return np.ones_like(regression.positive) if x is None else x


def scaled(x: Floats, starts: Ints) -> tuple[Floats, Floats]:
    """Return u and units with ``x = unit u``, at most 1 in absolute value; x does not descend in a segment."""
    unit = power_of_two(np.maximum(*np.abs(_ends(x, starts))))
    return x / spread(unit, starts, len(x)), unit


def centred(x: Floats, weight: Floats, starts: Ints) -> tuple[Floats, Floats, Floats]:
    """Return u, units and centres with ``x = centre + unit u``, u of mean 0."""
    u, unit = scaled(x, starts)
    mean = segment_sum(weight * u, starts) / segment_sum(weight, starts)
    return u - spread(mean, starts, len(u)), unit, mean * unit


class Sums(NamedTuple):
    """The weights of the positives and of the negatives, and their sums of weight times feature."""

    yes: Floats
    no: Floats
    up: Floats
    down: Floats

    @classmethod
    def of(cls, regression: Regression) -> Sums:
        """Sum over the cells of each segment."""
        weights, u = (regression.positive, regression.negative), feature(regression)
        return cls(*(segment_sum(column, regression.starts) for column in (*weights, *(w * u for w in weights))))


def climbs(regression: Regression, sums: Sums) -> Bools:
    """Tell in which segments the likelihood of `rising` rises with the slope at 0, by more than rounding."""
    yes, no = sums[:2] if len(regression.features) > 1 else 2 * (sums.yes + sums.no,)
    largest = np.maximum(*np.abs(_ends(feature(regression), regression.starts)))
    found: Bools = sums.up / yes - sums.down / no > _ROUNDING * largest
    return found


def rising(regression: Regression) -> tuple[Floats, Floats]:
    """Return the coefficients of largest likelihood with ``slope >= 0``, in regressions on one feature.

    That is a feature of mean 0 and the constant, or a feature alone. They exist if both classes occur and the feature
    does not separate them; NaN where no finite maximum was reached. With them comes their information.
    """
    sums = Sums.of(regression)
    up = climbs(regression, sums)
    theta = np.zeros((len(regression.features), len(up)))
    start = theta
    if len(theta) > 1:
        theta[1] = np.log(sums.yes / sums.no)
        start = _discriminant(regression, sums)
    information = np.empty((len(theta), *theta.shape))
    information[..., ~up] = derivatives(regression.only(~up), theta[:, ~up])[1]
    theta[:, up], information[..., up] = maximum(regression.only(up), start[:, up])
    theta[0] = np.maximum(theta[0], 0.0)
    return theta, information


def maximum(regression: Regression, start: Floats) -> tuple[Floats, Floats]:
    """Return `maximum_likelihood`, tried from 0, too, where every chance is 0 or 1 at the start."""
    theta, information = maximum_likelihood(regression, start=start)
    lost: Bools = np.asarray(np.isnan(theta).any(axis=0))
    if lost.any():
        theta[:, lost], information[..., lost] = maximum_likelihood(regression.only(lost))
    return theta, information


def turned(information: Floats, back: Floats) -> Floats:
    """Return the information on coefficients of which `back` times have this information."""
    with np.errstate(over="ignore", invalid="ignore"):
        out: Floats = np.einsum("jis,jks,kls->ils", back, information, back)
    return out


def _line(regression: Regression) -> Fit:
    """Fit slope and intercept on the first feature."""
    u, unit, centre = centred(feature(regression), regression.positive + regression.negative, regression.starts)
    theta, information = rising(replace(regression, features=(u, None)))
    slope = theta[0] / unit
    back = np.array([[unit, np.zeros_like(unit)], [centre, np.ones_like(unit)]])
    values = np.array([slope, theta[1] - slope * centre])
    return Fit(values, turned(information, back), slope == 0.0)


def _through_zero(regression: Regression) -> Fit:
    """Fit the temperature on the only feature; with b = 1 / T, ``d2 l / dT2 = b^4 l''(b) + 2 b^3 l'(b)``."""
    u, unit = scaled(feature(regression), regression.starts)
    slope = rising(replace(regression, features=(u,)))[0][0]
    flat = slope == 0.0
    slope[flat] = unit[flat] / FLATTEST
    b = slope / unit
    gradient, curvature = derivatives(replace(regression, features=(u,)), slope[None])
    information = b**2 * slope * (slope * curvature - 2.0 * gradient)
    return Fit(1.0 / b[None], information, flat)


def _ends(x: Floats, starts: Ints) -> tuple[Floats, Floats]:
    """Return the first and the last cell of each segment."""
    return x[starts], x[starts + sizes_of(starts, len(x)) - 1]


def _discriminant(regression: Regression, sums: Sums) -> Floats:
    """Return Fisher's linear discriminant, where the iteration begins; bounded where the classes hardly overlap.

    It is exact for normal classes of equal variance.
    """
    square = (regression.positive + regression.negative) * feature(regression)
    square *= feature(regression)
    yes, no, mean, mean_no = sums.yes, sums.no, sums.up / sums.yes, sums.down / sums.no
    share = (mean - mean_no) / (yes + no)
    within = segment_sum(square, regression.starts) / (yes + no) - yes * no * share**2
    with np.errstate(invalid="ignore"):  # a constant feature, which is not fitted
        slope = (mean - mean_no) / np.maximum(within, (mean - mean_no) ** 2 / _DISTANCE)
    return np.array([slope, np.log(yes / no) - slope * (mean + mean_no) / 2.0])
