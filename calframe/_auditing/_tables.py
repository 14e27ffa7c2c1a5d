"""From a table to the tables of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from calframe._auditing._bands import banded
from calframe._auditing._clusters import scatter, whole_scatter
from calframe._auditing._crossings import Names, key_columns, segment_names
from calframe._auditing._finest import Read, read_finest
from calframe._auditing._gaps import Compared, SegmentSums, compared, judged, judged_columns, shrunken_gaps
from calframe._auditing._reference import reference_group
from calframe._auditing._score_cells import LogitBins, search_cells
from calframe._kernels._corrections import Correction
from calframe._notes import Notes
from calframe._roles import Roles
from calframe._table import Table, open_table
from calframe._testing._disparities import Disparity, largest_gap_difference, smallest_ratio
from calframe._testing._scatter import CLUSTER_TERMS
from calframe._testing._search import Search, search
from calframe._typing import Bools, Floats, Json
from calframe._verdicts import MIN_EVENTS, SHOWN_ROWS, Judged, Rules, worst_first

_TERMS = ("w2", "wy", "wp")
_SEARCH_TERMS = (*_TERMS, "variance", "w2_variance")
_COMPARED = tuple(
    f"{name}_to_{other}{end}"
    for other in ("rest", "reference")
    for name, end in (("gap", ""), ("gap", "_low"), ("gap", "_high"), ("pvalue", ""), ("pvalue", "_adjusted"))
)
_RESERVED = frozenset(
    {
        *("depth", "columns", "segment", "n", "n_missing", "n_invalid", "weight_sum", "rate", "mean_score", "gap"),
        *("n_clusters", "design_effect"),
        *("gap_low", "gap_high", "simultaneous_low", "simultaneous_high", "gap_shrunken", "gap_shrunken_sd"),
        *("ecce", "ecce_pvalue", "ecce_pvalue_adjusted", "pvalue", "pvalue_adjusted", "verdict", "rows_needed"),
        *("net", "note", *_COMPARED),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What an audit is asked for, checked: the arguments of the verb, and whether to give the segment columns."""

    depth: int
    reference: Mapping[str, Any]
    tolerance: float
    alpha: float
    correction: Correction
    min_rows: int
    numeric_bins: int | None
    max_segments: int
    ecce: bool
    n_resamples: int
    seed: int
    keyed: bool = True

    @property
    def rules(self) -> Rules:
        """What gaps are judged by."""
        return Rules(
            tolerance=self.tolerance, alpha=self.alpha, correction=self.correction, min_rows=float(self.min_rows)
        )

    def convention(self) -> Json:
        """Return the options as results state them."""
        names = ("depth", "tolerance", "alpha", "correction", "min_rows", "numeric_bins", "max_segments", "ecce")
        drawn = {"n_resamples": self.n_resamples, "rng": self.seed} if self.ecce else {}
        return {name: getattr(self, name) for name in names} | {"reference": dict(self.reference) or None} | drawn


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audited:
    """What an audit found: its tables as polars, worst first; all rows as one segment; the search; names and more.

    `whole` are the sums behind `overall`.
    """

    table: pl.DataFrame
    disparities: pl.DataFrame
    overall: Json
    whole: SegmentSums
    multicalibration: Json | None
    convention: Json
    names: Names


def audited(data: Any, roles: Roles, options: AuditOptions, *, engine: Any) -> Audited:
    """Run the aggregate and work out everything from its sums."""
    table = open_table(data, roles, reserved=_RESERVED if options.keyed else frozenset())
    cut = banded(table, bands=options.numeric_bins, most=options.max_segments, engine=engine)
    table = cut.table
    ecce = options.ecce and table.cluster is None  # its laws are those of independent rows
    options = replace(options, ecce=ecce)
    read = read_finest(
        cut,
        (*(_SEARCH_TERMS if ecce else _TERMS), *(CLUSTER_TERMS if table.cluster else ())),
        bins=LogitBins.usual() if ecce else None,
        depth=options.depth,
        joint=options.depth > 1 or bool(options.reference),
        most=options.max_segments,
        engine=engine,
    )
    work = _Work.of(read, options, frequency=roles.counts_rows)
    names = segment_names(read.crossings, read.levels)
    found = work.table(table, names)
    order = worst_first(work.judged.verdict, np.nan_to_num(found["net"].to_numpy()))
    return Audited(
        table=found[order],
        disparities=work.disparities(names.segment),
        overall=work.overall(),
        whole=work.whole,
        multicalibration=work.multicalibration(names.segment),
        names=names,
        convention={
            "bands": {name: list(bands) for name, bands in cut.names.items()},
            "empty_categories": dict(read.empty),
            "n_comparisons": work.judged.comparisons,
            "compared_with": "reference" if options.reference else "rest",
            "ecce": ecce,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Work:
    """The numbers of all segments."""

    read: Read
    options: AuditOptions
    whole: SegmentSums
    sums: SegmentSums
    judged: Judged
    compared: Compared
    search: Search | None

    @classmethod
    def of(cls, read: Read, options: AuditOptions, *, frequency: bool) -> _Work:
        """Add up, judge, compare and search."""
        finest, crossings, rules = read.finest, read.crossings, options.rules
        cells = SegmentSums.of_cells(finest.n, finest.cells.total, frequency=frequency)
        sums = cells.over(crossings)
        inside = reference_group(options.reference, read.levels) if options.reference else None
        whole = cells.whole(finest.once if inside is None else inside)
        other = whole.without(sums if inside is None else cells.over(crossings, only=inside))
        everything, size, enough = cells.whole(finest.once), sums.rows, sums.enough(options.min_rows)
        if len(finest.cluster):
            own, others = scatter(finest, crossings, sums.gap, inside, other.gap)
            tail = options.alpha / (2.0 * max(int(enough.sum()), 1))
            sums, other = sums.clustered(own, tail), other.clustered(others, tail)
            everything = everything.clustered(whole_scatter(finest, everything.gap), options.alpha / 2.0)
        return cls(
            read=read,
            options=options,
            whole=everything,
            sums=sums,
            judged=judged(sums, rules, size=size),
            compared=compared(sums, other, rules),
            search=_search(read, enough, options) if options.ecce else None,
        )

    def table(self, table: Table, names: Names) -> pl.DataFrame:
        """Return the rows of all segments, in the order of families."""
        sums, verdicts = self.sums, self.judged
        overall = float(self.whole.gap[0])
        small = shrunken_gaps(sums, self.read.crossings.starts, overall)
        numbers = {
            **judged_columns(sums, verdicts),
            "gap_shrunken": small.mean,
            "gap_shrunken_sd": small.deviation,
            **self._comparison(),
            **self._errors(),
            "pvalue": verdicts.pvalue,
            "pvalue_adjusted": verdicts.pvalue_adjusted,
        }
        frame = pl.DataFrame(
            {
                "depth": (self.read.crossings.codes >= 0).sum(axis=1),
                "columns": names.columns,
                "segment": names.segment,
                **(key_columns(self.read.crossings, self.read.levels) if self.options.keyed else {}),
                **self._counts(table),
                **sums.told_clusters(),
                **numbers,
                "verdict": list(verdicts.verdict),
                "rows_needed": verdicts.rows_needed,
                "net": sums.count * sums.gap,
                "note": pl.Series(self._notes(), dtype=pl.String),
            }
        )
        told = [*numbers, *sums.told_clusters(), "rows_needed", "net"]
        shown = pl.col("n") >= SHOWN_ROWS  # the numbers of one or two rows would be those rows
        return frame.with_columns(pl.when(shown).then(pl.col(told).fill_nan(None)))

    def disparities(self, names: list[str]) -> pl.DataFrame:
        """Return the largest difference, and smallest ratio, of the segments of each single column."""
        level, rows = 1.0 - self.options.alpha, []
        enough = self.sums.enough(self.options.min_rows)
        for family, first, segment in zip(
            self.read.crossings.families, self.read.crossings.starts, self.read.crossings.segment, strict=True
        ):
            if len(family) > 1:
                continue
            own = np.arange(first, segment.max() + 1)
            kept = own[enough[own]]
            values = (self.sums.rate[kept], self.sums.mean_score[kept], self.sums.rows[kept])
            for measure, work in (("gap", largest_gap_difference), ("ratio", smallest_ratio)):
                found = work(*values, level=level)
                ends = [names[kept[place]] if place >= 0 else None for place in (found.top, found.bottom)]
                rows.append(
                    {
                        "column": self.read.levels[family[0]].column,
                        "measure": measure,
                        **_disparity(found),
                        "highest": ends[0],
                        "lowest": ends[1],
                        "n_segments": len(kept),
                        "n_left_out": len(own) - len(kept),
                        "note": _disparity_note(found, len(kept)),
                    }
                )
        return pl.DataFrame(rows, schema=_DISPARITIES)

    def overall(self) -> Json:
        """Return all rows as one segment, judged alone."""
        whole = self.whole
        alone = judged(whole, self.options.rules)
        values = {
            "rate": whole.rate,
            "mean_score": whole.mean_score,
            "gap": whole.gap,
            "gap_low": alone.low,
            "gap_high": alone.high,
            "pvalue": alone.pvalue,
            "rows_needed": alone.rows_needed,
        }
        return {
            "n": int(self.read.finest.n[self.read.finest.once].sum()),
            "n_missing": int(self.read.finest.n_missing[self.read.finest.once].sum()),
            "n_invalid": int(self.read.finest.n_invalid[self.read.finest.once].sum()),
            **{name: _number(array[0]) for name, array in values.items()},
            "verdict": alone.verdict[0],
        }

    def multicalibration(self, names: list[str]) -> Json | None:
        """Return the largest cumulative error of the segments judged; None if they were not looked at."""
        if self.search is None:
            return None
        looked = ~np.isnan(self.search.pvalue_adjusted)
        stated = {"law": self.search.law, "n_segments": int(looked.sum()), "n_resamples": None}
        if self.search.law == "resampling":
            stated["n_resamples"] = self.options.n_resamples
        if not looked.any():
            return {"segment": None, "ecce": None, "pvalue": None, **stated}
        order = np.lexsort((-np.nan_to_num(self.search.error), np.where(looked, self.search.pvalue_adjusted, 2.0)))
        worst = int(order[0])
        return {
            "segment": names[worst],
            "ecce": _number(self.search.error[worst]),
            "pvalue": _number(self.search.pvalue_adjusted[worst]),
            **stated,
        }

    def _counts(self, table: Table) -> dict[str, Any]:
        total = self.read.crossings.total
        counts: dict[str, Any] = {"n": _whole(self.sums.n), "n_missing": _whole(total(self.read.finest.n_missing))}
        if table.roles.invalid == "drop":
            counts["n_invalid"] = _whole(total(self.read.finest.n_invalid))
        if table.weighted:
            counts["weight_sum"] = self.sums.weight
        return counts

    def _comparison(self) -> dict[str, Floats]:
        other = "reference" if self.options.reference else "rest"
        return {
            f"gap_to_{other}": self.compared.difference,
            f"gap_to_{other}_low": self.compared.low,
            f"gap_to_{other}_high": self.compared.high,
            f"pvalue_to_{other}": self.compared.pvalue,
            f"pvalue_to_{other}_adjusted": self.compared.pvalue_adjusted,
        }

    def _errors(self) -> dict[str, Floats]:
        if self.search is None:
            return {}
        found = self.search
        return {
            "ecce": found.error,
            "ecce_pvalue": found.pvalue,
            "ecce_pvalue_adjusted": found.pvalue_adjusted,
        }

    def _notes(self) -> list[str | None]:
        """Say per segment why something is missing."""
        sums, zero = self.sums, _whole(self.read.crossings.total(self.read.finest.n_zero))
        made = Notes.of_counts(np.rint(sums.n).astype(np.int64), zero)
        said: list[tuple[Bools, str]] = [
            ((sums.n > 0) & (sums.n < SHOWN_ROWS), f"fewer than {SHOWN_ROWS} rows: no numbers shown"),
            (
                (sums.n >= SHOWN_ROWS) & ~sums.enough(self.options.min_rows),
                f"not judged: fewer than {self.options.min_rows:,} effective rows",
            ),
            (
                sums.enough(self.options.min_rows) & ~sums.eventful(),
                f"gap not judged: fewer than {MIN_EVENTS} of one outcome, seen or expected"
                if sums.units is None
                else f"gap not judged: too few clusters to be sure of {MIN_EVENTS} of each outcome",
            ),
            ((sums.n >= SHOWN_ROWS) & np.isnan(self.compared.difference), "no other rows to compare with"),
        ]
        for where, text in said:
            made.add(text, where)
        return made.lines()


def _search(read: Read, enough: Bools, options: AuditOptions) -> Search:
    return search(
        search_cells(read.finest),
        read.crossings.segment,
        enough,
        n_resamples=options.n_resamples,
        rng=np.random.default_rng(options.seed),
    )


_DISPARITIES = {
    "column": pl.String,
    "measure": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "highest": pl.String,
    "lowest": pl.String,
    "n_segments": pl.Int64,
    "n_left_out": pl.Int64,
    "note": pl.String,
}


def _disparity(found: Disparity) -> dict[str, float | None]:
    return {"value": _number(found.value), "low": _number(found.low), "high": _number(found.high)}


def _disparity_note(found: Disparity, count: int) -> str | None:
    if count < 2:
        return "fewer than two segments have rows enough"
    return "fewer than two segments have a ratio" if found.top < 0 else None


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def _whole(values: Floats) -> Any:
    return np.rint(values).astype(np.int64)
