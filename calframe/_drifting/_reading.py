"""A table read by time: which rows belong to which segment, model and period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np

from calframe._binning import Bins
from calframe._cells import Groups, cells_plan, read_groups
from calframe._closing import closed_frame, keys_as_text
from calframe._columns import check_columns
from calframe._drifting._clusters import Clusters, read_clusters
from calframe._drifting._days import Days, days_of
from calframe._errors import ArgumentError, CalframeError, SegmentError
from calframe._kernels._tally import Tally
from calframe._periods import Every
from calframe._reading import read_rows, read_tallies
from calframe._roles import Roles
from calframe._source import opened
from calframe._table import Table, open_table, view_of
from calframe._testing._gathering import gathered
from calframe._testing._rates import ScoreSums
from calframe._testing._shares import ClusterParts
from calframe._typing import Bools, Ints
from calframe._words._numbers import plural

Batch: TypeAlias = Literal["time", "day"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """A table by segment, model and time.

    Attributes
    ----------
    table : Table
        The opened table, with the time among its keys.
    by : Table
        The same with the user's segment columns alone, to give results their keys.
    groups : Groups
        Its groups: segment, time and model.
    tally : Tally
        The scores of the groups that have rows.
    present : ndarray of int64
        The groups of its segments.
    days : Days
        The sums of the groups, and the series and the period of each.
    largest_weight : float
        The largest weight of a row; 1 without weights, and where they count rows.
    clusters : Clusters or None
        The rows of the groups by cluster, where rows are not independent.
    """

    table: Table
    by: Table
    groups: Groups
    tally: Tally
    present: Ints
    days: Days
    largest_weight: float
    clusters: Clusters | None

    @property
    def first_group(self) -> Ints:
        """A group of each series."""
        return np.unique(self.days.series, return_index=True)[1]

    @property
    def model(self) -> Ints:
        """The model of each series."""
        return self.days.model[self.first_group]

    @property
    def narrow(self) -> Bools:
        """Whether the scores of each series are float32."""
        narrow = np.asarray(self.table.narrow)
        return narrow[self.model if len(narrow) > 1 else np.zeros_like(self.model)]

    def names(self) -> list[tuple[str | None, ...]]:
        """Return segment and model of each series as text."""
        columns = [list(keys_as_text(self.by, self.groups, key)) for key in self.by.keys]
        return [(*(column[i] for column in columns), str(self.days.model[i])) for i in self.first_group.tolist()]

    def frame(self, columns: dict[str, Any], series: Ints) -> nw.DataFrame[Any]:
        """Return columns behind the keys and the model of some series, in the user's library."""
        return closed_frame(self.by, self.groups, columns, segment=self.first_group[series])


def read(
    data: Any,
    roles: Roles,
    *,
    every: Every | None,
    batch: Batch,
    reserved: Sequence[str],
    engine: Any,
    bins: Bins | None = None,
) -> Reading:
    """Read a table once, by segment, model and time; every score must lie in the bins, where there are any."""
    if roles.time in roles.by:
        msg = f"by= names the time column {roles.time!r}, which makes the periods; leave it out of by."
        raise ArgumentError(msg)
    check_columns(opened(data).lazy(), roles, reserved)
    by_time = roles.time is not None and batch == "time"
    keyed = replace(roles, by=(*roles.by, str(roles.time))) if by_time else roles
    table = _opened(data, keyed, by_day=roles.time is not None, bins=bins)
    rows = read_rows(table, engine=engine)
    groups = read_groups(table, table.collect(cells_plan(table, (), bins=None, rows=rows)), ())
    if by_time:
        _check_times(groups, table.keys[len(roles.by)].alias, str(roles.time))
    found = list(read_tallies(table, rows, groups))
    tally = Tally.joined([tally for _, tally in found]) if found else _nothing()
    present = np.concatenate([segments for segments, _ in found]) if found else np.zeros(0, dtype=np.int64)
    by = replace(table, keys=table.keys[: len(roles.by)])
    # from the sorted scores: the last digits of the engine's sums depend on the order of adding
    sums = ScoreSums.of_tally(tally).added(present, len(groups))
    clusters = None if table.cluster is None or not len(tally) else read_clusters(table, rows, groups)
    return Reading(
        table=table,
        by=by,
        groups=groups,
        tally=tally,
        present=present,
        days=days_of(by, groups, sums, every=every, clusters=None if clusters is None else clusters.cells),
        clusters=clusters,
        largest_weight=_largest_weight(table, rows),
    )


def _check_times(groups: Groups, alias: str, name: str) -> None:
    """Raise if a time is so far away that it has no day."""
    times, days = (groups.keys.get_column(one).is_null().to_list() for one in (alias, "_cf_day"))
    lost = [day and not time for time, day in zip(times, days, strict=True)]
    if any(lost):
        rows = plural(int(groups.n[lost].sum()), "row")
        msg = f"time column {name!r} must hold days of the years 1 to 9999; {rows} lie outside. Is its unit right?"
        raise SegmentError(msg)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Second:
    """A second table that the first one is compared with.

    Attributes
    ----------
    tally : Tally
        Its scores, in segments.
    series : ndarray of int64
        The series of the first table that each of them is for.
    parts : ClusterParts or None
        Its rows by cluster, where they are not independent.
    """

    tally: Tally
    series: Ints
    parts: ClusterParts | None


def read_second(data: Any, roles: Roles, reading: Reading, *, engine: Any) -> Second:
    """Read a second table, and find the series of the first one that each of its segments is for."""
    untimed = replace(roles, time=None, time_zone=None)
    try:
        second = read(data, untimed, every=None, batch="day", reserved=(), engine=engine)
    except CalframeError as error:
        msg = f"the second table, reference=: {error}"
        raise type(error)(msg) from error
    place = {name: i for i, name in enumerate(reading.names())}
    known = np.array([place.get(name, -1) for name in second.names()], dtype=np.int64)
    of_group = known[second.days.series]
    target = of_group[second.present]
    tally, series = gathered(second.tally, np.flatnonzero(target >= 0), target[target >= 0])
    clusters = second.clusters
    parts = None if clusters is None else clusters.parts(series, np.arange(len(series)), of_group)
    return Second(tally=tally, series=series, parts=parts)


def _opened(data: Any, roles: Roles, *, by_day: bool, bins: Bins | None) -> Table:
    view = view_of(roles, None)
    if view == "vectors":
        msg = (
            "drift follows one probability; for several classes call it once for each, with score= the column of the "
            "class and positive= the class."
        )
        raise ArgumentError(msg)
    return open_table(data, roles, by_day=by_day, bins=bins, view=view)


def _nothing() -> Tally:
    nothing = np.zeros(0)
    return Tally.of_counts(np.zeros(0, dtype=np.int64), nothing, nothing, nothing)


def _largest_weight(table: Table, rows: nw.LazyFrame[Any]) -> float:
    if not table.weighted or table.roles.weight_kind == "frequency":
        return 1.0
    found = table.collect(rows.select(nw.col("_cf_w").max())).get_column("_cf_w").to_list()[0]
    return float(found or 1.0)
