"""Calibration over time as terminal tables, one a series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from calframe._cli._grid import Column, grid, span
from calframe._cli._names import short_names
from calframe._cli._notes import left_out, wrapped
from calframe._cli._terminal import NO_EDGE, PAGE, takes_style, width
from calframe._drifting._alarms import Alarm, alarm_words, betting_words
from calframe._drifting._drawn import empty_words
from calframe._drifting._frames import by_series
from calframe._drifting._result import Drift
from calframe._drifting._view import periods_view, psi_words
from calframe._results import to_polars
from calframe._words._lines import printable
from calframe._words._listing import in_clusters
from calframe._words._numbers import points, rows

_NAME_CELLS = 24  # room of a segment's name
_TEXTS = ("period", "verdict")  # columns that stand to the left


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
    alarms = found.alarms()
    each = by_series(table, found.keys)
    heads = _headings([values for values, _ in each], found.keys)
    series = [
        f"{head}{rows(int(part['n'].sum()))}\n" + _periods(part, found) + _monitored(alarms.get(values), found)
        for head, (values, part) in zip(heads, each, strict=True)
    ]
    return "\n".join([*_head(found), *series, _meaning(found, table)])


def _head(found: Drift) -> list[str]:
    """Say what stands out, and what must be known of the reference."""
    if found.time is None:
        return [wrapped(printable(found.about_reference))] if found.about_reference else []
    return [
        wrapped(printable(found.told(option="--every {}") or ""))
        + (wrapped(printable(found.about_segments)) if found.about_segments else "")
        + (wrapped(printable(found.about_reference)) if found.about_reference else "")
    ]


def _headings(values: Sequence[tuple[Any, ...]], keys: Sequence[str]) -> list[str]:
    """Say which series each is; no two the same."""
    if not keys:
        return [""] * len(values)
    heads = short_names(keys, _NAME_CELLS)
    names = [short_names(column, _NAME_CELLS) for column in zip(*values, strict=True)]
    return [
        "".join(f"{head} {name}, " for head, name in zip(heads, row, strict=True)) for row in zip(*names, strict=True)
    ]


def _periods(part: pl.DataFrame, found: Drift) -> str:
    view = periods_view(part, found.labels(), alpha=found.alpha)
    columns = [
        Column(head=name, cells=tuple(view[name]), key=name == "period", right=name not in _TEXTS)
        for name in view.columns
    ]
    return grid(_fitting(columns), width=width(), style=takes_style())


def _fitting(columns: list[Column]) -> list[Column]:
    """Leave out the rate, which tells least, where that brings the others into one line."""
    edge, others = PAGE if width() == NO_EDGE else width(), [column for column in columns if column.head != "rate"]
    return others if span(others) <= edge < span(columns) else columns


def _monitored(alarm: Alarm | None, found: Drift) -> str:
    """Say when the monitor of a series sounded."""
    if found.time is None or alarm is None:
        return ""
    quiet = f" in {alarm.batches:,} batch{'' if alarm.batches == 1 else 'es'}" if alarm.since is None else ""
    said = f"{alarm_words([alarm], clip='--clip')}{quiet}"
    return wrapped("; ".join(filter(None, [said, betting_words([alarm])])))


def _meaning(found: Drift, table: pl.DataFrame) -> str:
    undated = f" Rows without a time, in no period: {found.n_undated:,}." if found.n_undated else ""
    text = (
        f"gap: mean score minus observed rate, in percentage points; tolerance {points(found.tolerance, sign=False)}; "
        f"the widened intervals hold together over all periods{' and segments' if found.by else ''}. p adjusted and "
        f"PSI compare with {found.reference}: p says whether the gap is the same. "
        f"{psi_words(table, alpha=found.alpha)} {empty_words(found.n_empty)}"
    )
    if found.time is not None:
        text += f" The monitor sounds at an e-value of {found.alarm_at:g}, whenever one looks. It knows no tolerance, "
        text += "and its date is when the evidence sufficed, not when the change began."
    text = " ".join([text, *in_clusters(found.convention, judged=True)])
    return wrapped(printable(text) + undated + left_out(table))
