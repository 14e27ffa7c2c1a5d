"""Audits of rows in clusters: against copies of rows, sums by hand, and how often right scores are called off."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import calframe
from tests._tables import Maker, approx
from tests.simulations.audit import clustered_table

COLUMNS: dict[str, Any] = {"label": "y", "score": "p", "by": ["g", "h"], "cluster": "c"}


def drawn(n: int = 3000, *, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    score = rng.beta(2.0, 2.0, n)
    return pl.DataFrame(
        {
            "g": [(None, "a", "b")[i] for i in rng.integers(0, 3, n)],
            "h": rng.choice(["x", "y"], n),
            "c": [f"k{i}" for i in rng.integers(0, 400, n)],
            "p": score,
            "y": (rng.random(n) < score - 0.02).astype(np.int64),
            "w": rng.uniform(0.5, 2.0, n),
        }
    )


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("weight", [None, "w"])
def test_copies_of_every_row_change_nothing(depth: int, weight: str | None) -> None:
    once = drawn().with_columns(c=pl.int_range(3000))  # each row a cluster, and then each row with its copies
    one, many = (calframe.audit(data, depth=depth, weight=weight, **COLUMNS) for data in (once, pl.concat([once] * 20)))
    assert one.verdict == many.verdict
    joined = one.table.join(many.table, on="segment")
    for name in ("gap_low", "gap_high", "simultaneous_low", "pvalue", "pvalue_to_rest", "gap_shrunken", "verdict"):
        assert joined[name].to_list() == approx(joined[f"{name}_right"].to_list(), rel=1e-9), name
    assert one.overall["pvalue"] == pytest.approx(many.overall["pvalue"], rel=1e-9)
    value, again = (found.disparities["low"].to_list() for found in (one, many))
    assert value == pytest.approx(again, rel=1e-9)


def test_intervals_go_by_the_totals_of_clusters() -> None:
    # The design effect summed row by row here, totals over what is left without a cluster as the jackknife has it, and
    # Korn and Graubard's interval from the quantiles of Beta and t.
    data = drawn(seed=1)
    found = calframe.audit(data, **COLUMNS, depth=1).table
    compared = int((found["verdict"] != "few").sum())
    tail = 0.05 / 2 / compared
    for row in found.iter_rows(named=True):
        column, value = row["segment"].split("=")
        here = data.filter(pl.col(column).fill_null("(missing)") == value)
        y, p = here["y"].to_numpy(), here["p"].to_numpy()
        left = y - p + (p.mean() - y.mean())
        of = [(here["c"] == name).to_numpy() for name in here["c"].unique()]
        totals = [left[rows].sum() / (1 - rows.mean()) for rows in of]
        number = 1 / sum(rows.mean() ** 2 for rows in of)
        effect = max(1.0, sum(total**2 for total in totals) / sum(left**2))
        ratio = stats.t.ppf(1 - tail, number - 1) / stats.norm.ppf(1 - tail)
        n = len(y) / (effect * ratio**2)
        k, level = n * y.mean(), 0.95 ** (1 / compared)
        low, high = stats.beta.ppf((1 - level) / 2, k, n - k + 1), stats.beta.ppf((1 + level) / 2, k + 1, n - k)
        assert [row["simultaneous_low"], row["simultaneous_high"]] == pytest.approx([p.mean() - high, p.mean() - low])


def test_rows_without_a_cluster_are_clusters_of_their_own(make: Maker) -> None:
    data = drawn(600).with_columns(c=pl.when(pl.col("c") < "k3").then("c"))
    named = data.with_columns(c=pl.coalesce("c", pl.format("row {}", pl.int_range(600))))
    found, expected = (
        calframe.audit(make(table.to_dict(as_series=False)), **COLUMNS).to_dict()["table"] for table in (data, named)
    )
    for name in ("segment", "simultaneous_low", "pvalue_to_rest", "verdict"):
        assert [row[name] for row in found] == approx([row[name] for row in expected], rel=1e-9), name


def test_one_large_cluster_is_one() -> None:
    # three quarters of all rows share one luck with a chance of 0.2: nobody knows how large it was
    rng, pvalues = np.random.default_rng(2), []
    for _ in range(10):
        score, own = np.full(4000, 0.5), rng.random(4000)
        luck = np.where((np.arange(4000) < 3000) & (rng.random(4000) < 0.2), rng.random(), own)
        rows = pl.DataFrame({"y": (luck < score).astype(np.int64), "p": score}).with_columns(
            c=pl.when(pl.int_range(4000) < 3000).then(pl.lit("large")), g=pl.int_range(4000) % 2
        )
        found = calframe.audit(rows, label="y", score="p", by="g", cluster="c")
        assert set(found.table["verdict"]) == {"few"}
        assert found.overall["verdict"] == "few"
        apart = rows.with_columns(g=pl.int_range(4000) >= 3000)
        pvalues += calframe.audit(apart, label="y", score="p", by="g", cluster="c").table["pvalue_to_rest"].to_list()
    assert set(pvalues) == {None}  # what is compared is one cluster, or is compared with one


def test_a_column_beside_others_is_compared_as_by_itself() -> None:
    rows = drawn(seed=3).with_columns(c=pl.int_range(3000) // 40, h=pl.int_range(3000) < 2400)
    asked = {"label": "y", "score": "p", "cluster": "c", "min_rows": 5, "correction": "none", "depth": 1}
    alone = calframe.audit(rows, by="h", **asked).table
    assert alone["pvalue_to_rest"].to_list() == [None, None]  # the rest of each has too few clusters
    for by in (["g", "h"], ["h", "g"]):
        beside = calframe.audit(rows, by=by, **asked).table.filter(columns="h")
        assert beside["pvalue_to_rest"].to_list() == [None, None]


def test_few_clusters_judge_nothing() -> None:
    rows = drawn(2000).with_columns(c=pl.int_range(2000) % 15)
    found = calframe.audit(rows, label="y", score="p", by="h", cluster="c")
    assert found.table["verdict"].to_list() == ["few", "few"]
    assert found.table["note"].to_list() == ["gap not judged: too few clusters to be sure of 10 of each outcome"] * 2
    assert found.multicalibration is None
    assert found.convention["cluster"] == "c"
    assert found.convention["ecce"] is False


def test_right_scores_in_clusters_seldom_raise_an_alarm() -> None:
    rng, alarms, without, tables = np.random.default_rng(1), 0, 0, 60
    for _ in range(tables):
        data = clustered_table(rng, segments=8, clusters=50, size=20, shared=0.3, rate=0.5)
        asked = {"label": "y", "score": "p", "by": "g", "tolerance": 0.001, "ecce": False}
        alarms += calframe.audit(data, cluster="c", **asked).verdict in ("watch", "action needed")
        without += calframe.audit(data, **asked).verdict in ("watch", "action needed")
    assert alarms <= 0.05 * tables + 2 * np.sqrt(0.05 * 0.95 * tables)
    assert without > 0.3 * tables  # as if rows were independent


def test_rows_misstated_and_needed_count_as_often_as_weights_say() -> None:
    data = drawn(400).with_columns(w=pl.int_range(400) % 3 + 1)
    asked = {"label": "y", "score": "p", "by": "h", "ecce": False}
    weighted = calframe.audit(data, weight="w", weight_kind="frequency", **asked).table
    repeated = calframe.audit(data.select(pl.all().repeat_by("w").explode()), **asked).table
    for name in ("net", "rows_needed", "simultaneous_high", "pvalue"):
        assert weighted[name].to_list() == approx(repeated[name].to_list(), rel=1e-9), name
