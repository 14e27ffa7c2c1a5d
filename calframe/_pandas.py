"""pandas tables: numbers as they are, segments as codes, so that the one query runs on them too.

Codes are made by pandas itself, so that its missing values, long integers, categories, dates and time zones keep their
meaning, and the keys of a result are taken from the very values of the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import polars as pl

from calframe._columns import check_zone
from calframe._errors import ScoreError, SegmentError
from calframe._roles import Roles
from calframe._typing import Ints

Levels: TypeAlias = "pd.Series[Any]"  # the distinct values of a segment column, ascending

_SORTABLE_OBJECTS = {"date", "time", "decimal"}  # Python objects of one kind, which pandas codes and sorts


def pandas_ready(data: pd.DataFrame, roles: Roles) -> pd.DataFrame:
    """Return the used columns of a pandas frame, object columns in a proper type, categories as text."""
    numbers = {roles.label, *roles.scores, *roles.posterior, roles.weight}
    used = data[list(roles.columns())]
    if any(isinstance(named, str) for named in roles.classes) and used[roles.label].isna().all():
        used = used.assign(**{roles.label: pd.Series(pd.NA, index=used.index, dtype="string")})
    whole = set(roles.scores) if roles.vector else set()
    proper = {
        name: used[name] if name in whole else _proper(used[name], number=name in numbers) for name in used.columns
    }
    if roles.time is not None and is_sortable(proper[roles.time]):
        check_zone(roles, holds_dates=pd.api.types.infer_dtype(used[roles.time], skipna=True) == "date")
        proper[roles.time] = pd.to_datetime(proper[roles.time])
    return pd.DataFrame(proper, index=used.index, copy=False)


def is_sortable(column: pd.Series[Any]) -> bool:
    """Tell whether a column holds Python objects of one kind that pandas can code and sort."""
    return column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in _SORTABLE_OBJECTS


def coded(
    data: pd.DataFrame, roles: Roles, *, values: Mapping[str, str], codes: Mapping[str, str]
) -> tuple[pl.LazyFrame, dict[str, Levels]]:
    """Return a polars frame of values and codes, and the levels behind the codes.

    Parameters
    ----------
    data : pandas.DataFrame
        From `pandas_ready`.
    roles : Roles
        The roles of its columns.
    values, codes : mapping of str to str
        The private names of the columns needed as values, and of those needed as codes.
    """
    vectors = set(roles.scores) if roles.vector else set()
    columns = [
        (vector_values if name in vectors else _values)(data[name]).alias(alias)
        for name, alias in values.items()
        if name != roles.time
    ]
    if roles.time is not None:
        columns.append(_days(data[roles.time], roles.time_zone).alias(values[roles.time]))
    levels = {}
    for name, alias in codes.items():
        numbers, levels[name] = _codes(data[name])
        columns.append(_null_where_negative(numbers).alias(alias))
    return pl.DataFrame(columns).lazy(), levels


def vector_values(column: pd.Series[Any]) -> pl.Series:
    """Return a column of lists, arrays or dicts as a polars Series of lists or structs."""
    rows = [None if _is_missing(value) else _plain(value) for value in column.to_numpy(dtype=object)]
    try:
        return pl.Series(rows, strict=False)
    except (TypeError, pl.exceptions.PolarsError) as error:
        msg = (
            f"score column {str(column.name)!r} holds mixed Python objects; with classes= each of its values is a list "
            "or array of numbers, or a dict of them by class."
        )
        raise ScoreError(msg) from error


def taken(levels: Levels, codes: Sequence[int | None]) -> pd.Series[Any]:
    """Return the values behind codes, in the type of the input column; None is a missing value."""
    places = np.array([-1 if code is None else code for code in codes], dtype=np.int64)
    if (places >= 0).all():
        return levels.take(places).reset_index(drop=True)
    return pd.Series(levels.array.take(places, allow_fill=True, fill_value=None))


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))


def _plain(value: Any) -> Any:
    """Return a vector with class names as text, its numbers as floats; anything else as it is."""
    if isinstance(value, Mapping):
        return {str(name): None if part is None else float(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [None if part is None else float(part) for part in value]
    return value


def _proper(column: pd.Series[Any], *, number: bool) -> pd.Series[Any]:
    """Return a column in a type that can be counted or coded: objects by their kind, categories as text."""
    column = _usual_layout(column)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _text_categories(column)
    if column.dtype != object:
        return column
    if column.isna().all():
        nothing = pd.Series([None] * len(column), index=column.index, dtype="str")  # astype would make it "None"
        return column.astype("float64") if number else nothing
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if number and kind == "decimal":
        return column.where(column.notna()).astype("float64")
    if kind in _SORTABLE_OBJECTS:
        return column.where(column.notna(), None)
    return _whole(column) if kind == "integer" else column.convert_dtypes()


def _usual_layout(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return Arrow dictionaries as categories."""
    if isinstance(column.dtype, pd.ArrowDtype) and str(column.dtype).startswith("dictionary"):
        return pd.Series(pd.Categorical(column.to_numpy(dtype=object)), index=column.index, name=column.name)
    return column


def _whole(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return Python integers as nullable ones, not by way of floats."""
    try:
        return column.astype("Int64")
    except (OverflowError, TypeError, ValueError):
        return column.astype("UInt64")


def _text_categories(column: pd.Series[Any]) -> pd.Series[Any]:
    texts = [str(category) for category in column.cat.categories]
    if len(set(texts)) < len(texts):
        msg = f"column {str(column.name)!r} has categories that read the same as text, such as 1 and '1'; rename them."
        raise SegmentError(msg)
    return column.cat.rename_categories(texts)


def _values(column: pd.Series[Any]) -> pl.Series:
    """Return labels, scores or weights as a polars Series; NaN stands for a missing number."""
    if pd.api.types.is_bool_dtype(column.dtype):
        values = pl.Series(column.fillna(value=False).to_numpy(dtype=np.bool_))
        return values if not column.hasnans else _null_where(values, column.isna().to_numpy())
    if pd.api.types.is_numeric_dtype(column.dtype):
        narrow = str(column.dtype).lower().startswith(("float32", "float16", "float[", "halffloat"))
        return pl.Series(column.to_numpy(dtype=np.float32 if narrow else np.float64, na_value=np.nan))
    numbers, levels = _codes(column)
    return pl.Series([str(level) for level in levels], dtype=pl.String).gather(_null_where_negative(numbers))


def _codes(column: pd.Series[Any]) -> tuple[Ints, Levels]:
    """Return the place of each value among the sorted distinct ones, -1 where it is missing, and those values."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        found, levels = column.cat.codes.to_numpy(), pd.Series(column.cat.categories)
    else:
        found, uniques = pd.factorize(column)
        levels = pd.Series(uniques)
    try:
        order = levels.sort_values(kind="stable").index.to_numpy()
    except TypeError as error:
        msg = f"segment column {str(column.name)!r} holds values that cannot be sorted ({error}); cast it to one type."
        raise SegmentError(msg) from error
    rank = np.empty(len(levels) + 1, dtype=np.int64)
    rank[order], rank[-1] = np.arange(len(levels)), -1
    return rank[found], levels.iloc[order].reset_index(drop=True)


def _days(column: pd.Series[Any], zone: str | None) -> pl.Series:
    """Return local days as numbers such as 20130701; without a zone a column is wall time, or UTC if `zone` is set."""
    time = pd.to_datetime(column)
    if zone is not None:
        aware = time if time.dt.tz is not None else time.dt.tz_localize("UTC")
        time = aware.dt.tz_convert(zone)
    parts = (time.dt.year, time.dt.month, time.dt.day)
    year, month, day = (part.to_numpy(dtype=np.float64, na_value=np.nan) for part in parts)
    return pl.Series(year * 10_000.0 + month * 100.0 + day).fill_nan(None)


def _null_where_negative(codes: Ints) -> pl.Series:
    return _null_where(pl.Series(codes.astype(np.int32)), codes < 0)


def _null_where(values: pl.Series, missing: Any) -> pl.Series:
    frame = pl.DataFrame({"values": values, "missing": pl.Series(missing)})
    return frame.select(pl.when(~pl.col("missing")).then(pl.col("values"))).to_series()
