"""Checks of options that several verbs share."""

from __future__ import annotations

import sys
from collections.abc import Collection
from numbers import Real
from typing import Any, get_args

import numpy as np

from calframe._errors import ArgumentError
from calframe._typing import Notion, RateInterval, Smoother

_ENGINES = ("auto", "in-memory", "streaming", "gpu")
_FEWEST_RESAMPLES, _MOST_RESAMPLES = 20, 1_000_000
_MOST_WHOLE = 2**53  # above it not every whole number is a float
_LEAST_ALPHA = 1e-9  # of less, intervals have no ends that a float could tell
_NARROWEST, _WIDEST = 200, 4000  # pixels of a chart


def check_choice(name: str, value: Any, allowed: Collection[str]) -> None:
    """Raise unless an argument is one of the words allowed; users pass lists and arrays, too."""
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError.from_choice(name, value, allowed)


def check_flag(name: str, value: Any) -> None:
    """Raise unless an argument is True or False."""
    if not isinstance(value, bool | np.bool_):
        msg = f"{name} must be True or False; got {value!r}."
        raise ArgumentError(msg)


def is_real(value: object) -> bool:
    """Tell whether an argument is a real number: users pass other things than annotations say."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """Tell whether an argument is a whole number by its type: 2.0 and True are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_whole(name: str, value: Any, least: int, most: int = _MOST_WHOLE) -> None:
    """Raise unless an argument is a whole number from `least` to `most`."""
    if not (is_whole(value) and least <= value <= most):
        which = f"of {least} or more" if most == _MOST_WHOLE else f"from {least} to {most:,}"
        msg = f"{name} must be a whole number {which}; got {value!r}."
        raise ArgumentError(msg)


def check_level(level: Any, *, required: bool = False) -> None:
    """Raise unless a confidence level lies in (0, 1); None is none, where one is not required."""
    if level is None and not required:
        return
    if not (is_real(level) and _LEAST_ALPHA <= level <= 1.0 - _LEAST_ALPHA):
        hint = f" For {level:g} percent pass {level / 100:g}." if is_real(level) and 1.0 < level < 100.0 else ""
        msg = f"confidence_level must lie between 0 and 1, for example 0.95; got {level!r}.{hint}"
        raise ArgumentError(msg)


def check_alpha(alpha: Any) -> None:
    """Raise unless an error rate lies between 0 and 0.5, far enough from 0 to be told from it."""
    if not (is_real(alpha) and _LEAST_ALPHA <= alpha < 0.5):
        msg = f"alpha must lie between {_LEAST_ALPHA:g} and 0.5, for example 0.05; got {alpha!r}."
        raise ArgumentError(msg)


def check_interval(interval: Any, level: float | None) -> None:
    """Raise unless the interval of a rate is known, and a level is given for it."""
    if interval is None:
        return
    check_choice("interval", interval, get_args(RateInterval))
    if level is None:
        msg = f"interval={interval!r} needs confidence_level=, for example 0.95."
        raise ArgumentError(msg)


def check_cluster(cluster: Any, level: float | None) -> None:
    """Raise if clusters are named where there is no interval that could allow for them."""
    if cluster is not None and level is None:
        msg = f"cluster={cluster!r} needs confidence_level=, for example 0.95: only intervals depend on it."
        raise ArgumentError(msg)


def check_clip(clip: float | None) -> None:
    """Raise unless `clip` is a small distance from 0 and 1."""
    if clip is not None and not (is_real(clip) and 0.0 < clip < 0.5 and 1.0 - clip < 1.0):
        msg = f"clip must lie between 2e-16 and 0.5, for example 1e-15; got {clip!r}."
        raise ArgumentError(msg)


def check_floor(floor: Any) -> None:
    """Raise unless `floor` is a small distance from 0 and 1."""
    if not (is_real(floor) and sys.float_info.min <= floor < 0.5):  # 1 / floor is finite
        msg = f"floor must lie between 2.3e-308 and 0.5, for example 1e-12; got {floor!r}."
        raise ArgumentError(msg)


def check_smoother(smoother: Any) -> None:
    """Raise unless `smoother` is known."""
    check_choice("smoother", smoother, get_args(Smoother))


def check_engine(engine: Any) -> None:
    """Raise unless `engine` is one that polars has: a name, or an object of its own."""
    if engine is None or type(engine).__module__.split(".")[0] == "polars":
        return
    check_choice("engine", engine, _ENGINES)


def check_notion(notion: Any) -> None:
    """Raise unless a notion is known; None is none."""
    if notion is not None:
        check_choice("notion", notion, get_args(Notion))


def check_resamples(count: Any) -> None:
    """Raise unless a number of resamples is a whole number that leaves something to look at."""
    check_whole("n_resamples", count, _FEWEST_RESAMPLES, _MOST_RESAMPLES)


def check_width(width: Any) -> None:
    """Raise unless the width of a chart is a number of pixels that can be drawn on."""
    if not (is_real(width) and _NARROWEST <= width <= _WIDEST):
        msg = f"width must be a number of pixels from {_NARROWEST} to {_WIDEST:,}; got {width!r}."
        raise ArgumentError(msg)


def seed_of(rng: Any) -> int:
    """Return the seed that ``rng=`` stands for: its number, one drawn from a Generator, or fresh entropy for None."""
    if rng is None or isinstance(rng, np.random.Generator):
        return int((rng or np.random.default_rng()).integers(2**63))
    if not is_whole(rng) or rng < 0:
        msg = f"rng must be a whole number of 0 or more, a numpy Generator, or None for fresh entropy; got {rng!r}."
        raise ArgumentError(msg)
    return int(rng)


def numbers_in(given: Any) -> list[Any]:
    """Return what an argument holds that takes a number, or a list, array or Series of numbers.

    Examples
    --------
    >>> numbers_in(0.9), numbers_in(np.array(0.9)), numbers_in((0.8, 0.9))
    ([0.9], [0.9], [0.8, 0.9])
    """
    for name in ("tolist", "to_list"):
        if hasattr(given, name):
            given = getattr(given, name)()
    return list(given) if isinstance(given, list | tuple | range) else [given]
