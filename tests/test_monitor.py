"""The monitor: worked out bet by bet, exact averages over all labels, and how often it sounds."""

from __future__ import annotations

import csv
import datetime as dt
import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

from calframe._drift import drift
from calframe._kernels._building import tally_of_rows
from calframe._testing._monitor import EDGES, SHIFTS, SLOPES, running_max, wealth
from tests.simulations.monitor import CASES, LATE, LOOKS, RESULTS, ROWS, simulate

Row = tuple[float, int]
SCORES = [0.001, 0.3, 0.97, 0.5]


def expit(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


def bets(score: float) -> list[tuple[float, float]]:
    """Return stake and probability of each bet on a row, by the definition; in other bins nothing is bet on it."""
    logit = math.log(score / (1.0 - score))
    overall = [expit(logit + d) for d in SHIFTS] + [expit((1 + u) * logit + d) for u, d in SLOPES]
    bin_of = sum(score >= edge for edge in EDGES)
    inside = [
        (0.5 / (len(EDGES) + 1) / len(SHIFTS), expit(logit + d) if number == bin_of else score)
        for number in range(len(EDGES) + 1)
        for d in SHIFTS
    ]
    return [(0.5 / len(overall), q) for q in overall] + inside


def factors(row: Row) -> list[float]:
    """Return what a row multiplies each stake by."""
    score, label = row
    return [q / score if label else (1.0 - q) / (1.0 - score) for _, q in bets(score)]


def tally_of(batches: Sequence[Sequence[Row]], weights: Sequence[float] | None = None) -> Any:
    rows = [row for batch in batches for row in batch]
    code = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
    score, label = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    weight = None if weights is None else np.array(weights)
    return tally_of_rows(code, score, label, segments=len(batches), weight=weight)[0]


def e_values(batches: Sequence[Sequence[Row]], **options: Any) -> Any:
    return np.exp(wealth(tally_of(batches), np.array([0]), **options).log_e_value)


BATCHES = [[(0.3, 1), (0.3, 0), (0.97, 1)], [(0.5, 0)], [(0.001, 1), (0.5, 1)]]


def test_the_e_value_is_the_mean_wealth_of_the_bets() -> None:
    stakes = [stake for stake, _ in bets(0.5)]
    assert sum(stakes) == pytest.approx(1.0, abs=1e-12)
    wealths, expected = np.ones(len(stakes)), []
    for batch in BATCHES:
        for row in batch:
            wealths *= factors(row)
        expected.append(float(np.dot(stakes, wealths)))
    assert e_values(BATCHES) == pytest.approx(expected, rel=1e-10)


def test_the_detector_begins_anew_with_every_batch() -> None:
    stakes = np.array([stake for stake, _ in bets(0.5)])
    state, expected = np.zeros(len(stakes)), []
    for batch in BATCHES:
        grown = np.prod([factors(row) for row in batch], axis=0)
        state = (1.0 + state) * grown
        expected.append(float(stakes @ state))
    found = wealth(tally_of(BATCHES), np.array([0])).log_detector
    assert np.exp(found) == pytest.approx(expected, rel=1e-10)


def test_right_scores_gain_nothing_on_average() -> None:
    # over all labels of four rows, each with the chance that its score says
    total = 0.0
    for labels in product((0, 1), repeat=len(SCORES)):
        chance = math.prod(s if y else 1.0 - s for s, y in zip(SCORES, labels, strict=True))
        total += chance * e_values([[row] for row in zip(SCORES, labels, strict=True)])[-1]
    assert total == pytest.approx(1.0, abs=1e-12)


def test_weighted_rows_gain_no_more_than_nothing() -> None:
    weights, total = [1.0, 5.0, 2.0, 0.5], 0.0
    for labels in product((0, 1), repeat=len(SCORES)):
        chance = math.prod(s if y else 1.0 - s for s, y in zip(SCORES, labels, strict=True))
        batches = [[row] for row in zip(SCORES, labels, strict=True)]
        total += chance * math.exp(wealth(tally_of(batches, weights), np.array([0]), scale=0.2).log_e_value[-1])
    assert 0.5 < total <= 1.0


def test_looking_more_often_changes_no_value() -> None:
    rows = [row for batch in BATCHES for row in batch]
    alone = e_values([[row] for row in rows])
    assert e_values([rows])[0] == pytest.approx(alone[-1], rel=1e-12)
    assert e_values(BATCHES) == pytest.approx(alone[[2, 3, 5]], rel=1e-12)


def test_segments_are_worth_the_same_alone_and_together() -> None:
    rng = np.random.default_rng(0)
    segments = [
        [[(round(float(s), 2), int(y))] for s, y in zip(rng.uniform(0.1, 0.9, n), rng.integers(0, 2, n), strict=True)]
        for n in (1, 40, 7, 3, 40)
    ]
    starts = np.cumsum([0, *(len(segment) for segment in segments[:-1])])
    together = wealth(tally_of([batch for segment in segments for batch in segment]), starts)
    for place, name in enumerate(("log_e_value", "log_detector")):
        alone = np.concatenate([wealth(tally_of(segment), np.array([0]))[place] for segment in segments])
        assert getattr(together, name) == pytest.approx(alone, abs=1e-12)


def test_what_could_not_be_is_infinite_evidence_from_then_on() -> None:
    certain = [[(0.0, 0), (1.0, 1)], [(0.5, 1)], [(1.0, 0)], [(0.5, 1)]]
    found = wealth(tally_of(certain), np.array([0]))
    assert found.log_e_value[:2] == pytest.approx([0.0, 0.0], abs=1e-12)  # certain and right says nothing
    assert found.log_e_value[2:].tolist() == [math.inf, math.inf]
    assert found.log_detector[2:].tolist() == [math.inf, math.inf]
    both = wealth(tally_of([*certain, *certain]), np.array([0, 4]))
    assert np.isinf(both.log_e_value).tolist() == [False, False, True, True] * 2


def test_the_smallest_scores_keep_finite_numbers() -> None:
    found = wealth(tally_of([[(5e-324, 0)], [(1.0 - 2**-53, 1)], [(5e-324, 1)]]), np.array([0]))
    assert np.isfinite(found.log_e_value).all()


def test_the_largest_value_so_far_begins_with_its_segment() -> None:
    values = np.array([1.0, 3.0, 2.0, -1.0, -2.0, 5.0])
    assert running_max(values, np.array([0, 3, 5])).tolist() == [1.0, 3.0, 3.0, -1.0, -1.0, 5.0]


# ---------------------------------------------------------------- in the result of drift
def days(count: int) -> list[dt.datetime]:
    return [dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=i) for i in range(count)]


def test_rows_of_one_time_or_one_day_are_one_batch() -> None:
    table = pl.DataFrame({"y": [0, 1, 1, 0], "p": [0.2, 0.4, 0.6, 0.8], "t": [*days(3)[1:], days(3)[1], days(30)[29]]})
    by_time = drift(table, label="y", score="p", time="t").monitor
    assert by_time["n"].to_list() == [2, 1, 1]
    assert by_time["time"].to_list() == sorted(set(table["t"].to_list()))
    by_day = drift(table, label="y", score="p", time="t", batch="day").monitor
    assert by_day.select("time", "n").rows() == [(dt.date(2024, 1, 1), 3), (dt.date(2024, 1, 2), 1)]
    assert by_day["log_e_value"][-1] == pytest.approx(by_time["log_e_value"][-1], rel=1e-12)
    assert by_time["e_value"].to_list() == pytest.approx(by_time["log_e_value"].exp().to_list(), rel=1e-12)


def test_the_alarm_stays_and_counts_series() -> None:
    wrong = pl.DataFrame({"y": [1] * 12 + [0] * 28, "p": [0.3] * 40, "t": days(40)})
    found = drift(wrong, label="y", score="p", time="t")
    alarm = found.monitor["alarm"].to_list()
    first = alarm.index(True)
    assert found.alarm_at == pytest.approx(20.0)
    assert found.monitor["e_value"][first] >= 20.0 > found.monitor["e_value"][first - 1]
    assert found.monitor["e_value"][-1] < 20.0
    assert all(alarm[first:])
    two = drift(wrong.with_columns(g=pl.int_range(pl.len()) % 2), label="y", score="p", time="t", by="g")
    assert two.alarm_at == pytest.approx(40.0)
    alone = drift(wrong.with_columns(g=1), label="y", score=["p"], time="t", by="g", correction="none", alpha=0.1)
    assert alone.alarm_at == pytest.approx(10.0)


def test_clipped_scores_are_never_infinite_evidence() -> None:
    table = pl.DataFrame({"y": [1, 1], "p": [0.0, 0.5], "t": days(2)})
    found = drift(table, label="y", score="p", time="t").monitor
    assert found["e_value"].to_list() == [math.inf, math.inf]
    assert found["alarm"].to_list() == [True, True]
    clipped = drift(table, label="y", score="p", time="t", clip=0.01).monitor
    most = drift(table.with_columns(p=pl.Series([0.01, 0.5])), label="y", score="p", time="t").monitor
    assert 1.0 < clipped["e_value"][0] <= most["e_value"][0]


def test_clipping_right_scores_gains_nothing() -> None:
    # the mean over all outcomes, each with the chance that the scores give it: at most 1, as without clipping
    score = [0.001, 0.004, 0.6, 0.9995]
    mean = {None: 0.0, 0.02: 0.0}
    for labels in product([0, 1], repeat=4):
        chance = math.prod(p if y else 1.0 - p for p, y in zip(score, labels, strict=True))
        table = pl.DataFrame({"y": labels, "p": score, "t": days(4)})
        for clip in mean:
            found = drift(table, label="y", score="p", time="t", clip=clip, positive=1).monitor
            mean[clip] += chance * found["e_value"][3]
    assert mean[None] == pytest.approx(1.0, abs=1e-12)
    assert 0.5 < mean[0.02] <= 1.0


def test_importance_weights_are_divided_by_the_largest() -> None:
    table = pl.DataFrame({"y": [1, 1, 0], "p": [0.3, 0.6, 0.2], "w": [4.0, 4.0, 4.0], "t": days(3)})
    plain = drift(table, label="y", score="p", time="t").monitor["log_e_value"].to_list()
    weighted = drift(table, label="y", score="p", time="t", weight="w").monitor["log_e_value"].to_list()
    assert weighted == pytest.approx(plain, rel=1e-12)
    twice = drift(table.with_columns(w=pl.lit(2)), label="y", score="p", time="t", weight="w", weight_kind="frequency")
    doubled = drift(pl.concat([table, table]), label="y", score="p", time="t").monitor["log_e_value"].to_list()
    assert twice.monitor["log_e_value"].to_list() == pytest.approx(doubled, rel=1e-12)


# ---------------------------------------------------------------- how often, and how soon
LINES = {
    (row["world"], row["truth"]): {name: float(row[name]) for name in row if name not in {"world", "truth"}}
    for row in csv.DictReader(RESULTS.read_text(encoding="utf-8").splitlines())
}
# Medians of a prototype at every row: 1,250 to 1,300, 196, 243, 337 and 1,637; ten rows a look and half of the stake
# on bins cost up to ln 2 more, and the slopes depend on the law of the scores.
SOONEST = {
    "shift 0.2": 1700,
    "shift 0.5": 300,
    "slope +0.5": 500,
    "slope -0.3": 700,
    "one bin of five +0.8": 2100,
}


def test_every_case_was_simulated() -> None:
    assert list(LINES) == CASES


@pytest.mark.parametrize("world", [world for world, truth in CASES if truth == "calibrated"])
def test_right_scores_seldom_sound_the_alarm_in_a_thousand_looks(world: str) -> None:
    line = LINES[world, "calibrated"]
    assert line["runs"] == 1000
    assert line["alarm"] <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / line["runs"])


@pytest.mark.parametrize("truth", list(SOONEST))
def test_wrong_scores_are_found(truth: str) -> None:
    line = LINES["balanced", truth]
    assert line["alarm"] >= 0.99
    assert line["median_rows"] <= SOONEST[truth]


def test_the_detector_finds_a_late_change_sooner() -> None:
    line = LINES["balanced", LATE]
    assert line["detector_median_rows"] < 0.5 * line["median_rows"]


@pytest.mark.parametrize("world", ["rare", "balanced"])
def test_right_scores_seldom_sound_the_alarm_now(world: str) -> None:
    line = simulate(world, "calibrated", runs=100, seed=11)
    assert line.alarm <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 100)
    assert LOOKS * ROWS == 10_000


def test_wrong_scores_are_found_now() -> None:
    line = simulate("balanced", "shift 0.5", runs=50, seed=11)
    assert line.alarm == 1.0
    assert line.median_rows <= SOONEST["shift 0.5"]
