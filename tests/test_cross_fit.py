"""Calibrated scores from maps that have not seen the row."""

from __future__ import annotations

import math
import warnings
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import calframe
from calframe import (
    ArgumentError,
    CalframeError,
    CalframeWarning,
    ColumnClashError,
    ColumnNotFoundError,
    EmptyTableError,
    LabelError,
    ScoreError,
    SegmentError,
)
from tests._tables import LIBRARIES, Maker, approx, rows, types

COLLECTED = [name for name in LIBRARIES if name != "duckdb"]
CLASSES = {"a": "a", "b": "b", "c": "c"}


@pytest.fixture(params=COLLECTED)
def table_of(request: pytest.FixtureRequest) -> Maker:
    """A maker of tables that can be cross-fitted."""
    return Maker(request.param)


def drawn(n: int = 120, *, seed: int = 0) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.05, 0.95, n)
    return {
        "y": (rng.random(n) < score**2).astype(int).tolist(),
        "p": score.tolist(),
        "g": [f"s{i}" for i in rng.integers(0, 6, n)],
        "f": rng.integers(0, 3, n).tolist(),
        "t": rng.integers(0, 30, n).tolist(),
    }


def drawn_classes(n: int = 150) -> dict[str, list[Any]]:
    rng = np.random.default_rng(3)
    shares = rng.dirichlet([1.0, 1.0, 1.0], n)
    label = ["abc"[rng.choice(3, p=row)] for row in shares]
    columns = {name: shares[:, i].tolist() for i, name in enumerate("abc")}
    return {"y": label, **columns, "v": shares.tolist(), "f": rng.integers(0, 3, n).tolist()}


def crossed(table: Any, **arguments: Any) -> dict[str, list[Any]]:
    return rows(calframe.cross_fit(table, **{"label": "y", "score": "p", "method": "platt", **arguments}))


def by_hand(table: dict[str, list[Any]], names: list[str], **arguments: Any) -> dict[str, list[float]]:
    """Fit the rest of each fold of column f, and apply the map to the fold."""
    frame = pl.DataFrame(table).with_row_index("_row")
    parts = []
    for fold in frame["f"].unique():
        the_map = calframe.fit(frame.filter(pl.col("f") != fold), **{"label": "y", "score": "p", **arguments})
        parts.append(the_map.apply(frame.filter(pl.col("f") == fold)))
    return pl.concat(parts).sort("_row").select(names).to_dict(as_series=False)


@pytest.mark.parametrize(
    "arguments",
    [
        {"method": "platt"},
        {"method": "isotonic", "epsilon": 0.01},
        {"method": "beta", "by": "g"},
        {"method": "platt", "by": "g", "pooling": "none"},
    ],
    ids=lambda given: "-".join(map(str, given.values())),
)
def test_each_fold_takes_the_map_of_the_others(table_of: Maker, arguments: dict[str, Any]) -> None:
    table = drawn()
    found = crossed(table_of(table), folds="f", **arguments)
    assert found["p_calibrated"] == approx(by_hand(table, ["p_calibrated"], **arguments)["p_calibrated"])
    assert {name: found[name] for name in table} == table


def test_venn_abers_has_its_interval(table_of: Maker) -> None:
    table = drawn()
    names = ["p_calibrated", "p_calibrated_low", "p_calibrated_high"]
    found = crossed(table_of(table), folds="f", method="venn_abers")
    expected = by_hand(table, names, method="venn_abers")
    assert {name: found[name] for name in names} == {name: approx(expected[name]) for name in names}


@pytest.mark.parametrize("method", ["temperature", "ovr_platt"])
def test_several_classes(table_of: Maker, method: str) -> None:
    table = drawn_classes()
    names = [f"p_calibrated_{name}" for name in "abc"]
    expected = by_hand(table, names, score=CLASSES, method=method)
    columns, vectors = {"score": CLASSES}, {"score": "v", "classes": ["a", "b", "c"]}
    nullable = table_of.library == "pandas[nullable]"  # has no type for vectors
    table = {name: values for name, values in table.items() if not (nullable and name == "v")}
    for score in [columns] if nullable else [columns, vectors]:
        found = crossed(table_of(table), folds="f", method=method, **score)
        assert {name: found[name] for name in names} == {name: approx(expected[name]) for name in names}


def test_the_mean_of_a_map_a_fold_is_scikit_learns_ensemble() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(600, 3))
    y = (rng.random(600) < 1.0 / (1.0 + np.exp(-x @ [1.0, -2.0, 0.5]))).astype(int)
    known, new, folds = x[:400], x[400:], KFold(3)
    peer = CalibratedClassifierCV(LogisticRegression(C=0.05), method="sigmoid", cv=folds, ensemble=True)
    expected = peer.fit(known, y[:400]).predict_proba(new)[:, 1]
    learn, apply = [], []
    for fold, (others, own) in enumerate(folds.split(known)):
        model = LogisticRegression(C=0.05).fit(known[others], y[others])
        learn.append(pl.DataFrame({"y": y[own], "z": model.decision_function(known[own]), "fold": fold}))
        apply.append(pl.DataFrame({"row": np.arange(200), "z": model.decision_function(new), "fold": fold}))
    maps = calframe.fit(
        pl.concat(learn),
        label="y",
        score="z",
        link="logit",
        method="platt",
        by="fold",
        pooling="none",
        target_smoothing=True,
    )
    found = maps.apply(pl.concat(apply)).group_by("row").agg(pl.col("p_calibrated").mean()).sort("row")
    assert np.abs(found["p_calibrated"].to_numpy() - expected).max() < 1e-6  # scikit-learn stops before the optimum
    one = calframe.fit(pl.concat(learn), label="y", score="z", link="logit", method="platt", target_smoothing=True)
    other = one.apply(pl.concat(apply)).group_by("row").agg(pl.col("p_calibrated").mean()).sort("row")
    assert np.abs(other["p_calibrated"].to_numpy() - expected).max() > 1e-3  # it is the maps, not only the models


@pytest.mark.parametrize("arguments", [{}, {"group": "g"}, {"by": "g"}], ids=str)
def test_a_label_moves_nothing_in_its_own_fold(arguments: dict[str, Any]) -> None:
    table = drawn()
    row = 7
    if "group" in arguments:
        own = [name == table["g"][row] for name in table["g"]]
    else:
        own = [i == row for i in range(len(table["y"]))]
    other = {**table, "y": [1 - y if i == row else y for i, y in enumerate(table["y"])]}
    before, after = (crossed(pl.DataFrame(each), **arguments)["p_calibrated"] for each in (table, other))
    same = [was == comes for was, comes in zip(before, after, strict=True)]
    assert all(is_same for is_same, mine in zip(same, own, strict=True) if mine)
    assert not all(same)  # other folds do learn from it


def test_later_labels_move_nothing_earlier() -> None:
    table = drawn()
    last = int(np.argmax(table["t"]))
    other = {**table, "y": [1 - y if i == last else y for i, y in enumerate(table["y"])]}
    with pytest.warns(CalframeWarning, match="rows have no calibrated score"):
        before = crossed(pl.DataFrame(table), time="t")
    with pytest.warns(CalframeWarning, match="rows have no calibrated score"):
        assert crossed(pl.DataFrame(other), time="t") == {**before, "y": other["y"]}


def test_the_first_fold_by_time_has_no_scores(table_of: Maker) -> None:
    table = {"y": [0, 1] * 10, "p": [0.3, 0.6] * 10, "t": sorted(list(range(10)) * 2)}
    said = "4 rows have no calibrated score, because there are no rows of earlier folds to fit a map on"
    with pytest.warns(CalframeWarning, match=said) as caught:
        found = crossed(table_of(table), time="t")["p_calibrated"]
    assert len(caught) == 1
    assert [value is None for value in found] == [True] * 4 + [False] * 16


def test_lazy_tables_are_read_when_they_are_collected() -> None:
    def never(_: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError

    schema = {"y": pl.Int64, "p": pl.Float64}
    plan = pl.LazyFrame(schema=schema).map_batches(never, schema=schema)
    out = calframe.cross_fit(plan, label="y", score="p", method="venn_abers", name="q")
    assert out.collect_schema() == {**schema, **dict.fromkeys(["q", "q_low", "q_high"], pl.Float64)}
    lazy = calframe.cross_fit(pl.LazyFrame(drawn()), label="y", score="p")
    assert lazy.select("p_calibrated").head(3).collect().shape == (3, 1)
    assert lazy.collect().equals(calframe.cross_fit(pl.DataFrame(drawn()), label="y", score="p"))


def test_pandas_keeps_its_index_and_types() -> None:
    table = drawn()
    for index in (np.arange(120) * 10, np.zeros(120), list("ab") * 60):
        data = pd.DataFrame(table, index=index).convert_dtypes()
        out = calframe.cross_fit(data, label="y", score="p", by="g")
        pd.testing.assert_frame_equal(out[list(table)], data)
        assert "p_calibrated" not in data.columns


def test_the_kind_of_table_is_kept(table_of: Maker) -> None:
    data = table_of(drawn())
    out = calframe.cross_fit(data, label="y", score="p")
    assert type(out) is type(data)
    assert str(types(out)["p_calibrated"]) == "Float64"


def test_rows_without_a_label_or_a_score(table_of: Maker) -> None:
    table = drawn(60)
    table["y"][:5] = [None] * 5
    table["p"][5:8] = [None] * 3
    found = crossed(table_of(table))["p_calibrated"]
    assert [i for i, value in enumerate(found) if value is None] == [5, 6, 7]


@pytest.mark.parametrize("method", ["platt", "isotonic", "histogram", "venn_abers", "spline", "beta", "identity"])
def test_a_missing_score_has_no_calibrated_one(make: Maker, method: str) -> None:
    the_map = calframe.fit(pl.DataFrame(drawn(60)), label="y", score="p", method=method)
    out = the_map.apply(make({"p": [0.2, None, 0.4]}))
    found = rows(out.pl() if isinstance(out, duckdb.DuckDBPyRelation) else out)
    assert [[value is None for value in found[name]] for name in found if name != "p"] == [
        [False, True, False] for name in found if name != "p"
    ]


def test_a_missing_class_has_no_calibrated_ones(make: Maker) -> None:
    the_map = calframe.fit(pl.DataFrame(drawn_classes()), label="y", score=CLASSES, method="ovr_isotonic")
    out = the_map.apply(make({"a": [0.2, None], "b": [0.3, 0.3], "c": [0.5, 0.5]}))
    found = rows(out.pl() if isinstance(out, duckdb.DuckDBPyRelation) else out)
    assert [found[f"p_calibrated_{name}"][1] for name in "abc"] == [None] * 3


def test_invalid_rows_are_left_out_or_refused(table_of: Maker) -> None:
    table = drawn(60)
    valid = crossed(table_of({name: values[2:] for name, values in table.items()}), folds="f")["p_calibrated"]
    table["p"][:2] = [1.5, -0.2]
    assert crossed(table_of(table), folds="f", invalid="drop")["p_calibrated"] == [None, None, *valid]
    with pytest.raises(ScoreError, match="2 rows outside"):  # of all rows, not of some folds
        crossed(table_of(table), folds="f")


def test_vectors_that_do_not_add_up_are_left_out() -> None:
    table = drawn_classes()
    table["a"][0] += 0.5
    found = crossed(pl.DataFrame(table), score=CLASSES, method="temperature", invalid="drop")
    assert [found[f"p_calibrated_{name}"][0] for name in "abc"] == [None] * 3
    assert None not in found["p_calibrated_a"][1:]


def test_logits_are_the_same_as_their_probabilities(table_of: Maker) -> None:
    table = drawn()
    logits = {**table, "p": [math.log(p / (1 - p)) for p in table["p"]]}
    probabilities = crossed(table_of(table))["p_calibrated"]
    assert crossed(table_of(logits), link="logit")["p_calibrated"] == approx(probabilities, rel=1e-9)


def test_a_fold_whose_rest_has_one_class(table_of: Maker) -> None:
    # without fold 0 there are only noes: no map, scores stay; the fold itself is calibrated by the others
    table = {"y": ["no", "yes", "no", "no"], "p": [0.2, 0.6, 0.3, 0.7], "f": [0, 0, 1, 1]}
    found = crossed(table_of(table), positive="yes", folds="f")["p_calibrated"]
    assert found[:2] == [0.2, 0.6]


def test_a_fold_whose_rest_has_no_label(table_of: Maker) -> None:
    table = {"y": [0, 1, None, None], "p": [0.2, 0.6, 0.3, 0.7], "f": [0, 0, 1, 1]}
    with pytest.warns(CalframeWarning, match="2 rows have no calibrated score, because there are no rows of other"):
        found = crossed(table_of(table), folds="f")["p_calibrated"]
    assert [value is None for value in found] == [True, True, False, False]


def test_a_segment_of_few_rows_is_calibrated() -> None:
    table = drawn()
    table["g"][:2] = ["tiny", "alone"]
    for pooling in ("none", "partial", "complete"):
        found = crossed(pl.DataFrame(table), by="g", pooling=pooling)["p_calibrated"]
        assert all(0.0 < value < 1.0 for value in found)


def test_the_seed_makes_the_folds() -> None:
    data = pl.DataFrame(drawn())
    assert crossed(data) == crossed(data, rng=0) != crossed(data, rng=1)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"name": "y"}, ColumnClashError, "has a column 'y' already; pass another name="),
        ({"name": 3}, ArgumentError, "name= takes the name of the new column; got 3"),
        ({"score": "q"}, ColumnNotFoundError, "no column 'q' for score="),
        ({"folds": "fold"}, ColumnNotFoundError, "no column 'fold' for folds="),
        ({"group": "person"}, ColumnNotFoundError, "no column 'person' for group="),
        ({"time": "g"}, SegmentError, "time column 'g' has type String"),
        ({"folds": 1}, ArgumentError, "folds must be a whole number"),
        ({"smoothing": True}, TypeError, "unexpected keyword argument 'smoothing'"),
        ({"score": "g"}, ScoreError, "'g'"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(
    table_of: Maker, arguments: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        calframe.cross_fit(table_of(drawn(20)), **{"label": "y", "score": "p", **arguments})


@pytest.mark.parametrize(
    ("columns", "error", "match"),
    [
        ({"y": [], "p": []}, EmptyTableError, "the table has no rows"),
        ({"y": [1], "p": [0.5]}, ArgumentError, "folds=5 needs 5 rows or more; the table has 1 row"),
        ({"y": [None] * 6, "p": [0.5] * 6}, EmptyTableError, "no fold leaves a row to fit a map on"),
        ({"y": [0, 1, 2, 3, 4, 5], "p": [0.5] * 6}, LabelError, "label column 'y' has"),
    ],
)
def test_tables_that_cannot_be_cross_fitted(columns: Any, error: type[CalframeError], match: str) -> None:
    frame = pl.DataFrame(columns, schema={"y": pl.Int64, "p": pl.Float64})
    for data in (frame, frame.to_pandas(), frame.to_arrow()):
        with pytest.raises(error, match=match):
            calframe.cross_fit(data, label="y", score="p")
    with pytest.raises(error, match=match):
        calframe.cross_fit(frame.lazy(), label="y", score="p").collect()


def test_remote_tables_are_to_be_collected_first() -> None:
    relation = duckdb.from_arrow(pa.table({"y": [0, 1], "p": [0.2, 0.7]}))
    with pytest.raises(ArgumentError, match=r"cross_fit\(\) needs the rows in memory or a polars LazyFrame; got Duck"):
        calframe.cross_fit(relation, label="y", score="p")


def test_nothing_is_said_where_nothing_is_to_be_said() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calframe.cross_fit(pl.DataFrame(drawn()), label="y", score="p", by="g")
