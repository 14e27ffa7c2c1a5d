"""Numbers and lines of text as a reader wants them."""

from __future__ import annotations

import math
import unicodedata

_MINUS = "\N{MINUS SIGN}"
_LONGEST_NAME = 40


def points(value: float | None) -> str:
    """Return a fraction in percentage points, signed: one decimal, two for tiny ones.

    Examples
    --------
    >>> points(0.0773), points(-0.0004), points(0.0), points(None)
    ('+7.7', '−0.04', '0.0', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    text = _size(abs(value) * 100)
    head = "" if float(text) == 0 else _MINUS if value < 0 else "+"
    return f"{head}{text}"


def whole_points(value: float) -> str:
    """Return the size of a gap for a sentence: whole points from 2 on, decimals below.

    Examples
    --------
    >>> whole_points(0.0773), whole_points(-0.012)
    ('8', '1.2')
    """
    size = abs(value) * 100
    return f"{math.floor(size + 0.5)}" if size >= 1.95 else _size(size)


def percent(value: float | None) -> str:
    """Return a share in percent, never rounding something to all or nothing.

    Examples
    --------
    >>> percent(0.2937), percent(0.9999), percent(1e-7)
    ('29.4%', '> 99.9%', '< 0.01%')
    """
    if value is None or math.isnan(value):
        return "–"
    if 0.9995 <= value < 1:
        return "> 99.9%"
    if 0 < value < 5e-5:
        return "< 0.01%"
    return f"{_size(value * 100) if 0 < value < 5e-4 else f'{value * 100:.1f}'}%"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "segment"), counted(1200, "segment")
    ('1 segment', '1,200 segments')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def short(name: str) -> str:
    """Return a name on one line, cut where a sentence would drown in it.

    Examples
    --------
    >>> short("region  West"), len(short("x" * 60))
    ('region West', 40)
    """
    flat = printable(" ".join(name.split()))
    return (flat if len(flat) <= _LONGEST_NAME else flat[: _LONGEST_NAME - 1] + "…") or "(blank)"


def printable(text: str) -> str:
    """Return text without control characters and line breaks, which a terminal would act on."""
    return "".join(" " if char.isspace() else char if unicodedata.category(char)[0] != "C" else "?" for char in text)


def fitted(text: str, width: int) -> str:
    """Return text cut or filled to a width in columns; wide letters take two.

    Examples
    --------
    >>> fitted("West", 6), fitted("日本語", 5)
    ('West  ', '日本…')
    """
    clean = printable(text)
    if _columns(clean) > width:
        while _columns(clean) > width - 1:
            clean = clean[:-1]
        clean += "…"
    return clean + " " * (width - _columns(clean))


def wrapped(text: str, width: int) -> list[str]:
    """Return text in lines of at most `width` columns, broken at spaces, and inside words that are longer.

    Examples
    --------
    >>> wrapped("one two three", 7)
    ['one two', 'three']
    """
    lines = [""]
    for word in text.split():
        if lines[-1] and _columns(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
            continue
        lines += [""] * bool(lines[-1])
        for char in word:
            lines += [""] * (_columns(lines[-1] + char) > width)
            lines[-1] += char
    return lines


def _size(value: float) -> str:
    if value >= 0.05:
        return f"{value:.1f}"
    return "0.0" if value < 0.005 else f"{value:.2f}"


def _columns(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(bool(unicodedata.combining(char)) for char in text)
