"""The course over time in one sentence: since when, or when, which way and by how much the scores were off.

Every claim is one about judged periods: those with rows enough. One is clearly off if its widened interval lies beyond
the tolerance.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from calframe._drifting._course import Since
from calframe._periods import Every, longer, near
from calframe._typing import VerdictName
from calframe._verdicts import CLEAR, LEANS, MIN_ROWS
from calframe._words._numbers import listed, plural, points
from calframe._words._numbers import tolerance as zone

Period = dict[str, Any]

_WAYS: tuple[VerdictName, ...] = ("over", "under")
_GONE: dict[VerdictName, frozenset[VerdictName]] = {
    "over": frozenset({"within", "under"}),
    "under": frozenset({"within", "over"}),
}
_ENDS: dict[str, str] = {
    "over": "is clearly too high",
    "under": "is clearly too low",
    "leans_over": "leans over",
    "leans_under": "leans under",
    "within": "is within tolerance",
    "unsure": "is undecided",
}
_MOST_RUNS = 2  # named one by one


def headline(
    course: pl.DataFrame, since: Since | None, *, every: Every, tolerance: float, model: str | None, option: str
) -> str:
    """Return the sentence about the course of a model, without a full stop; `option` sets the length of a period."""
    if since is not None:
        return since.sentence()
    periods = judged(course, every)
    scores = "Scores" if model is None else f"Scores of {model!r}"
    if not any(period["verdict"] in CLEAR for period in periods):
        text = none_off(course, tolerance, every=every, option=option)
        return text if model is None else f"{scores}: {text[:1].lower()}{text[1:]}"
    last = periods[-1]["verdict"]
    new = last in CLEAR and any(period["verdict"] != last for period in periods)
    return f"{scores} {off_words(periods, _WAYS)}{'; since when is not clear' if new else ''}"


def judged(course: pl.DataFrame, every: Every) -> list[Period]:
    """Return the periods with rows enough, in order of time, and whether each goes on from the one before it."""
    periods = course.filter(pl.col("verdict") != "few").to_dicts()
    starts = [dt.date.fromisoformat(str(period["period"])[:10]) for period in periods]
    joined = [False, *(near(every, *two) for two in pairwise(starts))]
    return [{**period, "joined": goes_on} for period, goes_on in zip(periods, joined, strict=False)]


def off_words(periods: Sequence[Period], ways: Sequence[VerdictName]) -> str:
    """Say when judged periods were clearly off one way or either, how many, which the most, and how the latest is."""
    said = [_off_one_way(periods, way) for way in ways if any(period["verdict"] == way for period in periods)]
    last = periods[-1]
    return (
        f"ran clearly {' and '.join(said)}; the latest judged period, {last['label']}, {_ENDS[last['verdict']]} "
        f"({points(last['gap'])})"
    )


def passing(course: pl.DataFrame, way: VerdictName, *, every: Every) -> str | None:
    """Say that a gap of the whole does not last to the end: the latest period that could be judged has none.

    That is so if a judged period has a clear gap that way, and the latest judged one is within tolerance or clearly off
    the other way. Such a gap comes and goes if a period before the last clear one had none either; otherwise it has
    gone.
    """
    periods = judged(course, every)
    off = [i for i, period in enumerate(periods) if period["verdict"] == way]
    if not off or periods[-1]["verdict"] not in _GONE[way]:
        return None
    again = any(period["verdict"] in _GONE[way] for period in periods[: off[-1]])
    return f"But the gap {'comes and goes' if again else 'has gone'}: scores {off_words(periods, (way,))}."


def reference_words(reference: str, row: Period) -> str | None:
    """Say that the reference is itself off; None where its interval holds a gap of 0, or it has too few rows."""
    if row["gap"] is None or row["verdict"] == "few" or row["gap_low"] <= 0.0 <= row["gap_high"]:
        return None
    scores = "" if row["model"] is None else f"for {row['model']!r} "
    how = "clearly off" if row["verdict"] in CLEAR else "off"
    within = ", within tolerance" if row["verdict"] == "within" else ""
    who = reference if reference.startswith("the ") else f"the reference, {reference},"
    return f"{scores}{who} is itself {how} by {points(row['gap'])}{within}"


def segments_words(series: Sequence[tuple[str, pl.DataFrame]], labels: Mapping[dt.date, str], *, total: str) -> str:
    """Count the series, each a name and its periods, in which one is clearly off or leans, of a `total` in words.

    Examples
    --------
    >>> day = dt.date(2026, 1, 1)
    >>> part = pl.DataFrame({"period": [day], "verdict": ["over"], "gap": [0.1]})
    >>> two = [("g a", part), ("g b", part.with_columns(verdict=pl.lit("within")))]
    >>> segments_words(two, {day: "Jan 2026"}, total="2 segments")
    'A period is clearly off in 1 of 2 segments; the worst is g a in Jan 2026 (+10.0 pp)'
    """
    off, leaning = (_found_in(series, kind) for kind in (CLEAR, LEANS))
    worst = max(off or leaning, key=lambda one: abs(one[2]), default=None)
    if worst is None:
        return f"No period is clearly off or leans in any of {total}"
    clear = {name for name, *_ in off}
    only = {name for name, *_ in leaning} - clear
    text = f"A period is clearly off in {len(clear):,} of {total}" if clear else f"No period is clearly off in {total}"
    text += f", and in {len(only):,} {'more ' if clear else ''}one leans" if only else ""
    return f"{text}; the worst is {worst[0]} in {labels[worst[1]]} ({points(worst[2])})"


def _found_in(
    series: Sequence[tuple[str, pl.DataFrame]], kind: Collection[VerdictName]
) -> list[tuple[str, dt.date, float]]:
    """Return the series, the period and the gap of each period with one of some verdicts."""
    return [
        (name, period, gap)
        for name, part in series
        for period, gap, verdict in part.select("period", "gap", "verdict").iter_rows()
        if verdict in kind
    ]


def none_off(course: pl.DataFrame, tolerance: float, *, every: Every, option: str) -> str:
    """Say how the judged periods of a course stand of which none is clearly off, or that there is none."""
    verdicts = course.filter(pl.col("verdict") != "few")["verdict"].to_list()
    total = len(verdicts)
    if not total:
        return _none_judged(course, every, option)
    counts = {
        "within tolerance": sum(verdict == "within" for verdict in verdicts),
        "leaning": sum(verdict in LEANS for verdict in verdicts),
        "undecided": sum(verdict == "unsure" for verdict in verdicts),
    }
    if counts["within tolerance"] == total:
        which = "The one judged period is" if total == 1 else f"All {total:,} judged periods are"
        return f"{which} within tolerance ({zone(tolerance)})"
    said = listed([f"{number:,} {words}" for words, number in counts.items() if number])
    return f"No judged period is clearly off: {said}"


def _none_judged(course: pl.DataFrame, every: Every, option: str) -> str:
    """Say that no period is judged, how many rows one needs, and which length of a period may have them.

    Rows are effective ones where a period has as many and is not judged: weights or clusters make them fewer.
    """
    total, enough = course.height, bool((course["n"] >= MIN_ROWS).any())
    needed = f"{MIN_ROWS} effective rows" if enough else f"{MIN_ROWS} rows"
    if total < 2:
        few = f"The one period has too few rows to be judged ({needed.removesuffix(' rows')} needed)"
        return few if total else "There is no period to be judged"
    if enough:
        return f"None of {total:,} periods has the {needed} needed to be judged: weights or clusters leave fewer"
    further = longer(every)
    advice = f"; a longer period may have them ({option.format(further)})" if further else ""
    return f"None of {total:,} periods has the {needed} needed to be judged{advice}"


def _off_one_way(periods: Sequence[Period], way: VerdictName) -> str:
    off = [period for period in periods if period["verdict"] == way]
    most = max(off, key=lambda period: abs(period["gap"]))
    size = f"{most['label']} the most with {points(most['gap'])}" if len(off) > 1 else points(most["gap"])
    return (
        f"too {'high' if way == 'over' else 'low'} {_when(_runs(periods, way))} "
        f"({len(off):,} of {plural(len(periods), 'judged period')}, {size})"
    )


def _runs(periods: Sequence[Period], way: VerdictName) -> list[tuple[str, str]]:
    """Return the first and the last period of each run of judged periods off one way."""
    found: list[tuple[str, str]] = []
    before = None
    for period in periods:
        if period["verdict"] == way:
            first = found.pop()[0] if before == way and period["joined"] else period["label"]
            found.append((first, period["label"]))
        before = period["verdict"]
    return found


def _when(runs: Sequence[tuple[str, str]]) -> str:
    said = [f"in {first}" if first == last else f"from {first} to {last}" for first, last in runs]
    if len(said) <= _MOST_RUNS:
        return " and ".join(said)
    return f"{len(said):,} times, first {said[0]} and last {said[-1]}"
