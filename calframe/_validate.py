"""The verb `validate`: is a calibration map worth it, and which one, judged on rows it has not seen."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from calframe._candidates import Calibrated, Judged, calibrated, candidates
from calframe._errors import CalframeWarning, ColumnClashError
from calframe._folds import Folds
from calframe._gains import Clusters, Loss, Outcomes, improvement
from calframe._kernels._intervals import sidak_level
from calframe._maps._map import CalibrationMap
from calframe._metrics import metrics
from calframe._options import check_choice, check_level
from calframe._out_of_fold import checked_roles, in_memory, roles_of
from calframe._results import SCHEMA_VERSION, html_table, like, records, to_polars
from calframe._roles import Roles
from calframe._typing import Floats, Names
from calframe._verdicts import MIN_EVENTS

Json: TypeAlias = dict[str, Any]

_OF_ONE = ("brier", "log_loss", "ece", "ece_expected", "resolution")
_OF_CLASSES = ("brier", "log_loss", "classwise_ece", "accuracy")
_USUAL = ("platt", "beta", "isotonic")
_USUAL_CLASSES = ("temperature", "vector", "ovr_isotonic")
_ALL, _SEGMENT = "all", "segment"
_ENDS = ("improvement", "improvement_low", "improvement_high")
_LABEL = "_cf_happened"
_ROUNDING = 1e-12  # an improvement this small is what arithmetic leaves of none
_LINE_WIDTH = 80
_NAME_WIDTH = 24  # of a method, so that a line keeps within it


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Validation:
    """What maps do to scores they have not seen.

    Attributes
    ----------
    table : DataFrame
        One row per method, for the whole table (``scope`` "all") and for each segment ("segment"): the segment
        columns, ``method``, ``n`` (rows judged), ``verdict`` ("better", "worse", "no clear difference", "too few rows",
        "too few groups", "fitted on these rows"), ``improvement`` (what the map takes off the loss: higher is better, 0
        is no change) with ``improvement_low`` and ``improvement_high``, measures of the scores before and after, and
        ``note``, which says of a segment whether it had no map of its own.
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
        of_best = to_polars(self.table).filter(pl.col("scope") == _SEGMENT, pl.col("method") == (self.best or ""))
        if of_best.height:
            counts = ", ".join(
                f"{(of_best['verdict'] == verdict).sum():,} {verdict}" for verdict in ("better", "worse")
            )
            lines.append(f"  of {of_best.height:,} segments with it: {counts}; the rest is not clear. See .table")
        lines += self._segment_notes()
        named = "Brier score" if self.loss == "brier" else "log loss"
        return "\n".join([f"<Validation: {said}>", f"what maps take off the {named}, out of fold:", *lines])

    def _segment_notes(self) -> list[str]:
        """Say which methods gave all segments one map, and why."""
        noted = to_polars(self.table).filter(pl.col("note").is_not_null()).group_by("note", maintain_order=True)
        lines: list[str] = []
        for note, methods in noted.agg(pl.col("method").unique(maintain_order=True)).iter_rows():
            whose = "" if len(methods) == len(self.methods) else f" ({', '.join(methods)})"
            lines += textwrap.wrap(
                note + whose, _LINE_WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
            )
        return lines

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
        As in `calframe.cross_fit`. With `group`, rows of one group are not taken as independent: see the notes. With
        `time`, rows of the first fold are not judged.
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
    mean, at Šidák's level: those of all methods hold together, and so do those of all methods and segments. That maps
    share rows makes intervals a little too short where there are few folds and rows. A mean of few rows is not normal:
    with fewer than 10 positives or 10 negatives (20 rows, of several classes) there is no verdict.

    Rows are taken as independent, also with `time` and with a fold column of your own: where what happens in one row
    tells something of the next, as the weather of a day does of its flights, intervals are too short. With `group` only
    groups are taken as independent. The variance of the mean is then that of the sums of groups, G / (G - 1) times the
    sum over groups of (sum of w (gain - mean))^2, by (sum of w)^2, and the interval that of Student's t; its degrees of
    freedom are one less than the number of groups of equal weight that would tell as much, (sum W)^2 / sum W^2, W being
    the weights of the groups. Where that number is below 10, or fewer than 10 groups have a positive or 10 a negative
    (20 have rows, of several classes), the verdict is "too few groups".

    With `by`, a segment is judged on maps as `pooling` makes them: with fewer than five segments partial pooling gives
    one map for all of them, and the note says so.

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
    arguments = {"label": label, "score": score, "by": by, **options}
    roles = checked_roles("validate", data, arguments)
    _check_keys(roles.by)
    usual = _USUAL_CLASSES if roles.multiclass else _USUAL
    asked = candidates(methods if methods is not None else usual, arguments, roles)
    frame = in_memory("validate", data.collect() if isinstance(data, pl.LazyFrame) else data)
    plan.check_columns(frame.schema)
    found = calibrated(asked, Judged(frame=frame, plan=plan, arguments=arguments, roles=roles))
    judged = np.all([~np.isnan(column) for each in found.values() for column in each.columns], axis=0)
    outcomes = Outcomes.of_table(frame.to_native(), roles, judged, kind=loss, group=plan.groups(frame))
    judging = _Judging.of_table(frame, arguments, roles, found, outcomes, level=confidence_level)
    parts = [judging.table(by=())]
    if roles.by:
        parts.append(judging.table(by=roles.by))
    table = pl.concat(parts, how="diagonal")
    first = ["scope", *roles.by]
    table = table[[*first, *(name for name in table.columns if name not in {*first, "note"}), "note"]]
    return Validation(
        table=table if isinstance(data, pl.LazyFrame) else like(table, frame.to_native()),
        best=_best(parts[0]),
        by=roles.by,
        methods=tuple(asked),
        loss=loss,
        confidence_level=confidence_level,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Judging:
    """How calibrated scores are judged.

    Attributes
    ----------
    rows : table
        The judged rows, those that every method calibrates, in the user's library.
    outcomes : Outcomes
        What happened in them.
    before, after : mapping of str to object
        Their columns without and with a map, as `calframe.metrics` takes them.
    columns : mapping of str to object
        The calibrated columns of each method, as ``score=`` takes them.
    found : mapping of str to Calibrated
        What each method made of all rows.
    level : float
        Level of all intervals together.
    several : bool
        Whether there are three classes or more.
    """

    rows: Any
    outcomes: Outcomes
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    columns: Mapping[str, Any]
    found: Mapping[str, Calibrated]
    level: float
    several: bool

    @classmethod
    def of_table(
        cls,
        frame: nw.DataFrame[Any],
        arguments: Mapping[str, Any],
        roles: Roles,
        found: Mapping[str, Calibrated],
        outcomes: Outcomes,
        *,
        level: float,
    ) -> _Judging:
        """Gather the columns of the judged rows."""
        names = {
            method: [f"_cf_v{i}_{j}" for j in range(len(each.columns))]
            for i, (method, each) in enumerate(found.items())
        }
        made = {
            name: column
            for method, each in found.items()
            for name, column in zip(names[method], each.columns, strict=True)
        }
        made[_LABEL] = np.full(len(frame), np.nan)
        made[_LABEL][outcomes.row] = outcomes.happened
        rows = frame[outcomes.judged, list(roles.columns())]
        series = [
            nw.new_series(name, column[outcomes.judged], nw.Float64, backend=frame.implementation)
            for name, column in made.items()
        ]
        given = roles_of(arguments)
        plain = {"label": _LABEL, "positive": None}  # the judged rows may have none of the positive value
        return cls(
            rows=rows.with_columns(*series).to_native(),
            outcomes=outcomes,
            before={**given, **({} if roles.classes else plain)},
            after={**given, **({} if roles.multiclass else plain), "link": "probability", "classes": None},
            columns={
                method: dict(zip(roles.classes, each, strict=True)) if roles.multiclass else each[0]
                for method, each in names.items()
            },
            found=found,
            level=level,
            several=roles.multiclass,
        )

    def table(self, *, by: tuple[str, ...]) -> pl.DataFrame:
        """Return one row per method, and segment if there are such."""
        shown = _OF_CLASSES if self.several else _OF_ONE
        outcomes = self.outcomes if by else self.outcomes.as_one()
        clusters = Clusters.of_rows(outcomes)
        before = self._measured(by, shown if self.several else (*shown, "rate"), self.before)
        after = self._after(by, shown)
        few = _few(before, clusters, several=self.several)
        level = sidak_level(self.level, len(self.found) * few.count(None))
        parts = []
        for name, each in self.found.items():
            ends = self._ends(improvement(outcomes, clusters, outcomes.gain(each.columns), level=level))
            verdict = ["fitted on these rows"] * len(few) if each.seen else _verdicts(ends, few)
            columns = [
                pl.Series("scope", [_SEGMENT if by else _ALL] * len(few)),
                *(before[key] for key in by),
                pl.Series("method", [name] * len(few)),
                before["n"],
                pl.Series("verdict", verdict, dtype=pl.String),
                *(pl.Series(end, values, nan_to_null=True) for end, values in zip(_ENDS, ends, strict=True)),
                *(
                    measured[metric].alias(f"{metric}_{when}")
                    for metric in shown
                    for when, measured in (("before", before), ("after", after[name]))
                ),
                pl.Series("note", [each.note if by else None] * len(few), dtype=pl.String),
            ]
            parts.append(pl.DataFrame(columns))
        return pl.concat(parts)

    def _ends(self, found: tuple[Floats, Floats, Floats]) -> tuple[Floats, Floats, Floats]:
        """Return an improvement and its interval within what it can be."""
        most = np.inf if self.outcomes.kind == "log_loss" else 2.0 if self.several else 1.0
        return found[0], np.maximum(found[1], -most), np.minimum(found[2], most)

    def _after(self, by: tuple[str, ...], names: Sequence[str]) -> dict[str, pl.DataFrame]:
        """Measure the scores of each method, at once where one call takes them all."""
        if self.several:
            return {
                name: self._measured(by, names, {**self.after, "score": column})
                for name, column in self.columns.items()
            }
        found = self._measured(by, names, {**self.after, "score": list(self.columns.values())})
        return {name: found.filter(pl.col("model") == column) for name, column in self.columns.items()}

    def _measured(self, by: tuple[str, ...], names: Sequence[str], roles: Mapping[str, Any]) -> pl.DataFrame:
        """Measure scores; what is infinite, or declared and empty, the verdict says better than a warning."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalframeWarning)
            return to_polars(metrics(self.rows, metrics=list(names), **{**roles, "by": by or None}))


def _check_keys(by: tuple[str, ...]) -> None:
    """Raise if a segment column has the name of a column of the table."""
    measured = {f"{name}_{when}" for name in (*_OF_ONE, *_OF_CLASSES) for when in ("before", "after")}
    for name in by:
        if name in measured | {"scope", "method", "verdict", *_ENDS}:
            raise ColumnClashError.from_reserved(name)


def _few(before: pl.DataFrame, clusters: Clusters | None, *, several: bool) -> list[str | None]:
    """Say of each segment whether it has too few rows or groups for a verdict, of both classes if there are two."""
    n = before["n"].to_numpy()
    rate = np.full(len(n), 0.5) if several else before["rate"].fill_null(0.0).to_numpy()
    enough = np.minimum(n * rate, n * (1.0 - rate)) >= MIN_EVENTS - _ROUNDING * n
    grouped = np.ones_like(enough) if clusters is None else clusters.enough(MIN_EVENTS, several=several)
    return [
        None if rows and groups else "too few groups" if rows else "too few rows"
        for rows, groups in zip(enough, grouped, strict=True)
    ]


def _verdicts(ends: tuple[Floats, Floats, Floats], few: Sequence[str | None]) -> list[str | None]:
    """Return what each segment's interval says, or that there is too little to say it."""
    _, low, high = ends
    found: list[str | None] = []
    for said, least, most in zip(few, low, high, strict=True):
        clear = "better" if least > _ROUNDING else "worse" if most < -_ROUNDING else "no clear difference"
        found.append(said or (None if np.isnan(least) else clear))
    return found


def _best(whole: pl.DataFrame) -> str | None:
    """Return the method of the largest improvement among those that are clearly better."""
    better = whole.filter(pl.col("verdict") == "better").sort("improvement", descending=True)
    return str(better["method"][0]) if len(better) else None
