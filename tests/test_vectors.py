"""Measures of probability vectors against exact arithmetic, the survey's worked examples and other packages."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from calframe._kernels import _vector_bins as binned
from calframe._kernels import _vector_groups as grouped
from calframe._kernels import _vectors as plain
from calframe._kernels._vectors import Vectors
from tests import _vector_definitions as defined
from tests._definitions import bin_of, edges_of
from tests._vector_rows import Row, drawn_rows, edge_finder, golden_binary, vectors_of, vectors_of_rows

FIFTHS = edge_finder(edges_of(5), closed="right")  # the survey's bins


def confidence(vectors: Vectors, find: binned.Find, count: int) -> binned.NotionBins:
    table = binned.confidence_table(vectors, find, count)
    return binned.NotionBins.of_tables([table], vectors.total(vectors.weight))


def classwise(vectors: Vectors, find: binned.Find, count: int) -> binned.NotionBins:
    tables = binned.class_tables(vectors, find, count)
    return binned.NotionBins.of_tables(tables, vectors.total(vectors.weight) * vectors.classes)


def toplabel(vectors: Vectors, find: binned.Find, count: int) -> binned.NotionBins:
    tables = binned.toplabel_tables(vectors, find, count)
    return binned.NotionBins.of_tables(tables, vectors.total(vectors.weight))


# every measure, with left-closed bins at tenths: all tenths are edges
TENTHS = edge_finder(edges_of(10), closed="left")
MEASURES: dict[str, Callable[[Vectors], Any]] = {
    "accuracy": plain.accuracy,
    "brier": plain.brier,
    "log_loss": plain.log_loss,
    "confidence_ece": lambda v: confidence(v, TENTHS, 10).error(),
    "confidence_mce": lambda v: confidence(v, TENTHS, 10).largest(),
    "classwise_ece": lambda v: classwise(v, TENTHS, 10).error(),
    "classwise_mce": lambda v: classwise(v, TENTHS, 10).largest(),
    "toplabel_ece": lambda v: toplabel(v, TENTHS, 10).error(),
    "full_ece": lambda v: grouped.full_ece(v, TENTHS),
    "calibration": grouped.calibration_loss,
    "refinement": grouped.refinement_loss,
    "calibration_log": grouped.calibration_loss_log,
    "refinement_log": grouped.refinement_loss_log,
}


def every(vectors: Vectors) -> dict[str, Any]:
    return {name: measure(vectors) for name, measure in MEASURES.items()}


def same(found: Any, expected: Any, *, rtol: float = 1e-12, atol: float = 1e-14) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected, dtype=float), rtol=rtol, atol=atol)


def same_measures(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-12, atol=1e-14, err_msg=name)


def by_definition(rows: Sequence[defined.Row]) -> dict[str, float]:
    def tenth(score: float) -> int:
        return bin_of(score, edges_of(10), closed="left")

    confidence, classes = defined.confidence_rows(rows), len(rows[0][1])
    values: dict[str, Fraction | float] = {
        "accuracy": defined.accuracy(rows),
        "brier": defined.brier(rows),
        "log_loss": defined.log_loss(rows),
        "confidence_ece": defined.binary_ece(confidence, tenth),
        "confidence_mce": defined.binary_mce(confidence, tenth),
        "classwise_ece": sum(defined.classwise(rows, tenth, defined.binary_ece)) / Fraction(classes),
        "classwise_mce": max(defined.classwise(rows, tenth, defined.binary_mce)),
        "toplabel_ece": defined.toplabel_ece(rows, tenth),
        "full_ece": defined.full_ece(rows, tenth),
        **defined.by_equal_vector(rows),
    }
    return {name: float(value) for name, value in values.items()}


# ---------------------------------------------------------------- the survey's examples
@pytest.fixture
def toy30() -> Vectors:
    table = pl.read_csv(Path(__file__).parent / "data" / "seed_toy30.csv")
    return vectors_of(table.select("p1", "p2", "p3").to_numpy(), table["y"].to_numpy() - 1)


def test_the_survey_thirty_rows(toy30: Vectors) -> None:
    # Silva Filho et al. 2023, tab. 3; the values are exact fractions of its table, of which it prints roundings
    tables = binned.class_tables(toy30, FIFTHS, 5)
    classes = [binned.NotionBins.of_tables([table], toy30.total(toy30.weight)).error()[0] for table in tables]
    same(classes, [Fraction(169, 900), Fraction(131, 900), Fraction(182, 900)])
    same(classwise(toy30, FIFTHS, 5).error(), [Fraction(482, 2700)])
    same(classwise(toy30, FIFTHS, 5).largest(), [Fraction(17, 35)])
    same(confidence(toy30, FIFTHS, 5).error(), [Fraction(19, 90)])
    same(confidence(toy30, FIFTHS, 5).largest(), [Fraction(3, 10)])
    # 0.709777... by hand, and 13 of 30 right (rows 7, 8, 14, 15 and 27 are ties, the first class wins)
    same(plain.brier(toy30), [Fraction(1597, 2250)])
    same(plain.accuracy(toy30), [Fraction(13, 30)])


def test_the_survey_thirty_rows_hold_two_impossible_ones(toy30: Vectors) -> None:
    # rows 12 and 21 give what happened no chance; scikit-learn clips at the epsilon of float64
    assert np.flatnonzero(np.isinf(plain.surprise(toy30))).tolist() == [11, 20]
    assert plain.log_loss(toy30).tolist() == [math.inf]
    same(plain.log_loss(toy30, clip=2.0**-52), [3.347761563688164])


def test_the_survey_ten_rows() -> None:
    table = pl.read_csv(Path(__file__).parent / "data" / "seed_toy10_reconstructed.csv")
    scores, posterior = (table.select(f"{of}1", f"{of}2", f"{of}3").to_numpy() for of in "pq")
    vectors = vectors_of(scores, table["y"].to_numpy() - 1)
    # By hand. Four rows (.3, .5, .2) with frequencies (3/4, 1/4, 0), six rows with (.3, .6, .1) with (1/2, 1/3, 1/6):
    # calibration .4 (.45² + .25² + .2²) + .6 (.2² + (4/15)² + (1/15)²), refinement .4 (3/8) + .6 (11/18)
    first = Fraction(45, 100) ** 2 + Fraction(1, 16) + Fraction(1, 25)
    second = Fraction(1, 25) + Fraction(4, 15) ** 2 + Fraction(1, 15) ** 2
    same(grouped.calibration_loss(vectors), [Fraction(2, 5) * first + Fraction(3, 5) * second])
    same(grouped.refinement_loss(vectors), [Fraction(2, 5) * Fraction(3, 8) + Fraction(3, 5) * Fraction(11, 18)])
    # the optimal q divides the six into four of (1/2, 1/2, 0) and two of (1/2, 0, 1/2): .4 (3/8) + .6 (1/2)
    same(plain.irreducible_loss(vectors, posterior), [Fraction(9, 20)])
    # and its distance to the scores is .258
    same(plain.epistemic_loss(vectors, posterior), [Fraction(258, 1000)])
    # the logarithmic parts, as printed to two and worked out to six digits
    printed = [0.292345, 0.831777, 0.483300, 0.640822]
    found = [
        grouped.calibration_loss_log(vectors),
        grouped.refinement_loss_log(vectors),
        plain.log_loss(vectors) - plain.irreducible_loss_log(vectors, posterior),
        plain.irreducible_loss_log(vectors, posterior),
    ]
    same(np.concatenate(found), printed, rtol=0, atol=5e-7)
    same(found[3], [0.4 * (2 * math.log(2) - 0.75 * math.log(3)) + 0.6 * math.log(2)])


def test_what_the_posterior_rules_out_costs_it_infinitely_much() -> None:
    vectors = vectors_of([[1.0, 0.0], [0.5, 0.5]], [1, 0], segment=[0, 1])
    posterior = np.array([[1.0, 0.0], [1.0, 0.0]])
    same(plain.irreducible_loss_log(vectors, posterior), [math.inf, 0.0])


# ---------------------------------------------------------------- other packages, and exact arithmetic on real tables
REFERENCES: dict[str, Callable[[Vectors], Any]] = {
    "accuracy": plain.accuracy,
    "brier_sum": plain.brier,
    "log_loss_unclipped": plain.log_loss,
    "log_loss_clip_eps": lambda v: plain.log_loss(v, clip=2.0**-52),
}
BINNED: dict[str, Callable[[Vectors, binned.Find, int], Any]] = {
    "conf_ece": lambda *table: confidence(*table).error(),
    "conf_mce": lambda *table: confidence(*table).largest(),
    "classwise_ece": lambda *table: classwise(*table).error(),
    "classwise_mce": lambda *table: classwise(*table).largest(),
    "toplabel_ece": lambda *table: toplabel(*table).error(),
}


def reference_value(metric: str, source: str, vectors: Vectors) -> Any:
    """Return our value for an entry; None where it is of another measure."""
    if metric in REFERENCES:
        return REFERENCES[metric](vectors)
    found = re.fullmatch(r"(\w+_[em]ce)(\d+)(_left)?", metric)
    if found is None:
        return None
    count = int(found[2])
    if found[1] == "simplex_ece":  # PyCalib: left-closed, and a bin for scores of 1
        return grouped.full_ece(vectors, lambda score: np.digitize(score, np.linspace(0, 1, count + 1)) - 1)
    if found[1] not in BINNED or not source.startswith("definition"):
        return None
    edges = np.linspace(0, 1, count + 1) if found[3] else edges_of(count)
    return BINNED[found[1]](vectors, edge_finder(edges, closed="left" if found[3] else "right"), count)


def reference_table(folder: Path, name: str, prefix: str) -> Vectors:
    if name.startswith("tiny:"):
        table = json.loads((folder / "reference" / "tiny.json").read_text())[name[5:]]
        return vectors_of(table["P"], table["y"])
    path = folder / "data" / name
    frame = pl.read_csv(f"{path}.csv") if path.with_suffix(".csv").exists() else pl.read_parquet(f"{path}.parquet")
    columns = [column for column in frame.columns if column.startswith(prefix)]
    position = {column.removeprefix(prefix): number for number, column in enumerate(columns)}
    return vectors_of(frame.select(columns).to_numpy(), [position[str(label)] for label in frame["y"]])


def test_reference_values(reference_folder: Path) -> None:
    lines = (reference_folder / "reference" / "reference.jsonl").read_text().splitlines()
    entries = [entry for entry in map(json.loads, lines) if entry["id"].startswith("multi|")]
    tables: dict[tuple[str, str], Vectors] = {}
    seen: Counter[str] = Counter()
    for entry in entries:
        key = (entry["table"], entry["score"].rstrip("*"))
        if key not in tables:
            tables[key] = reference_table(reference_folder, *key)
        found = reference_value(entry["metric"], entry["source"], tables[key])
        if found is not None:
            seen[re.sub(r"\d+(_left)?$", "", entry["metric"])] += 1
            expected = float(entry["value"])
            np.testing.assert_allclose(found, expected, rtol=0, atol=entry["tolerance"], err_msg=entry["id"])
    assert seen["simplex_ece"] == 15
    assert seen["classwise_mce"] == seen["toplabel_ece"] == 18
    assert seen["conf_ece"] == seen["classwise_ece"] == 36
    assert min(seen[name] for name in REFERENCES) >= 6


def test_pycalib_on_two_classes() -> None:
    score, label = golden_binary()
    vectors = vectors_of(np.column_stack([1 - score, score]), label)
    # PyCalib's edges: stretched for classwise errors, as they are for the full one
    stretched = np.linspace(0, 1 + 1e-8, 16)
    same(classwise(vectors, lambda s: np.digitize(s, stretched) - 1, 15).error(), [0.112], atol=1e-10)
    same(grouped.full_ece(vectors, lambda s: np.digitize(s, np.linspace(0, 1, 16)) - 1), [0.224], atol=1e-10)


# ---------------------------------------------------------------- properties
@settings(max_examples=80, deadline=None)
@given(rows=drawn_rows())
def test_every_measure_by_its_definition(rows: list[Row]) -> None:
    found = every(vectors_of_rows(rows))
    for place, segment in enumerate(sorted({row[0] for row in rows})):
        expected = by_definition([(y, p, w) for its, p, y, w in rows if its == segment])
        same_measures({name: value[place] for name, value in found.items()}, expected)


@settings(max_examples=60, deadline=None)
@given(rows=drawn_rows())
def test_the_parts_add_up(rows: list[Row]) -> None:
    vectors = vectors_of_rows(rows)
    groups = grouped.equal_vectors(vectors)
    parts = grouped.calibration_loss(vectors, groups) + grouped.refinement_loss(vectors, groups)
    same(parts, plain.brier(vectors))
    logs = grouped.calibration_loss_log(vectors, groups) + grouped.refinement_loss_log(vectors, groups)
    same(logs, plain.log_loss(vectors))


@settings(max_examples=60, deadline=None)
@given(rows=drawn_rows())
def test_weight_two_is_the_row_twice_in_any_order(rows: list[Row]) -> None:
    copies = [(segment, p, y, 1.0) for segment, p, y, w in reversed(rows) for _ in range(int(w))]
    same_measures(every(vectors_of_rows(rows)), every(vectors_of_rows(copies)))


@pytest.mark.parametrize("scale", [1e-100, 0.3, 1e100])
def test_the_scale_of_weights_means_nothing(scale: float) -> None:
    rng = np.random.default_rng(5)
    scores, label = rng.dirichlet(np.ones(4), 50).round(2), rng.integers(0, 4, 50)
    weight, segment = rng.random(50) + 0.1, rng.integers(0, 4, 50)
    one, other = (vectors_of(scores, label, weight=weight * by, segment=segment) for by in (1.0, scale))
    same_measures(every(one), every(other))


def test_chunks_give_what_the_whole_gives() -> None:
    rng = np.random.default_rng(2)
    scores = rng.dirichlet(np.ones(5) / 2, 3000).round(1)
    segment = np.minimum(rng.integers(0, 40, 3000), rng.integers(0, 40, 3000))
    vectors = vectors_of(scores, rng.integers(0, 5, 3000), weight=rng.random(3000), segment=segment)
    chunks = list(vectors.chunks(200))
    assert len(chunks) > 10
    assert [first for first, _ in chunks] == np.cumsum([0, *(len(chunk) for _, chunk in chunks)])[:-1].tolist()
    assert all(np.shares_memory(chunk.scores, vectors.scores) for _, chunk in chunks)
    parts = [every(chunk) for _, chunk in chunks]
    same_measures(every(vectors), {name: np.concatenate([part[name] for part in parts]) for name in MEASURES})
    same_measures(every(vectors.part(3, 5)), {name: value[3:5] for name, value in every(vectors).items()})


def test_memory_order_of_the_scores_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    vectors = vectors_of(rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40), segment=rng.integers(0, 3, 40))
    rowwise = replace(vectors, scores=np.ascontiguousarray(vectors.scores))
    assert vectors.scores.flags.f_contiguous
    same_measures(every(rowwise), every(vectors))


# ---------------------------------------------------------------- edges of the domain
def test_one_row_a_segment() -> None:
    found = every(vectors_of([[0.0, 0.0, 1.0], [0.5, 0.25, 0.25]], [0, 0], segment=[0, 1]))
    expected = {
        "accuracy": [0, 1],
        "brier": [2, 0.375],
        "log_loss": [math.inf, math.log(2)],
        "confidence_ece": [1, 0.5],
        "classwise_ece": [2 / 3, 1 / 3],
        "classwise_mce": [1, 0.5],
        "full_ece": [2, 1],
        "calibration": [2, 0.375],
        "refinement": [0, 0],
        "calibration_log": [math.inf, math.log(2)],
        "refinement_log": [0, 0],
    }
    for name, values in expected.items():
        same(found[name], values)


def test_scores_a_hair_apart_are_different_vectors() -> None:
    # 1e-17 and 2e-17 differ, 0.0 and -0.0 do not
    scores = [[0.5, 0.5], [1.0, 1e-17], [1.0, 2e-17], [1.0, 0.0], [1.0, -0.0]]
    vectors = vectors_of(scores, [0, 0, 1, 0, 1], segment=[0, 1, 1, 1, 1])
    groups = grouped.equal_vectors(vectors)
    assert groups.weight.tolist() == [1.0, 1.0, 1.0, 2.0]
    assert groups.starts.tolist() == [0, 1]
    same(grouped.refinement_loss(vectors), [0.0, 0.25])
    same(grouped.calibration_loss_log(vectors_of(scores[1:3], [0, 1])), [-math.log(2e-17) / 2])


def test_many_vectors_fall_into_exact_groups() -> None:
    # against NumPy's own unique rows; half the vectors are copies, some differ in the last class only
    rng = np.random.default_rng(7)
    scores = rng.dirichlet(np.ones(6), 300)[rng.integers(0, 300, 2000)]
    scores[::7, 5] = 0.125
    segment = np.sort(rng.integers(0, 5, 2000))
    groups = grouped.equal_vectors(vectors_of(scores, rng.integers(0, 6, 2000), segment=segment))
    rows, counts = np.unique(np.column_stack([segment, scores]), axis=0, return_counts=True)
    assert sorted(groups.weight) == sorted(counts.astype(float))
    assert np.diff(np.append(groups.starts, len(groups.row))).tolist() == np.bincount(rows[:, 0].astype(int)).tolist()


def test_ties_of_the_top_go_to_the_first_class() -> None:
    confidence, predicted, right = plain.top_label(vectors_of([[0.2, 0.4, 0.4], [0.5, 0.0, 0.5]], [1, 2]))
    assert (confidence.tolist(), predicted.tolist(), right.tolist()) == ([0.4, 0.5], [1, 0], [1.0, 0.0])


def test_certain_and_right_costs_nothing() -> None:
    found = every(vectors_of(np.eye(3), [0, 1, 2]))
    assert found.pop("accuracy").tolist() == [1.0]
    assert {name: float(value[0]) for name, value in found.items()} == dict.fromkeys(found, 0.0)


def test_a_clip_moves_scores_at_both_ends() -> None:
    value = plain.log_loss(vectors_of(np.eye(2), [0, 0], segment=[0, 1]), clip=0.25)
    same(value, [-math.log(0.75), math.log(4)])


# ---------------------------------------------------------------- tallies and tables
def cells_of(tally: Any) -> list[tuple[int, float, float, float, float]]:
    columns = (tally.segment, tally.score, tally.weight, tally.positive, tally.squared)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_tallies_by_hand() -> None:
    scores = [[0.5, 0.3, 0.2], [0.5, 0.5, 0.0], [0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]
    vectors = vectors_of(scores, [0, 1, 2, 2], segment=[0, 0, 0, 1], weight=[1, 2, 3, 1])
    # top scores .5 (right), .5 (wrong: the first of two) and .7 (right); then .5 (wrong)
    assert cells_of(plain.confidence_tally(vectors)) == [(0, 0.5, 3, 1, 5), (0, 0.7, 3, 3, 9), (1, 0.5, 1, 0, 1)]
    # class 2 first: segments 0 and 1 are class 2 of segments 0 and 1, segments 2 and 3 class 0
    assert cells_of(plain.class_tally(vectors, [2, 0])) == [
        *[(0, 0.0, 2, 0, 4), (0, 0.2, 1, 0, 1), (0, 0.7, 3, 3, 9), (1, 0.25, 1, 1, 1)],
        *[(2, 0.1, 3, 0, 9), (2, 0.5, 3, 1, 5), (3, 0.5, 1, 0, 1)],
    ]


def test_tallies_of_rows_without_weights_count_rows() -> None:
    tally = plain.class_tally(vectors_of([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]], [0, 1, 0]), [0])
    assert cells_of(tally) == [(0, 0.5, 2, 1, 2), (0, 0.9, 1, 1, 1)]
    assert tally.rows.tolist() == [2, 1]


def test_sums_of_bins_by_hand() -> None:
    vectors = vectors_of([[0.5, 0.5], [0.75, 0.25]], [1, 0], weight=[2, 1], segment=[0, 1])
    table = binned.confidence_table(vectors, edge_finder([0, 0.6, 1], closed="left"), 2)
    assert table.segment.tolist() == [0, 1]  # one bin of each has rows
    assert table.weight.tolist() == [2, 1]
    assert table.score.tolist() == [1, 0.75]
    assert table.label.tolist() == [0, 1]
    assert table.squared.tolist() == [4, 1]


def test_tables_of_each_predicted_class_hold_its_rows() -> None:
    rng = np.random.default_rng(11)
    vectors = vectors_of(rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60), segment=np.arange(60) % 4)
    predicted = np.argmax(vectors.scores, axis=1)
    tables = list(binned.toplabel_tables(vectors, TENTHS, 10))
    for c, table in enumerate(tables):
        assert np.bincount(table.segment, table.weight, minlength=4).tolist() == [
            float(np.sum(predicted[vectors.segment == segment] == c)) for segment in range(4)
        ]
    never = list(binned.toplabel_tables(vectors_of([[0.9, 0.1, 0.0]], [0]), TENTHS, 10))[1:]
    assert [len(table.weight) for table in never] == [0, 0]
