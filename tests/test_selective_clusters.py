"""Abstaining where rows are not independent: against copies, sums by loops, and how often thresholds fail."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import optimize, special
from statsmodels.stats.proportion import proportion_confint

import calframe
from calframe import ColumnNotFoundError
from calframe._kernels._cluster_sums import ClusterSums, Events
from calframe._selective import Selective, selective
from calframe._testing._thresholds import _rejects, least_favourable
from tests._clustered import drawn, student
from tests._tables import Maker, approx, rows
from tests.simulations.cluster_thresholds import CLUSTERS, NAMES, RESULTS, SIZES, Sharing, possible, simulate
from tests.simulations.thresholds import TARGETS, WORLDS

STATSMODELS = {"wilson": "wilson", "clopper_pearson": "beta", "jeffreys": "jeffreys"}


def found(data: Any, **arguments: Any) -> Selective:
    return selective(data, **{"label": "y", "score": "p", "cluster": "c", **arguments})


@pytest.mark.parametrize("copies", [1, 20])
@pytest.mark.parametrize("interval", list(STATSMODELS))
def test_copies_of_every_row_change_nothing_but_for_student(copies: int, interval: str) -> None:
    once = drawn().with_columns(c=pl.int_range(400))
    targets = [0.6, 0.8, 0.9]
    plain = selective(once, label="y", score="p", target_accuracy=targets, interval=interval)
    many = found(pl.concat([once] * copies), target_accuracy=targets, interval=interval)
    for name in ("threshold", "coverage", "accuracy", "accuracy_low", "note"):
        expected = [None if text is None else text.replace("row", "cluster") for text in plain.targets["note"]]
        expected = expected if name == "note" else plain.targets[name].to_list()
        assert many.targets[name].to_list() == approx(expected, rel=1e-9), name
    for one, other in zip(plain.table.to_dicts(), many.table.to_dicts(), strict=True):
        assert (other["n"], other["accuracy"]) == (copies * one["n"], pytest.approx(one["accuracy"]))
        if one["n"] > 1:
            n = one["n"] / student(one["n"])
            ends = proportion_confint(n * one["accuracy"], n, method=STATSMODELS[interval])
            expected = [0.0 if np.isnan(ends[0]) else ends[0], 1.0 if np.isnan(ends[1]) else ends[1]]
            assert [other["accuracy_low"], other["accuracy_high"]] == pytest.approx(expected, rel=1e-6)


def test_six_rows_in_three_clusters_by_hand() -> None:
    # right: 2 of 2, 1 of 2, 1 of 2. About m the totals are 2 - 2m, 1 - 2m, 1 - 2m; the rows four times 1 - m, twice -m
    data = pl.DataFrame({"y": [1, 1, 1, 0, 1, 0], "p": [0.9] * 6, "c": list("aabbcc")})

    def effect(m: float) -> float:
        clustered, single = 4 * (1 - m) ** 2 + 2 * (1 - 2 * m) ** 2, 4 * (1 - m) ** 2 + 2 * m**2
        return max(clustered / single, 1.0)

    def end(m: float, side: int) -> float:
        n = 6 / effect(m) / student(3)
        return float(proportion_confint(n * 4 / 6, n, method="wilson")[side] - m)

    row = found(data).table.to_dicts()[0]
    assert row["accuracy"] == pytest.approx(2 / 3)
    assert effect(0.0) == 1.5
    assert row["accuracy_low"] == pytest.approx(optimize.brentq(end, 0.0, 2 / 3, args=(0,)), abs=1e-6)
    assert row["accuracy_high"] == pytest.approx(optimize.brentq(end, 2 / 3, 1.0, args=(1,)), abs=1e-6)


@pytest.mark.parametrize("weight", [None, "w"])
def test_intervals_solve_for_their_design_effect_at_every_threshold(weight: str | None) -> None:
    data = drawn(seed=1).with_row_index("i").with_columns(w=pl.col("w").cast(pl.Float64) if weight else pl.lit(1.0))
    table = found(data, by="g", weight=weight).table
    for row in table.sample(60, seed=0).to_dicts():
        here = data.filter(
            pl.col("g").eq_missing(row["g"]), pl.max_horizontal("p", 1 - pl.col("p")) >= row["threshold"]
        )
        right, w = ((here["p"] >= 0.5) == (here["y"] == 1)).to_numpy().astype(float), here["w"].to_numpy()
        names = here.select(pl.coalesce("c", pl.format("row {}", "i"))).to_series()
        of = [(names == name).to_numpy() for name in names.unique()]
        count = w.sum() ** 2 / sum(w[cluster].sum() ** 2 for cluster in of)
        assert row["n"] == len(here)
        for side, name in enumerate(("accuracy_low", "accuracy_high")):
            off = w * (right - row[name])
            single, total = (off**2).sum(), sum(off[cluster].sum() ** 2 for cluster in of)
            if count > 1.0 + 1e-9 and single > 0.0:
                n = w.sum() ** 2 / (w**2).sum() / max(total / single, 1.0) / student(count)
                end = proportion_confint(n * row["accuracy"], n, method="wilson")[side]
                assert row[name] == pytest.approx(end, abs=2e-4)


def test_a_single_cluster_tells_nothing() -> None:
    data = pl.DataFrame({"y": [1] * 500, "p": [0.9] * 500, "c": ["a"] * 500})
    result = found(data, target_accuracy=0.5)
    assert result.table.select("accuracy", "accuracy_high").row(0) == (1.0, 1.0)
    assert result.table["accuracy_low"][0] < 1e-3
    assert result.targets["threshold"].to_list() == [None]
    assert (
        result.targets["note"][0]
        == "too few clusters: it takes 5 clusters, all of them right, to show an accuracy of 0.5"
    )


def test_rows_that_are_all_right_count_as_their_clusters() -> None:
    # 0.9^29 = 0.047: 29 rows, or clusters of ten, show 0.9
    for clusters, held in ((28, False), (29, True)):
        data = pl.DataFrame({"y": [1] * 10 * clusters, "p": [0.9] * 10 * clusters}).with_columns(
            c=pl.int_range(10 * clusters) // 10
        )
        chosen = found(data, target_accuracy=0.9, notion="correctness").targets.to_dicts()[0]
        assert (chosen["threshold"] is not None) == held
        if held:
            assert chosen["accuracy_low"] == pytest.approx(0.05 ** (1 / 29))  # Clopper and Pearson, one-sided


def test_the_test_takes_the_clusters_seen_and_wholly_wrong_ones() -> None:
    # the mean square of a total, less t times its rows, if it is as seen or, with the chance 1 - t / a, wholly wrong
    rng, target = np.random.default_rng(3), 0.7
    cluster = rng.integers(0, 40, 300)
    right = (rng.random(300) < 0.6 + 0.4 * rng.random(40)[cluster]).astype(float)
    size, hits = (np.bincount(cluster, values, minlength=40) for values in (np.ones(300), right))
    accuracy = right.mean()
    wrong = 1 - target / accuracy
    scatter = ((1 - wrong) * (hits - target * size) ** 2 + wrong * (target * size) ** 2).sum()
    events = Events.of_rows(right)
    sums = ClusterSums.running(cluster, None, np.zeros(300, dtype=np.int64), events, np.array([0]), 1)
    effect = least_favourable(sums, np.array([accuracy]), target)
    assert accuracy > target
    assert effect[0] == pytest.approx(scatter / (300 * target * (1 - target)))


def test_tails_of_numbers_that_are_not_whole_take_no_short_cut_too_many() -> None:
    rng = np.random.default_rng(4)
    n = rng.uniform(0.5, 400.0, 20_000)
    right = n * np.minimum(rng.uniform(0.5, 1.1, 20_000), 1.0)
    allowed = 10 ** rng.uniform(-4, -1, 20_000)
    exact = special.betainc(right, n - right + 1.0, 0.8) <= allowed
    assert np.array_equal(_rejects(n, right, allowed, target=0.8), exact)


def test_every_library_gives_the_same(make: Maker) -> None:
    data = drawn()
    expected = found(data, by="g", target_accuracy=0.6)
    result = found(make(data.to_dict(as_series=False)), by="g", target_accuracy=0.6)
    for name in ("table", "targets"):
        given, wanted = rows(getattr(result, name)), rows(getattr(expected, name))
        assert given == {key: approx(values, rel=1e-9) for key, values in wanted.items()}


def test_counted_rows_are_the_row_again() -> None:
    data = drawn()
    arguments = {"by": "g", "target_accuracy": [0.6, 0.8]}
    counted = found(data, weight="w", weight_kind="frequency", **arguments)
    repeated = found(data.select(pl.all().repeat_by("w").explode()), **arguments)
    assert counted.targets["threshold"].to_list() == repeated.targets["threshold"].to_list()
    for name in ("accuracy_low", "accuracy_high"):
        assert counted.table[name].to_list() == approx(repeated.table[name].to_list(), rel=1e-9)


def test_the_unit_of_weights_does_not_matter() -> None:
    one, other = (found(drawn().with_columns(pl.col("w") * unit), weight="w", by="g") for unit in (1.0, 1e30))
    for name in ("accuracy_low", "accuracy_high"):
        assert one.table[name].to_list() == approx(other.table[name].to_list(), rel=1e-9)


def test_models_and_segments_are_judged_as_if_alone() -> None:
    data, target = drawn(), [0.5, 0.6]
    both = found(data, score=["p", "q"], by="g", target_accuracy=target)
    for model in ("p", "q"):
        for segment in ("a", "b", None):
            here = pl.col("g").eq_missing(segment)
            alone = found(data.filter(here), score=model, target_accuracy=target)
            for name in ("table", "targets"):
                mine = getattr(both, name).filter(here, model=model).drop("g", "model")
                assert rows(mine) == {
                    key: approx(values, rel=1e-9) for key, values in rows(getattr(alone, name)).items()
                }


def test_values_are_those_of_rows() -> None:
    data = drawn()
    clustered, plain = found(data, by="g"), selective(data, label="y", score="p", by="g")
    assert clustered.summary.equals(plain.summary)
    ends = ["accuracy_low", "accuracy_high"]
    assert clustered.table.drop(ends).equals(plain.table.drop(ends))


def test_results_say_what_is_independent() -> None:
    data = drawn(2000)
    result = data.calib.selective(label="y", score="p", cluster="c", target_accuracy=0.55)
    assert result.roles["cluster"] == "c"
    assert result.to_dict()["convention"]["cluster"] == "c"
    assert "for independent clusters of rows like these" in repr(result)
    assert "for independent clusters of rows like these" in result._repr_html_()
    assert "for independent clusters of rows like these" in " ".join(result.plot().to_dict()["title"]["text"])
    with pytest.raises(ColumnNotFoundError, match="person"):
        calframe.selective(data, label="y", score="p", cluster="person")


# The guarantee: how often the true accuracy from the chosen threshold up is below the target


@pytest.mark.parametrize("sharing", ["copies", "alike", "spoilt"])
@pytest.mark.parametrize(("clusters", "size"), [(30, 20), (100, 10)])
def test_thresholds_hold_for_new_clusters(sharing: Sharing, clusters: int, size: int) -> None:
    replicates = 250
    outcome = simulate(WORLDS["just below 0.9"], sharing, clusters, size, replicates=replicates, seed=7)[0.9]
    assert outcome["failed"].mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / replicates)
    assert outcome["plain_failed"].mean() > 0.1


def test_the_full_simulation_holds() -> None:
    with RESULTS.open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert {(line["world"], line["sharing"], line["clusters"], line["size"], line["target"]) for line in lines} == {
        (name, sharing, str(clusters), str(size), str(target))
        for name in NAMES
        for sharing in ("copies", "alike", "spoilt")
        if possible(WORLDS[name], sharing)
        for clusters in CLUSTERS
        for size in SIZES
        for target in TARGETS
    }
    for line in lines:
        assert float(line["failures"]) <= 0.05 + 2 * float(line["standard_error"]), line
    plain = [
        line for line in lines if line["size"] == "20" and (line["world"], line["target"]) == ("calibrated", "0.8")
    ]
    assert min(float(line["plain_failures"]) for line in plain) > 0.1
