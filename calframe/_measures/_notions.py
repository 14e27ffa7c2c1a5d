"""Binned errors of score vectors: each notion makes tables of a score against whether something happened."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calframe._kernels import _intervals, _skce, _vector_bins, _vector_groups, _vectors
from calframe._kernels._building import tally_of_rows
from calframe._kernels._equal_mass import equal_mass
from calframe._kernels._tally import Tally
from calframe._kernels._vector_bins import BinSums, NotionBins
from calframe._registry import Metric, Scored
from calframe._typing import Floats, Ints

_GUO = "Guo et al. (2017), https://doi.org/10.48550/arXiv.1706.04599"
_KULL = "Kull et al. (2019), https://doi.org/10.48550/arXiv.1910.12656"
_SURVEY = "Silva Filho et al. (2023), https://doi.org/10.1007/s10994-023-06336-7"
_SKCE_BLOCK = 50  # rows of a block: far less noise than blocks of two, for two to three times the time


def confidence_tally(sample: Scored) -> Tally:
    """Return the tally of the largest scores."""
    return _vectors.confidence_tally(sample.vectors)


def confidence_bins(sample: Scored) -> NotionBins:
    """Return the bins of the largest score against whether its class happened."""
    if sample.n_bins:
        table = _vector_bins.confidence_table(sample.vectors, sample.bin_of, sample.n_bins)
    else:
        tally = sample.shared(confidence_tally)
        table = _of_tally(sample, tally, np.arange(len(tally)))
    return NotionBins.of_tables([table], _total(sample))


def class_bins(sample: Scored) -> NotionBins:
    """Return the bins of each class against the rest, every class counting the same."""
    return NotionBins.of_tables(sample.shared(_class_tables), _total(sample) * sample.vectors.classes)


def toplabel_bins(sample: Scored) -> NotionBins:
    """Return the bins of the largest score within each predicted class."""
    vectors = sample.vectors
    if sample.n_bins:
        tables = _vector_bins.toplabel_tables(vectors, sample.bin_of, sample.n_bins)
        return NotionBins.of_tables(tables, _total(sample))
    confidence, predicted, right = _vectors.top_label(vectors)
    tally, present = tally_of_rows(
        vectors.segment * vectors.classes + predicted,
        confidence,
        right,
        segments=len(vectors) * vectors.classes,
        weight=vectors.weight,
        squared=vectors.squared,
    )
    return NotionBins.of_tables([_of_tally(sample, tally, present // vectors.classes)], _total(sample))


def error_of(bins: Callable[[Scored], NotionBins]) -> Callable[[Scored], Floats]:
    """Return the value of an expected error."""
    return lambda sample: sample.shared(bins).error()


def largest_of(bins: Callable[[Scored], NotionBins]) -> Callable[[Scored], Floats]:
    """Return the value of a largest error."""
    return lambda sample: sample.shared(bins).largest()


def interval_of(bins: Callable[[Scored], NotionBins]) -> Callable[[Scored, float], tuple[Floats, Floats]]:
    """Return the interval of an expected error."""
    return lambda sample, level: sample.shared(bins).interval(level=level)


def class_interval(sample: Scored, level: float) -> tuple[Floats, Floats]:
    """Return the interval of the mean error over the classes: the means of the ends of their own intervals.

    Classes share their rows, so their errors are not independent; the means of the ends hold however they go together.
    """
    classes = [NotionBins.of_tables([table], _total(sample)) for table in sample.shared(_class_tables)]
    low, high = np.mean([bins.interval(level=level) for bins in classes], axis=0)
    return low, high


def _class_tables(sample: Scored) -> list[BinSums]:
    """Return the bins of each class."""
    if sample.n_bins:
        return list(_vector_bins.class_tables(sample.vectors, sample.bin_of, sample.n_bins))
    tallies = (_vectors.class_tally(sample.vectors, [number]) for number in range(sample.vectors.classes))
    return [_of_tally(sample, tally, np.arange(len(tally))) for tally in tallies]


def _of_tally(sample: Scored, tally: Tally, segments: Ints) -> BinSums:
    """Return bins of equal weight; `segments` says whose segment each one of the tally belongs to."""
    bins = equal_mass(tally, sample.quantiles)
    return BinSums(
        segment=segments[bins.segment],
        weight=bins.sums["w"],
        score=bins.sums["wp"],
        label=bins.sums["wy"],
        squared=bins.sums["w2"],
    )


def _total(sample: Scored) -> Floats:
    return sample.vectors.total(sample.vectors.weight)


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
        value=error_of(confidence_bins),
        interval=interval_of(confidence_bins),
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
        value=largest_of(confidence_bins),
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
        value=error_of(class_bins),
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
        value=largest_of(class_bins),
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
        value=error_of(toplabel_bins),
        interval=interval_of(toplabel_bins),
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
        convention="all pairs up to 2,000 rows, above that those within blocks of 50; a median of 0 becomes 1; whole "
        "weights count rows, whose copies are pairs, too: give importance weights a mean of 1",
        example="(−0.24 − 0.22·exp(−1.6) − 0.44·exp(−0.8) + 0.28·exp(−1.2))/6 ≈ −0.0663",
        reads="vectors",
        low=-2,
        high=2,
        direction="zero",
        value=lambda sample: sample.shared(_skce_parts)[0],
        undefined="fewer than two rows",
        interval_needs="more than 2,000 rows, because with all pairs no law is known where scores are right",
        interval=lambda sample, level: _normal(sample.shared(_skce_parts), level),
    ),
)
