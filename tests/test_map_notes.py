"""What a map says of its fit: rows left out, weights, scores of 0 and 1, and values at their least."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe
from tests._tables import Maker, rows


def drawn(n: int = 600, *, seed: int = 5, slope: float = 1.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.05, 0.95, n)
    chance = 1.0 / (1.0 + ((1.0 - score) / score) ** slope)
    label = (rng.random(n) < chance).astype(int)
    return pl.DataFrame({"y": label, "p": score, "g": [f"s{i}" for i in rng.integers(0, 6, n)], "w": np.ones(n)})


def notes(table: Any, **arguments: Any) -> tuple[str, ...]:
    return calframe.fit(table, label="y", score="p", **arguments).notes


def test_nothing_is_said_of_an_ordinary_fit() -> None:
    assert notes(drawn(), method="platt", by="g", weight="w") == ()


def test_rows_of_weight_0_are_counted(make: Maker) -> None:
    table = {"y": [0, 1, 0, 1, 1], "p": [0.2, 0.4, 0.6, 0.7, 0.3], "w": [1.0, 0.0, 1.0, 0.0, 1.0]}
    assert notes(make(table), method="isotonic", weight="w") == ("2 rows of weight 0 left out",)


@pytest.mark.parametrize(("factor", "said"), [(40.0, "40"), (1e-4, "0.0001"), (1.5, None), (0.7, None)])
def test_importances_far_from_1_are_said_where_rows_are_pooled(factor: float, said: str | None) -> None:
    table = drawn().with_columns(pl.col("w") * factor)
    found = notes(table, method="platt", by="g", weight="w")
    assert [f"their mean is {said}," in note for note in found] == ([] if said is None else [True])
    assert notes(table, method="platt", by="g", weight="w", pooling="none") == ()


def test_counts_of_rows_may_be_large() -> None:
    table = drawn().with_columns(pl.col("w") * 40)
    assert notes(table, method="platt", by="g", weight="w", weight_kind="frequency") == ()


@pytest.mark.parametrize("method", ["platt", "beta", "temperature", "spline"])
def test_scores_of_0_and_1_are_counted_where_logarithms_are_taken(method: str) -> None:
    table = drawn().with_columns(p=pl.when(pl.int_range(pl.len()) < 3).then(pl.col("p").round()).otherwise("p"))
    (note,) = [note for note in notes(table, method=method) if "logarithms" in note]
    assert note == "3 rows have a probability within 1e-12 of 0 or 1; their logarithms pull the fit most"
    assert notes(table, method="isotonic") == notes(table, method="platt", on="score") == ()


def test_a_class_of_probability_0_is_counted() -> None:
    rng = np.random.default_rng(1)
    first = rng.uniform(0.1, 0.9, 200)
    third = np.where(np.arange(200) < 150, 0.05, 0.0)
    table = pl.DataFrame({"y": rng.integers(0, 3, 200), "a": first, "b": 1.0 - first - third, "c": third})
    found = calframe.fit(table, label="y", score={0: "a", 1: "b", 2: "c"}, method="temperature")
    assert any(note.startswith("50 rows have a probability within 1e-12 of 0 or 1") for note in found.notes)


def test_the_value_at_its_least_is_named() -> None:
    # the rate falls as scores rise, so no slope above 0 fits better than 0
    table = drawn(slope=-1.0)
    found = calframe.fit(table, label="y", score="p", method="platt")
    assert found.notes == ("slope is 0, the least for a map that never falls",)
    assert found.table["note"].to_list() == [found.notes[0]] * 2
    assert repr(found).endswith("; .summary(), .notes>")
    flat = calframe.fit(table, label="y", score="p", method="temperature")
    assert flat.notes == ("the flatter the better: the temperature is held at its most, 1000",)


def test_one_map_for_a_few_segments_is_said(make: Maker) -> None:
    few = {"y": [0, 1, 0, 1], "p": [0.2, 0.4, 0.6, 0.7], "g": ["a", "a", "b", "b"]}
    found = calframe.fit(make(few), label="y", score="p", by="g", method="platt")
    said = "partial pooling needs 5 segments or more; 2 segments have rows, so all take the pooled map"
    assert found.notes[0] == said
    assert rows(found.table)["note"][0].startswith(said)
    assert ".notes" in repr(found)
    assert said in found._repr_html_()
