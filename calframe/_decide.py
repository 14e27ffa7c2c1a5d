"""The verb `decide`: act from a threshold on, and what that costs, is worth, and loses by miscalibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calframe._closing import warn_empty_categories
from calframe._decide_tables import DECIDE_COLUMNS, Plan, decide_tables
from calframe._errors import ArgumentError
from calframe._measures import reserved_names
from calframe._options import check_level, check_width, is_real, numbers_in
from calframe._results import SCHEMA_VERSION, counted_once, html_table, json_ready, records, to_polars
from calframe._roles import Roles, WeightKind
from calframe._table import open_table, view_of
from calframe._testing._decisions import Costs
from calframe._typing import Floats, Invalid, Json, Link, Names, Score
from calframe._words._deciding import lines_of_many, lines_of_one
from calframe._words._listing import key_columns, scored_by, size
from calframe._words._thresholds import threshold as written

if TYPE_CHECKING:
    import altair as alt

_GRID = np.arange(1, 100) / 100
_MOST_THRESHOLDS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decisions:
    """What acting on scores costs and is worth.

    Attributes
    ----------
    table : frame
        One row per segment and model, in the library of the input (polars where that was lazy or remote). Costs are per
        row; lower is better. Columns:

        the keys, ``model``?, ``n``, ``n_missing``, ``n_invalid``?, ``weight_sum``?
            As of `calframe.metrics`.
        ``rate``, ``threshold``, ``acted``
            The observed rate; the threshold; the share of rows that it acts on.
        ``cost``, ``cost_low``, ``cost_high``
            The mean cost of acting from the threshold on, and its interval.
        ``cost_all``, ``cost_none``
            That of acting on everyone, and on no one.
        ``saved``, ``saved_low``, ``saved_high``
            The cost of the cheaper of these two less ``cost``: above 0 the score pays. The interval is that of the
            difference on the same rows, and counts that the cheaper one is read off them (see Notes): with
            ``saved_low`` above 0 the score is cheaper than either, with ``saved_high`` below 0 one of them is cheaper
            than the score, and else these rows do not decide.
        ``net_benefit``, ``standardised_net_benefit``
            True positives per row, less the false ones as the threshold values them (at most ``rate``; higher is
            better, acting on no one has 0); the same as a share of the rate (at most 1).
        ``threshold_in_hindsight``, ``cost_in_hindsight``
            The threshold that would have cost least on these rows (null where acting on no one does), and its mean
            cost. It is chosen on the rows that judge it, so on new rows expect more.
        ``miscalibration_cost``
            ``cost`` less the cost of acting from the cost-derived threshold on after isotonic recalibration of the same
            scores, fitted on these very rows: 0 or more, 0 is perfect, and optimistic about what recalibration saves.
        ``miscalibration_cost_by_score``
            ``cost`` less that of the better decision at each distinct score, without any fit; null where there are
            fewer than ten rows to a distinct score, for hindsight at single rows makes no error.
        ``note``
            What is missing or undefined.
    curve : frame
        The decision curves, one row per segment, model and threshold: the keys, ``model``?, ``threshold``, ``acted``,
        ``n`` (rows acted on), ``cost``, ``cost_low``, ``cost_high`` (at the costs given), ``net_benefit``,
        ``net_benefit_all`` (of acting on everyone), ``standardised_net_benefit`` (as each threshold values errors).
    by : tuple of str
        The segment columns.
    scores : tuple of str
        The score columns.
    label : str
        The label column.
    n, n_missing, n_invalid : int
        Rows used, rows with something missing, and rows left out by ``invalid="drop"``; of several models those of the
        one that uses most rows.
    cost_fp, cost_fn : float
        What acting on a negative costs, and leaving a positive alone.
    threshold : float
        ``cost_fp / (cost_fp + cost_fn)``: scores of at least this are acted on.
    confidence_level : float
        The level of the intervals.
    roles : dict
        How the columns were read: positive value, link, invalid rows, weights, clusters.
    """

    table: Any
    curve: Any
    by: tuple[str, ...]
    scores: tuple[str, ...]
    label: str
    n: int
    n_missing: int
    n_invalid: int
    cost_fp: float
    cost_fn: float
    threshold: float
    confidence_level: float
    roles: Json

    def plot(self, *, width: int = 540) -> alt.TopLevelMixin:
        """Draw the decision curves: net benefit against the threshold, beside acting on everyone and on no one.

        Up to five curves share a plot; of more, the twelve of most rows have a panel each.

        Parameters
        ----------
        width : int, default 540
            Width of the chart in pixels.

        Returns
        -------
        altair.Chart
            In a light theme of fixed colours. ``chart.save("decide.svg")`` and ``.png`` need nothing from the
            network; a page does, unless it is saved with ``chart.save("decide.html", inline=True)``.
        """
        from calframe._charts._decision import decision_curves  # noqa: PLC0415  altair loads only for a chart

        check_width(width)
        table = to_polars(self.curve)
        keys = key_columns(self.by, table.columns)
        sizes = to_polars(self.table)["n"].to_list()
        chart: alt.TopLevelMixin = decision_curves(table, sizes, keys=keys, width=width, threshold=self.threshold)
        return chart

    def to_dict(self) -> Json:
        """Return the result as JSON-ready data with a schema version."""
        convention = {
            "cost_fp": self.cost_fp,
            "cost_fn": self.cost_fn,
            "threshold": self.threshold,
            "confidence_level": self.confidence_level,
            **json_ready(self.roles),
        }
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "decisions",
            "label": self.label,
            "scores": list(self.scores),
            "by": list(self.by),
            "n": self.n,
            "n_missing": self.n_missing,
            "n_invalid": self.n_invalid,
            "convention": convention,
            "table": records(self.table),
            "curve": records(self.curve),
        }

    def __repr__(self) -> str:
        """Say from where on to act, and what that costs."""
        table = to_polars(self.table)
        keys = key_columns(self.by, table.columns)
        size_of = size(self.n, self.scores, keys)
        head = f"<Decisions: act from {written(self.threshold)} on, {size_of}; .table, .curve, .plot()>"
        rows = [row for row in table.to_dicts() if row["n"] > 0]
        if len(rows) == 1:
            return "\n".join([head, *lines_of_one(rows[0])])
        return "\n".join([head, *lines_of_many(rows, keys, level=f"{100 * self.confidence_level:g}%")])

    def _repr_html_(self) -> str:
        named = scored_by(self.scores, key_columns(self.by, to_polars(self.table).columns))
        return html_table(self.table, caption=f"Acting from {written(self.threshold)} on by {named}")


def decide(
    data: Any,
    *,
    label: str,
    score: Score,
    cost_fp: float | None = None,
    cost_fn: float | None = None,
    threshold: float | None = None,
    thresholds: Sequence[float] | None = None,
    by: Names | None = None,
    weight: str | None = None,
    cluster: str | None = None,
    classes: Sequence[Any] | None = None,
    confidence_level: float = 0.95,
    positive: Any = None,
    link: Link = "probability",
    invalid: Invalid = "raise",
    weight_kind: WeightKind = "importance",
    engine: Any = None,
) -> Decisions:
    """Say from which score on to act, what that costs, and how much of it better calibrated scores would save.

    Answers "is this model worth acting on, here and there, and what do its wrong probabilities cost?". The query runs
    at once: of a table in memory it reads label, score and weight of the rows, of a remote engine their sums by
    distinct score (with clusters the rows).

    Parameters
    ----------
    data : table
        See `metrics`.
    label, score, by, weight, classes, positive, link, invalid, weight_kind, engine
        See `metrics`; of several classes only two.
    cluster : str, optional
        The column that tells apart what is independent, such as persons or days: rows of one value share their luck, a
        row without a value is a cluster of its own. Intervals then go by clusters (see Notes); costs and savings stay
        what they are. Within each segment clusters count by themselves.
    cost_fp, cost_fn : float
        What it costs to act where the truth is negative, and not to act where it is positive: 0 or more, not both 0, in
        any unit. Right decisions cost nothing; where they do, take it off both costs of the same truth.
    threshold : float, optional
        In the place of costs: the score from which you act, in [0, 1], which tells the ratio of the costs. They are
        taken as ``cost_fp = threshold`` and ``cost_fn = 1 - threshold``, in units of their sum.
    thresholds : list of float, optional
        Where `curve` is drawn up, in [0, 1]. By default 0.01, 0.02, ..., 0.99. The threshold itself is always there.
    confidence_level : float, default 0.95
        Level in (0, 1) of the intervals, each by itself: of costs Wilson's, for costs of two sizes. With weights, at
        (sum w)^2 / sum w^2 rows.

    Returns
    -------
    Decisions
        With ``.table``, ``.curve``, ``.plot()`` and ``.to_dict()``.

    Raises
    ------
    CalframeError
        As `metrics`, at once for every kind of table, and if costs or thresholds are not what they must be.

    See Also
    --------
    calframe.shift_prior : Move scores to another rate of positives before deciding on them.

    Notes
    -----
    A right score p makes acting cost (1 - p) `cost_fp` and not acting p `cost_fn`, so it pays to act from
    ``cost_fp / (cost_fp + cost_fn)`` on. A score of exactly the threshold is acted on; for a float32 column the
    threshold is first rounded to float32.

    If scores are right, no other threshold costs less in the long run. Isotonic recalibration makes the cost-derived
    threshold the best one in hindsight, whatever the costs, so ``cost - miscalibration_cost`` is
    ``cost_in_hindsight``. Both have seen the rows they are judged on. What recalibration saves on rows it has not seen:
    `calframe.cross_fit` a map, then decide with both columns, ``score=["p", "p_calibrated"]``.

    ``saved`` compares the same rows: it varies less than both costs would apart. Each of the savings, against acting on
    all and on none, takes three values a row, and has an interval from exact ones of their shares. As the cheaper of
    both is chosen on the rows that judge it, ``saved_low`` is the smaller of the two lower ends, for the score saves
    something against the cheaper one only if it does against both; and ``saved_high`` is the smaller of the two upper
    ends, each with half of its error, for one of two is enough to be dearer. Rows are taken as independent, unless
    clusters are named, and each segment by itself: of many, a few are decided by chance.

    Clusters: intervals divide the rows by a design effect, the sum of squared totals of clusters over that of rows, of
    costs (or savings) less the end of the interval; where all rows are alike it counts clusters. Student's t stands in
    for the normal law, by Kish's number of clusters. So 20 copies of n rows have the intervals of ``n / r`` rows, with
    r the squared ratio of both quantiles. They hold approximately: of few clusters none may be of a rare costly kind.

    Costs hold at the rate of positives of these rows. Where the rate will be another one, move the scores by
    `calframe.shift_prior`, which comes to the same as moving the threshold.

    References
    ----------
    Elkan, C. (2001). The foundations of cost-sensitive learning. IJCAI 17, 973-978.

    Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data. Survey Methodology 24, 193-201.

    Newcombe, R. G. (1998). Improved confidence intervals for the difference between binomial proportions based on
    paired data. Statistics in Medicine 17, 2635-2650.
    https://doi.org/10.1002/(SICI)1097-0258(19981130)17:22<2635::AID-SIM954>3.0.CO;2-C

    Silva Filho, T. et al. (2023). Classifier calibration: a survey on how to assess and improve predicted class
    probabilities. Machine Learning 112, 3211-3260. https://doi.org/10.1007/s10994-023-06336-7

    Vickers, A. J. and Elkin, E. B. (2006). Decision curve analysis: a novel method for evaluating prediction models.
    Medical Decision Making 26, 565-574. https://doi.org/10.1177/0272989X06295361

    Examples
    --------
    A delay missed costs four times a false alarm:

    >>> import polars as pl
    >>> import calframe
    >>> flights = pl.DataFrame({"late": [0, 0, 1, 1], "p": [0.1, 0.3, 0.15, 0.8]})
    >>> found = calframe.decide(flights, label="late", score="p", cost_fp=1, cost_fn=4)
    >>> found.table.select("threshold", "acted", "cost", "cost_all", "cost_none", "cost_in_hindsight")
    shape: (1, 6)
    ┌───────────┬───────┬──────┬──────────┬───────────┬───────────────────┐
    │ threshold ┆ acted ┆ cost ┆ cost_all ┆ cost_none ┆ cost_in_hindsight │
    │ ---       ┆ ---   ┆ ---  ┆ ---      ┆ ---       ┆ ---               │
    │ f64       ┆ f64   ┆ f64  ┆ f64      ┆ f64       ┆ f64               │
    ╞═══════════╪═══════╪══════╪══════════╪═══════════╪═══════════════════╡
    │ 0.2       ┆ 0.5   ┆ 1.25 ┆ 0.5      ┆ 2.0       ┆ 0.25              │
    └───────────┴───────┴──────┴──────────┴───────────┴───────────────────┘
    """
    check_level(confidence_level, required=True)
    costs = _costs(cost_fp, cost_fn, threshold)
    plan = Plan(
        costs=costs,
        threshold=costs.threshold if threshold is None else float(threshold),
        thresholds=_thresholds(thresholds),
        level=confidence_level,
    )
    roles = Roles.from_arguments(
        label=label,
        score=score,
        by=by,
        weight=weight,
        positive=positive,
        link=link,
        invalid=invalid,
        weight_kind=weight_kind,
        classes=classes,
        cluster=cluster,
    )
    if roles.multiclass:
        msg = (
            f"decide takes scores of one class; score= has {len(roles.classes)} classes. Give the column of the class "
            "to act on as score=, and a label that says whether it happened."
        )
        raise ArgumentError(msg)
    table = open_table(data, roles, reserved=reserved_names() | DECIDE_COLUMNS, view=view_of(roles, None))
    found = decide_tables(table, plan, engine=engine)
    warn_empty_categories(table, found.groups)
    models = found.groups.keys.get_column("_cf_model").to_list() if roles.several else None
    n, n_missing, n_invalid = counted_once(models, found.groups.n, found.groups.n_missing, found.groups.n_invalid)
    return Decisions(
        table=found.table,
        curve=found.curve,
        by=roles.by,
        scores=roles.scores,
        label=label,
        n=n,
        n_missing=n_missing,
        n_invalid=n_invalid,
        cost_fp=costs.fp,
        cost_fn=costs.fn,
        threshold=plan.threshold,
        confidence_level=confidence_level,
        roles=roles.convention(),
    )


def _costs(fp: Any, fn: Any, threshold: Any) -> Costs:
    """Return the costs that are given, or told by a threshold; raise where they are not what they must be."""
    if threshold is not None:
        if fp is not None or fn is not None:
            msg = (
                f"threshold={threshold!r} is in the place of cost_fp= and cost_fn=, given too; leave it out. "
                "What acting from other thresholds costs is in .curve, see thresholds=."
            )
            raise ArgumentError(msg)
        _check_threshold("threshold", threshold)
        return Costs(float(threshold), 1.0 - float(threshold))
    if fp is None or fn is None:
        msg = (
            "decide needs cost_fp=, the cost of acting on a negative, and cost_fn=, that of not acting on a positive, "
            f"or threshold=, from which you act; got cost_fp={fp!r}, cost_fn={fn!r}."
        )
        raise ArgumentError(msg)
    for name, cost in (("cost_fp", fp), ("cost_fn", fn)):
        if not (is_real(cost) and 0.0 <= cost < np.inf):
            msg = f"{name} must be a number of 0 or more, the cost of a wrong decision; got {cost!r}."
            raise ArgumentError(msg)
    if fp == 0.0 and fn == 0.0:
        msg = "cost_fp and cost_fn are both 0, so no decision costs anything; give at least one of them."
        raise ArgumentError(msg)
    return Costs(float(fp), float(fn))


def _check_threshold(name: str, value: Any) -> None:
    if not (is_real(value) and 0.0 <= value <= 1.0):
        msg = f"{name} must lie in [0, 1], for example 0.2; got {value!r}."
        raise ArgumentError(msg)


def _thresholds(given: Any) -> Floats:
    """Return the thresholds of a curve in ascending order, or raise."""
    if given is None:
        return _GRID
    given = numbers_in(given)
    if len(given) > _MOST_THRESHOLDS:
        msg = f"thresholds may be {_MOST_THRESHOLDS:,} numbers at most; got {len(given):,}."
        raise ArgumentError(msg)
    for value in given:
        _check_threshold("thresholds", value)
    return np.unique(np.array(given, dtype=np.float64))
