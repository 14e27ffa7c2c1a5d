"""Numeric segment columns in an audit: bands by hand, on every engine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from calframe._audit import Audit, audit
from tests._tables import Maker, rows


def audited(data: Any, **arguments: Any) -> Audit:
    return audit(data, **{"label": "y", "score": "p", "by": "g", "n_resamples": 20, **arguments})


def named(found: Audit) -> dict[str, dict[str, Any]]:
    columns = rows(found.table)
    segments = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return {row["segment"]: row for row in segments}


def test_numeric_columns_are_cut_at_quantiles_that_leave_equal_values_together(make: Maker) -> None:
    # Quartiles of these 16 values (type 7): positions 3.75, 7.5 and 11.25 of 0 to 15 hold 2, 2.5 and 6.25; the values
    # at or above them are 2, 3 and 7.
    values = [1, 2, 2, 2, 2, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 11]
    assert np.quantile(values, [0.25, 0.5, 0.75]).tolist() == [2.0, 2.5, 6.25]
    columns = {"g": [*values, 12, None], "y": [0, 1] * 9, "p": [0.5] * 18}
    columns["g"][16] = 11  # ten values up to here, and so one segment each
    found = named(audited(make(columns)))
    assert found["g=2"]["n"] == 7
    columns["g"][16] = 12  # positions 4, 8 and 12 of 0 to 16 hold 2, 3 and 7
    found = audited(make(columns))
    assert {name: row["n"] for name, row in named(found).items()} == {
        "g=[1, 2)": 1,
        "g=[2, 3)": 7,
        "g=[3, 7)": 4,
        "g=[7, 12]": 5,
        "g=(missing)": 1,
    }
    assert found.to_dict()["convention"]["bands"] == {"g": ["[1, 2)", "[2, 3)", "[3, 7)", "[7, 12]"]}
    assert named(found)["g=[2, 3)"]["g"] == "[2, 3)"


def test_a_value_that_most_rows_have_is_a_band_of_its_own() -> None:
    values = [0.0] * 90 + [float(i) for i in range(1, 31)]
    found = named(audited(pl.DataFrame({"g": values, "y": [0, 1] * 60, "p": [0.5] * 120})))
    assert {name: row["n"] for name, row in found.items()} == {"g=[0, 1)": 90, "g=[1, 30]": 30}


def test_few_numbers_with_a_fraction_are_segments_by_themselves(make: Maker) -> None:
    found = named(audited(make({"g": [0.5, 1.5, None, 0.5], "y": [0, 1, 1, 0], "p": [0.5] * 4})))
    assert {name: row["n"] for name, row in found.items()} == {"g=0.5": 2, "g=1.5": 1, "g=(missing)": 1}


@pytest.mark.parametrize("blank", [[None] * 4, [math.nan] * 4])
def test_a_column_without_values_is_one_segment(make: Maker, blank: list[Any]) -> None:
    found = named(audited(make({"g": blank, "y": [0, 1, 1, 0], "p": [0.5] * 4})))
    assert {name: (row["n"], row["g"]) for name, row in found.items()} == {"g=(missing)": (4, None)}


def test_a_negative_number_is_its_own_segment_and_infinity_has_a_band() -> None:
    values = [float(i) for i in range(11)] + [-math.inf, math.inf]
    found = named(audited(pl.DataFrame({"g": values, "y": [0, 1] * 6 + [0], "p": [0.5] * 13})))
    assert sum(row["n"] for row in found.values()) == 13
    assert "g=[-inf, 2)" in found


def test_bands_of_a_number_asked_for_have_about_equal_rows(make: Maker) -> None:
    values = np.random.default_rng(0).permutation(1000) * 0.01
    found = named(audited(make({"g": values.tolist(), "y": [0, 1] * 500, "p": [0.5] * 1000}), numeric_bins=10))
    assert [row["n"] for row in found.values()] == [100] * 10
    assert {"g=[0, 1)", "g=[9, 9.99]"} <= set(found)


def test_every_engine_cuts_at_the_same_edges(make: Maker) -> None:
    # Quantiles that fall on values themselves, where engines interpolate with different rounding
    values = [0.1 * i for i in range(101)]
    found = audited(make({"g": values, "y": [0] + [0, 1] * 50, "p": [0.5] * 101}), numeric_bins=5)
    assert {row["n"] for row in named(found).values()} == {20, 21}
    assert found.to_dict()["convention"]["bands"]["g"] == ["[0, 2)", "[2, 4)", "[4, 6)", "[6, 8)", "[8, 10]"]
