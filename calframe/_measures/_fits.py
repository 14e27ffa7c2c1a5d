"""Measures of a fit to the distinct scores: logistic calibration lines, and smooth curves."""

from __future__ import annotations

import numpy as np

from calframe._kernels import _ici, _logistic
from calframe._registry import Metric, Tallied
from calframe._typing import Floats

_COX = "Cox (1958), https://doi.org/10.1093/biomet/45.3-4.562"
_AUSTIN = "Austin & Steyerberg (2019), https://doi.org/10.1002/sim.8281"
_NO_LINE = "no line fits: one class, one score, or classes that a score separates"
_SMOOTH = "ĉ = loess of y on p (or as smoother= says)"


def _line(sample: Tallied) -> _logistic.CoxFit:
    return _logistic.cox_fit(sample.tally, floor=sample.options.floor)


def _large(sample: Tallied) -> _logistic.CitlFit:
    return _logistic.citl_fit(sample.tally, floor=sample.options.floor)


def _line_interval(part: str, sample: Tallied, level: float) -> tuple[Floats, Floats]:
    return _logistic.cox_interval(sample.shared(_line), level=level)[part]


def _large_interval(sample: Tallied, level: float) -> tuple[Floats, Floats]:
    return _logistic.citl_interval(sample.tally, sample.shared(_large), level=level, floor=sample.options.floor)


def _smoothed(sample: Tallied) -> tuple[Floats, Floats, Floats, Floats]:
    return _ici.ici(sample.tally, sample.options.smoother)


FIT_METRICS = (
    Metric(
        name="ici",
        summary="integrated calibration index: mean absolute distance of the scores from a smooth curve",
        formula=f"Σ w |p − ĉ(p)| / Σ w, {_SMOOTH}",
        source=_AUSTIN,
        convention="loess as in R: span 0.75, degree 2, interpolated; the curve is not kept within [0, 1]",
        example="4/15 ≈ 0.2667",
        reads="tally",
        low=0,
        high=np.inf,
        direction="lower",
        value=lambda sample: sample.shared(_smoothed)[0],
    ),
    Metric(
        name="e50",
        summary="median of that distance",
        formula=f"median |p − ĉ(p)|, {_SMOOTH}",
        source=_AUSTIN,
        convention="curve as of ici; over rows, type 7: of two middle ones the mean",
        example="0.25",
        reads="tally",
        low=0,
        high=np.inf,
        direction="lower",
        value=lambda sample: sample.shared(_smoothed)[1],
    ),
    Metric(
        name="e90",
        summary="90th percentile of that distance",
        formula=f"90th percentile (type 7) of |p − ĉ(p)|, {_SMOOTH}",
        source=_AUSTIN,
        convention="curve as of ici; over rows",
        example="0.45",
        reads="tally",
        low=0,
        high=np.inf,
        direction="lower",
        value=lambda sample: sample.shared(_smoothed)[2],
    ),
    Metric(
        name="emax",
        summary="largest such distance",
        formula=f"max |p − ĉ(p)|, {_SMOOTH}",
        source=_AUSTIN,
        convention="curve as of ici",
        example="0.5",
        reads="tally",
        low=0,
        high=np.inf,
        direction="lower",
        value=lambda sample: sample.shared(_smoothed)[3],
    ),
    Metric(
        name="slope",
        logarithms=True,
        summary="calibration slope; below 1 the scores are too extreme, above 1 too timid",
        formula="b of the logistic regression logit P(y) = a + b logit p",
        source=_COX,
        convention="maximum likelihood; scores stay floor= away from 0 and 1",
        example="ln(2)/ln(3) ≈ 0.6309",
        reads="tally",
        low=-np.inf,
        high=np.inf,
        direction="one",
        value=lambda sample: sample.shared(_line).slope,
        undefined=_NO_LINE,
        interval=lambda sample, level: _line_interval("slope", sample, level),
    ),
    Metric(
        name="intercept",
        logarithms=True,
        summary="calibration intercept, fitted together with the slope",
        formula="a of the logistic regression logit P(y) = a + b logit p",
        source=_COX,
        convention="as slope, which is free beside it; citl holds it at 1",
        example="ln(2) ≈ 0.6931",
        reads="tally",
        low=-np.inf,
        high=np.inf,
        direction="zero",
        value=lambda sample: sample.shared(_line).intercept,
        undefined=_NO_LINE,
        interval=lambda sample, level: _line_interval("intercept", sample, level),
    ),
    Metric(
        name="citl",
        logarithms=True,
        summary="calibration in the large, in logits; below 0 the scores say too much",
        formula="a of the logistic regression logit P(y) = a + logit p",
        source=_COX,
        convention="the slope is held at 1; scores stay floor= away from 0 and 1",
        example="≈ 0.8842",
        reads="tally",
        low=-np.inf,
        high=np.inf,
        direction="zero",
        value=lambda sample: sample.shared(_large).citl,
        undefined="only one class",
        interval=_large_interval,
    ),
    Metric(
        name="slope_se",
        logarithms=True,
        summary="standard error of slope",
        formula="square root of its variance, by the information; with importance weights by the sandwich",
        source=_COX,
        convention="with importance weights not less than by the information",
        example="√(39/28)/ln(9) ≈ 0.5371",
        reads="tally",
        low=0,
        high=np.inf,
        direction="none",
        value=lambda sample: np.sqrt(sample.shared(_line).slope_variance),
        undefined=_NO_LINE,
    ),
    Metric(
        name="intercept_se",
        logarithms=True,
        summary="standard error of intercept",
        formula="as slope_se",
        source=_COX,
        convention="as slope_se",
        example="√(15/14) ≈ 1.0351",
        reads="tally",
        low=0,
        high=np.inf,
        direction="none",
        value=lambda sample: np.sqrt(sample.shared(_line).intercept_variance),
        undefined=_NO_LINE,
    ),
    Metric(
        name="citl_se",
        logarithms=True,
        summary="standard error of citl",
        formula="as slope_se",
        source=_COX,
        convention="as slope_se",
        example="≈ 1.2246",
        reads="tally",
        low=0,
        high=np.inf,
        direction="none",
        value=lambda sample: np.sqrt(sample.shared(_large).variance),
        undefined="only one class",
    ),
)
