"""What right scores would show: labels drawn anew, cell by cell, and how often they go as far as those seen.

If the scores are right, the positives of a cell of n equal scores s are Binomial(n, s). Rows of unequal weight that
share a score, and rows of unequal scores that share a bin, are drawn as the Binomial with the mean and the variance of
their weighted sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from calframe._kernels._null import CellLaw, cell_law
from calframe._kernels._tally import Tally
from calframe._typing import Floats

Side: TypeAlias = Literal["greater", "less", "two-sided"]
Inequality: TypeAlias = Literal[">=", ">"]
Statistic: TypeAlias = Callable[[Tally], Floats]

MOST = 2_000_000  # cells drawn at once; it sets the order of the draws, so results depend on it
_ROUNDING = 1e-12  # statistics that differ by less, relatively, are equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How labels are drawn.

    Attributes
    ----------
    n_resamples : int
        How often.
    rng : numpy.random.Generator
        Where the draws come from.
    inequality : {">=", ">"}
        ``p = (1 + #{T* >= T}) / (1 + n_resamples)``, or the plain share ``#{T* > T} / n_resamples``.
    done : callable, optional
        Told after each chunk which share of the work is done.
    """

    n_resamples: int
    rng: np.random.Generator
    inequality: Inequality = ">="
    done: Callable[[float], None] | None = None

    def part(self, share: float) -> Drawing:
        """Return the same for a part of the work."""
        done = self.done
        return self if done is None else replace(self, done=lambda of_it: done(share * of_it))


@dataclass(slots=True, kw_only=True)
class Counted:
    """How often drawn statistics go as far as those seen.

    Attributes
    ----------
    seen : ndarray of shape (n_segments,)
        The statistics seen.
    above, below : ndarray of int64
        How many draws were at least, and at most, as large (with ">" only those that are larger, or smaller). Draws
        without a value count as both.
    drawing : Drawing
        How they are drawn.
    """

    seen: Floats
    above: Floats
    below: Floats
    drawing: Drawing

    @classmethod
    def of(cls, seen: Floats, drawing: Drawing) -> Counted:
        """Return the count before any draw."""
        return cls(seen=seen, above=np.zeros(len(seen)), below=np.zeros(len(seen)), drawing=drawing)

    def add(self, here: slice, drawn: Floats) -> None:
        """Count draws, one row each, of some segments."""
        seen, unknown = self.seen[here], np.isnan(drawn)
        with np.errstate(invalid="ignore"):
            room = np.where(np.isfinite(seen), _ROUNDING * np.maximum(np.abs(seen), 1.0), 0.0)
            if self.drawing.inequality == ">":
                room = -room
                above, below = drawn > seen - room, drawn < seen + room
            else:
                above, below = drawn >= seen - room, drawn <= seen + room
        self.above[here] += (above | unknown).sum(axis=0)
        self.below[here] += (below | unknown).sum(axis=0)

    def pvalues(self, side: Side) -> tuple[Floats, Floats]:
        """Return the p-values and their standard errors; two-sided is twice the smaller of the two, at most 1."""
        many = self.drawing.n_resamples
        one = 1.0 if self.drawing.inequality == ">=" else 0.0
        up, down = (one + self.above) / (one + many), (one + self.below) / (one + many)
        share = {"greater": up, "less": down, "two-sided": np.minimum(up, down)}[side]
        error = np.sqrt(share * (1.0 - share) / many)
        pvalue = np.minimum(2.0 * share, 1.0) if side == "two-sided" else share
        unknown = np.isnan(self.seen)
        error = error * (2.0 if side == "two-sided" else 1.0)
        return np.where(unknown, np.nan, pvalue), np.where(unknown, np.nan, error)


def law_of(tally: Tally, chance: Floats | None = None) -> CellLaw:
    """Return the law of the weighted positives of each cell of a tally, if the scores (or `chance`) are right."""
    chance = tally.score if chance is None else chance
    spread = chance * (1.0 - chance)
    return cell_law(tally.weight, tally.weight * chance, tally.weight * spread, tally.squared * spread)


def positives(law: CellLaw, weight: Floats, many: int, rng: np.random.Generator) -> Floats:
    """Return weighted positives of cells drawn anew, one row a draw.

    Numbers of rows stay whole numbers, and are not stretched: a statistic as large as the one seen is equal to it.
    """
    hits = rng.binomial(law.size.astype(np.int64), law.chance, size=(many, len(weight)))
    step = law.step * np.where(np.abs(law.step) == 1.0, 1.0, law.stretch)
    drawn = law.centre + step * (hits - law.size * law.chance)
    return np.clip(drawn, 0.0, weight, out=drawn)


def resampled(
    tally: Tally, statistic: Statistic, seen: Floats, *, side: Side, drawing: Drawing, chance: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the p-value of a statistic in each segment by drawing labels, with its standard error.

    ``p = (1 + #{T* >= T}) / (1 + n_resamples)``, which holds its level whatever the law of T; two-sided it is twice
    the smaller of the two, at most 1. NaN where the statistic seen is.

    Parameters
    ----------
    tally : Tally
        Distinct scores, as probabilities.
    statistic : callable
        From a tally to one value a segment.
    seen : ndarray of shape (n_segments,)
        Its values.
    side : {"greater", "less", "two-sided"}
        Which values are evidence.
    drawing : Drawing
        How labels are drawn.
    chance : ndarray, optional
        The probability of each cell, where the scores of the tally are something else.

    References
    ----------
    Phipson, B. and Smyth, G. K. (2010). Permutation P-values should never be zero. Statistical Applications in Genetics
    and Molecular Biology 9(1), 39. https://doi.org/10.2202/1544-6115.1585
    """
    counted = Counted.of(seen, drawing)
    for here, drawn in drawn_statistics(tally, statistic, drawing, chance=chance):
        counted.add(here, drawn)
    return counted.pvalues(side)


def drawn_statistics(
    tally: Tally, statistic: Statistic, drawing: Drawing, *, chance: Floats | None = None
) -> Iterator[tuple[slice, Floats]]:
    """Give a statistic under drawn labels, some segments and some draws at a time: the segments, and one row a draw."""
    law = law_of(tally, chance)
    whole = tally.sizes.sum() * drawing.n_resamples
    for first, part in tally.chunks(max(MOST // drawing.n_resamples, 1)):
        here, cells = slice(first, first + len(part)), len(part.score)
        begin = int(tally.starts[first])
        laws = law.part(begin, begin + cells)
        for many in lots(cells, drawing.n_resamples):
            positive = positives(laws, part.weight, many, drawing.rng)
            yield here, statistic(repeated(part, many, positive.ravel())).reshape(many, len(part))
            if drawing.done is not None:
                drawing.done(many * cells / whole)


def lots(cells: int, n_resamples: int, *, most: int = MOST) -> Iterator[int]:
    """Give how many draws of so many cells are made at once, `most` cells together, until there are enough draws."""
    at_once = max(min(most // cells, n_resamples), 1)
    for begin in range(0, n_resamples, at_once):
        yield min(at_once, n_resamples - begin)


def repeated(part: Tally, many: int, positive: Floats) -> Tally:
    """Return the segments several times, with these positives."""
    cells = len(part.score)
    starts = (part.starts + cells * np.arange(many)[:, None]).ravel()
    sums = part.sums(lambda values: np.tile(values, many)) | {"positive": positive}
    same = part.squared is part.weight
    sums["squared_positive"] = positive if same else positive * np.tile(part.squared / part.weight, many)
    return replace(part, starts=starts, score=np.tile(part.score, many), **sums)
