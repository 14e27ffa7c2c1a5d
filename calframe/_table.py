"""The door: a user's table in, clean private rows out, on any engine, and results back in the user's library.

The missing rule lives here and nowhere else. A row is *used* when label, score and weight are there, the score is a
probability and the weight is positive. Other rows become all zeros, so they add nothing to any sum; they are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from calframe._binning import Bins
from calframe._columns import Key, key_of
from calframe._errors import ArgumentError
from calframe._label import LabelRule
from calframe._pandas import Levels
from calframe._roles import Roles
from calframe._source import Source, is_eager, open_source

SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100  # their squares and sums are still numbers
FAULT = 2.0**40  # a row that is an error; below it the sum counts labels of -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """An opened prediction table.

    Attributes
    ----------
    raw : narwhals.LazyFrame
        One row per row and model, as it is, with private columns: the keys, ``_cf_model``, ``_cf_label``,
        ``_cf_share`` (the score as a probability), ``_cf_score`` (a logit) and ``_cf_w``.
    keys : tuple of Key
        The segment columns, in order.
    label : LabelRule
        How the label is read.
    narrow : tuple of bool
        Per model, whether its scores are float32.
    native : object
        The table as the user gave it.
    levels : mapping of str to pandas.Series, or None
        Of a pandas table, the values behind the codes of its keys.
    roles : Roles
        The roles of its columns.
    bins : Bins or None
        Bins that every score must lie in.
    """

    raw: nw.LazyFrame[Any]
    keys: tuple[Key, ...]
    label: LabelRule
    narrow: tuple[bool, ...]
    native: Any
    levels: Mapping[str, Levels] | None
    roles: Roles
    bins: Bins | None = None

    @property
    def weighted(self) -> bool:
        """Whether the rows carry weights."""
        return self.roles.weight is not None

    @property
    def group_columns(self) -> list[str]:
        """The private columns that tell segments and models apart."""
        models = ["_cf_model"] if self.roles.several else []
        return [key.alias for key in self.keys] + models

    def narrow_score(self) -> nw.Expr | bool:
        """Return which rows hold float32 scores: the same answer for all, or by model."""
        if len(set(self.narrow)) == 1:
            return self.narrow[0]
        names = [model_alias(i) for i, narrow in enumerate(self.narrow) if narrow]
        return nw.col("_cf_model").is_in(names)

    def summarise(
        self,
        plan: nw.LazyFrame[Any],
        finish: Callable[[nw.DataFrame[Any]], nw.DataFrame[Any]],
        *,
        schema: Callable[[], Mapping[str, Any]],
        engine: Any = None,
    ) -> Any:
        """Run `plan` (a small aggregate of the rows) and `finish`, and return the user's kind of table.

        A polars LazyFrame stays lazy: `finish` becomes the last step of its plan and runs at ``collect()``.
        """
        if isinstance(self.native, pl.LazyFrame):
            lazy: pl.LazyFrame = plan.to_native()
            return lazy.map_batches(
                lambda cells: finish(nw.from_native(cells)).to_native(),
                schema=dict(schema()),
                predicate_pushdown=False,  # what the user adds to the plan acts on the result, never on the cells
                projection_pushdown=False,
                slice_pushdown=False,
            )
        return finish(self.collect(plan, engine=engine)).to_native()

    def collect(self, plan: nw.LazyFrame[Any], *, engine: Any = None) -> nw.DataFrame[Any]:
        """Run a small aggregate now; remote engines answer as polars."""
        if plan.implementation.is_polars():
            return plan.collect(engine=engine or "auto")
        return plan.collect() if is_eager(self.native) else plan.collect("polars")


def open_table(
    data: Any, roles: Roles, *, reserved: Iterable[str] = (), by_day: bool = False, bins: Bins | None = None
) -> Table:
    """Open a prediction table: check its columns, rename to private names, apply the missing rule.

    Parameters
    ----------
    data : table
        Any table that narwhals opens.
    roles : Roles
        The roles of its columns.
    reserved : iterable of str
        Names of result columns, which no segment column may have.
    by_day : bool
        Add the local day of the time column as a last key, ``_cf_day``, a number such as 20260131.
    bins : Bins, optional
        Bins that every score must lie in.
    """
    source = open_source(data, roles, reserved=reserved)
    keys = tuple(key_of(name, source.types[name], alias=f"_cf_k{i}") for i, name in enumerate(roles.by))
    label = LabelRule.from_dtype(source.types[roles.label], column=roles.label, positive=roles.positive)
    selected = [key.prepared(source.key(key.name), coded=key.name in source.codes) for key in keys]
    if by_day:
        selected.append(_day(source, roles).alias("_cf_day"))
        keys = (*keys, Key.of_day(str(roles.time)))
    if roles.weight is not None:
        selected.append(source.number(roles.weight).alias("_cf_w"))
    selected.append(label.prepared(source.column(roles.label)).alias("_cf_label"))
    raw = _with_probability(_stacked(source, selected, roles), roles)
    narrow = tuple(source.types[name] == nw.Float32 and roles.link == "probability" for name in roles.scores)
    return Table(
        raw=raw,
        keys=keys,
        label=label,
        narrow=narrow,
        native=data,
        levels=source.levels,
        roles=roles,
        bins=bins,
    )


def clean_rows(table: Table) -> tuple[nw.LazyFrame[Any], tuple[str, ...]]:
    """Return the rows after the missing rule, and the names of their private columns.

    They are the keys, ``_cf_model``, ``_cf_n`` (1 if the row is used), ``_cf_p``, ``_cf_y``, ``_cf_w`` (all 0 if it is
    not), ``_cf_z`` (logit), ``_cf_fault``, ``_cf_other``, ``_cf_positive``, ``_cf_invalid`` and ``_cf_zero``.
    """
    columns = _row_columns(table)
    rows = _marked(table).select(*(column.alias(name) for name, column in columns.items()))
    return rows, tuple(columns)


def model_alias(position: int) -> str:
    """Return the private name of the model at a position; it sorts as the position does."""
    return f"_cf_s{position:04d}"


def _day(source: Source, roles: Roles) -> nw.Expr:
    time = source.column(str(roles.time))
    if source.is_pandas:  # which has cut the days itself
        return time
    if roles.time_zone is not None:
        dtype = source.types[str(roles.time)]
        _check_convertible(source, roles)
        if isinstance(dtype, nw.Datetime) and dtype.time_zone is None:
            time = time.dt.replace_time_zone("UTC")
        time = time.dt.convert_time_zone(roles.time_zone)
    parts = (time.dt.year(), time.dt.month(), time.dt.day())
    year, month, day = (part.cast(nw.Float64) for part in parts)
    return year * 10_000.0 + month * 100.0 + day


def _check_convertible(source: Source, roles: Roles) -> None:
    if source.frame.implementation.is_duckdb():
        msg = (
            f"DuckDB keeps the time zone in its connection: run SET TimeZone = {roles.time_zone!r} there, and leave "
            "out time_zone."
        )
        raise ArgumentError(msg)


def _stacked(source: Source, selected: Sequence[nw.Expr], roles: Roles) -> nw.LazyFrame[Any]:
    """Select private columns; several models become rows, with the model's private name beside each score."""
    frame = source.frame
    score_name = "_cf_share" if roles.link == "probability" else "_cf_score"
    if not roles.several:
        return frame.select(*selected, source.number(roles.scores[0]).alias(score_name))
    scores = {model_alias(i): source.number(name) for i, name in enumerate(roles.scores)}
    if frame.implementation.is_duckdb():  # its UNPIVOT runs on another connection
        parts = [
            frame.select(*selected, nw.lit(alias).alias("_cf_model"), score.alias(score_name))
            for alias, score in scores.items()
        ]
        return nw.concat(parts)
    wide = frame.select(*selected, *(score.alias(alias) for alias, score in scores.items()))
    index = [name for name in wide.collect_schema().names() if name not in scores]
    return wide.unpivot(on=list(scores), index=index, variable_name="_cf_model", value_name=score_name)


def _with_probability(raw: nw.LazyFrame[Any], roles: Roles) -> nw.LazyFrame[Any]:
    """Add the probability that a score stands for, where the score is not one already."""
    if roles.link == "probability":
        return raw
    score = nw.col("_cf_score")
    tail = (score.abs() * -1.0).exp()  # never overflows
    return raw.with_columns(_cf_share=nw.when(score >= 0.0).then(1.0 / (1.0 + tail)).otherwise(tail / (1.0 + tail)))


def _marked(table: Table) -> nw.LazyFrame[Any]:
    """Mark the rows with nothing missing, and those whose score and weight may be used."""
    score = nw.col("_cf_share")
    present = table.label.present(nw.col("_cf_label")) & ~score.is_null() & ~score.is_nan()
    allowed = (score >= 0.0) & (score <= 1.0)
    outside = outside_bins(table)
    if outside is not None:
        allowed = allowed & ~outside
    if table.weighted:
        weight = nw.col("_cf_w")
        present = present & ~weight.is_null() & ~weight.is_nan() & ~(weight == 0.0)
        allowed = allowed & ~wrong_weight(table)
    return table.raw.with_columns(_cf_present=present, _cf_allowed=allowed)


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
    roles, label = table.roles, nw.col("_cf_label")
    used, wrong = nw.col("_cf_present") & nw.col("_cf_allowed"), nw.col("_cf_present") & ~nw.col("_cf_allowed")
    columns = {key.alias: nw.col(key.alias) for key in table.keys}
    columns |= {
        "_cf_n": _as_number(used),
        "_cf_y": _as_number(used & table.label.is_positive(label)),
        "_cf_p": nw.when(used).then(nw.col("_cf_share")).otherwise(0.0),
    }
    if roles.link == "logit":
        columns["_cf_z"] = nw.when(used).then(nw.col("_cf_score")).otherwise(0.0)
    if roles.several:
        columns["_cf_model"] = nw.col("_cf_model")
    if table.weighted:
        weight = nw.col("_cf_w")
        columns |= {"_cf_w": nw.when(used).then(weight).otherwise(0.0), "_cf_zero": _as_number(weight == 0.0)}
    if roles.invalid == "drop":
        columns["_cf_invalid"] = _as_number(wrong)
    other = table.label.other(label)
    if other is not None:
        named = _labelled(table) & table.label.is_positive(label)
        columns |= {"_cf_other": nw.when(_labelled(table)).then(other), "_cf_positive": _as_number(named)}
    fault = _fault(table, used=used, wrong=wrong)
    return columns if fault is None else columns | {"_cf_fault": fault}


def _fault(table: Table, *, used: nw.Expr, wrong: nw.Expr) -> nw.Expr | None:
    """Return the column whose sum says whether any row is an error, and how many labels are -1."""
    label = nw.col("_cf_label")
    found = [wrong] if table.roles.invalid == "raise" else []
    found += [broken for key in table.keys if (broken := key.fault()) is not None]
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
