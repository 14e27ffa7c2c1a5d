"""DeLong's test: against its definition, the reference values of pROC, and the clustered form of Obuchowski."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import calframe
from calframe._testing._delong import area_difference
from calframe._testing._paired import Units
from calframe._typing import Floats, Ints


def by_definition(label: Floats, scores: tuple[Floats, Floats]) -> tuple[list[float], float]:
    """Return both areas and the variance of their difference, pair by pair (DeLong et al. 1988, equations 4 to 6)."""
    areas, placed = [], []
    for score in scores:
        pairs = [[(x > y) + 0.5 * (x == y) for y in score[label == 0]] for x in score[label == 1]]
        kernel = np.array(pairs, dtype=float)
        areas.append(float(kernel.mean()))
        placed.append((kernel.mean(axis=1), kernel.mean(axis=0)))
    variance = 0.0
    for first, second in zip(*placed, strict=True):
        covariance = np.cov(first, second, ddof=1)
        variance += (covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1]) / len(first)
    return areas, variance


def one_segment(label: Floats, *, weight: Floats | None = None, cluster: Ints | None = None) -> Units:
    rows = len(label)
    return Units.of_rows(np.zeros(rows, dtype=np.int64), np.ones(rows) if weight is None else weight, cluster=cluster)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6), st.integers(0, 6)), min_size=4, max_size=40).filter(
        lambda rows: 2 <= sum(row[0] for row in rows) <= len(rows) - 2
    )
)
def test_it_is_the_definition_ties_included(rows: list[tuple[int, int, int]]) -> None:
    label, first, second = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    areas, variance = by_definition(label, (first, second))
    found = area_difference(one_segment(label), (first, second), label, level=0.95)
    assert found.first[0] == pytest.approx(areas[0], abs=1e-12)
    assert found.second[0] == pytest.approx(areas[1], abs=1e-12)
    assert found.error[0] ** 2 == pytest.approx(variance, abs=1e-12)


def test_segments_do_not_know_each_other() -> None:
    rng = np.random.default_rng(3)
    segment = np.repeat([0, 1, 2], [30, 80, 50])
    label = (rng.random(160) < 0.4).astype(float)
    scores = rng.integers(0, 20, 160).astype(float), rng.random(160)
    together = area_difference(Units.of_rows(segment, np.ones(160)), scores, label, level=0.9)
    for one in range(3):
        rows = segment == one
        alone = area_difference(one_segment(label[rows]), (scores[0][rows], scores[1][rows]), label[rows], level=0.9)
        for name in ("first", "second", "error", "low", "high", "pvalue"):
            assert getattr(together, name)[one] == pytest.approx(getattr(alone, name)[0], rel=1e-12)


def test_many_rows_take_the_normal_law_and_few_of_a_class_that_of_student() -> None:
    rng = np.random.default_rng(5)
    for positives, law in ((60, stats.norm()), (8, stats.t(7))):
        label = np.repeat([1.0, 0.0], [positives, 70])
        scores = rng.random(len(label)) + 0.3 * label, rng.random(len(label))
        areas, variance = by_definition(label, scores)
        found = area_difference(one_segment(label), scores, label, level=0.9)
        difference, error = areas[1] - areas[0], variance**0.5
        assert found.pvalue[0] == pytest.approx(2.0 * law.sf(abs(difference) / error), rel=1e-9)
        assert found.low[0] == pytest.approx(difference - law.ppf(0.95) * error, rel=1e-9)
        assert found.high[0] == pytest.approx(difference + law.ppf(0.95) * error, rel=1e-9)


def test_weight_two_moves_areas_as_two_rows_would() -> None:
    rng = np.random.default_rng(11)
    label = np.tile([0.0, 1.0], 20)
    scores = rng.random(40), rng.integers(0, 5, 40).astype(float)
    weight = rng.integers(1, 4, 40)
    times = np.repeat(np.arange(40), weight)
    weighted = area_difference(one_segment(label, weight=weight.astype(float)), scores, label, level=0.9)
    repeated = area_difference(one_segment(label[times]), (scores[0][times], scores[1][times]), label[times], level=0.9)
    assert weighted.first == pytest.approx(repeated.first, rel=1e-12)
    assert weighted.second == pytest.approx(repeated.second, rel=1e-12)
    assert weighted.error[0] > repeated.error[0]  # weights are not rows


def test_copies_in_clusters_say_as_much_as_one() -> None:
    rng = np.random.default_rng(7)
    label = (rng.random(60) < 0.5).astype(float)
    scores = rng.random(60), rng.random(60)
    one = area_difference(one_segment(label), scores, label, level=0.9)
    copies = np.repeat(np.arange(60), 20)
    many = area_difference(
        one_segment(label[copies], cluster=copies), (scores[0][copies], scores[1][copies]), label[copies], level=0.9
    )
    for name in ("first", "second", "error", "low", "high", "pvalue", "fewest"):
        assert getattr(many, name) == pytest.approx(getattr(one, name), rel=1e-10)


def test_clusters_with_both_classes_are_those_of_obuchowski() -> None:
    # Obuchowski (1997), section 2: S10, S01 and S11 from sums of placements by cluster, I1 and I0 clusters with a row
    # of the class, I in all; here every cluster has one row of either class, so that I1 = I0 = I
    rng = np.random.default_rng(9)
    clusters = 25
    label, cluster = np.tile([1.0, 0.0], clusters), np.repeat(np.arange(clusters), 2)
    effect = rng.normal(size=clusters)[cluster]
    scores = effect + label + rng.normal(size=50), effect + rng.normal(size=50)
    difference = []
    for score in scores:
        kernel = (score[label == 1][:, None] > score[label == 0]).astype(float)
        area = kernel.mean()
        difference.append((kernel.mean(axis=1) - area, kernel.mean(axis=0) - area))
    positive, negative = difference[1][0] - difference[0][0], difference[1][1] - difference[0][1]
    factor = clusters / (clusters - 1)
    own = factor * ((positive**2).sum() + (negative**2).sum()) / clusters**2
    shared = 2.0 * factor * (positive * negative).sum() / clusters**2
    found = area_difference(one_segment(label, cluster=cluster), scores, label, level=0.9)
    assert found.error[0] ** 2 == pytest.approx(own + shared, rel=1e-10)


def test_one_class_has_no_area() -> None:
    label = np.ones(5)
    found = area_difference(one_segment(label), (np.arange(5.0), np.arange(5.0)), label, level=0.9)
    for name in ("first", "second", "error", "low", "high", "pvalue"):
        assert np.isnan(getattr(found, name)).all()


def entries(folder: Path, metric: str) -> list[dict[str, object]]:
    lines = (folder / "reference" / "reference.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines if '"pair|' in line]
    return [entry for entry in found if entry["metric"] == metric]


def test_reference_values_of_proc(reference_folder: Path) -> None:
    # pROC 1.18.0, roc.test(method = "delong", paired = TRUE): Z of first minus second, p, both areas
    found = entries(reference_folder, "delong_test")
    assert len(found) == 3
    for entry in found:
        first, second = str(entry["score"]).split(" vs ")
        table = pl.read_parquet(reference_folder / "data" / f"{entry['table']}.parquet")
        compared = calframe.compare(table, label="y", score=[first, second], metrics="auc", correction="none").table
        row = compared.row(0, named=True)
        z, pvalue, *areas = entry["value"]  # type: ignore[misc]
        assert [row["first"], row["second"]] == pytest.approx(areas, rel=1e-9)
        assert row["law"] == "delong"
        assert row["pvalue"] == pytest.approx(pvalue, rel=1e-9)
        error = (row["high"] - row["low"]) / (2.0 * stats.norm.ppf(0.975))
        assert row["difference"] / error == pytest.approx(-z, rel=1e-9)
