"""Partial pooling of isotonic and histogram in maps: each option shapes the pooled curve, as worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import calframe

# In all segments together: of 12 rows at each score 2 are positive at .1, 6 at .3, 4 at .4 and 9 at .8.
SCORES = (0.1, 0.3, 0.4, 0.8)
ROWS: dict[str, tuple[tuple[int, int], ...]] = {  # rows and positives at each score
    "a": ((2, 1), (2, 1), (2, 0), (2, 1)),
    "b": ((2, 0), (2, 2), (2, 1), (2, 2)),
    "c": ((2, 0), (2, 0), (2, 0), (2, 1)),
    "d": ((2, 1), (2, 2), (2, 2), (2, 2)),
    "e": ((3, 0), (2, 1), (1, 1), (2, 2)),
    "f": ((1, 0), (2, 0), (3, 0), (2, 1)),
}
LOW, BLOCK, LAST = 2.5 / 13, 10.5 / 25, 9.5 / 13  # of .1, of .3 and .4 (6/12 and 4/12 fall), of .8


def table_of(rows: dict[Any, Any], scores: tuple[float, ...] = SCORES) -> pl.DataFrame:
    cells = [
        (key, score, i < positive)
        for key, each in rows.items()
        for score, (number, positive) in zip(scores, each, strict=True)
        for i in range(number)
    ]
    return pl.DataFrame(cells, schema=["g", "p", "y"], orient="row")


def fitted(table: pl.DataFrame, **options: Any) -> calframe.CalibrationMap:
    return calframe.fit(table, label="y", score="p", by="g", **options)


def mapped(found: calframe.CalibrationMap, key: str | None, scores: Any) -> np.ndarray:
    rows = pl.DataFrame({"g": pl.Series([key] * len(scores), dtype=pl.String), "p": scores})
    return np.asarray(found.apply(rows)["p_calibrated"])


def parameters(found: calframe.CalibrationMap, key: str | None) -> tuple[float, float]:
    own = found.table.filter(pl.col("g").eq_missing(key), pl.col("parameter").is_in(["slope", "intercept"]))
    slope, intercept = own["value"]
    return slope, intercept


def between(share: float, low: float, high: float) -> float:
    return low + share * (high - low)


AT = (0.0, 0.1, 0.2, 0.3, 0.35, 0.4, 0.6, 0.8, 1.0)
CURVES: dict[str, tuple[dict[str, Any], tuple[float, ...]]] = {
    # scores .3 and .4 have the rate of their block; straight lines lead from .1 to .3 and from .4 to .8
    "isotonic": (
        {"method": "isotonic"},
        (LOW, LOW, between(0.5, LOW, BLOCK), BLOCK, BLOCK, BLOCK, between(0.5, BLOCK, LAST), LAST, LAST),
    ),
    "steps": (
        {"method": "isotonic", "interpolation": "step"},
        (LOW, LOW, LOW, BLOCK, BLOCK, BLOCK, BLOCK, LAST, LAST),
    ),
    # the block is the point .35
    "centred": (
        {"method": "isotonic", "centred": True},
        (
            *(LOW, LOW, between(0.4, LOW, BLOCK), between(0.8, LOW, BLOCK), BLOCK),
            *(between(1 / 9, BLOCK, LAST), between(5 / 9, BLOCK, LAST), LAST, LAST),
        ),
    ),
    "two bins": ({"method": "histogram", "bins": 2}, (12.5 / 37,) * 6 + (LAST,) * 3),
    "edges": ({"method": "histogram", "bins": [0, 0.3, 1]}, (LOW,) * 3 + (19.5 / 37,) * 6),
    "closed right": (
        {"method": "histogram", "bins": [0, 0.3, 1], "closed": "right"},
        (8.5 / 25,) * 4 + (13.5 / 25,) * 5,
    ),
    # equal weights: the border lies midway between .3 and .4 and belongs to the upper bin
    "quantiles": ({"method": "histogram", "strategy": "quantile", "bins": 2}, (8.5 / 25,) * 4 + (13.5 / 25,) * 5),
    "laplace": ({"method": "histogram", "bins": 2, "laplace": 2.0}, (14 / 40,) * 6 + (11 / 16,) * 3),
    # the third of four bins is empty and keeps the score, which is 0.6
    "empty bin": ({"method": "histogram", "bins": 4}, (LOW,) * 3 + (BLOCK,) * 3 + (0.6, LAST, LAST)),
    # 6.5/13 and 4.5/13 of the bins from .3 and .4 fall; the bin from .2 keeps the score, up to their 11/26
    "bins that fall": ({"method": "histogram", "bins": 10}, (LOW, LOW, 0.2) + (11 / 26,) * 3 + (0.6, LAST, LAST)),
}


@pytest.mark.parametrize("case", CURVES)
def test_the_curve_is_that_of_the_method_with_its_options(case: str) -> None:
    options, curve = CURVES[case]
    found = fitted(table_of(ROWS), **options)
    assert found.pooling == "partial"
    rates = np.array(curve)
    at = np.array(AT)
    if case == "quantiles":
        at[4] = 0.349  # the border is a matter of rounding
        rates[4] = 8.5 / 25
    for key in (*ROWS, "new", None):
        slope, intercept = parameters(found, key if key in ROWS else None)
        odds = slope * np.log(rates / (1 - rates)) + intercept
        np.testing.assert_allclose(mapped(found, key, at), 1 / (1 + np.exp(-odds)), rtol=1e-12)
        assert slope >= 0


def test_no_two_options_give_the_same_map() -> None:
    table = table_of(ROWS)
    made = [mapped(fitted(table, **options), "b", AT) for name, (options, _) in CURVES.items() if name != "quantiles"]
    for i, one in enumerate(made):
        for other in made[:i]:
            assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize("case", ["isotonic", "steps", "centred"])
def test_epsilon_clips_the_result(case: str) -> None:
    table, options = table_of(ROWS), CURVES[case][0]
    free, clipped = fitted(table, **options), fitted(table, **options, epsilon=0.35)
    ends = []
    for key in (*ROWS, "new"):
        made = mapped(free, key, AT)
        ends += [made.min() < 0.35, made.max() > 0.65]
        np.testing.assert_array_equal(mapped(clipped, key, AT), made.clip(0.35, 0.65))
    assert sum(ends) > len(ROWS)
    assert ends[-2:] == [True, True]  # the pooled map is clipped at both


# ---------------------------------------------------------------- the pooled map
@pytest.mark.parametrize("keys", ["abcdef", [None, *"bcdef"]])
def test_the_pooled_map_is_the_complete_one_where_it_can_be(keys: Any) -> None:
    # two rates are reached by two parameters; rows without a segment count, too
    table = table_of(dict(zip(keys, ROWS.values(), strict=True)))
    for options in ({"bins": 2}, {"bins": [0, 0.3, 1], "closed": "right"}, {"strategy": "quantile", "bins": 2}):
        part, whole = (fitted(table, method="histogram", pooling=each, **options) for each in ("partial", "complete"))
        scores = SCORES if "strategy" in options else AT
        np.testing.assert_allclose(mapped(part, "new", scores), mapped(whole, "new", scores), rtol=1e-9)
    part, whole = (
        fitted(table, method="histogram", pooling=each, laplace=1.0, bins=[0, 0.2, 0.5, 1])
        for each in ("partial", "complete")
    )  # with Laplace's rows nothing has to be added
    np.testing.assert_allclose(mapped(part, "new", AT), mapped(whole, "new", AT), rtol=1e-9)


def test_rows_that_laplace_adds_keep_segments_together() -> None:
    # of one class in all rows, each bin has a row of the other: with s = 1 a rate of 1/14, or 1/26
    table = table_of(ROWS).with_columns(y=pl.lit(value=False))
    found = fitted(table, method="histogram", bins=[0, 0.5, 1], laplace=1.0)
    for key in (*ROWS, "new"):
        np.testing.assert_allclose(mapped(found, key, (0.8,)), 1 / 14, atol=1e-3)


@pytest.mark.parametrize("label", [True, False])
def test_one_class_or_classes_apart_leave_the_complete_map(label: bool) -> None:  # noqa: FBT001
    one = table_of(ROWS).with_columns(y=pl.lit(label))
    apart = table_of(ROWS).with_columns(y=pl.col("p") > 0.35)
    for method in ("isotonic", "histogram"):
        found = fitted(one, method=method)
        np.testing.assert_array_equal(mapped(found, "a", SCORES), [float(label)] * 4)
        assert set(found.table["note"].drop_nulls().str.contains("only one class")) == {True}
        found = fitted(apart, method=method)
        np.testing.assert_array_equal(mapped(found, "a", SCORES), [0, 0, 1, 1])


# ---------------------------------------------------------------- segments
def test_a_segment_without_neighbours_of_weight_has_its_own_rates() -> None:
    # 10,000 rows a score against 10 of others: the block of .7 and .8, 71.75 %, is its own up to 10 rows of 20,010
    rates = (0.1, 0.3, 0.72, 0.715, 0.9)
    rows = {"big": tuple((10_000, round(10_000 * rate)) for rate in rates)}
    rows |= dict.fromkeys("abcde", ((2, 0), (2, 1), (2, 2), (2, 1), (2, 2)))
    table = table_of(rows, (0.2, 0.4, 0.7, 0.8, 0.9))
    for options in ({}, {"interpolation": "step"}):
        made = mapped(fitted(table, method="isotonic", **options), "big", (0.2, 0.4, 0.7, 0.8, 0.9))
        np.testing.assert_allclose(made, [0.1, 0.3, 0.7175, 0.7175, 0.9], atol=10 / 10_010)
    made = mapped(fitted(table, method="histogram", bins=10), "big", (0.2, 0.4, 0.7, 0.8, 0.9))
    np.testing.assert_allclose(made, [0.1, 0.3, 0.7175, 0.7175, 0.9], atol=10 / 10_010)


# rows, and repeated offences, by decile score in ProPublica's table of COMPAS scores
COMPAS: dict[str, tuple[tuple[int, int], ...]] = {
    "African-American": (
        (365, 85), (346, 105), (298, 125), (337, 158), (323, 158), (318, 187), (343, 209), (301, 215), (317, 229),
        (227, 190),
    ),
    "Asian": ((15, 1), (4, 0), (5, 2), (0, 0), (1, 1), (2, 1), (1, 1), (2, 1), (0, 0), (1, 1)),
    "Caucasian": (
        (605, 128), (321, 100), (238, 82), (243, 98), (200, 91), (160, 93), (113, 68), (96, 72), (77, 55), (50, 35),
    ),
    "Hispanic": ((159, 38), (89, 34), (73, 23), (47, 15), (39, 20), (27, 18), (28, 14), (14, 7), (17, 9), (16, 11)),
    "Native American": ((0, 0), (2, 0), (1, 0), (0, 0), (0, 0), (2, 1), (2, 1), (0, 0), (2, 1), (2, 2)),
    "Other": ((142, 25), (60, 25), (32, 12), (39, 20), (19, 10), (20, 8), (9, 5), (7, 7), (7, 6), (8, 6)),
}  # fmt: skip
DECILES = tuple(i / 10 for i in range(1, 11))


@pytest.mark.parametrize("options", [{"method": "isotonic"}, {"method": "histogram", "bins": 10, "closed": "right"}])
def test_compas_scores_come_near_the_rates(options: dict[str, Any]) -> None:
    # All rates rise but those of the eighth and ninth score, 71.9 % and 71.4 %, which are one block, and the smallest
    # block has 304 rows: halves move no rate by more than 1/2 in 305, and the block its two by 0.0024.
    table = table_of(COMPAS, DECILES)
    found, counts = fitted(table, **options), np.array(list(COMPAS.values())).sum(axis=0)
    rate = counts[:, 1] / counts[:, 0]
    np.testing.assert_allclose(mapped(found, "new", DECILES), rate, rtol=0, atol=0.0024 + 0.5 / 305)
    # In a large segment two parameters leave what chance leaves: the squares of ten gaps over their standard errors are
    # chi-squared with eight degrees of freedom, if its log-odds are a line in those of all rows.
    for key in ("African-American", "Caucasian"):
        rows, positive = np.array(COMPAS[key], dtype=float).T
        made = mapped(found, key, DECILES)
        scaled = (positive - rows * made) / np.sqrt(rows * made * (1 - made))
        assert (scaled**2).sum() < chi2.ppf(0.95, 8)
        assert abs((positive - rows * made)[7:9].sum() / rows[7:9].sum()) < 2 * math.sqrt(0.72 * 0.28 / rows[7:9].sum())


# ---------------------------------------------------------------- laws
@settings(max_examples=30, deadline=None)
@given(
    cells=st.lists(
        st.tuples(st.sampled_from("abcdefg"), st.sampled_from([0.0, 1e-17, 0.2, 0.3, 0.9, 1.0]), st.booleans()),
        min_size=8,
        max_size=80,
    ),
    case=st.sampled_from([name for name in CURVES if name != "edges"]),
)
def test_every_segment_has_a_finite_map_that_never_falls(cells: Any, case: str) -> None:
    more = [(key, 0.5, key < "c") for key in "abcdefg"]  # so that there are seven segments and two classes
    found = fitted(pl.DataFrame(cells + more, schema=["g", "p", "y"], orient="row"), **CURVES[case][0])
    grid = np.unique(np.concatenate([np.linspace(0, 1, 101), [0.3, 1e-17, 2e-17, 1 - 1e-16]]))
    complete = found.table.filter(pl.col("g").is_null())["parameter"].is_in(["slope"]).any()
    for key in (*"abcdefg", "new", None):
        made = mapped(found, key, grid)
        assert ((made >= 0) & (made <= 1)).all()
        assert not complete or (np.diff(made) >= 0).all()  # the complete histogram may fall


@pytest.mark.parametrize("case", [case for case in CURVES if case != "quantiles"])
def test_logits_have_a_map_of_their_own_or_that_of_their_probabilities(case: str) -> None:
    # isotonic is the same on any scale that is a straight line; a histogram has bins of probabilities
    table = table_of(ROWS).with_columns(z=pl.col("p").log() - (1 - pl.col("p")).log())
    inner = np.array([0.05, 0.2, 0.36, 0.55, 0.9])  # on a border it is a matter of rounding
    z = np.log(inner / (1 - inner))
    of_logit = calframe.fit(table, label="y", score="z", by="g", link="logit", **CURVES[case][0])
    rows = pl.DataFrame({"g": ["b"] * 5, "z": z})
    if CURVES[case][0]["method"] == "isotonic":
        table, inner = table.with_columns(p=(pl.col("z") + 16) / 32), (z + 16) / 32
    expected = mapped(fitted(table, **CURVES[case][0]), "b", inner)
    np.testing.assert_allclose(of_logit.apply(rows)["p_calibrated"].to_numpy(), expected, rtol=1e-7)


def test_a_class_against_the_rest_has_the_same_curve() -> None:
    table = table_of(ROWS).with_columns(
        first=pl.col("p"), second=(1 - pl.col("p")) / 2, third=(1 - pl.col("p")) / 2,
        y=pl.when("y").then(pl.lit("1")).otherwise(pl.Series(["2", "3"] * 200).head(len(table_of(ROWS)))),
    )  # fmt: skip
    score = {"1": "first", "2": "second", "3": "third"}
    rest = calframe.fit(table, label="y", score=score, by="g", method="ovr_isotonic", centred=True)
    one = fitted(table_of(ROWS), method="isotonic", centred=True)
    rates = rest.apply(table.select("g", "p", *score.values()))
    own = rest.table.filter(pl.col("class") == "1", pl.col("g") == "d", pl.col("parameter") == "slope")["value"]
    assert own.item() == pytest.approx(parameters(one, "d")[0], rel=1e-9)
    total = rates.select(pl.sum_horizontal(pl.col("^p_calibrated_.*$"))).to_series().to_numpy()
    np.testing.assert_allclose(total, 1, rtol=1e-12)


def test_sql_gives_the_same_numbers_at_every_border() -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = pl.DataFrame({"g": ["b", "d", "new", None] * len(AT), "p": np.repeat(AT, 4)}).with_row_index("row")
    for options, _ in CURVES.values():
        for more in [{}, {"epsilon": 0.35}] if options["method"] == "isotonic" else [{}]:
            found = fitted(table_of(ROWS), **options, **more)
            with duckdb.connect() as connection:
                connection.register("t", rows.to_arrow())
                made = connection.sql(found.to_sql("duckdb", table="t")).pl().sort("row")["p_calibrated"].to_numpy()
            np.testing.assert_allclose(made, found.apply(rows)["p_calibrated"].to_numpy(), rtol=0, atol=1e-12)
