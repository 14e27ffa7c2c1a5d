"""Values of JSON as what a map needs; what is something else is a ValueError that names the field."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from calframe._typing import Floats, Ints

Reader: TypeAlias = Callable[[Any, str], Any]  # a value and the field that it is of, to what it stands for
_SHOWN = 40  # characters of a wrong value


def required(record: Any, name: str, field: str) -> Any:
    """Return an entry of what must be an object."""
    if not isinstance(record, Mapping):
        raise _wrong(record, field, "an object")
    if name not in record:
        msg = f"{field}.{name} is missing"
        raise ValueError(msg)
    return record[name]


def chosen(value: Any, field: str, allowed: Collection[str]) -> str:
    """Return one of some words."""
    if not isinstance(value, str) or value not in allowed:
        raise _wrong(value, field, f"one of {', '.join(map(repr, allowed))}")
    return value


def _one_of(wanted: str, *types: type[Any]) -> Reader:
    def read(value: Any, field: str) -> Any:
        if type(value) not in types:  # True is no number here
            raise _wrong(value, field, wanted)
        return value

    return read


text = _one_of("text", str)
truth = _one_of("true or false", bool)
entries = _one_of("an object", dict)
listed = _one_of("a list", list)
integer = _one_of("a whole number", int)
_number = _one_of("a number", int, float)
scalar = _one_of("text, a number, true or false", str, int, float, bool)


def whole(value: Any, field: str) -> int:
    """Return a whole number that 64 bits hold."""
    return int(wholes([integer(value, field)], field)[0])


def number(value: Any, field: str) -> float:
    """Return a number."""
    return float(floats([_number(value, field)], field)[0])


def optional(read: Reader) -> Reader:
    """Return what reads null, too."""
    return lambda value, field: None if value is None else read(value, field)


def each(read: Reader) -> Reader:
    """Return what reads lists."""
    return lambda value, field: tuple(read(one, f"{field}[{i}]") for i, one in enumerate(listed(value, field)))


texts = each(text)


def wholes(value: Any, field: str) -> Ints:
    """Return a list of whole numbers."""
    found: Ints = _array(value, field, np.int64, "whole numbers", {int})
    return found


def floats(value: Any, field: str) -> Floats:
    """Return a list of numbers, or lists of such of one length; null is NaN."""
    found: Floats = _array(value, field, np.float64, "numbers", {int, float, type(None)})
    return found


def _array(value: Any, field: str, dtype: Any, wanted: str, types: set[type[Any]]) -> Any:
    found = np.array(listed(value, field), dtype=object)
    if not set(map(type, found.ravel().tolist())) <= types:
        odd = next(one for one in found.ravel().tolist() if type(one) not in types)
        raise _wrong(odd, field, f"a list of {wanted}", has="it has")
    try:
        return found.astype(dtype)
    except OverflowError as error:
        msg = f"{field} has a number that is too large"
        raise ValueError(msg) from error


def _wrong(value: Any, field: str, wanted: str, *, has: str = "it is") -> ValueError:
    shown = repr(value)
    return ValueError(f"{field} must be {wanted}; {has} {shown if len(shown) <= _SHOWN else f'{shown[:_SHOWN]}...'}")
