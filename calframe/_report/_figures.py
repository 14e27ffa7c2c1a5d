"""Figures: a title, how to read it, the chart at two widths, and the numbers behind it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import polars as pl

from calframe import _charts as charts
from calframe._auditing._drawn import forest_rows
from calframe._drifting._course import Course
from calframe._drifting._drawn import course_rows
from calframe._report import _captions as captions
from calframe._report import _titles as titles
from calframe._report._findings import Findings
from calframe._report._page import Figure, TextTable
from calframe._segments import Grouping
from calframe._verdicts import WORDS
from calframe._words._lines import columns
from calframe._words._numbers import (
    count,
    interval,
    number,
    percent,
    plural,
    points,
    pvalue,
    rounded_up,
    rows,
    signed_count,
)

_MOST_FOREST = 36  # as many as fit on a sheet of A4
_MOST_HEAT = 20
_MOST_PANELS = 12
_MOST_PERIODS = 60
_MOST_TABLE_ROWS = 500
_NEVER_CUT = 16  # columns; names of these many have room in all charts
_OWN_NUMBER = re.compile(r"[+−]?[\d.,]+( pp)?( to [+−]?[\d.,]+)?$")  # +7.7 pp, −4.8 to −0.4
_FORMULA_STARTS = frozenset("=+-@\t\r−")


def forest_figure(findings: Findings, grouping: Grouping, *, number: int) -> Figure:
    """Return the forest plot of one grouping."""
    drawn = forest_rows(grouping.segments, level=captions.level(findings), most=_MOST_FOREST)
    return _figure(
        f"forest-{number}",
        titles.forest_title(grouping),
        captions.forest_caption(findings, grouping),
        lambda width: charts.forest(drawn, tolerance=findings.tolerance, width=width),
        _segment_numbers(grouping, findings.extras),
        note=_joined(
            captions.FOREST_NOTE, captions.left_out_note(grouping.segments.height, drawn.height, kept=_MOST_TABLE_ROWS)
        ),
        paper=_whole_names(grouping.segments["segment"].to_list()[:_MOST_FOREST]),
    )


def heat_figure(findings: Findings, grouping: Grouping, *, number: int) -> Figure:
    """Return the heatmap of segments and score ranges."""
    order = grouping.segments["segment"].to_list()[:_MOST_HEAT]
    heat = grouping.heat.filter(pl.col("segment").is_in(order))
    description = [_cell_description(row) for row in heat.iter_rows(named=True)]
    drawn = heat.with_columns(pl.Series("description", description, dtype=pl.String))
    numbers = [
        (r["segment"], r["range"], count(r["n"]), points(r["gap"]) if r["shown"] else "–")
        for r in heat.iter_rows(named=True)
    ]
    return _figure(
        f"heat-{number}",
        titles.heat_title(grouping, alpha=findings.alpha),
        captions.heat_caption(grouping),
        lambda width: charts.heatmap(drawn, segments=order, ranges=list(grouping.ranges), width=width),
        text_table((grouping.column, "score range", "rows", "gap"), numbers),
        note=_joined(captions.undrawn_note(grouping, len(order), kept=_MOST_TABLE_ROWS)),
    )


def reliability_figure(findings: Findings) -> Figure:
    """Return the reliability diagram of all rows, with gap strip and histogram."""
    curve = findings.curve
    drawn = _described(curve)
    numbers = [
        (
            percent(r["mean_score"]),
            percent(r["rate"]),
            f"{percent(r['band_low'])} – {percent(r['band_high'])}",
            count(r["n"]),
            points(r["gap"]),
        )
        for r in curve.iter_rows(named=True)
    ]
    return _figure(
        "reliability",
        titles.curve_title(curve, name="All rows together", alpha=findings.alpha),
        captions.curve_caption(findings),
        lambda width: charts.reliability(drawn, findings.histogram, width=min(width, 540), limit=findings.limit),
        text_table(("said", "happened", "right scores would show", "rows", "gap"), numbers),
        aside=(*captions.curve_aside(findings), *_whole_extras(findings)),
        note=captions.curve_note(findings),
    )


def panels_figure(findings: Findings, grouping: Grouping, *, number: int) -> Figure:
    """Return small multiples, one panel a segment."""
    table = grouping.segments.head(_MOST_PANELS)
    drawn_names = table["segment"].to_list()
    verdicts = dict(table.select("segment", "verdict").iter_rows())
    curves = _described(grouping.curves.filter(pl.col("segment").is_in(drawn_names)))
    curves = curves.with_columns(
        pl.col("segment").alias("panel"),
        pl.col("segment").replace_strict(verdicts, return_dtype=pl.String).alias("verdict"),
    )
    panels = pl.DataFrame(
        {
            "panel": drawn_names,
            "head": drawn_names,
            "size": [rows(n) for n in table["n"]],
            "sign": [WORDS[verdict][0] for verdict in table["verdict"]],
            "tag": [_tag(row) for row in table.iter_rows(named=True)],
            "verdict": table["verdict"],
        }
    )
    numbers = [
        (r["segment"], percent(r["mean_score"]), percent(r["rate"]), count(r["n"]))
        for r in curves.iter_rows(named=True)
    ]
    overall = findings.curve.select("mean_score", "rate")
    return _figure(
        f"panels-{number}",
        titles.panels_title(grouping, drawn_names, alpha=findings.alpha),
        captions.panels_caption(grouping),
        lambda width: charts.multiples(curves, overall, panels, width=width, limit=findings.limit),
        text_table((grouping.column, "said", "happened", "rows"), numbers),
        note=_joined(captions.undrawn_note(grouping, table.height, kept=_MOST_TABLE_ROWS)),
    )


def course_figure(findings: Findings, course: Course) -> Figure:
    """Return the course over time."""
    shown = course_rows(course.table, every=course.every).tail(_MOST_PERIODS)
    held = shown.filter(pl.col("label").is_in(course.table["label"].to_list())).height
    numbers = [
        (
            r["label"],
            count(r["n"]),
            percent(r["mean_score"]),
            percent(r["rate"]),
            points(r["gap"]),
            interval(r["gap_low"], r["gap_high"]),
        )
        for r in course.table.iter_rows(named=True)
    ]
    earlier = captions.earlier_note(course.table.height, held, kept=_MOST_TABLE_ROWS)
    return _figure(
        "course",
        titles.course_title(course, tolerance=findings.tolerance),
        captions.course_caption(findings, course),
        lambda width: charts.timeline(shown, tolerance=findings.tolerance, width=width),
        text_table(("period", "rows", "said", "happened", "gap", "interval (pp)"), numbers, newest=True),
        note=_joined(earlier, captions.undated_note(course)),
    )


def text_table(columns: tuple[str, ...], body: Sequence[tuple[str, ...]], *, newest: bool = False) -> TextTable:
    """Return a table as text, with its CSV; very long ones keep their first rows, or the newest, and say so."""
    shown = body[-_MOST_TABLE_ROWS:] if newest else body[:_MOST_TABLE_ROWS]
    left = len(body) - len(shown)
    if left:
        cut = (f"… {plural(left, 'earlier row' if newest else 'more row')}", *[""] * (len(columns) - 1))
        shown = [cut, *shown] if newest else [*shown, cut]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerows([[_plain(text) for text in row] for row in (columns, *shown)])
    return TextTable(columns=columns, rows=tuple(shown), csv=out.getvalue())


def _figure(
    name: str,
    title: str,
    sub: str,
    chart: Callable[[int], alt.TopLevelMixin],
    table: TextTable,
    *,
    note: str | None = None,
    aside: tuple[tuple[str, str], ...] = (),
    paper: tuple[str, ...] = (),
) -> Figure:
    return Figure(id=name, title=title, sub=sub, draw=chart, table=table, note=note, aside=aside, paper=paper)


def _whole_names(names: list[str]) -> tuple[str, ...]:
    """Return names for paper, where no pointer finds them: all if one is long enough to be cut in a chart."""
    return tuple(names) if max(map(columns, names), default=0) > _NEVER_CUT else ()


def _segment_numbers(grouping: Grouping, extras: Sequence[str]) -> TextTable:
    columns = (
        grouping.column, "gap", "verdict", "rows", "missing", "said", "happened", "interval (pp)", "widened (pp)",
        "adjusted p", "net rows off", "Brier", "ECE (pp)", "ECE of right scores (pp)", "rows needed",
        *(heading for name in extras for heading in (name, f"{name} interval")),
    )  # fmt: skip
    body = [
        (
            r["segment"],
            points(r["gap"]),
            " ".join(WORDS[r["verdict"]]),
            count(r["n"]),
            count(r["n_missing"]),
            percent(r["mean_score"]),
            percent(r["rate"]),
            interval(r["gap_low"], r["gap_high"]),
            interval(r["simultaneous_low"], r["simultaneous_high"]),
            pvalue(r["pvalue_adjusted"]),
            signed_count(r["net"]),
            "–" if r["brier"] is None else f"{r['brier']:.4f}",
            points(r["ece"], sign=False, unit=False),
            points(r["ece_expected"], sign=False, unit=False),
            "–" if r["rows_needed"] is None else rounded_up(r["rows_needed"]),
            *(text for name in extras for text in (number(r[name]), _ends(r, name))),
        )
        for r in grouping.segments.iter_rows(named=True)
    ]
    return text_table(columns, body)


def _whole_extras(findings: Findings) -> tuple[tuple[str, str], ...]:
    """Return what the further metrics say of all rows together; nothing where none was asked for."""
    overall = findings.overall
    ends = {name: _ends(overall, name) for name in findings.extras}
    said = [f"{name} {number(overall[name])}" + (f" ({text})" if text != "–" else "") for name, text in ends.items()]
    return (("Further metrics", f"With {captions.level(findings)} intervals: {'; '.join(said)}."),) if said else ()


def _ends(row: dict[str, Any], name: str) -> str:
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    return "–" if low is None or high is None else f"{number(low)} to {number(high)}"


def _cell_description(row: dict[str, Any]) -> str:
    if not row["shown"]:
        return f"{row['segment']}, scores {row['range']}: too few rows to show ({count(row['n'])})"
    return f"{row['segment']}, scores {row['range']}: gap {points(row['gap'])}, {rows(row['n'])}"


def _described(curve: pl.DataFrame) -> pl.DataFrame:
    name = "segment" if "segment" in curve.columns else None
    texts = [
        f"{row[name] + ': ' if name else ''}said {percent(row['mean_score'])}, happened {percent(row['rate'])} "
        f"({percent(row['rate_low'])} to {percent(row['rate_high'])}) of {rows(row['n'])}, gap {points(row['gap'])}; "
        f"right scores would show {percent(row['band_low'])} to {percent(row['band_high'])}"
        for row in curve.iter_rows(named=True)
    ]
    return curve.with_columns(pl.Series("description", texts, dtype=pl.String))


def _tag(row: dict[str, Any]) -> str:
    return WORDS["few"][1].lower() if row["verdict"] == "few" else points(row["gap"])


def _joined(*notes: str) -> str | None:
    """Return the notes that say something, as one; None where none does."""
    return " ".join(note for note in notes if note) or None


def _plain(text: str) -> str:
    """Return a cell for a spreadsheet: ASCII minus in our own numbers, no text that is taken for a formula."""
    if _OWN_NUMBER.match(text):
        return text.replace("−", "-")
    return f"'{text}" if text[:1] in _FORMULA_STARTS else text
