"""What `validate` compares: methods that are fitted fold by fold, and maps that were fitted elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._cross_fit import in_memory, out_of_fold, roles_of, usable_rows
from calframe._errors import ArgumentError, warn
from calframe._fit import fit
from calframe._folds import Folds
from calframe._maps._applying import new_columns
from calframe._maps._map import CalibrationMap
from calframe._source import opened
from calframe._typing import Floats


def candidates(methods: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is compared, by name: maps, or the arguments of fits."""
    if isinstance(methods, Mapping) and "method" not in methods:
        named: list[tuple[str | None, Any]] = [(str(name), one) for name, one in methods.items()]
    else:
        listed = [methods] if isinstance(methods, str | Mapping | CalibrationMap) else methods
        if not isinstance(listed, Sequence):
            msg = f"methods= takes a list, such as ['platt', 'isotonic']; got {methods!r}."
            raise ArgumentError(msg)
        named = [(None, one) for one in listed]
    asked: dict[str, Any] = {}
    for name, one in named:
        default, found = _method(one, arguments)
        if (name or default) in asked:
            msg = f"methods= has {default!r} twice; name them: methods={{'old': ..., 'new': ...}}."
            raise ArgumentError(msg)
        asked[name or default] = found
    if not asked:
        msg = "methods= is empty; name at least one method, for example 'platt'."
        raise ArgumentError(msg)
    return asked


def _method(one: Any, arguments: Mapping[str, Any]) -> tuple[str, Any]:
    """Return how a method is called, and a map or the arguments of a fit."""
    if isinstance(one, CalibrationMap):
        score = arguments["score"]
        if one.scores != ((score,) if isinstance(score, str) else tuple(score.values())):
            msg = f"the {one.method} map was fitted on score {list(one.scores)}, and score= is {score!r}."
            raise ArgumentError(msg)
        return f"{one.method} (fitted)", FittedMap(map=one, arguments=roles_of(arguments))
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
    return f"{one['method']}({more})" if more else one["method"], {**arguments, **one}


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedMap:
    """A map that was fitted elsewhere, and the columns of the table that it is judged on."""

    map: CalibrationMap
    arguments: Mapping[str, Any]

    def has_seen(self, frame: Any) -> bool:
        """Tell whether these are the rows that the map was fitted on, and warn if so."""
        reader = "ovr_histogram" if self.map.method.startswith("ovr_") else "identity"
        if fit(frame, **{**self.arguments, "method": reader, "by": None}).mark != self.map.mark:
            return False
        warn(
            f"the {self.map.method} map was fitted on these very rows, so its numbers here are too good; name the "
            "method instead, or judge it on other rows."
        )
        return True


def calibrated_by(method: Any, frame: Any, plan: Folds) -> list[Floats]:
    """Return the calibrated columns of a method, those of an interval left out."""
    if not isinstance(method, FittedMap):
        found = out_of_fold(frame, plan, method).columns
        return found[:1] if method["method"] == "venn_abers" else found
    usable = usable_rows(frame, method.arguments)
    out = opened(method.map.apply(in_memory(frame).filter(usable.tolist()).to_native(), name="_cf_applied"))
    columns = []
    for name in new_columns(method.map, "_cf_applied"):
        values = np.full(len(usable), np.nan)
        values[usable] = out.get_column(name).cast(nw.Float64).to_numpy()
        columns.append(values)
    return columns if method.map.classes else columns[:1]
