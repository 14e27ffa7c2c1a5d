"""Differences of two models: a panel a metric, one line per segment with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._data import Columns, fitted_names, inline, single, texts, tidy
from calframe._charts._marks import described, layered, words
from calframe._charts._theme import PADDING, inner, is_wide, themed, token

_COLUMNS: Final[Columns] = {
    "metric": pl.String,
    "segment": pl.String,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "side": pl.String,
    "said": pl.String,
    "description": pl.String,
}
_SIDES: Final = {"first": "c0", "second": "c1", "neither": "none"}
_ROW: Final = 26  # pixels
_HEAD: Final = -8
_NAMES, _FEW_NAMES = 190, 110  # pixels of the names of segments
_SAID: Final = 190  # pixels of the words beside a line


class _Frame(NamedTuple):
    """Names of the segments as shown, pixels of the plot, and whether there is room for words beside it."""

    names: list[str]
    plot: float
    wide: bool

    def y(self) -> alt.Y:
        axis = alt.Axis(domain=False, ticks=False, labelPadding=8, labelFontSize=13, labelLimit=0)
        return alt.Y("shown:N", sort=self.names, title=None, axis=axis)


def differences(table: pl.DataFrame, *, heads: Sequence[tuple[str, str]], width: int) -> alt.VConcatChart:
    """Draw the differences of each metric in a panel of its own, segments in the order of the table.

    Parameters
    ----------
    table : polars.DataFrame
        One row per metric and segment: `metric`, `segment` (unique text), `difference`, `low`, `high` (its interval;
        null where there is none), `side` ("first", "second" or "neither": which model is clearly better), `said` (the
        words beside the line) and `description` (those of the mark).
    heads : sequence of (str, str)
        The metrics in order, and the words above each panel.
    width : int
        Total width in pixels.

    Returns
    -------
    altair.VConcatChart
        Full dots where a model is clearly better, open ones elsewhere.
    """
    rows = tidy(table, _COLUMNS)
    whole = list(dict.fromkeys(rows["segment"].to_list()))
    wide = is_wide(width)
    room = _NAMES if wide else _FEW_NAMES
    short = dict(zip(whole, fitted_names(whole, room - 10, size=13), strict=True))
    rows = rows.with_columns(pl.Series("shown", [short[name] for name in rows["segment"]], dtype=pl.String))
    frame = _Frame(list(short.values()), inner(width) - room - (_SAID if wide else 2 * PADDING), wide)
    names = texts([name for name, _ in heads])
    panels = [
        _panel(rows.filter(pl.col("metric") == name), head, frame) for name, (_, head) in zip(names, heads, strict=True)
    ]
    return themed(alt.VConcatChart(vconcat=panels, spacing=30))


def _panel(rows: pl.DataFrame, head: str, frame: _Frame) -> alt.LayerChart:
    scale, shades = alt.Scale(zero=True, nice=True), [token(name) for name in _SIDES.values()]
    ends = alt.X("low:Q", title="difference", scale=scale, axis=alt.Axis(tickCount=5, grid=True))
    scheme = alt.Scale(domain=list(_SIDES), range=shades)
    colour = alt.Color("side:N", scale=scheme, legend=None)
    opened = alt.Scale(domain=list(_SIDES), range=[*shades[:2], token("card")])
    lines = alt.Chart(inline(rows.drop_nulls(["low", "high"]), "shown", "low", "high", "side"))
    dots = alt.Chart(inline(rows.drop_nulls("difference"), "shown", "difference", "side", "description"))
    zero = alt.Chart(single()).mark_rule(color=token("faint"), aria=False)
    parts = [
        zero.encode(x=alt.XDatum(0, type="quantitative")),
        lines.mark_rule(strokeWidth=2, aria=False).encode(x=ends, x2=alt.X2("high:Q"), y=frame.y(), color=colour),
        dots.mark_point(size=80, opacity=1, strokeWidth=2).encode(
            x=alt.X("difference:Q", title="difference", scale=scale),
            y=frame.y(),
            stroke=alt.Stroke("side:N", scale=scheme, legend=None),
            fill=alt.Fill("side:N", scale=opened, legend=None),
            **described(),
        ),
        words(head, x=0, y=_HEAD, align="left", colour="ink", size=13),
    ]
    if frame.wide:
        beside = alt.Chart(inline(rows, "shown", "side", "said")).mark_text(
            x=frame.plot + 16, align="left", fontSize=13, limit=_SAID - 16, aria=False
        )
        parts.append(beside.encode(y=frame.y(), text=alt.Text("said:N"), color=colour))
    return layered(parts, width=frame.plot, height=_ROW * max(len(frame.names), 1))
