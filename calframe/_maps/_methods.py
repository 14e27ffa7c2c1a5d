"""The methods of binary maps: each is data, with what it takes, whether it pools, and its fit of many segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from calframe._fitting import _beta, _linear, _pooled_curve, _pooling, _spline, _steps, _venn_abers
from calframe._fitting._fitted import Knots, Outcome
from calframe._fitting._fitted import Parameters as Fitted
from calframe._kernels._binned import sizes_of
from calframe._kernels._logistic import logit
from calframe._kernels._newton import Regression, inverses
from calframe._kernels._tally import Tally
from calframe._maps._fit_options import FitOptions, Free
from calframe._maps._forms import Curve, Feature, Linear, Pair, Points, Scale, Side, Spline
from calframe._maps._values import FURTHEST, through_points
from calframe._typing import Closed, Floats, Ints

Pooled: TypeAlias = tuple[Curve, Ints, Curve | None]  # of the segments, how it went, and of all rows if not as `fit`
_BETA: tuple[Feature, ...] = ("log", "log_rest", "one")
_OTHER: Mapping[Closed, Side] = {"left": "right", "right": "left"}  # steps go on on the other side
_FREE: Mapping[Free, tuple[Feature, ...]] = {"abm": _BETA, "am": ("logit", "one"), "ab": ("log", "log_rest")}
_ABC: Mapping[Free, Floats] = {  # a, b and c as linear combinations of the coefficients that are free
    "abm": np.eye(3),
    "am": np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    "ab": np.array([[1.0, 0.0], [0.0, 1.0], [np.log(2.0), -np.log(2.0)]]),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """The distinct scores of some segments.

    Attributes
    ----------
    tally : Tally
        At distinct scores: probabilities, or logits.
    is_logit : bool
        Whether those are logits.
    whole : Tally
        The same of all rows together, those of no segment, too.
    """

    tally: Tally
    is_logit: bool
    whole: Tally

    @property
    def finite(self) -> Self:
        """The same with scores that can be knots: an infinite logit has a place, too."""
        tally, whole = (replace(each, score=each.score.clip(-FURTHEST, FURTHEST)) for each in (self.tally, self.whole))
        return replace(self, tally=tally, whole=whole) if self.is_logit else self

    @property
    def scale(self) -> Scale:
        """What scores are, as `Points` call it."""
        return "logit" if self.is_logit else "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method of binary maps.

    Attributes
    ----------
    name : str
        Its name.
    fit : callable
        A `Sample` and the options to the curves of its segments, and the `Outcome` of each.
    options : tuple of str
        The arguments that it takes besides those of every method.
    reads : {"logit", "share"}
        Whether logits are read as they are, or as the probabilities they stand for.
    pool : callable, optional
        The same with partial pooling, and the curve of all rows where that is not the one of `fit`; None where there
        is no partial pooling.
    usable : frozenset of Outcome
        How a fit may go and still have a curve; other segments take the pooled one.
    """

    name: str
    fit: Callable[[Sample, FitOptions], tuple[Curve, Ints]]
    options: tuple[str, ...] = ()
    reads: Literal["logit", "share"] = "share"
    pool: Callable[[Sample, FitOptions], Pooled] | None = None
    usable: frozenset[Outcome] = frozenset({Outcome.FINE, Outcome.BOUND})

    @property
    def logarithms(self) -> bool:
        """Whether probabilities enter a logarithm, where those of 0 and 1 lie far out."""
        return self.reads == "logit" and not self.always

    @property
    def always(self) -> bool:
        """Whether all rows together have a curve however the fit goes."""
        return Outcome.SEPARABLE in self.usable


def identity(curves: int) -> Linear:
    """Return maps that leave every score as it is."""
    nothing = np.zeros((0, curves))
    return Linear(features=(), names=(), values=nothing, errors=nothing)


def _identity(sample: Sample, _: FitOptions) -> tuple[Curve, Ints]:
    count = len(sample.tally)
    return identity(count), np.full(count, Outcome.FINE, dtype=np.int64)


def _linear_form(
    features: tuple[Feature, ...], names: tuple[str, ...], fitted: Fitted, free: Floats | None = None
) -> tuple[Curve, Ints]:
    errors = _errors(fitted, np.eye(len(names)) if free is None else free)
    return Linear(features=features, names=names, values=fitted.values, errors=errors), fitted.outcome


def _errors(fitted: Fitted, free: Floats) -> Floats:
    """Return standard errors of values that are `free` times the coefficients fitted; none at a constraint."""
    variance = _variance(free, inverses(np.einsum("ji,jks,kl->ils", free, fitted.information, free)))
    with np.errstate(invalid="ignore"):
        return np.where((variance > 0.0) & (fitted.outcome == Outcome.FINE), np.sqrt(variance), np.nan)


def _variance(free: Floats, covariance: Floats) -> Floats:
    """Return the variances of `free` times coefficients of this covariance."""
    variance: Floats = np.einsum("ij,jks,ik->is", free, covariance, free)
    return np.maximum(variance, 0.0)


def _platt(sample: Sample, options: FitOptions) -> tuple[Curve, Ints]:
    fitted = _linear.platt(
        sample.tally,
        on=options.on,
        is_logit=sample.is_logit,
        floor=options.floor,
        smoothing=options.target_smoothing,
    )
    return _linear_form((options.on, "one"), ("slope", "intercept"), fitted)


def _temperature(sample: Sample, options: FitOptions) -> tuple[Curve, Ints]:
    fitted = _linear.temperature(
        sample.tally, is_logit=sample.is_logit, floor=options.floor, smoothing=options.target_smoothing
    )
    return _linear_form(("logit",), ("temperature",), fitted)


def _beta_map(sample: Sample, options: FitOptions) -> tuple[Curve, Ints]:
    fitted = _beta.beta(
        sample.tally,
        parameters=options.parameters,
        is_logit=sample.is_logit,
        floor=options.floor,
        smoothing=options.target_smoothing,
    )
    return _linear_form(_BETA, ("a", "b", "c"), fitted, _ABC[options.parameters])


def _isotonic(sample: Sample, options: FitOptions) -> tuple[Curve, Ints]:
    knots = _steps.isotonic(
        sample.finite.tally, interpolation=options.interpolation, centred=options.centred, epsilon=options.epsilon
    )
    return _blocks(knots, options, sample.scale), knots.outcome


def _blocks(knots: Knots, options: FitOptions, scale: Scale) -> Points:
    return replace(_held(knots) if options.interpolation == "step" else _joined(knots), scale=scale)


def _histogram(sample: Sample, options: FitOptions) -> tuple[Curve, Ints]:
    knots, closed = _bins(sample.tally, options)
    return _joined(knots, side=_OTHER[closed]), knots.outcome


def _bins(tally: Tally, options: FitOptions) -> tuple[Knots, Closed]:
    """Return the histogram of each segment, and the side that belongs to a bin."""
    fixed = options.choice.fixed
    if fixed is None:
        return _steps.quantile_histogram(tally, count=options.choice.quantiles, smoothing=options.laplace), "left"
    edges = np.asarray(fixed.edges)
    return _steps.histogram(tally, edges=edges, closed=fixed.closed, smoothing=options.laplace), fixed.closed


def _venn(sample: Sample, _: FitOptions) -> tuple[Curve, Ints]:
    fit = _venn_abers.venn_abers(sample.finite.tally)
    low, high = _held(fit.low, before=0.0), _reached(fit.high, after=1.0)
    return Pair(low=replace(low, scale=sample.scale), high=replace(high, scale=sample.scale)), fit.low.outcome


def _splines(sample: Sample, options: FitOptions) -> tuple[Curve, Ints]:
    tally = sample.tally
    counts = replace(tally, squared=tally.weight, squared_positive=tally.positive)  # weight 2 is the row twice
    fit = _spline.spline(counts, is_logit=sample.is_logit, floor=options.floor, smoothing=options.target_smoothing)
    return Spline(starts=fit.starts, x=fit.x, y=fit.y, bend=fit.curvature), fit.outcome


def _joined(knots: Knots, *, side: Literal["left", "right"] = "right") -> Points:
    return Points(starts=knots.starts, x=knots.x, y=knots.y, side=side)


def _held(knots: Knots, *, before: float | None = None) -> Points:
    """Return steps whose values hold from their knot up to the next; before the first holds its own, or that given."""
    first = np.zeros(len(knots.x), dtype=bool)
    first[knots.starts] = True
    earlier = np.append(knots.y[:1], knots.y[:-1])
    earlier = np.where(first, knots.y if before is None else before, earlier)
    x, y = np.repeat(knots.x, 2), np.column_stack([earlier, knots.y]).ravel()
    return Points(starts=2 * knots.starts, x=x, y=y, side="right")


def _reached(knots: Knots, *, after: float) -> Points:
    """Return steps whose values hold up to their knot, that included."""
    sizes = sizes_of(knots.starts, len(knots.x))
    later = np.append(knots.y[1:], after)
    later[knots.starts + sizes - 1] = after
    x, y = np.repeat(knots.x, 2), np.column_stack([knots.y, later]).ravel()
    return Points(starts=2 * knots.starts, x=x, y=y, side="left")


# ---------------------------------------------------------------- partial pooling
def _pooled(sample: Sample, options: FitOptions, features: tuple[Feature, ...], least: float) -> _pooling.Pooled:
    """Fit coefficients of some features; but for the constant, at least `least`.

    Without a constant, all features are 0 at a score of 1/2.
    """
    tally = sample.tally
    positive, negative = _linear.smoothed(tally, smoothing=options.target_smoothing)
    known = _linear.features_of(tally, is_logit=sample.is_logit, floor=options.floor)
    known = known if "one" in features else _beta.doubled(known)
    columns: Mapping[Feature, Any] = {
        "logit": known.z,
        "log": known.ln_p,
        "log_rest": -known.ln_rest,
        "score": _linear.finite(tally, options.floor),
        "one": None,
    }
    regression = Regression(
        starts=tally.starts, positive=positive, negative=negative, features=tuple(columns[name] for name in features)
    )
    return _pooling.pooled(regression, lower=np.array([-np.inf if name == "one" else least for name in features]))


def _pool_platt(sample: Sample, options: FitOptions) -> Pooled:
    features: tuple[Feature, ...] = (options.on, "one")
    found = _pooled(sample, options, features, 0.0)
    names = ("slope", "intercept")
    own = Linear(features=features, names=names, values=found.values, errors=found.standard_deviation)
    return own, found.outcome, None


def _pool_isotonic(sample: Sample, options: FitOptions) -> Pooled:
    sample = sample.finite
    curve = _pooled_curve.isotonic_curve(sample.whole, interpolation=options.interpolation, centred=options.centred)
    base = _blocks(curve.knots, options, sample.scale)
    return _pool_steps(sample, options, curve, base, epsilon=options.epsilon or 0.0)


def _pool_histogram(sample: Sample, options: FitOptions) -> Pooled:
    whole = sample.whole
    knots, closed = _bins(whole, options)
    curve = _pooled_curve.histogram_curve(whole, knots, closed=closed, smoothing=options.laplace)
    if options.laplace:
        more = _pooled_curve.with_rows_added(sample.tally, whole, knots, closed=closed, smoothing=options.laplace)
        sample = replace(sample, tally=more)
    return _pool_steps(sample, options, curve, _joined(curve.knots, side=_OTHER[closed]))


def _pool_steps(
    sample: Sample, options: FitOptions, curve: _pooled_curve.PooledCurve, base: Points, *, epsilon: float = 0.0
) -> Pooled:
    """Bend the curve of all rows: by a slope and an intercept of each segment, and for all others towards `fit`.

    Where all rows together have no finite fit, segments have none, and the curve of all rows stays as it is.
    """
    rate = through_points(base, sample.tally.score, np.zeros(len(sample.tally.score), dtype=np.int64))
    found = _pooled_curve.bent(sample.tally, logit(rate, options.floor))
    own = Linear(
        features=("curve", "one"),
        names=("slope", "intercept"),
        values=found.values,
        errors=found.standard_deviation,
        base=base,
        epsilon=epsilon,
    )
    if not np.isfinite(found.values).all():
        return own, found.outcome, None
    values = _pooled_curve.nearest(curve, floor=options.floor)[:, None]
    return own, found.outcome, replace(own, values=values, errors=np.full_like(values, np.nan))


def _pool_temperature(sample: Sample, options: FitOptions) -> Pooled:
    found = _pooled(sample, options, ("logit",), 1.0 / _linear.FLATTEST)
    with np.errstate(invalid="ignore"):
        values, errors = 1.0 / found.values, found.standard_deviation / found.values**2
    return Linear(features=("logit",), names=("temperature",), values=values, errors=errors), found.outcome, None


def _pool_beta(sample: Sample, options: FitOptions) -> Pooled:
    found = _pooled(sample, options, _FREE[options.parameters], 0.0)
    abc = _ABC[options.parameters]
    values, errors = abc @ found.values, np.sqrt(_variance(abc, found.covariance))
    return Linear(features=_BETA, names=("a", "b", "c"), values=values, errors=errors), found.outcome, None


_ANY_CURVE = frozenset({Outcome.FINE, Outcome.BOUND, Outcome.SEPARABLE, Outcome.ONE_SCORE})

METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method(name="identity", fit=_identity),
        Method(
            name="histogram",
            fit=_histogram,
            options=("bins", "strategy", "closed", "laplace"),
            pool=_pool_histogram,
            usable=_ANY_CURVE,
        ),
        Method(
            name="isotonic",
            fit=_isotonic,
            options=("interpolation", "centred", "epsilon"),
            reads="logit",
            pool=_pool_isotonic,
            usable=_ANY_CURVE,
        ),
        Method(name="platt", fit=_platt, options=("on", "target_smoothing"), reads="logit", pool=_pool_platt),
        Method(name="beta", fit=_beta_map, options=("parameters", "target_smoothing"), reads="logit", pool=_pool_beta),
        Method(
            name="temperature",
            fit=_temperature,
            options=("target_smoothing",),
            reads="logit",
            pool=_pool_temperature,
        ),
        Method(name="spline", fit=_splines, options=("target_smoothing",), reads="logit"),
        Method(name="venn_abers", fit=_venn, reads="logit", usable=_ANY_CURVE | {Outcome.ONE_CLASS}),
    )
}
