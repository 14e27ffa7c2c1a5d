"""Checks that the schema alone allows, and the keys that make segments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import narwhals.stable.v2 as nw
import pandas as pd

from calframe._errors import (
    ColumnClashError,
    ColumnNotFoundError,
    LabelError,
    ScoreError,
    SegmentError,
    WeightError,
)
from calframe._roles import Roles

_PEEKED_ROWS = 1000  # rows looked at to suggest a column in an error message
_LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One segment column.

    Attributes
    ----------
    name : str
        The user's name for it.
    alias : str
        Its private name.
    dtype : narwhals dtype
        Its type in the result.
    categorical : bool
        Whether it is categorical, and so comes back as text.
    whole : bool
        Whether it is a float column that must hold whole numbers, and so comes back as Int64.
    """

    name: str
    alias: str
    dtype: Any
    categorical: bool = False
    whole: bool = False

    @classmethod
    def of_day(cls, name: str) -> Self:
        """Return the key of local days, numbers such as 20260131."""
        return cls(name=name, alias="_cf_day", dtype=nw.Int64(), whole=True)

    def prepared(self) -> nw.Expr:
        """Return the column under its private name; of floats NaN is null and -0.0 is 0.0."""
        column = nw.col(self.name)
        if self.whole:
            number = column.cast(nw.Float64)
            column = nw.when(~number.is_nan()).then(number + 0.0)
        return column.alias(self.alias)

    def fault(self) -> nw.Expr | None:
        """Return which rows hold a value that is no whole number."""
        if not self.whole:
            return None
        key = nw.col(self.alias)
        return ~(key == key.floor()) | (key.abs() > _LARGEST_WHOLE)


def check_columns(frame: nw.LazyFrame[Any], roles: Roles, reserved: Iterable[str]) -> None:
    """Raise unless every column exists, is told apart by more than case, and no key takes a result's name."""
    available = frame.collect_schema().names()
    for name, role in roles.columns().items():
        if name not in available:
            raise ColumnNotFoundError.from_name(
                name,
                role=role,
                available=[str(column) for column in available],
                candidates=_could_be(frame, role),
            )
    used = list(roles.columns())
    for name in used:
        same = [other for other in used if other.casefold() == name.casefold()]
        if len(same) > 1:
            raise ColumnClashError.from_case(same)
    taken = set(reserved)
    for name in roles.by:
        if name in taken:
            raise ColumnClashError.from_reserved(name)


def check_types(schema: Mapping[str, Any], roles: Roles) -> None:
    """Raise unless scores and weights are numbers and the time is a date."""
    for name in roles.scores:
        if not _is_number(schema[name]):
            msg = (
                f"score column {name!r} has type {schema[name]}; scores are numbers between 0 and 1. Cast it to a "
                "float."
            )
            raise ScoreError(msg)
    if roles.weight is not None and not _is_number(schema[roles.weight]):
        msg = (
            f"weight column {roles.weight!r} has type {schema[roles.weight]}; weights are numbers of 0 or more. Cast "
            "it to a float."
        )
        raise WeightError(msg)
    if isinstance(schema[roles.label], nw.Object | nw.Unknown):
        msg = f"label column {roles.label!r} holds mixed Python objects; cast it to one type: bool, a number or text."
        raise LabelError(msg)
    if roles.time is not None and not isinstance(schema[roles.time], nw.Date | nw.Datetime):
        msg = (
            f"time column {roles.time!r} has type {schema[roles.time]}; it must be a date or datetime. Parse it first."
        )
        raise SegmentError(msg)


def check_key(name: str, dtype: Any, *, alias: str) -> Key:
    """Return the key of a segment column, or raise if its type cannot make segments."""
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return Key(name=name, alias=alias, dtype=nw.String(), categorical=True)
    if dtype.is_float():
        return Key(name=name, alias=alias, dtype=nw.Int64(), whole=True)
    if isinstance(dtype, nw.List | nw.Array | nw.Struct | nw.Object | nw.Unknown):
        kind = "mixed Python objects" if isinstance(dtype, nw.Object | nw.Unknown) else f"values of type {dtype}"
        msg = (
            f"segment column {name!r} holds {kind}; a segment is text, a whole number, a bool, a category or a date. "
            "Cast it first."
        )
        raise SegmentError(msg)
    return Key(name=name, alias=alias, dtype=dtype)


def pandas_ready(data: pd.DataFrame, roles: Roles) -> pd.DataFrame:
    """Return the used columns of a pandas frame, object columns in a proper type, categories as text."""
    numbers = {roles.label, *roles.scores, roles.weight}
    used = data[list(roles.columns())]
    return used.assign(**{name: _proper(used[name], number=name in numbers) for name in used.columns})


def _proper(column: pd.Series[Any], *, number: bool) -> pd.Series[Any]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.rename_categories([str(category) for category in column.cat.categories])
    if column.dtype != object:
        return column
    converted = column.convert_dtypes()
    if number and converted.dtype == object:
        try:
            return converted.astype("float64")  # Decimal
        except (TypeError, ValueError):
            return converted
    return converted


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
    numbers = [name for name, dtype in schema.items() if _is_number(dtype)]
    if role == "weight" or not numbers:
        return numbers
    return [name for name in numbers if _fits(frame, name, role)]


def _fits(frame: nw.LazyFrame[Any], name: str, role: str) -> bool:
    """Tell whether the first values of a column look like labels (0, 1) or scores (between, not only 0 and 1)."""
    values = frame.select(nw.col(name)).head(_PEEKED_ROWS).collect().get_column(name).drop_nulls().to_list()
    binary = {float(value) for value in values} <= {0.0, 1.0, -1.0}
    if role == "label":
        return binary and bool(values)
    return not binary and all(0 <= float(value) <= 1 for value in values)
