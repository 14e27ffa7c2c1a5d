"""The tables of the result: periods with their numbers, and what changes are made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from calframe._drifting._comparing import Comparison, comparison_columns, notes, parts_of
from calframe._drifting._days import judge_sums
from calframe._drifting._frames import as_dates
from calframe._drifting._numbers import Lines, Options, binned_columns, corrected, judged_lines, zero_pvalue
from calframe._kernels._intervals import sidak_level
from calframe._testing._summed import Sums
from calframe._typing import Ints

TABLE = (
    "period",
    "n",
    "n_missing",
    "n_invalid",
    "weight_sum",
    "rate",
    "mean_score",
    "gap",
    "gap_low",
    "gap_high",
    "simultaneous_low",
    "simultaneous_high",
    "verdict",
    "ece",
    "ece_expected",
    "brier",
    "reliability",
    "resolution",
    "uncertainty",
    "within_bin",
    "psi",
    "psi_expected",
    "psi_pvalue",
    "psi_pvalue_adjusted",
    "psi_empty_bins",
    "wasserstein",
    "ks",
    "ks_pvalue",
    "ks_pvalue_adjusted",
    "ks_law",
    "gap_change",
    "gap_change_low",
    "gap_change_high",
    "gap_change_simultaneous_low",
    "gap_change_simultaneous_high",
    "gap_change_pvalue",
    "gap_change_pvalue_adjusted",
    "gap_pvalue",
    "gap_pvalue_adjusted",
    "note",
)
_LAWS = {1.0: "exact", 0.0: "limit"}
_ENDS = {"gap": "gap", "gap_low": "low", "gap_high": "high"}
_REFERENCE = pl.Schema(
    {
        "model": pl.String(),
        "n": pl.Int64(),
        **dict.fromkeys(_ENDS, pl.Float64()),
        "verdict": pl.String(),
    }
)
_MEASURES = ("gap", "brier")
PARTS = ("measure", "reference", "score_mix", "class_prior", "rest", "current")


def periods_table(lines: Lines, found: Comparison, options: Options) -> nw.DataFrame[Any]:
    """Return the table of periods in the user's library."""
    judged, sums = judged_lines(lines, options), Sums.of_tally(lines.tally)
    columns = _counts(lines)
    columns |= {
        "rate": lines.spread(sums.rate),
        "mean_score": lines.spread(sums.mean_score),
        "gap": judged.gap,
        "gap_low": judged.low,
        "gap_high": judged.high,
        "simultaneous_low": judged.sim_low,
        "simultaneous_high": judged.sim_high,
        "verdict": list(judged.verdict),
    }
    columns |= {name: lines.spread(values) for name, values in binned_columns(lines, options).items()}
    columns |= comparison_columns(lines, found, options, judged)
    columns["ks_law"] = [_LAWS.get(value) for value in columns.pop("ks_exact").tolist()]
    for name in ("psi_pvalue", "ks_pvalue", "gap_change_pvalue"):
        columns[f"{name}_adjusted"] = corrected(lines, columns[name], options)
    columns["gap_pvalue"], columns["gap_pvalue_adjusted"] = zero_pvalue(lines), judged.pvalue_adjusted
    columns["note"] = notes(lines, found, columns)
    return _dated(lines, {name: columns[name] for name in TABLE if name in columns}, lines.series, lines.period)


def _counts(lines: Lines) -> dict[str, Any]:
    groups, roles = lines.reading.groups, lines.reading.table.roles
    columns: dict[str, Any] = {"n": lines.counts(groups.n), "n_missing": lines.counts(groups.n_missing)}
    if roles.invalid == "drop":
        columns["n_invalid"] = lines.counts(groups.n_invalid)
    if roles.weight is not None:
        columns["weight_sum"] = np.nan_to_num(lines.spread(lines.tally.total(lines.tally.weight)))
    return columns


def parts_table(lines: Lines, found: Comparison) -> nw.DataFrame[Any]:
    """Return what changes are made of, two rows a compared line."""
    line = np.repeat(found.lines, len(_MEASURES))
    both = parts_of(found)
    columns: dict[str, Any] = {"measure": list(_MEASURES) * len(found.lines)}
    for name in PARTS[1:]:
        each = [getattr(part, name) for part in both] if both else [np.zeros(0)] * len(_MEASURES)
        columns[name] = np.stack(each, axis=1).ravel()
    return _dated(lines, columns, lines.series[line], lines.period[line])


def _dated(lines: Lines, columns: dict[str, Any], series: Ints, period: Ints) -> nw.DataFrame[Any]:
    """Return columns behind keys, model and period."""
    starts = lines.reading.days.periods.starts
    known = lines.reading.table.roles.time is not None
    text = [starts[place].isoformat() if known else None for place in period.tolist()]
    return as_dates(lines.reading.frame({"period": text, **columns}, series), "period")


def reference_table(lines: Lines, found: Comparison, options: Options) -> pl.DataFrame:
    """Return what the reference itself is like, over all segments: one row a model; none for a rolling one."""
    days = lines.reading.days
    if found.references.owner is None:
        return pl.DataFrame(schema=_REFERENCE)
    model, count = lines.reading.model[found.references.owner], len(days.models)
    alpha = 1.0 - sidak_level(1.0 - options.rules.alpha, count)  # one of many models is soon off by chance
    sums = found.references.over(model, count, alpha)
    parts = [judge_sums(sums.at(np.array([i])), replace(options.rules, alpha=alpha)) for i in range(count)]
    columns = {name: [float(getattr(part, end)[0]) for part in parts] for name, end in _ENDS.items()}
    frame = pl.DataFrame(
        {
            "model": list(days.models),
            "n": np.rint(sums.n).astype(np.int64),
            **columns,
            "verdict": [part.verdict[0] for part in parts],
        },
        schema=_REFERENCE,
    )
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))
