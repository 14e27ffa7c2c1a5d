"""What each metric is in a population. A metric with an interval that is not here is not simulated.

To add a metric that calframe itself measures, write one line, ``"auc": measured("auc")``; it takes the value of the
population as a weighted table. Where a formula is short, write the formula: it checks the value, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

import calframe
from tests.simulations._worlds import BINS, Floats, Population

_MANY = 1e12  # rows of the table that stands for the population: a mean over ranks depends on how many there are
_LEAST = 1e-20  # rows: fewer do not count, and their square would be no number any more

TrueValue = Callable[[Population], float]


def measured(name: str) -> TrueValue:
    """Return what calframe measures in the population as a weighted table of two labels at each score."""
    return partial(_measured, name)


def _measured(name: str, world: Population) -> float:
    table = pl.DataFrame(
        {
            "p": np.tile(world.score, 2),
            "y": np.repeat([1, 0], len(world.score)),
            "w": np.concatenate([world.share * world.chance, world.share * (1 - world.chance)]),
        }
    )
    table = table.with_columns(pl.col("w") * _MANY).filter(pl.col("w") > _LEAST)
    found = calframe.metrics(table, label="y", score="p", weight="w", metrics=name, bins=BINS)
    return float(found[name].item())


def _rate(world: Population) -> float:
    return world.mean(world.chance)


def _mean_score(world: Population) -> float:
    return world.mean(world.score)


def _brier(world: Population) -> float:
    return world.mean(world.chance * (1 - world.score) ** 2 + (1 - world.chance) * world.score**2)


def _log_loss(world: Population) -> float:
    hit, miss = special.xlogy(world.chance, world.score), special.xlog1py(1 - world.chance, -world.score)
    return -world.mean(hit + miss)


def _accuracy(world: Population) -> float:
    return world.mean(np.where(world.score >= 0.5, world.chance, 1 - world.chance))


def _uncertainty(world: Population) -> float:
    return _rate(world) * (1 - _rate(world))


def _gaps(world: Population) -> Floats:
    return np.abs(world.by_bin(world.score - world.chance))


def _reliability(world: Population) -> float:
    return float(world.bin_share @ _gaps(world) ** 2)


def _resolution(world: Population) -> float:
    return float(world.bin_share @ (world.by_bin(world.chance) - _rate(world)) ** 2)


TRUE_VALUES: Mapping[str, TrueValue] = {
    "rate": _rate,
    "mean_score": _mean_score,
    "gap": lambda world: _mean_score(world) - _rate(world),
    "ratio": lambda world: _mean_score(world) / _rate(world),
    "accuracy": _accuracy,
    "brier": _brier,
    "brier_skill": lambda world: 1 - _brier(world) / _uncertainty(world),
    "log_loss": _log_loss,
    "sharpness": lambda world: world.mean((world.score - _mean_score(world)) ** 2),
    "unc": _uncertainty,
    "unc_log": lambda world: float(special.entr(_rate(world)) + special.entr(1 - _rate(world))),
    "ece": lambda world: float(world.bin_share @ _gaps(world)),
    "rmsce": lambda world: _reliability(world) ** 0.5,
    "ece_debiased": lambda world: _reliability(world) ** 0.5,
    "reliability": _reliability,
    "resolution": _resolution,
    "uncertainty": _uncertainty,
    "reliability_corrected": _reliability,
    "resolution_corrected": _resolution,
    "uncertainty_corrected": _uncertainty,
    "confidence_ece": measured("confidence_ece"),
    "classwise_ece": measured("classwise_ece"),
    "toplabel_ece": measured("toplabel_ece"),
    "auc": measured("auc"),
    "smece": measured("smece"),
    "aurc": measured("aurc"),
    "eaurc": measured("eaurc"),
    "ecce_r": measured("ecce_r"),
    "ecce_mad": measured("ecce_mad"),
    "slope": measured("slope"),
    "intercept": measured("intercept"),
    "citl": measured("citl"),
}

# The mean over "the non-empty bins" has no value in a population, where every bin has some share, however small: what
# an interval must hold is the mean over the bins that its own sample fell into. Second argument: which bins those are.
TRUE_VALUES_OF_SAMPLES: Mapping[str, Callable[[Population, NDArray[np.bool_]], Floats]] = {
    "ace": lambda world, seen: (_gaps(world) * seen).sum(axis=1) / seen.sum(axis=1),
}
