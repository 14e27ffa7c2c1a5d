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
from calframe._typing import Bools, Floats, Ints

Side: TypeAlias = Literal["greater", "less", "two-sided"]
Inequality: TypeAlias = Literal[">=", ">"]
Statistic: TypeAlias = Callable[[Tally], Floats]
Drawn: TypeAlias = Iterator[tuple[slice, Floats]]

FEWEST = 399  # draws whose least p-value, also the two-sided one, is small enough to ask for more
MOST_DRAWS = 100_000  # that are asked for so
MOST = 2_000_000  # cells drawn at once; it sets the order of the draws, so results depend on it
_CHEAP = 20_000_000  # numbers drawn in a fraction of a second
_ROUNDING = 1e-12  # statistics that differ by less, relatively, are equal
_ALIKE = 1e-12  # relatively
SMALL = 0.005  # a p-value of the first draws that asks for more of them


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
    further : int
        How many draws the number of tests asks for, one-sided, where the first p-value is small: see `staged`; 0 for no
        more than the first.
    """

    n_resamples: int
    rng: np.random.Generator
    inequality: Inequality = ">="
    done: Callable[[float], None] | None = None
    further: int = 0

    def part(self, share: float) -> Drawing:
        """Return the same for a part of the work."""
        done = self.done
        return self if done is None else replace(self, done=lambda of_it: done(share * of_it))

    def patient(self, cells: int) -> Drawing:
        """Return the same with up to ten times the draws where they are cheap, of so many cells."""
        times = int(np.clip(_CHEAP // (max(cells, 1) * self.n_resamples), 1, 10))
        return replace(self, n_resamples=times * self.n_resamples)

    def more(self, side: Side) -> int:
        """Return how often labels are drawn anew where the first p-value is small; 0 where it stays."""
        return more_draws(self.n_resamples, self.further * _tails(side))

    @property
    def beyond_doubt(self) -> float:
        """A p-value that rejects even if its law is wrong by a factor of a thousand, among all tests."""
        return 2e-3 / max(self.further, 2_000)

    def least(self, side: Side) -> float:
        """Return the least p-value that there can be."""
        return 0.0 if self.inequality == ">" else _tails(side) / (1.0 + (self.more(side) or self.n_resamples))


@dataclass(slots=True, kw_only=True)
class Counted:
    """How often drawn statistics go as far as those seen.

    Attributes
    ----------
    seen : ndarray of shape (..., n_segments)
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
        return cls(seen=seen, above=np.zeros(seen.shape), below=np.zeros(seen.shape), drawing=drawing)

    def add(self, here: slice, drawn: Floats) -> None:
        """Count draws of some segments, of shape (..., draws, segments)."""
        seen, unknown = self.seen[..., None, here], np.isnan(drawn)
        with np.errstate(invalid="ignore"):
            room = np.where(np.isfinite(seen), _ROUNDING * np.maximum(np.abs(seen), 1.0), 0.0)
            if self.drawing.inequality == ">":
                room = -room
                above, below = drawn > seen - room, drawn < seen + room
            else:
                above, below = drawn >= seen - room, drawn <= seen + room
        self.above[..., here] += (above | unknown).sum(axis=-2)
        self.below[..., here] += (below | unknown).sum(axis=-2)

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


def unweighted(tally: Tally) -> Tally:
    """Return a tally without weights in the segments whose rows all weigh the same, which weigh nothing then."""
    total = tally.total(tally.weight)
    alike = equal_weights(tally.total(tally.rows), total, tally.total(tally.squared))
    if not alike.any():
        return tally
    each, here = tally.spread(total / tally.total(tally.rows)), tally.spread(alike)
    positive = np.where(here, np.rint(tally.positive / each), tally.positive)
    if alike.all():
        return Tally.of_counts(tally.starts, tally.score, tally.rows, positive)
    return replace(
        tally,
        weight=np.where(here, tally.rows, tally.weight),
        positive=positive,
        squared=np.where(here, tally.rows, tally.squared),
        squared_positive=np.where(here, positive, tally.squared_positive),
    )


def equal_weights(rows: Floats, weight: Floats, squared: Floats) -> Bools:
    """Return where sums over rows are of weights that are all the same: Cauchy and Schwarz hold as an equation."""
    with np.errstate(under="ignore", over="ignore", divide="ignore", invalid="ignore"):
        return np.abs(squared / weight * (rows / weight) - 1.0) < _ALIKE


def more_draws(first: int, needed: int) -> int:
    """Return how many draws to take anew for small p-values, given how many leave room to spare; at most 100,000.

    0 where the first do, where far more would be needed, and where the first are too few to say which are small.
    """
    return min(needed, MOST_DRAWS) if first >= FEWEST and 2 * (first + 1) < needed <= 2 * MOST_DRAWS else 0


def _tails(side: Side) -> int:
    return 2 if side == "two-sided" else 1


def staged(
    seen: Floats, draws: Callable[[Bools, Drawing], Drawn], *, side: Side, drawing: Drawing
) -> tuple[Floats, Floats]:
    """Return p-values by drawing, and their standard errors: by few draws, or by many where these matter.

    Where there are further draws, the p-values of the first that are at most 0.005 are replaced by those of many draws
    of their own. With ">=" either holds its level; so does what is returned: it is at most ``a < 0.005`` only where
    that of the many draws is, and at most a larger ``a`` only where that of the first is.

    Parameters
    ----------
    seen : ndarray of shape (..., n_segments)
        The statistics.
    draws : callable
        From a mask of segments, and how to draw, to a slice of those in the mask, and what was drawn: of shape
        (..., draws, segments).
    side : {"greater", "less", "two-sided"}
        Which values are evidence.
    drawing : Drawing
        How labels are drawn.

    References
    ----------
    Besag, J. and Clifford, P. (1991). Sequential Monte Carlo p-values. Biometrika 78, 301-304.
    https://doi.org/10.1093/biomet/78.2.301
    """

    def once(where: Bools, how: Drawing) -> tuple[Floats, Floats]:
        counted = Counted.of(seen[..., where], how)
        for here, drawn in draws(where, how):
            counted.add(here, drawn)
        return counted.pvalues(side)

    many, every = drawing.more(side), np.ones(seen.shape[-1], dtype=np.bool_)
    if not many:
        return once(every, drawing)
    share = drawing.n_resamples / (drawing.n_resamples + many)
    pvalue, error = once(every, drawing.part(share))
    small, rest = pvalue <= SMALL, drawing.part(1.0 - share)
    again = np.asarray(small.reshape(-1, small.shape[-1]).any(axis=0))
    if again.any():
        for old, new in zip((pvalue, error), once(again, replace(rest, n_resamples=many)), strict=True):
            old[..., again] = np.where(small[..., again], new, old[..., again])
    elif rest.done is not None:
        rest.done(1.0)
    return pvalue, error


def law_of(tally: Tally, chance: Floats | None = None) -> CellLaw:
    """Return the law of the weighted positives of each cell of a tally, if the scores (or `chance`) are right."""
    chance = tally.score if chance is None else chance
    spread = chance * (1.0 - chance)
    return cell_law(tally.weight, tally.weight * chance, tally.weight * spread, tally.squared * spread)


def positives(law: CellLaw, weight: Floats, many: int, rng: np.random.Generator) -> Floats:
    """Return weighted positives of cells drawn anew, one row a draw.

    Numbers of rows stay whole numbers, and are not stretched: a statistic as large as the one seen is equal to it.
    """
    hits = _binomials(law.size.astype(np.int64), law.chance, many, rng)
    step = law.step * np.where(np.abs(law.step) == 1.0, 1.0, law.stretch)
    drawn = law.centre + step * (hits - law.size * law.chance)
    return np.clip(drawn, 0.0, weight, out=drawn)


def _binomials(size: Ints, chance: Floats, many: int, rng: np.random.Generator) -> Ints:
    """Return Binomial numbers, one row a draw; cells of one row, those of continuous scores, take uniform numbers."""
    several = np.flatnonzero(size > 1)
    if len(several) == len(size):
        hits: Ints = rng.binomial(size, chance, size=(many, len(size)))
        return hits
    hits = ((rng.random((many, len(size))) < chance) & (size == 1)).astype(np.int64)
    if len(several):
        hits[:, several] = rng.binomial(size[several], chance[several], size=(many, len(several)))
    return hits


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
        From a tally to one value a segment, or to a line of them for each of several statistics.
    seen : ndarray of shape (..., n_segments)
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

    def draws(where: Bools, how: Drawing) -> Drawn:
        some = None if chance is None else chance[tally.spread(where)]
        return drawn_statistics(tally.only(where), statistic, how, chance=some)

    return staged(seen, draws, side=side, drawing=drawing)


def drawn_statistics(tally: Tally, statistic: Statistic, drawing: Drawing, *, chance: Floats | None = None) -> Drawn:
    """Give a statistic under drawn labels, some segments and draws at a time: the segments, and one row a draw."""
    law = law_of(tally, chance)
    whole = tally.sizes.sum() * drawing.n_resamples
    for first, part in tally.chunks(max(MOST // drawing.n_resamples, 1)):
        here, cells = slice(first, first + len(part)), len(part.score)
        begin = int(tally.starts[first])
        laws = law.part(begin, begin + cells)
        for many in lots(cells, drawing.n_resamples):
            positive = positives(laws, part.weight, many, drawing.rng)
            found = statistic(repeated(part, many, positive.ravel()))
            yield here, found.reshape(*found.shape[:-1], many, len(part))
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
