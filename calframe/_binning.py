"""Score bins: exact edges, either side closed, the same row in the same bin on every engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, get_args

import narwhals.stable.v2 as nw
import numpy as np

from calframe._errors import ArgumentError
from calframe._options import check_choice, is_whole
from calframe._typing import Closed, Floats, Ints, Strategy

_MOST_BINS = 100_000  # more make no bins any more, and would fill the memory
_BRANCHES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """Bins of the score axis.

    Attributes
    ----------
    edges : tuple of float
        The edges, ascending. Uniform bins have edges ``k / M``, each the float64 nearest to that fraction.
    uniform : bool
        Whether the edges are ``k / M`` on [0, 1]; then a bin is found by arithmetic, else by comparison.
    closed : {"left", "right"}
        The side that belongs to the bin. The outermost bin is closed on both sides.
    """

    edges: tuple[float, ...]
    uniform: bool
    closed: Closed

    @classmethod
    def from_argument(cls, bins: int | Sequence[float], *, closed: Closed) -> Self:
        """Read the ``bins=`` argument: a number of uniform bins or a list of edges."""
        check_choice("closed", closed, get_args(Closed))
        given: Any = bins  # what users pass is not always what the annotation says
        if is_whole(given):
            return cls.of_count(int(given), closed=closed)
        if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
            msg = f"bins must be a number of bins or a list of edges; got {given!r}."
            raise ArgumentError(msg)
        return cls.of_edges(given, closed=closed)

    @classmethod
    def of_count(cls, count: int, *, closed: Closed) -> Self:
        """Make `count` bins of equal width on [0, 1]."""
        if not 1 <= count <= _MOST_BINS:
            msg = f"bins must be a number from 1 to {_MOST_BINS:,}; got {count if abs(count) < 1e15 else 'more'}."
            raise ArgumentError(msg)
        return cls(edges=tuple(k / count for k in range(count + 1)), uniform=True, closed=closed)

    @classmethod
    def of_edges(cls, edges: Sequence[float] | Floats, *, closed: Closed) -> Self:
        """Make bins between the given edges."""
        try:
            values = tuple(float(edge) for edge in edges)
        except (TypeError, ValueError, OverflowError) as error:
            msg = f"bins as edges must be a list of numbers; got {edges!r}."
            raise ArgumentError(msg) from error
        if len(values) < 2 or not np.all(np.isfinite(values)) or not np.all(np.diff(values) > 0):
            msg = f"bins as edges must be two or more finite, strictly ascending numbers; got {list(values)}."
            raise ArgumentError(msg)
        return cls(edges=values, uniform=False, closed=closed)

    @property
    def count(self) -> int:
        """The number of bins."""
        return len(self.edges) - 1

    def lower(self) -> Floats:
        """Return the lower edge of each bin."""
        return np.asarray(self.edges[:-1])

    def upper(self) -> Floats:
        """Return the upper edge of each bin."""
        return np.asarray(self.edges[1:])

    def check_covering(self) -> None:
        """Raise unless every probability has a bin: of several classes there are always some near 0."""
        if self.edges[0] > 0.0 or self.edges[-1] < 1.0:
            msg = (
                "bins as edges must reach from 0 to 1 where scores are class probabilities or confidences; got "
                f"{self.edges[0]:g} to {self.edges[-1]:g}."
            )
            raise ArgumentError(msg)

    def index(self, score: nw.Expr, *, narrow: nw.Expr | bool) -> nw.Expr:
        """Return the bin of each score, 0 to ``count - 1``, as Int32.

        Parameters
        ----------
        score : narwhals.Expr
            Float64 scores inside the edges, without null or NaN.
        narrow : narwhals.Expr or bool
            Whether the score came from a float32 column: then every edge is first rounded to float32, so that a
            score written as 0.3 meets the edge 0.3.
        """
        found = self._by_arithmetic(score, narrow=narrow) if self.uniform else self._by_comparison(score, narrow=narrow)
        return found.clip(0, self.count - 1).cast(nw.Int32)

    def find(self, score: Floats, *, narrow: bool) -> Ints:
        """Return the bin of each score of an array; as `index` does."""
        if self.uniform and not narrow and self.closed == "left" and product_is_exact(self.count, closed="left"):
            return np.minimum((score * self.count).astype(np.int64), self.count - 1)
        inner = np.asarray(self.edges[1:-1])
        if narrow:
            inner = inner.astype(np.float32).astype(np.float64)
        return np.searchsorted(inner, score, side="right" if self.closed == "left" else "left")

    def outside(self, score: nw.Expr, *, narrow: nw.Expr | bool) -> nw.Expr | None:
        """Return which scores lie outside the edges; None where no score in [0, 1] can."""
        first, last = self.edges[0], self.edges[-1]
        if first <= 0 and last >= 1:
            return None
        beyond: nw.Expr = (score < _edge(first, narrow=narrow)) | (score > _edge(last, narrow=narrow))
        return beyond

    def _by_arithmetic(self, score: nw.Expr, *, narrow: nw.Expr | bool) -> nw.Expr:
        scaled = score * self.count
        guess = scaled.floor() if self.closed == "left" else scaled.ceil() - 1.0
        if narrow is False and product_is_exact(self.count, closed=self.closed):
            return guess
        # The product may round across an edge; one comparison with the edges of the guessed bin mends it. The
        # division is by a column, not a literal: one engine divides by literals through their reciprocal.
        count = score * 0.0 + self.count
        lower, upper = _narrowed(guess / count, narrow=narrow), _narrowed((guess + 1.0) / count, narrow=narrow)
        low = score < lower if self.closed == "left" else score <= lower
        high = score >= upper if self.closed == "left" else score > upper
        return guess + high.cast(nw.Int8) - low.cast(nw.Int8)

    def _by_comparison(self, score: nw.Expr, *, narrow: nw.Expr | bool) -> nw.Expr:
        inner = [_edge(edge, narrow=narrow) for edge in self.edges[1:-1]]
        passed = [(score >= edge if self.closed == "left" else score > edge).cast(nw.Int32) for edge in inner]
        return _added(passed) if passed else (score * 0.0).cast(nw.Int32)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinChoice:
    """How scores are binned: between edges that are known beforehand, or into bins of about equal weight.

    Attributes
    ----------
    fixed : Bins or None
        The bins, where their edges are known.
    quantiles : int or None
        Otherwise how many bins of equal weight each segment gets; None for the automatic number.
    """

    fixed: Bins | None
    quantiles: int | None = None

    @classmethod
    def from_arguments(cls, bins: Any, *, strategy: str, closed: Closed) -> Self:
        """Read ``bins=``, ``strategy=`` and ``closed=``."""
        check_choice("strategy", strategy, get_args(Strategy))
        if isinstance(bins, str):
            if bins != "auto":
                msg = f"bins must be a number of bins, a list of edges, or 'auto'; got {bins!r}."
                raise ArgumentError(msg)
            check_choice("closed", closed, get_args(Closed))
            return cls(fixed=None)
        fixed = Bins.from_argument(bins, closed=closed)
        if strategy == "uniform":
            return cls(fixed=fixed)
        if not fixed.uniform:
            msg = "strategy='quantile' takes a number of bins; with edges leave strategy out."
            raise ArgumentError(msg)
        return cls(fixed=None, quantiles=fixed.count)

    def finder(self, *, narrow: bool) -> Callable[[Floats], Ints]:
        """Return the function from scores to bins; where bins are made of equal weight, everything is in the first."""
        fixed = self.fixed
        if fixed is None:
            return lambda score: np.zeros(len(score), dtype=np.int64)
        return lambda score: fixed.find(score, narrow=narrow)

    def convention(self) -> dict[str, Any]:
        """Return the choice as results state it."""
        if self.fixed is not None:
            return {"bins": list(self.fixed.edges), "strategy": "uniform" if self.fixed.uniform else "edges"}
        return {"bins": self.quantiles or "auto", "strategy": "quantile"}


def product_is_exact(count: int, *, closed: Closed) -> bool:
    """Tell whether ``floor(p * count)`` finds the right bin of every float64 score.

    Rounded multiplication is monotone, so it is enough to try each edge and its neighbour.

    Examples
    --------
    >>> product_is_exact(15, closed="left"), product_is_exact(10, closed="left")
    (True, False)
    """
    k = np.arange(1, count)
    edge = k / count
    if closed == "left":
        return bool(np.all(edge * count >= k) and np.all(np.nextafter(edge, 0.0) * count < k))
    return bool(np.all(edge * count <= k) and np.all(np.nextafter(edge, 1.0) * count > k))


def _added(terms: list[nw.Expr]) -> nw.Expr:
    """Return the sum of many terms as a flat tree: some engines recurse into each term of a long one."""
    while len(terms) > 1:
        terms = [nw.sum_horizontal(*terms[i : i + _BRANCHES]) for i in range(0, len(terms), _BRANCHES)]
    return terms[0]


def _edge(edge: float, *, narrow: nw.Expr | bool) -> Any:
    if narrow is False:
        return edge
    rounded = float(np.float32(edge))
    if narrow is True:
        return rounded
    return nw.when(narrow).then(nw.lit(rounded)).otherwise(nw.lit(edge))


def _narrowed(edge: nw.Expr, *, narrow: nw.Expr | bool) -> nw.Expr:
    if narrow is False:
        return edge
    rounded = edge.cast(nw.Float32).cast(nw.Float64)
    return rounded if narrow is True else nw.when(narrow).then(rounded).otherwise(edge)
