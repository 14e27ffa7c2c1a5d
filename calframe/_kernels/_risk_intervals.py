"""Intervals of the area under the risk-coverage curve, from its influence function."""

from __future__ import annotations

import numpy as np

from calframe._kernels._binned import effective_rows
from calframe._kernels._intervals import normal_quantile
from calframe._kernels._selective import aurc, excess_aurc
from calframe._kernels._tally import Tally
from calframe._typing import Floats

_LEAST_SHARE = 1e-300  # weights of very different size leave less of the most confident rows than rounding does


def aurc_interval(tally: Tally, *, level: float) -> tuple[Floats, Floats]:
    """Return an interval for `aurc` per segment; `tally` holds confidences, its positives are right predictions.

    With U the share of rows that are at least as confident, ``aurc = E[error (-ln U)]`` for many rows. A row adds
    ``error (-ln U) - mean_j(error_j / U_j, j less confident) + risk - aurc`` to the estimate (its influence), and the
    interval is the normal one of such a mean, after adding ``z^2 / 2`` wrong and as many right rows of any confidence:
    with few errors the plain one is far too short.

    Examples
    --------
    Half of the rows are wrong at every confidence, so the risk is one half whatever is kept:

    >>> hundred = np.full(20, 100.0)
    >>> tally = Tally.of_counts(np.array([0]), np.linspace(0.5, 1, 20), hundred, hundred / 2)
    >>> low, high = aurc_interval(tally, level=0.9)
    >>> bool(0.45 < low[0] < 0.5 < high[0] < 0.55)
    True
    """
    wrong, right = _influences(tally)
    return _interval(tally, aurc(tally), wrong, right, level)


def excess_aurc_interval(tally: Tally, *, level: float) -> tuple[Floats, Floats]:
    """Return an interval for `excess_aurc` per segment: as `aurc_interval`, less the influence of the risk itself.

    A perfect ranking of predictions with the risk r has the area ``r + (1 - r) ln(1 - r)``.
    """
    wrong, right = _influences(tally)
    weight = tally.total(tally.weight)
    risk = 1.0 - tally.total(tally.positive) / weight
    with np.errstate(divide="ignore"):
        slope = -np.log(np.maximum(1.0 - risk, 1.0 / (weight + 1.0)))
    wrong = wrong - tally.spread(slope * (1.0 - risk))
    right = right + tally.spread(slope * risk)
    return _interval(tally, excess_aurc(tally), wrong, right, level)


def _influences(tally: Tally) -> tuple[Floats, Floats]:
    """Return the influence of a wrong and of a right row at each confidence."""
    total = tally.spread(tally.total(tally.weight))
    errors = tally.negative
    share = np.maximum((total - tally.running(tally.weight) + tally.weight / 2.0) / total, _LEAST_SHARE)
    below = tally.running(errors / share) - errors / share / 2.0
    common = tally.spread(tally.total(errors)) / total - below / total - tally.spread(aurc(tally))
    return common - np.log(share), common


def _interval(tally: Tally, value: Floats, wrong: Floats, right: Floats, level: float) -> tuple[Floats, Floats]:
    z = normal_quantile(level)
    squared_wrong = np.maximum(tally.squared - tally.squared_positive, 0.0)
    variance = tally.total(squared_wrong * wrong**2 + tally.squared_positive * right**2)
    rows = effective_rows(tally.total(tally.weight), tally.total(tally.squared))
    spread = variance / tally.total(tally.weight) ** 2 * rows  # of one row
    added = z * z
    centre = (rows * value + added / 2.0) / (rows + added)
    second = (rows * (spread + value**2) + added) / (rows + added)  # -ln U has mean 1 and mean square 2
    half = z * np.sqrt(np.maximum(second - centre**2, 0.0) / (rows + added))
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
