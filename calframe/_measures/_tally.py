"""Measures of distinct scores: of their order, of curves through them, of fits to them."""

from __future__ import annotations

import numpy as np

from calframe._kernels import _intervals, _isotonic, _losses, _moments, _ranked, _selective, _smooth, _sweep
from calframe._kernels._binned import effective_rows
from calframe._kernels._risk_intervals import aurc_interval, excess_aurc_interval
from calframe._kernels._smooth_interval import smooth_error_interval
from calframe._kernels._tally import Tally
from calframe._registry import Metric, Tallied
from calframe._typing import Floats

_FEWEST_OUTSIDE = 10  # resamples that an interval leaves out, for its ends to be found
_ROUNDING = 1e-9


def _blocks(sample: Tallied) -> _isotonic.Blocks:
    return _isotonic.blocks(sample.tally)


def _corp(sample: Tallied) -> _isotonic.CorpParts:
    return _isotonic.corp(sample.tally, fit=sample.shared(_blocks), is_logit=sample.is_logit)


def _corp_log(sample: Tallied) -> _isotonic.CorpParts:
    return _isotonic.corp_log(sample.tally, fit=sample.shared(_blocks), is_logit=sample.is_logit)


def _losses_by_score(sample: Tallied) -> _losses.ScoreParts:
    return _losses.loss_parts_by_score(sample.tally, is_logit=sample.is_logit)


def _ecce(sample: Tallied) -> _ranked.Ecce:
    return _ranked.ecce(sample.tally)


def _ecce_noise(sample: Tallied) -> Floats:
    return _ranked.ecce_noise(sample.tally, sample.shared(_ecce))


def _confidence(sample: Tallied) -> Tally:
    return _selective.confidence_tally(sample.tally, is_logit=sample.is_logit)


def _rate(sample: Tallied) -> tuple[Floats, Floats]:
    """Return the rate of each segment, and its (effective) rows."""
    tally = sample.tally
    weight = tally.total(tally.weight)
    return tally.total(tally.positive) / weight, effective_rows(weight, tally.total(tally.squared))


def _smooth_interval(sample: Tallied, level: float) -> tuple[Floats, Floats]:
    options = sample.options
    if options.n_resamples * (1.0 - level) < _FEWEST_OUTSIDE - _ROUNDING:
        unknown = np.full(len(sample.tally), np.nan)
        return unknown, unknown
    ends = smooth_error_interval(sample.tally, level=level, n_resamples=options.n_resamples, seed=options.seed)
    return _up_to_gap(ends, sample, level)


def _ecce_range_interval(sample: Tallied, level: float) -> tuple[Floats, Floats]:
    ends = _ranked.ecce_range_interval(sample.shared(_ecce), sample.shared(_ecce_noise), level=level)
    return _up_to_gap(ends, sample, level)


def _ecce_mad_interval(sample: Tallied, level: float) -> tuple[Floats, Floats]:
    ends = _ranked.ecce_mad_interval(sample.shared(_ecce), sample.shared(_ecce_noise), level=level)
    return _up_to_gap(ends, sample, level)


def _up_to_gap(ends: tuple[Floats, Floats], sample: Tallied, level: float) -> tuple[Floats, Floats]:
    """Return the interval of an error that is at least the gap of the means, with an upper end that allows for it."""
    tally, (rate, rows) = sample.tally, _rate(sample)
    score = tally.total(tally.weight * tally.score) / tally.total(tally.weight)
    return ends[0], np.maximum(ends[1], _intervals.largest_gap(score, rate, rows, level=level))


TALLY_METRICS: tuple[Metric, ...] = (
    Metric(
        name="auc",
        summary="area under the ROC curve: how often a positive outranks a negative, ties half",
        formula="P(p⁺ > p⁻) + ½ P(p⁺ = p⁻)",
        source="Hanley & McNeil (1982), https://doi.org/10.1148/radiology.143.1.7063747",
        convention="reads the score column as it is: logits rank rows whose probabilities round to the same",
        example="13/16 ≈ 0.8125",
        reads="ranks",
        low=0,
        high=1,
        direction="higher",
        value=lambda sample: _ranked.auc(sample.tally),
        undefined="only one class",
        interval=lambda sample, level: _ranked.auc_interval(sample.tally, level=level),
    ),
    Metric(
        name="ece_sweep",
        summary="ece over as many bins of equal weight as keep the rates in order",
        formula="ece over b bins, b the last number before ȳ_1 ≤ … ≤ ȳ_b fails first",
        source="Roelofs et al. (2022), https://doi.org/10.48550/arXiv.2012.08668",
        convention="bins of whole distinct scores, as of strategy='quantile'",
        example="0.1",
        reads="tally",
        low=0,
        high=1,
        direction="lower",
        value=lambda sample: _sweep.sweep_error(sample.tally).error,
    ),
    Metric(
        name="smece",
        summary="smooth calibration error: mean absolute gap after smoothing as widely as the result itself",
        formula="∫ |Σ w (p − y) K_σ(t, p)| dt / Σ w at the smallest σ ≥ 0.001 with smece_σ ≤ σ; K reflected Gaussian",
        source="Błasiok & Nakkiran (2023), https://doi.org/10.48550/arXiv.2309.12236",
        convention="the kernel is not cut off; where smece_0.001 is below 0.001 it is the value",
        example="≈ 0.1767",
        reads="tally",
        low=0,
        high=1,
        direction="lower",
        value=lambda sample: _smooth.smooth_error(sample.tally)[0],
        interval=_smooth_interval,
        interval_needs=f"n_resamples of {_FEWEST_OUTSIDE} / (1 - confidence_level) or more",
    ),
    Metric(
        name="ecce_r",
        summary="range of the cumulative differences between labels and scores",
        formula="max_k C_k − min_k C_k, C_k = Σ_{p ≤ p_k} w (y − p) / Σ w, C_0 = 0",
        source="Arrieta-Ibarra et al. (2022), https://doi.org/10.48550/arXiv.2205.09680",
        convention="one step a distinct score, so tied rows have no order; not divided by its standard deviation",
        example="2/15 ≈ 0.1333",
        reads="tally",
        low=0,
        high=1,
        direction="lower",
        value=lambda sample: sample.shared(_ecce).range,
        interval=_ecce_range_interval,
    ),
    Metric(
        name="ecce_mad",
        summary="largest absolute cumulative difference between labels and scores",
        formula="max_k |C_k|",
        source="Arrieta-Ibarra et al. (2022), https://doi.org/10.48550/arXiv.2205.09680",
        convention="as ecce_r",
        example="2/15 ≈ 0.1333",
        reads="tally",
        low=0,
        high=1,
        direction="lower",
        value=lambda sample: sample.shared(_ecce).largest,
        interval=_ecce_mad_interval,
    ),
    Metric(
        name="calibration_loss",
        summary="part of the Brier score that knowing the rate at each distinct score would remove",
        formula="Σ w (p − ȳ_p)² / Σ w, ȳ_p the rate at score p",
        source="Silva Filho et al. (2023), https://doi.org/10.1007/s10994-023-06336-7",
        convention="scores, or logits, are equal where they are exactly so: without ties this is the Brier score",
        example="0.1",
        reads="ranks",
        low=0,
        high=1,
        direction="lower",
        value=lambda sample: sample.shared(_losses_by_score).calibration_loss,
    ),
    Metric(
        name="refinement_loss",
        summary="the rest of the Brier score: what the distinct scores cannot tell apart",
        formula="Σ w ȳ_p (1 − ȳ_p) / Σ w",
        source="Silva Filho et al. (2023), https://doi.org/10.1007/s10994-023-06336-7",
        convention="as calibration_loss: 0 without ties",
        example="1/12 ≈ 0.0833",
        reads="ranks",
        low=0,
        high=0.25,
        direction="lower",
        value=lambda sample: sample.shared(_losses_by_score).refinement_loss,
    ),
    Metric(
        name="calibration_loss_log",
        summary="part of the log loss that knowing the rate at each distinct score would remove",
        formula="Σ w KL(ȳ_p ‖ p) / Σ w",
        source="Silva Filho et al. (2023), https://doi.org/10.1007/s10994-023-06336-7",
        convention="as calibration_loss; infinite where log_loss is, clip= does not apply",
        example="ln(50000/6561)/6 ≈ 0.3385",
        reads="ranks",
        low=0,
        high=np.inf,
        direction="lower",
        value=lambda sample: sample.shared(_losses_by_score).calibration_loss_log,
    ),
    Metric(
        name="refinement_loss_log",
        summary="the rest of the log loss",
        formula="Σ w H(ȳ_p) / Σ w",
        source="Silva Filho et al. (2023), https://doi.org/10.1007/s10994-023-06336-7",
        convention="as refinement_loss",
        example="ln(2)/3 ≈ 0.231",
        reads="ranks",
        low=0,
        high=float(np.log(2)),
        direction="lower",
        value=lambda sample: sample.shared(_losses_by_score).refinement_loss_log,
    ),
    Metric(
        name="mcb",
        summary="miscalibration: Brier score less that of the isotonic fit",
        formula="brier − brier(ŷ), ŷ the isotonic regression of y on p",
        source="Dimitriadis, Gneiting & Jordan (2021), https://doi.org/10.1073/pnas.2016191118",
        convention="equal scores, or logits, share one value of ŷ",
        example="13/180 ≈ 0.0722",
        reads="ranks",
        low=0,
        high=1,
        direction="lower",
        value=lambda sample: sample.shared(_corp).mcb,
    ),
    Metric(
        name="dsc",
        summary="discrimination: Brier score of the rate alone less that of the isotonic fit",
        formula="unc − brier(ŷ)",
        source="Dimitriadis, Gneiting & Jordan (2021), https://doi.org/10.1073/pnas.2016191118",
        convention="as mcb",
        example="1/9 ≈ 0.1111",
        reads="ranks",
        low=0,
        high=0.25,
        direction="higher",
        value=lambda sample: sample.shared(_corp).dsc,
    ),
    Metric(
        name="unc",
        summary="uncertainty: Brier score of the rate alone",
        formula="r (1 − r); brier = mcb − dsc + unc",
        source="Dimitriadis, Gneiting & Jordan (2021), https://doi.org/10.1073/pnas.2016191118",
        example="2/9 ≈ 0.2222",
        reads="ranks",
        low=0,
        high=0.25,
        direction="none",
        value=lambda sample: sample.shared(_corp).unc,
        interval=lambda sample, level: _moments.uncertainty_interval(*_rate(sample), level=level),
    ),
    Metric(
        name="mcb_log",
        summary="miscalibration in the log loss",
        formula="log_loss − log_loss(ŷ)",
        source="Dimitriadis, Gneiting & Jordan (2021), https://doi.org/10.1073/pnas.2016191118",
        convention="as mcb; infinite where log_loss is, clip= does not apply",
        example="ln(800000/177147)/6 ≈ 0.2513",
        reads="ranks",
        low=0,
        high=np.inf,
        direction="lower",
        value=lambda sample: sample.shared(_corp_log).mcb,
    ),
    Metric(
        name="dsc_log",
        summary="discrimination in the log loss",
        formula="unc_log − log_loss(ŷ)",
        source="Dimitriadis, Gneiting & Jordan (2021), https://doi.org/10.1073/pnas.2016191118",
        convention="as mcb",
        example="ln(27/4)/6 ≈ 0.3183",
        reads="ranks",
        low=0,
        high=float(np.log(2)),
        direction="higher",
        value=lambda sample: sample.shared(_corp_log).dsc,
    ),
    Metric(
        name="unc_log",
        summary="log loss of the rate alone: its entropy",
        formula="H(r); log_loss = mcb_log − dsc_log + unc_log",
        source="Dimitriadis, Gneiting & Jordan (2021), https://doi.org/10.1073/pnas.2016191118",
        example="ln(27/4)/3 ≈ 0.6365",
        reads="ranks",
        low=0,
        high=float(np.log(2)),
        direction="none",
        value=lambda sample: sample.shared(_corp_log).unc,
        interval=lambda sample, level: _moments.entropy_interval(*_rate(sample), level=level),
    ),
    Metric(
        name="aurc",
        summary="mean risk of the most confident rows, over all their numbers; confidence max(p, 1 - p)",
        formula="(1/n) Σ_k errors among the k most confident / k, mean over all orders of ties",
        source="Geifman, Uziel & El-Yaniv (2019), https://doi.org/10.48550/arXiv.1805.08206",
        convention="a score of 0.5 predicts 1; k runs from 1 to n; of logits confidence is |z|, unrounded; weights "
        "count rows: give importance weights a mean of 1",
        example="2/9 ≈ 0.2222",
        reads="ranks",
        low=0,
        high=1,
        direction="lower",
        value=lambda sample: _selective.aurc(sample.shared(_confidence)),
        interval=lambda sample, level: aurc_interval(sample.shared(_confidence), level=level),
        counts_rows=True,
    ),
    Metric(
        name="eaurc",
        summary="aurc less that of a perfect ranking of the same predictions",
        formula="aurc − aurc with every error last",
        source="Geifman, Uziel & El-Yaniv (2019), https://doi.org/10.48550/arXiv.1805.08206",
        convention="as aurc",
        example="2/15 ≈ 0.1333",
        reads="ranks",
        low=0,
        high=1,
        direction="lower",
        value=lambda sample: _selective.excess_aurc(sample.shared(_confidence)),
        interval=lambda sample, level: excess_aurc_interval(sample.shared(_confidence), level=level),
        counts_rows=True,
    ),
)
