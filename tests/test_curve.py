"""Reliability curves: the bins, rates, intervals and bands by their definitions, in every library."""

from __future__ import annotations

import json
import math
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest
import vl_convert
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

import calframe
from calframe import ArgumentError, CalframeWarning, ColumnClashError, Curve, ScoreError
from tests._definitions import bin_of, edges_of
from tests._markup import Document
from tests._tables import LIBRARIES, Maker, approx, rows, types

POLARS = Maker("polars")
VALUES = ["mean_score", "rate", "gap", "rate_low", "rate_high", "band_low", "band_high"]


def curve(make: Maker, columns: dict[str, Any], **arguments: Any) -> Curve:
    return calframe.curve(make(columns), **{"label": "y", "score": "p", **arguments})


def drawn(n: int = 900, *, seed: int = 0) -> dict[str, Any]:
    """Return rows with ties, edges, two models, weights and segments."""
    rng = np.random.default_rng(seed)
    score = np.where(rng.random(n) < 0.3, rng.integers(0, 16, n) / 15, rng.random(n))
    return {
        "y": (rng.random(n) < score).astype(int).tolist(),
        "p": score.tolist(),
        "q": np.round(rng.random(n), 2).tolist(),
        "w": rng.choice([0.5, 1.0, 2.5], n).tolist(),
        "g": rng.choice(["a", "b", "c"], n).tolist(),
        "h": rng.integers(0, 2, n).tolist(),
    }


# Two bins by hand: scores .1, .3 with label 0 and .6, .8 with labels 1 and 0


def test_two_bins_by_hand(make: Maker) -> None:
    found = curve(make, {"y": [0, 0, 1, 0], "p": [0.1, 0.3, 0.6, 0.8]}, bins=2)
    table = rows(found.table)
    assert list(table) == ["bin", "lower", "upper", "n", *VALUES]
    assert {name: table[name] for name in ("bin", "lower", "upper", "n")} == {
        "bin": [0, 1],
        "lower": [0.0, 0.5],
        "upper": [0.5, 1.0],
        "n": [2, 2],
    }
    assert table["mean_score"] == approx([0.2, 0.7])
    assert table["rate"] == [0.0, 0.5]
    assert table["gap"] == approx([0.2, 0.2])
    # Wilson at z = 1.95996: 0 of 2 and 1 of 2
    ends = [proportion_confint(k, 2, method="wilson") for k in (0, 1)]
    assert table["rate_low"] == approx([end[0] for end in ends])
    assert table["rate_high"] == approx([end[1] for end in ends])


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({}, ["bin", "lower", "upper", "n", *VALUES]),
        ({"by": "g"}, ["g", "bin", "lower", "upper", "n", *VALUES]),
        ({"by": ["h", "g"]}, ["h", "g", "bin", "lower", "upper", "n", *VALUES]),
        ({"score": ["q", "p"]}, ["model", "bin", "lower", "upper", "n", *VALUES]),
        ({"score": ["p"]}, ["model", "bin", "lower", "upper", "n", *VALUES]),
        (
            {"score": ["p", "q"], "by": "g", "weight": "w"},
            ["g", "model", "bin", "lower", "upper", "n", "weight_sum", *VALUES],
        ),
    ],
)
def test_columns_come_in_order_and_keep_their_types(make: Maker, arguments: dict[str, Any], names: list[str]) -> None:
    found = curve(make, drawn(60), **arguments).table
    assert isinstance(found, pl.DataFrame if make.lazy else make.result)
    kinds = types(found)
    assert list(kinds) == names
    assert {kinds[name] for name in ("bin", "n")} == {nw.Int64}
    numbers = [name for name in ("lower", "upper", "weight_sum", *VALUES) if name in kinds]
    assert {kinds[name] for name in numbers} == {nw.Float64}


# Against the definitions


def by_hand(columns: dict[str, Any], keep: Any, *, score: str = "p", closed: str = "left", count: int = 15) -> dict:
    """Return sums of weight, weight squared, score and label per bin, row by row."""
    cells: dict[int, list[float]] = {}
    weights = columns.get("w", [1.0] * len(columns["y"]))
    for i in np.flatnonzero(keep):
        place = bin_of(columns[score][i], edges_of(count), closed=closed)
        w = weights[i]
        terms = (1.0, w, w * w, w * columns[score][i], w * columns["y"][i])
        cells[place] = [a + b for a, b in zip(cells.get(place, [0.0] * 5), terms, strict=True)]
    return dict(sorted(cells.items()))


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("weighted", [False, True])
def test_curves_by_their_definition(make: Maker, closed: str, *, weighted: bool) -> None:
    columns = drawn()
    if not weighted:
        del columns["w"]
    weight = {"weight": "w"} if weighted else {}
    table = rows(curve(make, columns, score=["p", "q"], by="g", closed=closed, **weight).table)
    place = 0
    for segment in ("a", "b", "c"):
        for model in ("p", "q"):
            keep = np.array(columns["g"]) == segment
            for index, (n, w, w2, wp, wy) in by_hand(columns, keep, score=model, closed=closed).items():
                row = {name: values[place] for name, values in table.items()}
                assert (row["g"], row["model"], row["bin"], row["n"]) == (segment, model, index, n)
                assert (row["lower"], row["upper"]) == (edges_of(15)[index], edges_of(15)[index + 1])
                assert [row["mean_score"], row["rate"]] == approx([wp / w, wy / w])
                assert row["gap"] == approx(wp / w - wy / w)
                effective = w * w / w2
                low, high = proportion_confint(wy / w * effective, effective, method="wilson")
                assert [row["rate_low"], row["rate_high"]] == approx([low, high], rel=1e-9)
                if weighted:
                    assert row["weight_sum"] == approx(w)
                place += 1
    assert place == len(table["bin"])


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("bins", [1, 10, 15, [0.0, 0.2, 0.7, 1.0]])
def test_gaps_add_up_to_the_ece(make: Maker, weight: str | None, bins: Any) -> None:
    columns = drawn(400)
    arguments = {"by": "g", "weight": weight, "bins": bins}
    table = rows(curve(make, columns, **arguments).table)
    measured = calframe.metrics(POLARS(columns), label="y", score="p", metrics=["ece", "mce"], **arguments)
    for segment, ece, mce in measured.select("g", "ece", "mce").iter_rows():
        mine = [i for i, key in enumerate(table["g"]) if key == segment]
        size = table["weight_sum" if weight else "n"]
        gaps = [abs(table["gap"][i]) for i in mine]
        total = math.fsum(size[i] for i in mine)
        assert math.fsum(size[i] * gap for i, gap in zip(mine, gaps, strict=True)) / total == approx(ece)
        assert max(gaps) == approx(mce)


@pytest.mark.parametrize(
    ("interval", "method"), [("wilson", "wilson"), ("clopper_pearson", "beta"), ("jeffreys", "jeffreys")]
)
@pytest.mark.parametrize("level", [0.9, 0.95, 0.999])
def test_intervals_are_those_of_statsmodels(make: Maker, interval: Any, method: str, level: float) -> None:
    table = rows(curve(make, drawn(200), confidence_level=level, interval=interval).table)
    for n, rate, low, high in zip(*(table[name] for name in ("n", "rate", "rate_low", "rate_high")), strict=True):
        k = round(n * rate)
        expected = list(proportion_confint(k, n, alpha=1 - level, method=method))
        assert [low, high] == approx(expected, rel=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_band_of_equal_scores_is_that_of_the_binomial(make: Maker, level: float) -> None:
    scores = [0.004, 0.05, 0.11, 0.3, 0.5, 0.71, 0.9, 0.97]  # one a bin
    sizes = [500, 40, 1, 7, 64, 33, 120, 900]
    score = np.repeat(scores, sizes)
    table = rows(curve(make, {"y": np.arange(len(score)) % 2, "p": score}, bins=20, confidence_level=level).table)
    assert table["n"] == sizes
    for chance, n, low, high in zip(scores, sizes, table["band_low"], table["band_high"], strict=True):
        ends = stats.binom.ppf([(1 - level) / 2, (1 + level) / 2], n, chance) / n
        assert [low, high] == pytest.approx(ends.tolist(), abs=1e-11)


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_the_band_of_certain_scores_has_no_width(make: Maker, score: float) -> None:
    table = rows(curve(make, {"y": [0, 1, 1], "p": [score] * 3}).table)
    assert [table["band_low"], table["band_high"]] == [pytest.approx([score], abs=1e-11)] * 2


def test_weight_two_is_the_row_twice_where_weights_count_rows(make: Maker) -> None:
    columns = drawn(200)
    columns["w"] = [float(1 + i % 3) for i in range(200)]
    twice = {name: np.repeat(values, [1 + i % 3 for i in range(200)]).tolist() for name, values in columns.items()}
    one = rows(curve(make, columns, weight="w", weight_kind="frequency").table)
    two = rows(curve(make, twice).table)
    assert one["weight_sum"] == approx([float(n) for n in two["n"]])
    for name in VALUES:
        assert one[name] == pytest.approx(two[name], rel=1e-9, abs=1e-9)


def test_the_order_of_rows_plays_no_part() -> None:
    table = pl.DataFrame(drawn())
    one, two = (
        calframe.curve(t, label="y", score=["p", "q"], by="g", weight="w").table
        for t in (table, table.sample(fraction=1.0, shuffle=True, seed=1))
    )
    assert rows(one) == {name: approx(values) for name, values in rows(two).items()}


# Rows and segments


def test_counts_are_over_all_models() -> None:
    columns = {"y": [1, 0, None, 1], "p": [0.5, None, 0.5, 1.5], "q": [0.1, 0.2, 0.3, 0.4]}
    found = curve(POLARS, columns, score=["p", "q"], invalid="drop")
    assert (found.n, found.n_missing, found.n_invalid) == (1 + 3, 2 + 1, 1)
    assert found.table["n"].sum() == 4


def test_models_stand_in_the_order_given(make: Maker) -> None:
    table = rows(curve(make, drawn(60), score=["q", "p"], bins=2).table)
    assert table["model"] == ["q", "q", "p", "p"]


def test_missing_segments_come_last_and_empty_ones_have_no_bin(make: Maker) -> None:
    columns = {"y": [1, 0, 1, None], "p": [0.5] * 4, "g": [None, "b", "a", "z"]}
    table = rows(curve(make, columns, by="g").table)
    assert table["g"] == ["a", "b", None]


def test_empty_bins_are_left_out(make: Maker) -> None:
    table = rows(curve(make, {"y": [0, 1], "p": [0.0, 1.0]}).table)
    assert (table["bin"], table["lower"], table["upper"]) == ([0, 14], [0.0, edges_of(15)[14]], [1 / 15, 1.0])


def test_given_edges_bound_the_bins(make: Maker) -> None:
    found = curve(make, {"y": [0, 1, 1], "p": [0.2, 0.3, 0.9]}, bins=[0.2, 0.3, 0.9], closed="right")
    assert rows(found.table)["n"] == [2, 1]
    assert found.bins == (0.2, 0.3, 0.9)
    with pytest.raises(ScoreError, match="1 row"):
        curve(make, {"y": [0, 1], "p": [0.1, 0.3]}, bins=[0.2, 0.3, 0.9])


def test_a_table_where_nothing_can_be_used_has_no_bins(make: Maker) -> None:
    found = curve(make, {"y": [None, None], "p": [0.5, 0.5]})
    assert rows(found.table)["bin"] == []
    assert (found.n, found.n_missing) == (0, 2)
    if make == POLARS:
        assert "<svg" in drawings(found.plot())


def test_errors_come_at_once(make: Maker) -> None:
    with pytest.raises(ScoreError, match=r"column 'p' runs from .*1\.5"):
        curve(make, {"y": [0, 1], "p": [0.5, 1.5]})


def test_a_segment_column_named_like_a_result_is_refused(make: Maker) -> None:
    with pytest.raises(ColumnClashError, match="'rate_low'"):
        curve(make, {"y": [0, 1], "p": [0.5, 0.5], "rate_low": ["a", "b"]}, by="rate_low")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"method": "splines"}, r"method must be one of 'binned', .*'isotonic', .*; got 'splines'"),
        ({"strategy": "quantiles"}, r"strategy='quantiles' is not known\. Did you mean 'quantile'"),
        ({"notion": "toplabel"}, r"notion='toplabel' is not known\. Did you mean 'confidence'"),
        ({"interval": "wald"}, r"interval .*'wald'"),
        ({"confidence_level": 95}, r"confidence_level .*95"),
        ({"closed": "both"}, r"closed .*'both'"),
        ({"bins": 0}, r"bins must be a number from 1 to .*; got 0"),
        ({"method": "isotonic", "bins": 10}, r"bins= is not used with method='isotonic': its steps.*; got 10"),
        ({"method": "isotonic", "bins": np.array([0.0, 1.0])}, r"bins= is not used with method='isotonic'"),
        ({"method": "isotonic", "strategy": "quantile"}, r"strategy= is not used with method='isotonic'"),
        ({"method": "isotonic", "closed": "right"}, r"closed= is not used with method='isotonic'"),
        ({"method": "isotonic", "interval": "wilson"}, r"interval= is not used with method='isotonic': .*resampled"),
        ({"method": "loess", "interval": "jeffreys"}, r"interval= is not used with method='loess'.*; got 'jeffreys'"),
    ],
)
def test_options_that_are_not(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        curve(POLARS, drawn(30), **arguments)


def test_declared_categories_without_rows_are_named_once() -> None:
    table = pl.DataFrame({"y": [0, 1], "p": [0.5, 0.5]}).with_columns(
        g=pl.Series(["a", "b"], dtype=pl.Enum(["b", "a", "moon"]))
    )
    with pytest.warns(CalframeWarning, match="'moon'") as caught:
        found = calframe.curve(table, label="y", score="p", by="g").table
    assert len(caught) == 1
    assert found["g"].to_list() == ["a", "b"]


# The object


def test_the_dictionary_is_json_with_its_convention() -> None:
    found = curve(POLARS, drawn(60), by="g", bins=3, closed="right", interval="jeffreys", confidence_level=0.9)
    data = found.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert {name: value for name, value in data.items() if name != "table"} == {
        "schema_version": 1,
        "kind": "curve",
        "label": "y",
        "scores": ["p"],
        "by": ["g"],
        "n": 60,
        "n_missing": 0,
        "n_invalid": 0,
        "convention": {
            "method": "binned",
            "bins": edges_of(3),
            "strategy": "uniform",
            "closed": "right",
            "confidence_level": 0.9,
            "interval": "jeffreys",
            "link": "probability",
            "invalid": "raise",
            **dict.fromkeys(("notion", "positive", "weight", "weight_kind", "time_zone", "classes", "posterior")),
        },
    }
    assert {name: [row[name] for row in data["table"]] for name in data["table"][0]} == rows(found.table)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_dictionary_is_the_same_from_every_library(library: str) -> None:
    columns = drawn(120) | {"g": ["a", None] * 60}
    one, two = (curve(m, columns, by="g").to_dict() for m in (Maker(library), POLARS))
    assert [list(row) for row in one["table"]] == [list(row) for row in two["table"]]
    assert one["table"] == [{name: approx(value) for name, value in row.items()} for row in two["table"]]


def test_a_line_says_what_it_holds() -> None:
    assert repr(curve(POLARS, drawn(60), bins=3)) == "<Curve: 3 bins from 60 rows; .table, .plot(), .to_dict()>"
    one = repr(curve(POLARS, {"y": [1], "p": [0.5]}))
    assert one == "<Curve: 1 bin from 1 row; .table, .plot(), .to_dict()>"
    models = drawn(60) | {"q": [0.5] * 60}
    assert " from 60 rows x 2 models;" in repr(curve(POLARS, models, score=["p", "q"], bins=3))
    assert " from 119 rows of 2 models;" in repr(curve(POLARS, models | {"q": [None] + [0.5] * 59}, score=["p", "q"]))
    assert " from 60 rows;" in repr(curve(POLARS, models, score=["p"]))
    classes = {"y": ["a", "b", "c"] * 4, "v": [[0.5, 0.25, 0.25]] * 12}
    three = curve(POLARS, classes, score="v", classes=["a", "b", "c"], notion="classwise")
    assert repr(three) == "<Curve: 3 bins from 12 rows x 3 classes; .table, .plot(), .to_dict()>"
    assert ", 12 rows x 3 classes" in three._repr_html_()
    assert max(map(len, repr(curve(POLARS, drawn(900), by=["g", "h"], score=["p", "q"])).splitlines())) <= 80


def test_names_are_text_in_a_notebook() -> None:
    evil = "<script>alert(1)</script> & \"co\" 'x'"
    columns = {"y": [0, 1], evil: [0.5, 0.5], "<b>": [evil, "b"]}
    found = curve(POLARS, columns, score=evil, by="<b>")._repr_html_()
    document = Document(found)
    assert {tag for tag, _ in document.elements} == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert f"Reliability curve of {evil}, 2 rows" in document.text
    assert document.words.count(evil) == 1
    assert "<b>" in document.words


def test_long_tables_are_cut_in_a_notebook() -> None:
    found = curve(POLARS, drawn(), by="g")
    total = found.table.height
    document = Document(found._repr_html_())
    assert sum(tag == "tr" for tag, _ in document.elements) == 1 + 20
    assert f"{total - 20} more rows in" in document.text


# Charts


def drawings(chart: Any) -> str:
    return vl_convert.vegalite_to_svg(chart.to_dict())


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({}, []),
        ({"score": ["p", "q"]}, ["p", "q"]),
        (
            {"score": ["p", "q"], "by": ["g", "h"]},
            [f"{g} · {h} · {s}" for g in "abc" for h in "01" for s in "pq"],
        ),
    ],
    ids=["one", "two", "twelve"],
)
def test_curves_are_drawn(arguments: dict[str, Any], names: list[str]) -> None:
    chart = curve(POLARS, drawn(), bins=5, **arguments).plot(width=400)
    assert "NaN" not in json.dumps(chart.to_dict())
    svg = drawings(chart)
    assert svg.count("graphics-symbol") >= 5 * max(len(names), 1)
    assert [name for name in names if f"{name}: said" not in svg] == []


def test_the_chart_is_the_same_from_every_library() -> None:
    columns = drawn(120) | {"g": ["a", None] * 60}
    data = [
        list(curve(Maker(library), columns, by="g", bins=3).plot().to_dict()["datasets"].values())
        for library in ("polars", "pandas", "pandas[pyarrow]", "pyarrow", "duckdb")
    ]
    for found in data[1:]:
        for table, expected in zip(found, data[0], strict=True):
            assert table == [{name: approx(value) for name, value in row.items()} for row in expected]


def test_names_of_curves_are_text_in_a_chart() -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    columns = {"y": [0, 1] * 20, "p": [0.3, 0.7] * 20, "a.b[c]": [evil, "b"] * 20}
    svg = drawings(curve(POLARS, columns, by="a.b[c]").plot())
    assert "<img" not in svg
    assert "&lt;img src=x onerror=alert(1)&gt;" in svg


def test_curves_that_read_the_same_are_told_apart() -> None:
    columns = {"y": [0, 1] * 20, "p": [0.3, 0.7] * 20, "g": [None, None, "(missing)", "(missing)"] * 10}
    spec = json.dumps(curve(POLARS, columns, by="g").plot().to_dict())
    lone = json.dumps(curve(POLARS, {name: columns[name] for name in ("y", "p")}).plot().to_dict())
    assert spec.count('"rate"') >= 2
    assert "said" in lone
    assert len(set(json.loads(spec)["datasets"])) > 0
    names = {row["curve"] for table in json.loads(spec)["datasets"].values() for row in table if "curve" in row}
    assert len(names) == 2
