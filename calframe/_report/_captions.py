"""How to read each figure: the grey lines under the titles and beside the charts."""

from __future__ import annotations

from calframe._charts._captions import curve_marks, forest_marks
from calframe._drifting._course import Course
from calframe._drifting._drawn import empty_words, marks_words
from calframe._periods import PERIOD_WORDS
from calframe._report._findings import Findings
from calframe._segments import HEAT_ROWS, Grouping
from calframe._words._numbers import count, percent, plural, points, rows, short

FOREST_NOTE = (
    "A verdict needs the whole thin line outside the grey zone (clear gap) or inside it (within tolerance). "
    "Anything else is reported as undecided, not as fine."
)


def level(findings: Findings) -> str:
    """Return the confidence level of the report's intervals."""
    return f"{100 * (1 - findings.alpha):g}%"


def forest_caption(findings: Findings, grouping: Grouping) -> str:
    """Explain the forest plot."""
    return (
        f"Each row is a segment of {short(grouping.column)}, worst first. "
        f"{forest_marks(level=level(findings), comparisons=findings.comparisons, zone=findings.tolerance)}"
    )


def heat_caption(grouping: Grouping) -> str:
    """Explain the heatmap."""
    return (
        f"Gap in percentage points for each segment of {short(grouping.column)} and score range. Orange: the scores "
        "say more than happens; blue: they say less. Strong and bold: the cell's own interval excludes zero. "
        f"‘·’: fewer than {HEAT_ROWS} rows, gap not shown; blank: no rows at all. A range holds its lower end, not its "
        "upper one."
    )


def curve_caption(findings: Findings) -> str:
    """Explain the reliability diagram."""
    return (
        f"{rows(findings.counts['used'])} in {plural(findings.curve.height, 'bin')} of about equal size. Dots on the "
        "dashed line would be perfect; the strip below enlarges how far off each is."
    )


def curve_aside(findings: Findings) -> tuple[tuple[str, str], ...]:
    """Explain the marks of the reliability diagram, and set the ECE beside chance."""
    ece = findings.overall["ece"]
    error = "There are no rows to measure."
    if ece is not None:
        reading = (
            "the reading is within chance" if ece <= findings.chance.high else "it is more than chance alone would show"
        )
        error = (
            f"ECE {points(ece, sign=False)}. Right scores would still show about "
            f"{points(findings.chance.mean, sign=False)} "
            f"with these rows (95th percentile {points(findings.chance.high, sign=False)}): {reading}."
        )
    return (*curve_marks(level(findings)), ("Error in one number", error))


def curve_note(findings: Findings) -> str | None:
    """Say where the axes end, if not at 100%."""
    return None if findings.limit == 1.0 else f"Axes end at {percent(findings.limit)}, above nearly all scores."


def panels_caption(grouping: Grouping) -> str:
    """Explain the small multiples."""
    return (
        f"One panel per segment of {short(grouping.column)}, worst first; up is ‘happens more often than said’. Grey "
        "line: all rows together. Coloured dot: outside the band. Bins are fewer where there are fewer rows."
    )


def course_caption(findings: Findings, course: Course) -> str:
    """Explain the course over time."""
    zone = f" Days are those of {course.zone}." if course.zone else ""
    empty = f" {empty_words(course.n_empty)}" if course.n_empty else ""
    marks = marks_words(
        level=level(findings),
        judged=course.comparisons,
        over=plural(course.comparisons, "judged period"),
        tolerance=findings.tolerance,
    )
    return f"Gap per {PERIOD_WORDS[course.every]}, all rows.{zone}{empty} {marks}"


def undated_note(course: Course) -> str:
    """Say how many rows have no date."""
    if not course.undated:
        return ""
    return f"{rows(course.undated)} without a date {'is' if course.undated == 1 else 'are'} not here."


def left_out_note(total: int, shown: int, *, kept: int) -> str:
    """Say how many segments are not drawn; the table of numbers holds the first `kept` of them all."""
    return _not_drawn(total, shown, kept=kept, what="more segment", held="first")


def earlier_note(total: int, shown: int, *, kept: int) -> str:
    """Say how many earlier periods are not drawn; the table of numbers holds the latest `kept` of them all."""
    return _not_drawn(total, shown, kept=kept, what="earlier period", held="latest")


def undrawn_note(grouping: Grouping, shown: int, *, kept: int) -> str:
    """Say how many segments are neither drawn nor in the table below; that of all gaps holds the first `kept`."""
    total = grouping.segments.height
    if total == shown:
        return ""
    are, gaps = ("is", "its gap is") if total - shown == 1 else ("are", "their gaps are")
    place = "among the numbers behind the chart of gaps on screen and " if kept >= total else ""
    left = plural(total - shown, "more segment")
    return f"{left} {are} neither drawn nor among the numbers behind this chart; {gaps} {place}in the report's data."


def _not_drawn(total: int, shown: int, *, kept: int, what: str, held: str) -> str:
    if total == shown:
        return ""
    are, they = ("is", "it is") if total - shown == 1 else ("are", "they are")
    place = f"{they} among the numbers behind this chart on screen and in the report's data"
    if kept < total:
        place = (
            f"the numbers behind this chart on screen are those of the {held} {count(kept)} of all {count(total)}, and "
            "the report's data holds all of them"
        )
    return f"{plural(total - shown, what)} {are} not drawn; {place}."
