"""The column `note`: what is missing or undefined in each line of a result, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._errors import counted
from calframe._typing import Bools, Floats, Ints

NO_ROWS = "no usable rows"
_FAR = 2.0  # times too large or too small: a mean weight that is hardly meant to count rows


def at_ends(rows: int, floor: float) -> str:
    """Say that rows have a probability of 0 or 1, whose logarithm is as far out as the floor lets it be.

    Examples
    --------
    >>> at_ends(1, 1e-12)
    '1 row has a probability within 1e-12 of 0 or 1; its logarithm pulls the fit most'
    """
    has, their = ("has", "its logarithm pulls") if rows == 1 else ("have", "their logarithms pull")
    return f"{counted(rows)} {has} a probability within {floor:g} of 0 or 1; {their} the fit most"


def of_ends(rows: Ints | Floats, floor: float) -> str | None:
    """Say how many rows of each segment have a probability of 0 or 1: of several, in how many segments there are such.

    Examples
    --------
    >>> of_ends(np.array([2]), 1e-12) == at_ends(2, 1e-12)
    True
    >>> of_ends(np.array([2, 0]), 1e-12)
    'in 1 of 2 segments rows have a probability of 0 or 1; their logarithms pull the fit most'
    """
    some = int((rows > 0).sum())
    if some == 0:
        return None
    if len(rows) == 1:
        return at_ends(int(rows[0]), floor)
    return (
        f"in {some:,} of {len(rows):,} segments rows have a probability of 0 or 1; their logarithms pull the fit most"
    )


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes of lines that are being made.

    Attributes
    ----------
    parts : list of list of str
        What is said of each line.

    Examples
    --------
    >>> notes = Notes.of_counts(np.array([0, 7]), np.array([0, 1]))
    >>> notes.add("only one outcome", np.array([False, True]))
    >>> notes.lines()
    ['no usable rows', '1 row of weight 0 left out; only one outcome']
    """

    parts: list[list[str]]

    @classmethod
    def of_counts(cls, n: Ints, n_zero: Ints) -> Self:
        """Begin with what the rows of each line tell: that none is used, and how many of weight 0 are left out."""
        made = cls([[] for _ in range(len(n))])
        made.add(NO_ROWS, n == 0)
        for i in np.flatnonzero(n_zero):
            made.parts[i].append(f"{counted(int(n_zero[i]))} of weight 0 left out")
        return made

    def add(self, text: str, where: Bools) -> None:
        """Say something of some lines."""
        for i in np.flatnonzero(where):
            self.parts[i].append(text)

    def add_scale(self, metrics: Sequence[str], weight: Floats, n: Ints) -> None:
        """Say where importance weights are far from a mean of 1, of metrics in which they count rows.

        Parameters
        ----------
        metrics : sequence of str
            Those metrics; of none nothing is said.
        weight : ndarray
            The sum of importance weights of each line.
        n : ndarray of int64
            Its rows.
        """
        if metrics:
            far = (weight > _FAR * n) | (_FAR * weight < n)
            text = f"weights count rows in {', '.join(metrics)}: give importance weights a mean of 1"
            self.add(text, far & (n > 0))

    def add_each(self, texts: Iterable[str | None]) -> None:
        """Say of each line what is given, if anything."""
        for part, text in zip(self.parts, texts, strict=True):
            if text is not None:
                part.append(text)

    def lines(self) -> list[str | None]:
        """Return the notes; None where there is nothing to say."""
        return ["; ".join(part) or None for part in self.parts]
