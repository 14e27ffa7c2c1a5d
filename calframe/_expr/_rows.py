"""The missing rule inside a polars expression, and sums over the rows that it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from operator import add
from typing import Any, Self, TypeAlias

import polars as pl

from calframe._binning import Bins
from calframe._columns import exact_column
from calframe._errors import ArgumentError
from calframe._expr._bins import combined, inside, is_probability
from calframe._rows import LARGEST_WEIGHT, SMALLEST_WEIGHT

ColumnOrExpr: TypeAlias = str | pl.Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows of a measure, read as every verb reads them.

    Attributes
    ----------
    own : polars.Expr
        The score in its own float type, which edges are compared in.
    score, label : polars.Expr
        The score as Float64, and 1.0 or 0.0.
    weight : polars.Expr
        The row weight as Float64; 1 where there is none.
    used : polars.Expr
        Which rows are used.
    faulty : polars.Expr
        Whether any row is an error.
    """

    own: pl.Expr
    score: pl.Expr
    label: pl.Expr
    weight: pl.Expr
    used: pl.Expr
    faulty: pl.Expr

    @classmethod
    def from_columns(
        cls, own: pl.Expr, label: ColumnOrExpr, weight: ColumnOrExpr | None, *, bins: Bins | None = None
    ) -> Self:
        """Apply the missing rule to a score in its own type, a label and perhaps a weight."""
        outcome = _number("label", label)
        mass = pl.lit(1.0) if weight is None else _number("weight", weight)
        labelled = ~_is_missing(outcome) & (mass != 0.0)
        present = labelled & ~_is_missing(own) & ~_is_missing(mass)
        known = (outcome == 1.0) | (outcome == 0.0) | (outcome == -1.0)
        allowed = is_probability(own, bins) & mass.is_between(SMALLEST_WEIGHT, LARGEST_WEIGHT)
        used = present & allowed & known
        mixed = (used & (outcome == 0.0)).any() & (used & (outcome == -1.0)).any()
        return cls(
            own=own,
            score=own.cast(pl.Float64),
            label=pl.when(outcome == 1.0).then(1.0).otherwise(0.0),
            weight=mass,
            used=used,
            faulty=((present & ~allowed) | (labelled & ~known)).any() | mixed,
        )

    def mean(self, term: pl.Expr) -> pl.Expr:
        """Return the weighted mean of a term."""
        return self._finished(self._total(term) / self._mass())

    def gap(self) -> pl.Expr:
        """Return score minus label of each row."""
        return self.score - self.label

    def mean_gap(self, bins: Bins) -> pl.Expr:
        """Return the mean absolute gap over the bins, by weight."""
        gaps = [self._total(self.gap(), within=part).abs() for part in inside(self.own, bins)]
        return self._finished(combined(gaps, add) / self._mass())

    def largest_gap(self, bins: Bins) -> pl.Expr:
        """Return the largest absolute gap of a bin."""
        gaps = [
            self._total(self.gap(), within=part).abs()
            / self._mass(within=part).clip(lower_bound=SMALLEST_WEIGHT)  # an empty bin has gap 0
            for part in inside(self.own, bins)
        ]
        return self._finished(combined(gaps, lambda one, other: one.clip(lower_bound=other)))

    def _total(self, term: pl.Expr, *, within: pl.Expr | None = None) -> pl.Expr:
        weighted = pl.when(self.used).then(term * self.weight).otherwise(0.0)
        return (weighted if within is None else weighted.filter(within)).sum()

    def _mass(self, *, within: pl.Expr | None = None) -> pl.Expr:
        return self._total(pl.lit(1.0), within=within)

    def _finished(self, measure: pl.Expr) -> pl.Expr:
        """Return a measure: null without used rows, NaN where a row is an error."""
        return pl.when(~self.faulty & (self._mass() > 0.0)).then(measure).when(self.faulty).then(float("nan"))


def _number(role: str, given: Any) -> pl.Expr:
    return (_column(role, given) + 0.0).cast(pl.Float64)


def _column(role: str, given: Any) -> pl.Expr:
    """Return the column of a name, which is never a pattern, or an expression as it is."""
    if isinstance(given, pl.Expr):
        return given
    if not isinstance(given, str):
        msg = f"{role}= takes the name of a column or a polars expression; got {type(given).__name__}."
        raise ArgumentError(msg)
    return exact_column(given)


def _is_missing(number: pl.Expr) -> pl.Expr:
    return number.is_null() | number.is_nan()
