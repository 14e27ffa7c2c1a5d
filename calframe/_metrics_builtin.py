"""The metrics that ship with calframe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from calframe._errors import ArgumentError
from calframe._kernels import _binned, _intervals, _null
from calframe._kernels._binned import ratio
from calframe._registry import Cells, Metric
from calframe._typing import Floats, Ints

DEFAULT_METRICS = ("rate", "mean_score", "gap", "brier", "log_loss", "ece", "ece_expected")


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
    return ratio(cells.total("w") ** 2, cells.total("w2"))


def expected_error(cells: Cells) -> Floats:
    """Return the ECE that a model whose scores are all right shows by chance, in closed form."""
    sums = cells.sums
    gaps = _null.chance_gap(sums["w"], sums["wp"], sums["variance"], sums["w2_variance"])
    return ratio(_binned.segment_sum(gaps, cells.starts), cells.total("w"))


def _score_ratio(cells: Cells) -> Floats:
    return ratio(cells.total("wp"), cells.total("wy"))


def _accuracy(cells: Cells) -> Floats:
    return ratio(cells.total("right"), cells.total("w"))


def _brier(cells: Cells) -> Floats:
    return ratio(cells.total("square"), cells.total("w"))


def _brier_skill(cells: Cells) -> Floats:
    weight, positive = cells.total("w"), cells.total("wy")
    return 1.0 - ratio(cells.total("square") * weight, positive * (weight - positive))


def _log_loss(cells: Cells) -> Floats:
    finite = ratio(cells.total("surprise"), cells.total("w"))
    return np.where(cells.total("impossible") > 0, np.inf, finite)


def _sharpness(cells: Cells) -> Floats:
    weight = cells.total("w")
    spread = ratio(cells.total("centred_square"), weight) - ratio(cells.total("centred"), weight) ** 2
    return np.maximum(spread, 0.0)


def _over_bins(kernel: Callable[[Floats, Floats, Floats, Ints], Floats]) -> Callable[[Cells], Floats]:
    return lambda cells: kernel(cells.sums["w"], cells.sums["wp"], cells.sums["wy"], cells.starts)


def _rate_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    return _intervals.rate_interval(rate(cells), effective_rows(cells), level=level)


def _gap_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    low, high = _rate_interval(cells, level)
    return mean_score(cells) - high, mean_score(cells) - low


def _ratio_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    low, high = _rate_interval(cells, level)
    score = mean_score(cells)
    defined = cells.total("wy") > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = score / high, score / low
    return np.where(defined, ends[0], np.nan), np.where(defined, ends[1], np.nan)


def _brier_interval(cells: Cells, level: float) -> tuple[Floats, Floats]:
    weight = cells.total("w")
    return _intervals.mean_of_squares_interval(
        _brier(cells),
        ratio(cells.total("fourth"), weight),
        mean_score(cells),
        effective_rows(cells),
        level=level,
    )


_SHIPPED = (
    Metric(
        name="rate",
        summary="observed rate of positives",
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
        low=0,
        high=1,
        direction="none",
        terms=("wp",),
        value=mean_score,
    ),
    Metric(
        name="gap",
        summary="mean score minus rate; positive: the scores say too much",
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
        low=0,
        high=1,
        direction="higher",
        terms=("right",),
        value=_accuracy,
    ),
    Metric(
        name="brier",
        summary="mean squared distance of score and label",
        low=0,
        high=1,
        direction="lower",
        terms=("square",),
        value=_brier,
        interval=_brier_interval,
        interval_terms=("fourth", "w2", "wp"),
    ),
    Metric(
        name="brier_skill",
        summary="1 - brier / (rate (1 - rate)); 0: no better than the rate itself",
        low=-np.inf,
        high=1,
        direction="higher",
        terms=("square", "wy"),
        value=_brier_skill,
        undefined="only one class",
    ),
    Metric(
        name="log_loss",
        summary="mean negative log probability of what happened, in nats",
        low=0,
        high=np.inf,
        direction="lower",
        terms=("surprise", "impossible"),
        value=_log_loss,
    ),
    Metric(
        name="ece",
        summary="expected calibration error: mean absolute gap over the bins, by weight",
        low=0,
        high=1,
        direction="lower",
        terms=("wp", "wy"),
        value=_over_bins(_binned.expected_error),
        binned=True,
    ),
    Metric(
        name="mce",
        summary="maximum calibration error: largest absolute gap of a bin",
        low=0,
        high=1,
        direction="lower",
        terms=("wp", "wy"),
        value=_over_bins(_binned.largest_error),
        binned=True,
    ),
    Metric(
        name="rmsce",
        summary="root mean square gap over the bins, by weight",
        low=0,
        high=1,
        direction="lower",
        terms=("wp", "wy"),
        value=_over_bins(_binned.root_mean_square_error),
        binned=True,
    ),
    Metric(
        name="ace",
        summary="average calibration error: mean absolute gap, every non-empty bin counting the same",
        low=0,
        high=1,
        direction="lower",
        terms=("wp", "wy"),
        value=_over_bins(_binned.average_error),
        binned=True,
    ),
    Metric(
        name="ece_expected",
        summary="the ece that a model with these scores, all of them right, shows by chance",
        low=0,
        high=1,
        direction="none",
        terms=("wp", "variance", "w2_variance"),
        value=expected_error,
        binned=True,
    ),
    Metric(
        name="sharpness",
        summary="variance of the scores",
        low=0,
        high=0.25,
        direction="none",
        terms=("centred", "centred_square"),
        value=_sharpness,
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _SHIPPED})


def reserved_names() -> set[str]:
    """Return the names that no segment column may have, because results use them."""
    ends = {f"{name}_{end}" for name in METRICS for end in ("low", "high")}
    return {"model", "class", "n", "n_missing", "n_invalid", "weight_sum", "note", *METRICS, *ends}


def chosen_metrics(names: str | Sequence[str] | None) -> tuple[Metric, ...]:
    """Return the metrics asked for: None for the usual ones, ``"all"`` for every one, else by name, in order."""
    asked: Any = DEFAULT_METRICS if names is None else names  # users pass other things than annotations say
    if isinstance(asked, str):
        asked = tuple(METRICS) if asked == "all" else (asked,)
    if not isinstance(asked, Sequence):
        msg = f"metrics must be a name, a list of names or 'all'; got {names!r}."
        raise ArgumentError(msg)
    for name in asked:
        if not isinstance(name, str) or name not in METRICS:
            raise ArgumentError.from_choice("metrics", name, METRICS)
        if list(asked).count(name) > 1:
            msg = f"metrics names {name!r} twice; name each metric once."
            raise ArgumentError(msg)
    if not asked:
        msg = "metrics is an empty list; name at least one metric, or leave it out for the usual ones."
        raise ArgumentError(msg)
    return tuple(METRICS[name] for name in asked)
