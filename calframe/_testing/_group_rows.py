"""The groups behind the statistic of Hosmer and Lemeshow, line by line: their edges, rows and counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from calframe._kernels._binned import segment_sum
from calframe._kernels._tally import Tally
from calframe._kernels._vectors import Vectors
from calframe._testing._groups import Groups
from calframe._testing._multinomial import in_order, places
from calframe._typing import Floats, Ints

_WHOLE = ("segment", "group", "place")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupRows:
    """Groups of like scores, one line each, of several classes one a class.

    Attributes
    ----------
    segment : ndarray of int64
        The segment of each line.
    group, place : ndarray of int64
        The group, counted from 0 within its segment, and the class.
    lower, upper : ndarray
        The edges between which its scores lie.
    rows, weight : ndarray
        Its rows, and what they weigh.
    expected, observed : ndarray
        The weighted sum of scores, and the weight of the rows of that class.
    """

    segment: Ints
    group: Ints
    place: Ints
    lower: Floats
    upper: Floats
    rows: Floats
    weight: Floats
    expected: Floats
    observed: Floats

    @classmethod
    def none(cls) -> Self:
        """Return no groups."""
        empty: dict[str, Any] = {field.name: np.zeros(0) for field in fields(cls)}
        return cls(**empty | {name: np.zeros(0, dtype=np.int64) for name in _WHOLE})

    @classmethod
    def of_tally(cls, tally: Tally, group: Ints, edges: Callable[[Ints], tuple[Floats, Floats]]) -> Self:
        """Return the groups of a tally, given that of each cell, and the edges around some of the cells."""
        groups = Groups.of(tally, group)
        lower, upper = edges(groups.first)
        counts = groups.counts()
        return cls(
            segment=np.repeat(np.arange(len(tally)), counts),
            group=np.arange(len(groups.first)) - np.repeat(groups.starts, counts),
            place=np.zeros(len(groups.first), dtype=np.int64),
            lower=lower,
            upper=upper,
            rows=segment_sum(tally.rows, groups.first),
            weight=groups.rows,
            expected=groups.expected,
            observed=groups.observed,
        )

    @classmethod
    def of_vectors(
        cls, vectors: Vectors, *, count: int, bin_of: Callable[[Floats], Ints] | None, edges: Floats | None
    ) -> Self:
        """Return the groups of vectors; arguments as of `multinomial_hosmer_lemeshow`, with the edges of given bins."""
        vectors = in_order(vectors)
        parts = [
            cls._of_part(vectors.part(i, i + 1), place, found if edges is None else edges)
            for i, (_, place, found) in enumerate(places(vectors, count, bin_of))
        ]
        return cls.joined([(np.array([i]), part) for i, part in enumerate(parts)])

    @classmethod
    def _of_part(cls, part: Vectors, place: Ints, edges: Floats) -> Self:
        """Return the groups of a segment, given between which edges each row lies."""
        there, group = np.unique(place, return_inverse=True)
        many, width = len(there), part.classes
        cell, size = group[:, None] * width + np.arange(width), many * width
        expected = np.bincount(cell.ravel(), (part.weight[:, None] * part.scores).ravel(), size)
        observed = np.bincount(group * width + part.label, part.weight, size)
        return cls(
            segment=np.zeros(many * width, dtype=np.int64),
            group=np.repeat(np.arange(many), width),
            place=np.tile(np.arange(width), many),
            lower=np.repeat(edges[there], width),
            upper=np.repeat(edges[np.minimum(there + 1, len(edges) - 1)], width),
            rows=np.repeat(np.bincount(group).astype(np.float64), width),
            weight=np.repeat(np.bincount(group, part.weight), width),
            expected=expected.astype(np.float64),
            observed=observed.astype(np.float64),
        )

    @classmethod
    def joined(cls, parts: Sequence[tuple[Ints, Self]]) -> Self:
        """Return the groups of several parts of a table, by segment; each comes with the numbers of its segments.

        Examples
        --------
        >>> tally = Tally.of_counts(np.array([0]), np.array([0.2, 0.9]), np.array([3.0, 1.0]), np.array([1.0, 1.0]))
        >>> part = GroupRows.of_tally(tally, np.array([0, 1]), lambda cells: (np.zeros(2), np.ones(2)))
        >>> both = GroupRows.joined([(np.array([4]), part), (np.array([2]), part)])
        >>> both.segment, both.group, both.rows
        (array([2, 2, 4, 4]), array([0, 1, 0, 1]), array([3., 1., 3., 1.]))
        """
        parts = [(np.zeros(0, dtype=np.int64), cls.none()), *parts]
        whole = {field.name: np.concatenate([getattr(part, field.name) for _, part in parts]) for field in fields(cls)}
        whole["segment"] = np.concatenate([segments[part.segment] for segments, part in parts])
        order = np.argsort(whole["segment"], kind="stable")
        return cls(**{name: values[order] for name, values in whole.items()})
