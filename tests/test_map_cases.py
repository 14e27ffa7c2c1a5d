"""Fits that other people's users reported as bugs, each with the value worked out by hand, on every library."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pytest

import calframe
from tests._tables import Maker, approx, rows


def mapped(make: Maker, table: dict[str, Any], at: dict[str, Any], **arguments: Any) -> list[Any]:
    """Fit a map to a table, apply it to another, and return the calibrated column."""
    found = calframe.fit(make(table), label="y", score="p", **arguments)
    return calibrated(make(at), found)["p_calibrated"]


def calibrated(table: Any, found: calframe.CalibrationMap) -> dict[str, list[Any]]:
    out = calframe.apply(table, found)
    return rows(out.pl() if isinstance(out, duckdb.DuckDBPyRelation) else out)


def parameters(make: Maker, table: dict[str, Any], **arguments: Any) -> list[float]:
    return rows(calframe.fit(make(table), label="y", score="p", **arguments).table)["value"]


def test_isotonic_is_constant_beyond_its_scores(make: Maker) -> None:
    # https://github.com/scikit-learn/scikit-learn/issues/23134: rows without a label lie below and above
    table = {"y": [0, 1, 1, None, None], "p": [0.2, 0.4, 0.6, 0.05, 0.99]}
    assert mapped(make, table, table, method="isotonic") == approx([0.0, 1.0, 1.0, 0.0, 1.0])


def test_isotonic_knows_no_row_of_weight_zero(make: Maker) -> None:
    # https://github.com/scikit-learn/scikit-learn/issues/2507: only the first and the last row count
    table = {"y": [0, 1, 0, 1], "p": [0.1, 0.2, 0.3, 0.4], "w": [1, 0, 0, 1]}
    found = mapped(make, table, {"p": [0.1, 0.2, 0.3, 0.4]}, method="isotonic", weight="w")
    assert (found[0], found[-1]) == (0.0, 1.0)
    assert found == sorted(found)


def test_isotonic_gives_a_zero_unless_told_otherwise(make: Maker) -> None:
    # https://github.com/scikit-learn/scikit-learn/issues/28574: the step at .2 is 0, and a positive comes there
    table = {"y": [0, 0, 1, 1], "p": [0.2, 0.4, 0.6, 0.8]}
    assert mapped(make, table, {"p": [0.2]}, method="isotonic") == [0.0]
    (clipped,) = mapped(make, table, {"p": [0.2]}, method="isotonic", epsilon=1e-6)
    assert -math.log(clipped) == approx(13.815510558, rel=1e-9)


def test_platt_of_raw_scores_of_any_size(make: Maker) -> None:
    # https://github.com/scikit-learn/scikit-learn/issues/26766: targets 7/8 and 1/6, of six positives, four negatives
    table = {"y": [1] * 6 + [0] * 4, "p": [1e5] * 6 + [0.0] * 4}
    arguments = {"method": "platt", "on": "score", "target_smoothing": True, "link": "logit"}
    assert mapped(make, table, {"p": [1e5, 0.0]}, **arguments) == approx([7 / 8, 1 / 6])


def test_a_temperature_of_two(make: Maker) -> None:
    # https://github.com/gpleiss/temperature_scaling/issues/20: ln 9 / ln 3
    table = {"y": [1, 1, 1, 0, 1, 0, 0, 0], "p": [0.9] * 4 + [0.1] * 4}
    assert parameters(make, table, method="temperature") == approx([2.0])
    assert mapped(make, table, {"p": [0.9, 0.1]}, method="temperature") == approx([0.75, 0.25])


def test_reversed_scores_get_the_rate(make: Maker) -> None:
    # https://github.com/Meesho/spark_calibration/pull/4: both gradients are negative at a = b = 0
    table = {"y": [0, 0, 0, 1, 0, 1, 1], "p": [0.9, 0.8, 0.7, 0.6, 0.3, 0.2, 0.1]}
    found = calframe.fit(make(table), label="y", score="p", method="beta")
    assert rows(found.table)["value"] == approx([0.0, 0.0, math.log(3 / 4)])
    assert calibrated(make({"p": [0.05, 0.5, 0.95]}), found)["p_calibrated"] == approx([3 / 7] * 3)
    assert found.notes[0].startswith("a and b are 0, the least")


def test_beta_of_calibrated_scores_is_the_identity(make: Maker) -> None:
    # https://github.com/betacal/python/issues/1: three scores, three parameters
    table = {"y": [1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0], "p": [0.25] * 4 + [0.5] * 4 + [0.75] * 4}
    assert parameters(make, table, method="beta") == pytest.approx([1.0, 1.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("method", ["temperature", "platt", "beta", "isotonic"])
def test_separated_scores_are_no_crash(make: Maker, method: str) -> None:
    # https://github.com/EFS-OpenSource/calibration-framework/issues/64: AUC 1, no finite fit but the steps 0 and 1
    table = {"y": [0, 1], "p": [0.1, 0.9]}
    found = calframe.fit(make(table), label="y", score="p", method=method)
    out = calibrated(make({"p": [0.1, 0.9]}), found)["p_calibrated"]
    assert out == approx([0.0, 1.0] if method == "isotonic" else [0.1, 0.9])
    assert "separate the classes" in found.notes[0]
    smooth = {"method": "platt", "on": "score", "target_smoothing": True}
    assert mapped(make, table, {"p": [0.1, 0.9]}, **smooth) == approx([1 / 3, 2 / 3])


def test_a_temperature_of_three_classes(make: Maker) -> None:
    # https://github.com/EFS-OpenSource/calibration-framework/issues/61: (1/8)^(1/T) = 1/2
    table = {"y": ["a", "a", "b", "c"], "p_a": [0.8] * 4, "p_b": [0.1] * 4, "p_c": [0.1] * 4}
    found = calframe.fit(make(table), label="y", score={"a": "p_a", "b": "p_b", "c": "p_c"}, method="temperature")
    assert rows(found.table)["value"] == approx([3.0])
    out = calibrated(make({name: table[name][:1] for name in ("p_a", "p_b", "p_c")}), found)
    assert [out[f"p_calibrated_{name}"][0] for name in "abc"] == approx([0.5, 0.25, 0.25])
