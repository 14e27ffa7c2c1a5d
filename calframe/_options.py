"""Checks of options that several verbs share."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Real
from typing import Any, get_args

from calframe._errors import ArgumentError
from calframe._typing import RateInterval, Strategy


def check_choice(name: str, value: Any, allowed: Collection[str]) -> None:
    """Raise unless an argument is one of the words allowed; users pass lists and arrays, too."""
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError.from_choice(name, value, allowed)


def is_real(value: object) -> bool:
    """Tell whether an argument is a real number: users pass other things than annotations say."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_level(level: Any, *, required: bool = False) -> None:
    """Raise unless a confidence level lies in (0, 1); None is none, where one is not required."""
    if level is None and not required:
        return
    if not (is_real(level) and 0.0 < level < 1.0):
        hint = f" For {level:g} percent pass {level / 100:g}." if is_real(level) and 1.0 < level < 100.0 else ""
        msg = f"confidence_level must lie between 0 and 1, for example 0.95; got {level!r}.{hint}"
        raise ArgumentError(msg)


def check_strategy(strategy: Any) -> None:
    """Raise unless `strategy` is known."""
    check_choice("strategy", strategy, get_args(Strategy))


def check_interval(interval: Any, level: float | None) -> None:
    """Raise unless the interval of a rate is known, and a level is given for it."""
    if interval is None:
        return
    check_choice("interval", interval, get_args(RateInterval))
    if level is None:
        msg = f"interval={interval!r} needs confidence_level=, for example 0.95."
        raise ArgumentError(msg)


def check_clip(clip: float | None) -> None:
    """Raise unless `clip` is a small distance from 0 and 1."""
    if clip is not None and not (is_real(clip) and 0.0 < clip < 0.5 and 1.0 - clip < 1.0):
        msg = f"clip must lie between 2e-16 and 0.5, for example 1e-15; got {clip!r}."
        raise ArgumentError(msg)
