"""Calibration over time as terminal tables, one a series."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import polars as pl

from calframe._cli._cells import NULL, name_text, number_text, pvalue_text
from calframe._cli._grid import Column, cut, grid
from calframe._cli._notes import left_out, wrapped
from calframe._cli._terminal import takes_style, width
from calframe._drifting._result import Drift
from calframe._results import to_polars
from calframe._verdicts import WORDS
from calframe._words._lines import printable
from calframe._words._numbers import interval, points

_NAME_CELLS = 24  # room of a segment's name
_ALL = "all rows"  # what is not split into periods
_SIGNS = "".join(f"{sign} {words[:1].lower()}{words[1:]}, " for sign, words in WORDS.values()).removesuffix(", ")


def drift_view(found: Drift) -> str:
    """Lay out the course of calibration: what stands out, then the periods of each series.

    Parameters
    ----------
    found
        What `drift` gives.

    Returns
    -------
    str
        The text with a line break at its end, within 80 columns.
    """
    table = to_polars(found.table)
    keys = [name for name in (*found.by, "model") if name in table.columns]
    parts = table.partition_by(keys, maintain_order=True) if keys and table.height else [table]
    head = found.headline or "No shift that lasts to the end is clear."
    lines = [wrapped(printable(head))] if found.time is not None else []
    series = [_heading(part, keys) + _periods(part, found) + _monitored(part, keys, found) for part in parts]
    return "\n".join([*lines, *series, _meaning(found, table)])


def _heading(part: pl.DataFrame, keys: Sequence[str]) -> str:
    """Say which series it is, and how many rows are behind it."""
    values = part.select(keys).head(1).rows() if keys else []
    pairs = zip(keys, values[0], strict=True) if values else ()
    named = [" ".join(cut(name_text(text), _NAME_CELLS) for text in pair) for pair in pairs]
    rows = int(part["n"].sum())
    return ", ".join([*named, f"{rows:,} row{'' if rows == 1 else 's'}"]) + "\n"


def _periods(part: pl.DataFrame, found: Drift) -> str:
    rows = [*part.iter_rows(named=True)]
    labels = dict(found.course.select("period", "label").iter_rows())
    columns = [
        Column(head="period", cells=tuple(_label(row["period"], labels) for row in rows), key=True),
        Column(head="rows", cells=tuple(number_text(row["n"]) for row in rows), right=True),
        Column(head="rate", cells=tuple(number_text(row["rate"]) for row in rows), right=True),
        Column(head="gap", cells=tuple(points(row["gap"], unit=False) for row in rows), right=True),
        Column(
            head=f"{100 * (1 - found.alpha):g}% widened",
            cells=tuple(interval(row["simultaneous_low"], row["simultaneous_high"]) for row in rows),
            right=True,
        ),
        Column(head="adj. p", cells=tuple(pvalue_text(row["pvalue_adjusted"]) for row in rows), right=True),
        Column(head="PSI", cells=tuple(_short(row["psi"]) for row in rows), right=True),
        Column(head="", cells=tuple(WORDS[row["verdict"]][0] for row in rows)),
    ]
    return grid(columns, width=width(), style=takes_style())


def _label(period: Any, labels: dict[Any, str]) -> str:
    day = period.date() if isinstance(period, dt.datetime) else period
    return _ALL if day is None else labels.get(day) or name_text(day)


def _short(value: float | None) -> str:
    return NULL if value is None else f"{value:.3f}"


def _monitored(part: pl.DataFrame, keys: Sequence[str], found: Drift) -> str:
    """Say when the monitor of a series sounded."""
    monitor = to_polars(found.monitor)
    if found.time is None or not monitor.height or not part.height:
        return ""
    if keys:
        monitor = monitor.join(part.select(keys).head(1), on=list(keys), how="semi", nulls_equal=True)
    first = monitor.filter("alarm")["time"].drop_nulls().min()
    if first is None:
        return f"monitor: no alarm in {monitor.height:,} batch{'' if monitor.height == 1 else 'es'}\n"
    return f"monitor: alarm since {name_text(first)}\n"


def _meaning(found: Drift, table: pl.DataFrame) -> str:
    undated = f" Rows without a time, in no period: {found.n_undated:,}." if found.n_undated else ""
    compared = f"p adjusted and PSI compare with {found.reference}"
    text = (
        f"gap: mean score minus observed rate, in percentage points; tolerance {points(found.tolerance, sign=False)}; "
        f"the widened intervals hold together over all periods{' and segments' if found.by else ''}. {compared}: p "
        "says whether the gap is the same, PSI how far the scores have moved."
    )
    text += f" {_SIGNS}."
    if found.time is not None:
        text += f" The monitor sounds at an e-value of {found.alarm_at:g}, whenever one looks."
    return wrapped(printable(text) + undated + left_out(table))
