"""The chart of answering where a model is confident: accuracy against coverage."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Any, Final

import altair as alt
import polars as pl
from polars import selectors as cs

from calframe._charts._axes import LABELS, fixed, rate_y, share_axis
from calframe._charts._data import Columns, inline, tidy
from calframe._charts._marks import described, layered, x_pixel
from calframe._charts._named_lines import MOST_BANDS, MOST_TOGETHER, NamedLines, plotted
from calframe._charts._names import curve_names, thousands
from calframe._charts._theme import standalone, token
from calframe._words._thresholds import threshold

_COLUMNS: Final[Columns] = {
    "curve": pl.String,
    "name": pl.String,
    "rows": pl.Int64,
    "at": pl.Float64,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "description": pl.String,
}
_TARGETS: Final[Columns] = {
    "curve": pl.String,
    "target": pl.Float64,
    "at": pl.Float64,
    "value": pl.Float64,
    "description": pl.String,
    "words": pl.String,
}
_STEPS: Final = 20  # the axis of accuracies starts at a multiple of one in so many
_FEWEST: Final = 50  # rows answered from which on a curve is drawn
_MIDDLE: Final = 0.55  # of the coverage
_SPOKEN: Final = 20  # of the coverage: points nearer to each other have no words of their own


def coverage_curves(
    table: pl.DataFrame, targets: pl.DataFrame, *, keys: Sequence[str], width: int, level: str, whom: str
) -> Any:
    """Draw coverage-accuracy curves in plain colours, to be shown or saved by itself.

    Up to five curves share a plot; of more, the twelve of most rows have a panel each. Of up to three in a plot the
    interval is shaded. Target accuracies are dashed lines, and the thresholds chosen for them dots.

    Parameters
    ----------
    table : polars.DataFrame
        One row per curve and threshold: the key columns, `threshold`, `coverage`, `n`, `accuracy`, `accuracy_low`,
        `accuracy_high`.
    targets : polars.DataFrame
        One row per curve and target: the key columns, `target_accuracy`, `threshold`, `coverage`, `accuracy`.
    keys : sequence of str
        The columns that tell the curves apart.
    width : int
        Total width in pixels.
    level : str
        That of intervals and thresholds, such as "95%".
    whom : str
        For which rows thresholds are shown to hold.

    Returns
    -------
    altair.LayerChart or altair.ConcatChart
        With coverage from 0 to 1 along, and accuracy up to 1.
    """
    points, chosen = _enough(_points(table, keys)), _chosen(targets, keys)
    bands = not MOST_BANDS < points["curve"].n_unique() <= MOST_TOGETHER
    lowest = _lowest(points, chosen, bands=bands)

    def draw(some: pl.DataFrame, lines: NamedLines) -> alt.LayerChart:
        dots = chosen.filter(pl.col("curve").is_in(lines.named))
        x = alt.X("at:Q", scale=fixed((0.0, 1.0)), axis=_x_axis(lines))
        parts = [
            *lines.bands(some, x, _y("low", lowest, lines)),
            *_rules(chosen, lowest, lines),
            *lines.lines(some, x, _y("value", lowest, lines)),
            *lines.spots(some, x, _y("value", lowest, lines)),
            *_dots(dots, lines, x, lowest),
        ]
        return layered(parts, width=lines.side, height=lines.height)

    drawing, shown = plotted(points, draw, width=width)
    return standalone(drawing, caption=_caption(level, shown, whom, bands=bands, targets=chosen), width=width)


def _caption(level: str, shown: str, whom: str, *, bands: bool, targets: pl.DataFrame) -> str:
    """Say what lines, bands and dots are."""
    band = f" Shaded: {level} interval at each threshold by itself." if bands else ""
    shown_for = f"thresholds shown to reach them at {level} {whom}"
    targeted = f" Dashed: target accuracies; dots: {shown_for}." if targets.height else ""
    return (
        f"Line: accuracy (up) of the share of rows answered (along), the most confident first, from {_FEWEST} rows on."
        f"{band}{targeted}{shown}"
    )


def _enough(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points with enough rows to speak of an accuracy: one wrong row among the first would set the axis."""
    return points.filter((pl.col("rows") >= _FEWEST) | (pl.col("rows") == pl.col("rows").max().over("curve")))


def _points(table: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    others = [name for name in table.columns if name not in keys]
    names, labels = curve_names(table, keys)
    named = table.select(cs.by_name(*others)).with_columns(name=names, curve=labels)
    rows = pl.col("n").map_batches(thousands, return_dtype=pl.String)
    share, right, low, high = (
        pl.format("{}%", (pl.col(name) * 100).round(1))
        for name in ("coverage", "accuracy", "accuracy_low", "accuracy_high")
    )
    said = pl.format(
        "{}from confidence {} up: answers {} ({} rows), {} right ({} to {})",
        _prefix(),
        _written("threshold"),
        share,
        rows,
        right,
        low,
        high,
    )
    step = (pl.col("coverage") * _SPOKEN).ceil()
    spoken = (step != step.shift(-1)).fill_null(value=True).over("curve") if named.height else pl.lit(value=True)
    named = named.with_columns(rows="n", at="coverage", value="accuracy", low="accuracy_low", high="accuracy_high")
    named = named.with_columns(description=pl.when(spoken).then(said))
    return tidy(named, _COLUMNS).drop_nulls(["at", "value"])


def _chosen(targets: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    others = [name for name in targets.columns if name not in keys]
    names, labels = curve_names(targets, keys)
    named = targets.select(cs.by_name(*others)).with_columns(name=names, curve=labels)
    said = pl.format(
        "{}for an accuracy of {}%: from confidence {} up, answers {}%",
        _prefix(),
        (pl.col("target_accuracy") * 100).round_sig_figs(6),
        _written("threshold"),
        (pl.col("coverage") * 100).round(1),
    )
    named = named.with_columns(
        target="target_accuracy",
        at="coverage",
        value="accuracy",
        description=said,
        words=pl.format("from {}", _written("threshold")),
    )
    return tidy(named, _TARGETS)


def _written(name: str) -> pl.Expr:
    """Return thresholds in words."""
    return pl.col(name).map_elements(threshold, return_dtype=pl.String)


def _prefix() -> pl.Expr:
    return pl.when(pl.col("name") == "").then(pl.lit("")).otherwise(pl.col("name") + ": ")


def _lowest(points: pl.DataFrame, chosen: pl.DataFrame, *, bands: bool) -> float:
    """Return a round lower end of the axis of accuracies, below every line, band and target."""
    columns = points["low" if bands else "value"], points["value"], chosen["target"]
    values = [value for column in columns for value in column.drop_nulls()]
    return max(floor(min(values, default=0.0) * _STEPS - 0.5) / _STEPS, 0.0)


def _x_axis(lines: NamedLines) -> alt.Axis:
    title = None if lines.is_small else "coverage: share of rows answered"
    return share_axis(title=title, labels=lines.bottom, tickCount=2 if lines.is_small else 5)


def _y(field: str, lowest: float, lines: NamedLines) -> alt.Y:
    y: alt.Y = rate_y(field, limit=1.0, title="accuracy of the rows answered").scale(fixed((lowest, 1.0)))
    if lines.is_small:
        room = LABELS if lines.left else 0
        y = y.axis(share_axis(title=None, labels=lines.left, tickCount=3, minExtent=room, maxExtent=room))
    return y


def _rules(chosen: pl.DataFrame, lowest: float, lines: NamedLines) -> list[alt.Chart]:
    """Return the targets as dashed lines, each with its accuracy at its right end."""
    targets = (
        chosen.select("target")
        .unique(maintain_order=True)
        .with_columns(
            words=pl.format("{}%", (pl.col("target") * 100).round_sig_figs(6).cast(pl.String).str.strip_suffix(".0"))
        )
    )
    if targets.is_empty():
        return []
    y = _y("target", lowest, lines)
    rule = alt.Chart(inline(targets, "target")).mark_rule(
        color=token("faint"), strokeDash=[4, 4], strokeWidth=1, aria=False
    )
    words = alt.Chart(inline(targets, "target", "words")).mark_text(
        align="right", baseline="bottom", dx=-2, dy=-2, color=token("muted"), aria=False
    )
    return [rule.encode(y=y), words.encode(x=x_pixel(lines.side), y=y, text=alt.Text("words:N"))]


def _dots(chosen: pl.DataFrame, lines: NamedLines, x: alt.X, lowest: float) -> list[alt.Chart]:
    """Return the thresholds as dots on the lines, each with its confidence."""
    rows = chosen.drop_nulls(["at", "value"])
    if rows.is_empty():
        return []
    y = _y("value", lowest, lines)
    mark = alt.Chart(inline(rows, "curve", "at", "value", "description")).mark_point(
        filled=True, size=80, opacity=1, stroke=token("card"), strokeWidth=1
    )
    found = [mark.encode(x=x, y=y, color=lines.colour(), **described())]
    sides: tuple[tuple[pl.Expr, dict[str, Any]], ...] = (  # where a falling line leaves room, inside the plot
        (pl.col("at") <= _MIDDLE, {"align": "left", "baseline": "bottom", "dx": 6, "dy": -5}),
        (pl.col("at") > _MIDDLE, {"align": "right", "baseline": "top", "dx": -6, "dy": 5}),
    )
    for where, side in sides:
        some = alt.Chart(inline(rows.filter(where), "at", "value", "words"))
        words = some.mark_text(color=token("ink"), aria=False, **side)
        found.append(words.encode(x=x, y=y, text=alt.Text("words:N")))
    return found
