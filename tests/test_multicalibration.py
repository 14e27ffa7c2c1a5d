"""Cumulative errors over many segments, shrunken gaps and the headline: against exact laws, theory and the numbers."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from calframe._audit import audit
from calframe._auditing._headline import headline
from calframe._testing._search import SearchCells, range_pvalue, resampled_search, search, search_bound
from calframe._testing._shrinkage import sampling_variance, shrunken
from calframe._testing._tails import binomial_pvalue, upper_tail
from tests._claims import NUMBER, is_size, verdict
from tests._tables import rows
from tests.simulations.audit import RESULTS, alarms, gap_alarms


def cells(score: Any, label: Any, crossing: Any, place: Any | None = None) -> SearchCells:
    """Return cells of one row each, all of weight 1, binned by `place` (the score in thousandths if not given)."""
    score, label = np.asarray(score, dtype=float), np.asarray(label, dtype=float)
    place = np.rint(score * 1000).astype(np.int64) if place is None else place
    spread = score * (1 - score)
    return SearchCells(
        crossing=np.asarray(crossing, dtype=np.int64),
        bin=place,
        weight=np.ones(len(score)),
        label=label,
        score=score,
        variance=spread,
        squared_variance=spread,
    )


def test_errors_are_ranges_of_cumulative_differences() -> None:
    # Labels less scores by score: 0.8, -0.4, -0.5 and 0.3; sums 0.8, 0.4, -0.1 and 0.2, from 0: the range is 0.9.
    found = search_bound(cells([0.2, 0.4, 0.5, 0.7], [1, 0, 0, 1], [0, 0, 0, 0]), [np.array([0])], np.array([True]))
    sigma = math.sqrt(0.16 + 0.24 + 0.25 + 0.21)
    assert found.error == pytest.approx([0.9 / sigma])


def test_equal_scores_are_added_before_the_range_is_taken() -> None:
    found = search_bound(cells([0.5] * 4, [1, 1, 0, 0], [0, 1, 0, 1]), [np.array([0, 0])], np.array([True]))
    assert found.error.tolist() == [0.0]


def test_segments_of_one_score_have_the_law_of_the_binomial() -> None:
    # 20 rows of score 0.3, 10 positives: the range is |K - 6|, and P(|K - 6| >= 4) the sum of two binomial tails.
    one = np.zeros(1, dtype=np.int64)
    cell = SearchCells(
        crossing=one,
        bin=one,
        weight=np.array([20.0]),
        label=np.array([10.0]),
        score=np.array([6.0]),
        variance=np.array([4.2]),
        squared_variance=np.array([4.2]),
    )
    found = search(cell, [one], np.array([True]), n_resamples=9999, rng=np.random.default_rng(0))
    exact = stats.binom.sf(9, 20, 0.3) + stats.binom.cdf(2, 20, 0.3)
    assert found.law == "resampling"
    assert found.pvalue[0] == pytest.approx(exact, abs=4 * math.sqrt(exact / 9999))
    assert found.pvalue_adjusted.tolist() == found.pvalue.tolist()


def test_a_segment_that_is_looked_at_twice_costs_nothing_when_labels_are_drawn_jointly() -> None:
    rng = np.random.default_rng(5)
    score = rng.beta(2, 3, 300)
    each = cells(score, rng.random(300) < score**1.2, np.zeros(300))
    twice = [np.array([0]), np.array([1])]
    drawn = resampled_search(each, twice, np.ones(2, dtype=bool), n_resamples=499, rng=np.random.default_rng(1))
    assert drawn.pvalue_adjusted.tolist() == drawn.pvalue.tolist()
    bound = search_bound(each, twice, np.ones(2, dtype=bool))
    assert bound.pvalue_adjusted == pytest.approx(2 * bound.pvalue)


def test_what_is_not_judged_does_not_count() -> None:
    each = cells([0.5] * 8, [1] * 8, [0] * 4 + [1] * 4)
    alone = search_bound(each, [np.array([0, 1])], np.array([True, False]))
    assert np.isnan(alone.pvalue).tolist() == [False, True]
    assert alone.pvalue_adjusted[0] == alone.pvalue[0]


def test_certain_scores_that_are_wrong_are_certain_errors() -> None:
    each = cells([1.0, 0.0, 1.0, 0.0], [1, 0, 0, 0], [0, 0, 1, 1])
    for found in (
        search_bound(each, [np.array([0, 1])], np.array([True, True])),
        resampled_search(
            each, [np.array([0, 1])], np.array([True, True]), n_resamples=20, rng=np.random.default_rng(0)
        ),
    ):
        assert found.error.tolist() == [0.0, math.inf]
        assert found.pvalue.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(("events", "error"), [(5, 3.0), (10, 3.5), (40, 3.5), (400, 3.0)])
def test_the_tail_of_rare_events_is_no_smaller_than_that_of_a_poisson_process(events: float, error: float) -> None:
    # Many rows of tiny scores: the path is a Poisson process less its mean, drawn here with its exact arrival times.
    rng, reached, draws = np.random.default_rng(0), 0, 40_000
    for count in rng.poisson(events, draws):
        times = np.sort(rng.random(count)) * events
        jumps = np.concatenate([[0.0], np.arange(1, count + 1) - times, [count - events]])
        before = np.arange(count) - times
        size = max(jumps.max(), 0.0) - min(before.min(initial=0.0), jumps.min())
        reached += size >= error * math.sqrt(events)
    pvalue = range_pvalue(np.array([error]), np.array([math.sqrt(events)]), np.array([events]))[0]
    share = reached / draws
    assert pvalue >= share - 3 * math.sqrt(share / draws)
    if events >= 400:  # a path of few steps has a smaller range, so that the law errs to the safe side
        assert pvalue <= 1.5 * share


@pytest.mark.parametrize("scores", ["balanced", "2 % positive", "six tied scores"])
@pytest.mark.parametrize(("shape", "n", "law"), [((64, 1), 150, "bound"), ((1000, 1), 100, "bound")])
def test_calibrated_tables_seldom_raise_an_alarm(shape: tuple[int, int], n: int, law: Any, scores: str) -> None:
    tables = 100 if shape[0] < 1000 else 25
    adjusted, smallest = alarms(shape, n, scores, law, tables=tables, seed=3)
    assert adjusted.share <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / tables)
    # The fault of a peer that reports the smallest p-value as it is: it flags most calibrated tables.
    assert smallest.share > 0.5


def test_calibrated_tables_seldom_raise_an_alarm_when_labels_are_drawn() -> None:
    adjusted, smallest = alarms((6, 7), 60, "six tied scores", "resampling", tables=100, seed=3)
    assert adjusted.share <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 100)
    assert smallest.share > 0.5


@pytest.mark.parametrize(("n", "rate"), [(200, 0.5), (250, 0.02), (500, 0.02), (1000, 0.98)])
@pytest.mark.parametrize(("segments", "tables"), [(64, 300), (1000, 50)])
def test_calibrated_gaps_are_seldom_called_off(segments: int, tables: int, n: int, rate: float) -> None:
    for line in gap_alarms(segments, n, rate, tables=tables, seed=5):
        assert line.share <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / tables), line


def test_the_results_kept_hold_what_is_promised() -> None:
    with Path(RESULTS).open(newline="") as file:
        lines = list(csv.DictReader(file))
    disparities = [line for line in lines if line["kind"] == "disparity"]
    searches = [line for line in lines if (line["kind"], line["measure"]) == ("search", "adjusted")]
    searches += [line for line in lines if line["kind"] == "gap"]
    assert {line["segments"] for line in disparities} == {"2", "8", "40"}
    for line in disparities:
        assert float(line["share"]) >= 0.95 - 2 * math.sqrt(0.05 * 0.95 / int(line["replicates"])), line
    assert {"64", "1000"} <= {line["segments"] for line in searches}
    for line in searches:
        assert float(line["share"]) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / int(line["replicates"])), line
    assert all(float(line["share"]) > 0.8 for line in lines if (line["kind"], line["measure"]) == ("power", "adjusted"))


def test_errors_that_cancel_in_every_mean_are_found_along_the_scores() -> None:
    # Too low below the middle and too high above it, in one segment of six
    rng = np.random.default_rng(2)
    n = 3000
    score, segment = rng.uniform(0.05, 0.95, n), rng.integers(0, 6, n)
    true = np.where(segment == 3, 0.5 + (score - 0.5) * 0.3, score)
    data = pl.DataFrame({"p": score, "y": (rng.random(n) < true).astype(int), "g": segment})
    found = audit(data, label="y", score="p", by="g", n_resamples=199)
    assert found.multicalibration is not None
    assert found.multicalibration["segment"] == "g=3"
    assert found.multicalibration["pvalue"] == 1 / 200
    assert found.headline.endswith("; along the scores of g 3 the gaps are more than chance.")
    assert found.verdict == "watch"
    assert audit(data, label="y", score="p", by="g", ecce=False).multicalibration is None


@pytest.mark.parametrize(("places", "nearest"), [(4000, True), (20, False)])
def test_the_closed_law_is_that_of_fine_bins_and_errs_to_the_safe_side_of_coarse_ones(
    places: int, *, nearest: bool
) -> None:
    rng = np.random.default_rng(8)
    score = np.sort(rng.uniform(0.1, 0.9, 4000))
    place = np.arange(4000) * places // 4000
    each = cells(score, rng.random(4000) < score, np.zeros(4000), place)
    one, judged = [np.array([0])], np.array([True])
    drawn = resampled_search(each, one, judged, n_resamples=1000, rng=np.random.default_rng(0)).pvalue[0]
    closed = search_bound(each, one, judged).pvalue[0]
    error = math.sqrt(drawn * (1 - drawn) / 1000)
    assert closed >= drawn - 3 * error
    assert (closed <= drawn + 3 * error + 0.02) == nearest


@pytest.mark.parametrize(
    ("k", "n", "rate"), [(0, 50, 0.02), (5, 50, 0.02), (36, 1000, 0.02), (50, 50, 0.9), (1, 3, 0.5)]
)
def test_exact_p_values_are_twice_the_smaller_tail(k: int, n: int, rate: float) -> None:
    wanted = min(1.0, 2 * min(stats.binom.cdf(k, n, rate), stats.binom.sf(k - 1, n, rate)))
    assert binomial_pvalue(np.array([k / n]), np.array([rate]), np.array([float(n)]))[0] == pytest.approx(wanted)


def test_no_rows_have_no_p_value() -> None:
    assert np.isnan(binomial_pvalue(np.array([np.nan, 0.5]), np.array([0.5, 0.5]), np.array([0.0, 0.0]))).all()


@pytest.mark.parametrize(("mean", "k"), [(4.0, 10), (10.0, 20), (100.0, 130)])
def test_skewed_tails_are_those_of_a_poisson_number(mean: float, k: int) -> None:
    z, skewness = np.array([(k - mean) / math.sqrt(mean)]), np.array([1 / math.sqrt(mean)])
    assert upper_tail(z, skewness)[0] == pytest.approx(stats.poisson.sf(k - 1, mean))
    assert upper_tail(z, -skewness)[0] == pytest.approx(stats.norm.sf(z[0]))


def test_shrunken_gaps_are_posterior_means() -> None:
    # Spread by theory: gaps N(0.02, 0.05^2) seen with variance v each give B = 0.0025 / (0.0025 + v).
    rng = np.random.default_rng(0)
    variance = np.where(np.arange(4000) % 2 == 0, 0.0004, 0.0064)
    true = rng.normal(0.02, 0.05, 4000)
    found = shrunken(rng.normal(true, np.sqrt(variance)), variance, np.array([0]), 0.02)
    assert found.spread[0] == pytest.approx(0.05, rel=0.05)
    kept = 0.0025 / (0.0025 + variance)
    assert found.deviation == pytest.approx(np.sqrt(kept * variance), rel=0.06)
    inside = np.abs(found.mean - true) < stats.norm.ppf(0.95) * found.deviation
    assert inside.mean() == pytest.approx(0.9, abs=3 * math.sqrt(0.09 / 4000))


def test_gaps_that_differ_by_chance_alone_are_drawn_to_the_centre() -> None:
    # Two families: the squares 4 and 4 in units of the variance are more than 1, 0.25 and 0.25 are not.
    found = shrunken(np.array([0.2, -0.2, 0.05, -0.05]), np.full(4, 0.01), np.array([0, 2]), 0.0)
    assert found.spread == pytest.approx([math.sqrt(0.08 - 0.01), 0.0])
    assert found.mean == pytest.approx([0.2 * 7 / 8, -0.2 * 7 / 8, 0.0, 0.0])
    alone = shrunken(np.array([0.3, math.nan]), np.full(2, 0.01), np.array([0]), 0.1)
    assert alone.mean[0] == 0.1
    assert math.isnan(alone.mean[1])


def test_a_segment_without_positives_is_not_known_for_certain() -> None:
    assert sampling_variance(np.array([0.02, 0.01]), 0.01, np.array([50.0, 50.0])) == pytest.approx(
        [0.01 * 0.99 / 50, 0.01 * 0.99 / 50]  # 0.01 - 0.01 is kept half a row away from 0
    )


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("within", "On average the scores are within tolerance"),
        ("unsure", "Whether the scores are off on average cannot be told yet"),
        ("few", "There are too few rows to judge even the average"),
        ("over", "On average the scores run 5 percentage points too high"),
        ("leans_under", "On average the scores lean 5 percentage points low"),
    ],
)
def test_the_headline_begins_with_the_average(kind: str, said: str) -> None:
    gap = -0.05 if kind.endswith("under") else 0.05
    fine = {"segment": "g=a", "gap": 0.0, "net": 0.0, "verdict": "within"}
    text = headline({"n": 500, "gap": gap, "verdict": kind}, [fine], None, alpha=0.05, spoken={})
    rest = ", and so is every segment." if kind == "within" else "; the gap of every segment is within tolerance."
    assert text == said + rest


def table(draw: st.DrawFn) -> pl.DataFrame:
    sizes = st.sampled_from([0, 1, 3, 60, 150, 800, 4000])
    parts = []
    for name in draw(st.lists(st.sampled_from(["a", "b", None, "", "c & d=e"]), min_size=1, max_size=4, unique=True)):
        n, score = draw(sizes), draw(st.sampled_from([0.0, 0.02, 0.3, 0.5, 0.97, 1.0]))
        positives = round(n * draw(st.sampled_from([0.0, 0.01, 0.25, 0.5, 1.0])))
        labels = [1] * positives + [0] * (n - positives)
        missing = draw(st.sampled_from([0, 0, 0, n]))
        scores = [None] * missing + [score] * (n - missing)
        parts.append(pl.DataFrame({"g": [name] * n, "y": labels, "p": scores}, schema=_SCHEMA))
    return pl.concat([*parts, pl.DataFrame({"g": ["z"], "y": [0], "p": [0.5]}, schema=_SCHEMA)])


_SCHEMA = {"g": pl.String, "y": pl.Int64, "p": pl.Float64}


SPOKEN = {"a": "g a ", "b": "g b ", None: "g (missing) ", "": "g (empty) ", "c & d=e": "g c & d=e ", "z": "g z "}


@settings(max_examples=60, deadline=None)
@given(st.composite(table)(), st.sampled_from([0.01, 0.03, 0.2]))
def test_every_claim_of_a_headline_is_true_of_the_numbers(data: pl.DataFrame, tolerance: float) -> None:
    data = data.with_columns(h=pl.Series(["x", "y"] * len(data))[: len(data)])
    found = audit(data, label="y", score="p", by=["g", "h"], tolerance=tolerance, n_resamples=20)
    columns = rows(found.table)
    segments = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    said = [verdict(row, tolerance=tolerance, alpha=0.05) for row in segments]
    clear = [row for row, word in zip(segments, said, strict=True) if word in {"over", "under"}]
    text, overall = found.headline, found.overall
    assert text.endswith(".")
    assert_average(text, overall, tolerance)
    if "within tolerance, and so is every segment" in text or "the gap of every segment is within tolerance" in text:
        assert set(said) == {"within"}
    if match := re.search(r"no segment has a clear gap, but ([\d,]+) of ([\d,]+) cannot", text):
        assert not clear
        assert [int(each.replace(",", "")) for each in match.groups()] == [
            sum(word != "within" for word in said),
            len(said),
        ]
    assert ("stated by" in text) == bool(clear and overall["n"])
    if match := re.search(rf"(over|under)stated by {NUMBER} percentage points", text):
        worst = max(clear, key=lambda row: abs(row["net"]))
        assert abs(abs(worst["net"]) - abs(clear[0]["net"])) < 1e-6
        assert is_size(match[2], clear[0]["gap"])
        assert (match[1] == "over") == (clear[0]["gap"] > 0)
        assert SPOKEN[clear[0]["g"]] in text if clear[0]["columns"] == "g" else f"h {clear[0]['h']} " in text
    if match := re.search(r"([\d,]+) segments have clear gaps", text):
        assert int(match[1].replace(",", "")) == len(clear)
    if match := re.search(r"and ([\d,]+) other segments? ha", text):
        assert int(match[1].replace(",", "")) == len(clear) - 1
    beyond = (found.multicalibration or {}).get("pvalue")
    assert ("more than chance" in text) == (beyond is not None and beyond < 0.05)
    assert not any(word in text.lower() for word in ("fair", "unbiased", "significant", "proves", "calibrated", "nan"))


def assert_average(text: str, overall: dict[str, Any], tolerance: float) -> None:
    if overall["n"] == 0:
        assert text == "There is no row that can be used."
    if match := re.match(rf"On average the scores (run|lean) {NUMBER} percentage points (too )?(high|low)", text):
        assert is_size(match[2], overall["gap"])
        assert (match[4] == "high") == (overall["gap"] > 0)
        assert (match[1] == "run") == (abs(overall["gap"]) > tolerance and overall["verdict"] in {"over", "under"})
        assert overall["pvalue"] < 0.05
    if text.startswith("On average the scores are within tolerance"):
        assert -tolerance <= overall["gap_low"]
        assert overall["gap_high"] <= tolerance
    if text.startswith("There are too few rows"):
        assert overall["pvalue"] is None
