"""What other packages say of a table: each function calls one package as its users do. Imported only when called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

Array = np.ndarray[Any, Any]
Numbers = dict[str, float]


@dataclass(frozen=True)
class Peer:
    """A package, and how it is asked.

    `ask` takes scores, labels and a number of bins (None where there are no bins), for classes a matrix of scores;
    `weighted` also takes weights.
    """

    module: str
    distribution: str
    ask: Callable[..., Numbers]
    weighted: Callable[..., Numbers] | None = None
    bins: tuple[int | None, ...] = (2, 3, 5, 10, 14, 15, 20)


def calzone(p: Array, y: Array, bins: int) -> Numbers:
    return _calzone(np.column_stack([1 - p, p]), y, bins, which=1)


def calzone_confidence(p: Array, y: Array, bins: int) -> Numbers:
    return _calzone(p, y, bins, which=None)


def _calzone(p: Array, y: Array, bins: int, *, which: int | None) -> Numbers:
    from calzone.metrics import calculate_ece_mce
    from calzone.utils import reliability_diagram

    observed, predicted, _, counts = reliability_diagram(y, p, num_bins=bins, class_to_plot=which)
    ece, mce = calculate_ece_mce(observed, predicted, counts)
    return {"ece": ece, "mce": mce}


def mapie(p: Array, y: Array, bins: int) -> Numbers:
    from mapie.metrics.calibration import expected_calibration_error

    return {"ece": expected_calibration_error(y, p, num_bins=bins, split_strategy="uniform")}


def mapie_confidence(p: Array, y: Array, bins: int) -> Numbers:
    return mapie(p, (p.argmax(axis=1) == y).astype(int), bins)


def mapie_classwise(p: Array, y: Array, bins: int) -> Numbers:
    from mapie.metrics.calibration import expected_calibration_error

    right = (p.argmax(axis=1) == y).astype(int)
    found = expected_calibration_error(
        right, p, num_bins=bins, split_strategy="uniform", classwise=True, class_labels=y
    )
    return {"classwise_ece": found}


def mcgrad(p: Array, y: Array, bins: int, weight: Array | None = None) -> Numbers:
    from mcgrad import metrics

    return {
        "ece": metrics.expected_calibration_error(y, p, num_bins=bins, sample_weight=weight),
        "ratio": metrics.calibration_ratio(y, p, sample_weight=weight),
    }


def model_diagnostics(p: Array, y: Array, _: None, weight: Array | None = None) -> Numbers:
    from model_diagnostics.calibration import compute_bias
    from model_diagnostics.scoring import SquaredError, decompose

    parts = decompose(y, p, weights=weight, scoring_function=SquaredError())
    bias = compute_bias(y_obs=y, y_pred=p, weights=weight)
    return {"gap": bias["bias_mean"].item(), **_parts(parts, ("mcb", "dsc", "unc", "brier"))}


def model_diagnostics_log(p: Array, y: Array, _: None, weight: Array | None = None) -> Numbers:
    from model_diagnostics.scoring import LogLoss, decompose

    parts = decompose(y, p, weights=weight, scoring_function=LogLoss())
    return _parts(parts, ("mcb_log", "dsc_log", "unc_log", "log_loss"))


def _parts(parts: pl.DataFrame, names: tuple[str, ...]) -> Numbers:
    columns = ("miscalibration", "discrimination", "uncertainty", "score")
    return {name: parts[column].item() for name, column in zip(names, columns, strict=True)}


def netcal(p: Array, y: Array, bins: int) -> Numbers:
    from netcal.metrics import ACE, ECE, MCE

    return {name: measure(bins).measure(p, y) for name, measure in (("ece", ECE), ("mce", MCE), ("ace", ACE))}


def polarbearings(p: Array, y: Array, bins: int, weight: Array | None = None) -> Numbers:
    import polarbearings as pb

    table = pl.DataFrame({"p": p, "y": y, "w": np.ones(len(p)) if weight is None else weight})
    by = None if weight is None else "w"
    return table.select(
        pb.expected_calibration_error("y", "p", n_bins=bins, weight=by).alias("ece"),
        pb.maximum_calibration_error("y", "p", n_bins=bins, weight=by).alias("mce"),
        pb.brier_score("y", "p", weight=by).alias("brier"),
        pb.log_loss("y", "p", weight=by).alias("log_loss"),
    ).row(0, named=True)


def pycalib(p: Array, y: Array, bins: int) -> Numbers:
    from pycalib import metrics

    return {"ece": metrics.binary_ECE(y, p, bins=bins), "mce": metrics.binary_MCE(y, p, bins=bins)}


def pycalib_classwise(p: Array, y: Array, bins: int) -> Numbers:
    from pycalib import metrics

    return {
        "classwise_ece": metrics.classwise_ECE(y, p, bins=bins),
        "classwise_mce": metrics.classwise_MCE(y, p, bins=bins),
    }


def pycalib_confidence(p: Array, y: Array, bins: int) -> Numbers:
    from pycalib import metrics

    indicators = np.eye(p.shape[1])[y]
    return {
        "ece": metrics.conf_ECE(y, p, bins=bins),
        "mce": metrics.conf_MCE(indicators, p, bins=bins),
    }


def pycalib_full(p: Array, y: Array, bins: int) -> Numbers:
    from pycalib import metrics

    return {"full_ece": metrics.full_ECE(y, p, bins=bins)}


def relplot(p: Array, y: Array, bins: int) -> Numbers:
    from relplot.metrics import binnedECE

    return {"ece": binnedECE(p, y, nbins=bins)}


def scikit_learn(p: Array, y: Array, bins: int) -> Numbers:
    from sklearn.calibration import calibration_curve

    observed, predicted = calibration_curve(y, p, n_bins=bins)
    inner = np.linspace(0, 1, bins + 1)[1:-1]
    counts = np.bincount(np.searchsorted(inner, p))
    gaps = np.abs(observed - predicted)
    curve = {"ece": np.average(gaps, weights=counts[counts > 0]), "mce": gaps.max(), "ace": gaps.mean()}
    return {**curve, **scikit_learn_scores(p, y, bins)}


def scikit_learn_scores(p: Array, y: Array, _: int, weight: Array | None = None) -> Numbers:
    from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

    return {
        "brier": brier_score_loss(y, p, sample_weight=weight),
        "log_loss": log_loss(y, p, sample_weight=weight),
        "auc": roc_auc_score(y, p, sample_weight=weight),
    }


def scikit_learn_classes(p: Array, y: Array, _: None) -> Numbers:
    from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

    return {
        "accuracy": accuracy_score(y, p.argmax(axis=1)),
        "brier": brier_score_loss(y, p, scale_by_half=False),
        "log_loss": log_loss(y, p),
    }


def torchmetrics(p: Array, y: Array, bins: int) -> Numbers:
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    norms = {"ece": "l1", "rmsce": "l2", "mce": "max"}
    scores, labels = torch.tensor(p), torch.tensor(y)
    return {
        name: binary_calibration_error(scores, labels, n_bins=bins, norm=norm).item() for name, norm in norms.items()
    }


def torchmetrics_confidence(p: Array, y: Array, bins: int) -> Numbers:
    import torch
    from torchmetrics.functional.classification import multiclass_calibration_error

    norms = {"ece": "l1", "rmsce": "l2", "mce": "max"}
    scores, labels, count = torch.tensor(p), torch.tensor(y), p.shape[1]
    return {
        name: multiclass_calibration_error(scores, labels, num_classes=count, n_bins=bins, norm=norm).item()
        for name, norm in norms.items()
    }


def uncertainty_calibration(p: Array, y: Array, bins: int) -> Numbers:
    from calibration.utils import get_ece, get_equal_prob_bins, lower_bound_scaling_ce

    equal = {"num_bins": bins, "binning_scheme": get_equal_prob_bins, "mode": "top-label"}  # ignored for one column
    return {
        "ece": get_ece(p, y, num_bins=bins),
        "rmsce": lower_bound_scaling_ce(p, y, p=2, debias=False, **equal),
        "ece_debiased": lower_bound_scaling_ce(p, y, p=2, debias=True, **equal),
    }


def uncertainty_calibration_classwise(p: Array, y: Array, bins: int) -> Numbers:
    from calibration.utils import get_ece

    return {"classwise_ece": get_ece(p, y, num_bins=bins, mode="marginal")}


NEEDS_TORCH = ("netcal", "torchmetrics", "mcgrad")  # to be installed; so they are not in the extra `peers`
NO_BINS = (None,)
ONE_COLUMN = {
    "calzone": Peer("calzone", "calzone-tool", calzone),
    "mapie": Peer("mapie", "mapie", mapie),
    "mcgrad": Peer("mcgrad.metrics", "mcgrad", mcgrad, mcgrad),
    "model-diagnostics": Peer("model_diagnostics", "model-diagnostics", model_diagnostics, model_diagnostics, NO_BINS),
    "model-diagnostics.log": Peer(
        "model_diagnostics", "model-diagnostics", model_diagnostics_log, model_diagnostics_log, NO_BINS
    ),
    "netcal": Peer("netcal", "netcal", netcal),
    "polarbearings": Peer("polarbearings", "polarbearings", polarbearings, polarbearings),
    "pycalib": Peer("pycalib", "pycalib", pycalib),
    "relplot": Peer("relplot", "relplot", relplot),
    "scikit-learn": Peer("sklearn", "scikit-learn", scikit_learn, scikit_learn_scores),
    "torchmetrics": Peer("torchmetrics", "torchmetrics", torchmetrics, bins=(2, 5, 10)),
    "uncertainty-calibration": Peer("calibration", "uncertainty-calibration", uncertainty_calibration),
}
CLASSES = {
    "calzone.confidence": Peer("calzone", "calzone-tool", calzone_confidence),
    "mapie.confidence": Peer("mapie", "mapie", mapie_confidence),
    "mapie.classwise": Peer("mapie", "mapie", mapie_classwise),
    "netcal.confidence": Peer("netcal", "netcal", netcal),
    "pycalib.classwise": Peer("pycalib", "pycalib", pycalib_classwise),
    "pycalib.confidence": Peer("pycalib", "pycalib", pycalib_confidence),
    "pycalib.full": Peer("pycalib", "pycalib", pycalib_full),
    "scikit-learn.classes": Peer("sklearn", "scikit-learn", scikit_learn_classes, bins=NO_BINS),
    "torchmetrics.confidence": Peer("torchmetrics", "torchmetrics", torchmetrics_confidence, bins=(2, 5, 10)),
    "uncertainty-calibration.classwise": Peer(
        "calibration", "uncertainty-calibration", uncertainty_calibration_classwise
    ),
    "uncertainty-calibration.confidence": Peer("calibration", "uncertainty-calibration", uncertainty_calibration),
}
