"""The anytime-valid monitor of each series: one line a batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._closing import closed_frame
from calframe._drifting._frames import as_dates
from calframe._drifting._reading import Reading
from calframe._kernels._binned import added, run_starts
from calframe._kernels._tally import Tally
from calframe._testing._gathering import gathered
from calframe._testing._monitor import Wealth, refuted, running_max, wealth
from calframe._typing import Floats, Ints

_PLACE = "_cf_place"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """When the monitor sounds.

    Attributes
    ----------
    e_value : float
        The e-value at which it does: the number of series by alpha, or 1 / alpha without correction.
    run_length : float
        The threshold of the e-detector.
    """

    e_value: float
    run_length: float


def monitor_frame(reading: Reading, alarms: Alarms, *, clip: float | None) -> nw.DataFrame[Any]:
    """Return one row per series and batch, in the user's library."""
    dated = reading.days.periods.index[reading.present] >= 0
    order = np.argsort(reading.days.series[reading.present], kind="stable")  # groups of a series come in order of time
    order = order[dated[order]]
    batches, source = gathered(reading.tally, order, np.arange(len(order)))
    group = reading.present[order[source]]
    series = reading.days.series[group]
    starts = run_starts(series, np.zeros(1, dtype=np.int64)) if len(series) else series
    found, new = _wealth(reading, batches, group, starts, clip=clip)
    best, far = running_max(found.log_e_value, starts), running_max(found.log_detector, starts)
    columns = {
        "n": np.rint(batches.total(batches.rows)).astype(np.int64),
        **({} if new is None else {"n_clusters": np.rint(new).astype(np.int64)}),
        "log_e_value": found.log_e_value,
        "e_value": _exp(found.log_e_value),
        "log_e_value_max": best,
        "alarm": (best >= np.log(alarms.e_value)).astype(np.int64),
        "log_detector": found.log_detector,
        "detector_alarm": (far >= np.log(alarms.run_length)).astype(np.int64),
    }
    return _closed(reading, columns, group)


def _wealth(
    reading: Reading, batches: Tally, group: Ints, starts: Ints, *, clip: float | None
) -> tuple[Wealth, Floats | None]:
    """Return the wealth after each batch, which is a group; and how many new clusters it has, if there are any.

    A label that could not be is one whatever it shares with others, also in a cluster that was seen before.
    """
    scale = 1.0 / reading.largest_weight
    if reading.clusters is None:
        return wealth(batches, starts, scale=scale, clip=clip), None
    rows, own, number = reading.clusters.betting(group, reading.days.series, counts=reading.table.roles.counts_rows)
    place = np.full(len(reading.groups), -1)
    place[group] = np.arange(len(group))
    new, batch = gathered(rows, np.arange(len(rows)), place[own])
    last = np.searchsorted(batch, np.arange(len(group)), side="right") - 1  # the first batch of a series has some
    bets = wealth(new, np.searchsorted(batch, starts), scale=scale, clip=clip)
    endless = refuted(batches, starts, clip=clip)
    found = Wealth(*(np.where(endless, np.inf, values[last]) for values in bets))
    return found, added(place[own], number, len(group))


def _closed(reading: Reading, columns: dict[str, Any], group: Ints) -> nw.DataFrame[Any]:
    """Return the columns behind keys, model and time."""
    time, by_time = reading.table.roles.time, len(reading.table.keys) > len(reading.by.keys) + 1
    text = None if time is None or by_time else [_iso(day) for day in _days(reading, group)]
    columns = columns if by_time else {"time": text or [None] * len(group), **columns}
    frame = closed_frame(reading.by, reading.groups, columns, segment=group)
    if by_time:
        timed = replace(reading.by, keys=(reading.table.keys[len(reading.by.keys)],))
        times = closed_frame(timed, reading.groups, {_PLACE: group}, segment=group)
        frame = frame.with_columns(times.get_column(str(time)).alias("time"))
    first = [name for name in frame.columns if name not in {"time", *columns}]
    frame = frame[[*first, "time", *(name for name in columns if name != "time")]]
    frame = frame.with_columns(nw.col("alarm", "detector_alarm") == 1)
    return frame if by_time else as_dates(frame, "time")


def _days(reading: Reading, group: Ints) -> list[Any]:
    days: list[Any] = reading.groups.keys.get_column("_cf_day")[group.tolist()].to_list()
    return days


def _iso(day: float) -> str:
    text = f"{int(day):08d}"
    return f"{text[:4]}-{text[4:6]}-{text[6:]}"


def _exp(log: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.exp(log)
