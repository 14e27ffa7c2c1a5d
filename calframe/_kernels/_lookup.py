"""What known whole numbers stand for: looked up in a table where they lie close together, else by bisection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calframe._typing import Ints

_MOST_PLACES = 2**20  # numbers that are looked up in a table of all of them
_FAR = 2**62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lookup:
    """What known whole numbers stand for; all others stand for 0.

    Attributes
    ----------
    known, found : ndarray of int64
        The numbers, ascending, and what they stand for.
    table : ndarray of int64 or None
        What all numbers from `first` on stand for, where that is a short table; its ends are 0.
    first : int
        One less than the first known number.
    """

    known: Ints
    found: Ints
    table: Ints | None
    first: int

    @classmethod
    def of(cls, known: Ints) -> Self:
        """Return the lookup of at least one known number, ascending; they stand for their places, from 1.

        Examples
        --------
        >>> lookup = Lookup.of(np.array([3, 5]))
        >>> lookup(np.array([5, 4, 3, 900], dtype=np.int16))
        array([2, 0, 1, 0])
        """
        low, high = int(known[0]) - 1, int(known[-1]) + 1
        narrow = high - low < _MOST_PLACES and -_FAR < low < high < _FAR
        table = np.zeros(high - low + 1, dtype=np.int64) if narrow else None
        return cls(known=known, found=known, table=table, first=low).to(np.arange(1, len(known) + 1))

    def to(self, found: Ints) -> Self:
        """Return the lookup with other values for the known numbers."""
        table = self.table
        if table is not None:
            table = np.zeros_like(table)
            table[self.known - self.first] = found
        return replace(self, found=found, table=table)

    def __call__(self, values: Any) -> Ints:
        """Return what whole numbers of any type stand for."""
        if self.table is not None:  # a difference that wraps around is not within the table, either
            place = np.subtract(values, self.first, dtype=np.int64, casting="unsafe")
            taken: Ints = self.table.take(place, mode="clip")
            return taken
        at = np.minimum(np.searchsorted(self.known, values), len(self.known) - 1)
        return np.where(self.known[at] == values, self.found[at], 0)
