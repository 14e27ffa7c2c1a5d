"""How each method's curves are drawn: dots, steps or smooth lines, one by itself or several over each other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest
import vl_convert as vlc

import calframe
from calframe._charts import WIDE, overlay, overlay_lines, reliability, reliability_curves, reliability_line
from tests._chart_examples import (
    BINS,
    build,
    curve_table,
    domains,
    drawing,
    line_table,
    overlay_table,
    rows_with,
    spoken,
    walk,
    written,
)

METHODS = ("binned", "isotonic", "kernel", "loess")


def marks(chart: Any) -> list[str]:
    """Return the kinds of marks of a chart, the unseen ones left out, layer by layer."""
    parts = [part for key, part in walk(chart.to_dict()) if key == "mark" and isinstance(part, dict)]
    return [part["type"] for part in parts if part.get("opacity") != 0]


def several(names: str = "ab") -> pl.DataFrame:
    table = line_table().drop("state", "description")
    return pl.concat([table.with_columns(model=pl.lit(name)) for name in names])


# One curve


def test_steps_are_level_from_their_lower_to_their_upper_end() -> None:
    chart = build("steps", WIDE)
    corners = [(row["at"], row["rate"]) for row in rows_with(chart, "at", "rate", "stretch")]
    # by hand: ends 0.075 around the scores, rates nine tenths of the scores; the middle two share a state, and each
    # stretch of one state reaches to the first corner of the next
    levels = {0.125: (0.05, 0.2), 0.375: (0.3, 0.45), 0.625: (0.55, 0.7), 0.875: (0.8, 0.95)}
    steps = [[(end, 0.9 * at) for end in ends] for at, ends in levels.items()]
    expected = [*steps[0], steps[1][0], *steps[1], *steps[2], steps[3][0], *steps[3]]
    assert corners == [pytest.approx(corner) for corner in expected]
    assert [row["state"] for row in rows_with(chart, "at", "rate", "stretch")] == ["in"] * 3 + ["over"] * 5 + [
        "under"
    ] * 2


def test_the_gap_grows_along_a_step() -> None:
    gaps = [(row["at"], row["gap_pp"]) for row in rows_with(build("steps", WIDE), "at", "gap_pp")]
    # from 5 % to 20 % said, where 11.25 % happened
    assert gaps[:2] == [pytest.approx((0.05, -6.25)), pytest.approx((0.2, 8.75))]


def test_a_smooth_curve_runs_through_its_points_without_dots() -> None:
    chart = build("smooth", WIDE)
    table = rows_with(chart, "at", "rate", "stretch")
    assert sorted({(row["at"], row["rate"]) for row in table}) == [
        pytest.approx((at, 0.9 * at)) for at in (0.125, 0.375, 0.625, 0.875)
    ]
    assert marks(chart).count("point") == 0
    assert marks(chart).count("area") == 3  # band, interval, band of the gaps


def test_bands_and_intervals_are_ribbons() -> None:
    for name in ("steps", "smooth"):
        chart = build(name, WIDE)
        ribbons = rows_with(chart, "at", "rate_low", "rate_high", "stretch")
        # 0.8 and 1.1 of the first score
        assert (ribbons[0]["rate_low"], ribbons[0]["rate_high"]) == pytest.approx((0.1, 0.1375))
        bands = [row["band_low"] for row in rows_with(chart, "mean_score", "band_low", "band_high")]
        assert bands == pytest.approx([0.95 * at for at in (0.125, 0.375, 0.625, 0.875)])


def test_a_step_at_a_single_score_is_a_dot() -> None:
    at = pl.col("mean_score")
    # the mean of equal scores may differ from them in the last digit
    table = line_table().with_columns(lower=at * (1 + 1e-15), upper=at * (1 + 1e-15))
    chart = reliability_line(table, None, steps=True, width=WIDE)
    assert marks(chart).count("point") == 1
    assert [row["lower"] for row in rows_with(chart, "lower", "rate", "state")] == [0.125, 0.375, 0.625, 0.875]
    assert spoken(drawing(chart)) == [f"bin {index}" for index in range(BINS)]


def test_words_are_found_half_way_to_the_next_point() -> None:
    places = [(row["start"], row["end"]) for row in rows_with(build("steps", WIDE), "start", "end", "description")]
    # by hand, between 0.2 and 0.3, 0.45 and 0.55, 0.7 and 0.8; a fiftieth of the axis beyond the ends
    assert places == [pytest.approx(pair) for pair in [(0.03, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 0.97)]]


def test_intervals_of_small_scores_end_at_the_axes() -> None:
    table = line_table(scale=0.02).with_columns(rate_high=pl.lit(0.5), band_high=pl.lit(0.5))
    chart = reliability_line(table, None, steps=True, width=WIDE, limit=0.02)
    assert {row["rate_high"] for row in rows_with(chart, "rate_high")} == {0.02}
    assert {row["band_high"] for row in rows_with(chart, "band_high")} == {0.02}
    assert set(domains(chart, "x")) == {(0.0, 0.02)}


def test_without_a_histogram_the_strip_of_gaps_has_the_axis_of_scores() -> None:
    for chart in (build("steps", WIDE), reliability(curve_table(), None, width=WIDE)):
        texts = written(drawing(chart))
        assert "rows" not in texts
        assert texts.count("said (predicted probability)") == 1
        assert texts.count("60%") == 2  # of either axis


# Several curves


@pytest.mark.parametrize("steps", [True, False])
def test_several_lines_are_lines_with_ribbons_where_they_are_few(*, steps: bool) -> None:
    chart = overlay_lines(overlay_table(["a", "b", "c"]), steps=steps, width=WIDE)
    assert set(marks(chart)) == {"line", "area"}
    assert set(marks(overlay_lines(overlay_table(list("abcdef")), steps=steps, width=WIDE))) == {"line"}
    corners = [row["at"] for row in rows_with(chart, "curve", "at", "rate") if row["curve"] == "b"]
    expected = [0.05, 0.2, 0.3, 0.45, 0.55, 0.7, 0.8, 0.95] if steps else [0.125, 0.375, 0.625, 0.875]
    assert corners == pytest.approx(expected)


def test_a_line_of_few_rows_is_thin_and_faint() -> None:
    table = overlay_table(["a", "b"]).with_columns(n=pl.when(pl.col("curve") == "b").then(24).otherwise(25))
    spec = overlay_lines(table, steps=False, width=WIDE).to_dict()  # four points each: 100 and 96 rows
    looks = {
        row["curve"]: (part["mark"]["strokeWidth"], part["encoding"]["opacity"]["value"])
        for part in spec["layer"]
        if "opacity" in part.get("encoding", {})
        for row in spec["datasets"][part["data"]["name"]]
    }
    assert looks == {"a": (2.25, 1.0), "b": (1.0, 0.35)}


def test_eight_lines_have_a_colour_and_the_rest_their_names() -> None:
    names = [f"model {index}" for index in range(11)]
    chart = build("overlay_lines", WIDE, names)
    encodings = [part for key, part in walk(chart.to_dict()) if key in ("color", "strokeDash")]
    scales = [part["scale"] for part in encodings if isinstance(part, dict) and "scale" in part]
    assert all(scale["domain"] == names[:8] for scale in scales)
    looks = list(zip(*(map(str, scale["range"]) for scale in scales[:2]), strict=True))
    assert len(set(looks)) == 8
    assert "Largest 8 of 11 curves in colour" in written(drawing(chart))
    assert spoken(drawing(chart))[:3] == names[8:]


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("method", ["binned", "loess"])
def test_the_curves_of_most_rows_have_a_colour_in_the_order_of_the_table(method: Any, weight: str | None) -> None:
    names = [f"carrier {index:02}" for index in range(11)]
    few = ("carrier 00", "carrier 04", "carrier 07")  # 4 rows each, the others 8; by weight the other way round
    sizes = [(name, 4 if (name in few) == (weight is None) else 8) for name in names]
    rows = [(name, i % 2, (i + 1) / 10, 1.0 if name in few else 0.1) for name, n in sizes for i in range(n)]
    table = pl.DataFrame(rows, schema=["g", "y", "p", "w"], orient="row")
    chart = calframe.curve(table, label="y", score="p", by="g", method=method, weight=weight, bins=4).plot()
    scales = [
        part for key, part in walk(chart.to_dict()) if key == "scale" and part and len(part.get("domain", [])) == 8
    ]
    many = [name for name in names if name not in few]
    # 8 rows of weight 0.1 are less than 4 of weight 1, and of equal ones the first are taken
    coloured = sorted([*few, *many[:5]]) if weight else many
    assert scales
    assert all(scale["domain"] == coloured for scale in scales)


def test_dots_and_intervals_of_few_rows_are_faint() -> None:
    table = overlay_table(["a", "b"]).with_columns(n=pl.Series([24, 25, 1000, 3] * 2))
    chart = overlay(table, width=WIDE)
    for fields in (("rate", "strength", "description"), ("rate_low", "rate_high", "strength")):
        assert [row["strength"] for row in rows_with(chart, *fields)] == [0.35, 1.0, 1.0, 0.35] * 2


@pytest.mark.parametrize("steps", [True, False])
def test_a_curve_of_one_score_is_a_dot_among_lines(*, steps: bool) -> None:
    table = overlay_table(["a", "b"])
    at = pl.col("mean_score") if steps else pl.col("lower")
    alone = table.filter(curve="a").head(1).with_columns(lower=at, upper=pl.col("mean_score"))
    chart = overlay_lines(pl.concat([alone, table.filter(curve="b")]), steps=steps, width=WIDE)
    assert marks(chart).count("point") == 1
    dots = [rows for rows in chart.to_dict()["datasets"].values() if len(rows) == 1 and "at" in rows[0]]
    assert [(row["curve"], row["at"]) for rows in dots for row in rows] == [("a", 0.125)]


# From a table of curves


def one(**columns: Any) -> pl.DataFrame:
    return line_table().drop("state", "description").with_columns(**columns)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        # the score 0.125, eight tenths of it, 0.8 and 1.1 times it, two tenths; the ends of its step 0.05 and 0.2
        ("binned", "said 12.5%, happened 10.0% of 1,000 rows (interval 10.0% to 13.8%), gap +2.5 pp"),
        ("isotonic", "said 5.0% to 20.0%, happened 10.0% of 1,000 rows (interval 10.0% to 13.8%)"),
        ("kernel", "said 12.5%, happens 10.0% by the curve (interval 10.0% to 13.8%), gap +2.5 pp; 1,000 rows here"),
        ("loess", "said 12.5%, happens 10.0% by the curve (interval 10.0% to 13.8%), gap +2.5 pp; 1,000 rows here"),
    ],
)
def test_every_point_says_what_it_means(method: str, words: str) -> None:
    rate = 0.8 * pl.col("mean_score")
    gap = 0.2 * pl.col("mean_score")
    single = reliability_curves(one(rate=rate, gap=gap), keys=[], width=540, method=method)
    assert spoken(drawing_of(single))[0] == words
    overlaid = reliability_curves(several().with_columns(rate=rate, gap=gap), keys=["model"], width=540, method=method)
    assert spoken(drawing_of(overlaid))[0] == f"a: {words}"
    assert len(spoken(drawing_of(overlaid))) == 2 * BINS


def drawing_of(chart: Any) -> str:
    return vlc.vegalite_to_svg(json.dumps(chart.to_dict(), allow_nan=False), vl_version="6.4")


def test_a_step_at_one_score_says_it_once() -> None:
    at = pl.col("mean_score")
    chart = reliability_curves(one(lower=at, upper=at, rate=0.8 * at), keys=[], width=540, method="isotonic")
    assert spoken(drawing_of(chart))[0] == "said 12.5%, happened 10.0% of 1,000 rows (interval 10.0% to 13.8%)"


def test_small_scores_are_said_with_more_decimals() -> None:
    table = line_table(scale=0.0004).drop("state", "description")
    chart = reliability_curves(table, keys=[], width=540)
    # 0.0004 / 8, and nine tenths of it; the axes end at 0.0004
    assert spoken(drawing_of(chart))[0].startswith("said 0.005%, happened 0.0045% of 1,000 rows (")


@pytest.mark.parametrize(
    ("method", "edges", "shown"),
    [
        ("binned", True, True),
        ("binned", False, False),
        ("kernel", True, True),
        ("loess", False, False),
        ("isotonic", True, False),
    ],
)
def test_a_histogram_needs_bins_between_known_edges(method: str, *, edges: bool, shown: bool) -> None:
    chart = reliability_curves(one(), keys=[], width=540, method=method, edges=edges)
    assert ("rows" in written(drawing_of(chart))) is shown
    assert ("bar" in marks(chart)) is shown


@pytest.mark.parametrize("keys", [[], ["model"]])
@pytest.mark.parametrize("method", ["binned", "isotonic"])
def test_the_largest_score_is_called_confidence(method: str, keys: list[str]) -> None:
    for notion, title in (("confidence", "said (confidence)"), ("classwise", "said (predicted probability)")):
        table = several() if keys else one()
        chart = reliability_curves(table, keys=keys, width=540, method=method, notion=notion)
        titles = {part for key, part in walk(chart.to_dict()) if key == "title" and isinstance(part, str)}
        assert {text for text in titles if text.startswith("said")} == {title}


def test_axes_of_steps_hold_their_upper_ends() -> None:
    # the last step ends at 0.95 x 0.4 = 0.38, its mean score is 0.35
    table = line_table(scale=0.4).drop("state", "description")
    chart = reliability_curves(table, keys=[], width=540, method="isotonic")
    assert set(domains_of(chart, "x")) == {(0.0, 0.4)}


def domains_of(chart: Any, channel: str) -> list[tuple[Any, ...]]:
    return [
        tuple(part["scale"]["domain"])
        for key, part in walk(chart.to_dict())
        if key == channel and isinstance(part, dict) and "domain" in part.get("scale", {})
    ]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rows", [0, 1])
def test_a_curve_of_one_point_or_none_is_drawn(method: str, rows: int) -> None:
    svg = drawing_of(reliability_curves(one().head(rows), keys=[], width=360, method=method))
    assert len(spoken(svg)) == rows
    assert not re.search("NaN|Infinity|undefined", svg)


@pytest.mark.parametrize("method", ["binned", "loess"])
def test_long_names_are_cut_in_the_legend_and_whole_in_words(method: str) -> None:
    # an emoji is two units to the writer of drawings, which fails where it cuts one
    names = ["x" + "🙂" * 60, "x" + "🙂" * 60 + "!", "y" * 60, "b"]
    table = pl.concat([one(model=pl.lit(name)) for name in names])
    svg = drawing_of(reliability_curves(table, keys=["model"], width=540, method=method))
    shown = [text for text in written(svg) if text.startswith(("x", "y", "b"))]
    assert [re.sub("[🙂y]+", "-", text) for text in shown] == ["x-…-", "x-…-!", "-…-", "b"]
    assert {text.split(": ")[0] for text in spoken(svg)} == set(names)


# From rows


@pytest.fixture(scope="module")
def flights() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    score = rng.beta(1, 3, 400)
    return pl.DataFrame(
        {"y": (rng.random(400) < score).astype(int), "p": score, "q": np.sqrt(score), "g": ["a", "b"] * 200}
    )


@pytest.mark.parametrize("arguments", [{}, {"by": "g"}, {"score": ["p", "q"]}], ids=["one", "segments", "models"])
@pytest.mark.parametrize("method", METHODS)
def test_curves_are_drawn_and_saved(
    method: Any, arguments: dict[str, Any], flights: pl.DataFrame, tmp_path: Path
) -> None:
    found = calframe.curve(flights, **{"label": "y", "score": "p", **arguments}, method=method, n_resamples=50)
    chart = found.plot(width=360)
    assert isinstance(chart, alt.LayerChart if arguments else alt.VConcatChart)
    assert "var(" not in json.dumps(chart.to_dict(), allow_nan=False)
    for suffix, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
        chart.save(tmp_path / f"curve.{suffix}")
        assert (tmp_path / f"curve.{suffix}").read_bytes().startswith(start)
    assert len(spoken((tmp_path / "curve.svg").read_text(encoding="utf-8"))) == found.table.height


def test_a_page_by_itself_names_no_file_to_load(flights: pl.DataFrame, tmp_path: Path) -> None:
    calframe.curve(flights, label="y", score="p", method="loess").plot().save(tmp_path / "curve.html", inline=True)
    page = (tmp_path / "curve.html").read_text(encoding="utf-8")
    assert "by the curve" in page
    assert not re.search("<(script|link)[^>]+(src|href)=", page)


EVIL = "</script><script>alert(1)</script><!--"


def test_names_cannot_end_the_script_of_a_page(tmp_path: Path) -> None:
    table = pl.DataFrame({"y": [1, 0] * 4, "p": [0.25, 0.75] * 4, EVIL: [EVIL, EVIL, "b", "b"] * 2})
    chart = calframe.curve(table, label="y", score="p", by=EVIL, bins=2).plot()
    pages = [chart.to_html(), chart._repr_mimebundle_()["text/html"]]
    for inline in (False, True):
        chart.save(tmp_path / "curve.html", inline=inline)
        pages.append((tmp_path / "curve.html").read_text(encoding="utf-8"))
    plain = calframe.curve(table.with_columns(pl.lit("a").alias(EVIL)), label="y", score="p", by=EVIL, bins=2).plot()
    assert [page.count("alert(1)</script>") for page in pages] == [0] * 4
    assert pages[0].count("</script>") == plain.to_html().count("</script>")
    assert "<!--" not in pages[0]


def test_a_name_like_a_tag_reads_as_it_is(tmp_path: Path) -> None:
    table = pl.DataFrame({"y": [1, 0] * 4, "p": [0.25, 0.75] * 4, "g": ["</script>", "</script>", "b", "b"] * 2})
    calframe.curve(table, label="y", score="p", by="g", bins=2).plot().save(tmp_path / "curve.svg")
    said = written((tmp_path / "curve.svg").read_text(encoding="utf-8"))
    assert "</script>" in {text.replace("\u2060", "") for text in said}  # a word joiner takes no room
