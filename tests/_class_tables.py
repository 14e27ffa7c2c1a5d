"""Tables of several classes: one worked by hand, and columns of vectors in every library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import calframe
from tests._tables import Maker, approx, objects, rows

DATA = Path(__file__).parent / "data"
CLASSES = ("a", "b", "c")
SCORE = {"a": "pa", "b": "pb", "c": "pc"}

# Three right predictions at one half and a wrong one; all scores are binary fractions.
HALVES: dict[str, Any] = {
    "y": ["a", "b", "c", "a"],
    "pa": [0.5, 0.25, 0.25, 0.25],
    "pb": [0.25, 0.5, 0.25, 0.25],
    "pc": [0.25, 0.25, 0.5, 0.5],
}
HALF_VECTORS = [list(row) for row in zip(HALVES["pa"], HALVES["pb"], HALVES["pc"], strict=True)]
# By hand, in four bins. Class a: gaps 1/12 (three rows) and 1/2; b: 1/4 (three rows) and 1/2; c: 1/4 (two rows) and 0.
# The last two rows have one vector, of which a and c happened once each.
HALVES_FOUND: dict[str, float] = {
    "accuracy": 3 / 4,
    "brier": 1 / 2,  # (3 * (1/4 + 2/16) + 9/16 + 1/16 + 1/4) / 4
    "log_loss": 5 / 4 * math.log(2),
    "confidence_ece": 1 / 4,
    "confidence_mce": 1 / 4,
    "classwise_ece": (3 / 16 + 5 / 16 + 1 / 8) / 3,
    "classwise_mce": 1 / 2,
    "toplabel_ece": 1 / 4,
    "full_ece": 3 / 4,  # 1, 1, and for two rows the sum 1/2 + 1/2 + 0
    "skce": float(Fraction(-3, 16)) / math.e / 6 - 3 / 8 / 6,  # five pairs at the median distance 1/2, one at 0
    "calibration_loss": 1 / 4,
    "refinement_loss": 1 / 4,
    "calibration_loss_log": 3 / 4 * math.log(2),
    "refinement_loss_log": 1 / 2 * math.log(2),
    "aurc": 1 / 4,  # all are as sure: in every number of them one in four is wrong
    "eaurc": 3 / 16,  # less (0 + 0 + 0 + 1/4) / 4
}

VECTOR_KINDS = ("list", "array", "struct")


def with_vectors(
    make: Maker, columns: dict[str, Any], vectors: Sequence[Any], *, kind: str, names: Sequence[str] = CLASSES
) -> Any:
    """Return a table with a column ``v`` of vectors: lists, arrays of one length, or structs with a field a class."""
    values = [None if vector is None else dict(zip(names, vector, strict=True)) for vector in vectors]
    width = len(names)
    if make.library in ("pandas", "pandas[nullable]"):
        lists = [None if vector is None else np.array(vector, dtype=np.float64) for vector in vectors]
        frame = make(columns)
        frame["v"] = objects(*{"list": vectors, "array": lists, "struct": values}[kind])
        return frame
    if make.library.startswith("polars"):
        types: dict[str, Any] = {
            "list": pl.List(pl.Float64),
            "array": pl.Array(pl.Float64, width),
            "struct": pl.Struct(dict.fromkeys(names, pl.Float64)),
        }
        column = pl.Series("v", values if kind == "struct" else vectors, dtype=types[kind])
        return make(columns).with_columns(column)
    arrow_types = {
        "list": pa.list_(pa.float64()),
        "array": pa.list_(pa.float64(), width),
        "struct": pa.struct([(name, pa.float64()) for name in names]),
    }
    return make({**columns, "v": pa.array(values if kind == "struct" else vectors, type=arrow_types[kind])})


def found(data: Any, **arguments: Any) -> dict[str, list[Any]]:
    """Return the results for label y and, unless told otherwise, scores pa, pb and pc."""
    return rows(calframe.metrics(data, **{"label": "y", "score": SCORE, **arguments}))


def same(results: dict[str, list[Any]], expected: dict[str, Any], *, rel: float = 1e-12) -> None:
    """Assert that the columns named agree."""
    wrong = {name: (results[name], e) for name, e in expected.items() if results[name] != approx(e, rel=rel)}
    assert not wrong, wrong
