"""Whether a map is whole: every field within its range, and fields that belong together.

Every map is checked where it is made, so that none is applied or saved that could not be read again. What is wrong is a
`CalframeError` that names the field as files have it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import polars as pl

from calframe._binning import BinChoice
from calframe._errors import CalframeError
from calframe._maps._class_methods import CLASS_METHODS
from calframe._maps._fit_options import check_options
from calframe._maps._fits import Pooling
from calframe._maps._forms import Curve, Form, Linear, OneVersusRest, Pair, Points, Side, Softmax, Spline
from calframe._maps._methods import METHODS
from calframe._maps._segments import Segments
from calframe._maps._values import FURTHEST, through_points
from calframe._options import check_choice, check_floor
from calframe._typing import Bools, Floats, Ints, Link

if TYPE_CHECKING:
    from calframe._maps._map import CalibrationMap

_OPTIONS: Mapping[str, tuple[str, ...]] = (  # of each method
    {"prior_shift": ("prior", "base")}
    | {name: method.options for name, method in CLASS_METHODS.items()}
    | {f"ovr_{name}": method.options for name, method in METHODS.items()}
    | {name: method.options for name, method in METHODS.items()}
)
_BINS = ("bins", "strategy", "closed")
_PARAMETERS: Mapping[tuple[str, ...], tuple[tuple[str, ...], ...]] = {  # the names, and the features they may go with
    (): ((),),
    ("slope", "intercept"): (("logit", "one"), ("score", "one"), ("curve", "one")),
    ("temperature",): (("logit",),),
    ("a", "b", "c"): (("log", "log_rest", "one"),),
}
_NEVER_FALLS = ("slope", "a", "b", "temperature")  # parameters of 0 or more
_MOST_ROWS = 2**53
_LARGEST = 1e250  # a parameter: its products with logits are numbers
_MOST_OF_SCORES = 1e307  # the same of scores up to 1, which may be as near to each other
_STEEPEST = 1e200  # log-odds of a spline for each unit of the logit
_HIGHEST = 1e100  # log-odds and bends of a spline


def check_map(found: CalibrationMap) -> None:
    """Raise unless a map is whole."""
    _check_method(found)
    _check_columns(found)
    check_floor(found.floor)
    check_choice("pooling", found.pooling, get_args(Pooling))
    check_choice("link", found.link, get_args(Link))
    for name in ("n", "n_missing", "n_invalid"):
        _require(0 <= getattr(found, name) <= _MOST_ROWS, name, "must be a number of rows, 0 or more")
    _check_ends(found.low, found.high)
    _require(re.fullmatch(r"([0-9a-f]{8})?", found.mark) is not None, "mark", "must be a checksum, 8 digits of hex")
    check_parts(found.form, found.segments, len(found.classes))
    _check_scale(found.form, found.link)


def check_parts(form: Form, segments: Segments, classes: int) -> None:
    """Raise unless a form is whole, is one of so many classes, and has the curves that segments take."""
    if isinstance(form, OneVersusRest):
        _require(len(form.classes) == classes > 2, "form.classes", f"must be a part for each of {classes} classes")
        for i, curve in enumerate(form.classes):
            _check_curve(curve, f"form.classes[{i}]")
            _require(len(curve) == len(form), "form.classes", "have unequal numbers of curves")
    elif isinstance(form, Softmax):
        _check_softmax(form, classes)
    else:
        _require(classes in (0, 2), "classes", f"are {classes}, and form is a map of one score")
        _check_curve(form, "form")
    _check_segments(segments, len(form))


def _check_ends(low: float | None, high: float | None) -> None:
    if low is None or high is None:
        _require(low is high, "low", "and high must both be scores, or both null")
    else:
        _require(0.0 <= low <= high <= 1.0, "low", "and high must be scores within [0, 1], or null")


def _check_method(found: CalibrationMap) -> None:
    check_choice("method", found.method, _OPTIONS)
    unknown = [name for name in found.options if name not in _OPTIONS[found.method]]
    _require(not unknown, "options", f"has what {found.method} does not take: {', '.join(map(repr, unknown))}")
    check_options(**{name: value for name, value in found.options.items() if name not in _BINS})
    if "bins" in found.options:
        BinChoice.from_arguments(
            **{"strategy": "uniform", "closed": "left"}
            | {name: found.options[name] for name in _BINS if name in found.options}
        )


def _check_columns(found: CalibrationMap) -> None:
    """Raise unless the columns that a map reads go with its classes and its segments."""
    count = len(found.classes)
    _require(count != 1 and len(set(found.classes)) == count, "classes", "must be two or more, each once, or none")
    _require(found.positive is None or not count, "positive", "must be null where there are classes")
    _require(count > 0 or not found.vector, "vector", "must be false where there are no classes")
    wanted = 1 if found.vector else max(count, 1)
    _require(len(found.scores) == wanted, "scores", f"must name {wanted} column{'s' if wanted > 1 else ''}")
    _require(len(set(found.scores)) == wanted, "scores", "names a column twice")
    _require(found.by == found.segments.by, "by", "must be the names of the keys of segments")
    _require(len(set(found.by)) == len(found.by), "by", "names a column twice")


def _check_segments(segments: Segments, curves: int) -> None:
    columns = {"curve": segments.curve, "n": segments.n, "low": segments.low, "high": segments.high}
    for name, values in columns.items():
        _require(values.shape == (len(segments.note),), f"segments.{name}", "and segments.note differ in length")
    for i, key in enumerate(segments.keys):
        _require(len(key) == len(segments), f"segments.keys[{i}].values", "and segments.note differ in length")
        _require(not key.null_count(), f"segments.keys[{i}].values", "has a null")
    _require(bool(segments.keys) or not len(segments), "segments.keys", "is empty, and there are segments")
    keys = pl.DataFrame([key.alias(str(i)) for i, key in enumerate(segments.keys)])
    _require(not len(segments) or keys.n_unique() == len(segments), "segments.keys", "has a segment twice")
    taken, n, low, high = columns.values()
    known = bool(((taken >= 0) & (taken < curves)).all())
    _require(known, "segments.curve", f"must be numbers of curves, from 0 to {curves - 1}")
    _require(curves <= len(segments) + 1, "form", f"has {curves} curves, more than segments take")
    _require(bool(((n >= 0) & (n <= _MOST_ROWS)).all()), "segments.n", "must be numbers of rows, 0 or more")
    within = (low >= 0.0) & (low <= high) & (high <= 1.0) | (np.isnan(low) & np.isnan(high))
    _require(bool(within.all()), "segments.low", "and high must be scores within [0, 1], or null")


def _check_scale(form: Form, link: str) -> None:
    """Raise if points are on the scale of logits in a map that has none of them."""
    curves = form.classes if isinstance(form, OneVersusRest) else (form,)
    parts = [
        part for curve in curves for part in (curve, *(getattr(curve, name, None) for name in ("base", "low", "high")))
    ]
    wanted = {"share"} if link != "logit" or isinstance(form, OneVersusRest) else {"share", "logit"}
    fine = {part.scale for part in parts if isinstance(part, Points)} <= wanted
    _require(fine, "form.scale", "must be 'share' in a map that reads no logits")


def _check_curve(curve: Curve, field: str) -> None:
    _CHECKS[type(curve)](curve, field)


def _check_points(points: Points, field: str) -> None:
    _check_flat(points.starts, {"x": points.x, "y": points.y}, field, fewest=1)
    later = np.diff(points.x)[~_ends(points.starts, len(points.x))]
    _require(bool((later >= 0.0).all()), f"{field}.x", "must ascend")
    _require(_is_within(points.x, _HIGHEST), f"{field}.x", "has a score that is too large")
    _require(bool(((points.y >= 0.0) & (points.y <= 1.0)).all()), f"{field}.y", "must be probabilities, within [0, 1]")


def _check_spline(spline: Spline, field: str) -> None:
    columns = {"x": spline.x, "y": spline.y, "bend": spline.bend}
    _check_flat(spline.starts, columns, field, fewest=2)
    inside = ~_ends(spline.starts, len(spline.x))
    width = np.diff(spline.x)[inside]
    _require(bool((width > 0.0).all()), f"{field}.x", "must ascend")
    for name, most in (("x", FURTHEST), ("y", _HIGHEST), ("bend", _HIGHEST)):
        _require(_is_within(columns[name], most), f"{field}.{name}", "has a number that is too large")
    with np.errstate(over="ignore"):
        _require(_is_within(np.diff(spline.y)[inside] / width, _STEEPEST), f"{field}.y", "rises too steeply")


def _check_linear(curve: Linear, field: str) -> None:
    known = _PARAMETERS.get(curve.names)
    _require(known is not None, f"{field}.names", f"are those of no map: {', '.join(map(repr, curve.names))}")
    _require(curve.features in (known or ()), f"{field}.features", f"do not go with {', '.join(curve.names) or 'none'}")
    for name, table in (("values", curve.values), ("errors", curve.errors)):
        rows = table.ndim == 2 and len(table) == len(curve.names) and table.shape == curve.values.shape
        _require(
            rows and table.shape[1] > 0, f"{field}.{name}", "must have one row per parameter and one column per curve"
        )
    for name, feature, row in zip(curve.names, curve.features, curve.values, strict=True):
        most = _MOST_OF_SCORES if feature == "score" else _LARGEST
        _require(_is_within(row, most), f"{field}.values", f"has a {name} that is no number, or too large")
        _require(name not in _NEVER_FALLS or bool((row >= 0.0).all()), f"{field}.values", f"has a {name} below 0")
        far = name != "temperature" or bool((row >= 1.0 / _LARGEST).all())
        _require(far, f"{field}.values", "has a temperature that is not above 0")
    _check_errors(curve.errors, f"{field}.errors")
    _require(0.0 <= curve.epsilon < 0.5, f"{field}.epsilon", "must lie between 0 and 0.5")
    _check_base(curve, field)


def _check_errors(errors: Floats, field: str) -> None:
    known = errors[~np.isnan(errors)]
    _require(bool(((known >= 0.0) & np.isfinite(known)).all()), field, "must be 0 or more, or null")


def _check_base(curve: Linear, field: str) -> None:
    _require(
        ("curve" in curve.features) == (curve.base is not None),
        f"{field}.base",
        "must be given with the feature 'curve', and only with it",
    )
    if curve.base is not None:
        _check_points(curve.base, f"{field}.base")
        _require(len(curve.base) == 1, f"{field}.base", "must be one curve")


def _check_pair(pair: Pair, field: str) -> None:
    for name, side in (("low", pair.low), ("high", pair.high)):
        _check_points(side, f"{field}.{name}")
    _require(len(pair.low) == len(pair.high), field, "has unequal numbers of curves in low and high")
    at = np.append(pair.low.x, pair.high.x)
    code = np.concatenate([np.repeat(np.arange(len(side)), side.sizes) for side in (pair.low, pair.high)])
    sides: tuple[tuple[Side, Side], ...] = (("left", "left"), ("right", "right"), (pair.low.side, pair.high.side))
    for before, after in sides:
        low = through_points(replace(pair.low, side=before), at, code)
        high = through_points(replace(pair.high, side=after), at, code)
        _require(bool((low <= high).all()), f"{field}.low", f"must not lie above {field}.high")


_CHECKS: Mapping[type[Any], Callable[[Any, str], None]] = {
    Points: _check_points,
    Linear: _check_linear,
    Spline: _check_spline,
    Pair: _check_pair,
}


def _check_softmax(softmax: Softmax, classes: int) -> None:
    maps = len(softmax.weight)
    _require(classes > 2, "classes", f"are {classes}, and form is a map of several classes")
    _require(softmax.weight.shape == (maps, classes, classes), "form.weight", f"must be {classes} by {classes} numbers")
    _require(maps > 0, "form.weight", "must have one map or more")
    _require(softmax.shift.shape == (maps, classes), "form.shift", f"must be {classes} numbers for each map")
    singles = {name: getattr(softmax, name) for name in ("temperature", "cooling", "uniform")}
    for name, values in (singles | {"errors": softmax.errors}).items():
        _require(values is None or values.shape == (maps,), f"form.{name}", "must be a number for each map, or null")
    _require(
        (softmax.cooling is None) == (softmax.uniform is None),
        "form.cooling",
        "must be given with form.uniform, and only with it",
    )
    for name, values in ({"weight": softmax.weight, "shift": softmax.shift} | singles).items():
        fine = values is None or _is_within(values, _LARGEST)
        _require(fine, f"form.{name}", "has a parameter that is no number, or too large")
    for name in ("temperature", "cooling"):
        above = singles[name] is None or bool((singles[name] >= 1.0 / _LARGEST).all())
        _require(above, f"form.{name}", "must be above 0")
    share = softmax.uniform
    _require(share is None or bool(((share >= 0.0) & (share <= 1.0)).all()), "form.uniform", "must be within [0, 1]")
    if softmax.errors is not None:
        fits = softmax.temperature is not None and softmax.errors.shape == (maps,)
        _require(fits, "form.errors", "must be a number for each form.temperature, or null")
        _check_errors(softmax.errors, "form.errors")
    if softmax.temperature is not None:
        same = softmax.weight == np.eye(classes) / softmax.temperature[:, None, None]
        _require(
            bool(same.all()) and not softmax.shift.any(),
            "form.weight",
            "must be the identity divided by form.temperature, with form.shift 0",
        )


def _check_flat(starts: Ints, columns: Mapping[str, Floats], field: str, *, fewest: int) -> None:
    _require(starts.ndim == 1, f"{field}.starts", "must be a list of whole numbers")
    length = len(columns["x"])
    for name, values in columns.items():
        _require(values.shape == (length,), f"{field}.{name}", f"and {field}.x differ in length")
        _require(bool(np.isfinite(values).all()), f"{field}.{name}", "has a point that is no number")
    _require(bool(((starts >= 0) & (starts <= length)).all()), f"{field}.starts", "leads beyond the points")
    fine = len(starts) > 0 and starts[0] == 0 and bool((np.diff(np.append(starts, length)) >= fewest).all())
    _require(fine, f"{field}.starts", f"must begin at 0 and give each curve {fewest} or more points")


def _ends(starts: Ints, points: int) -> Bools:
    """Return which steps from one point to the next lead from one curve to another."""
    found = np.zeros(max(points - 1, 0), dtype=bool)
    found[starts[1:] - 1] = True
    return found


def _is_within(values: Floats, most: float) -> bool:
    return bool((np.abs(values) <= most).all())  # NaN is not


def _require(condition: bool, field: str, text: str) -> None:  # noqa: FBT001  a condition and what its failure means
    if not condition:
        msg = f"{field} {text}"
        raise CalframeError(msg)
