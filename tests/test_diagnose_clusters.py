"""Patterns of rows that are not independent: against copies, statsmodels, covariances by loops, and right scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from scipy import optimize, stats
from statsmodels.stats.proportion import proportion_confint

import calframe
from calframe import ColumnNotFoundError
from calframe._diagnose import Diagnosis, diagnose
from tests._clustered import student
from tests._tables import Maker, approx, rows

ENDS = [f"{name}_{end}" for name in ("gap", "slope", "intercept", "citl") for end in ("low", "high")]
ENDS += [f"{side}_gap_{end}" for side in ("over", "under") for end in ("low", "high")]


def found(data: Any, **arguments: Any) -> Diagnosis:
    return diagnose(data, **{"label": "y", "score": "p", "cluster": "c", **arguments})


def drawn(n: int = 900, *, seed: int = 0, slope: float = 0.7) -> pl.DataFrame:
    """Return rows with weights, segments and clusters that reach over segments."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.uniform(0.02, 0.98, n), 2)
    chance = 1 / (1 + ((1 - score) / score) ** slope)
    return pl.DataFrame(
        {
            "y": (rng.random(n) < chance).astype(np.int64),
            "p": score,
            "w": rng.choice([1, 2, 3], n),
            "g": [(None, "a", "b")[i] for i in rng.integers(0, 3, n)],
            "c": [f"k{i}" if i % 5 else None for i in rng.integers(0, 100, n)],
        }
    )


def shared(*, tables: int, clusters: int, size: int, seed: int) -> pl.DataFrame:
    """Return tables of right scores whose rows are copies of one row a cluster."""
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.02, 0.98, tables * clusters)
    label, number = (rng.random(len(score)) < score).astype(np.int64), np.arange(len(score))
    once = pl.DataFrame({"y": label, "p": score, "c": number, "g": number // clusters})
    return pl.concat([once] * size)


def test_copies_of_every_row_change_nothing() -> None:
    once = drawn().with_columns(c=pl.int_range(900))
    one, many = (found(data).table for data in (once, pl.concat([once] * 20)))
    for name in ("pattern", "map"):
        assert one[name].to_list() == many[name].to_list()
    for name in [*ENDS, "slope", "over_from", "band_share", "pvalue_line", "pvalue_curve", "pvalue_line_adjusted"]:
        assert one[name].to_list() == approx(many[name].to_list(), rel=1e-8), name
    # what one copy alone has: the same tests, and intervals that are wider by Student's t
    plain = found(once, cluster=None).table.to_dicts()[0]
    row = many.to_dicts()[0]
    assert (row["pattern"], row["map"]) == (plain["pattern"], plain["map"]) == ("over-confident", "temperature")
    assert [row["pvalue_line"], row["pvalue_curve"]] == approx([plain["pvalue_line"], plain["pvalue_curve"]])
    for name in ("slope", "intercept", "citl"):
        wider = (row[f"{name}_high"] - row[name]) / (plain[f"{name}_high"] - plain[name])
        assert wider == pytest.approx(np.sqrt(student(900))), name
    n = 900 / student(900)
    low, high = proportion_confint(n * row["rate"], n, method="wilson")
    assert [row["gap_low"], row["gap_high"]] == approx([row["mean_score"] - high, row["mean_score"] - low])


def test_the_gap_of_six_rows_in_three_clusters_by_hand() -> None:
    # scores of 1/2: residuals from a rate m as of labels alone, 2 - 2m, 1 - 2m and 1 - 2m of the clusters
    data = pl.DataFrame({"y": [1, 1, 1, 0, 1, 0], "p": [0.5] * 6, "c": list("aabbcc")})

    def end(m: float, side: int) -> float:
        clustered, single = 4 * (1 - m) ** 2 + 2 * (1 - 2 * m) ** 2, 4 * (1 - m) ** 2 + 2 * m**2
        n = 6 / max(clustered / single, 1.0) / student(3)
        return float(proportion_confint(n * 4 / 6, n, method="wilson")[side] - m)

    row = found(data).table.to_dicts()[0]
    high, low = (optimize.brentq(end, *ends) for ends in ((0.0, 2 / 3, (0,)), (2 / 3, 1.0, (1,))))
    assert [row["gap_low"], row["gap_high"]] == pytest.approx([0.5 - low, 0.5 - high], abs=1e-6)
    assert row["pattern"] == "not decided"


def test_variances_of_the_line_against_statsmodels() -> None:
    # robust variances of clusters over robust ones of rows are the design effect
    data = drawn(seed=2).with_row_index("i").with_columns(c=pl.coalesce("c", pl.format("row {}", "i")))
    z = np.log(data["p"] / (1 - data["p"])).to_numpy()
    groups = data["c"].rank("dense").to_numpy().astype(int)
    count = 900**2 / (np.bincount(groups) ** 2).sum()
    row = found(data).table.to_dicts()[0]
    free = sm.GLM(data["y"].to_numpy(), sm.add_constant(z), family=sm.families.Binomial())
    level = sm.GLM(data["y"].to_numpy(), np.ones(900), offset=z, family=sm.families.Binomial())
    by_cluster = {"cov_type": "cluster", "cov_kwds": {"groups": groups, "use_correction": False}}
    for model, names in ((free, ["intercept", "slope"]), (level, ["citl"])):
        plain, clustered, robust = model.fit(), model.fit(**by_cluster), model.fit(cov_type="HC0")
        effect = np.maximum(np.diag(clustered.cov_params()) / np.diag(robust.cov_params()), 1.0)
        half = 1.959963984540054 * np.sqrt(np.diag(plain.cov_params()) * effect * student(count))
        for place, name in enumerate(names):
            wanted = [plain.params[place] - half[place], plain.params[place] + half[place]]
            assert [row[f"{name}_low"], row[f"{name}_high"]] == pytest.approx(wanted, rel=1e-5, abs=1e-7), name


def test_the_line_by_covariances_of_pairs() -> None:
    # labels of a pair come from one draw with a chance rho: their covariance is rho (min(s, t) - s t)
    data = drawn(seed=5, slope=1.0).with_columns(c=pl.int_range(900) // 3)
    s, y, c = data["p"].to_numpy(), data["y"].to_numpy(), data["c"].to_numpy()
    pair = (c[:, None] == c[None, :]) & ~np.eye(900, dtype=bool)
    one, off = np.minimum.outer(s, s) - np.outer(s, s), y - s
    alike = (pair * np.outer(off, off)).sum() / (pair * np.outer(off**2, np.ones(900))).sum()
    rho = np.clip(alike * (pair * np.outer(s * (1 - s), np.ones(900))).sum() / (pair * one).sum(), 0.0, 1.0)
    covariance = rho * pair * one + np.diag(s * (1 - s))
    x = np.array([np.ones(900), np.log(s / (1 - s))])
    sums, spread = x @ off, x @ covariance @ x.T
    row = found(data).table.to_dicts()[0]
    assert row["pvalue_line"] == pytest.approx(stats.chi2.sf(sums @ np.linalg.solve(spread, sums), 2))
    assert row["pvalue_line"] > 0.1  # so that no labels are drawn


@pytest.mark.parametrize("seed", [1, 2])
def test_right_scores_in_clusters_seldom_show_a_pattern(seed: int) -> None:
    data, tables = shared(tables=60, clusters=150, size=4, seed=seed), 60
    asked = {"by": "g", "correction": "none", "n_resamples": 200}
    clustered, plain = (found(data, cluster=column, **asked).table for column in ("c", None))
    most = 0.05 + 2 * np.sqrt(0.05 * 0.95 / tables)
    for name in ("pvalue_line", "pvalue_curve"):
        assert (clustered[name] <= 0.05).mean() <= most, name
        assert (plain[name] <= 0.05).mean() > 0.3, name
    assert set(clustered["pattern"]) >= {"none found"}
    assert (plain["pattern"] == "none found").sum() < (clustered["pattern"] == "none found").sum()


def test_errors_of_extreme_scores_go_by_clusters() -> None:
    rng = np.random.default_rng(0)
    score = np.where(rng.random(400) < 0.5, 0.005, 0.995)
    label = np.where(rng.random(400) < 0.04, score < 0.5, score > 0.5).astype(np.int64)
    once = pl.DataFrame({"y": label, "p": score, "c": np.arange(400)})
    one, many = (found(data).table.to_dicts()[0] for data in (once, pl.concat([once] * 5)))
    for name in ("extreme_error", "extreme_error_low", "extreme_error_high"):
        assert many[name] == pytest.approx(one[name]), name
    n = 400 / student(400)
    ends = proportion_confint(n * one["extreme_error"], n, method="wilson")
    assert [many["extreme_error_low"], many["extreme_error_high"]] == approx(list(ends))
    assert many["pattern"] == one["pattern"] == "extreme"
    few = found(pl.concat([once] * 5).with_columns(pl.col("c") % 20)).table.to_dicts()[0]
    assert few["pvalue_extreme"] is None
    assert few["pattern"] != "extreme"
    assert "fewer than 25 clusters: errors of extreme scores are not tested" in few["note"]


def test_few_clusters_of_copies_are_few_rows() -> None:
    data = shared(tables=1, clusters=50, size=20, seed=0)
    result = found(data)
    assert result.table["pattern"].to_list() == ["not decided"]
    sentence = result.table["sentence"][0]
    worth = f"worth {50 / student(50):.0f} independent ones"
    assert sentence == f"Can't tell yet from 1,000 rows, {worth}: 100 are needed, and of each outcome 10."
    alone = found(data.with_columns(c=pl.lit("a"))).table.to_dicts()[0]
    assert alone["pattern"] == "not decided"
    assert [alone["gap_low"], alone["gap_high"]] == pytest.approx(
        [alone["mean_score"] - 1, alone["mean_score"]], abs=1e-3
    )


def test_every_library_gives_the_same(make: Maker) -> None:
    data = drawn()
    expected, result = found(data, by="g").table, found(make(data.to_dict(as_series=False)), by="g").table
    assert rows(result) == {key: approx(values, rel=1e-8) for key, values in rows(expected).items()}


def test_counted_rows_are_the_row_again() -> None:
    data = drawn()
    counted = found(data, weight="w", weight_kind="frequency").table
    repeated = found(data.select(pl.all().repeat_by("w").explode())).table
    for name in [*ENDS, "pvalue_line", "pvalue_curve", "pattern"]:
        assert counted[name].to_list() == approx(repeated[name].to_list(), rel=1e-8), name


def test_weighted_rows_that_are_clusters_have_the_plain_intervals_but_for_student() -> None:
    data = drawn().with_columns(c=pl.int_range(900), w=pl.col("w") * 1.5)
    clustered, plain = (found(data, cluster=name, weight="w").table.to_dicts()[0] for name in ("c", None))
    w = data["w"].to_numpy()
    for name in ("slope", "intercept", "citl"):
        wider = (clustered[f"{name}_high"] - clustered[name]) / (plain[f"{name}_high"] - plain[name])
        assert wider == pytest.approx(np.sqrt(student(w.sum() ** 2 / (w**2).sum()))), name
    assert clustered["pvalue_line"] == pytest.approx(plain["pvalue_line"])


def test_segments_have_the_intervals_that_they_have_alone() -> None:
    data = drawn(seed=3)
    together = found(data, by="g").table
    for segment in ("a", "b", None):
        here = pl.col("g").eq_missing(segment)
        alone, mine = found(data.filter(here)).table, together.filter(here)
        for name in ENDS:
            assert mine[name].to_list() == approx(alone[name].to_list(), rel=1e-8), name


def test_results_say_what_is_independent() -> None:
    data = drawn()
    result = data.calib.diagnose(label="y", score="p", cluster="c")
    assert result.roles["cluster"] == "c"
    assert result.to_dict()["convention"]["cluster"] == "c"
    with pytest.raises(ColumnNotFoundError, match="person"):
        calframe.diagnose(data, label="y", score="p", cluster="person")
