"""Where the scores of two models go: the cells that metrics read, summed for many tables of their rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np

from calframe._binning import BinChoice
from calframe._comparing._pairs import Pairs
from calframe._kernels._binned import starts_of
from calframe._kernels._equal_mass import equal_mass
from calframe._kernels._tally import Tally
from calframe._registry import Cells, Options, Sample, Tallied
from calframe._testing._gathered import Columns, gathered
from calframe._testing._paired import Units
from calframe._typing import Bools, Floats, Ints

Matrices: TypeAlias = tuple[Any, Any]
_HOLLOW = 1e-9  # rows left in a cell by rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Where the scores of both models go, and what is summed there.

    Attributes
    ----------
    units : Units
        The rows, and what of them is independent.
    cells : int
        The number of cells, in segment order.
    starts : ndarray of int64
        The first cell of each segment.
    cell : (ndarray, ndarray)
        The cell of each row by the score of the first and of the second model.
    terms : mapping of str to (ndarray, ndarray)
        What each row adds to its cell, by either score.
    finish : callable
        Sums of one table or more, one line a table, and the first cells, to the sample that metrics read.
    """

    units: Units
    cells: int
    starts: Ints
    cell: tuple[Ints, Ints]
    terms: Mapping[str, tuple[Floats, Floats]]
    finish: Callable[[Mapping[str, Floats], Ints], Sample]

    @classmethod
    def of_entries(
        cls,
        pairs: Pairs,
        cell: Ints,
        starts: Ints,
        cells: int,
        terms: Mapping[str, Floats],
        finish: Callable[[Mapping[str, Floats], Ints], Sample],
    ) -> Self:
        """Lay out terms of the rows of both models, the first model's before those of the second."""
        rows = len(pairs.label)
        halves: dict[int, tuple[Floats, Floats]] = {id(each): (each[:rows], each[rows:]) for each in terms.values()}
        return cls(
            units=pairs.units,
            cells=cells,
            starts=starts,
            cell=(cell[:rows], cell[rows:]),
            terms={name: halves[id(each)] for name, each in terms.items()},
            finish=finish,
        )

    def seen(self) -> tuple[Sample, Sample]:
        """Return the samples of the first and of the second model, one table each."""
        columns = Columns.of_rows(self.units, self.cell, self.cells, self._distinct())
        return self._samples(columns.totals)

    def exchanged(self, resamples: int, rng: np.random.Generator) -> Iterator[tuple[Sample, Sample]]:
        """Give, in chunks, the samples of both models where units change places at random."""
        for sums in self._columns().exchanged(resamples, rng):
            yield self._samples(sums)

    def resampled(self, resamples: int, rng: np.random.Generator) -> Iterator[tuple[Sample, Sample]]:
        """Give, in chunks, the samples of both models where units are drawn with replacement."""
        for sums in self._columns().resampled(resamples, rng):
            yield self._samples(sums)

    def _columns(self) -> Columns:
        """Return the rows as they are, or gathered where they are many in few cells."""
        return gathered(self.units, self.cell, self.cells, self._distinct())

    def _distinct(self) -> dict[int, tuple[Floats, Floats]]:
        """Return the terms, once where two of them are the same."""
        return {id(values): values for values in self.terms.values()}

    def _samples(self, sums: Mapping[int, tuple[Floats, Floats]]) -> tuple[Sample, Sample]:
        sides = [
            self.finish({name: sums[id(values)][side] for name, values in self.terms.items()}, self.starts)
            for side in (0, 1)
        ]
        return sides[0], sides[1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Laying:
    """How rows are laid out for each kind of metric."""

    pairs: Pairs
    terms: Mapping[str, Floats]
    choice: BinChoice
    options: Options

    def sums(self) -> Layout:
        """Return one cell a segment."""
        return self._cells(np.tile(self.pairs.units.segment, 2), per_segment=1)

    def bins(self) -> Layout:
        """Return the bins of each segment, empty ones among them."""
        fixed = self.choice.fixed
        assert fixed is not None  # noqa: S101  for the type checker: bins of equal weight go another way
        narrow = self.pairs.narrow
        found = [fixed.find(score, narrow=one) for score, one in zip(self.pairs.score, narrow, strict=True)]
        segment = np.tile(self.pairs.units.segment, 2)
        return self._cells(segment * fixed.count + np.concatenate(found), per_segment=fixed.count)

    def _cells(self, cell: Ints, *, per_segment: int) -> Layout:
        def finish(sums: Mapping[str, Floats], starts: Ints) -> Cells:
            tables, cells = next(iter(sums.values())).shape
            shift = cells * np.arange(tables)[:, None]
            flat = {name: np.ascontiguousarray(values).ravel() for name, values in sums.items()}
            return Cells(starts=(starts + shift).ravel(), sums=flat, options=self.options)

        segments = self.pairs.units.segments
        starts = per_segment * np.arange(segments)
        return Layout.of_entries(self.pairs, cell, starts, per_segment * segments, self.terms, finish)

    def tally(self, scores: tuple[Floats, Floats], *, is_logit: bool = False) -> Layout:
        """Return one cell for each distinct score of either model."""
        return self._tally(scores, lambda tally: Tallied(tally=tally, is_logit=is_logit, options=self.options))

    def equal_mass(self) -> Layout:
        """Return bins of about equal weight, which each table makes of its own distinct scores."""

        def binned(tally: Tally) -> Cells:
            bins = equal_mass(tally, self.choice.quantiles)
            return Cells(starts=bins.starts, sums=bins.sums, options=self.options)

        return self._tally(self.pairs.score, binned)

    def _tally(self, scores: tuple[Floats, Floats], made: Callable[[Tally], Sample]) -> Layout:
        segment = np.tile(self.pairs.units.segment, 2)
        score = np.concatenate(scores)
        order = np.lexsort((score, segment))
        new = np.append(True, (np.diff(score[order]) != 0) | (np.diff(segment[order]) != 0))
        cell = np.empty(len(score), dtype=np.int64)
        cell[order] = np.cumsum(new) - 1
        distinct, cells_of = score[order][new], np.bincount(segment[order][new])

        def finish(sums: Mapping[str, Floats], starts: Ints) -> Sample:
            return made(_tally_of(sums, starts, distinct))

        return Layout.of_entries(self.pairs, cell, starts_of(cells_of), len(distinct), self._counts(), finish)

    def _counts(self) -> dict[str, Floats]:
        """Return the terms of a tally; without weights some are the same arrays."""
        label, weight = self.pairs.label, self.pairs.units.weight
        rows = np.ones(2 * len(label))
        positive = np.tile(label * weight, 2)
        if not self.pairs.table.weighted:
            return {"rows": rows, "weight": rows, "positive": positive, "squared": rows, "squared_positive": positive}
        squared = self.pairs.squared
        return {
            "rows": rows,
            "weight": np.tile(weight, 2),
            "positive": positive,
            "squared": np.tile(squared, 2),
            "squared_positive": np.tile(squared * label, 2),
        }


def _tally_of(sums: Mapping[str, Floats], starts: Ints, score: Floats) -> Tally:
    """Return the tally of several tables, one line of sums each, without cells that have no row."""
    whole = {id(values): np.ascontiguousarray(values) for values in sums.values()}  # some are the same
    there: Bools = whole[id(sums["rows"])] > _HOLLOW
    sizes = np.add.reduceat(there, starts, axis=1, dtype=np.int64).ravel()
    some = {key: values[there] for key, values in whole.items()}
    kept = {name: some[id(values)] for name, values in sums.items()}
    kept["positive"] = np.clip(kept["positive"], 0.0, kept["weight"])
    same = sums["squared"] is sums["weight"]
    squared = kept["positive"] if same else np.clip(kept["squared_positive"], 0.0, kept["squared"])
    kept["squared_positive"] = squared
    return Tally(starts=starts_of(sizes), score=np.broadcast_to(score, there.shape)[there], **kept)
