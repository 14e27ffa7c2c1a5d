"""Laws of maps: none but the histogram reverses an order, rows of classes sum to 1, a second fit changes nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import calframe
from tests._fitted_maps import BINARY, CLASSES, SEVERAL, binary_map, class_map, collected, training
from tests._map_examples import map_of, through
from tests._tables import Maker, approx

MONOTONE = [case for case in BINARY if not case.startswith("histogram")]
REFIT = {
    "identity": {"method": "identity"},
    "isotonic": {"method": "isotonic"},
    "isotonic steps": {"method": "isotonic", "interpolation": "step"},
    "platt": {"method": "platt"},
    "temperature": {"method": "temperature"},
}
probabilities = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 5e-324, 1e-17, 1e-12, 1 - 2**-53, 0.5]))


def calibrated(found: calframe.CalibrationMap, **columns: Any) -> pl.DataFrame:
    table = pl.DataFrame(columns)
    return calframe.apply(table, found).drop(*columns)


@pytest.mark.parametrize("case", MONOTONE)
@given(scores=st.lists(probabilities, min_size=2, max_size=60), group=st.sampled_from(["ams", "fra", "x", None]))
@settings(max_examples=30, deadline=None)
def test_no_map_reverses_an_order(case: str, scores: list[float], group: str | None) -> None:
    near = [math.nextafter(score, 1.0) for score in scores]
    p = sorted({*scores, *near})
    for by in ((), ("g",)):
        columns = calibrated(binary_map(case, by), p=p, g=pl.Series([group] * len(p), dtype=pl.String))
        for values in columns:
            assert (np.diff(values.to_numpy()) >= 0.0).all()


@pytest.mark.parametrize("case", MONOTONE)
@given(scores=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60))
@settings(max_examples=30, deadline=None)
def test_no_map_of_logits_reverses_an_order(case: str, scores: list[float]) -> None:
    z = [-math.inf, *sorted(scores), math.inf]
    for values in calibrated(binary_map(case, (), "logit"), z=z):
        assert (np.diff(values.to_numpy()) >= 0.0).all()


@pytest.mark.parametrize("case", BINARY)
@given(scores=st.lists(probabilities, min_size=1, max_size=40))
@settings(max_examples=20, deadline=None)
def test_every_map_gives_probabilities(case: str, scores: list[float]) -> None:
    for values in calibrated(binary_map(case, ("g",)), p=scores, g=["ber"] * len(scores)):
        assert values.null_count() == 0
        assert values.is_between(0.0, 1.0).all()


@pytest.mark.parametrize("case", SEVERAL)
@given(parts=st.lists(st.tuples(*[st.floats(0, 1)] * 3).filter(lambda row: sum(row) > 1e-3), min_size=1, max_size=40))
@settings(max_examples=20, deadline=None)
def test_rows_of_classes_sum_to_1(case: str, parts: list[tuple[float, ...]]) -> None:
    shares = np.array(parts) / np.sum(parts, axis=1, keepdims=True)
    scores = {f"p_{name}": shares[:, i] for i, name in enumerate(CLASSES)}
    out = calibrated(class_map(case, ("g",)), g=["cph"] * len(shares), **scores)
    sums = out.select(pl.sum_horizontal(*(f"p_calibrated_{name}" for name in CLASSES))).to_series().to_numpy()
    np.testing.assert_allclose(sums, 1.0, rtol=0, atol=1e-12)
    assert out.select(pl.min_horizontal(pl.all()).min()).item() >= 0.0


@pytest.mark.parametrize("case", SEVERAL)
@given(logits=st.lists(st.tuples(*[st.floats(-1e4, 1e4)] * 3), min_size=1, max_size=40))
@settings(max_examples=20, deadline=None)
def test_rows_of_logits_sum_to_1(case: str, logits: list[tuple[float, ...]]) -> None:
    scores = {f"z_{name}": [row[i] for row in logits] for i, name in enumerate(CLASSES)}
    out = calibrated(class_map(case, (), "logit"), **scores)
    sums = out.select(pl.sum_horizontal(pl.all())).to_series().to_numpy()
    np.testing.assert_allclose(sums, 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", REFIT)
@given(seed=st.integers(0, 2**32 - 1), slope=st.floats(0.3, 3.0), rows=st.integers(40, 300))
@settings(max_examples=25, deadline=None)
def test_a_second_fit_changes_nothing(case: str, seed: int, slope: float, rows: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, rows).round(2)
    y = rng.uniform(size=rows) < 1 / (1 + ((1 - p) / p) ** slope)
    table = pl.DataFrame({"p": p, "y": y})
    first = calframe.fit(table, label="y", score="p", **REFIT[case])
    assume(case != "temperature" or not first.notes)  # held at the largest T there is no optimum to come back to
    once = calframe.apply(table, first, name="q")
    second = calframe.fit(once, label="y", score="q", **REFIT[case])
    twice = calframe.apply(once, second, name="r")
    np.testing.assert_allclose(twice["r"].to_numpy(), once["q"].to_numpy(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("case", REFIT)
def test_a_second_fit_of_segments_changes_nothing(case: str) -> None:
    table = training(several=False)
    first = calframe.fit(table, label="y", score="p", by="g", pooling="none", **REFIT[case])
    once = calframe.apply(table, first, name="q")
    second = calframe.fit(once, label="y", score="q", by="g", pooling="none", **REFIT[case])
    twice = calframe.apply(once, second, name="r")
    np.testing.assert_allclose(twice["r"].to_numpy(), once["q"].to_numpy(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["temperature", "vector", "matrix"])
def test_a_second_fit_of_classes_never_does_worse(method: str) -> None:
    # it has the identity among its maps; for the temperature, which cancels the sum of odds, that is the best one
    table = training(several=True)
    first = calframe.fit(table, label="y", score={name: f"p_{name}" for name in CLASSES}, method=method)
    once = calframe.apply(table, first, name="q")
    second = calframe.fit(once, label="y", score={name: f"q_{name}" for name in CLASSES}, method=method)
    twice = calframe.apply(once, second, name="r")
    assert log_loss(twice, "r") <= log_loss(twice, "q") + 1e-12
    if method == "temperature":
        for name in CLASSES:
            np.testing.assert_allclose(twice[f"r_{name}"].to_numpy(), once[f"q_{name}"].to_numpy(), rtol=0, atol=1e-9)


def log_loss(table: pl.DataFrame, score: str) -> float:
    rows = table.select("y", *(f"{score}_{name}" for name in CLASSES)).iter_rows(named=True)
    return -math.fsum(math.log(row[f"{score}_{row['y']}"]) for row in rows) / table.height


@given(
    points=st.lists(st.tuples(probabilities, probabilities), min_size=1, max_size=12),
    scores=st.lists(probabilities, min_size=1, max_size=30),
)
@settings(max_examples=100, deadline=None)
def test_a_curve_through_rising_points_rises_and_stays_between_them(
    points: list[tuple[float, float]], scores: list[float]
) -> None:
    x, y = (sorted(part) for part in zip(*points, strict=True))
    found = map_of(through(*zip(x, y, strict=True)), method="isotonic")
    (values,) = calibrated(found, p=sorted({*scores, *x}))
    assert (np.diff(values.to_numpy()) >= 0.0).all()
    assert values.is_between(y[0], y[-1]).all()


@given(st.lists(st.tuples(probabilities, probabilities), min_size=1, max_size=12, unique_by=lambda point: point[0]))
@settings(max_examples=100, deadline=None)
def test_a_curve_goes_through_its_points(points: list[tuple[float, float]]) -> None:
    points = sorted(points)
    found = map_of(through(*points), method="isotonic")
    (values,) = calibrated(found, p=[x for x, _ in points])
    assert values.to_list() == [y for _, y in points]


@given(st.permutations(range(12)))
@settings(max_examples=20, deadline=None)
def test_rows_are_mapped_one_by_one(order: list[int]) -> None:
    p = [i / 11 for i in range(12)]
    g = ["ams", "ber", None, "x"] * 3
    for case in BINARY:
        found = binary_map(case, ("g",))
        whole = calibrated(found, p=p, g=g)
        mixed = calibrated(found, p=[p[i] for i in order], g=[g[i] for i in order])
        assert mixed.equals(whole[order])


@pytest.mark.parametrize("library", ["polars", "duckdb"])
@pytest.mark.parametrize("method", ["isotonic", "venn_abers"])
def test_steps_tell_logits_apart_however_large(method: str, library: str) -> None:
    # by hand: the third and the fourth are one block; what is added to all logits changes nothing
    make = Maker(library)
    table = {"s": [38.0, 39, 40, 41, 42, 43], "y": [0, 0, 1, 0, 1, 1]}
    found = calframe.fit(make(table), label="y", score="s", link="logit", method=method)
    made = collected(calframe.apply(make(table), found))["p_calibrated"]
    if method == "isotonic":
        assert made == approx([0, 0, 0.5, 0.5, 1, 1])
    moved = table | {"s": [score - 40.5 for score in table["s"]]}
    again = calframe.fit(make(moved), label="y", score="s", link="logit", method=method)
    assert made == approx(collected(calframe.apply(make(moved), again))["p_calibrated"])


def test_points_are_joined_by_straight_lines_in_logits() -> None:
    # scikit-learn's IsotonicRegression on the logits gives 0.5 half-way from 0 to 3
    table = pl.DataFrame({"s": [-2.0, 0.0, 3.0], "y": [0, 0, 1]})
    found = calframe.fit(table, label="y", score="s", link="logit", method="isotonic")
    assert calframe.apply(pl.DataFrame({"s": [1.5, math.inf]}), found)["p_calibrated"].to_list() == approx([0.5, 1.0])
