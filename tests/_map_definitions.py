"""What each form of map makes of one row, by its definition and in plain Python: the expected values of the engines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from calframe import CalibrationMap
from calframe._maps._forms import Linear, OneVersusRest, Pair, Points, Softmax


def expected(the_map: CalibrationMap, keys: Sequence[Any], scores: Sequence[float | None]) -> list[float | None]:
    """Return the new columns of a row: its segment's map, the pooled one if that is not known; null without a score."""
    form, columns = the_map.form, len(the_map.classes) if several(the_map) else 3 if is_pair(the_map) else 1
    if any(score is None or math.isnan(score) for score in scores):
        return [None] * columns
    known = dict(zip(zip(*(key.to_list() for key in the_map.segments.keys), strict=True), range(10**6), strict=False))
    place = known.get(tuple(keys))
    curve = 0 if place is None else int(the_map.segments.curve[place])
    given = [float(score) for score in scores if score is not None]
    is_logit = the_map.link == "logit"
    if several(the_map):
        shares = softmax(given) if is_logit else given
        if isinstance(form, Softmax):
            return list(of_softmax(form, curve, shares, the_map.floor))
        each = zip(form.classes, shares, strict=True)
        parts = [of_curve(one, curve, share, is_logit=False, floor=the_map.floor)[0] for one, share in each]
        return [part / sum(parts) if sum(parts) > 0 else 1 / len(parts) for part in parts]
    one = given[1] - given[0] if is_logit and len(given) == 2 else given[-1]
    return list(of_curve(form, curve, one, is_logit=is_logit, floor=the_map.floor))


def several(the_map: CalibrationMap) -> bool:
    return isinstance(the_map.form, Softmax | OneVersusRest)


def is_pair(the_map: CalibrationMap) -> bool:
    return isinstance(the_map.form, Pair)


def of_curve(form: Any, curve: int, score: float, *, is_logit: bool, floor: float) -> list[float]:
    share = expit(score) if is_logit else score
    if isinstance(form, Points):
        return [through(form, curve, score if form.scale == "logit" else share)]
    if isinstance(form, Pair):
        low, high = (through(end, curve, score if end.scale == "logit" else share) for end in (form.low, form.high))
        return [high / (1 - low + high), low, high]
    if isinstance(form, Linear):
        if not form.features:
            return [share]
        values = [float(value) for value in form.values[:, curve]]
        if form.names == ("temperature",):
            values = [1 / values[0]]
        features = [feature(form, name, score, is_logit=is_logit, floor=floor) for name in form.features]
        value = expit(math.fsum(a * b for a, b in zip(values, features, strict=True)))
        return [min(max(value, form.epsilon), 1 - form.epsilon)]
    return [expit(spline(form, curve, logit(score, is_logit=is_logit, floor=floor)))]


def feature(form: Linear, name: str, score: float, *, is_logit: bool, floor: float) -> float:
    z = logit(score, is_logit=is_logit, floor=floor)
    if name == "curve":
        at = expit(score) if is_logit and form.base.scale == "share" else score
        return logit(through(form.base, 0, at), is_logit=False, floor=floor)
    if is_logit:
        log, log_rest = -math.log1p(math.exp(-z)), math.log1p(math.exp(z))
    else:
        log, log_rest = math.log(max(score, floor)), -math.log(max(1 - score, floor))
    return {"logit": z, "score": score, "log": log, "log_rest": log_rest, "one": 1.0}[name]


def logit(score: float, *, is_logit: bool, floor: float) -> float:
    return score if is_logit else math.log(max(score, floor)) - math.log(max(1 - score, floor))


def expit(z: float) -> float:
    return 1 / (1 + math.exp(-z)) if z > -700 else 0.0


def points_of(form: Any, curve: int, *names: str) -> list[tuple[float, ...]]:
    ends = [*form.starts.tolist(), len(form.x)]
    return list(zip(*(getattr(form, name)[ends[curve] : ends[curve + 1]].tolist() for name in names), strict=True))


def through(points: Points, curve: int, at: float) -> float:
    """Straight lines between points, constant outside; of two points at one x the side says which counts there."""
    places = points_of(points, curve, "x", "y")
    before = [i for i, (x, _) in enumerate(places) if (x <= at if points.side == "right" else x < at)]
    if not before:
        return places[0][1]
    if before[-1] == len(places) - 1:
        return places[-1][1]
    (x0, y0), (x1, y1) = places[before[-1]], places[before[-1] + 1]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)


def spline(form: Any, curve: int, z: float) -> float:
    """The natural cubic spline of knots with given second derivatives, straight outside."""
    knots = points_of(form, curve, "x", "y", "bend")
    if z <= knots[0][0]:
        (x0, y0, m0), (x1, y1, m1) = knots[:2]
        return y0 + ((y1 - y0) / (x1 - x0) - (x1 - x0) * (2 * m0 + m1) / 6) * (z - x0)
    if z >= knots[-1][0]:
        (x0, y0, m0), (x1, y1, m1) = knots[-2:]
        return y1 + ((y1 - y0) / (x1 - x0) + (x1 - x0) * (m0 + 2 * m1) / 6) * (z - x1)
    i = max(i for i, knot in enumerate(knots) if knot[0] <= z)
    (x0, y0, m0), (x1, y1, m1) = knots[i : i + 2]
    h = x1 - x0
    a, b = (x1 - z) / h, (z - x0) / h
    return a * y0 + b * y1 + ((a**3 - a) * m0 + (b**3 - b) * m1) * h * h / 6


def of_softmax(form: Softmax, curve: int, shares: list[float], floor: float) -> list[float]:
    weight, shift = form.weight[curve].tolist(), form.shift[curve].tolist()
    classes = range(len(shares))
    if form.is_identity:
        return shares
    logs = [math.log(max(share, floor)) for share in shares]
    if form.cooling is not None:
        cooled = softmax([log / float(form.cooling[curve]) for log in logs])
        u = float(form.uniform[curve])
        logs = [math.log((1 - u) * share + u / len(shares)) for share in cooled]
    return softmax([math.fsum([*(weight[i][j] * logs[j] for j in classes), shift[i]]) for i in classes])


def softmax(values: Sequence[float]) -> list[float]:
    top = max(values)
    odds = [math.exp(value - top) for value in values]
    return [odd / math.fsum(odds) for odd in odds]
