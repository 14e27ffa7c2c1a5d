"""The verb `selective`: answer where a model is confident, abstain elsewhere, and what that buys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import polars as pl

from calframe._closing import warn_empty_categories
from calframe._errors import ArgumentError
from calframe._measures import reserved_names
from calframe._options import check_choice, check_level, check_whole, check_width, is_real, numbers_in
from calframe._results import SCHEMA_VERSION, counted_once, html_table, json_ready, records, to_polars
from calframe._roles import Roles, WeightKind
from calframe._selective_tables import SELECTIVE_COLUMNS, Asked, Confidence, selective_tables
from calframe._table import Table, open_table, view_of
from calframe._typing import Invalid, Json, Link, Names, RateInterval, Score
from calframe._words._abstaining import coverage_lines, for_whom, target_lines
from calframe._words._listing import SHOWN, key_columns, scored_by, size
from calframe._words._numbers import plural

if TYPE_CHECKING:
    import altair as alt

_MOST_POINTS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selective:
    """What a model that may abstain gets right, and how often it answers.

    Attributes
    ----------
    table : frame
        The coverage-accuracy curves, in the library of the input (polars where that was lazy or remote): one row per
        segment, model and distinct confidence (or as many as `points` keeps), from the most confident down. The keys,
        ``model``?, ``threshold`` (answer from this confidence on, 0 to 1), ``coverage`` (share of rows, or of weight,
        that is answered; higher is better), ``n`` (rows answered), ``weight_sum``?, ``accuracy`` (share of them that is
        right; higher is better), ``risk`` (1 - accuracy), ``accuracy_low``, ``accuracy_high`` (interval of the
        accuracy, for each threshold by itself).
    summary : frame
        One row per segment and model: the keys, ``model``?, ``n``, ``n_missing``, ``n_invalid``?, ``weight_sum``?,
        ``accuracy`` (at full coverage), ``aurc``, ``eaurc`` (as of `calframe.metrics`; lower is better),
        ``confident_share`` (share of the rows with a confidence of `confident_at` or more), ``confident_errors`` (those
        of them that are wrong, as a share of all rows; lower is better), ``confident_error_rate`` (as a share of the
        confident rows; null where there are none; of right scores at most 1 - `confident_at`), ``note``.
    targets : frame
        One row per segment, model and target accuracy; none without targets: the keys, ``model``?,
        ``target_accuracy``, ``threshold`` (the lowest that is shown to hold for independent rows, or clusters, of
        the same population; null where none is, and ``note`` says why), ``coverage``, ``n`` and ``accuracy`` from there
        up in this table, ``accuracy_low`` (one-sided lower bound of the accuracy at this threshold by itself, never
        below the target), ``note``.
    by : tuple of str
        The segment columns.
    scores : tuple of str
        The score columns.
    label : str
        The label column.
    n, n_missing, n_invalid : int
        Rows used, rows with something missing, and rows left out by ``invalid="drop"``; of several models those of the
        one that uses most rows.
    target_accuracy : tuple of float
        The accuracies asked for.
    confidence_level : float
        The level of intervals, and at which each threshold holds for new rows (clusters) that are independent of each
        other, like these.
    confident_at : float
        The confidence from which a wrong row is a confident error.
    notion : {"confidence", "correctness"}
        What the confidence is.
    interval : {"wilson", "clopper_pearson", "jeffreys"}
        The interval of the accuracies in `table`.
    roles : dict
        How the columns were read: positive value, link, invalid rows, weights, clusters.
    """

    table: Any
    summary: Any
    targets: Any
    by: tuple[str, ...]
    scores: tuple[str, ...]
    label: str
    n: int
    n_missing: int
    n_invalid: int
    target_accuracy: tuple[float, ...]
    confidence_level: float
    confident_at: float
    notion: Confidence
    interval: RateInterval
    roles: Json

    def plot(self, *, width: int = 540) -> alt.TopLevelMixin:
        """Draw accuracy against coverage, with the chosen thresholds as dots: a line, or a panel, for each curve.

        Up to five curves share a plot; of more, the twelve of most rows have a panel each. A curve begins at 50 rows.

        Parameters
        ----------
        width : int, default 540
            Width of the chart in pixels.

        Returns
        -------
        altair.Chart
            In a light theme of fixed colours. ``chart.save("selective.svg")`` and ``.png`` need nothing from the
            network; a page does, unless it is saved with ``chart.save("selective.html", inline=True)``.
        """
        from calframe._charts._selective import coverage_curves  # noqa: PLC0415  altair loads only for a chart

        check_width(width)
        table = to_polars(self.table)
        keys, chosen = key_columns(self.by, table.columns), to_polars(self.targets)
        chart: alt.TopLevelMixin = coverage_curves(
            table, chosen, keys=keys, width=width, level=self._level, whom=self._whom
        )
        return chart

    def to_dict(self) -> Json:
        """Return the result as JSON-ready data with a schema version."""
        convention = {
            "notion": self.notion,
            "target_accuracy": list(self.target_accuracy),
            "confidence_level": self.confidence_level,
            "confident_at": self.confident_at,
            "interval": self.interval,
            **json_ready(self.roles),
        }
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "selective",
            "label": self.label,
            "scores": list(self.scores),
            "by": list(self.by),
            "n": self.n,
            "n_missing": self.n_missing,
            "n_invalid": self.n_invalid,
            "convention": convention,
            "table": records(self.table),
            "summary": records(self.summary),
            "targets": records(self.targets),
        }

    def __repr__(self) -> str:
        """Say what each target asks for, or what answering less often buys, worst segments and models first."""
        summary = to_polars(self.summary)
        keys = key_columns(self.by, summary.columns)
        curves = plural(len(summary), "curve")
        head = f"<Selective: {curves} from {size(self.n, self.scores, keys)}; .table, .summary, .targets, .plot()>"
        if self.target_accuracy:
            found = target_lines(to_polars(self.targets).to_dicts(), self.target_accuracy, keys)
            return "\n".join([head, f"  at {self._level}, {self._whom}:", *found])
        worst = summary.sort("aurc", descending=True, nulls_last=True, maintain_order=True).head(SHOWN)
        worst = worst.filter(worst["n"] > 0)
        points = _of_curves(to_polars(self.table), worst, keys)
        return "\n".join([head, *coverage_lines(points.to_dicts(), worst.to_dicts(), keys, total=len(summary))])

    def _repr_html_(self) -> str:
        keys = key_columns(self.by, to_polars(self.summary).columns)
        found = html_table(self.summary, caption=f"Answering by the confidence of {scored_by(self.scores, keys)}")
        if not self.target_accuracy:
            return found
        caption = f"Thresholds for target accuracies, shown to hold at {self._level} {self._whom}"
        return found + html_table(self.targets, caption=caption)

    @property
    def _level(self) -> str:
        return f"{100 * self.confidence_level:g}%"

    @property
    def _whom(self) -> str:
        return for_whom(clustered="cluster" in self.roles)


def _of_curves(points: pl.DataFrame, curves: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return the points of some curves; polars would read some names of keys as patterns, so they get other ones."""
    if not keys:
        return points
    names = {key: f"_cf_{place}" for place, key in enumerate(keys)}
    few = curves[list(keys)].rename(names)
    found = points.rename(names).join(few, on=list(names.values()), how="semi", nulls_equal=True, maintain_order="left")
    return found.rename({name: key for key, name in names.items()})


def selective(
    data: Any,
    *,
    label: str,
    score: Score,
    by: Names | None = None,
    weight: str | None = None,
    cluster: str | None = None,
    notion: Confidence = "confidence",
    classes: Sequence[Any] | None = None,
    target_accuracy: float | Sequence[float] | None = None,
    confidence_level: float = 0.95,
    confident_at: float = 0.9,
    points: int = 200,
    interval: RateInterval = "wilson",
    positive: Any = None,
    link: Link = "probability",
    invalid: Invalid = "raise",
    weight_kind: WeightKind = "importance",
    engine: Any = None,
) -> Selective:
    """Draw up what a model gets right if it answers only where it is confident, and how often it then answers.

    Answers "from which confidence on can this model be left alone?". The query runs at once: of a table in memory it
    reads label, score and weight of the rows, of a remote engine their sums by distinct score (with clusters the rows).

    Parameters
    ----------
    data : table
        See `metrics`.
    label, score, by, weight, classes, positive, link, invalid, weight_kind, engine
        See `metrics`.
    cluster : str, optional
        The column that tells apart what is independent, such as persons or questions: rows of one value share their
        luck, a row without a value is a cluster of its own. Intervals and thresholds then go by clusters (see Notes);
        accuracies and coverage stay what they are. Within each segment clusters count by themselves.
    notion : {"confidence", "correctness"}, default "confidence"
        What a row's confidence is. ``"confidence"``: that of its prediction. One column of scores p predicts the
        positive class from 0.5 on, with the confidence max(p, 1 - p); several classes predict the one of the largest
        score, with that confidence. ``"correctness"``: the score itself, as an answer's own confidence that it is
        right, where the label says whether it was; nothing is turned round then, and 0.3 is a doubtful answer.
    target_accuracy : float or list of float, optional
        Accuracies in (0, 1) that answered rows are to have; for each the lowest threshold that is shown to hold. It
        holds for new rows only if these here are independent of each other, and come from the population that the new
        ones come from: rows of one day, or of one person, share their luck; then name these as `cluster`, or it fails
        more often.
    confidence_level : float, default 0.95
        Level in (0, 1) of the intervals, each point by itself, and at which each threshold holds out of sample (of
        independent rows, see `target_accuracy`), each segment, model and target by itself.
    confident_at : float, default 0.9
        The confidence in [0, 1] from which a wrong row is a confident error.
    points : int, default 200
        Keep about so many thresholds of a curve, at even steps of coverage, where it has more; the most and the least
        confident one are kept. Thresholds for a target are chosen among all.
    interval : {"wilson", "clopper_pearson", "jeffreys"}, default "wilson"
        Interval of the accuracies in `table`. With weights, at (sum w)^2 / sum w^2 rows.

    Returns
    -------
    Selective
        With ``.table``, ``.summary``, ``.targets``, ``.plot()`` and ``.to_dict()``.

    Raises
    ------
    CalframeError
        As `metrics`, at once for every kind of table.

    Notes
    -----
    Rows of equal confidence are answered together: a threshold never parts them. Rows without a confidence or a label
    are in no coverage; ``n_missing`` counts them.

    A threshold read off the curve, the lowest with the accuracy wanted, is chosen because it looks good on these
    very rows, and on new ones fails about half the time where accuracy rises smoothly. That of ``targets`` is
    chosen by tests: with a chance of at least `confidence_level`, the rows of the same population with a confidence
    of at least the threshold are right at least as often as the target says. The hypotheses "from here up the
    accuracy is below the target" have exact binomial p-values and are tested from high thresholds to low (learn
    then test), starting at the n, n/2, n/4, ... most confident rows with an equal part of the error each; what a
    test was allowed goes on to the next one if it rejects. The level is held for independent rows where less
    confident rows are no more often right; where they are, it holds nearly. It says nothing of other populations,
    later times, or all segments together.

    ``aurc`` and ``eaurc`` count a unit of weight as a row: give importance weights a mean of 1. The note of a segment
    where it is above 2 or below 1/2 says so.

    The guarantee is for rows that count the same. With importance weights that differ there is no exact test, so no
    threshold is given and the note says so; with ``weight_kind="frequency"`` weight 2 is two independent rows.

    Clusters: intervals divide the rows by a design effect, the sum of squared totals of clusters over that of rows, of
    residuals from the end of the interval; where all rows are alike it counts clusters. Student's t stands in for the
    normal law, by Kish's number of clusters, so that 20 copies of n rows have the interval of ``n / r`` rows, with r
    the squared ratio of both quantiles. A threshold is tested with the beta tail of Korn and Graubard. As few errors do
    not show how clusters scatter, the design effect of the test is that of the hypothesis hardest to tell from what is
    seen: clusters like these, and so many wholly wrong ones that the accuracy is the target. It counts clusters where
    all rows are right, and copies change nothing. What is exact without clusters is an approximation then: among 30 to
    1,000 clusters of 2 to 20 rows, thresholds at 95 % failed in at most 5 % of samples, within two
    Monte Carlo errors (``tests/simulations/cluster_thresholds.csv``).

    References
    ----------
    Geifman, Y. and El-Yaniv, R. (2017). Selective classification for deep neural networks. NeurIPS 30.
    https://doi.org/10.48550/arXiv.1705.08500

    Angelopoulos, A. N., Bates, S., Candès, E. J., Jordan, M. I. and Lei, L. (2021). Learn then test: calibrating
    predictive algorithms to achieve risk control. https://doi.org/10.48550/arXiv.2110.01052

    Wiens, B. L. (2003). A fixed sequence Bonferroni procedure for testing multiple endpoints. Pharmaceutical
    Statistics 2, 211-215. https://doi.org/10.1002/pst.64

    Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data. Survey Methodology 24, 193-201.

    Examples
    --------
    Scores 0.1 and 0.9 are one confidence:

    >>> import polars as pl
    >>> import calframe
    >>> flights = pl.DataFrame({"late": [0, 1, 1, 0], "p": [0.1, 0.9, 0.4, 0.3]})
    >>> found = calframe.selective(flights, label="late", score="p")
    >>> found.table.select("threshold", "coverage", "n", "accuracy")
    shape: (3, 4)
    ┌───────────┬──────────┬─────┬──────────┐
    │ threshold ┆ coverage ┆ n   ┆ accuracy │
    │ ---       ┆ ---      ┆ --- ┆ ---      │
    │ f64       ┆ f64      ┆ i64 ┆ f64      │
    ╞═══════════╪══════════╪═════╪══════════╡
    │ 0.9       ┆ 0.5      ┆ 2   ┆ 1.0      │
    │ 0.7       ┆ 0.75     ┆ 3   ┆ 1.0      │
    │ 0.6       ┆ 1.0      ┆ 4   ┆ 0.75     │
    └───────────┴──────────┴─────┴──────────┘
    """
    check_choice("notion", notion, get_args(Confidence))
    check_level(confidence_level, required=True)
    check_choice("interval", interval, get_args(RateInterval))
    _check_numbers(confident_at, points)
    asked = Asked(
        notion=notion,
        targets=_targets(target_accuracy),
        level=confidence_level,
        confident_at=float(confident_at),
        points=int(points),
        interval=interval,
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
    table = _opened(data, roles, notion)
    found = selective_tables(table, asked, engine=engine)
    warn_empty_categories(table, found.groups)
    models = found.groups.keys.get_column("_cf_model").to_list() if roles.several else None
    n, n_missing, n_invalid = counted_once(models, found.groups.n, found.groups.n_missing, found.groups.n_invalid)
    return Selective(
        table=found.curves,
        summary=found.summary,
        targets=found.targets,
        by=roles.by,
        scores=roles.scores,
        label=label,
        n=n,
        n_missing=n_missing,
        n_invalid=n_invalid,
        target_accuracy=asked.targets,
        confidence_level=confidence_level,
        confident_at=asked.confident_at,
        notion=notion,
        interval=interval,
        roles=roles.convention(),
    )


def _opened(data: Any, roles: Roles, notion: Confidence) -> Table:
    """Open the table: of three classes or more a row is its largest score and whether that class happened."""
    if notion == "correctness" and roles.classes:
        msg = (
            "notion='correctness' reads one column, how sure an answer is that it is right; for scores of several "
            "classes leave notion= out."
        )
        raise ArgumentError(msg)
    view = "confidence" if roles.multiclass else view_of(roles, None)
    return open_table(data, roles, reserved=reserved_names() | SELECTIVE_COLUMNS, view=view)


def _targets(given: Any) -> tuple[float, ...]:
    """Return target accuracies, or raise."""
    if given is None:
        return ()
    targets = numbers_in(given)
    for target in targets:
        if not (is_real(target) and 0.0 < target < 1.0):
            hint = f" For {target:g} percent pass {target / 100:g}." if is_real(target) and 1.0 < target < 100.0 else ""
            msg = f"target_accuracy must lie between 0 and 1, for example 0.95; got {target!r}.{hint}"
            raise ArgumentError(msg)
        if targets.count(target) > 1:
            msg = f"target_accuracy has {target!r} twice; name each accuracy once."
            raise ArgumentError(msg)
    return tuple(map(float, targets))


def _check_numbers(confident_at: Any, points: Any) -> None:
    if not (is_real(confident_at) and 0.0 <= confident_at <= 1.0):
        msg = f"confident_at must lie in [0, 1], for example 0.9; got {confident_at!r}."
        raise ArgumentError(msg)
    check_whole("points", points, 2, _MOST_POINTS)
