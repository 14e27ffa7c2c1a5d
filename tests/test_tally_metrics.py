"""Measures of distinct scores: one answer on every engine, against other packages, for many segments, and on a grid."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from scipy.special import logit
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

import calframe
from calframe import _reading
from calframe._errors import CalframeWarning
from calframe._measures import CLASS_METRICS, METRICS, known_metrics
from tests import _rank_definitions as ranked
from tests._class_tables import SCORE, found, same
from tests._tables import Maker, approx, column, measure, rows, value

POLARS = Maker("polars")
BY_TALLY = [name for name, metric in METRICS.items() if metric.reads in {"tally", "ranks"}]


def drawn(n: int, *, seed: int, segments: int = 3) -> dict[str, Any]:
    """Return rows with ties, weights, a second model and class probabilities; no score is certain."""
    rng = np.random.default_rng(seed)
    score = rng.integers(1, 40, n) / 40
    classes = 1 + rng.multinomial(9, [0.2, 0.3, 0.5], size=n)
    return {
        "g": np.array(["u", "v", "w"])[rng.integers(0, segments, n)].tolist(),
        "y": (rng.random(n) < score**1.5).astype(int).tolist(),
        "p": score.tolist(),
        "q": rng.uniform(0.05, 0.95, n).astype(np.float32),
        "w": rng.choice([0.5, 1.0, 2.0], n).tolist(),
        "c": np.array(["a", "b", "c"])[rng.integers(0, 3, n)].tolist(),
        **dict(zip(SCORE.values(), (classes / 12).T.tolist(), strict=True)),
    }


TABLE = drawn(90, seed=7)
CALLS: dict[str, dict[str, Any]] = {
    "whole table": {"score": "p"},
    "segments, weights, intervals": {"score": "p", "by": "g", "weight": "w", "confidence_level": 0.9},
    "models": {"score": ["q", "p"], "by": "g", "weight": "w"},
    "quantiles": {"score": ["p", "q"], "by": "g", "bins": 4, "strategy": "quantile"},
    "logits": {"score": "p", "link": "logit", "by": "g"},
    "classes": {"label": "c", "score": SCORE, "by": "g", "weight": "w"},
}


# ---------------------------------------------------------------- one answer
@pytest.mark.parametrize("call", CALLS)
def test_every_engine_gives_the_same(make: Maker, call: str) -> None:
    arguments = {"label": "y", "metrics": "all", **CALLS[call]}
    values, expected = (rows(calframe.metrics(maker(TABLE), **arguments)) for maker in (make, POLARS))
    same(values, expected, rel=1e-9)
    assert values.keys() == expected.keys()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
def test_the_streaming_engine_gives_the_same(call: str, lazy: bool) -> None:  # noqa: FBT001
    arguments = {"label": "y", "metrics": "all", **CALLS[call]}
    frame = pl.DataFrame(TABLE)
    expected = rows(calframe.metrics(frame, **arguments))
    if lazy:
        values = rows(calframe.metrics(frame.lazy(), **arguments).collect(engine="streaming"))
    else:
        values = rows(calframe.metrics(frame, engine="streaming", **arguments))
    same(values, expected, rel=1e-9)


@pytest.mark.parametrize("call", ["segments, weights, intervals", "models", "quantiles", "classes"])
def test_segments_together_are_each_alone(call: str) -> None:
    arguments = {"label": "y", "metrics": "all", **CALLS[call]}
    together = rows(calframe.metrics(pl.DataFrame(TABLE), **arguments))
    for key in "uvw":
        part = pl.DataFrame(TABLE).filter(pl.col("g") == key)
        alone = rows(calframe.metrics(part, **arguments))
        places = [i for i, each in enumerate(together["g"]) if each == key]
        same({name: [each[i] for i in places] for name, each in together.items()}, alone, rel=1e-9)


def test_each_model_is_measured_as_if_alone(make: Maker) -> None:
    both = found(make(TABLE), score=["q", "p"], metrics="all", bins=10)
    for i, name in enumerate(("q", "p")):
        alone = found(make(TABLE), score=name, metrics="all", bins=10)
        same({column: [each[i]] for column, each in both.items()}, alone, rel=1e-9)


@pytest.mark.parametrize("library", ["pandas", "polars[lazy]", "duckdb"])
def test_many_models_keep_their_order(library: str) -> None:
    names = [f"m{i}" for i in (10, 2, 1, 0, 11, 3, 4, 9, 8, 7, 6, 5)]  # the order given, not that of the alphabet
    rng = np.random.default_rng(9)
    models = {name: (rng.integers(1, 20, 90) / 20).tolist() for name in names}
    values = found(Maker(library)(TABLE | models), score=names, by="g", metrics=["auc", "mcb", "confidence_ece"])
    assert (values["model"], values["g"]) == (names * 3, ["u"] * 12 + ["v"] * 12 + ["w"] * 12)
    for i, name in enumerate(names):
        mine = [[models[name][k], TABLE["y"][k]] for k in range(90) if TABLE["g"][k] == "v"]
        assert values["auc"][12 + i] == approx(ranked.auc([(y, p) for p, y in mine]))


@pytest.mark.parametrize("metrics", [METRICS, CLASS_METRICS], ids=["one column", "classes"])
def test_all_is_every_metric_in_order(metrics: Any) -> None:
    arguments: dict[str, Any] = {} if metrics is METRICS else {"label": "c", "score": SCORE}
    values = measure(POLARS, TABLE, metrics="all", **arguments)
    known = known_metrics(several_classes=metrics is CLASS_METRICS)  # with those that other tests have registered
    assert list(known)[: len(metrics)] == list(metrics)
    names = [name for name, metric in known.items() if not metric.posterior]
    assert values.columns == ["n", "n_missing", *names, "note"]


# ---------------------------------------------------------------- other packages
def test_the_numbers_of_other_packages(make: Maker) -> None:
    names = ["auc", "mcb", "dsc", "slope", "intercept", "citl", "slope_se", "intercept_se", "citl_se"]
    values = found(make(TABLE), score="p", by="g", metrics=names)
    for i, key in enumerate(values["g"]):
        mine = [each == key for each in TABLE["g"]]
        label, score = np.array(TABLE["y"])[mine], np.array(TABLE["p"])[mine]
        fit = IsotonicRegression().fit_transform(score, label)  # sklearn
        brier, best = brier_score_loss(label, score), brier_score_loss(label, fit)
        line = sm.GLM(label, sm.add_constant(logit(score)), family=sm.families.Binomial()).fit(tol=1e-12)
        shift = sm.GLM(label, np.ones(len(label)), offset=logit(score), family=sm.families.Binomial()).fit(tol=1e-12)
        expected = [roc_auc_score(label, score), brier - best, label.var() - best]
        expected += [line.params[1], line.params[0], shift.params[0], line.bse[1], line.bse[0], shift.bse[0]]
        assert [values[name][i] for name in names] == approx([float(each) for each in expected], rel=1e-7)


@pytest.mark.parametrize("name", ranked.DEFINED)
def test_the_definitions_on_every_segment(make: Maker, name: str) -> None:
    values = found(make(TABLE), score="p", by="g", metrics=name)
    parts = [[(y, p) for g, y, p in zip(TABLE["g"], TABLE["y"], TABLE["p"], strict=True) if g == key] for key in "uvw"]
    same(values, {name: [ranked.DEFINED[name](part) for part in parts]})


# ---------------------------------------------------------------- kinds of scores
def test_ranks_are_those_of_the_raw_column(make: Maker) -> None:
    # https://github.com/OHDSI/PatientLevelPrediction/issues/590: the float64 sigmoid of 38, 40 and 45 is 1
    table = {"y": [0, 0, 1, 1], "p": [20.0, 38.0, 40.0, 45.0]}
    assert value(make, table, "auc", link="logit") == 1.0
    rounded = {"y": table["y"], "p": [1 / (1 + math.exp(-z)) for z in table["p"]]}
    assert value(make, rounded, "auc") == 0.75


def test_confidence_is_that_of_the_raw_column(make: Maker) -> None:
    table = {"y": [0, 0, 1, 1], "p": [20.0, 38.0, 40.0, 45.0]}
    # most confident first 45 and 40, right, then 38 and 20, wrong: (0 + 0 + 1/3 + 1/2) / 4
    assert value(make, table, "aurc", link="logit") == approx(5 / 24)


@pytest.mark.parametrize("link", ["probability", "logit"])
def test_float32_columns_are_what_they_hold(make: Maker, link: Any) -> None:
    rng = np.random.default_rng(3)
    score = rng.uniform(0.1, 0.9, 60).astype(np.float32)
    table = {"y": (rng.random(60) < score).astype(int), "p": score}
    values = found(make(table), score="p", metrics=BY_TALLY, link=link)
    wide = {**table, "p": score.astype(np.float64)}
    same(values, found(POLARS(wide), score="p", metrics=BY_TALLY, link=link), rel=1e-9)


def test_edges_of_float32_classes_are_where_their_digits_say(make: Maker) -> None:
    # .3 and .7 in float32 lie on either side of the float64 numbers; both begin a bin of ten
    part = {"pa": np.array([0.3, 0.3], np.float32), "pb": np.array([0.7, 0.7], np.float32)}
    table = {"y": ["a", "b"], **part, "pc": np.zeros(2, np.float32)}
    values = found(make(table), metrics=["confidence_ece", "classwise_mce"], bins=[0.0, 0.3, 0.7, 1.0])
    assert [values[name][0] for name in ("confidence_ece", "classwise_mce")] == approx([0.2, 0.2], rel=1e-6)


# ---------------------------------------------------------------- bins of equal weight
def quantiles(make: Maker, label: list[int], score: list[float], count: Any, **arguments: Any) -> dict[str, list[Any]]:
    table = {"y": label, "p": score, "g": ["x"] * len(label)}
    return rows(measure(make, table, metrics=["ece"], bins=count, strategy="quantile", **arguments))


def test_one_score_is_one_bin(make: Maker) -> None:
    # https://github.com/Khanz9664/TrustLens/issues/144
    values = quantiles(make, [1] * 3 + [0] * 7, [0.4] * 10, 5)
    assert (values["ece"], values["n"], values["note"]) == ([approx(0.1)], [10], ["1 of 5 bins have rows"])


def test_many_zeros_are_one_bin(make: Maker) -> None:
    # https://github.com/pandas-dev/pandas/issues/55991: .6 * 1/6 + .2 |.2 - 1/2| + .2 |.75 - 1|
    values = quantiles(make, [0, 0, 0, 0, 0, 1, 0, 1, 1, 1], [0.0] * 6 + [0.1, 0.3, 0.6, 0.9], 5)
    assert (values["ece"], values["note"]) == ([approx(0.1 + 0.06 + 0.05)], ["3 of 5 bins have rows"])


def test_the_bin_of_many_zeros_is_theirs_alone(make: Maker) -> None:
    table = {"y": [0, 0, 0, 0, 0, 1, 0, 1, 1, 1], "p": [0.0] * 6 + [0.1, 0.3, 0.6, 0.9]}
    curve = rows(calframe.curve(make(table), label="y", score="p", bins=5, strategy="quantile").table)
    assert (curve["n"], curve["mean_score"]) == ([6, 2, 2], approx([0.0, 0.2, 0.75]))
    assert (curve["rate"], curve["lower"], curve["upper"]) == (approx([1 / 6, 0.5, 1.0]), [0, 0.1, 0.6], [0, 0.3, 0.9])


def test_equal_scores_share_a_bin_whatever_their_order(make: Maker) -> None:
    # https://github.com/lorenzofamiglini/CalFram/pull/4: the four at .5 are right on average, cut 2 + 2 + 2 it is 1/3
    label, score = [0, 1, 0, 0, 1, 1], [0.1, 0.5, 0.5, 0.5, 0.5, 0.9]
    for order in ([0, 1, 2, 3, 4, 5], [5, 2, 4, 0, 3, 1], [3, 1, 0, 5, 4, 2]):
        values = quantiles(make, [label[i] for i in order], [score[i] for i in order], 3)
        assert values["ece"] == [approx(1 / 30)]


def test_constant_segments_have_one_bin_each(make: Maker) -> None:
    # https://github.com/pola-rs/polars/issues/10711
    table = {"g": ["a"] * 5 + ["b"] * 5, "p": [0.2] * 5 + [0.6] * 5, "y": [1, 0, 0, 0, 0, 1, 1, 1, 1, 0]}
    values = rows(measure(make, table, by="g", metrics="ece", bins=2, strategy="quantile"))
    assert (values["ece"], values["n"]) == (approx([0.0, 0.2]), [5, 5])
    assert values["note"] == ["1 of 2 bins have rows"] * 2


def test_quantiles_of_each_segment_are_its_own(make: Maker) -> None:
    # https://github.com/pola-rs/polars/issues/15670: |.15 - 0|, |.35 - 1/2|; |.65 - 1|, |.85 - 1/2|, half each
    table = {
        "g": ["a"] * 4 + ["b"] * 4,
        "p": [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9],
        "y": [0, 0, 1, 0, 1, 1, 0, 1],
    }
    results = [rows(measure(make, table, by="g", metrics="ece", bins=2, strategy="quantile")) for _ in range(5)]
    assert (results[0]["ece"], results[0]["note"]) == (approx([0.15, 0.35]), [None, None])
    assert all(result == results[0] for result in results)
    curve = rows(calframe.curve(make(table), label="y", score="p", by="g", bins=2, strategy="quantile").table)
    assert (curve["g"], curve["n"]) == (["a", "a", "b", "b"], [2] * 4)
    assert (curve["mean_score"], curve["rate"]) == (approx([0.15, 0.35, 0.65, 0.85]), [0.0, 0.5, 1.0, 0.5])


def test_every_row_is_in_a_bin_of_about_equal_weight(make: Maker) -> None:
    # https://github.com/texttron/BrowseComp-Plus/pull/18
    # 2 + 3 + 2 rows: (2 |.15 - 0| + 3 |.4 - 1/3| + 2 |.65 - 1|) / 7
    values = quantiles(make, [0, 0, 0, 1, 0, 1, 1], [k / 10 for k in range(1, 8)], 3)
    assert (values["ece"], values["note"]) == ([approx(0.171428571429, rel=1e-11)], [None])


@pytest.mark.parametrize(("n", "bins"), [(1, 1), (7, 1), (8, 2), (26, 2), (27, 3), (64, 4), (1000, 10)])
def test_the_automatic_number_is_the_cube_root(make: Maker, n: int, bins: int) -> None:
    # n distinct scores, every second positive; the same as the quantiles of that number
    table = {"y": [k % 2 for k in range(n)], "p": [(k + 0.5) / n for k in range(n)]}
    both = [{"bins": "auto"}, {"bins": bins, "strategy": "quantile"}]
    automatic, counted = (rows(measure(make, table, metrics=["ece", "mce"], **how)) for how in both)
    assert automatic == counted
    assert automatic["note"] == [None]


def test_the_automatic_number_never_falls_as_rows_are_added() -> None:
    counts = []
    for n in range(1, 130):
        table = {"y": [k % 2 for k in range(n)], "p": [(k + 0.5) / n for k in range(n)]}
        note = measure(POLARS, {"y": table["y"], "p": [0.5] * n}, metrics="ece", bins="auto")["note"][0]
        counts.append(1 if note is None else int(re.fullmatch(r"1 of (\d+) bins have rows", note)[1]))  # type: ignore[index]
    assert counts == [math.floor(round(n ** (1 / 3), 9)) for n in range(1, 130)]


# ---------------------------------------------------------------- many segments
def test_more_segments_than_sixteen_bits_tell_apart() -> None:
    # two rows each; of one class, ranked right, ranked wrong or tied, which decides auc and mcb
    n = 70_000
    kinds = np.arange(n) % 5
    score = np.array([[0.25, 0.5], [0.25, 0.75], [0.75, 0.25], [0.5, 0.5], [0.25, 1.0]])[kinds]
    label = np.array([[1, 1], [0, 1], [0, 1], [0, 1], [1, 0]])[kinds]
    order = np.random.default_rng(0).permutation(2 * n)
    table = {"g": np.repeat(np.arange(n), 2)[order], "y": label.ravel()[order], "p": score.ravel()[order]}
    auc = np.array([np.nan, 1.0, 0.0, 0.5, 0.0])[kinds]
    mcb = np.array([9 / 16 + 1 / 4, 1 / 8, 9 / 8 - 1 / 2, 0.0, 9 / 16 + 1 - 1 / 2])[kinds] / 2
    for extra in ({}, {"w": np.full(2 * n, 2.0)}):
        arguments: dict[str, Any] = {"weight": "w"} if extra else {}
        values = measure(POLARS, {**table, **extra}, by="g", metrics=["auc", "mcb", "confidence_mce"], **arguments)
        assert values["g"].to_list() == list(range(n))
        np.testing.assert_allclose(values["auc"].fill_null(np.nan).to_numpy(), auc)
        np.testing.assert_allclose(values["mcb"].to_numpy(), mcb, atol=1e-12)
        assert values["n"].to_list() == [2] * n


# ---------------------------------------------------------------- what leaves an engine
@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The numbers of rows that are fetched."""
    taken: list[int] = []
    collect = nw.LazyFrame.collect

    def watched(self: Any, *given: Any, **named: Any) -> Any:
        result = collect(self, *given, **named)
        taken.append(len(result))
        return result

    monkeypatch.setattr(nw.LazyFrame, "collect", watched)
    return taken


LONG = drawn(6000, seed=1)


@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        ({"score": "p"}, 1 + 39),
        ({"score": "p", "by": "g", "weight": "w"}, 3 + 3 * 39),
        ({"score": ["p", "pa"], "by": "g"}, 6 + 3 * (39 + 10)),
        ({"score": "p", "by": "g", "metrics": "ece", "bins": 5, "strategy": "quantile"}, 3 + 3 * 39),
        ({"score": "p", "link": "logit", "metrics": ["auc", "mcb"]}, 1 + 2 * 39),
    ],
    ids=["whole table", "segments", "models", "quantiles", "logits"],
)
def test_duckdb_hands_back_distinct_scores_not_rows(fetched: list[int], arguments: dict[str, Any], most: int) -> None:
    calframe.metrics(Maker("duckdb")(LONG), label="y", **{"metrics": BY_TALLY, **arguments})
    assert 0 < sum(fetched) <= most


# ---------------------------------------------------------------- the grid
def bounds(text: str) -> tuple[float, float]:
    """Return by how much the warning says that auc, and that ecce may move."""
    said = re.search(r"moves auc by at most (\S+) and ecce_r and ecce_mad by at most (\S+)\. Every", text)
    assert said is not None
    return float(said[1]), float(said[2])


@pytest.mark.parametrize("link", ["probability", "logit"])
@pytest.mark.parametrize("grid", [2**6, 2**14])
def test_too_many_scores_are_gathered_on_a_grid(monkeypatch: pytest.MonkeyPatch, grid: int, link: Any) -> None:
    monkeypatch.setattr(_reading, "MOST_CELLS", 100)
    monkeypatch.setattr(_reading, "GRID", grid)
    rng = np.random.default_rng(5)
    score = rng.random(900)
    table: dict[str, Any] = {"g": np.repeat(["u", "v", "w"], 300), "y": (rng.random(900) < score).astype(int)}
    score[:6] = [0.0, 0.0, 1.0, 1.0, 5e-324, 1 - 2**-53]
    table["p"] = score if link == "probability" else rng.normal(0, 3, 900)
    arguments: dict[str, Any] = {"by": "g", "metrics": ["auc", "ecce_r", "ecce_mad", "mcb", "citl"], "link": link}
    exact = found(POLARS(table), score="p", **arguments)
    with pytest.warns(CalframeWarning, match=f"more than 100 distinct scores: .* on a grid of {grid:,} logits") as said:
        values = found(Maker("duckdb")(table), score="p", **arguments)
    texts = [str(each.message) for each in said]
    by_auc, by_ecce = (max(each) for each in zip(*map(bounds, texts), strict=True))
    assert (values["n"], values["g"]) == ([300] * 3, ["u", "v", "w"])
    for name, most in (("auc", by_auc), ("ecce_r", by_ecce), ("ecce_mad", by_ecce)):
        off = np.abs(np.array(values[name]) - np.array(exact[name]))
        assert off.max() <= most * (1 + 5e-3), name  # which is printed with two digits
    same(values, {"citl": exact["citl"]}, rel=0.05)


def test_few_scores_need_no_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    # many rows, but 39 distinct scores in each of three segments
    monkeypatch.setattr(_reading, "MOST_CELLS", 3 * 39)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = found(Maker("duckdb")(LONG), score="p", by="g", metrics=["auc", "mcb"])
    same(values, found(POLARS(LONG), score="p", by="g", metrics=["auc", "mcb"]), rel=1e-9)


def test_duckdb_stays_on_its_own_connection() -> None:
    connection = duckdb.connect()
    connection.execute("create table scored as select i % 2 as y, i / 10 as p from range(10) r(i)")
    values = found(connection.table("scored"), score="p", metrics=["auc", "unc", "confidence_ece"])
    # positives at .1, .3, ... .9 outrank 1 + 2 + 3 + 4 + 5 of 25 pairs
    same(values, {"auc": [15 / 25], "unc": [0.25]})
    assert connection.sql("select count(*) from duckdb_tables()").fetchall() == [(1,)]
    assert column(connection.sql("select count(*) as k from duckdb_views() where not internal").pl(), "k") == [0]
