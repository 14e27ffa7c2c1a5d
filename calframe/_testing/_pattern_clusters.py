"""What clusters of rows take off the numbers behind patterns: design effects of gaps, lines, fifths, extreme scores."""

from __future__ import annotations

from functools import partial

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import sizes_of
from calframe._kernels._cluster_sums import ClusterSums, Events, ends_left
from calframe._kernels._clusters import few_clusters
from calframe._kernels._intervals import rate_interval
from calframe._kernels._logistic import CitlFit, CoxFit, logit
from calframe._testing._clusters import Clustered, clustered_sum
from calframe._testing._draws import Drawing
from calframe._testing._found import FEW_ROWS
from calframe._testing._sums import Factor, sum_ratio
from calframe._typing import Bools, Floats, Ints

FEW_EXTREME = f"fewer than {FEW_ROWS} clusters: errors of extreme scores are not tested"
_MOST = 1e9  # by which a single cluster widens a variance


def rate_ends(rate: Floats, rows: Floats, clusters: ClusterSums | None, *, level: float) -> tuple[Floats, Floats]:
    """Return the interval of a rate, from rows or from what clusters leave of them."""
    return ends_left(partial(rate_interval, rate), rows, clusters, level=level)


def shared(rows: Clustered, value: Floats, place: Ints | None = None, places: int | None = None) -> ClusterSums:
    """Return what clusters share of the values of rows, segment by segment or place by place; below 0 is none."""
    of = _segment(rows) if place is None else place
    count = len(rows.tally) if places is None else places
    weight, of = np.where(of >= 0, rows.weight, 0.0), np.maximum(of, 0)
    events = Events(value=value, weight=np.ones_like(weight), together=weight, alone=weight, counted=weight)
    return ClusterSums.running(rows.cluster * count + of, None, of, events, np.arange(count), count)


def left_of_gap(rows: Clustered, score: Floats) -> ClusterSums:
    """Return what clusters share of the gap: of labels, less what their scores lie above the mean score."""
    return shared(rows, rows.label - rows.score + score[_segment(rows)])


def widened(clusters: ClusterSums, mean: Floats, *, level: float) -> Floats:
    """Return by how much clusters widen a variance: the design effect about a mean, and what few of them cost."""
    return np.minimum(clusters.effect(mean) * few_clusters(clusters.count, (1.0 - level) / 2.0), _MOST)


def line_effects(rows: Clustered, fit: CoxFit, large: CitlFit, *, level: float, floor: float) -> dict[str, Floats]:
    """Return by how much clusters widen the variances of intercept, slope and calibration-in-the-large.

    Of the influence that each row has on them: its residual at the fit, times what the information makes of its logit.
    """
    segment = _segment(rows)
    z = logit(rows.score, floor)
    line = special.expit(fit.intercept[segment] + fit.slope[segment] * z)
    one, first, second = (
        np.bincount(segment, rows.weight * line * (1.0 - line) * z**power, minlength=len(rows.tally))[segment]
        for power in range(3)
    )
    level_only = special.expit(large.citl[segment] + z)
    influence = {
        "intercept": (second - first * z) * (rows.label - line),
        "slope": (one * z - first) * (rows.label - line),
        "citl": rows.label - level_only,
    }
    zero = np.zeros(len(rows.tally))
    return {name: widened(shared(rows, np.nan_to_num(values)), zero, level=level) for name, values in influence.items()}


def left_of_parts(rows: Clustered, sizes: Floats, score: Floats) -> ClusterSums:
    """Return what clusters share of the gap of each part of the scores, from its number of rows and mean score."""
    place = np.repeat(np.arange(len(sizes)), np.rint(sizes).astype(np.int64))
    return shared(rows, rows.label - rows.score + score[place], place, len(sizes))


def left_of_extremes(rows: Clustered, sides: Factor) -> ClusterSums:
    """Return what clusters share of the errors of extreme scores."""
    side = sides(rows.score)
    return shared(rows, np.where(side > 0.0, rows.label, 1.0 - rows.label), np.where(side != 0.0, _segment(rows), -1))


def extreme_test(rows: Clustered, sides: Factor, many: Bools, drawing: Drawing) -> dict[str, Floats]:
    """Return the p-value of the errors of extreme scores, that which corrections start from, and the least there is.

    NaN where there are not many of them, or fewer than 25 clusters of rows, which is told.
    """
    names = ("pvalue", "least", "floor")
    values = {f"{name}_extreme": np.full(len(many), np.nan) for name in names}
    few = many & (rows.clusters() < FEW_ROWS)
    tested = many & ~few
    if tested.any():
        found = clustered_sum(rows.only(tested), sides, partial(sum_ratio, factor=sides), drawing)
        for name in names:
            values[f"{name}_extreme"][tested] = getattr(found, name)
    return values | {
        "floor_extreme": np.nan_to_num(values["floor_extreme"]),
        "few_clusters": few.astype(np.float64),
    }


def _segment(rows: Clustered) -> Ints:
    return np.repeat(rows.tally.segment, sizes_of(rows.cells, len(rows.score)))
