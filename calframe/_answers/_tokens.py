"""Confidence from log-probabilities: of the tokens of an answer, or of the options to choose from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl
import polars.selectors as cs

from calframe._errors import ScoreError, counted

_SLACK = 1e-6  # rounding of float32 leaves log-probabilities of tokens that are sure a little above 0
_HINT = "Probabilities? Take their natural logarithm. Logits? Subtract their log-sum-exp."


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """How log-probabilities are read.

    Attributes
    ----------
    place : str
        Where they stand, for errors.
    base : float
        The base of the logarithm.
    drop : bool
        Whether values above 0 make the row null; by default they are an error.
    """

    place: str
    base: float
    drop: bool

    def checked(self, highest: pl.Series) -> pl.Series:
        """Return which rows have a value above 0, or raise where there are some."""
        wrong = (highest > _SLACK).fill_null(value=False)
        if wrong.any() and not self.drop:
            most = highest.filter(wrong).to_numpy().max()
            msg = (
                f"log-probabilities are 0 or less: {self.place} has {most:g}, with "
                f"{counted(int(wrong.sum()))} above 0. {_HINT} invalid='drop' makes such rows null."
            )
            raise ScoreError(msg)
        return wrong


def of_tokens(lists: pl.Series, method: str, logs: Logs) -> tuple[pl.Series, dict[str, int]]:
    """Return exp of the sum, of the mean or of the first of each list of log-probabilities, and counts of null rows."""
    lists = as_lists(lists, lists.name)
    used = lists.list.head(1) if method == "first" else lists
    size = used.list.len()
    gaps = used.list.eval(pl.element().is_null() | pl.element().is_nan()).list.any().fill_null(value=False)
    wrong = logs.checked(used.list.eval(pl.element().fill_nan(None)).list.max())
    total = used.list.sum() * math.log(logs.base)
    value = (total / size if method == "mean" else total).exp().clip(upper_bound=1.0)
    blank = lists.is_null() | (size == 0).fill_null(value=True) | gaps | wrong
    counts = {
        "missing": lists.null_count(),
        "empty list": int((size == 0).sum()),
        "null or NaN in the list": int(gaps.sum()),
        "with a log-probability above 0": int((wrong & ~gaps).sum()),
    }
    return _unless(value, blank), counts


def as_lists(lists: pl.Series, column: str) -> pl.Series:
    """Return a column of lists of numbers as lists of floats, or raise."""
    dtype = lists.dtype
    if isinstance(dtype, pl.Array):
        lists = lists.arr.to_list()
    elif not isinstance(dtype, pl.List | pl.Null):
        msg = f"column {column!r} has type {dtype}; it must hold a list of log-probabilities in each row."
        raise ScoreError(msg)
    inner = getattr(lists.dtype, "inner", pl.Null())
    if not (inner.is_numeric() or inner == pl.Null):
        msg = f"column {column!r} holds lists of {inner}; they must be lists of numbers, the log-probabilities."
        raise ScoreError(msg)
    return lists.cast(pl.List(pl.Float64))


def options_in(series: pl.Series, names: Sequence[str], column: str) -> pl.DataFrame:
    """Return the log-probabilities of options that stand in one column, a struct or a list in each row, or raise."""
    if isinstance(series.dtype, pl.Struct):
        fields = [field.name for field in series.dtype.fields]
        missing = [name for name in names if name not in fields]
        if missing:
            msg = f"column {column!r} has no field {missing[0]!r} for options=; it has {', '.join(map(repr, fields))}."
            raise ScoreError(msg)
        return series.struct.unnest().select(cs.by_name(names))
    lists = as_lists(series, column)
    odd = lists.list.len().drop_nulls()
    odd = odd.filter(odd != len(names))
    if len(odd):
        msg = f"column {column!r} has a list of {odd[0]} values, and options= names {len(names)}."
        raise ScoreError(msg)
    return pl.DataFrame({name: lists.list.get(place, null_on_oob=True) for place, name in enumerate(names)})


def of_options(
    frame: pl.DataFrame, names: Sequence[str], chosen: pl.Series | None, logs: Logs
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the share of each option, columns in order, then those of the chosen one: `_cf_share`, `_cf_answer`.

    Parameters
    ----------
    frame : polars.DataFrame
        The log-probabilities, a column for each option.
    names : sequence of str
        The options.
    chosen : polars.Series, optional
        The option of each row as text; by default that of the highest log-probability, the first of equal ones.
    logs : Logs
        How they are read.
    """
    for name, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype == pl.Null):
            msg = f"option column {name!r} has type {dtype}; it must hold numbers, the log-probabilities of an option."
            raise ScoreError(msg)
    marks = [f"_cf_{place}" for place in range(len(names))]
    rows = frame.rename(dict(zip(frame.columns, marks, strict=True))).select(
        pl.col(mark).cast(pl.Float64).fill_nan(None) for mark in marks
    )
    places = [replace(logs, place=f"option {name!r}") for name in names]
    each = [place.checked(rows.get_column(mark)) for place, mark in zip(places, marks, strict=True)]
    wrong = pl.DataFrame(each).select(pl.any_horizontal(pl.all())).to_series()
    gaps = rows.select(pl.any_horizontal(pl.col(marks).is_null())).to_series()
    top = pl.max_horizontal(marks)
    never = rows.select(top == -math.inf).to_series().fill_null(value=False)
    shares = rows.select(((pl.col(mark) - top) * math.log(logs.base)).exp() for mark in marks)
    shares = shares.select(pl.col(mark) / pl.sum_horizontal(marks) for mark in marks)
    blank = gaps | wrong | never
    shares = shares.select(_unless(column, blank) for column in shares.get_columns())
    if chosen is None:
        highest = pl.concat_list(marks).list.arg_max()
        chosen = rows.select(highest.replace_strict(dict(enumerate(names)), return_dtype=pl.String)).to_series()
        chosen = pl.select(pl.when(~pl.lit(blank)).then(pl.lit(chosen))).to_series()
    picked = [pl.when(pl.lit(chosen) == name).then(pl.col(mark)) for name, mark in zip(names, marks, strict=True)]
    shares = shares.with_columns(pl.coalesce(picked).alias("_cf_share"), chosen.alias("_cf_answer"))
    counts = {
        "with an option without a log-probability": int(gaps.sum()),
        "with a log-probability above 0": int((wrong & ~gaps).sum()),
        "with every option impossible": int((never & ~gaps).sum()),
        "with a choice that is no option": int((shares.get_column("_cf_share").is_null() & ~blank).sum()),
    }
    return shares, counts


def _unless(values: pl.Series, blank: pl.Series) -> pl.Series:
    """Return values, null in some rows."""
    return pl.select(pl.when(~blank).then(values)).to_series().alias(values.name)
