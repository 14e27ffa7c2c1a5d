"""Intervals: those of statsmodels, the right ones at the ends, and as often around the truth as they say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

import calframe
from calframe._measures import METRICS
from tests._tables import Maker, approx, column, measure, rows

POLARS = Maker("polars")
PEERS = {"wilson": "wilson", "clopper_pearson": "beta", "jeffreys": "jeffreys"}  # our names: those of statsmodels
WITH_INTERVAL = ["rate", "gap", "ratio", "brier"]


def ends(frame: Any, name: str) -> tuple[list[Any], list[Any]]:
    """Return the ends of the intervals of a metric."""
    return column(frame, f"{name}_low"), column(frame, f"{name}_high")


def segments(counts: dict[int, int]) -> dict[str, Any]:
    """Return a table with a segment of so many rows for each so many positives, all of score a quarter."""
    keys, labels = [], []
    for rows_of, positives in counts.items():
        keys += [rows_of] * rows_of
        labels += [1] * positives + [0] * (rows_of - positives)
    return {"g": keys, "y": labels, "p": [0.25] * len(keys)}


# ---------------------------------------------------------------- against statsmodels
@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("method", PEERS)
def test_rate_intervals_of_statsmodels(make: Maker, method: str, level: float) -> None:
    counts = {1: 1, 2: 0, 3: 3, 7: 2, 40: 39, 150: 75}
    arguments: dict[str, Any] = {"by": "g", "confidence_level": level, "interval": method}
    found = ends(measure(make, segments(counts), metrics="rate", **arguments), "rate")
    theirs = [proportion_confint(k, n, alpha=1 - level, method=PEERS[method]) for n, k in counts.items()]
    assert found[0] == approx([low for low, _ in theirs], rel=1e-9)
    assert found[1] == approx([high for _, high in theirs], rel=1e-9)


def test_wilson_is_what_nothing_said_means(make: Maker) -> None:
    arguments: dict[str, Any] = {"metrics": "rate", "confidence_level": 0.9}
    plain = rows(measure(make, segments({9: 4}), **arguments))
    assert plain == rows(measure(make, segments({9: 4}), interval="wilson", **arguments))


@pytest.mark.parametrize("method", [None, *PEERS])
def test_gap_and_ratio_mirror_the_wilson_interval_whatever_that_of_the_rate(make: Maker, method: str | None) -> None:
    counts = {4: 1, 30: 20}
    arguments: dict[str, Any] = {"by": "g", "confidence_level": 0.9, "interval": method}
    found = measure(make, segments(counts), metrics=["gap", "ratio"], **arguments)
    low, high = np.array([proportion_confint(k, n, alpha=0.1, method="wilson") for n, k in counts.items()]).T
    assert ends(found, "gap") == (approx((0.25 - high).tolist()), approx((0.25 - low).tolist()))
    assert ends(found, "ratio") == (approx((0.25 / high).tolist()), approx((0.25 / low).tolist()))


def test_the_brier_interval_of_equal_scores_is_wilsons(make: Maker) -> None:
    # (s - y)^2 is 1/16, with a positive 9/16: the mean is 1/16 + rate / 2, and so are the ends
    counts = {10: 0, 25: 5, 60: 60}
    found = measure(make, segments(counts), by="g", metrics="brier", confidence_level=0.9)
    theirs = np.array([proportion_confint(k, n, alpha=0.1, method="wilson") for n, k in counts.items()])
    low, high = (1 / 16 + theirs / 2).T
    assert ends(found, "brier") == (approx(low.tolist()), approx(high.tolist()))


def test_the_brier_interval_by_hand(make: Maker) -> None:
    # squares 1/16, 1/4, 1/4, 1/16. The mean of s (1 - s) is 7/32, as of a score u with u (1 - u) = 7/32, so a wrong row
    # has (1 - u)^2 and a right one u^2: Wilson's interval of two-valued losses of this mean and variance
    table = {"y": [1, 0, 1, 0], "p": [0.75, 0.5, 0.5, 0.25]}
    u = (1 - math.sqrt(1 / 8)) / 2
    mean, variance = 5 / 32, 17 / 512 - 25 / 1024
    ends_by_hand = []
    for value, end in ((u**2, 0), ((1 - u) ** 2, 1)):
        other = mean - variance / (value - mean)
        low, high = sorted((value, other))
        wilson = proportion_confint(4 * (mean - low) / (high - low), 4, alpha=0.1, method="wilson")
        ends_by_hand.append(low + (high - low) * wilson[end])
    found = measure(make, table, metrics="brier", confidence_level=0.9)
    assert ends(found, "brier") == (approx(ends_by_hand[:1]), approx(ends_by_hand[1:]))


def test_curves_have_the_intervals_of_their_bins(make: Maker) -> None:
    table = {"y": [0, 0, 0, 1, 1, 0], "p": [0.1, 0.1, 0.2, 0.2, 0.9, 0.8]}
    for method, theirs in PEERS.items():
        found = rows(
            calframe.curve(make(table), label="y", score="p", bins=2, confidence_level=0.8, interval=method).table
        )
        wanted = [proportion_confint(k, n, alpha=0.2, method=theirs) for k, n in ((1, 4), (1, 2))]
        assert found["rate_low"] == approx([low for low, _ in wanted], rel=1e-9)
        assert found["rate_high"] == approx([high for _, high in wanted], rel=1e-9)


# ---------------------------------------------------------------- at the ends
def test_none_of_five_is_not_certainly_none(make: Maker) -> None:
    # https://github.com/lorentzenchr/model-diagnostics/issues/5: z^2 / (5 + z^2), and 1 - .025^(1/5)
    arguments: dict[str, Any] = {"metrics": "rate", "confidence_level": 0.95}
    wilson = ends(measure(make, {"y": [0] * 5, "p": [0.1] * 5}, **arguments), "rate")
    assert wilson == ([0.0], [approx(0.434482464783, rel=1e-11)])
    exact = ends(measure(make, {"y": [0] * 5, "p": [0.1] * 5}, interval="clopper_pearson", **arguments), "rate")
    assert exact == ([0.0], [approx(1 - 0.025 ** (1 / 5), rel=1e-9)])


@pytest.mark.parametrize("method", PEERS)
def test_all_and_none_are_mirrored(make: Maker, method: str) -> None:
    table = {"y": [0] * 6 + [1] * 6, "p": [0.5] * 12, "g": [0] * 6 + [1] * 6}
    found = measure(make, table, by="g", metrics="rate", confidence_level=0.9, interval=method)
    (none_low, all_low), (none_high, all_high) = ends(found, "rate")
    assert (none_low, all_high) == (approx(1 - all_high), approx(1 - none_low))
    assert none_high == approx(1 - all_low)
    assert 0 < none_high < 0.5
    assert none_low == 0.0 or method == "jeffreys"  # whose ends are quantiles, never 0


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_has_intervals_where_it_has_values(make: Maker, label: int) -> None:
    table = {"y": [label] * 8, "p": [0.25] * 8}
    found = rows(measure(make, table, metrics=WITH_INTERVAL, confidence_level=0.9))
    missing = {name for name, values in found.items() if values == [None]} - {"note"}
    assert missing == ({"ratio", "ratio_low", "ratio_high"} if label == 0 else set())
    for name in set(WITH_INTERVAL) - ({"ratio"} if label == 0 else set()):
        assert found[f"{name}_low"][0] <= found[name][0] + 1e-12
        assert found[name][0] <= found[f"{name}_high"][0] + 1e-12
        assert found[f"{name}_low"][0] < found[f"{name}_high"][0]  # eight rows leave room for doubt


def test_one_class_is_not_certain_of_its_brier_score(make: Maker) -> None:
    # all squares are 1/16, so their spread is 0; the positives that may yet come cost 9/16
    found = rows(measure(make, {"y": [0] * 8, "p": [0.25] * 8}, metrics="brier", confidence_level=0.9))
    assert found["brier"] == [0.0625]
    assert found["brier_high"][0] > 0.1


def test_certain_scores_keep_intervals_in_range(make: Maker) -> None:
    table = {"y": [1, 0, 1, 0], "p": [1.0, 0.0, 1.0, 1.0]}
    found = rows(measure(make, table, metrics=WITH_INTERVAL, confidence_level=0.999))
    assert 0 <= found["brier_low"][0] < found["brier_high"][0] <= 1
    assert -1 <= found["gap_low"][0] < found["gap_high"][0] <= 1
    assert 0 <= found["rate_low"][0] < found["rate_high"][0] <= 1
    assert 0 < found["ratio_low"][0] < found["ratio_high"][0] < math.inf


def test_nothing_has_no_interval(make: Maker) -> None:
    table = {"y": [1, 0, None], "p": [None, None, 0.5], "g": ["a", "a", "b"]}
    found = rows(measure(make, table, by="g", metrics=WITH_INTERVAL, confidence_level=0.9))
    assert {name for name, values in found.items() if values != [None, None]} == {"g", "n", "n_missing", "note"}


# In order: what chance says is no estimate; of a maximum, of a fit's own error and of the rest no honest one is known.
WITHOUT = [
    "mce",
    "ece_expected",
    "within_bin",
    "ece_sweep",
    "calibration_loss",
    "refinement_loss",
    "calibration_loss_log",
    "refinement_loss_log",
    "mcb",
    "dsc",
    "mcb_log",
    "dsc_log",
    "ici",
    "e50",
    "e90",
    "emax",
    "slope_se",
    "intercept_se",
    "citl_se",
    "confidence_mce",
    "classwise_mce",
    "full_ece",
]


def test_metrics_without_an_interval_say_so(make: Maker) -> None:
    rng = np.random.default_rng(2)
    score = rng.uniform(0.1, 0.9, 3000)  # enough rows for that of skce
    table = {"y": (rng.random(3000) < score).astype(int), "p": score}
    found = rows(measure(make, table, metrics="all", confidence_level=0.9, n_resamples=100))
    assert found["note"] == [f"no interval for {', '.join(WITHOUT)}"]
    for name, metric in METRICS.items():
        if not metric.posterior:
            known = name not in WITHOUT
            assert [found[f"{name}_{end}"][0] is not None for end in ("low", "high")] == [known, known], name


def smooth_interval(table: dict[str, Any], **arguments: Any) -> list[tuple[float | None, float | None]]:
    found = rows(measure(POLARS, table, metrics="smece", **{"confidence_level": 0.9, "n_resamples": 200, **arguments}))
    return list(zip(found["smece_low"], found["smece_high"], strict=True))


def test_the_draws_of_a_smooth_interval_come_from_the_seed_and_the_rows() -> None:
    rng = np.random.default_rng(8)
    score = rng.uniform(0.1, 0.9, 400)
    table = {"y": (rng.random(400) < score**2).astype(int), "p": score, "g": np.repeat(["a", "b"], 200)}
    (low, high), (low_b, high_b) = smooth_interval(table, by="g")
    assert smooth_interval(table, by="g") == [(low, high), (low_b, high_b)]
    alone = {name: values[:200] for name, values in table.items()}
    assert smooth_interval(alone, rng=0) == [(low, high)]  # whatever stands beside it
    other = smooth_interval(alone, rng=1)
    assert other != [(low, high)]
    assert other == [(pytest.approx(low, rel=0.3), pytest.approx(high, rel=0.15))]
    assert 0 < low < high < 1


def test_a_smooth_interval_needs_draws_beyond_its_ends(make: Maker) -> None:
    table = {"y": [0, 1, 1, 0] * 5, "p": [0.2, 0.4, 0.9, 0.6] * 5}
    few = rows(measure(make, table, metrics="smece", confidence_level=0.9, n_resamples=99))
    assert (few["smece_low"], few["smece_high"]) == ([None], [None])
    assert few["note"] == ["no interval for smece: it needs n_resamples of 10 / (1 - confidence_level) or more"]
    assert smooth_interval(table, n_resamples=100) != [(None, None)]


def test_intervals_widen_with_the_level_and_hold_the_value() -> None:
    rng = np.random.default_rng(6)
    table = {"y": rng.integers(0, 2, 60), "p": rng.random(60), "g": np.repeat(np.arange(6), [1, 2, 3, 10, 14, 30])}
    table["y"][0] = 1  # ratio has a value in each segment
    levels = [0.01, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9]
    found = [rows(measure(POLARS, table, by="g", metrics=WITH_INTERVAL, confidence_level=level)) for level in levels]
    for name in ("rate", "gap", "ratio", "brier"):
        at = slice(5, 6) if name == "brier" else slice(0, 6)  # its interval is for more than a handful of rows
        value = np.array(found[0][name])[at]
        low, high = (np.array([each[f"{name}_{end}"] for each in found])[1:, at] for end in ("low", "high"))
        assert (np.diff(low, axis=0) <= 1e-12).all()
        assert (np.diff(high, axis=0) >= -1e-12).all()
        assert ((low - 1e-12 <= value) & (value <= high + 1e-12)).all()


# ---------------------------------------------------------------- as often around the truth as they say
TABLES = 4000  # simulated at once, a segment each


def simulated(n: int, *, seed: int, weights: bool = False) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return rows whose scores are off on purpose, and the true rate, gap, ratio and Brier score of each table.

    Scores and weights are drawn and then held; the true chance of a row is not its score but ``.1 + .7 score^1.5``.
    """
    rng = np.random.default_rng(seed)
    score = rng.beta(2.0, 3.0, (1, n)).repeat(TABLES, axis=0)
    weight = rng.lognormal(0.0, 0.7, (1, n)).repeat(TABLES, axis=0) if weights else np.ones((TABLES, n))
    chance = 0.1 + 0.7 * score**1.5
    label = rng.random((TABLES, n)) < chance
    mean = [
        np.average(each[0], weights=weight[0])
        for each in (score, chance, chance * (1 - score) ** 2 + (1 - chance) * score**2)
    ]
    truth = {"rate": mean[1], "gap": mean[0] - mean[1], "ratio": mean[0] / mean[1], "brier": mean[2]}
    columns = {"g": np.repeat(np.arange(TABLES), n), "y": label.ravel(), "p": score.ravel(), "w": weight.ravel()}
    return pl.DataFrame(columns), pl.DataFrame(truth)


def coverage(found: pl.DataFrame, name: str, truth: float) -> float:
    """Return how many intervals hold the truth; a null one (no positives for a ratio) does not."""
    inside = (found[f"{name}_low"] <= truth) & (truth <= found[f"{name}_high"])
    return float(inside.fill_null(value=False).mean())


@pytest.mark.parametrize(("n", "weights"), [(25, False), (200, False), (200, True)])
@pytest.mark.parametrize("level", [0.9])
def test_intervals_hold_the_truth_as_often_as_they_say(n: int, weights: bool, level: float) -> None:  # noqa: FBT001
    frame, truth = simulated(n, seed=n + weights, weights=weights)
    weight = {"weight": "w"} if weights else {}
    found = calframe.metrics(
        frame, label="y", score="p", by="g", metrics=WITH_INTERVAL, confidence_level=level, **weight
    )
    error = math.sqrt(level * (1 - level) / TABLES)  # Monte Carlo error of a coverage
    for name in WITH_INTERVAL:
        covered = coverage(found, name, truth[name][0])
        # Chances that differ between rows vary less than the Binomial of their mean, so intervals of the rate hold the
        # truth a little too often, never too rarely; .02 is what such intervals are off by at 25 rows.
        assert level - 0.02 - 4 * error < covered < level + 0.05 + 4 * error, name


@pytest.mark.parametrize("method", PEERS)
def test_simulated_coverage_is_the_exact_one(method: str) -> None:
    # rows of one chance: the coverage is a sum over the Binomial law, with the intervals of statsmodels
    n, chance, level = 30, 0.15, 0.9
    rng = np.random.default_rng(12)
    labels = rng.random(TABLES * n) < chance
    frame = pl.DataFrame({"g": np.repeat(np.arange(TABLES), n), "y": labels}).with_columns(p=pl.lit(0.3))
    found = calframe.metrics(
        frame, label="y", score="p", by="g", metrics=["rate", "gap"], confidence_level=level, interval=method
    )
    k = np.arange(n + 1)
    for name, peer, truth in (("rate", PEERS[method], chance), ("gap", "wilson", 0.3 - chance)):
        low, high = proportion_confint(k, np.full(n + 1, n), alpha=1 - level, method=peer)
        exact = stats.binom.pmf(k, n, chance)[(low <= chance) & (chance <= high)].sum()
        error = math.sqrt(exact * (1 - exact) / TABLES)
        assert abs(coverage(found, name, truth) - exact) < 4 * error
        if peer == "beta":
            assert exact >= level


def test_few_positives_leave_the_brier_interval_honest() -> None:
    # one positive in a hundred, so many tables of 60 rows have none: the plain normal interval would hold the truth in
    # 45 of 100. Wilson's interval holds a rate of .01 for no positive or one, that is in 88 of 100
    n, rate = 60, 0.01
    labels = np.random.default_rng(13).random(TABLES * n) < rate
    frame = pl.DataFrame({"g": np.repeat(np.arange(TABLES), n), "y": labels}).with_columns(p=pl.lit(0.05))
    found = calframe.metrics(frame, label="y", score="p", by="g", metrics="brier", confidence_level=0.9)
    truth = rate * 0.95**2 + (1 - rate) * 0.05**2
    expected = stats.binom(n, rate).cdf(1)
    assert coverage(found, "brier", truth) == pytest.approx(
        expected, abs=4 * math.sqrt(expected * (1 - expected) / TABLES)
    )


def test_a_consistency_band_holds_right_rates_as_often_as_it_says() -> None:
    # bins of few rows with unequal scores: a band that misses its own ends by a hair would hold half of them
    rng = np.random.default_rng(14)
    level, n = 0.9, 40
    score = rng.beta(1.0, 4.0, TABLES * n)
    frame = pl.DataFrame({"g": np.repeat(np.arange(TABLES), n), "y": rng.random(TABLES * n) < score, "p": score})
    table = calframe.curve(frame, label="y", score="p", by="g", bins=10, confidence_level=level).table
    inside = (table["band_low"] <= table["rate"]) & (table["rate"] <= table["band_high"])
    for few, many in ((1, 2), (3, 5), (6, 10), (11, 40)):
        of_size = inside.filter(table["n"].is_between(few, many))
        assert of_size.mean() > level - 4 * math.sqrt(level * (1 - level) / len(of_size))
