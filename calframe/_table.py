"""The door: a user's table in under private names, on any engine, and results back in the user's library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import narwhals.stable.v2 as nw
import polars as pl

from calframe._binning import Bins
from calframe._classes import ClassRule, class_column, logit_column, posterior_column, sum_tolerance
from calframe._columns import Key, key_of, part_types
from calframe._errors import ArgumentError
from calframe._label import LabelRule
from calframe._options import check_engine, check_notion
from calframe._pandas import Levels
from calframe._roles import Roles
from calframe._source import Source, is_eager, open_source

View: TypeAlias = Literal["score", "second", "classwise", "confidence", "vectors"]
LARGEST_LOGIT = 1e50  # the square of a log loss is still a number; masks such as -3.4e38 are below it


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
    classes : ClassRule or None
        How the label is read where scores are class probabilities; then the raw columns are one a class.
    view : {"score", "second", "classwise", "confidence", "vectors"}
        What a clean row is: a score; of class probabilities that of the second of two classes, one row for each
        class, the largest one with whether it was right, or all of them.
    cluster : Key or None
        The column that tells clusters of rows apart, ``_cf_cluster``.
    score_tolerance, posterior_tolerance : float
        How far from 1 the probabilities of a row may add up, and its true probabilities.
    """

    raw: nw.LazyFrame[Any]
    keys: tuple[Key, ...]
    label: LabelRule
    narrow: tuple[bool, ...]
    native: Any
    levels: Mapping[str, Levels] | None
    roles: Roles
    bins: Bins | None = None
    classes: ClassRule | None = None
    view: View = "score"
    cluster: Key | None = None
    score_tolerance: float
    posterior_tolerance: float

    @property
    def weighted(self) -> bool:
        """Whether the rows carry weights."""
        return self.roles.weight is not None

    @property
    def group_columns(self) -> list[str]:
        """The private columns that tell segments and models apart."""
        models = ["_cf_model"] if self.roles.several else []
        classes = ["_cf_class"] if self.view == "classwise" else []
        return [key.alias for key in self.keys] + models + classes

    @property
    def in_memory(self) -> bool:
        """Whether rows are read into memory where they are needed, rather than summed up where they are."""
        return isinstance(self.native, pl.LazyFrame) or is_eager(self.native)

    @property
    def has_logits(self) -> bool:
        """Whether a clean row keeps the logit behind its probability."""
        return self.roles.link == "logit" and self.view != "vectors"

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

    def digest(
        self,
        plan: nw.LazyFrame[Any],
        finish: Callable[[nw.LazyFrame[Any]], nw.DataFrame[Any]],
        *,
        schema: Callable[[], Mapping[str, Any]],
        engine: Any = None,
    ) -> Any:
        """Do as `summarise` with the rows of `plan` themselves: read once into memory, or left on a remote engine."""
        if self.in_memory:
            return self.summarise(plan, lambda rows: finish(rows.lazy()), schema=schema, engine=engine)
        return finish(plan).to_native()

    def collect(self, plan: nw.LazyFrame[Any], *, engine: Any = None) -> nw.DataFrame[Any]:
        """Run a small aggregate now; remote engines answer as polars."""
        check_engine(engine)
        if plan.implementation.is_polars():  # by polars itself, so that what fails in the user's plan is its own error
            native: pl.LazyFrame = plan.to_native()
            return nw.from_native(native.collect(engine=engine or "auto"), eager_only=True)
        return plan.collect() if is_eager(self.native) else plan.collect("polars")


def open_table(
    data: Any,
    roles: Roles,
    *,
    reserved: Iterable[str] = (),
    by_day: bool = False,
    bins: Bins | None = None,
    view: View = "score",
) -> Table:
    """Open a prediction table: check its columns, and put them under private names.

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
    view : {"score", "second", "classwise", "confidence", "vectors"}
        What a clean row is.
    """
    if view != "score" and bins is not None:
        bins.check_covering()
    source = open_source(data, roles, reserved=reserved)
    keys = tuple(key_of(name, source.types[name], alias=f"_cf_k{i}") for i, name in enumerate(roles.by))
    selected = [key.prepared(source.key(key.name), coded=key.name in source.codes) for key in keys]
    if by_day:
        selected.append(_day(source, roles).alias("_cf_day"))
        keys = (*keys, Key.of_day(str(roles.time)))
    cluster = None
    if roles.cluster is not None:
        cluster = key_of(roles.cluster, source.types[roles.cluster], alias="_cf_cluster")
        selected.append(cluster.prepared(source.key(roles.cluster), coded=roles.cluster in source.codes))
    if roles.weight is not None:
        selected.append(source.number(roles.weight).alias("_cf_w"))
    selected += [source.number(name).alias(posterior_column(i)) for i, name in enumerate(roles.posterior)]
    dtype, classes = source.types[roles.label], None
    if roles.classes:
        classes = ClassRule.from_dtype(roles.classes, dtype, column=roles.label)
        selected.append(classes.prepared(source.value(roles.label), dtype).alias("_cf_label"))
        raw, label = (
            _with_classes(source, selected, roles, classes, view),
            LabelRule(mode="boolean", positive=True, text=False),
        )
    else:
        label = LabelRule.from_dtype(dtype, column=roles.label, positive=roles.positive)
        selected.append(label.prepared(source.value(roles.label)).alias("_cf_label"))
        raw = _with_probability(_stacked(source, selected, roles), roles)
    return Table(
        raw=raw,
        keys=keys,
        label=label,
        narrow=_narrow(source, roles),
        native=data,
        levels=source.levels,
        roles=roles,
        bins=bins,
        classes=classes,
        view=view,
        cluster=cluster,
        score_tolerance=_sum_tolerance(source, roles, roles.scores),
        posterior_tolerance=_sum_tolerance(source, roles, roles.posterior),
    )


def _sum_tolerance(source: Source, roles: Roles, names: Sequence[str]) -> float:
    """Return the tolerance of the sums of some columns, or of the vectors that they hold."""
    parts = [part for name in names for part in part_types(source.types[name], roles.classes)]
    return sum_tolerance([*(source.types[name] for name in names), *parts], classes=len(roles.classes))


def view_of(roles: Roles, notion: Any) -> View:
    """Return what a clean row is to be: by the score itself, or by the notion asked for."""
    check_notion(notion)
    if notion == "classwise" and not roles.classes:
        msg = (
            "notion='classwise' is for scores of several classes: give score= as a mapping of classes to columns, or "
            "one column of vectors with classes=."
        )
        raise ArgumentError(msg)
    if notion is not None:
        view: View = notion
        return view
    if not roles.classes:
        return "score"
    return "vectors" if roles.multiclass else "second"


def model_alias(position: int) -> str:
    """Return the private name of the model at a position; it sorts as the position does."""
    return f"_cf_s{position:04d}"


def extreme_logit(logit: nw.Expr) -> nw.Expr:
    """Return which logits are finite and yet too large to be worked with."""
    size = logit.abs()
    return (size > LARGEST_LOGIT) & (size < float("inf"))  # NaN is neither


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


def _with_classes(
    source: Source, selected: Sequence[nw.Expr], roles: Roles, classes: ClassRule, view: View
) -> nw.LazyFrame[Any]:
    """Select private columns, the probabilities of each class among them."""
    if roles.vector:
        parts, odd = source.vector(roles.scores[0], roles.classes)
    else:
        parts, odd = [source.number(name) for name in roles.scores], nw.lit(value=False)
    aliases = [class_column(i) for i in range(len(parts))]
    raw = source.frame.select(
        *selected, odd.alias("_cf_odd"), *(part.alias(a) for part, a in zip(parts, aliases, strict=True))
    )
    return raw if roles.link == "probability" else _of_logits(raw, aliases, classes, view)


def _of_logits(raw: nw.LazyFrame[Any], aliases: Sequence[str], classes: ClassRule, view: View) -> nw.LazyFrame[Any]:
    """Turn logits into probabilities; keep what rounding would spoil: the log loss, and of single classes the logit."""
    logits = [nw.col(alias) for alias in aliases]
    raw = raw.with_columns(_cf_top=nw.max_horizontal(*logits))
    total = nw.sum_horizontal(*((logit - nw.col("_cf_top")).exp() for logit in logits))
    happened = nw.sum_horizontal(*classes.where(nw.col("_cf_label"), logits))
    extreme = nw.any_horizontal(*(extreme_logit(logit) for logit in logits), ignore_nulls=True)
    raw = raw.with_columns(_cf_total=total, _cf_happened=happened)
    odd = nw.col("_cf_odd").fill_null(value=False) | (nw.col("_cf_top").abs() == float("inf")).fill_null(value=False)
    raw = raw.with_columns(_cf_odd=odd | extreme.fill_null(value=False))
    if view != "vectors":
        raw = _with_log_odds(raw, logits)
    return raw.with_columns(
        (nw.col("_cf_top") - nw.col("_cf_happened") + nw.col("_cf_total").log()).alias("_cf_loss"),
        *(((nw.col(alias) - nw.col("_cf_top")).exp() / nw.col("_cf_total")).alias(alias) for alias in aliases),
    )


def _with_log_odds(raw: nw.LazyFrame[Any], logits: Sequence[nw.Expr]) -> nw.LazyFrame[Any]:
    """Add the logit of each class against all others, none of them rounded where its probability is.

    It is ``z - ln sum exp(z')`` over the others. Where the others are all below z, the sum is taken in units of the
    largest of them; elsewhere the largest logit is among them, and the sum in its units is 1 or more.
    """
    if len(logits) == 2:  # exactly, so that equal differences stay equal
        odds = [logits[0] - logits[1], logits[1] - logits[0]]
        return raw.with_columns(value.alias(logit_column(i)) for i, value in enumerate(odds))
    top = nw.col("_cf_top")
    below = [nw.when(logit < top).then(logit).otherwise(float("-inf")) for logit in logits]
    highest = [nw.when(logit == top).then(1.0).otherwise(0.0) for logit in logits]
    raw = raw.with_columns(_cf_next=nw.max_horizontal(*below), _cf_alone=nw.sum_horizontal(*highest) == 1.0)
    some = nw.col("_cf_next") > float("-inf")
    anchor = nw.when(some).then(nw.col("_cf_next")).otherwise(0.0)
    rest = nw.when(some).then(nw.sum_horizontal(*((logit - anchor).exp() for logit in below))).otherwise(1.0)
    raw = raw.with_columns(_cf_lead=nw.when(some).then(top - anchor - rest.log()).otherwise(float("inf")))
    odds = []
    for logit in logits:
        leads = (logit == top) & nw.col("_cf_alone")
        others = nw.when(leads).then(1.0).otherwise(nw.col("_cf_total") - (logit - top).exp())
        odds.append(nw.when(leads).then(nw.col("_cf_lead")).otherwise(logit - top - others.log()))
    return raw.with_columns(value.alias(logit_column(i)) for i, value in enumerate(odds))


def _narrow(source: Source, roles: Roles) -> tuple[bool, ...]:
    """Return per model whether its scores are float32; of class probabilities, whether all are."""
    found = tuple(source.types[name] == nw.Float32 and roles.link == "probability" for name in roles.scores)
    return (all(found),) if roles.classes else found


def _with_probability(raw: nw.LazyFrame[Any], roles: Roles) -> nw.LazyFrame[Any]:
    """Add the probability that a score stands for, where the score is not one already."""
    if roles.link == "probability":
        return raw
    score = nw.col("_cf_score")
    tail = (score.abs() * -1.0).exp()  # never overflows
    return raw.with_columns(_cf_share=nw.when(score >= 0.0).then(1.0 / (1.0 + tail)).otherwise(tail / (1.0 + tail)))
