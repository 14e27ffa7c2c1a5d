"""Spline calibration: a smooth, non-decreasing curve in the log-odds, as rough as the data pay for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calframe._fitting._fitted import Knots, Outcome
from calframe._fitting._linear import Smoothing, features_of, smoothed
from calframe._kernels import _special as special
from calframe._kernels._binned import running_sum, segment_sum, starts_of
from calframe._kernels._logistic import FLOOR, status_of
from calframe._kernels._tally import Tally
from calframe._typing import Floats, Ints

_KNOTS = 30
_STRENGTHS = 10.0 ** np.arange(3.0, -6.5, -0.5)  # from a straight line to (nearly) no penalty
_APART = 0.01  # least distance of knots, in standard deviations of the logit
_CELLS = 2048  # more distinct scores in a segment are first merged to about twice as many
_FREE = 1.5  # a step that moves no predictor further always gains: exp(u) - 1 - u < u^2
_DONE = 1e-8  # no predictor moved further in the last step: by quadratic convergence all are exact to rounding
_ROUNDS = 100  # 3 to 8 are usual
_ROUNDING = 1e-12  # shares of weight are off by less
_COST = 1.4  # factor on what leaving out costs: its least value alone is too often that of a rough curve
_LEAST = 1e-9  # a row left out leaves at least this share of the information on its own prediction


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplineKnots(Knots):
    """Natural cubic splines: x is the logit of the score, y the log-odds; straight lines go on outside the knots.

    Attributes
    ----------
    curvature : ndarray of float64, shape of x
        The second derivative at each knot; linear between knots, 0 at the first and the last.
    strength : ndarray of float64, shape (n_segments,)
        The strength of the penalty that was chosen.
    freedom : ndarray of float64, shape (n_segments,)
        Effective degrees of freedom: 2 for a straight line, 1 for a constant.
    """

    curvature: Floats
    strength: Floats
    freedom: Floats


class _Segment(NamedTuple):
    """The cells of a segment; yes and no are shares of its weight, unit that of a row."""

    z: Floats
    yes: Floats
    no: Floats
    unit: Floats


class _Basis(NamedTuple):
    """Columns that are linear in the coefficients: the curve in each cell, and at knots value and curvature."""

    cells: Floats
    value: Floats
    curvature: Floats
    penalty: Floats


class _Curve(NamedTuple):
    """The knots of a segment, and how they were chosen."""

    x: Floats
    y: Floats
    curvature: Floats
    outcome: Outcome
    strength: float
    freedom: float


def spline(
    tally: Tally,
    *,
    is_logit: bool = False,
    floor: float = FLOOR,
    smoothing: Smoothing = False,
    knots: int = _KNOTS,
) -> SplineKnots:
    """Fit ``P = expit(f(z))`` with a natural cubic spline f of the logit z that never decreases, in each segment.

    f maximises ``log likelihood / W - (strength / 2) s^3 integral f''(z)^2 dz``, W being the weight of the segment and
    s the standard deviation of z. The derivative of f is a quadratic spline, ``sum_j d_j N_j(z)`` with B-splines N_j,
    and ``d_j >= 0`` is required (I-splines), so f does not decrease anywhere.

    The strength is that of 19 between 1e3 and 1e-6, half a decade apart, with the least ``L + 1.4 (L' - L)``: L is the
    log loss of the curve without the constraint, and L' that of rows each predicted from all others. These predictions
    are one Newton step from the fit of all rows (approximate leave-one-out), so there are no folds and no chance, and
    a row of weight 2 is two rows where weights are counts. With the factor 1.4, of Kim and Gu, noise less often has a
    rough curve; in simulations its curves were nearer to the truth than those of ten folds.
    Knots are the scores at the weighted quantiles 0, 1/29, ... 1, at least s / 100 apart. Segments of more than 4096
    distinct scores are merged to at most so many, at their mean z.

    A spline of one segment does not depend on others; unlike parametric maps, segments are fitted one by one.

    Parameters
    ----------
    tally : Tally
        Distinct scores.
    is_logit : bool
        Whether the scores are logits.
    floor : float
        Of probabilities in logarithms; see `features_of`.
    smoothing : bool or float
        Of the targets; see `smoothed`.
    knots : int
        At most so many knots, at least 2.

    Returns
    -------
    SplineKnots
        BOUND: without the constraint some d_j would be negative. A segment that is SEPARABLE (or so nearly that no
        curve can be computed), or has ONE_CLASS or ONE_SCORE, has one knot with NaN as y.

    References
    ----------
    Lucena, B. (2018). Spline-based probability calibration. https://doi.org/10.48550/arXiv.1809.07751
    Ramsay, J. O. (1988). Monotone regression splines in action. Statistical Science 3, 425-441.
    https://doi.org/10.1214/ss/1177012761
    Kim, Y.-J. and Gu, C. (2004). Smoothing spline Gaussian regression: more scalable computation via efficient
    approximation. Journal of the Royal Statistical Society B 66, 337-356.
    https://doi.org/10.1046/j.1369-7412.2003.05316.x
    Rad, K. R. and Maleki, A. (2020). A scalable estimate of the out-of-sample prediction error via approximate
    leave-one-out cross-validation. Journal of the Royal Statistical Society B 82, 965-996.
    https://doi.org/10.1111/rssb.12374

    Examples
    --------
    Rates 1/4 and 3/4 at the scores 0.1 and 0.9: the straight line through their log-odds.

    >>> tally = Tally.of_counts(np.array([0]), np.array([0.1, 0.9]), np.array([8.0, 8.0]), np.array([2.0, 6.0]))
    >>> fit = spline(tally)
    >>> fit.x.round(4), fit.y.round(4)
    (array([-2.1972,  2.1972]), array([-1.0986,  1.0986]))
    >>> spline_at(fit, np.array([4.0, 4.0]), np.array([0, 0])).round(4)
    array([2., 2.])
    """
    z = features_of(tally, is_logit=is_logit, floor=floor).z
    yes, no = smoothed(tally, smoothing=smoothing)
    status = status_of(z, yes, no, tally.starts)
    total = tally.total(yes + no)
    unit = tally.squared / tally.weight / tally.spread(total)
    whole = _Segment(z, yes / tally.spread(total), no / tally.spread(total), unit)
    curves = []
    for g, (begin, size) in enumerate(zip(tally.starts.tolist(), tally.sizes.tolist(), strict=True)):
        here = _Segment(*(values[begin : begin + size] for values in whole))
        outcome = Outcome(int(status[g]))
        curve = _curve_or_none(here, knots) if outcome == Outcome.FINE else None
        curves.append(curve or _no_curve(here, outcome or Outcome.SEPARABLE))
    return SplineKnots(
        starts=starts_of(np.array([len(curve.x) for curve in curves], dtype=np.int64)),
        x=np.concatenate([curve.x for curve in curves]),
        y=np.concatenate([curve.y for curve in curves]),
        curvature=np.concatenate([curve.curvature for curve in curves]),
        outcome=np.array([curve.outcome for curve in curves], dtype=np.int64),
        strength=np.array([curve.strength for curve in curves]),
        freedom=np.array([curve.freedom for curve in curves]),
    )


def spline_at(fit: SplineKnots, z: Floats, segment: Ints) -> Floats:
    """Return the log-odds of some rows from the logits of their scores and the numbers of their segments.

    With knots ``x_0 < x_1`` around z, ``h = x_1 - x_0``, ``a = (x_1 - z) / h`` and ``b = 1 - a`` they are
    ``a y_0 + b y_1 + ((a^3 - a) m_0 + (b^3 - b) m_1) h^2 / 6``, m being the curvature. They are kept between y_0 and
    y_1, whatever rounding says, and go on with the slope of the first and of the last knot outside.

    Parameters
    ----------
    fit : SplineKnots
        The fit; a segment with one knot gives its y everywhere.
    z : ndarray of shape (n_rows,)
        Finite logits.
    segment : ndarray of int64, shape (n_rows,)
        Numbers of segments.
    """
    last = np.append(fit.starts[1:], len(fit.x)) - 1
    first, final = fit.starts[segment], last[segment]
    low = _knot_below(fit.x, z, first, np.maximum(final - 1, first))
    high = np.minimum(low + 1, final)
    x, x1, y, y1, m, m1 = (v[i] for v in (fit.x, fit.y, fit.curvature) for i in (low, high))
    width = np.where(high > low, x1 - x, 1.0)
    b = np.clip((z - x) / width, 0.0, 1.0)
    a = 1.0 - b
    inside = a * y + b * y1 - a * b * ((1.0 + a) * m + (1.0 + b) * m1) * width**2 / 6.0
    inside = np.clip(inside, np.minimum(y, y1), np.maximum(y, y1))
    # the slope at the end itself, where the curvature of the end is 0
    before = np.maximum((y1 - y) / width - width * m1 / 6.0, 0.0)
    after = np.maximum((y1 - y) / width + width * m / 6.0, 0.0)
    above = np.where(high > low, z - x1, 0.0)
    return np.asarray(inside + before * np.minimum(z - x, 0.0) + after * np.maximum(above, 0.0))


def _knot_below(x: Floats, z: Floats, first: Ints, last: Ints) -> Ints:
    """Return the last knot from `first` to `last` that is not above z, or `first`, by bisection of all rows at once."""
    low, high = first.copy(), last.copy()
    while (low < high).any():
        middle = (low + high + 1) // 2
        below = x[middle] <= z
        low, high = np.where(below, middle, low), np.where(below, high, np.maximum(middle - 1, low))
    return low


def _no_curve(segment: _Segment, outcome: Outcome) -> _Curve:
    none = np.array([np.nan])
    return _Curve(segment.z[:1], none, none, outcome, np.nan, np.nan)


def _curve_or_none(segment: _Segment, knots: int) -> _Curve | None:
    """Return the curve of a segment, None if its weights are so different that none can be computed."""
    try:
        with np.errstate(all="ignore"):  # a curve that is not finite is never the best
            return _curve(segment, knots)
    except np.linalg.LinAlgError:
        return None


def _curve(segment: _Segment, knots: int) -> _Curve | None:
    """Fit a segment with each strength, and return the curve that predicts rows left out best."""
    weight = segment.yes + segment.no
    scale = float(np.sqrt((weight * (segment.z - (weight * segment.z).sum()) ** 2).sum()))
    x = _knots(segment.z, weight, knots, scale * _APART)
    segment = _merged(segment)
    basis = _basis((segment.z - x[0]) / scale, (x - x[0]) / scale)
    theta = np.zeros(basis.cells.shape[1])
    best, least, strength, freedom = theta, np.inf, np.nan, np.nan
    for trial in _STRENGTHS.tolist():
        theta = _fitted(segment, basis, trial, theta)
        loss, left_out, used = _losses(segment, basis, trial, theta)
        judged = loss + _COST * (left_out - loss)
        if judged < least:
            best, least, strength, freedom = theta, judged, trial, used
    if not np.isfinite(least):
        return None
    bound = bool((best[1:] < 0.0).any())
    if bound:
        best = _fitted(segment, basis, strength, np.append(best[0], np.maximum(best[1:], 0.0)), rising=True)
    y = np.maximum.accumulate(basis.value @ best)  # whatever rounding says of flat pieces
    outcome = Outcome.BOUND if bound else Outcome.FINE
    return _Curve(x, y, basis.curvature @ best / scale**2, outcome, strength, freedom)


def _merged(segment: _Segment) -> _Segment:
    """Merge neighbours where there are many: within a share of the weight, and of the range of z."""
    z, yes, no, unit = segment
    if len(z) <= 2 * _CELLS:
        return segment
    weight = yes + no
    rank = np.floor(_CELLS * (np.cumsum(weight) - weight / 2.0))
    place = np.floor(_CELLS * (z - z[0]) / (z[-1] - z[0]))
    first = np.flatnonzero(np.append(True, (np.diff(rank) != 0) | (np.diff(place) != 0)))
    total = segment_sum(weight, first)
    return _Segment(
        np.clip(segment_sum(weight * z, first) / total, z[0], z[-1]),  # a mean may round beyond its only value
        segment_sum(yes, first),
        segment_sum(no, first),
        segment_sum(weight * unit, first) / total,
    )


def _knots(z: Floats, weight: Floats, most: int, apart: float) -> Floats:
    """Return the first and the last z and weighted quantiles between them, some distance from each other."""
    reached = running_sum(weight, np.array([0])) + _ROUNDING
    inner = z[np.searchsorted(reached, np.arange(1, most - 1) / (most - 1))]
    kept = [float(z[0])]
    for x in inner.tolist():
        if x - kept[-1] >= apart and z[-1] - x >= apart:
            kept.append(x)
    return np.array([*kept, float(z[-1])])


def _basis(t: Floats, knots: Floats) -> _Basis:
    """Return a constant and the I-splines on these knots; the first two and the last two slopes are one (natural).

    The B-spline coefficients c of f and d of its derivative are related by
    ``c_{j+1} - c_j = d_j (tau_{j+4} - tau_{j+1}) / 3``, tau being the knots with the ends four times.
    """
    from scipy.interpolate import BSpline  # noqa: PLC0415  importing the package must not load SciPy

    count = len(knots)
    tau = np.concatenate([np.repeat(knots[0], 3), knots, np.repeat(knots[-1], 3)])
    slopes = np.zeros((count + 1, count - 1))
    slopes[np.arange(count + 1), np.clip(np.arange(count + 1) - 1, 0, count - 2)] = 1.0
    widths = (tau[4 : count + 5] - tau[1 : count + 2]) / 3.0
    coefficients = np.zeros((count + 2, count))
    coefficients[:, 0] = 1.0
    coefficients[1:, 1:] = np.cumsum(widths[:, None] * slopes, axis=0)
    at_cells, at_knots = (BSpline.design_matrix(x, tau, 3).toarray() @ coefficients for x in (t, knots))
    curvature = BSpline(tau, coefficients, 3).derivative(2)(knots)
    curvature[[0, -1]] = 0.0
    width = np.diff(knots)[:, None, None]
    left, right = curvature[:-1, :, None], curvature[1:, :, None]
    squares = left * left.swapaxes(1, 2) + right * right.swapaxes(1, 2)
    mixed = left * right.swapaxes(1, 2)
    penalty = (width * (squares + (mixed + mixed.swapaxes(1, 2)) / 2.0)).sum(axis=0) / 3.0
    return _Basis(at_cells, at_knots, curvature, penalty)


def _fitted(segment: _Segment, basis: _Basis, strength: float, theta: Floats, *, rising: bool = False) -> Floats:
    """Maximise the penalised likelihood, with `rising` over ``theta_1, theta_2, ... >= 0``, by Newton's iteration.

    Each step maximises the quadratic expansion within the bounds. A step is cut to ``log(1 + d) / d`` of its length
    where it moves a predictor by d > 1.5; what is between two points within the bounds is within them.
    """
    for _ in range(_ROUNDS):
        yes, no = _chances(basis, theta)
        gradient = basis.cells.T @ (segment.yes * no - segment.no * yes) - strength * (basis.penalty @ theta)
        information = _information(segment, basis, strength, yes * no)
        if rising:
            step = _best_within(information, information @ theta + gradient) - theta
        else:
            step = np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)
        reach = float(np.abs(basis.cells @ step).max())
        theta = theta + step * (np.log1p(reach) / reach if reach > _FREE else 1.0)
        if reach <= _DONE:
            break
    return theta


def _chances(basis: _Basis, theta: Floats) -> tuple[Floats, Floats]:
    """Return the fitted P(positive) and P(negative) of the cells."""
    odds = basis.cells @ theta
    return special.expit(odds), special.expit(-odds)


def _information(segment: _Segment, basis: _Basis, strength: float, variance: Floats) -> Floats:
    """Return minus the second derivatives of the penalised likelihood."""
    weighted = basis.cells * ((segment.yes + segment.no) * variance)[:, None]
    return np.asarray(weighted.T @ basis.cells + strength * basis.penalty)


def _best_within(matrix: Floats, linear: Floats) -> Floats:
    """Maximise ``b'x - x'A x / 2`` over ``x_1, x_2, ... >= 0``, x_0 being free: least squares, as ``A = R'R``."""
    from scipy.linalg import solve_triangular  # noqa: PLC0415
    from scipy.optimize import nnls  # noqa: PLC0415

    root = np.linalg.cholesky(matrix).T
    right = solve_triangular(root, linear, trans="T")
    rest, _ = nnls(root[1:, 1:], right[1:])
    return np.append((right[0] - root[0, 1:] @ rest) / root[0, 0], rest)


def _losses(segment: _Segment, basis: _Basis, strength: float, theta: Floats) -> tuple[float, float, float]:
    """Return the log loss of the rows, that of rows predicted without themselves, and the effective degrees of freedom.

    Leaving out a row of weight u with label y moves its predictor by ``u (p - y) a / (1 - u p (1 - p) a)``, with
    ``a = x'A^-1 x`` and A minus the second derivatives.
    """
    odds = basis.cells @ theta
    yes, no = _chances(basis, theta)
    inverse = np.linalg.inv(_information(segment, basis, strength, yes * no))
    reach = (basis.cells @ inverse * basis.cells).sum(axis=1)
    used = float(((segment.yes + segment.no) * yes * no * reach).sum())
    move = segment.unit * reach / np.maximum(1.0 - segment.unit * yes * no * reach, _LEAST)
    loss, left_out = (_loss(segment, odds - a, odds + b) for a, b in ((0.0, 0.0), (move * no, move * yes)))
    return loss, left_out, used


def _loss(segment: _Segment, odds_yes: Floats, odds_no: Floats) -> float:
    """Return the mean log loss of positives and negatives with these log-odds."""
    return float((segment.yes * np.logaddexp(0.0, -odds_yes) + segment.no * np.logaddexp(0.0, odds_no)).sum())
