"""The label rule: which values are positive, and which tables are not binary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np

from calframe._errors import LabelError

_LabelMode: TypeAlias = Literal["boolean", "numbers", "values"]
_SHOWN_VALUES = 5
_LARGEST_WHOLE = 2.0**53  # from here on whole numbers are no longer told apart
MOST_VALUES = 50  # distinct labels fetched to describe a column


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRule:
    """How to read one label column.

    Attributes
    ----------
    mode : {"boolean", "numbers", "values"}
        ``"boolean"``: true is positive. ``"numbers"``: 1 is positive among 0/1 or -1/+1. ``"values"``: any two
        values, of which `positive` is named.
    positive : object
        The value that counts as positive, in the type of the comparison.
    text : bool
        Whether labels are compared as text.
    given : object
        What the user named as positive, for messages.
    """

    mode: _LabelMode
    positive: Any
    text: bool
    given: Any = None

    @classmethod
    def from_dtype(cls, dtype: Any, *, column: str, positive: Any) -> Self:
        """Choose the rule by the column's type and ``positive=``."""
        text = isinstance(dtype, nw.String | nw.Categorical | nw.Enum)
        if isinstance(dtype, nw.Boolean):
            if not (positive is None or isinstance(positive, bool | np.bool_)):
                msg = f"label column {column!r} is boolean, so positive= must be True or False; got {positive!r}."
                raise LabelError(msg)
            return cls(mode="boolean", positive=positive is None or bool(positive), text=False)
        if not text and not dtype.is_numeric():
            msg = (
                f"label column {column!r} has type {dtype}; a label is bool, 0/1, -1/+1, or any two values with "
                "positive=."
            )
            raise LabelError(msg)
        if isinstance(positive, float) and math.isnan(positive):
            msg = f"positive=nan does not occur in label column {column!r}: NaN equals nothing. Give one of its values."
            raise LabelError(msg)
        if positive is None:
            return cls(mode="values" if text else "numbers", positive=None if text else 1.0, text=text)
        compared = str(positive) if text else _number(positive, column)
        return cls(mode="values", positive=compared, text=text, given=_bare(positive))

    def prepared(self, label: nw.Expr) -> nw.Expr:
        """Return the label in the type it is compared in: text or Float64."""
        if self.text:
            return label.cast(nw.String)
        return (label.cast(nw.Int8) if self.mode == "boolean" else label).cast(nw.Float64)

    def present(self, label: nw.Expr) -> nw.Expr:
        """Return which prepared labels are there."""
        return ~label.is_null() if self.text else ~label.is_null() & ~label.is_nan()

    def is_positive(self, label: nw.Expr) -> nw.Expr:
        """Return which prepared labels are positive."""
        if self.positive is None:  # text without positive=: refused once the values are known
            return label.is_null()
        if self.mode == "values":
            named: nw.Expr = (label == self.positive).fill_null(value=False)
            return named  # without nulls, which not every engine combines
        return label == float(self.positive)

    def unusual(self, label: nw.Expr) -> nw.Expr | None:
        """Return which labels are neither 0 nor 1, where numbers say for themselves what is positive."""
        return ~((label == 0.0) | (label == 1.0)) if self.mode == "numbers" else None

    def other(self, label: nw.Expr) -> nw.Expr | None:
        """Return the labels that are not positive, null elsewhere, where their values must be compared."""
        if self.mode != "values":
            return None
        return nw.when(self.present(label) & ~self.is_positive(label)).then(label)


def check_values(rule: LabelRule, *, column: str, values: list[Any]) -> None:
    """Raise unless `values`, the distinct labels of the table, make a binary label under `rule`.

    Parameters
    ----------
    rule : LabelRule
        The rule that reads the column.
    column : str
        Its name, for the message.
    values : list
        Distinct prepared labels that occur, in any order.
    """
    shown = _shown(values)
    if len(values) > 2:
        many = f"{MOST_VALUES} or more" if len(values) >= MOST_VALUES else str(len(values))
        msg = (
            f"label column {column!r} has {many} values ({shown}); a binary label has two. Keep the rows of "
            "two of them, or make a 0/1 column."
        )
        raise LabelError(msg)
    if rule.positive is None or (rule.mode == "numbers" and set(values) not in _PLAIN):
        example = _plain(max(values, key=str)) if values else "yes"
        msg = (
            f"label column {column!r} holds {shown}, which is neither bool nor 0/1 nor -1/+1; say which value is "
            f"positive, for example positive={example!r}."
        )
        raise LabelError(msg)
    if rule.positive not in values and not _absent_but_known(rule, values):
        kind = "text: " if rule.text and not isinstance(rule.given, str) else ""
        case = " (case matters)" if rule.text else ""
        msg = (
            f"positive={rule.given!r} does not occur in label column {column!r}, which holds {kind}{shown}; give one "
            f"of its values{case}."
        )
        raise LabelError(msg)


def _absent_but_known(rule: LabelRule, values: list[Any]) -> bool:
    """Tell whether the positive value may be absent: of bool, 0/1 and -1/+1 the other value is known."""
    return rule.mode != "values" or (rule.positive in {0.0, 1.0} and set(values) <= {0.0, 1.0})


_PLAIN: tuple[set[float], ...] = (
    set(),
    {0.0},
    {1.0},
    {-1.0},
    {0.0, 1.0},
    {-1.0, 1.0},
)  # the labels that need no positive=


def _number(positive: Any, column: str) -> float:
    try:
        number = float(positive)
    except (TypeError, ValueError, OverflowError) as error:
        msg = (
            f"positive={positive!r} does not occur in label column {column!r}, which holds numbers; give one of its "
            "values."
        )
        raise LabelError(msg) from error
    if abs(number) >= _LARGEST_WHOLE:
        msg = (
            f"label column {column!r} holds numbers too long to be compared as such; cast it to text, and positive= "
            "too."
        )
        raise LabelError(msg)
    return number


def _bare(value: Any) -> Any:
    """Return a value as Python writes it, without the wrapping of NumPy."""
    return value.item() if isinstance(value, np.generic) else value


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shown(values: list[Any]) -> str:
    ordered = sorted(values, key=lambda value: (str(type(value)), value))
    listed = ", ".join(repr(_plain(value)) for value in ordered[:_SHOWN_VALUES])
    return listed + (", …" if len(ordered) > _SHOWN_VALUES else "")
