"""Whole score vectors of two models: those of a row change places together, and means over rows become sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calframe._binning import BinChoice, Bins
from calframe._comparing._pairs import Pairs
from calframe._kernels._binned import ratio, starts_of
from calframe._kernels._vectors import Vectors
from calframe._registry import Cells, Metric, Options, Scored
from calframe._testing._paired import Units, exchanged, resampled
from calframe._typing import Bools, Floats, Ints

MEANS = frozenset({"accuracy", "brier", "log_loss"})  # over rows, of several classes
_BESIDE = 4  # numbers of a row beside its scores: label, weight, squared weight, log loss


def as_sums(metric: Metric) -> Metric:
    """Return a mean over rows of whole vectors as a function of sums, any other metric as it is."""
    if metric.reads != "vectors" or metric.name not in MEANS:
        return metric

    def value(cells: Cells) -> Floats:
        return ratio(cells.sums[metric.name], cells.sums["w"])

    return replace(metric, reads="sums", terms=(metric.name,), value=value, interval=None)


def row_terms(pairs: Pairs, metrics: Sequence[Metric], options: Options) -> dict[str, Floats]:
    """Return what rows add to the sums of `as_sums`, those of the first model before those of the second."""
    layout = VectorLayout.of_pairs(pairs, BinChoice(fixed=None), options)
    sides = layout.by_row()
    weight = np.tile(pairs.units.weight, 2)
    terms = {"w": weight, "n": weight, "w2": weight}
    if pairs.table.weighted:
        terms |= {"n": np.ones(len(weight)), "w2": np.tile(pairs.squared, 2)}
    for metric in metrics:
        if metric.name in MEANS:
            terms[metric.name] = weight * np.concatenate([metric.value(side) for side in sides])
    return terms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorLayout:
    """The rows of both models with their whole vectors; as `Layout`, but a table is made of rows, not of sums.

    Attributes
    ----------
    units : Units
        The rows, and what of them is independent.
    label : ndarray of int64, shape (n_rows,)
        The class that happened.
    scores : (ndarray, ndarray), each of shape (n_classes, n_rows)
        The vectors of both models.
    surprise : (ndarray, ndarray) or None
        The log loss of each row, where it was taken from logits.
    squared : ndarray of shape (n_rows,)
        The weight of each row as variances sum it.
    sample : Scored
        A sample whose vectors are to be replaced: how bins are found, and what the user has set.
    """

    units: Units
    label: Ints
    scores: tuple[Floats, Floats]
    surprise: tuple[Floats, Floats] | None
    squared: Floats
    sample: Scored

    @classmethod
    def of_pairs(cls, pairs: Pairs, choice: BinChoice, options: Options) -> Self:
        """Lay out the rows of two models."""
        fixed, narrow = choice.fixed, pairs.narrow
        scores = pairs.vectors
        if fixed is not None and narrow[0] != narrow[1]:  # scores change places, so that one finder must serve both
            first, second = (_snapped(fixed, each) if one else each for each, one in zip(scores, narrow, strict=True))
            scores = (first, second)
        units = pairs.units
        sample = Scored(
            vectors=Vectors(
                starts=starts_of(np.bincount(units.segment, minlength=units.segments)),
                scores=scores[0].T,
                label=pairs.happened,
                weight=units.weight,
                squared=pairs.squared,
            ),
            bin_of=choice.finder(narrow=all(narrow)),
            n_bins=0 if fixed is None else fixed.count,
            quantiles=choice.quantiles,
            options=options,
        )
        return cls(
            units=units,
            label=pairs.happened,
            scores=scores,
            surprise=pairs.surprise,
            squared=pairs.squared,
            sample=sample,
        )

    def by_row(self) -> tuple[Scored, Scored]:
        """Return the samples of both models with each row as a segment."""
        return self._both(np.arange(len(self.label)))

    def seen(self) -> tuple[Scored, Scored]:
        """Return the samples of the first and of the second model, one table each."""
        return self._both(self.sample.vectors.starts)

    def exchanged(self, resamples: int, rng: np.random.Generator) -> Iterator[tuple[Scored, Scored]]:
        """Give, in chunks, the samples of both models where units change places at random."""
        for shares in exchanged(self.units, resamples, rng, wide=self._wide):
            moved = shares[:, self.units.of_row]
            yield self._swapped(moved == 1.0) if self._single else self._shared(moved)

    def resampled(self, resamples: int, rng: np.random.Generator) -> Iterator[tuple[Scored, Scored]]:
        """Give, in chunks, the samples of both models where units are drawn with replacement."""
        for times in resampled(self.units, resamples, rng, wide=self._wide):
            weight = self._rounded(self.units.weight * times[:, self.units.of_row])
            rows = np.arange(len(self.label))
            yield self._weighed(self._side(0), rows, weight), self._weighed(self._side(1), rows, weight)

    @property
    def _wide(self) -> int:
        """How many numbers a draw is made of."""
        return 2 * len(self.label) * (len(self.scores[0]) + _BESIDE)

    @property
    def _single(self) -> bool:
        """Whether each unit stands for itself alone."""
        return bool((self.units.copies == 1.0).all())

    def _side(self, side: int) -> tuple[Floats, Floats | None]:
        return self.scores[side], None if self.surprise is None else self.surprise[side]

    def _both(self, starts: Ints) -> tuple[Scored, Scored]:
        weight, squared = self.units.weight, self.squared
        first, second = (self._made(self._side(side), starts, self.label, weight, squared) for side in (0, 1))
        return first, second

    def _made(
        self, side: tuple[Floats, Floats | None], starts: Ints, label: Ints, weight: Floats, squared: Floats
    ) -> Scored:
        scores, surprise = side
        vectors = Vectors(starts=starts, scores=scores.T, label=label, weight=weight, squared=squared)
        return replace(self.sample, vectors=vectors, surprise=surprise)

    def _swapped(self, moved: Bools) -> tuple[Scored, Scored]:
        """Return the samples of both models where whole rows have changed places, one line a draw."""
        draws, rows = moved.shape
        starts = (self.sample.vectors.starts + rows * np.arange(draws)[:, None]).ravel()
        label = np.tile(self.label, draws)
        weight, squared = (np.tile(values, draws) for values in (self.units.weight, self.squared))

        def side(own: int) -> Scored:
            (scores, surprise), (others, other) = self._side(own), self._side(1 - own)
            mixed = np.where(moved, others[:, None, :], scores[:, None, :]).reshape(len(scores), -1)
            loss = None if surprise is None or other is None else np.where(moved, other, surprise).ravel()
            return self._made((mixed, loss), starts, label, weight, squared)

        return side(0), side(1)

    def _shared(self, moved: Floats) -> tuple[Scored, Scored]:
        """Return the same where of a row that stands for several some change places: those stand beside the others."""
        both = np.stack(self.scores, axis=-1).reshape(len(self.scores[0]), -1)  # of either model in turn
        loss = None if self.surprise is None else np.stack(self.surprise, axis=-1).ravel()
        rows = np.repeat(np.arange(len(self.label)), 2)
        stay, go = (self._rounded(self.units.weight * share) for share in (1.0 - moved, moved))
        first, second = (np.stack(pair, axis=-1).reshape(len(moved), -1) for pair in ((stay, go), (go, stay)))
        return self._weighed((both, loss), rows, first), self._weighed((both, loss), rows, second)

    def _weighed(self, side: tuple[Floats, Floats | None], rows: Ints, weight: Floats) -> Scored:
        """Return the sample of some vectors, of these rows, with new weights, one line a draw; none of them is 0."""
        there = weight > 0.0
        first = np.searchsorted(rows, self.sample.vectors.starts)
        sizes = np.add.reduceat(there, first, axis=1, dtype=np.int64).ravel()
        place, (scores, surprise) = np.nonzero(there)[1], side
        some = rows[place]
        loss = None if surprise is None else surprise[place]
        squared = weight[there] * (self.squared / self.units.weight)[some]
        return self._made((scores[:, place], loss), starts_of(sizes), self.label[some], weight[there], squared)

    def _rounded(self, weight: Floats) -> Floats:
        """Return weights as whole numbers where they count rows."""
        return weight if self._single else np.rint(weight)


def _snapped(bins: Bins, scores: Floats) -> Floats:
    """Return float32 scores moved by a rounding, where that takes them into the bins that a person sees."""
    flat = scores.ravel()
    seen = bins.find(flat, narrow=True)
    low, high = bins.lower()[seen], bins.upper()[seen]
    if bins.closed == "left":
        high = np.where(seen < bins.count - 1, np.nextafter(high, 0.0), high)
    else:
        low = np.where(seen > 0, np.nextafter(low, 1.0), low)
    away: Any = bins.find(flat, narrow=False) != seen
    moved: Floats = np.where(away, np.clip(flat, low, high), flat).reshape(scores.shape)
    return moved
