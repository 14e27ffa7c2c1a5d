"""Verdicts: by the rules worked by hand, and intervals and tests against statsmodels."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint, proportions_ztest

import calframe
from calframe import ArgumentError
from calframe._report._actions import actions
from calframe._verdicts import Judged, check_tolerance, judge, worst_first
from tests._findings import findings, gathered, grouping, numbers


def judged(*segments: tuple[int, float, float], tolerance: float = 0.03, alpha: float = 0.05) -> Judged:
    """Judge segments given as (rows, rate, mean score)."""
    n, rate, score = (np.array(column, dtype=np.float64) for column in zip(*segments, strict=True))
    return judge(rate=rate, score=score, n=n, rows=n, tolerance=tolerance, alpha=alpha)


def interval(n: float, rate: float, score: float, *, comparisons: int, alpha: float = 0.05) -> tuple[float, float]:
    """Return the widened interval of a gap: statsmodels' Wilson interval of the rate at Šidák's level, mirrored."""
    low, high = proportion_confint(n * rate, n, alpha=1 - (1 - alpha) ** (1 / comparisons), method="wilson")
    return score - high, score - low


def verdict_by_hand(low: float, high: float, adjusted: float, *, tolerance: float, alpha: float) -> str:
    if low > tolerance:
        return "over"
    if high < -tolerance:
        return "under"
    if low >= -tolerance and high <= tolerance:
        return "within"
    if adjusted < alpha:
        return "leans_over" if (low + high) / 2 > 0 else "leans_under"
    return "unsure"


# One segment of 1,000 rows and rate 0.5 has a Wilson interval of 0.5 ± 0.0309.
@pytest.mark.parametrize(
    ("n", "score", "verdict"),
    [
        (1000, 0.562, "over"),  # 3.1 to 9.3 points
        (1000, 0.438, "under"),
        (1000, 0.560, "leans_over"),  # 2.9 to 9.1: without zero, but not beyond 3
        (1000, 0.440, "leans_under"),
        (1000, 0.532, "leans_over"),  # 0.1 to 6.3
        (1000, 0.530, "unsure"),  # −0.1 to 6.1
        (1000, 0.500, "unsure"),  # −3.1 to 3.1: no evidence of a gap is not evidence of none
        (10_000, 0.500, "within"),
        (10_000, 0.518, "within"),  # 0.8 to 2.8: inside, however small its p-value
        (10_000, 0.522, "leans_over"),  # 1.2 to 3.2
        (100, 0.500, "unsure"),
        (99, 0.900, "few"),
    ],
)
def test_verdict_of_one_segment(n: int, score: float, verdict: str) -> None:
    found = judged((n, 0.5, score))
    assert found.verdict == (verdict,)
    low, high = interval(n, 0.5, score, comparisons=1)
    if verdict != "few":
        assert (found.sim_low[0], found.sim_high[0]) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(
    ("n", "positives", "enough"),
    [
        (100, 50, True),
        (99, 50, False),
        (1000, 10, True),
        (1000, 9, False),
        (1000, 990, True),
        (1000, 991, False),
        (154, 10, True),  # 10 / 154 * 154 is 9.999… in floating point
        (101, 91, True),
        (5000, 0, False),
        (5000, 5000, False),
    ],
)
def test_a_segment_is_judged_from_100_rows_and_10_of_each_outcome_on(
    n: int,
    positives: int,
    enough: bool,  # noqa: FBT001
) -> None:
    table = pl.DataFrame({"y": [1] * positives + [0] * (n - positives), "p": [0.5] * n, "s": ["a"] * n})
    found = gathered(table, by="s")
    [row] = found.groupings[0].segments.iter_rows(named=True)
    assert (row["verdict"] != "few") is enough
    assert (row["pvalue"] is not None) is enough
    assert found.comparisons == int(enough)


@pytest.mark.parametrize("seed", range(20))
def test_every_verdict_follows_from_interval_and_p_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 40))
    n = rng.integers(20, 20_000, count)
    rate = rng.integers(0, n + 1) / n if seed % 4 else rng.beta(1, 200, count)
    score = np.clip(rate + rng.normal(0, 0.04, count), 0, 1)
    tolerance, alpha = float(rng.uniform(0.005, 0.06)), float(rng.choice([0.01, 0.05, 0.2]))
    found = judged(*zip(n, rate, score, strict=True), tolerance=tolerance, alpha=alpha)
    known = found.judged
    assert not known[(n < 100) | (n * rate < 9.999) | (n * (1 - rate) < 9.999)].any()
    assert known.any()  # otherwise the seed shows nothing
    adjusted = np.full(count, np.nan)
    adjusted[known] = multipletests(found.pvalue[known], method="holm")[1]
    np.testing.assert_allclose(found.pvalue_adjusted, adjusted, rtol=1e-12)
    for i in range(count):
        ends = interval(n[i], rate[i], score[i], comparisons=max(int(known.sum()), 1), alpha=alpha)
        expected = verdict_by_hand(*ends, adjusted[i], tolerance=tolerance, alpha=alpha) if known[i] else "few"
        assert found.verdict[i] == expected
        assert (found.sim_low[i], found.sim_high[i]) == pytest.approx(ends, abs=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_an_interval_leaves_out_zero_exactly_where_its_test_rejects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(100, 3000, 200)
    rate = rng.integers(10, n - 9) / n
    score = np.clip(rate + rng.normal(0, 1.5, 200) * np.sqrt(rate * (1 - rate) / n), 0.001, 0.999)
    alone = judged(*zip(n, rate, score, strict=True))
    np.testing.assert_array_equal((alone.low > 0) | (alone.high < 0), alone.pvalue < 0.05)
    sidak = 1 - 0.95 ** (1 / alone.comparisons)
    np.testing.assert_array_equal((alone.sim_low > 0) | (alone.sim_high < 0), alone.pvalue < sidak)


def test_p_value_is_that_of_the_score_test() -> None:
    # statsmodels: the z test of a proportion with the variance of the hypothesis
    found = judged((500, 0.3, 0.34), (800, 0.62, 0.6))
    expected = [
        proportions_ztest(150, 500, 0.34, prop_var=0.34)[1],
        proportions_ztest(496, 800, 0.6, prop_var=0.6)[1],
    ]
    np.testing.assert_allclose(found.pvalue, expected, rtol=1e-9)


def test_comparisons_run_over_the_segments_of_all_groupings() -> None:
    rng = np.random.default_rng(3)
    n = 6000
    score = rng.uniform(0.1, 0.6, n)
    table = pl.DataFrame(
        {
            "y": (rng.random(n) < score - 0.02).astype(int),
            "p": score,
            "a": rng.choice(["u", "v", "w"], n),
            "b": rng.choice(["x", "y"], n),
        }
    ).with_columns(b=pl.when(pl.int_range(n) < 60).then(pl.lit("tiny")).otherwise("b"))
    found = gathered(table, by=["a", "b"])
    assert found.comparisons == 5
    rows = [one.row for one in found.segments()]
    known = [row for row in rows if row["verdict"] != "few"]
    assert len(rows) == 6
    assert len(known) == 5
    adjusted = multipletests([row["pvalue"] for row in known], method="holm")[1]
    for row, expected in zip(known, adjusted, strict=True):
        assert row["pvalue_adjusted"] == pytest.approx(expected, rel=1e-12)
        ends = interval(row["n"], row["rate"], row["mean_score"], comparisons=5)
        assert (row["simultaneous_low"], row["simultaneous_high"]) == pytest.approx(ends, abs=1e-12)
        own = interval(row["n"], row["rate"], row["mean_score"], comparisons=1)
        assert (row["gap_low"], row["gap_high"]) == pytest.approx(own, abs=1e-12)


@pytest.mark.parametrize("kind", ["importance", "frequency"])
def test_weights_enter_by_the_effective_number_of_rows(kind: str) -> None:
    weight = np.array([1.0] * 300 + [3.0] * 100)
    label = np.arange(400) % 2
    table = pl.DataFrame({"y": label, "p": [0.55] * 400, "w": weight})
    row = gathered(table, weight="w", weight_kind=kind).overall
    # (300 + 300)² / (300 + 900) = 300 rows; as frequencies 600 rows
    effective = 300.0 if kind == "importance" else 600.0
    low, high = proportion_confint(0.5 * effective, effective, method="wilson")
    assert row["n"] == 400
    assert row["weight_sum"] == 600.0
    assert (row["gap_low"], row["gap_high"]) == pytest.approx((0.55 - high, 0.55 - low), abs=1e-12)
    z = 0.05 / np.sqrt(0.55 * 0.45 / effective)
    assert row["pvalue"] == pytest.approx(2 * stats.norm.sf(z), rel=1e-12)


def test_one_heavy_row_leaves_too_few_effective_rows() -> None:
    table = pl.DataFrame({"y": [0, 1] * 500, "p": [0.5] * 1000, "w": [1.0] * 999 + [1000.0]})
    # 1,999² / (999 + 1,000,000) is 4 effective rows
    assert gathered(table, weight="w").overall["verdict"] == "few"


@pytest.mark.parametrize(("score", "verdict"), [(0.55, "leans_over"), (0.51, "unsure")])
def test_rows_needed_would_decide_if_the_gap_stays(score: float, verdict: str) -> None:
    found = judged((800, 0.5, score))
    assert found.verdict == (verdict,)
    needed = int(found.rows_needed[0])
    assert 800 < needed <= 8000
    decided = judged((round(1.02 * needed), 0.5, score)).verdict[0]
    assert decided == ("over" if score > 0.53 else "within")
    assert judged((round(0.95 * needed), 0.5, score)).verdict[0] not in {"over", "within"}


def test_rows_needed_are_not_named_where_they_are_far_off_or_not_needed() -> None:
    found = judged((800, 0.5, 0.5299), (20_000, 0.5, 0.5), (800, 0.5, 0.7), (50, 0.5, 0.5))
    assert found.verdict == ("unsure", "within", "over", "few")
    assert np.isnan(found.rows_needed).all()


def test_a_certain_score_that_is_wrong_is_clear_and_one_that_is_right_is_not() -> None:
    found = judged((1000, 0.5, 1.0), (1000, 0.5, 0.0))
    assert found.verdict == ("over", "under")
    assert (found.pvalue == 0).all()


def test_segments_without_rows_are_too_few() -> None:
    nothing = np.array([np.nan, 0.5])
    n = np.array([0.0, 1000.0])
    found = judge(rate=nothing, score=nothing, n=n, rows=n, tolerance=0.03, alpha=0.05)
    assert found.verdict == ("few", "unsure")
    assert found.comparisons == 1
    assert np.isnan([found.gap[0], found.sim_low[0], found.pvalue_adjusted[0]]).all()


def test_worst_first_is_by_kind_then_by_rows_mis_stated() -> None:
    verdicts = ("few", "within", "over", "unsure", "under", "leans_over", "within")
    net = np.array([900.0, 50.0, 100.0, -70.0, -300.0, 20.0, -60.0])
    assert worst_first(verdicts, net) == [4, 2, 5, 3, 6, 1, 0]


def test_equals_keep_the_order_of_the_segments_whatever_the_order_of_the_rows() -> None:
    # Every segment holds the same rows, so that none misstates more than another.
    rng = np.random.default_rng(0)
    score = rng.uniform(0.3, 0.4, 3000)
    label = (rng.random(3000) < score).astype(int)
    names = [f"s{i}" for i in range(8)]
    table = pl.concat([pl.DataFrame({"y": label, "p": score, "s": [name] * 3000}) for name in names])
    for seed in range(5):
        found = gathered(table.sample(fraction=1.0, shuffle=True, seed=seed), by="s")
        assert found.groupings[0].segments["segment"].to_list() == names


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -0.03, 3, float("nan")])
def test_a_tolerance_is_a_gap_between_0_and_1(tolerance: float) -> None:
    with pytest.raises(ArgumentError, match=r"tolerance is a gap between 0 and 1, for example 0\.03"):
        check_tolerance(tolerance, 0.05)
    with pytest.raises(ArgumentError, match="tolerance"):
        calframe.report(pl.DataFrame({"y": [1], "p": [0.5]}), label="y", score="p", tolerance=tolerance)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 5, float("nan")])
def test_alpha_is_an_error_rate(alpha: float) -> None:
    with pytest.raises(ArgumentError, match=r"alpha must lie between 0 and 0\.5, for example 0\.05"):
        check_tolerance(0.03, alpha)


@pytest.mark.parametrize("argument", ["tolerance", "alpha"])
def test_a_number_given_as_text_is_an_error_of_ours(argument: str) -> None:
    with pytest.raises(ArgumentError, match=rf"{argument} .*'0\.03'"):
        calframe.report(pl.DataFrame({"y": [1], "p": [0.5]}), label="y", score="p", **{argument: "0.03"})


@pytest.mark.parametrize(
    ("rate", "gap", "n", "said"),
    [
        # Where the normal curve says how many rows are needed, (z / distance)² × rate × (1 − rate):
        (0.5, 0.05, 300, "300 rows, about 2,500 needed"),  # (1.96 / 0.02)² / 4 = 2,401
        (0.5, 0.035, 300, "300 rows, more than 10 times as many needed"),  # (1.96 / 0.005)² / 4 = 38,416
        # (1.96 / 0.03)² × 0.05 × 0.95 = 202.8 of 206 that there are, but Wilson's interval is not symmetric.
        (0.05, 0.0, 206, "206 rows, a few more needed"),
    ],
)
def test_the_undecided_say_how_many_rows_are_needed_or_why_not(rate: float, gap: float, n: int, said: str) -> None:
    found = judged((n, rate, rate + gap))
    assert found.verdict == ("unsure",)
    far = None if np.isnan(found.rows_needed[0]) else float(found.rows_needed[0])
    row = numbers("unsure", name="One", gap=gap, rate=rate, n=n, needed=far)
    row |= {"simultaneous_low": float(found.sim_low[0]), "simultaneous_high": float(found.sim_high[0])}
    [action] = actions(findings(grouping("area", row)))
    assert action.why == f"area One ({said}) cannot be judged either way yet."
