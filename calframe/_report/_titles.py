"""Titles of figures: each is a finding, true for the data, made by a rule."""

from __future__ import annotations

import math

import polars as pl

from calframe._drifting._course import Course
from calframe._drifting._story import none_off
from calframe._report._findings import segments_of
from calframe._report._sentences import name_of
from calframe._segments import Grouping
from calframe._verdicts import CLEAR
from calframe._words._numbers import percent, plural, points, short, whole_points


def forest_title(grouping: Grouping) -> str:
    """Say which segments have a clear gap."""
    table = grouping.segments
    clear = table.filter(pl.col("verdict").is_in(list(CLEAR)))
    column, total = short(grouping.column), table.height
    within = table.filter(pl.col("verdict") == "within").height
    if clear.height:
        worst = next(segment for segment in segments_of(grouping) if segment.verdict in CLEAR)
        said = f"{percent(worst.row['mean_score'])} said, {percent(worst.row['rate'])} happened"
        name = name_of(worst)
        if clear.height == 1:
            return f"{name} is the one segment with a clear gap: {said}"
        return f"{clear.height} of {total} segments have a clear gap; of these {name} misstates the most rows: {said}"
    if within == total:
        return f"Every segment of {column} is within tolerance"
    if within == 0:
        return f"No segment of {column} has a clear gap, and none can be cleared yet"
    rest = "the other cannot" if total - within == 1 else "the others cannot"
    return f"No segment of {column} has a clear gap; {within} of {total} within tolerance, {rest} be cleared yet"


def heat_title(grouping: Grouping, *, alpha: float) -> str:
    """Say where in the score range the worst segment is off, or how many cells stand out against chance."""
    worst = segments_of(grouping)[0]
    cells = grouping.heat.filter(pl.col("shown"))
    own = cells.filter(pl.col("segment") == worst.row["segment"])
    bold = own.filter(pl.col("clear"))
    if worst.verdict in CLEAR and bold.height:
        cell = bold.row(bold["gap"].abs().arg_max() or 0, named=True)
        name = name_of(worst)
        if (own["gap"].abs() > abs(cell["gap"])).any():
            name = f"In bold cells {name}"
        size = f"{whole_points(cell['gap'])} pp too {'high' if cell['gap'] > 0 else 'low'}"
        return f"{name} is itself furthest off at scores of {cell['range']}: {size}"
    out = cells.filter(pl.col("clear")).height
    stand = "stands" if out == 1 else "stand"
    return (
        f"{out} of {plural(cells.height, 'cell')} {stand} out, where chance alone gives {_chance(cells.height, alpha)}"
    )


def curve_title(curve: pl.DataFrame, *, name: str, alpha: float) -> str:
    """Say how many bins lie outside the consistency band, against chance, and where the furthest is."""
    if not curve.height:
        return f"{name}: there are none to draw a curve of"
    out = curve.filter(pl.col("state") != "in")
    if not out.height:
        bins = "the one bin lies" if curve.height == 1 else f"all {curve.height} bins lie"
        return f"{name}: {bins} where right scores would put {'it' if curve.height == 1 else 'them'}"
    most = out.row(out["gap"].abs().arg_max() or 0, named=True)
    off = f"off by {whole_points(most['gap'])} pp at scores around {percent(most['mean_score'])}"
    the = "it is" if out.height == 1 else "the furthest is"
    return f"{name}: {_against_chance(out.height, curve.height, alpha, band='the band')}; {the} {off}"


def panels_title(grouping: Grouping, drawn: list[str], *, alpha: float) -> str:
    """Say how many bins of the drawn segments lie outside their bands, against chance; of the worst one by itself."""
    judged = grouping.segments.filter((pl.col("verdict") != "few") & pl.col("segment").is_in(drawn))["segment"]
    bins = grouping.curves.filter(pl.col("segment").is_in(judged.to_list())).select(
        "segment", out=pl.col("state") != "in"
    )
    if not bins.height:
        return "No segment has rows enough for a curve"
    worst = segments_of(grouping)[0]
    own, others = (bins.filter((pl.col("segment") == worst.row["segment"]) == of_worst) for of_worst in (True, False))
    if worst.verdict not in CLEAR or not own.height:
        here = plural(bins["segment"].n_unique(), "segment")
        return f"{here} here: {_against_chance(bins.filter('out').height, bins.height, alpha)}"
    text = f"{name_of(worst)} is outside its band in {own.filter('out').height} of {plural(own.height, 'bin')}"
    if not others.height:
        return text
    rest = plural(others["segment"].n_unique(), "other segment")
    return f"{text}; {rest} here: {_against_chance(others.filter('out').height, others.height, alpha)}"


def _against_chance(out: int, total: int, alpha: float, *, band: str = "their bands") -> str:
    """Say how many bins lie outside, and how many would by chance."""
    lie = "lies" if out == 1 else "lie"
    return f"{out} of {plural(total, 'bin')} {lie} outside {band}, where chance alone gives {_chance(total, alpha)}"


def _chance(total: int, alpha: float) -> str:
    expected = total * alpha
    return "less than one" if expected < 0.5 else f"about {math.floor(expected + 0.5)}"


def course_title(course: Course, *, tolerance: float) -> str:
    """Say since when the scores have been off, or in which periods they clearly were, or that they never were."""
    if course.since is not None:
        gap = course.since.during
        return (
            f"Since {course.since.when} the scores have run about {whole_points(gap)} pp too "
            f"{'high' if gap > 0 else 'low'}"
        )
    clear = course.table.filter(pl.col("verdict").is_in(list(CLEAR)))
    if not clear.height:
        return none_off(course.table, tolerance, every=course.every, option="every {}")
    largest = clear.row(clear["gap"].abs().arg_max() or 0, named=True)
    most = f"{largest['label']} {'the most ' if clear.height > 1 else ''}with {points(largest['gap'])}"
    are = "is" if clear.height == 1 else "are"
    text = f"{clear.height} of {plural(course.comparisons, 'judged period')} {are} clearly off, {most}"
    return f"{text}; no new shift that lasts to the end"
