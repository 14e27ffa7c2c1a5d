"""The chart of answering where a model is confident: accuracy against coverage."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Any, Final

import altair as alt
import polars as pl
from polars import selectors as cs

from calframe._charts._axes import fixed, rate_y, share_axis
from calframe._charts._data import Columns, inline, tidy
from calframe._charts._marks import described, layered
from calframe._charts._named_lines import NamedLines
from calframe._charts._names import curve_names, thousands
from calframe._charts._theme import standalone, themed, token

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
}
_STEPS: Final = 20  # the axis of accuracies starts at a multiple of one in so many
_SPOKEN: Final = 20  # of the coverage: points nearer to each other have no words of their own


def coverage_curves(table: pl.DataFrame, targets: pl.DataFrame, *, keys: Sequence[str], width: int) -> Any:
    """Draw coverage-accuracy curves in plain colours, to be shown or saved by itself.

    The eight curves of most rows have a colour, and further ones are thin and grey. Of up to three the interval is
    shaded. Target accuracies are dashed lines, and the thresholds chosen for them dots.

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

    Returns
    -------
    altair.LayerChart
        With coverage from 0 to 1 along, and accuracy up to 1.
    """
    points, chosen = _points(table, keys), _chosen(targets, keys)
    lines = NamedLines.of_points(points, width=width)
    x = alt.X("at:Q", scale=fixed((0.0, 1.0)), axis=share_axis(title="coverage: share of rows answered", tickCount=5))
    lowest = _lowest(points, chosen)
    parts = [
        *lines.bands(points, x, _y("low", lowest)),
        *_rules(chosen, lowest),
        *lines.lines(points, x, _y("value", lowest)),
        *lines.spots(points, x, _y("value", lowest)),
        *_dots(lines.parted(chosen)[0], lines, x, lowest),
    ]
    return standalone(themed(layered(parts, width=lines.side, height=0.7 * lines.side)))


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
        pl.col("threshold").round_sig_figs(4),
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
        pl.col("threshold").round_sig_figs(4),
        (pl.col("coverage") * 100).round(1),
    )
    named = named.with_columns(target="target_accuracy", at="coverage", value="accuracy", description=said)
    return tidy(named, _TARGETS)


def _prefix() -> pl.Expr:
    return pl.when(pl.col("name") == "").then(pl.lit("")).otherwise(pl.col("name") + ": ")


def _lowest(points: pl.DataFrame, chosen: pl.DataFrame) -> float:
    """Return a round lower end of the axis of accuracies, below every line and target."""
    values = [value for column in (points["value"], chosen["target"]) for value in column.drop_nulls()]
    return max(floor(min(values, default=0.0) * _STEPS - 0.5) / _STEPS, 0.0)


def _y(field: str, lowest: float) -> alt.Y:
    y: alt.Y = rate_y(field, limit=1.0, title="accuracy of the rows answered").scale(fixed((lowest, 1.0)))
    return y


def _rules(chosen: pl.DataFrame, lowest: float) -> list[alt.Chart]:
    targets = chosen.select("target").unique(maintain_order=True)
    if targets.is_empty():
        return []
    mark = alt.Chart(inline(targets, "target")).mark_rule(
        color=token("faint"), strokeDash=[4, 4], strokeWidth=1, aria=False
    )
    return [mark.encode(y=_y("target", lowest))]


def _dots(chosen: pl.DataFrame, lines: NamedLines, x: alt.X, lowest: float) -> list[alt.Chart]:
    rows = chosen.drop_nulls(["at", "value"])
    if rows.is_empty():
        return []
    mark = alt.Chart(inline(rows, "curve", "at", "value", "description")).mark_point(
        filled=True, size=80, opacity=1, stroke=token("card"), strokeWidth=1
    )
    return [mark.encode(x=x, y=_y("value", lowest), color=lines.colour(), **described())]
