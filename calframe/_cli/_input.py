"""The table behind a command: its files opened, its columns typed for their roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import polars as pl
from polars import selectors as cs

from calframe._cli._files import open_table
from calframe._cli._text import Part, check_twins, label_value, typed, with_time
from calframe._errors import warn

_MANY_VALUES = 50  # of a column of numbers: more are no names


def open_input(
    sources: Sequence[str],
    *,
    label: str,
    scores: Sequence[str],
    by: Sequence[str],
    weight: str | None,
    cluster: str | None = None,
    time: str | None = None,
) -> pl.LazyFrame:
    """Open files as a lazy table whose columns have the types of their roles.

    Parameters
    ----------
    sources
        Paths or globs, or `-` for CSV on standard input.
    label, scores, by, weight, cluster, time
        The columns by role; scores are all columns of probabilities.

    Returns
    -------
    polars.LazyFrame
        The table; only the columns that are used will be read.

    Raises
    ------
    click.ClickException
        If the files cannot be opened, a score, weight or time holds text that is none, or two columns of a CSV file
        have the name of a column that is used.
    """
    numbers = [*scores, *([] if weight is None else [weight])]
    parts: dict[str, Part] = {}
    parts |= dict.fromkeys([*by, *([] if cluster is None else [cluster])], "by")
    parts[label] = "label"
    parts |= dict.fromkeys(numbers, "number")
    if time is None:
        return _opened(sources, parts)
    parts.pop(time, None)
    return with_time(_opened(sources, parts, also=[time]), time)


def warn_many_values(table: pl.LazyFrame, by: Sequence[str]) -> None:
    """Note that each value of a column of numbers is a segment, where these are many.

    Parameters
    ----------
    table
        The table, its columns typed.
    by
        The segment columns.
    """
    kinds = table.collect_schema()
    numbers = cs.by_name(*(name for name in by if name in kinds and kinds[name].is_numeric()))
    for name, values in table.select(numbers.drop_nulls().n_unique()).collect().to_dict(as_series=False).items():
        if values[0] > _MANY_VALUES:
            warn(
                f"segment column {name!r} has {values[0]:,} values, each a segment of its own; cut it into bands first."
            )


def check_scores(scores: Sequence[str], classes: Mapping[str, str], notion: str | None) -> None:
    """Refuse a command without scores, with scores of both kinds, or with classes that are asked for and not there.

    Raises
    ------
    click.UsageError
        Before anything is read.
    """
    msg = ""
    if scores and classes:
        msg = "--score is for one column of probabilities, --class for one a class; leave one of them out."
    elif not scores and not classes:
        msg = "Missing option '--score', or '--class' for each of several classes."
    elif notion == "classwise" and not classes:
        msg = "--notion classwise needs the classes: name each with --class."
    if msg:
        raise click.UsageError(msg, click.get_current_context())


def score_argument(
    table: pl.LazyFrame, *, label: str, scores: Sequence[str], classes: Mapping[str, str]
) -> str | list[str] | dict[Any, str]:
    """Return the scores as the functions take them: one column, one a model, or one a class.

    Parameters
    ----------
    table
        The table they are in.
    label
        Its label, whose type the names of the classes get.
    scores, classes
        What was typed; one of them is empty.

    Returns
    -------
    str, list of str or dict
        The argument.

    Raises
    ------
    click.BadParameter
        If a class cannot be a value of the label.
    """
    if classes:
        return {
            label_value(table, label=label, text=name, option="--class"): column for name, column in classes.items()
        }
    return scores[0] if len(scores) == 1 else list(scores)


def _opened(sources: Sequence[str], parts: dict[str, Part], also: Sequence[str] = ()) -> pl.LazyFrame:
    table, is_text = open_table(sources, as_text=[*parts, *also])
    if not is_text:
        return table
    check_twins((*parts, *also), table.collect_schema().names())
    return typed(table, parts)
