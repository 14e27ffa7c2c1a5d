"""Tests of numbers of positives: against what scores say, and against the gap of another sample.

The number of positives is a sum of independent draws with unequal chances. The Binomial of the same mean and variance
stands for it (exact where scores are equal), so that tails hold for rare outcomes too; a p-value is twice the smaller
tail. With weights the sum is taken as a typical weight times such a number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import ratio
from calframe._kernels._null import cell_law
from calframe._kernels._tally import Tally
from calframe._testing._scatter import Scatter
from calframe._testing._summed import Sums
from calframe._typing import Bools, Floats

LEAST_EVENTS = 5.0  # expected positives, and negatives, of both samples, below which their gaps are not compared
LEAST_ROWS = 20.0  # effective rows, where weights differ, below which one row may outweigh the rest
_ROUNDING = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreSums(Sums):
    """Sums over samples, with the variances that labels have if the scores are right.

    Attributes
    ----------
    variance, squared_variance : ndarray
        Sums of ``w s (1 - s)`` and of ``w^2 s (1 - s)``.
    squared_score : ndarray
        Sum of ``w^2 s``.
    unclustered : ndarray, optional
        Where rows are in clusters, the effective rows that there would be without them; sums of squared weights are as
        many times larger as the gap varies more.
    """

    variance: Floats
    squared_variance: Floats
    squared_score: Floats
    unclustered: Floats | None = None

    @staticmethod
    def terms(tally: Tally) -> dict[str, Floats]:
        """Return what is summed, of each cell of a tally."""
        spread = tally.score * (1.0 - tally.score)
        return Sums.terms(tally) | {
            "variance": tally.weight * spread,
            "squared_variance": tally.squared * spread,
            "squared_score": tally.squared * tally.score,
        }

    @property
    def plain_rows(self) -> Floats:
        """The effective rows that there would be without clusters."""
        return self.rows if self.unclustered is None else self.unclustered

    @property
    def gap_variance(self) -> Floats:
        """Variance of the gap, scores held fixed."""
        return ratio(self.squared_variance, self.weight**2)

    @property
    def outweighed(self) -> Bools:
        """Whether weights that differ, or clusters, are worth so few rows that one may outweigh the rest."""
        return (self.rows < LEAST_ROWS) & (self.rows < self.n * (1.0 - _ROUNDING))

    def clustered(self, scatter: Scatter, tail: float | Floats) -> ScoreSums:
        """Return the sums with the effective rows that clusters leave, for intervals with so much in each tail."""
        times = scatter.times(tail)
        squares = {name: getattr(self, name) * times for name in ("squared", "squared_variance", "squared_score")}
        return replace(self, unclustered=self.rows, **squares)

    def lowered(self, by: Floats) -> ScoreSums:
        """Return the sums with the variances of scores lowered by so much, ``(s - d)(1 - s + d)``.

        Where scores near 0 or 1 leave no such variance, it is that of equal chances, which is never smaller.
        """
        share = np.clip(ratio(self.score, self.weight) - by, 0.0, 1.0)
        plain = self.variance - by * (self.weight - 2.0 * self.score) - by**2 * self.weight
        squared = self.squared_variance - by * (self.squared - 2.0 * self.squared_score) - by**2 * self.squared
        some = (plain > _ROUNDING * self.weight) & (squared > _ROUNDING * self.squared)
        return replace(
            self,
            variance=np.where(some, plain, self.weight * share * (1.0 - share)),
            squared_variance=np.where(some, squared, self.squared * share * (1.0 - share)),
        )


def rarer_events(rows: Floats, rate: Floats, score: Floats) -> Floats:
    """Return how many rows have the rarer outcome: as many as are seen, or as scores expect, whichever is more.

    An outcome that scores expect often and that is never seen says as much about them as one that is seen often.

    Examples
    --------
    >>> rarer_events(np.array([200.0]), np.array([1.0]), np.array([0.75]))
    array([50.])
    """
    found: Floats = rows * np.minimum(np.maximum(rate, score), 1.0 - np.minimum(rate, score))
    return found


def rate_pvalue(sums: ScoreSums) -> Floats:
    """Return the two-sided p-value of each sample: its positives against what its scores say.

    NaN where weights differ and are worth fewer than `LEAST_ROWS` rows: there the law is not that of many rows.

    Examples
    --------
    Ten rows of score 0.5, all positive: both tails of a fair coin.

    >>> rows = (np.array([0]), np.array([0.5]), np.array([10.0]), np.array([10.0]))
    >>> float(rate_pvalue(ScoreSums.of_tally(Tally.of_counts(*rows)))[0]) == 2 / 2**10
    True
    """
    return np.where(sums.outweighed, np.nan, _tails(sums, sums.score, np.ones_like(sums.weight)))


def change_pvalue(one: ScoreSums, other: ScoreSums) -> tuple[Floats, Bools]:
    """Return the two-sided p-value of each sample's gap against that of another one, and where it may be told.

    If gaps are the same, the positives of the sample whose gap is known less well are those of its scores lowered by
    the gap of the other one. Variances are those of scores lowered by the gap of both together, and the error of the
    other sample's gap widens the law.

    Parameters
    ----------
    one, other : ScoreSums
        The samples, pair by pair.

    Returns
    -------
    pvalue : ndarray
        NaN where it may not be told.
    enough : ndarray of bool
        Whether both samples have `LEAST_EVENTS` expected positives and negatives.
    """
    common = ratio(one.rows * one.gap + other.rows * other.gap, one.rows + other.rows)
    enough = np.ones(len(common), dtype=np.bool_)
    for each in (one, other):
        share = ratio(each.score, each.weight) - common
        enough &= each.rows * np.minimum(share, 1.0 - share) >= LEAST_EVENTS - _ROUNDING
    lowered = one.lowered(common), other.lowered(common)
    spreads = lowered[0].gap_variance, lowered[1].gap_variance
    flip = spreads[1] > spreads[0]
    vague = lowered[0].with_other(lowered[1], lambda own, its: np.where(flip, its, own))
    mean = np.clip(vague.score - vague.weight * np.where(flip, one.gap, other.gap), 0.0, vague.weight)
    wide = np.sqrt(np.nan_to_num(ratio(spreads[0] + spreads[1], np.maximum(*spreads)), nan=1.0))
    return np.where(enough, _tails(vague, mean, wide), np.nan), enough


def _tails(sums: ScoreSums, mean: Floats, stretch: Floats) -> Floats:
    """Return twice the smaller tail of the positives about `mean`, the spread of the law stretched."""
    law = cell_law(sums.weight, mean, sums.variance, sums.squared_variance)
    off = sums.label - mean
    certain = law.stretch <= 0.0
    scale = np.where(certain, 1.0, law.step * law.stretch * stretch)
    hits = np.clip(off / scale + law.size * law.chance, -1.0, law.size + 1.0)
    size = law.size.astype(np.int64)
    fewest, most = np.floor(hits + _ROUNDING), np.ceil(hits - _ROUNDING)
    upper = np.where(fewest <= 0.0, 1.0, special.bdtrc(np.maximum(fewest - 1.0, 0.0), size, law.chance))
    upper = np.where(fewest > law.size, 0.0, upper)
    lower = np.where(most >= law.size, 1.0, special.bdtr(np.clip(most, 0.0, law.size), size, law.chance))
    lower = np.where(most < 0.0, 0.0, lower)
    pvalue = np.minimum(2.0 * np.minimum(upper, lower), 1.0)
    return np.where(certain, np.where(np.abs(off) <= _ROUNDING * sums.weight, 1.0, 0.0), pvalue)
