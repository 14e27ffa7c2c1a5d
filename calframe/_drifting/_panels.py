"""What is drawn of a result: one panel a model, or a segment and model, each with what it needs to be read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from calframe._drifting._alarms import first_of
from calframe._drifting._course import states
from calframe._drifting._drawn import course_rows, empty_words
from calframe._drifting._frames import by_series, plain
from calframe._words._numbers import plural, short, tolerance

if TYPE_CHECKING:
    from calframe._drifting._result import Drift

MOST_PANELS = 12
Panel = tuple[str, str, pl.DataFrame]


def panels(found: Drift, *, model: str | None, segments: bool) -> list[Panel]:
    """Return title, note and periods of each panel."""
    parts = list(_segments(found, model) if segments else _models(found, model))
    shown = parts[:MOST_PANELS]
    more = f" {len(parts) - len(shown):,} more series are not drawn." if len(parts) > len(shown) else ""
    made = []
    for i, (title, frame, alarm) in enumerate(shown):
        over = (
            "all periods and segments" if segments else plural(int((frame["verdict"] != "few").sum()), "judged period")
        )
        note = _note(found, over, alarm) + more if i == 0 else _marked(found, alarm)
        table = course_rows(frame, every=found.every, reference=_reference(found), alarm=_alarm(found, alarm))
        made.append((title, note, table))
    return made


def _models(found: Drift, model: str | None) -> Iterator[tuple[str, pl.DataFrame, str | None]]:
    """Give the course of each model over all segments, and when the monitor of the first of its series sounded."""
    alarms = found.alarms()
    together = ", all segments together" if found.by else ""
    for score, name in zip(found.scores, found.models(), strict=True):
        if model in {None, score}:
            frame = found.course.filter(pl.col("model").eq_missing(pl.lit(name, dtype=pl.String)))
            mine = [alarm for keys, alarm in alarms.items() if name is None or keys[-1] == name]
            yield f"Gap of {short(score)}{together}", frame, first_of(mine)


def _segments(found: Drift, model: str | None) -> Iterator[tuple[str, pl.DataFrame, str | None]]:
    """Give the periods of each segment and model, in the order of the table."""
    labels = found.labels()
    table = plain(found.table, "period").with_columns(pl.col("period").fill_null(dt.date.min))  # without times
    ends = (table[name].to_numpy() for name in ("simultaneous_low", "simultaneous_high"))
    table = table.with_columns(
        pl.Series("label", [labels[day] for day in table["period"]], dtype=pl.String),
        pl.Series("state", states((table["verdict"] != "few").to_numpy(), *ends), dtype=pl.String),
    )
    alarms = found.alarms()
    for values, part in by_series(table, found.keys):
        score = str(values[-1]) if "model" in found.keys else found.scores[0]
        if model in {None, score}:
            named = zip(found.by, values, strict=False)
            names = [f"{short(key)} {'(missing)' if value is None else short(str(value))}" for key, value in named]
            alarm = alarms.get(values)
            yield ", ".join([f"Gap of {short(score)}", *names]), part, None if alarm is None else alarm.since


def _reference(found: Drift) -> list[str]:
    """Return the labels of the periods of the reference."""
    ends = found.reference.split(" to ")
    labels = list(found.labels().values())
    if ends[0] not in labels:
        return []
    return labels[labels.index(ends[0]) : labels.index(ends[-1]) + 1]


def _alarm(found: Drift, since: str | None) -> tuple[str, str] | None:
    """Return the label of the period in which the monitor sounded, and words for it."""
    if since is None or found.time is None:
        return None
    began = [label for day, label in sorted(found.labels().items()) if day.isoformat() <= since[:10]]
    return (began[-1], f"monitor: {since}") if began else None


def _note(found: Drift, over: str, alarm: str | None) -> str:
    level = f"{100 * (1 - found.alpha):g}%"
    text = (
        f"Thick line: {level} interval; thin line: {level} together over {over}, coloured where it leaves out 0. "
        f"Grey zone: {tolerance(found.tolerance)} tolerance. {empty_words(found.n_empty)}"
    )
    return f"{text.strip()} {_marked(found, alarm)}".strip()


def _marked(found: Drift, alarm: str | None) -> str:
    """Say what dark bars and the dashed line are, where there are any."""
    bars = f"Dark bars: the reference, {found.reference}." if _reference(found) else ""
    line = "Dashed line: the monitor's alarm." if alarm else ""
    return f"{bars} {line}".strip()
