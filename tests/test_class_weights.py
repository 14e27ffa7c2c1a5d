"""Weights, order and segments of tables of classes, as properties of every metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calframe._measures import CLASS_METRICS, METRICS
from tests._class_tables import CLASSES, SCORE, found
from tests._drawn import COUNTING, DRAWN, ROUGH, few_tables, some_tables
from tests._tables import Maker, approx

POLARS = Maker("polars")
TRUE = {"a": "qa", "b": "qb", "c": "qc"}
Row = tuple[int, tuple[float, ...], int, str]  # class that happened, scores, weight, segment

# Tenths of at least one, so that many scores lie on edges, many vectors are equal, and log loss stays finite.
CUTS = st.lists(st.integers(0, 7), min_size=2, max_size=2).map(sorted)
VECTORS = CUTS.map(lambda at: tuple((1 + int(part)) / 10 for part in np.diff([0, *at, 7])))
ROWS = st.tuples(st.integers(0, 2), VECTORS, st.integers(0, 3), st.sampled_from("uv"))
TABLES = st.lists(ROWS, min_size=1, max_size=15).filter(lambda table: any(row[2] for row in table))
NOTIONS: list[Any] = [None, "classwise", "confidence"]


def measured(table: Sequence[Row], **arguments: Any) -> dict[str, list[Any]]:
    label, vector, weight, segment = zip(*table, strict=True)
    columns = {"y": [CLASSES[c] for c in label], "w": list(weight), "g": list(segment)}
    for c, (name, true) in enumerate(zip(SCORE.values(), TRUE.values(), strict=True)):
        columns[name] = [scores[c] for scores in vector]
        columns[true] = [(scores[c] + 1 / 3) / 2 for scores in vector]
    return found(POLARS(columns), **{"metrics": "all", "posterior": TRUE, "bins": 10, **arguments})


def metrics_of(notion: Any) -> list[str]:
    return list(CLASS_METRICS if notion is None else METRICS)


def repeated(table: Sequence[Row]) -> list[Row]:
    return [row for row in table for _ in range(row[2])]


def same(results: dict[str, list[Any]], others: dict[str, list[Any]], names: Sequence[str]) -> None:
    wrong = {
        name: (results[name], others[name])
        for name in names
        if results[name] != approx(others[name], rel=1e-6 if name.startswith(ROUGH) else 1e-9)
    }
    assert not wrong


@pytest.mark.parametrize("notion", NOTIONS)
@few_tables
@given(table=TABLES)
def test_a_weight_is_so_many_rows_in_every_metric(notion: Any, table: list[Row]) -> None:
    some = [row for row in table if row[2] > 0]
    weighted, plain = measured(some, weight="w", notion=notion), measured(repeated(some), notion=notion)
    same(weighted, plain, [name for name in metrics_of(notion) if name not in DRAWN])
    assert weighted["weight_sum"] == plain["n"]


@few_tables
@given(TABLES, st.sampled_from([{"strategy": "quantile", "bins": 3}, {"bins": "auto"}]))
def test_a_weight_is_so_many_rows_in_bins_of_equal_weight(table: list[Row], how: dict[str, Any]) -> None:
    some = [row for row in table if row[2] > 0]
    same(measured(some, weight="w", **how), measured(repeated(some), **how), metrics_of(None))


@few_tables
@given(TABLES)
def test_weight_zero_is_no_row(table: list[Row]) -> None:
    arguments: dict[str, Any] = {"weight": "w", "confidence_level": 0.9}
    every, without = measured(table, **arguments), measured([row for row in table if row[2] > 0], **arguments)
    same(every, without, [name for name in every if name != "note"])
    assert ("of weight 0 left out" in (every["note"][0] or "")) == any(row[2] == 0 for row in table)


@few_tables
@given(TABLES)
def test_frequencies_are_rows_in_intervals_too(table: list[Row]) -> None:
    some = [row for row in table if row[2] > 0]
    weighted = measured(some, weight="w", weight_kind="frequency", confidence_level=0.9)
    plain = measured(repeated(some), confidence_level=0.9)
    same(weighted, plain, [name for name in plain if name not in {"n", "note"}])


@few_tables
@given(TABLES, st.sampled_from([1e-50, 1 / 3, 1e50]))
def test_the_unit_of_weights_does_not_matter(table: list[Row], unit: float) -> None:
    names = [name for name in CLASS_METRICS if name not in COUNTING]
    arguments: dict[str, Any] = {"weight": "w", "metrics": names, "confidence_level": 0.9}
    one, other = (measured([(*row[:2], u * row[2], row[3]) for row in table], **arguments) for u in (1, unit))
    same(one, other, [name for name in one if name != "weight_sum"])


@some_tables
@given(TABLES.flatmap(lambda table: st.tuples(st.just(table), st.permutations(table))))
def test_the_order_of_rows_never_matters(tables: tuple[list[Row], list[Row]]) -> None:
    one, other = (measured(table, weight="w", by="g", confidence_level=0.9) for table in tables)
    same(one, other, list(one))


@few_tables
@given(TABLES)
def test_each_segment_is_a_table_of_its_own(table: list[Row]) -> None:
    together = measured(table, weight="w", by="g", confidence_level=0.9)
    assert together["g"] == sorted({row[3] for row in table})
    for i, key in enumerate(together["g"]):
        alone = measured([row for row in table if row[3] == key], weight="w", confidence_level=0.9)
        same({name: values[i : i + 1] for name, values in together.items()}, alone, list(alone))
