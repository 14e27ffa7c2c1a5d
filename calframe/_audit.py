"""The verb `audit`: every segment and every crossing of segments, judged together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from calframe._auditing._headline import headline, is_beyond_chance
from calframe._auditing._reference import check_reference
from calframe._auditing._tables import Audited, AuditOptions, audited
from calframe._auditing._view import gap_text, segments_view, what_columns_are
from calframe._errors import ArgumentError
from calframe._kernels._corrections import Correction
from calframe._options import check_choice, check_engine, check_flag, check_resamples, check_whole, check_width, seed_of
from calframe._results import SCHEMA_VERSION, html_table, json_ready, like, records, to_polars
from calframe._roles import Roles, WeightKind
from calframe._typing import Invalid, Json, Link, Names, Seed
from calframe._verdicts import CLEAR, LEANS, MIN_ROWS, SHOWN_ROWS, WORDS, check_tolerance
from calframe._words._lines import distinct, fitted, wrapped
from calframe._words._listing import in_clusters
from calframe._words._numbers import short

if TYPE_CHECKING:
    import altair as alt

_WIDTH = 80
_SHOWN = 12
_NAME_WIDTH = 34
_MOST_BANDS = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audit:
    """Segments and their crossings, judged together.

    Attributes
    ----------
    table : DataFrame
        One row a segment, worst first; see `audit` for its columns.
    disparities : DataFrame
        Per segment column the largest difference between two of its segments, with intervals for the true one; see
        `audit`.
    headline : str
        What stands out, in one sentence.
    verdict : str
        "action needed" (a clear gap), "watch" (a lean, or a cumulative error beyond chance, whose size in ECE `report`
        tells), "undecided", or "within tolerance" (all were judged so).
    overall : dict
        All rows as one segment, judged alone.
    multicalibration : dict or None
        The largest cumulative error of any segment in units of its sigma (``ecce``), where (``segment``), its
        ``pvalue`` after the search over all ``n_segments``, and the ``law`` behind it; None with ``ecce=False``.
    by : tuple of str
        The segment columns.
    convention : dict
        How the table was read and judged.
    """

    table: Any
    disparities: Any
    headline: str
    verdict: str
    overall: Json
    multicalibration: Json | None
    by: tuple[str, ...]
    convention: Json

    def plot(self, *, width: int = 900, most: int = 36) -> alt.TopLevelMixin:
        """Draw the gaps of the worst segments as a forest plot.

        Parameters
        ----------
        width : int, default 900
            Width of the chart in pixels.
        most : int, default 36
            Most segments drawn. Above twenty, those within tolerance are left out.

        Returns
        -------
        altair.Chart
            Thick lines are intervals of single segments, thin ones hold over all of them; the zone is the tolerance.
            ``chart.save("audit.svg")`` and ``.png`` need nothing from the network; a page does, unless it is saved with
            ``chart.save("audit.html", inline=True)``.
        """
        from calframe._auditing._drawn import forest_chart  # noqa: PLC0415  altair loads only when a chart is asked for

        check_width(width)
        check_whole("most", most, 1)
        chart: alt.TopLevelMixin = forest_chart(
            to_polars(self.table),
            tolerance=self.convention["tolerance"],
            level=f"{100 * (1 - self.convention['alpha']):g}%",
            width=width,
            most=most,
        )
        return chart

    def to_dict(self) -> Json:
        """Return the audit as JSON-ready data with a schema version."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "audit",
            "verdict": self.verdict,
            "headline": self.headline,
            "by": list(self.by),
            "convention": json_ready(self.convention),
            "overall": json_ready(self.overall),
            "multicalibration": json_ready(self.multicalibration),
            "disparities": records(self.disparities),
            "table": records(self.table),
        }

    def __repr__(self) -> str:
        """Return verdict, sentence and the worst segments within 80 columns."""
        table = to_polars(self.table)
        lines = [f"<Audit: {self.verdict}>", *wrapped(self.headline, _WIDTH), *self._stated()]
        shown = table.head(_SHOWN)
        names = distinct(shown["segment"].to_list(), _NAME_WIDTH)
        for name, row in zip(names, shown.iter_rows(named=True), strict=True):
            words = " ".join(WORDS[row["verdict"]])
            lines.append(f"  {fitted(name, _NAME_WIDTH)} {gap_text(row):>6} {row['n']:>11,}  {words}")
        more = table.height - _SHOWN
        if more > 0:
            lines.append(f"  and {more:,} more in .table")
        return "\n".join([*lines, ".table, .disparities, .multicalibration, .plot(), .to_dict()"])

    def _repr_html_(self) -> str:
        table = to_polars(self.table)
        said = [self.headline, *self._stated(), *what_columns_are(table, self.convention)]
        return html_table(segments_view(table, alpha=self.convention["alpha"]), caption=" ".join(said))

    def _stated(self) -> list[str]:
        """Say with which group segments are compared, where that is one of the user's, and what is not independent."""
        group = self.convention["reference"] or {}
        named = short(", ".join(f"{column} {value}" for column, value in group.items()))
        compared = [f"Gaps to {named}: .table has gap_to_reference."] if group else []
        return compared + in_clusters(self.convention, judged=True)


def audit(
    data: Any,
    *,
    label: str,
    score: str,
    by: Names,
    depth: int = 2,
    reference: Any = None,
    tolerance: float = 0.03,
    alpha: float = 0.05,
    correction: Correction = "holm",
    min_rows: int = MIN_ROWS,
    numeric_bins: int | None = 4,
    max_segments: int = 10_000,
    ecce: bool = True,
    n_resamples: int = 1000,
    rng: Seed = 0,
    weight: str | None = None,
    weight_kind: WeightKind = "importance",
    cluster: str | None = None,
    positive: Any = None,
    link: Link = "probability",
    invalid: Invalid = "raise",
    engine: Any = None,
) -> Audit:
    """Judge every segment and every crossing of segments at once.

    Which are off, which are within tolerance, and of which it cannot be told yet? One answer holds over all of them:
    the more segments are looked at, the more it takes to call one of them off.

    Parameters
    ----------
    data : table
        See `metrics`.
    label, weight, weight_kind, positive, link, invalid, engine
        See `metrics`.
    score : str
        Column of the probability of the positive class.
    cluster : str, optional
        The column that tells apart what is independent, such as persons or days: rows of one value share their luck,
        a null is a cluster of its own. Intervals, tests and verdicts then go by clusters; errors along the scores are
        not looked for, as their laws are those of independent rows.
    by : str or list of str
        Segment columns. A missing value is a segment of its own.
    depth : int, default 2
        Most columns that are crossed; at most there are as many as `by` names.
    reference : object or mapping, optional
        The group that segments are compared with, such as ``{"region": "North"}``: the rows with all these values; for
        a single segment column its value alone will do. A segment is compared with those rows of the group that are not
        its own. By default the group is the whole table, so that each segment is compared with all other rows.
    tolerance : float, default 0.03
        The gap, as a fraction, that does not matter either way. Set it before you look.
    alpha : float, default 0.05
        Error rate over all segments together; intervals have level 1 - alpha.
    correction : {"holm", "bonferroni", "benjamini_hochberg", "benjamini_yekutieli", "none"}, default "holm"
        How p-values are adjusted for the number of segments judged.
    min_rows : int, default 100
        Fewest (effective) rows of a segment that is looked at, five or more; to be judged it must have ten positives
        and ten negatives besides, seen or expected by its scores.
    numeric_bins : int or None, default 4
        2 to 100. Numeric segment columns of more than ten distinct values are cut into this many bands of about equal
        numbers of rows (of all rows, whatever their weights), such as ``[18, 35)``. Equal values stay together. With up
        to ten each value is a segment, with None always.
    max_segments : int, default 10,000
        More segments than this are an error, for they are hardly meant.
    ecce : bool, default True
        Whether to look along the scores, too, for errors that cancel in the mean. That reads sums of score cells as
        well, for each combination of values of all segment columns; without it there is one sum a combination.
    n_resamples : int, default 1000
        Draws behind the p-values of cumulative errors.
    rng : int, numpy.random.Generator or None, default 0
        Their seed; None for fresh entropy.

    Returns
    -------
    Audit
        With ``.table``, ``.disparities``, ``.multicalibration``, ``.overall``, ``.headline``, ``.verdict``,
        ``.plot()`` and ``.to_dict()``. Columns of ``.table``, one row a segment:

        - ``depth`` (int), ``columns`` ("region & age"), ``segment`` ("region=West & age=(missing)");
        - the segment columns, null where a column is not part of the segment *or* the value is missing (``segment``
          tells which), in the type of the table, bands as text;
        - ``n``, ``n_missing``, ``n_invalid``?, ``weight_sum``?: rows used, rows with something missing, and so on;
        - with `cluster`, ``n_clusters`` (the effective number of clusters, ``(sum w)^2 / sum w_c^2``) and
          ``design_effect`` (by how much the effective rows are fewer, with what few clusters add, see Notes; at least
          1, null of a single cluster);
        - ``rate``, ``mean_score`` (0 to 1), ``gap`` (mean_score - rate, -1 to 1, 0 is perfect, above 0 the scores say
          too much) with ``gap_low``, ``gap_high`` (of this segment alone) and ``simultaneous_low``,
          ``simultaneous_high`` (of all segments together);
        - ``gap_shrunken``, ``gap_shrunken_sd``: the gap drawn towards that of all rows as far as chance explains the
          distance, and its posterior standard deviation;
        - ``gap_to_rest`` (or ``gap_to_reference``): the gap less that of the rows it is compared with, with ``_low``,
          ``_high``, and ``pvalue_to_rest``, ``pvalue_to_rest_adjusted``;
        - ``ecce`` (0 is perfect; in units of sigma, where 2.5 is the 95 % point of right scores), ``ecce_pvalue`` of
          the segment by itself and ``ecce_pvalue_adjusted`` after the search;
        - ``pvalue``, ``pvalue_adjusted``: of gap 0, by the binomial law of the mean score, which is exact for equal
          scores and cautious for others; adjusted for all segments of `min_rows` or more rows;
        - ``verdict``: "over", "under", "leans_over", "leans_under", "unsure", "within" or "few" (too few rows);
        - ``rows_needed``: rows at which an undecided segment would be decided if its gap stays, up to ten times what
          there is; ``net`` (n x gap: rows misstated); ``note``.

        Columns of ``.disparities``, two rows per segment column: ``column``, ``measure`` ("gap": largest less smallest
        gap, 0 is perfect; "ratio": smallest over largest rate / mean_score, 1 is perfect), ``value``, ``low``,
        ``high``, ``highest``, ``lowest`` (the segments of the two), ``n_segments``, ``n_left_out`` (segments of fewer
        than `min_rows` rows) and ``note``.

    Raises
    ------
    CalframeError
        As `metrics`; and if there are more than `max_segments` segments, or the reference does not occur.

    Warns
    -----
    CalframeWarning
        Names declared categories that no row has.

    Notes
    -----
    All segments are sums of one aggregate, by all segment columns (and score cells), that runs on the table's own
    engine; a small query before it counts values and finds the edges of numeric columns.

    The verdict goes by the widened interval: wholly beyond the tolerance is a clear gap, wholly inside it within
    tolerance; otherwise an adjusted p-value of at most `alpha` is a lean, and anything else is not decided. No evidence
    is not evidence of none. As the law is that of equal scores, sharper models leave more undecided, and a widened
    interval may touch 0 beside a lean; ``calframe.test(method="gap")`` uses the scores themselves and is sharper.
    Widened intervals are Clopper and Pearson's at Šidák's level for the number of segments of `min_rows` rows or more,
    in which labels have no say; that segments overlap is no harm to it in the simulations of this package. Intervals of
    single segments are Wilson's. Of segments of fewer than five rows only the number of rows is told.

    The shrunken gap is the posterior mean under gaps that scatter normally about the gap of all rows, with a spread
    estimated among the segments of the same columns (Paule and Mandel).

    The observed largest difference between segments is too large by selection: of equal segments two always are the
    farthest apart. The intervals of ``.disparities`` are made for the true largest difference: the lower end allows
    for all pairs (studentized range), the upper end is the largest of all pairs.

    The cumulative error adds up label - score along the scores of a segment, in cells of 1/16 of a logit; errors of
    opposite sign at different scores do not cancel in it. Looking for the worst of many segments finds large ones by
    chance: of 64 calibrated segments the smallest of the single p-values is below 0.05 nearly always. The adjusted
    p-value is the chance that calibrated scores show as large an error in *any* segment judged. Where labels can be
    drawn for all cells it is resampled, and where that would take more than 20 million draws, a bound; ``law`` says
    which. See Hébert-Johnson et al. (2018).

    With weights the intervals, tests and counts of the minimum size go by effective rows, (sum w)^2 / sum w^2. With
    clusters these are divided by the design effect, the variance of the gap by the totals of clusters (Liang and Zeger)
    over that by single rows, one or more, and by the squared ratio of the quantiles of Student's t, with a degree less
    than there are clusters, and of the normal law, as Korn and Graubard do. A segment is judged only if its clusters
    would hold ten positives and ten negatives even if the rows of each were copies. Segments, and a segment and the
    rest, are taken as independent of each other, which errs to the safe side where they share the luck of clusters.

    References
    ----------
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6,
    65-70. https://www.jstor.org/stable/4615733

    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73,
    13-22. https://doi.org/10.1093/biomet/73.1.13

    Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data. Survey Methodology 24, 193-201.

    Hébert-Johnson, Ú., Kim, M. P., Reingold, O. and Rothblum, G. N. (2018). Multicalibration: calibration for the
    (computationally-identifiable) masses. ICML, PMLR 80, 1939-1948.
    https://proceedings.mlr.press/v80/hebert-johnson18a

    Examples
    --------
    Errors that cancel: the scores are right on average, but in neither town.

    >>> import polars as pl
    >>> import calframe
    >>> towns, wet = ["Oslo", "Rome"] * 1000, [1, 0] * 600 + [1, 1, 0, 0] * 200
    >>> rain = pl.DataFrame({"town": towns, "p": [0.5] * 2000, "rain": wet})
    >>> calframe.audit(rain, label="rain", score="p", by="town", tolerance=0.05)
    <Audit: action needed>
    On average the scores are within tolerance, but town Oslo is understated by 30
    percentage points and 1 other segment has a clear gap too; along the scores of
    town Oslo the gaps are more than chance.
      town=Oslo                           −30.0       1,000  ▼ Under-predicts
      town=Rome                           +30.0       1,000  ▲ Over-predicts
    .table, .disparities, .multicalibration, .plot(), .to_dict()
    """
    check_tolerance(tolerance, alpha)
    check_choice("correction", correction, get_args(Correction))
    check_engine(engine)
    check_resamples(n_resamples)
    roles = _roles(
        label=label,
        score=score,
        by=by,
        weight=weight,
        cluster=cluster,
        positive=positive,
        link=link,
        invalid=invalid,
        weight_kind=weight_kind,
    )
    check_flag("ecce", ecce)
    check_whole("depth", depth, 1)
    check_whole("min_rows", min_rows, SHOWN_ROWS)
    check_whole("max_segments", max_segments, 1)
    if numeric_bins is not None:
        check_whole("numeric_bins", numeric_bins, 2, _MOST_BANDS)
    options = AuditOptions(
        depth=min(int(depth), len(roles.by)),
        reference=check_reference(reference, roles.by),
        tolerance=tolerance,
        alpha=alpha,
        correction=correction,
        min_rows=int(min_rows),
        numeric_bins=None if numeric_bins is None else int(numeric_bins),
        max_segments=int(max_segments),
        ecce=bool(ecce),
        n_resamples=int(n_resamples),
        seed=seed_of(rng),
    )
    found = audited(data, roles, options, engine=engine)
    rows = list(found.table.iter_rows(named=True))
    return Audit(
        table=like(found.table, data),
        disparities=like(found.disparities, data),
        headline=headline(found.overall, rows, found.multicalibration, alpha=alpha, spoken=found.names.spoken),
        verdict=_state(found, alpha),
        overall=found.overall,
        multicalibration=found.multicalibration,
        by=roles.by,
        convention={**roles.convention(), **options.convention(), **found.convention},
    )


def _roles(*, score: Any, by: Any, **arguments: Any) -> Roles:
    """Return the roles of the columns: one score column, and a segment column or more."""
    if not isinstance(score, str):
        what = "Make a 0/1 column for one class and audit its probability" if isinstance(score, Mapping) else ""
        msg = (
            f"an audit is about one column of probabilities of a positive class; got score={score!r}. "
            f"{what or 'Make one audit for each model'}."
        )
        raise ArgumentError(msg)
    roles = Roles.from_arguments(score=score, by=by, **arguments)
    if not roles.by:
        msg = "an audit needs by=, one segment column or a list of them; for the whole table there is calframe.test."
        raise ArgumentError(msg)
    return roles


def _state(found: Audited, alpha: float) -> str:
    """Return the verdict on the table as a whole."""
    verdicts = {*found.table["verdict"].to_list(), found.overall["verdict"]}
    search = found.multicalibration
    if verdicts & CLEAR:
        return "action needed"
    if verdicts & LEANS or is_beyond_chance(search, alpha):
        return "watch"
    return "undecided" if verdicts & {"unsure", "few"} else "within tolerance"
