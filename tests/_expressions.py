"""Polars expressions in every place where polars takes an aggregate, and what to compare them with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe

MEASURES = ["brier", "log_loss", "gap", "ece", "mce"]
NAN, INF = math.nan, math.inf

Found = dict[str, list[Any]]
Way = Callable[[pl.DataFrame, Mapping[str, pl.Expr]], Found]

# Worked by hand: a has gaps -.2 and .4, b has -.5 and .5; two bins part those of a and keep those of b together
FLIGHTS = pl.DataFrame({"g": ["a", "b", "a", "b"], "y": [1, 1, 0, 0], "p": [0.8, 0.5, 0.4, 0.5]})
BY_HAND: Found = {
    "brier": [(0.04 + 0.16) / 2, 0.25],
    "log_loss": [-(math.log(0.8) + math.log(0.6)) / 2, math.log(2)],
    "gap": [0.1, 0.0],
    "ece": [0.3, 0.0],
    "mce": [0.4, 0.0],
}


def measures(
    label: Any = "y",
    *,
    score: pl.Expr | None = None,
    weight: Any = None,
    bins: Any = 15,
    closed: Any = "left",
    clip: float | None = None,
) -> dict[str, pl.Expr]:
    """Return every measure of a score column, by name."""
    calib = (pl.col("p") if score is None else score).calib
    binned = {"weight": weight, "bins": bins, "closed": closed}
    return {
        "brier": calib.brier(label, weight=weight),
        "log_loss": calib.log_loss(label, weight=weight, clip=clip),
        "gap": calib.gap(label, weight=weight),
        "ece": calib.ece(label, **binned),
        "mce": calib.mce(label, **binned),
    }


def _selected(table: pl.DataFrame, asked: Mapping[str, pl.Expr], *, engine: Any) -> Found:
    return table.lazy().select(**asked).collect(engine=engine).to_dict(as_series=False)


WHOLE: dict[str, Way] = {
    "select": lambda table, asked: table.select(**asked).to_dict(as_series=False),
    "in memory": lambda table, asked: _selected(table, asked, engine="in-memory"),
    "streaming": lambda table, asked: _selected(table, asked, engine="streaming"),
}
"""Ways to one value of a whole table."""


def _grouped(table: pl.DataFrame, asked: Mapping[str, pl.Expr], *, engine: Any) -> Found:
    plan = table.lazy().with_row_index("_first").group_by("g").agg(pl.col("_first").min(), **asked)
    return plan.sort("_first").drop("g", "_first").collect(engine=engine).to_dict(as_series=False)


def _over(table: pl.DataFrame, asked: Mapping[str, pl.Expr], *, engine: Any) -> Found:
    plan = table.lazy().select("g", **{name: measure.over("g") for name, measure in asked.items()})
    spread = plan.collect(engine=engine)
    assert spread.n_unique() == table["g"].n_unique()  # every row of a segment has got the same
    return spread.unique("g", maintain_order=True).drop("g").to_dict(as_series=False)


SEGMENTS: dict[str, Way] = {
    "group_by": lambda table, asked: (
        table.group_by("g", maintain_order=True).agg(**asked).drop("g").to_dict(as_series=False)
    ),
    "group_by in memory": lambda table, asked: _grouped(table, asked, engine="in-memory"),
    "streaming group_by": lambda table, asked: _grouped(table, asked, engine="streaming"),
    "over": lambda table, asked: _over(table, asked, engine="in-memory"),
    "streaming over": lambda table, asked: _over(table, asked, engine="streaming"),
}
"""Ways to one value of each segment g, in the order in which the segments appear."""


def by_metrics(table: pl.DataFrame, *, by: str | None = None, only: Sequence[str] = MEASURES, **options: Any) -> Found:
    """Return the same of `calframe.metrics`, the segments in the order in which they appear."""
    found = calframe.metrics(table, label="y", score="p", by=by, metrics=list(only), **options)
    if by is not None:
        order = table.select("g").unique(maintain_order=True)
        found = order.join(found, on="g", how="left", nulls_equal=True, maintain_order="left")
    return found.select(only).to_dict(as_series=False)


def same(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Compare numbers; null is null and NaN is NaN."""
    return len(found) == len(wanted) and all(
        one is other if one is None or other is None else one == pytest.approx(other, rel=1e-12, abs=1e-12, nan_ok=True)
        for one, other in zip(found, wanted, strict=True)
    )


def check(found: Found, wanted: Mapping[str, Sequence[Any]]) -> None:
    """Assert that all measures are the same."""
    assert {name for name, values in found.items() if not same(values, wanted[name])} == set(), (found, wanted)


def edge_scores(edges: list[float], dtype: str) -> Any:
    """Return every edge and its two neighbours in the column's type, those outside [0, 1] brought back to it."""
    at = np.array(edges, dtype=dtype)
    below, above = np.nextafter(at, at.dtype.type(-1)), np.nextafter(at, at.dtype.type(2))
    return np.clip(np.concatenate([below, at, above]), 0, 1)
