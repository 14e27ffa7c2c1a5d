"""What decides the classes of rows: a uniform number each, which rows of a cluster may share.

A row is of the class whose part of its scores, laid end to end, the number falls into. Two rows of a cluster share one
with a chance rho, so that each row alone keeps the chances that its scores say; copies of a row have rho = 1, and
independent rows 0. rho is estimated from the residuals of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._kernels._binned import starts_of
from calframe._kernels._vectors import Vectors
from calframe._typing import Floats, Ints

_PARTNERS = 32  # of each row of a cluster, in a random order; all of them in clusters of up to 33 rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Luck:
    """How the classes of rows are drawn.

    Attributes
    ----------
    ends : ndarray of shape (n_rows, n_classes)
        Running sums of the scores.
    cluster : ndarray of int64 or None
        The cluster of each row, counted from 0; None where all rows are independent.
    together : ndarray or None
        With which chance a row takes the number of its cluster: the root of rho.
    """

    ends: Floats
    cluster: Ints | None = None
    together: Floats | None = None

    @classmethod
    def of(cls, vectors: Vectors) -> Self:
        """Estimate what the clusters of rows share."""
        ends = np.cumsum(vectors.scores, axis=1)
        if vectors.cluster is None:
            return cls(ends=ends)
        segment = vectors.segment
        alone = -1 - np.arange(len(segment))  # each row without a cluster is one of its own
        keys = np.column_stack([segment, np.where(vectors.cluster < 0, alone, vectors.cluster)])
        cluster: Ints = np.unique(keys, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
        share = _shared(vectors, ends, cluster)
        if not share.any():
            return cls(ends=ends)
        return cls(ends=ends, cluster=cluster, together=np.sqrt(share)[segment])

    def classes(self, rng: np.random.Generator) -> Ints:
        """Return the class of each row, drawn anew."""
        point = self._numbers(rng) * self.ends[:, -1]
        last = self.ends.shape[1] - 1
        drawn: Ints = np.minimum((self.ends <= point[:, None]).sum(axis=1), last).astype(np.int64)
        return drawn

    def _numbers(self, rng: np.random.Generator) -> Floats:
        rows = len(self.ends)
        if self.cluster is None or self.together is None:
            return rng.random(rows)
        shared = rng.random(int(self.cluster.max(initial=-1)) + 1)[self.cluster]
        return np.where(rng.random(rows) < self.together, shared, rng.random(rows))


def _shared(vectors: Vectors, ends: Floats, cluster: Ints) -> Floats:
    """Return rho of each segment, between 0 and 1.

    The mean product of the residuals of two rows, in units of the mean of their squares, over that of classes that one
    number decides.
    """
    segment, segments = vectors.segment, len(vectors)
    off = -np.asarray(vectors.scores, dtype=np.float64)
    off[np.arange(len(off)), vectors.label] += 1.0
    squares, variance = (off**2).sum(axis=1), (vectors.scores * (1.0 - vectors.scores)).sum(axis=1)
    sums = np.zeros((4, segments))
    for one, other in _partners(cluster):
        upper, lower = np.minimum(ends[one], ends[other]), np.zeros((len(one), ends.shape[1]))
        lower[:, 1:] = np.maximum(ends[one, :-1], ends[other, :-1])
        overlap = np.maximum(upper - lower, 0.0).sum(axis=1)
        parts = (
            (off[one] * off[other]).sum(axis=1),
            squares[one],
            variance[one],
            overlap - (vectors.scores[one] * vectors.scores[other]).sum(axis=1),
        )
        sums += [np.bincount(segment[one], weights=part, minlength=segments) for part in parts]
    alike, own, alone, one_luck = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        found = alike / own * (alone / one_luck)
    return np.clip(np.nan_to_num(found, nan=0.0, posinf=0.0), 0.0, 1.0)


def _partners(cluster: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Give rows and another row of the same cluster for each, until each has had all of them, or many."""
    order = np.lexsort((np.random.default_rng(0).permutation(len(cluster)), cluster))
    sizes = np.bincount(cluster)
    first, size = np.repeat(starts_of(sizes), sizes), np.repeat(sizes, sizes)
    place = np.arange(len(cluster)) - first
    for step in range(1, min(int(sizes.max(initial=1)) - 1, _PARTNERS) + 1):
        some = size > step
        yield order[some], order[(first + (place + step) % size)[some]]
