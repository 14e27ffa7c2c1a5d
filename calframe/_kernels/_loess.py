"""Local quadratic regression of the label on the score, as Cleveland and Grosse's loess does it, on distinct scores.

What counts as a row under weights is said in `calframe._kernels._neighbours`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._kernels._intervals import normal_quantile
from calframe._kernels._local_fits import (
    local_design,
    local_fits,
    newton_columns,
    newton_effects,
    quadratic_neighbourhoods,
)
from calframe._kernels._neighbours import SLACK, Neighbours
from calframe._kernels._tally import Tally
from calframe._typing import Floats, Ints

_LEAF = 0.75 * 0.2  # R's defaults: the share of the rows in a neighbourhood, and what a cell of the tree holds of that
_MARGIN = 0.005  # of the range, on either side of the scores
_RELATIVE_RANGE, _LEAST_RANGE = 1e-10, 1e-30  # the range is at least this much of the largest score, plus this


def _cuts(near: Neighbours) -> Ints:
    """Return the cells at whose scores the k-d tree is cut, all segments level by level.

    A cell with more rows than the leaf size is cut after the row in its middle, moved to the nearest place between
    different scores (the higher of two); where all are tied, at their score, unless it bounds the cell already.
    """
    segment = np.arange(len(near.tally))
    begin, end = np.zeros(len(segment)), near.total.copy()
    low = high = np.full(len(segment), -1)
    found: list[Ints] = []
    leaf = near.mass(_LEAF) + SLACK * near.total
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
    first, last, radius = quadratic_neighbourhoods(near, surface.segment, surface.score)
    (within, across), before = np.zeros((2, len(first), 2, 2)), np.zeros((2, len(variance)))
    begins = np.zeros(1, np.int64)
    for v in range(len(first)):  # vertex by vertex: there are about ten, and each reaches most of the scores
        cells, this = np.arange(first[v], last[v] + 1), slice(v, v + 1)
        root, away, unit = local_design(near, cells, begins, surface.score[this], radius[this])
        columns, a, b = newton_columns(root, away, begins)
        basis, factor = np.linalg.qr(np.vstack([np.stack(columns, axis=1), np.zeros((3, 3))]))  # at least three rows
        parts = np.zeros_like(before)
        parts[:, cells] = (newton_effects(factor[None], a, b)[0] @ basis[: len(cells)].T) * root
        parts[1] /= unit
        within[v] = (parts * variance) @ parts.T
        across[max(v - 1, 0)] = (before * variance) @ parts.T
        before = parts
    return within, across
