"""What a test finds, segment by segment, and when a law for many rows is not taken at its word."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calframe._kernels import _corrections
from calframe._kernels._corrections import adjusted
from calframe._testing._draws import FEWEST, MOST_DRAWS
from calframe._typing import Bools, Floats

FEW_ROWS = 25  # below it no law for many rows decides anything
DECIDES = 0.1  # a p-value above it rejects nothing, so there is no need to know it better
FEW = f"fewer than {FEW_ROWS} rows: the p-value is that of a law for many rows, and decides nothing"
FAR = 0.005  # a p-value of draws below it agrees with a law that says less
BEYOND = "hardly a draw came as far; the p-value is that of the law for many rows, the adjusted one that of the draws"
BOTH_BEYOND = "hardly a draw came as far; both p-values are those of the law for many rows"

Correction: TypeAlias = Literal[_corrections.Correction, "max"]
Redraw: TypeAlias = Callable[[Bools], tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """What a test finds; arrays with one value a segment.

    Attributes
    ----------
    statistic : ndarray
        The statistic; NaN where it is not defined.
    df : ndarray
        Degrees of freedom of its law; NaN where that has none.
    pvalue, pvalue_se : ndarray
        The chance of a statistic as far out if the scores are right, and its standard error where it was drawn; NaN
        where there is none.
    least : ndarray
        The p-value that corrections for many tests start from: the same, or a larger one that is sure.
    decides : ndarray of bool
        Whether anything may be rejected by it.
    law : ndarray of str or None
        Where the p-value comes from, such as "normal", "chi2" or "resampled".
    note : ndarray of str or None
        What is to be said.
    groups : ndarray
        Number of groups of rows that the statistic compares; NaN where it makes none.
    rough : ndarray of bool
        Whether counts are too small for the law of the statistic.
    at_ends : ndarray
        Rows with a probability of 0 or 1, which pull a fit most; 0 where there is no fit.
    floor : ndarray
        The least p-value that there can be, where labels are drawn; 0 elsewhere.
    draws : ndarray of shape (n_resamples, n_segments), optional
        The statistics drawn, for a correction over segments.
    """

    statistic: Floats
    df: Floats
    pvalue: Floats
    pvalue_se: Floats
    least: Floats
    decides: Bools
    law: NDArray[Any]
    note: NDArray[Any]
    groups: Floats
    rough: Bools
    at_ends: Floats
    floor: Floats
    draws: Floats | None = field(default=None)

    @classmethod
    def of_law(cls, statistic: Floats, pvalue: Floats, law: str, *, df: Any = np.nan, groups: Any = np.nan) -> Self:
        """Return what a closed law gives in all segments."""
        known = ~np.isnan(pvalue)
        return cls(
            statistic=statistic,
            df=np.where(known, df, np.nan),
            pvalue=pvalue,
            pvalue_se=np.full(len(pvalue), np.nan),
            least=pvalue.copy(),
            decides=known,
            law=_text(known, law),
            note=np.full(len(pvalue), None, dtype=object),
            groups=np.broadcast_to(np.asarray(groups, dtype=np.float64), pvalue.shape).copy(),
            rough=np.zeros(len(pvalue), dtype=np.bool_),
            at_ends=np.zeros(len(pvalue)),
            floor=np.zeros(len(pvalue)),
        )

    @classmethod
    def of_draws(cls, statistic: Floats, pvalue: Floats, error: Floats, *, floor: float) -> Self:
        """Return what drawing labels gives in all segments; `floor` is the least p-value that it can give."""
        found = cls.of_law(statistic, pvalue, "resampled")
        return replace(found, pvalue_se=error, floor=np.full(len(pvalue), floor))

    def put(self, where: Bools, part: Found, *, but: Collection[str] = ()) -> None:
        """Write what is found of some segments into all that is told of a segment, but some of it."""
        for name in (each.name for each in fields(self)):
            if name != "draws" and name not in but:
                getattr(self, name)[where] = getattr(part, name)

    def noted(self, where: Bools, text: str) -> Self:
        """Return the same with a note in some segments, after what is there."""
        note = self.note.copy()
        for i in np.flatnonzero(where):
            note[i] = text if note[i] is None else f"{note[i]}; {text}"
        return replace(self, note=note)

    def without(self, where: Bools, why: str) -> Self:
        """Return the same without a p-value in some segments, and why."""
        lost = {name: np.where(where, np.nan, getattr(self, name)) for name in ("df", "pvalue", "pvalue_se", "least")}
        return replace(self, law=_text(~where, self.law), decides=self.decides & ~where, **lost).noted(where, why)

    def certain(self, where: Bools, why: str) -> Self:
        """Return the same with p-values of 0 where right scores could not have given the rows, and why."""
        zero = {name: np.where(where, 0.0, getattr(self, name)) for name in ("pvalue", "least", "floor")}
        error, law = np.where(where, np.nan, self.pvalue_se), np.where(where, "exact", self.law)
        return replace(self, pvalue_se=error, law=law, decides=self.decides | where, **zero).noted(where, why)

    def of_many(self, rows: Floats, why: str = FEW) -> Self:
        """Return the same where a law for many rows decides nothing with fewer than 25 of them."""
        return self.undecided((rows < FEW_ROWS) & ~np.isnan(self.pvalue), why)

    def in_doubt(self, doubtful: Bools, *, below: float = DECIDES, above: float = 0.0) -> Bools:
        """Return where a law that may be wrong would decide something; arguments as of `settled`."""
        asked = doubtful & self.decides & (self.pvalue < below) & (self.pvalue >= above) & np.isnan(self.pvalue_se)
        return asked & np.isfinite(self.statistic)  # what right scores make impossible needs no law

    def settled(
        self,
        doubtful: Bools,
        redraw: Redraw,
        *,
        floor: float = 0.0,
        law: str = "resampled",
        below: float = DECIDES,
        above: float = 0.0,
    ) -> Self:
        """Return the same with the law for many rows put to the test where it may be wrong and would decide something.

        Where the law is doubtful and its p-value small, labels are drawn: the p-value is theirs. Where that is not
        surely above 0.005, by two of its standard errors, it stays that of the law, while corrections start from that
        of the draws.

        Parameters
        ----------
        doubtful : ndarray of bool
            Where the law may be wrong.
        redraw : callable
            From a mask of segments to their p-values by drawing, with standard errors, NaN where they are exact.
        floor : float
            The least of them that there can be.
        law : str
            What that law is called.
        below, above : float
            Which p-values are looked at.
        """
        asked = self.in_doubt(doubtful, below=below, above=above)
        if not asked.any():
            return self
        pvalue, error = redraw(asked)
        place = np.flatnonzero(asked)
        reached = (pvalue - 2.0 * np.nan_to_num(error) > FAR) | (pvalue < self.pvalue[asked]) | np.isnan(error)
        seen = place[reached]
        parts = {name: getattr(self, name).copy() for name in ("df", "pvalue", "pvalue_se", "least", "law", "floor")}
        parts["least"][place], parts["floor"][place] = pvalue, floor
        parts["pvalue"][seen], parts["pvalue_se"][seen] = pvalue[reached], error[reached]
        parts["law"][seen], parts["df"][seen] = law, np.nan
        return replace(self, **parts)

    def adjusted(self, correction: _corrections.Correction, alpha: float) -> tuple[Floats, Self]:
        """Return adjusted p-values that reject nothing but by `least`, and the same with notes on what they are."""
        values, beyond = adjusted_surely(self.pvalue, self.least, correction, alpha), self.least > self.pvalue
        rejects = values <= alpha
        return values, self.noted(beyond & rejects, BOTH_BEYOND).noted(beyond & ~rejects, BEYOND)

    def beyond_reach(self, correction: Correction, alpha: float, *, draws: int) -> tuple[Bools, str] | None:
        """Return where no outcome of the draws could reject, and what to say of it; None where there is no such."""
        never = (self.floor > 0.0) & self.decides & ~(reach(self.least, self.floor, correction) <= alpha)
        if not never.any():
            return None
        tails = max(1.0, float(self.floor.max()) * (1.0 + draws))
        return never, too_few_draws(draws, int((~np.isnan(self.least)).sum()), correction, alpha / tails)

    def undecided(self, where: Bools, why: str) -> Self:
        """Return the same without a decision in some segments, and why."""
        return replace(self, decides=self.decides & ~where).noted(where, why)


def adjusted_surely(pvalue: Floats, least: Floats, correction: _corrections.Correction, alpha: float) -> Floats:
    """Return adjusted p-values that reject nothing but by `least`; where that rejects, the smaller ones are shown."""
    sure = adjusted(least, correction)
    return np.where(sure <= alpha, np.minimum(adjusted(pvalue, correction), sure), sure)


def reach(pvalue: Floats, floor: Floats, correction: Correction) -> Floats:
    """Return the least adjusted p-values that there can be, if draws say the least that they can: `floor`, if not 0."""
    best = np.where((floor > 0.0) & ~np.isnan(pvalue), floor, pvalue)
    return best if correction == "max" else adjusted(best, correction)


def draws_needed(comparisons: int, correction: Correction, alpha: float) -> int:
    """Return how often to draw so that the smallest of many one-sided p-values can reject with room to spare."""
    return math.ceil(2.0 * _times(comparisons, correction) / alpha)


def too_few_draws(draws: int, comparisons: int, correction: Correction, alpha: float) -> str:
    """Say that draws cannot reject, and how many could."""
    needed = draws_needed(comparisons, correction, alpha)
    among = "" if comparisons == 1 else f" among {comparisons:,} comparisons"
    said = f"{draws:,} draws cannot reject{among}, whatever the scores"
    if draws < FEWEST and needed <= 2 * MOST_DRAWS:
        return f"{said}: make it {FEWEST} or more"
    return f"{said}: make it {needed:,}, or take the correction of Benjamini and Hochberg, which may reject by fewer"


def _times(comparisons: int, correction: Correction) -> float:
    """Return what the smallest p-value is times, if it is the only small one."""
    harmonic = {"benjamini_yekutieli": float((1.0 / np.arange(1.0, comparisons + 1.0)).sum())}
    return 1.0 if correction in ("none", "max") else comparisons * harmonic.get(correction, 1.0)


def _text(where: Bools, text: Any) -> NDArray[Any]:
    found = np.full(len(where), None, dtype=object)
    found[where] = np.broadcast_to(np.asarray(text, dtype=object), where.shape)[where]
    return found
