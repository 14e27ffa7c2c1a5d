"""When the monitor of each series sounded, as text."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import polars as pl

from calframe._words._numbers import plural

_DAY, _MINUTE = "%Y-%m-%d", "%Y-%m-%d %H:%M"
_NOW = "now"  # without a time column there is one batch
IMPOSSIBLE = "a row with score 0 or 1 was wrong"  # what makes evidence infinite


class Alarm(NamedTuple):
    """The alarm of the monitor of a series.

    Attributes
    ----------
    since : str or None
        Since when it sounds; None: it does not.
    batches : int
        After how many batches it was looked at.
    infinite : bool
        Whether it sounds because a label was impossible by its score: one such row is infinite evidence.
    clusters : int or None
        On how many clusters it bets, where rows are in clusters.
    """

    since: str | None
    batches: int
    infinite: bool = False
    clusters: int | None = None


def first_alarms(monitor: pl.DataFrame, keys: Sequence[str], *, zone: str | None) -> dict[tuple[Any, ...], Alarm]:
    """Return the alarm of each series by its keys.

    Times are those of the zone of the days: days where all are midnights, else to the minute.
    """
    text = _text(monitor.get_column("time"), zone).fill_null(_NOW)
    numbered = {f"key{i}": monitor.get_column(name) for i, name in enumerate(keys)}  # a name may be a pattern to polars
    frame = pl.DataFrame({"all": pl.repeat(0, len(text), eager=True), **numbered, "since": text})
    sounds, endless = monitor.get_column("alarm"), monitor.get_column("log_e_value") == math.inf
    frame = frame.with_columns(since=pl.when(sounds).then("since"), infinite=pl.when(sounds).then(endless))
    first = pl.col("since", "infinite").drop_nulls().first()
    frame = frame.with_columns(clusters=monitor["n_clusters"] if "n_clusters" in monitor.columns else pl.lit(None))
    total = pl.when(pl.col("clusters").is_not_null().any()).then(pl.col("clusters").sum())
    found = frame.group_by("all", *numbered, maintain_order=True).agg(first, pl.len().alias("batches"), total)
    return {
        row[1:-4]: Alarm(since, batches, bool(infinite), clusters)
        for row in found.iter_rows()
        for since, infinite, batches, clusters in [row[-4:]]
    }


def alarm_words(alarms: Collection[Alarm], *, clip: str = "clip=") -> str:
    """Say in how many series the monitor sounded, since when, and if a single row was enough for that.

    Parameters
    ----------
    alarms : collection of Alarm
        One a series.
    clip : str, default "clip="
        How the option is called that keeps scores from 0 and 1.

    Examples
    --------
    >>> alarm_words([Alarm("2013-07-01", 9)]), alarm_words([Alarm(None, 9)])
    ('monitor: alarm since 2013-07-01', 'monitor: no alarm')
    >>> alarm_words([Alarm("2013-07-01", 9), Alarm(None, 9)])
    'monitor: alarm in 1 of 2 series, the first since 2013-07-01'
    """
    if not alarms:
        return "monitor: no rows to look at"
    sounded = [one for one in alarms if one.since is not None]
    if not sounded:
        return "monitor: no alarm" if len(alarms) == 1 else f"monitor: no alarm in {len(alarms):,} series"
    since = min(str(one.since) for one in sounded)
    when = "" if since == _NOW else f" since {since}"
    if len(alarms) == 1:
        return f"monitor: alarm{when}{_endless(sounded, clip)}"
    first = f", the first{when}" if when else ""
    return f"monitor: alarm in {len(sounded):,} of {len(alarms):,} series{first}{_endless(sounded, clip)}"


def betting_words(alarms: Collection[Alarm]) -> str:
    """Say on how many clusters the monitor bets, where there are any: it may have had little to go by.

    Examples
    --------
    >>> betting_words([Alarm(None, 9, clusters=30)])
    'it bets on 30 clusters, each where it is first seen and as if it were one row'
    """
    known = [one.clusters for one in alarms if one.clusters is not None]
    if not known:
        return ""
    return f"it bets on {plural(sum(known), 'cluster')}, each where it is first seen and as if it were one row"


def _endless(sounded: Sequence[Alarm], clip: str) -> str:
    """Say how many alarms are infinite evidence, and what can be done; nothing where none is."""
    endless = sum(one.infinite for one in sounded)
    if not endless:
        return ""
    which = f"in {endless:,} of them " if endless < len(sounded) else ""
    return f" ({which}infinite evidence: {IMPOSSIBLE}; {clip} takes such scores as nearly certain)"


def _text(times: pl.Series, zone: str | None) -> pl.Series:
    kind = times.dtype
    if not isinstance(kind, pl.Datetime):
        return times.cast(pl.Date).dt.strftime(_DAY)
    if zone is not None:
        times = (times if kind.time_zone else times.dt.replace_time_zone("UTC")).dt.convert_time_zone(zone)
    wall = times.dt.replace_time_zone(None)
    return wall.dt.strftime(_DAY if (wall == wall.dt.truncate("1d")).all() else _MINUTE)
