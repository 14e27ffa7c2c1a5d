"""The periods of a result as text: what a terminal and a notebook show of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import polars as pl

from calframe._verdicts import WORDS
from calframe._words._numbers import count, interval, percent, points, pvalue

_ALL_ROWS = "all rows"  # what is not split into periods
_NONE = "–"
_MARK = "*"
PSI = ("PSI", "chance")
"""Headings of the PSI and of what chance makes of it."""
_SHORT = {"leans_over": "leans over", "leans_under": "leans under", "unsure": "undecided", "few": "few rows"}
"""What stands behind the symbol of a verdict where its own name would not do: a column has no room for its words."""


def periods_view(table: pl.DataFrame, labels: Mapping[Any, str], *, alpha: float) -> pl.DataFrame:
    """Return the periods of a table as text, one decimal for all gaps; a PSI beyond chance has a mark.

    Examples
    --------
    >>> row = {"period": dt.date(2013, 9, 1), "n": 9764, "rate": 0.135, "gap": -0.0001, "simultaneous_low": -0.02}
    >>> row |= {"simultaneous_high": 0.012, "gap_change_pvalue_adjusted": 0.0, "psi": 0.0031, "psi_expected": 0.0011}
    >>> row |= {"psi_pvalue_adjusted": 0.02, "verdict": "within"}
    >>> periods_view(pl.DataFrame([row]), {dt.date(2013, 9, 1): "Sep 2013"}, alpha=0.05).row(0)
    ('Sep 2013', '9,764', '13.5%', '0.0', '−2.0 to +1.2', '< 0.001', '0.003*', '0.001', '● within')
    """
    return pl.DataFrame(
        [_texts(row, labels, alpha) for row in table.iter_rows(named=True)],
        schema=dict.fromkeys(
            ("period", "rows", "rate", "gap", f"{100 * (1 - alpha):g}% widened", "adj. p", *PSI, "verdict"), pl.String
        ),
        orient="row",
    )


def _texts(row: Mapping[str, Any], labels: Mapping[Any, str], alpha: float) -> tuple[str, ...]:
    day = row["period"].date() if isinstance(row["period"], dt.datetime) else row["period"]
    ends = (_tenth(row["simultaneous_low"]), _tenth(row["simultaneous_high"]))
    return (
        _ALL_ROWS if day is None else labels[day],
        count(row["n"]),
        percent(row["rate"]),
        points(_tenth(row["gap"]), unit=False),
        interval(*ends),
        pvalue(row["gap_change_pvalue_adjusted"]),
        _thousandths(row["psi"]) + (_MARK if _is_beyond(row["psi_pvalue_adjusted"], alpha) else ""),
        _thousandths(row["psi_expected"]),
        f"{WORDS[row['verdict']][0]} {_SHORT.get(row['verdict'], row['verdict'])}",
    )


def psi_words(table: pl.DataFrame, *, alpha: float) -> str:
    r"""Say what the columns of the PSI mean, and how many have no p-value; nothing where there is none.

    Examples
    --------
    >>> found = pl.DataFrame({"psi": [0.003, 0.2], "psi_pvalue_adjusted": [0.02, None]})
    >>> print(psi_words(found, alpha=0.05).replace(". ", ".\n"))
    PSI: how far the scores have moved; chance: what it shows of scores that have not.
    * p of the PSI, adjusted, at most 0.05; 1 of 2 has no p (weights, or too few rows in a bin).
    """
    seen = table.filter(pl.col("psi").is_not_null())
    if not seen.height:
        return ""
    without, of = seen["psi_pvalue_adjusted"].null_count(), seen.height
    has = "has" if without == 1 else "have"
    unknown = f"; {without:,} of {of:,} {has} no p (weights, or too few rows in a bin)" if without else ""
    return (
        f"PSI: how far the scores have moved; {PSI[1]}: what it shows of scores that have not. {_MARK} p of the PSI, "
        f"adjusted, at most {alpha:g}{unknown}."
    )


def _is_beyond(pvalue: float | None, alpha: float) -> bool:
    return pvalue is not None and pvalue <= alpha


def _thousandths(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def _tenth(gap: float | None) -> float | None:
    """Return a gap rounded to a tenth of a percentage point, so that a column of them has one decimal."""
    return None if gap is None else round(gap, 3)
