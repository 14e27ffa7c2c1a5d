"""Charts: facts of the specification and of the drawing, never of pixels."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product
from xml.etree import ElementTree as ET

import altair as alt
import polars as pl
import pytest
import vl_convert as vlc

from calframe._charts import (
    DARK,
    LIGHT,
    NARROW,
    WIDE,
    forest,
    heatmap,
    multiples,
    overlay,
    reliability,
    reliability_curves,
    resolved,
    specification,
    standalone,
    timeline,
)
from calframe._charts._axes import gap_domain
from calframe._charts._data import text_width, texts, tidy
from calframe._charts._timeline import _spread

SVG = "{http://www.w3.org/2000/svg}"
CHARTS = ("forest", "heatmap", "reliability", "multiples", "timeline", "overlay")
WIDTHS = (WIDE, NARROW)
# "zq7" in each name marks the user's text, wherever it may turn up.
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
BINS = 4
NAMES = ("West", "Coast", "North")


# ---- tables, and the charts made of them ---------------------------------------------------------------------------


def forest_table(names):
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


def heat_table(names, ranges):
    rows = [
        {"segment": name, "range": bound, "gap": 0.05, "clear": True, "shown": True, "description": f"{name}: {bound}"}
        for name, bound in product(names, ranges)
    ]
    return pl.DataFrame(rows)


def curve_table(*, scale=1.0, prefix=""):
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


def histogram_table(*, scale=1.0):
    edges = [scale * index / 10 for index in range(11)]
    return pl.DataFrame({"lower": edges[:-1], "upper": edges[1:], "n": list(range(1000, 0, -100))})


def multiples_tables(names):
    bins = [
        curve_table(prefix=f"{name}: ").with_columns(panel=pl.lit(name), verdict=pl.lit("over")) for name in names[:-1]
    ]
    none = curve_table().with_columns(panel=pl.lit(""), verdict=pl.lit("few")).clear()
    panels = [{"panel": name, "head": f"{name} · n 3,566", "tag": "▲ +7.7 pp", "verdict": "over"} for name in names]
    return pl.concat([*bins, none]), curve_table().select("mean_score", "rate"), pl.DataFrame(panels)


def time_table(names):
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


def overlay_table(names):
    return pl.concat([curve_table(prefix=f"{name}: ").with_columns(curve=pl.lit(name)) for name in names])


def build(name, width, names=NAMES):
    """Return one chart, its user text being `names`."""
    names = list(names)
    match name:
        case "forest":
            return forest(forest_table(names), tolerance=0.03, width=width)
        case "heatmap":
            ranges = ["0–10%", "10–40%", "40–100%"]
            return heatmap(heat_table(names, ranges), segments=names, ranges=ranges, width=width)
        case "reliability":
            return reliability(curve_table(prefix=names[0]), histogram_table(), width=width)
        case "multiples":
            return multiples(*multiples_tables(names[:12]), width=width)
        case "timeline":
            return timeline(time_table(names), tolerance=0.03, width=width)
        case _:
            return overlay(overlay_table(names), width=width)


def expected_descriptions(name, names=NAMES):
    match name:
        case "forest":
            return [f"{segment}: gap" for segment in names]
        case "heatmap":
            return [f"{segment}: {bound}" for segment, bound in product(names, ("0–10%", "10–40%", "40–100%"))]
        case "reliability":
            return [f"{names[0]}bin {index}" for index in range(BINS)]
        case "multiples":
            return [f"{panel}: bin {index}" for panel, index in product(names[:12][:-1], range(BINS))]
        case "timeline":
            return [f"{period}: period" for period in names]
        case _:
            return [f"{curve}: bin {index}" for curve, index in product(names, range(BINS))]


# ---- reading what was made -----------------------------------------------------------------------------------------


def walk(part, key="") -> Iterator[tuple[str, object]]:
    yield key, part
    if isinstance(part, dict):
        for name, value in part.items():
            yield from walk(value, name)
    elif isinstance(part, list):
        for value in part:
            yield from walk(value, key)


@cache
def drawn(name, width, names=NAMES):
    return drawing(build(name, width, names))


def drawing(chart):
    return vlc.vegalite_to_svg(json.dumps(specification(chart), allow_nan=False), vl_version="6.4")


def size(svg):
    root = ET.fromstring(svg)  # noqa: S314  our own drawing
    return float(root.get("width")), float(root.get("height"))


def written(svg):
    root = ET.fromstring(svg)  # noqa: S314  our own drawing
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def spoken(svg):
    """Return the words of the data marks: axes and legends are groups, marks are shapes."""
    root = ET.fromstring(svg)  # noqa: S314  our own drawing
    shapes = (f"{SVG}path", f"{SVG}rect", f"{SVG}line", f"{SVG}text")
    return [
        element.get("aria-label")
        for element in root.iter()
        if element.tag in shapes and element.get("role") == "graphics-symbol" and element.get("aria-label")
    ]


def rows_with(chart, *columns):
    """Return the rows of the data sets that have these columns."""
    sets = specification(chart)["datasets"].values()
    return [row for rows in sets for row in rows if set(columns) <= set(row)]


def domains(chart, channel):
    return [
        tuple(part["scale"]["domain"])
        for key, part in walk(specification(chart))
        if key == channel and isinstance(part, dict) and "domain" in part.get("scale", {})
    ]


# ---- rules that all charts keep ------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CHARTS)
class TestEveryChart:
    def test_drawing_fits_its_width_and_speaks_once_for_each_row(self, name, width):
        svg = drawn(name, width)
        assert size(svg)[0] <= width
        assert Counter(spoken(svg)) == Counter(expected_descriptions(name))
        assert not re.search("NaN|Infinity|undefined", svg)

    def test_field_names_are_ours(self, name, width):
        spec = specification(build(name, width, HOSTILE))
        fields = {part for key, part in walk(spec) if key == "field"}
        columns = {column for rows in spec["datasets"].values() for row in rows for column in row}
        assert fields
        assert all(re.fullmatch("[a-z][a-z_0-9]*", found) for found in fields | columns)

    def test_no_expression_holds_text_of_the_user(self, name, width):
        compiled = vlc.vegalite_to_vega(json.dumps(specification(build(name, width, HOSTILE))), vl_version="6.4")
        code = ("expr", "signal", "test", "filter", "update", "labelExpr", "value")
        places = {key for key, part in walk(compiled) if isinstance(part, str) and "zq7" in part}
        assert places
        assert not places & set(code)
        assert not any("zq7" in str(part) for key, part in walk(compiled) if key in ("signals", "signal", "title"))

    def test_hostile_names_come_out_as_text(self, name, width):
        svg = drawn(name, width, HOSTILE)
        assert size(svg)[0] <= width
        assert "<script" not in svg
        assert Counter(spoken(svg)) == Counter(expected_descriptions(name, HOSTILE))
        if name not in ("reliability", "timeline"):  # they write no such name, or few of them
            heads = [text[:3] for text in HOSTILE[: 8 if name != "multiples" else 12]]
            assert all(any(text.startswith(head) for text in written(svg)) for head in heads)

    @pytest.mark.parametrize("count", [1, 8, 40])
    def test_any_number_of_names(self, name, width, count):
        names = tuple(f"Area {index}" for index in range(count))
        svg = drawn(name, width, names)
        assert size(svg)[0] <= width
        assert Counter(spoken(svg)) == Counter(expected_descriptions(name, names))
        assert "null" not in written(svg)

    def test_same_table_gives_the_same_specification(self, name, width):
        assert json.dumps(specification(build(name, width))) == json.dumps(specification(build(name, width)))

    def test_a_theme_of_the_user_changes_nothing_and_is_left_alone(self, name, width):
        plain = specification(build(name, width))
        with alt.theme.enable("dark"):
            assert specification(build(name, width)) == plain
            assert alt.theme.active == "dark"

    def test_every_colour_is_a_token_of_both_palettes(self, name, width):
        spec = json.dumps(specification(build(name, width)))
        tokens = set(re.findall(r"var\(--cf-(\w+)\)", spec))
        assert tokens
        assert tokens <= set(LIGHT)
        assert tokens <= set(DARK)
        assert not re.search("#[0-9a-fA-F]{3}", spec)

    @pytest.mark.parametrize("palette", [LIGHT, DARK])
    def test_resolved_leaves_no_variable_but_the_text_of_the_user(self, name, width, palette):
        spec = resolved(specification(build(name, width, HOSTILE)), palette)
        assert spec["config"]["background"] == palette["card"]
        data = spec.pop("datasets")
        variables = {key for key, part in walk(spec) if isinstance(part, str) and "var(" in part}
        assert variables <= {"domain"}
        if name in ("forest", "heatmap", "overlay"):
            assert any("var(--cf-ink)" in row.values() for rows in data.values() for row in rows)

    def test_nothing_is_temporal(self, name, width):
        assert not {part for key, part in walk(specification(build(name, width))) if key == "type"} & {"temporal"}


def test_palettes_have_the_same_tokens():
    assert list(LIGHT) == list(DARK)


@pytest.mark.parametrize("name", CHARTS)
def test_standalone_draws_the_same_size_in_plain_colours(name):
    chart = build(name, WIDE)
    alone = standalone(chart, palette=DARK)
    assert isinstance(alone, type(chart))
    assert "var(" not in json.dumps(alone.to_dict())
    svg = vlc.vegalite_to_svg(json.dumps(alone.to_dict()), vl_version="6.4")
    assert size(svg) == size(drawing(chart))


# WCAG 2.2, relative luminance and contrast ratio: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
def luminance(colour):
    shares = [channel / 255 for channel in colour]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def channels(colour):
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]


def contrast(first, second):
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_text_and_marks_stand_out(palette):
    card = channels(palette["card"])
    assert all(contrast(channels(palette[name]), card) >= 4.5 for name in ("ink", "muted", "over", "under", "none"))
    assert all(contrast(channels(palette[f"c{index}"]), card) >= 3 for index in range(8))
    for step in range(7):
        cell = channels(palette[f"d{step}"])
        strong = channels(palette["dt0" if step in (0, 6) else "dt1"])
        faint = [0.38 * above + 0.62 * below for above, below in zip(cell, card, strict=True)]
        assert contrast(strong, cell) >= 4.5
        assert contrast(channels(palette["ok"]), faint) >= 4.5


# ---- tables --------------------------------------------------------------------------------------------------------


def test_tidy_makes_null_of_what_is_no_number_and_pictures_of_control_characters():
    table = pl.DataFrame(
        {"a": [1.0, float("nan"), float("inf")], "b": [None, 2.0, -float("inf")], "t": ["x\x00\x1b", "\x7f", "\ufffe"]}
    )
    clean = tidy(table, {"a": pl.Float64, "b": pl.Float64, "t": pl.String})
    # Unicode, block Control Pictures: U+2400 + code, U+2421 for delete
    assert clean.to_dict(as_series=False) == {
        "a": [1.0, None, None],
        "b": [None, 2.0, None],
        "t": ["x␀␛", "␡", "\ufffd"],
    }
    assert texts(["a\nb"]) == ["a␊b"]


@pytest.mark.parametrize("name", CHARTS)
def test_control_characters_do_not_stop_the_drawing(name):
    svg = drawn(name, NARROW, ("zq7 \x00\x08\x1b\x7f\ufffe", "b\n", "c"))
    assert any("␀␈␛␡\ufffd" in text for text in [*written(svg), *spoken(svg)])


def test_text_width_counts_wide_and_combining_characters():
    assert text_width(["日本"], size=10) == 20  # two full-width characters of one em
    assert text_width(["e\u0301"]) == text_width(["e"])
    assert text_width([]) == 0


# ---- the axis of gaps ----------------------------------------------------------------------------------------------


def test_gap_domain_holds_dots_and_tolerance_and_cuts_the_one_enormous_interval():
    gaps = pl.Series([8.0, -2.0, 1.0])
    # Ends by size: 1, 2, 3, 4, 7, 9: the middle one is 3.5, twice that 7; 2.5 times the farthest dot is 20.
    low, high = gap_domain(gaps, pl.Series([7.0, 9.0, -3.0, -1.0, -2.0, 4.0]), tolerance=3.0)
    assert low < -3.75 < 9.0 < high
    assert high - 9.0 == pytest.approx(0.06 * (9.0 + 3.75))
    low, high = gap_domain(gaps, pl.Series([7.0, 90.0, -3.0, -1.0, -2.0, 4.0]), tolerance=3.0)
    assert 20.0 < high < 25.0


def test_gap_domain_of_nothing_still_spans_zero():
    empty = pl.Series([], dtype=pl.Float64)
    for tolerance in (0.0, 3.0):
        low, high = gap_domain(empty, empty, tolerance=tolerance)
        assert low < -tolerance <= tolerance < high


def test_ticks_have_a_minus_sign_and_a_plain_zero():
    ticks = set(written(drawn("forest", WIDE, HOSTILE)))
    assert {"0", "−5", "+5", "+10"} <= ticks
    assert not any(re.match("-[0-9]|[+−]0$", tick) for tick in ticks)


# ---- one by one ----------------------------------------------------------------------------------------------------


def test_forest_shows_columns_only_where_there_is_room():
    assert {"said → happened", "verdict", "3,566"} <= set(written(drawn("forest", WIDE)))
    assert not {"said → happened", "verdict", "3,566"} & set(written(drawn("forest", NARROW)))


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
    table = table.with_columns(verdict=pl.lit("few"), text_verdict=pl.lit("– Too few rows"))
    chart = forest(table, tolerance=0.03, width=width)
    assert domains(chart, "x")[0] == (pytest.approx(-4.2, abs=0.1), pytest.approx(4.2, abs=0.1))
    svg = drawing(chart)
    assert written(svg).count("– Too few rows") == 3
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
    for row in rows_with(chart, "text"):
        found[row["range"]] |= row
    return [found[bound] for bound in ranges]


def test_heatmap_numbers_and_steps():
    # Steps change at 1.5, 3.5 and 6.5 points: what is printed as 1, 3 and 6 is the last of its colour.
    cells = heat_cells([0.0, -0.004, 0.0149, 0.0151, 0.034, 0.036, 0.064, 0.066, -0.066, -1.0])
    texts_of = [cell["text"] for cell in cells]
    assert texts_of == ["0", "0", "+1", "+2", "+3", "+4", "+6", "+7", "−7", "−100"]
    assert [cell["step"] for cell in cells] == ["d3", "d3", "d3", "d4", "d4", "d5", "d5", "d6", "d0", "d0"]


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
    assert heads[0].endswith("…")
    assert len(spoken(svg)) == BINS  # the second panel has none


def test_multiples_grey_what_is_not_judged():
    table, overall, panels = multiples_tables(["West", "Coast"])
    chart = multiples(table.with_columns(verdict=pl.lit("unsure")), overall, panels, width=WIDE)
    assert {row["state"] for row in rows_with(chart, "state")} == {"unsure"}


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
    assert "8 of 11 curves; the others in grey" in written(svg)
    assert len(spoken(svg)) == 11 * BINS


def test_reliability_curves_draws_one_curve_whole_and_several_over_each_other():
    one = curve_table().with_columns(lower=pl.Series([0.0, 0.25, 0.5, 0.75]), n=pl.lit(1000))
    one = one.with_columns(upper=pl.col("lower") + 0.25, rate=0.8 * pl.col("mean_score")).drop("state", "description")
    chart = reliability_curves(one, keys=[], width=540)
    assert isinstance(chart, alt.VConcatChart)
    marks = rows_with(chart, "description", "state")
    assert marks[0]["description"] == "said 12.5%, happened 10.0% of 1,000 rows"  # 0.125 and 0.8 x 0.125
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
