"""Tests on the golden table of 240 rows, as the packages give them whose names are said."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import calframe
from tests.test_golden import TABLE

INNER, POSITIVE = TABLE.filter(pl.col("p").is_between(0, 1, closed="none")), TABLE.filter(pl.col("p") > 0)


def found(method: str, column: str, data: pl.DataFrame = TABLE, **arguments: Any) -> list[float]:
    return calframe.test(data, label="y", score="p", method=method, **arguments).table[column].to_list()


def test_cumulative_differences_as_mapie() -> None:
    # mapie 1.6 tells ties apart by a jitter of 1e-8, hence 8 digits; it gives p-values of both laws
    assert found("ecce", "statistic") == pytest.approx([3.0565809768], rel=1e-8)
    assert found("ecce", "pvalue") == pytest.approx([0.0089550722], rel=1e-7)
    assert found("ks", "pvalue") == pytest.approx([0.0044775400], rel=1e-7)


def test_cumulative_differences_of_segments_as_mcgrad() -> None:
    # mcgrad 0.1.5, in float64, where no scores of a segment are equal; it adjusts no p-value
    table = calframe.test(TABLE, label="y", score="p", by="g", method="ecce", correction="none").table
    assert table["statistic"].to_list() == pytest.approx([1.116857, 2.555285, 1.933655], abs=5e-7)
    assert table["pvalue"].to_list()[::2] == pytest.approx([0.861758, 0.211742], abs=5e-7)
    # of segment b it gives the law of many rows, 0.042438, which few rows stay below: drawing says 0.03
    assert table["law"].to_list() == ["brownian", "resampled", "brownian"]
    assert table["pvalue"][1] == pytest.approx(0.03, abs=4 * table["pvalue_se"][1])


def test_spiegelhalter_as_rms_calzone_and_calikit() -> None:
    assert found("spiegelhalter", "statistic") == pytest.approx([-0.1857939659], abs=5e-11)
    assert found("spiegelhalter", "pvalue") == pytest.approx([0.8526063367], abs=5e-11)


def test_spiegelhalter_of_segments_as_rms() -> None:
    # its "B ChiSq" of val.probg is the square of z
    squares = [z * z for z in found("spiegelhalter", "statistic", by="g")]
    assert squares == pytest.approx([0.37648391, 0.0000088225, 0.09729834], abs=5e-9)


def test_gap_of_segments_as_rms() -> None:
    # its "ChiSq" of val.probg; "ChiSq2" is a score test where `cox` gives a likelihood ratio
    squares = [z * z for z in found("gap", "statistic", by="g")]
    assert squares == pytest.approx([0.6290555, 6.1827866, 3.5988529], abs=5e-8)


def test_miller_as_r() -> None:
    # R's glm on scores clipped at 1e-6
    assert found("cox", "statistic", floor=1e-6) == pytest.approx([9.284645, 8.888391, 0.3962534], rel=1e-6)
    # U of val.prob of rms, which leaves scores of 0 and 1 out: chi-square and its p-value
    assert found("cox", "statistic", INNER)[0] == pytest.approx(9.28463660, abs=5e-9)
    assert found("cox", "pvalue", INNER)[0] == pytest.approx(0.0096353341, abs=5e-11)


def test_hosmer_lemeshow_as_calzone() -> None:
    # calzone 0.1 leaves out the three rows of score 0 and clips rates at 1e-7, which moves the fifth digit
    internal = {"method": "hosmer_lemeshow", "strategy": "uniform", "df": "internal"}
    assert found(column="statistic", data=POSITIVE, **internal) == pytest.approx([19.925456], abs=2e-5)
    assert found(column="pvalue", data=POSITIVE, **internal) == pytest.approx([0.0106217842], abs=1e-7)
    assert found(column="statistic", **internal)[0] != pytest.approx(19.925456, abs=5e-3), "with those rows"


def test_what_is_not_reproduced() -> None:
    # model-diagnostics 1.5 takes Student's t of the rows' biases for the gap; right scores have a known variance
    assert found("gap", "pvalue")[0] != pytest.approx(0.0025743841, abs=1e-5)
    # mapie gives one side of Spiegelhalter's z
    assert found("spiegelhalter", "pvalue")[0] != pytest.approx(0.5736968317, abs=1e-5)
