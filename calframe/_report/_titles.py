"""Titles of figures: each is a finding, true for the data, made by a rule."""

from __future__ import annotations

import math

import polars as pl

from calframe._drifting._course import Course
from calframe._report._findings import Segment
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
        worst = clear.row(0, named=True)
        said = f"{percent(worst['mean_score'])} said, {percent(worst['rate'])} happened"
        name = name_of(Segment(column=grouping.column, row=worst))
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
    worst = grouping.segments.row(0, named=True)
    cells = grouping.heat.filter(pl.col("shown"))
    own = cells.filter((pl.col("segment") == worst["segment"]) & pl.col("clear"))
    if worst["verdict"] in CLEAR and own.height:
        cell = own.row(own["gap"].abs().arg_max() or 0, named=True)
        name = name_of(Segment(column=grouping.column, row=worst))
        size = f"{whole_points(cell['gap'])} pp too {'high' if cell['gap'] > 0 else 'low'}"
        return f"The widest clear gap of {name} is at scores of {cell['range']}: {size}"
    if not cells.height:
        return "No score range has rows enough to show a gap"
    out, expected = cells.filter(pl.col("clear")).height, cells.height * alpha
    chance = "less than one" if expected < 0.5 else f"about {math.floor(expected + 0.5)}"
    stand = "stands" if out == 1 else "stand"
    return f"{out} of {plural(cells.height, 'cell')} {stand} out, where chance alone gives {chance}"


def curve_title(curve: pl.DataFrame, *, name: str) -> str:
    """Say how many bins lie outside the consistency band, and where."""
    if not curve.height:
        return f"{name}: there are none to draw a curve of"
    out = curve.filter(pl.col("state") != "in")
    if not out.height:
        bins = "the one bin lies" if curve.height == 1 else f"all {curve.height} bins lie"
        return f"{name}: {bins} where right scores would put {'it' if curve.height == 1 else 'them'}"
    most = out.row(out["gap"].abs().arg_max() or 0, named=True)
    size, where = whole_points(most["gap"]), percent(most["mean_score"])
    if out.height == 1:
        return (
            f"{name}: 1 of {plural(curve.height, 'bin')} lies outside the band, by {size} pp, at scores around {where}"
        )
    scores = out["mean_score"].to_list()
    return (
        f"{name}: {out.height} of {curve.height} bins lie outside the band, at scores from {percent(min(scores))} to "
        f"{percent(max(scores))}, the furthest by {size} pp at scores around {where}"
    )


def panels_title(grouping: Grouping, drawn: list[str], *, alpha: float) -> str:
    """Say how the drawn segments lie against their bands."""
    judged = grouping.segments.filter((pl.col("verdict") != "few") & pl.col("segment").is_in(drawn))[
        "segment"
    ].to_list()
    curves = grouping.curves.filter(pl.col("segment").is_in(judged))
    bins = curves.group_by("segment", maintain_order=True).agg(
        (pl.col("state") != "in").sum().alias("out"), pl.len().alias("bins")
    )
    if not bins.height:
        return "No segment has rows enough for a curve"
    worst = grouping.segments.row(0, named=True)
    own = bins.filter(pl.col("segment") == worst["segment"])
    others = bins.filter(pl.col("segment") != worst["segment"])
    some = bins.filter(pl.col("out") > 0).height
    if worst["verdict"] in CLEAR and own.height:
        name = name_of(Segment(column=grouping.column, row=worst))
        text = f"{name} is outside its band in {own['out'][0]} of {plural(own['bins'][0], 'bin')}"
        most = int(others["out"].to_numpy().max()) if others.height else 0
        if others.height and most < own["out"][0]:
            return f"{text}; no other segment here in {f'more than {most}' if most else 'any'}"
        return f"{text}; {_with_bins(some, bins.height)}" if others.height else text
    return f"{_with_bins(some, bins.height)}; by chance at most about {100 * alpha:g}% of bins would be"


def _with_bins(some: int, total: int) -> str:
    return f"{some} of {plural(total, 'segment')} here {'has' if some == 1 else 'have'} bins outside"


def course_title(course: Course) -> str:
    """Say since when the scores have been off, or which periods stand out."""
    if course.since is not None:
        gap = course.since.during
        return (
            f"Since {course.since.label} the scores have run about {whole_points(gap)} pp too "
            f"{'high' if gap > 0 else 'low'}"
        )
    marked = course.table.filter(pl.col("state") != "in")
    total = course.table.height
    if course.comparisons == 0:
        return f"{plural(total, 'period')}, none with rows enough to be judged"
    if not marked.height:
        return f"None of {plural(course.comparisons, 'judged period')} stands out"
    largest = marked.row(marked["gap"].abs().arg_max() or 0, named=True)
    stand = "stands" if marked.height == 1 else "stand"
    most = f"{largest['label']} {'the most ' if marked.height > 1 else ''}with {points(largest['gap'])}"
    text = f"{marked.height} of {plural(total, 'period')} {stand} out, {most}"
    return f"{text}; no new shift that lasts to the end"
