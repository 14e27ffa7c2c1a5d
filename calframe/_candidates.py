"""What `validate` compares: methods that are fitted fold by fold, and maps that were fitted elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np

from calframe._errors import ArgumentError, warn
from calframe._fit import fit
from calframe._folds import Folds
from calframe._maps._applying import new_columns
from calframe._maps._fits import FEWEST
from calframe._maps._map import CalibrationMap
from calframe._out_of_fold import FoldedTable, folded_table, out_of_fold, roles_of, usable_rows
from calframe._roles import Roles
from calframe._source import opened
from calframe._typing import Floats

_ONE_FOR_ALL = "one map for all segments"


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """The table that methods are judged on.

    Attributes
    ----------
    frame : narwhals.DataFrame
        The table, in memory.
    plan : Folds
        How its rows are split.
    arguments : mapping of str to object
        The arguments that all fits share.
    roles : Roles
        What its columns are, by these.
    """

    frame: nw.DataFrame[Any]
    plan: Folds
    arguments: Mapping[str, Any]
    roles: Roles

    @cached_property
    def folded(self) -> FoldedTable:
        """The table in folds: checked once for all methods, and not at all where only fitted maps are judged."""
        return folded_table(self.frame, self.plan, self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibrated:
    """What a method makes of scores.

    Attributes
    ----------
    columns : list of ndarray
        One column, or one a class; NaN where a row has no calibrated score.
    note : str or None
        What is to be said of the method's segments.
    seen : bool
        Whether it is a map that was fitted on these very rows.
    """

    columns: list[Floats]
    note: str | None
    seen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refit:
    """A method that is fitted anew for each fold, by the arguments of `fit`."""

    arguments: Mapping[str, Any]

    def calibrated(self, table: Judged) -> Calibrated:
        """Calibrate each fold by a map of the others."""
        found = out_of_fold(table.folded, self.arguments)
        columns = found.columns[:1] if self.arguments["method"] == "venn_abers" else found.columns
        return Calibrated(
            columns=columns, note=self._note(found.pooled, found.maps) if found.pooled else None, seen=False
        )

    def _note(self, pooled: int, maps: int) -> str:
        """Say in how many folds one map served all segments, and why unless that was asked for."""
        given = self.arguments
        wanted = given.get("pooling") == "complete" or not given["by"] or given["method"] == "identity"
        when = "" if pooled == maps else f" in {pooled} of {maps} folds"
        why = "" if wanted else f": partial pooling needs {FEWEST} or more"
        return f"{_ONE_FOR_ALL}{when}{why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedMap:
    """A map that was fitted elsewhere, and is judged as it is."""

    map: CalibrationMap

    def calibrated(self, table: Judged) -> Calibrated:
        """Apply the map to all rows."""
        usable = usable_rows(table.frame, table.roles)
        rows = np.flatnonzero(usable)
        out = opened(self.map.apply(table.frame[rows].to_native(), name="_cf_applied"))
        columns = []
        for name in new_columns(self.map, "_cf_applied"):
            values = np.full(len(usable), np.nan)
            values[rows] = out.get_column(name).cast(nw.Float64).to_numpy()
            columns.append(values)
        return Calibrated(
            columns=columns if len(self.map.classes) > 2 else columns[:1],
            note=_ONE_FOR_ALL if self.map.pooling == "complete" else None,
            seen=self._has_seen(table),
        )

    def _has_seen(self, table: Judged) -> bool:
        """Tell whether these are the rows that the map was fitted on, and warn if so."""
        reader = "ovr_histogram" if self.map.method.startswith("ovr_") else "identity"
        given = {**roles_of(table.arguments), "method": reader, "by": None}
        if fit(table.frame.to_native(), **given).mark != self.map.mark:
            return False
        warn(
            f"the {self.map.method} map was fitted on these very rows, so its numbers here are too good; name the "
            "method instead, or judge it on other rows."
        )
        return True


Candidate: TypeAlias = Refit | FittedMap


def calibrated(methods: Mapping[str, Candidate], table: Judged) -> dict[str, Calibrated]:
    """Calibrate a table by each method."""
    return {name: method.calibrated(table) for name, method in methods.items()}


def candidates(methods: Any, arguments: Mapping[str, Any], roles: Roles) -> dict[str, Candidate]:
    """Return what is compared, by name."""
    if isinstance(methods, Mapping) and "method" not in methods:
        named: list[tuple[str | None, Any]] = [(str(name), one) for name, one in methods.items()]
    else:
        listed = [methods] if isinstance(methods, str | Mapping | CalibrationMap) else methods
        if not isinstance(listed, Sequence):
            msg = f"methods= takes a list, such as ['platt', 'isotonic']; got {methods!r}."
            raise ArgumentError(msg)
        named = [(None, one) for one in listed]
    asked: dict[str, Candidate] = {}
    for given, one in named:
        usual, found = _candidate(one, arguments, roles)
        name = usual if given is None else given
        if name in asked:
            msg = f"methods= has {name!r} twice; name them apart: methods={{'old': ..., 'new': ...}}."
            raise ArgumentError(msg)
        asked[name] = found
    if not asked:
        msg = "methods= is empty; name at least one method, for example 'platt'."
        raise ArgumentError(msg)
    return asked


def _candidate(one: Any, arguments: Mapping[str, Any], roles: Roles) -> tuple[str, Candidate]:
    """Return a method, and how it is called unless it is given a name."""
    if isinstance(one, CalibrationMap):
        if one.scores != roles.scores:
            msg = f"the {one.method} map was fitted on score {list(one.scores)}, and score= is {arguments['score']!r}."
            raise ArgumentError(msg)
        return f"{one.method} (fitted)", FittedMap(map=one)
    if isinstance(one, str):
        one = {"method": one}
    if not isinstance(one, Mapping) or not isinstance(one.get("method"), str):
        msg = f"methods= takes names, mappings with a 'method', or fitted maps; got {one!r}."
        raise ArgumentError(msg)
    fixed = sorted(roles_of(one).keys() - {"by"})
    if fixed:
        msg = f"{fixed[0]}= is the same for all methods; pass it to validate itself, not in methods=."
        raise ArgumentError(msg)
    more = ", ".join(f"{key}={value!r}" for key, value in one.items() if key != "method")
    return f"{one['method']}({more})" if more else one["method"], Refit(arguments={**arguments, **one})
