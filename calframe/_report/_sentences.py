"""The words of a report. Every sentence comes from a rule here, and every rule has its own test."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from calframe._report._captions import level
from calframe._report._findings import Findings, Segment, State
from calframe._report._page import Action, Headline, Tile
from calframe._report._words import (
    count,
    interval,
    listed,
    percent,
    plural,
    points,
    pvalue,
    rounded_up,
    rows,
    short,
    tolerance,
    whole_points,
)
from calframe._typing import Tone
from calframe._verdicts import CLEAR, LEANS, MIN_EVENTS, MIN_ROWS

_MOST_ACTIONS = 5
_MOST_WORDS, _MOST_WORDS_OF_A_NAME = 35, 4  # of the headline
_MOST_NAMED = 5
_MOST_MOVED = 0.5  # share of segments that must have moved for the cause to be common
_MANY_MISSING = 0.05  # share of rows without label or score that deserves a line

Detail: TypeAlias = Literal["full", "short", "count"]
_DETAILS: tuple[Detail, ...] = ("full", "short", "count")

_PILLS: dict[State, tuple[Tone, str, str]] = {
    "action needed": ("over", "▲", "Action needed"),
    "watch": ("ok", "△", "Watch"),
    "undecided": ("none", "○", "Nothing found, {open} undecided"),
    "within tolerance": ("ok", "●", "Within tolerance"),
}


def headline(findings: Findings) -> Headline:
    """Return the verdict: [the average] + [the worst clear gap] + [since when], in at most 35 words."""
    tone, symbol, word = _PILLS[findings.state]
    undecided = max(findings.open, 1)
    return Headline(tone=tone, symbol=symbol, word=word.format(open=undecided), lead=lead(findings))


def lead(findings: Findings) -> str:
    """Return the sentence of the verdict, with as much detail as 35 words hold."""
    for detail in _DETAILS:
        parts = (
            average(findings),
            curve_clause(findings, detail),
            gaps_clause(findings, detail),
            since_clause(findings),
        )
        text = "".join(parts) + "."
        if len(text.split()) <= _MOST_WORDS:
            break
    return text


def average(findings: Findings) -> str:
    """Say how the scores are off on average."""
    verdict, gap = findings.overall["verdict"], findings.overall["gap"]
    if verdict == "within":
        return "On average the scores are within tolerance"
    if verdict in CLEAR:
        return f"On average the scores run {whole_points(gap)} percentage points too {_high(gap)}"
    if verdict in LEANS:
        return f"On average the scores lean {whole_points(gap)} percentage points {_high(gap)}"
    if findings.counts["used"] == 0:
        return "There is no row that can be used"
    if verdict == "few":
        return "There are too few rows to judge even the average"
    return "Whether the scores are off on average cannot be told yet"


def curve_clause(findings: Findings, detail: Detail = "full") -> str:
    """Say that the curve is off where the average does not show it: too high here, too low there."""
    if not findings.curve_off or findings.overall["verdict"] in CLEAR:
        return ""
    if detail == "count":
        return ", but their curve is off"
    off, chance = points(findings.overall["ece"], sign=False), points(findings.chance.mean, sign=False, unit=False)
    return f", but over their range they are off by {off}" + (f" (chance alone: {chance})" if detail == "full" else "")


def gaps_clause(findings: Findings, detail: Detail = "full") -> str:
    """Say which segments have a clear gap, or how many cannot be cleared."""
    clear = findings.with_verdict("over", "under")
    mild = findings.overall["verdict"] in {"within", "unsure", "few"} and not findings.curve_off
    if clear:
        return (", but " if mild else "; ") + _clear(clear, detail)
    total = sum(1 for _ in findings.segments())
    if total == 0:
        return ""
    if findings.open:
        if detail != "full":
            return f"; {findings.open} of {plural(total, 'segment')} cannot be cleared yet"
        return f". No segment has a clear gap, but {findings.open} of {total} cannot be cleared yet"
    if findings.overall["verdict"] == "within" and not findings.curve_off:
        return ", and so is every segment"
    return "; the gap of every segment is within tolerance"


def since_clause(findings: Findings, detail: Detail = "full") -> str:
    """Say since when the scores as a whole have been off, if there is an unbroken run to the end."""
    course = findings.course
    if course is None or course.since is None:
        return ""
    gap = course.since.during
    who = "they" if detail == "count" else "the scores as a whole"
    return f", and since {course.since.label} {who} run {whole_points(gap)} points {_high(gap)}"


def tiles(findings: Findings) -> tuple[Tile, ...]:
    """Return up to four numbers, each beside what it must be compared with."""
    return (_gap_tile(findings), _error_tile(findings), _segments_tile(findings), _last_tile(findings))


def actions(findings: Findings) -> tuple[Action, ...]:
    """Return what to do, at most five lines: recalibrate, drift, watch, do not report as fine, missing rows."""
    found = [
        *_recalibrate(findings),
        *_drift(findings),
        *_watch(findings),
        *_undecided(findings),
        *_missing(findings),
    ]
    if found:
        return tuple(found[:_MOST_ACTIONS])
    why = f"All that could be judged is within {tolerance(findings.tolerance)}. Judge again when new outcomes are in."
    out = findings.curve.filter(findings.curve["state"] != "in").height
    if out:
        why += (
            f" {plural(out, 'bin')} of the curve below {'lies' if out == 1 else 'lie'} outside the band all the same."
        )
    if not findings.groupings:
        why += " No segment column was given, so nothing is said about parts of the table."
    return (Action(what="Nothing to do now.", why=why),)


def needed(findings: Findings) -> str:
    """Return what a row must have to be used."""
    return "label or score" if findings.roles.weight is None else "label, score or weight"


def name_of(segment: Segment, *, words: int | None = None) -> str:
    """Return a segment as a reader knows it: its column and its value."""
    return f"{short(segment.column, words=words)} {short(segment.row['segment'], words=words)}"


def _high(gap: float) -> str:
    return "high" if gap > 0 else "low"


def _stated(gap: float) -> str:
    return "overstated" if gap > 0 else "understated"


def _clear(clear: list[Segment], detail: Detail) -> str:
    if detail == "count":
        return (
            f"{plural(len(clear), 'segment')} {'has a' if len(clear) == 1 else 'have'} clear "
            f"{'gap' if len(clear) == 1 else 'gaps'}"
        )
    worst, *others = clear
    words = _MOST_WORDS_OF_A_NAME
    text = (
        f"{name_of(worst, words=words)} is {_stated(worst.row['gap'])} by {whole_points(worst.row['gap'])} percentage "
        "points"
    )
    if not others:
        return text
    if detail == "full" and len(others) == 1:
        gap = others[0].row["gap"]
        return f"{text} and {name_of(others[0], words=words)} {_stated(gap)} by {whole_points(gap)}"
    if detail == "full":
        return f"{text} and {len(others)} other segments have clear gaps too"
    return f"{text} (and {plural(len(others), 'segment')} more)"


def _gap_tile(findings: Findings) -> Tile:
    row = findings.overall
    place = {
        "within": "inside",
        "over": "beyond",
        "under": "beyond",
    }.get(row["verdict"], "not clearly inside")
    zone = tolerance(findings.tolerance)
    return Tile(
        name="Overall gap, said − happened",
        big=points(row["gap"]),
        small=f"{level(findings)} CI {interval(row['gap_low'], row['gap_high'])}; {place} the {zone} tolerance",
        tone=_tone(row["verdict"]),
    )


def _error_tile(findings: Findings) -> Tile:
    return Tile(
        name="Calibration error (ECE)",
        big=points(findings.overall["ece"], sign=False),
        small=f"right scores would show {points(findings.chance.mean, sign=False)} by chance, "
        f"at most {points(findings.chance.high, sign=False)} in 19 of 20 cases",
        tone="over" if findings.curve_off else "ok",
    )


def _segments_tile(findings: Findings) -> Tile:
    if not findings.groupings:
        row = findings.overall
        return Tile(
            name="Said → happened",
            big=f"{percent(row['mean_score'])} → {percent(row['rate'])}",
            small=f"{rows(row['n'])}, of which {count(row['positives'])} were positive"
            if findings.roles.weight is None
            else rows(row["n"]),
            tone="ok",
        )
    clear = len(findings.with_verdict("over", "under"))
    parts = [
        f"{len(findings.with_verdict('within'))} within tolerance",
        f"{len(findings.with_verdict('leans_over', 'leans_under'))} leaning",
        f"{len(findings.with_verdict('unsure'))} undecided",
        f"{len(findings.with_verdict('few'))} too small",
    ]
    return Tile(
        name="Segments with a clear gap",
        big=f"{clear} of {findings.comparisons}",
        small=", ".join(parts),
        tone="over" if clear else "ok",
    )


def _last_tile(findings: Findings) -> Tile:
    course = findings.course
    if course is None:
        return Tile(
            name="Rows used",
            big=count(findings.counts["used"]),
            small=f"{count(findings.counts['missing'])} more without {needed(findings)}",
            tone="ok",
        )
    last = course.table.row(-1, named=True)
    looks = f"after correction for {plural(course.comparisons, 'look')}"
    small = f"{'clearly' if last['state'] != 'in' else 'not clearly'} off zero {looks}"
    if last["verdict"] == "few":
        small = f"too few rows to judge ({rows(last['n'])})"
    tone: Tone = "ok"
    if course.since is not None:
        small = f"before {course.since.label}: {points(course.since.before)}"
        tone = "over" if course.since.during > 0 else "under"
    return Tile(name=f"Latest period, {last['label']}", big=points(last["gap"]), small=small, tone=tone)


def _recalibrate(findings: Findings) -> list[Action]:
    """Return two lines at most: the whole or the worst segment, then the others together."""
    clear = findings.with_verdict("over", "under")
    found = []
    if findings.overall["verdict"] in CLEAR:
        found.append(Action(what="Recalibrate the scores as a whole.", why=_misstated(findings, findings.overall)))
    elif findings.curve_off:
        found.append(Action(what="Recalibrate the scores as a whole.", why=_crooked(findings)))
    elif clear:
        worst = clear.pop(0)
        what = f"Recalibrate {name_of(worst)} before its scores are used again."
        found.append(Action(what=what, why=_misstated(findings, worst.row)))
    if len(clear) == 1:
        what = f"Recalibrate {name_of(clear[0])} before its scores are used again."
        found.append(Action(what=what, why=_misstated(findings, clear[0].row)))
    elif clear:
        names = [f"{name_of(segment)} ({points(segment.row['gap'])})" for segment in clear]
        what = "Look at these by themselves:" if findings.overall["verdict"] in CLEAR else "Recalibrate these too:"
        found.append(Action(what=what, why=_some(names) + " have clear gaps of their own."))
    return found


def _misstated(findings: Findings, row: dict[str, Any]) -> str:
    text = (
        f"The scores {'over' if row['gap'] > 0 else 'under'}state by {points(row['gap'], sign=False)} "
        f"({level(findings)} CI {interval(row['gap_low'], row['gap_high'])})"
    )
    if findings.roles.weight is not None:
        return (
            f"{text}: {percent(row['mean_score'])} said, {percent(row['rate'])} happened, by weight, over "
            f"{rows(row['n'])}."
        )
    predicted = row["mean_score"] * row["n"]
    return (
        f"{text}: of {rows(row['n'])}, {count(predicted)} positives were predicted and {count(row['positives'])} "
        "happened."
    )


def _crooked(findings: Findings) -> str:
    mean = "Their mean is within tolerance" if findings.overall["verdict"] == "within" else "Whatever their mean"
    return (
        f"{mean}, their curve is off: ECE {points(findings.overall['ece'], sign=False)}, where right scores would show "
        f"{points(findings.chance.mean, sign=False)} by chance. The reliability diagram shows where they say too much "
        "and where too little."
    )


def _drift(findings: Findings) -> list[Action]:
    course = findings.course
    if course is None or course.since is None:
        return []
    since = course.since
    text = f"The gap moved from {points(since.before)} to {points(since.during)}"
    if since.judged:
        moved = "rose" if since.during > since.before else "fell"
        text += f", and it clearly {moved} in {since.moved} of {plural(since.judged, 'segment')}"
        if since.moved > 2 and since.moved > _MOST_MOVED * since.judged:
            text += ", so the cause is not one segment"
    return [Action(what=f"Find out what changed in {since.label}.", why=text + ".")]


def _watch(findings: Findings) -> list[Action]:
    leaning = findings.with_verdict("leans_over", "leans_under")
    if findings.overall["verdict"] in LEANS and not leaning:
        return [Action(what="Watch the scores as a whole.", why=_leaning(findings, findings.overall))]
    if len(leaning) == 1:
        return [Action(what=f"Watch {name_of(leaning[0])}.", why=_leaning(findings, leaning[0].row))]
    if not leaning:
        return []
    names = [f"{name_of(segment)} ({points(segment.row['gap'])})" for segment in leaning]
    why = f"{_some(names)} lean further than chance would take them, but may still be inside the tolerance."
    return [Action(what="Watch these:", why=why)]


def _leaning(findings: Findings, row: dict[str, Any]) -> str:
    return (
        f"It leans {'over' if row['gap'] > 0 else 'under'} by {points(row['gap'], sign=False)}, more than chance "
        f"would do (adjusted p {pvalue(row['pvalue_adjusted'])}), but it may still be inside the "
        f"{tolerance(findings.tolerance)} tolerance (widened interval "
        f"{interval(row['simultaneous_low'], row['simultaneous_high'])})."
    )


def _undecided(findings: Findings) -> list[Action]:
    names = [
        f"{name_of(segment)} ({_needs(findings, segment.row)})" for segment in findings.with_verdict("unsure", "few")
    ]
    if findings.overall["verdict"] in {"unsure", "few"}:
        names.insert(0, f"all rows together ({_needs(findings, findings.overall)})")
    if not names:
        return []
    return [Action(what="Do not report these as fine:", why=f"{_some(names)} cannot be judged either way yet.")]


def _needs(findings: Findings, row: dict[str, Any]) -> str:
    """Return a segment's rows, and how many would decide it where that can be said."""
    here = rows(row["n"])
    if row["verdict"] != "few":
        needed = row["rows_needed"]
        return here if needed is None else f"{here}, about {rounded_up(needed)} needed"
    if row["n"] < MIN_ROWS:
        return f"{here}, at least {MIN_ROWS} needed"
    if findings.roles.weight is not None:
        return f"{here}, too few once weighted"
    return f"{here}, at least {MIN_EVENTS} of each outcome needed"


def _missing(findings: Findings) -> list[Action]:
    missing, total = findings.counts["missing"], findings.counts["rows"]
    if total == 0 or missing < _MANY_MISSING * total:
        return []
    share = percent(missing / total)
    have, are = ("has", "It is") if missing == 1 else ("have", "They are")
    why = f"{are} {share} of the table and in no number here; if what is missing differs, so may the verdict."
    return [Action(what=f"Find out why {rows(missing)} {have} no {needed(findings)}.", why=why)]


def _some(names: list[str]) -> str:
    if len(names) <= _MOST_NAMED:
        return listed(names)
    return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED} more"


def _tone(verdict: str) -> Tone:
    return "over" if verdict == "over" else "under" if verdict == "under" else "ok"
