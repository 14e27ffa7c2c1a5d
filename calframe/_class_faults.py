"""What is wrong with class probabilities and their labels, said once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from calframe._classes import ClassRule, class_column, posterior_column
from calframe._errors import LabelError, ScoreError, counted
from calframe._rows import wrong_posterior, wrong_vector
from calframe._table import LARGEST_LOGIT, Table

_SHOWN = 5
_PLACE = "_cf_place"
_MEND = "Correct those rows, or pass invalid='drop' to leave them out and count them."


def check_classes(table: Table) -> None:
    """Raise the first error of a table of class probabilities: labels that are no class, vectors that are none."""
    if table.classes is None:
        return
    _labels(table, table.classes)
    _lengths(table, table.classes)
    names = [class_column(i) for i in range(len(table.classes))]
    _vectors(table, table.classes, names, wrong_vector(table), "probabilities", table.score_tolerance)


def check_posterior(table: Table) -> None:
    """Raise if the true probabilities are none."""
    names = [posterior_column(i) for i in range(len(table.roles.posterior))]
    if not names:
        return
    if table.classes is not None:
        _vectors(table, table.classes, names, wrong_posterior(table), "true probabilities", table.posterior_tolerance)
        return
    value = nw.col(names[0])
    wrong = table.raw.filter(~value.is_null() & ~value.is_nan() & wrong_posterior(table))
    count, shown = _count(table, wrong), table.collect(wrong.select(value.min()))
    if count:
        low = shown.get_column(names[0]).to_list()[0]
        name = table.roles.posterior[0]
        msg = f"posterior column {name!r} must lie in [0, 1]; {counted(count)} outside, such as {low:g}. {_MEND}"
        raise ScoreError(msg)


def _labels(table: Table, classes: ClassRule) -> None:
    label = nw.col("_cf_label")
    strange = classes.present(label) & ~classes.known(label)
    strange = strange & ~(nw.col("_cf_w") == 0.0) if table.weighted else strange
    found = table.collect(table.raw.filter(strange).select("_cf_label").unique().head(_SHOWN + 1))
    values = sorted(found.get_column("_cf_label").to_list(), key=str)
    if not values:
        return
    listed = ", ".join(repr(_plain(value)) for value in values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")
    named = ", ".join(repr(name) for name in classes.names[:_SHOWN]) + (", …" if len(classes) > _SHOWN else "")
    msg = (
        f"label column {table.roles.label!r} holds {listed}, which is none of the classes {named}; name every class "
        "that occurs, each with its probability, or leave those rows out."
    )
    raise LabelError(msg)


def _lengths(table: Table, classes: ClassRule) -> None:
    count = _count(table, table.raw.filter(nw.col("_cf_odd").fill_null(value=False)))
    if count:
        names = ", ".join(map(repr, table.roles.scores[:_SHOWN])) + (", …" if len(table.roles.scores) > _SHOWN else "")
        msg = f"score {names} has {counted(count)} without {len(classes)} numbers, one a class. {_MEND}"
        if table.roles.link == "logit":
            msg = (
                f"the logits of a row must be {len(classes)} numbers, one a class, within ±{LARGEST_LOGIT:g} or -inf, "
                f"but not all -inf; score {names} has {counted(count)} where they are not. {_MEND}"
            )
        raise ScoreError(msg)


def _vectors(
    table: Table, classes: ClassRule, names: Sequence[str], wrong: nw.Expr, what: str, tolerance: float
) -> None:
    """Name the row whose vector is farthest from a distribution."""
    parts = [nw.col(name) for name in names]
    known = ~nw.any_horizontal(*(part.is_null() | part.is_nan() for part in parts), ignore_nulls=True)
    total, low = nw.sum_horizontal(*parts), nw.min_horizontal(*parts)
    off = nw.max_horizontal((total - 1.0).abs(), low * -1.0)
    rows = _numbered(table).filter(known & wrong).with_columns(_cf_off=off)
    count = _count(table, rows)
    if count == 0:
        return
    places = [_PLACE] if _PLACE in rows.collect_schema().names() else []
    keys = ["_cf_off", *places]  # of equally bad rows the first
    worst = table.collect(rows.sort(*keys, descending=[True, False][: len(keys)]).head(1).select(*places, *names))
    vector = [float(worst.get_column(name).to_list()[0]) for name in names]
    place = f", worst in row {int(worst.get_column(_PLACE).to_list()[0])} (counted from 0)" if places else ""
    raise ScoreError(_text(classes, count, vector, what, tolerance, place))


def _text(classes: ClassRule, count: int, vector: Sequence[float], what: str, tolerance: float, place: str) -> str:
    pairs = list(zip(classes.names, vector, strict=True))
    telling = sorted(pairs, key=lambda pair: (0.0 <= pair[1] <= 1.0, -pair[1]))  # those outside first, then the largest
    shown = telling[:_SHOWN] if len(pairs) > _SHOWN else pairs
    listed = ", ".join(f"{name!r}: {value:g}" for name, value in shown) + (", …" if len(pairs) > _SHOWN else "")
    fail = f"{counted(count)} {'does' if count == 1 else 'do'} not{place}"
    allowed = f"{tolerance:.2g}".replace("e-0", "e-")
    text = (
        f"the {what} of a row must lie in [0, 1] and add up to 1 within {allowed}; {fail}: {{{listed}}} adds up to "
        f"{sum(vector):.7g}."
    )
    if abs(sum(vector) - 100.0) <= 1.0:
        return f"{text} Percent? Divide by 100."
    outside = min(vector) < 0.0 or max(vector) > 1.0 + tolerance
    if what == "probabilities" and outside and abs(sum(vector) - 1.0) > tolerance:
        return f"{text} Logits? Pass link='logit'."
    return f"{text} Correct or rescale those rows, or pass invalid='drop' to leave them out and count them."


def _numbered(table: Table) -> nw.LazyFrame[Any]:
    """Return the raw rows with their numbers, where rows have an order."""
    native: Any = table.raw.to_native()
    if isinstance(native, pl.LazyFrame):
        numbered: nw.LazyFrame[Any] = nw.from_native(native.with_row_index(_PLACE))
        return numbered
    return table.raw.collect().with_row_index(_PLACE).lazy() if table.raw.implementation.is_pyarrow() else table.raw


def _count(table: Table, rows: nw.LazyFrame[Any]) -> int:
    return int(table.collect(rows.select(nw.len().alias("k"))).get_column("k").to_list()[0])


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
