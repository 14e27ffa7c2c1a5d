"""The verdict and its tiles in words. Every sentence comes from a rule here, and every rule has its own test."""

from __future__ import annotations

from typing import Literal, TypeAlias

from calframe._report._captions import level
from calframe._report._findings import Findings, Segment, State
from calframe._report._page import Headline, Tile
from calframe._typing import Tone
from calframe._verdicts import CLEAR, LEANS
from calframe._words._numbers import (
    count,
    interval,
    percent,
    plural,
    points,
    rows,
    short,
    tolerance,
    whole_points,
)

_MOST_WORDS, _MOST_WORDS_OF_A_COLUMN = 35, 4  # of the headline

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
            crooked_clause(findings, detail),
            since_clause(findings, detail),
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


def crooked_clause(findings: Findings, detail: Detail = "full") -> str:
    """Say which segments' scores are off over their range though their mean is not clearly off."""
    crooked = findings.crooked
    if not crooked or findings.curve_off:
        return ""
    if detail == "count" or len(crooked) > 1:
        return f"; over their range the scores of {plural(len(crooked), 'segment')} are off"
    return f"; over their range the scores of {_brief(crooked[0])} are off"


def since_clause(findings: Findings, detail: Detail = "full") -> str:
    """Say since when the scores as a whole have been off, if there is an unbroken run to the end."""
    course = findings.course
    if course is None or course.since is None:
        return ""
    gap = course.since.during
    who = "the scores as a whole" if detail == "full" else "scores overall"
    joined = "but" if _reassuring(findings) else "and"
    return f", {joined} since {course.since.when} {who} have run {whole_points(gap)} percentage points {_high(gap)}"


def tiles(findings: Findings) -> tuple[Tile, ...]:
    """Return up to four numbers, each beside what it must be compared with."""
    return (_gap_tile(findings), _error_tile(findings), _segments_tile(findings), _last_tile(findings))


def needed(findings: Findings) -> str:
    """Return what a row must have to be used."""
    return "label or score" if findings.roles.weight is None else "label, score or weight"


def name_of(segment: Segment) -> str:
    """Return a segment as a reader knows it: its column and its value."""
    return f"{short(segment.column)} {segment.name}"


def _brief(segment: Segment) -> str:
    return f"{short(segment.column, words=_MOST_WORDS_OF_A_COLUMN)} {segment.brief}"


def _reassuring(findings: Findings) -> bool:
    """Tell whether what is said before the time is no bad news: the segments if there are any, else the average."""
    if next(findings.segments(), None) is not None:
        return not findings.open and not findings.with_verdict("over", "under")
    return findings.overall["verdict"] not in CLEAR | LEANS and not findings.curve_off


def _high(gap: float) -> str:
    return "high" if gap > 0 else "low"


def _stated(gap: float) -> str:
    return "overstated" if gap > 0 else "understated"


def _off_by(segment: Segment) -> str:
    gap = segment.row["gap"]
    return f"{_stated(gap)} by {whole_points(gap)} percentage points"


def _clear(clear: list[Segment], detail: Detail) -> str:
    if detail == "count":
        return (
            f"{plural(len(clear), 'segment')} {'has a' if len(clear) == 1 else 'have'} clear "
            f"{'gap' if len(clear) == 1 else 'gaps'}"
        )
    worst, *others = clear
    name, size = _brief(worst), _off_by(worst)
    text = f"{name} is {size}"
    if not others:
        return text
    if detail == "full" and len(others) == 1:
        gap = others[0].row["gap"]
        return f"{text} and {_brief(others[0])} {_stated(gap)} by {whole_points(gap)}"
    if any(abs(other.row["gap"]) > abs(worst.row["gap"]) for other in others):  # it is not the one furthest off
        text = f"{len(clear)} segments have clear gaps; of these {name} misstates the most rows"
        return f"{text} ({size})" if detail == "full" else text
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
    clear, few = len(findings.with_verdict("over", "under")), len(findings.with_verdict("few"))
    judged = sum(one.segments.height for one in findings.groupings) - few
    rest = (
        f"the rest: {len(findings.with_verdict('within'))} within tolerance, "
        f"{len(findings.with_verdict('leans_over', 'leans_under'))} leaning, "
        f"{len(findings.with_verdict('unsure'))} undecided"
    )
    parts = [rest] if judged > clear else []
    parts += [f"{few} {'more ' if judged else ''}too small to judge"] if few else []
    return Tile(
        name="Segments with a clear gap",
        big=f"{clear} of {judged}",
        small="; ".join(parts) or "every segment has one",
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
    if last["state"] != "in" and abs(last["gap"]) > findings.tolerance:
        tone = _tone(last["state"])
    if course.since is not None:
        few = f", {plural(course.since.unjudged, 'unjudged period')} aside" if course.since.unjudged else ""
        small = f"before {course.since.label}{few}: {points(course.since.before)}"
        tone = "over" if course.since.during > 0 else "under"
    return Tile(name=f"Latest period, {last['label']}", big=points(last["gap"]), small=small, tone=tone)


def _tone(verdict: str) -> Tone:
    return "over" if verdict == "over" else "under" if verdict == "under" else "ok"
