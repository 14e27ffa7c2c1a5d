"""When the monitor of each series sounded, as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import polars as pl

_DAY, _MINUTE = "%Y-%m-%d", "%Y-%m-%d %H:%M"
_NOW = "now"  # without a time column there is one batch


class Alarm(NamedTuple):
    """Since when the monitor of a series sounds (None: it does not), and after how many batches it was looked at."""

    since: str | None
    batches: int


def first_alarms(monitor: pl.DataFrame, keys: Sequence[str], *, zone: str | None) -> dict[tuple[Any, ...], Alarm]:
    """Return the alarm of each series by its keys.

    Times are those of the zone of the days: days where all are midnights, else to the minute.
    """
    text = _text(monitor.get_column("time"), zone).fill_null(_NOW)
    numbered = {f"key{i}": monitor.get_column(name) for i, name in enumerate(keys)}  # a name may be a pattern to polars
    frame = pl.DataFrame({"all": pl.repeat(0, len(text), eager=True), **numbered, "since": text})
    frame = frame.with_columns(since=pl.when(monitor.get_column("alarm")).then("since"))
    found = frame.group_by("all", *numbered, maintain_order=True).agg(pl.col("since").drop_nulls().first(), pl.len())
    return {row[1:-2]: Alarm(*row[-2:]) for row in found.iter_rows()}


def alarm_words(alarms: Collection[Alarm]) -> str:
    """Say in how many series the monitor sounded, and since when.

    Examples
    --------
    >>> alarm_words([Alarm("2013-07-01", 9)]), alarm_words([Alarm(None, 9)])
    ('monitor: alarm since 2013-07-01', 'monitor: no alarm')
    >>> alarm_words([Alarm("2013-07-01", 9), Alarm(None, 9)])
    'monitor: alarm in 1 of 2 series, the first since 2013-07-01'
    """
    since = first_of(alarms)
    sounded = sum(one.since is not None for one in alarms)
    when = "" if since in {None, _NOW} else f"since {since}"
    if len(alarms) == 1:
        return f"monitor: {f'alarm {when}'.strip() if sounded else 'no alarm'}"
    if not sounded:
        return f"monitor: no alarm in {len(alarms):,} series"
    return f"monitor: alarm in {sounded:,} of {len(alarms):,} series{f', the first {when}' if when else ''}"


def first_of(alarms: Collection[Alarm]) -> str | None:
    """Return the earliest time of some alarms."""
    return min((one.since for one in alarms if one.since is not None), default=None)


def _text(times: pl.Series, zone: str | None) -> pl.Series:
    kind = times.dtype
    if not isinstance(kind, pl.Datetime):
        return times.cast(pl.Date).dt.strftime(_DAY)
    if zone is not None:
        times = (times if kind.time_zone else times.dt.replace_time_zone("UTC")).dt.convert_time_zone(zone)
    wall = times.dt.replace_time_zone(None)
    return wall.dt.strftime(_DAY if (wall == wall.dt.truncate("1d")).all() else _MINUTE)
