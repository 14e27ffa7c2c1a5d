"""Hosmer and Lemeshow's test: observed and expected counts in groups of like scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import segment_sum, spread, starts_of
from calframe._kernels._null import cell_law
from calframe._kernels._tally import Tally
from calframe._testing._draws import Drawing, Drawn, lots, positives, resampled, staged
from calframe._testing._found import FAR, Found
from calframe._typing import Bools, Floats, Ints

Df: TypeAlias = Literal["external", "internal"]
Grouping: TypeAlias = Callable[[Tally], Ints]

_WIDER = 1.12  # by how much the variance of the statistic may exceed that of its chi-square law
SMALL, LEAST, _SHARE = 5.0, 1.0, 0.2  # Cochran: no expected count below 1, a fifth of them below 5
ENOUGH = 100.0  # expected counts of which the tail of the law is good, too
ONE_GROUP = "too few groups for a degree of freedom"
SMALL_COUNTS = "small expected counts: the chi-square law is rough"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """Groups of like scores in each segment.

    Attributes
    ----------
    starts : ndarray of int64
        The first group of each segment.
    first : ndarray of int64
        The first cell of each group.
    rows, expected, observed : ndarray
        Rows, the sum of scores, and the positives of each group.
    variance, fourth : ndarray
        Sums of ``s (1 - s)`` and of ``s (1 - s) (1 - 6 s (1 - s))``.
    """

    starts: Ints
    first: Ints
    rows: Floats
    expected: Floats
    observed: Floats
    variance: Floats
    fourth: Floats

    @classmethod
    def of(cls, tally: Tally, group: Ints) -> Groups:
        """Return the groups of a tally, given the group of each cell, ascending within a segment."""
        new = np.ones(len(group), dtype=np.bool_)
        new[1:] = np.diff(group) != 0
        new[tally.starts] = True
        first = np.flatnonzero(new)
        chance = tally.score * (1.0 - tally.score)
        return cls(
            starts=np.searchsorted(first, tally.starts),
            first=first,
            rows=segment_sum(tally.weight, first),
            expected=segment_sum(tally.weight * tally.score, first),
            observed=segment_sum(tally.positive, first),
            variance=segment_sum(tally.weight * chance, first),
            fourth=segment_sum(tally.weight * chance * (1.0 - 6.0 * chance), first),
        )

    def counts(self) -> Ints:
        """Return the number of groups of each segment."""
        return np.diff(np.append(self.starts, len(self.first)))

    def statistic(self) -> Floats:
        """Return ``sum (O - E)^2 / (E (1 - E / n))`` over the groups of each segment; a group of certain rows adds 0.

        Infinite where what right scores say cannot happen did.
        """
        off = self.observed - self.expected
        scale = self._scale()
        room = 1e-12 * np.maximum(self.rows, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(np.abs(off) <= room, 0.0, off**2 / scale)
        parts = np.where((scale > 0.0) & (np.abs(off) <= room), off**2 / np.where(scale > 0.0, scale, 1.0), parts)
        return segment_sum(np.asarray(parts, dtype=np.float64), self.starts)

    def doubtful(self) -> Bools:
        """Return where the statistic varies more than its chi-square law, as it does with few expected events."""
        scale = self._scale()
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = np.where(scale > 0.0, (2.0 * self.variance**2 + self.fourth) / scale**2, 0.0)
        return np.asarray(segment_sum(wide, self.starts) > _WIDER * 2.0 * self.counts())

    def small(self) -> Bools:
        """Return where expected counts are small: one below 1, or more than a fifth below 5."""
        return are_small(self.lower_than(LEAST) > 0, self.lower_than(SMALL), self.counts())

    def lower_than(self, count: float) -> Floats:
        """Return how many groups of each segment expect fewer positives, or negatives."""
        least = np.minimum(self.expected, self.rows - self.expected)
        return segment_sum((least < count).astype(np.float64), self.starts)

    def drawn(self, where: Bools, drawing: Drawing) -> Drawn:
        """Give the statistic of some segments with the positives of whole groups drawn."""
        keep = np.repeat(where, self.counts())
        some = {name: getattr(self, name)[keep] for name in ("first", "rows", "expected", "variance", "fourth")}
        law = cell_law(some["rows"], some["expected"], some["variance"], some["variance"])
        starts, many = starts_of(self.counts()[where]), len(some["rows"])
        for lot in lots(many, drawing.n_resamples):
            each = {name: np.tile(values, lot) for name, values in some.items()}
            observed = positives(law, some["rows"], lot, drawing.rng).ravel()
            tiled = (starts + many * np.arange(lot)[:, None]).ravel()
            yield slice(None), Groups(starts=tiled, observed=observed, **each).statistic().reshape(lot, len(starts))

    def _scale(self) -> Floats:
        return self.expected * np.maximum(self.rows - self.expected, 0.0) / self.rows


def hosmer_lemeshow(tally: Tally, grouping: Grouping, *, df: Df, asked: int | None, drawing: Drawing) -> Found:
    """Test that the positives of groups of like scores are what the scores expect.

    Parameters
    ----------
    tally : Tally
        Distinct scores; rows count once, or as often as their weight says.
    grouping : callable
        From a tally to the group of each cell; see `quantile_groups`.
    df : {"external", "internal"}
        As many degrees of freedom as groups, for scores of a model fitted elsewhere; or two fewer, for the very rows of
        a logistic regression.
    asked : int or None
        The number of groups asked for.
    drawing : Drawing
        How labels are drawn.

    References
    ----------
    Hosmer, D. W. and Lemeshow, S. (1980). Goodness of fit tests for the multiple logistic regression model.
    Communications in Statistics 9, 1043-1069. https://doi.org/10.1080/03610928008827941
    """
    groups = Groups.of(tally, grouping(tally))
    seen, counts = groups.statistic(), groups.counts()
    found = of_groups(seen, counts, groups.small(), df=df, asked=asked).of_many(tally.total(tally.rows))
    if df == "internal":
        return found

    def redraw(where: Bools) -> tuple[Floats, Floats]:
        def statistic(drawn: Tally) -> Floats:
            return Groups.of(drawn, grouping(drawn)).statistic()

        return resampled(tally.only(where), statistic, seen[where], side="greater", drawing=drawing)

    def redraw_groups(where: Bools) -> tuple[Floats, Floats]:
        def draws(some: Bools, how: Drawing) -> Drawn:
            here = where.copy()
            here[where] = some
            return groups.drawn(here, how)

        return staged(seen[where], draws, side="greater", drawing=drawing)

    floor, wide, tiny = drawing.least("greater"), groups.doubtful(), groups.lower_than(SMALL) > 0
    found = found.settled(wide, redraw, floor=floor).settled(~wide & tiny, redraw, floor=floor, below=FAR)
    some = (groups.lower_than(ENOUGH) > 0) & ~wide & ~tiny  # counts of which only the far tail is doubtful
    return found.settled(some, redraw_groups, floor=floor, below=FAR, above=drawing.beyond_doubt)


def rough_law(found: Found) -> str | None:
    """Say in how many segments a p-value is that of a law for more rows than there are; None where it is in none.

    Examples
    --------
    >>> one, two = np.array([3.0]), np.array([2])
    >>> rough_law(of_groups(one, two, np.array([True]), df="external", asked=2))
    'hosmer_lemeshow: small expected counts in 1 of 1 tests, whose chi-square law is rough'
    """
    small = found.rough & (found.law == "chi2")
    if not small.any():
        return None
    many = int((~np.isnan(found.pvalue)).sum())
    return f"hosmer_lemeshow: small expected counts in {small.sum():,} of {many:,} tests, whose chi-square law is rough"


def of_groups(seen: Floats, counts: Ints, small: Bools, *, df: Df, asked: int | None, several: int = 1) -> Found:
    """Return what the chi-square law says of statistics over groups, with notes where it cannot be trusted.

    Parameters
    ----------
    seen : ndarray
        The statistic of each segment.
    counts : ndarray of int64
        The number of its groups.
    small : ndarray of bool
        Whether expected counts are small.
    df : {"external", "internal"}
        As many degrees of freedom as groups, or two fewer, each times `several`.
    asked : int or None
        The number of groups asked for.
    several : int, default 1
        Classes less one.
    """
    freedom = ((counts if df == "external" else counts - 2) * several).astype(np.float64)
    pvalue = np.where(freedom >= 1, special.gammaincc(np.maximum(freedom, 1.0) / 2.0, seen / 2.0), np.nan)
    found = Found.of_law(seen, pvalue, "chi2", df=freedom, groups=counts).noted(freedom < 1, ONE_GROUP)
    rough = np.asarray(small & (freedom >= 1))
    found = replace(found, rough=rough).noted(rough, SMALL_COUNTS)
    for fewer in np.unique(counts[counts < (asked or 0)]):
        found = found.noted(counts == fewer, f"{fewer} group{'s' if fewer > 1 else ''} instead of {asked}")
    return found


def are_small(tiny: Bools, low: Floats, cells: Ints) -> Bools:
    """Return where Cochran's rule says that expected counts are small.

    Parameters
    ----------
    tiny : ndarray of bool
        Whether one of them is below 1.
    low : ndarray
        How many are below 5.
    cells : ndarray of int64
        How many there are.

    Examples
    --------
    Of ten counts two may be below 5, and three may not.

    >>> are_small(np.array([False, False, True]), np.array([2.0, 3.0, 1.0]), np.array([10, 10, 10]))
    array([False,  True,  True])
    """
    return np.asarray(tiny | (low > _SHARE * cells))


def quantile_groups(tally: Tally, count: int) -> Ints:
    """Return the group of each cell between the unique quantiles of the rows of its segment, right-closed.

    Examples
    --------
    The median of 0.1, 0.2, 0.2, 0.9 is 0.2, so that 0.9 is in a group of its own:

    >>> rows = np.array([1.0, 2.0, 1.0])
    >>> table = Tally.of_counts(np.array([0]), np.array([0.1, 0.2, 0.9]), rows, 0.0 * rows)
    >>> quantile_groups(table, 2)
    array([0, 0, 1])
    """
    group = np.full(len(tally.score), -1, dtype=np.int64)
    last = np.full(len(tally), -np.inf)
    for edge in quantiles(tally, count):
        new = edge > last
        group += spread(new, tally.starts, len(group)) & (tally.score > spread(edge, tally.starts, len(group)))
        last = np.where(new, edge, last)
    return np.maximum(group, 0)


def edges_around(tally: Tally, count: int, cells: Ints) -> tuple[Floats, Floats]:
    """Return the unique quantiles between which some cells lie, as `quantile_groups` does.

    Examples
    --------
    >>> rows = np.array([1.0, 2.0, 1.0])
    >>> table = Tally.of_counts(np.array([0]), np.array([0.1, 0.2, 0.9]), rows, 0.0 * rows)
    >>> edges_around(table, 2, np.array([0, 2]))
    (array([0.1, 0.2]), array([0.2, 0.9]))
    """
    segment, score = tally.segment[cells], tally.score[cells]
    first = tally.score[tally.starts][segment]
    lower, upper = first.copy(), np.full(len(cells), np.nan)
    for edge in quantiles(tally, count):
        here = edge[segment]
        upper = np.where(np.isnan(upper) & (score <= here) & (here > first), here, upper)
        lower = np.where(score > here, here, lower)
    return lower, np.where(np.isnan(upper), first, upper)  # all scores are one


def quantiles(tally: Tally, count: int) -> Iterator[Floats]:
    """Give the type-7 quantiles of the rows of each segment that make groups of about as many rows, ascending.

    References
    ----------
    Hyndman, R. J. and Fan, Y. (1996). Sample quantiles in statistical packages. American Statistician 50, 361-365.
    https://doi.org/10.1080/00031305.1996.10473566

    Examples
    --------
    >>> table = Tally.of_counts(np.array([0]), np.array([0.1, 0.2, 0.9]), np.array([1.0, 2.0, 1.0]), np.zeros(3))
    >>> np.concatenate(list(quantiles(table, 2)))
    array([0.1, 0.2, 0.9])
    """
    total = tally.total(tally.weight)
    end = np.cumsum(tally.weight)  # rows are whole numbers, so that their sums are exact
    before = np.concatenate([[0.0], end])[tally.starts]
    for share in np.linspace(0.0, 1.0, count + 1):
        place = share * (total - 1.0)
        low, part = np.floor(place), place - np.floor(place)
        ends = [
            tally.score[np.searchsorted(end, before + np.minimum(row, total - 1.0), side="right")]
            for row in (low, low + 1.0)
        ]
        yield np.where(part < 0.5, ends[0] + (ends[1] - ends[0]) * part, ends[1] - (ends[1] - ends[0]) * (1.0 - part))
