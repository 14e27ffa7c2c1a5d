"""The chart of a calibration map: its lines run where the map says, and say where it was fitted."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import vl_convert as vlc

import calframe
from calframe._charts import DARK, LIGHT, NARROW, WIDE, specification, standalone
from calframe._charts._map_lines import map_lines
from calframe._maps._forms import OneVersusRest
from tests._chart_examples import domains, map_table, rows_with, size, spoken, walk, written
from tests._map_examples import logistic, map_of, softmax, through

HOSTILE = "</script><script>alert(1)</script><!--"


def parts(chart: Any, kind: str) -> list[dict[str, Any]]:
    """Return the layers of a kind of mark, with the rows of each under "rows"."""
    found = chart.to_dict()
    layers = [layer | {"rows": rows_of(found, layer)} for layer in found["layer"]]
    return [layer for layer in layers if layer["mark"]["type"] == kind]


def rows_of(found: dict[str, Any], layer: dict[str, Any]) -> list[dict[str, Any]]:
    data = layer["data"]
    rows: list[dict[str, Any]] = found["datasets"][data["name"]] if "name" in data else data["values"]
    return rows


def lines(chart: Any, *, dashed: bool = False) -> list[dict[str, Any]]:
    """Return the points of the lines with a colour, or of their dashed ends."""
    own = [layer for layer in parts(chart, "line") if layer["encoding"].get("color", {}).get("field") == "curve"]
    return [row for layer in own for row in layer["rows"] if ("strokeDash" in layer["mark"]) is dashed]


def svg_of(chart: Any) -> str:
    return vlc.vegalite_to_svg(json.dumps(chart.to_dict(), allow_nan=False), vl_version="6.4")


@pytest.fixture(scope="module")
def flights() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    score = np.round(rng.beta(1, 3, 600), 2).clip(0.03, 0.93)
    late = (rng.random(600) < np.sqrt(score) * 0.7).astype(int)
    return pl.DataFrame({"y": late, "p": score, "g": rng.choice(list("abc"), 600)})


METHODS = ("identity", "platt", "beta", "temperature", "isotonic", "histogram", "spline", "venn_abers")


@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("method", METHODS)
def test_lines_run_where_the_map_says(method: Any, by: Any, flights: pl.DataFrame) -> None:
    found = calframe.fit(flights, label="y", score="p", method=method, by=by, pooling="none")
    points = pl.DataFrame(lines(found.plot()))
    between = np.arange(0.105, 0.6, 0.01)  # scores have two decimals, and there the steps are
    alike = by is None or method == "identity"  # which is the same in all segments
    assert points["curve"].unique().sort().to_list() == [*([] if alike else "abc"), "pooled map"]
    for (name,), line in points.group_by("curve"):
        keys = pl.lit(None if name == "pooled map" else name, dtype=pl.String)
        made = found.apply(pl.DataFrame({"p": between}).with_columns(g=keys))["p_calibrated"]
        # straight from point to point, 1/200 apart: off by an eighth of the square of that times a bend of up to 30
        assert np.interp(between, line["at"], line["value"]) == pytest.approx(made.to_numpy(), abs=1e-4)


def test_a_step_is_upright() -> None:
    table = pl.DataFrame({"y": [0, 0, 1, 1], "p": [0.2, 0.4, 0.6, 0.8]})
    chart = calframe.fit(table, label="y", score="p", method="isotonic", interpolation="step").plot()
    found = [(row["at"], row["value"]) for row in lines(chart)]
    # 0 up to 0.6 and 1 from there on
    assert found[0] == (0.2, 0.0)
    assert found[-1] == (0.8, 1.0)
    step = [value for at, value in found if at == 0.6]
    assert (step[0], step[-1]) == (0.0, 1.0)
    assert all(value == (at >= 0.6) for at, value in found if at != 0.6)


def test_lines_are_solid_over_the_fitted_scores_and_dashed_beyond() -> None:
    chart = map_of(logistic((0.5, 0.0)), low=0.2, high=0.7).plot()
    inside, beyond = lines(chart), lines(chart, dashed=True)
    assert (inside[0]["at"], inside[-1]["at"]) == (0.2, 0.7)
    left, right = ([row["at"] for row in beyond if row["stretch"] == side] for side in (0, 1))
    assert (left[0], left[-1], right[0], right[-1]) == (0.0, 0.2, 0.7, 1.0)
    assert max(left) == 0.2
    assert min(right) == 0.7


def test_a_map_that_does_not_know_its_scores_is_solid_throughout() -> None:
    chart = map_of(logistic((0.5, 0.0)), low=None, high=None).plot()
    found = lines(chart)
    assert (found[0]["at"], found[-1]["at"]) == (0.0, 1.0)


def test_one_map_has_no_legend_and_says_no_name() -> None:
    svg = svg_of(map_of(through((0.0, 0.2), (1.0, 0.7))).plot())
    assert spoken(svg) == [f"{10 * i}.0% becomes {20 + 5 * i}.0%" for i in range(11)]
    assert "pooled map" not in written(svg)


def test_venn_abers_has_its_interval_as_a_band(flights: pl.DataFrame) -> None:
    found = calframe.fit(flights, label="y", score="p", method="venn_abers")
    (band,) = parts(found.plot(), "area")
    ends = pl.DataFrame(band["rows"])
    assert (ends["value_low"] <= ends["value_high"]).all()
    at = pl.DataFrame({"p": [0.105, 0.305]})  # between the scores, which have two decimals
    known = found.apply(at)
    for score, low, high in known.select("p", "p_calibrated_low", "p_calibrated_high").iter_rows():
        before, after = ends.filter(pl.col("at") <= score).tail(1), ends.filter(pl.col("at") >= score).head(1)
        assert before["value_low"][0] == pytest.approx(low, rel=1e-5)
        assert after["value_high"][0] == pytest.approx(high, rel=1e-5)
    assert re.search(r" becomes \d+\.\d% \(\d+\.\d% to \d+\.\d%\)$", spoken(svg_of(found.plot()))[3])


@pytest.mark.parametrize(("segments", "bands"), [(2, {"pooled map", "0", "1"}), (4, {"pooled map"})])
def test_few_lines_have_a_band_each(segments: int, bands: set[str], flights: pl.DataFrame) -> None:
    table = flights.with_columns(k=pl.int_range(pl.len()) % segments)
    chart = calframe.fit(table, label="y", score="p", by="k", method="venn_abers").plot()
    assert {row["curve"] for layer in parts(chart, "area") for row in layer["rows"]} == bands


def many(count: int) -> calframe.CalibrationMap:
    """Return a map of so many segments, each with fewer rows than the one before."""
    segments = {f"s{i}": (i + 1, 0.1, 0.9) for i in range(count)}
    return map_of(logistic(*((1.0, i / count) for i in range(count + 1))), segments=segments)


def test_eight_segments_are_coloured_and_the_rest_grey_behind_them() -> None:
    chart = many(20).plot()
    assert {row["curve"] for row in lines(chart)} == {"pooled map", *(f"s{i}" for i in range(8))}
    layers = parts(chart, "line")
    grey = next(i for i, layer in enumerate(layers) if layer["mark"].get("color") == LIGHT["ghost"])
    assert {row["name"] for row in layers[grey]["rows"]} == {f"s{i}" for i in range(8, 20)}
    named = [i for i, layer in enumerate(layers) if layer["encoding"].get("color", {}).get("field") == "curve"]
    assert grey < min(named)
    assert {row["curve"] for row in layers[-1]["rows"]} == {"pooled map"}  # on top
    svg = svg_of(chart)
    assert "8 largest of 20 segments in colour" in written(svg)
    assert spoken(svg)[:12] == [f"s{i}" for i in range(8, 20)]


def test_a_chart_of_very_many_segments_stays_small() -> None:
    chart = many(500).plot()
    assert len({row["name"] for layer in parts(chart, "line") for row in layer["rows"] if "name" in row}) == 60
    assert len(json.dumps(chart.to_dict())) < 1_000_000
    assert "8 largest of 500 segments in colour, 60 in grey" in written(svg_of(chart))


def test_segments_that_take_the_pooled_map_have_no_line() -> None:
    segments = {"own": (1, 0.0, 1.0), "few": (0, 0.0, 1.0), "none": (0, math.nan, math.nan)}
    chart = map_of(logistic((1.0, 0.0), (0.5, 0.0)), segments=segments).plot()
    assert {row["curve"] for row in lines(chart)} == {"pooled map", "own"}
    alone = map_of(logistic((1.0, 0.0)), segments={"few": (0, 0.0, 1.0)}).plot()
    assert {row["curve"] for row in lines(alone)} == {"pooled map"}


def test_axes_of_small_scores_end_near_them() -> None:
    # odds doubled: 0.016 becomes 0.032 / 1.016 = 0.0315, and the next half of a power of ten is 0.035
    chart = map_of(logistic((1.0, math.log(2))), low=0.001, high=0.016).plot()
    assert max(row["at"] for row in lines(chart, dashed=True)) == 0.035
    limits = {
        tuple(part["scale"]["domain"])
        for key, part in walk(chart.to_dict())
        if key in ("x", "y") and isinstance(part, dict) and "domain" in part.get("scale", {})
    }
    assert limits == {(0.0, 0.035)}
    assert spoken(svg_of(chart))[-1] == "1.6% becomes 3.15%"


def test_a_segment_of_one_score_is_a_dot() -> None:
    chart = map_of(logistic((1.0, 0.0), (1.0, 1.0)), segments={"one": (1, 0.5, 0.5)}).plot()
    (dot,) = [layer for layer in parts(chart, "point") if layer["mark"]["opacity"] == 1]
    assert [(row["curve"], row["at"]) for row in dot["rows"]] == [("one", 0.5)]


# Several classes


def test_each_class_has_a_line_where_they_differ() -> None:
    # b = ln 2 doubles the odds of class a: 0.5 against 0.25 and 0.25 becomes 2/3, and 0.5 / 1.25 = 0.4 of the others
    chart = map_of(softmax(np.eye(3), [math.log(2), 0, 0]), low=0.5, high=1.0).plot()
    at = {row["curve"]: row["value"] for row in lines(chart) if row["at"] == 0.5}
    assert at == pytest.approx({"a": 2 / 3, "b": 0.4, "c": 0.4}, rel=1e-5)
    assert min(row["at"] for row in lines(chart, dashed=True)) == pytest.approx(1 / 3, rel=1e-5)
    assert "largest probability before, the others being equal" in written(svg_of(chart))


def test_classes_that_do_not_differ_have_one_line() -> None:
    chart = map_of(softmax(np.eye(3) / 2, [0, 0, 0], temperature=2.0)).plot()
    # sqrt(0.9) / (sqrt(0.9) + 2 sqrt(0.05))
    assert {row["curve"] for row in lines(chart)} == {"pooled map"}
    half = through((0.0, 0.25), (1.0, 0.75))
    alike = map_of(OneVersusRest(classes=(half, half, half)), low=None, high=None).plot()
    assert {row["curve"] for row in lines(alike)} == {"pooled map"}


def test_segments_of_several_classes_have_their_means() -> None:
    form = softmax(np.eye(3), [0, 0, 0]).and_also(softmax(np.eye(3), [math.log(2), 0, 0]))
    chart = map_of(form, segments={"s": (1, 0.5, 1.0)}).plot()
    at = {row["curve"]: row["value"] for row in lines(chart) if row["at"] == 0.5}
    assert at == pytest.approx({"s": (2 / 3 + 0.4 + 0.4) / 3, "pooled map": 0.5}, rel=1e-5)
    assert "that of the same class after, mean over classes" in written(svg_of(chart))


# As a drawing


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_lines_have_the_colours_of_the_theme(palette: Any) -> None:
    chart = standalone(map_lines(map_table(["a"]), width=WIDE, before="b", after="a"), palette=palette)
    text = json.dumps(chart.to_dict())
    assert "var(" not in text
    scales = [part for key, part in walk(chart.to_dict()) if key == "scale" and part and "a" in part.get("domain", [])]
    assert {tuple(scale["range"]) for scale in scales if isinstance(scale["range"][0], str)} == {
        (palette["ink"], palette["c0"])
    }


@pytest.mark.parametrize("width", [360, 900])
def test_a_chart_is_as_wide_as_asked(width: int) -> None:
    names = {"x" * 200: (1, 0.0, 1.0), "y" * 200: (2, 0.0, 1.0)}
    chart = map_of(logistic((1.0, 0.0), (0.5, 0.0), (2.0, 0.0)), segments=names).plot(width=width)
    assert size(svg_of(chart))[0] <= width


def test_charts_are_saved(tmp_path: Path) -> None:
    chart = many(3).plot()
    for suffix, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
        chart.save(tmp_path / f"map.{suffix}")
        assert (tmp_path / f"map.{suffix}").read_bytes().startswith(start)


def test_names_stay_text(tmp_path: Path) -> None:
    segments = {HOSTILE: (1, 0.0, 1.0), "pooled map": (2, 0.0, 1.0), "": (3, 0.0, 1.0)}
    form = logistic((1.0, 0.0), (0.5, 0.0), (2.0, 0.0), (1.0, 1.0))
    chart = map_of(form, segments=segments).plot()
    assert chart.to_html().count("alert(1)</script>") == 0
    assert "<!--" not in chart.to_html()
    assert {row["curve"] for row in lines(chart)} >= {"pooled map", "pooled map (2)", ""}
    chart.save(tmp_path / "map.html", inline=True)
    assert "alert(1)</script>" not in (tmp_path / "map.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_lines_beyond_the_axes_end_at_them(width: int) -> None:
    chart = map_lines(map_table(["a"]), width=width, before="b", after="a", limit=0.5)
    assert set(domains(chart, "x")) == {(0.0, 0.5)}
    assert max(row["value"] for row in rows_with(chart, "value")) == 0.5
    assert not re.search("NaN|Infinity", json.dumps(specification(chart)))
