"""The metrics: those that ship with calframe, and those that users add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from calframe._errors import ArgumentError
from calframe._measures._bins import BIN_METRICS
from calframe._measures._fits import FIT_METRICS
from calframe._measures._notions import NOTION_METRICS
from calframe._measures._own import own_metrics
from calframe._measures._sums import SUM_METRICS
from calframe._measures._tally import TALLY_METRICS
from calframe._measures._vectors import CLASS_METRICS as _CLASS_METRICS
from calframe._registry import Metric

DEFAULT_METRICS = ("rate", "mean_score", "gap", "brier", "log_loss", "ece", "ece_expected")
DEFAULT_CLASS_METRICS = ("accuracy", "brier", "log_loss", "confidence_ece", "classwise_ece")

METRICS: Mapping[str, Metric] = MappingProxyType(
    {metric.name: metric for metric in (*SUM_METRICS, *BIN_METRICS, *TALLY_METRICS, *FIT_METRICS, *NOTION_METRICS)}
)
"""The metrics of a binary table."""

CLASS_METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _CLASS_METRICS})
"""The metrics of a table of three classes or more."""

_RESULT_COLUMNS = ("model", "class", "n", "n_missing", "n_invalid", "weight_sum", "note")


def metric_names() -> set[str]:
    """Return the names of all metrics, of any kind of table."""
    return {*METRICS, *CLASS_METRICS, *own_metrics()}


def reserved_names() -> set[str]:
    """Return the names that no segment column may have, because results use them."""
    names = metric_names()
    return {*_RESULT_COLUMNS, *names, *(f"{name}_{end}" for name in names for end in ("low", "high"))}


def known_metrics(*, several_classes: bool) -> dict[str, Metric]:
    """Return the metrics that a kind of table defines, by name."""
    return dict(CLASS_METRICS) if several_classes else {**METRICS, **own_metrics()}


def chosen_metrics(
    names: str | Sequence[str] | None, *, several_classes: bool = False, posterior: bool | None = None
) -> tuple[Metric, ...]:
    """Return the metrics asked for: None for the usual ones, ``"all"`` for every one, else by name, in order.

    Parameters
    ----------
    names : str or sequence of str, optional
        What the user asks for.
    several_classes : bool
        Whether the table has three classes or more.
    posterior : bool, optional
        Whether the true probabilities are known, which some metrics need; None where the verb does not read them.
    """
    known = known_metrics(several_classes=several_classes)
    usual = DEFAULT_CLASS_METRICS if several_classes else DEFAULT_METRICS
    asked: Any = usual if names is None else names  # users pass other things than annotations say
    if isinstance(asked, str):
        asked = [name for name in known if posterior or not known[name].posterior] if asked == "all" else (asked,)
    if not isinstance(asked, Sequence):
        msg = f"metrics must be a name, a list of names or 'all'; got {names!r}."
        raise ArgumentError(msg)
    for name in asked:
        _check_name(name, known, asked, several_classes=several_classes)
    if not asked:
        msg = "metrics is an empty list; name at least one metric, or leave it out for the usual ones."
        raise ArgumentError(msg)
    chosen = tuple(known[name] for name in asked)
    without = [metric.name for metric in chosen if metric.posterior and not posterior]
    if without:
        how = ", which only the verb metrics reads" if posterior is None else ": pass posterior=, their columns"
        msg = f"metric {without[0]!r} needs the true probabilities{how}."
        raise ArgumentError(msg)
    return chosen


def _check_name(name: Any, known: Mapping[str, Metric], asked: Sequence[Any], *, several_classes: bool) -> None:
    if not isinstance(name, str) or name not in known:
        if isinstance(name, str) and name in metric_names():
            raise ArgumentError(_other_kind(name, several_classes=several_classes))
        listed = [part.strip() for part in str(name).split(",")]
        if len(listed) > 1 and set(listed) <= set(known):
            msg = f"metrics={name!r} is not known. Did you mean metrics={listed}?"
            raise ArgumentError(msg)
        raise ArgumentError.from_choice("metrics", name, known)
    if list(asked).count(name) > 1:
        msg = f"metrics= names {name!r} twice; name each metric once."
        raise ArgumentError(msg)


def _other_kind(name: str, *, several_classes: bool) -> str:
    if several_classes:
        return (
            f"metric {name!r} is about one column of scores. For each class against the rest pass "
            "notion='classwise', for the largest score notion='confidence'."
        )
    return f"metric {name!r} is about three classes or more."
