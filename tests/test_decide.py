"""Acting from a threshold on: costs, net benefit and what miscalibration costs, by their definitions."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest
import vl_convert
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import confusion_matrix
from statsmodels.stats.proportion import proportion_confint

import calframe
from calframe import ArgumentError, ColumnClashError, EmptyTableError, ScoreError
from calframe._decide import Decisions, decide
from tests._tables import Maker, approx, rows, types

POLARS = Maker("polars")
COUNTS = ["n", "n_missing"]
VALUES = ["rate", "threshold", "acted", "cost", "cost_low", "cost_high", "cost_all", "cost_none"]
VALUES += ["saved", "saved_low", "saved_high", "net_benefit", "standardised_net_benefit"]
VALUES += ["threshold_in_hindsight", "cost_in_hindsight"]
VALUES += ["miscalibration_cost", "miscalibration_cost_by_score"]
CURVE = ["threshold", "acted", "n", "cost", "cost_low", "cost_high"]
CURVE += ["net_benefit", "net_benefit_all", "standardised_net_benefit"]
COSTS: dict[str, Any] = {"cost_fp": 1, "cost_fn": 4}


def found(columns: Any, make: Maker = POLARS, **arguments: Any) -> Decisions:
    given = {} if "threshold" in arguments else COSTS
    return decide(make(columns), **{"label": "y", "score": "p", **given, **arguments})


def drawn(n: int = 500, *, seed: int = 0) -> dict[str, Any]:
    """Return rows with ties, two models, weights and segments."""
    rng = np.random.default_rng(seed)
    score = np.where(rng.random(n) < 0.5, rng.integers(0, 11, n) / 10, rng.random(n))
    return {
        "y": (rng.random(n) < score**2).astype(int).tolist(),
        "p": score.tolist(),
        "q": np.round(rng.random(n), 1).tolist(),
        "w": rng.choice([0.5, 1.0, 2.5], n).tolist(),
        "k": rng.choice([1, 2, 3], n).tolist(),
        "g": rng.choice(["a", "b", "c"], n).tolist(),
    }


# By hand. Forty rows at three scores: 0.1 with 6 of 20 positive, 0.2 with 1 of 10, 0.7 with 6 of 10. Acting on a
# negative costs 1, missing a positive 4, so the threshold is 1/5 and 0.2 is acted on.

HAND = {
    "y": [1] * 6 + [0] * 14 + [1] + [0] * 9 + [1] * 6 + [0] * 4,
    "p": [0.1] * 20 + [0.2] * 10 + [0.7] * 10,
}


def test_costs_by_hand(make: Maker) -> None:
    table = rows(found(HAND, make).table)
    assert list(table) == [*COUNTS, *VALUES, "note"]
    expected = {
        "n": 40,
        "n_missing": 0,
        "rate": Fraction(13, 40),
        "threshold": Fraction(1, 5),
        "acted": Fraction(20, 40),
        "cost": Fraction(9 + 4 + 4 * 6, 40),
        "cost_all": Fraction(27, 40),
        "cost_none": Fraction(4 * 13, 40),
        "saved": Fraction(27 - 37, 40),
        # 7 true positives, 13 false ones at a quarter each
        "net_benefit": Fraction(7, 40) - Fraction(13, 40) / 4,
        "standardised_net_benefit": (7 - Fraction(13, 4)) / 13,
        # pooled, the rates of 0.1 and 0.2 are 7/30 > 1/5: acting on all is cheapest
        "threshold_in_hindsight": Fraction(1, 10),
        "cost_in_hindsight": Fraction(27, 40),
        "miscalibration_cost": Fraction(37 - 27, 40),
        # score by score: act at 0.1 (14 < 24), do not at 0.2 (4 < 9), act at 0.7 (4 < 24)
        "miscalibration_cost_by_score": Fraction(37 - (14 + 4 + 4), 40),
    }
    assert {name: table[name] for name in expected} == {
        name: [approx(float(value))] for name, value in expected.items()
    }
    assert table["note"] == [None]


def test_the_curve_by_hand(make: Maker) -> None:
    curve = rows(found(HAND, make, thresholds=[0.7, 0.15, 0.8]).curve)
    assert list(curve) == CURVE
    assert curve["threshold"] == [0.15, 0.2, 0.7, 0.8]
    assert curve["acted"] == [0.5, 0.5, 0.25, 0.0]
    assert curve["n"] == [20, 20, 10, 0]
    assert curve["cost"] == approx([37 / 40, 37 / 40, (4 + 4 * 7) / 40, 4 * 13 / 40])
    benefit = [Fraction(7 - 13 * Fraction(15, 85)) / 40, (7 - Fraction(13, 4)) / 40, (6 - 4 * Fraction(7, 3)) / 40, 0]
    assert curve["net_benefit"] == approx([float(value) for value in benefit])
    everyone = [(13 - 27 * odds) / 40 for odds in (15 / 85, 1 / 4, 7 / 3, 4)]
    assert curve["net_benefit_all"] == approx(everyone)
    assert curve["standardised_net_benefit"] == approx([float(value * 40 / 13) for value in benefit])


def test_curves_are_drawn_up_at_every_hundredth() -> None:
    assert found(HAND).curve["threshold"].to_list() == [i / 100 for i in range(1, 100)]
    third = found(HAND, cost_fp=1, cost_fn=2).curve["threshold"].to_list()
    assert third == sorted([1 / 3, *(i / 100 for i in range(1, 100))])


def test_models_of_either_width_are_acted_on_from_the_same_scores() -> None:
    kinds = {"p": pl.Float32, "q": pl.Float64}
    frame = pl.DataFrame({"y": [0, 1, 1], "p": [0.3, 0.7, 0.1], "q": [0.3, 0.7, 0.1]}, schema_overrides=kinds)
    for threshold in (0.1, 0.3, 0.7):
        one, other = decide(frame, label="y", score=["p", "q"], threshold=threshold).table["acted"]
        assert one == other == sum(score >= threshold for score in (0.3, 0.7, 0.1)) / 3


def test_a_score_of_exactly_the_threshold_is_acted_on() -> None:
    for kind in (pl.Float32, pl.Float64):
        for score in (0.1, 0.2, 0.3, 0.7, 0.9):
            frame = pl.DataFrame({"y": [0, 1], "p": [score, score / 2]}, schema_overrides={"p": kind})
            assert decide(frame, label="y", score="p", threshold=score).table["acted"].item() == 0.5


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        ({}, []),
        ({"by": "g"}, ["g"]),
        ({"score": ["q", "p"]}, ["model"]),
        ({"score": ["p", "q"], "by": ["k", "g"]}, ["k", "g", "model"]),
    ],
)
def test_columns_come_in_order_and_keep_their_types(make: Maker, arguments: dict[str, Any], keys: list[str]) -> None:
    result = found(drawn(80), make, **arguments)
    for frame, names in ((result.table, [*COUNTS, *VALUES, "note"]), (result.curve, CURVE)):
        assert isinstance(frame, pl.DataFrame if make.lazy else make.result)
        kinds = types(frame)
        assert list(kinds) == [*keys, *names]
        whole = {"n", "n_missing"} & set(names)
        assert {kinds[name] for name in whole} == {nw.Int64}
        assert {kinds[name] for name in set(names) - whole - {"note"}} == {nw.Float64}
    weighted = found(drawn(80), make, weight="w", **arguments)
    assert list(types(weighted.table)) == [*keys, *COUNTS, "weight_sum", *VALUES, "note"]


# Against the definitions, row by row


def cost_of(columns: dict[str, Any], score: str, keep: Any, weight: str | None, threshold: float) -> float:
    """Return the mean cost of acting from a threshold on, from scikit-learn's confusion matrix."""
    p, y = np.array(columns[score])[keep], np.array(columns["y"])[keep]
    w = np.ones(len(p)) if weight is None else np.array(columns[weight])[keep]
    ((_, fp), (fn, _)) = confusion_matrix(y, p >= threshold, labels=[0, 1], sample_weight=w)
    return float((COSTS["cost_fp"] * fp + COSTS["cost_fn"] * fn) / w.sum())


@pytest.mark.parametrize("weight", [None, "w"])
def test_tables_and_curves_by_their_definition(make: Maker, weight: str | None) -> None:
    columns = drawn()
    grid = [0.0, 0.07, 0.1, 0.2, 0.35, 0.5, 0.9, 0.99]
    result = found(columns, make, score=["p", "q"], by="g", weight=weight, thresholds=grid[::-1])
    table, curve = rows(result.table), rows(result.curve)
    place = 0
    for i, (segment, model) in enumerate((g, m) for g in "abc" for m in ("p", "q")):
        keep = np.array(columns["g"]) == segment
        y, p = np.array(columns["y"])[keep], np.array(columns[model])[keep]
        w = np.ones(len(y)) if weight is None else np.array(columns[weight])[keep]
        row = {name: values[i] for name, values in table.items()}
        assert (row["g"], row["model"], row["n"]) == (segment, model, len(y))
        rate = (w * y).sum() / w.sum()
        assert row["rate"] == approx(rate)
        assert row["cost"] == approx(cost_of(columns, model, keep, weight, 0.2))
        assert row["cost_all"] == approx((1 - rate) * 1)
        assert row["cost_none"] == approx(rate * 4)
        for threshold in grid:
            acted = p >= threshold
            tp, fp = (w * acted * y).sum() / w.sum(), (w * acted * (1 - y)).sum() / w.sum()
            point = {name: values[place] for name, values in curve.items()}
            assert (point["g"], point["model"], point["threshold"]) == (segment, model, threshold)
            assert point["acted"] == approx((w * acted).sum() / w.sum())
            assert point["n"] == acted.sum()
            assert point["cost"] == approx(cost_of(columns, model, keep, weight, threshold))
            odds = threshold / (1 - threshold)
            assert point["net_benefit"] == approx(tp - fp * odds)
            assert point["net_benefit_all"] == approx(rate - (1 - rate) * odds)
            assert point["standardised_net_benefit"] == approx((tp - fp * odds) / rate)
            place += 1
    assert place == len(curve["n"])


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("costs", [(1, 4), (3, 1), (1, 1), (0, 2), (2, 0), (0.3, 0.7), (1e-9, 1e9)])
def test_hindsight_tries_every_threshold(costs: tuple[float, float], weight: str | None) -> None:
    fp, fn = costs
    columns = drawn()
    result = found(columns, by="g", weight=weight, cost_fp=fp, cost_fn=fn).table
    for row in result.iter_rows(named=True):
        keep = np.array(columns["g"]) == row["g"]
        y, p = np.array(columns["y"])[keep], np.array(columns["p"])[keep]
        w = np.ones(len(y)) if weight is None else np.array(columns[weight])[keep]

        def cost(acted: Any, y: Any = y, w: Any = w) -> float:
            return float((w * np.where(acted, fp * (1 - y), fn * y)).sum() / w.sum())

        every = {threshold: cost(p >= threshold) for threshold in [*sorted(set(p.tolist())), np.inf]}
        assert row["cost_in_hindsight"] == approx(min(every.values()))
        best = np.inf if row["threshold_in_hindsight"] is None else row["threshold_in_hindsight"]
        assert every[best] == approx(min(every.values()))
        # scikit-learn: acting where the isotonic fit is at least the cost-derived threshold
        fitted = IsotonicRegression(y_min=0, y_max=1).fit_transform(p, y, sample_weight=w)
        after = cost(fitted >= fp / (fp + fn) * (1 - 1e-9))
        assert row["miscalibration_cost"] == approx(row["cost"] - after)
        assert row["miscalibration_cost"] >= 0


def test_regret_score_by_score() -> None:
    columns = drawn()
    table = found(columns, score="q", by="g", weight="w").table
    for row in table.iter_rows(named=True):
        total, saved = 0.0, 0.0
        for score in {round(i / 10, 1) for i in range(11)}:
            keep = (np.array(columns["g"]) == row["g"]) & (np.array(columns["q"]) == score)
            w, y = np.array(columns["w"])[keep], np.array(columns["y"])[keep]
            act, wait = (w * (1 - y)).sum() * 1, (w * y).sum() * 4
            total += w.sum()
            saved += (act if score >= 0.2 else wait) - min(act, wait)
        assert row["miscalibration_cost_by_score"] == approx(saved / total)
        assert row["miscalibration_cost_by_score"] >= row["miscalibration_cost"] - 1e-12


def test_right_scores_lose_nothing() -> None:
    # each score has its rate: 1 of 10, 3 of 10, 8 of 10
    columns = {
        "y": [1] + [0] * 9 + [1] * 3 + [0] * 7 + [1] * 8 + [0] * 2,
        "p": [0.1] * 10 + [0.3] * 10 + [0.8] * 10,
    }
    for threshold in (0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 0.9):
        row = found(columns, threshold=threshold).table.to_dicts()[0]
        assert row["miscalibration_cost"] == approx(0.0)
        assert row["miscalibration_cost_by_score"] == approx(0.0)
        assert row["cost_in_hindsight"] == approx(row["cost"])


def test_hindsight_at_single_rows_is_not_told() -> None:
    columns = {"y": [0, 1] * 10, "p": np.linspace(0, 1, 20).tolist()}
    row = found(columns).table.to_dicts()[0]
    assert row["miscalibration_cost_by_score"] is None
    assert row["note"] == "miscalibration_cost_by_score: fewer than 10 rows a score"


def test_a_threshold_tells_the_ratio_of_the_costs() -> None:
    columns = drawn()
    by_threshold, by_costs = found(columns, threshold=0.2), found(columns, cost_fp=0.2, cost_fn=0.8)
    assert by_threshold.table.equals(by_costs.table)
    assert (by_threshold.cost_fp, by_threshold.cost_fn, by_threshold.threshold) == (0.2, 0.8, 0.2)
    # net benefit is rate - cost / cost_fn, for costs in any unit
    row = found(columns).table.to_dicts()[0]
    assert row["net_benefit"] == approx(row["rate"] - row["cost"] / 4)


@pytest.mark.parametrize(("costs", "threshold"), [((1, 9), 0.1), ((3, 7), 0.3), ((0, 5), 0.0), ((5, 0), 1.0)])
def test_thresholds_follow_from_costs(costs: tuple[float, float], threshold: float) -> None:
    result = found({"y": [0, 1, 1], "p": [0.0, 0.5, 1.0]}, cost_fp=costs[0], cost_fn=costs[1])
    assert result.threshold == threshold
    assert result.table["threshold"].item() == threshold
    assert threshold in result.curve["threshold"].to_list()


@pytest.mark.parametrize("unit", [1e-300, 1e-100, 1e150, 1.0e307])
def test_costs_of_any_unit_have_the_same_intervals(unit: float) -> None:
    names = ["cost", "cost_low", "cost_high", "cost_all", "cost_in_hindsight", "miscalibration_cost"]
    names += ["saved", "saved_low", "saved_high"]
    plain, scaled = (found(HAND, cost_fp=one, cost_fn=4 * one).table.select(names).row(0) for one in (1.0, unit))
    assert [value / unit for value in scaled] == approx(list(plain))


def test_a_threshold_of_1_forgives_no_false_positive() -> None:
    curve = found({"y": [0, 1], "p": [1.0, 1.0]}, threshold=1.0, thresholds=[0.0]).curve.to_dicts()
    assert [row["net_benefit"] for row in curve] == [0.5, float("-inf")]
    sure = found({"y": [0, 1], "p": [0.2, 1.0]}, threshold=1.0, thresholds=[]).curve.to_dicts()
    assert [(row["threshold"], row["net_benefit"]) for row in sure] == [(1.0, 0.5)]


# Intervals


def test_equal_costs_have_the_interval_of_the_error_rate(make: Maker) -> None:
    # acting on 0.2 and 0.7: 13 false and 6 missed of 40. Wilson, statsmodels
    row = {
        name: values[0]
        for name, values in rows(found(HAND, make, cost_fp=3, cost_fn=3, confidence_level=0.9).table).items()
    }
    low, high = proportion_confint(11, 40, alpha=0.1, method="wilson")
    assert row["cost"] == approx(3 * 11 / 40)  # at 0.5: 4 false and 7 missed
    assert [row["cost_low"], row["cost_high"]] == approx([3 * low, 3 * high])


def test_weighted_intervals_are_those_of_effective_rows() -> None:
    columns = drawn()
    w = np.array(columns["w"])
    row = found(columns, cost_fp=1, cost_fn=1, weight="w").table.to_dicts()[0]
    effective = w.sum() ** 2 / (w**2).sum()
    low, high = proportion_confint(row["cost"] * effective, effective, method="wilson")
    assert [row["cost_low"], row["cost_high"]] == approx([low, high], rel=1e-9)


def test_intervals_hold_the_true_cost() -> None:
    # p uniform, true chance p^2, threshold 1/5: the cost is the integral of (1 - p^2) from 0.2 and of 4 p^2 up to 0.2
    true = (0.8 - (1 - 0.2**3) / 3) + 4 * 0.2**3 / 3
    rng = np.random.default_rng(5)
    for n in (60, 600):
        p = rng.random(500 * n)
        frame = pl.DataFrame({"y": rng.random(500 * n) < p**2, "p": p, "g": np.repeat(np.arange(500), n)})
        table = decide(frame, label="y", score="p", by="g", thresholds=[], **COSTS).table
        share = ((table["cost_low"] <= true) & (true <= table["cost_high"])).mean()
        # 95 % of 500 within three standard errors, or more
        assert share >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 500)
    # a rare cost: one in fifty missed at a cost of 50, never acted on
    y = rng.random(500 * 100) < 0.02
    rare = pl.DataFrame({"y": y, "p": 0.01, "g": np.repeat(np.arange(500), 100)})
    table = decide(rare, label="y", score="p", by="g", cost_fp=1, cost_fn=50, thresholds=[]).table
    assert ((table["cost_low"] <= 1.0) & (table["cost_high"] >= 1.0)).mean() >= 0.92


def test_no_error_is_possible_where_it_costs_nothing() -> None:
    row = found({"y": [0, 1, 0], "p": [0.1, 0.2, 0.3]}, cost_fp=0, cost_fn=1).table.to_dicts()[0]
    assert (row["acted"], row["cost"], row["cost_low"], row["cost_high"]) == (1.0, 0.0, 0.0, 0.0)
    assert (row["saved"], row["saved_low"], row["saved_high"]) == (0.0, 0.0, 0.0)  # it acts on all, by its threshold


def exact(share: float, n: float, level: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval, from statsmodels."""
    low, high = proportion_confint(share * n, n, alpha=1 - level, method="beta")
    return (0.0 if share == 0 else low), (1.0 if share == 1 else high)


@pytest.mark.parametrize("weight", [None, "w"])
def test_what_is_saved_row_by_row(make: Maker, weight: str | None) -> None:
    columns = drawn()
    result = rows(found(columns, make, score=["p", "q"], by="g", weight=weight).table)
    for i, (segment, model) in enumerate((g, m) for g in "abc" for m in ("p", "q")):
        keep = np.array(columns["g"]) == segment
        y, acted = np.array(columns["y"])[keep], np.array(columns[model])[keep] >= 0.2
        w = np.ones(len(y)) if weight is None else np.array(columns[weight])[keep]
        cost = np.where(acted, 1 - y, 4 * y)
        against = [np.average(other - cost, weights=w) for other in (1 - y, 4 * y)]
        assert result["saved"][i] == approx(min(against))
        assert result["saved"][i] == approx(min(result["cost_all"][i], result["cost_none"][i]) - result["cost"][i])
        assert result["saved_low"][i] < result["saved"][i] < result["saved_high"][i]


def test_the_interval_of_what_is_saved_where_a_rate_decides() -> None:
    # All scores are acted on: against none a row saves 4 or loses 1, so exact ends of the rate, 30 of 40, are its ends;
    # the upper one with half of the error. Against all nothing was seen: up to 1 - 0.05^(1/40) of the rows may still be
    # left alone, each of which loses 4 or saves 1.
    row = found({"y": [1] * 30 + [0] * 10, "p": [0.6] * 40}, confidence_level=0.9).table.to_dicts()[0]
    seen = 1 - 0.05 ** (1 / 40), 1 - 0.025 ** (1 / 40)
    assert row["saved"] == 0.0
    assert row["saved_low"] == approx(-4 * seen[0])
    assert row["saved_high"] == approx(seen[1])
    assert exact(0.75, 40, 0.9)[0] * 5 - 1 > 0  # surely better than none, yet not decided
    # None is acted on where all come true: against all each row loses 4, or fewer of them by the rate's upper end
    row = found({"y": [1] * 40, "p": [0.1] * 40}, confidence_level=0.9).table.to_dicts()[0]
    assert (row["saved"], row["saved_low"]) == (-4.0, -4.0)
    assert row["saved_high"] == approx(1 - 5 * exact(1.0, 40, 0.95)[0])


def test_intervals_of_what_is_saved_hold_the_truth() -> None:
    """Each end by itself errs in at most 2.5 % of tables, and three Monte Carlo errors; theory: sums of shares."""
    rng = np.random.default_rng(6)
    tables, limit = 1_000, 0.025 + 3 * np.sqrt(0.025 * 0.975 / 1_000)
    # chances of tp, fp, fn, tn; costs; the third has acting on all and on none cost the same, the fourth a rare gain
    worlds = [
        ((0.2, 0.2, 0.05, 0.55), (1, 4)),
        ((0.3, 0.3, 0.1, 0.3), (1, 1)),
        ((0.1, 0.4, 0.1, 0.4), (1, 4)),
        ((0.01, 0.49, 0.0, 0.5), (1, 50)),
        ((0.0, 0.001, 0.01, 0.989), (1, 9)),
    ]
    for chances, (fp, fn) in worlds:
        tp, false, missed, tn = chances
        true = min(fp * tn - fn * missed, fn * tp - fp * false)
        for n in (50, 400):
            counts = rng.multinomial(n, chances, tables)
            frame = pl.DataFrame(
                {
                    "g": np.repeat(np.arange(tables), 4),
                    "y": [1, 0, 1, 0] * tables,
                    "p": [1.0, 1.0, 0.0, 0.0] * tables,
                    "w": counts.ravel(),
                }
            )
            table = decide(
                frame.filter(pl.col("w") > 0),
                label="y",
                score="p",
                by="g",
                weight="w",
                weight_kind="frequency",
                cost_fp=fp,
                cost_fn=fn,
                thresholds=[],
            ).table
            assert (table["saved_low"] > true + 1e-9).mean() <= limit, (chances, n)
            assert (table["saved_high"] < true - 1e-9).mean() <= limit, (chances, n)


# Rows


def test_the_order_of_rows_does_not_matter() -> None:
    frame = pl.DataFrame(drawn())
    one, other = (
        decide(each, label="y", score="p", by="g", weight="w", **COSTS)
        for each in (frame, frame.sample(fraction=1.0, shuffle=True, seed=1))
    )
    for name in ("table", "curve"):
        first, second = rows(getattr(one, name)), rows(getattr(other, name))
        assert first == {key: approx(values) for key, values in second.items()}


def test_weight_2_is_the_row_twice() -> None:
    frame = pl.DataFrame(drawn())
    twice = frame.select(pl.all().repeat_by("k")).explode(pl.all(), empty_as_null=True)
    weighted = decide(frame, label="y", score="p", weight="k", weight_kind="frequency", **COSTS).table
    plain = decide(twice, label="y", score="p", **COSTS).table
    names = [name for name in VALUES if name != "miscalibration_cost_by_score"]
    assert weighted.select(names).row(0) == pytest.approx(plain.select(names).row(0), rel=1e-12)


def test_a_segment_is_judged_as_if_it_were_alone() -> None:
    frame = pl.DataFrame(drawn())
    together = decide(frame, label="y", score="p", by="g", **COSTS)
    for segment in ("a", "b", "c"):
        alone = decide(frame.filter(g=segment), label="y", score="p", by="g", **COSTS)
        assert together.table.filter(g=segment).equals(alone.table)
        assert together.curve.filter(g=segment).equals(alone.curve)


def test_missing_rows_are_counted_and_null_segments_are_a_segment(make: Maker) -> None:
    columns = {
        "y": [1, None, 0, 1, 0, None],
        "p": [0.9, 0.8, None, 0.7, 0.4, 0.5],
        "g": ["a", "a", "a", None, None, "z"],
    }
    result = found(columns, make, by="g", thresholds=[0.5])
    table = rows(result.table)
    assert table["g"] == ["a", "z", None]
    assert table["n"] == [1, 0, 2]
    assert table["n_missing"] == [2, 1, 0]
    assert table["cost"] == [0.0, None, 0.5]
    assert table["note"][0].startswith("only positives; ")
    assert table["note"][1] == "no usable rows"
    assert rows(result.curve)["g"] == ["a", "a", None, None]
    assert (result.n, result.n_missing, result.n_invalid) == (3, 3, 0)


def test_segments_of_one_class() -> None:
    columns = {"y": [0] * 10 + [1] * 10, "p": [0.5] * 20, "g": ["no"] * 10 + ["yes"] * 10}
    no, yes = found(columns, by="g").table.to_dicts()
    assert (no["cost"], no["cost_in_hindsight"], no["threshold_in_hindsight"]) == (1.0, 0.0, None)
    assert no["standardised_net_benefit"] is None
    assert no["note"] == "only negatives; acting on no one costs least in hindsight"
    assert (yes["cost"], yes["cost_none"], yes["standardised_net_benefit"]) == (0.0, 4.0, 1.0)
    assert yes["note"] == "only positives"


def test_invalid_and_weightless_rows() -> None:
    columns = {"y": [1, 1, 0], "p": [0.9, 1.5, 0.2], "w": [1.0, 1.0, 0.0]}
    with pytest.raises(ScoreError, match=r"scores must lie in \[0, 1\]: column 'p'"):
        found(columns)
    row = found(columns, invalid="drop", weight="w").table.to_dicts()[0]
    assert (row["n"], row["n_missing"], row["n_invalid"], row["weight_sum"]) == (1, 0, 1, 1.0)
    assert "1 row of weight 0 left out" in row["note"]


def test_a_table_without_usable_rows(make: Maker) -> None:
    result = found({"y": np.array([np.nan, np.nan]), "p": np.array([0.5, 0.6])}, make)
    assert rows(result.table)["cost"] == [None]
    assert rows(result.curve) == {name: [] for name in CURVE}
    assert result.plot() is not None
    assert "no row can be used" in repr(result)


def test_logits_are_decided_on_by_their_probabilities() -> None:
    columns = drawn()
    inside = np.clip(columns["q"], 0.05, 0.95)
    of_logits = {**columns, "p": special.logit(inside).tolist()}
    plain = {**columns, "p": special.expit(special.logit(inside)).tolist()}
    one, other = (
        rows(each.table) for each in (found(of_logits, link="logit", threshold=0.23), found(plain, threshold=0.23))
    )
    assert one == {name: approx(values) for name, values in other.items()}


def test_two_classes_are_decided_on_by_the_second() -> None:
    columns = drawn()
    columns["r"] = [1 - p for p in columns["p"]]
    assert found(columns, score={0: "r", 1: "p"}).table.equals(found(columns).table)
    named = {**columns, "y": ["yes" if y else "no" for y in columns["y"]]}
    assert found(named, positive="yes").table.equals(found(columns).table)


def test_what_recalibration_saves_out_of_fold_is_a_second_model() -> None:
    frame = pl.DataFrame(drawn(2000))
    crossed = calframe.cross_fit(frame, label="y", score="p", method="isotonic")
    table = decide(crossed, label="y", score=["p", "p_calibrated"], **COSTS).table
    before, after = table["cost"].to_list()
    # rows of p^2 chances: acting from 0.2 on is too early; out of fold the map saves less than in hindsight
    assert 0 < before - after <= table["miscalibration_cost"][0] + 1e-12


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, None]),
            st.sampled_from([0.0, 1e-12, 0.2, 0.5, 1.0, None]),
            st.sampled_from([0.0, 0.1, 3.0]),
            st.sampled_from(["a", "b", None]),
        ),
        min_size=1,
        max_size=25,
    ),
    st.sampled_from([(1, 4), (0, 1), (1, 0), (7, 7), (1e-90, 1e90)]),
)
@settings(deadline=None)  # a busy machine is no fault
def test_what_holds_for_every_table(values: list[Any], costs: tuple[float, float]) -> None:
    frame = pl.DataFrame(values, schema={"y": pl.Int64, "p": pl.Float64, "w": pl.Float64, "g": pl.String}, orient="row")
    result = decide(frame, label="y", score="p", by="g", weight="w", cost_fp=costs[0], cost_fn=costs[1])
    for row in result.table.iter_rows(named=True):
        if row["n"] == 0:
            assert (row["cost"], row["cost_in_hindsight"]) == (None, None)
            assert "no usable rows" in row["note"]
            continue
        room = 1e-12 * max(costs)
        assert row["cost_in_hindsight"] <= min(row["cost"], row["cost_all"], row["cost_none"]) + room
        assert row["cost_low"] - room <= row["cost"] <= row["cost_high"] + room
        assert row["cost_low"] >= 0
        assert row["cost_high"] <= max(costs) + room
        assert row["miscalibration_cost"] >= 0
        assert abs(min(row["cost_all"], row["cost_none"]) - row["cost"] - row["saved"]) <= room
        assert row["saved_low"] - room <= row["saved"] <= row["saved_high"] + room
        assert -max(costs) - room <= row["saved_low"]
        assert row["saved_high"] <= max(costs) + room
        assert row["net_benefit"] <= row["rate"] + 1e-12
    acted = result.curve.with_columns(pl.col("acted").diff().over("g"))["acted"].drop_nulls()
    assert (acted <= 1e-12).all()
    json.dumps(result.to_dict(), allow_nan=False)


# Errors


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"cost_fp": -1}, r"cost_fp must be a number of 0 or more, the cost of a wrong decision; got -1\."),
        ({"cost_fn": float("nan")}, r"cost_fn must be a number of 0 or more"),
        ({"cost_fn": float("inf")}, r"cost_fn must be a number of 0 or more"),
        ({"cost_fn": "4"}, r"cost_fn must be a number of 0 or more.* got '4'\."),
        ({"cost_fn": True}, r"cost_fn must be a number"),
        ({"cost_fp": 0, "cost_fn": 0}, r"cost_fp and cost_fn are both 0"),
        ({"cost_fp": None}, r"decide needs cost_fp=.* and cost_fn=.* or threshold=.*; got cost_fp=None, cost_fn=4\."),
        ({"cost_fp": None, "cost_fn": None}, r"decide needs cost_fp="),
        ({"threshold": 1.2}, r"threshold must lie in \[0, 1\], for example 0\.2; got 1\.2\."),
        ({"threshold": "half"}, r"threshold must lie in \[0, 1\]"),
        ({"threshold": 0.2, "cost_fp": 1}, r"threshold=0\.2 is in the place of cost_fp= and cost_fn="),
        ({"thresholds": [0.1, 2]}, r"thresholds must lie in \[0, 1\], for example 0\.2; got 2\."),
        ({"thresholds": "0.1"}, r"thresholds must lie in \[0, 1\], for example 0\.2; got '0\.1'\."),
        ({"thresholds": [0.5] * 10_001}, r"thresholds may be 10,000 numbers at most; got 10,001\."),
        ({"confidence_level": 95}, r"confidence_level must lie between 0 and 1"),
        ({"engine": "fast"}, r"engine must be one of"),
        ({"score": {0: "p", 1: "q", 2: "w"}}, r"decide takes scores of one class; score= has 3 classes"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        found(drawn(20), **arguments)


def test_segments_named_like_a_column_of_the_result() -> None:
    for name in ("threshold", "acted", "cost", "net_benefit", "miscalibration_cost"):
        with pytest.raises(ColumnClashError, match=f"segment column '{name}' has the name of a result column"):
            found({**HAND, name: ["a"] * 40}, by=name)


def test_an_empty_table() -> None:
    with pytest.raises(EmptyTableError, match="the table has no rows"):
        found(pl.DataFrame({"y": [], "p": []}, schema={"y": pl.Int64, "p": pl.Float64}).to_dict())


# The result object


def test_to_dict_is_json() -> None:
    result = found(drawn(), by="g", score=["p", "q"], thresholds=[0.5, 1.0])
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (data["schema_version"], data["kind"]) == (1, "decisions")
    assert (data["label"], data["scores"], data["by"], data["n"]) == ("y", ["p", "q"], ["g"], 500)  # the table once
    names = ("cost_fp", "cost_fn", "threshold", "confidence_level")
    assert [data["convention"][name] for name in names] == [1.0, 4.0, 0.2, 0.95]
    assert [len(data[name]) for name in ("table", "curve")] == [6, 18]


def test_a_printed_result_says_what_acting_costs() -> None:
    row = found(HAND).table.to_dicts()[0]
    low, high = (f"{row[name]:.4g}".replace("-", "\N{MINUS SIGN}") for name in ("saved_low", "saved_high"))
    assert repr(found(HAND)).splitlines() == [
        "<Decisions: act from 0.2 on, 40 rows; .table, .curve, .plot()>",
        f"  cost per row 0.925 ({row['cost_low']:.4g} to {row['cost_high']:.4g})",
        "  acting on all 0.675, on none 1.3",
        f"  saved against the cheaper of both \N{MINUS SIGN}0.25 ({low} to {high}): not decided",
        "  isotonic recalibration would have saved 0.25 a row here",
    ]


def test_printed_segments_say_what_is_decided_and_what_is_not() -> None:
    # a, b: half of the rows wrongly left alone, half wrongly acted on, where most come true and where hardly any do;
    # c: all decisions right; d: few rows
    columns = {
        "y": [1] * 90 + [0] * 10 + [0] * 95 + [1] * 5 + [0, 1] * 50 + [0, 1, 1],
        "p": [0.1] * 90 + [0.9] * 10 + [0.9] * 95 + [0.1] * 5 + [0.1, 0.9] * 50 + [0.1, 0.9, 0.1],
        "g": ["a"] * 100 + ["b"] * 100 + ["c"] * 100 + ["d"] * 3,
    }
    result = found(columns, by="g")
    lines = repr(result).splitlines()
    assert " ".join(line.strip() for line in lines[1:4]) == (
        "the score against the cheaper of all and none, at 95% each: surely cheaper (saved_low > 0) in 1 of 4 curves, "
        "surely dearer (saved_high < 0) in 2, not decided in 1"
    )
    decided = {line.split()[0]: " ".join(line[5:17].split()) for line in lines[6:]}
    assert decided == {"a": "act on all", "b": "act on none", "c": "by the score", "d": "not decided"}
    assert [line.split()[0] for line in lines[6:]] == ["a", "b", "d", "c"]
    assert {"saved", "saved_low", "saved_high"} <= set(result.to_dict()["table"][0])


def test_models_are_counted_and_classes_are_not() -> None:
    columns = {**drawn(100), "r": [1 - p for p in drawn(100)["p"]]}
    assert "models" not in repr(found(columns, score={0: "r", 1: "p"}))
    assert "models" not in repr(found(columns, score={0: "r", 1: "p"}, by="g"))
    assert " by the classes r, p<" in found(columns, score={0: "r", 1: "p"})._repr_html_()
    assert "100 rows, 2 models" in repr(found(columns, score=["r", "p"], by="g"))
    assert " by r, p<" in found(columns, score=["r", "p"])._repr_html_()


def test_printed_thresholds_are_rounded_up_and_lines_fit() -> None:
    models = repr(found({**HAND, "q": [0.5] * 40}, score=["p", "q"]))
    assert models.startswith("<Decisions: act from 0.2 on, 40 rows, 2 models; ")
    assert "act from 0.3334 on" in repr(found(HAND, cost_fp=1, cost_fn=2))  # 1/3, rounded up
    wide = found(drawn(), cost_fp=1.23456e98, cost_fn=1.23456e99)
    assert all(len(line) <= 80 for line in repr(wide).splitlines())


def test_html_is_escaped() -> None:
    assert "<script>" not in found({**HAND, "g": ["<script>"] * 40}, by="g")._repr_html_()


# The chart


def data_of(chart: Any, kind: str) -> list[dict[str, Any]]:
    """Return the rows behind the marks of a kind."""
    spec = chart.to_dict()
    layers = [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]
    held = [layer["data"] for layer in layers]
    return [row for data in held for row in (spec["datasets"][data["name"]] if "name" in data else data["values"])]


def test_the_chart_shows_the_curves() -> None:
    chart = found(HAND, thresholds=[0.1, 0.7]).plot()
    lines = data_of(chart, "line")
    assert [(row["at"], row["value"]) for row in lines if "value" in row] == [
        (0.1, approx((13 - 27 / 9) / 40, rel=1e-5)),
        (0.2, approx(0.09375, rel=1e-5)),
    ]  # at 0.7 neither is worth anything: the axis ends before
    assert [row["words"] for row in data_of(chart, "text")] == ["act from 0.2 on"]
    assert "No intervals" in " ".join(chart.to_dict()["title"]["text"])
    assert [row["everyone"] for row in lines if "everyone" in row] == approx([0.25, (13 - 27 / 4) / 40], rel=1e-5)
    assert [row["at"] for row in data_of(chart, "rule") if "at" in row] == [0.2]
    said = [row["description"] for row in data_of(chart, "point")]
    assert said[-1] == "from 0.2 on: acts on 50.0%, net benefit 0.0938; of acting on everyone 0.156"


HOSTILE = "</script><script>alert(1)</script><!-- \x00 {7*7} var(--cf-ink)"


@pytest.mark.parametrize("groups", [1, 3, 12])
def test_charts_are_drawn(groups: int) -> None:
    columns = drawn(240)
    columns["g"] = [f"{HOSTILE}{i % groups}" for i in range(240)]
    chart = found(columns, by="g", thresholds=[i / 20 for i in range(20)]).plot(width=900)
    text = json.dumps(chart.to_dict(), allow_nan=False)
    assert "</script" not in text
    svg = vl_convert.vegalite_to_svg(text, vl_version="6.4")
    assert "var(--cf-" not in svg.replace("var(--cf-ink)", "")


def test_a_curve_is_shown_down_to_its_lowest_point_and_many_have_panels() -> None:
    # half of 0.6 come true: at 0.55 that is 10 - 10 * 55 / 45 of 20, below a quarter of 0.5
    chart = found({"y": [1, 0] * 10, "p": [0.6] * 20}, thresholds=[0.01, 0.4, 0.55]).plot().to_dict()
    scales = [layer["encoding"]["y"].get("scale") for layer in chart["layer"] if "y" in layer["encoding"]]
    low, _ = next(scale["domain"] for scale in scales if scale)
    assert low <= 0.5 - 0.5 * 55 / 45
    columns = {"y": [1, 0] * 70, "p": [0.4, 0.3] * 70, "g": [i % 14 for i in range(140)]}
    panels = found(columns, by="g").plot().to_dict()
    assert [panel["title"]["text"] for panel in panels["concat"]] == [str(i) for i in range(12)]
    assert "The 12 curves of most rows, of 14." in " ".join(panels["title"]["text"])


def test_a_chart_too_narrow() -> None:
    with pytest.raises(ArgumentError, match="width must be a number of pixels"):
        found(HAND).plot(width=3)
