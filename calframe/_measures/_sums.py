"""Measures that are sums over the rows of a segment."""

from __future__ import annotations

import numpy as np

from calframe._kernels import _binned, _intervals, _moments
from calframe._kernels._binned import ratio
from calframe._registry import Cells, Metric
from calframe._typing import Floats

_BRIER = "Brier (1950), https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2"
_GOOD = "Good (1952), https://doi.org/10.1111/j.2517-6161.1952.tb00104.x"
_MURPHY = "Murphy (1988), https://doi.org/10.1175/1520-0493(1988)116<2417:SSBOTM>2.0.CO;2"
_SURVEY = "Silva Filho et al. (2023), https://doi.org/10.1007/s10994-023-06336-7"
_CLASSES = "only one class"


def rate(cells: Cells) -> Floats:
    """Return the observed rate of positives."""
    return ratio(cells.total("wy"), cells.total("w"))


def mean_score(cells: Cells) -> Floats:
    """Return the mean score."""
    return ratio(cells.total("wp"), cells.total("w"))


def gap(cells: Cells) -> Floats:
    """Return mean score minus observed rate."""
    return ratio(cells.total("wp") - cells.total("wy"), cells.total("w"))


def effective_rows(cells: Cells) -> Floats:
    """Return ``(sum w)^2 / sum w^2``, the number of equally weighted rows that would be as informative."""
    return _binned.effective_rows(cells.total("w"), cells.total("w2"))


def _mean(term: str, cells: Cells) -> Floats:
    return ratio(cells.total(term), cells.total("w"))


def _score_ratio(cells: Cells) -> Floats:
    return ratio(cells.total("wp"), cells.total("wy"))


def _accuracy(cells: Cells) -> Floats:
    return _mean("right", cells)


def _brier(cells: Cells) -> Floats:
    return _mean("square", cells)


def _brier_skill(cells: Cells) -> Floats:
    weight, positive = cells.total("w"), cells.total("wy")
    return 1.0 - ratio(cells.total("square") * weight, positive * (weight - positive))


def _log_loss(cells: Cells) -> Floats:
    return np.where(cells.total("impossible") > 0, np.inf, _mean("surprise", cells))


def _sharpness(cells: Cells) -> Floats:
    return np.maximum(_mean("centred_square", cells) - _mean("centred", cells) ** 2, 0.0)


def _irreducible(cells: Cells) -> Floats:
    return _mean("true_square", cells)


def _epistemic(cells: Cells) -> Floats:
    return ratio(cells.total("square") - cells.total("true_square"), cells.total("w"))


def _irreducible_log(cells: Cells) -> Floats:
    return np.where(cells.total("true_impossible") > 0, np.inf, _mean("true_surprise", cells))


def _epistemic_log(cells: Cells) -> Floats:
    true = _irreducible_log(cells)
    return np.where(np.isinf(true), np.nan, _log_loss(cells) - np.where(np.isinf(true), 0.0, true))


def _rate_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    method = cells.options.rate_interval
    return _intervals.rate_interval(rate(cells), effective_rows(cells), level=level, method=method)


def _wilson(value: Floats, cells: Cells, level: float) -> tuple[Floats, Floats]:
    return _intervals.rate_interval(value, effective_rows(cells), level=level)


def _accuracy_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    return _wilson(_accuracy(cells), cells, level)


def _gap_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    low, high = _wilson(rate(cells), cells, level)
    return mean_score(cells) - high, mean_score(cells) - low


def _ratio_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    low, high = _wilson(rate(cells), cells, level)
    score = mean_score(cells)
    defined = cells.total("wy") > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = score / high, score / low
    return np.where(defined, ends[0], np.nan), np.where(defined, ends[1], np.nan)


def _brier_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    doubt = _doubt("variance", cells)
    return _loss_interval(_brier(cells), "fourth", doubt**2, (1.0 - doubt) ** 2, cells, level)


def _doubt(variance: str, cells: Cells) -> Floats:
    """Return the smaller of the two probabilities of a typical row, which has the mean ``s (1 - s)``."""
    mean = _mean(variance, cells)
    return 2.0 * mean / (1.0 + np.sqrt(np.maximum(1.0 - 4.0 * mean, 0.0)))


def _loss_interval(
    value: Floats, square: str, right: Floats, wrong: Floats, cells: Cells, level: float
) -> tuple[Floats, Floats]:
    rows = effective_rows(cells)
    return _intervals.loss_interval(value, _mean(square, cells), rows, right=right, wrong=wrong, level=level)


def _mean_score_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    return _moments.mean_interval(mean_score(cells), _sharpness(cells), effective_rows(cells), level=level)


def _brier_skill_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    positive = cells.total("wy")
    negative = cells.total("w") - positive
    classes = []
    for weight, sign in ((positive, 1.0), (negative, -1.0)):
        sums = [
            cells.total(f"positive_{name}") if sign > 0 else cells.total(name) - cells.total(f"positive_{name}")
            for name in ("square", "fourth")
        ]
        classes.append((ratio(sums[0], weight), ratio(sums[1], weight)))
    return _moments.brier_skill_interval(
        rate(cells), mean_score(cells), classes[0], classes[1], effective_rows(cells), level=level
    )


def _log_loss_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    return _log_interval(_log_loss(cells), "surprise_square", _doubt("variance", cells), cells, level)


def _log_interval(value: Floats, square: str, doubt: Floats, cells: Cells, level: float) -> tuple[Floats, Floats]:
    with np.errstate(divide="ignore"):
        right, wrong = -np.log1p(-doubt), -np.log(doubt)
    return _loss_interval(value, square, right, wrong, cells, level)


def _sharpness_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    first, second, third, fourth = (
        _mean(name, cells) for name in ("centred", "centred_square", "centred_cube", "centred_fourth")
    )
    about_mean = _moments.fourth_about_mean(first, second, third, fourth)
    return _moments.variance_interval(_sharpness(cells), about_mean, effective_rows(cells), level=level)


def _irreducible_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    doubt = _doubt("true_variance", cells)
    return _loss_interval(_irreducible(cells), "true_fourth", doubt**2, (1.0 - doubt) ** 2, cells, level)


def _irreducible_log_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    doubt = _doubt("true_variance", cells)
    return _log_interval(_irreducible_log(cells), "true_surprise_square", doubt, cells, level)


def _epistemic_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    low, high = _difference_interval(_epistemic(cells), "gain_square", cells, level)
    return np.maximum(low, -1.0), np.minimum(high, 1.0)


def _difference_interval(value: Floats, square: str, cells: Cells, level: float) -> tuple[Floats, Floats]:
    return _intervals.difference_interval(value, _mean(square, cells), effective_rows(cells), level=level)


SUM_METRICS = (
    Metric(
        name="rate",
        summary="observed rate of positives",
        formula="Σ w y / Σ w",
        source="a plain mean",
        example="2/3 ≈ 0.6667",
        low=0,
        high=1,
        direction="none",
        terms=("wy",),
        value=rate,
        interval=_rate_interval,
        interval_terms=("w2",),
    ),
    Metric(
        name="mean_score",
        summary="mean score",
        formula="Σ w p / Σ w",
        source="a plain mean",
        example="17/30 ≈ 0.5667",
        low=0,
        high=1,
        direction="none",
        terms=("wp",),
        value=mean_score,
        interval=_mean_score_interval,
        interval_terms=("w2", "centred", "centred_square"),
    ),
    Metric(
        name="gap",
        summary="mean score minus rate; positive: the scores say too much",
        formula="Σ w (p − y) / Σ w",
        source="a difference of plain means",
        convention="score less rate; observed less expected has the other sign",
        example="−0.1",
        low=-1,
        high=1,
        direction="zero",
        terms=("wp", "wy"),
        value=gap,
        interval=_gap_interval,
        interval_terms=("w2",),
    ),
    Metric(
        name="ratio",
        summary="mean score divided by rate; above 1: the scores say too much",
        formula="Σ w p / Σ w y",
        source="a ratio of plain means",
        convention="expected over observed (E/O); O/E is its inverse",
        example="0.85",
        low=0,
        high=np.inf,
        direction="one",
        terms=("wp", "wy"),
        value=_score_ratio,
        undefined="no positives",
        interval=_ratio_interval,
        interval_terms=("w2",),
    ),
    Metric(
        name="accuracy",
        summary="share of rows on the right side of 0.5 (0.5 itself predicts positive)",
        formula="Σ w [(p ≥ ½) = y] / Σ w",
        source="a plain mean",
        convention="the threshold is 0.5, which predicts 1",
        example="2/3 ≈ 0.6667",
        low=0,
        high=1,
        direction="higher",
        terms=("right",),
        value=_accuracy,
        interval=_accuracy_interval,
        interval_terms=("w2",),
    ),
    Metric(
        name="brier",
        summary="mean squared distance of score and label",
        formula="Σ w (p − y)² / Σ w",
        source=_BRIER,
        convention="of the positive class alone, 0 to 1: half of the sum over both classes",
        example="11/60 ≈ 0.1833",
        low=0,
        high=1,
        direction="lower",
        terms=("square",),
        value=_brier,
        interval=_brier_interval,
        interval_terms=("w2", "variance", "fourth"),
    ),
    Metric(
        name="brier_skill",
        summary="1 - brier / (rate (1 - rate)); 0: no better than the rate itself",
        formula="1 − brier / (r (1 − r)), r = rate",
        source=_MURPHY,
        convention="the reference is the rate of the same segment",
        example="0.175",
        low=-np.inf,
        high=1,
        direction="higher",
        terms=("square", "wy"),
        value=_brier_skill,
        undefined=_CLASSES,
        interval=_brier_skill_interval,
        interval_terms=("w2", "wp", "fourth", "positive_square", "positive_fourth"),
    ),
    Metric(
        name="log_loss",
        summary="mean negative log probability of what happened, in nats",
        formula="−Σ w (y ln p + (1 − y) ln(1 − p)) / Σ w",
        source=_GOOD,
        convention="infinite where a score of 0 or 1 is wrong, unless clip= keeps scores from 0 and 1",
        example="ln(200000/6561)/6 ≈ 0.5695",
        low=0,
        high=np.inf,
        direction="lower",
        terms=("surprise", "impossible"),
        value=_log_loss,
        interval=_log_loss_interval,
        interval_terms=("w2", "variance", "surprise_square"),
    ),
    Metric(
        name="sharpness",
        summary="variance of the scores",
        formula="Σ w (p − p̄)² / Σ w",
        source="a plain variance",
        convention="divided by Σ w, not by Σ w − 1",
        example="29/225 ≈ 0.1289",
        low=0,
        high=0.25,
        direction="none",
        terms=("centred", "centred_square"),
        value=_sharpness,
        interval=_sharpness_interval,
        interval_terms=("w2", "centred_cube", "centred_fourth"),
    ),
    Metric(
        name="irreducible_loss",
        summary="Brier score of the true probabilities: what no model can avoid",
        formula="Σ w (q − y)² / Σ w, q = posterior",
        source=_SURVEY,
        example="0.16",
        low=0,
        high=1,
        direction="none",
        terms=("true_square",),
        value=_irreducible,
        posterior=True,
        interval=_irreducible_interval,
        interval_terms=("w2", "true_variance", "true_fourth"),
    ),
    Metric(
        name="epistemic_loss",
        summary="Brier score less irreducible_loss: what a better model would gain",
        formula="brier − irreducible_loss",
        source=_SURVEY,
        convention="a difference of two means over rows: negative where chance favours the scores",
        example="7/300 ≈ 0.0233",
        low=-1,
        high=1,
        direction="lower",
        terms=("square", "true_square"),
        value=_epistemic,
        posterior=True,
        interval=_epistemic_interval,
        interval_terms=("w2", "gain_square"),
    ),
    Metric(
        name="irreducible_loss_log",
        summary="log loss of the true probabilities",
        formula="−Σ w (y ln q + (1 − y) ln(1 − q)) / Σ w",
        source=_SURVEY,
        convention="clip= does not move the true probabilities",
        example="−ln(0.049152)/6 ≈ 0.5021",
        low=0,
        high=np.inf,
        direction="none",
        terms=("true_surprise", "true_impossible"),
        value=_irreducible_log,
        posterior=True,
        interval=_irreducible_log_interval,
        interval_terms=("w2", "true_variance", "true_surprise_square"),
    ),
    Metric(
        name="epistemic_loss_log",
        summary="log loss less irreducible_loss_log",
        formula="log_loss − irreducible_loss_log",
        source=_SURVEY,
        convention="clip= moves the scores, not the true probabilities",
        example="ln(9830.4/6561)/6 ≈ 0.0674",
        low=-np.inf,
        high=np.inf,
        direction="lower",
        terms=("surprise", "impossible", "true_surprise", "true_impossible"),
        value=_epistemic_log,
        undefined="the true probabilities rule out what happened",
        posterior=True,
        interval=lambda cells, level: _difference_interval(_epistemic_log(cells), "gain_log_square", cells, level),
        interval_terms=("w2", "gain_log_square"),
    ),
)
