"""What a test finds, segment by segment, and when a law for many rows is not taken at its word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calframe._kernels._corrections import Correction, adjusted
from calframe._typing import Bools, Floats

FEW_ROWS = 25  # below it no law for many rows decides anything
DECIDES = 0.1  # a p-value above it rejects nothing, so there is no need to know it better
FEW = f"fewer than {FEW_ROWS} rows: the p-value is that of a law for many rows, and decides nothing"
FAR = 0.005  # a p-value of draws below it agrees with a law that says less
BEYOND = "hardly a draw came as far; the p-value is that of the law for many rows, the adjusted one that of the draws"

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
        )

    @classmethod
    def of_draws(cls, statistic: Floats, pvalue: Floats, error: Floats, *, groups: Any = np.nan) -> Self:
        """Return what drawing labels gives in all segments."""
        return replace(cls.of_law(statistic, pvalue, "resampled", groups=groups), pvalue_se=error)

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

    def of_many(self, rows: Floats) -> Self:
        """Return the same where a law for many rows decides nothing with fewer than 25 of them."""
        few = (rows < FEW_ROWS) & ~np.isnan(self.pvalue)
        return replace(self, decides=self.decides & ~few).noted(few, FEW)

    def settled(self, doubtful: Bools, redraw: Redraw, *, law: str = "resampled", below: float = DECIDES) -> Self:
        """Return the same with the law for many rows put to the test where it may be wrong and would decide something.

        Where the law is doubtful and its p-value small, labels are drawn: the p-value is theirs. Where it is below
        0.005 by the draws, too, it stays that of the law, while corrections start from that of the draws.

        Parameters
        ----------
        doubtful : ndarray of bool
            Where the law may be wrong.
        redraw : callable
            From a mask of segments to their p-values by drawing, with standard errors, NaN where they are exact.
        law : str
            What that law is called.
        below : float
            Which p-values are looked at.
        """
        asked = doubtful & self.decides & (self.pvalue < below) & np.isnan(self.pvalue_se)
        asked &= np.isfinite(self.statistic)  # what right scores make impossible needs no law
        if not asked.any():
            return self
        pvalue, error = redraw(asked)
        place = np.flatnonzero(asked)
        reached = (pvalue > FAR) | (pvalue < self.pvalue[asked]) | np.isnan(error)
        seen, beyond = place[reached], place[~reached]
        parts = {name: getattr(self, name).copy() for name in ("df", "pvalue", "pvalue_se", "least", "law")}
        parts["least"][place] = pvalue
        parts["pvalue"][seen], parts["pvalue_se"][seen] = pvalue[reached], error[reached]
        parts["law"][seen], parts["df"][seen] = law, np.nan
        far = np.zeros(len(asked), dtype=np.bool_)
        far[beyond] = True
        return replace(self, **parts).noted(far, BEYOND)


def adjusted_surely(pvalue: Floats, least: Floats, correction: Correction, alpha: float) -> Floats:
    """Return adjusted p-values that reject nothing but by `least`; where that rejects, the smaller ones are shown."""
    sure = adjusted(least, correction)
    return np.where(sure <= alpha, np.minimum(adjusted(pvalue, correction), sure), sure)


def _text(where: Bools, text: Any) -> NDArray[Any]:
    found = np.full(len(where), None, dtype=object)
    found[where] = np.broadcast_to(np.asarray(text, dtype=object), where.shape)[where]
    return found
