"""What a fit gives: parameters or knots of every segment, and how it went."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from calframe._typing import Floats, Ints


class Outcome(IntEnum):
    """How the fit of a segment went; the first four are those of `calframe._kernels._logistic.Status`."""

    FINE = 0
    SEPARABLE = 1
    ONE_CLASS = 2
    ONE_SCORE = 3
    BOUND = 4  # the best map would reverse the order of scores: the best one that does not
    FEW = 5  # fewer rows than parameters


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters:
    """Parameters of each segment.

    Attributes
    ----------
    values : ndarray of shape (n_parameters, n_segments)
        NaN in a segment that has none.
    outcome : ndarray of int64, shape (n_segments,)
        `Outcome`. FINE and BOUND have values, the others have none.
    information : ndarray of shape (n_parameters, n_parameters, n_segments)
        Minus the second derivatives of the log likelihood there, without any constraint.
    """

    values: Floats
    outcome: Ints
    information: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Knots:
    """Points of a curve in each segment, ascending in x, segment after segment in one flat array.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_segments,)
        The first point of each segment; every segment has one.
    x, y : ndarray of float64
        The points. Equal x are allowed twice: left and right limit of a step.
    outcome : ndarray of int64, shape (n_segments,)
        `Outcome`.
    """

    starts: Ints
    x: Floats
    y: Floats
    outcome: Ints
