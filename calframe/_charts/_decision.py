"""The chart of decision curves: net benefit against the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt
import polars as pl
from polars import selectors as cs

from calframe._charts._axes import LABELS, fixed, score_x, upper_end
from calframe._charts._data import Columns, inline, tidy
from calframe._charts._marks import Part, layered, words
from calframe._charts._named_lines import NamedLines
from calframe._charts._names import curve_names
from calframe._charts._theme import standalone, themed, token

_COLUMNS: Final[Columns] = {
    "curve": pl.String,
    "name": pl.String,
    "rows": pl.Int64,
    "at": pl.Float64,
    "value": pl.Float64,
    "everyone": pl.Float64,
    "description": pl.String,
}
_ROWS: Final = {"curve": pl.String, "rows": pl.Int64}
_BELOW: Final = 0.25  # of the height above 0: how far below it the axis reaches
_NO_BENEFIT: Final = 0.01  # upper end of the axis where nothing is worth anything
_HEIGHT: Final = 0.7  # of the width
_SPOKEN: Final = 20  # of the axis: points nearer to each other have no words of their own
_LABEL: Final = 6  # pixels between words and the edge
_LINE: Final = 18  # pixels of a line of words


def decision_curves(
    table: pl.DataFrame, sizes: Sequence[int], *, keys: Sequence[str], width: int, threshold: float
) -> Any:
    """Draw decision curves in plain colours, to be shown or saved by itself.

    The eight curves of most rows have a colour, and further ones are thin and grey. Acting on everyone is dotted, in
    the colour of its curve; acting on no one is the line at 0. The axis of thresholds ends where neither is worth more
    than that.

    Parameters
    ----------
    table : polars.DataFrame
        One row per curve and threshold: the key columns, `threshold`, `acted`, `net_benefit`, `net_benefit_all`.
    sizes : sequence of int
        The rows of each curve that has any, in the order of the table.
    keys : sequence of str
        The columns that tell the curves apart.
    width : int
        Total width in pixels.
    threshold : float
        The threshold that is decided by, drawn upright.

    Returns
    -------
    altair.LayerChart
        With thresholds along, and net benefit up.
    """
    points = _points(table, sizes, keys)
    useful = points.filter((pl.col("value") > 0) | (pl.col("everyone") > 0))["at"]
    limit = upper_end(max([threshold, *useful]))
    points = points.filter(pl.col("at") <= limit)
    lines = NamedLines.of_points(points, width=width)
    top = max([0.0, *points["value"].drop_nulls(), *points["everyone"].drop_nulls()]) * 1.05 or _NO_BENEFIT
    x, height = score_x("at", limit=limit, title="threshold: act from this score on"), _HEIGHT * lines.side
    y = _y("value", top)
    parts: list[Part] = [
        _upright(threshold, x),
        _level(y),
        *_everyone(lines.parted(points)[0], lines, x, top),
        *lines.lines(points, x, y),
        *lines.spots(points, x, y),
        words("dotted: act on everyone", x=lines.side - _LABEL, y=_LINE, align="right", colour="muted"),
        words("line at 0: act on no one", x=lines.side - _LABEL, y=2 * _LINE, align="right", colour="muted"),
    ]
    return standalone(themed(layered(parts, width=lines.side, height=height)))


def _points(table: pl.DataFrame, sizes: Sequence[int], keys: Sequence[str]) -> pl.DataFrame:
    others = [name for name in table.columns if name not in keys]
    names, labels = curve_names(table, keys)
    named = table.select(cs.by_name(*others)).with_columns(name=names, curve=labels)
    curves = named["curve"].unique(maintain_order=True)
    rows = pl.DataFrame({"curve": curves, "rows": [size for size in sizes if size]}, schema_overrides=_ROWS)
    named = named.join(rows, on="curve", how="left", maintain_order="left")
    step = (pl.col("threshold") * _SPOKEN).ceil()
    spoken = (step != step.shift(-1)).fill_null(value=True).over("curve") if named.height else pl.lit(value=True)
    prefix = pl.when(pl.col("name") == "").then(pl.lit("")).otherwise(pl.col("name") + ": ")
    said = pl.format(
        "{}from {} on: acts on {}%, net benefit {}; of acting on everyone {}",
        prefix,
        pl.col("threshold").round_sig_figs(4),
        (pl.col("acted") * 100).round(1),
        pl.col("net_benefit").round_sig_figs(3),
        pl.col("net_benefit_all").round_sig_figs(3),
    )
    named = named.with_columns(at="threshold", value="net_benefit", everyone="net_benefit_all")
    return tidy(named.with_columns(description=pl.when(spoken).then(said)), _COLUMNS).drop_nulls("at")


def _y(field: str, top: float) -> alt.Y:
    """Return the axis of net benefit, whose lines are cut off a little below 0."""
    axis = alt.Axis(
        format="~g",
        tickCount=5,
        minExtent=LABELS,
        maxExtent=LABELS,
        title="net benefit: true positives per row, less what false ones undo",
        titleAngle=0,
        titleAlign="left",
        titleBaseline="bottom",
        titleX=-LABELS,
        titleY=-10,
    )
    return alt.Y(f"{field}:Q", scale=fixed((-_BELOW * top, top)), axis=axis)


def _upright(threshold: float, x: alt.X) -> alt.Chart:
    place = alt.InlineData(values=[{"at": threshold}])
    mark = alt.Chart(place).mark_rule(color=token("faint"), strokeDash=[4, 4], strokeWidth=1, aria=False)
    rule: alt.Chart = mark.encode(x=x)
    return rule


def _level(y: alt.Y) -> alt.Chart:
    mark = alt.Chart(alt.InlineData(values=[{"value": 0.0}])).mark_rule(color=token("muted"), strokeWidth=1, aria=False)
    rule: alt.Chart = mark.encode(y=y)
    return rule


def _everyone(points: pl.DataFrame, lines: NamedLines, x: alt.X, top: float) -> list[alt.Chart]:
    rows = points.drop_nulls("everyone")
    if rows.is_empty():
        return []
    mark = alt.Chart(inline(rows, "curve", "at", "everyone")).mark_line(
        strokeWidth=1.5, strokeDash=[2, 3], aria=False, clip=True
    )
    return [mark.encode(x=x, y=_y("everyone", top), color=lines.colour(), detail=alt.Detail("curve:N"))]
