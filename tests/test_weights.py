"""Weights, as properties of any table: weight 2 is the row twice, weight 0 is no row, and what follows from that."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

import calframe
from calframe._measures import CLASS_METRICS, METRICS
from calframe._registry import Metric
from tests._drawn import COUNTING, DRAWN, ROUGH, few_tables, some_tables
from tests._tables import Maker, approx, column, measure, rows

POLARS, PANDAS = Maker("polars"), Maker("pandas")
COLUMNS = ("y", "p", "w", "g")
Row = tuple[Any, ...]  # label, score, weight, segment

# Hundredths, so that many scores lie on edges and on each other, none of them certain: log loss stays finite.
SCORES = st.integers(1, 99).map(lambda k: k / 100)
LABELS = st.integers(0, 1)
COUNTS = st.integers(0, 4)
SEGMENTS = st.sampled_from(["a", "b", None])
TABLES = st.lists(st.tuples(LABELS, SCORES, COUNTS, SEGMENTS), min_size=1, max_size=25)
PLAIN = [name for name in METRICS if name not in DRAWN]


def found(table: Sequence[Row], *, make: Maker = POLARS, **arguments: Any) -> dict[str, list[Any]]:
    """Return the results of rows, every metric if not told otherwise; ``by=None`` for the whole table."""
    columns = dict(zip(COLUMNS, map(list, zip(*table, strict=True)), strict=True))
    columns["q"] = [0.25 + (score or 0.5) / 2 for score in columns["p"]]  # as if true
    if make is POLARS:
        columns["g"] = [key or "" for key in columns["g"]]  # a column of nulls alone has another type
    return rows(measure(make, columns, **{"by": "g", "metrics": "all", "posterior": "q", "bins": 10, **arguments}))


def repeated(table: Sequence[Row]) -> list[Row]:
    """Return every row as often as its weight says."""
    return [row for row in table for _ in range(row[2])]


def same(results: dict[str, list[Any]], others: dict[str, list[Any]], names: Sequence[str]) -> None:
    """Assert that two results agree on some columns."""
    wrong = {
        name: (results[name], others[name])
        for name in names
        if results[name] != approx(others[name], rel=1e-6 if name.startswith(ROUGH) else 1e-9)
    }
    assert not wrong


# ---------------------------------------------------------------- weight 2, weight 0
@some_tables
@given(TABLES.filter(repeated))
def test_a_weight_is_so_many_rows_in_every_metric(table: list[Row]) -> None:
    table = [row for row in table if row[2] > 0]
    weighted, plain = found(table, weight="w"), found(repeated(table))
    same(weighted, plain, ["g", *PLAIN])
    assert weighted["weight_sum"] == plain["n"]


@few_tables
@given(TABLES.filter(repeated))
def test_weight_zero_is_no_row(table: list[Row]) -> None:
    arguments: dict[str, Any] = {"weight": "w", "by": None, "confidence_level": 0.9}
    every, without = found(table, **arguments), found([row for row in table if row[2] > 0], **arguments)
    same(every, without, [name for name in every if name != "note"])
    zeros = sum(row[2] == 0 for row in table)
    assert ("of weight 0 left out" in (every["note"][0] or "")) == (zeros > 0)


@few_tables
@given(TABLES.filter(repeated))
def test_frequencies_are_rows_in_intervals_and_chance_levels_too(table: list[Row]) -> None:
    table = [row for row in table if row[2] > 0]
    weighted = found(table, weight="w", weight_kind="frequency", confidence_level=0.9)
    plain = found(repeated(table), confidence_level=0.9)
    same(weighted, plain, [name for name in plain if name not in {"n", "note"}])
    assert weighted["n"] == [sum(row[3] == (key or None) for row in table) for key in weighted["g"]]


@few_tables
@given(TABLES, st.sampled_from([None, 1e-50, 1 / 3, 7.0, 1e50]))
def test_the_unit_of_weights_does_not_matter(table: list[Row], unit: float | None) -> None:
    # one weight for all is no weight; any unit of importance weights is as good as another
    weighted = [(y, p, (unit or 1.0) * (w if unit else 1), g) for y, p, w, g in table]
    arguments: dict[str, Any] = {"confidence_level": 0.9}
    if unit:
        arguments["metrics"] = [name for name in METRICS if name not in COUNTING]
    one = found(weighted, weight="w", **arguments)
    other = found(table, weight="w" if unit else None, **arguments)
    same(one, other, [name for name in other if name not in {"weight_sum", "note"}])
    assert one["note"] == other["note"]


# ---------------------------------------------------------------- rows and segments
@few_tables
@given(TABLES.flatmap(lambda table: st.tuples(st.just(table), st.permutations(table))))
def test_the_order_of_rows_never_matters(tables: tuple[list[Row], list[Row]]) -> None:
    one, other = (found(table, weight="w", confidence_level=0.9) for table in tables)
    same(one, other, list(one))


@few_tables
@given(TABLES)
def test_a_constant_segment_is_no_segment(table: list[Row]) -> None:
    one = found([(y, p, w, "all") for y, p, w, _ in table], weight="w", confidence_level=0.9)
    whole = found(table, by=None, weight="w", confidence_level=0.9)
    assert one.pop("g") == ["all"]
    assert list(one) == list(whole)
    same(one, whole, list(whole))


@few_tables
@given(TABLES)
def test_each_segment_is_a_table_of_its_own(table: list[Row]) -> None:
    together = found(table, make=PANDAS, weight="w", confidence_level=0.9)
    assert together["g"] == sorted({row[3] for row in table}, key=lambda key: (key is None, key or ""))
    for i, key in enumerate(together["g"]):
        alone = found([row for row in table if row[3] == key], by=None, weight="w", confidence_level=0.9)
        same({name: values[i : i + 1] for name, values in together.items()}, alone, list(alone))


GAPPED = st.lists(
    st.tuples(
        st.sampled_from([0, 1, None]),
        st.sampled_from([0.25, 0.5, 1.0, 1.5, -0.25, None]),
        st.sampled_from([0.0, 1.0, 2.5, -1.0, None]),
        st.sampled_from(["a", "b"]),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("make", [POLARS, PANDAS], ids=lambda maker: maker.library)
@some_tables
@given(GAPPED)
def test_every_row_is_counted_once(make: Maker, table: list[Row]) -> None:
    results = found(table, make=make, weight="w", invalid="drop", metrics="rate")
    for i, key in enumerate(results["g"]):
        mine = [row[:3] for row in table if row[3] == key]
        zero = [row for row in mine if row[2] == 0]
        missing = [row for row in mine if None in row and row not in zero]
        good = [(y, p, w) for y, p, w in mine if None not in (y, p, w) and 0 <= p <= 1 and w > 0]
        assert (results["n"][i], results["n_missing"][i]) == (len(good), len(missing))
        assert results["n_invalid"][i] == len(mine) - len(zero) - len(missing) - len(good)
        assert results["weight_sum"][i] == math.fsum(w for _, _, w in good)
        noted = re.search(r"(\d+) rows? of weight 0 left out", results["note"][i] or "")
        assert int(noted[1] if noted else 0) == len(zero)


@some_tables
@given(TABLES)
def test_bins_of_a_curve_add_up_to_the_table(table: list[Row]) -> None:
    frame = POLARS(dict(zip(COLUMNS, map(list, zip(*table, strict=True)), strict=True)))
    arguments: dict[str, Any] = {"label": "y", "score": "p", "weight": "w", "bins": 10}
    curve = rows(calframe.curve(frame, **arguments).table)
    whole = rows(calframe.metrics(frame, metrics=["ece", "gap", "mce", "ace"], **arguments))
    assert sum(curve["n"]) == whole["n"][0]
    assert math.fsum(curve["weight_sum"]) == whole["weight_sum"][0]
    if curve["n"]:
        shares = [w / whole["weight_sum"][0] for w in curve["weight_sum"]]
        gaps = curve["gap"]
        assert whole["ece"] == [approx(math.fsum(s * abs(g) for s, g in zip(shares, gaps, strict=True)), rel=1e-9)]
        assert whole["gap"] == [approx(math.fsum(s * g for s, g in zip(shares, gaps, strict=True)), rel=1e-9)]
        assert whole["mce"] == [approx(max(map(abs, gaps)), rel=1e-9)]
        assert whole["ace"] == [approx(math.fsum(map(abs, gaps)) / len(gaps), rel=1e-9)]


# ---------------------------------------------------------------- how much weighted rows are worth
WORTH = {"y": [1, 0, 1, 0, 1], "p": [0.5, 0.25, 0.75, 0.5, 1.0], "w": [4.0, 1.0, 2.0, 2.0, 1.0]}


def test_importance_weights_are_worth_fewer_rows(make: Maker) -> None:
    # rate 7/10; (sum w)^2 / sum w^2 = 100 / 26 rows; mean score (2 + .25 + 1.5 + 1 + 1) / 10
    worth = 100 / 26
    low, high = proportion_confint(0.7 * worth, worth, alpha=0.1, method="wilson")  # statsmodels
    result = rows(measure(make, WORTH, weight="w", metrics=["rate", "gap", "ratio"], confidence_level=0.9))
    assert (result["rate_low"], result["rate_high"]) == (approx([low]), approx([high]))
    assert (result["gap_low"], result["gap_high"]) == (approx([0.575 - high]), approx([0.575 - low]))
    assert (result["ratio_low"], result["ratio_high"]) == (approx([0.575 / high]), approx([0.575 / low]))


def test_frequency_weights_are_worth_their_sum(make: Maker) -> None:
    arguments: dict[str, Any] = {"weight": "w", "metrics": "rate", "confidence_level": 0.9}
    result = rows(measure(make, WORTH, weight_kind="frequency", interval="jeffreys", **arguments))
    low, high = proportion_confint(7, 10, alpha=0.1, method="jeffreys")  # statsmodels
    assert (result["rate_low"], result["rate_high"]) == (approx([low], rel=1e-9), approx([high], rel=1e-9))


@pytest.mark.parametrize("method", ["wilson", "clopper_pearson", "jeffreys"])
def test_one_heavy_row_is_hardly_worth_more_than_itself(make: Maker, method: str) -> None:
    # weights 1000 and nine times 1: (1009)^2 / 1000009 = 1.018 rows, so almost nothing is known
    table = {"y": [1] * 10, "p": [0.5] * 10, "w": [1000.0] + [1.0] * 9}
    result = measure(make, table, weight="w", metrics="rate", confidence_level=0.95, interval=method)
    low, high = column(result, "rate_low")[0], column(result, "rate_high")[0]
    one_row, _ = proportion_confint(1, 1, method={"clopper_pearson": "beta"}.get(method, method))  # statsmodels
    assert one_row <= low < one_row + 0.01
    assert high == 1.0 or method == "jeffreys"  # whose ends are quantiles, never 1


def test_curves_take_weights_as_metrics_do(make: Maker) -> None:
    # bins of a half: rows 2 (weight 1) and the others (weights 4, 2, 2, 1: 81 / 25 rows, rate 7/9)
    result = rows(calframe.curve(make(WORTH), label="y", score="p", weight="w", bins=2, confidence_level=0.9).table)
    assert (result["n"], result["weight_sum"], result["rate"]) == ([1, 4], [1.0, 9.0], approx([0.0, 7 / 9]))
    ends = [
        proportion_confint(0, 1, alpha=0.1, method="wilson"),
        proportion_confint(7 / 9 * 81 / 25, 81 / 25, alpha=0.1, method="wilson"),
    ]
    assert (result["rate_low"], result["rate_high"]) == tuple(approx([end[i] for end in ends]) for i in (0, 1))


# ---------------------------------------------------------------- where weights count as rows
CORRECTED = ["reliability_corrected", "resolution_corrected", "uncertainty_corrected"]


def test_weights_that_make_no_two_rows_are_named(make: Maker) -> None:
    # weights add up to 1, so no variance has a row to spare; four times as large they are four rows, two in each bin:
    # gaps -.3 and .2, reliability (.09 + .04) / 2 less .25 / (2 - 1)
    table = {"y": [1, 0, 1, 0], "p": [0.2, 0.2, 0.7, 0.7], "w": [0.25] * 4}
    result = rows(measure(make, table, weight="w", metrics=CORRECTED, bins=2))
    assert [result[name] for name in CORRECTED] == [[None]] * 3
    said = [f"{name}: fewer than two rows (weights count as rows)" for name in CORRECTED]
    said.append(f"weights count rows in {', '.join(CORRECTED)}: give importance weights a mean of 1")
    assert result["note"] == ["; ".join(said)]
    result = rows(measure(make, {**table, "w": [1.0] * 4}, weight="w", metrics=CORRECTED, bins=2))
    # resolution 0 - .25 + .25 / 3, uncertainty .25 * 4 / 3
    assert [result[name][0] for name in CORRECTED] == approx([0.065 - 0.25, 0.25 / 3 - 0.25, 1 / 3])
    assert result["note"] == [None]


@pytest.mark.parametrize("metrics", [METRICS, CLASS_METRICS])
def test_what_counts_rows_says_so_of_weights_with_a_mean_far_from_1(metrics: dict[str, Metric]) -> None:
    # what a common factor of the weights moves is where a unit of weight is a row; skce only of whole weights
    rng = np.random.default_rng(1)
    scores = rng.dirichlet(np.ones(3), 60).round(2)
    scores[:, 2] = 1.0 - scores[:, 0] - scores[:, 1]
    data = pl.DataFrame({"y": [rng.choice(3, p=row) for row in np.abs(scores)], "w": rng.uniform(0.5, 1.5, 60)})
    data = data.with_columns(pl.DataFrame(np.abs(scores), schema=["a", "b", "c"]), large=8.0 * pl.col("w"))
    data = data if metrics is CLASS_METRICS else data.with_columns(pl.col("y") == 0)
    asked = {"label": "y", "score": {0: "a", 1: "b", 2: "c"} if metrics is CLASS_METRICS else "a", "metrics": "all"}
    one, other = (calframe.metrics(data, weight=name, **asked) for name in ("w", "large"))
    moved = [name for name in one.columns if name in metrics and other[name][0] != approx(one[name][0], rel=1e-6)]
    assert moved == [name for name in one.columns if name in metrics and metrics[name].counts_rows]
    assert other["note"][0].endswith(f"weights count rows in {', '.join(moved)}: give importance weights a mean of 1")
    assert "count rows in" not in (one["note"][0] or "")
