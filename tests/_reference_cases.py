"""The independent reference values, the tables that they are of, and calframe's numbers for them."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl

import calframe
from calframe import conventions

Entry = dict[str, Any]
Array = np.ndarray[Any, Any]
Arguments = dict[str, Any]
Place = tuple[Path, str, str | None, str]
BINNED = ("ece", "mce", "ace", "rmsce", "ece_debiased", "reliability", "resolution", "uncertainty")
LEAST = 1e-12  # no tolerance is below: the last digits of float64 are not asked for

_FOUND: dict[Any, dict[str, list[float]]] = {}  # metrics of one table and one set of arguments, asked for together


@cache
def entries(folder: Path) -> list[Entry]:
    """Return the values, without those of maps."""
    lines = (folder / "reference" / "reference.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry for entry in map(json.loads, lines) if not entry["id"].startswith("cal|")]


@cache
def checker(folder: Path) -> ModuleType:
    """Return the script that holds calframe against the values which have a call of their own."""
    spec = importlib.util.spec_from_file_location("reference_check", folder / "check" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.__dict__["args"] = argparse.Namespace(bed=folder, frame="polars")
    return module


@cache
def binary_table(place: Place, extra: tuple[str, ...]) -> pl.DataFrame:
    folder, *rest = place
    return pl.from_pandas(checker(folder).binary(*rest, extra))


@cache
def stack(folder: Path) -> tuple[list[Place], pl.DataFrame]:
    """Return all tables of one column of scores, one under the other, and what they are of."""
    binary = [entry for entry in entries(folder) if entry["id"].startswith("bin|") and entry["metric"] == "n"]
    places = [(folder, entry["table"], entry["where"], entry["score"]) for entry in binary]
    each = [
        binary_table(place, ()).select("y", p=pl.col(place[3]), at=pl.lit(number))
        for number, place in enumerate(places)
    ]
    return places, pl.concat(each)


@cache
def class_table(place: Place) -> tuple[pl.DataFrame, dict[Any, str]]:
    folder, table, where, score = place
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the script's reading
        frame, mapping = checker(folder).multiclass({"table": table, "where": where, "score": f"{score.rstrip('*')}*"})
    return pl.from_pandas(frame), mapping


@dataclass(frozen=True)
class Case:
    """One value of the reference, its table, and what a line's pattern found in its name."""

    entry: Entry
    folder: Path
    found: re.Match[str]

    @property
    def bins(self) -> int:
        return int(self.found["bins"])

    @property
    def several(self) -> bool:
        return self.entry["id"].startswith(("multi|", "seed|"))

    @property
    def place(self) -> Place:
        entry = self.entry
        return self.folder, entry["table"], entry["where"], entry["score"]

    @property
    def groups(self) -> list[str]:
        return list(self.entry["args"].get("groups", [])) if self.entry["id"].startswith("grp|") else []

    @property
    def weight(self) -> str | None:
        return self.entry["args"].get("weight", "w") if self.entry["id"].startswith("wgt|") else None

    @property
    def table(self) -> pl.DataFrame:
        if self.several:
            return class_table(self.place)[0]
        return binary_table(self.place, (*self.groups, *([self.weight] if self.weight else [])))

    @property
    def score(self) -> Any:
        return class_table(self.place)[1] if self.several else self.entry["score"]

    @property
    def p(self) -> Array:
        return self.table[self.entry["score"]].to_numpy()

    @property
    def confidence(self) -> Array:
        if self.several:
            return self.table.select(self.score.values()).cast(pl.Float64).to_numpy().max(axis=1)
        return np.maximum(self.p, 1 - self.p)

    def ask(self, names: Iterable[str], arguments: Arguments, table: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return the metrics of the table, or of other rows or types of it."""
        fixed = {"weight": self.weight} if self.weight else {"by": self.groups or None}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="log_loss is infinite", category=calframe.CalframeWarning)
            return calframe.metrics(
                self.table if table is None else table,
                label="y",
                score=self.score,
                metrics=list(names),
                **{**fixed, **arguments},
            )

    def numbers(self, names: str, arguments: Arguments, *, everywhere: bool = False) -> list[float]:
        """Return metrics of the table, one after the other; of each all rows of the result, in order.

        With `everywhere` they are computed on all tables of one column of scores at once, as segments of one table.
        """
        asked = names.split()
        batch = BINNED if set(asked) <= set(BINNED) else tuple(asked)
        rest = (self.weight, batch, json.dumps(arguments, sort_keys=True, default=str))
        if (self.place, *rest) not in _FOUND and everywhere:
            places, table = stack(self.folder)
            found = calframe.metrics(table, label="y", score="p", by="at", metrics=list(batch), **arguments)
            for row in found.rows(named=True):
                _FOUND[(places[row["at"]], *rest)] = {name: [row[name]] for name in batch}
        if (self.place, *rest) not in _FOUND:
            _FOUND[(self.place, *rest)] = self.ask(batch, arguments).select(batch).to_dict(as_series=False)
        return [value for name in asked for value in _FOUND[(self.place, *rest)][name]]


# ------------------------------------------------------------------ arguments
def of(name: str, bins: int | None = None) -> Arguments:
    """Return the arguments of a convention without its metrics."""
    return {key: value for key, value in conventions[name](bins).items() if key != "metrics"}


def between(edges: Iterable[float], closed: str = "right") -> Arguments:
    return {"bins": sorted({float(edge) for edge in edges}), "closed": closed}


def linspace(bins: int, closed: str = "right") -> Arguments:
    return between(np.linspace(0, 1, bins + 1), closed)


def quantiles(p: Array, bins: int) -> Arguments:
    """Edges at type-7 quantiles; where they are all one, with room below."""
    edges = np.quantile(p, np.linspace(0, 1, bins + 1))
    return between([edges[0] - 1, *edges] if edges[0] == edges[-1] else edges)


def midpoints(p: Array, bins: int) -> Arguments:
    """Edges halfway between the equal parts of the sorted scores."""
    split = np.array_split(np.sort(p), min(bins, len(p)))
    return between([0.0, *((low[-1] + high[0]) / 2 for low, high in pairwise(split)), 1.0])


def discrete(p: Array) -> Arguments:
    """Edges halfway between scores where these are few, else between 15 equal parts, as uncertainty-calibration."""
    scores = np.unique(p)
    if len(scores) < len(p) / 4:
        return between([0.0, *(scores[:-1] + scores[1:]) / 2, 1.0])
    return midpoints(p, 15)


# ------------------------------------------------------------------ what becomes of a value
@dataclass(frozen=True, kw_only=True)
class Line:
    """Values that belong together, and what becomes of them.

    `verdict` is "checked" (by the script beside the values), "reproduced" (here), "not offered", or the verb that they
    come with. Of reproduced ones, `names` are metrics and `arguments` their arguments for a case; `own` computes
    something else instead. `pick` are the places in the reference value, `want` another reading of it; `table` gives
    other rows or types of the table; `everywhere` says that the arguments are the same for all tables. For cases where
    `unless` holds, `why` says what keeps the numbers apart.
    """

    kind: str
    metric: str
    source: str = ""
    verdict: str = "reproduced"
    why: str = ""
    names: str = ""
    arguments: Callable[[Case], Arguments] = field(default=lambda _: {})
    own: Callable[[Case], list[float]] | None = None
    after: Callable[[Case, list[float]], list[float]] = field(default=lambda _, numbers: numbers)
    table: Callable[[Case], pl.DataFrame] | None = None
    pick: tuple[int, ...] | None = None
    want: Callable[[Any], list[float]] | None = None
    unless: Callable[[Case], bool] | None = None
    everywhere: bool = False
    tolerance: float | None = None

    def covers(self, entry: Entry) -> re.Match[str] | None:
        if not entry["id"].startswith(f"{self.kind}|") or not entry["source"].startswith(self.source):
            return None
        return re.fullmatch(self.metric, entry["metric"])

    def case(self, entry: Entry, folder: Path) -> Case:
        found = self.covers(entry)
        assert found is not None
        return Case(entry, folder, found)

    def expected(self, entry: Entry) -> list[float | None]:
        value = entry["value"]
        values = self.want(value) if self.want else value if isinstance(value, list) else [value]
        kept = [values[place] for place in self.pick] if self.pick else values
        return [None if number is None else float(number) for number in kept]

    def got(self, case: Case) -> list[float]:
        if self.own:
            return self.own(case)
        names = self.names or case.found["name"]
        if self.table:
            found = case.ask(names.split(), self.arguments(case), self.table(case))
            return self.after(case, [value for name in names.split() for value in found[name].to_list()])
        return self.after(case, case.numbers(names, self.arguments(case), everywhere=self.everywhere))

    def agrees(self, case: Case) -> bool:
        stated = case.entry["tolerance"]
        tolerance = self.tolerance or max(LEAST, stated if isinstance(stated, float) else 0.0)
        wanted, got = self.expected(case.entry), self.got(case)
        assert len(wanted) == len(got)
        return all(w is None or close(w, g, tolerance) for w, g in zip(wanted, got, strict=True))


def close(wanted: float, got: float | None, tolerance: float) -> bool:
    return got is not None and (wanted == got or math.isclose(wanted, got, rel_tol=tolerance, abs_tol=tolerance))


def by_group(value: Mapping[str, Any]) -> list[Any]:
    """Return the values of the groups in the order of their names, without the whole."""
    return [value[name] for name in sorted(value) if name != "overall"]
