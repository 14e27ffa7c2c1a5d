"""Beta calibration: a binary map that is logistic in ``ln p`` and ``ln(1 - p)``, all segments at once.

With ``a, b >= 0`` no map decreases. The maximum under these constraints is inside, or on a face: with a = 0, with
b = 0, or with both, where one feature or none is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

import numpy as np

from calframe._fitting._fitted import Outcome, Parameters
from calframe._fitting._linear import (
    Features,
    Fit,
    Smoothing,
    Sums,
    centred,
    climbs,
    constant,
    feature,
    features_of,
    gathered,
    in_chunks,
    maximum,
    one_class,
    outcome_of,
    rising,
    scaled,
    separated,
    signed,
    smoothed,
    turned,
)
from calframe._kernels import _special as special
from calframe._kernels._binned import segment_max, segment_sum
from calframe._kernels._logistic import FLOOR
from calframe._kernels._newton import Regression, derivatives
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats

Free: TypeAlias = Literal["abm", "am", "ab"]

_COLLINEAR = 1e-9  # what is left of a feature beside the other is mostly rounding
_LN_2 = float(np.log(2.0))
_SAME = 1e-12  # relative difference of log likelihoods that is none


def beta(
    tally: Tally,
    *,
    parameters: Free = "abm",
    is_logit: bool = False,
    floor: float = FLOOR,
    smoothing: Smoothing = False,
) -> Parameters:
    """Fit ``P = expit(a ln p - b ln(1 - p) + c)`` with ``a, b >= 0`` by maximum likelihood, in each segment.

    Parameters
    ----------
    tally : Tally
        Distinct scores p.
    parameters : {"abm", "am", "ab"}
        All three; a = b, which is Platt scaling on the logit; or a and b with ``c = (a - b) ln 2``, so that 1/2 stays
        1/2.
    is_logit : bool
        Whether the scores are logits.
    floor : float
        Of p and 1 - p in logarithms; see `features_of`.
    smoothing : bool or float
        Of the targets; see `smoothed`.

    Returns
    -------
    fitted : Parameters
        a, b and c, whichever are free, and the information on all three. BOUND: a or b is 0, because the best map
        without constraints has a negative one. SEPARABLE: some ``a ln p - b ln(1 - p) + c`` of the kind asked for is
        nowhere negative for positives nor positive for negatives, so no finite one is best; never with smoothed
        targets. ONE_CLASS: that of the labels, smoothed or not. Two distinct scores leave a and b open, or with
        "ab" one besides 1/2: they are equal then.

    Notes
    -----
    With c, a segment is separable if, and only if, no negative has a larger ``ln p`` than any positive, or the same
    holds for ``-ln(1 - p)``; the two differ only where rounding or the floor makes scores equal in one of them.

    The map "ab" is ``a ln 2p - b ln 2(1 - p)``, that of Kull et al. with m = 1/2. Both its features are negative below
    1/2 and positive above, so a segment is separable if, and only if, no positive lies below and no negative above.
    Scores of 1/2 say nothing.

    References
    ----------
    Kull, M., Silva Filho, T. M. and Flach, P. (2017). Beyond sigmoids: How to obtain well-calibrated probabilities
    from binary classifiers with beta calibration. Electronic Journal of Statistics 11(2), 5052-5080.
    https://doi.org/10.1214/17-EJS1338SI

    Examples
    --------
    Calibrated scores are left as they are:

    >>> four = np.array([4.0, 4.0, 4.0])
    >>> tally = Tally.of_counts(np.array([0]), np.array([0.25, 0.5, 0.75]), four, np.array([1.0, 2.0, 3.0]))
    >>> np.abs(beta(tally).values[:, 0]).round(9)
    array([1., 1., 0.])
    """

    def fit(part: Tally) -> Parameters:
        positive, negative = smoothed(part, smoothing=smoothing)
        features = features_of(part, is_logit=is_logit, floor=floor)
        if parameters == "ab":
            features = doubled(features)
        pair = (features.ln_p, -features.ln_rest)
        regression = Regression(starts=part.starts, positive=positive, negative=negative, features=pair)
        endless = _separable(regression, features, parameters)
        outcome = outcome_of(one_class(part), constant(features.z, part.starts), endless)
        return gathered(outcome, _fit(regression.only(outcome == Outcome.FINE), parameters))

    return in_chunks(tally, fit)


def doubled(features: Features) -> Features:
    """Return ``ln 2p``, ``ln 2(1 - p)`` and the logit, which are all 0 where p is 1/2, and only there."""
    return Features(features.ln_p + _LN_2, features.ln_rest + _LN_2, features.z)


def _separable(regression: Regression, features: Features, parameters: Free) -> Bools:
    """Tell in which segments some map of the kind is nowhere wrong, and right somewhere."""
    if parameters == "am":
        return separated(regression, features.z)
    if parameters == "abm":
        return separated(regression, features.ln_p) | separated(regression, -features.ln_rest)
    return signed(regression, features.ln_p) | signed(regression, -features.ln_rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plane:
    """Regressions on two features, in coordinates that suit each segment.

    Attributes
    ----------
    regression : Regression
        On ``u_j = (x_j - centre_j) / unit_j`` and a constant, whether that is free or not.
    unit, centre : ndarray of shape (2, n_segments)
        Without a free constant u is ``x / unit``, and the centres are those that `doubled` has taken off.
    free : bool
        Whether the constant is free.
    """

    regression: Regression
    unit: Floats
    centre: Floats
    free: bool

    def only(self, keep: Bools) -> Self:
        """Return some of the segments."""
        some = self.regression.only(keep)
        return replace(self, regression=some, unit=self.unit[:, keep], centre=self.centre[:, keep])

    def on(self, *features: Floats) -> Regression:
        """Return the regressions on other features, and the constant if it is free."""
        return replace(self.regression, features=(*features, None) if self.free else features)

    def spread(self, values: Floats) -> Floats:
        """Return the value of its segment for each cell."""
        return np.repeat(values, self.regression.sizes)

    def total(self, values: Floats) -> Floats:
        """Return the sum of cell values over each segment."""
        return segment_sum(values, self.regression.starts)


def _fit(regression: Regression, parameters: Free) -> Fit:
    plane = _plane(regression, free=parameters != "ab")
    theta = _along(plane, plane.unit) if parameters == "am" else _constrained(plane)
    slopes = theta[:2] / plane.unit
    values = np.array([*slopes, theta[2] - (slopes * plane.centre).sum(axis=0)])
    (u, v), (m, n), none, one = plane.unit, plane.centre, np.zeros_like(theta[2]), np.ones_like(theta[2])
    back = np.array([[u, none, none], [none, v, none], [m, n, one]])
    information = derivatives(plane.regression, theta)[1]
    return Fit(values, turned(information, back), (theta[:2] == 0.0).any(axis=0))


def _plane(regression: Regression, *, free: bool) -> _Plane:
    weight, starts = regression.positive + regression.negative, regression.starts
    pair = [feature(regression, j) for j in range(2)]
    if free:
        parts = [centred(x, weight, starts) for x in pair]
    else:
        halves = (np.full(len(starts), ln) for ln in (-_LN_2, _LN_2))
        parts = [(*scaled(x, starts), half) for x, half in zip(pair, halves, strict=True)]
    columns, units, centres = zip(*parts, strict=True)
    whole = replace(regression, features=(*columns, None))
    return _Plane(regression=whole, unit=np.array(units), centre=np.array(centres), free=free)


def _constrained(plane: _Plane) -> Floats:
    """Return the coefficients of largest likelihood that are not negative.

    Where the likelihood rises in no feature at 0, both are 0. Where its maximum without constraints has one negative
    coefficient, that one is 0: on the way there from a better point on the other face both would be positive before.
    """
    sides = np.eye(2)
    lines = [plane.on(feature(plane.regression, j)) for j in range(2)]
    up = np.logical_or(*(climbs(line, Sums.of(line)) for line in lines))
    theta = np.zeros((3, len(up)))
    theta[:, ~up] = _along(plane.only(~up), sides[0])
    theta[:, up] = _inside(plane.only(up))
    unclear = up & ~(theta[:2] >= 0.0).any(axis=0)  # both negative, or none known
    below = [(theta[j] < 0.0) & ~unclear for j in range(2)]
    for j in range(2):
        theta[:, below[j]] = _along(plane.only(below[j]), sides[1 - j])
    theta[:, unclear] = _best(plane.only(unclear))
    return theta


def _along(plane: _Plane, direction: Floats) -> Floats:
    """Return the best coefficients that are a multiple, not a negative one, of a direction."""
    u, v = (feature(plane.regression, j) for j in range(2))
    direction = np.broadcast_to(direction.reshape(2, -1), plane.unit.shape)
    (slope, *rest), _ = rising(plane.on(plane.spread(direction[0]) * u + plane.spread(direction[1]) * v))
    return np.array([*(slope * direction), rest[0] if rest else np.zeros_like(slope)])


def _inside(plane: _Plane) -> Floats:
    """Return the coefficients of largest likelihood without constraints; NaN where they cannot be told apart.

    The second feature gives way to what the first does not explain of it.
    """
    u, v = (feature(plane.regression, j) for j in range(2))
    weight = (plane.regression.positive + plane.regression.negative) * u
    with np.errstate(invalid="ignore"):
        share = plane.total(weight * v) / plane.total(weight * u)
    rest = v - plane.spread(share) * u
    largest = [segment_max(np.abs(x), plane.regression.starts) for x in (rest, v)]
    told = largest[0] > _COLLINEAR * largest[1]
    theta = np.full((3, len(told)), np.nan)
    regression = plane.on(u, rest).only(told)
    start = np.zeros((len(regression.features), len(regression.starts)))
    if plane.free:
        start[2] = np.log(plane.total(plane.regression.positive) / plane.total(plane.regression.negative))[told]
    found, _ = maximum(regression, start)
    theta[:, told] = found[0] - share[told] * found[1], found[1], found[2] if plane.free else 0.0 * found[1]
    return theta


def _best(plane: _Plane) -> Floats:
    """Return the best coefficients with a = b or on a face; NaN where these are too nearly separable for any."""
    choices = [_along(plane, plane.unit), *(_along(plane, side) for side in np.eye(2))]
    gains = np.nan_to_num([_log_likelihood(plane, theta) for theta in choices], nan=-np.inf)
    gains[0] *= 1.0 - _SAME  # a = b, if others are as good
    pick = np.argmax(gains, axis=0)
    best: Floats = np.take_along_axis(np.array(choices), pick[None, None], axis=0)[0]
    best[:, np.isnan(choices).any(axis=(0, 1))] = np.nan
    return best


def _log_likelihood(plane: _Plane, theta: Floats) -> Floats:
    u, v = (feature(plane.regression, j) for j in range(2))
    odds = plane.spread(theta[0]) * u + plane.spread(theta[1]) * v + plane.spread(theta[2])
    terms = plane.regression.positive * special.log_expit(odds)
    terms += plane.regression.negative * special.log_expit(-odds)
    return plane.total(terms)
