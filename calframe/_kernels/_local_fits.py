"""Local quadratics: weighted least squares over neighbourhoods, however close together the scores in them lie.

Scores that nearly coincide make the columns 1, t, t^2 nearly dependent. What rounding does to them then grows by as
much as 10^13, and differently for weights that differ in the last digit. Such neighbourhoods are fitted in Newton's
form, ``1, t - a, (t - a)(t - b)`` with scores a and b of their own: differences of scores lose nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calframe._kernels._binned import (
    chunk_bounds,
    power_of_two,
    ranges,
    segment_max,
    segment_sum,
    sizes_of,
    spread,
    starts_of,
)
from calframe._kernels._neighbours import Neighbours
from calframe._typing import Floats, Ints

LEAST_RADIUS = 1e-100  # scores closer than this are one point; slopes between others, and their squares, are numbers
_SPAN = 0.75  # R's default: the share of the rows in a neighbourhood
_COUNT_SLACK = 1e-5  # loess adds it to span times rows before it rounds down
_EDGE = 1.0 - 1e-10  # from here on the kernel is 0: what is left of it is the rounding of a distance
_SINGULAR = 100.0 * np.finfo(np.float64).eps  # of the largest singular value: the pseudo-inverse drops the rest
_REGULAR = 1e-3  # of a column's length, left over by those before it: far from singular, so no need to look closer
_ELEMENTS = 2**15  # of neighbourhoods worked on at a time


def quadratic_neighbourhoods(near: Neighbours, segment: Ints, at: Floats) -> tuple[Ints, Ints, Floats]:
    """Return the first and last cell that may lie within loess's neighbourhood of each point, and its radius."""
    return near.around(segment, at, near.mass(_SPAN, slack=_COUNT_SLACK, least=1.0))


def members(first: Ints, last: Ints) -> Iterator[tuple[slice, Ints, Ints]]:
    """Give neighbourhoods in batches for the cache: which, their cells one after another, and where each begins.

    Examples
    --------
    >>> list(members(np.array([3, 0]), np.array([4, 2])))
    [(slice(0, 2, None), array([3, 4, 0, 1, 2]), array([0, 2]))]
    """
    sizes = last - first + 1
    for i, j in chunk_bounds(starts_of(sizes), int(sizes.sum()), _ELEMENTS):
        yield slice(i, j), ranges(first[i:j], sizes[i:j]), starts_of(sizes[i:j])


def tricube(far: Floats) -> Floats:
    """Return ``(1 - u^3)^3``, for u the distance as a share of the radius, and 0 beyond it."""
    far = np.minimum(far, 1.0)
    near = 1.0 - far * far * far  # products: powers take ten times as long
    return near * near * near


def local_design(
    near: Neighbours, cells: Ints, begins: Ints, at: Floats, radius: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the root of weight and tricube kernel of each cell, how far it is away, and the unit of that.

    The unit is a power of two just above the farthest cell that counts, so that powers of distances neither overflow
    nor vanish. Where no score lies strictly inside there is no curve, only the rate of the nearest scores: all are at
    the point itself.
    """
    away = near.tally.score[cells] - spread(at, begins, len(cells))
    away[np.abs(away) < LEAST_RADIUS] = 0.0
    far = np.abs(away) / spread(np.maximum(radius, LEAST_RADIUS), begins, len(cells))
    kernel = np.where(far < _EDGE, tricube(far), 0.0)
    empty = spread(segment_sum(kernel, begins) == 0, begins, len(cells))
    kernel[empty & (far <= 2.0 - _EDGE)] = 1.0
    away[empty | (kernel == 0.0)] = 0.0
    unit = power_of_two(segment_max(np.abs(away), begins))
    return np.sqrt(kernel * near.share[cells]), away / spread(unit, begins, len(cells)), unit


def local_fits(near: Neighbours, segment: Ints, at: Floats) -> tuple[Floats, Floats]:
    """Return value and slope, at each point, of the quadratic fitted to its neighbourhood.

    Weighted least squares with the weights of the rows times the tricube kernel ``(1 - u^3)^3``, u the distance as a
    share of the radius; columns brought to length 1, and the pseudo-inverse where they are dependent.
    """
    first, last, radius = quadratic_neighbourhoods(near, segment, at)
    value, slope = np.empty(len(at)), np.empty(len(at))
    rate = near.tally.positive / near.tally.weight
    for part, cells, begins in members(first, last):
        root, away, unit = local_design(near, cells, begins, at[part], radius[part])
        value[part], bend = _fits(root, away, begins, root * rate[cells])
        slope[part] = bend / unit
    return value, slope


def _fits(root: Floats, away: Floats, begins: Ints, label: Floats) -> tuple[Floats, Floats]:
    """Return value and slope at 0 of each neighbourhood's quadratic in `away`; `label` is times the root, too."""
    factor = _triangle([root, root * away, root * away * away, label], begins)
    scaled, length = _equilibrated(factor[:, :3, :3])
    close = np.abs(np.diagonal(scaled, axis1=1, axis2=2)).min(axis=1) <= _REGULAR
    effect = np.empty((len(begins), 2, 3))
    effect[~close] = np.linalg.inv(scaled[~close])[:, :2] / length[~close, :2, None]
    if close.any():
        taken = spread(close, begins, len(root))
        starts = starts_of(sizes_of(begins, len(taken))[close])
        columns, a, b = newton_columns(root[taken], away[taken], starts)
        factor[close] = _triangle([*columns, label[taken]], starts)
        effect[close] = newton_effects(factor[close, :3, :3], a, b)
    value, slope = np.einsum("vij,vj->iv", effect, factor[:, :3, 3])
    return value, slope


def _triangle(columns: list[Floats], begins: Ints) -> Floats:
    """Return the triangular factor of each neighbourhood's columns, by Gram and Schmidt."""
    factor = np.zeros((len(begins), len(columns), len(columns)))
    rest, rows = list(columns), len(columns[0])
    for j in range(len(columns)):
        factor[:, j, j] = length = np.sqrt(segment_sum(rest[j] * rest[j], begins))
        unit = rest[j] / spread(np.where(length > 0, length, 1.0), begins, rows)
        for k in range(j + 1, len(columns)):
            factor[:, j, k] = along = segment_sum(unit * rest[k], begins)
            rest[k] = rest[k] - spread(along, begins, rows) * unit
    return factor


def _equilibrated(factor: Floats) -> tuple[Floats, Floats]:
    """Return factors with columns of length 1, and the lengths they had."""
    length = np.sqrt((factor * factor).sum(axis=1))
    length = np.where(length > 0, length, 1.0)
    return factor / length[:, None, :], length


def newton_columns(root: Floats, away: Floats, begins: Ints) -> tuple[list[Floats], Floats, Floats]:
    """Return root times 1, t - a and (t - a)(t - b), and a and b, of each neighbourhood.

    They are the scores where the column before is largest, as in elimination with pivots: each column then adds
    something of its own, however close the scores.
    """
    a = away[_largest(root, begins)]
    line = root * (away - spread(a, begins, len(away)))
    b = away[_largest(np.abs(line), begins)]
    return [root, line, line * (away - spread(b, begins, len(away)))], a, b


def _largest(values: Floats, begins: Ints) -> Ints:
    """Return the first place of the largest value of each neighbourhood."""
    places = np.flatnonzero(values == spread(segment_max(values, begins), begins, len(values)))
    return places[np.searchsorted(places, begins)]


def newton_effects(factor: Floats, a: Floats, b: Floats) -> Floats:
    """Return what value and slope at 0 take from the orthonormal basis that Newton's columns have in a factor.

    As in R it is the columns 1, t, t^2 that decide what is singular; their pseudo-inverse is taken then.
    """
    none, one = np.zeros_like(a), np.ones_like(a)
    powers = np.stack([one, a, a * a, none, one, a + b, none, none, one], axis=-1).reshape(-1, 3, 3)
    scaled, length = _equilibrated(factor @ powers)
    sizes = np.linalg.svd(scaled, compute_uv=False)
    singular = sizes[:, 2] <= _SINGULAR * sizes[:, 0]
    effect = np.empty((len(a), 2, 3))
    effect[singular] = np.linalg.pinv(scaled[singular], rcond=_SINGULAR)[:, :2] / length[singular, :2, None]
    at_0 = np.stack([one, -a, a * b, none, one, -(a + b)], axis=-1).reshape(-1, 2, 3)
    scaled, length = _equilibrated(factor[~singular])
    effect[~singular] = (at_0[~singular] / length[:, None, :]) @ np.linalg.inv(scaled)
    return effect
