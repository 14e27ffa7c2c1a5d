"""What is drawn of a result: one panel a model, or a segment and model, each with what it needs to be read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from calframe._drifting._alarms import IMPOSSIBLE, Alarm
from calframe._drifting._course import states
from calframe._drifting._drawn import course_rows, empty_words, marks_words
from calframe._drifting._frames import by_series
from calframe._periods import Every
from calframe._words._numbers import plural, short

MOST_PANELS = 12
Panel = tuple[str, str, pl.DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shown:
    """What panels are made of.

    Attributes
    ----------
    table : polars.DataFrame
        One row per segment, model and period, as in the result; ``period`` is a date.
    course : polars.DataFrame
        One row per model and period over all segments, as in the result.
    models : mapping of str to str or None
        The score columns, and what tables call them.
    by : tuple of str
        The segment columns.
    alarms : mapping of tuple to Alarm
        The alarm of each series by its keys; none without a time column.
    every : str
        Length of a period.
    reference : str
        What periods were compared with.
    reference_periods : tuple of str
        The labels of the periods of the reference.
    n_empty : int
        Periods in which there is no row.
    tolerance, alpha : float
        As given.
    """

    table: pl.DataFrame
    course: pl.DataFrame
    models: Mapping[str, str | None]
    by: tuple[str, ...]
    alarms: Mapping[tuple[Any, ...], Alarm]
    every: Every
    reference: str
    reference_periods: tuple[str, ...]
    n_empty: int
    tolerance: float
    alpha: float

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that name a series."""
        return self.by if None in self.models.values() else (*self.by, "model")

    @property
    def labels(self) -> dict[dt.date, str]:
        """What each period is called, by its first day."""
        return dict(self.course.select("period", "label").iter_rows())


class _Mark(NamedTuple):
    """The dashed line of a panel: since when, the words at it, and what the note says of it."""

    since: str
    words: str
    note: str


def panels(found: Shown, *, model: str | None, segments: bool) -> list[Panel]:
    """Return title, note and periods of each panel."""
    parts = list(_segments(found, model) if segments else _models(found, model))
    shown = parts[:MOST_PANELS]
    more = f" {len(parts) - len(shown):,} more series are not drawn." if len(parts) > len(shown) else ""
    made = []
    for i, (title, frame, mark) in enumerate(shown):
        whole = found.table if segments else frame
        note = _note(found, whole, mark, segments=segments) + more if i == 0 else _marked(found, mark)
        place = None if mark is None else (_period_of(found, mark.since), mark.words)
        table = course_rows(frame, every=found.every, reference=found.reference_periods, alarm=place)
        made.append((title, note, table))
    return made


def _models(found: Shown, model: str | None) -> Iterator[tuple[str, pl.DataFrame, _Mark | None]]:
    """Give the course of each model over all segments, and when the first monitor of its segments sounded."""
    together = ", all segments together" if found.by else ""
    for score, name in found.models.items():
        if model in {None, score}:
            frame = found.course.filter(pl.col("model").eq_missing(pl.lit(name, dtype=pl.String)))
            mine = [
                (", ".join(_names(found, keys)), alarm)
                for keys, alarm in found.alarms.items()
                if name is None or keys[-1] == name
            ]
            yield f"Gap of {short(score)}{together}", frame, _mark(mine)


def _segments(found: Shown, model: str | None) -> Iterator[tuple[str, pl.DataFrame, _Mark | None]]:
    """Give the periods of each segment and model, in the order of the table."""
    labels = found.labels
    table = found.table.with_columns(pl.col("period").fill_null(dt.date.min))  # without times
    ends = (table[name].to_numpy() for name in ("simultaneous_low", "simultaneous_high"))
    table = table.with_columns(
        pl.Series("label", [labels[day] for day in table["period"]], dtype=pl.String),
        pl.Series("state", states((table["verdict"] != "few").to_numpy(), *ends), dtype=pl.String),
    )
    for values, part in by_series(table, found.keys):
        score = str(values[-1]) if "model" in found.keys else next(iter(found.models))
        if model in {None, score}:
            mine = [("", found.alarms[values])] if values in found.alarms else []
            yield ", ".join([f"Gap of {short(score)}", *_names(found, values)]), part, _mark(mine)


def _names(found: Shown, values: Sequence[Any]) -> list[str]:
    """Return what a series is called by each of its segment columns."""
    named = zip(found.by, values, strict=False)  # behind them there may be the model
    return [f"{short(key)} {'(missing)' if value is None else short(str(value))}" for key, value in named]


def _mark(alarms: Sequence[tuple[str, Alarm]]) -> _Mark | None:
    """Return the mark of the first of some alarms, given with the names of their segments (or nothing)."""
    heard = [(one.since, name, one.infinite) for name, one in alarms if one.since is not None]
    if not heard:
        return None
    since, name, infinite = min(heard)
    whose = f"monitor of {short(name)}" if name else "monitor"
    first = f", the first of {len(heard):,}" if len(heard) > 1 else ""
    sounded = f"; of {len(alarms):,} monitors, one a segment, {len(heard):,} sounded" if len(alarms) > 1 else ""
    endless = ", infinite evidence" if infinite else ""
    return _Mark(
        since=since,
        words=f"{whose}{first}: {since}{endless}",
        note=f"Dashed line: the alarm of the {whose}{f'{endless}: {IMPOSSIBLE}' if infinite else ''}{sounded}.",
    )


def _period_of(found: Shown, since: str) -> str:
    """Return the label of the period in which a monitor sounded."""
    return [label for day, label in sorted(found.labels.items()) if day.isoformat() <= since[:10]][-1]


def _note(found: Shown, frame: pl.DataFrame, mark: _Mark | None, *, segments: bool) -> str:
    judged = int((frame["verdict"] != "few").sum())
    text = marks_words(
        level=f"{100 * (1 - found.alpha):g}%",
        judged=judged,
        over="all periods and segments" if segments else plural(judged, "judged period"),
        tolerance=found.tolerance,
    )
    return " ".join(part for part in (text, empty_words(found.n_empty), _marked(found, mark)) if part)


def _marked(found: Shown, mark: _Mark | None) -> str:
    """Say what dark bars and the dashed line are, where there are any."""
    bars = f"Dark bars: the reference, {found.reference}." if found.reference_periods else ""
    return f"{bars} {mark.note if mark else ''}".strip()
