"""The tables behind `decide`: one row a segment, and one row a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calframe._cells import Groups, cells_plan, read_groups
from calframe._closing import Column, closed_frame, count_columns
from calframe._kernels._binned import ratio
from calframe._kernels._cluster_sums import ClusterSums
from calframe._kernels._tally import Tally
from calframe._notes import Notes
from calframe._reading import by_width, read_rows, read_with_clusters
from calframe._table import Table
from calframe._testing._cluster_rows import ClusterRows
from calframe._testing._decisions import (
    Acted,
    Costs,
    best_in_hindsight,
    expected_cost,
    net_benefit,
    net_benefit_of_all,
    regret_by_score,
    saved_by_acting,
    savings,
)
from calframe._typing import Floats, Ints

_CURVE = (
    "acted",
    "n",
    "cost",
    "cost_low",
    "cost_high",
    "net_benefit",
    "net_benefit_all",
    "standardised_net_benefit",
)
_SAVED = ("saved", "saved_low", "saved_high")
_AT_THRESHOLD = (
    "acted",
    "cost",
    "cost_low",
    "cost_high",
    "cost_all",
    "cost_none",
    *_SAVED,
    "net_benefit",
    "standardised_net_benefit",
)
_HINDSIGHT = (
    "threshold_in_hindsight",
    "cost_in_hindsight",
    "miscalibration_cost",
    "miscalibration_cost_by_score",
)
_VALUES = ("rate", *_AT_THRESHOLD, *_HINDSIGHT)
_ROWS_A_SCORE = 10  # of fewer, hindsight at each score is mostly luck
DECIDE_COLUMNS = frozenset({"threshold", *_VALUES, *_CURVE})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """What is decided by.

    Attributes
    ----------
    costs : Costs
        The costs of wrong decisions.
    threshold : float
        The threshold that follows from them.
    thresholds : ndarray of float64
        Where curves are drawn up, ascending.
    level : float
        Confidence level.
    """

    costs: Costs
    threshold: float
    thresholds: Floats
    level: float

    def all_thresholds(self) -> Floats:
        """Return the thresholds of the curves, the one decided by among them."""
        return np.unique(np.append(self.thresholds, self.threshold))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """The segments of a table, and what is said of them, in the user's library."""

    groups: Groups
    table: Any
    curve: Any


def decide_tables(table: Table, plan: Plan, *, engine: Any) -> Tables:
    """Return the tables of an opened table of predictions."""
    rows = read_rows(table, engine=engine)
    groups = read_groups(table, table.collect(cells_plan(table, (), bins=None, rows=rows)), ())
    thresholds = plan.all_thresholds()
    values = {name: np.full(len(groups), np.nan) for name in _VALUES}
    curves = {name: np.full((len(groups), len(thresholds)), np.nan) for name in _CURVE}
    for narrow, some in by_width(table, rows):
        for segments, tally, rows_of in read_with_clusters(table, some, groups):
            found, curve = _measured(tally, rows_of, plan, narrow=narrow)
            for name in _VALUES:
                values[name][segments] = found[name]
            for name in _CURVE:
                curves[name][segments] = curve[name]
    note: Column = _notes(groups, values)
    columns: dict[str, Column] = {
        **count_columns(table, groups),
        "rate": values.pop("rate"),
        "threshold": np.full(len(groups), plan.threshold),
        **values,
        "note": note,
    }
    segment, points = _points(groups, thresholds, curves)
    return Tables(
        groups=groups,
        table=closed_frame(table, groups, columns).to_native(),
        curve=closed_frame(table, groups, points, segment=segment).to_native(),
    )


def _measured(
    tally: Tally, rows: ClusterRows | None, plan: Plan, *, narrow: bool
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the values and the curves of some segments."""
    unit, costs = plan.costs.parted()
    thresholds = plan.all_thresholds()
    reached = thresholds.astype(np.float32).astype(np.float64) if narrow else thresholds
    acted = Acted.at(tally, reached)
    curve = _curves(acted, thresholds, costs, _of_costs(rows, reached, costs), level=plan.level)
    place = int(np.searchsorted(thresholds, plan.threshold))
    shared = None if rows is None else _of_savings(rows, reached[place], costs)
    positive, negative = tally.total(tally.positive), tally.total(tally.negative)
    weight = positive + negative
    best = best_in_hindsight(tally, costs)
    cost = curve["cost"][:, place]
    values = {name: curve[name][:, place] for name in _AT_THRESHOLD if name in curve}
    values |= {
        "rate": positive / weight,
        "cost_all": costs.fp * negative / weight,
        "cost_none": costs.fn * positive / weight,
        **dict(zip(_SAVED, saved_by_acting(acted.only(place), costs, level=plan.level, clusters=shared), strict=True)),
        "threshold_in_hindsight": best.threshold,
        "cost_in_hindsight": best.cost,
        "miscalibration_cost": np.maximum(cost - best.cost, 0.0),  # rounding may leave -1e-17
        "miscalibration_cost_by_score": np.where(
            tally.total(tally.rows) >= _ROWS_A_SCORE * tally.sizes,
            regret_by_score(tally, costs, float(reached[place])),
            np.nan,
        ),
    }
    return _in_units(values, unit), _in_units(curve, unit)


def _in_units(values: dict[str, Floats], unit: float) -> dict[str, Floats]:
    """Return costs in the units of the user, other values as they are."""
    return {name: found * unit if "cost" in name or name in _SAVED else found for name, found in values.items()}


def _of_costs(rows: ClusterRows | None, reached: Floats, costs: Costs) -> ClusterSums | None:
    """Return what clusters share of the cost at each threshold, where rows are in clusters."""
    return None if rows is None else rows.decided(reached, costs.fp * (1.0 - rows.label), costs.fn * rows.label)


def _of_savings(rows: ClusterRows, reached: float, costs: Costs) -> tuple[ClusterSums, ClusterSums]:
    """Return what they share of the savings against acting on all and on none at a threshold."""
    over_all, over_none = (
        rows.decided(np.array([reached]), *values).each(lambda one: one[:, 0]) for values in savings(rows.label, costs)
    )
    return over_all, over_none


def _curves(
    acted: Acted, thresholds: Floats, costs: Costs, clusters: ClusterSums | None, *, level: float
) -> dict[str, Floats]:
    benefit = net_benefit(acted, thresholds)
    cost, low, high = expected_cost(acted, costs, level=level, clusters=clusters)
    everyone = net_benefit_of_all(acted, thresholds)
    columns = (acted.share, acted.rows, cost, low, high, benefit, everyone, ratio(benefit, acted.rate))
    return dict(zip(_CURVE, columns, strict=True))


def _points(groups: Groups, thresholds: Floats, curves: dict[str, Floats]) -> tuple[Ints, dict[str, Column]]:
    """Return the segment and the columns of each point of the curves of the segments that have rows."""
    present = np.flatnonzero(groups.n > 0)
    columns: dict[str, Column] = {"threshold": np.tile(thresholds, len(present))}
    columns |= {name: curves[name][present].ravel() for name in _CURVE}
    columns["n"] = np.rint(curves["n"][present].ravel()).astype(np.int64)
    return np.repeat(present, len(thresholds)), columns


def _notes(groups: Groups, values: dict[str, Floats]) -> list[str | None]:
    """Say per segment what is missing or undefined; None where there is nothing to say."""
    empty = groups.n == 0
    spread = np.isnan(values["miscalibration_cost_by_score"]) & ~empty
    marks = {
        "only negatives": values["rate"] == 0.0,
        "only positives": values["rate"] == 1.0,
        f"miscalibration_cost_by_score: fewer than {_ROWS_A_SCORE} rows a score": spread,
        "acting on no one costs least in hindsight": np.isnan(values["threshold_in_hindsight"]) & ~empty,
    }
    made = Notes.of_counts(groups.n, groups.n_zero)
    for text, where in marks.items():
        made.add(text, where)
    return made.lines()
