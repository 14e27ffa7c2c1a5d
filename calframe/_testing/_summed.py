"""Sums over the rows of samples, and what they say of each: its rate, its mean score, its gap, its effective rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from calframe._kernels._binned import effective_rows, ratio
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

_ROUNDING = 1e-6  # a hundred rows must not become fewer by arithmetic


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """Sums over the rows of samples, such as segments; arrays with one value a sample.

    Attributes
    ----------
    n : ndarray
        Rows.
    weight, squared : ndarray
        Sums of w and of w^2 (of w where weights count rows).
    score, label : ndarray
        Sums of w s and of w y.

    Examples
    --------
    >>> rows = (np.array([0]), np.array([0.5]), np.array([10.0]), np.array([4.0]))
    >>> sums = Sums.of_tally(Tally.of_counts(*rows))
    >>> sums.rate, sums.gap.round(12), sums.rows
    (array([0.4]), array([0.1]), array([10.]))
    """

    n: Floats
    weight: Floats
    squared: Floats
    score: Floats
    label: Floats

    @classmethod
    def of_tally(cls, tally: Tally) -> Self:
        """Sum each segment of a tally."""
        return cls(**{name: tally.total(values) for name, values in cls.terms(tally).items()})

    @staticmethod
    def terms(tally: Tally) -> dict[str, Floats]:
        """Return what is summed, of each cell of a tally."""
        return {
            "n": tally.rows,
            "weight": tally.weight,
            "squared": tally.squared,
            "score": tally.weight * tally.score,
            "label": tally.positive,
        }

    def each(self, work: Callable[[Floats], Floats]) -> Self:
        """Return something made of each sum that there is."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return type(self)(**{name: work(value) for name, value in values.items() if value is not None})

    def with_other(self, other: Self, work: Callable[[Floats, Floats], Floats]) -> Self:
        """Return something made of each sum and of the same one of other samples."""
        names = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        return type(self)(**{name: work(getattr(self, name), getattr(other, name)) for name in names})

    def at(self, index: Ints | Bools) -> Self:
        """Return the sums of some samples."""
        return self.each(lambda values: values[index])

    def added(self, index: Ints, count: int) -> Self:
        """Add samples up by the number of what they belong to, of so many; -1 belongs nowhere."""
        known = index >= 0
        return self.each(
            lambda values: np.asarray(np.bincount(index[known], values[known], minlength=count), dtype=np.float64)
        )

    @property
    def rate(self) -> Floats:
        """The observed rate."""
        return np.clip(ratio(self.label, self.weight), 0.0, 1.0)

    @property
    def mean_score(self) -> Floats:
        """The mean score."""
        return np.clip(ratio(self.score, self.weight), 0.0, 1.0)

    @property
    def gap(self) -> Floats:
        """Mean score less rate."""
        return self.mean_score - self.rate

    @property
    def rows(self) -> Floats:
        """The effective number of rows, ``(sum w)^2 / sum w^2``; 0 without any."""
        return np.nan_to_num(effective_rows(self.weight, self.squared))


def reaches(count: Floats, least: float) -> Bools:
    """Return where a number of rows, or of events, is as large as it has to be, whatever arithmetic took off it.

    Examples
    --------
    >>> reaches(np.array([99.0, 100.0 - 1e-9, np.nan]), 100)
    array([False,  True, False])
    """
    return np.asarray(count >= least - _ROUNDING)
