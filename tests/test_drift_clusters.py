"""`calframe.drift(cluster=)`: rows that are not independent, over time."""

import datetime as dt

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.stats import chi2, kstwo

import calframe
from calframe._drifting._result import Drift
from tests._clustered import student
from tests._tables import LIBRARIES, Maker
from tests.simulations import drift_clusters

ROLES = {"label": "y", "score": "p", "time": "day"}


def singles(seed: int = 3, *, size: int = 900) -> pl.DataFrame:
    """Return a table of six months whose rows are a cluster each, by `id`."""
    rng = np.random.default_rng(seed)
    score = rng.beta(2, 2, size).round(2)
    days = [dt.date(2024, 1 + i % 6, 1 + i % 28) for i in range(size)]
    return pl.DataFrame(
        {
            "y": (rng.random(size) < np.clip(score - 0.04, 0, 1)).astype(int),
            "p": score,
            "id": np.arange(size),
            "day": days,
            "g": rng.choice(["a", "b"], size),
        }
    )


def followed(table: pl.DataFrame, **options: object) -> Drift:
    """Follow a table by clusters."""
    found: Drift = calframe.drift(table, **{**ROLES, "cluster": "id", **options})
    return found


@pytest.mark.parametrize("options", [{}, {"reference": "rolling"}, {"by": "g"}, {"psi_bins": [0.0, 0.5, 1.0]}])
def test_twenty_copies_of_each_row_say_what_one_copy_says(options: dict[str, object]) -> None:
    # rows that are the same tell nothing new: all but the counts of rows must be that of one copy
    once = singles(size=2400)
    one, many = followed(once, **options), followed(pl.concat([once] * 20), **options)
    for name in ("table", "parts"):
        mine, theirs = (getattr(found, name) for found in (one, many))
        assert_frame_equal(mine.drop("n", strict=False), theirs.drop("n", strict=False), abs_tol=1e-11)
    evidence = [found.monitor.drop("n", "n_clusters") for found in (one, many)]
    assert_frame_equal(*evidence, abs_tol=1e-11)
    assert (one.headline, one.about_reference, one.about_segments) == (
        many.headline,
        many.about_reference,
        many.about_segments,
    )


def test_the_reference_may_be_a_second_table_in_clusters() -> None:
    once, before = singles(), singles(4).drop("day")
    one = followed(once, reference=before).table
    many = followed(pl.concat([once] * 5), reference=pl.concat([before] * 5)).table
    assert_frame_equal(one.drop("n"), many.drop("n"), abs_tol=1e-11)


def test_clusters_of_one_row_are_hardly_another_thing_than_rows() -> None:
    # what a row takes off the mean of m is 1 / m of itself, and Student's t has m - 1 degrees of freedom: less than 2 %
    table = singles(size=3000)
    one, plain = followed(table), calframe.drift(table, **ROLES)
    for name in ("gap_low", "simultaneous_high", "gap_change_low"):
        widths = [(found.table["gap"] - found.table[name]).abs().to_numpy() for found in (one, plain)]
        assert np.nanmax(np.abs(widths[0] / widths[1] - 1.0)) < (0.02 if "gap_change" not in name else 0.3)
    assert_frame_equal(one.monitor.drop("n_clusters"), plain.monitor)


def test_a_null_is_a_cluster_of_its_own() -> None:
    table = singles()
    lone = table.with_columns(id=pl.lit(None, pl.Int64))
    assert_frame_equal(followed(lone).table, followed(table).table, abs_tol=1e-11)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_kind_of_frame_gives_the_same(library: str) -> None:
    table = pl.concat([singles(), singles().with_columns(p=1 - pl.col("p"))])
    wanted = followed(table).table
    found = followed(Maker(library)(table.to_dict(as_series=False)), every="1mo").table
    own = nw.from_native(found)
    for name in ("gap_low", "gap_change_pvalue", "psi_expected", "ks_pvalue"):
        values = [np.nan if value is None else float(value) for value in own[name].to_list()]
        np.testing.assert_allclose(values, wanted[name].to_numpy(), rtol=1e-9)


def test_psi_and_ks_go_by_clusters_as_by_hand() -> None:
    # 40 clusters a month of ten rows of one score, in two bins: shares scatter as those of 40 rows, not of 400
    score = np.repeat([0.3] * 30 + [0.7] * 10 + [0.3] * 20 + [0.7] * 20, 10)
    table = pl.DataFrame(
        {
            "y": np.tile([0, 1], 400),
            "p": score,
            "id": np.repeat(np.arange(80), 10),
            "day": [dt.date(2024, 1, 1)] * 400 + [dt.date(2024, 2, 1)] * 400,
        }
    )
    line = followed(table, reference="first", psi_bins=[0.0, 0.5, 1.0]).table.row(1, named=True)
    few = student(40)
    variance = few * (0.75 * 0.25 + 0.5 * 0.5) / 40 / (1 - 1 / 40) ** 2  # of shares' difference
    pooled = 50 / 80
    expected = variance * (1 / pooled + 1 / (1 - pooled))
    assert line["psi_expected"] == pytest.approx(expected, rel=1e-12)
    assert line["psi"] == pytest.approx(0.25 * np.log(0.5 / 0.25) - 0.25 * np.log(0.5 / 0.75), rel=1e-12)
    rows = 40 * (1 - 1 / 40) ** 2 / few
    if line["psi_pvalue"] is None:  # 25 rows of a cluster's worth are wanted in each bin
        assert rows * min(pooled, 1 - pooled) < 25
    else:
        assert line["psi_pvalue"] == pytest.approx(chi2.sf(line["psi"] / expected, 1), rel=1e-9)
    assert line["ks_law"] == "limit"
    assert line["ks_pvalue"] == pytest.approx(kstwo.sf(0.25, round(rows / 2)), rel=1e-9)


def test_the_monitor_bets_on_a_cluster_once() -> None:
    # the second day has the persons of the first one again: what they do there is no news
    first = singles(size=60).with_columns(day=pl.lit(dt.date(2024, 1, 1)))
    both = pl.concat([first, first.with_columns(day=pl.lit(dt.date(2024, 1, 2)))])
    monitor = followed(both, reference="first", every="1d").monitor
    alone = followed(first, reference="first", every="1d").monitor
    assert monitor["n_clusters"].to_list() == [60, 0]
    assert monitor["log_e_value"].to_list() == pytest.approx(alone["log_e_value"].to_list() * 2)


def test_what_cannot_be_is_evidence_in_a_cluster_seen_before_too() -> None:
    table = pl.DataFrame(
        {"y": [0, 1], "p": [0.5, 0.0], "id": [1, 1], "day": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]}
    )
    monitor = followed(table, reference="first", every="1d").monitor
    assert monitor["alarm"].to_list() == [False, True]
    assert monitor["log_e_value"].to_list()[1] == np.inf


def test_one_cluster_tells_nothing() -> None:
    table = singles().with_columns(id=pl.lit("same"))
    found = followed(table)
    assert set(found.table["verdict"]) == {"few"}
    assert found.table["gap_change_pvalue"].null_count() == found.table.height
    assert found.table["psi_pvalue"].null_count() == found.table["psi_expected"].null_count() == found.table.height
    assert "None of 6 periods has the 100 effective rows needed" in (found.headline or "")


def test_results_say_which_rows_are_not_independent() -> None:
    found = followed(singles())
    assert found.convention["cluster"] == "id"
    assert "Rows of one 'id' are not taken as independent" in repr(found)
    assert "it bets on 900 clusters, each where" in repr(found)
    assert found.to_dict()["convention"]["cluster"] == "id"


def test_many_bins_leave_no_p_value_of_scores() -> None:
    line = followed(singles(), psi_bins=101).table.row(-1, named=True)
    assert line["psi_pvalue"] is None
    assert line["ks_pvalue"] is None
    assert "with clusters their laws need at most 100 psi_bins" in line["note"]


def test_right_scores_are_left_alone() -> None:
    # bound: 5 % and three Monte Carlo errors; without clusters three of four tables are called off
    [by_cluster, plain] = drift_clusters.simulated("unequal", 40, 5, rare=False)
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)
    assert max(by_cluster.gap, by_cluster.change, by_cluster.psi, by_cluster.ks, by_cluster.clear) <= most
    assert max(by_cluster.since, by_cluster.alarm) <= most
    assert plain.gap > 0.5


def test_one_outcome_alone_says_nothing_of_what_clusters_share() -> None:
    # 20 copies of 100 rows a month without a positive: as much as 100 rows, not as much as 2,000
    once = pl.DataFrame({"y": 0, "p": 0.03, "id": range(300), "day": [dt.date(2024, 1 + i % 3, 1) for i in range(300)]})
    tables = [followed(data, tolerance=0.01).table.drop("n") for data in (once, pl.concat([once] * 20))]
    assert_frame_equal(*tables, abs_tol=1e-11)
    assert calframe.drift(pl.concat([once] * 20), **ROLES, tolerance=0.01).table["verdict"].to_list() == ["over"] * 3
    assert "over" not in tables[1]["verdict"].to_list()
