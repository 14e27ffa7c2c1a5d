"""Where other packages put the edges of a number of equal bins."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_ABOVE = 2.0  # any number above 1: the bin from 1 to here holds the scores of exactly 1
_BELOW = -1.0  # any number below 0: likewise for the scores of exactly 0
_STRETCH = 1e-8  # PyCalib's


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """A way to place edges.

    Attributes
    ----------
    text : str
        The edges in words.
    place : callable
        The function from the number of bins to ``bins=`` of `metrics`.
    least : int
        The smallest number that the peer can be asked for.
    """

    text: str
    place: Callable[[int], int | list[float]]
    least: int = 1


def _linspace(bins: int, end: float = 1.0) -> list[float]:
    return [float(edge) for edge in np.linspace(0.0, end, bins + 1)]


def _from_both_ends(bins: int, real: Callable[[float], Any] = np.float64) -> list[float]:
    one, step = real(1), real(1) / real(bins)
    half = (bins + 1) // 2
    return [float(real(k) * step if k < half else one - real(bins - k) * step) for k in range(bins + 1)]


def _accumulated(bins: int) -> list[float]:
    step = 1.0 / bins
    upper = [float(edge) for edge in np.arange(step, 1.0 + step, step)]
    return [0.0, *upper[:-1], max(upper[-1], 1.0)]


def _by_division(bins: int) -> list[float]:
    width = 1.0 / bins
    edges = [0.0]
    for k in range(1, bins + 1):
        edge = k * width
        while edge / width >= k:
            edge = math.nextafter(edge, 0.0)
        while edge / width < k:
            edge = math.nextafter(edge, _ABOVE)
        edges.append(edge)
    return edges


EXACT = Edges(text="k / bins exactly", place=lambda bins: bins)
LINSPACE = Edges(text="numpy.linspace(0, 1, bins + 1)", place=_linspace)
ONE_APART = Edges(
    text="numpy.linspace(0, 1, bins + 1), and a bin for scores of exactly 1",
    place=lambda bins: [*_linspace(bins), _ABOVE],
)
TORCH = Edges(
    text="torch.linspace(0, 1, bins + 1), and a bin for scores of exactly 1",
    place=lambda bins: [*_from_both_ends(bins), _ABOVE],
)
TORCH_FLOAT32 = Edges(
    text="torch.linspace(0, 1, bins + 1) in float32, and a bin for scores of exactly 1",
    place=lambda bins: [*_from_both_ends(bins, np.float32), _ABOVE],
)
STRETCHED = Edges(text="numpy.linspace(0, 1 + 1e-8, bins + 1)", place=lambda bins: _linspace(bins, end=1.0 + _STRETCH))
ACCUMULATED = Edges(text="numpy.arange(1 / bins, 1 + 1 / bins, 1 / bins)", place=_accumulated)
DIVISION = Edges(
    text="where int(score / (1 / bins)) jumps, and a bin for scores of exactly 1",
    place=lambda bins: [*_by_division(bins), _ABOVE],
)
ONE_LESS = Edges(
    text="numpy.linspace(0, 1, bins), so one bin less than asked, and a bin for scores of exactly 0",
    place=lambda bins: [_BELOW, *_linspace(bins - 1)],
    least=2,
)
