"""What periods are compared with, tests of their gaps and scores, and what a change is made of."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from calframe._drift import drift
from calframe._kernels._building import tally_of_rows
from calframe._testing._change import change_parts
from calframe._testing._rates import ScoreSums, change_pvalue, rate_pvalue
from tests._drift_tables import COMPARED, METRICS, exact, followed, months, table_of
from tests._tables import Maker, approx, rows
from tests.simulations.gaps import CASES, read


# ---------------------------------------------------------------- references
@pytest.mark.parametrize(
    ("reference", "inside", "words"),
    [
        (None, [0, 1], "Jan 2024 to Feb 2024"),
        ("first", [0], "Jan 2024"),
        ("Mar 2024", [2], "Mar 2024"),
        ("2024-03-17", [2], "Mar 2024"),
        (dt.date(2024, 4, 30), [3], "Apr 2024"),
        (dt.datetime(2024, 4, 30, 12, tzinfo=dt.UTC), [3], "Apr 2024"),
        (("2024-02-02", dt.date(2024, 4, 1)), [1, 2, 3], "Feb 2024 to Apr 2024"),
        (["Feb 2024", "Mar 2024"], [1, 2], "Feb 2024 to Mar 2024"),
        ("2024-03", [2], "Mar 2024"),
        ("Q2 2024", [3, 4, 5], "Apr 2024 to Jun 2024"),
        (2024, [0, 1, 2, 3, 4, 5], "Jan 2024 to Jun 2024"),
        (("2024-02", "2024-03"), [1, 2], "Feb 2024 to Mar 2024"),
    ],
)
def test_periods_of_the_reference_are_not_compared(reference: Any, inside: list[int], words: str) -> None:
    table = table_of()
    found = followed(table, reference=reference)
    assert [i for i, note in enumerate(found.table["note"]) if note == "part of the reference"] == inside
    assert [i for i, value in enumerate(found.table["psi"]) if value is None] == inside
    assert found.reference == words
    apart = table.filter(pl.col("t").is_in([months(6)[i] for i in inside]))
    same = followed(table, reference=apart).table
    others = [i for i in range(6) if i not in inside]
    for name in COMPARED:
        assert [found.table[name][i] for i in others] == approx([same[name][i] for i in others], rel=1e-12)


@pytest.mark.parametrize("window", [1, 2, 9])
def test_a_rolling_reference_is_the_periods_before(window: int) -> None:
    table = table_of()
    found = followed(table, reference="rolling", window=window, by="g").table
    assert found.filter(period=months(6)[0])["note"].to_list() == ["no rows in the reference"] * 3
    for i in range(1, 6):
        before = table.filter(pl.col("t").is_in(months(6)[max(i - window, 0) : i]))
        now = followed(table.filter(t=months(6)[i]), reference=before, by="g").table
        for name in COMPARED:
            expected = found.filter(period=months(6)[i])[name].to_list()
            assert now[name].to_list() == approx(expected, rel=1e-12), name


def test_a_second_table_needs_no_time_and_meets_segments_by_name(make: Maker) -> None:
    before = {"y": [0, 1, 0, 1], "p": [0.2, 0.4, 0.6, 0.8], "g": ["x", "x", "z", None]}
    now = {"y": [1, 0, 0], "p": [0.2, 0.5, 0.8], "g": ["x", "y", None]}
    found = followed(make(now), time=None, reference=make(before), by="g", psi_bins=2)
    lines = rows(found.table)
    assert (lines["g"], lines["period"], lines["n"]) == (["x", "y", None], [None] * 3, [1, 1, 1])
    assert lines["gap_change"] == approx([(0.2 - 1) - (0.3 - 0.5), None, 0.8 - (0.8 - 1)])
    assert lines["note"][1] == "no rows in the reference"
    assert found.reference == "the reference table"
    assert rows(found.monitor)["time"] == [None] * 3


def test_identical_periods_do_not_differ() -> None:
    same = pl.concat([table_of().drop("t").with_columns(t=pl.lit(month)) for month in months(2)])
    found = followed(same, reference="first")
    line = found.table.row(1, named=True)
    assert [line[name] for name in ("psi", "wasserstein", "ks", "gap_change")] == approx([0.0] * 4)
    assert (line["ks_pvalue"], line["gap_change_pvalue"]) == (1.0, 1.0)
    for name in ("score_mix", "class_prior", "rest"):
        assert found.parts[name].to_list() == approx([0.0, 0.0], rel=1e-9)


# ---------------------------------------------------------------- tests
@pytest.mark.parametrize(
    ("n", "hits", "score"), [(20, 3, 0.4), (50, 0, 0.02), (400, 190, 0.5), (30, 30, 0.9), (5, 5, 1.0)]
)
def test_a_gap_of_zero_is_tested_exactly_where_scores_are_equal(n: int, hits: int, score: float) -> None:
    # scipy.stats.binom: twice the smaller tail
    law = stats.binom(n, score)
    expected = min(1.0, 2.0 * min(law.cdf(hits), law.sf(hits - 1)))
    table = pl.DataFrame({"y": [1] * hits + [0] * (n - hits), "p": score, "t": dt.date(2024, 1, 1)})
    assert followed(table).table["gap_pvalue"][0] == pytest.approx(expected, rel=1e-9)


def test_a_certain_score_that_is_wrong_cannot_be_right() -> None:
    table = pl.DataFrame({"y": [0, 1, 1], "p": [1.0, 1.0, 1.0], "t": months(3)})
    assert followed(table).table["gap_pvalue"].to_list() == [0.0, 1.0, 1.0]


def test_a_gap_is_compared_as_two_rates_are_where_scores_are_equal() -> None:
    # for many rows the two-sided z-test of two proportions with pooled variance, here (0.5, 0.46) of 20,000 each
    found = followed(exact((20_000, 0.5), (20_000, 0.49)), reference="first").table.row(1, named=True)
    z = 0.01 / math.sqrt(0.495 * 0.505 * 2 / 20_000)
    assert found["gap_change"] == pytest.approx(0.01, abs=1e-12)
    assert found["gap_change_pvalue"] == pytest.approx(2 * stats.norm.sf(z), rel=0.05)


def test_intervals_of_a_change_are_those_of_two_proportions() -> None:
    # statsmodels' "newcomb" (Newcombe 1998, method 10): rates 0.45 and then 0.27, so that the gap grew by 0.18
    found = followed(exact((2_000, 0.45), (1_000, 0.27)), reference="first").table.row(1, named=True)
    low, high = confint_proportions_2indep(900, 2_000, 270, 1_000, method="newcomb", compare="diff")
    assert [found["gap_change_low"], found["gap_change_high"]] == approx([low, high])


def test_simultaneous_intervals_of_changes_are_exact_and_hold_over_the_periods_of_a_model() -> None:
    # made of Clopper and Pearson's (statsmodels' "beta") at the level of three judged periods; the fourth has few rows
    table = exact((2_000, 0.45), (3_000, 0.5), (1_000, 0.27), (50, 0.5))
    found = followed(table, reference=("2024-01-01", "2024-02-01")).table.row(2, named=True)
    alpha = 1.0 - 0.95 ** (1 / 3)
    (low, high), (its_low, its_high) = (
        proportion_confint(k, n, alpha, "beta") for k, n in ((270, 1_000), (2_400, 5_000))
    )
    assert found["gap_change"] == pytest.approx(0.48 - 0.27)
    assert found["gap_change_simultaneous_low"] == pytest.approx(0.21 - math.hypot(high - 0.27, 0.48 - its_low))
    assert found["gap_change_simultaneous_high"] == pytest.approx(0.21 + math.hypot(0.27 - low, its_high - 0.48))


def test_gaps_of_hardly_an_event_are_not_compared() -> None:
    found = followed(exact((300, 0.01), (300, 0.01), score=0.011), reference="first").table.row(1, named=True)
    assert found["gap_change_pvalue"] is None
    assert "fewer than 5 expected positives" in found["note"]
    assert found["gap_pvalue"] is not None


def test_p_values_are_adjusted_over_periods_and_segments_of_a_model() -> None:
    found = followed(table_of(off=0.3, late=4), by="g", score=["p", "q"]).table
    for name in ("gap_change_pvalue", "psi_pvalue", "ks_pvalue"):
        for model in ("p", "q"):
            lines = found.filter(model=model).select(name, f"{name}_adjusted").drop_nulls().sort(name)
            raw = lines[name].to_list()
            holm = [min(1.0, max(p * (len(raw) - j) for j, p in enumerate(raw[: i + 1]))) for i in range(len(raw))]
            assert lines[f"{name}_adjusted"].to_list() == approx(holm)
    assert (
        followed(table_of(), correction="none")
        .table["gap_change_pvalue"]
        .equals(followed(table_of(), correction="none").table["gap_change_pvalue_adjusted"])
    )


@pytest.mark.parametrize("correction", ["holm", "bonferroni"])
def test_the_p_value_of_a_gap_of_zero_is_the_one_behind_the_verdict(correction: Any) -> None:
    # binomial, twice the smaller tail, adjusted over the periods with 100 rows alone; 40 rows are not judged
    rates, score = [(400, 0.42), (400, 0.43), (1000, 0.5), (40, 0.2), (2000, 0.465)], 0.5
    found = followed(exact(*rates), correction=correction, tolerance=0.02).table
    laws = [stats.binom(n, score) for n, _ in rates]
    hits = [round(n * rate) for n, rate in rates]
    raw = [min(1.0, 2 * min(law.cdf(k), law.sf(k - 1))) for law, k in zip(laws, hits, strict=True)]
    assert found["gap_pvalue"].to_list() == approx(raw)
    judged = [p for p, (n, _) in zip(raw, rates, strict=True) if n >= 100]
    adjusted = iter(multipletests(judged, method=correction)[1].tolist())
    expected = [next(adjusted) if n >= 100 else None for n, _ in rates]
    assert found["gap_pvalue_adjusted"].to_list() == approx(expected)
    for verdict, pvalue in found.select("verdict", "gap_pvalue_adjusted").iter_rows():
        assert verdict not in {"leans_over", "leans_under"} or pvalue < 0.05
        assert verdict != "unsure" or pvalue >= 0.05


def test_importance_weights_leave_no_law_for_the_distance_of_scores() -> None:
    weighted = followed(table_of(), weight="w").table
    assert weighted["ks_pvalue"].is_null().all()
    assert "no known law" in weighted["note"][5]
    counted = followed(table_of(), weight="w", weight_kind="frequency").table
    repeated = followed(table_of().select(pl.exclude("w").repeat_by("w").explode()), weight_kind="importance").table
    for name in (*METRICS, *COMPARED, "gap_pvalue"):
        assert counted[name].to_list() == approx(repeated[name].to_list(), rel=1e-9)


def test_weights_worth_hardly_a_row_leave_no_p_value() -> None:
    # 1 row of weight 50 and 40 of weight 1 are worth 90^2 / 2540 = 3.2 rows
    table = pl.DataFrame({"y": [1, *[0, 1] * 20], "p": 0.5, "w": [50.0, *[1.0] * 40], "t": dt.date(2024, 1, 1)})
    line = followed(table, weight="w").table.row(0, named=True)
    assert line["gap_pvalue"] is None
    assert "weights are worth fewer than 20 rows" in line["note"]
    assert followed(table.with_columns(w=2.0)[:5], weight="w").table["gap_pvalue"][0] is not None


def test_the_law_of_the_distance_is_named() -> None:
    table = exact((60, 0.5), (90, 0.5), (400, 0.5))
    assert followed(table, reference="first").table["ks_law"].to_list() == [None, "exact", "limit"]


# At 2,000 rows. Rare: 40 events said, 27.1 true (E max(s - 0.01, 0) under Beta(1/2, 49/2)); fewer than 28, which is
# Poisson's 0.025 quantile at 40, come with probability 0.545 (scipy.stats.poisson). Weights make rows worth 9/11.
LEAST_POWER = {"balanced": 0.95, "rare": 0.35, "six_tied": 0.95}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_committed_simulation_shows_size_and_power(case: tuple[str, int, bool, float]) -> None:
    # python tests/simulations/gaps.py
    line = read()[case]
    scores, n, weighted, off = case
    most = 0.05 + 2 * math.sqrt(0.05 * 0.95 / line.runs)
    if not off:
        assert max(line.zero, line.change, line.ks) <= most
    elif n == 2000:
        assert line.zero >= LEAST_POWER[scores]
        assert line.change >= 0.95 or scores == "rare"
        assert line.ks == (0.0 if weighted else 1.0)
    assert line.ks_given == (0.0 if weighted else 1.0)
    assert line.zero_given == 1.0


SCORES = {
    "balanced": lambda rng, n: rng.uniform(0.1, 0.9, n),
    "rare": lambda rng, n: rng.beta(0.5, 24.5, n),
    "six tied": lambda rng, n: rng.choice([0.05, 0.1, 0.3, 0.5, 0.7, 0.9], n),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [50, 200, 2000])
@pytest.mark.parametrize("kind", SCORES)
def test_right_scores_are_seldom_rejected(kind: str, n: int, weighted: bool) -> None:  # noqa: FBT001
    rng, runs = np.random.default_rng(5), 400
    tallies = []
    for rows_ in (n, 600):
        score = SCORES[kind](rng, runs * rows_)
        label = (rng.random(len(score)) < score).astype(np.float64)
        weight = rng.integers(1, 5, len(score)).astype(np.float64) if weighted else None
        code = np.repeat(np.arange(runs), rows_)
        tallies.append(tally_of_rows(code, score, label, segments=runs, weight=weight)[0])
    most = 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)
    assert (rate_pvalue(ScoreSums.of_tally(tallies[0])) < 0.05).mean() <= most
    pvalue, enough = change_pvalue(*map(ScoreSums.of_tally, tallies))
    assert np.isnan(pvalue[~enough]).all()
    assert (pvalue[enough] < 0.05).sum() <= most * runs


def test_a_change_of_the_gap_is_found() -> None:
    found = followed(table_of(n=12_000, off=0.1, late=4)).table
    assert (found["gap_change_pvalue_adjusted"][4:] < 0.01).all()
    assert (found["gap_change_pvalue_adjusted"][2:4] > 0.05).all()


# ---------------------------------------------------------------- what a change is made of
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 300), st.sampled_from([1, 3, 10]), st.booleans())
def test_parts_add_up(seed: int, n: int, bins: int, weighted: bool) -> None:  # noqa: FBT001
    table = table_of(seed, n=n, off=0.2, late=3)
    found = followed(table, by="g", psi_bins=bins, weight="w" if weighted else None, reference="first")
    for line in found.parts.iter_rows(named=True):
        assert line["measure"] == "brier" or line["rest"] == 0.0
        total = line["reference"] + line["score_mix"] + line["class_prior"] + line["rest"]
        assert total == pytest.approx(line["current"], abs=1e-12)
    wide = found.parts.pivot("measure", index=["g", "period"], values="current")
    table_ = found.table.filter(pl.col("psi").is_not_null())
    if len(wide):
        assert wide["gap"].to_list() == approx(table_["gap"].to_list(), rel=1e-9)
        assert wide["brier"].to_list() == approx(table_["brier"].to_list(), rel=1e-9)


def test_parts_can_be_followed_by_hand() -> None:
    # Reference: four rows at 0.2 (one positive), four at 0.6 (two): the curve is 0.25 and 0.5, the gap 0.4 - 0.375.
    # Now: two rows at 0.2 (one positive), six at 0.6 (four positive).
    before = pl.DataFrame({"y": [1, 0, 0, 0, 1, 1, 0, 0], "p": [0.2] * 4 + [0.6] * 4})
    now = pl.DataFrame({"y": [1, 0, 1, 1, 1, 1, 0, 0], "p": [0.2] * 2 + [0.6] * 6})
    gap, brier = drift(now, label="y", score="p", reference=before, psi_bins=2).parts.iter_rows(named=True)
    mixed = 0.5 - (2 * 0.25 + 6 * 0.5) / 8
    assert gap["reference"] == pytest.approx(0.025, abs=1e-12)
    assert gap["score_mix"] == pytest.approx(mixed - 0.025, abs=1e-12)
    assert gap["class_prior"] == pytest.approx((0.5 - 0.625) - mixed, abs=1e-9)
    assert gap["rest"] == 0.0

    def expected(shares: tuple[float, float], curve: tuple[float, float]) -> float:
        return sum(w * (s**2 + c * (1 - 2 * s)) for w, s, c in zip(shares, (0.2, 0.6), curve, strict=True))

    # Odds of the curve are 1/3 and 1. Moved by x, x / (3 + x) + 3 x / (1 + x) = 5/2, that is x^2 = 5.
    x = math.sqrt(5)
    moved = (x / (3 + x), x / (1 + x))
    assert (moved[0] + 3 * moved[1]) / 4 == pytest.approx(0.625, abs=1e-12)
    steps = [expected((0.5, 0.5), (0.25, 0.5)), expected((0.25, 0.75), (0.25, 0.5)), expected((0.25, 0.75), moved)]
    assert brier["score_mix"] == pytest.approx(steps[1] - steps[0], abs=1e-12)
    assert brier["class_prior"] == pytest.approx(steps[2] - steps[1], abs=1e-9)


def population(share: float, *, n: int = 200_000) -> Any:
    """Return the tally of many rows of which a share is positive; scores of each class always have the same law."""
    levels = np.linspace(0.05, 0.95, 10)
    of_class = [levels**2, (1 - levels) ** 2]
    weights = [share * of_class[0] / of_class[0].sum(), (1 - share) * of_class[1] / of_class[1].sum()]
    score = np.tile(levels, 2)
    label = np.repeat([1.0, 0.0], 10)
    return tally_of_rows(np.zeros(20, dtype=np.int64), score, label, segments=1, weight=n * np.concatenate(weights))[0]


def test_another_share_of_the_classes_is_all_prior_and_mix() -> None:
    before, now = population(0.5), population(0.2)
    bins = np.arange(10)
    gap, brier = change_parts(now, bins, before, bins, np.array([0]), 10)
    assert gap.rest[0] == pytest.approx(0.0, abs=1e-9)
    assert brier.rest[0] == pytest.approx(0.0, abs=1e-9)
    assert abs(gap.class_prior[0]) > 0.05
    # by Bayes: the odds of every score are those before times (0.2 / 0.8) / (0.5 / 0.5)
    odds = before.positive / (before.weight - before.positive) * 0.25
    rate = np.sum(now.weight * odds / (1 + odds)) / now.weight.sum()
    assert rate == pytest.approx(0.2, abs=1e-12)


def test_other_scores_under_the_same_curve_are_all_mix() -> None:
    rng = np.random.default_rng(0)
    n = 200_000
    score = np.concatenate([rng.beta(2, 3, n), rng.beta(2, 8, n)])
    label = rng.random(2 * n) < score**2  # far from right, in both periods alike
    table = pl.DataFrame({"y": label, "p": score, "t": np.repeat(np.array(months(2), dtype="datetime64[D]"), n)})
    gap, brier = followed(table, reference="first", psi_bins=50).parts.iter_rows(named=True)
    assert abs(gap["current"] - gap["reference"]) > 0.01
    for part in (gap, brier):
        assert part["score_mix"] == pytest.approx(part["current"] - part["reference"], abs=0.005)
