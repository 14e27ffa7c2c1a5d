"""The limits of a gate, read from the options of `calframe check`."""

from __future__ import annotations

import difflib
import math

import click

from calframe._gate._rules import Rule
from calframe._measures import known_metrics


def read_limits(_context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """Read `METRIC=VALUE`, given once for each metric."""
    limits: dict[str, float] = {}
    for text in values:
        name, _, value = text.partition("=")
        if name in limits:
            msg = f"it limits {name!r} twice."
            raise click.BadParameter(msg)
        _check_metric(name, str(option.name))
        limits[name] = _number(text, value)
    return limits


def rules_of(
    *,
    max_gap: float | None,
    max_ece: float | None,
    max_drift: float | None,
    most: dict[str, float],
    least: dict[str, float],
) -> list[Rule]:
    """Return the rules that were asked for.

    Raises
    ------
    click.UsageError
        If there is none: no limit is right for everyone.
    """
    rules = [] if max_gap is None else [Rule(name="max-gap", kind="gap", metric="gap", limit=max_gap)]
    rules += [] if max_ece is None else [Rule(name="max-ece", kind="max", metric="ece", limit=max_ece)]
    rules += [Rule(name=f"max {name}", kind="max", metric=name, limit=limit) for name, limit in most.items()]
    rules += [Rule(name=f"min {name}", kind="min", metric=name, limit=limit) for name, limit in least.items()]
    rules += [] if max_drift is None else [Rule(name="max-drift", kind="drift", metric="gap", limit=max_drift)]
    if not rules:
        msg = "there is nothing to check: give a limit, such as --max-gap 0.03, --max-ece 0.02 or --min auc=0.7."
        raise click.UsageError(msg, click.get_current_context())
    return rules


def _check_metric(name: str, option: str) -> None:
    """Raise unless a name is that of a metric with an interval."""
    known = known_metrics(several_classes=False)
    able = [other for other, metric in known.items() if metric.interval is not None and not metric.posterior]
    if name in able:
        return
    near = difflib.get_close_matches(name, able, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Metrics with one are {', '.join(able)}."
    what = "has no interval, so no limit can be checked" if name in known else "is no metric with an interval"
    msg = f"{name!r} {what}; write METRIC=VALUE, such as {'auc=0.7' if option == 'least' else 'brier=0.2'}. {hint}"
    raise click.BadParameter(msg)


def _number(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        msg = f"{text!r} has no number behind the sign; write METRIC=VALUE, such as brier=0.2."
        raise click.BadParameter(msg)
    return number
