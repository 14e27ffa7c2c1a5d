"""The tables of tests: what each says of each segment, and the groups that one of them compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calframe._cells import Groups
from calframe._closing import Column, class_values, closed_frame, count_columns
from calframe._notes import Notes
from calframe._results import flagged
from calframe._table import Table
from calframe._tested import Judged
from calframe._testing._found import Found
from calframe._testing._group_rows import GroupRows
from calframe._words._listing import SHOWN, key_columns, key_name, listing
from calframe._words._numbers import pvalue

GROUP_COLUMNS = ("bin", "lower", "upper", "observed", "expected")
_NAME_WIDTH = 40


def _notes(groups: Groups, found: Found) -> list[str | None]:
    made = Notes.of_counts(groups.n, groups.n_zero)
    made.add_each(found.note)
    return made.lines()


def rejected_lines(rows: Sequence[Mapping[str, Any]], by: Sequence[str]) -> list[str]:
    """Return a line for each of the first few rows that are rejected, smallest p-values first; of one row its own."""
    if len(rows) == 1 and rows[0]["pvalue"] is not None:
        return [f"  statistic {rows[0]['statistic']:.4g}, p {pvalue(rows[0]['pvalue'])}"]
    rejected = sorted((row for row in rows if row["reject"]), key=lambda row: row["pvalue_adjusted"])
    if len(rows) < 2 or not rejected:
        return []
    several = [name for name in ("method", "hypothesis") if len({row[name] for row in rows}) > 1]
    keys = [*key_columns(by, rows[0].keys()), *several]
    shown = rejected[:SHOWN]
    names = [key_name(row[key] for key in keys) for row in shown]
    texts = [f"statistic {row['statistic']:.4g}, adjusted p {pvalue(row['pvalue_adjusted'])}" for row in shown]
    return listing(names, texts, total=len(rejected), place=".table", width=_NAME_WIDTH)


def table_of(table: Table, groups: Groups, judgements: Judged, alpha: float) -> Any:
    """Return one row per segment, method and hypothesis, in the user's library."""
    found = {name: one for name, (_, one) in judgements.items()}
    several = len(found)
    segment = np.repeat(np.arange(len(groups)), several)
    names = list(found) * len(groups)

    def woven(values: Sequence[Any]) -> Any:
        return np.column_stack([np.asarray(one) for one in values]).ravel()

    adjusted_values = woven([values for values, _ in judgements.values()])
    columns: dict[str, Column] = {
        "method": [name for name, _ in names],
        "hypothesis": [hypothesis for _, hypothesis in names],
        **{name: np.asarray(counts)[segment] for name, counts in count_columns(table, groups).items()},
        "n_groups": woven([one.groups for one in found.values()]),
        "statistic": woven([one.statistic for one in found.values()]),
        "df": woven([one.df for one in found.values()]),
        "pvalue": woven([one.pvalue for one in found.values()]),
        "pvalue_se": woven([one.pvalue_se for one in found.values()]),
        "law": list(woven([one.law for one in found.values()])),
        "pvalue_adjusted": adjusted_values,
        "note": list(woven([_notes(groups, one) for one in found.values()])),
    }
    frame = closed_frame(table, groups, columns, segment=segment).to_native()
    sure = woven([one.decides for one in found.values()])
    decided = [bool(value <= alpha) if known else None for value, known in zip(adjusted_values, sure, strict=True)]
    return flagged(frame, "reject", decided, before="note")


def groups_table_of(table: Table, groups: Groups, rows: GroupRows) -> Any:
    """Return one row per segment and group of Hosmer and Lemeshow, of several classes one a class."""
    columns: dict[str, Column] = {
        "bin": rows.group,
        **({"class": class_values(table, rows.place)} if table.view == "vectors" else {}),
        "lower": rows.lower,
        "upper": rows.upper,
        "n": rows.rows.astype(np.int64),
        **({"weight_sum": rows.weight} if table.weighted else {}),
        "mean_score": rows.expected / rows.weight,
        "observed": rows.observed,
        "expected": rows.expected,
    }
    return closed_frame(table, groups, columns, segment=rows.segment).to_native()
