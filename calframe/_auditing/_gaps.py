"""Gaps of segments: judged against the tolerance, compared with other rows, and shrunken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calframe._auditing._crossings import Crossings
from calframe._kernels._binned import ratio
from calframe._kernels._corrections import adjusted
from calframe._kernels._intervals import recovered_interval
from calframe._testing._rates import rarer_events
from calframe._testing._scatter import HUGE, Scatter
from calframe._testing._shrinkage import Shrunken, sampling_variance, shrunken
from calframe._testing._summed import Sums, reaches
from calframe._testing._tails import upper_tail
from calframe._typing import Bools, Floats, Ints
from calframe._verdicts import MIN_EVENTS, Judged, Rules, gap_interval, judge


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentSums(Sums):
    """Sums over the rows of some segments (or crossings).

    Attributes
    ----------
    count : ndarray
        Rows, as often as weights say where these are numbers of rows.
    units, effect : ndarray, optional
        Where rows are not independent, the effective number of clusters, and by how much the effective rows are fewer.
    """

    count: Floats
    units: Floats | None = None
    effect: Floats | None = None

    @classmethod
    def of_cells(cls, n: Ints, total: Callable[[str], Floats], *, frequency: bool) -> Self:
        """Return the sums of segments (or crossings) from their rows and what their cells add up to."""
        rows, weight = n.astype(np.float64), total("w")
        return cls(
            n=rows,
            count=weight if frequency else rows,
            weight=weight,
            squared=total("w2"),
            label=total("wy"),
            score=total("wp"),
        )

    def clustered(self, scatter: Scatter, tail: float) -> Self:
        """Return the sums with the effective rows that clusters leave, for intervals with so much in each tail."""
        effect = scatter.times(tail)
        return replace(self, squared=self.squared * effect, units=scatter.count, effect=effect)

    def told_clusters(self) -> dict[str, Floats]:
        """Return how many clusters there are, and by how much they make the effective rows fewer: NaN of a single one.

        None where rows are independent.
        """
        if self.units is None or self.effect is None:
            return {}
        return {"n_clusters": self.units, "design_effect": np.where(self.effect < HUGE, self.effect, np.nan)}

    def over(self, crossings: Crossings, *, only: Bools | None = None) -> Self:
        """Return the sums of each segment, of all its crossings or of some."""
        kept = 1.0 if only is None else only.astype(np.float64)
        return self.each(lambda values: crossings.total(values * kept))

    def whole(self, kept: Bools) -> Self:
        """Return the sums of some crossings as one segment."""
        return self.each(lambda values: np.array([values[kept].sum()]))

    def without(self, part: Self) -> Self:
        """Return these sums less those of a part; without rows left all are 0, whatever rounding leaves."""
        left = np.rint(self.n - part.n) > 0

        def less(mine: Floats, its: Floats) -> Floats:
            return np.where(left, np.maximum(mine - its, 0.0), 0.0)

        return self.with_other(part, less)

    def enough(self, min_rows: float) -> Bools:
        """Return which segments have rows enough, whatever their labels say."""
        return reaches(self.rows, min_rows)

    def eventful(self) -> Bools:
        """Return which segments have events and non-events enough, even if the rows of a cluster all are one."""
        rate, score, rows = np.nan_to_num(self.rate), np.nan_to_num(self.mean_score), self.rows
        rows = rows if self.units is None else np.minimum(rows, self.units)
        return reaches(rarer_events(rows, rate, score), MIN_EVENTS)


def judged(sums: SegmentSums, rules: Rules, *, size: Floats | None = None) -> Judged:
    """Judge gaps against the tolerance, over all segments at once.

    `size` is what the number of segments judged goes by: effective rows, before labels have a say in them.
    """
    return judge(
        rate=sums.rate,
        score=sums.mean_score,
        n=sums.rows,
        size=size,
        units=sums.units,
        rows=sums.count,
        tolerance=rules.tolerance,
        alpha=rules.alpha,
        correction=rules.correction,
        min_rows=rules.min_rows,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Gaps of segments less the gap of other rows.

    Attributes
    ----------
    difference, low, high : ndarray
        The difference, with its own interval; NaN where one of both has no rows.
    pvalue, pvalue_adjusted : ndarray
        Test of no difference, raw and adjusted; NaN where one of both is too small.
    """

    difference: Floats
    low: Floats
    high: Floats
    pvalue: Floats
    pvalue_adjusted: Floats


def compared(sums: SegmentSums, other: SegmentSums, rules: Rules) -> Compared:
    """Compare the gap of each segment with that of other rows, which it shares none with.

    The interval is that of `recovered_interval`, from Wilson's of both. The test is a score test: under the hypothesis
    both have the gap of their rows together, and each rate the variance that goes with it. Its tail allows for the
    skewness of rare events.
    """
    level = 1.0 - rules.alpha
    own, theirs = (gap_interval(each.rate, each.mean_score, each.rows, level=level) for each in (sums, other))
    low, high = recovered_interval(sums.gap, own, other.gap, theirs)
    enough = sums.enough(rules.min_rows) & other.enough(rules.min_rows)
    pvalue = np.where(enough, _difference_pvalue(sums, other), np.nan)
    known = enough & sums.eventful() & other.eventful()
    return Compared(
        difference=sums.gap - other.gap,
        low=low,
        high=high,
        pvalue=np.where(known, pvalue, np.nan),
        pvalue_adjusted=np.where(known, adjusted(pvalue, rules.correction), np.nan),
    )


def _difference_pvalue(sums: SegmentSums, other: SegmentSums) -> Floats:
    gap, its = sums.gap, other.gap
    together = ratio(sums.weight * gap + other.weight * its, sums.weight + other.weight)
    (own, own_third), (theirs, their_third) = _moments(sums, together), _moments(other, together)
    off, deviation = gap - its, np.sqrt(own + theirs)
    with np.errstate(invalid="ignore", divide="ignore"):
        skewness = np.sign(off) * (their_third - own_third) / deviation**3  # of the rates, which the gap takes off
        pvalue = 2.0 * upper_tail(np.abs(off) / deviation, skewness)
    return np.where(np.isnan(off), np.nan, np.minimum(pvalue, 1.0))


def _moments(sums: SegmentSums, gap: Floats) -> tuple[Floats, Floats]:
    """Return variance and third central moment of the rate of segments that have the gap `gap`."""
    rows = np.maximum(sums.rows, 1.0)
    chance = np.clip(sums.mean_score - gap, 0.5 / rows, 1.0 - 0.5 / rows)
    variance = chance * (1.0 - chance) / rows
    return variance, variance * (1.0 - 2.0 * chance) / rows


def shrunken_gaps(sums: SegmentSums, starts: Ints, centre: float) -> Shrunken:
    """Draw the gaps of each family of segments towards the gap of all rows."""
    score = np.nan_to_num(sums.mean_score, nan=0.5)
    if np.isnan(centre):
        centre = 0.0
    return shrunken(sums.gap, sampling_variance(score, centre, sums.rows), starts, centre)


def judged_columns(sums: SegmentSums, found: Judged) -> dict[str, Floats]:
    """Return what is told of segments and their gaps, but the p-values, by the names of the columns."""
    return {
        "rate": sums.rate,
        "mean_score": sums.mean_score,
        "gap": sums.gap,
        "gap_low": found.low,
        "gap_high": found.high,
        "simultaneous_low": np.where(found.enough, found.sim_low, np.nan),
        "simultaneous_high": np.where(found.enough, found.sim_high, np.nan),
    }
