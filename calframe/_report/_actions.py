"""What to do, in words: at most five lines. Every line comes from a rule here, and every rule has its own test."""

from __future__ import annotations

from typing import Any

from calframe._drifting._story import passing
from calframe._report._captions import level
from calframe._report._findings import Findings, Segment
from calframe._report._page import Action
from calframe._report._sentences import name_of, needed
from calframe._verdicts import CLEAR, FURTHEST, LEANS, MIN_EVENTS, MIN_ROWS
from calframe._words._numbers import (
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
)

_MOST_ACTIONS = 5
_MOST_NAMED = 5
_MOST_MOVED = 0.5  # share of segments that must have moved for the cause to be common
_MANY_MISSING = 0.05  # share of rows without label or score that deserves a line
_LOOK_FIRST = "Look at the gap over time before you recalibrate the scores as a whole."
_RECALIBRATE = "Recalibrate the scores as a whole."


def actions(findings: Findings) -> tuple[Action, ...]:
    """Return what to do, at most five lines: recalibrate, drift, watch, look at curves, what is open, missing."""
    found = [
        *_recalibrate(findings),
        *_drift(findings),
        *_watch(findings),
        *_look(findings),
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


def _recalibrate(findings: Findings) -> list[Action]:
    """Return two lines at most: the whole or the worst segment, then the others together."""
    clear = [segment for segment in findings.with_verdict("over", "under") if _apart(findings, segment)]
    found = []
    if findings.overall["verdict"] in CLEAR:
        found.append(_whole(findings))
    elif findings.curve_off:
        found.append(Action(what=_RECALIBRATE, why=_crooked(findings)))
    elif clear:
        found.append(_alone(findings, clear.pop(0)))
    if len(clear) == 1:
        found.append(_alone(findings, clear[0]))
    elif clear and findings.overall["verdict"] in CLEAR:
        whole = points(findings.overall["gap"])
        why = f"{_some(_with_gaps(clear))} differ clearly from the whole, which is off by {whole}."
        found.append(Action(what="Look at these by themselves:", why=why))
    elif clear:
        found.append(Action(what="Recalibrate these too:", why=f"{_some(_with_gaps(clear))} have clear gaps."))
    return found


def _apart(findings: Findings, segment: Segment) -> bool:
    """Tell whether a clear gap asks for more than is done for the whole.

    Where the whole has a clear gap, a segment whose widened interval takes in the gap of the whole does not: what sets
    the whole right may set it right as well.
    """
    row, whole = segment.row, findings.overall
    if whole["verdict"] not in CLEAR:
        return True
    return not row["simultaneous_low"] <= whole["gap"] <= row["simultaneous_high"]


def _alone(findings: Findings, segment: Segment) -> Action:
    what = f"Recalibrate {name_of(segment)} before its scores are used again."
    return Action(what=what, why=_misstated(findings, segment.row))


def _whole(findings: Findings) -> Action:
    why, course = _misstated(findings, findings.overall), findings.course
    gone = None if course is None else passing(course.table, findings.overall["verdict"], every=course.every)
    if gone is None:
        return Action(what=_RECALIBRATE, why=why)
    return Action(what=_LOOK_FIRST, why=f"{why} {gone}")


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
    mean = "Their mean is within tolerance, but" if findings.overall["verdict"] == "within" else "Whatever their mean,"
    return (
        f"{mean} their curve is off: ECE {points(findings.overall['ece'], sign=False)}, where right scores would show "
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
        compared = f"{plural(since.judged, 'segment')} with enough rows before and after"
        text += f", and it clearly {moved} in {since.moved} of {compared}"
        if since.moved > 2 and since.moved > _MOST_MOVED * since.judged:
            text += ", so the cause is not one segment"
    why = f"{text}; {since.doubt()}." if since.unjudged else f"{text}."
    return [Action(what=f"Find out what changed in {since.when}.", why=why)]


def _watch(findings: Findings) -> list[Action]:
    leaning = findings.with_verdict("leans_over", "leans_under")
    if findings.overall["verdict"] in LEANS and not leaning:
        return [Action(what="Watch the scores as a whole.", why=f"They lean {_leaning(findings, findings.overall)}")]
    if len(leaning) == 1:
        return [Action(what=f"Watch {name_of(leaning[0])}.", why=f"It leans {_leaning(findings, leaning[0].row)}")]
    if not leaning:
        return []
    why = (
        f"{_some(_with_gaps(leaning))} lean further than chance would take them, but may still be inside the tolerance."
    )
    return [Action(what="Watch these:", why=why)]


def _look(findings: Findings) -> list[Action]:
    """Return a line on segments whose scores are off over their range though their mean is not clearly off."""
    crooked = [] if findings.curve_off else findings.crooked
    if not crooked:
        return []
    names = [
        f"{name_of(segment)} (ECE {points(segment.row['ece'], sign=False)}, by chance "
        f"{points(segment.row['ece_expected'], sign=False)})"
        for segment in crooked
    ]
    why = f"{_some(names)}: further off at some scores than their mean tells, and than chance explains."
    return [Action(what=f"Look at the {'curve' if len(crooked) == 1 else 'curves'}, not only at the mean.", why=why)]


def _leaning(findings: Findings, row: dict[str, Any]) -> str:
    return (
        f"{'over' if row['gap'] > 0 else 'under'} by {points(row['gap'], sign=False)}, more than chance "
        f"explains (adjusted p {pvalue(row['pvalue_adjusted'])}), but may still be inside the "
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
    what = f"Do not report {'this' if len(names) == 1 else 'these'} as fine:"
    return [Action(what=what, why=f"{_some(names)} cannot be judged either way yet.")]


def _needs(findings: Findings, row: dict[str, Any]) -> str:
    """Return a segment's rows, and how many would decide it where that can be said."""
    here = rows(row["n"])
    if row["verdict"] != "few":
        needed = row["rows_needed"]
        more = f"more than {FURTHEST:g} times as many" if needed is None else f"about {rounded_up(needed)}"
        return f"{here}, {more} needed"
    if row["n"] < MIN_ROWS:
        return f"{here}, at least {MIN_ROWS} needed"
    if findings.roles.cluster is not None:
        return f"{here}, in too few clusters of {short(findings.roles.cluster)}"
    if findings.roles.weight is not None:
        return f"{here}, too few once weighted"
    return f"{here}, at least {MIN_EVENTS} of each outcome needed, seen or expected"


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


def _with_gaps(segments: list[Segment]) -> list[str]:
    return [f"{name_of(segment)} ({points(segment.row['gap'])})" for segment in segments]
