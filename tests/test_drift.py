"""Calibration over time: its numbers, references, tests, what changes are made of, and whether the headline is true."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import calframe
from calframe._drift import drift
from calframe._drifting._result import Drift
from calframe._errors import ArgumentError, ColumnClashError, EmptyTableError, ScoreError, SegmentError
from calframe._kernels._building import tally_of_rows
from calframe._testing._change import change_parts
from calframe._testing._rates import Sums, change_pvalue, rate_pvalue
from tests._tables import Maker, approx, rows
from tests.simulations.gaps import CASES, read

METRICS = ("rate", "mean_score", "gap", "ece", "ece_expected", "brier", "reliability", "resolution", "uncertainty")
COMPARED = ("psi", "wasserstein", "ks", "ks_pvalue", "gap_change", "pvalue")


def months(count: int, *, year: int = 2024) -> list[dt.date]:
    return [dt.date(year + i // 12, i % 12 + 1, 1) for i in range(count)]


def table_of(seed: int = 0, *, n: int = 600, periods: int = 6, off: float = 0.0, late: int = 6) -> pl.DataFrame:
    """Return rows drawn from right scores, `off` too high from period `late` on."""
    rng = np.random.default_rng(seed)
    score, month = np.round(rng.uniform(0.05, 0.95, n), 2), rng.integers(0, periods, n)
    label = rng.random(n) < score - np.where(month >= late, off, 0.0)
    return pl.DataFrame(
        {
            "y": label.astype(np.int64),
            "p": score,
            "q": np.round(score**2, 3),
            "w": rng.integers(1, 5, n),
            "t": [months(periods)[i] for i in month],
            "g": [("a", "b", None)[i] for i in rng.integers(0, 3, n)],
        }
    )


def exact(*periods: tuple[int, float], score: float = 0.5, groups: int = 1) -> pl.DataFrame:
    """Return one month after the other, each with so many rows of one score and this rate exactly."""
    parts = [
        pl.DataFrame({"y": [int(i < round(n * rate)) for i in range(n)]}).with_columns(t=pl.lit(month))
        for (n, rate), month in zip(periods, months(len(periods)), strict=True)
    ]
    return pl.concat(parts).with_columns(p=pl.lit(score), g=pl.int_range(pl.len()) % groups)


def followed(data: Any, **options: Any) -> Drift:
    return drift(data, **{"label": "y", "score": "p", "time": "t", **options})


# ---------------------------------------------------------------- numbers of a period
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"by": "g"},
        {"by": "g", "score": ["p", "q"]},
        {"weight": "w"},
        {"weight": "w", "weight_kind": "frequency", "by": "g"},
        {"strategy": "quantile", "bins": 4},
    ],
    ids=["plain", "segments", "models", "weights", "counts", "quantiles"],
)
def test_each_period_has_the_metrics_of_its_rows(options: dict[str, Any]) -> None:
    table = table_of()
    found = followed(table, **options).table
    keys = [*(["g"] if "by" in options else []), "period"]
    plain = {name: value for name, value in options.items() if name != "by"}
    expected = calframe.metrics(
        table.with_columns(period="t"),
        **{"label": "y", "score": "p", "by": keys, "metrics": [*METRICS, "within_bin"], **plain},
    )
    order = [*keys[:-1], *(["model"] if "model" in expected.columns else []), "period"]
    expected = expected.sort(order, nulls_last=True)
    assert found.select(order).equals(expected.select(order))
    for name in ("n", "n_missing", *METRICS, "within_bin"):
        assert found[name].to_list() == approx(expected[name].to_list(), rel=1e-9), name


def test_a_period_has_the_interval_of_its_gap() -> None:
    found = followed(table_of()).table
    expected = calframe.metrics(table_of(), label="y", score="p", by="t", metrics="gap", confidence_level=0.95)
    for name in ("gap_low", "gap_high"):
        assert found[name].to_list() == approx(expected[name].to_list(), rel=1e-12)


def test_every_library_gives_the_same(make: Maker) -> None:
    columns = {name: table_of()[name].to_list() for name in ("y", "p", "w", "t", "g")}
    options: dict[str, Any] = {"by": "g", "weight": "w", "reference": "rolling"}
    expected, found = followed(pl.DataFrame(columns), **options), followed(make(columns), **options)
    for name, dated in (("table", "period"), ("parts", "period"), ("monitor", "time")):
        mine, theirs = rows(getattr(expected, name)), rows(getattr(found, name))
        for one in (mine, theirs):
            one[dated] = [value.date() if isinstance(value, dt.datetime) else value for value in one[dated]]
        assert list(mine) == list(theirs)
        for column in mine:
            assert theirs[column] == approx(mine[column], rel=1e-9), column
        kind = pl.DataFrame if make.lazy else make.result
        assert type(getattr(found, name)) is kind
    assert (found.n, found.headline) == (expected.n, expected.headline)


def test_the_order_of_rows_does_not_matter() -> None:
    table = table_of()
    one, other = followed(table, by="g"), followed(table.sample(fraction=1.0, shuffle=True, seed=3), by="g")
    for name in ("table", "parts", "monitor", "course"):
        mine, theirs = rows(getattr(one, name)), rows(getattr(other, name))
        assert {column: approx(values, rel=1e-9) for column, values in mine.items()} == theirs


def test_counts_say_what_was_left_out() -> None:
    columns: dict[str, Any] = {
        "y": [1, 0, None, 1, 0, 1],
        "p": [0.5, 0.4, 0.3, None, 0.2, 1.5],
        "t": [*months(3), *months(2), None],
    }
    found = followed(pl.DataFrame(columns), invalid="drop")
    assert found.table.select("period", "n", "n_missing", "n_invalid").rows() == [
        (months(3)[0], 1, 1, 0),
        (months(3)[1], 2, 0, 0),
        (months(3)[2], 0, 1, 0),
    ]
    assert (found.n, found.n_missing, found.n_invalid, found.n_undated) == (3, 2, 1, 0)
    assert found.table["note"][2] == "no rows used"
    undated = followed(pl.DataFrame({**columns, "p": [0.5] * 6}))
    assert (undated.n, undated.n_undated, undated.table["n"].sum()) == (5, 1, 4)
    assert "1 row without a time" in repr(undated)


# ---------------------------------------------------------------- days
SPRING = [dt.datetime(2024, 3, *day, tzinfo=dt.UTC) for day in ((30, 22, 30), (30, 23, 30), (31, 21, 30), (31, 22, 30))]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Europe/Paris", {"2024-03-30": 1, "2024-03-31": 2, "2024-04-01": 1}),  # UTC+1, then UTC+2 from 01:00 UTC
        (None, {"2024-03-30": 2, "2024-03-31": 2}),
    ],
)
def test_days_are_local_where_clocks_change(make: Maker, zone: str | None, expected: dict[str, int]) -> None:
    # https://github.com/pola-rs/polars/issues/15966
    if make.library == "duckdb":
        pytest.skip("DuckDB keeps the zone in its connection")
    data = make({"y": [1, 0, 1, 0], "p": [0.6, 0.4, 0.7, 0.2], "t": SPRING})
    found = followed(data, every="1d", time_zone=zone)
    assert {line["period"]: line["n"] for line in found.to_dict()["table"]} == expected
    assert found.time_zone == (zone or "UTC")


def test_times_without_a_zone_are_wall_time(make: Maker) -> None:
    wall = [time.replace(tzinfo=None) for time in SPRING]
    found = followed(make({"y": [1, 0, 1, 0], "p": [0.6, 0.4, 0.7, 0.2], "t": wall}), every="1d")
    assert [line["n"] for line in found.to_dict()["table"]] == [2, 2]
    assert found.time_zone is None


@pytest.mark.parametrize(("every", "starts"), [("1mo", 6), ("1q", 2), ("1y", 1), ("1w", 6), ("1d", 6)])
def test_periods_have_the_length_asked_for(every: Any, starts: int) -> None:
    assert len(followed(table_of(), every=every).table) == starts


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
    assert (line["ks_pvalue"], line["pvalue"]) == (1.0, 1.0)
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
    assert found["pvalue"] == pytest.approx(2 * stats.norm.sf(z), rel=0.05)


def test_gaps_of_hardly_an_event_are_not_compared() -> None:
    found = followed(exact((300, 0.01), (300, 0.01), score=0.011), reference="first").table.row(1, named=True)
    assert found["pvalue"] is None
    assert "fewer than 5 expected positives" in found["note"]
    assert found["gap_pvalue"] is not None


def test_p_values_are_adjusted_over_periods_and_segments_of_a_model() -> None:
    found = followed(table_of(off=0.3, late=4), by="g", score=["p", "q"]).table
    for name in ("pvalue", "gap_pvalue", "ks_pvalue"):
        for model in ("p", "q"):
            lines = found.filter(model=model).select(name, f"{name}_adjusted").drop_nulls().sort(name)
            raw = lines[name].to_list()
            holm = [min(1.0, max(p * (len(raw) - j) for j, p in enumerate(raw[: i + 1]))) for i in range(len(raw))]
            assert lines[f"{name}_adjusted"].to_list() == approx(holm)
    assert (
        followed(table_of(), correction="none")
        .table["pvalue"]
        .equals(followed(table_of(), correction="none").table["pvalue_adjusted"])
    )


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
    assert (rate_pvalue(Sums.of_tally(tallies[0])) < 0.05).mean() <= most
    pvalue, enough = change_pvalue(*tallies, np.arange(runs))
    assert np.isnan(pvalue[~enough]).all()
    assert (pvalue[enough] < 0.05).sum() <= most * runs


def test_a_change_of_the_gap_is_found() -> None:
    found = followed(table_of(n=12_000, off=0.1, late=4)).table
    assert (found["pvalue_adjusted"][4:] < 0.01).all()
    assert (found["pvalue_adjusted"][2:4] > 0.05).all()


# ---------------------------------------------------------------- what a change is made of
@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 300), st.sampled_from([1, 3, 10]), st.booleans())
def test_parts_add_up(seed: int, n: int, bins: int, weighted: bool) -> None:  # noqa: FBT001
    table = table_of(seed, n=n, off=0.2, late=3)
    found = followed(table, by="g", psi_bins=bins, weight="w" if weighted else None, reference="first")
    for line in found.parts.iter_rows(named=True):
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
    assert gap["rest"] == pytest.approx(0.0, abs=1e-9)

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


# ---------------------------------------------------------------- the headline
STEADY, HIGH = (2000, 0.5), (2000, 0.44)


@pytest.mark.parametrize(
    ("periods", "label"),
    [
        ([*[STEADY] * 6, HIGH, HIGH], "Jul 2024"),
        ([*[STEADY] * 6, (2000, 0.56), (2000, 0.57)], "Jul 2024"),
        ([*[STEADY] * 4, HIGH, HIGH, (60, 0.5)], "May 2024"),  # a period that has just begun does not end a run
        ([*[STEADY] * 6, HIGH, (2000, 0.57)], "Aug 2024"),  # a run is one way
        ([STEADY] * 8, None),
        ([*[STEADY] * 5, HIGH, HIGH, STEADY], None),  # it did not last
        ([HIGH] * 8, None),  # off all the time, so not since anything
        ([*[STEADY] * 6, (2000, 0.465), (2000, 0.465)], None),  # marked, but not clearly beyond the tolerance
        ([*[STEADY] * 7, (60, 0.1)], None),  # too few rows to judge the last period
        ([*[(300, 0.443)] * 6, *[(5000, 0.44)] * 3], None),  # always there; first periods are too small to show it
        ([*[(300, 0.43)] * 6, *[(5000, 0.38)] * 3], "Jul 2024"),  # from 7 points to 12
    ],
)
def test_only_an_unbroken_run_to_the_end_is_named(periods: list[tuple[int, float]], label: str | None) -> None:
    found = followed(exact(*periods))
    assert (found.since[0].label if found.since else None) == label
    assert (found.headline is None) is (label is None)


def test_the_sentence_has_both_gaps_and_the_segments_that_moved() -> None:
    found = followed(exact(*[STEADY] * 6, HIGH, HIGH, groups=4), by="g")
    assert found.headline == (
        "Since Jul 2024 scores run 6.0 points too high on average (0.0 before); 4 of 4 segments moved that way."
    )
    two = followed(exact(*[STEADY] * 6, HIGH, HIGH).with_columns(q=pl.col("p") - 0.06), score=["p", "q"])
    assert two.headline == ("Since Jul 2024 scores of 'p' run 6.0 points too high on average (0.0 before).")


@st.composite
def courses(draw: st.DrawFn) -> pl.DataFrame:
    """Return tables of a few months, some without rows, of one class, without labels, tiny or large."""
    parts = []
    for month in months(draw(st.integers(1, 7))):
        n = draw(st.sampled_from([0, 1, 7, 150, 150, 1000, 3000]))
        score = draw(st.sampled_from([0.0, 0.02, 0.4, 0.5, 1.0]))
        rate = draw(st.sampled_from([0.0, 0.02, 0.3, 0.4, 0.5, 1.0]))
        label = pl.Series([int(i < round(n * rate)) for i in range(n)], dtype=pl.Int64)
        parts.append(
            pl.DataFrame(
                {"y": label if draw(st.integers(0, 9)) else pl.Series([None] * n, dtype=pl.Int64)}
            ).with_columns(p=pl.lit(score), t=pl.lit(month))
        )
    return pl.concat(parts)


@settings(deadline=None, max_examples=60)
@given(courses(), st.sampled_from([0.001, 0.03, 0.2]))
def test_the_headline_is_true(table: pl.DataFrame, tolerance: float) -> None:
    if not len(table):
        with pytest.raises(EmptyTableError, match="no rows"):
            followed(table)
        return
    found = followed(table, tolerance=tolerance)
    json.dumps(found.to_dict(), allow_nan=False)
    assert all(len(line) <= 80 for line in repr(found).splitlines())
    if found.headline is None:
        return
    said = re.fullmatch(
        r"Since (.+) scores run ([\d.]+) points too (high|low) on average \(([+-]?[\d.]+) before\)\.", found.headline
    )
    assert said is not None
    start = found.course.filter(label=said[1])["period"][0]
    state = "over" if said[3] == "high" else "under"
    judged = found.course.filter(pl.col("verdict") != "few")
    run, before = judged.filter(pl.col("period") >= start), judged.filter(pl.col("period") < start)
    assert set(run["state"]) == {state}  # every judged period from there to the end
    assert len(before) > 0
    sides = [table.drop_nulls().filter(side) for side in (pl.col("t") >= start, pl.col("t") < start)]
    gaps = [100 * float((side["p"] - side["y"]).mean()) for side in sides]  # type: ignore[arg-type]
    assert gaps[0] == pytest.approx(float(said[2]) * (1 if state == "over" else -1), abs=0.0501)
    assert gaps[1] == pytest.approx(float(said[4]), abs=0.0501)
    assert abs(gaps[0]) > 100 * tolerance
    assert (gaps[0] - gaps[1]) * gaps[0] > 0  # it moved away from zero
    last = before.tail(1).row(0, named=True)
    gone = (run["period"][0] - last["period"]).days > 93
    assert last["state"] != state or gone  # the run does not begin earlier


def test_right_scores_hardly_ever_have_a_headline() -> None:
    found = [followed(table_of(seed, n=3000, periods=12)).headline for seed in range(60)]
    assert len([one for one in found if one]) <= 1


# ---------------------------------------------------------------- what comes out, and what does not go in
def test_the_result_can_be_shown_and_stored() -> None:
    found = followed(table_of(off=0.3, late=4, n=3000), by="g", score=["p", "q"])
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (stored["kind"], stored["schema_version"], stored["scores"]) == ("drift", 1, ["p", "q"])
    assert len(stored["table"]) == len(found.table)
    assert stored["convention"]["psi_floor"] == 1e-4
    assert found._repr_html_().startswith("<table><caption>Since")
    assert all(len(line) <= 80 for line in repr(found).splitlines())


def test_the_chart_has_a_mark_for_every_period() -> None:
    found = followed(table_of(off=0.3, late=4, n=3000), score=["p", "q"])
    drawn = json.dumps(found.plot(model="q").to_dict())
    for label in ("Jan 2024", "Jun 2024"):
        assert label in drawn
    with pytest.raises(ArgumentError, match="model must be one of 'p', 'q'"):
        found.plot(model="r")
    with pytest.raises(ArgumentError, match="width must be a number of pixels"):
        found.plot(width=3)


@pytest.mark.parametrize(
    "columns",
    [
        {"y": [None] * 3, "p": [0.1, 0.2, 0.3], "t": months(3)},
        {"y": [1, 0, 1], "p": [0.1, 0.2, 0.3], "t": [None] * 3},
        {"y": [1, 1, 1], "p": [1.0, 1.0, 1.0], "t": months(3)},
        {"y": [0, 0, 0], "p": [1.0, 0.0, 0.0], "t": months(3)},
        {"y": [1], "p": [0.3], "t": months(1)},
    ],
    ids=["no labels", "no times", "all one", "all wrong", "one row"],
)
def test_poor_tables_give_nulls_and_notes(columns: dict[str, Any]) -> None:
    kinds = {"y": pl.Int64, "p": pl.Float64, "t": pl.Date}
    table = pl.DataFrame(columns, schema=kinds)
    for options in ({}, {"reference": "rolling"}, {"weight": "w"}):
        found = followed(table.with_columns(w=pl.lit(2.0)), **options)
        assert found.headline is None
        json.dumps(found.to_dict(), allow_nan=False)
        assert found.table.filter(pl.col("gap").is_null() & pl.col("note").is_null()).height == 0
        assert found.table.filter(pl.col("psi").is_null() & pl.col("note").is_null()).height == 0


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"time": None}, ArgumentError, "drift needs time="),
        ({"time": "y"}, SegmentError, "must be a date or datetime"),
        ({"every": "2mo"}, ArgumentError, "every='2mo' is not known"),
        ({"reference": "Jan 2030"}, ArgumentError, "names no period of the table; got 'Jan 2030'"),
        ({"reference": ("2024-01-01",)}, ArgumentError, "names no period of the table"),
        ({"reference": 3}, ArgumentError, "or a second table; got 3"),
        (
            {"reference": "rolling", "window": 0},
            ArgumentError,
            "window must be a number of periods of 1 or more; got 0",
        ),
        ({"by": "t"}, ArgumentError, "by= names the time column 't'"),
        ({"by": "psi"}, ColumnClashError, "'psi' has the name of a result column"),
        ({"psi_bins": 0}, ArgumentError, "bins must be a number from 1"),
        ({"psi_bins": 20_000}, ArgumentError, "psi_bins must be a number from 1 to 10,000"),
        ({"psi_floor": 0.0}, ArgumentError, "psi_floor is the share that stands for an empty bin"),
        ({"run_length": 1}, ArgumentError, "run_length is a number of batches above 1"),
        ({"batch": "hour"}, ArgumentError, "batch must be one of 'day', 'time'"),
        ({"correction": "sidak"}, ArgumentError, "correction must be one of"),
        ({"alpha": 0.7}, ArgumentError, "alpha must lie between 0 and 0.5"),
        ({"tolerance": 3}, ArgumentError, "tolerance is a gap between 0 and 1"),
        ({"clip": 0.7}, ArgumentError, "clip must lie between"),
        ({"time_zone": "Paris"}, ArgumentError, "time_zone must be the name of a zone"),
        ({"score": {"a": "p", "b": "q", "c": "w"}}, ArgumentError, "drift follows one probability"),
        ({"score": "w"}, ScoreError, r"scores must lie in \[0, 1\]"),
    ],
)
def test_wrong_input_gets_one_clear_error(options: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        followed(table_of().with_columns(psi=pl.lit(1)), **options)


def test_a_time_column_may_have_the_name_of_a_result_column() -> None:
    table = table_of().rename({"t": "period"})
    assert followed(table, time="period").table.equals(followed(table_of()).table)
    assert followed(table_of().rename({"t": "n"}), time="n").monitor.equals(followed(table_of()).monitor)
