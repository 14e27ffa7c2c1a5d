"""What metrics say of themselves: formula, source, a worked example, a range that holds, a sane direction."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe
from calframe._measures import CLASS_METRICS, METRICS
from calframe._measures._vectors import NOTION_METRICS
from calframe._registry import Metric
from tests import _worked, metrics_page
from tests._worked import written
from tests.metrics_page import FAMILIES

EVERY = [
    pytest.param(known, name, id=f"{kind}-{name}")
    for kind, known in (("score", METRICS), ("vector", CLASS_METRICS))
    for name in known
]
each_metric = pytest.mark.parametrize(("known", "name"), EVERY)
SMOOTH = 1e-5  # how exact smece is; everything else is exact to rounding
ROUNDING = 1e-9


def measured(columns: Mapping[str, Sequence[Any]], **arguments: Any) -> list[dict[str, Any]]:
    """Return every metric of each segment: of vectors where there is a column of each class."""
    table = pl.DataFrame(dict(columns), strict=False)
    roles: dict[str, Any] = {"score": "p", "posterior": "posterior"}
    if "p" not in columns:
        roles = {"score": {name: name for name in "abc"}, "posterior": {name: f"posterior {name}" for name in "abc"}}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="log_loss is infinite", category=calframe.CalframeWarning)
        found = calframe.metrics(table, label="y", metrics="all", **roles, **arguments).to_dicts()
    return [{name: row[name] for name in row if name in METRICS or name in CLASS_METRICS} for row in found]


# ---------------------------------------------------------------- the page
def test_the_page_is_what_the_metrics_say() -> None:
    assert metrics_page.PAGE.read_text(encoding="utf-8") == metrics_page.page(), f"run {metrics_page.COMMAND}"


def test_the_readme_has_every_family_and_links_that_lead_somewhere() -> None:
    readme = metrics_page.README.read_text(encoding="utf-8")
    assert metrics_page.readme_table() in readme, f"run {metrics_page.COMMAND}"
    heads = re.findall(r"^## (.+)$", metrics_page.page(), flags=re.MULTILINE)
    anchors = {f"METRICS.md#{head.lower().replace(' ', '-')}" for head in heads}
    assert set(re.findall(r"\((METRICS\.md#[^)]*)\)", readme)) == anchors


def test_every_metric_is_in_one_family() -> None:
    of_scores = [name for family in FAMILIES if not family.several_classes for name in family.names]
    of_vectors = [name for family in FAMILIES if family.several_classes for name in family.names]
    notions = [metric.name for metric in NOTION_METRICS]
    assert sorted([*of_scores, *notions]) == sorted(METRICS)
    assert sorted(of_vectors) == sorted(CLASS_METRICS)


def test_the_tables_of_the_page_have_as_many_cells_in_every_row() -> None:
    for block in re.findall(r"(?:^\|.*\n)+", metrics_page.page(), flags=re.MULTILINE):
        cells = [len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()]
        assert len(set(cells)) == 1, block


# ---------------------------------------------------------------- formula, source
@each_metric
def test_a_metric_says_what_it_is_and_where_it_comes_from(known: Mapping[str, Metric], name: str) -> None:
    metric = known[name]
    assert metric.summary
    assert metric.formula
    assert "\n" not in metric.summary + metric.formula + metric.convention + metric.source
    plain = r"an? (difference of |ratio of )?plain (means?|variance)"
    cited = r".+ \(\d{4}\), https://(doi\.org/10\.\d{4,5}/\S+|openreview\.net/forum\?id=\S+)"
    assert re.fullmatch(f"{plain}|{cited}", metric.source), metric.source


@each_metric
def test_a_convention_that_points_to_another_metric_names_one(known: Mapping[str, Metric], name: str) -> None:
    for other in re.findall(r"^(?:bins |curve )?as (?:of )?(\w+)", known[name].convention):
        assert other in known or other in METRICS


# ---------------------------------------------------------------- worked examples
@cache
def by_definition(kind: str) -> dict[str, float]:
    return _worked.binary(metrics_page.BINARY) if kind == "score" else _worked.several(metrics_page.CLASSES)


@cache
def by_calframe(kind: str) -> dict[str, float]:
    columns = metrics_page.BINARY if kind == "score" else metrics_page.CLASSES
    (found,) = measured(columns, bins=metrics_page.BINS)
    return found


def accuracy_of(name: str) -> float:
    return SMOOTH if name == "smece" else ROUNDING


@each_metric
def test_the_worked_table_has_the_value_of_the_definition(known: Mapping[str, Metric], name: str) -> None:
    kind = "score" if known is METRICS else "vector"
    assert by_calframe(kind)[name] == pytest.approx(by_definition(kind)[name], abs=accuracy_of(name))


@each_metric
def test_the_example_is_the_value_of_the_definition(known: Mapping[str, Metric], name: str) -> None:
    metric = known[name]
    value = by_definition("vector" if metric.reads == "vectors" else "score")[name]
    stated = list(written(metric.example))
    assert stated
    for number, off in stated:
        assert number == pytest.approx(value, abs=off, rel=0)


# ---------------------------------------------------------------- ranges
SEGMENTS = 400
GRID = np.array([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0])
WEIGHTS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "none": lambda _, n: np.ones(n),
    "whole": lambda rng, n: rng.integers(1, 4, n),
    "parts": lambda rng, n: rng.uniform(0.01, 1.0, n),
}


def segments_of(rng: np.random.Generator) -> np.ndarray:
    """Return segments of one to eleven rows."""
    return np.repeat(np.arange(SEGMENTS), rng.integers(1, 12, SEGMENTS))


def small_tables(rng: np.random.Generator, weight: str) -> dict[str, Any]:
    """Return many small tables: some of one class or one score, most with ties and with scores of 0 and 1."""
    segment = segments_of(rng)
    n = len(segment)
    few = np.array([rng.choice(GRID, 8) for _ in range(SEGMENTS)])
    kinds = rng.integers(1, 9, SEGMENTS)[segment]  # how many of those scores a segment draws from
    tied = few[segment, rng.integers(0, kinds)]
    mixed = rng.integers(0, 4, SEGMENTS)[segment]
    return {
        "g": segment,
        "y": np.where(mixed < 2, rng.integers(0, 2, n), mixed - 2),
        "p": np.where(rng.random(SEGMENTS)[segment] < 0.7, tied, rng.random(n)),
        "posterior": rng.choice(GRID, n),
        "w": WEIGHTS[weight](rng, n),
    }


def small_vector_tables(rng: np.random.Generator, weight: str) -> dict[str, Any]:
    segment = segments_of(rng)
    n = len(segment)
    scores, true = rng.dirichlet([0.5] * 3, n), rng.dirichlet([1.0] * 3, n)
    scores[rng.random(n) < 0.3] = 1.0, 0.0, 0.0
    scores[rng.random(n) < 0.3] = 0.25, 0.25, 0.5
    columns = {"g": segment, "y": rng.choice(list("abc"), n), "w": WEIGHTS[weight](rng, n)}
    columns |= {name: scores[:, place] for place, name in enumerate("abc")}
    return columns | {f"posterior {name}": true[:, place] for place, name in enumerate("abc")}


def check_ranges(known: Mapping[str, Metric], found: Sequence[Mapping[str, Any]]) -> None:
    for name, value in (item for row in found for item in row.items()):
        metric = known[name]
        if value is None:
            assert metric.undefined, f"{name} is null, and does not say when it may be"
        else:
            assert metric.low - ROUNDING <= value <= metric.high + ROUNDING, (name, value)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("bins", [1, 3])
def test_values_stay_in_their_range(weight: str, strategy: str, bins: int) -> None:
    smoother = "loess" if bins == 3 else "lowess"
    binned: dict[str, Any] = {"bins": bins, "strategy": strategy, "smoother": smoother}
    scores = small_tables(np.random.default_rng(bins), weight)
    check_ranges(METRICS, measured(scores, by="g", weight="w", **binned))
    vectors = small_vector_tables(np.random.default_rng(bins), weight)
    check_ranges(CLASS_METRICS, measured(vectors, by="g", weight="w", **binned))


# ---------------------------------------------------------------- directions
MANY = 20  # an unbiased measure is not 0 on right scores, but near 0 on many rows


def scored(low: float, high: float) -> dict[str, Any]:
    """Return rows in which the first score comes true once in five times, and the second four times."""
    columns = {"y": [1, 0, 0, 0, 0, 1, 1, 1, 1, 0], "p": [low] * 5 + [high] * 5, "posterior": [0.2] * 5 + [0.8] * 5}
    return {name: values * MANY for name, values in columns.items()}


def vectored(own: float, first: float, second: float) -> dict[str, Any]:
    """Return rows in which one of three classes happens three times in five, and the others once."""
    label, columns = [], {f"{before}{name}": [] for before in ("", "posterior ") for name in "abc"}
    for place in range(3):
        for away in (0, 0, 0, 1, 2):
            label.append("abc"[(place + away) % 3])
            for step, (score, true) in enumerate(zip((own, first, second), (0.6, 0.2, 0.2), strict=True)):
                name = "abc"[(place + step) % 3]
                columns[name].append(score)
                columns[f"posterior {name}"].append(true)
    return {name: values * MANY for name, values in {"y": label, **columns}.items()}


RIGHT = {"score": scored(0.2, 0.8), "vector": vectored(0.6, 0.2, 0.2)}
WRONG = {
    "score": [scored(0.8, 0.2), scored(0.5, 0.5), scored(0.35, 0.95)],  # swapped, flat, too high
    "vector": [vectored(0.2, 0.6, 0.2), vectored(1 / 3, 1 / 3, 1 / 3), vectored(0.9, 0.05, 0.05)],
}


@cache
def on_right_and_wrong(kind: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    right, *wrong = (measured(table, bins=5)[0] for table in (RIGHT[kind], *WRONG[kind]))
    return right, wrong


@pytest.mark.parametrize(
    ("known", "name"), [each for each in EVERY if each.values[0][each.values[1]].direction != "none"]
)
def test_right_scores_are_better_than_wrong_ones(known: Mapping[str, Metric], name: str) -> None:
    right, wrong = on_right_and_wrong("score" if known is METRICS else "vector")
    loss = {
        "lower": lambda value: value,
        "higher": lambda value: -value,
        "zero": abs,
        "one": lambda value: abs(value - 1),
    }[known[name].direction]
    losses = [loss(each[name]) for each in wrong if each[name] is not None]
    assert loss(right[name]) <= min(losses) + ROUNDING
    assert loss(right[name]) < max(losses) - ROUNDING
