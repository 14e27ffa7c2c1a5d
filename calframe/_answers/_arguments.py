"""The arguments of `answer_confidence`: each is for some of the methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from calframe._errors import ArgumentError
from calframe._options import is_real

_ONLY: dict[str, tuple[str, ...]] = {  # the methods that an option is for
    "options": ("choice",),
    "chosen": ("choice",),
    "each": ("choice",),
    "by": ("agreement",),
    "answer": ("agreement",),
    "smoothing": ("agreement",),
    "normalize": ("agreement",),
    "base": ("sum", "mean", "first", "choice"),
}
_USUAL = {"each": False, "smoothing": 0.0, "normalize": True, "base": math.e}
_MOST_SMOOTHING = 1e100  # times the number of answers it is still a number


def check_arguments(method: str, **given: Any) -> None:
    """Raise for options of other methods, and for values that none could use."""
    for option in ("each", "normalize"):
        if not isinstance(given[option], bool):
            msg = f"{option} must be True or False; got {given[option]!r}."
            raise ArgumentError(msg)
    for option, methods in _ONLY.items():
        is_given = given[option] != _USUAL[option] if option in _USUAL else given[option] is not None
        if method not in methods and is_given:
            msg = f"{option}= is for method={' or '.join(map(repr, methods))}; the method is {method!r}."
            raise ArgumentError(msg)
    if not (is_real(given["smoothing"]) and 0.0 <= given["smoothing"] <= _MOST_SMOOTHING):
        msg = f"smoothing must be a number of 0 or more, for example 1; got {given['smoothing']!r}."
        raise ArgumentError(msg)
    if not (is_real(given["base"]) and 1.0 < given["base"] < math.inf):
        msg = f"base must be the base of the logarithm, above 1, for example 2; got {given['base']!r}."
        raise ArgumentError(msg)
    if given["by"] is not None and given["answer"] is not None:
        msg = "by= gives each row the share of its own answer, and answer= names another; leave one of them out."
        raise ArgumentError(msg)


def named_options(options: Any) -> tuple[list[str], list[Any]]:
    """Return the options and their columns, or raise."""
    listed = isinstance(options, Sequence | Mapping) and not isinstance(options, str)
    names = list(options) if listed else []
    if len(names) < 2 or not all(isinstance(one, str) for one in names):
        msg = f"options= lists the names of two or more options, texts such as ['A', 'B', 'C', 'D']; got {options!r}."
        raise ArgumentError(msg)
    if len(set(names)) < len(names):
        msg = f"options= names {next(one for one in names if names.count(one) > 1)!r} twice; name each option once."
        raise ArgumentError(msg)
    return names, list(options.values()) if isinstance(options, Mapping) else names
