"""Binned curves of rows in clusters: by hand, against copies of rows, and how often intervals and bands hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

import calframe
from tests._tables import Maker, approx, rows
from tests.test_laziness import Counted

ROLES: dict[str, Any] = {"label": "y", "score": "p"}
ENDS = ["rate_low", "rate_high", "band_low", "band_high"]


def drawn(n: int = 600, *, seed: int = 0, clusters: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    score, cluster = rng.beta(2.0, 2.0, n), rng.integers(0, clusters, n)
    luck = np.where(rng.random(n) < 0.5, rng.random(clusters)[cluster], rng.random(n))
    return pl.DataFrame(
        {
            "g": rng.choice(["a", "b"], n),
            "c": [f"k{i}" for i in cluster],
            "p": score,
            "y": (luck < score).astype(np.int64),
            "w": rng.integers(1, 4, n),
        }
    )


def drawn_up(data: Any, *, cluster: str | None = "c", **arguments: Any) -> dict[str, list[Any]]:
    return rows(calframe.curve(data, **{**ROLES, "cluster": cluster, **arguments}).table)


def test_a_bin_by_hand() -> None:
    # All rows in one bin: clusters left out one at a time, Kish's number of them, Student's t, then Wilson's interval
    data = drawn(300)
    y = data["y"].to_numpy()
    of = [(data["c"] == name).to_numpy() for name in data["c"].unique()]
    left = np.array([y[~each].mean() for each in of]) - y.mean()
    effect = (len(of) - 1) / len(of) * (left**2).sum() / (y.var() / 300)
    freedom = 1.0 / sum(each.mean() ** 2 for each in of) - 1.0
    n = 300 / (effect * (stats.t.isf(0.025, freedom) / stats.norm.isf(0.025)) ** 2)
    expected = [float(end) for end in proportion_confint(n * y.mean(), n, method="wilson")]
    found = drawn_up(data, bins=1)
    assert [found["rate_low"][0], found["rate_high"][0]] == approx(expected, rel=1e-8)
    assert n < 250


def test_a_band_is_that_of_the_rows_that_are_left() -> None:
    # Equal scores in clusters of ten that share all their luck: of 60 clusters 59 / (t / z)^2 rows are left
    data = pl.DataFrame({"c": np.arange(600) // 10, "p": np.full(600, 0.5), "y": np.repeat(np.arange(60) % 2, 10)})
    found = drawn_up(data, bins=1, confidence_level=0.9)
    n = 59 / (stats.t.isf(0.05, 59) / stats.norm.isf(0.05)) ** 2
    spread = stats.norm.isf(0.05) * 0.5 / np.sqrt(n)
    assert found["band_low"][0] == pytest.approx(0.5 - spread, abs=0.5 / n)  # one step of the Binomial at most
    assert found["band_high"][0] == pytest.approx(0.5 + spread, abs=0.5 / n)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_copies_of_every_row_change_nothing(strategy: str, weight: str | None) -> None:
    once = drawn().with_columns(c=pl.int_range(600))
    one, many = (
        drawn_up(data, by="g", weight=weight, bins=5, strategy=strategy) for data in (once, pl.concat([once] * 20))
    )
    for name in ENDS:
        assert many[name] == approx(one[name], rel=1e-7), name


def test_bins_of_equal_weight_are_those_between_their_edges() -> None:
    data = drawn()
    found = drawn_up(data, weight="w", bins=5, strategy="quantile")
    edges = [0.0, *found["lower"][1:], 1.0]
    between = drawn_up(data, weight="w", bins=edges)
    for name in ["n", "rate", *ENDS]:
        assert found[name] == approx(between[name], rel=1e-9), name


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_every_library_gives_the_same(make: Maker, strategy: str) -> None:
    data = drawn(200).with_columns(c=pl.when(pl.col("c") > "k3").then("c"))  # a row without a cluster is one of its own
    named = data.with_columns(c=pl.coalesce("c", pl.format("row {}", pl.int_range(200))))
    asked = {"by": "g", "bins": 4, "strategy": strategy}
    found = drawn_up(make(data.to_dict(as_series=False)), **asked)
    expected = drawn_up(named, **asked)
    assert {name: found[name] for name in expected} == {name: approx(expected[name], rel=1e-8) for name in expected}


def test_values_do_not_depend_on_clusters() -> None:
    found, usual = (drawn_up(drawn(), by="g", cluster=each) for each in ("c", None))
    same = ["g", "bin", "lower", "upper", "n", "mean_score", "rate", "gap"]
    assert [found[name] for name in same] == [usual[name] for name in same]


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_a_lazy_table_is_read_once(strategy: str) -> None:
    source = Counted(drawn())
    calframe.curve(source.lazy, **ROLES, cluster="c", strategy=strategy)
    assert source.reads == 1


def test_intervals_and_bands_hold_where_rows_share_their_luck() -> None:
    # 200 tables of right scores, 40 clusters of 10; three standard errors of a share of 200 at 0.9 are 0.064
    tables, truth = 200, np.array([0.2, 0.5, 0.8])
    rng = np.random.default_rng(1)
    cluster, score = np.repeat(np.arange(40 * tables), 10), rng.random(400 * tables)
    luck = np.where(rng.random(len(score)) < 0.6, rng.random(40 * tables)[cluster], rng.random(len(score)))
    data = pl.DataFrame({"r": cluster // 40, "c": cluster, "p": score, "y": (luck < score) * 1})
    asked = {"by": "r", "bins": [0.0, 0.4, 0.6, 1.0], "confidence_level": 0.9}
    least = 0.9 - 3.0 * np.sqrt(0.9 * 0.1 / tables)
    for name, holds in (("c", True), (None, False)):
        found = {key: np.array(values) for key, values in drawn_up(data, cluster=name, **asked).items()}
        right = truth[found["bin"]]
        inside = (found["rate_low"] <= right) & (right <= found["rate_high"])
        shown = (found["band_low"] <= found["rate"]) & (found["rate"] <= found["band_high"])
        for each in (inside, shown):
            shares = [each[found["bin"] == place].mean() for place in range(3)]
            assert (min(shares) >= least) == holds


def test_a_bin_of_one_cluster_has_no_interval() -> None:
    data = pl.DataFrame({"c": [1, 1, 1, 2], "p": [0.1, 0.2, 0.8, 0.9], "y": [0, 1, 1, 0]})
    found = calframe.curve(data, **ROLES, cluster="c", bins=2)
    assert found.table.select(ENDS).row(0) == (None,) * 4
    assert None not in found.table.select(ENDS).row(1)
    assert found.plot().to_dict()
    assert found.to_dict()["convention"]["cluster"] == "c"


@pytest.mark.parametrize("method", ["isotonic", "kernel", "loess"])
def test_other_curves_take_rows_as_independent(method: Any) -> None:
    match = f"cluster= is not used with method='{method}': its intervals and band are for independent rows"
    with pytest.raises(calframe.ArgumentError, match=match):
        calframe.curve(drawn(), **ROLES, cluster="c", method=method)


def test_a_method_of_frames_takes_clusters() -> None:
    found = drawn().calib.curve(**ROLES, cluster="c", bins=3)  # type: ignore[attr-defined]
    assert rows(found.table) == drawn_up(drawn(), bins=3)
