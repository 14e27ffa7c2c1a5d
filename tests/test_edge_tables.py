"""No measure is silently wrong: on tables at the edge each is exact, or null with a word on why."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe
from calframe._errors import CalframeWarning, EmptyTableError, ScoreError
from calframe._measures import CLASS_METRICS, METRICS, _own
from calframe._registry import Metric
from tests import _rank_definitions as ranked
from tests._class_tables import SCORE, found
from tests._definitions import EXACT, defined, edges_of
from tests._tables import Maker, approx, column, measure, refuses, rows

POLARS = Maker("polars")
TINY = 1e-17
TABLES: dict[str, tuple[list[int], list[float]]] = {
    "one positive row": ([1], [0.7]),
    "one negative row": ([0], [0.7]),
    "one row that is certain": ([1], [1.0]),
    "one row that is certain and wrong": ([1], [0.0]),
    "one score, right on average": ([1, 0, 1, 0], [0.5] * 4),
    "one score": ([1, 0, 0, 0], [0.4] * 4),
    "one class": ([1, 1, 1], [0.2, 0.5, 0.9]),
    "the other class": ([0, 0, 0], [0.2, 0.5, 0.9]),
    "certain and right": ([1, 0, 1, 0], [1.0, 0.0, 1.0, 0.0]),
    "certain and wrong": ([1, 0, 1, 0], [0.0, 1.0, 0.0, 1.0]),
    "all 0": ([1, 0, 1], [0.0] * 3),
    "all 1": ([1, 0, 1], [1.0] * 3),
    "1e-17 apart": ([1, 0, 1, 0, 1], [0.0, TINY, 2 * TINY, 3 * TINY, 4 * TINY]),
    "next to 1": ([1, 0, 1, 0], [1.0, 1 - 2**-53, 1 - 2**-52, 1.0]),
    "neighbours": ([1, 0, 1, 0], [0.5, math.nextafter(0.5, 1), 0.5 + 2**-52, math.nextafter(0.5, 0)]),
    "ranked right": ([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]),
    "ranked wrong": ([1, 1, 0, 0], [0.1, 0.2, 0.8, 0.9]),
    "certain ones among others": ([0, 1, 1, 0, 1, 0], [0.0, 1.0, 0.5, 0.25, 1.0, 0.0]),
    "minus zero": ([0, 1, 0], [-0.0, 0.0, 0.5]),
}


def quiet(table: dict[str, Any], **arguments: Any) -> dict[str, list[Any]]:
    """Return every metric; the one warning, that a log loss is infinite, is ours. NumPy says nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".* infinite: ", CalframeWarning)
        return rows(measure(POLARS, table, metrics="all", **arguments))


def at_the_edge(**arguments: Any) -> dict[str, dict[str, Any]]:
    """Return every metric of each table by its name; the tables are segments of one."""
    parts = [(name, y, p) for name, (label, score) in TABLES.items() for y, p in zip(label, score, strict=True)]
    columns: dict[str, Any] = dict(zip("gyp", map(list, zip(*parts, strict=True)), strict=True))
    columns["w"] = [(0.5, 2.0, 1.0)[i % 3] for i in range(len(parts))]
    values = quiet(columns, by="g", **arguments)
    return {name: dict(zip(values, row, strict=True)) for name, *row in zip(values["g"], *values.values(), strict=True)}


def explained(values: dict[str, Any], known: dict[str, Metric], *, table: str) -> list[str]:
    """Return the metrics that are out of their range, or null while the note does not say why."""
    wrong = []
    for name in values.keys() & known.keys():
        metric, value = known[name], values[name]
        silent = value is None and f"{name}: {metric.undefined}" not in (values["note"] or "")
        if silent or (value is not None and not metric.low - 1e-9 <= value <= metric.high + 1e-9):
            wrong.append(f"{table}: {name} is {value}")
    return wrong


def test_what_has_a_definition_is_exact() -> None:
    found, wrong = at_the_edge(bins=10), {}
    for name, (label, score) in TABLES.items():
        table, pairs = list(zip(label, score, [1.0] * len(label), strict=True)), list(zip(label, score, strict=True))
        expected = {metric: defined(metric, table, edges=edges_of(10)) for metric in EXACT}
        expected |= {metric: define(pairs) for metric, define in ranked.DEFINED.items()}
        for metric, value in expected.items():
            if found[name][metric] != approx(value, rel=1e-11):
                wrong[name, metric] = (found[name][metric], value)
    assert not wrong


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"strategy": "quantile", "bins": 3},
        {"bins": "auto"},
        {"smoother": "loess_direct"},
        {"smoother": "lowess"},
        {"weight": "w"},
        {"clip": 1e-9},
        {"notion": "confidence"},
    ],
    ids=["plain", "quantiles", "automatic", "direct loess", "lowess", "weights", "clipped", "confidence"],
)
def test_what_is_undefined_is_null_and_the_note_says_why(arguments: dict[str, Any]) -> None:
    found = at_the_edge(**arguments)
    assert found.keys() == TABLES.keys()
    assert not [text for name, values in found.items() for text in explained(values, METRICS, table=name)]


def test_the_smallest_numbers_are_scores_too() -> None:
    label, score = [1, 0, 1], [5e-324, 1e-310, 0.5]
    values = {name: value for name, (value,) in quiet({"y": label, "p": score}).items()}
    expected = {metric: define(list(zip(label, score, strict=True))) for metric, define in ranked.DEFINED.items()}
    assert {metric: values[metric] for metric in expected} == {m: approx(v, rel=1e-11) for m, v in expected.items()}
    assert not explained(values, METRICS, table="smallest numbers")


def test_intervals_have_two_ends_in_order_or_the_note_says_why() -> None:
    wrong = []
    for name, values in at_the_edge(confidence_level=0.9).items():
        for metric in METRICS.keys() & values.keys():
            low, high = values[f"{metric}_low"], values[f"{metric}_high"]
            if values[metric] is not None and (low is not None and high is not None and low <= high):
                continue
            if (low, high) != (None, None) or metric not in (values["note"] or ""):
                wrong.append((name, metric, low, high))
    assert not wrong


@pytest.mark.parametrize("weight", [None, "w"])
def test_what_has_no_value_has_no_interval(weight: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_own, "_OWN", {})
    calframe.register_metric(
        "share_of_hits",  # undefined where nothing happened
        terms={"hit": lambda row: row.score * row.label, "happened": lambda row: row.label},
        value=lambda sums: np.where(sums["happened"] > 0, sums["hit"] / sums["happened"], np.nan),
        summary="mean score where it happened",
    )
    undefined: set[str] = set()
    for name, values in at_the_edge(confidence_level=0.95, weight=weight).items():
        unknown = [metric for metric in values if f"{metric}_low" in values and values[metric] is None]
        undefined.update(unknown)
        ends = {metric: (values[f"{metric}_low"], values[f"{metric}_high"]) for metric in unknown}
        assert set(ends.values()) <= {(None, None)}, (name, ends)
    assert undefined >= {"slope", "intercept", "citl", "auc", "ratio", "brier_skill", "skce", "share_of_hits"}


@pytest.mark.parametrize("label", [0, 1])
def test_one_row_is_never_certain(label: int) -> None:
    table = {"y": [label], "p": [0.625], "q": [0.375]}
    values = quiet(table, confidence_level=0.9, posterior="q")
    ends = {name: (values[f"{name}_low"][0], values[f"{name}_high"][0]) for name in METRICS}
    assert not {name: end for name, end in ends.items() if end != (None, None) and not end[0] < end[1]}


def test_a_constant_score_has_one_gap(make: Maker) -> None:
    # |.4 - 1/4|, whatever is smoothed, binned or summed up
    names = ["ece", "mce", "ace", "rmsce", "ece_sweep", "smece", "ecce_r", "ecce_mad", "ici", "e50", "e90", "emax"]
    values = rows(measure(make, {"y": [1, 0, 0, 0], "p": [0.4] * 4}, metrics=[*names, "auc", "slope", "citl"]))
    assert {name: values[name] for name in names} == {name: [approx(0.15, rel=1e-6)] for name in names}
    assert (values["auc"], values["slope"]) == ([0.5], [None])
    assert values["citl"] == [approx(math.log(1 / 3) - math.log(0.4 / 0.6), rel=1e-9)]  # logit 1/4 - logit .4


def test_scores_that_differ_in_the_last_digit_are_ranked(make: Maker) -> None:
    for low, high in ((0.0, 5e-324), (TINY, 2 * TINY), (0.5, math.nextafter(0.5, 1)), (math.nextafter(1, 0), 1.0)):
        assert column(measure(make, {"y": [0, 1], "p": [low, high]}, metrics="auc"), "auc") == [1.0]
        assert column(measure(make, {"y": [1, 0], "p": [low, high]}, metrics="auc"), "auc") == [0.0]


def test_zero_of_either_sign_is_one_score(make: Maker) -> None:
    values = rows(measure(make, {"y": [0, 1], "p": [-0.0, 0.0]}, metrics=["auc", "refinement_loss", "mce"]))
    assert (values["auc"], values["refinement_loss"], values["mce"]) == ([0.5], [0.25], [0.5])


# ---------------------------------------------------------------- nothing to measure
TALLY_LIKE = [name for name, metric in METRICS.items() if metric.reads in {"tally", "ranks", "vectors"}]


@pytest.mark.parametrize("gone", ["null scores", "NaN scores", "null labels", "weights of 0"])
def test_a_segment_of_nothing_is_null_beside_others(make: Maker, gone: str) -> None:
    table: dict[str, Any] = {"g": ["a"] * 3 + ["b"] * 4, "y": [1, 0, 1, 0, 1, 0, 1], "p": [0.2, 0.4, 0.9] + [0.5] * 4}
    table["w"] = [1.0] * 7
    which, what = {
        "null scores": ("p", None),
        "NaN scores": ("p", math.nan),
        "null labels": ("y", None),
        "weights of 0": ("w", 0.0),
    }[gone]
    table[which] = [what] * 3 + table[which][3:]
    values = rows(measure(make, table, by="g", weight="w", metrics=TALLY_LIKE))
    assert (values["g"], values["n"]) == (["a", "b"], [0, 4])
    assert {name: values[name][0] for name in TALLY_LIKE} == dict.fromkeys(TALLY_LIKE)
    assert (values["note"][0] or "").startswith("no usable rows")
    alone = rows(measure(make, {name: values[3:] for name, values in table.items()}, weight="w", metrics=TALLY_LIKE))
    assert {name: values[name][1] for name in TALLY_LIKE} == {name: alone[name][0] for name in TALLY_LIKE}


def test_a_table_of_nothing_is_null(make: Maker) -> None:
    values = rows(measure(make, {"y": [1, 0], "p": [None, math.nan]}, metrics="all", confidence_level=0.9))
    names = [name for name in METRICS if name in values]
    assert {name: values[name] for name in names} == {name: [None] for name in names}
    assert values["note"] == ["no usable rows"]


def test_a_table_of_classes_of_nothing_is_null(make: Maker) -> None:
    table = {"y": ["a", "b"], "pa": [None, 0.5], "pb": [0.5, math.nan], "pc": [0.5, 0.5]}
    values = found(make(table), metrics="all")
    names = [name for name in CLASS_METRICS if name in values]
    assert {name: values[name] for name in names} == {name: [None] for name in names}
    assert values["note"] == ["no usable rows"]


@pytest.mark.parametrize("name", TALLY_LIKE)
def test_a_table_without_rows_is_an_error(name: str) -> None:
    data = pl.DataFrame({"y": [1], "p": [0.5]}).clear()
    with pytest.raises(EmptyTableError, match="the table has no rows"):
        calframe.metrics(data, label="y", score="p", metrics=name)


@pytest.mark.parametrize("bad", [1.5, -math.inf, math.nextafter(1, 2)])
def test_scores_out_of_range_are_an_error_or_left_out(make: Maker, bad: float) -> None:
    table = {"y": [1, 0, 1, 0], "p": [0.75, 0.5, bad, 0.25]}
    for name in ("auc", "confidence_ece"):
        refuses(make, table, ScoreError, r"column 'p' runs from .* with 1 row outside", reads=True, metrics=name)
    values = rows(measure(make, table, metrics=TALLY_LIKE, invalid="drop"))
    expected = rows(measure(make, {"y": [1, 0, 0], "p": [0.75, 0.5, 0.25]}, metrics=TALLY_LIKE, invalid="drop"))
    assert (values.pop("n_invalid"), expected.pop("n_invalid")) == ([1], [0])
    assert values == {name: approx(value, rel=1e-9) for name, value in expected.items()}


# ---------------------------------------------------------------- classes at the edge
VECTORS: dict[str, tuple[list[str], list[tuple[float, float, float]]]] = {
    "one row": (["a"], [(0.5, 0.25, 0.25)]),
    "one row that is certain": (["b"], [(0.0, 1.0, 0.0)]),
    "one row that is certain and wrong": (["a"], [(0.0, 1.0, 0.0)]),
    "certain and right": (["a", "b", "c"], [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]),
    "one class": (["a", "a"], [(0.5, 0.25, 0.25), (0.25, 0.5, 0.25)]),
    "one vector": (["a", "b", "c"], [(1 / 3, 1 / 3, 1 / 3)] * 3),
    "1e-17 apart": (["a", "b", "c"], [(TINY, 0.0, 1.0), (2 * TINY, 0.0, 1.0), (0.0, TINY, 1.0)]),
}


@pytest.mark.parametrize("arguments", [{}, {"strategy": "quantile"}, {"bins": "auto"}, {"notion": "classwise"}])
def test_classes_at_the_edge(arguments: dict[str, Any]) -> None:
    parts = [(name, y, *p) for name, (label, vectors) in VECTORS.items() for y, p in zip(label, vectors, strict=True)]
    columns = dict(zip(("g", "y", *SCORE.values()), map(list, zip(*parts, strict=True)), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".* infinite: ", CalframeWarning)
        values = found(POLARS(columns), by="g", metrics="all", **arguments)
    known = METRICS if "notion" in arguments else CLASS_METRICS
    assert set(values["g"]) == set(VECTORS)
    each = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    assert not [text for row in each for text in explained(row, known, table=row["g"])]
