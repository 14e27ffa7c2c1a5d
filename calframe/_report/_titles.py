"""Titles of figures: each is a finding, true for the data, made by a rule."""

from __future__ import annotations

import polars as pl

from calframe._course import Course
from calframe._report._findings import Segment
from calframe._report._sentences import name_of
from calframe._report._words import percent, points, short, whole_points
from calframe._segments import Grouping
from calframe._verdicts import CLEAR


def forest_title(grouping: Grouping) -> str:
    """Say which segments have a clear gap."""
    table = grouping.segments
    clear = table.filter(pl.col("verdict").is_in(list(CLEAR)))
    column, total = short(grouping.column), len(table)
    within = table.filter(pl.col("verdict") == "within").height
    if clear.height:
        worst = clear.row(0, named=True)
        said = f"{percent(worst['mean_score'])} said, {percent(worst['rate'])} happened"
        name = name_of(Segment(column=grouping.column, row=worst))
        if clear.height == 1:
            return f"{name} is the one segment with a clear gap: {said}"
        return f"{clear.height} of {total} segments have a clear gap; {name} mis-states the most rows: {said}"
    if within == total:
        return f"Every segment of {column} is within tolerance"
    rest = "the others cannot be cleared yet" if within else "none can be cleared yet"
    return f"No segment of {column} has a clear gap; {within} of {total} are within tolerance, {rest}"


def heat_title(grouping: Grouping, *, alpha: float) -> str:
    """Say where in the score range the worst segment is off, or how many cells stand out against chance."""
    worst = grouping.segments.row(0, named=True)
    cells = grouping.heat.filter(pl.col("shown"))
    own = cells.filter((pl.col("segment") == worst["segment"]) & pl.col("clear"))
    if worst["verdict"] in CLEAR and own.height:
        cell = own.row(own["gap"].abs().arg_max() or 0, named=True)
        name = name_of(Segment(column=grouping.column, row=worst))
        size = f"{whole_points(cell['gap'])} pp too {'high' if cell['gap'] > 0 else 'low'}"
        return f"In {name} the gap is widest for scores of {cell['range']}: {size}"
    if not cells.height:
        return "No score range has rows enough to show a gap"
    out = cells.filter(pl.col("clear")).height
    return f"{out} of {cells.height} cells stand out, where chance alone gives about {cells.height * alpha:.0f}"


def curve_title(curve: pl.DataFrame, *, name: str) -> str:
    """Say how many bins lie outside the consistency band, and where."""
    out = curve.filter(pl.col("state") != "in")
    if not out.height:
        return f"{name}: all {curve.height} bins lie where right scores would put them"
    scores = out["mean_score"].to_list()
    largest, low, high = max(map(abs, out["gap"].to_list())), min(scores), max(scores)
    where = (
        f"at scores around {percent(low)}" if out.height == 1 else f"at scores from {percent(low)} to {percent(high)}"
    )
    size = f"by {whole_points(largest)} pp" if out.height == 1 else f"the largest by {whole_points(largest)} pp"
    verb = "lies" if out.height == 1 else "lie"
    return f"{name}: {out.height} of {curve.height} bins {verb} outside the band, {size}, {where}"


def panels_title(grouping: Grouping, drawn: list[str]) -> str:
    """Say how the drawn segments lie against their bands."""
    bins = (
        grouping.curves.filter(pl.col("segment").is_in(drawn))
        .group_by("segment", maintain_order=True)
        .agg((pl.col("state") != "in").sum().alias("out"), pl.len().alias("bins"))
    )
    judged = grouping.segments.filter((pl.col("verdict") != "few") & pl.col("segment").is_in(drawn))[
        "segment"
    ].to_list()
    bins = bins.filter(pl.col("segment").is_in(judged))
    if not bins.height:
        return "No segment has rows enough for a curve"
    worst = grouping.segments.row(0, named=True)
    own = bins.filter(pl.col("segment") == worst["segment"])
    others = bins.filter(pl.col("segment") != worst["segment"])
    some = bins.filter(pl.col("out") > 0).height
    if worst["verdict"] in CLEAR and own.height:
        name = name_of(Segment(column=grouping.column, row=worst))
        text = f"{name} is outside its band in {own['out'][0]} of {own['bins'][0]} bins"
        most = int(others["out"].to_numpy().max()) if others.height else 0
        if others.height and most < own["out"][0]:
            return f"{text}; no other segment here in more than {most}"
        return f"{text}; {some} of {bins.height} segments here have bins outside" if others.height else text
    return f"{some} of {bins.height} segments have a bin outside their band; one in twenty bins would be by chance"


def course_title(course: Course) -> str:
    """Say since when the scores have been off, or which periods stand out."""
    if course.since is not None:
        gap = course.since.during
        return (
            f"Since {course.since.label} the scores run about {whole_points(gap)} pp too {'high' if gap > 0 else 'low'}"
        )
    marked = course.table.filter(pl.col("state") != "in")
    if not marked.height:
        return (
            f"None of {course.table.height} periods stands out"
            if course.table.height > 1
            else "There is only one period"
        )
    largest = marked.row(marked["gap"].abs().arg_max() or 0, named=True)
    text = (
        f"{marked.height} of {course.table.height} periods stand out, {largest['label']} the most with "
        f"{points(largest['gap'])}"
    )
    return f"{text}; no lasting shift beyond the tolerance"
