"""Patterns of wrong scores: each on a table that shows it, how often they are found, and the tables of results."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import special

import calframe
from calframe import ArgumentError, ColumnClashError, EmptyTableError
from calframe._diagnose import diagnose
from tests._diagnoses import PATTERNS, SHOWN, counts, drawn, found, only
from tests._tables import Maker, approx, rows, types
from tests.simulations import diagnose as simulation


@pytest.mark.parametrize("pattern", list(SHOWN))
def test_each_pattern_on_a_table_that_shows_it(pattern: str) -> None:
    columns, method = SHOWN[pattern]
    row = only(columns)
    assert (row["pattern"], row["map"]) == (pattern, method)
    assert set(SHOWN) == PATTERNS


def test_the_map_that_fits_repairs_the_pattern() -> None:
    for pattern, (columns, method) in SHOWN.items():
        if method is not None:
            table = pl.DataFrame(columns)
            better = calframe.fit(table, label="y", score="p", method=method).apply(table)
            row = only(better.to_dict(as_series=False), score="p_calibrated")
            assert row["pattern"] in {"none found", "within tolerance", "collapse"}, pattern


def test_an_intercept_asks_for_platt() -> None:
    # logits -2.2, 0, 2.2 with rates 0.2, 0.35, 0.6: slope about 0.4, level below 0
    row = only(counts((0.1, 40, 160), (0.5, 70, 130), (0.9, 120, 80)))
    assert row["pattern"] in {"over-confident", "says too much"}
    assert row["intercept_high"] < 0
    assert row["map"] == "platt"


def test_rows_at_0_and_1_are_named_wherever_a_line_is_fitted() -> None:
    # three scores have no finite logit; the same words as those of calframe.fit
    said = "3 rows have a probability within 1e-12 of 0 or 1; their logarithms pull the fit most"
    table = pl.DataFrame(counts((0.0, 0, 1), (0.3, 30, 70), (0.7, 70, 30), (1.0, 1, 1)))
    assert said in calframe.fit(table, label="y", score="p", method="platt").notes
    result = diagnose(table, label="y", score="p")
    assert result.table["note"].to_list() == [said]
    assert result.notes == tuple(result.to_dict()["notes"]) == (said,)
    assert f"note: {said}" in " ".join(line.strip() for line in repr(result).splitlines())
    for name in ("slope", "intercept", "citl"):
        assert calframe.metrics(table, label="y", score="p", metrics=[name])["note"].to_list() == [said]
    assert calframe.metrics(table, label="y", score="p", metrics=["brier"])["note"].to_list() == [None]
    tested = calframe.test(table, label="y", score="p", method="cox")
    assert (tested.table["note"].to_list(), tested.notes) == ([said] * 3, (said,))
    inner = table.filter(pl.col("p").is_between(0.1, 0.9))
    assert "note:" not in repr(diagnose(inner, label="y", score="p"))
    both = pl.concat([table.with_columns(g=pl.lit("a")), inner.with_columns(g=pl.lit("b"))])
    assert "note: in 1 of 2 segments rows have a" in repr(diagnose(both, label="y", score="p", by="g"))
    several = "in 1 of 2 segments rows have a probability of 0 or 1; their logarithms pull the fit most"
    assert calframe.test(both, label="y", score="p", by="g", method=["cox", "gap"]).notes == (several,)


def test_reversed_scores_have_no_map() -> None:
    row = only(counts((0.2, 80, 20), (0.5, 50, 50), (0.8, 20, 80)))
    assert (row["pattern"], row["map"]) == ("over-confident", None)
    assert row["slope_high"] < 0
    assert "higher scores come true less often" in row["note"]


def test_separated_outcomes_have_no_slope() -> None:
    row = only(counts((0.3, 0, 100), (0.7, 100, 0)))
    assert (row["pattern"], row["map"], row["slope"]) == ("under-confident", "isotonic", None)
    assert "without bound" in row["sentence"]
    reverse = only(counts((0.3, 100, 0), (0.7, 0, 100)))
    assert (reverse["pattern"], reverse["map"]) == ("over-confident", None)


def test_no_positive_where_many_are_expected() -> None:
    row = only(counts((0.8, 0, 200), (0.9, 0, 200)))
    assert row["pattern"] == "says too much"
    assert row["note"] == "only one outcome: no line can be fitted"


def test_right_scores_that_do_not_differ_need_no_map() -> None:
    row = only(counts((0.5, 100, 100)))
    assert (row["pattern"], row["map"], row["band_share"], row["n_scores"]) == ("collapse", None, 1.0, 1)
    assert row["sentence"].startswith("100.0% of 200 rows have scores of 0.5, and 50.0% of these come true")


def test_collapse_is_about_odds() -> None:
    # rare, and calibrated: within 0.1 of each other, but their odds differ twentyfold
    assert only(counts((0.005, 25, 4975), (0.1, 500, 4500)))["pattern"] == "none found"


def test_few_rows_are_never_called_fine() -> None:
    sentence = only(counts((0.5, 45, 45)))["sentence"]
    assert sentence == "Can't tell yet from 90 rows: 100 are needed, and of each outcome 10."
    rare = only(counts((0.001, 2, 4998)))
    assert rare["pattern"] == "not decided"
    assert "5,000 rows" in rare["sentence"]
    open_ = only(counts((0.2, 20, 80), (0.5, 50, 50), (0.8, 80, 20)))["sentence"]
    assert open_.endswith("so a gap of ±3 pp is not ruled out.")
    sure = only(counts((0.2, 2000, 8000), (0.5, 5000, 5000), (0.8, 8000, 2000)))["sentence"]
    assert sure.endswith(", within ±3 pp.")


# Tables


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [({}, []), ({"by": "g"}, ["g"]), ({"score": ["q", "p"], "by": ["k", "g"]}, ["k", "g", "model"])],
)
def test_columns_come_in_order_and_keep_their_types(make: Maker, arguments: dict[str, Any], keys: list[str]) -> None:
    result = found(drawn(), make, **arguments)
    assert isinstance(result.table, pl.DataFrame if make.lazy else make.result)
    kinds = types(result.table)
    assert list(kinds)[: len(keys) + 4] == [*keys, "n", "n_missing", "pattern", "map"]
    assert list(kinds)[-2:] == ["sentence", "note"]
    same = rows(found(drawn(), **arguments).table)
    assert rows(result.table) == {name: approx(values) for name, values in same.items()}


def test_missing_rows_and_empty_segments_are_counted(make: Maker) -> None:
    good = SHOWN["over-confident"][0]
    n = len(good["y"])
    columns = {
        "y": [*good["y"], None, 1, 1],
        "p": [*good["p"], 0.5, None, 0.5],
        "g": [*["a"] * n, "a", "b", None],
    }
    result = rows(found(columns, make, by="g").table)
    assert (result["g"], result["n"], result["n_missing"]) == (["a", "b", None], [n, 0, 1], [1, 1, 0])
    assert result["pattern"] == ["over-confident", "not decided", "not decided"]
    assert (result["sentence"][1], result["note"][1]) == ("No usable rows.", "no usable rows")
    nothing = rows(found({"y": [None, 1], "p": [0.5, None]}, make).table)
    assert (nothing["n"], nothing["pattern"], nothing["gap"]) == ([0], ["not decided"], [None])


def test_rows_of_weight_0_are_in_the_note() -> None:
    columns = {**drawn(), "w": [0.0, *[1.0] * 599]}
    assert only(columns, weight="w")["note"].startswith("1 row of weight 0 left out; ")


def test_float32_edges() -> None:
    p = np.array([0.05] * 60 + [0.95] * 60, dtype=np.float32)  # 0.05 is above, 0.95 below its float64 neighbour
    table = pl.DataFrame({"p": p, "y": [1, 0] * 60})
    assert diagnose(table, label="y", score="p", extreme=0.05).table["extreme_n"].to_list() == [120]


@pytest.mark.parametrize("link", ["probability", "logit"])
def test_logits(link: Any) -> None:
    columns = SHOWN["over-confident"][0]
    if link == "logit":
        columns = {**columns, "p": special.logit(columns["p"]).tolist()}
    assert only(columns, link=link)["pattern"] == "over-confident"


# Several classes


def of_classes(n: int = 3_000, *, sharpen: float = 1.0) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    z = rng.normal(size=(n, 3)) * 1.5
    label = (special.softmax(z, axis=1).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 2)
    scores = special.softmax(sharpen * z, axis=1)
    return pl.DataFrame(
        {"y": np.array(["cat", "dog", "eel"])[label], **{f"p{i}": scores[:, i] for i in range(3)}}
    ).with_columns(top=pl.max_horizontal("p0", "p1", "p2"))


CLASSES = {"cat": "p0", "dog": "p1", "eel": "p2"}


def test_confidence_is_the_largest_score_against_whether_it_was_right() -> None:
    table = of_classes(sharpen=3.0)
    result = diagnose(table, label="y", score=CLASSES, notion="confidence")
    (row,) = result.table.to_dicts()
    names = np.array(list(CLASSES))[table.select("p0", "p1", "p2").to_numpy().argmax(axis=1)]
    plain = diagnose(table.with_columns(right=table["y"] == pl.Series(names)), label="right", score="top").table
    for name in ("gap", "slope", "pvalue_line", "extreme_share", "band_share"):
        assert row[name] == approx(plain[name][0])
    assert row["pattern"] == plain["pattern"][0] != "none found"
    assert row["gap"] > 0.1
    right = diagnose(of_classes(), label="y", score=CLASSES, notion="confidence").table
    assert right["pattern"].to_list() == ["none found"]


def test_sharpened_classes_want_a_temperature() -> None:
    (row,) = diagnose(of_classes(sharpen=1.6), label="y", score=CLASSES, notion="confidence").table.to_dicts()
    assert (row["pattern"], row["map"]) == ("says too much", "temperature")
    assert "are right: says too much by" in row["sentence"]


def test_several_classes_need_a_notion() -> None:
    with pytest.raises(ArgumentError, match=r"diagnose takes one score a row; .* notion='confidence'"):
        diagnose(of_classes(), label="y", score=CLASSES)
    with pytest.raises(ArgumentError, match=r"notion must be .*'confidence'.*; got 'classwise'"):
        diagnose(of_classes(), label="y", score=CLASSES, notion="classwise")  # type: ignore[arg-type]


# How often


@pytest.mark.parametrize("world", list(simulation.RIGHT))
@pytest.mark.parametrize("n", [100, 500])
def test_right_scores_show_no_pattern(world: str, n: int) -> None:
    """At most 5 % of tables, and two Monte Carlo errors; theory."""
    rng = np.random.default_rng(4)
    values = simulation.numbers(simulation.RIGHT[world], n, 300, rng, simulation.STRICT)
    for segments in (1, 10):
        share, _ = simulation.share_found(values, segments, simulation.STRICT)
        assert share <= 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / (300 / segments))


@pytest.mark.parametrize("world", list(simulation.WRONG))
def test_wrong_scores_show_their_pattern(world: str) -> None:
    """Nine tables of ten: up to 5 % of straight ones are taken for bent, the level of the test of curvature."""
    pattern, drawn_from = simulation.WRONG[world]
    tables = 60 if world.startswith("slope") else 20  # the others are hardly ever missed
    values = simulation.numbers(drawn_from, 1_000, tables, np.random.default_rng(5), simulation.RULES)
    each = [{name: column[i : i + 1] for name, column in values.items()} for i in range(tables)]
    assert np.mean([simulation.named(one, simulation.RULES)[0] == pattern for one in each]) >= 0.9


# Results and errors


def test_result() -> None:
    parts = [pl.DataFrame(columns).with_columns(g=pl.lit(name)) for name, (columns, _) in SHOWN.items()]
    result = diagnose(pl.concat(parts), label="y", score="p", by="g")
    assert repr(result).splitlines()[0] == f"<Diagnosis: {result.n:,} rows; .table, .to_dict()>"
    assert all(len(line) <= 80 for line in repr(result).splitlines())
    assert "says too much by 21.3 pp" in result._repr_html_()
    kept = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (kept["schema_version"], kept["kind"], len(kept["table"])) == (1, "diagnosis", 10)
    assert kept["convention"]["tolerance"] == 0.03


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"tolerance": 3}, r"tolerance is a gap between 0 and 1.*got 3"),
        ({"alpha": 0.7}, r"alpha must lie between 1e-09 and 0.5.*got 0.7"),
        ({"alpha": 1e-16}, r"alpha must lie between 1e-09 and 0.5"),
        ({"extreme": 0.4}, r"extreme must lie in \[0, 0.25\].*got 0.4"),
        ({"correction": "max"}, r"correction must be .*; got 'max'"),
        ({"n_resamples": 1}, r"n_resamples must be a whole number from 20.*got 1"),
        ({"rng": -1}, r"rng must be a whole number.*got -1"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        found(drawn(), **arguments)


def test_wrong_tables() -> None:
    with pytest.raises(ColumnClashError, match="pattern"):
        found({**drawn(), "pattern": [1] * 600}, by="pattern")
    with pytest.raises(EmptyTableError, match="no rows"):
        found({"y": pl.Series([], dtype=pl.Int64), "p": pl.Series([], dtype=pl.Float64)})
