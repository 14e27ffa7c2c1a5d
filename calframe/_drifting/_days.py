"""Sums of a table by segment, model and day; their periods, and verdicts on them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._cells import Groups, cells_plan, changes, read_groups
from calframe._drifting._clusters import summed_clusters
from calframe._errors import SegmentError
from calframe._periods import Every, Periods, longer, periods_of
from calframe._roles import Roles
from calframe._table import Table, model_alias, open_table
from calframe._testing._rates import ScoreSums
from calframe._testing._scatter import ClusterCells
from calframe._testing._summed import Sums, reaches
from calframe._typing import Floats, Ints
from calframe._verdicts import MIN_ROWS, Judged, Rules, judge
from calframe._words._numbers import plural

_FIRST_DAY, _LAST_DAY = 1_01_01, 9999_12_31
_FEWEST_PERIODS = 2  # of a length that was not asked for: one period has no course
_ALL_ROWS = "all rows"
_SUMS = {
    "n": "n",
    "weight": "w",
    "squared": "w2",
    "score": "wp",
    "label": "wy",
    "variance": "variance",
    "squared_variance": "w2_variance",
    "squared_score": "w2_score",
}
"""The terms of rows behind each of the sums."""
_TERMS = tuple(term for term in _SUMS.values() if term not in ("n", "w"))  # which every aggregate has


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Days:
    """Sums of groups: rows of one segment, model and day, or of a shorter time.

    Attributes
    ----------
    sums : ScoreSums
        The sums of each group.
    series : ndarray of int64
        The series, a segment of one model, of each group; they are numbered in the order of the keys.
    model : ndarray of int64
        The model of each group.
    models : tuple of str or None
        The score columns; None for a single one.
    segmented : bool
        Whether there are segment columns.
    periods : Periods
        The periods, with that of each group.
    zone : str or None
        The time zone of the days: the one asked for, or the one that the column's type carries.
    clusters : ClusterCells or None
        What the clusters of each group add up to, where rows are not independent.
    """

    sums: ScoreSums
    series: Ints
    model: Ints
    models: tuple[str | None, ...]
    segmented: bool
    periods: Periods
    zone: str | None
    clusters: ClusterCells | None

    def added(self, sample: Ints, families: Ints, rules: Rules) -> ScoreSums:
        """Add groups up to samples, with the effective rows that clusters leave.

        Parameters
        ----------
        sample : ndarray of int64
            The sample of each group; -1 for none.
        families : ndarray of int64
            The family of each sample: intervals are to hold together over those of a family that have rows enough.
        rules : Rules
            What they are judged by.
        """
        sums = self.sums.added(sample, len(families))
        if self.clusters is None:
            return sums
        found = self.clusters.samples(sample, len(families)).scatter(sums.gap)
        return sums.clustered(found, tails(sums, families, rules))


def tails(sums: Sums, families: Ints, rules: Rules) -> Floats:
    """Return what is left in a tail for each sample, if intervals hold together over those of a family."""
    judged = np.bincount(families, reaches(sums.rows, rules.min_rows))
    return rules.alpha / (2.0 * np.maximum(judged, 1.0))[families]


def read_days(data: Any, roles: Roles, *, every: Every | None, engine: Any) -> Days:
    """Sum a table up by segment and day where it is: no row is read."""
    table = open_table(data, roles, by_day=True)
    groups = read_groups(table, table.collect(cells_plan(table, _TERMS, bins=None), engine=engine), _TERMS)
    sums = ScoreSums(**{name: groups.cells.total(term) for name, term in _SUMS.items()})
    clusters = None if table.cluster is None else summed_clusters(table, groups, engine=engine)
    return days_of(replace(table, keys=table.keys[: len(roles.by)]), groups, sums, every=every, clusters=clusters)


def days_of(
    by: Table, groups: Groups, sums: ScoreSums, *, every: Every | None, clusters: ClusterCells | None = None
) -> Days:
    """Say of groups, which come sorted by segment, to what series and period they belong.

    Parameters
    ----------
    by : Table
        The opened table with the user's segment columns alone as keys.
    groups : Groups
        Its groups: segment, day and model.
    sums : ScoreSums
        Their sums.
    every : str or None
        Length of a period.
    clusters : ClusterCells, optional
        Their clusters.
    """
    model, models = _model(by, groups), by.roles.scores if by.roles.several else (None,)
    new = np.zeros(max(len(groups) - 1, 0), dtype=np.bool_)
    for key in by.keys:
        new |= changes(groups.keys.get_column(key.alias))
    segment = np.append(0, np.cumsum(new)).astype(np.int64)[: len(groups)]
    return Days(
        sums=sums,
        series=segment * len(models) + model,
        model=model,
        models=models,
        segmented=bool(by.keys),
        periods=_periods(by, groups, every),
        zone=_zone(by),
        clusters=clusters,
    )


def _model(by: Table, groups: Groups) -> Ints:
    """Return the number of the model of each group."""
    if not by.roles.several:
        return np.zeros(len(groups), dtype=np.int64)
    number = {model_alias(i): i for i in range(len(by.roles.scores))}
    return np.array([number[alias] for alias in groups.keys.get_column("_cf_model").to_list()], dtype=np.int64)


def _periods(by: Table, groups: Groups, every: Every | None) -> Periods:
    """Return the periods of the groups; of a table without a time column a single one of all rows."""
    if by.roles.time is None:
        index = np.zeros(len(groups), dtype=np.int64)
        return Periods(every=every or "1y", starts=(dt.date.min,), labels=(_ALL_ROWS,), index=index)
    column = groups.keys.get_column("_cf_day")
    dated = ~np.array(column.is_null().to_list(), dtype=np.bool_)
    days, place = np.unique(np.array(column.to_list(), dtype=np.float64)[dated].astype(np.int64), return_inverse=True)
    far = (days < _FIRST_DAY) | (days > _LAST_DAY)
    if far.any():
        rows = int(groups.n[dated][far[place]].sum())
        msg = (
            f"time column {by.roles.time!r} must hold days of the years 1 to 9999; {plural(rows, 'row')} lie outside, "
            f"such as one of year {days[far][-1] // 10_000}. Is its unit right?"
        )
        raise SegmentError(msg)
    found = _rolled_up(days.tolist(), np.bincount(place, groups.n[dated]) / _models(by), every)
    index = np.full(len(groups), -1)
    index[dated] = found.index[place]
    return replace(found, index=index)


def _models(by: Table) -> int:
    return len(by.roles.scores) if by.roles.several else 1


def _rolled_up(days: list[int], rows: Floats, every: Every | None) -> Periods:
    """Roll days up to periods; of a length that was not asked for most have rows enough, if two or more can.

    Parameters
    ----------
    days : list of int
        The days that have rows.
    rows : ndarray of float64
        How many rows each has.
    every : str or None
        The length asked for.
    """
    found = periods_of(days, every=every)
    while every is None and 2 * _judged(found, rows) < len(found.starts):
        further = longer(found.every)
        coarser = found if further is None else periods_of(days, every=further)
        if further is None or len(coarser.starts) < _FEWEST_PERIODS:
            break
        found = coarser
    return found


def _judged(periods: Periods, rows: Floats) -> int:
    return int((np.bincount(periods.index, rows) >= MIN_ROWS).sum())


def _zone(by: Table) -> str | None:
    if by.roles.time is None or by.roles.time_zone is not None:
        return by.roles.time_zone
    return getattr(nw.from_native(by.native).collect_schema()[by.roles.time], "time_zone", None)


def judge_sums(sums: ScoreSums, rules: Rules) -> Judged:
    """Judge sums; a period in which nothing, or everything, happens is news, so that no events are asked for."""
    return judge(
        rate=sums.rate,
        score=sums.mean_score,
        n=sums.rows,
        size=sums.plain_rows,
        rows=sums.n,
        tolerance=rules.tolerance,
        alpha=rules.alpha,
        correction=rules.correction,
        min_rows=rules.min_rows,
        min_events=0.0,
    )
