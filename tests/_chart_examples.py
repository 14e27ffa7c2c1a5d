"""Small tables for the charts, the charts made of them, and what can be read from a specification and a drawing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import vl_convert as vlc

from calframe._charts import (
    NARROW,
    WIDE,
    Drawing,
    forest,
    heatmap,
    map_lines,
    multiples,
    overlay,
    overlay_lines,
    reliability,
    reliability_line,
    specification,
    timeline,
)

CHARTS = (
    "forest",
    "heatmap",
    "reliability",
    "steps",
    "smooth",
    "multiples",
    "timeline",
    "overlay",
    "overlay_lines",
    "map_lines",
)
ONE_CURVE = ("reliability", "steps", "smooth")
WIDTHS = (WIDE, NARROW)
NAMES = ("West", "Coast", "North")
RANGES = ("0–10%", "10–40%", "40–100%")
BINS = 4
# "zq7" marks the user's text, wherever it may turn up.
HOSTILE = (
    "</script><script>alert('zq7')</script>",
    "') || zq7() || ('",
    'zq7 "quoted" \\ back {brace} ${7*7} {{7*7}}',
    "zq7 Île-de-France – 日本語 🙂",
    "zq7 " + "x" * 56,
    "zq7.b[0]:Q",
    "null",
    "var(--cf-ink)",
)
_SVG = "{http://www.w3.org/2000/svg}"
_SHAPES = tuple(_SVG + tag for tag in ("path", "rect", "line", "text"))


def forest_table(names: Sequence[str]) -> pl.DataFrame:
    """Return segments whose gaps go from +8 down to -2 points, in steps of two, over and over."""
    verdicts = ("over", "leans_under", "unsure", "within", "under", "leans_over")
    rows = [
        {
            "segment": name,
            "gap": 0.08 - 0.02 * (index % 6),
            "low": 0.06 - 0.02 * (index % 6),
            "high": 0.10 - 0.02 * (index % 6),
            "sim_low": 0.05 - 0.02 * (index % 6),
            "sim_high": 0.11 - 0.02 * (index % 6),
            "verdict": verdicts[index % 6],
            "text_gap": "+8.0",
            "text_rate": "29.4% → 21.6%",
            "text_n": "3,566",
            "text_verdict": "▲ Over-predicts",
            "description": f"{name}: gap",
        }
        for index, name in enumerate(names)
    ]
    return pl.DataFrame(rows)


def heat_table(names: Sequence[str], ranges: Sequence[str] = RANGES) -> pl.DataFrame:
    """Return a clear gap of five points in each cell."""
    rows = [
        {"segment": name, "range": bound, "gap": 0.05, "clear": True, "shown": True, "description": f"{name}: {bound}"}
        for name, bound in product(names, ranges)
    ]
    return pl.DataFrame(rows)


def curve_table(*, scale: float = 1.0, prefix: str = "") -> pl.DataFrame:
    """Return four bins with scores 0.125, 0.375, 0.625, 0.875 of the scale and rates nine tenths of them."""
    at = [scale * (index + 0.5) / BINS for index in range(BINS)]
    return pl.DataFrame(
        {
            "mean_score": at,
            "rate": [0.9 * value for value in at],
            "rate_low": [0.8 * value for value in at],
            "rate_high": [min(scale, 1.1 * value) for value in at],
            "band_low": [0.95 * value for value in at],
            "band_high": [min(scale, 1.05 * value) for value in at],
            "gap": [0.1 * value for value in at],
            "state": ["in", "over", "over", "under"],
            "description": [f"{prefix}bin {index}" for index in range(BINS)],
        }
    )


def line_table(*, scale: float = 1.0, prefix: str = "") -> pl.DataFrame:
    """Return the same four rows as steps: 0.05 to 0.2, 0.3 to 0.45, 0.55 to 0.7, 0.8 to 0.95 of the scale."""
    at = pl.col("mean_score")
    table = curve_table(scale=scale, prefix=prefix)
    return table.with_columns(lower=at - 0.075 * scale, upper=at + 0.075 * scale, n=pl.lit(1000))


def histogram_table(*, scale: float = 1.0) -> pl.DataFrame:
    """Return ten bins of scores, 1,000 rows in the first and 100 in the last."""
    edges = [scale * index / 10 for index in range(11)]
    return pl.DataFrame({"lower": edges[:-1], "upper": edges[1:], "n": list(range(1000, 0, -100))})


def multiples_tables(names: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return bins, overall curve and panels; the last panel has no bins."""
    bins = [curve_table(prefix=f"{name}: ").with_columns(panel=pl.lit(name)) for name in names[:-1]]
    none = curve_table().with_columns(panel=pl.lit("")).clear()
    panels = [
        {"panel": name, "head": name, "size": "3,566 rows", "sign": "▲", "tag": "+7.7 pp", "verdict": "over"}
        for name in names
    ]
    return pl.concat([*bins, none]), curve_table().select("mean_score", "rate"), pl.DataFrame(panels)


def time_table(names: Sequence[str]) -> pl.DataFrame:
    """Return periods of which every other one is marked."""
    rows = [
        {
            "period": name,
            "label": f"M{index} {name}"[:20],
            "gap": 0.01 if index % 2 else 0.05,
            "low": -0.01 if index % 2 else 0.03,
            "high": 0.03 if index % 2 else 0.07,
            "n": 1000 + index,
            "state": "in" if index % 2 else "over",
            "tag": "" if index % 2 else "▲ +5.0",
            "description": f"{name}: period",
        }
        for index, name in enumerate(names)
    ]
    return pl.DataFrame(rows)


def overlay_table(names: Sequence[str]) -> pl.DataFrame:
    """Return the same four bins for each curve."""
    tables = [line_table(prefix=f"{name}: ").with_columns(curve=pl.lit(name)) for name in names]
    return pl.concat(tables).with_columns(weight="n")


def map_table(names: Sequence[str]) -> pl.DataFrame:
    """Return a line for the pooled map and one for each name: 0, 0.2, 0.5, 0.8, 1, of which the middle is fitted."""
    points = {"at": [0.0, 0.1, 0.5, 0.9, 1.0], "value": [0.0, 0.2, 0.5, 0.8, 1.0]}
    points |= {"value_low": [0.0, 0.1, 0.4, 0.7, 0.9], "value_high": [0.1, 0.3, 0.6, 0.9, 1.0]}
    points |= {"spoken": [False, True, True, True, False]}
    lines = [
        pl.DataFrame(points).with_columns(curve=pl.lit(name), name=pl.lit(name), pooled=pl.lit(place == 0), weight=1.0)
        for place, name in enumerate(["pooled map", *names])
    ]
    return pl.concat(lines).with_columns(lower=pl.lit(0.1), upper=pl.lit(0.9))


def build(name: str, width: int, names: Sequence[str] = NAMES) -> Drawing:
    """Return one chart, its user text being `names`."""
    return _BUILDERS[name](names, width)


_BUILDERS: dict[str, Callable[[Sequence[str], int], Drawing]] = {
    "forest": lambda names, width: forest(forest_table(names), tolerance=0.03, width=width),
    "heatmap": lambda names, width: heatmap(heat_table(names), segments=names, ranges=RANGES, width=width),
    "reliability": lambda names, width: reliability(curve_table(prefix=names[0]), histogram_table(), width=width),
    "steps": lambda names, width: reliability_line(line_table(prefix=names[0]), None, steps=True, width=width),
    "smooth": lambda names, width: reliability_line(
        line_table(prefix=names[0]), histogram_table(), steps=False, width=width
    ),
    "multiples": lambda names, width: multiples(*multiples_tables(names[:12]), width=width),
    "timeline": lambda names, width: timeline(time_table(names), tolerance=0.03, width=width),
    "overlay": lambda names, width: overlay(overlay_table(names), width=width),
    "overlay_lines": lambda names, width: overlay_lines(overlay_table(names), steps=True, width=width),
    "map_lines": lambda names, width: map_lines(map_table(names), width=width, before="before", after="after"),
}


def descriptions(name: str, names: Sequence[str] = NAMES) -> list[str]:
    """Return the words that the marks of a chart must carry: one for each row of its table."""
    if name in ONE_CURVE:
        return [f"{names[0]}bin {index}" for index in range(BINS)]
    if name == "overlay_lines":  # the grey ones, beyond the eighth, say their names alone
        return [f"{curve}: bin {index}" for curve, index in product(names[:8], range(BINS))] + [*names[8:]]
    if name == "map_lines":
        ends = [("10.0%", "20.0% (10.0% to 30.0%)"), ("50.0%", "50.0% (40.0% to 60.0%)")]
        ends.append(("90.0%", "80.0% (70.0% to 90.0%)"))
        said = [f"{line}: {at} becomes {to}" for line, (at, to) in product(["pooled map", *names[:8]], ends)]
        return [*said, *names[8:]]
    words = {
        "forest": [f"{segment}: gap" for segment in names],
        "heatmap": [f"{segment}: {bound}" for segment, bound in product(names, RANGES)],
        "multiples": [f"{panel}: bin {index}" for panel, index in product(names[:12][:-1], range(BINS))],
        "timeline": [f"{period}: period" for period in names],
        "overlay": [f"{curve}: bin {index}" for curve, index in product(names, range(BINS))],
    }
    return words[name]


@cache
def made(name: str, width: int, names: tuple[str, ...] = NAMES) -> str:
    """Return the specification of a chart as JSON."""
    return json.dumps(specification(build(name, width, names)), allow_nan=False)


@cache
def drawn(name: str, width: int, names: tuple[str, ...] = NAMES) -> str:
    """Return the drawing of a chart as SVG."""
    return vlc.vegalite_to_svg(made(name, width, names), vl_version="6.4")


def drawing(chart: Drawing) -> str:
    """Return a chart as SVG."""
    return vlc.vegalite_to_svg(json.dumps(specification(chart), allow_nan=False), vl_version="6.4")


def walk(part: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each part of a specification with the key it stands under."""
    yield key, part
    if isinstance(part, dict):
        for name, value in part.items():
            yield from walk(value, name)
    elif isinstance(part, list):
        for value in part:
            yield from walk(value, key)


def size(svg: str) -> tuple[float, float]:
    """Return width and height of a drawing."""
    root = _parsed(svg)
    return float(root.attrib["width"]), float(root.attrib["height"])


def written(svg: str) -> list[str]:
    """Return the visible texts of a drawing."""
    return ["".join(element.itertext()) for element in _parsed(svg).iter(f"{_SVG}text")]


def spoken(svg: str) -> list[str]:
    """Return the words of the data marks; axes and legends are groups, marks are shapes."""
    return [
        element.attrib["aria-label"]
        for element in _parsed(svg).iter()
        if element.tag in _SHAPES and element.get("role") == "graphics-symbol" and element.get("aria-label")
    ]


def rows_with(chart: Drawing, *columns: str) -> list[dict[str, Any]]:
    """Return the rows of the data sets that have these columns."""
    sets = specification(chart)["datasets"].values()
    return [row for rows in sets for row in rows if set(columns) <= set(row)]


def domains(chart: Drawing, channel: str) -> list[tuple[Any, ...]]:
    """Return the domain of each scale of a channel, layer by layer."""
    return [
        tuple(part["scale"]["domain"])
        for key, part in walk(specification(chart))
        if key == channel and isinstance(part, dict) and "domain" in part.get("scale", {})
    ]


def _parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314  our own drawing
