"""The chart of decision curves: net benefit against the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt
import polars as pl
from polars import selectors as cs

from calframe._charts._axes import LABELS, Domain, fixed, score_x, upper_end
from calframe._charts._data import Columns, inline, tidy
from calframe._charts._marks import Part, layered, y_pixel
from calframe._charts._named_lines import NamedLines, plotted
from calframe._charts._names import curve_names
from calframe._charts._theme import standalone, token
from calframe._words._thresholds import threshold as written

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
_BELOW: Final = 0.25  # of the height above 0: how far below it the axis reaches at least
_NO_BENEFIT: Final = 0.01  # upper end of the axis where nothing is worth anything
_SPOKEN: Final = 20  # of the axis: points nearer to each other have no words of their own
_ROOM: Final = 1.05  # of what is shown
_CAPTION: Final = (
    "Line: net benefit (up) of acting on scores from a threshold on (along); dotted: of acting on everyone; line at 0: "
    "of acting on no one; dashed: the threshold decided by. No intervals: costs have them, in .curve."
)


def decision_curves(
    table: pl.DataFrame, sizes: Sequence[int], *, keys: Sequence[str], width: int, threshold: float
) -> Any:
    """Draw decision curves in plain colours, to be shown or saved by itself.

    Up to five curves share a plot; of more, the twelve of most rows have a panel each. Acting on everyone is dotted, in
    the colour of its curve; acting on no one is the line at 0. The axis of thresholds ends where neither is worth more
    than that. Every curve is shown whole, acting on everyone may leave the plot below.

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
    altair.LayerChart or altair.ConcatChart
        With thresholds along, and net benefit up.
    """
    points = _points(table, sizes, keys)
    useful = points.filter((pl.col("value") > 0) | (pl.col("everyone") > 0))["at"]
    limit = upper_end(max([threshold, *useful]))
    points = points.filter(pl.col("at") <= limit)
    domain = _domain(points)

    def draw(some: pl.DataFrame, lines: NamedLines) -> alt.LayerChart:
        title = None if lines.is_small else "threshold: act from this score on"
        x, y = score_x("at", limit=limit, title=title, labels=lines.bottom), _y("value", domain, lines)
        parts: list[Part] = [
            *_upright(threshold, x, is_right=threshold > limit / 2, labelled=not lines.is_small),
            _level(y),
            *_everyone(some, lines, x, _y("everyone", domain, lines)),
            *lines.lines(some, x, y),
            *lines.spots(some, x, y),
        ]
        return layered(parts, width=lines.side, height=lines.height)

    drawing, shown = plotted(points, draw, width=width)
    return standalone(drawing, caption=f"{_CAPTION}{shown}", width=width)


def _domain(points: pl.DataFrame) -> Domain:
    """Return the range of the axis of net benefit: every curve, and a quarter of what is above 0 below it."""
    values = points["value"].drop_nulls().to_list()
    top = max([0.0, *values, *points["everyone"].drop_nulls()]) * _ROOM or _NO_BENEFIT
    return min([-_BELOW * top, *(_ROOM * value for value in values)]), top


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
        pl.col("threshold").map_elements(written, return_dtype=pl.String),
        (pl.col("acted") * 100).round(1),
        pl.col("net_benefit").round_sig_figs(3),
        pl.col("net_benefit_all").round_sig_figs(3),
    )
    named = named.with_columns(at="threshold", value="net_benefit", everyone="net_benefit_all")
    return tidy(named.with_columns(description=pl.when(spoken).then(said)), _COLUMNS).drop_nulls("at")


def _y(field: str, domain: Domain, lines: NamedLines) -> alt.Y:
    """Return the axis of net benefit."""
    room = LABELS if lines.left else 0
    axis = alt.Axis(
        format="~g",
        tickCount=3 if lines.is_small else 5,
        minExtent=room,
        maxExtent=room,
        labels=lines.left,
        title=None if lines.is_small else "net benefit: true positives per row, less what false ones undo",
        titleAngle=0,
        titleAlign="left",
        titleBaseline="bottom",
        titleX=-LABELS,
        titleY=-10,
    )
    return alt.Y(f"{field}:Q", scale=fixed(domain), axis=axis)


def _upright(threshold: float, x: alt.X, *, is_right: bool, labelled: bool) -> list[alt.Chart]:
    """Return the threshold as an upright line, with its words at the side that has room."""
    place = alt.InlineData(values=[{"at": threshold, "words": f"act from {written(threshold)} on"}])
    rule = alt.Chart(place).mark_rule(color=token("faint"), strokeDash=[4, 4], strokeWidth=1, aria=False)
    side: dict[str, Any] = {"align": "right", "dx": -5} if is_right else {"align": "left", "dx": 5}
    words = alt.Chart(place).mark_text(baseline="top", color=token("muted"), aria=False, **side)
    return [rule.encode(x=x), *[words.encode(x=x, y=y_pixel(2), text=alt.Text("words:N"))] * labelled]


def _level(y: alt.Y) -> alt.Chart:
    mark = alt.Chart(alt.InlineData(values=[{"value": 0.0}])).mark_rule(color=token("muted"), strokeWidth=1, aria=False)
    rule: alt.Chart = mark.encode(y=y)
    return rule


def _everyone(points: pl.DataFrame, lines: NamedLines, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    rows = points.drop_nulls("everyone")
    if rows.is_empty():
        return []
    mark = alt.Chart(inline(rows, "curve", "at", "everyone")).mark_line(
        strokeWidth=1.5, strokeDash=[2, 3], aria=False, clip=True
    )
    return [mark.encode(x=x, y=y, color=lines.colour(), detail=alt.Detail("curve:N"))]
