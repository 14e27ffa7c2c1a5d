"""The name that is meant by one that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_FEWEST_LETTERS = 3  # of the beginning of a name

# What other tools and texts call it, and our name for it.
_MEANT = {
    "roc": "auc",
    "auroc": "auc",
    "rocauc": "auc",
    "c_index": "auc",
    "c_statistic": "auc",
    "concordance": "auc",
    "nll": "log_loss",
    "bce": "log_loss",
    "logloss": "log_loss",
    "crossentropy": "log_loss",
    "cross_entropy": "log_loss",
    "binary_cross_entropy": "log_loss",
    "log_score": "log_loss",
    "mse": "brier",
    "mean_squared_error": "brier",
    "expected_calibration_error": "ece",
    "maximum_calibration_error": "mce",
    "smooth_ece": "smece",
    "integrated_calibration_index": "ici",
    "calibration_in_the_large": "citl",
    "bias": "gap",
    "prevalence": "rate",
    "equal": "uniform",
    "equal_width": "uniform",
    "width": "uniform",
    "fixed": "uniform",
    "equal_mass": "quantile",
    "equal_frequency": "quantile",
    "equal_size": "quantile",
    "adaptive": "quantile",
    "histogram": "binned",
    "bins": "binned",
    "corp": "isotonic",
    "pava": "isotonic",
    "smooth": "kernel",
    "lowess": "loess",
    "log_odds": "logit",
    "top": "confidence",
    "toplabel": "confidence",
    "top_label": "confidence",
    "class_wise": "classwise",
    "per_class": "classwise",
    "one_vs_rest": "classwise",
    "exact": "clopper_pearson",
    "score": "wilson",
    "skip": "drop",
    "ignore": "drop",
    "omit": "drop",
    "error": "raise",
    "day": "1d",
    "daily": "1d",
    "week": "1w",
    "weekly": "1w",
    "month": "1mo",
    "monthly": "1mo",
    "quarter": "1q",
    "quarterly": "1q",
    "year": "1y",
    "yearly": "1y",
}


def nearest(given: str, known: Iterable[str]) -> str | None:
    """Return the known name that is meant: by a synonym, by whole words, by its beginning, or else by its letters.

    Examples
    --------
    >>> names = ["auc", "brier", "brier_skill", "ece", "ece_debiased", "mean_score"]
    >>> [nearest(given, names) for given in ("ROC", "brier_score", "debiased ece", "bri", "eec", "what")]
    ['auc', 'brier', 'ece_debiased', 'brier', 'ece', None]
    """
    names = sorted(known, key=lambda name: (len(name), name))
    plain = given.strip().casefold().replace("-", "_").replace(" ", "_")
    if plain in names or _MEANT.get(plain) in names:
        return plain if plain in names else _MEANT[plain]
    words = set(plain.split("_"))
    held = [name for name in names if words.issuperset(name.split("_"))]
    if held:
        return held[-1]
    begun = [name for name in names if len(plain) >= _FEWEST_LETTERS and name.startswith(plain)]
    return next(iter(begun or difflib.get_close_matches(plain, names, n=1)), None)
