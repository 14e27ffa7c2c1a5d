"""The design effect of each metric that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._cells import Groups
from calframe._effects._rows import BY_SCORE, of_vectors, score_effects
from calframe._effects._sums import effects_of_sums
from calframe._measures import METRICS
from calframe._registry import Metric, Options
from calframe._table import Table
from calframe._typing import Floats

_BY_RATE = frozenset({"uncertainty", "uncertainty_corrected", "unc", "unc_log"})  # functions of the rate alone


def allows_for_clusters(metric: Metric) -> bool:
    """Tell whether the interval of a metric of one column of scores allows for clusters."""
    known = metric.reads == "sums" or metric.name in _BY_RATE | BY_SCORE
    return metric.interval is not None and known


def effects_of(
    table: Table, rows: nw.LazyFrame[Any], groups: Groups, asked: Sequence[Metric], options: Options, *, level: float
) -> dict[str, Floats]:
    """Return by how much clusters divide the effective rows of each metric's interval, infinite for a single cluster.

    Metrics whose intervals cannot allow for clusters are not among them; those of whole score vectors are NaN, for
    `vector_effects` to replace.

    Parameters
    ----------
    table : Table
        The opened table.
    rows : narwhals.LazyFrame
        Its clean rows.
    groups : Groups
        Its segments.
    asked : sequence of Metric
        The metrics.
    options : Options
        What the user has set.
    level : float
        Confidence level of the intervals, for few clusters.
    """
    asked, tail = [metric for metric in asked if metric.interval is not None], (1.0 - level) / 2.0
    summed = {metric.name: metric for metric in asked if metric.reads == "sums"}
    by_rate = [metric.name for metric in asked if metric.name in _BY_RATE]
    if by_rate:
        summed.setdefault("rate", METRICS["rate"])
    found = effects_of_sums(table, rows, groups, list(summed.values()), options, tail) if summed else {}
    found |= {name: found["rate"] for name in by_rate}  # noqa: C420  without one there need be no rate
    by_score = [metric.name for metric in asked if metric.name in BY_SCORE]
    if by_score:
        found |= score_effects(table, rows, groups, by_score, options, tail)
    return found | {metric.name: np.full(len(groups), np.nan) for metric in asked if of_vectors(metric)}
