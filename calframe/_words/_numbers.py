"""Numbers as a reader wants them: percentage points, percent, counts, intervals."""

from __future__ import annotations

import math

from calframe._words._lines import printable

MINUS = "\N{MINUS SIGN}"
_LONGEST_NAME = 40


def points(value: float | None, *, sign: bool = True, unit: bool = True) -> str:
    """Return a fraction as percentage points: one decimal, two for tiny ones.

    Examples
    --------
    >>> points(0.0773), points(-0.026), points(-0.0001), points(0.0)
    ('+7.7 pp', '−2.6 pp', '−0.01 pp', '0.0 pp')
    """
    if value is None or math.isnan(value):
        return "–"
    text = _size(abs(value) * 100)
    head = "" if float(text) == 0 else MINUS if value < 0 else "+"
    return f"{head if sign else ''}{text}{' pp' if unit else ''}"


def _size(value: float) -> str:
    """Return one decimal, two where one would show nothing; below that nothing."""
    if value >= 0.05:
        return f"{value:.1f}"
    return "0.0" if value < 0.005 else f"{value:.2f}"


def tolerance(value: float) -> str:
    """Return the tolerance as it was set.

    Examples
    --------
    >>> tolerance(0.03), tolerance(0.025)
    ('±3 pp', '±2.5 pp')
    """
    return f"±{round(value * 100, 6):g} pp"


def whole_points(value: float) -> str:
    """Return the size of a gap for a sentence: whole points from 2 on, decimals below.

    Examples
    --------
    >>> whole_points(0.0773), whole_points(-0.012), whole_points(0.0099), whole_points(-0.0004)
    ('8', '1.2', '1.0', '0.04')
    """
    size = abs(value) * 100
    return f"{math.floor(size + 0.5)}" if size >= 1.95 else _size(size)


def percent(value: float | None) -> str:
    """Return a share in percent, never rounding something to all or nothing.

    Examples
    --------
    >>> percent(0.2937), percent(0.9999), percent(0.0004), percent(1e-7), percent(1.0)
    ('29.4%', '> 99.9%', '0.04%', '< 0.01%', '100.0%')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{value * 100:.1f}"
    if text == "100.0" and value < 1:
        return "> 99.9%"
    if value > 0 and value * 100 < 0.05:
        return "< 0.01%" if value * 100 < 0.005 else f"{_size(value * 100)}%"
    return f"{text}%"


def interval(low: float | None, high: float | None) -> str:
    """Return both ends in percentage points, without unit.

    Examples
    --------
    >>> interval(-0.048, -0.004)
    '−4.8 to −0.4'
    """
    if low is None or high is None or math.isnan(low):
        return "–"
    return f"{points(low, unit=False)} to {points(high, unit=False)}"


def number(value: float | None) -> str:
    """Return a number of any size with four digits that matter.

    Examples
    --------
    >>> number(0.08312345), number(-1.5), number(0.0), number(None)
    ('0.08312', '−1.5', '0', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.4g}".replace("-", MINUS)


def count(value: float | None) -> str:
    """Return a number of rows.

    Examples
    --------
    >>> count(3566)
    '3,566'
    """
    return "–" if value is None else f"{value:,.0f}"


def signed_count(value: float | None) -> str:
    """Return a number of rows with its sign.

    Examples
    --------
    >>> signed_count(276.4), signed_count(-0.2), signed_count(-1200)
    ('+276', '0', '−1,200')
    """
    if value is None:
        return "–"
    sign = "" if round(value) == 0 else MINUS if value < 0 else "+"
    return f"{sign}{count(abs(value))}"


def plural(value: float, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> plural(1, "segment"), plural(1200, "bin")
    ('1 segment', '1,200 bins')
    """
    return f"{count(value)} {noun}{'' if round(value) == 1 else 's'}"


def rows(value: float) -> str:
    """Return a number of rows.

    Examples
    --------
    >>> rows(1), rows(66)
    ('1 row', '66 rows')
    """
    return plural(value, "row")


def rounded_up(value: float) -> str:
    """Return a number of rows rounded up to two figures: it is a forecast, not a count.

    Examples
    --------
    >>> rounded_up(6721.3), rounded_up(104)
    ('6,800', '110')
    """
    step = 10 ** max(math.floor(math.log10(value)) - 1, 0)
    return count(math.ceil(value / step) * step)


def pvalue(value: float | None) -> str:
    """Return a p-value, three decimals at most.

    Examples
    --------
    >>> pvalue(0.0421), pvalue(0.0002), pvalue(0.9996)
    ('0.042', '< 0.001', '> 0.999')
    """
    if value is None or math.isnan(value):
        return "–"
    if value < 0.001:
        return "< 0.001"
    return "> 0.999" if value > 0.9994 else f"{value:.3f}"


def short(name: str, *, words: int | None = None) -> str:
    """Return a segment's name, cut where a sentence would drown in it; blanks alone are "(blank)".

    Examples
    --------
    >>> short("West"), len(short("x" * 60)), short("a b c d", words=2), short("  ")
    ('West', 40, 'a b…', '(blank)')
    """
    parts = printable(name).split()
    flat = " ".join(parts)
    if words is not None and len(parts) > words:
        flat = " ".join(parts[:words]) + "…"
    return (flat if len(flat) <= _LONGEST_NAME else flat[: _LONGEST_NAME - 1] + "…") or "(blank)"


def listed(parts: list[str]) -> str:
    """Return parts as an enumeration.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
