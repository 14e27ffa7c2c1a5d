"""Verdicts: by the rules worked by hand, and intervals and tests against scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

import calframe
from calframe import ArgumentError
from calframe._report._actions import actions
from calframe._verdicts import Judged, check_tolerance, judge, worst_first
from tests._findings import findings, gathered, grouping, numbers


def judged(*segments: tuple[float, float, float], tolerance: float = 0.03, alpha: float = 0.05) -> Judged:
    """Judge segments given as (rows, rate, mean score)."""
    n, rate, score = (np.array(column, dtype=np.float64) for column in zip(*segments, strict=True))
    return judge(rate=rate, score=score, n=n, rows=n, tolerance=tolerance, alpha=alpha)


def interval(n: float, rate: float, score: float, *, comparisons: int, alpha: float = 0.05) -> tuple[float, float]:
    """Return the widened interval of a gap: Clopper and Pearson's of the rate at Šidák's level, mirrored.

    Its ends are quantiles of beta laws, here scipy's.
    """
    tail, hits = (1 - (1 - alpha) ** (1 / comparisons)) / 2, n * rate
    low = stats.beta.ppf(tail, hits, n - hits + 1) if hits > 0 else 0.0
    high = stats.beta.isf(tail, hits + 1, n - hits) if hits < n else 1.0
    return score - high, score - low


def own_interval(n: float, rate: float, score: float) -> tuple[float, float]:
    """Return the interval of a gap by itself: statsmodels' Wilson interval of the rate, mirrored."""
    low, high = proportion_confint(n * rate, n, method="wilson")
    return score - high, score - low


def exact_pvalue(n: float, rate: float, score: float) -> float:
    """Return twice the smaller of scipy's one-sided binomial tests."""
    hits = round(n * rate)
    assert hits == pytest.approx(n * rate, abs=1e-6)
    tails = [stats.binomtest(hits, int(n), score, side).pvalue for side in ("less", "greater")]
    return float(min(1.0, 2 * min(tails)))


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


# One segment of 1,000 rows and rate 0.5 has an exact interval of 0.5 ± 0.0314 (Wilson's: 0.0309).
@pytest.mark.parametrize(
    ("n", "score", "verdict"),
    [
        (1000, 0.562, "over"),  # 3.1 to 9.3 points
        (1000, 0.438, "under"),
        (1000, 0.560, "leans_over"),  # 2.9 to 9.1: without zero, but not beyond 3
        (1000, 0.440, "leans_under"),
        (1000, 0.5612, "leans_over"),  # 2.98 to 9.26; Wilson's interval would lie beyond 3
        (1000, 0.532, "leans_over"),  # 0.1 to 6.3
        (1000, 0.5312, "unsure"),  # −0.02 to 6.26; Wilson's interval would leave out zero
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
    ("n", "positives", "score", "enough"),
    [
        (100, 50, 0.5, True),
        (99, 50, 0.5, False),
        (1000, 10, 0.001, True),
        (1000, 9, 0.001, False),
        (1000, 9, 0.009, False),
        (1000, 990, 0.999, True),
        (1000, 991, 0.999, False),
        (154, 10, 0.01, True),  # 10 / 154 * 154 is 9.999… in floating point
        (101, 91, 0.99, True),
        (5000, 0, 0.0019, False),
        (5000, 0, 0.002, True),  # ten are expected, so that none is news
        (5000, 5000, 0.9981, False),
        (5000, 5000, 0.998, True),
        (1000, 991, 0.5, True),
    ],
)
def test_a_segment_is_judged_from_100_rows_and_10_of_each_outcome_on(
    n: int,
    positives: int,
    score: float,
    enough: bool,  # noqa: FBT001
) -> None:
    table = pl.DataFrame({"y": [1] * positives + [0] * (n - positives), "p": [score] * n, "s": ["a"] * n})
    found = gathered(table, by="s")
    [row] = found.groupings[0].segments.iter_rows(named=True)
    assert (row["verdict"] != "few") is enough
    assert (row["pvalue"] is not None) is enough
    assert found.comparisons == int(n >= 100)  # whatever the labels


@pytest.mark.parametrize("seed", range(20))
def test_every_verdict_follows_from_interval_and_p_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 40))
    n = rng.integers(20, 20_000, count)
    rate = (rng.integers(0, n + 1) if seed % 4 else rng.binomial(n, rng.beta(1, 200, count))) / n
    score = np.clip(rate + rng.normal(0, 0.04, count), 0, 1)
    tolerance, alpha = float(rng.uniform(0.005, 0.06)), float(rng.choice([0.01, 0.05, 0.2]))
    found = judged(*zip(n, rate, score, strict=True), tolerance=tolerance, alpha=alpha)
    known, compared = found.judged, n >= 100
    most, least = np.maximum(rate, score), np.minimum(rate, score)  # outcomes seen or expected
    np.testing.assert_array_equal(known, compared & (n * most > 9.999) & (n * (1 - least) > 9.999))
    assert known.any()  # otherwise the seed shows nothing
    assert found.comparisons == compared.sum()
    raw = np.array([exact_pvalue(*one) for one in zip(n, rate, score, strict=True)])
    adjusted = np.full(count, np.nan)
    adjusted[compared] = multipletests(raw[compared], method="holm")[1]
    np.testing.assert_allclose(found.pvalue, np.where(known, raw, np.nan), rtol=1e-8, atol=1e-290)
    np.testing.assert_allclose(found.pvalue_adjusted, np.where(known, adjusted, np.nan), rtol=1e-8, atol=1e-290)
    for i in range(count):
        ends = interval(n[i], rate[i], score[i], comparisons=int(compared.sum()), alpha=alpha)
        expected = verdict_by_hand(*ends, adjusted[i], tolerance=tolerance, alpha=alpha) if known[i] else "few"
        assert found.verdict[i] == expected
        assert (found.sim_low[i], found.sim_high[i]) == pytest.approx(ends, abs=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_an_interval_leaves_out_zero_exactly_where_its_test_rejects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(100, 3000, 200)
    rate = rng.integers(10, n - 9) / n
    score = np.clip(rate + rng.normal(0, 2.5, 200) * np.sqrt(rate * (1 - rate) / n), 0.001, 0.999)
    found = judged(*zip(n, rate, score, strict=True))
    sidak = 1 - 0.95 ** (1 / found.comparisons)
    out = (found.sim_low > 0) | (found.sim_high < 0)
    assert 0 < out.sum() < 200
    np.testing.assert_array_equal(out, found.pvalue < sidak)
    # A segment's own interval is Wilson's, which the score test inverts (variance of the hypothesis).
    z = (rate - score) / np.sqrt(score * (1 - score) / n)
    np.testing.assert_array_equal((found.low > 0) | (found.high < 0), 2 * stats.norm.sf(np.abs(z)) < 0.05)


@pytest.mark.parametrize(("alpha", "events"), [(0.05, 15), (0.01, 12), (0.2, 400)])
def test_one_segment_alone_has_an_interval_that_ends_where_its_test_rejects(alpha: float, events: int) -> None:
    rate = events / 1000
    found = judged((1000, rate, 0.1), alpha=alpha)
    for end in (found.sim_low[0], found.sim_high[0]):
        [pvalue] = judged((1000, rate, 0.1 - end)).pvalue  # at the end of the interval of the rate
        assert pvalue == pytest.approx(alpha, rel=1e-8)


def test_p_value_is_twice_the_smaller_tail() -> None:
    # scipy's one-sided binomial tests
    found = judged((500, 0.3, 0.34), (800, 0.62, 0.6), (5000, 0.004, 0.002), (5000, 0.998, 0.996))
    expected = [
        2 * stats.binom.cdf(150, 500, 0.34),
        2 * stats.binom.sf(495, 800, 0.6),
        2 * stats.binom.sf(19, 5000, 0.002),
        2 * stats.binom.cdf(10, 5000, 0.004),  # ten of the other outcome, of 20 expected: the same seen from there
    ]
    np.testing.assert_allclose(found.pvalue, expected, rtol=1e-9)


def test_p_value_of_effective_rows_that_are_not_whole() -> None:
    # scipy's beta laws: P(K >= k) of n at p is their distribution function at p with k and n − k + 1, for any k.
    n, hits = 1234.5, 61.7
    found = judged((n, hits / n, 0.04), (n, hits / n, 0.06))
    expected = [
        2 * stats.beta.cdf(0.04, hits, n - hits + 1),
        2 * stats.beta.sf(0.06, hits + 1, n - hits),
    ]
    np.testing.assert_allclose(found.pvalue, expected, rtol=1e-9)


def test_the_number_of_comparisons_does_not_depend_on_labels() -> None:
    # Of three segments with rows enough one has five events: it is not judged, and the others are as with three.
    found = judged((1000, 0.3, 0.33), (1000, 0.005, 0.005), (1000, 0.4, 0.45), (99, 0.5, 0.5))
    assert found.comparisons == 3
    assert found.enough.tolist() == [True, True, True, False]
    assert found.judged.tolist() == [True, False, True, False]
    raw = [exact_pvalue(1000, 0.3, 0.33), exact_pvalue(1000, 0.005, 0.005), exact_pvalue(1000, 0.4, 0.45)]
    holm = multipletests(raw, method="holm")[1]
    np.testing.assert_allclose(found.pvalue_adjusted, [holm[0], np.nan, holm[2], np.nan], rtol=1e-9)
    ends = interval(1000, 0.4, 0.45, comparisons=3)
    assert (found.sim_low[2], found.sim_high[2]) == pytest.approx(ends, abs=1e-12)


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
        assert row["pvalue"] == pytest.approx(exact_pvalue(row["n"], row["rate"], row["mean_score"]), rel=1e-8)
        ends = interval(row["n"], row["rate"], row["mean_score"], comparisons=5)
        assert (row["simultaneous_low"], row["simultaneous_high"]) == pytest.approx(ends, abs=1e-12)
        own = own_interval(row["n"], row["rate"], row["mean_score"])
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
    ends = interval(effective, 0.5, 0.55, comparisons=1)
    assert (row["simultaneous_low"], row["simultaneous_high"]) == pytest.approx(ends, abs=1e-12)
    assert row["pvalue"] == pytest.approx(exact_pvalue(effective, 0.5, 0.55), rel=1e-9)


def test_one_heavy_row_leaves_too_few_effective_rows() -> None:
    table = pl.DataFrame({"y": [0, 1] * 500, "p": [0.5] * 1000, "w": [1.0] * 999 + [1000.0]})
    # 1,999² / (999 + 1,000,000) is 4 effective rows
    assert gathered(table, weight="w").overall["verdict"] == "few"


@pytest.mark.parametrize(
    ("rate", "score", "n", "verdict", "then"),
    [
        (0.5, 0.55, 800, "leans_over", "over"),
        (0.5, 0.51, 800, "unsure", "within"),
        (0.05, 0.1, 200, "leans_over", "over"),  # rare events, with an interval that is far from symmetric
        (0.05, 0.05, 206, "unsure", "within"),
        (0.95, 0.95, 206, "unsure", "within"),
        (0.1, 0.055, 300, "leans_under", "under"),
        (0.9, 0.945, 300, "leans_over", "over"),
    ],
)
def test_rows_needed_would_decide_if_the_gap_stays(rate: float, score: float, n: int, verdict: str, then: str) -> None:
    found = judged((n, rate, score))
    assert found.verdict == (verdict,)
    needed = float(found.rows_needed[0])
    assert n < needed <= 10 * n
    for times, expected in ((1.0, then), (0.999, None)):
        ends = interval(times * needed, rate, score, comparisons=1)
        beyond, inside = ends[0] > 0.03 or ends[1] < -0.03, ends[0] >= -0.03 and ends[1] <= 0.03
        assert (beyond, inside) == (expected in {"over", "under"}, expected == "within")


def test_rows_needed_of_weighted_rows_grow_with_their_effective_number() -> None:
    one, four = (
        judge(rate=np.array([0.5]), score=np.array([0.55]), n=np.array([800.0]), rows=rows, tolerance=0.03, alpha=0.05)
        for rows in (np.array([800.0]), np.array([3200.0]))
    )
    np.testing.assert_allclose(four.rows_needed, 4 * one.rows_needed, rtol=1e-12)


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
    with pytest.raises(ArgumentError, match=r"alpha must lie between 1e-09 and 0\.5, for example 0\.05"):
        check_tolerance(0.03, alpha)


@pytest.mark.parametrize("argument", ["tolerance", "alpha"])
def test_a_number_given_as_text_is_an_error_of_ours(argument: str) -> None:
    with pytest.raises(ArgumentError, match=rf"{argument} .*'0\.03'"):
        calframe.report(pl.DataFrame({"y": [1], "p": [0.5]}), label="y", score="p", **{argument: "0.03"})


@pytest.mark.parametrize(
    ("rate", "gap", "n", "said"),
    [
        # (z / distance)² × rate × (1 − rate) by the normal curve, and a little more by the exact interval:
        (0.5, 0.05, 300, "300 rows, about 2,500 needed"),  # (1.96 / 0.02)² / 4 = 2,401
        (0.5, 0.035, 300, "300 rows, more than 10 times as many needed"),  # (1.96 / 0.005)² / 4 = 38,416
        # (1.96 / 0.03)² × 0.05 × 0.95 = 203, but few events have a lopsided interval: scipy's beta quantiles say 318.7.
        (0.05, 0.0, 206, "206 rows, about 320 needed"),
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


def test_a_notebook_is_told_what_leans_means_and_of_what_the_p_value_is() -> None:
    # 180 of 1,000 where 150 were expected: 2.7 standard deviations, and the interval reaches across 3 points
    table = pl.DataFrame({"p": [0.15] * 2_000, "y": [1] * 180 + [0] * 820 + [1] * 150 + [0] * 850})
    table = table.with_columns(g=pl.Series(["a"] * 1_000 + ["b"] * 1_000))
    result = calframe.audit(table, label="y", score="p", by="g")
    assert result.table["verdict"][0] == "leans_under"
    said = result._repr_html_()
    assert "adj. p: of the gap to the rest, adjusted over all segments (holm)." in said
    assert "leans: the adjusted p-value is at most 0.05, the gap may still be within the tolerance" in said
    assert repr(calframe.test(table, label="y", score="p")).startswith("<TestResult: resampling ece, ")
