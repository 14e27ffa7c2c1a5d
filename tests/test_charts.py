"""Rules that all charts keep: facts of the specification and of the drawing, never of pixels."""

from __future__ import annotations

import json
import re
from collections import Counter

import altair as alt
import polars as pl
import pytest
import vl_convert as vlc

from calframe._charts import DARK, LIGHT, NARROW, WIDE, resolved, specification, standalone
from calframe._charts._axes import gap_domain
from calframe._charts._data import text_width, texts, tidy
from tests._chart_examples import (
    CHARTS,
    HOSTILE,
    ONE_CURVE,
    WIDTHS,
    build,
    descriptions,
    drawn,
    made,
    size,
    spoken,
    walk,
    written,
)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CHARTS)
class TestEveryChart:
    @pytest.mark.parametrize("count", [1, 8, 40])
    def test_drawing_fits_its_width_and_speaks_once_for_each_row(self, name, width, count):
        names = tuple(f"Area {index}" for index in range(count))
        svg = drawn(name, width, names)
        assert size(svg)[0] <= width
        assert Counter(spoken(svg)) == Counter(descriptions(name, names))
        assert "null" not in written(svg)
        assert not re.search("NaN|Infinity|undefined", svg)

    def test_hostile_names_come_out_as_text(self, name, width):
        svg = drawn(name, width, HOSTILE)
        assert size(svg)[0] <= width
        assert "<script" not in svg
        assert Counter(spoken(svg)) == Counter(descriptions(name, HOSTILE))
        if name not in (*ONE_CURVE, "timeline"):  # these write no name, or few of them
            assert all(any(text.startswith(hostile[:3]) for text in written(svg)) for hostile in HOSTILE)

    def test_field_names_are_ours(self, name, width):
        spec = json.loads(made(name, width, HOSTILE))
        fields = {part for key, part in walk(spec) if key == "field"}
        columns = {column for rows in spec["datasets"].values() for row in rows for column in row}
        assert fields
        assert all(re.fullmatch("[a-z][a-z_0-9]*", found) for found in fields | columns)

    def test_no_expression_holds_text_of_the_user(self, name, width):
        compiled = vlc.vegalite_to_vega(made(name, width, HOSTILE), vl_version="6.4")
        places = {key for key, part in walk(compiled) if isinstance(part, str) and "zq7" in part}
        fields = {"segment", "range", "panel", "curve", "period", "head", "label", "description"}
        assert places
        assert places <= fields | {"domain"}

    def test_no_axis_is_temporal(self, name, width):
        assert "temporal" not in made(name, width)

    def test_same_table_gives_the_same_specification(self, name, width):
        assert json.dumps(specification(build(name, width))) == made(name, width)

    def test_theme_of_the_user_changes_nothing_and_stays(self, name, width):
        plain = json.loads(made(name, width))
        with alt.theme.enable("dark"):
            assert specification(build(name, width)) == plain
            assert alt.theme.active == "dark"

    def test_every_colour_is_a_token(self, name, width):
        tokens = set(re.findall(r"var\(--cf-(\w+)\)", made(name, width)))
        assert tokens
        assert tokens <= set(LIGHT)
        assert not re.search("#[0-9a-fA-F]{3}", made(name, width))

    @pytest.mark.parametrize("palette", [LIGHT, DARK])
    def test_resolved_replaces_every_variable_but_the_text_of_the_user(self, name, width, palette):
        plain = json.loads(made(name, width, HOSTILE))
        spec = resolved(plain, palette)
        assert spec["config"]["background"] == palette["card"]
        assert spec["datasets"] == plain["datasets"]
        del spec["datasets"]
        assert {key for key, part in walk(spec) if isinstance(part, str) and "var(" in part} <= {"domain"}


@pytest.mark.parametrize("name", CHARTS)
def test_standalone_draws_the_same_size_in_plain_colours(name):
    chart = build(name, WIDE)
    alone = standalone(chart, palette=DARK)
    plain = json.dumps(alone.to_dict())
    assert isinstance(alone, type(chart))
    assert "var(" not in plain
    assert size(vlc.vegalite_to_svg(plain, vl_version="6.4")) == size(drawn(name, WIDE))


@pytest.mark.parametrize("name", ["forest", "timeline", "multiples"])  # layers, and parts below and beside each other
def test_standalone_is_the_chart_that_altair_reads_from_its_specification(name):
    alone = standalone(build(name, NARROW)).to_dict()
    assert alone == alt.Chart.from_dict(resolved(specification(build(name, NARROW)), LIGHT)).to_dict()


# Colours


def channels(colour):
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]


def luminance(colour):
    # WCAG 2.2, relative luminance: https://www.w3.org/TR/WCAG22/#dfn-relative-luminance
    shares = [channel / 255 for channel in colour]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first, second):
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_palettes_have_the_same_tokens():
    assert list(LIGHT) == list(DARK)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_text_and_marks_stand_out(palette):
    # 4.5 for text and 3 for marks: WCAG 2.2, success criteria 1.4.3 and 1.4.11
    card = channels(palette["card"])
    assert all(contrast(channels(palette[name]), card) >= 4.5 for name in ("ink", "muted", "over", "under", "none"))
    assert all(contrast(channels(palette[f"c{index}"]), card) >= 3 for index in range(8))


@pytest.mark.parametrize("step", range(7))
@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_numbers_stand_out_in_their_cells(palette, step):
    cell, card = channels(palette[f"d{step}"]), channels(palette["card"])
    strong = channels(palette["dt0" if step in (0, 6) else "dt1"])
    faint = [0.38 * above + 0.62 * below for above, below in zip(cell, card, strict=True)]
    assert contrast(strong, cell) >= 4.5
    assert contrast(channels(palette["ok"]), faint) >= 4.5


# Tables


def test_tidy_makes_null_of_what_is_no_number():
    table = pl.DataFrame({"a": [1.0, float("nan"), float("inf")], "b": [None, 2.0, -float("inf")]})
    clean = tidy(table, {"a": pl.Float64, "b": pl.Float64})
    assert clean.to_dict(as_series=False) == {"a": [1.0, None, None], "b": [None, 2.0, None]}


def test_tidy_makes_pictures_of_control_characters():
    # Unicode, block Control Pictures: U+2400 + code, U+2421 for delete
    assert texts(["x\x00\x1b", "\x7f", "\ufffe", "a\nb"]) == ["x␀␛", "␡", "\ufffd", "a␊b"]


@pytest.mark.parametrize("name", CHARTS)
def test_control_characters_do_not_stop_the_drawing(name):
    svg = drawn(name, NARROW, ("zq7 \x00\x08\x1b\x7f\ufffe", "b\n", "c"))
    assert any("␀␈␛␡\ufffd" in text for text in [*written(svg), *spoken(svg)])


def test_text_width_counts_wide_and_combining_characters():
    assert text_width(["日本"], size=10) == 20  # two full-width characters of one em
    assert text_width(["e\u0301"]) == text_width(["e"])
    assert text_width([]) == 0


# The axis of gaps


def test_gap_domain_holds_dots_and_tolerance_and_cuts_the_one_enormous_interval():
    gaps = pl.Series([8.0, -2.0, 1.0])
    # Ends by size: 1, 2, 3, 4, 7, 9: the middle is 3.5, twice that 7; 2.5 times the farthest dot is 20.
    low, high = gap_domain(gaps, pl.Series([7.0, 9.0, -3.0, -1.0, -2.0, 4.0]), tolerance=3.0)
    assert low < -3.75 < 9.0 < high
    assert high - 9.0 == pytest.approx(0.06 * (9.0 + 3.75))
    low, high = gap_domain(gaps, pl.Series([7.0, 90.0, -3.0, -1.0, -2.0, 4.0]), tolerance=3.0)
    assert 20.0 < high < 25.0


@pytest.mark.parametrize("tolerance", [0.0, 3.0])
def test_gap_domain_of_nothing_still_spans_zero(tolerance):
    empty = pl.Series([], dtype=pl.Float64)
    low, high = gap_domain(empty, empty, tolerance=tolerance)
    assert low < -tolerance <= tolerance < high


def test_ticks_have_a_minus_sign_and_a_plain_zero():
    ticks = set(written(drawn("forest", WIDE, HOSTILE)))
    assert {"0", "−5", "+5", "+10"} <= ticks
    assert not any(re.match("-[0-9]|[+−]0$", tick) for tick in ticks)
