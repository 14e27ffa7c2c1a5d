"""Maps fitted for tests: every method, with no, one and two segment columns, and rows to apply them to."""

from __future__ import annotations

import functools
import math
from typing import Any

import duckdb
import numpy as np
import polars as pl

import calframe
from tests._map_definitions import expected
from tests._tables import rows

BINARY: dict[str, dict[str, Any]] = {
    "identity": {"method": "identity"},
    "platt": {"method": "platt"},
    "platt on the score": {"method": "platt", "on": "score", "pooling": "none"},
    "beta": {"method": "beta"},
    "beta of two parameters": {"method": "beta", "parameters": "am", "pooling": "none"},
    "temperature": {"method": "temperature"},
    "isotonic, pooled": {"method": "isotonic"},
    "isotonic, pooled steps": {"method": "isotonic", "interpolation": "step", "epsilon": 0.1},
    "isotonic, pooled and centred": {"method": "isotonic", "centred": True},
    "isotonic": {"method": "isotonic", "pooling": "none"},
    "histogram, pooled": {"method": "histogram", "closed": "right"},
    "isotonic steps": {"method": "isotonic", "pooling": "none", "interpolation": "step"},
    "isotonic, centred": {"method": "isotonic", "pooling": "none", "centred": True, "epsilon": 0.01},
    "histogram": {"method": "histogram", "pooling": "none"},
    "histogram closed right": {"method": "histogram", "pooling": "none", "closed": "right"},
    "histogram of quantiles": {"method": "histogram", "pooling": "none", "strategy": "quantile", "bins": 5},
    "spline": {"method": "spline"},
    "venn_abers": {"method": "venn_abers"},
}
SEVERAL: dict[str, dict[str, Any]] = {
    name: {"method": name}
    for name in (
        "identity",
        "temperature",
        "vector",
        "matrix",
        "dirichlet",
        "structured",
        "ovr_platt",
        "ovr_beta",
        "ovr_temperature",
        "ovr_isotonic",
        "ovr_histogram",
        "ovr_spline",
        "ovr_venn_abers",
    )
} | {"ovr_isotonic alone": {"method": "ovr_isotonic", "pooling": "none"}}
SEGMENTS = ((), ("g",), ("g", "h"))
CLASSES = ("a", "b", "c")
_ROWS = 900
_GROUPS = ("ams", "ber", "cph", "dub", "edi", "fra")


def logit(p: np.ndarray) -> np.ndarray:
    return np.log(p) - np.log1p(-p)


@functools.cache
def training(*, several: bool) -> pl.DataFrame:
    """Return rows with segments g and h, score p and logit z, or those of three classes, and the outcome y."""
    rng = np.random.default_rng(20240229)
    g, h = rng.integers(0, len(_GROUPS), _ROWS), rng.integers(0, 3, _ROWS)
    keys = {"g": [_GROUPS[i] for i in g], "h": h}
    if not several:
        p = rng.uniform(0.002, 0.998, _ROWS).round(3)
        y = rng.uniform(size=_ROWS) < 1 / (1 + np.exp(-0.6 * logit(p) - 0.4 * (g - 2.5) - 0.1 * h))
        return pl.DataFrame(keys | {"p": p, "z": logit(p), "y": y})
    logits = 1.5 * rng.normal(size=(_ROWS, 3))
    odds = np.exp(logits)
    shares = odds / odds.sum(axis=1, keepdims=True)
    true = np.exp(0.7 * logits + np.column_stack([0.2 * (g - 2.5), 0.1 * h, np.zeros(_ROWS)]))
    chance = rng.uniform(size=_ROWS) * true.sum(axis=1)
    y = (chance[:, None] > true.cumsum(axis=1)).sum(axis=1)
    columns = {f"p_{name}": shares[:, i] for i, name in enumerate(CLASSES)}
    columns |= {f"z_{name}": logits[:, i] for i, name in enumerate(CLASSES)}
    return pl.DataFrame(keys | columns | {"y": [CLASSES[i] for i in y]})


@functools.cache
def binary_map(case: str, by: tuple[str, ...], link: str = "probability") -> calframe.CalibrationMap:
    score = "z" if link == "logit" else "p"
    return calframe.fit(training(several=False), label="y", score=score, by=by or None, link=link, **BINARY[case])


@functools.cache
def class_map(case: str, by: tuple[str, ...], link: str = "probability") -> calframe.CalibrationMap:
    score = {name: f"{'z' if link == 'logit' else 'p'}_{name}" for name in CLASSES}
    return calframe.fit(training(several=True), label="y", score=score, by=by or None, link=link, **SEVERAL[case])


def fresh(*, several: bool, link: str = "probability") -> dict[str, list[Any]]:
    """Return rows to apply a map to: known, unseen and missing segments, scores at the ends, between and missing."""
    g = ["ams", "ber", "elsewhere", None, "cph", "dub", "edi", "fra", "ams", "ber", "", 'it\'s "é"']
    h = [0, 1, 2, 0, None, 9, 1, 2, 0, 1, 2, -1]
    if several:
        nan = math.nan
        shares: list[tuple[float | None, ...]] = [
            (1.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.2, 0.3, 0.5), (0.25, 0.5, 0.25), (0.3, 0.7, 0.0), (0.1, 0.1, 0.8),
            (1e-15, 1 - 1e-15, 0.0), (None, 0.5, 0.5), (0.4, 0.4, 0.2), (0.0, 0.0, 1.0), (nan, 0.2, 0.8),
            (0.6, 0.2, 0.2),
        ]  # fmt: skip
        logits: list[tuple[float | None, ...]] = [
            (0.0, 0.0, 0.0), (20.0, 0.0, -20.0), (1.0, 2.0, 3.0), (-2.0, 0.5, 0.25), (300.0, -300.0, 0.0),
            (0.1, 0.1, 0.8), (-1.0, -1.0, -1.0), (None, 0.5, 0.5), (4.0, 4.0, 2.0), (5.0, 6.0, 7.0), (nan, 0.2, 0.8),
            (-6.0, 0.2, 0.2),
        ]  # fmt: skip
        vectors = logits if link == "logit" else shares
        letter = "z" if link == "logit" else "p"
        scores = {f"{letter}_{name}": [vector[i] for vector in vectors] for i, name in enumerate(CLASSES)}
    elif link == "logit":
        scores = {"z": [-40.0, -3.0, 0.0, 0.25, 12.0, None, math.nan, 1.5, -0.75, 30.0, 2.0, -6.0]}
    else:
        scores = {"p": [0.0, 1.0, 0.5, 0.31, 0.2, None, math.nan, 0.9, 1e-15, 1 - 1e-12, 0.75, 0.6]}
    return {"row": list(range(12)), "g": g, "h": h, **scores, "text": list("zyxwvutsrqpo")}


def by_definition(found: calframe.CalibrationMap, table: dict[str, list[Any]]) -> list[list[float | None]]:
    """Return the new columns of a table, worked out row by row."""
    keys = list(zip(*(table[name] for name in found.by), strict=True)) if found.by else [()] * len(table["row"])
    scores = zip(*(table[name] for name in found.scores), strict=True)
    made = [expected(found, key, score) for key, score in zip(keys, scores, strict=True)]
    return [list(column) for column in zip(*made, strict=True)]


def collected(table: Any) -> dict[str, list[Any]]:
    """Return a table of any library as lists."""
    return rows(table.pl() if isinstance(table, duckdb.DuckDBPyRelation) else table)
