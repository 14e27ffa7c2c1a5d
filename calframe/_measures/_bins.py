"""Measures over score bins, from the sums of each bin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calframe._kernels import _binned, _debiased, _inversion, _moments, _null
from calframe._kernels._binned import effective_rows, ratio, spread
from calframe._registry import Cells, Metric
from calframe._typing import Floats, Ints

_NAEINI = "Naeini, Cooper & Hauskrecht (2015), https://doi.org/10.1609/aaai.v29i1.9602"
_KUMAR = "Kumar, Liang & Ma (2019), https://doi.org/10.48550/arXiv.1909.10155"
_MURPHY = "Murphy (1973), https://doi.org/10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2"
_STEPHENSON = "Stephenson, Coelho & Jolliffe (2008), https://doi.org/10.1175/2007WAF2006116.1"
_BROECKER = "Bröcker (2012), https://doi.org/10.1007/s00382-011-1191-1"
_ONE_ROW = "fewer than two rows (weights count as rows)"
_DIACONIS = "Diaconis & Zabell (1991), https://doi.org/10.1214/ss/1177011699"


def expected_error(cells: Cells) -> Floats:
    """Return the ECE that a model whose scores are all right shows by chance, in closed form."""
    sums = cells.sums
    gaps = _null.chance_gap(sums["w"], sums["wp"], sums["variance"], sums["w2_variance"])
    return ratio(_binned.segment_sum(gaps, cells.starts), cells.total("w"))


def _over_bins(kernel: Callable[[Floats, Floats, Floats, Ints], Floats]) -> Callable[[Cells], Floats]:
    return lambda cells: kernel(cells.sums["w"], cells.sums["wp"], cells.sums["wy"], cells.starts)


def _debiased_error(cells: Cells) -> Floats:
    sums = cells.sums  # weights count rows in every metric, so the weight of a bin is its number of rows
    return _debiased.debiased_error(sums["w"], sums["wp"], sums["wy"], sums["w"], cells.starts)


def _murphy(cells: Cells) -> _debiased.Murphy:
    sums = cells.sums
    return _debiased.murphy(sums["w"], sums["wp"], sums["wy"], cells.total("square"), cells.starts)


def _corrected(cells: Cells) -> _debiased.Murphy:
    sums = cells.sums
    return _debiased.murphy_corrected(sums["w"], sums["wp"], sums["wy"], sums["w"], cells.total("square"), cells.starts)


def _five(cells: Cells) -> tuple[Floats, Floats, Floats, Floats, Ints]:
    return cells.sums["w"], cells.sums["wp"], cells.sums["wy"], cells.sums["w2"], cells.starts


def _error_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    return _inversion.absolute_error_interval(*_five(cells), level=level)


def _average_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    filled = (cells.sums["w"] > 0).astype(np.float64)
    shares = ratio(filled, spread(_binned.segment_sum(filled, cells.starts), cells.starts, len(filled)))
    return _inversion.absolute_error_interval(*_five(cells), level=level, shares=np.nan_to_num(shares))


def _root_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    return _inversion.root_mean_square_interval(*_five(cells), level=level)


def _reliability_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    return _inversion.reliability_interval(*_five(cells), level=level)


def _resolution_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    weight, _, label, squared, starts = _five(cells)
    low, high = _inversion.resolution_interval(weight, label, squared, starts, level=level)
    seen = cells.shared(_murphy).resolution
    return np.minimum(low, seen), np.maximum(high, seen)  # with a row or two a bin the path of hypotheses can be lost


def _uncertainty_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    weight, label = cells.total("w"), cells.total("wy")
    rows = effective_rows(weight, cells.total("w2"))
    return _moments.uncertainty_interval(ratio(label, weight), rows, level=level)


BIN_METRICS = (
    Metric(
        name="ece",
        summary="expected calibration error: mean absolute gap over the bins, by weight",
        formula="Σ_b w_b |p̄_b − ȳ_b| / Σ_b w_b",
        source=_NAEINI,
        convention="edges k/M exactly; bins closed on the left, the last one on both sides; empty bins count nothing",
        example="1/6 ≈ 0.1667",
        reads="bins",
        low=0,
        high=1,
        direction="lower",
        terms=("wp", "wy"),
        value=_over_bins(_binned.expected_error),
        interval=_error_interval,
        interval_terms=("w2",),
    ),
    Metric(
        name="mce",
        summary="maximum calibration error: largest absolute gap of a bin",
        formula="max_b |p̄_b − ȳ_b|",
        source=_NAEINI,
        convention="bins as of ece; a bin counts however few rows it has",
        example="0.4",
        reads="bins",
        low=0,
        high=1,
        direction="lower",
        terms=("wp", "wy"),
        value=_over_bins(_binned.largest_error),
    ),
    Metric(
        name="rmsce",
        summary="root mean square gap over the bins, by weight",
        formula="√(Σ_b w_b (p̄_b − ȳ_b)² / Σ_b w_b)",
        source=_KUMAR,
        convention="bins as of ece; the root is taken last",
        example="√(11/200) ≈ 0.2345",
        reads="bins",
        low=0,
        high=1,
        direction="lower",
        terms=("wp", "wy"),
        value=_over_bins(_binned.root_mean_square_error),
        interval=_root_interval,
        interval_terms=("w2",),
    ),
    Metric(
        name="ace",
        summary="average calibration error: mean absolute gap, every non-empty bin counting the same",
        formula="Σ_b |p̄_b − ȳ_b| / B",
        source="Neumann, Zisserman & Vedaldi (2018), https://openreview.net/forum?id=S1lG7aTnqQ",
        convention="bins as of ece; not Nixon's adaptive calibration error, which has the same initials",
        example="0.225",
        reads="bins",
        low=0,
        high=1,
        direction="lower",
        terms=("wp", "wy"),
        value=_over_bins(_binned.average_error),
        interval=_average_interval,
        interval_terms=("w2",),
    ),
    Metric(
        name="ece_expected",
        summary="the ece that a model with these scores, all of them right, shows by chance",
        formula="Σ_b E|K_b − E K_b| / Σ_b w_b, K_b the positives that right scores give",
        source=_DIACONIS,
        convention="K_b is the Binomial of its mean and variance, size rounded; exact for equal scores",
        example="(0.324 + 0.576·√(13/12))/6 ≈ 0.1539",
        reads="bins",
        low=0,
        high=0.5,
        direction="none",
        terms=("wp", "variance", "w2_variance"),
        value=expected_error,
    ),
    Metric(
        name="ece_debiased",
        summary="root mean square gap without the part that chance adds; 0 where that leaves nothing",
        formula="√max(Σ_b w_b ((p̄_b − ȳ_b)² − ȳ_b (1 − ȳ_b) / (w_b − 1)) / Σ_b w_b, 0)",
        source=_KUMAR,
        convention="w_b counts as rows, so give weights a mean of 1; bins of fewer than two add 0",
        example="0",
        reads="bins",
        low=0,
        high=1,
        direction="lower",
        terms=("wp", "wy"),
        value=_debiased_error,
        interval=_root_interval,
        interval_terms=("w2",),
        counts_rows=True,
    ),
    Metric(
        name="reliability",
        summary="mean squared gap over the bins: part of the Brier score",
        formula="Σ_b w_b (p̄_b − ȳ_b)² / Σ w",
        source=_MURPHY,
        convention="bins as of ece",
        example="11/200 ≈ 0.055",
        reads="bins",
        low=0,
        high=1,
        direction="lower",
        terms=("wp", "wy", "square"),
        value=lambda cells: cells.shared(_murphy).reliability,
        interval=_reliability_interval,
        interval_terms=("w2",),
    ),
    Metric(
        name="resolution",
        summary="variance of the rates of the bins: part of the Brier score",
        formula="Σ_b w_b (ȳ_b − ȳ)² / Σ w",
        source=_MURPHY,
        convention="bins as of ece",
        example="1/72 ≈ 0.0139",
        reads="bins",
        low=0,
        high=0.25,
        direction="higher",
        terms=("wp", "wy", "square"),
        value=lambda cells: cells.shared(_murphy).resolution,
        interval=_resolution_interval,
        interval_terms=("w2",),
    ),
    Metric(
        name="uncertainty",
        summary="variance of the labels: part of the Brier score",
        formula="ȳ (1 − ȳ)",
        source=_MURPHY,
        example="2/9 ≈ 0.2222",
        reads="bins",
        low=0,
        high=0.25,
        direction="none",
        terms=("wp", "wy", "square"),
        value=lambda cells: cells.shared(_murphy).uncertainty,
        interval=_uncertainty_interval,
        interval_terms=("w2",),
    ),
    Metric(
        name="within_bin",
        summary="what bins hide: brier = reliability - resolution + uncertainty + within_bin",
        formula="Σ w (p − p̄_b)² / Σ w − 2 Σ w (p − p̄_b)(y − ȳ_b) / Σ w",
        source=_STEPHENSON,
        convention="bins as of ece; with it the parts add up to the Brier score exactly",
        example="−0.08",
        reads="bins",
        low=-0.25,
        high=0.75,
        direction="none",
        terms=("wp", "wy", "square"),
        value=lambda cells: cells.shared(_murphy).within_bin,
    ),
    Metric(
        name="reliability_corrected",
        summary="reliability without the bias of small bins; may be negative",
        formula="reliability − c, c = Σ_b w_b ȳ_b (1 − ȳ_b) / (w_b − 1) / Σ w",
        source=_BROECKER,
        convention="bins as of ece; in c, those of fewer than two rows add 0; nothing is cut off at 0",
        example="−0.07",
        reads="bins",
        low=-0.25,
        high=1,
        direction="lower",
        terms=("wp", "wy", "square"),
        value=lambda cells: cells.shared(_corrected).reliability,
        undefined=_ONE_ROW,
        interval=_reliability_interval,
        interval_terms=("w2",),
        counts_rows=True,
    ),
    Metric(
        name="resolution_corrected",
        summary="resolution without the bias of small bins; may be negative",
        formula="resolution − c + ȳ (1 − ȳ) / (Σ w − 1)",
        source=_BROECKER,
        convention="as reliability_corrected",
        example="−1/15 ≈ −0.0667",
        reads="bins",
        low=-0.25,
        high=0.5,
        direction="higher",
        terms=("wp", "wy", "square"),
        value=lambda cells: cells.shared(_corrected).resolution,
        undefined=_ONE_ROW,
        interval=_resolution_interval,
        interval_terms=("w2",),
        counts_rows=True,
    ),
    Metric(
        name="uncertainty_corrected",
        summary="uncertainty without the bias of few rows",
        formula="ȳ (1 − ȳ) Σ w / (Σ w − 1)",
        source=_BROECKER,
        example="4/15 ≈ 0.2667",
        reads="bins",
        low=0,
        high=0.5,
        direction="none",
        terms=("wp", "wy", "square"),
        value=lambda cells: cells.shared(_corrected).uncertainty,
        undefined=_ONE_ROW,
        interval=_uncertainty_interval,
        interval_terms=("w2",),
        counts_rows=True,
    ),
)
