"""Local quadratic regression of the label on the score, as Cleveland and Grosse's loess does it, on distinct scores.

A neighbourhood holds a given mass of rows around a point. Where all weights of a segment are whole numbers they count
rows: every rule is the one that loess applies to the table with each row written out that often, roundings included.
Otherwise they are importances: masses are shares of the segment's weight, and no rule rounds, so that neither a
common factor nor the splitting of a row's weight over copies of it changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._kernels._binned import ranges, segment_sum, sizes_of, starts_of
from calframe._kernels._intervals import normal_quantile
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

SLACK = 1e-10  # of a segment's mass: what rounding may add to or take from a sum of shares
LEAST_RADIUS = 1e-150  # scores closer than this are one point; its square is still a number
_SPAN = 0.75  # R's defaults: the share of the rows in a neighbourhood,
_CELL = 0.2  # and the share of a neighbourhood that a cell of the tree may hold
_COUNT_SLACK = 1e-5  # loess adds it to span times rows before it rounds down
_MARGIN = 0.005  # of the range, on either side of the scores
_RELATIVE_RANGE, _LEAST_RANGE = 1e-10, 1e-30  # the range is at least this much of the largest score, plus this
_EDGE = 1.0 - 1e-10  # from here on the kernel is 0: what is left of it is the rounding of a distance
_SINGULAR = 100.0 * np.finfo(np.float64).eps  # of the largest singular value: the pseudo-inverse drops the rest
_REGULAR = 1e-3  # of a column's length, left over by those before it: far from singular, so no need to look closer
_ELEMENTS = 2**15  # of neighbourhoods worked on at a time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbours:
    """The masses of a tally's scores, and what lies around a point.

    Attributes
    ----------
    tally : Tally
        The distinct scores; at most some 10^5 segments, as in a chunk of it.
    whole : ndarray of bool, shape (n_segments,)
        Whether the weights of the segment count rows.
    total : ndarray of shape (n_segments,)
        The mass of the segment: its rows, or 1 where masses are shares.
    share : ndarray of shape (n_cells,)
        The share of its segment's weight at each score.
    end : ndarray of shape (n_cells,)
        The mass of the segment up to each score, that included.
    place : ndarray of shape (n_cells,)
        The same as a share of the segment, plus the segment's number: one ascending array for all of them.
    """

    tally: Tally
    whole: Bools
    total: Floats
    share: Floats
    end: Floats
    place: Floats

    @classmethod
    def of(cls, tally: Tally) -> Self:
        """Weigh the scores of a tally."""
        sums = tally.total(tally.weight)
        whole = tally.total((tally.weight != np.floor(tally.weight)).astype(np.float64)) == 0
        share = tally.weight / tally.spread(sums)
        end = tally.running(share)
        place = end + tally.segment
        end = masses(end, whole, sums, tally.sizes)
        return cls(tally=tally, whole=whole, total=np.where(whole, sums, 1.0), share=share, end=end, place=place)

    @property
    def stops(self) -> Ints:
        """The cell after the last of each segment."""
        return np.append(self.tally.starts[1:], len(self.share))

    def mass(self, share: float, *, slack: float = 0.0, least: float = 0.0) -> Floats:
        """Return a share of each segment, rounded down to rows where weights count them, but at least `least` rows."""
        rows = np.maximum(np.floor(self.total * share + slack), np.minimum(least, self.total))
        return np.where(self.whole, rows, share)

    def find(self, segment: Ints, mass: Floats) -> Ints:
        """Return the first score up to which a segment has that mass; the first cell after it where it has less."""
        return np.searchsorted(self.place, segment + mass / self.total[segment] - SLACK)

    def before(self, cell: Ints, segment: Ints) -> Floats:
        """Return the mass of a segment below a cell."""
        return np.where(cell > self.tally.starts[segment], self.end[cell - 1], 0.0)

    def around(self, segment: Ints, at: Floats, mass: Floats) -> tuple[Ints, Ints, Floats]:
        """Return the first and last cell that may lie within the smallest radius that holds a mass, and that radius.

        Among the intervals of scores that hold the mass, each from one score to the first that completes it, the
        farther end of the best is as near as can be. The farther end is the right one from some interval on.
        """
        score, cells = self.tally.score, np.arange(len(self.share))
        own = self.tally.segment
        reach = self.find(own, self.before(cells, own) + mass[own])
        beyond = reach >= self.stops[own]
        right = np.where(beyond, np.inf, score[np.minimum(reach, len(cells) - 1)])
        start, stop = self.tally.starts[segment], self.stops[segment]
        from_here = first_where(start, stop, lambda cell: right[cell] - at >= at - score[cell])
        here, left = np.minimum(from_here, stop - 1), np.maximum(from_here - 1, start)
        to_right = np.where(from_here < stop, right[here] - at, np.inf)
        to_left = np.where(from_here > start, at - score[left], np.inf)
        return left, np.minimum(reach[here], stop - 1), np.minimum(to_left, to_right)


def masses(end: Floats, whole: Bools, sums: Floats, sizes: Ints) -> Floats:
    """Turn running shares into running numbers of rows, rid of rounding, where weights count rows."""
    return np.where(np.repeat(whole, sizes), np.rint(end * np.repeat(sums, sizes)), end)


def first_where(low: Ints, high: Ints, test: Callable[[Ints], Bools]) -> Ints:
    """Return the first number from `low` up to `high` that passes a test that all after it pass, too; else `high`.

    Examples
    --------
    >>> first_where(np.array([0, 5]), np.array([9, 9]), lambda n: n * n >= 10)
    array([4, 5])
    """
    low, high = low.copy(), high.copy()
    while np.any(open_ := low < high):
        middle = (low + high) // 2
        passed = test(np.where(open_, middle, low - 1)) & open_
        high = np.where(passed, middle, high)
        low = np.where(open_ & ~passed, middle + 1, low)
    return low


def batches(sizes: Ints) -> Iterator[slice]:
    """Give slices of neighbourhoods that together have about as many elements as the cache holds."""
    bounds = np.append(0, np.cumsum(sizes))
    first = 0
    while first < len(sizes):
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + _ELEMENTS, side="right")) - 1)
        yield slice(first, last)
        first = last


def members(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return the cells of each neighbourhood, one after another, and where each begins.

    Examples
    --------
    >>> members(np.array([3, 0]), np.array([4, 2]))
    (array([3, 4, 0, 1, 2]), array([0, 2]))
    """
    sizes = last - first + 1
    return ranges(first, sizes), starts_of(sizes)


def tricube(far: Floats) -> Floats:
    """Return ``(1 - u^3)^3``, for u the distance as a share of the radius, and 0 beyond it."""
    far = np.minimum(far, 1.0)
    near = 1.0 - far * far * far  # products: powers take ten times as long
    return near * near * near


def _designs(near: Neighbours, cells: Ints, begins: Ints, at: Floats, radius: Floats) -> list[Floats]:
    """Return the columns 1, t, t^2 with t = (score - at) / radius, times the root of weight and tricube kernel.

    Where no score lies strictly inside there is no curve, only the rate of the nearest scores: a column of ones.
    """
    sizes = sizes_of(begins, len(cells))
    away = near.tally.score[cells] - np.repeat(at, sizes)
    away[np.abs(away) < LEAST_RADIUS] = 0.0
    away /= np.repeat(np.maximum(radius, LEAST_RADIUS), sizes)
    far = np.abs(away)
    kernel = np.where(far < _EDGE, tricube(far), 0.0)
    empty = np.repeat(segment_sum(kernel, begins) == 0, sizes)
    kernel[empty & (far <= 2.0 - _EDGE)] = 1.0
    root = np.sqrt(kernel * near.share[cells])
    away = np.where(empty, 0.0, np.clip(away, -1.0, 1.0))
    return [root, root * away, root * away * away]


def _triangle(columns: list[Floats], begins: Ints) -> Floats:
    """Return the triangular factor of each neighbourhood's columns, by Gram and Schmidt; consumes the columns."""
    sizes = sizes_of(begins, len(columns[0]))
    factor = np.zeros((len(begins), len(columns), len(columns)))
    for j in range(len(columns)):
        factor[:, j, j] = length = np.sqrt(segment_sum(columns[j] * columns[j], begins))
        columns[j] /= np.repeat(np.where(length > 0, length, 1.0), sizes)
        for k in range(j + 1, len(columns)):
            factor[:, j, k] = along = segment_sum(columns[j] * columns[k], begins)
            columns[k] -= np.repeat(along, sizes) * columns[j]
    return factor


def local_fits(near: Neighbours, segment: Ints, at: Floats) -> tuple[Floats, Floats]:
    """Return value and slope, at each point, of the quadratic fitted to its neighbourhood.

    Weighted least squares with the weights of the rows times the tricube kernel ``(1 - u^3)^3``, u the distance as a
    share of the radius; columns brought to length 1, and the pseudo-inverse where they are dependent.
    """
    first, last, radius = near.around(segment, at, near.mass(_SPAN, slack=_COUNT_SLACK, least=1.0))
    value, slope = np.empty(len(at)), np.empty(len(at))
    for part in batches(last - first + 1):
        cells, begins = members(first[part], last[part])
        columns = _designs(near, cells, begins, at[part], radius[part])
        columns.append(columns[0] * (near.tally.positive[cells] / near.tally.weight[cells]))
        factor = _triangle(columns, begins)
        inverse = _pseudo_inverse(factor[:, :3, :3])
        value[part], bend = np.einsum("vij,vj->iv", inverse[:, :2], factor[:, :3, 3])
        slope[part] = bend / np.maximum(radius[part], LEAST_RADIUS)
    return value, slope


def _pseudo_inverse(factor: Floats) -> Floats:
    """Invert triangular factors, their columns brought to length 1 first; what is singular then counts as 0."""
    length = np.sqrt((factor * factor).sum(axis=1))
    length = np.where(length > 0, length, 1.0)
    factor = factor / length[:, None, :]
    regular = np.abs(np.diagonal(factor, axis1=1, axis2=2)).min(axis=1) > _REGULAR
    inverse = np.empty_like(factor)
    inverse[regular] = np.linalg.inv(factor[regular])
    inverse[~regular] = np.linalg.pinv(factor[~regular], rcond=_SINGULAR)
    return inverse / length[:, :, None]


def _cuts(near: Neighbours) -> Ints:
    """Return the cells at whose scores the k-d tree is cut, all segments level by level.

    A cell with more rows than the leaf size is cut after the row in its middle, moved to the nearest place between
    different scores (the higher of two); where all are tied, at their score, unless it bounds the cell already.
    """
    segment = np.arange(len(near.tally))
    begin, end = np.zeros(len(segment)), near.total.copy()
    low = high = np.full(len(segment), -1)
    found: list[Ints] = []
    leaf = near.mass(_SPAN * _CELL) + SLACK * near.total
    while len(segment):
        cell, cut = _cut(near, segment, begin, end)
        grows = (end - begin > leaf[segment]) & (cell != low) & (cell != high)
        segment, begin, end, low, high, cell, cut = (v[grows] for v in (segment, begin, end, low, high, cell, cut))
        found.append(cell)
        segment = np.concatenate([segment, segment])
        begin, end = np.concatenate([begin, cut]), np.concatenate([cut, end])
        low, high = np.concatenate([low, cell]), np.concatenate([cell, high])
    return np.concatenate(found)


def _cut(near: Neighbours, segment: Ints, begin: Floats, end: Floats) -> tuple[Ints, Floats]:
    """Return the score at which each part of a segment is cut, and the mass below the cut."""
    slack = SLACK * near.total[segment]
    half = (end - begin) / 2.0
    half = np.where(near.whole[segment], np.ceil(half), half)
    middle = np.minimum(near.find(segment, begin + half), near.stops[segment] - 1)
    above, below = near.end[middle], near.before(middle, segment)
    up = np.where(above < end - slack, np.maximum(above - begin - half, 0.0), np.inf)
    down = begin + half - below
    # the search of loess goes up and down in turn, and ends where it meets the upper end
    down = np.where((below > begin + slack) & (down < end - begin - half - slack), down, np.inf)
    lower = down < up - slack
    tied = np.isinf(up) & np.isinf(down)
    return np.where(lower, middle - 1, middle), np.where(tied, begin + half, np.where(lower, below, above))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Surface:
    """The vertices of each segment, in order: one below its scores, the cuts, and one above; with the fits there.

    `place` is the cell of a vertex, and just before the first or after the last for the two outside.
    """

    place: Floats
    segment: Ints
    score: Floats
    value: Floats
    slope: Floats

    @classmethod
    def of(cls, near: Neighbours) -> Self:
        tally, stops, everyone = near.tally, near.stops, np.arange(len(near.tally))
        cuts = _cuts(near)
        lowest, highest = tally.score[tally.starts], tally.score[stops - 1]
        least = _RELATIVE_RANGE * np.maximum(np.abs(lowest), np.abs(highest)) + _LEAST_RANGE
        margin = _MARGIN * np.maximum(highest - lowest, least)
        place = np.concatenate([tally.starts - 0.25, cuts, stops - 0.75])
        order = np.argsort(place)
        segment = np.concatenate([everyone, tally.segment[cuts], everyone])[order]
        score = np.concatenate([lowest - margin, tally.score[cuts], highest + margin])[order]
        value, slope = local_fits(near, segment, score)
        return cls(place=place[order], segment=segment, score=score, value=value, slope=slope)

    def cubic(self, at: Floats, right: Ints) -> Floats:
        """Return what left value, left slope, right value and right slope weigh at points left of vertices `right`."""
        width = self.score[right] - self.score[right - 1]
        x = (at - self.score[right - 1]) / width
        rest = 1.0 - x
        early, late = rest * rest, x * x
        return np.stack((early * (1.0 + 2.0 * x), x * early * width, late * (3.0 - 2.0 * x), -late * rest * width))

    def curve(self, at: Floats, right: Ints) -> Floats:
        """Return the interpolated fit at points left of vertices `right`."""
        ends = np.stack((self.value[right - 1], self.slope[right - 1], self.value[right], self.slope[right]))
        fitted: Floats = (self.cubic(at, right) * ends).sum(axis=0)
        return fitted


def loess(tally: Tally) -> Floats:
    """Return R's default ``loess(label ~ score)`` at each score: span 0.75, degree 2, interpolated.

    Local quadratics are fitted at the vertices of a k-d tree only; between two of them the curve is the cubic with
    their values and slopes. The tree halves cells of more than ``floor(0.15 n)`` rows at the median score. Where a
    neighbourhood has too few different scores for a quadratic, the pseudo-inverse decides, as in R. Where R has no
    number, for a neighbourhood of no width or "all data on boundary" of it, the value is the rate of the nearest
    scores and the slope is 0; so a single score gets its rate.

    Parameters
    ----------
    tally : Tally
        Scores of any range; many segments at once.

    Returns
    -------
    ndarray of shape (n_cells,)
        The curve at each score. It is not kept within [0, 1].

    References
    ----------
    Cleveland, W. S., Grosse, E. (1991). Computational methods for local regression. https://doi.org/10.1007/BF01890836

    Examples
    --------
    >>> positive = np.array([0.0, 1.0, 1.0, 3.0, 2.0, 2.0, 3.0, 4.0, 3.0])
    >>> tally = Tally.of_counts(np.array([0]), np.arange(1, 10) / 10, np.full(9, 4.0), positive)
    >>> np.round(loess(tally), 2)
    array([-0.01,  0.23,  0.42,  0.58,  0.58,  0.52,  0.72,  0.81,  0.84])
    """
    surface = _Surface.of(Neighbours.of(tally))
    return surface.curve(tally.score, np.searchsorted(surface.place, np.arange(len(tally.score))))


def loess_curve(tally: Tally, at: Floats, *, level: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the loess curve of one segment at given points, with pointwise standard errors and intervals.

    The curve is linear in the labels, ``sum_i l_i(x) y_i``. A label at score s has the variance ``c(s) (1 - c(s))`` of
    an outcome with the rate c(s) of the curve, kept within [0, 1]; so ``se^2 = sum_i l_i(x)^2 c_i (1 - c_i)``, and the
    interval is normal, ``c(x) -+ z se``. (R's own standard error takes one variance for all labels instead.)

    Parameters
    ----------
    tally : Tally
        One segment.
    at : ndarray
        Where to evaluate; outside the range of the scores all is NaN, as R does not extrapolate.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    value, error, low, high : ndarray
        The curve, its standard error, and the ends of the interval, none kept within [0, 1].

    Examples
    --------
    >>> label = np.array([0.0, 2.0, 2.0, 2.0, 4.0])
    >>> tally = Tally.of_counts(np.array([0]), np.array([0.1, 0.3, 0.5, 0.7, 0.9]), np.full(5, 4.0), label)
    >>> value, error, low, high = loess_curve(tally, np.array([0.5]), level=0.95)
    >>> np.round([value, error, low, high], 3).ravel()
    array([0.5 , 0.25, 0.01, 0.99])
    """
    near = Neighbours.of(tally)
    surface = _Surface.of(near)
    rate = np.clip(surface.curve(tally.score, np.searchsorted(surface.score, tally.score)), 0.0, 1.0)
    within, across = _covariances(near, surface, rate * (1.0 - rate) * tally.squared / tally.weight**2)
    right = np.clip(np.searchsorted(surface.score, at), 1, len(surface.score) - 1)
    left = right - 1
    blend = surface.cubic(at, right)
    variance = np.zeros(len(at))
    for part, i, j in ((within[left], 0, 0), (2.0 * across[left], 0, 2), (within[right], 2, 2)):
        variance += np.einsum("in,nij,jn->n", blend[i : i + 2], part, blend[j : j + 2])
    inside = (at >= tally.score[0]) & (at <= tally.score[-1])
    value = np.where(inside, surface.curve(at, right), np.nan)
    error = np.where(inside, np.sqrt(np.maximum(variance, 0.0)), np.nan)
    reach = normal_quantile(level) * error
    return value, error, value - reach, value + reach


def _covariances(near: Neighbours, surface: _Surface, variance: Floats) -> tuple[Floats, Floats]:
    """Return the covariance of each vertex's value and slope, and theirs with those of the next vertex."""
    first, last, radius = near.around(surface.segment, surface.score, near.mass(_SPAN, slack=_COUNT_SLACK, least=1.0))
    (within, across), before = np.zeros((2, len(first), 2, 2)), np.zeros((2, len(variance)))
    for v in range(len(first)):  # vertex by vertex: there are about ten, and each reaches most of the scores
        cells, this = np.arange(first[v], last[v] + 1), slice(v, v + 1)
        columns = np.stack(_designs(near, cells, np.zeros(1, np.int64), surface.score[this], radius[this]))
        parts = np.zeros_like(before)
        if len(cells) < len(columns):  # fewer scores than a quadratic has terms
            parts[:, cells] = np.linalg.pinv(columns.T, rcond=_SINGULAR)[:2] * columns[0]
        else:
            basis, factor = np.linalg.qr(columns.T)
            parts[:, cells] = _pseudo_inverse(factor[None])[0, :2] @ basis.T * columns[0]
        parts[1] /= max(radius[v], LEAST_RADIUS)
        within[v] = (parts * variance) @ parts.T
        across[max(v - 1, 0)] = (before * variance) @ parts.T
        before = parts
    return within, across
