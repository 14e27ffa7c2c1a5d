"""The groups of Hosmer and Lemeshow in the result: the statistic follows from them by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calframe
from calframe import ColumnClashError
from calframe._cli import main
from tests._inference import CLASSES, class_table, drawn
from tests._tables import Maker, approx, rows

DATA = Path(__file__).parent / "data"
TOY = {1: "p1", 2: "p2", 3: "p3"}


def found_in(data: Any, **arguments: Any) -> calframe.TestResult:
    return calframe.test(data, **{"label": "y", "score": "p", "method": "hosmer_lemeshow", **arguments})


def statistics_of(groups: pl.DataFrame, keys: list[str]) -> list[float]:
    """Return the statistic of each segment from the groups alone."""
    count = "weight_sum" if "weight_sum" in groups.columns else "n"
    observed, expected = pl.col("observed"), pl.col("expected")
    room = 1.0 if "class" in groups.columns else 1.0 - expected / pl.col(count)
    part = ((observed - expected) ** 2 / (expected * room)).alias("part")
    table = groups.with_columns(part)
    if keys:
        return table.group_by(keys, maintain_order=True).agg(pl.col("part").sum())["part"].to_list()
    return [table["part"].sum()]


def by_hand(scores: np.ndarray, labels: np.ndarray, bins: int) -> list[dict[str, Any]]:
    """Return the groups between numpy's quantiles, by pandas.cut."""
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, bins + 1)))
    place = pd.cut(scores, edges, labels=False, include_lowest=True)
    return [
        {
            "bin": k,
            "lower": edges[k],
            "upper": edges[k + 1],
            "n": int((place == k).sum()),
            "mean_score": scores[place == k].mean(),
            "observed": float(labels[place == k].sum()),
            "expected": scores[place == k].sum(),
        }
        for k in range(len(edges) - 1)
    ]


@pytest.mark.parametrize("digits", [None, 1])  # with one digit, scores tie across quantiles
def test_groups_are_those_between_the_quantiles(digits: int | None) -> None:
    data = drawn(400, seed=3, power=1.2, digits=digits)
    found = found_in(data, bins=8)
    expected = by_hand(data["p"].to_numpy(), data["y"].to_numpy(), 8)
    assert found.groups.columns == list(expected[0])
    for got, hand in zip(found.groups.to_dicts(), expected, strict=True):
        assert got == pytest.approx(hand, rel=1e-12)
    assert len(found.groups) == found.table["n_groups"][0]
    assert found.table["statistic"][0] == approx(statistics_of(found.groups, [])[0], rel=1e-12)


def test_groups_of_two_tied_scores() -> None:
    # https://github.com/easystats/performance/issues/578: 4 of 10 at 0.3, 5 of 10 at 0.6, so 1 / 2.1 + 1 / 2.4; the
    # median of the rows is 0.45
    data = pl.DataFrame({"y": [1] * 4 + [0] * 6 + [1] * 5 + [0] * 5, "p": [0.3] * 10 + [0.6] * 10})
    found = found_in(data)
    assert list(map(list, found.groups.drop("mean_score").rows())) == [
        approx((0, 0.3, 0.45, 10, 4.0, 3.0)),
        approx((1, 0.45, 0.6, 10, 5.0, 6.0)),
    ]
    assert statistics_of(found.groups, []) == [approx(0.892857142857, rel=1e-11)]


def test_groups_do_not_wrap_around() -> None:
    # https://github.com/easonfg/cali_tutorial/issues/1: groups .1 .2 .3 | .4 .5 | .6 .7
    data = pl.DataFrame({"y": [0, 0, 0, 1, 0, 1, 1], "p": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]})
    groups = found_in(data, bins=3).groups
    assert groups["n"].to_list() == [3, 2, 2]
    assert groups["upper"].to_list() == approx([0.3, 0.5, 0.7])
    assert groups["observed"].to_list() == [0.0, 1.0, 2.0]
    assert groups["expected"].to_list() == approx([0.6, 0.9, 1.3])


def test_a_group_without_rows_has_no_number_and_all_equal_scores_are_one_group() -> None:
    data = pl.DataFrame({"y": [0, 1, 1], "p": [0.1, 0.2, 0.9]})
    groups = found_in(data, bins=[0.0, 0.3, 0.6, 1.0]).groups
    assert groups.select("bin", "lower", "upper", "n").rows() == [(0, 0.0, 0.3, 2), (1, 0.6, 1.0, 1)]
    groups = found_in(data.with_columns(p=pl.lit(0.5))).groups
    assert groups.select("bin", "lower", "upper", "n", "observed").rows() == [(0, 0.5, 0.5, 3, 2.0)]


def test_edges_are_those_asked_for_also_of_float32_scores() -> None:
    data = pl.DataFrame({"y": [0, 0, 1, 1] * 9, "p": [0.1, 0.3, 0.31, 0.9] * 9}, schema_overrides={"p": pl.Float32})
    groups = found_in(data, bins=[0.0, 0.3, 1.0]).groups
    assert groups.select("lower", "upper", "n", "observed").rows() == [(0.0, 0.3, 18, 0.0), (0.3, 1.0, 18, 18.0)]


def test_every_library_gives_the_same_groups_in_its_own_kind(make: Maker) -> None:
    columns = {
        "y": [1, 0, 1, 0, None, 1, 1, 0, 1, 0] * 6,
        "p": [0.75, 0.5, 0.625, 0.125, 0.5, None, 0.875, 0.25, 0.5, 0.375] * 6,
        "g": ["u", "u", "v", "v", "u", "u", None, None, "v", "u"] * 6,
    }
    found = found_in(make(columns), by="g", bins=2)
    assert isinstance(found.groups, pl.DataFrame if make.lazy else make.result)
    # u has 0.5, 0.75, 0.375 six times each, with median 0.5; v 0.625, 0.125, 0.5, likewise; null 0.875 and 0.25
    table = rows(found.groups)
    assert table["g"] == ["u", "u", "v", "v", None, None]
    assert table["bin"] == [0, 1] * 3
    assert table["n"] == [12, 6, 12, 6, 6, 6]
    assert table["upper"] == approx([0.5, 0.75, 0.5, 0.625, 0.5625, 0.875])
    assert table["observed"] == [0.0, 6.0, 6.0, 6.0, 0.0, 6.0]
    assert table["mean_score"] == approx([0.4375, 0.75, 0.3125, 0.625, 0.25, 0.875])


@pytest.mark.parametrize("arguments", [{}, {"cluster": "c"}])
def test_of_models_and_segments_each_statistic_follows(arguments: dict[str, str]) -> None:
    data = drawn(300).with_columns(q=(pl.col("p") ** 2).cast(pl.Float32), c=pl.int_range(300) // 3)
    found = found_in(data, score=["p", "q"], by="g", n_resamples=20, **arguments)
    keys = ["g", "model"]
    assert found.groups.select(keys).unique(maintain_order=True).equals(found.table.select(keys))
    assert found.table["statistic"].to_list() == approx(statistics_of(found.groups, keys), rel=1e-9)
    counts = found.groups.group_by(keys, maintain_order=True).agg(pl.col("n").sum(), pl.len())
    assert counts["n"].to_list() == [100] * 6
    assert counts["len"].to_list() == found.table["n_groups"].to_list()


@pytest.mark.parametrize("score", ["p", CLASSES])
@pytest.mark.parametrize("arguments", [{}, {"cluster": "c"}])
def test_weights_are_counts_beside_those_of_rows(score: Any, arguments: dict[str, str]) -> None:
    data = class_table(120, seed=2).with_columns(c=pl.int_range(120) // 2)
    data = data if score == CLASSES else data.with_columns(p="p1", y=pl.col("y") == 1)
    data = data.vstack(data.head(2).with_columns(k=0).cast(data.schema))  # rows of weight 0 are in no count
    options = {"score": score, "bins": 4, "n_resamples": 20, **arguments}
    found = found_in(data, weight="k", weight_kind="frequency", **options)
    repeated = found_in(data.select(pl.all().repeat_by("k").explode()), **options).groups
    groups = found.groups
    assert groups["bin"].to_list() == repeated["bin"].to_list()
    assert groups["weight_sum"].to_list() == repeated["n"].to_list()
    for name in ("lower", "upper", "mean_score", "observed", "expected"):
        assert groups[name].to_list() == approx(repeated[name].to_list(), rel=1e-12), name
    assert groups.unique("bin")["n"].sum() == 120
    assert found.table["statistic"].to_list() == approx(statistics_of(groups, []), rel=1e-9)


def test_groups_of_classes_of_the_survey() -> None:
    # Silva Filho et al. (2023): C = 25.300429147356 in groups of 7, 5, 7, 7, 4 rows by 1 - p1; cells of 0 and 0 add 0
    found = found_in(pl.read_csv(DATA / "seed_toy30.csv"), score=TOY, bins=5, df="internal")
    groups = found.groups
    assert groups.columns == ["bin", "class", "lower", "upper", "n", "mean_score", "observed", "expected"]
    assert groups["class"].to_list() == [1, 2, 3] * 5
    assert groups.filter(pl.col("class") == 1)["n"].to_list() == [7, 5, 7, 7, 4]
    assert groups["observed"].sum() == 30.0
    some = groups.filter(pl.col("expected") > 0.0)
    assert groups.filter(pl.col("expected") == 0.0)["observed"].sum() == 0.0
    assert statistics_of(some, []) == [approx(25.300429147356)]
    assert found.table["statistic"][0] == approx(25.300429147356)


@pytest.mark.parametrize("arguments", [{"strategy": "uniform"}, {"bins": [0.0, 0.4, 0.7, 1.0]}, {}])
def test_groups_of_classes_by_segment(arguments: dict[str, Any]) -> None:
    data = class_table(300, seed=8, segments=3)
    found = found_in(data, score=CLASSES, by="g", **arguments)
    assert found.table["statistic"].to_list() == approx(statistics_of(found.groups, ["g"]), rel=1e-9)
    for row in found.groups.iter_rows(named=True):
        some = data.filter(g=row["g"]).filter((1.0 - pl.col("p0")).round(12).is_between(row["lower"], row["upper"]))
        assert len(some) >= row["n"]  # one that lies on the lower edge is in the group below
        assert row["mean_score"] == approx(row["expected"] / row["n"])
    first = found.groups.filter(pl.col("bin") == 0, pl.col("class") == 0, pl.col("g") == 0)
    part = data.filter(g=0)
    below = part.filter((1.0 - pl.col("p0")).round(12) <= first["upper"][0])
    assert (first["n"][0], first["expected"][0]) == (len(below), approx(below["p0"].sum()))


def test_other_tests_have_no_groups_and_segments_without_rows_none_of_theirs() -> None:
    data = pl.DataFrame({"y": [1, 0, None], "p": [0.3, 0.6, 0.5], "g": ["a", "a", "b"]})
    assert found_in(data, method="gap").groups is None
    assert found_in(data, method="gap").to_dict()["groups"] is None
    assert found_in(data, by="g").groups["g"].unique().to_list() == ["a"]
    nothing = found_in(data.filter(g="b"), by="g")
    assert (len(nothing.groups), nothing.groups.columns[:2]) == (0, ["g", "bin"])
    assert ".groups" in repr(nothing)


def test_groups_are_in_the_json_of_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = drawn(60)
    data.write_parquet(tmp_path / "preds.parquet")
    asked = ["--label", "y", "--score", "p", "--by", "g", "--method", "hosmer_lemeshow", "--format", "json"]
    assert main(["test", str(tmp_path / "preds.parquet"), *asked]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["schema_version"] == 1
    assert said["groups"] == [pytest.approx(row) for row in found_in(data, by="g").groups.to_dicts()]


def test_a_segment_column_may_not_be_named_as_the_groups_are() -> None:
    data = drawn(60).rename({"g": "bin"})
    with pytest.raises(ColumnClashError, match="'bin'"):
        found_in(data, by="bin")
    assert found_in(data, by="bin", method="gap").groups is None
