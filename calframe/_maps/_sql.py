"""Maps as SQL: one SELECT that keeps every column of a table and adds what the map makes of its scores."""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import sqlglot
from sqlglot import exp

from calframe._classes import sum_tolerance
from calframe._errors import ArgumentError, ColumnClashError
from calframe._maps._applying import new_columns
from calframe._maps._dialects import ROWS, Source, Writer, number
from calframe._maps._forms import Curve, Feature, Linear, OneVersusRest, Points, Softmax, Spline
from calframe._maps._inputs import used_columns
from calframe._maps._map import CalibrationMap
from calframe._maps._pieces import END, Columns, pieces_of_points, pieces_of_spline
from calframe._maps._values import FURTHEST
from calframe._typing import Floats

_FLAT = 700.0  # the exponential of a larger number may be refused
_SEGMENTS, _CURVES = "_cf_segment", "_cf_curve"


def select(the_map: CalibrationMap, dialect: str, *, table: str, name: str) -> str:
    """Return the statement in a dialect."""
    writer = Writer(dialect)
    if the_map.vector:
        msg = (
            f"score {the_map.scores[0]!r} holds vectors, which SQL has no common way to read; spread them over columns."
        )
        raise ArgumentError(msg)
    check_clashes(new_columns(the_map, name), used_columns(the_map))
    tolerance = sum_tolerance([nw.Float32()], classes=len(the_map.classes))
    raw = [column_of(score) for score in the_map.scores]
    query = Query(the_map=the_map, writer=writer, tolerance=tolerance if dialect == "duckdb" else None)
    return query.statement(writer.sql(_table(table, dialect)), raw, name=name)


def check_clashes(names: Sequence[str], known: Collection[str]) -> None:
    """Raise where a new column has the name of one that there is, as SQL tells names apart."""
    there = {column.casefold(): column for column in known}
    for name in names:
        if name in known:
            raise ColumnClashError.from_existing(name)
        if name.casefold() in there:
            raise ColumnClashError.from_case([there[name.casefold()], name])
        there[name.casefold()] = name


def _table(name: str, dialect: str) -> exp.Table:
    """Return a table by its name in a dialect."""
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


@dataclass(slots=True, kw_only=True)
class Query:
    """What a statement is made of: expressions, and the small tables that are joined for them.

    Attributes
    ----------
    the_map : CalibrationMap
        The map.
    writer : Writer
        What writes it in a dialect.
    tolerance : float, optional
        That of the sum of a row, for DuckDB, where wrong scores are an error; NULL elsewhere.
    tables : dict of str to Columns, optional
        Where small tables of numbers and text are to be left, by their names, instead of being written.
    """

    the_map: CalibrationMap
    writer: Writer
    tolerance: float | None
    tables: dict[str, Columns] | None = None
    _sources: list[Source] = field(default_factory=list)
    _curve: Any = None

    def statement(self, table: str, raw: list[Any], *, name: str) -> str:
        """Return the statement that reads a table, with the expressions of the scores."""
        columns = self._columns([exp.cast(each, "double") for each in raw])
        named = list(zip(columns, new_columns(self.the_map, name), strict=True))
        return self.writer.statement(self.writer.named(table, ROWS), self._sources, named)

    def _columns(self, raw: list[Any]) -> list[Any]:
        """Return the expressions of the columns that the map adds, null where a score is missing or wrong."""
        if (self.the_map.segments.curve > 0).any():
            self._join_segments()
        known = [_is_score(each, self.the_map.link) for each in raw]
        if self.tolerance is not None:
            names = self.the_map.scores * len(raw) if self.the_map.vector else self.the_map.scores
            checked = [_checked(each, name, self.the_map) for each, name in zip(raw, names, strict=False)]
            raw = self._aside("_cf_score", checked)
            known = [exp.not_(each.is_(exp.null())) for each in raw]
        all_known = exp.and_(*known)
        if len(raw) > 1 and self.writer.sets_aside:
            (one,) = self._aside("_cf_known", [exp.case().when(all_known, exp.Literal.number(1))])  # some lack booleans
            all_known = exp.not_(one.is_(exp.null()))
        wrong = self._wrong_sum(raw)
        return [
            exp.case().when(all_known, value if wrong is None else exp.case().when(*wrong).else_(value))
            for value in self._values(raw)
        ]

    def _wrong_sum(self, raw: list[Any]) -> tuple[Any, Any] | None:
        """Return when the probabilities of a row do not add up to 1, and the error for it."""
        if len(raw) == 1 or self.the_map.link == "logit" or self.tolerance is None:
            return None
        total = self._once("_cf_sum", functools.reduce(operator.add, raw))
        off = exp.func("ABS", total - number(1.0)) > number(self.tolerance)
        names = ", ".join(map(repr, self.the_map.scores))
        text = f"the probabilities of a row must add up to 1; score {names} has a row that adds up to "
        return off, error_of(text, total)

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
            total = self._once("_cf_sum", functools.reduce(operator.add, rows))
            even = number(1.0 / len(rows))
            return [exp.case().when(total > number(0.0), _over(part, total)).else_(even) for part in rows]
        return self._of(form, shares[-1])

    def _join_segments(self) -> None:
        segments, columns, conditions = self.the_map.segments, {}, []
        own = np.flatnonzero(segments.curve)
        for i, key in enumerate(segments.keys):
            column, values = _own_column(f"k{i}", _SEGMENTS), key.alias("").gather(own.tolist())
            columns[f"k{i}"] = values.to_list()
            conditions.append(self.writer.equal(column_of(key.name), column, text=values.dtype == pl.String))
        self._join(_SEGMENTS, columns | {"curve": segments.curve[own]}, conditions)
        self._curve = exp.func("COALESCE", _own_column("curve", _SEGMENTS), exp.Literal.number(0))

    def _join(self, alias: str, columns: Columns, conditions: Sequence[Any]) -> None:
        on = [each if isinstance(each, str) else self.writer.sql(each) for each in conditions]
        if self.tables is None or not all(map(_is_plain, columns.values())):
            self._sources.append(self.writer.joined(alias, columns, on))
        else:
            self.tables[alias] = columns
            self._sources.append(self.writer.join(self.writer.name(alias), on))

    def _aside(self, stem: str, values: Sequence[Any]) -> list[exp.Column]:
        """Name expressions that are used more than once."""
        alias = f"{stem}{len(self._sources)}"
        self._sources.append(self.writer.aside(alias, values, why=f"a map of method {self.the_map.method!r}"))
        return [_own_column(f"v{i}", alias) for i in range(len(values))]

    def _once(self, stem: str, value: Any) -> Any:
        """Name what every class uses, or return it as it is where each name is one more subquery within another."""
        return self._aside(stem, [value])[0] if self.writer.sets_aside else value

    # ------------------------------------------------------------ forms
    def _of(self, curve: Curve, score: _Score) -> list[Any]:
        if isinstance(curve, Linear):
            return [self._linear(curve, score)]
        if isinstance(curve, Points):
            return [self._points(curve, score.on(curve))]
        if isinstance(curve, Spline):
            return [_expit(self._spline(curve, score.feature("logit")))]
        low, high = (self._points(side, score.on(side)) for side in (curve.low, curve.high))
        low, high = self._aside("_cf_ends", [low, high])
        return [_over(high, number(1.0) - low + high), low, high]

    def _linear(self, curve: Linear, score: _Score) -> Any:
        if not curve.features:
            return score.share
        picked = self._picked(curve.coefficients())
        terms = []
        for name, coefficient in zip(curve.features, picked, strict=True):
            if name == "one":
                terms.append(coefficient)
            elif name == "curve" and curve.base is not None:
                rate = _Score(
                    self._points(curve.base, score.on(curve.base), shared=True),
                    floor=self.the_map.floor,
                    is_logit=False,
                )
                terms.append(coefficient * exp.paren(rate.feature("logit")))
            else:
                terms.append(coefficient * exp.paren(score.feature(name)))
        found = _expit(functools.reduce(operator.add, terms))
        if not curve.epsilon:
            return found
        least, most = number(curve.epsilon), number(1.0 - curve.epsilon)
        return _least(_greatest(found, least), most)

    def _picked(self, values: Floats) -> list[Any]:
        """Return each parameter of the row's curve."""
        if self._curve is None:
            return [number(value) for value in values[:, 0]]
        alias = f"{_CURVES}{len(self._sources)}"
        columns = {"curve": np.arange(values.shape[1])} | {f"v{i}": row for i, row in enumerate(values)}
        self._join(alias, columns, [_own_column("curve", alias).eq(self._curve.copy())])
        return [_own_column(f"v{i}", alias) for i in range(len(values))]

    def _points(self, points: Points, at: Any, *, shared: bool = False) -> Any:
        x, width, y, rise = self._piece(pieces_of_points(points), at, side=points.side, shared=shared)
        value = y + rise * _over(exp.paren(at - x), width)
        return _least(_greatest(value, _least(y, y + rise)), _greatest(y, y + rise))

    def _spline(self, spline: Spline, at: Any) -> Any:
        x, *powers = self._piece(pieces_of_spline(spline), at, side="right", shared=False)
        step = exp.paren(at - x)
        return functools.reduce(lambda total, power: power + step * exp.paren(total), reversed(powers))

    def _piece(self, columns: Columns, at: Any, *, side: str, shared: bool) -> list[Any]:
        """Join the piece of the row's curve that its score lies in."""
        alias = f"_cf_piece{len(self._sources)}"
        curve = exp.Literal.number(0) if self._curve is None or shared else self._curve.copy()
        own, low, high, *others = (_own_column(name, alias) for name in columns)
        inside = [at >= low, at < high] if side == "right" else [at > low, at <= high]
        self._join(alias, columns, [own.eq(curve), *inside])
        return others

    def _softmax(self, softmax: Softmax, scores: list[_Score]) -> list[Any]:
        classes = len(scores)
        flat = np.hstack([softmax.weight.reshape(len(softmax), -1), softmax.shift]).T
        picked = self._picked(flat)
        logs = self._aside("_cf_log", [score.feature("log") for score in scores])
        if softmax.cooling is not None and softmax.uniform is not None:
            cooling, uniform = self._picked(np.stack([softmax.cooling, softmax.uniform]))
            cooled = self._normalised([_over(log, cooling) for log in logs], "_cf_cool")
            even = number(1.0 / classes)
            mixed = [exp.func("LN", part * exp.paren(number(1.0) - uniform) + uniform * even) for part in cooled]
            logs = self._aside("_cf_mixed", mixed)
        etas = []
        for i in range(classes):
            used = [j for j in range(classes) if np.any(softmax.weight[:, i, j] != 0.0)]
            terms = [picked[i * classes + j] * logs[j] for j in used] + [picked[classes * classes + i]]
            etas.append(functools.reduce(operator.add, terms))
        return self._normalised(etas, "_cf_out")

    def _normalised(self, etas: list[Any], alias: str) -> list[Any]:
        etas = list(self._aside(f"{alias}_eta", etas))
        top = self._once(f"{alias}_top", _greatest(*etas))
        grown = [exp.func("EXP", _greatest(eta - top, number(-_FLAT))) for eta in etas]
        odds = self._aside(f"{alias}_odds", grown)
        total = self._once(f"{alias}_sum", functools.reduce(operator.add, odds))
        return [_over(odd, total) for odd in odds]


class _Score:
    """The score of a class: its column, and features of it."""

    def __init__(self, raw: Any, *, floor: float, is_logit: bool) -> None:
        self._floor = number(floor)
        self._is_logit = is_logit
        self.raw = _within(raw, FURTHEST) if is_logit else raw
        self.share: Any = _expit(self.raw) if self._is_logit else self.raw

    def on(self, points: Points) -> Any:
        """Return the score on the scale of points."""
        return self.raw if points.scale == "logit" else self.share

    def feature(self, name: Feature) -> Any:
        """Return a feature of the score."""
        if name == "score":
            return self.raw
        if self._is_logit:
            return self._of_logit(name)
        log = exp.func("LN", _greatest(self.share, self._floor))
        rest = exp.func("LN", _greatest(number(1.0) - self.share, self._floor))
        return {"log": log, "log_rest": exp.Neg(this=rest), "logit": log - rest}[name]

    def _of_logit(self, name: Feature) -> Any:
        if name == "logit":
            return self.raw
        shrunk = exp.func("EXP", _greatest(exp.Neg(this=exp.func("ABS", self.raw)), number(-_FLAT)))
        near = exp.func("LN", number(1.0) + shrunk)
        zero = number(0.0)
        if name == "log":
            return _least(self.raw, zero) - near
        return near + _greatest(self.raw, zero)


def _checked(raw: Any, name: str, the_map: CalibrationMap) -> Any:
    """Return a score of DuckDB: NULL where it is NaN, and an error where it is no probability."""
    found = exp.case().when(exp.func("ISNAN", raw), exp.null())
    if the_map.link == "probability":
        error = error_of(f"scores must lie in [0, 1]: column {name!r} has one outside: ", raw)
        found = found.when(exp.or_(raw < number(0.0), raw > number(1.0)), error)
    return found.else_(raw)


def error_of(text: str, value: Any) -> Any:
    """Return a number of DuckDB that raises an error when it is worked out."""
    said = exp.Anonymous(this="error", expressions=[exp.func("CONCAT", exp.Literal.string(text), value)])
    return exp.cast(said, "double")


def _is_score(raw: Any, link: str) -> Any:
    """Return whether a score is one, not NaN, which in some dialects equals nothing and in others is above all else."""
    if link == "probability":
        return exp.and_(raw >= number(0.0), raw <= number(1.0))
    return exp.or_(raw <= number(END), exp.Neg(this=raw) < number(-END))


def _within(value: Any, most: float) -> Any:
    return _least(_greatest(value, number(-most)), number(most))


def column_of(name: str) -> exp.Column:
    """Return a column of the table."""
    return _own_column(name, ROWS)


def _own_column(name: str, table: str) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def _is_plain(values: Any) -> bool:
    """Return whether values are a column of numbers or text."""
    return isinstance(values, np.ndarray) or all(type(value) in (int, str) for value in values)


def _greatest(*values: Any) -> Any:
    return exp.Anonymous(this="GREATEST", expressions=list(values))


def _least(*values: Any) -> Any:
    return exp.Anonymous(this="LEAST", expressions=list(values))


def _over(left: Any, right: Any) -> Any:
    return exp.Div(this=exp.paren(left), expression=exp.paren(right), typed=True)


def _expit(logit: Any) -> Any:
    shrunk = exp.func("EXP", exp.Neg(this=exp.paren(_within(logit, _FLAT))))
    return _over(number(1.0), number(1.0) + shrunk)
