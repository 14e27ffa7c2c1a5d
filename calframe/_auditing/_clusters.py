"""Rows that are not independent: how much wider the gap of a segment scatters where clusters share their luck.

The variance of a gap is the sum of squares of the totals of clusters (Liang and Zeger, 1986); what it is more than that
of independent rows, the design effect, divides the effective rows (Korn and Graubard, 1998). With few clusters the
variance itself is uncertain, which the quantile of Student's t in the place of the normal one allows for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import narwhals.stable.v2 as nw
import numpy as np

from calframe._auditing._crossings import Crossings
from calframe._auditing._finest import Finest
from calframe._auditing._gaps import Sums
from calframe._kernels import _special as special
from calframe._registry import Row
from calframe._typing import Bools, Floats, Ints

_TINY = 1e-300

CLUSTER_TERMS = ("w2_square", "w2_residual")


def squared_residual(row: Row) -> nw.Expr:
    """Return the term ``w^2 (y - s)``, of which the package's own terms have no sum."""
    return row.squared(row.label - row.score)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Form:
    """Quadratic forms in ``(1, g)``, one a segment: what residuals ``y - s + g`` add up to, squared.

    Attributes
    ----------
    square, mixed, weight : ndarray
        Coefficients of 1, of 2 g and of g^2.
    """

    square: Floats
    mixed: Floats
    weight: Floats

    def at(self, gap: Floats) -> Floats:
        """Return the form at a gap."""
        found: Floats = self.square + 2.0 * self.mixed * gap + self.weight * gap**2
        return found

    def plus(self, form: Form) -> Self:
        """Return the sum of two forms."""
        return type(self)(
            square=self.square + form.square, mixed=self.mixed + form.mixed, weight=self.weight + form.weight
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clusters:
    """What the clusters of segments add up to.

    Attributes
    ----------
    count : ndarray
        Clusters of each segment; a row without one counts as one.
    rows : Form
        Squares of single rows.
    own : Form
        Squares of the totals of clusters within each segment.
    """

    count: Floats
    rows: Form
    own: Form

    @classmethod
    def of(cls, finest: Finest, crossings: Crossings) -> Clusters:
        """Add up the clusters of every segment."""
        parts = [_family(finest, segment) for segment in crossings.segment]
        return cls(
            count=np.concatenate([part.count for part in parts]),
            rows=_joined([part.rows for part in parts]),
            own=_joined([part.own for part in parts]),
        )

    @classmethod
    def whole(cls, finest: Finest, kept: Bools) -> Clusters:
        """Add up the clusters of some crossings as one segment."""
        return _family(finest, np.where(kept, 0, -1))

    def effect(self, gap: Floats, tail: float) -> Floats:
        """Return by what the effective rows are divided: the design effect, and what few clusters leave uncertain."""
        g = np.nan_to_num(gap)
        effect = np.maximum(self.own.at(g) / np.maximum(self.rows.at(g), _TINY), 1.0)
        return effect * few_clusters(self.count, tail)


def clustered(sums: Sums, clusters: Clusters, tail: float) -> Sums:
    """Return sums of rows that are not independent."""
    return sums.clustered(clusters.count, clusters.effect(sums.gap, tail))


def few_clusters(count: Floats, tail: float) -> Floats:
    """Return the squared ratio of the quantiles of Student's t and of the normal law; infinite for one cluster.

    Examples
    --------
    >>> few_clusters(np.array([1.0, 11.0, 1e6]), 0.025).round(3)
    array([  inf, 1.292, 1.   ])
    """
    many = np.maximum(count - 1.0, 1.0)
    ratio = special.stdtrit(many, 1.0 - tail) / special.ndtri(1.0 - tail)
    return np.where(count > 1.0, ratio**2, np.inf)


def _joined(forms: list[Form]) -> Form:
    return Form(
        square=np.concatenate([form.square for form in forms]),
        mixed=np.concatenate([form.mixed for form in forms]),
        weight=np.concatenate([form.weight for form in forms]),
    )


def _family(finest: Finest, segment: Ints) -> Clusters:
    """Add up the clusters of segments that share no row."""
    first = int(segment[segment >= 0].min())
    place, count, total = segment - first, int(segment.max()) - first + 1, finest.cells.total
    known, alone = ((segment >= 0) & (finest.cluster >= 0)), ((segment >= 0) & (finest.cluster < 0))
    squares = (total("w2_square"), total("w2_residual"), total("w2"))
    lone = _form(place[alone], [values[alone] for values in squares], count)
    pairs = place[known] * (int(finest.cluster.max()) + 1) + finest.cluster[known]
    pairs, of_cell = np.unique(pairs, return_inverse=True)
    of_pair = pairs // (int(finest.cluster.max()) + 1)
    residual, weight = (total("wy") - total("wp"))[known], total("w")[known]
    residual, weight = (_added(of_cell, values, len(pairs)) for values in (residual, weight))
    clustered = _form(of_pair, [residual**2, residual * weight, weight**2], count)
    single = _form(place[known], [values[known] for values in squares], count)
    number = np.bincount(of_pair, minlength=count) + _added(place[alone], finest.n[alone], count)
    return Clusters(count=number, rows=single.plus(lone), own=clustered.plus(lone))


def _form(place: Ints, values: Sequence[Floats], count: int) -> Form:
    square, mixed, weight = (_added(place, one, count) for one in values)
    return Form(square=square, mixed=mixed, weight=weight)


def _added(place: Ints, values: Floats | Ints, count: int) -> Floats:
    return np.bincount(place, weights=values, minlength=count).astype(np.float64, copy=False)
