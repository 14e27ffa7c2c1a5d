"""Columns that a file holds as text, given the types their roles need."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import click
import polars as pl
from polars import selectors as cs

Part: TypeAlias = Literal["label", "number", "by"]
_Parser: TypeAlias = Callable[[pl.Expr], pl.Expr]

_MISSING = ("", "NA", "N/A", "<NA>", "NaN", "nan", "NULL", "null")  # as R, pandas and databases write it
_BOOLEANS = {"true": True, "false": False}
_DECIMAL = r"^-?(0|[1-9]\d{0,14})(\.\d+)?$"  # in a segment column 007, 1e5 and 20 digits are names, not numbers
_TIME_EXAMPLES = "2013-12-31, 2013-12-31T08:00 or 2013-12-31T08:00+01:00"


def typed(table: pl.LazyFrame, parts: Mapping[str, Part]) -> pl.LazyFrame:
    """Give the text columns of a CSV file the types their roles need, judged by all of their values.

    Scores and weights become numbers. A label becomes whole numbers, numbers or bools where all of its values are,
    else it stays text. A segment becomes numbers where all of its values are plainly written ones. In labels, scores
    and weights an empty field, `NA`, `NaN` and `null` are missing. One pass over these columns finds out which.

    Parameters
    ----------
    table
        The table as read, with these columns as text.
    parts
        Column names and what they are; names the table does not have are left to the function that needs them.

    Returns
    -------
    polars.LazyFrame
        The same table, still lazy.

    Raises
    ------
    click.ClickException
        If a score or a weight holds text that is no number.
    """
    names = table.collect_schema().names()
    texts = {name: _text(name, part) for name, part in parts.items() if name in names}
    tried = [(name, parser(text)) for name, text in texts.items() for parser in _PARSERS[parts[name]]]
    failures = _failures(table, [(texts[name], parsed) for name, parsed in tried])
    columns = dict(texts)
    for (name, parsed), failed in reversed(list(zip(tried, failures, strict=True))):
        if failed == 0:
            columns[name] = parsed  # the first parser that reads every value has the last word
        elif parts[name] == "number":
            raise click.ClickException(_not_all("numbers", table, name, texts[name], parsed))
    return table.with_columns(column.alias(name) for name, column in columns.items())


def typed_as(table: pl.LazyFrame, types: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """Give the text columns of a CSV file types that are known.

    Parameters
    ----------
    table
        The table as read, with these columns as text.
    types
        Column names and what they must become; names the table does not have are left to the function that needs
        them. Text stays as it is, else an empty field, `NA`, `NaN` and `null` are missing.

    Returns
    -------
    polars.LazyFrame
        The same table, still lazy.

    Raises
    ------
    click.ClickException
        If a column holds text that is no value of its type.
    """
    names = table.collect_schema().names()
    wanted = {name: dtype for name, dtype in types.items() if name in names and dtype != pl.String}
    columns = {name: _as_type(_text(name, "number"), dtype) for name, dtype in wanted.items()}
    texts = {name: _text(name, "number") for name in columns}
    for name, failed in zip(columns, _failures(table, [(texts[name], columns[name]) for name in columns]), strict=True):
        if failed:
            words = _WORDS.get(type(wanted[name]), "numbers")
            raise click.ClickException(_not_all(words, table, name, texts[name], columns[name]))
    return table.with_columns(column.alias(name) for name, column in columns.items())


def check_twins(used: Iterable[str], names: Sequence[str]) -> None:
    """Refuse two columns of one name in a text file, if it is used.

    Parameters
    ----------
    used
        The names that are used.
    names
        The names of the columns as polars read them.

    Raises
    ------
    click.ClickException
        If there are two.
    """
    for name in used:
        if f"{name}_duplicated_0" in names:  # as polars calls the second of two columns of one name
            msg = f"two columns are called {name!r}; rename one of them in the file."
            raise click.ClickException(msg)


def with_time(table: pl.LazyFrame, name: str) -> pl.LazyFrame:
    """Read a time column of ISO text as dates or datetimes; leave any other column as it is.

    Parameters
    ----------
    table
        The table as read.
    name
        The time column.

    Returns
    -------
    polars.LazyFrame
        The same table, still lazy. Text with an offset (`+01:00`, `Z`) becomes a datetime in UTC.

    Raises
    ------
    click.ClickException
        If a value is no ISO date or time.
    """
    if table.collect_schema().get(name) != pl.String:
        return table
    text = _text(name, "number")
    tried = [_date(text), _month(text), _datetime(text), _instant(text)]
    failures = _failures(table, [(text, parsed) for parsed in tried])
    best = failures.index(min(failures))
    if failures[best]:
        value = _first(table, text, where=tried[best].is_null() & text.is_not_null())
        msg = f"column {name!r} holds {value!r}, which is no ISO date or time; write {_TIME_EXAMPLES}."
        raise click.ClickException(msg)
    return table.with_columns(tried[best].alias(name))


def label_value(table: pl.LazyFrame, *, label: str, text: str | None, option: str = "--positive") -> Any:
    """Read a value of the label that stands on the command line as the column would hold it.

    Parameters
    ----------
    table
        The table whose label it is.
    label
        The label column.
    text
        What was typed; None stays None.
    option
        The option it was typed for.

    Returns
    -------
    object
        A bool, a number or the text itself, by the type of the column.

    Raises
    ------
    click.BadParameter
        If the column holds numbers or bools and the text is none.
    """
    kind = table.collect_schema().get(label)
    if text is None or kind is None or not (kind.is_numeric() or kind == pl.Boolean):
        return text
    parser = _boolean if kind == pl.Boolean else _number
    value = pl.select(parser(pl.lit(text))).item()
    if value is None:
        held = "true and false" if kind == pl.Boolean else "numbers"
        msg = f"column {label!r} holds {held}, and {text!r} is none of them."
        raise click.BadParameter(msg, param_hint=f"'{option}'")
    return int(value) if kind.is_integer() and math.isfinite(value) and value == int(value) else value


def _text(name: str, part: Part) -> pl.Expr:
    column = cs.by_name(name)
    if part == "by":
        return column
    trimmed = column.str.strip_chars()
    return pl.when(trimmed.is_in(_MISSING).not_()).then(trimmed)


def _failures(table: pl.LazyFrame, pairs: list[tuple[pl.Expr, pl.Expr]]) -> list[int]:
    if not pairs:
        return []
    counts = [(parsed.is_null() & text.is_not_null()).sum().alias(str(i)) for i, (text, parsed) in enumerate(pairs)]
    return list(table.select(counts).collect().row(0))


def _first(table: pl.LazyFrame, text: pl.Expr, *, where: pl.Expr) -> Any:
    return table.filter(where).select(text.first()).collect().item()


def _not_all(what: str, table: pl.LazyFrame, name: str, text: pl.Expr, parsed: pl.Expr) -> str:
    wrong = text.is_not_null() & parsed.is_null()
    count, value = table.filter(wrong).select(pl.len(), text.first().alias("value")).collect().row(0)
    values = "value" if count == 1 else "values"
    return f"column {name!r} should hold {what}; it has {count:,} other {values}, the first of them {value!r}."


def _number(text: pl.Expr) -> pl.Expr:
    return text.cast(pl.Float64, strict=False)


def _integer(text: pl.Expr) -> pl.Expr:
    return text.cast(pl.Int64, strict=False)


def _boolean(text: pl.Expr) -> pl.Expr:
    return text.str.to_lowercase().replace_strict(_BOOLEANS, default=None, return_dtype=pl.Boolean)


def _plain_integer(text: pl.Expr) -> pl.Expr:
    number = _integer(text)
    return pl.when(number.cast(pl.String) == text).then(number)


def _plain_number(text: pl.Expr) -> pl.Expr:
    return pl.when(text.str.contains(_DECIMAL)).then(_number(text))


def _date(text: pl.Expr) -> pl.Expr:
    return text.str.to_date("%Y-%m-%d", strict=False)


def _time(text: pl.Expr) -> pl.Expr:
    return text.str.to_time("%H:%M:%S%.f", strict=False)


def _month(text: pl.Expr) -> pl.Expr:
    return _date(text + "-01")


def _datetime(text: pl.Expr) -> pl.Expr:
    with_t = text.str.replace(" ", "T", literal=True)
    formats = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")
    return pl.coalesce(*(with_t.str.to_datetime(form, strict=False) for form in formats), _date(text).cast(pl.Datetime))


def _instant(text: pl.Expr) -> pl.Expr:
    with_offset = text.str.replace(" ", "T", literal=True).str.replace("Z$", "+00:00")
    formats = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z")
    return pl.coalesce(*(with_offset.str.to_datetime(form, strict=False, time_zone="UTC") for form in formats))


def _as_type(text: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    if dtype.is_integer():
        number = _number(text)
        return pl.coalesce(_integer(text), pl.when(number == number.floor()).then(number.cast(dtype, strict=False)))
    if isinstance(dtype, pl.Datetime):
        return (_datetime(text) if dtype.time_zone is None else _instant(text)).cast(dtype)
    parsers: dict[type[pl.DataType], _Parser] = {pl.Boolean: _boolean, pl.Date: _date, pl.Time: _time}
    return parsers.get(type(dtype), _number)(text).cast(dtype)


_WORDS: dict[type[pl.DataType], str] = {
    pl.Int64: "whole numbers, as the map has them",
    pl.Boolean: "true and false, as the map has them",
    pl.Date: "dates such as 2013-12-31, as the map has them",
    pl.Datetime: "times such as 2013-12-31T08:00, as the map has them",
    pl.Time: "times such as 08:00:00, as the map has them",
}
_PARSERS: dict[Part, tuple[_Parser, ...]] = {
    "label": (_integer, _number, _boolean),
    "number": (_number,),
    "by": (_plain_integer, _plain_number),
}
