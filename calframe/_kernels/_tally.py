"""The tally: the distinct scores of each segment with their rows and positives, which is all that order and fits need.

It is the statistician's grouped binomial data. Cells of a segment stand in ascending score, segment after segment, in
one flat array, so that a kernel does all segments in one vectorised pass, and the order of rows never matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from calframe._kernels._binned import (
    T,
    chunk_bounds,
    last_cells,
    power_of_two,
    running_sum,
    segment_sum,
    sizes_of,
    spread,
    starts_of,
)
from calframe._typing import Bools, Floats, Ints

CHUNK = 2**17  # cells worked on at a time: their temporaries stay in the cache


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """Distinct scores per segment; every segment has at least one cell, and every cell has weight.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_segments,)
        The first cell of each segment.
    score : ndarray of float64, shape (n_cells,)
        Distinct scores, ascending within a segment.
    rows : ndarray of float64
        Number of rows at that score.
    weight, positive : ndarray of float64
        Their weight, and the weight of the positives among them; without weights the numbers of rows.
    squared, squared_positive : ndarray of float64
        The sums of squared weights, of all and of the positives, as variances need them. Where weights are counts of
        rows (and without weights) these are `weight` and `positive`.
    """

    starts: Ints
    score: Floats
    rows: Floats
    weight: Floats
    positive: Floats
    squared: Floats
    squared_positive: Floats

    @classmethod
    def of_counts(cls, starts: Ints, score: Floats, rows: Floats, positive: Floats) -> Self:
        """Make the tally of rows without weights."""
        return cls(
            starts=starts,
            score=score,
            rows=rows,
            weight=rows,
            positive=positive,
            squared=rows,
            squared_positive=positive,
        )

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.starts)

    @property
    def sizes(self) -> Ints:
        """The number of cells of each segment."""
        return sizes_of(self.starts, len(self.score))

    @property
    def segment(self) -> Ints:
        """The segment of each cell, counted from 0."""
        return self.spread(np.arange(len(self.starts)))

    @property
    def negative(self) -> Floats:
        """The weight of the negatives in each cell."""
        return np.maximum(self.weight - self.positive, 0.0)

    @property
    def squared_negative(self) -> Floats:
        """The sum of squared weights of the negatives in each cell."""
        return np.maximum(self.squared - self.squared_positive, 0.0)

    def total(self, values: Floats) -> Floats:
        """Return the sum of cell values over each segment, pairwise."""
        return segment_sum(values, self.starts)

    def spread(self, values: NDArray[T]) -> NDArray[T]:
        """Return the value of a cell's segment for each cell."""
        return spread(values, self.starts, len(self.score))

    def running(self, values: Floats) -> Floats:
        """Return the running sum of cell values within each segment, the cell itself included.

        It does not depend on other segments, however large their values are.
        """
        unit = self.spread(power_of_two(self.total(np.abs(values))))
        return running_sum(values / unit, self.starts) * unit

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the segments of several tallies, one after the other."""
        if len(parts) == 1:
            return parts[0]
        before = np.cumsum([0, *(len(part.score) for part in parts[:-1])])
        starts = np.concatenate([part.starts + shift for part, shift in zip(parts, before, strict=True)])
        score = np.concatenate([part.score for part in parts])
        return cls(starts=starts, score=score, **_sums(parts, np.concatenate))

    def sums(self, work: Callable[[Floats], Floats]) -> dict[str, Floats]:
        """Return something made of the rows, weights and positives of the cells, once where these are the same."""
        return _sums([self], lambda one: work(one[0]))

    def part(self, first: int, last: int) -> Self:
        """Return the tally of the segments from `first` up to, not including, `last`."""
        begin = int(self.starts[first])
        end = int(self.starts[last]) if last < len(self.starts) else len(self.score)
        cut = slice(begin, end)
        return type(self)(
            starts=self.starts[first:last] - begin,
            score=self.score[cut],
            **self.sums(lambda values: values[cut]),
        )

    def only(self, keep: Bools) -> Self:
        """Return the tally of some of the segments."""
        if keep.all():
            return self
        cells, sizes = np.flatnonzero(self.spread(keep)), self.sizes[keep]
        return type(self)(starts=starts_of(sizes), score=self.score[cells], **self.sums(lambda values: values[cells]))

    def chunks(self, cells: int = CHUNK) -> Iterator[tuple[int, Self]]:
        """Give whole segments of together about `cells` cells, each with the number of its first segment."""
        for first, last in chunk_bounds(self.starts, len(self.score), cells):
            yield first, self.part(first, last)

    def merged(self, first: Ints) -> Self:
        """Return the tally of runs of neighbouring cells, each at its mean score, from where the runs begin.

        Examples
        --------
        >>> tally = Tally.of_counts(np.array([0]), np.array([0.2, 0.4, 0.9]), np.ones(3), np.ones(3))
        >>> runs = tally.merged(np.array([0, 2]))
        >>> runs.score.round(12), runs.weight
        (array([0.3, 0.9]), array([2., 1.]))
        """
        sums = self.sums(lambda values: segment_sum(values, first))
        mean = segment_sum(self.weight * self.score, first) / sums["weight"]
        last = last_cells(first, len(self.score))
        return type(self)(
            starts=np.searchsorted(first, self.starts),
            score=np.clip(mean, self.score[first], self.score[last]),  # whatever rounding made of it
            **sums,
        )


def _sums(parts: Sequence[Tally], work: Callable[[list[Floats]], Floats]) -> dict[str, Floats]:
    """Return something made of each of the sums of several tallies, once where two of them are the same arrays."""
    made: dict[tuple[int, ...], Floats] = {}
    out = {}
    for name in ("rows", "weight", "positive", "squared", "squared_positive"):
        arrays = [getattr(part, name) for part in parts]
        same = tuple(map(id, arrays))
        if same not in made:
            made[same] = work(arrays)
        out[name] = made[same]
    return out
