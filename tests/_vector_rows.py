"""Rows of probability vectors as kernels take them, and as a test may draw them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from calframe._kernels._vectors import Vectors
from calframe._typing import Floats, Ints

Row: TypeAlias = tuple[int, tuple[float, ...], int, float]  # segment, scores, class that happened, weight


def vectors_of(
    scores: ArrayLike, label: ArrayLike, *, weight: ArrayLike | None = None, segment: ArrayLike | None = None
) -> Vectors:
    """Return rows in the order of their segments, numbered from 0; without `segment` they are all of one."""
    matrix = np.asarray(scores, dtype=np.float64)
    codes = np.zeros(len(matrix), dtype=np.int64) if segment is None else np.asarray(segment)
    order = np.argsort(codes, kind="stable")
    weights = np.ones(len(matrix)) if weight is None else np.asarray(weight, dtype=np.float64)[order]
    return Vectors(
        starts=np.unique(codes[order], return_index=True)[1],
        scores=np.asfortranarray(matrix[order]),
        label=np.asarray(label, dtype=np.int64)[order],
        weight=weights,
        squared=weights**2,
    )


def vectors_of_rows(rows: Sequence[Row]) -> Vectors:
    segment, scores, label, weight = zip(*rows, strict=True)
    return vectors_of(scores, label, weight=weight, segment=segment)


def edge_finder(edges: ArrayLike, *, closed: str) -> Callable[[Any], Any]:
    """Return a finder of bins between the edges; the outermost bins are closed on both sides."""
    inner = np.asarray(edges)[1:-1]
    return lambda score: np.searchsorted(inner, score, side="right" if closed == "left" else "left")


def golden_binary() -> tuple[Floats, Ints]:
    """Return the scores and the labels of a table of 240 rows on which many packages were run."""
    i = np.arange(240)
    score = (37 * i) % 101 / 100
    return score, (((53 * i + 11) % 97) / 97 < 0.9 * score**1.4 + 0.05).astype(np.int64)


@st.composite
def drawn_rows(draw: st.DrawFn, *, least: int = 1, most: int = 12, classes: int = 3, segments: int = 3) -> list[Row]:
    """Rows whose scores are tenths (many ties, zeros, ones and edges), with weights 1, 2 and 3."""
    cut = st.lists(st.integers(0, 10), min_size=classes - 1, max_size=classes - 1).map(sorted)
    parts = cut.map(lambda at: tuple(int(part) / 10 for part in np.diff([0, *at, 10])))
    row = st.tuples(
        st.integers(0, segments - 1), parts, st.integers(0, classes - 1), st.sampled_from([1.0, 1.0, 2.0, 3.0])
    )
    return draw(st.lists(row, min_size=least, max_size=most))
