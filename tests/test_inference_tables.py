"""The verb `test` on every kind of table, on segments that say little, and on wrong input."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe
from calframe import ArgumentError, ColumnClashError, ColumnNotFoundError, LabelError, ScoreError
from calframe._typing import TEST_METHODS
from tests._class_tables import with_vectors
from tests._inference import CLASSES, class_table, drawn, one
from tests._tables import Maker, approx, rows, types

COLUMNS: dict[str, Any] = {
    "y": [1, 0, 1, 0, None, 1, 1, 0, 1, 0] * 6,
    "p": [0.75, 0.5, 0.625, 0.125, 0.5, None, 0.875, 0.25, 0.5, 0.375] * 6,
    "g": ["u", "u", "v", "v", "u", "u", None, None, "v", "u"] * 6,
}


@pytest.mark.parametrize("method", TEST_METHODS)
def test_every_library_gives_the_same_table_in_its_own_kind(make: Maker, method: str) -> None:
    data = make(COLUMNS)
    arguments = {"label": "y", "score": "p", "by": "g", "method": method, "n_resamples": 99}
    found = calframe.test(data, **arguments)
    assert isinstance(found.table, pl.DataFrame if make.lazy else make.result)
    table = rows(found.table)
    expected = rows(calframe.test(pl.DataFrame(COLUMNS), **arguments).table)
    assert list(table) == list(expected)
    for name in table:
        assert table[name] == approx(expected[name], rel=1e-9), name
    each = 3 if method == "cox" else 1
    assert table["g"] == [key for key in ("u", "v", None) for _ in range(each)]
    assert table["n"] == [count for count in (18, 18, 12) for _ in range(each)]
    assert table["n_missing"] == [count for count in (12, 0, 0) for _ in range(each)]
    kinds = types(found.table)
    assert [str(kinds[name]) for name in ("n", "n_missing", "pvalue", "reject")] == [
        "Int64",
        "Int64",
        "Float64",
        "Boolean",
    ]


def test_columns_are_in_the_order_stated() -> None:
    data = drawn(60).with_columns(q=pl.col("p") ** 2)
    table = calframe.test(
        data, label="y", score=["p", "q"], by="g", weight="w", invalid="drop", method=["gap", "ks"]
    ).table
    assert table.columns == [
        *("g", "model", "method", "hypothesis", "n", "n_missing", "n_invalid", "weight_sum", "n_groups", "statistic"),
        *("df", "pvalue", "pvalue_se", "law", "pvalue_adjusted", "reject", "note"),
    ]
    assert table.select("g", "model", "method").rows() == [
        (g, model, method) for g in range(3) for model in ("p", "q") for method in ("gap", "ks")
    ]
    assert set(table["hypothesis"]) == {"calibrated"}


def test_several_models_are_as_each_alone() -> None:
    data = drawn(200).with_columns(q=(pl.col("p") ** 2).cast(pl.Float32))
    for method in ("spiegelhalter", "gap", "ecce", "hosmer_lemeshow"):
        table = calframe.test(data, label="y", score=["p", "q"], method=method, correction="none").table
        for score in ("p", "q"):
            alone = one(data, score=score, method=method, correction="none")
            (row,) = table.filter(model=score).iter_rows(named=True)
            assert (row["statistic"], row["law"]) == (pytest.approx(alone["statistic"]), alone["law"])


# --- segments that say little ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", TEST_METHODS)
def test_no_segment_stops_the_run(method: str) -> None:
    parts = {
        "one": ([1], [0.3]),
        "two": ([1, 0], [0.3, 0.4]),
        "few": ([1, 0] * 12, [0.3, 0.6] * 12),
        "positive": ([1] * 40, [0.9] * 20 + [0.8] * 20),
        "equal": ([1, 0] * 30, [0.5] * 60),
        "certain": ([1, 0] * 30, [1.0, 0.0] * 30),
        "nothing": ([None] * 3, [0.1, 0.2, None]),
        None: ([1, 0, 1] * 20, [0.7, 0.2, 0.6] * 20),
    }
    data = pl.DataFrame(
        {
            "g": [key for key, (labels, _) in parts.items() for _ in labels],
            "y": [label for labels, _ in parts.values() for label in labels],
            "p": [score for _, scores in parts.values() for score in scores],
        }
    )
    table = calframe.test(data, label="y", score="p", by="g", method=method, n_resamples=399).table
    assert sorted(set(table["g"].drop_nulls())) == sorted(key for key in parts if key)
    nothing = table.filter(g="nothing")
    assert nothing["n"].to_list() == [0] * len(nothing)
    assert nothing["n_missing"].to_list() == [3] * len(nothing)
    assert set(nothing["note"]) == {"no usable rows"}
    for row in table.iter_rows(named=True):
        if row["pvalue"] is None:
            assert row["note"]
            assert (row["law"], row["df"], row["pvalue_adjusted"], row["reject"]) == (None, None, None, None)
        elif row["reject"] is None:
            assert row["n"] < 25
            assert "fewer than 25 rows" in row["note"]
        else:
            assert 0.0 <= row["pvalue"] <= row["pvalue_adjusted"] <= 1.0
            assert row["law"]
    if method in ("resampling", "corp", "gap"):  # these hold their level for any number of rows
        assert table.filter(pl.col("g").is_in(["one", "two", "few"]))["reject"].null_count() == 0
    elif method not in ("cox", "kernel"):
        assert table.filter(pl.col("g").is_in(["one", "two", "few"]))["reject"].null_count() == 3


def test_a_table_without_a_usable_row_has_a_row_that_says_so() -> None:
    data = pl.DataFrame({"y": [1, 0], "p": [None, None], "c": [1, 2]}, schema_overrides={"p": pl.Float64})
    for cluster in (None, "c"):
        methods = [one for one in TEST_METHODS if cluster is None or one != "kernel"]
        table = calframe.test(data, label="y", score="p", method=methods, cluster=cluster).table
        assert table["method"].unique(maintain_order=True).to_list() == methods
        assert len(table) == len(methods) + 2  # cox has three
        assert set(table["note"]) == {"no usable rows"}


@pytest.mark.parametrize("method", ["spiegelhalter", "gap", "ecce", "ks"])
def test_certain_scores_that_are_right_have_no_spread_and_wrong_ones_are_impossible(method: str) -> None:
    right = pl.DataFrame({"y": [1, 0] * 30, "p": [1.0, 0.0] * 30})
    found = one(right, method=method)
    assert (found["statistic"], found["pvalue"]) == (None, None)
    assert "certain" in found["note"]
    wrong = one(right.vstack(pl.DataFrame({"y": [1], "p": [0.0]})), method=method)
    assert math.isinf(wrong["statistic"])
    assert (wrong["pvalue"], wrong["reject"]) == (0.0, True)


def test_a_certain_row_that_is_wrong_among_others() -> None:
    data = drawn(200).select("y", "p").vstack(pl.DataFrame({"y": [0, 1, 1], "p": [0.0, 1.0, 0.0]}))
    assert one(data, statistic="log_loss")["statistic"] == math.inf
    assert one(data, statistic="log_loss")["pvalue"] == 0.0
    assert one(data.head(202), statistic="log_loss")["pvalue"] > 0.01
    # Spiegelhalter's sum gains w (y - s)(1 - 2 s) = 1
    y, s = data["y"].to_numpy(), data["p"].to_numpy()
    z = ((y - s) * (1 - 2 * s)).sum() / math.sqrt(((1 - 2 * s) ** 2 * s * (1 - s)).sum())
    assert one(data, method="spiegelhalter")["statistic"] == pytest.approx(z, rel=1e-12)


# --- ways to say what a column holds ---------------------------------------------------------------------------------


def test_logits_and_positive_and_float32() -> None:
    data = drawn(200, power=1.2)
    logits = data.with_columns(p=pl.col("p").log() - (1 - pl.col("p")).log())
    words = data.with_columns(y=pl.col("y").replace_strict({0: "no", 1: "yes"}))
    narrow = data.with_columns(pl.col("p").cast(pl.Float32))
    for method in TEST_METHODS:
        if method == "cox":
            continue
        expected = one(data, method=method, n_resamples=99)
        for other, arguments in ((logits, {"link": "logit"}), (words, {"positive": "yes"}), (narrow, {})):
            found = one(other, method=method, n_resamples=99, **arguments)
            assert found["statistic"] == pytest.approx(expected["statistic"], rel=1e-4, abs=1e-6)
            assert found["pvalue"] == pytest.approx(expected["pvalue"], rel=1e-3)
    assert (
        one(logits, statistic="auc", link="logit", n_resamples=99)["pvalue"]
        == one(data, statistic="auc", n_resamples=99)["pvalue"]
    )


def test_bins_of_float32_scores_are_those_of_metrics() -> None:
    # 0.3 as float32 lies above 0.3; its bin begins at 0.3 rounded alike
    score = np.tile(np.arange(1, 10) / 10, 12)
    label = (np.random.default_rng(0).random(len(score)) < score).astype(np.int64)
    data = pl.DataFrame({"p": score.astype(np.float32), "y": label, "c": np.arange(len(score)) // 2})
    for statistic in ("ece", "reliability", "resolution", "within_bin"):
        seen = calframe.metrics(data, label="y", score="p", metrics=[statistic], bins=10)[statistic][0]
        for cluster in (None, "c"):
            found = one(data, statistic=statistic, bins=10, cluster=cluster, n_resamples=39)
            assert found["statistic"] == pytest.approx(seen, rel=1e-12, abs=1e-14)


def test_a_mapping_of_two_classes_is_its_second() -> None:
    data = drawn(100).with_columns(q=1 - pl.col("p"))
    expected = one(data, n_resamples=99)
    assert one(data, score={0: "q", 1: "p"}, n_resamples=99)["pvalue"] == expected["pvalue"]


@pytest.mark.parametrize("kind", ["list", "array", "struct"])
def test_a_column_of_vectors_is_a_mapping(kind: str) -> None:
    data = class_table(60)
    names = ("a", "b", "c")
    columns = {"y": [names[y] for y in data["y"]]}
    vectors = data.select("p0", "p1", "p2").rows()
    table = with_vectors(Maker("polars"), columns, vectors, kind=kind)
    for arguments in ({}, {"method": "hosmer_lemeshow"}, {"method": "kernel"}, {"statistic": "brier"}):
        found = one(table, score="v", classes=names, n_resamples=99, **arguments)
        expected = one(data, score=CLASSES, n_resamples=99, **arguments)
        assert found["pvalue"] == pytest.approx(expected["pvalue"])


# --- the result ------------------------------------------------------------------------------------------------------


def test_result_is_json_and_short() -> None:
    data = drawn(300, power=2.0)
    found = calframe.test(data, label="y", score="p", by="g", method=list(TEST_METHODS), n_resamples=199)
    told = json.loads(json.dumps(found.to_dict()))
    assert (told["schema_version"], told["kind"], told["methods"]) == (1, "test", list(TEST_METHODS))
    asked = {"statistic": "ece", "alternative": "greater", "correction": "holm", "alpha": 0.05, "n_resamples": 199}
    asked |= {"weight": None, "label": "y", "df": "external", "strategy": "uniform", "closed": "left", "rng": 0}
    assert asked.items() <= told["convention"].items()
    assert len(told["table"]) == len(found.table) == 3 * (len(TEST_METHODS) + 2)
    assert "<table>" in found._repr_html_()
    assert all(len(line) <= 80 for line in repr(found).splitlines())
    rejected = int(found.table["reject"].sum())
    assert f"{len(TEST_METHODS)} methods, {rejected} of {len(found.table)} rejected" in repr(found)
    with pytest.raises(AttributeError):
        found.methods = ()  # type: ignore[misc]
    impossible = calframe.test(pl.DataFrame({"y": [0] * 30, "p": [1.0] * 30}), label="y", score="p", method="gap")
    assert json.loads(json.dumps(impossible.to_dict(), allow_nan=False))["kind"] == "test"


def test_pytest_collects_no_imported_test(tmp_path: Path) -> None:
    assert calframe.test.__test__ is False
    assert calframe.TestResult.__test__ is False
    file = tmp_path / "test_import.py"
    file.write_text("from calframe import TestResult, test\n\ndef test_own():\n    assert test and TestResult\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "1 passed" in done.stdout, done.stdout


def test_input_is_left_as_it_was(make: Maker) -> None:
    data = make(COLUMNS)
    before = rows(data.df() if make.library == "duckdb" else data)
    calframe.test(data, label="y", score="p", by="g", method=["resampling", "kernel", "cox"], n_resamples=20)
    assert rows(data.df() if make.library == "duckdb" else data) == before


def test_progress_tells_shares_of_the_work() -> None:
    data = drawn(120).with_columns(q=pl.col("p").cast(pl.Float32), c=pl.int_range(120) // 2)
    for arguments in (
        {},
        {"statistic": "auc", "score": ["p", "q"], "by": "g"},
        {"method": ["cox", "resampling", "corp", "gap"]},
        {"cluster": "c", "by": "g"},
        {"statistic": "skce"},
    ):
        told: list[float] = []
        calframe.test(data, **{"label": "y", "score": "p", "n_resamples": 99, "progress": told.append, **arguments})
        assert sum(told) == pytest.approx(1.0), arguments
        assert all(share > 0.0 for share in told)


# --- wrong input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"method": "hosmer"}, ArgumentError, "method.*'hosmer'"),
        ({"method": []}, ArgumentError, "method= is empty; name at least one of 'resampling'"),
        ({"statistic": "eci"}, ArgumentError, "'eci'"),
        ({"statistic": "mean_score"}, ArgumentError, "does not depend on the labels"),
        ({"correction": "fdr"}, ArgumentError, "correction.*'fdr'"),
        (
            {"correction": "max", "method": ["resampling", "gap"]},
            ArgumentError,
            "which method='gap' has not; take 'holm'",
        ),
        ({"df": "outside"}, ArgumentError, "df.*'outside'"),
        ({"alternative": "both"}, ArgumentError, "alternative.*'both'"),
        ({"kernel_law": "normal"}, ArgumentError, "kernel_law.*'normal'"),
        ({"inequality": ">>"}, ArgumentError, "inequality.*'>>'"),
        ({"alpha": 0}, ArgumentError, "alpha must lie between 1e-09 and 0.5, for example 0.05; got 0"),
        ({"alpha": 5}, ArgumentError, "alpha must lie between 1e-09 and 0.5, for example 0.05; got 5"),
        ({"alpha": "x"}, ArgumentError, "alpha must lie between 1e-09 and 0.5, for example 0.05; got 'x'"),
        ({"n_resamples": 0}, ArgumentError, "n_resamples must be a whole number.*got 0"),
        ({"n_resamples": 99.5}, ArgumentError, "n_resamples must be a whole number.*got 99.5"),
        ({"bins": 0}, ArgumentError, "bins"),
        ({"rng": "x"}, ArgumentError, "rng"),
        ({"cluster": "no"}, ColumnNotFoundError, "'no'"),
        ({"by": "no"}, ColumnNotFoundError, "'no'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        one(drawn(50), **arguments)


def test_wrong_tables() -> None:
    data = drawn(50)
    with pytest.raises(ScoreError, match=r"1\.5"):
        one(data.with_columns(p=pl.lit(1.5)))
    with pytest.raises(LabelError, match="label"):
        one(data.with_columns(y=pl.int_range(50)))
    with pytest.raises(ColumnClashError, match="'reject'"):
        calframe.test(data.rename({"g": "reject"}), label="y", score="p", by="reject")
    with pytest.raises(
        ArgumentError, match="method='gap' is for one score a row; of several classes take 'resampling'"
    ):
        one(class_table(50), score=CLASSES, method="gap")


@pytest.mark.parametrize(
    "options",
    [{}, {"weight": "w"}, {"cluster": "c"}, {"method": "hosmer_lemeshow"}, {"statistic": "confidence_ece"}],
    ids=["plain", "weights", "clusters", "groups", "vectors"],
)
def test_scores_outside_the_edges_are_an_error_that_counts_them(options: dict[str, Any]) -> None:
    table = pl.DataFrame({"y": [0, 1, 1], "p": [0.1, 0.45, 0.9], "w": [1.0, 2.0, 1.0], "c": [1, 2, 3]})
    with pytest.raises(ScoreError, match=r"2 rows outside the bin edges 0\.4 to 0\.5, from 0\.1 to 0\.9"):
        calframe.test(table, label="y", score="p", bins=[0.4, 0.5], **options)
