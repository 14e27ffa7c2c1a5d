"""Errors and warnings. Each error builds its own text: what was expected, what was found, what to do."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from calframe._nearest import nearest

_SHOWN_NAMES = 12  # enough to recognise a table by, short enough for a terminal
_QUIET_PACKAGES = ("polars", "narwhals", "pandas", "calframe")


def outside_unit(name: str, rows: int, low: str, high: str) -> str:
    """Return the words for scores that are no probabilities."""
    return f"scores must lie in [0, 1]: column {name!r} runs from {low} to {high}, with {counted(rows)} outside."


def counted(count: int) -> str:
    """Return a number of rows as errors tell it.

    Examples
    --------
    >>> counted(1), counted(1200)
    ('1 row', '1,200 rows')
    """
    return f"{count:,} row{'' if count == 1 else 's'}"


class CalframeError(ValueError):
    """Input that calframe cannot work with; the message says what to do about it."""


class ArgumentError(CalframeError):
    """An argument whose value is not one of those allowed."""

    @classmethod
    def from_choice(cls, name: str, value: object, allowed: Iterable[str]) -> Self:
        """Say which value is meant by what was given, as far as that can be told, and which ones an argument takes."""
        known = sorted(allowed)
        near = nearest(value, known) if isinstance(value, str) else None
        listed = f"must be one of {', '.join(map(repr, known))}"
        if near is None:
            return cls(f"{name} {listed}; got {value!r}.")
        return cls(f"{name}={value!r} is not known. Did you mean {near!r}? It {listed}.")


class ColumnNotFoundError(CalframeError):
    """A named column that the table does not have."""

    @classmethod
    def from_name(
        cls, name: str, *, role: str, available: Sequence[Any], candidates: Sequence[str] = (), use: str | None = None
    ) -> Self:
        """Name the missing column, near names, and columns that could be meant; `use` where no argument names it."""
        text = f"no column {name!r}{f' for {role}=' if use is None else f', {use}'}"
        odd = next((column for column in available if not isinstance(column, str) and str(column) == name), None)
        if odd is not None:
            return cls(
                f"{text}: the table has {odd!r}, a name of type {type(odd).__name__}, not text. Rename its columns, "
                "for example with df.columns = df.columns.map(str)."
            )
        available = [str(column) for column in available]
        listed = [part.strip() for part in name.split(",")]
        if role in {"by", "score"} and len(listed) > 1 and set(listed) <= set(available):
            return cls(f"{text}. Did you mean {role}={listed}?")
        folded = {column.casefold(): column for column in available}
        near = difflib.get_close_matches(name.casefold(), list(folded), n=3, cutoff=0.7)
        if near:
            text += f". Did you mean {', '.join(repr(folded[n]) for n in near)}?"
        else:
            text += f"; the table has {_listed(available)}."
        if candidates:
            part = "a segment column" if role == "by" else f"the {role}"
            text += f" Columns that could be {part}: {_listed(candidates)}."
        return cls(text)


class ColumnClashError(CalframeError):
    """Column names that cannot be told apart, or that a result needs for itself."""

    @classmethod
    def from_case(cls, names: Sequence[str]) -> Self:
        """Refuse columns whose names differ only by case: some engines read one for the other."""
        listed = " and ".join(map(repr, names))
        return cls(f"columns {listed} differ only by case, and some engines mix them up; rename one of them.")

    @classmethod
    def from_existing(cls, name: str) -> Self:
        """Refuse a new column under the name of one that there is."""
        return cls(f"the table has a column {name!r} already; pass another name=, or drop that column.")

    @classmethod
    def from_reserved(cls, name: str) -> Self:
        """Refuse a segment column named like a column of the result."""
        return cls(f"segment column {name!r} has the name of a result column; rename it, for example to '{name}_'.")


class LabelError(CalframeError):
    """A label column that is not binary, or whose positive value is unknown."""


class ScoreError(CalframeError):
    """Scores that are not probabilities."""


class WeightError(CalframeError):
    """Weights that are negative, infinite, or not whole where they must be."""


class SegmentError(CalframeError):
    """A segment column that cannot make segments."""


class EmptyTableError(CalframeError):
    """A table without rows."""

    @classmethod
    def from_table(cls) -> Self:
        """Say that there is nothing to compute on."""
        return cls("the table has no rows, so there is nothing to compute; check the filter or the file it came from.")


class CalframeWarning(UserWarning):
    """Something the caller can act on; the numbers are still right."""


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN_NAMES]))
    more = len(names) - _SHOWN_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def warn(message: str) -> None:
    """Warn at the user's own line: the first frame outside this package and the dataframe libraries."""
    homes = tuple(str(Path(__import__(name).__file__ or "").parent) for name in _QUIET_PACKAGES if name in sys.modules)
    level, frame = 1, sys._getframe()  # noqa: SLF001  the documented way to walk the stack
    while frame.f_back is not None and frame.f_code.co_filename.startswith(homes):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, CalframeWarning, stacklevel=level)
