"""Nothing is read before it is asked for, nothing twice, and rows never leave their engine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest
from polars.io.plugins import register_io_source

import calframe
from calframe import _kernels
from calframe._errors import CalframeError, ColumnNotFoundError
from calframe._measures import METRICS
from tests._tables import Maker, rows

KERNELS = str(Path(_kernels.__file__).parent)


class Counted:
    """A lazy table that counts how often it is read."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.reads = 0
        self._frame = frame
        self.lazy = register_io_source(self._read, schema=frame.schema)

    def _read(
        self, columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        self.reads += 1
        frame = self._frame if columns is None else self._frame.select(columns)
        if predicate is not None:
            frame = frame.filter(predicate)
        yield frame if n_rows is None else frame.head(n_rows)


def table(segments: int, each: int = 4) -> dict[str, Any]:
    rng = np.random.default_rng(segments)
    n = segments * each
    parts = (1 + rng.multinomial(5, [1 / 3] * 3, n)) / 8
    classes = {f"p{i}": parts[:, i] for i in range(3)}
    return {
        "g": np.repeat(np.arange(segments), each),
        "y": rng.integers(0, 2, n),
        "p": rng.random(n),
        "q": rng.random(n).astype("float32"),
        "w": rng.integers(1, 3, n),
        **classes,
    }


CALLS: dict[str, dict[str, Any]] = {
    "whole table": {"score": "p"},
    "segments": {"score": "p", "by": "g"},
    "weights and intervals": {"score": "p", "by": "g", "weight": "w", "confidence_level": 0.9},
    "models": {"score": ["p", "q"], "by": "g", "metrics": "all"},
    "logits": {"score": "p", "link": "logit", "metrics": "all", "invalid": "drop"},
    "quantiles": {"score": "p", "by": "g", "metrics": "ece", "strategy": "quantile"},
    "classes": {"score": {0: "p0", 1: "p1", 2: "p2"}, "by": "g", "metrics": "all"},
    "each class": {"score": {0: "p0", 1: "p1", 2: "p2"}, "notion": "classwise", "metrics": "all"},
    "vectors": {"score": "v", "classes": [0, 1, 2], "metrics": ["brier", "skce"]},
}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("call", CALLS)
def test_a_lazy_table_is_read_once_and_only_when_collected(call: str, engine: Any) -> None:
    source = Counted(pl.DataFrame(table(5)).with_columns(v=pl.concat_list("p0", "p1", "p2")))
    plan = calframe.metrics(source.lazy, label="y", **CALLS[call])
    plan.collect_schema()
    assert source.reads == 0
    assert plan.collect(engine=engine).height > 0
    assert source.reads == 1


@pytest.mark.parametrize("role", ["label", "score", "by", "weight"])
def test_a_missing_column_is_said_without_reading_a_row(role: str) -> None:
    source = Counted(pl.DataFrame(table(5)))
    with pytest.raises(ColumnNotFoundError, match="no column 'nowhere'"):
        calframe.metrics(source.lazy, **{"label": "y", "score": "p", role: "nowhere"})
    assert source.reads == 0


def test_a_lazy_table_that_is_wrong_says_so_when_collected() -> None:
    source = Counted(pl.DataFrame(table(5)).with_columns(p=pl.col("p") * 100))
    plan = calframe.metrics(source.lazy, label="y", score="p")
    assert source.reads == 0
    with pytest.raises(CalframeError, match="looks like percent"):
        plan.collect()


def kernel_calls(make: Maker, segments: int, **arguments: Any) -> int:
    """Return how many functions of the kernels Python enters."""
    calls = 0

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(KERNELS)

    data = make(table(segments, each=2))
    sys.setprofile(watch)
    try:
        rows(calframe.metrics(data, label="y", by="g", **arguments))
    finally:
        sys.setprofile(None)
    return calls


def test_kernels_do_not_loop_over_segments(make: Maker) -> None:
    few, many = kernel_calls(make, 10, score="p"), kernel_calls(make, 10_000, score="p")
    assert few == many > 0


@pytest.mark.parametrize("library", ["pandas", "duckdb"])
def test_kernels_do_not_loop_whatever_is_asked(library: str) -> None:
    # Some work in chunks of many segments, and iterate in each: a loop would add a call or more for each of 4,000.
    # Only the interval of smece loops: each segment has random numbers of its own.
    names = [name for name, metric in METRICS.items() if name != "smece" and not metric.posterior]
    arguments: dict[str, Any] = {"score": ["p", "q"], "metrics": names, "confidence_level": 0.9}
    few, many = (kernel_calls(Maker(library), segments, **arguments) for segments in (500, 2_500))
    assert abs(many - few) < 2_000
    few, many = (kernel_calls(Maker(library), segments, score="p", metrics="smece") for segments in (500, 2_500))
    assert abs(many - few) < 500


@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        ({"score": "p", "by": "g"}, 3 * 15),
        ({"score": ["p", "q"], "by": "g"}, 2 * 3 * 15),
        ({"score": "p", "bins": 4}, 4),
        ({"score": "p", "by": "g", "metrics": "brier", "confidence_level": 0.9}, 3),
    ],
)
def test_duckdb_hands_back_cells_not_rows(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], most: int
) -> None:
    taken = []
    collect = nw.LazyFrame.collect

    def watched(self: Any, *given: Any, **named: Any) -> Any:
        found = collect(self, *given, **named)
        taken.append(len(found))
        return found

    monkeypatch.setattr(nw.LazyFrame, "collect", watched)
    calframe.metrics(Maker("duckdb")(table(3, each=2000)), label="y", **arguments)
    assert 0 < sum(taken) <= most


def test_duckdb_runs_on_its_own_connection() -> None:
    # a table of this connection alone; another connection would not find it
    connection = duckdb.connect()
    connection.execute("create table scored as select i % 2 as y, i / 10 as p, i / 20 as q from range(10) r(i)")
    found = rows(calframe.metrics(connection.table("scored"), label="y", score=["p", "q"], metrics="mean_score"))
    assert found["mean_score"] == pytest.approx([0.45, 0.225])
    assert connection.sql("select count(*) from duckdb_tables()").fetchall() == [(1,)]
    assert connection.sql("select count(*) from duckdb_views() where not internal").fetchall() == [(0,)]
