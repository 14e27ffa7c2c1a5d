"""Binned errors of score vectors: each notion makes tables of a score against whether something happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from calframe._kernels import _intervals, _inversion, _skce, _vector_bins, _vector_groups, _vectors
from calframe._kernels._binned import cell_gaps, segment_max, segment_sum
from calframe._kernels._building import tally_of_rows
from calframe._kernels._equal_mass import equal_mass
from calframe._kernels._tally import Tally
from calframe._registry import Metric, Scored
from calframe._typing import Floats, Ints

_GUO = "Guo et al. (2017), https://doi.org/10.48550/arXiv.1706.04599"
_KULL = "Kull et al. (2019), https://doi.org/10.48550/arXiv.1910.12656"
_SURVEY = "Silva Filho et al. (2023), https://doi.org/10.1007/s10994-023-06336-7"
_SKCE_BLOCK = 50  # rows of a block: far less noise than blocks of two, for two to three times the time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NotionCells:
    """The non-empty bins of all tables of a notion, segment after segment.

    Attributes
    ----------
    starts : ndarray of int64
        The first bin of each segment.
    weight, score, label, squared : ndarray of float64
        Sums over each bin.
    share : ndarray of float64
        What the absolute gap of each bin counts in the error of its segment.
    """

    starts: Ints
    weight: Floats
    score: Floats
    label: Floats
    squared: Floats
    share: Floats

    def error(self) -> Floats:
        """Return the expected calibration error of each segment."""
        return segment_sum(self.share * cell_gaps(self.weight, self.score, self.label), self.starts)

    def largest(self) -> Floats:
        """Return the largest absolute gap of each segment."""
        return segment_max(cell_gaps(self.weight, self.score, self.label), self.starts)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the interval of the expected calibration error."""
        sums = (self.weight, self.score, self.label, self.squared, self.starts)
        return _inversion.absolute_error_interval(*sums, level=level, shares=self.share)


def confidence_tally(sample: Scored) -> Tally:
    """Return the tally of the largest scores."""
    return _vectors.confidence_tally(sample.vectors)


def confidence_cells(sample: Scored) -> NotionCells:
    """Return the bins of the largest score against whether its class happened."""
    if sample.n_bins:
        table = _vector_bins.confidence_table(sample.vectors, sample.bin_of, sample.n_bins)
        return _joined(sample, [_of_table(sample, table)], tables=1)
    tally = sample.shared(confidence_tally)
    return _joined(sample, [_of_tally(sample, tally, np.arange(len(tally)))], tables=1)


def class_cells(sample: Scored) -> NotionCells:
    """Return the bins of each class against the rest, every class counting the same."""
    return _joined(sample, sample.shared(_class_parts), tables=sample.vectors.classes)


def toplabel_cells(sample: Scored) -> NotionCells:
    """Return the bins of the largest score within each predicted class."""
    vectors = sample.vectors
    if sample.n_bins:
        tables = _vector_bins.toplabel_tables(vectors, sample.bin_of, sample.n_bins)
        return _joined(sample, (_of_table(sample, table) for table in tables), tables=1)
    confidence, predicted, right = _vectors.top_label(vectors)
    tally, present = tally_of_rows(
        vectors.segment * vectors.classes + predicted,
        confidence,
        right,
        segments=len(vectors) * vectors.classes,
        weight=vectors.weight,
        squared=vectors.squared,
    )
    return _joined(sample, [_of_tally(sample, tally, present // vectors.classes)], tables=1)


def error_of(cells: Callable[[Scored], NotionCells]) -> Callable[[Scored], Floats]:
    """Return the value of an expected error."""
    return lambda sample: sample.shared(cells).error()


def largest_of(cells: Callable[[Scored], NotionCells]) -> Callable[[Scored], Floats]:
    """Return the value of a largest error."""
    return lambda sample: sample.shared(cells).largest()


def interval_of(cells: Callable[[Scored], NotionCells]) -> Callable[[Scored, float], tuple[Floats, Floats]]:
    """Return the interval of an expected error."""
    return lambda sample, level: sample.shared(cells).interval(level)


def _class_parts(sample: Scored) -> list[tuple[Ints, Floats]]:
    """Return the segments and the sums of the bins of each class."""
    if sample.n_bins:
        tables = _vector_bins.class_tables(sample.vectors, sample.bin_of, sample.n_bins)
        return [_of_table(sample, table) for table in tables]
    tallies = (_vectors.class_tally(sample.vectors, [number]) for number in range(sample.vectors.classes))
    return [_of_tally(sample, tally, np.arange(len(tally))) for tally in tallies]


def class_interval(sample: Scored, level: float) -> tuple[Floats, Floats]:
    """Return the interval of the mean error over the classes: the means of the ends of their own intervals.

    Classes share their rows, so their errors are not independent; the means of the ends hold however they go together.
    """
    ends = [_joined(sample, [part], tables=1).interval(level) for part in sample.shared(_class_parts)]
    low, high = (np.mean(side, axis=0) for side in zip(*ends, strict=True))
    return low, high


def _of_table(sample: Scored, table: _vector_bins.BinnedSums) -> tuple[Ints, Floats]:
    """Return the segments and the sums of the bins that have rows."""
    filled = np.flatnonzero(table.weight > 0)
    sums = np.stack([values[filled] for values in (table.weight, table.score, table.label, table.squared)])
    return filled // sample.n_bins, sums


def _of_tally(sample: Scored, tally: Tally, segments: Ints) -> tuple[Ints, Floats]:
    bins = equal_mass(tally, sample.quantiles)
    sums = np.stack([bins.sums[name] for name in ("w", "wp", "wy", "w2")])
    return np.repeat(segments, np.diff(np.append(bins.starts, len(bins.bin)))), sums


def _joined(sample: Scored, parts: Iterable[tuple[Ints, Floats]], *, tables: int) -> NotionCells:
    """Return the bins of several tables, segment after segment."""
    found = list(parts)
    segment = np.concatenate([segment for segment, _ in found])
    order = np.argsort(segment, kind="stable")
    weight, score, label, squared = np.concatenate([sums for _, sums in found], axis=1)[:, order]
    segment = segment[order]
    total = sample.vectors.total(sample.vectors.weight) * tables
    return NotionCells(
        starts=np.searchsorted(segment, np.arange(len(sample.vectors))),
        weight=weight,
        score=score,
        label=label,
        squared=squared,
        share=weight / total[segment],
    )


def _full(sample: Scored) -> Floats:
    if sample.n_bins == 0:
        return np.full(len(sample.vectors), np.nan)
    return _vector_groups.full_ece(sample.vectors, sample.bin_of)


def _skce_parts(sample: Scored) -> tuple[Floats, Floats]:
    return _skce.skce_with_error(sample.vectors, block=_SKCE_BLOCK)


def _normal(found: tuple[Floats, Floats], level: float) -> tuple[Floats, Floats]:
    value, error = found
    half = _intervals.normal_quantile(level) * error
    return value - half, value + half


NOTION_METRICS = (
    Metric(
        name="confidence_ece",
        summary="ece of the largest score against whether its class happened",
        formula="Σ_b w_b |conf_b − acc_b| / Σ_b w_b",
        source=_GUO,
        convention="bins as of ece; of equal largest scores the first is the prediction",
        example="0.125",
        reads="vectors",
        low=0,
        high=1,
        direction="lower",
        value=error_of(confidence_cells),
        interval=interval_of(confidence_cells),
    ),
    Metric(
        name="confidence_mce",
        summary="largest absolute gap of a bin of the largest score",
        formula="max_b |conf_b − acc_b|",
        source=_GUO,
        convention="as confidence_ece",
        example="0.4",
        reads="vectors",
        low=0,
        high=1,
        direction="lower",
        value=largest_of(confidence_cells),
    ),
    Metric(
        name="classwise_ece",
        summary="mean over the classes of the ece of each against the rest",
        formula="Σ_c ece_c / C",
        source=_KULL,
        convention="bins as of ece; classes count the same, however rare",
        example="2/15 ≈ 0.1333",
        reads="vectors",
        low=0,
        high=1,
        direction="lower",
        value=error_of(class_cells),
        interval=class_interval,
    ),
    Metric(
        name="classwise_mce",
        summary="largest absolute gap of a bin over all classes, each against the rest",
        formula="max_c mce_c",
        source=_SURVEY,
        convention="bins as of ece; a largest value, not a mean over the classes",
        example="0.3",
        reads="vectors",
        low=0,
        high=1,
        direction="lower",
        value=largest_of(class_cells),
    ),
    Metric(
        name="toplabel_ece",
        summary="ece of the largest score within each predicted class",
        formula="Σ_c w_c ece_c / Σ_c w_c, c the predicted class",
        source="Gupta & Ramdas (2022), https://openreview.net/forum?id=WqoBaaPHS-",
        convention="bins as of ece; predicted classes count by their weight",
        example="0.225",
        reads="vectors",
        low=0,
        high=1,
        direction="lower",
        value=error_of(toplabel_cells),
        interval=interval_of(toplabel_cells),
    ),
    Metric(
        name="full_ece",
        summary="gaps of all classes over bins of the whole score vector",
        formula="Σ_B w_B Σ_c |p̄_Bc − ȳ_Bc| / Σ_B w_B, B a cell of bins of every class",
        source=_SURVEY,
        convention="bins as of ece, in every class at once; summed over the classes, not halved",
        example="0.85",
        reads="vectors",
        low=0,
        high=2,
        direction="lower",
        value=_full,
        undefined="bins of equal weight are not defined for whole vectors",
    ),
    Metric(
        name="skce",
        summary="squared kernel calibration error: unbiased, so it may be negative",
        formula="mean of exp(−‖p − p′‖₁ / median) (y − p)·(y′ − p′) over pairs of rows",
        source="Widmann, Lindsten & Zachariah (2019), https://doi.org/10.48550/arXiv.1910.11385",
        convention="all pairs up to 2,000 rows, above that those within blocks of 50; a median of 0 becomes 1",
        example="(−0.24 − 0.22·exp(−1.6) − 0.44·exp(−0.8) + 0.28·exp(−1.2))/6 ≈ −0.0663",
        reads="vectors",
        low=-2,
        high=2,
        direction="zero",
        value=lambda sample: sample.shared(_skce_parts)[0],
        undefined="fewer than two rows",
        interval=lambda sample, level: _normal(sample.shared(_skce_parts), level),
    ),
)
