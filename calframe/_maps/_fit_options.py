"""What a user may set about a fit, and the checks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from calframe._binning import BinChoice
from calframe._errors import ArgumentError
from calframe._options import check_choice, check_flag, is_real

Free: TypeAlias = Literal["abm", "am", "ab"]
Kind: TypeAlias = Literal["vector", "matrix"]
On: TypeAlias = Literal["logit", "score"]
Interpolation: TypeAlias = Literal["linear", "step"]

_CHOICES = {"parameters": Free, "on": On, "interpolation": Interpolation, "kind": Kind}


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """What a user may set about a fit, under the names that `calframe.fit` has; a method takes some of it.

    Attributes
    ----------
    choice : BinChoice
        The bins of a histogram.
    """

    floor: float
    target_smoothing: bool | float
    parameters: Free
    on: On
    interpolation: Interpolation
    centred: bool
    epsilon: float | None
    choice: BinChoice
    laplace: float
    off_diagonal: float
    intercept: float
    normalised: bool
    reference_row: bool
    kind: Kind


def check_options(**given: Any) -> None:
    """Raise unless the arguments of a method have values that it knows."""
    for name in _CHOICES.keys() & given.keys():
        check_choice(name, given[name], get_args(_CHOICES[name]))
    _check_smoothing(given.get("target_smoothing", False))
    epsilon = given.get("epsilon")
    if epsilon is not None and not (is_real(epsilon) and 0.0 < epsilon < 0.5):
        msg = f"epsilon must lie between 0 and 0.5, or be None for no clipping; got {epsilon!r}."
        raise ArgumentError(msg)
    for name in ("laplace", "off_diagonal", "intercept"):
        if name in given and not (is_real(given[name]) and 0.0 <= given[name] < float("inf")):
            msg = f"{name} must be a number of 0 or more; got {given[name]!r}."
            raise ArgumentError(msg)
    for name in ("centred", "normalised", "reference_row"):
        if name in given:
            check_flag(name, given[name])
    if given.get("centred") and given.get("interpolation") == "step":
        msg = "centred=True joins blocks by straight lines; leave interpolation='step' out."
        raise ArgumentError(msg)


def _check_smoothing(smoothing: Any) -> None:
    if not isinstance(smoothing, bool) and not (is_real(smoothing) and 0.0 < smoothing < 1.0):
        msg = f"target_smoothing must be True (Platt's targets), False, or a share between 0 and 1; got {smoothing!r}."
        raise ArgumentError(msg)
