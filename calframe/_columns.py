"""Checks that the schema alone allows, and the keys that make segments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeAlias

import narwhals.stable.v2 as nw
import polars as pl
import polars.selectors as cs

from calframe._errors import (
    CalframeError,
    ColumnClashError,
    ColumnNotFoundError,
    LabelError,
    ScoreError,
    SegmentError,
    WeightError,
)
from calframe._roles import Roles

_PEEKED_ROWS = 1000  # rows looked at to suggest a column in an error message
WHOLE_NUMBERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
_LARGEST_WHOLE = 2.0**53
_Text: TypeAlias = Callable[[str, str, str], str]  # role, column and what is wanted to the text of an error
_KEYS = (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Date, nw.Datetime, nw.Time)  # and numbers


def exact_column(name: str) -> pl.Expr:
    """Return the polars column of a name, which is never a pattern."""
    is_pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
    return cs.by_name(name).as_expr() if is_pattern else pl.col(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One segment column.

    Attributes
    ----------
    name : str
        The user's name for it.
    alias : str
        Its private name.
    categorical : bool
        Whether it is categorical, and so comes back as text.
    whole : bool
        Whether it is a float column that must hold whole numbers, and so comes back as Int64.
    """

    name: str
    alias: str
    categorical: bool = False
    whole: bool = False

    @classmethod
    def of_day(cls, name: str) -> Self:
        """Return the key of local days, numbers such as 20260131."""
        return cls(name=name, alias="_cf_day", whole=True)

    def prepared(self, column: nw.Expr, *, coded: bool) -> nw.Expr:
        """Return the column under its private name; of floats NaN is null and -0.0 is 0.0; codes are left alone."""
        if coded:
            return column.alias(self.alias)
        if self.whole:
            number = column.cast(nw.Float64)
            column = nw.when(~number.is_nan()).then(number + 0.0)
        elif self.categorical:
            column = column.cast(nw.String)
        return column.alias(self.alias)

    def fault(self) -> nw.Expr | None:
        """Return which rows hold a value that is no whole number."""
        if not self.whole:
            return None
        key = nw.col(self.alias)
        broken = ~(key == key.floor()) | (key.abs() > _LARGEST_WHOLE)
        return ~key.is_null() & ~key.is_nan() & broken


def check_columns(frame: nw.LazyFrame[Any], roles: Roles, reserved: Iterable[str]) -> None:
    """Raise unless every column exists, is told apart by more than case, and no key takes a result's name."""
    available = frame.collect_schema().names()
    for name, role in roles.columns().items():
        if name not in available:
            candidates = _could_be(frame, role)
            raise ColumnNotFoundError.from_name(name, role=role, available=available, candidates=candidates)
    used = list(roles.columns())
    for name in used:
        same = [other for other in used if other.casefold() == name.casefold()]
        if len(same) > 1:
            raise ColumnClashError.from_case(same)
    taken = set(reserved)
    for name in roles.by:
        if name in taken:
            raise ColumnClashError.from_reserved(name)


def check_types(
    types: Mapping[str, Any], roles: Roles, *, unknown: Mapping[str, str], sortable: Collection[str] = ()
) -> None:
    """Raise unless each column has a type that its role can use.

    Parameters
    ----------
    types : mapping of str to narwhals dtype
        The types of the used columns.
    roles : Roles
        The roles.
    unknown : mapping of str to str
        What the table's library calls the types that narwhals does not know.
    sortable : collection of str
        Columns of Python objects that pandas can group and sort all the same, such as dates.
    """
    text = partial(_type_text, types, unknown)
    if roles.vector:
        _check_vector(types[roles.scores[0]], roles, text)
    for name, (error, role, wanted) in _numbers(types, roles).items():
        if not _is_number(types[name]):
            raise error(text(role, name, wanted))
    if isinstance(types[roles.label], nw.Object | nw.Unknown):
        wanted = "a label is bool, 0/1, -1/+1, or any two values with positive=. Cast it to one type of these"
        raise LabelError(text("label", roles.label, wanted))
    if roles.time is not None and not isinstance(types[roles.time], nw.Date | nw.Datetime):
        raise SegmentError(text("time", roles.time, "it must be a date or datetime. Parse it first"))
    if roles.time is not None:
        check_zone(roles, holds_dates=isinstance(types[roles.time], nw.Date))
    _check_keys(types, roles, text, sortable)


def _numbers(types: Mapping[str, Any], roles: Roles) -> dict[str, tuple[type[CalframeError], str, str]]:
    """Return the columns that must hold numbers, each with the error, the role and the words if it does not."""
    scores = {} if roles.vector else {name: (ScoreError, "score", _wanted(types[name])) for name in roles.scores}
    chances = "true probabilities are numbers between 0 and 1. Cast it to a float"
    true = dict.fromkeys(roles.posterior, (ScoreError, "posterior", chances))
    weights = "weights are numbers of 0 or more. Cast it to a float"
    weight = {} if roles.weight is None else {roles.weight: (WeightError, "weight", weights)}
    return {**weight, **true, **scores}


def _check_keys(types: Mapping[str, Any], roles: Roles, text: _Text, sortable: Collection[str]) -> None:
    for name in roles.keyed:
        role = "segment" if name in roles.by else "cluster"
        wanted = f"a {role} is text, a whole number, a bool, a category or a date. Cast it first"
        if not (isinstance(types[name], _KEYS) or types[name].is_numeric() or name in sortable):
            raise SegmentError(text(role, name, wanted))


def _check_vector(dtype: Any, roles: Roles, text: _Text) -> None:
    """Raise unless a column of vectors is a list or array of numbers, or a struct with a field for each class."""
    name, wanted = roles.scores[0], "with classes= it is a list, array or struct of one number a class"
    if isinstance(dtype, nw.Struct):
        fields = {field.name: field.dtype for field in dtype.fields}
        patterns = [str(named) for named in roles.classes if _is_pattern(str(named))]
        if patterns:
            msg = (
                f"score column {name!r} is a struct with a field {patterns[0]!r}, which polars reads as a pattern; "
                "give its values as a list, or each class as a column of its own."
            )
            raise ScoreError(msg)
        missing = [str(named) for named in roles.classes if str(named) not in fields]
        if missing:
            listed = ", ".join(map(repr, fields))
            msg = f"score column {name!r} is a struct without a field {missing[0]!r} (one a class); it has {listed}."
            raise ScoreError(msg)
    parts = part_types(dtype, roles.classes)
    if not parts or not all(_is_number(part) for part in parts):
        raise ScoreError(text("score", name, wanted))


def part_types(dtype: Any, classes: Sequence[Any]) -> list[Any]:
    """Return the types of what a column of vectors holds for the classes; none where it holds no vectors."""
    held: list[Any] = []
    if isinstance(dtype, nw.Struct):
        fields = {field.name: field.dtype for field in dtype.fields}
        held = [fields[str(named)] for named in classes]
    elif isinstance(dtype, nw.List | nw.Array):
        held = [dtype.inner]
    return [part() if isinstance(part, type) else part for part in held]


def _wanted(dtype: Any) -> str:
    if isinstance(dtype, nw.List | nw.Array | nw.Struct):
        return (
            "metrics and curve take vectors of class probabilities with classes=, the list of the classes, a report "
            "the column of one class"
        )
    return "scores are numbers between 0 and 1. Cast it to a float"


def _is_pattern(name: str) -> bool:
    return name == "*" or (name.startswith("^") and name.endswith("$"))


def check_zone(roles: Roles, *, holds_dates: bool) -> None:
    """Raise if days are to be moved to a time zone, but the time column holds days already."""
    if roles.time_zone is not None and holds_dates:
        msg = f"time column {roles.time!r} holds dates, which have no time of day to move; leave out time_zone."
        raise SegmentError(msg)


def key_of(name: str, dtype: Any, *, alias: str) -> Key:
    """Return the key that a segment column makes."""
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return Key(name=name, alias=alias, categorical=True)
    if dtype.is_float():
        return Key(name=name, alias=alias, whole=True)
    return Key(name=name, alias=alias)


def _type_text(types: Mapping[str, Any], unknown: Mapping[str, str], role: str, name: str, wanted: str) -> str:
    held = f"{'holds values of' if role in ('segment', 'cluster') else 'has'} type {unknown.get(name, types[name])}"
    if isinstance(types[name], nw.Object) and name not in unknown:
        held = "holds mixed Python objects"
    return f"{role} column {name!r} {held}; {wanted}."


def _is_number(dtype: Any) -> bool:
    return bool(dtype.is_numeric()) or isinstance(dtype, nw.Boolean)


def _could_be(frame: nw.LazyFrame[Any], role: str) -> list[str]:
    """Return columns that could play a role, judged by type and, for labels and scores, by the first rows."""
    schema = frame.collect_schema()
    if role == "time":
        return [name for name, dtype in schema.items() if isinstance(dtype, nw.Date | nw.Datetime)]
    if role == "by":
        return [
            name
            for name, dtype in schema.items()
            if isinstance(dtype, nw.String | nw.Categorical | nw.Enum | nw.Boolean)
        ]
    if role == "cluster":
        kinds = (nw.String, nw.Categorical, nw.Enum, nw.Date)
        return [name for name, dtype in schema.items() if isinstance(dtype, kinds) or dtype.is_integer()]
    numbers = [name for name, dtype in schema.items() if _is_number(dtype)]
    if role == "weight" or not numbers:
        return numbers
    if isinstance(frame.to_native(), pl.LazyFrame):  # nothing is read before the user collects
        return [name for name in numbers if schema[name].is_float() == (role == "score")]
    first = frame.head(_PEEKED_ROWS).collect()
    return [name for name in numbers if _fits(first.get_column(name), role)]


def _fits(column: nw.Series[Any], role: str) -> bool:
    """Tell whether the first values of a column look like labels (0, 1) or scores (between, not only 0 and 1)."""
    values = [float(value) for value in column.drop_nulls().to_list()]
    binary = set(values) <= {0.0, 1.0, -1.0}
    if role == "label":
        return binary and bool(values)
    return not binary and all(0 <= value <= 1 for value in values)
