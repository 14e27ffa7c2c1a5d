"""What the tests promise: how often they reject right scores and wrong ones, and that drawn bins are drawn rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe
from calframe import ArgumentError
from calframe._measures import METRICS
from calframe._nulls import DOWNWARD, UPWARD, Null
from calframe._registry import Cells, Options
from calframe._testing._draws import Drawing
from tests._inference import CLASSES, class_table, drawn, one
from tests.simulations.sizes import KINDS, UNWEIGHTED, lines

MANY = 2000
BINARY = [name for name, metric in METRICS.items() if not metric.posterior]
NO_LABEL = ("mean_score", "sharpness", "ece_expected")


# --- labels drawn by bins --------------------------------------------------------------------------------------------


def scores(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.beta(0.4, 20.0, n) if kind == "rare" else rng.beta(2.0, 2.0, n)


@pytest.mark.parametrize(("kind", "weighted"), [("even", False), ("rare", False), ("even", True)])
@pytest.mark.parametrize("bins", [1, 3, 15])
def test_drawn_bins_are_drawn_rows(kind: str, bins: int, *, weighted: bool) -> None:
    rng = np.random.default_rng([bins, weighted])
    n = 1500
    score = scores(kind, n, rng)
    weight = rng.uniform(1.0, 10.0, n) if weighted else np.ones(n)
    place = np.minimum((score * bins).astype(np.int64), bins - 1)
    spread = score * (1.0 - score)

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(place, values, minlength=bins)

    by_row = np.array(
        [
            np.abs(total(weight * ((rng.random(n) < score) - score))).sum() / weight.sum()  # the ECE by its definition
            for _ in range(MANY)
        ]
    )
    sums = {
        "n": total(np.ones(n)),
        "w": total(weight),
        "wp": total(weight * score),
        "wy": total(weight * (score > 0.5)),
        "w2": total(weight**2),
        "variance": total(weight * spread),
        "w2_variance": total(weight**2 * spread),
    }
    filled = sums["w"] > 0
    cells = Cells(starts=np.array([0]), sums={name: values[filled] for name, values in sums.items()})
    drawing = Drawing(n_resamples=MANY, rng=np.random.default_rng(1))
    null = Null(metric=METRICS["ece"], options=Options(), side="greater", drawing=drawing, keep=True)
    by_bin = null.of_bins(cells).draws
    assert by_bin is not None
    by_bin = by_bin[:, 0]
    error = math.sqrt((by_row.var() + by_bin.var()) / MANY)
    assert abs(by_bin.mean() - by_row.mean()) < 3.0 * error
    # the standard error of a quantile: sqrt(q (1 - q) / n) over the density there, here of half the draws around it
    ends = [np.quantile(drawn, [0.925, 0.95, 0.975]) for drawn in (by_row, by_bin)]
    slack = [math.sqrt(0.95 * 0.05 / MANY) * (end[2] - end[0]) / 0.05 for end in ends]
    assert abs(ends[0][1] - ends[1][1]) < 3.0 * math.hypot(*slack)


def test_the_seed_decides_and_nothing_else_does() -> None:
    data = drawn(300, power=1.1)
    arguments = {"label": "y", "score": "p", "by": "g", "n_resamples": 99}
    alone = calframe.test(data, **arguments).table
    assert calframe.test(data, **arguments).table["pvalue"].to_list() == alone["pvalue"].to_list()
    first, second = (calframe.test(data, **arguments, rng=np.random.default_rng(0)).table for _ in range(2))
    assert first["pvalue"].to_list() == second["pvalue"].to_list()
    assert calframe.test(data, **arguments, rng=1).table["pvalue"].to_list() != alone["pvalue"].to_list()
    beside = calframe.test(data, **arguments, method=["corp", "kernel", "cox", "resampling"]).table
    again = beside.filter(method="resampling")
    assert again["pvalue"].to_list() == alone["pvalue"].to_list()
    assert again["statistic"].to_list() == pytest.approx(alone["statistic"].to_list(), rel=1e-12)
    shuffled = data.sample(fraction=1.0, shuffle=True, seed=4)
    same = calframe.test(shuffled, **arguments).table
    assert same["pvalue"].to_list() == alone["pvalue"].to_list()


# --- any measure -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", [name for name in BINARY if name not in NO_LABEL])
def test_any_measure_of_one_score_can_be_the_statistic(statistic: str) -> None:
    data = drawn(90, digits=2)
    for weight in (None, "w"):
        seen = calframe.metrics(data, label="y", score="p", weight=weight, metrics=[statistic])[statistic][0]
        found = one(data, statistic=statistic, weight=weight, n_resamples=39)
        assert found["statistic"] == pytest.approx(seen, rel=1e-12, abs=1e-12)
        assert 0.0 < found["pvalue"] <= 1.0


def _of_classes(name: str) -> bool:
    data = class_table(20)
    try:
        calframe.metrics(data, label="y", score=CLASSES, metrics=[name])
    except ArgumentError:
        return False
    return not METRICS[name].posterior


SEVERAL = [name for name in METRICS if _of_classes(name)]


@pytest.mark.parametrize("statistic", SEVERAL)
def test_any_measure_of_several_classes_can_be_the_statistic(statistic: str) -> None:
    data = class_table(80)
    seen = calframe.metrics(data, label="y", score=CLASSES, metrics=[statistic])[statistic][0]
    found = one(data, score=CLASSES, statistic=statistic, n_resamples=39)
    assert found["statistic"] == pytest.approx(seen, rel=1e-12, abs=1e-12)
    assert 0.0 < found["pvalue"] <= 1.0


def test_there_are_measures_of_several_classes() -> None:
    assert {"classwise_ece", "confidence_ece", "brier", "log_loss", "skce", "accuracy"} <= set(SEVERAL)


@pytest.mark.parametrize("statistic", NO_LABEL)
def test_measures_without_labels_have_nothing_to_test(statistic: str) -> None:
    with pytest.raises(ArgumentError, match=f"statistic='{statistic}' does not depend on the labels"):
        one(drawn(30), statistic=statistic)


def test_sides() -> None:
    data = drawn(40)

    def side(statistic: str) -> str:
        return calframe.test(data, label="y", score="p", statistic=statistic, n_resamples=20).convention["alternative"]

    assert {side(name) for name in ("ece", "mce", "smece", "mcb", "ecce_r", "ici", "calibration_loss")} == {"greater"}
    assert {side(name) for name in ("auc", "accuracy")} == {"less"}
    assert {side(name) for name in ("brier", "log_loss", "gap", "slope", "intercept", "rate")} == {"two-sided"}
    assert set(METRICS) >= UPWARD | DOWNWARD  # no name is misspelt


def test_alternatives_are_two_tails_of_one_law() -> None:
    data = drawn(60, power=1.3)
    tails = [one(data, statistic="auc", alternative=side, n_resamples=999)["pvalue"] for side in ("greater", "less")]
    both = one(data, statistic="auc", alternative="two-sided", n_resamples=999)["pvalue"]
    assert both == pytest.approx(min(2.0 * min(tails), 1.0))
    assert sum(tails) >= 1.0  # ties count on both sides


@pytest.mark.parametrize("statistic", ["brier", "log_loss"])
def test_an_under_confident_model_has_a_loss_below_its_null_and_is_found(statistic: str) -> None:
    rng = np.random.default_rng(1)
    logit = rng.normal(0.0, 1.5, 2000)
    data = pl.DataFrame(
        {"p": 1 / (1 + np.exp(-logit / 2)), "y": (rng.random(2000) < 1 / (1 + np.exp(-logit))).astype(int)}
    )
    found = one(data, statistic=statistic)
    s = data["p"].to_numpy()
    expected = s * (1 - s) if statistic == "brier" else -(s * np.log(s) + (1 - s) * np.log1p(-s))
    assert found["statistic"] < expected.mean()
    assert found["reject"]
    assert found["law"] == "normal"
    assert one(data, statistic=statistic, alternative="greater")["pvalue"] > 0.99


# --- size and power --------------------------------------------------------------------------------------------------


TESTS = ("spiegelhalter", "hosmer_lemeshow", "ecce", "ks", "cox", "gap", "resampling ece", "corp", "kernel")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [50, 200])
def test_right_scores_are_rejected_at_most_as_often_as_stated(kind: str, n: int) -> None:
    # 5 % and three Monte Carlo errors, for the many lines that are looked at; the full run has 2,000 tables each
    methods = [one for one in TESTS if kind != "weighted" or one not in UNWEIGHTED]
    slow = [method for method in methods if method in ("corp", "kernel")]
    for runs, some in ((400, [method for method in methods if method not in slow]), (150, slow)):
        for line in lines(kind, "right", n, runs=runs, seed=2, calls=tuple(some)) if some else ():
            assert line["rejected"] <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / runs), line
            assert line["undecided"] <= (0.5 if line["test"] == "cox" else 0.0), line


@pytest.mark.parametrize(
    ("truth", "blind"), [("shifted", ("spiegelhalter", "slope")), ("steeper", ("gap", "intercept"))]
)
def test_wrong_scores_are_found(truth: str, blind: tuple[str, ...]) -> None:
    # with 2,000 rows of Beta(2, 2), 0.5 on the logit is ten standard errors, a slope of 1.5 is eight
    for line in lines("even", truth, 2000, runs=20, seed=3, calls=TESTS[:-1]):
        if line["test"] not in blind and line["hypothesis"] not in blind:
            assert line["rejected"] >= 0.95, line


def test_the_kernel_finds_a_shift() -> None:
    rng = np.random.default_rng(4)
    score = rng.beta(2.0, 2.0, 600)
    data = pl.DataFrame({"p": score, "y": (rng.random(600) < score - 0.1).astype(int)})
    for law in ("resampled", "asymptotic"):
        assert one(data, method="kernel", kernel_law=law, n_resamples=199)["pvalue"] < 0.01


def segments(seed: int, *, rare: bool) -> pl.DataFrame:
    """Return 64 segments of 60 rows whose scores are right."""
    rng = np.random.default_rng([7, seed])
    score = rng.beta(0.4, 8.0, 64 * 60) if rare else rng.beta(2.0, 2.0, 64 * 60)
    label = (rng.random(len(score)) < score).astype(np.int64)
    return pl.DataFrame({"p": score, "y": label, "g": np.arange(len(score)) % 64})


@pytest.mark.parametrize("correction", ["benjamini_hochberg", "max"])
def test_one_false_rejection_among_64_segments_is_as_rare_as_stated(correction: Any) -> None:
    # where all scores are right, any rejection by Holm or Bonferroni is one by Benjamini and Hochberg, too
    runs, failed = 40, 0
    for seed in range(runs):
        data = segments(seed, rare=False)
        found = calframe.test(data, label="y", score="p", by="g", correction=correction, n_resamples=1999, rng=seed)
        failed += bool(found.table["reject"].any())
    assert failed / runs <= 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / runs)


def test_laws_for_many_rows_hold_the_family_wise_error_of_few_events() -> None:
    methods, runs = ["spiegelhalter", "hosmer_lemeshow", "gap", "ecce"], 40
    failed: dict[tuple[str, str], int] = {}
    for seed in range(runs):
        data = segments(seed, rare=True)
        table = calframe.test(data, label="y", score="p", by="g", method=methods, n_resamples=1999, rng=seed).table
        for key, part in table.group_by("method", "hypothesis"):
            failed[key] = failed.get(key, 0) + bool(part["reject"].any())
    for key, count in failed.items():
        assert count / runs <= 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / runs), key


def test_the_largest_statistic_holds_its_level_where_draws_have_no_value() -> None:
    # a third of the draws of 20 rows with a score around .05 are of one class, so that there is no auc
    runs, failed = 60, 0
    for seed in range(runs):
        rng = np.random.default_rng([9, seed])
        score = rng.beta(2.0, 38.0, 40 * 20)
        label = (rng.random(len(score)) < score).astype(np.int64)
        data = pl.DataFrame({"p": score, "y": label, "g": np.arange(len(score)) % 40})
        arguments = {"label": "y", "score": "p", "by": "g", "statistic": "auc", "n_resamples": 999}
        table = calframe.test(data, **arguments, correction="max", rng=seed).table
        failed += bool(table["reject"].any())
        assert 0 < table["pvalue"].null_count() < 40
        undefined = table.filter(pl.col("pvalue").is_null())
        assert undefined["pvalue_adjusted"].null_count() == len(undefined)
    assert failed / runs <= 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / runs)


def test_the_largest_statistic_of_corp_is_its_own() -> None:
    data = drawn(300, power=1.2)
    arguments = {"label": "y", "score": "p", "by": "g", "correction": "max", "n_resamples": 199}
    alone = calframe.test(data, **arguments, method="corp").table
    beside = calframe.test(data, **arguments, method=["resampling", "corp"], statistic="auc").table
    assert beside.filter(method="corp")["pvalue_adjusted"].to_list() == alone["pvalue_adjusted"].to_list()


def test_the_largest_statistic_finds_the_segment_that_is_wrong() -> None:
    data = drawn(3000, power=1.0).with_columns(g=pl.int_range(3000) % 20)
    wrong = data.with_columns(
        y=pl.when(pl.col("g") == 7).then((pl.col("p") < 0.5).cast(pl.Int64)).otherwise(pl.col("y"))
    )
    table = calframe.test(wrong, label="y", score="p", by="g", correction="max").table
    assert table.filter(pl.col("reject"))["g"].to_list() == [7]
    assert (table["pvalue_adjusted"] >= table["pvalue"]).all()
