"""Folds: random, grouped, by time and given."""

from __future__ import annotations

import datetime as dt
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from calframe._errors import ArgumentError, ColumnNotFoundError, EmptyTableError, SegmentError
from calframe._folds import Folds
from tests._tables import LIBRARIES, Maker

EAGER = [name for name in LIBRARIES if name not in ("polars[lazy]", "duckdb")]


def assigned(data: Any, folds: Any = 5, *, group: Any = None, time: Any = None, rng: Any = 0) -> list[int]:
    plan = Folds.from_arguments(folds, group=group, time=time, rng=rng)
    return list(plan.assigned(nw.from_native(data, eager_only=True)))


@pytest.mark.parametrize("library", EAGER)
@pytest.mark.parametrize("arguments", [{}, {"group": "g"}, {"time": "t"}, {"folds": "f"}], ids=str)
def test_folds_are_the_same_in_every_library(library: str, arguments: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    days = [dt.date(2026, 1, 1) + dt.timedelta(days=int(i)) for i in rng.integers(0, 40, 60)]
    table = {
        "g": [f"é{i}" if i % 3 else f"z{i}" for i in rng.integers(0, 20, 60)],
        "t": days,
        "f": rng.integers(0, 3, 60).tolist(),
    }
    assert assigned(Maker(library)(table), **arguments) == assigned(pl.DataFrame(table), **arguments)


def test_random_folds_are_balanced_and_seeded() -> None:
    table = pl.DataFrame({"p": np.zeros(23)})
    found = assigned(table)
    assert sorted(np.bincount(found)) == [4, 4, 5, 5, 5]
    assert found == assigned(table)
    assert found != assigned(table, rng=1)
    assert found != sorted(found)
    generator = np.random.default_rng(3)
    assert assigned(table, rng=generator) != assigned(table, rng=generator)  # each call draws a seed of its own


def test_groups_stay_together_and_folds_are_balanced() -> None:
    size = [40, 30, 20, 10, 8, 7, 6, 5, 4]  # 130 rows: 26 a fold, but the largest group has 40
    group = np.repeat(list("abcdefghi"), size)
    found = np.array(assigned(pl.DataFrame({"g": group}), group="g"))
    for name in "abcdefghi":
        assert len(set(found[group == name])) == 1
    assert sorted(np.bincount(found)) == [20, 20, 20, 30, 40]  # 10+6+4 and 8+7+5: as even as groups allow


def test_time_goes_forward_and_equal_times_stay_together() -> None:
    time = np.array([3, 1, 2, 2, 2, 1, 5, 4, 4, 6])
    found = np.array(assigned(pl.DataFrame({"t": time}), folds=3, time="t"))
    # in order 1 1 2 2 2 3 4 4 5 6 the middles of the times lie at 1, 3.5, 5.5, 7, 8.5, 9.5 of ten rows: thirds of 3.33
    assert dict(zip(time.tolist(), found.tolist(), strict=True)) == {1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2}
    plan = Folds.from_arguments(3, group=None, time="t", rng=0)
    for fitted_on, calibrated in plan.split(nw.from_native(pl.DataFrame({"t": time}), eager_only=True)):
        assert time[fitted_on].max(initial=0) < time[calibrated].min()


def test_one_crowded_time_leaves_fewer_folds() -> None:
    time = [1] * 2 + [2] * 96 + [3] * 2
    assert sorted(set(assigned(pl.DataFrame({"t": time}), folds=5, time="t"))) == [0, 1, 2]


@pytest.mark.parametrize(
    "fold",
    [
        [0, 1, 2],
        ["a", "b", "c"],
        [0.5, 1.5, 2.5],
        [dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 1, 3)],
    ],
    ids=lambda values: type(values[0]).__name__,
)
def test_a_fold_column_of_any_type(fold: list[Any]) -> None:
    for data in (pl.DataFrame({"f": fold}), pd.DataFrame({"f": fold})):
        assert assigned(data, "f") == [0, 1, 2]
    assert assigned(pd.DataFrame({"f": pd.Categorical(fold, categories=fold[::-1])}), "f") == [0, 1, 2]
    assert assigned(pl.DataFrame({"f": [True, False, True]}), "f") == [1, 0, 1]


def test_every_row_is_calibrated_once_and_not_by_itself() -> None:
    frame = nw.from_native(pl.DataFrame({"f": list("abcab")}), eager_only=True)
    parts = list(Folds.from_arguments("f", group=None, time=None, rng=0).split(frame))
    assert not any((fitted_on & calibrated).any() for fitted_on, calibrated in parts)
    assert sum(calibrated.astype(int) for _, calibrated in parts).tolist() == [1] * 5


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"folds": 1}, "whole number from 2 to 1000, or the name of a fold column; got 1"),
        ({"folds": 2.0}, "got 2.0"),
        ({"folds": True}, "got True"),
        ({"group": 3}, "group= takes the name of one column; got 3"),
        ({"time": ["t"]}, r"time= takes the name of one column; got \['t'\]"),
        ({"group": "g", "time": "t"}, "two ways to split rows"),
        ({"folds": "f", "time": "t"}, "names the fold of each row already; leave time='t' out"),
        ({"rng": -1}, "rng must be"),
        ({"folds": 9}, "folds=9 needs 9 rows or more; the table has 3 rows"),
    ],
)
def test_arguments_that_make_no_folds(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        assigned(pl.DataFrame({"g": [1, 2, 3], "t": [1, 2, 3], "f": [1, 2, 3]}), **arguments)


@pytest.mark.parametrize(
    ("columns", "arguments", "match"),
    [
        ({"f": ["a", None, "b"]}, {"folds": "f"}, "fold column 'f' is null in 1 row; every row must have one"),
        ({"f": [1.0, float("nan"), float("nan")]}, {"folds": "f"}, "fold column 'f' is null in 2 rows"),
        ({"f": [1, 1, 1]}, {"folds": "f"}, "fold column 'f' has 1 value; 2 or more are needed"),
        ({"g": [1, 1, 2]}, {"group": "g", "folds": 3}, "group column 'g' has 2 values; 3 or more are needed"),
        ({"t": [4, 4, 4]}, {"time": "t"}, "time column 't' has 1 value"),
        ({"t": ["2/1/26", "10/1/26", "3/1/26"]}, {"time": "t"}, "time column 't' has type String, whose order"),
    ],
)
def test_columns_that_make_no_folds(columns: dict[str, Any], arguments: dict[str, Any], match: str) -> None:
    for data in (pl.DataFrame(columns), pd.DataFrame(columns)):
        with pytest.raises(SegmentError, match=match):
            assigned(data, **arguments)


def test_a_fold_column_of_mixed_objects() -> None:
    with pytest.raises(SegmentError, match=r"mixes values that have no common order .* turn it into text"):
        assigned(pd.DataFrame({"f": [1, "a", 2]}), "f")


def test_no_rows_and_no_column() -> None:
    with pytest.raises(EmptyTableError, match="the table has no rows"):
        assigned(pl.DataFrame({"p": []}))
    with pytest.raises(ColumnNotFoundError, match="no column 'fold' for folds="):
        assigned(pl.DataFrame({"p": [1, 2]}), "fold")
