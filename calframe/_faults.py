"""What is wrong with the rows, said once: the aggregate only flags a fault, this asks the table for the details."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._binning import Bins
from calframe._class_faults import check_classes, check_posterior
from calframe._errors import CalframeError, ScoreError, SegmentError, WeightError, counted, outside_unit
from calframe._label import MOST_VALUES, check_values
from calframe._rows import FAULT, LARGEST_WEIGHT, SMALLEST_WEIGHT, outside_bins, wrong_weight
from calframe._table import LARGEST_LOGIT, Table, extreme_logit, model_alias

_DECILES, _PERCENT = 10.0, 100.0  # the largest score of a table in tenths, and in percent
_ROUNDING = 1e-6  # scores this far outside [0, 1] are the work of arithmetic


def check_faults(table: Table, cells: nw.DataFrame[Any]) -> None:
    """Raise the first error that the rows of a table hold.

    Parameters
    ----------
    table : Table
        The opened table; its raw rows are read again only if there is something to explain.
    cells : narwhals.DataFrame
        The collected aggregate, with ``_cf_fault`` and, for named labels, the smallest and largest other label.
    """
    flagged = 0.0
    if "_cf_fault" in cells.columns:
        flagged = float(np.max(_values(cells, "_cf_fault")))
    if flagged >= FAULT:
        scores = (_labels, _scores) if table.classes is None else (check_classes,)
        for explain in (_weights, _segments, *scores, check_posterior):
            explain(table)
        msg = "rows that cannot be used were found, but not when looking again: the table changed while it was read."
        raise CalframeError(msg)
    if flagged > 0:
        _check_minus_one(table, cells)
    if "_cf_other_min" in cells.columns:
        _check_named(table, cells)


def _check_minus_one(table: Table, cells: nw.DataFrame[Any]) -> None:
    """Labels of -1 go with +1, not with 0."""
    rows, positives, minus = (_values(cells, name).sum() for name in ("_cf_n", "_cf_y", "_cf_fault"))
    found = {-1.0} | ({1.0} if positives > 0 else set()) | ({0.0} if rows - positives - minus > 0 else set())
    check_values(table.label, column=table.roles.label, values=list(found))


def _check_named(table: Table, cells: nw.DataFrame[Any]) -> None:
    """With positive= there is at most one other value, and the positive one occurs."""
    ends = (cells.get_column(name).drop_nulls().to_list() for name in ("_cf_other_min", "_cf_other_max"))
    others = {value for values in ends for value in values}
    positives = _values(cells, "_cf_positive").sum()
    if len(others) > 1:
        _labels(table)
    found = list(others) + ([table.label.positive] if positives > 0 else [])
    if found:
        check_values(table.label, column=table.roles.label, values=found)


def _labels(table: Table) -> None:
    label = nw.col("_cf_label")
    there = table.raw.filter(table.label.present(label)).select("_cf_label").unique().head(MOST_VALUES)
    check_values(table.label, column=table.roles.label, values=table.collect(there).get_column("_cf_label").to_list())


def _weights(table: Table) -> None:
    name = table.roles.weight
    if name is None:
        return
    weight = nw.col("_cf_w")
    known = table.raw.filter(~weight.is_null() & ~weight.is_nan())
    _raise_if(table, known.filter(weight < 0.0), "_cf_w", partial(_negative_weight, name))
    _raise_if(table, known.filter(weight == float("inf")), "_cf_w", partial(_infinite_weight, name))
    extreme = known.filter((weight > 0.0) & wrong_weight(table, whole=False))
    _raise_if(table, extreme, "_cf_w", partial(_extreme_weight, name))
    if table.roles.weight_kind == "frequency":
        _raise_if(table, known.filter(~(weight == weight.floor())), "_cf_w", partial(_broken_weight, name))


def _segments(table: Table) -> None:
    for key in (*table.keys, *([] if table.cluster is None else [table.cluster])):
        fault = key.fault()
        if fault is not None:
            broken = _broken_cluster if key is table.cluster else _broken_segment
            _raise_if(table, table.raw.filter(fault), key.alias, partial(broken, key.name))


def _scores(table: Table) -> None:
    score = nw.col("_cf_share")
    known = table.raw.filter(~score.is_null() & ~score.is_nan())
    outside = outside_bins(table)
    for i, name in enumerate(table.roles.scores):
        rows = known.filter(nw.col("_cf_model") == model_alias(i)) if table.roles.several else known
        if table.roles.link == "logit":
            extreme = rows.filter(extreme_logit(nw.col("_cf_score")))
            _raise_if(table, extreme, "_cf_score", partial(_extreme_logit, name))
        wrong, _, _ = _ends(table, rows.filter(~((score >= 0.0) & (score <= 1.0))), "_cf_share")
        if wrong:
            total, low, high = _ends(table, rows, "_cf_share")
            raise ScoreError(_score_text(name, wrong, low, high, all_of_them=wrong == total))
        if outside is not None and table.bins is not None:
            _raise_if(table, rows.filter(outside), "_cf_share", partial(_outside_text, name, table.bins))


def _negative_weight(name: str, rows: int, low: float, _: float) -> CalframeError:
    return WeightError(
        f"weight column {name!r} has {counted(rows)} with a negative weight, the lowest {low:g}; weights must be 0 or "
        "more. Correct those rows, or pass invalid='drop' to leave them out and count them."
    )


def _infinite_weight(name: str, rows: int, *_: float) -> CalframeError:
    return WeightError(
        f"weight column {name!r} has {counted(rows)} with an infinite weight; weights must be finite, 0 or more. "
        "Correct those rows, or pass invalid='drop' to leave them out and count them."
    )


def _extreme_weight(name: str, rows: int, low: float, high: float) -> CalframeError:
    return WeightError(
        f"weights other than 0 must lie between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}; column {name!r} has "
        f"{counted(rows)} outside, from {low:g} to {high:g}. Only ratios of weights matter: divide them all by a "
        "constant (their mean, say), or pass invalid='drop' to leave those rows out and count them."
    )


def _extreme_logit(name: str, rows: int, low: float, high: float) -> CalframeError:
    return ScoreError(
        f"logits must lie within ±{LARGEST_LOGIT:g}, or be infinite, which is certain; column {name!r} has "
        f"{counted(rows)} beyond, from {low:g} to {high:g}. Correct those rows, or pass invalid='drop' to leave them "
        "out and count them."
    )


def _broken_weight(name: str, rows: int, low: float, _: float) -> CalframeError:
    return WeightError(
        f"weight column {name!r} has {counted(rows)} whose weight is no whole number, such as {_shown(low)}, and "
        "weight_kind='frequency' counts rows. Use weight_kind='importance' for other weights."
    )


def _broken_segment(name: str, rows: int, low: float, _: float) -> CalframeError:
    holds = "holds" if rows == 1 else "hold"
    return SegmentError(
        f"segment column {name!r} is a float column with {counted(rows)} that {holds} no whole number, such as "
        f"{_shown(low)}; "
        "segments are text, whole numbers, bools, categories or dates. Cut it into ranges, or cast it to text."
    )


def _broken_cluster(name: str, rows: int, low: float, _: float) -> CalframeError:
    holds = "holds" if rows == 1 else "hold"
    return SegmentError(
        f"cluster column {name!r} is a float column with {counted(rows)} that {holds} no whole number, such as "
        f"{_shown(low)}; clusters are told apart by text, whole numbers, bools, categories or dates. Cast it to Int64 "
        "where its values are whole numbers, or to text."
    )


def _outside_text(name: str, bins: Bins, rows: int, low: float, high: float) -> CalframeError:
    return ScoreError(
        f"score column {name!r} has {counted(rows)} outside the bin edges {bins.edges[0]:g} to {bins.edges[-1]:g}, "
        f"from {_shown(low)} to {_shown(high)}. Give edges that cover them, for example from 0 to 1."
    )


def _score_text(name: str, rows: int, low: float, high: float, *, all_of_them: bool) -> str:
    text = outside_unit(name, rows, _shown(low), _shown(high))
    if low >= 0.0 and _DECILES < high <= _PERCENT:
        return f"{text} It looks like percent: divide by 100."
    if low < -_ROUNDING and np.isfinite([low, high]).all():
        return f"{text} It looks like logits: pass link='logit'."
    if low >= -_ROUNDING and high <= 1.0 + _ROUNDING:
        return f"{text} That is no more than rounding: clip the column to [0, 1]."
    if all_of_them:
        return f"{text} That is every row: is it the right column?"
    return f"{text} Correct those rows, or pass invalid='drop' to leave them out and count them."


def _shown(value: float) -> str:
    """Return a number as short as it can be without becoming another one."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _ends(table: Table, rows: nw.LazyFrame[Any], column: str) -> tuple[int, float, float]:
    value = nw.col(column)
    found = table.collect(rows.select(nw.len().alias("k"), value.min().alias("low"), value.max().alias("high")))
    count = int(found.get_column("k").to_list()[0])
    if count == 0:
        return 0, np.nan, np.nan
    return count, float(found.get_column("low").to_list()[0]), float(found.get_column("high").to_list()[0])


def _raise_if(
    table: Table, rows: nw.LazyFrame[Any], column: str, error: Callable[[int, float, float], CalframeError]
) -> None:
    count, low, high = _ends(table, rows, column)
    if count:
        raise error(count, low, high)


def _values(cells: nw.DataFrame[Any], name: str) -> Any:
    return np.asarray(cells.get_column(name).cast(nw.Float64).to_numpy())
