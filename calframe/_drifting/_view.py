"""The periods of a result as text: what a terminal and a notebook show of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import polars as pl

from calframe._words._numbers import count, interval, percent, points, pvalue

_ALL_ROWS = "all rows"  # what is not split into periods
_NONE = "–"
_VERDICTS = {
    "over": "▲ over",
    "under": "▼ under",
    "leans_over": "△ leans over",
    "leans_under": "▽ leans under",
    "within": "● within",
    "unsure": "○ undecided",
    "few": "– few rows",
}


def periods_view(table: pl.DataFrame, labels: Mapping[Any, str], *, alpha: float) -> pl.DataFrame:
    """Return the periods of a table as text, one decimal for all gaps.

    Examples
    --------
    >>> row = {"period": dt.date(2013, 9, 1), "n": 9764, "rate": 0.135, "gap": -0.0001, "simultaneous_low": -0.02}
    >>> row |= {"simultaneous_high": 0.012, "gap_change_pvalue_adjusted": 0.0, "psi": 0.0031, "verdict": "within"}
    >>> periods_view(pl.DataFrame([row]), {dt.date(2013, 9, 1): "Sep 2013"}, alpha=0.05).row(0)
    ('Sep 2013', '9,764', '13.5%', '0.0', '−2.0 to +1.2', '< 0.001', '0.003', '● within')
    """
    return pl.DataFrame(
        [_texts(row, labels) for row in table.iter_rows(named=True)],
        schema=dict.fromkeys(
            ("period", "rows", "rate", "gap", f"{100 * (1 - alpha):g}% widened", "adj. p", "PSI", "verdict"), pl.String
        ),
        orient="row",
    )


def _texts(row: Mapping[str, Any], labels: Mapping[Any, str]) -> tuple[str, ...]:
    day = row["period"].date() if isinstance(row["period"], dt.datetime) else row["period"]
    ends = (_tenth(row["simultaneous_low"]), _tenth(row["simultaneous_high"]))
    return (
        _ALL_ROWS if day is None else labels[day],
        count(row["n"]),
        percent(row["rate"]),
        points(_tenth(row["gap"]), unit=False),
        interval(*ends),
        pvalue(row["gap_change_pvalue_adjusted"]),
        _NONE if row["psi"] is None else f"{row['psi']:.3f}",
        _VERDICTS[row["verdict"]],
    )


def _tenth(gap: float | None) -> float | None:
    """Return a gap rounded to a tenth of a percentage point, so that a column of them has one decimal."""
    return None if gap is None else round(gap, 3)
