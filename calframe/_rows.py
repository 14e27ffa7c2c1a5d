"""The missing rule: which rows are used, in one place.

A row is *used* when label, score and weight are there, the score is a probability and the weight is positive. Other
rows become all zeros, so they add nothing to any sum; they are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from calframe._classes import ClassRule, class_column, logit_column, posterior_column
from calframe._table import Table, extreme_logit

SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100  # their squares and sums are still numbers
FAULT = 2.0**40  # a row that is an error; below it the sum counts labels of -1


def clean_rows(table: Table) -> tuple[nw.LazyFrame[Any], tuple[str, ...]]:
    """Return the rows after the missing rule, and the names of their private columns.

    They are the keys, ``_cf_model``, ``_cf_class``, ``_cf_n`` (1 if the row is used), ``_cf_p``, ``_cf_y``, ``_cf_w``
    (all 0 if it is not), ``_cf_z`` (logit), ``_cf_q`` (true probability), ``_cf_fault``, ``_cf_other``,
    ``_cf_positive``, ``_cf_invalid`` and ``_cf_zero``. In the view of vectors there is one column a class in the place
    of ``_cf_p``, and ``_cf_y`` is the place of the true class.
    """
    marked = _marked(table) if table.classes is None else _viewed(table, table.classes)
    columns = _row_columns(table)
    return marked.select(*(column.alias(name) for name, column in columns.items())), tuple(columns)


def row_names(table: Table) -> tuple[str, ...]:
    """Return the names of the columns of `clean_rows`, where the rows themselves are there already."""
    return tuple(_row_columns(table))


def _marked(table: Table) -> nw.LazyFrame[Any]:
    """Mark the rows with nothing missing, and those whose score and weight may be used."""
    score = nw.col("_cf_share")
    present = table.label.present(nw.col("_cf_label")) & ~score.is_null() & ~score.is_nan()
    allowed = (score >= 0.0) & (score <= 1.0)
    outside = outside_bins(table)
    if outside is not None:
        allowed = allowed & ~outside
    if table.roles.link == "logit":
        allowed = allowed & ~extreme_logit(nw.col("_cf_score"))
    return table.raw.with_columns(_marks(table, present, allowed))


def _marks(table: Table, present: nw.Expr, allowed: nw.Expr) -> list[nw.Expr]:
    """Return the marks of a row after its weight and true probabilities have had their say, too."""
    if table.weighted:
        weight = nw.col("_cf_w")
        present = present & ~weight.is_null() & ~weight.is_nan() & ~(weight == 0.0)
        allowed = allowed & ~wrong_weight(table)
    if table.roles.posterior:
        true = [nw.col(posterior_column(i)) for i in range(len(table.roles.posterior))]
        present = present & ~_any_missing(true)
        allowed = allowed & ~wrong_posterior(table)
    return [present.alias("_cf_present"), allowed.alias("_cf_allowed")]


def _viewed(table: Table, classes: ClassRule) -> nw.LazyFrame[Any]:
    """Mark the rows of class probabilities, and show them as the view wants: a score and a 0/1 label, or vectors."""
    label, parts = nw.col("_cf_label"), [nw.col(class_column(i)) for i in range(len(classes))]
    odd = nw.col("_cf_odd").fill_null(value=False)  # vectors of another length, and infinite logits
    present = classes.present(label) & (~_any_missing(parts) | odd)
    stranger = classes.present(label) & ~classes.known(label)
    stranger = stranger & ~(nw.col("_cf_w") == 0.0) if table.weighted else stranger
    marked = table.raw.with_columns(*_marks(table, present, ~wrong_vector(table)), _cf_stranger=stranger)
    marked = marked.with_columns(_cf_true=classes.position(label))
    if table.view == "vectors":
        return marked
    if table.view == "classwise":
        return _stacked_classes(marked, table, len(classes))
    if table.view == "second":
        logit = nw.col(logit_column(1))
        marked = marked.with_columns(_cf_share=parts[1], _cf_first=nw.lit(1.0))
    else:
        logit = nw.max_horizontal(*(nw.col(logit_column(i)) for i in range(len(parts))))
        marked = marked.with_columns(_cf_share=nw.max_horizontal(*parts))
        beyond = float(len(parts)) if len(parts) > 2 else -1.0  # of two classes the second wins ties, as 0.5 does
        places = [nw.when(part == nw.col("_cf_share")).then(float(i)).otherwise(beyond) for i, part in enumerate(parts)]
        found = nw.min_horizontal(*places) if len(parts) > 2 else nw.max_horizontal(*places)
        marked = marked.with_columns(_cf_first=found)
    true = [nw.col(posterior_column(i)) for i in range(len(table.roles.posterior))]
    known = [nw.when(nw.col("_cf_first") == float(i)).then(part).otherwise(0.0) for i, part in enumerate(true)]
    return marked.with_columns(
        nw.col("_cf_share").clip(upper_bound=1.0),
        _as_number(nw.col("_cf_true") == nw.col("_cf_first")).alias("_cf_label"),
        *([nw.sum_horizontal(*known).alias("_cf_q")] if known else []),
        *([logit.alias("_cf_score")] if table.has_logits else []),
    )


def _stacked_classes(marked: nw.LazyFrame[Any], table: Table, classes: int) -> nw.LazyFrame[Any]:
    """Return one row for each row and class: its probability against whether it happened."""
    native: Any = marked.to_native()
    if isinstance(native, pl.LazyFrame):  # or every class would read the source anew
        marked = nw.from_native(native.cache())
    aside = {column(i) for i in range(classes) for column in (class_column, logit_column, posterior_column)}
    aside |= {"_cf_label", "_cf_true", "_cf_share"}
    kept = [name for name in marked.collect_schema().names() if name not in aside]
    return nw.concat(
        [
            marked.select(
                *kept,
                nw.lit(i, nw.Int32).alias("_cf_class"),
                nw.col(class_column(i)).clip(upper_bound=1.0).alias("_cf_share"),
                _as_number(nw.col("_cf_true") == float(i)).alias("_cf_label"),
                *([nw.col(posterior_column(i)).alias("_cf_q")] if table.roles.posterior else []),
                *([nw.col(logit_column(i)).alias("_cf_score")] if table.has_logits else []),
            )
            for i in range(classes)
        ]
    )


def wrong_vector(table: Table) -> nw.Expr:
    """Return which class probabilities are none: outside [0, 1], of another number, or not adding up to 1."""
    count = 0 if table.classes is None else len(table.classes)
    parts = [nw.col(class_column(i)) for i in range(count)]
    wrong = _no_distribution(parts, table.score_tolerance)
    return wrong.fill_null(value=False) | nw.col("_cf_odd").fill_null(value=False)


def wrong_posterior(table: Table) -> nw.Expr:
    """Return which true probabilities are none."""
    true = [nw.col(posterior_column(i)) for i in range(len(table.roles.posterior))]
    if len(true) > 1:
        return _no_distribution(true, table.posterior_tolerance)
    return ~((true[0] >= 0.0) & (true[0] <= 1.0))


def _no_distribution(parts: Sequence[nw.Expr], tolerance: float) -> nw.Expr:
    total, low = nw.sum_horizontal(*parts), nw.min_horizontal(*parts)
    return ~((low >= 0.0) & (total >= 1.0 - tolerance) & (total <= 1.0 + tolerance))


def _any_missing(parts: Sequence[nw.Expr]) -> nw.Expr:
    """Return which rows have a null or NaN among some columns."""
    return nw.any_horizontal(*(part.is_null() | part.is_nan() for part in parts), ignore_nulls=True)


def outside_bins(table: Table) -> nw.Expr | None:
    """Return which probabilities lie outside the bins; None where none can."""
    return None if table.bins is None else table.bins.outside(nw.col("_cf_share"), narrow=table.narrow_score())


def wrong_weight(table: Table, *, whole: bool = True) -> nw.Expr:
    """Return which weights, null, NaN and 0 aside, are not allowed; `whole`: also those that count no whole rows."""
    weight = nw.col("_cf_w")
    wrong = (weight < SMALLEST_WEIGHT) | (weight > LARGEST_WEIGHT)  # zeros are no rows and not looked at here
    if whole and table.roles.weight_kind == "frequency":
        return wrong | ~(weight == weight.floor())
    return wrong


def _row_columns(table: Table) -> dict[str, nw.Expr]:
    """Return the private columns of the rows: zeros where a row is not used."""
    used, wrong = nw.col("_cf_present") & nw.col("_cf_allowed"), nw.col("_cf_present") & ~nw.col("_cf_allowed")
    columns = {name: nw.col(name) for name in table.group_columns}
    if table.cluster is not None:
        columns[table.cluster.alias] = nw.col(table.cluster.alias)
    columns["_cf_n"] = _as_number(used)
    columns |= _outcome_columns(table, used)
    if table.weighted:
        weight = nw.col("_cf_w")
        columns |= {"_cf_w": nw.when(used).then(weight).otherwise(0.0), "_cf_zero": _as_number(weight == 0.0)}
    if table.roles.invalid == "drop":
        columns["_cf_invalid"] = _as_number(wrong)
    label = nw.col("_cf_label")
    other = table.label.other(label)
    if other is not None:
        named = _labelled(table) & table.label.is_positive(label)
        columns |= {"_cf_other": nw.when(_labelled(table)).then(other), "_cf_positive": _as_number(named)}
    fault = _fault(table, used=used, wrong=wrong)
    return columns if fault is None else columns | {"_cf_fault": fault}


def _outcome_columns(table: Table, used: nw.Expr) -> dict[str, nw.Expr]:
    """Return the columns of label, scores and true probabilities."""
    known = len(table.roles.posterior)
    if table.view == "vectors":  # only rows that are used are ever read, so the columns stay as they are
        names = [*map(class_column, range(len(table.roles.classes))), *map(posterior_column, range(known))]
        names += ["_cf_loss"] if table.roles.link == "logit" else []
        vectors = {name: nw.col(name) for name in names}
        return vectors | {"_cf_y": nw.when(used).then(nw.col("_cf_true")).otherwise(0.0)}
    if table.view == "confidence" and table.classes is None:
        return _confidence_columns(table, used)
    values = {"_cf_p": "_cf_share"}
    if known:
        values["_cf_q"] = posterior_column(0) if table.classes is None else "_cf_q"
    if table.has_logits:
        values["_cf_z"] = "_cf_score"
    columns = {name: nw.when(used).then(nw.col(raw)).otherwise(0.0) for name, raw in values.items()}
    return columns | {"_cf_y": _as_number(used & table.label.is_positive(nw.col("_cf_label")))}


def _confidence_columns(table: Table, used: nw.Expr) -> dict[str, nw.Expr]:
    """Return how sure the prediction of a positive-class score is, and whether it is right; 0.5 says positive."""
    score = nw.col("_cf_share")
    says = score >= 0.5
    right = says == table.label.is_positive(nw.col("_cf_label"))
    columns = {"_cf_y": _as_number(used & right)}
    shares = {"_cf_p": score} | ({"_cf_q": nw.col(posterior_column(0))} if table.roles.posterior else {})
    for name, share in shares.items():
        columns[name] = nw.when(used).then(nw.when(says).then(share).otherwise(1.0 - share)).otherwise(0.0)
    if table.has_logits:
        columns["_cf_z"] = nw.when(used).then(nw.col("_cf_score").abs()).otherwise(0.0)
    return columns


def _fault(table: Table, *, used: nw.Expr, wrong: nw.Expr) -> nw.Expr | None:
    """Return the column whose sum says whether any row is an error, and how many labels are -1."""
    label = nw.col("_cf_label")
    found = [wrong] if table.roles.invalid == "raise" else []
    keys = [*table.keys, *([] if table.cluster is None else [table.cluster])]
    found += [broken for key in keys if (broken := key.fault()) is not None]
    if table.classes is not None:
        found.append(nw.col("_cf_stranger"))
    unusual = table.label.unusual(label)
    fault: nw.Expr | None = None
    if unusual is not None:
        minus = nw.when(label == -1.0).then(_as_number(used)).otherwise(FAULT)
        fault = nw.when(_labelled(table) & unusual).then(minus).otherwise(0.0)
    if not found:
        return fault
    either = nw.any_horizontal(*found, ignore_nulls=True) if len(found) > 1 else found[0]
    return nw.when(either).then(FAULT).otherwise(0.0 if fault is None else fault)


def _labelled(table: Table) -> nw.Expr:
    """Return the rows whose label counts: what labels mean does not depend on scores, but weight 0 is no row."""
    present = table.label.present(nw.col("_cf_label"))
    return present & ~(nw.col("_cf_w") == 0.0) if table.weighted else present


def _as_number(condition: nw.Expr) -> nw.Expr:
    return nw.when(condition).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
