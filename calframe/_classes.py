"""Several classes: which label is which class, and the probabilities of each, one private column a class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np

from calframe._errors import ArgumentError, LabelError

_LARGEST_WHOLE = 2.0**53  # from here on whole numbers are no longer told apart
_SUM_TOLERANCE = 1e-6  # the probabilities of a row add up to 1 within this
_STEPS = {"Float16": 2.0**-10, "Float32": 2.0**-23}  # between 1 and the next number, where that is coarser


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRule:
    """How the labels of several classes are read.

    Attributes
    ----------
    names : tuple
        The classes, as the user named them.
    values : tuple of str or float
        What labels are compared with.
    text : bool
        Whether labels are compared as text.
    """

    names: tuple[Any, ...]
    values: tuple[Any, ...]
    text: bool

    @classmethod
    def from_dtype(cls, names: Sequence[Any], dtype: Any, *, column: str) -> Self:
        """Match the named classes with the type of the label column, or raise."""
        text = isinstance(dtype, nw.String | nw.Categorical | nw.Enum)
        if not text and not dtype.is_numeric() and not isinstance(dtype, nw.Boolean):
            msg = f"label column {column!r} has type {dtype}; the label of several classes is text or a number."
            raise LabelError(msg)
        wrong = [name for name in names if isinstance(name, str) != text or not (text or _is_number(name))]
        if wrong:
            held = "text" if text else "numbers"
            msg = (
                f"label column {column!r} holds {held}, but class {wrong[0]!r} is not; name each class by the very "
                "value that the label has."
            )
            raise LabelError(msg)
        values = tuple(names) if text else tuple(float(name) for name in names)
        if not text and any(abs(value) >= _LARGEST_WHOLE for value in values):
            msg = f"the classes {list(names)!r} hold numbers too long to be compared as such; cast the label to text."
            raise LabelError(msg)
        if len(set(values)) < len(values):
            msg = f"the classes {list(names)!r} hold one value twice; name each class once."
            raise ArgumentError(msg)
        return cls(names=tuple(names), values=values, text=text)

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self.names)

    def prepared(self, label: nw.Expr, dtype: Any) -> nw.Expr:
        """Return the label in the type it is compared in: text or Float64."""
        if self.text:
            return label.cast(nw.String)
        return (label.cast(nw.Int8) if isinstance(dtype, nw.Boolean) else label).cast(nw.Float64)

    def present(self, label: nw.Expr) -> nw.Expr:
        """Return which prepared labels are there."""
        return ~label.is_null() if self.text else ~label.is_null() & ~label.is_nan()

    def known(self, label: nw.Expr) -> nw.Expr:
        """Return which prepared labels are one of the classes."""
        return label.is_in(list(self.values))

    def position(self, label: nw.Expr) -> nw.Expr:
        """Return the place of each label among the classes, counted from 0; 0 too where it is none of them."""
        return nw.sum_horizontal(*self.where(label, [nw.lit(float(i)) for i in range(len(self))])[1:])

    def where(self, label: nw.Expr, parts: Sequence[nw.Expr]) -> list[nw.Expr]:
        """Return each part where the label is its class, 0 elsewhere."""
        pairs = zip(self.values, parts, strict=True)
        return [nw.when(label == value).then(part).otherwise(0.0) for value, part in pairs]


def sum_tolerance(dtypes: Iterable[Any], *, classes: int) -> float:
    """Return how far from 1 the probabilities of a row may add up: 1e-6, or a step of their format for each class.

    Examples
    --------
    >>> sum_tolerance([nw.Float64()], classes=3), sum_tolerance([nw.Float16()], classes=4)
    (1e-06, 0.00390625)
    """
    return max([_SUM_TOLERANCE, *(classes * _STEPS.get(str(dtype), 0.0) for dtype in dtypes)])


def class_column(position: int) -> str:
    """Return the private name of the probabilities of the class at a position."""
    return f"_cf_c{position:04d}"


def logit_column(position: int) -> str:
    """Return the private name of the logits of the class at a position against all others."""
    return f"_cf_z{position:04d}"


def posterior_column(position: int) -> str:
    """Return the private name of the true probabilities of the class at a position."""
    return f"_cf_q{position:04d}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating | np.bool_)
