"""Values as short text: numbers, gaps in the data, and names that would not fit."""

from __future__ import annotations

import math
from typing import Any

NULL = "–"
_DIGITS = 4
_LEAST_PVALUE = 0.001
_TO_ASCII = str.maketrans(
    {"–": "-", "−": "-", "…": "~", "’": "'", "▲": "^", "▼": "v", "△": "/", "▽": "\\", "●": "=", "○": "?"}
)


def number_text(value: Any) -> str:
    """Write one result for a table that people read.

    Parameters
    ----------
    value
        A count, a number or None.

    Returns
    -------
    str
        Counts with thousands, four decimals for other numbers, `–` for null.

    Examples
    --------
    >>> [number_text(value) for value in (1234, 0.25, -0.5, -0.00001, float("inf"), None)]
    ['1,234', '0.2500', '−0.5000', '0.0000', 'inf', '–']
    """
    if value is None:
        return NULL
    if isinstance(value, int) or not math.isfinite(value):
        return f"{value:,}".replace("-", "−")
    rounded = round(value, _DIGITS) or 0.0  # no minus before a zero
    return f"{rounded:,.{_DIGITS}f}".replace("-", "−")


def range_text(low: float | None, high: float | None) -> str:
    """Write an interval for a table that people read; `–` where it is not known.

    Examples
    --------
    >>> range_text(-0.5, 0.25), range_text(None, None)
    ('−0.5000 to 0.2500', '–')
    """
    return NULL if low is None or high is None else f"{number_text(low)} to {number_text(high)}"


def pvalue_text(value: float | None) -> str:
    """Write a p-value for a table that people read: three decimals, and none smaller than that.

    Examples
    --------
    >>> [pvalue_text(value) for value in (0.25, 0.0004, 1.0, 0.9999, None)]
    ['0.250', '< 0.001', '1.000', '1.000', '–']
    """
    if value is None:
        return NULL
    return "< 0.001" if value < _LEAST_PVALUE else f"{value:.3f}"


def name_text(value: Any) -> str:
    r"""Write a segment's value on one line.

    Parameters
    ----------
    value
        A key of the table, of any type.

    Returns
    -------
    str
        Its text, with line breaks and control characters escaped; `(missing)` for null and `(empty)` for no text.

    Examples
    --------
    >>> [name_text(value) for value in ("West", 2013, None, "", "two\nlines")]
    ['West', '2013', '(missing)', '(empty)', 'two\\nlines']
    """
    if value is None:
        return "(missing)"
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(value))
    return text or "(empty)"


def to_ascii(text: str) -> str:
    """Replace the symbols that calframe itself writes by ASCII ones, for terminals that know no others.

    Examples
    --------
    >>> to_ascii("▲ −0.5 … +0.1")
    '^ -0.5 ~ +0.1'
    """
    return text.translate(_TO_ASCII)
