"""Polars expressions of one row: bins, logits and probabilities; and the namespace that holds them all."""

from __future__ import annotations

import gc
import math
import pickle
import weakref
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calframe import ArgumentError
from calframe._namespaces import register
from tests._definitions import bin_of, defined, edges_of
from tests._expressions import (
    BY_HAND,
    FLIGHTS,
    INF,
    MEASURES,
    NAN,
    SEGMENTS,
    WHOLE,
    by_metrics,
    check,
    edge_scores,
    measures,
    same,
)

SCORE = pl.col("p").calib
BINNED = ("ece", "mce")


# Bins


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_scores_on_and_beside_every_edge(closed: Any, dtype: str, engine: Any) -> None:
    scores, wanted = {}, {}
    for count in range(1, 101):
        edges = edges_of(count, single=dtype == "float32")
        scores[f"p{count}"] = np.resize(edge_scores(edges, dtype), 3 * 101)  # one length for all: the first ones again
        wanted[f"p{count}"] = [bin_of(float(score), edges, closed=closed) for score in scores[f"p{count}"]]
    plan = pl.LazyFrame(scores).select(pl.col(f"p{count}").calib.bin(count, closed=closed) for count in range(1, 101))
    found = plan.collect(engine=engine).to_dict(as_series=False)
    assert [name for name in wanted if found[name] != wanted[name]] == []


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("count", [5, 10, 15, 20, 49])
def test_errors_of_scores_on_and_beside_edges(count: int, closed: str, dtype: str) -> None:
    edges = edges_of(count, single=dtype == "float32")
    scores = edge_scores(edges, dtype)
    labels = np.random.default_rng(count).integers(0, 2, len(scores))
    rows = [(int(y), float(p), 1.0) for y, p in zip(labels, scores, strict=True)]
    wanted = {name: [defined(name, rows, edges=edges, closed=closed)] for name in BINNED}
    asked = {name: expr for name, expr in measures(bins=count, closed=closed).items() if name in BINNED}
    for way in ("select", "streaming"):
        check(WHOLE[way](pl.DataFrame({"y": labels, "p": scores}), asked), wanted)


@pytest.mark.skipif(not hasattr(pl, "Float16"), reason="this polars has no half precision")
def test_half_precision_is_read_as_metrics_reads_it() -> None:
    table = pl.DataFrame({"y": [1, 0, 1, 0], "p": [0.1, 0.15, 0.6, 0.7]}).with_columns(pl.col("p").cast(pl.Float16))
    assert table.select(SCORE.bin(10))["p"].to_list() == [0, 1, 6, 7]  # the nearest of a tenth lies below it
    check(WHOLE["select"](table, measures(bins=10)), by_metrics(table, bins=10))


@pytest.mark.parametrize("form", [list, tuple, np.array], ids=["list", "tuple", "array"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_given_edges(closed: Any, dtype: str, form: Any) -> None:
    edges = [float(edge) for edge in np.array([0.0, 0.1, 0.3, 0.7, 1.0], dtype)]
    scores = edge_scores(edges, dtype)
    found = pl.DataFrame({"p": scores}).select(SCORE.bin(form([0.0, 0.1, 0.3, 0.7, 1.0]), closed=closed))
    assert found["p"].to_list() == [bin_of(float(score), edges, closed=closed) for score in scores]


def test_edges_need_not_be_those_of_the_scores() -> None:
    # in the bins [-1, .6) and [.6, 3] gaps -.2 and .4 of a are parted, those of b are not
    check(SEGMENTS["group_by"](FLIGHTS, measures(bins=[-1.0, 0.6, 3.0])), BY_HAND)
    assert FLIGHTS.select(SCORE.bin([0.45, 0.6, 0.7]))["p"].to_list() == [None, 0, None, 0]
    assert FLIGHTS.select(SCORE.bin(range(2)))["p"].to_list() == [0] * 4


def test_a_single_precision_score_on_the_outermost_edge_is_inside() -> None:
    table = pl.DataFrame({"y": [1, 0], "p": pl.Series([0.7, 0.75], dtype=pl.Float32)})  # 0.7 is rounded down
    assert table.select(SCORE.bin([0.7, 1.0]))["p"].to_list() == [0, 0]
    assert table.select(SCORE.ece("y", bins=[0.7, 1.0])).item() == pytest.approx(0.225, rel=1e-6)


@pytest.mark.parametrize(("bins", "last"), [(15, 14), ([0.0, 0.5, 1.0], 1), ([-1.0, 0.5, 2.0], 1), ([0.0, 1.0], 0)])
def test_what_is_no_probability_has_no_bin(bins: Any, last: int) -> None:
    table = pl.DataFrame({"p": [None, NAN, -0.1, 1.1, INF, -INF, 0.0, -0.0, 1.0]})
    assert table.select(SCORE.bin(bins))["p"].to_list() == [None] * 6 + [0, 0, last]


def test_bins_make_segments() -> None:
    found = FLIGHTS.group_by(bin=SCORE.bin(2)).agg(gap=SCORE.gap("y")).sort("bin")
    assert found["bin"].to_list() == [0, 1]
    assert same(found["gap"].to_list(), [0.4, (-0.2 - 0.5 + 0.5) / 3])
    assert FLIGHTS.select(SCORE.bin()).equals(FLIGHTS.select(SCORE.bin(15)))


@pytest.mark.parametrize("name", ["bin", *BINNED])
def test_bins_that_are_none_are_refused(name: str) -> None:
    label = [] if name == "bin" else ["y"]
    method = getattr(SCORE, name)
    with pytest.raises(ArgumentError, match=r"bins='auto' is not for expressions, .* calframe.metrics takes it"):
        method(*label, bins="auto")
    with pytest.raises(ArgumentError, match="bins must be a number from 1"):
        method(*label, bins=0)
    with pytest.raises(ArgumentError, match="strictly ascending"):
        method(*label, bins=[1.0, 0.0])
    with pytest.raises(ArgumentError, match="closed must be one of 'left', 'right'; got 'both'"):
        method(*label, closed="both")


def test_the_side_is_named() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        SCORE.bin(15, "right")


# Logit and expit


def test_logits_worked_by_hand() -> None:
    table = pl.DataFrame({"p": [0.0, 0.2, 0.5, 0.75, 1.0, None, NAN, -0.1, 1.1, INF]})
    wanted = [-INF, -math.log(4), 0.0, math.log(3), INF, None, *[NAN] * 4]
    assert same(table.select(SCORE.logit())["p"].to_list(), wanted)


def test_probabilities_worked_by_hand() -> None:
    table = pl.DataFrame({"p": [-INF, -1000.0, -math.log(4), 0.0, math.log(3), 1000.0, INF, None, NAN]})
    assert same(table.select(SCORE.expit())["p"].to_list(), [0.0, 0.0, 0.2, 0.5, 0.75, 1.0, 1.0, None, NAN])
    far = pl.DataFrame({"p": [-40.0, -700.0]}).select(SCORE.expit())["p"].to_list()  # exp(x) / (1 + exp(x))
    assert far == pytest.approx([math.exp(-40), math.exp(-700)], rel=1e-12, abs=0)


@settings(deadline=None)
@given(st.floats(1e-300, 1.0 - 1e-9))
def test_expit_undoes_logit(p: float) -> None:
    [found] = pl.DataFrame({"p": [p]}).select(SCORE.logit().calib.expit())["p"].to_list()
    assert found == pytest.approx(p, rel=1e-12, abs=0)  # a logit of -700 is known to 1e-13


def test_scores_from_logits_are_scores() -> None:
    logits = FLIGHTS.with_columns(SCORE.logit())
    for way in SEGMENTS.values():
        check(way(logits, measures(score=SCORE.expit(), bins=2)), BY_HAND)


def test_several_scores_give_a_column_each() -> None:
    table = FLIGHTS.select("p", q=1.0 - pl.col("p"))
    both, two, edges = pl.col("p", "q").calib, (pl.col("p").calib, pl.col("q").calib), [0.0, 0.45, 0.55, 1.0]
    assert table.select(both.bin(10)).equals(table.select(each.bin(10) for each in two))
    assert table.select(both.bin(edges)).equals(table.select(each.bin(edges) for each in two))
    assert table.select(both.logit()).equals(table.select(each.logit() for each in two))
    assert table.select(both.expit()).equals(table.select(each.expit() for each in two))


# The namespace

EXPRESSIONS = {
    **measures(),
    "bin": SCORE.bin(10),
    "edges": SCORE.bin([0.0, 0.5, 1.0]),
    "one bin": SCORE.bin([0.0, 1.0]),
    "logit": SCORE.logit(),
    "expit": SCORE.expit(),
}


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32, pl.Int8])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_result_has_the_name_of_the_score_and_a_known_type(name: str, dtype: Any) -> None:
    expression = EXPRESSIONS[name]
    assert expression.meta.output_name() == "p"
    wanted = {"p": pl.Int32 if "bin" in name or name == "edges" else pl.Float64}
    table = FLIGHTS.with_columns(pl.col("p").cast(dtype))
    assert dict(table.lazy().select(expression).collect_schema()) == wanted
    assert dict(table.select(expression).schema) == wanted


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_holds_no_python(name: str) -> None:
    there_and_back = pl.Expr.deserialize(EXPRESSIONS[name].meta.serialize())
    assert str(there_and_back) == str(EXPRESSIONS[name])
    assert "python" not in FLIGHTS.lazy().select(EXPRESSIONS[name]).explain().lower()


@pytest.mark.parametrize(
    "expr", [pl.col("p"), pl.all(), pl.col("^p.*$"), cs.numeric(), pl.lit("text"), pl.lit(None), pl.len(), pl.element()]
)
def test_any_expression_has_the_namespace(expr: pl.Expr) -> None:
    others = {"bin", "logit", "expit", "apply"}
    assert {name for name in dir(expr.calib) if not name.startswith("_")} == {*MEASURES} | others


def test_registering_twice_is_quiet_and_changes_nothing() -> None:
    before = pl.Expr.calib
    register()
    assert pl.Expr.calib is before


def test_an_expression_dies_when_nobody_needs_it() -> None:
    expr = pl.col("p") + 1.0
    expr.calib.brier("y")
    there = weakref.ref(expr)
    gc.disable()
    del expr
    gone = there() is None
    gc.enable()
    assert gone


def test_an_expression_that_was_asked_is_pickled_as_before() -> None:
    expr = pl.col("p")
    expr.calib.brier("y")
    assert pickle.loads(pickle.dumps(expr)).meta.eq(pl.col("p"))  # noqa: S301
