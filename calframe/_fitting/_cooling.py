"""The inverse temperature of least loss, of all segments in one Newton iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._fitting._fitted import Outcome
from calframe._fitting._log_scores import BLOCK, shifted_scores
from calframe._kernels._binned import power_of_two, segment_max, segment_sum, sizes_of, spread, starts_of
from calframe._kernels._vectors import Vectors
from calframe._typing import Bools, Floats, Ints

_ROUNDING = 1e-12  # sums are off by less, relatively
_GROWTH = 8.0  # what a step changes 1 / T by at most, as a factor
_SAME = 1e-8  # relative change after which, by quadratic convergence, 1 / T is exact to rounding
_ROUNDS = 300  # 4 to 6 are usual
_SHRINK = 0.75  # unfinished segments are moved together when no more than this share of the rows is theirs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cooling:
    """Rows whose largest log score is 0, classes first, with the mean log score of their targets."""

    starts: Ints
    z: Floats
    target: Floats
    weight: Floats

    def only(self, keep: Bools) -> Self:
        """Return some of the segments."""
        if keep.all():
            return self
        sizes = sizes_of(self.starts, len(self.weight))
        rows = np.flatnonzero(np.repeat(keep, sizes))
        return type(self)(
            starts=starts_of(sizes[keep]), z=self.z[:, rows], target=self.target[rows], weight=self.weight[rows]
        )

    def outcome(self) -> Ints:
        """Tell where there is a finite positive 1 / T: the sum of an infinite one is above, that of 0 below 0."""
        gap = self.z.mean(axis=0) - self.target
        rise, size = (segment_sum(self.weight * v, self.starts) for v in (gap, np.abs(gap)))
        out = np.where(rise < -_ROUNDING * size, Outcome.FINE, Outcome.BOUND).astype(np.int64)
        out[segment_max(-self.target, self.starts) == 0.0] = Outcome.SEPARABLE
        out[segment_max(-self.z.min(axis=0), self.starts) == 0.0] = Outcome.ONE_SCORE
        return out

    def derivatives(self, inverse: Floats) -> tuple[Floats, Floats]:
        """Return the first two derivatives of the loss along 1 / T, ``sum w (E z - target)`` and ``sum w Var z``."""
        rows = len(self.weight)
        each, gap, variance = spread(inverse, self.starts, rows), *np.empty((2, rows))
        many = max(BLOCK // len(self.z), 1)
        for begin in range(0, rows, many):
            cut = slice(begin, begin + many)
            z = self.z[:, cut]
            chance = z * each[cut]
            if each[cut].min() < 0.0:  # no fit is, but a mode on the way to a prior may be
                chance -= chance.max(axis=0)
            np.exp(chance, out=chance)
            total = chance.sum(axis=0)
            chance *= z
            mean = chance.sum(axis=0) / total
            chance *= z
            gap[cut] = mean - self.target[cut]
            variance[cut] = chance.sum(axis=0) / total - mean * mean
        return segment_sum(self.weight * gap, self.starts), segment_sum(self.weight * variance, self.starts)


def cooling_of(vectors: Vectors, smooth: Floats, *, is_logit: bool, floor: float) -> tuple[Cooling, Floats]:
    """Return the rows of all segments, and the unit, a power of two, that brings each to the range 1."""
    z, rows = shifted_scores(vectors.scores, is_logit=is_logit, floor=floor), len(vectors.label)
    unit = power_of_two(segment_max(-z.min(axis=0), vectors.starts))
    z /= spread(unit, vectors.starts, rows)
    target = (1.0 - smooth) * z[vectors.label, np.arange(rows)]
    if smooth.any():
        target += smooth * z.mean(axis=0)
    return Cooling(starts=vectors.starts, z=z, target=target, weight=vectors.weight), unit


def coolest(cooling: Cooling, start: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the 1 / T of least loss, and the derivatives one step before: Newton's iteration between brackets."""
    found = np.zeros((3, len(start)))
    left, low, high, inverse = np.arange(len(start)), np.zeros(len(start)), np.full(len(start), np.inf), start
    for _ in range(_ROUNDS):
        slope, curvature = cooling.derivatives(inverse)
        low, high = np.where(slope < 0.0, inverse, low), np.where(slope > 0.0, inverse, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            new = np.where(slope == 0.0, inverse, inverse - slope / curvature)
        new = np.clip(new, inverse / _GROWTH, inverse * _GROWTH)
        middle = np.sqrt(low * np.where(np.isinf(high), 0.0, high))
        more = np.abs(new - inverse) > _SAME * inverse
        outside = ((new <= low) | (new >= high)) & more & (middle > 0.0)
        new = np.where(outside, middle, new)
        found[0, left], found[2, left] = new, curvature
        if not more.any():
            break
        inverse = new
        if sizes_of(cooling.starts, len(cooling.weight))[more].sum() <= _SHRINK * len(cooling.weight):
            cooling, left = cooling.only(more), left[more]
            low, high, inverse = low[more], high[more], inverse[more]
    return found[0], found[1], found[2]
