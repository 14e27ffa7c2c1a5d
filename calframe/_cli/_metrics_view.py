"""A table of metrics as a terminal table: segments below each other, or metrics where these are many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from calframe._cli._cells import number_text, range_text
from calframe._cli._grid import Column, grid, span, with_room
from calframe._cli._names import name_column, short_names
from calframe._cli._notes import LONG_LINE, note_lines
from calframe._cli._terminal import takes_style, width

_HEAD_CELLS = 16  # room of a segment's name where it heads a column
_SHOWN_IF_ANY = ("n_missing", "n_invalid")  # counts that are mostly 0
_FOLDED_FROM = 9  # longer headings break at an underscore


class _Metric(NamedTuple):
    """A metric or count with one text a segment, and the texts of its intervals if it has any."""

    name: str
    values: tuple[str, ...]
    intervals: tuple[str, ...] | None


def metrics_view(table: pl.DataFrame, *, keys: Sequence[str]) -> str:
    """Lay out a table of metrics: rounded, one line a segment or, where that is too long, one a metric.

    Parameters
    ----------
    table
        What `metrics` gives.
    keys
        Its key columns, `model` and `class` included.

    Returns
    -------
    str
        The text with a line break at its end, notes underneath. Counts of left-out rows show where any is not 0,
        intervals where any is known.
    """
    metrics = [_metric(table, name) for name in _names(table, keys)]
    across = with_room(_across(table, keys, metrics), width=width())
    edge = min(width(), LONG_LINE)
    if span(across) > edge:
        down = _down(table, keys, metrics)
        across = down if span(down) <= edge else across
    return grid(across, width=width(), style=takes_style()) + note_lines(table, keys)


def _names(table: pl.DataFrame, keys: Sequence[str]) -> list[str]:
    zero = {name for name in _SHOWN_IF_ANY if name in table.columns and table[name].sum() == 0}
    ends = {f"{name}_{end}" for name in table.columns for end in ("low", "high")}
    return [name for name in table.columns if name not in {*keys, *zero, *ends, "note"}]


def _metric(table: pl.DataFrame, name: str) -> _Metric:
    values = tuple(map(number_text, table[name]))
    ends = [f"{name}_low", f"{name}_high"]
    if not set(ends) <= set(table.columns) or all(table[end].is_null().all() for end in ends):
        return _Metric(name, values, None)
    return _Metric(name, values, tuple(range_text(*pair) for pair in table.select(ends).iter_rows()))


def _across(table: pl.DataFrame, keys: Sequence[str], metrics: Sequence[_Metric]) -> list[Column]:
    """Return one column a metric, its interval beside it."""
    columns = [name_column(name, table[name]) for name in keys]
    for metric in metrics:
        columns.append(Column(head=_folded(metric.name), cells=metric.values, right=True))
        if metric.intervals is not None:
            columns.append(Column(head="interval", cells=metric.intervals, right=True, tied=True))
    return columns


def _down(table: pl.DataFrame, keys: Sequence[str], metrics: Sequence[_Metric]) -> list[Column]:
    """Return one column a segment, its intervals beside it."""
    columns = [
        Column(
            head="\n".join(short_names(keys, _HEAD_CELLS)) or "metric",
            cells=tuple(metric.name for metric in metrics),
            key=True,
        )
    ]
    rows = zip(*(short_names(table[key], _HEAD_CELLS) for key in keys), strict=True) if keys else [()]
    for index, row in enumerate(rows):
        head = "\n".join(row) or "value"
        columns.append(Column(head=head, cells=tuple(metric.values[index] for metric in metrics), right=True))
        intervals = tuple("" if metric.intervals is None else metric.intervals[index] for metric in metrics)
        if any(intervals):
            columns.append(Column(head="interval", cells=intervals, right=True, tied=True))
    return columns


def _folded(name: str) -> str:
    if len(name) < _FOLDED_FROM or "_" not in name:
        return name
    first, last = name.rsplit("_", 1)
    return f"{first}_\n{last}"
