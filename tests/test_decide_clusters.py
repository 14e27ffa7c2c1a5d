"""Decisions on rows that are not independent: intervals against copies, sums by loops, and how often they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import optimize, stats
from statsmodels.stats.proportion import proportion_confint

import calframe
from calframe import ColumnNotFoundError
from calframe._decide import Decisions, decide
from calframe._kernels._intervals import loss_interval
from tests._clustered import drawn, student
from tests._tables import Maker, approx, rows

ENDS = ["cost_low", "cost_high", "saved_low", "saved_high"]


def found(data: Any, **arguments: Any) -> Decisions:
    return decide(data, **{"label": "y", "score": "p", "cost_fp": 1.0, "cost_fn": 3.0, "cluster": "c", **arguments})


@pytest.mark.parametrize("copies", [1, 20])
def test_copies_of_every_row_change_nothing_but_for_student(copies: int) -> None:
    # equal costs: the mean cost is half the share of errors, and its interval Wilson's of n / r rows
    once = drawn().with_columns(c=pl.int_range(400))
    many = found(pl.concat([once] * copies), cost_fp=0.5, cost_fn=0.5)
    n = 400 / student(400)
    errors = ((once["p"] >= 0.5) != (once["y"] == 1)).mean()
    row = many.table.to_dicts()[0]
    assert row["cost"] == pytest.approx(errors / 2)
    assert [2 * row["cost_low"], 2 * row["cost_high"]] == approx(proportion_confint(n * errors, n, method="wilson"))
    single = found(once, cost_fp=0.5, cost_fn=0.5)
    for name in ENDS:
        assert row[name] == pytest.approx(single.table[name][0], rel=1e-9), name
    for name in ("cost", "cost_low", "cost_high"):
        assert many.curve[name].to_list() == approx(single.curve[name].to_list(), rel=1e-9), name


def test_rows_that_are_clusters_have_the_plain_interval_but_for_student() -> None:
    data = drawn(4000).with_columns(c=pl.int_range(4000))
    clustered, plain = found(data).table.to_dicts()[0], found(data, cluster=None).table.to_dicts()[0]
    for name in ENDS:
        value = name.split("_")[0]
        wider = (clustered[name] - clustered[value]) / (plain[name] - plain[value])
        level = 0.975 if name == "saved_high" else 0.95
        assert wider == pytest.approx(np.sqrt(student(4000, level)), rel=1e-4), name


def test_six_rows_in_three_clusters_by_hand() -> None:
    # acted on from 1/4: costs 0, 0 | 0, 1 | 1, 3. About m the clusters have -2m, 1 - 2m and 4 - 2m.
    data = pl.DataFrame({"y": [1, 1, 1, 0, 0, 1], "p": [0.9, 0.8, 0.7, 0.6, 0.5, 0.1], "c": list("aabbcc")})

    def effect(m: float) -> float:
        clustered = 4 * m**2 + (1 - 2 * m) ** 2 + (4 - 2 * m) ** 2
        single = 3 * m**2 + 2 * (1 - m) ** 2 + (3 - m) ** 2
        return max(clustered / single, 1.0)

    def end(m: float, side: int) -> float:
        n, one = np.array([6 / effect(m) / student(3)]), np.ones(1)
        return float(loss_interval(one * 5 / 6, one * 11 / 6, n, right=0 * one, wrong=3 * one, level=0.95)[side][0] - m)

    row = found(data).table.to_dicts()[0]
    assert row["cost"] == pytest.approx(5 / 6)
    assert effect(5 / 6) == pytest.approx((25 / 9 + 4 / 9 + 49 / 9) / (25 / 12 + 1 / 18 + 169 / 36))
    assert row["cost_low"] == pytest.approx(optimize.brentq(end, 0.0, 5 / 6, args=(0,)), abs=1e-6)
    assert row["cost_high"] == pytest.approx(optimize.brentq(end, 5 / 6, 3.0, args=(1,)), abs=1e-6)


@pytest.mark.parametrize("weight", [None, "w"])
def test_intervals_solve_for_their_design_effect_at_every_threshold(weight: str | None) -> None:
    data = drawn(seed=1).with_row_index("i").with_columns(w=pl.col("w").cast(pl.Float64) if weight else pl.lit(1.0))
    curve = found(data, by="g", weight=weight, thresholds=[0.0, 0.2, 0.5, 0.77, 1.0]).curve
    for row in curve.to_dicts():
        here = data.filter(pl.col("g").eq_missing(row["g"]))
        w, y = here["w"].to_numpy(), here["y"].to_numpy()
        cost = np.where(here["p"].to_numpy() >= row["threshold"], 1.0 - y, 3.0 * y)
        names = here.select(pl.coalesce("c", pl.format("row {}", "i"))).to_series()
        of = [(names == name).to_numpy() for name in names.unique()]
        count = w.sum() ** 2 / sum(w[cluster].sum() ** 2 for cluster in of)
        mean, second = (np.array([(w * values).sum() / w.sum()]) for values in (cost, cost**2))
        dearest = np.array([1.0 if row["threshold"] == 0.0 else 3.0])
        assert row["cost"] == pytest.approx(mean[0])
        for side, name in enumerate(("cost_low", "cost_high")):
            off = w * (cost - row[name])
            effect = max(sum(off[cluster].sum() ** 2 for cluster in of) / (off**2).sum(), 1.0)
            n = np.array([w.sum() ** 2 / (w**2).sum() / effect / student(count)])
            end = loss_interval(mean, second, n, right=np.zeros(1), wrong=dearest, level=0.95)[side][0]
            assert row[name] == pytest.approx(end, abs=1e-4)


def test_rows_that_all_cost_nothing_count_as_their_clusters() -> None:
    # no event in thirty clusters: Wilson's upper end z^2 / (n + z^2) at n = 30 / r, of 600 rows
    data = pl.DataFrame({"y": [0, 1] * 300, "p": [0.1, 0.9] * 300}).with_columns(c=pl.int_range(600) // 20)
    row = found(data, cost_fp=1.0, cost_fn=1.0).table.to_dicts()[0]
    n, z = 30 / student(30), stats.norm.ppf(0.975)
    assert [row["cost_low"], row["cost_high"]] == approx([0.0, z**2 / (n + z**2)])


def test_a_single_cluster_tells_nothing() -> None:
    row = found(drawn().with_columns(c=pl.lit("a"))).table.to_dicts()[0]
    assert [row[name] for name in ENDS] == pytest.approx([0.0, 3.0, -3.0, 1.0], abs=0.01)


def test_every_library_gives_the_same(make: Maker) -> None:
    data = drawn()
    expected, result = found(data, by="g"), found(make(data.to_dict(as_series=False)), by="g")
    for name in ("table", "curve"):
        given, wanted = rows(getattr(result, name)), rows(getattr(expected, name))
        assert given == {key: approx(values, rel=1e-9) for key, values in wanted.items()}


def test_counted_rows_are_the_row_again() -> None:
    data = drawn()
    counted = found(data, weight="w", weight_kind="frequency", by="g")
    repeated = found(data.select(pl.all().repeat_by("w").explode()), by="g")
    for name in ENDS:
        assert counted.table[name].to_list() == approx(repeated.table[name].to_list(), rel=1e-9), name


def test_models_and_segments_are_judged_as_if_alone() -> None:
    data = drawn()
    both = found(data, score=["p", "q"], by="g")
    for model in ("p", "q"):
        for segment in ("a", "b", None):
            here = pl.col("g").eq_missing(segment)
            alone = found(data.filter(here), score=model)
            for name in ("table", "curve"):
                mine = rows(getattr(both, name).filter(here, model=model).drop("g", "model"))
                assert mine == {key: approx(values, rel=1e-9) for key, values in rows(getattr(alone, name)).items()}


def test_values_are_those_of_rows() -> None:
    data = drawn()
    clustered, plain = found(data, by="g"), found(data, by="g", cluster=None)
    assert clustered.table.drop(ENDS).equals(plain.table.drop(ENDS))
    assert clustered.curve.drop(ENDS[:2]).equals(plain.curve.drop(ENDS[:2]))


def test_results_say_what_is_independent() -> None:
    data = drawn()
    result = data.calib.decide(label="y", score="p", cluster="c", threshold=0.3)
    assert result.roles["cluster"] == "c"
    assert result.to_dict()["convention"]["cluster"] == "c"
    with pytest.raises(ColumnNotFoundError, match="person"):
        calframe.decide(data, label="y", score="p", cluster="person", threshold=0.3)


@pytest.mark.parametrize(("clusters", "size"), [(20, 20), (60, 20)])
def test_intervals_hold_where_clusters_share_their_luck(clusters: int, size: int) -> None:
    # right scores of Beta(2, 2), acted on from 0.2 at costs of 1 and 4; two rows of a cluster have one luck with 0.3
    tables, law, rng = 200, stats.beta(2, 2), np.random.default_rng(1)
    score = law.rvs(tables * clusters * size, random_state=rng)
    cluster = np.arange(len(score)) // size
    together = rng.random(len(score)) < np.sqrt(0.3)
    luck = np.where(together, rng.random(tables * clusters)[cluster], rng.random(len(score)))
    data = pl.DataFrame({"y": (luck < score).astype(np.int64), "p": score, "c": cluster, "g": cluster // clusters})
    missed = law.expect(lambda p: 4 * p, ub=0.2)
    true = missed + law.expect(lambda p: 1 - p, lb=0.2)
    arguments = {"by": "g", "cost_fn": 4.0, "thresholds": []}
    table, plain = (found(data, cluster=column, **arguments).table for column in ("c", None))
    error = 2 * np.sqrt(0.05 * 0.95 / tables)
    assert table.select(pl.lit(true).is_between("cost_low", "cost_high").mean()).item() >= 0.95 - error
    assert plain.select(pl.lit(true).is_between("cost_low", "cost_high").mean()).item() < 0.93
    assert (table["saved_low"] <= 0.5 - true).mean() >= 0.975 - error
    assert (table["saved_high"] >= 0.5 - true).mean() >= 0.975 - error
