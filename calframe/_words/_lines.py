"""Text in lines and columns, as a terminal shows it."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

_SHARES = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 1.0, 0.0)  # of a cut name's room that its beginning takes, as tried


def printable(text: str) -> str:
    """Return text without control characters and line breaks, which a terminal would act on."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if char.isspace() else char if unicodedata.category(char)[0] != "C" else "?" for char in text)


def fitted(text: str, width: int) -> str:
    """Return text cut or filled to a width in columns; wide letters take two.

    Examples
    --------
    >>> fitted("West", 6), fitted("日本語", 6), fitted("日本語", 5)
    ('West  ', '日本語', '日本…')
    """
    clean = printable(text)
    if columns(clean) > width:
        while columns(clean) > width - 1:
            clean = clean[:-1]
        clean += "…"
    return clean + " " * (width - columns(clean))


def distinct(names: Sequence[str], width: int) -> list[str]:
    """Return names of at most `width` columns, all different where the originals differ.

    A name that fits stays as it is. A longer one is cut in its middle; where that leaves two names the same, the cut
    moves in all of them until it tells them apart; where no cut does, those that are the same are numbered.

    Parameters
    ----------
    names : sequence of str
        The names, in any order; those that are the same stay the same.
    width : int
        Columns that each may take, enough for `…` and a number; wide letters take two.

    Examples
    --------
    >>> distinct(["West", "a long name of A", "a long name of B"], 9)
    ['West', 'a lo…of A', 'a lo…of B']
    >>> distinct(["12345 x 67890", "12345 y 67890"], 6)
    ['123…90', '12…0 2']
    """
    clean = {name: printable(name) for name in dict.fromkeys(names)}
    best, most = _SHARES[0], 0
    for share in _SHARES:
        found = {name: _cut(text, width, share) for name, text in clean.items()}
        different = len(set(found.values()))
        if different == len(found):
            return [found[name] for name in names]
        best, most = (share, different) if different > most else (best, most)
    found = _numbered(clean, width, best)
    return [found[name] for name in names]


def _numbered(clean: dict[str, str], width: int, share: float) -> dict[str, str]:
    """Cut names at one place, with a number behind each that another one has already."""
    found = {name: name for name in clean if name == clean[name] and columns(name) <= width}
    taken, last = set(found), dict[str, int]()
    for name, text in clean.items():
        if name in found:
            continue
        unique = same = _cut(text, width, share)
        number = last.get(same, 1)
        while unique in taken:
            number += 1
            unique = f"{_cut(text, width - len(f' {number}'), share)} {number}"
        found[name], last[same] = unique, number
        taken.add(unique)
    return found


def _cut(text: str, width: int, share: float) -> str:
    """Return a text that is too long with `…` in place of what is between its beginning and its end."""
    if columns(text) <= width:
        return text
    room = max(width - 1, 0)
    head = _start(text, math.ceil(room * share))
    tail = _start(text[::-1], room - columns(head))[::-1] if share < 1.0 else ""
    while tail and unicodedata.combining(tail[0]):  # its letter was cut off
        tail = tail[1:]
    return f"{head.rstrip()}…{tail.lstrip()}"


def _start(letters: str, width: int) -> str:
    """Return as many of the first letters as fit."""
    if letters.isascii():
        return letters[:width]
    taken, used = "", 0
    for letter in letters:
        used += _char_columns(letter)
        if used > width:
            break
        taken += letter
    return taken


def wrapped(text: str, width: int) -> list[str]:
    """Return text in lines of at most `width` columns, broken at spaces, and inside words that are longer.

    Examples
    --------
    >>> wrapped("one two three", 7), wrapped("日本語", 4)
    (['one two', 'three'], ['日本', '語'])
    """
    lines = [""]
    for word in text.split():
        if lines[-1] and columns(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
            continue
        lines += [""] * bool(lines[-1])
        for char in word:
            lines += [""] * (columns(lines[-1] + char) > width)
            lines[-1] += char
    return lines


def columns(text: str) -> int:
    """Return the columns that a text takes; wide letters take two, marks on a letter none."""
    return len(text) if text.isascii() else sum(_char_columns(char) for char in text)


def _char_columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
