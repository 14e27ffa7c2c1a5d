"""Text in lines and columns, as a terminal shows it."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """Return text without control characters and line breaks, which a terminal would act on."""
    return "".join(" " if char.isspace() else char if unicodedata.category(char)[0] != "C" else "?" for char in text)


def fitted(text: str, width: int) -> str:
    """Return text cut or filled to a width in columns; wide letters take two.

    Examples
    --------
    >>> fitted("West", 6), fitted("日本語", 6), fitted("日本語", 5)
    ('West  ', '日本語', '日本…')
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
    >>> wrapped("one two three", 7), wrapped("日本語", 4)
    (['one two', 'three'], ['日本', '語'])
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


def _columns(text: str) -> int:
    return sum(_char_columns(char) for char in text)


def _char_columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
