"""Sums of many rows by cell, for many draws of the rows at once; many rows in few cells are gathered first.

What rows with scores in the same two cells add up to, over exchanges or resamples of them, has the normal law in the
limit of many. So a group of a hundred rows or more is replaced by a few columns that have the same mean and the same
covariance of all sums together, each drawn as one normal number: time and memory then grow with the cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np

from calframe._testing._paired import Units, chunks, exchanged, resampled
from calframe._typing import Bools, Floats, Ints

Pair: TypeAlias = tuple[Floats, Floats]
FEWEST = 100  # rows of a group
_MANY = 20_000  # fewer rows are drawn one by one
_FLAT = 1e-14  # of the largest variance: less is rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """What is drawn, and what each draw adds to the cells of the first and of the second model.

    Attributes
    ----------
    units : Units
        The rows.
    matrices : mapping of int to (sparse, sparse)
        For each term the sums by cell of each column: the rows that are drawn one by one, then one column that is
        always there, and normal ones.
    totals : mapping of int to (ndarray, ndarray)
        The sums over all rows, in one line.
    normal : int or None
        How many columns are normal; None where all rows are drawn one by one.
    """

    units: Units
    matrices: Mapping[int, tuple[Any, Any]]
    totals: Mapping[int, Pair]
    normal: int | None = None

    @classmethod
    def of_rows(cls, units: Units, cell: tuple[Ints, Ints], cells: int, terms: Mapping[int, Pair]) -> Self:
        """Take each row as a column."""
        rows = np.arange(len(units.segment))
        matrices = {
            name: _pair(_sparse(cell[side], rows, values[side], (cells, len(rows))) for side in (0, 1))
            for name, values in terms.items()
        }
        return cls(units=units, matrices=matrices, totals=_totals(cell, cells, terms))

    def exchanged(self, resamples: int, rng: np.random.Generator) -> Iterator[dict[int, Pair]]:
        """Give the sums of both models, one line a draw, where units change places at random."""
        moving = {name: second - first for name, (first, second) in self.matrices.items()}
        for share in self._shares(resamples, rng):
            found, turned = {}, np.ascontiguousarray(share.T)
            for name, matrix in moving.items():
                moved = (matrix @ turned).T
                found[name] = (self.totals[name][0] + moved, self.totals[name][1] - moved)
            yield found

    def resampled(self, resamples: int, rng: np.random.Generator) -> Iterator[dict[int, Pair]]:
        """Give the sums of both models, one line a draw, where units are drawn with replacement."""
        for times in self._times(resamples, rng):
            turned = np.ascontiguousarray(times.T)
            yield {name: _pair((matrix @ turned).T for matrix in each) for name, each in self.matrices.items()}

    def _shares(self, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
        if self.normal is None:
            for share in exchanged(self.units, resamples, rng, wide=self._wide):
                yield self._by_row(share)
            return
        for count in chunks(resamples, self._wide):
            single = rng.integers(0, 2, (count, self._single), dtype=np.int8)
            yield np.hstack([single, np.full((count, 1), 0.5), rng.normal(0.0, 0.5, (count, self.normal))])

    def _times(self, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
        if self.normal is None:
            for times in resampled(self.units, resamples, rng, wide=self._wide):
                yield self._by_row(times)
            return
        for count in chunks(resamples, self._wide):
            single = rng.poisson(1.0, (count, self._single))
            yield np.hstack([single, np.ones((count, 1)), rng.normal(0.0, 1.0, (count, self.normal))])

    def _by_row(self, drawn: Floats) -> Floats:
        """Return for each row what is drawn of its unit; where rows are units these are the same."""
        return drawn if len(self.units.copies) == len(self.units.of_row) else drawn[:, self.units.of_row]

    @property
    def _single(self) -> int:
        """The number of columns that are rows."""
        return self._shape[1] - 1 - (self.normal or 0)

    @property
    def _wide(self) -> int:
        return max(2 * self._shape[1], self._shape[0])

    @property
    def _shape(self) -> tuple[int, int]:
        first, _ = next(iter(self.matrices.values()))
        cells, columns = first.shape
        return int(cells), int(columns)


def gathered(units: Units, cell: tuple[Ints, Ints], cells: int, terms: Mapping[int, Pair]) -> Columns:
    """Return what is drawn: rows, and in the place of many rows with scores in the same two cells normal numbers.

    Rows in clusters, rows that stand for several, and few rows are drawn one by one.
    """
    rows = len(units.segment)
    independent = len(units.copies) == rows and bool((units.copies == 1.0).all())
    if rows < _MANY or not independent:
        return Columns.of_rows(units, cell, cells, terms)
    _, group, sizes = np.unique(cell[0] * cells + cell[1], return_inverse=True, return_counts=True)
    many = sizes[group] >= FEWEST
    if not many.any():
        return Columns.of_rows(units, cell, cells, terms)
    return _with_normal(units, cell, cells, terms, group, many)


def _with_normal(
    units: Units, cell: tuple[Ints, Ints], cells: int, terms: Mapping[int, Pair], group: Ints, many: Bools
) -> Columns:
    places, first_row, of_group = np.unique(group[many], return_index=True, return_inverse=True)
    here = tuple(side[many][first_row] for side in cell)  # the two cells of each group
    values = np.stack([side[many] for pair in terms.values() for side in pair])
    parts, owner = _directions(values, of_group, len(places))
    single = np.flatnonzero(~many)
    normal = len(owner)
    shape = (cells, len(single) + 1 + normal)
    matrices = {}
    for i, (name, pair) in enumerate(terms.items()):
        sides = []
        for side in (0, 1):
            total = np.bincount(cell[side][many], pair[side][many], cells)
            at = np.concatenate([cell[side][single], np.arange(cells), here[side][owner]])
            column = np.concatenate(
                [np.arange(len(single)), np.full(cells, len(single)), len(single) + 1 + np.arange(normal)]
            )
            entries = np.concatenate([pair[side][single], total, parts[:, 2 * i + side]])
            sides.append(_sparse(at, column, entries, shape))
        matrices[name] = (sides[0], sides[1])
    return Columns(units=units, matrices=matrices, totals=_totals(cell, cells, terms), normal=normal)


def _directions(values: Floats, group: Ints, groups: int) -> tuple[Floats, Ints]:
    """Return vectors whose squares add up to those of the rows of each group, and the group of each vector."""
    count = len(values)
    squares = np.empty((groups, count, count))
    for i in range(count):
        for j in range(i + 1):
            squares[:, i, j] = squares[:, j, i] = np.bincount(group, values[i] * values[j], groups)
    size, direction = np.linalg.eigh(squares)
    large = size > _FLAT * np.maximum(size[:, -1:], np.finfo(float).tiny)
    owner, which = np.nonzero(large)
    parts: Floats = direction[owner, :, which] * np.sqrt(size[owner, which])[:, None]
    return parts, owner


def _totals(cell: tuple[Ints, Ints], cells: int, terms: Mapping[int, Pair]) -> dict[int, Pair]:
    return {
        name: _pair(np.bincount(cell[side], values[side], cells)[None, :].astype(np.float64) for side in (0, 1))
        for name, values in terms.items()
    }


def _pair(values: Any) -> tuple[Any, Any]:
    first, second = values
    return first, second


def _sparse(cells: Ints, columns: Ints, values: Floats, shape: tuple[int, int]) -> Any:
    from scipy import sparse  # noqa: PLC0415  importing the package must not load SciPy

    return sparse.csr_array((values, (cells, columns)), shape=shape)
