"""What each chart shows, one by one."""

from __future__ import annotations

import re
from collections import Counter

import altair as alt
import polars as pl
import pytest

from calframe._charts import (
    NARROW,
    WIDE,
    forest,
    heatmap,
    multiples,
    reliability,
    reliability_curves,
    specification,
    timeline,
)
from calframe._charts._timeline import _spread
from tests._chart_examples import (
    BINS,
    WIDTHS,
    build,
    curve_table,
    domains,
    drawing,
    drawn,
    forest_table,
    heat_table,
    histogram_table,
    multiples_tables,
    rows_with,
    size,
    spoken,
    time_table,
    walk,
    written,
)


def test_forest_shows_columns_only_where_there_is_room():
    assert {"said → happened", "verdict", "3,566", "+8.0", "▲", "Over-predicts"} <= set(written(drawn("forest", WIDE)))
    narrow = set(written(drawn("forest", NARROW)))
    assert {"3,566", "+8.0", "▲", "West"} <= narrow
    assert not {"said → happened", "verdict", "Over-predicts"} & narrow


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["forest", "heatmap", "multiples", "overlay", "overlay_lines"])
def test_long_names_with_the_same_beginning_and_end_stay_apart(name, width):
    names = tuple(f"Department of Something Quite Long, Office no. {index:02d} (north)" for index in range(8))
    svg = drawn(name, width, names)
    assert size(svg)[0] <= width
    shown = [text for text in written(svg) if re.search(r"\d ?\(north\)", text)]
    if not name.startswith("overlay"):  # the caller cuts names of curves
        assert len(set(shown)) == len(shown) == 8
        assert not set(shown) & set(names)
    assert all(any(text.startswith(whole) for text in spoken(svg)) for whole in names[:-1])


def test_forest_marks_an_interval_of_too_few_rows_that_is_cut():
    table = forest_table(["a", "b"]).with_columns(
        verdict=pl.Series(["over", "few"]), high=pl.Series([0.1, 0.99]), sim_low=None, sim_high=None
    )
    chart = forest(table, tolerance=0.03, width=WIDE)
    cuts = [row for row in rows_with(chart, "shape", "at") if "description" not in row]
    assert [(row["segment"], row["shape"]) for row in cuts] == [("b", "right")]


def test_forest_keeps_the_order_of_the_table():
    assert set(domains(build("forest", WIDE, ["b", "c", "a"]), "y")) == {("b", "c", "a")}


def test_forest_cuts_an_interval_and_marks_a_dot_beyond_the_axis():
    table = forest_table(["a", "b"]).with_columns(
        verdict=pl.Series(["over", "few"]), gap=pl.Series([0.08, 0.9]), sim_high=pl.Series([0.11, 0.99])
    )
    chart = forest(table, tolerance=0.03, width=WIDE)
    low, high = domains(chart, "x")[0]
    assert 11 < high < 20
    assert low < -3
    marks = rows_with(chart, "description", "shape")
    assert [(mark["shape"], mark["at"]) for mark in marks] == [("dot", 8.0), ("right", pytest.approx(high))]
    cuts = [row["shape"] for row in rows_with(chart, "shape", "at") if "description" not in row]
    assert cuts == ["right"]


@pytest.mark.parametrize("width", WIDTHS)
def test_forest_of_nothing_judged_says_so(width):
    numbers = ("gap", "low", "high", "sim_low", "sim_high")
    table = forest_table(["a", "b", "c"]).with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in numbers)
    table = table.with_columns(verdict=pl.lit("few"), text_gap=pl.lit("–"), text_verdict=pl.lit("– Too few rows"))
    chart = forest(table, tolerance=0.03, width=width)
    assert domains(chart, "x")[0] == (pytest.approx(-4.2, abs=0.1), pytest.approx(4.2, abs=0.1))
    svg = drawing(chart)
    assert written(svg).count("Too few rows" if width == WIDE else "– Too few rows") == 3
    assert spoken(svg) == ["a: gap", "b: gap", "c: gap"]


def test_forest_marks_are_open_unless_the_verdict_is_firm():
    fills = [part for key, part in walk(specification(build("forest", WIDE))) if key == "fill"]
    colours = dict(zip(fills[0]["scale"]["domain"], fills[0]["scale"]["range"], strict=True))
    assert {verdict for verdict, colour in colours.items() if colour == "var(--cf-card)"} == {
        "leans_over",
        "leans_under",
        "unsure",
        "few",
    }


def heat_cells(gaps, **columns):
    ranges = [str(index) for index in range(len(gaps))]
    table = pl.DataFrame({"range": ranges, "gap": gaps}).with_columns(
        segment=pl.lit("s"), clear=pl.lit(value=True), shown=pl.lit(value=True), description=pl.col("range")
    )
    chart = heatmap(table.with_columns(**columns), segments=["s"], ranges=ranges, width=WIDE)
    found = {row["range"]: row for row in rows_with(chart, "step", "strength")}
    for row in rows_with(chart, "range", "text"):
        found[row["range"]] |= row
    return [found[bound] for bound in ranges]


def test_heatmap_numbers_and_steps():
    # Steps change at 1.5, 3.5 and 6.5 points: what is printed as 1, 3 and 6 is the last of its colour.
    cells = heat_cells([0.0, -0.004, 0.0149, 0.0151, 0.034, 0.036, 0.064, 0.066, -0.066, -1.0])
    printed = [cell["text"] for cell in cells]
    assert printed == ["0", "0", "+1", "+2", "+3", "+4", "+6", "+7", "−7", "−100"]
    assert [cell["step"] for cell in cells] == ["d3", "d3", "d3", "d4", "d4", "d5", "d5", "d6", "d0", "d0"]


def test_heatmap_key_says_where_its_colours_begin_and_follows_the_gaps():
    # The last of the colours begins beyond three quarters of the gaps: 6 and 24 points.
    for gaps, key in (([0.01, 0.02, 0.06], "≥ +7"), ([0.08, 0.24, 0.24], "≥ +27")):
        table = heat_table(["a"], ["0", "1", "2"]).with_columns(gap=pl.Series(gaps), shown=pl.lit(value=True))
        svg = drawing(heatmap(table, segments=["a"], ranges=["0", "1", "2"], width=NARROW))
        assert {key, key.replace("≥ +", "≤ −"), "0"} <= set(written(svg))


def test_heatmap_gives_equal_numbers_equal_colours():
    steps: dict[str, set[str]] = {}
    for cell in heat_cells([index / 2000 for index in range(-200, 201)]):
        steps.setdefault(cell["text"], set()).add(cell["step"])
    assert len(steps) == 21  # −10 to +10
    assert all(len(found) == 1 for found in steps.values())


def test_heatmap_hides_what_has_too_few_rows_and_weakens_what_is_not_clear():
    shown, clear = pl.Series([True, False, True]), pl.Series([True, True, False])
    cells = heat_cells([0.05, 0.05, 0.05], shown=shown, clear=clear)
    assert [cell["text"] for cell in cells] == ["+5", "·", "+5"]
    assert [cell["step"] for cell in cells] == ["d5", "hidden", "d5"]
    assert [cell["strength"] for cell in cells] == [1.0, 1.0, 0.38]
    assert [cell["text"] for cell in heat_cells([None])] == ["·"]


def test_heatmap_goes_on_below_where_ranges_do_not_fit():
    ranges = [f"{index}–{index + 1}%" for index in range(15)]
    table = heat_table(["West", "Coast"], ranges)
    blocks = {width: len(heatmap(table, segments=["West"], ranges=ranges, width=width).vconcat) - 1 for width in WIDTHS}
    assert blocks == {WIDE: 1, NARROW: 2}
    svg = drawing(heatmap(table, segments=["West"], ranges=ranges, width=NARROW))
    assert Counter(spoken(svg)) == Counter(f"West: {bound}" for bound in ranges)


def test_reliability_axes_end_at_the_limit():
    chart = reliability(curve_table(scale=0.02), histogram_table(scale=0.02), width=WIDE, limit=0.02)
    assert set(domains(chart, "x")) == {(0.0, 0.02)}
    assert (0.0, 0.02) in domains(chart, "y")
    assert {"0%", "0.5%", "1%", "1.5%", "2%"} <= set(written(drawing(chart)))


def test_reliability_draws_bins_beyond_the_limit_at_the_edge():
    # Scores 0.125, 0.375, 0.625, 0.875; rates are nine tenths of them: 0.1125, 0.3375, 0.5625, 0.7875.
    chart = reliability(curve_table(), histogram_table(), width=WIDE, limit=0.6)
    marks = rows_with(chart, "description", "shape")
    assert [mark["shape"] for mark in marks] == ["dot", "dot", "right", "up"]
    assert [mark["mean_score_at"] for mark in marks] == [0.125, 0.375, 0.6, 0.6]
    assert max(row["rate_high_at"] for row in rows_with(chart, "rate_high_at")) == 0.6
    assert max(row["upper"] for row in rows_with(chart, "upper")) == pytest.approx(0.6)


def test_reliability_strip_is_in_percentage_points():
    chart = reliability(curve_table(), histogram_table(), width=WIDE)
    assert [row["gap_pp"] for row in rows_with(chart, "gap_pp")] == [1.25, 3.75, 6.25, 8.75]
    # band 0.95 p to 1.05 p: the gap of a calibrated model lies within 5 % of p
    strip = [(row["strip_low"], row["strip_high"]) for row in rows_with(chart, "strip_low")][:2]
    assert strip == [(pytest.approx(-0.625), pytest.approx(0.625)), (pytest.approx(-1.875), pytest.approx(1.875))]


def test_reliability_without_a_rate_leaves_the_bin_out_and_one_bin_has_a_band():
    table = curve_table().with_columns(rate=pl.Series([0.1, None, float("nan"), None]))
    chart = reliability(table, histogram_table(), width=NARROW)
    assert spoken(drawing(chart)) == ["bin 0"]
    marks = [part["type"] for key, part in walk(specification(chart)) if key == "mark"]
    assert "area" not in marks


def test_multiples_draw_a_panel_without_rows_and_cut_long_heads():
    names = ("West", "x" * 60)
    svg = drawn("multiples", NARROW, names)
    heads = [text for text in written(svg) if "x" in text]
    assert len(heads) == 1
    assert heads[0].count("…") == 1
    assert len(spoken(svg)) == BINS  # the second panel has none


def test_multiples_colour_bins_by_their_own_state_whatever_the_verdict():
    table, overall, panels = multiples_tables(["West", "Coast"])
    chart = multiples(table, overall, panels.with_columns(verdict=pl.lit("unsure")), width=WIDE)
    assert {row["state"] for row in rows_with(chart, "state")} == {"in", "over", "under"}


def test_multiples_label_axes_at_the_left_and_below_only():
    names = tuple(f"Area {index}" for index in range(6))
    labels = Counter(written(drawn("multiples", WIDE, names)))
    # Six panels in rows of four: two at the left, four without another one below.
    assert labels["happened"] == 2
    assert labels["said"] == 4


def test_timeline_labels_the_last_period_and_leaves_room_between_labels():
    names = tuple(f"2020-{index:02d}" for index in range(60))
    svg = drawn("timeline", NARROW, names)
    labels = [text for text in written(svg) if re.match(r"M\d+ ", text)]
    assert labels[-1] == "M59 2020-59"
    assert 2 <= len(labels) <= 5
    assert len(spoken(svg)) == 60


def test_timeline_describes_a_period_without_a_gap_at_its_bar():
    nothing = pl.when(pl.col("period") != "b")
    table = time_table(["a", "b", "c"]).with_columns(nothing.then(pl.col(name)) for name in ("gap", "low", "high"))
    chart = timeline(table, tolerance=0.03, width=WIDE)
    assert sorted(spoken(drawing(chart))) == ["a: period", "b: period", "c: period"]
    assert [row["period"] for row in rows_with(chart, "n", "description")] == ["b"]


def test_timeline_of_empty_periods_is_drawn():
    nothing = [pl.lit(None, dtype=pl.Float64).alias(name) for name in ("gap", "low", "high")]
    table = time_table(["a", "b"]).with_columns(*nothing, tag=pl.lit(None, dtype=pl.String))
    assert spoken(drawing(timeline(table, tolerance=0.03, width=NARROW))) == ["a: period", "b: period"]


def test_timeline_keeps_the_latest_tags():
    assert _spread([0, 1, 2, 5], 2.0) == [5, 2, 0]
    assert _spread([0, 1, 2, 3], 1.5) == [3, 1]
    assert _spread([], 2.0) == []


def test_overlay_colours_eight_curves_and_greys_the_rest():
    names = [f"model {index}" for index in range(11)]
    chart = build("overlay", WIDE, names)
    colours = [part for key, part in walk(specification(chart)) if key == "color" and isinstance(part, dict)]
    scales = [part["scale"] for part in colours if "scale" in part]
    assert all(scale["domain"] == names[:8] for scale in scales)
    assert all(len(set(scale["range"])) == 8 for scale in scales)
    svg = drawing(chart)
    assert "Largest 8 of 11 curves in colour" in written(svg)
    assert len(spoken(svg)) == 11 * BINS


def test_reliability_curves_draws_one_curve_whole_and_several_over_each_other():
    one = curve_table().with_columns(lower=pl.Series([0.0, 0.25, 0.5, 0.75]), n=pl.lit(1000))
    one = one.with_columns(
        upper=pl.col("lower") + 0.25, rate=0.8 * pl.col("mean_score"), gap=0.2 * pl.col("mean_score")
    ).drop("state", "description")
    chart = reliability_curves(one, keys=[], width=540)
    assert isinstance(chart, alt.VConcatChart)
    marks = rows_with(chart, "description", "state")
    assert marks[0]["description"] == (  # 0.125 and 0.8 x 0.125
        "said 12.5%, happened 10.0% of 1,000 rows (interval 10.0% to 13.8%), gap +2.5 pp"
    )
    assert {mark["state"] for mark in marks} == {"over"}  # 0.8 p lies below the band from 0.95 p
    several = pl.concat([one.with_columns(a=pl.lit("x"), model=pl.lit(name)) for name in ("p", None)])
    chart = reliability_curves(several, keys=["a", "model"], width=540)
    assert isinstance(chart, alt.LayerChart)
    assert {row["curve"] for row in rows_with(chart, "curve")} == {"x · p", "x · (missing)"}


@pytest.mark.parametrize(("scale", "limit"), [(1.0, 1.0), (0.02, 0.02), (0.001, 0.0009), (0.4, 0.4)])
def test_reliability_curves_fits_its_axes_to_small_scores(scale, limit):
    # The largest score is 0.875 of the scale; the end is the next multiple of half its power of ten.
    one = curve_table(scale=scale).with_columns(lower=pl.lit(0.0), upper=pl.lit(scale), n=pl.lit(10))
    chart = reliability_curves(one.drop("state", "description"), keys=[], width=540)
    assert all(domain == (0.0, pytest.approx(limit)) for domain in domains(chart, "x"))
