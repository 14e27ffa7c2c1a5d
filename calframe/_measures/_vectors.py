"""Measures of whole score vectors, for any number of classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from calframe._kernels import _intervals, _selective, _vector_groups, _vectors
from calframe._kernels._binned import effective_rows
from calframe._kernels._risk_intervals import aurc_interval, excess_aurc_interval
from calframe._kernels._vectors import Vectors
from calframe._measures._notions import NOTION_METRICS, confidence_tally
from calframe._registry import Metric, Scored
from calframe._typing import Floats

_SURVEY = "Silva Filho et al. (2023), https://doi.org/10.1007/s10994-023-06336-7"


def _surprise(sample: Scored) -> Floats:
    """Return the log loss of each row, from its logits where there are any."""
    clip, vectors = sample.options.clip, sample.vectors
    if sample.surprise is not None and clip is None:
        return sample.surprise
    return _vectors.surprise(vectors, clip=clip)


def _log_loss(sample: Scored) -> Floats:
    return sample.vectors.mean(sample.shared(_surprise))


def _groups(sample: Scored) -> _vector_groups.VectorGroups:
    return _vector_groups.equal_vectors(sample.vectors)


def _by_vector(
    kernel: Callable[[Vectors, _vector_groups.VectorGroups | None], Floats],
) -> Callable[[Scored], Floats]:
    return lambda sample: kernel(sample.vectors, sample.shared(_groups))


def _calibration_log(sample: Scored) -> Floats:
    groups = sample.shared(_groups)
    return _vector_groups.calibration_loss_log(sample.vectors, groups, surprise=sample.surprise)


def _epistemic_log(sample: Scored) -> Floats:
    best = _with_posterior(_vectors.irreducible_loss_log)(sample)
    known = np.isfinite(best)
    return np.where(known, sample.shared(_log_loss) - np.where(known, best, 0.0), np.nan)


def _with_posterior(kernel: Callable[[Vectors, Floats], Floats]) -> Callable[[Scored], Floats]:
    def value(sample: Scored) -> Floats:
        if sample.posterior is None:
            return np.full(len(sample.vectors), np.nan)
        return kernel(sample.vectors, sample.posterior)

    return value


def _accuracy_interval(sample: Scored, level: float) -> tuple[Floats, Floats]:
    vectors = sample.vectors
    return _intervals.rate_interval(_vectors.accuracy(vectors), _effective_rows(vectors), level=level)


def _effective_rows(vectors: Vectors) -> Floats:
    return effective_rows(vectors.total(vectors.weight), vectors.total(vectors.squared))


def _brier_interval(sample: Scored, level: float) -> tuple[Floats, Floats]:
    vectors = sample.vectors
    rest = vectors.classes - 1.0
    sure = vectors.mean(_vectors.top_label(vectors)[0])
    other = (1.0 - sure) / rest
    right = (1.0 - sure) ** 2 + rest * other**2
    wrong = sure**2 + (1.0 - other) ** 2 + (rest - 1.0) * other**2
    return _loss_interval(vectors, _vectors.square_loss(vectors), right, wrong, level)


def _log_loss_interval(sample: Scored, level: float) -> tuple[Floats, Floats]:
    vectors = sample.vectors
    sure = vectors.mean(_vectors.top_label(vectors)[0])
    with np.errstate(divide="ignore"):
        right, wrong = -np.log(sure), -np.log((1.0 - sure) / (vectors.classes - 1.0))
    return _loss_interval(vectors, sample.shared(_surprise), right, wrong, level)


def _loss_interval(vectors: Vectors, loss: Floats, right: Floats, wrong: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the interval of a mean loss.

    A typical prediction has the mean confidence, the other classes sharing the rest evenly.
    """
    mean, second, rows = vectors.mean(loss), vectors.mean(loss**2), _effective_rows(vectors)
    return _intervals.loss_interval(mean, second, rows, right=right, wrong=wrong, level=level)


def _epistemic_interval(sample: Scored, level: float) -> tuple[Floats, Floats]:
    low, high = _difference_interval(sample, _vectors.square_loss, _vectors.square_loss(sample.vectors), level)
    return np.maximum(low, -2.0), np.minimum(high, 2.0)


def _epistemic_log_interval(sample: Scored, level: float) -> tuple[Floats, Floats]:
    return _difference_interval(sample, _vectors.surprise, sample.shared(_surprise), level)


def _difference_interval(
    sample: Scored, loss: Callable[[Vectors], Floats], own: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return the interval of what the losses of the scores are above those of the true probabilities."""
    vectors = sample.vectors
    best = own if sample.posterior is None else loss(replace(vectors, scores=sample.posterior))
    with np.errstate(invalid="ignore"):
        gain = own - best
        mean, second = vectors.mean(gain), vectors.mean(gain**2)
        return _intervals.difference_interval(mean, second, _effective_rows(vectors), level=level)


CLASS_METRICS: tuple[Metric, ...] = (
    Metric(
        name="accuracy",
        summary="share of rows whose class has the largest score (of equal ones the first)",
        formula="Σ w [argmax p = y] / Σ w",
        source="a plain mean",
        convention="of equal largest scores the first is the prediction",
        example="0.5",
        reads="vectors",
        low=0,
        high=1,
        direction="higher",
        value=lambda sample: _vectors.accuracy(sample.vectors),
        interval=_accuracy_interval,
    ),
    Metric(
        name="brier",
        summary="squared distance of scores and outcome, summed over the classes",
        formula="Σ w Σ_c (p_c − [y = c])² / Σ w",
        source="Brier (1950), https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2",
        convention="summed over the classes, 0 to 2: with two classes twice the binary score",
        example="0.555",
        reads="vectors",
        low=0,
        high=2,
        direction="lower",
        value=lambda sample: _vectors.brier(sample.vectors),
        interval=_brier_interval,
    ),
    Metric(
        name="log_loss",
        summary="mean negative log probability of what happened, in nats",
        formula="−Σ w ln p_y / Σ w",
        source="Good (1952), https://doi.org/10.1111/j.2517-6161.1952.tb00104.x",
        convention="infinite where p_y is 0, unless clip= keeps scores from 0 and 1",
        example="−ln(0.0168)/4 ≈ 1.0216",
        reads="vectors",
        low=0,
        high=np.inf,
        direction="lower",
        value=lambda sample: sample.shared(_log_loss),
        interval=_log_loss_interval,
    ),
    *NOTION_METRICS,
    Metric(
        name="calibration_loss",
        summary="part of the Brier score that knowing the frequencies at each score vector would remove",
        formula="Σ w Σ_c (p_c − ȳ_c)² / Σ w, ȳ the frequencies at p",
        source=_SURVEY,
        convention="vectors are equal where they are so exactly: without ties this is the Brier score itself",
        example="0.305",
        reads="vectors",
        low=0,
        high=2,
        direction="lower",
        value=_by_vector(_vector_groups.calibration_loss),
    ),
    Metric(
        name="refinement_loss",
        summary="the rest of the Brier score: what the score vectors cannot tell apart",
        formula="Σ w Σ_c ȳ_c (1 − ȳ_c) / Σ w",
        source=_SURVEY,
        example="0.25",
        reads="vectors",
        low=0,
        high=1,
        direction="lower",
        value=_by_vector(_vector_groups.refinement_loss),
    ),
    Metric(
        name="calibration_loss_log",
        summary="part of the log loss that knowing the frequencies at each score vector would remove",
        formula="Σ w KL(ȳ ‖ p) / Σ w",
        source=_SURVEY,
        convention="as calibration_loss; infinite where log_loss is, clip= does not apply",
        example="−ln(0.0672)/4 ≈ 0.675",
        reads="vectors",
        low=0,
        high=np.inf,
        direction="lower",
        value=_calibration_log,
    ),
    Metric(
        name="refinement_loss_log",
        summary="the rest of the log loss",
        formula="Σ w H(ȳ) / Σ w",
        source=_SURVEY,
        example="ln(2)/2 ≈ 0.3466",
        reads="vectors",
        low=0,
        high=np.inf,
        direction="lower",
        value=_by_vector(_vector_groups.refinement_loss_log),
    ),
    Metric(
        name="aurc",
        summary="mean risk of the most confident rows, over all their numbers",
        formula="(1/n) Σ_k errors among the k most confident / k, mean over all orders of ties",
        source="Geifman, Uziel & El-Yaniv (2019), https://doi.org/10.48550/arXiv.1805.08206",
        convention="confidence is the largest score; k runs from 1 to n; weights count rows: give importance weights a "
        "mean of 1",
        example="13/48 ≈ 0.2708",
        reads="vectors",
        low=0,
        high=1,
        direction="lower",
        value=lambda sample: _selective.aurc(sample.shared(confidence_tally)),
        interval=lambda sample, level: aurc_interval(sample.shared(confidence_tally), level=level),
        counts_rows=True,
    ),
    Metric(
        name="eaurc",
        summary="aurc less that of a perfect ranking of the same predictions",
        formula="aurc − aurc with every error last",
        source="Geifman, Uziel & El-Yaniv (2019), https://doi.org/10.48550/arXiv.1805.08206",
        convention="as aurc",
        example="1/16 ≈ 0.0625",
        reads="vectors",
        low=0,
        high=1,
        direction="lower",
        value=lambda sample: _selective.excess_aurc(sample.shared(confidence_tally)),
        interval=lambda sample, level: excess_aurc_interval(sample.shared(confidence_tally), level=level),
        counts_rows=True,
    ),
    Metric(
        name="irreducible_loss",
        summary="Brier score of the true probabilities: what no model can avoid",
        formula="Σ w Σ_c (q_c − [y = c])² / Σ w, q = posterior",
        source=_SURVEY,
        example="0.5",
        reads="vectors",
        low=0,
        high=2,
        direction="none",
        value=_with_posterior(_vectors.irreducible_loss),
        posterior=True,
    ),
    Metric(
        name="epistemic_loss",
        summary="Brier score less irreducible_loss: what a better model would gain",
        formula="brier − irreducible_loss",
        source=_SURVEY,
        convention="a difference of two means over rows: negative where chance favours the scores",
        example="0.055",
        reads="vectors",
        low=-2,
        high=2,
        direction="lower",
        value=_with_posterior(_vectors.epistemic_loss),
        interval=_epistemic_interval,
        posterior=True,
    ),
    Metric(
        name="irreducible_loss_log",
        summary="log loss of the true probabilities",
        formula="−Σ w ln q_y / Σ w",
        source=_SURVEY,
        convention="clip= does not apply",
        example="−ln(0.03)/4 ≈ 0.8766",
        reads="vectors",
        low=0,
        high=np.inf,
        direction="none",
        value=_with_posterior(_vectors.irreducible_loss_log),
        posterior=True,
    ),
    Metric(
        name="epistemic_loss_log",
        summary="log loss less irreducible_loss_log",
        formula="log_loss − irreducible_loss_log",
        source=_SURVEY,
        convention="clip= moves the scores, not the true probabilities",
        example="ln(25/14)/4 ≈ 0.145",
        reads="vectors",
        low=-np.inf,
        high=np.inf,
        direction="lower",
        value=_epistemic_log,
        interval=_epistemic_log_interval,
        undefined="the true probabilities rule out what happened",
        posterior=True,
    ),
)
