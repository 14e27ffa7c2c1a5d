"""What calibration maps gain: how much they take off the loss of each row, and the interval of its mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import polars as pl

from calframe._cells import cells_plan, read_groups
from calframe._classes import class_column
from calframe._kernels import _special as special
from calframe._kernels._binned import effective_rows, ratio
from calframe._kernels._intervals import difference_interval
from calframe._reading import read_rows, segment_codes
from calframe._roles import Roles
from calframe._table import Table, open_table, view_of
from calframe._typing import Bools, Floats, Ints

Loss: TypeAlias = Literal["brier", "log_loss"]

_ROUNDING = 1e-9  # of a number of clusters: sums of weights may leave ten equal ones a little below 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """What happened in the rows that are judged, and what their scores lost by it.

    Attributes
    ----------
    judged : ndarray of int64
        The rows of the table that are judged, known labels or not.
    row : ndarray of int64
        Those of them with a known label; one value each in what follows.
    happened : ndarray
        1 where the label is positive and 0 elsewhere; of several classes the place of the true one.
    loss : ndarray
        The loss of each row before any map.
    weight, squared : ndarray
        Its weight, and that as variances sum it.
    segment, segments : ndarray of int64, int
        Its segment, and their number; some may have no row.
    group : ndarray of int64 or None
        What tells which rows are not independent.
    kind : {"brier", "log_loss"}
        The loss.
    """

    judged: Ints
    row: Ints
    happened: Floats
    loss: Floats
    weight: Floats
    squared: Floats
    segment: Ints
    segments: int
    group: Ints | None
    kind: Loss

    @classmethod
    def of_table(cls, data: Any, roles: Roles, judged: Bools, *, kind: Loss, group: Ints | None) -> Self:
        """Read the judged rows of a table that is in memory."""
        table = open_table(data, roles, view=view_of(roles, None))
        plan = read_rows(table)
        groups = read_groups(table, table.collect(cells_plan(table, (), bins=None, rows=plan)), ())
        rows = table.collect(plan).to_polars()
        weight = rows["_cf_w"].to_numpy() if table.weighted else np.ones(len(rows))
        happened = rows["_cf_y"].to_numpy()
        present, segment = np.unique(segment_codes(rows, table, groups)[judged], return_inverse=True)
        used = rows["_cf_n"].to_numpy()[judged] == 1.0
        row = np.flatnonzero(judged)[used]
        return cls(
            judged=np.flatnonzero(judged),
            row=row,
            happened=happened[row],
            loss=_loss_before(table, rows, happened, kind)[row],
            weight=weight[row],
            squared=(weight if roles.weight_kind == "frequency" else weight * weight)[row],
            segment=segment[used],
            segments=len(present),
            group=None if group is None else group[row],
            kind=kind,
        )

    def as_one(self) -> Self:
        """Return the same rows as one segment."""
        return replace(self, segment=np.zeros_like(self.segment), segments=1)

    def gain(self, columns: Sequence[Floats]) -> Floats:
        """Return what calibrated scores take off the loss of each row."""
        scores = [column[self.row] for column in columns]
        with np.errstate(invalid="ignore"):  # a log loss that is infinite before and after
            found: Floats = self.loss - _losses(self.happened, np.column_stack(scores), self.kind)
        return found

    def mean(self, values: Floats) -> Floats:
        """Return the weighted mean of each segment."""
        return ratio(self.sum(self.weight * values), self.sum(self.weight))

    def sum(self, values: Floats) -> Floats:
        """Return the sum of each segment."""
        return _summed(self.segment, values, self.segments)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clusters:
    """Rows that are not independent: those of one group in one segment.

    Attributes
    ----------
    of_row, segment : ndarray of int64
        The cluster of each row, and the segment of each cluster.
    rows : Outcomes
        The rows.

    References
    ----------
    Kish, L. (1965). Survey Sampling. Wiley. For (sum W)^2 / sum W^2.

    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73,
    13-22. https://doi.org/10.1093/biomet/73.1.13

    Cameron, A. C. and Miller, D. L. (2015). A practitioner's guide to cluster-robust inference. Journal of Human
    Resources 50, 317-372. https://doi.org/10.3368/jhr.50.2.317 For the factor G / (G - 1) of the variance, and
    Student's t.
    """

    of_row: Ints
    segment: Ints
    rows: Outcomes

    @classmethod
    def of_rows(cls, rows: Outcomes) -> Self | None:
        """Find the clusters of rows; None where rows are taken as independent."""
        if rows.group is None:
            return None
        groups = int(rows.group.max(initial=0)) + 1
        found, of_row = np.unique(rows.segment * groups + rows.group, return_inverse=True)
        return cls(of_row=of_row, segment=found // groups, rows=rows)

    def sum(self, values: Floats) -> Floats:
        """Return the sum of each cluster."""
        return _summed(self.of_row, values, len(self.segment))

    def squares(self, values: Floats) -> Floats:
        """Return the sum over the clusters of each segment of their squared sums."""
        return _summed(self.segment, self.sum(values) ** 2, self.rows.segments)

    def count(self, chosen: Bools) -> Ints:
        """Return how many clusters of each segment have any of the rows chosen."""
        present = self.segment[self.sum(chosen.astype(np.float64)) > 0.0]
        return np.bincount(present, minlength=self.rows.segments)

    def effective(self) -> Floats:
        """Return Kish's effective number of clusters: so many of equal weight would tell as much."""
        weight = self.rows.weight
        return effective_rows(self.rows.sum(weight), self.squares(weight))

    def enough(self, fewest: int, *, several: bool) -> Bools:
        """Return which segments have that many clusters of equal weight, with either outcome if there are two."""
        happened = self.rows.happened
        chosen = [happened >= 0.0] if several else [happened == 1.0, happened == 0.0]
        number = np.min([self.count(each) for each in chosen], axis=0)
        enough: Bools = (number >= (2 * fewest if several else fewest)) & (self.effective() >= fewest - _ROUNDING)
        return enough

    def interval(self, gain: Floats, mean: Floats, *, level: float) -> tuple[Floats, Floats]:
        """Return the interval of the mean gain of each segment, that of Student's t; NaN for a single cluster."""
        weight, total = self.rows.weight, self.rows.sum(self.rows.weight)
        number = self.count(np.ones(len(gain), dtype=bool))
        with np.errstate(all="ignore"):
            variance = self.squares(weight * (gain - mean[self.rows.segment])) / total**2 * number / (number - 1.0)
            half = special.stdtrit(self.effective() - 1.0, 0.5 + level / 2.0) * np.sqrt(variance)
        half = np.where(number > 1, half, np.nan)
        return mean - half, mean + half


def improvement(
    rows: Outcomes, clusters: Clusters | None, gain: Floats, *, level: float
) -> tuple[Floats, Floats, Floats]:
    """Return the mean gain of each segment, and the ends of its interval."""
    mean = rows.mean(gain)
    if clusters is not None:
        low, high = clusters.interval(gain, mean, level=level)
    else:
        with np.errstate(invalid="ignore"):
            second, number = rows.mean(gain * gain), effective_rows(rows.sum(rows.weight), rows.sum(rows.squared))
        low, high = difference_interval(mean, second, number, level=level)
    certain = np.isinf(mean)
    return mean, np.where(certain, mean, low), np.where(certain, mean, high)


def _summed(place: Ints, values: Floats, places: int) -> Floats:
    """Return the sum of the values of each place."""
    return np.bincount(place, weights=values, minlength=places).astype(np.float64)


def _loss_before(table: Table, rows: pl.DataFrame, happened: Floats, kind: Loss) -> Floats:
    """Return the loss of the scores of a table; the log loss of logits is not that of rounded probabilities."""
    if kind == "log_loss" and table.roles.link == "logit":
        if table.view == "vectors":
            return rows["_cf_loss"].to_numpy()
        logit = rows["_cf_z"].to_numpy()
        against: Floats = np.logaddexp(0.0, np.where(happened == 1.0, -logit, logit))
        return against
    names = [class_column(i) for i in range(len(table.roles.classes))] if table.view == "vectors" else ["_cf_p"]
    return _losses(happened, rows.select(names).to_numpy(), kind)


def _losses(happened: Floats, scores: Floats, kind: Loss) -> Floats:
    """Return the loss of each row: of one column of scores that of the positive class, of several over all classes."""
    if scores.shape[1] > 1:
        place = happened.astype(np.int64)[:, None]
        if kind == "brier":
            squares: Floats = ((scores - (np.arange(scores.shape[1]) == place)) ** 2).sum(axis=1)
            return squares
        chance = np.take_along_axis(scores, place, axis=1)[:, 0]
    elif kind == "brier":
        square: Floats = (scores[:, 0] - happened) ** 2
        return square
    else:
        chance = np.where(happened == 1.0, scores[:, 0], 1.0 - scores[:, 0])
    with np.errstate(divide="ignore", invalid="ignore"):
        surprise: Floats = -np.log(chance)
    return surprise
