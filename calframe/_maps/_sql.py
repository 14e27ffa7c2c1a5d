"""Maps as SQL: one SELECT that keeps every column of a table and adds what the map makes of its scores."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import sqlglot
from sqlglot import exp

from calframe._classes import sum_tolerance
from calframe._errors import ArgumentError
from calframe._kernels._binned import last_cells
from calframe._maps._applying import new_columns
from calframe._maps._forms import Curve, Feature, Linear, OneVersusRest, Points, Softmax, Spline
from calframe._maps._map import CalibrationMap
from calframe._maps._values import FURTHEST
from calframe._typing import Floats

_END = 1e300  # no score lies beyond
_FLAT = 700.0  # the exponential of a larger number may be refused
_ROWS, _SEGMENTS, _CURVES = "_cf_t", "_cf_segment", "_cf_curve"


def select(the_map: CalibrationMap, dialect: str, *, table: str, name: str) -> str:
    """Return the statement in a dialect."""
    if the_map.vector:
        msg = (
            f"score {the_map.scores[0]!r} holds vectors, which SQL has no common way to read; spread them over columns."
        )
        raise ArgumentError(msg)
    source = _table(table, dialect)
    tolerance = sum_tolerance([nw.Float32()], classes=len(the_map.classes))
    raw = [column_of(score) for score in the_map.scores]
    found = statement(the_map, source, raw, name=name, tolerance=tolerance if dialect == "duckdb" else None)
    return found.sql(dialect=dialect, copy=False)


def _table(name: str, dialect: str) -> exp.Table:
    """Return a table by its name in a dialect."""
    try:
        sqlglot.Dialect.get_or_raise(dialect)
    except ValueError as error:
        known = ", ".join(sorted(each.value for each in sqlglot.Dialects if each.value))
        msg = f"dialect={dialect!r} is not known; sqlglot writes {known}."
        raise ArgumentError(msg) from error
    try:
        found = exp.to_table(name, dialect=dialect)
    except sqlglot.errors.SqlglotError:
        found = exp.Table()
    parts = found.parts if isinstance(found, exp.Table) else []
    if not parts or found.alias or not all(isinstance(part, exp.Identifier) for part in parts):
        msg = (
            f"table={name!r} is no name of a table in {dialect}: it is one like flights or main.flights, with odd "
            "parts in quotes."
        )
        raise ArgumentError(msg)
    return found


def statement(
    the_map: CalibrationMap, table: exp.Table, raw: list[Any], *, name: str, tolerance: float | None
) -> exp.Select:
    """Return the statement, with the expressions of the scores.

    For DuckDB there is a tolerance, that of the sum of a row, and an error where scores are wrong.
    """
    query = _Query(the_map=the_map, tolerance=tolerance)
    columns = query.columns([exp.cast(each, "double") for each in raw])
    names = new_columns(the_map, name)
    chosen: list[Any] = [exp.Column(this=exp.Star(), table=exp.to_identifier(_ROWS))]
    chosen += [exp.alias_(column, name, quoted=True) for column, name in zip(columns, names, strict=True)]
    found = exp.select(*chosen).from_(exp.alias_(table, _ROWS, table=True), copy=False)
    for join in query.joins:
        found = found.join(join, copy=False)
    return found


@dataclass(slots=True, kw_only=True)
class _Query:
    """What a statement is made of: expressions, and the small tables that are joined for them."""

    the_map: CalibrationMap
    tolerance: float | None
    joins: list[exp.Join] = field(default_factory=list)
    _curve: Any = None

    def columns(self, raw: list[Any]) -> list[Any]:
        """Return the expressions of the columns that the map adds, null where a score is missing or wrong."""
        if (self.the_map.segments.curve > 0).any():
            self._join_segments()
        known = [_is_score(each, self.the_map.link) for each in raw]
        if self.tolerance is not None:
            names = self.the_map.scores * len(raw) if self.the_map.vector else self.the_map.scores
            checked = [_checked(each, name, self.the_map) for each, name in zip(raw, names, strict=False)]
            raw = self._aside("_cf_score", checked)
            known = [exp.not_(each.is_(exp.null())) for each in raw]
        wrong = self._wrong_sum(raw)
        return [
            exp.case().when(exp.and_(*known), value if wrong is None else exp.case().when(*wrong).else_(value))
            for value in self._values(raw)
        ]

    def _wrong_sum(self, raw: list[Any]) -> tuple[Any, Any] | None:
        """Return when the probabilities of a row do not add up to 1, and the error for it."""
        if len(raw) == 1 or self.the_map.link == "logit" or self.tolerance is None:
            return None
        total = functools.reduce(_plus, raw)
        off = exp.func("ABS", total - _number(1.0)) > _number(self.tolerance)
        names = ", ".join(map(repr, self.the_map.scores))
        return off, error_of(f"the probabilities of a row must add up to 1; score {names} has one of the sum ", total)

    def _values(self, raw: list[Any]) -> list[Any]:
        form, floor, is_logit = self.the_map.form, self.the_map.floor, self.the_map.link == "logit"
        if is_logit:
            raw = [_within(each, FURTHEST) for each in raw]
        if is_logit and len(raw) == 2:
            raw = [raw[0] - raw[1], exp.paren(raw[1] - raw[0])]
        elif is_logit and len(raw) > 2:
            raw, is_logit = self._aside("_cf_share", self._normalised(raw, "_cf_in")), False
        shares = [_Score(each, floor=floor, is_logit=is_logit) for each in raw]
        if isinstance(form, Softmax):
            return raw if form.is_identity else self._softmax(form, shares)
        if isinstance(form, OneVersusRest):
            parts = [self._of(curve, score)[0] for curve, score in zip(form.classes, shares, strict=True)]
            rows = self._aside("_cf_part", parts)
            total = functools.reduce(_plus, rows)
            even = _number(1.0 / len(rows))
            return [exp.case().when(total > _number(0.0), _over(part, total)).else_(even) for part in rows]
        return self._of(form, shares[-1])

    def _join_segments(self) -> None:
        segments = self.the_map.segments
        own = np.flatnonzero(segments.curve).tolist()
        keys = [key.alias("").gather(own).to_list() for key in segments.keys]
        names = [f"k{i}" for i in range(len(keys))]
        rows = list(zip(*keys, segments.curve[own].tolist(), strict=True))
        condition = exp.and_(
            *(
                column_of(key.name).eq(exp.column(name, table=_SEGMENTS))
                for key, name in zip(segments.keys, names, strict=True)
            )
        )
        self._join(_SEGMENTS, [*names, "curve"], rows, condition)
        self._curve = exp.func("COALESCE", exp.column("curve", table=_SEGMENTS), exp.Literal.number(0))

    def _join(self, alias: str, names: Sequence[str], rows: Sequence[Sequence[Any]], on: Any) -> None:
        tuples = [exp.Tuple(expressions=[_literal(value) for value in row]) for row in rows]
        for place, value in enumerate(rows[0]):  # the first row says which numbers are doubles
            if isinstance(value, float):
                tuples[0].expressions[place].replace(_number(value))
        columns = [exp.to_identifier(name) for name in names]
        table = exp.Values(expressions=tuples, alias=exp.TableAlias(this=exp.to_identifier(alias), columns=columns))
        self.joins.append(exp.Join(this=table, side="LEFT", on=on))

    def _aside(self, stem: str, values: Sequence[Any]) -> list[exp.Column]:
        """Name expressions that are used more than once."""
        alias = f"{stem}{len(self.joins)}"
        inner = exp.select(*(exp.alias_(value, f"v{i}") for i, value in enumerate(values)))
        self.joins.append(
            exp.Join(
                this=exp.Lateral(this=inner.subquery(), alias=exp.TableAlias(this=exp.to_identifier(alias))),
                kind="CROSS",
            )
        )
        return [exp.column(f"v{i}", table=alias) for i in range(len(values))]

    # ------------------------------------------------------------ forms
    def _of(self, curve: Curve, score: _Score) -> list[Any]:
        if isinstance(curve, Linear):
            return [self._linear(curve, score)]
        if isinstance(curve, Points):
            return [self._points(curve, score.share)]
        if isinstance(curve, Spline):
            return [_expit(self._spline(curve, score.feature("logit")))]
        low, high = (self._points(side, score.share) for side in (curve.low, curve.high))
        low, high = self._aside("_cf_ends", [low, high])
        return [_over(high, _number(1.0) - low + high), low, high]

    def _linear(self, curve: Linear, score: _Score) -> Any:
        if not curve.features:
            return score.share
        picked = self._picked(curve.coefficients())
        terms = []
        for name, coefficient in zip(curve.features, picked, strict=True):
            if name == "one":
                terms.append(coefficient)
            elif name == "curve" and curve.base is not None:
                terms.append(coefficient * exp.paren(self._points(curve.base, score.feature("logit"), shared=True)))
            else:
                terms.append(coefficient * exp.paren(score.feature(name)))
        return _expit(functools.reduce(_plus, terms))

    def _picked(self, values: Floats) -> list[Any]:
        """Return each parameter of the row's curve."""
        if self._curve is None:
            return [_number(value) for value in values[:, 0]]
        alias = f"{_CURVES}{len(self.joins)}"
        names = [f"v{i}" for i in range(len(values))]
        rows = [(i, *map(float, column)) for i, column in enumerate(values.T)]
        self._join(alias, ["curve", *names], rows, exp.column("curve", table=alias).eq(self._curve.copy()))
        return [exp.column(name, table=alias) for name in names]

    def _points(self, points: Points, at: Any, *, shared: bool = False) -> Any:
        rows = _pieces_of_points(points)
        names = ["curve", "low", "high", "x", "width", "y", "rise"]
        x, width, y, rise = self._piece(names, rows, at, side=points.side, shared=shared)
        value = y + rise * _over(exp.paren(at - x), width)
        top, bottom = exp.func("GREATEST", y, y + rise), exp.func("LEAST", y, y + rise)
        return exp.func("LEAST", exp.func("GREATEST", value, bottom), top)

    def _spline(self, spline: Spline, at: Any) -> Any:
        names = ["curve", "low", "high", "x", "c0", "c1", "c2", "c3"]
        x, *powers = self._piece(names, _pieces_of_spline(spline), at, side="right", shared=False)
        step = exp.paren(at - x)
        return functools.reduce(lambda total, power: power + step * exp.paren(total), reversed(powers))

    def _piece(self, names: list[str], rows: list[tuple[Any, ...]], at: Any, *, side: str, shared: bool) -> list[Any]:
        """Join the piece of the row's curve that its score lies in."""
        alias = f"_cf_piece{len(self.joins)}"
        curve = exp.Literal.number(0) if self._curve is None or shared else self._curve.copy()
        low, high = exp.column("low", table=alias), exp.column("high", table=alias)
        inside = [at >= low, at < high] if side == "right" else [at > low, at <= high]
        self._join(alias, names, rows, exp.and_(exp.column("curve", table=alias).eq(curve), *inside))
        return [exp.column(name, table=alias) for name in names[3:]]

    def _softmax(self, softmax: Softmax, scores: list[_Score]) -> list[Any]:
        classes = len(scores)
        flat = np.hstack([softmax.weight.reshape(len(softmax), -1), softmax.shift]).T
        picked = self._picked(flat)
        logs = self._aside("_cf_log", [score.feature("log") for score in scores])
        if softmax.cooling is not None and softmax.uniform is not None:
            cooling, uniform = self._picked(np.stack([softmax.cooling, softmax.uniform]))
            cooled = self._normalised([_over(log, cooling) for log in logs], "_cf_cool")
            even = _number(1.0 / classes)
            mixed = [exp.func("LN", part * exp.paren(_number(1.0) - uniform) + uniform * even) for part in cooled]
            logs = self._aside("_cf_mixed", mixed)
        etas = []
        for i in range(classes):
            used = [j for j in range(classes) if np.any(softmax.weight[:, i, j] != 0.0)]
            terms = [picked[i * classes + j] * logs[j] for j in used] + [picked[classes * classes + i]]
            etas.append(functools.reduce(_plus, terms))
        return self._normalised(etas, "_cf_out")

    def _normalised(self, etas: list[Any], alias: str) -> list[Any]:
        etas = list(self._aside(f"{alias}_eta", etas))
        top = exp.func("GREATEST", *etas)
        grown = [exp.func("EXP", exp.func("GREATEST", eta - top, _number(-_FLAT))) for eta in etas]
        odds = self._aside(f"{alias}_odds", grown)
        total = functools.reduce(_plus, odds)
        return [_over(odd, total) for odd in odds]


class _Score:
    """The score of a class: its column, and features of it."""

    def __init__(self, raw: Any, *, floor: float, is_logit: bool) -> None:
        self._floor = _number(floor)
        self._is_logit = is_logit
        self.raw = _within(raw, FURTHEST) if is_logit else raw
        self.share: Any = _expit(self.raw) if self._is_logit else self.raw

    def feature(self, name: Feature) -> Any:
        """Return a feature of the score."""
        if name == "score":
            return self.raw
        if self._is_logit:
            return self._of_logit(name)
        log = exp.func("LN", exp.func("GREATEST", self.share, self._floor))
        rest = exp.func("LN", exp.func("GREATEST", _number(1.0) - self.share, self._floor))
        return {"log": log, "log_rest": exp.Neg(this=rest), "logit": log - rest}[name]

    def _of_logit(self, name: Feature) -> Any:
        if name == "logit":
            return self.raw
        shrunk = exp.func("EXP", exp.func("GREATEST", exp.Neg(this=exp.func("ABS", self.raw)), _number(-_FLAT)))
        near = exp.func("LN", _number(1.0) + shrunk)
        zero = _number(0.0)
        if name == "log":
            return exp.func("LEAST", self.raw, zero) - near
        return near + exp.func("GREATEST", self.raw, zero)


def _pieces_of_points(points: Points) -> list[tuple[Any, ...]]:
    last = last_cells(points.starts, len(points.x))
    rows: list[tuple[Any, ...]] = []
    for curve, (first, final) in enumerate(zip(points.starts.tolist(), last.tolist(), strict=True)):
        x, y = points.x[first : final + 1].tolist(), points.y[first : final + 1].tolist()
        rows.append((curve, -_END, x[0], 0.0, 1.0, y[0], 0.0))
        rows += [
            (curve, x[i], x[i + 1], x[i], x[i + 1] - x[i], y[i], y[i + 1] - y[i])
            for i in range(len(x) - 1)
            if x[i] < x[i + 1]
        ]
        rows.append((curve, x[-1], _END, 0.0, 1.0, y[-1], 0.0))
    return rows


def _pieces_of_spline(spline: Spline) -> list[tuple[Any, ...]]:
    last = last_cells(spline.starts, len(spline.x))
    rows: list[tuple[Any, ...]] = []
    for curve, (first, final) in enumerate(zip(spline.starts.tolist(), last.tolist(), strict=True)):
        x, y, bend = (values[first : final + 1] for values in (spline.x, spline.y, spline.bend))
        width = np.diff(x)
        slope = np.diff(y) / width - width * (2.0 * bend[:-1] + bend[1:]) / 6.0
        end = slope[-1] + width[-1] * (bend[-2] + bend[-1]) / 2.0
        cubic = np.diff(bend) / (6.0 * width)
        rows.append((curve, -_END, float(x[0]), float(x[0]), float(y[0]), float(slope[0]), 0.0, 0.0))
        rows += [
            (curve, *map(float, (x[i], x[i + 1], x[i], y[i], slope[i], bend[i] / 2.0, cubic[i])))
            for i in range(len(width))
        ]
        rows.append((curve, float(x[-1]), _END, float(x[-1]), float(y[-1]), float(end), 0.0, 0.0))
    return rows


def _checked(raw: Any, name: str, the_map: CalibrationMap) -> Any:
    """Return a score of DuckDB: NULL where it is NaN, and an error where it is no probability."""
    found = exp.case().when(exp.func("ISNAN", raw), exp.null())
    if the_map.link == "probability":
        error = error_of(f"scores must lie between 0 and 1; column {name!r} has one outside: ", raw)
        found = found.when(exp.or_(raw < _number(0.0), raw > _number(1.0)), error)
    return found.else_(raw)


def error_of(text: str, value: Any) -> Any:
    """Return a number of DuckDB that raises an error when it is worked out."""
    said = exp.Anonymous(this="error", expressions=[exp.func("CONCAT", exp.Literal.string(text), value)])
    return exp.cast(said, "double")


def _is_score(raw: Any, link: str) -> Any:
    """Return whether a score is one: not NaN, whether that equals nothing or is the largest of all numbers."""
    if link == "probability":
        return exp.and_(raw >= _number(0.0), raw <= _number(1.0))
    return exp.or_(raw <= _number(_END), exp.Neg(this=raw) < _number(-_END))


def _within(value: Any, most: float) -> Any:
    return exp.func("LEAST", exp.func("GREATEST", value, _number(-most)), _number(most))


def column_of(name: str) -> exp.Column:
    """Return a column of the table."""
    return exp.column(name, table=_ROWS, quoted=True)


def _literal(value: Any) -> Any:
    if isinstance(value, float):
        return exp.Literal(this=_digits(value), is_string=False)
    if isinstance(value, bool | int | str | dt.date | dt.time | decimal.Decimal):
        return exp.convert(value)
    msg = f"a key of type {type(value).__name__} cannot be written in SQL; cast the segment column to text or numbers."
    raise ArgumentError(msg)


def _number(value: float) -> Any:
    return exp.cast(exp.Literal(this=_digits(value), is_string=False), "double")


def _digits(value: float) -> str:
    """Return a number with every digit: with an exponent it is a double, never a decimal."""
    text = f"{float(value)!r}"
    return text if "e" in text else f"{text}e0"


def _plus(left: Any, right: Any) -> Any:
    return left + right


def _over(left: Any, right: Any) -> Any:
    return exp.Div(this=exp.paren(left), expression=exp.paren(right), typed=True)


def _expit(logit: Any) -> Any:
    shrunk = exp.func("EXP", exp.Neg(this=exp.paren(_within(logit, _FLAT))))
    return _over(_number(1.0), _number(1.0) + shrunk)
