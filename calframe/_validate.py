"""The verb `validate`: is a calibration map worth it, and which one, judged on rows it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from calframe._candidates import FittedMap, calibrated_by, candidates
from calframe._cross_fit import roles_of
from calframe._errors import CalframeWarning, ColumnClashError
from calframe._folds import Folds
from calframe._kernels._intervals import sidak_level
from calframe._maps._map import CalibrationMap
from calframe._metrics import metrics
from calframe._options import check_choice, check_level
from calframe._results import SCHEMA_VERSION, html_table, like, records, to_polars
from calframe._source import opened
from calframe._typing import Bools, Floats, Names
from calframe._verdicts import MIN_EVENTS

Loss: TypeAlias = Literal["brier", "log_loss"]
Json: TypeAlias = dict[str, Any]

_OF_ONE = ("brier", "log_loss", "ece", "ece_expected", "resolution")
_OF_CLASSES = ("brier", "log_loss", "classwise_ece", "accuracy")
_DIFFERENCE = {"brier": "epistemic_loss", "log_loss": "epistemic_loss_log"}
_USUAL = ("platt", "beta", "isotonic")
_USUAL_CLASSES = ("temperature", "vector", "ovr_isotonic")
_ALL, _SEGMENT = "all", "segment"
_ENDS = ("improvement", "improvement_low", "improvement_high")
_ROUNDING = 1e-12  # an improvement this small is what arithmetic leaves of none
_NAME_WIDTH = 24  # of a method, so that a line keeps within 80 columns


@dataclass(frozen=True, kw_only=True, repr=False)
class Validation:
    """What maps do to scores they have not seen.

    Attributes
    ----------
    table : DataFrame
        One row per method, for the whole table (``scope`` "all") and for each segment ("segment"): the segment
        columns, ``method``, ``n`` (rows judged), ``improvement`` (what the map takes off the loss: higher is better, 0
        is no change) with ``improvement_low`` and ``improvement_high``, ``verdict`` ("better", "worse", "no clear
        difference", "too few rows", "fitted on these rows"), and measures of the scores before and after.
    best : str or None
        The method of the largest improvement among those that are clearly better on the whole table; None if none is
        worth it.
    by : tuple of str
        The segment columns.
    methods : tuple of str
        What was compared.
    loss : {"brier", "log_loss"}
        What `improvement` is of.
    confidence_level : float
        The level of the intervals.
    """

    table: Any
    best: str | None
    by: tuple[str, ...]
    methods: tuple[str, ...]
    loss: Loss
    confidence_level: float

    def to_dict(self) -> Json:
        """Return the comparison as JSON-ready data with a schema version."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "validation",
            "best": self.best,
            "by": list(self.by),
            "methods": list(self.methods),
            "loss": self.loss,
            "confidence_level": self.confidence_level,
            "rows": records(self.table),
        }

    def __repr__(self) -> str:
        """Say which method to take, if any is worth it."""
        whole = to_polars(self.table).filter(pl.col("scope") == _ALL)
        lines = []
        for row in whole.iter_rows(named=True):
            value, low, high = ("–" if row[name] is None else f"{row[name]:+.5f}" for name in _ENDS)
            name = f"{row['method']:<{_NAME_WIDTH}.{_NAME_WIDTH}}"
            lines.append(f"  {name} {value} ({low} to {high})  {row['verdict'] or '–'}")
        said = f"take {self.best!r:.60}" if self.best else "none is clearly worth it"
        named = "Brier score" if self.loss == "brier" else "log loss"
        return "\n".join([f"<Validation: {said}>", f"what maps take off the {named}, out of fold:", *lines])

    def _repr_html_(self) -> str:
        return html_table(self.table, caption=f"Calibration maps, out of fold: {self.best or 'none is worth it'}")


def validate(
    data: Any,
    *,
    label: str,
    score: str | Mapping[Any, str],
    methods: Sequence[str | Mapping[str, Any] | CalibrationMap] | Mapping[str, Any] | None = None,
    by: Names | None = None,
    folds: int | str = 5,
    group: str | None = None,
    time: str | None = None,
    rng: int | np.random.Generator | None = 0,
    loss: Loss = "brier",
    confidence_level: float = 0.95,
    **options: Any,
) -> Validation:
    """Compare calibration maps on rows they have not seen, and say whether any is worth it.

    Every method is fitted anew on each set of folds but one, pooling included, and judged on the one left out, as
    `calframe.cross_fit` does it. What counts is how much a map takes off a proper loss, row by row, with a paired
    interval: a calibration error alone would also be small for a map that gives everyone the mean.

    Parameters
    ----------
    data : table
        A pandas or polars DataFrame, a pyarrow Table, or a polars LazyFrame (it is collected).
    label, score, by
        As in `calframe.fit`.
    methods : sequence, optional
        Names of methods; a mapping such as ``{"method": "isotonic", "epsilon": 0.01}`` gives a method its own
        arguments. A fitted `CalibrationMap` is judged as it is; if these are the very rows it was fitted on (some of
        them are not noticed), a warning says so and it gets no verdict. A mapping of names to any of these names them.
        By default platt, beta and isotonic; of several classes temperature, vector and ovr_isotonic.
    folds, group, time, rng
        As in `calframe.cross_fit`. With `time`, rows of the first fold are not judged.
    loss : {"brier", "log_loss"}, default "brier"
        What maps are compared by. A map that gives 0 to what happens once has an infinite log loss.
    confidence_level : float, default 0.95
        Level at which the intervals of all methods (and of all methods and segments) hold together.
    **options
        Further arguments of `calframe.fit` for every method, such as ``weight`` or ``pooling``.

    Returns
    -------
    Validation
        With ``.table``, ``.best`` and ``.to_dict()``.

    Raises
    ------
    CalframeError
        If columns, labels, scores or arguments are not what they must be; the message says what to do.

    Notes
    -----
    The improvement is the mean over rows of (loss before - loss after), and its interval the normal one of such a
    mean, at Šidák's level: those of all methods hold together, and so do those of all methods and segments. Rows are
    taken as independent; that maps share rows makes intervals a little too short where there are few folds and rows.
    A mean of few rows is not normal: with fewer than 10 positives or 10 negatives (20 rows, of several classes) there
    is no verdict.

    Of two methods that are better, the one of the larger improvement is the best, be the difference clear or not: what
    is not known to differ may be chosen by other lights, such as how many numbers a map has. `resolution` says what a
    map of few values, such as histogram, loses of the differences between rows.

    References
    ----------
    Bröcker, J. and Smith, L. A. (2007). Scoring probabilistic forecasts: the importance of being proper. Weather and
    Forecasting 22, 382-388. https://doi.org/10.1175/WAF966.1

    Examples
    --------
    >>> import calframe
    >>> calframe.validate(calframe.demo_table(), label="y", score="p_gbm", methods=["platt", "isotonic"])
    <Validation: take 'isotonic'>
    what maps take off the Brier score, out of fold:
      platt                    +0.01953 (+0.01830 to +0.02077)  better
      isotonic                 +0.02009 (+0.01883 to +0.02136)  better
    """
    check_choice("loss", loss, get_args(Loss))
    check_level(confidence_level, required=True)
    plan = Folds.from_arguments(folds, group=group, time=time, rng=rng)
    _check_keys(by)
    arguments = {"label": label, "score": score, "by": by, **options}
    several = len(score if isinstance(score, Mapping) else options.get("classes") or ()) > 2
    asked = candidates(methods if methods is not None else (_USUAL_CLASSES if several else _USUAL), arguments)
    frame = data.collect() if isinstance(data, pl.LazyFrame) else data
    found = {name: calibrated_by(method, frame, plan) for name, method in asked.items()}
    judging = _Judging(
        roles={**roles_of(arguments), "by": None},
        columns={name: [f"_cf_v{i}_{j}" for j in range(len(found[name]))] for i, name in enumerate(found)},
        loss=loss,
        level=confidence_level,
        several=several,
        seen={name for name, method in asked.items() if isinstance(method, FittedMap) and method.has_seen(frame)},
    )
    rows = judging.rows(frame, by, found)
    parts = [judging.table(rows, by=None)]
    if by is not None:
        parts.append(judging.table(rows, by=by))
    table = pl.concat(parts, how="diagonal")
    keys = _listed(by)
    table = table.select("scope", *keys, pl.exclude("scope", *keys))
    return Validation(
        table=table if isinstance(data, pl.LazyFrame) else like(table, frame),
        best=_best(parts[0]),
        by=tuple(keys),
        methods=tuple(asked),
        loss=loss,
        confidence_level=confidence_level,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judging:
    """How calibrated scores are judged.

    Attributes
    ----------
    roles : mapping of str to object
        The columns of the table, as `calframe.metrics` takes them.
    columns : mapping of str to list of str
        The private columns of each method.
    loss : {"brier", "log_loss"}
        What is compared.
    level : float
        Level of all intervals together.
    several : bool
        Whether there are three classes or more.
    seen : set of str
        The methods that are maps fitted on these very rows, which get no other verdict.
    """

    roles: Mapping[str, Any]
    columns: Mapping[str, list[str]]
    loss: Loss
    level: float
    several: bool
    seen: AbstractSet[str]

    def rows(self, frame: Any, by: Names | None, found: Mapping[str, list[Floats]]) -> Any:
        """Return the rows that every method calibrates, with the calibrated columns."""
        opened_frame = opened(frame)
        values = {
            name: each
            for method, names in self.columns.items()
            for name, each in zip(names, found[method], strict=True)
        }
        series = [
            nw.new_series(name, each, nw.Float64, backend=opened_frame.implementation) for name, each in values.items()
        ]
        judged = np.all([~np.isnan(each) for each in values.values()], axis=0)
        score, weight = self.roles["score"], self.roles.get("weight")
        scores = [score] if isinstance(score, str) else list(score.values())
        used = dict.fromkeys([self.roles["label"], *scores, *_listed(by), *([weight] if weight else [])])
        return opened_frame.select(*used).with_columns(*series).filter(judged.tolist()).to_native()

    def table(self, rows: Any, *, by: Names | None) -> pl.DataFrame:
        """Return one row per method, and segment if there are such."""
        shown = list(_OF_CLASSES if self.several else _OF_ONE)
        before = self._measured(rows, by, [*shown, *([] if self.several else ["rate"])])
        enough = _enough(before)
        level = sidak_level(self.level, len(self.columns) * int(enough.sum()))
        scope = pl.lit(_ALL if by is None else _SEGMENT).alias("scope")
        parts = []
        for name in self.columns:
            after = self._measured(rows, by, shown, score=self._score(name))
            ends = self._improvement(rows, by, name, level=level)
            ends = _with_infinite(ends, before, after) if self.loss == "log_loss" else ends
            both = [
                column
                for metric in shown
                for column in (before[metric].alias(f"{metric}_before"), after[metric].alias(f"{metric}_after"))
            ]
            part = before.select(scope, *_listed(by), pl.lit(name).alias("method"), "n")
            parts.append(part.with_columns(*ends.get_columns(), self._verdict(name, ends, enough), *both))
        return pl.concat(parts)

    def _verdict(self, method: str, ends: pl.DataFrame, enough: Bools) -> pl.Series:
        low, high = pl.col("improvement_low"), pl.col("improvement_high")
        seen = pl.when(method in self.seen).then(pl.lit("fitted on these rows"))
        few = seen.when(~pl.lit(pl.Series(enough))).then(pl.lit("too few rows"))
        clear = few.when(low > _ROUNDING).then(pl.lit("better")).when(high < -_ROUNDING).then(pl.lit("worse"))
        known = clear.when(low.is_not_null()).then(pl.lit("no clear difference"))
        return ends.select(known.alias("verdict")).to_series()

    def _improvement(self, rows: Any, by: Names | None, method: str, *, level: float) -> pl.DataFrame:
        """Return how much a method takes off the loss, with its interval."""
        gain, score = _DIFFERENCE[self.loss], self._score(method)
        found = self._measured(rows, by, [gain], posterior=score, confidence_level=level)
        names = (gain, f"{gain}_low", f"{gain}_high")
        return found.select(pl.col(name).alias(end) for name, end in zip(names, _ENDS, strict=True))

    def _measured(self, rows: Any, by: Names | None, names: list[str], **arguments: Any) -> pl.DataFrame:
        """Measure scores; what is infinite, or declared and empty, the verdict says better than a warning."""
        roles = {**self.roles, "by": by, **arguments}
        if "score" in arguments:
            roles = {**roles, "link": "probability", "classes": None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalframeWarning)
            return to_polars(metrics(rows, metrics=names, **roles))

    def _score(self, method: str) -> Any:
        """Return the calibrated columns as ``score=`` takes them."""
        score, columns = self.roles["score"], self.columns[method]
        named = list(score) if isinstance(score, Mapping) else list(self.roles.get("classes") or ())
        return dict(zip(named, columns, strict=True)) if len(named) > 2 else columns[0]


def _check_keys(by: Names | None) -> None:
    """Raise if a segment column has the name of a column of the table."""
    measured = {f"{name}_{when}" for name in (*_OF_ONE, *_OF_CLASSES) for when in ("before", "after")}
    for name in _listed(by):
        if name in measured | {"scope", "method", "verdict", *_ENDS}:
            raise ColumnClashError.from_reserved(name)


def _listed(by: Names | None) -> list[str]:
    return [by] if isinstance(by, str) else list(by or ())


def _enough(before: pl.DataFrame) -> Bools:
    """Return where there are enough rows for a verdict, of both classes if there are two."""
    n = before["n"].to_numpy()
    if "rate" not in before.columns:
        return np.asarray(n >= 2.0 * MIN_EVENTS)
    rate = before["rate"].fill_null(0.0).to_numpy()
    return np.asarray(np.minimum(n * rate, n * (1.0 - rate)) >= MIN_EVENTS - _ROUNDING * n)


def _with_infinite(ends: pl.DataFrame, before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Put in improvements of a log loss that is infinite without the map, or with it."""
    was, comes = (pl.lit(table["log_loss"].is_infinite()) for table in (before, after))
    gained = pl.when(was & comes).then(None).when(was).then(np.inf).when(comes).then(-np.inf)
    return ends.with_columns(
        pl.when(was | comes).then(gained.otherwise(None)).otherwise(pl.col(name)).alias(name) for name in _ENDS
    )


def _best(whole: pl.DataFrame) -> str | None:
    """Return the method of the largest improvement among those that are clearly better."""
    better = whole.filter(pl.col("verdict") == "better").sort("improvement", descending=True)
    return str(better["method"][0]) if len(better) else None
