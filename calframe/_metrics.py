"""The verb `metrics`: one tidy row per segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np

from calframe._binning import BinChoice
from calframe._cells import Groups
from calframe._closing import (
    Column,
    closed_frame,
    count_columns,
    count_types,
    polars_schema,
    warn_empty_categories,
    warn_infinite,
)
from calframe._measures import chosen_metrics, reserved_names
from calframe._measuring import Measured, Request, cells_of, measured_cells, measured_rows, notes, result_columns
from calframe._options import (
    check_clip,
    check_cluster,
    check_floor,
    check_interval,
    check_level,
    check_resamples,
    check_smoother,
    seed_of,
)
from calframe._registry import Options
from calframe._roles import Roles, WeightKind
from calframe._rows import clean_rows
from calframe._table import open_table, view_of
from calframe._typing import Closed, Invalid, Link, Names, Notion, RateInterval, Score, Seed, Smoother, Strategy


def metrics(
    data: Any,
    *,
    label: str,
    score: Score,
    by: Names | None = None,
    weight: str | None = None,
    cluster: str | None = None,
    metrics: Names | None = None,
    classes: Sequence[Any] | None = None,
    notion: Notion | None = None,
    posterior: Score | None = None,
    bins: int | Sequence[float] | Literal["auto"] = 15,
    strategy: Strategy = "uniform",
    closed: Closed = "left",
    confidence_level: float | None = None,
    interval: RateInterval | None = None,
    n_resamples: int = 1000,
    rng: Seed = 0,
    positive: Any = None,
    link: Link = "probability",
    invalid: Invalid = "raise",
    clip: float | None = None,
    floor: float = 1e-12,
    smoother: Smoother = "loess",
    weight_kind: WeightKind = "importance",
    engine: Any = None,
) -> Any:
    """Measure how well scores agree with outcomes, one row per segment.

    Answers "how far off are the scores, here and there, and how far off would right ones look by chance?". Sums over
    rows and bins are one aggregate on the table's own engine; what other metrics read of it, see Notes.

    Parameters
    ----------
    data : table
        A pandas or polars DataFrame, a polars LazyFrame, a pyarrow Table, or a table that narwhals opens lazily
        (DuckDB, PySpark, Dask, Ibis); one row per prediction. It is never changed.
    label : str
        Column of the outcome: bool, 0/1, -1/+1, or any two values with `positive`.
    score : str, list of str, or mapping
        Column of the probability of the positive class; a list compares several models. A mapping of classes to
        columns, such as ``{"cat": "p_cat", "dog": "p_dog"}``, is one model of several classes, whose rows sum to 1
        within 1e-6 (float16 and float32: within 2^-10 and 2^-23 for each class, where that is more); the label holds
        those classes. Of two classes the second is the positive one.
    by : str or list of str, optional
        Segment columns. By default the whole table is one segment. Missing values are a segment of their own, last.
    weight : str, optional
        Column of row weights: 0, or between 1e-100 and 1e100, so that their squares are numbers; only their ratios
        matter. Weight 2 is the row twice, weight 0 is no row.
    cluster : str, optional
        Column that says which rows are not independent, such as those of one person; a row without a value is a cluster
        of its own. With `confidence_level`, and only then: values stay as they are, intervals allow for clusters (see
        Notes).
    metrics : str or list of str, optional
        Names of metrics (see Notes), or ``"all"``. Default: rate, mean_score, gap, brier, log_loss, ece, ece_expected.
        For three classes or more: accuracy, brier, log_loss, confidence_ece, classwise_ece.
    classes : list, optional
        The classes, in their order, where one score column holds lists, arrays or structs of probabilities.
    notion : {"confidence", "classwise"}, optional
        Measure something of the scores as one column: the largest one against whether its class happened, or each
        class against the rest, one row a class. By default score vectors are measured whole.
    posterior : str, list of str, or mapping, optional
        The true probabilities, known in simulations: of the positive class, or one column a class.
    bins : int, list of float, or "auto", default 15
        Number of bins on [0, 1], or their edges; scores outside given edges are an error. ``"auto"``: bins of equal
        weight, in each segment the cube root of its weight, rounded down, but at least 1; equal scores kept whole.
    strategy : {"uniform", "quantile"}, default "uniform"
        How a number of bins is placed: with equal width, or in each segment with about equal weight, equal scores kept
        whole; then some may stay empty, which the note counts.
    closed : {"left", "right"}, default "left"
        The side of a bin that belongs to it. ``"left"``: [0, 1/M), ..., the last bin closed on both sides.
        Edges are k / M exactly; for a float32 column they are first rounded to float32.
    confidence_level : float, optional
        Level in (0, 1) of intervals ``<metric>_low`` and ``<metric>_high`` beside each metric, null where none is
        known, as the note says. Rate: see `interval`. Gap and ratio mirror the Wilson interval of the rate, with the
        scores held fixed. Brier score and log loss: normal interval with added rows of either class. Errors that are
        never negative are lifted by chance; their intervals hold what they would be without it, and so may leave out
        the value itself. With weights, at (sum w)^2 / sum w^2 rows.
    interval : {"wilson", "clopper_pearson", "jeffreys"}, optional
        Interval of the rate; Wilson by default.
    n_resamples : int, default 1000
        How often the interval of smece, the only one that needs it, draws labels, 20 to 1,000,000. It has none where
        that leaves fewer than ten draws outside: 1000 serve levels up to 0.99. They take 5 to 100 ms a segment.
    rng : int, numpy.random.Generator or None, default 0
        Seed of those resamples; None for fresh entropy.
    positive : object, optional
        The label value that counts as positive.
    link : {"probability", "logit"}, default "probability"
        What the score columns hold; logits of several classes go through a softmax. From logits the log
        loss and its parts are exact where the probability rounds to 0 or 1, and auc, aurc and what goes by equal or
        ordered scores, from calibration_loss to unc_log, read the logits themselves. Logits lie within ±1e50, or are
        infinite.
    invalid : {"raise", "drop"}, default "raise"
        Scores outside [0, 1], logits beyond ±1e50, and weights that are negative, infinite or out of their range are an
        error, or left out and counted in ``n_invalid``.
    clip : float, optional
        Keep scores this far from 0 and 1 in log_loss. By default nothing is clipped: the log loss is infinite where
        it is infinite, with one warning.
    floor : float, default 1e-12
        Keep scores this far from 0 and 1 where their logit is taken: slope, intercept, citl. 0 has none.
    smoother : {"loess", "loess_direct", "lowess"}, default "loess"
        The curve of ici, e50, e90 and emax: R's default loess (span 0.75, degree 2, interpolated), the same fitted at
        each score, or R's lowess without robustness iterations.
    weight_kind : {"importance", "frequency"}, default "importance"
        What weights mean in intervals and chance levels: variances use the sum of squared weights, or weight 2 is
        two independent rows (whole numbers only). Values take weight 2 as the row twice in either case; where their
        scale matters in one and their mean is far from 1, the note says so.
    engine : optional
        Engine that polars collects an eager polars frame with.

    Returns
    -------
    table
        In the library of `data` (polars for remote engines; a LazyFrame for a LazyFrame, with nothing read before
        its ``collect()``). Sorted by key, columns:

        the keys
            As in `data`; categories as text, whole-valued floats as Int64.
        model : str
            With several scores, the score column.
        class : str or int64
            With ``notion="classwise"``, the class: text, or whole numbers where all classes are.
        n, n_missing : int64
            Rows used, and rows without label, score or weight. Rows of weight 0 are in neither, but in the note.
        n_invalid : int64
            With ``invalid="drop"``, rows left out.
        weight_sum : float64
            With `weight`, the weight of the rows used.
        the metrics : float64
            In the order asked; null where undefined.
        note : str
            What is missing or undefined, and why; null where there is nothing to say.

    Raises
    ------
    CalframeError
        ColumnNotFoundError, ColumnClashError, LabelError, ScoreError, WeightError, SegmentError, EmptyTableError or
        ArgumentError. Each names the column, the value seen and what to do. For a polars LazyFrame, those that need
        values come at ``collect()``.

    Notes
    -----
    =====================  =============  ======  ======================================================================
    metric                 range          better  what it is
    =====================  =============  ======  ======================================================================
    *means and rates*
    rate                   0 to 1                 observed rate of positives
    mean_score             0 to 1                 mean score
    gap                    -1 to 1        0       mean score minus rate
    ratio                  0 to inf       1       mean score divided by rate
    accuracy               0 to 1         higher  share of rows on the right side of 0.5; 0.5 predicts positive
    brier                  0 to 1         lower   mean of (score - label)^2
    brier_skill            -inf to 1      higher  1 - brier / (rate (1 - rate))
    log_loss               0 to inf       lower   mean of -ln(probability of what happened), in nats
    sharpness              0 to 0.25              variance of the scores
    *binned errors*
    ece                    0 to 1         lower   sum over bins of weight share times absolute gap
    mce                    0 to 1         lower   largest absolute gap of a bin
    rmsce                  0 to 1         lower   root of the weighted mean square gap over bins
    ace                    0 to 1         lower   mean absolute gap over non-empty bins
    ece_sweep              0 to 1         lower   ece over as many bins of equal weight as keep the rates in order
    ece_expected           0 to 0.5               the ece that right scores would show by chance, in closed form
    ece_debiased           0 to 1         lower   rmsce less what chance adds to its square
    *parts of a loss*
    reliability            0 to 1         lower   mean square gap over bins
    resolution             0 to 0.25      higher  variance of the rates of the bins
    uncertainty            0 to 0.25              variance of the label
    within_bin             -0.25 to 0.75          brier - (reliability - resolution + uncertainty)
    reliability_corrected  -0.25 to 1     lower   reliability without the bias of small bins
    resolution_corrected   -0.25 to 0.5   higher  resolution without it
    uncertainty_corrected  0 to 0.5               uncertainty without the bias of few rows
    calibration_loss       0 to 1         lower   what the rate at each distinct score would take off brier
    refinement_loss        0 to 0.25      lower   the rest of brier
    calibration_loss_log   0 to inf       lower   the same of log_loss
    refinement_loss_log    0 to ln 2      lower   the rest of log_loss
    mcb                    0 to 1         lower   what isotonic regression takes off brier
    dsc                    0 to 0.25      higher  what it takes off the brier of the rate alone
    unc                    0 to 0.25              that brier: mcb - dsc + unc = brier
    mcb_log                0 to inf       lower   what isotonic regression takes off log_loss
    dsc_log                0 to ln 2      higher  dsc of log_loss
    unc_log                0 to ln 2              entropy of the rate: mcb_log - dsc_log + unc_log = log_loss
    *order and rank*
    auc                    0 to 1         higher  how often a positive outranks a negative, ties half
    ecce_r                 0 to 1         lower   range of the cumulative sums of label - score along the scores
    ecce_mad               0 to 1         lower   largest absolute one of them
    aurc                   0 to 1         lower   mean risk of the k most confident rows, over all k
    eaurc                  0 to 1         lower   aurc less that of a perfect ranking
    *smooth and fitted*
    smece                  0 to 1         lower   mean absolute gap, smoothed as widely as it is large
    ici                    0 to inf       lower   mean absolute distance of the scores from a smooth curve of the rate
    e50                    0 to inf       lower   median of that distance
    e90                    0 to inf       lower   its 90th percentile
    emax                   0 to inf       lower   the largest
    slope                  -inf to inf    1       slope of the logistic regression of label on logit(score)
    intercept              -inf to inf    0       its intercept
    citl                   -inf to inf    0       its intercept with the slope held at 1
    slope_se               0 to inf               standard error of slope
    intercept_se           0 to inf               of intercept
    citl_se                0 to inf               of citl
    *true probabilities*
    irreducible_loss       0 to 1                 brier of the true probabilities
    epistemic_loss         -1 to 1        lower   brier less irreducible_loss
    irreducible_loss_log   0 to inf               log_loss of the true probabilities
    epistemic_loss_log     -inf to inf    lower   log_loss less irreducible_loss_log
    *several classes*
    accuracy               0 to 1         higher  share of rows whose class has the largest score, of equal ones first
    brier                  0 to 2         lower   squared distance of scores and outcome, summed over the classes
    log_loss               0 to inf       lower   mean of -ln(probability of what happened), in nats
    confidence_ece         0 to 1         lower   ece of the largest score against whether its class happened
    confidence_mce         0 to 1         lower   mce of the same
    classwise_ece          0 to 1         lower   mean over the classes of the ece of each against the rest
    classwise_mce          0 to 1         lower   largest of their mce
    toplabel_ece           0 to 1         lower   ece of the largest score within each predicted class
    full_ece               0 to 2         lower   gaps of all classes over bins of the whole vector
    skce                   -2 to 2        0       squared kernel calibration error, unbiased
    calibration_loss       0 to 2         lower   what the frequencies at each distinct vector would take off brier
    refinement_loss        0 to 1         lower   the rest of brier
    calibration_loss_log   0 to inf       lower   the same of log_loss
    refinement_loss_log    0 to inf       lower   the rest of log_loss
    aurc                   0 to 1         lower   mean risk of the k most confident rows, over all k
    eaurc                  0 to 1         lower   aurc less that of a perfect ranking
    irreducible_loss       0 to 2                 brier of the true probabilities
    epistemic_loss         -2 to 2        lower   brier less irreducible_loss
    irreducible_loss_log   0 to inf               log_loss of the true probabilities
    epistemic_loss_log     -inf to inf    lower   log_loss less irreducible_loss_log
    =====================  =============  ======  ======================================================================

    Those from confidence_ece to skce are there for one column of scores p, too: its classes are the positive one with
    p and the other with 1 - p. METRICS.md in the repository has for each metric its formula, conventions, source and
    a worked example.

    The ece of right scores is not 0 but `ece_expected`, which shrinks with the number of rows: read them together.
    In a bin the positives of right scores follow a Binomial matched to their mean and variance, exact where its
    scores are equal; its mean absolute deviation has De Moivre's closed form. It is that of independent rows.

    On a remote engine, metrics of order and rank or smooth and fitted ones, ece_sweep, those from calibration_loss to
    unc_log, and bins of equal weight are read from sums by distinct score; beyond 5,000,000 of these, scores are
    gathered on a grid of logits, and a warning states the bound of what that moves. Metrics of whole score vectors,
    from confidence_ece to skce and all of several classes, fetch the columns.

    With `cluster`, the effective rows of an interval are divided by a design effect, as Korn and Graubard do: the
    variance of the metric where clusters are left out one at a time (the jackknife, to first order) over that of single
    rows, at least 1; where one outcome is all there is, or nothing varies, as if all rows of a cluster were alike. So
    they are by (t / z)^2, the quantiles of Student's t for Kish's effective number of clusters and of the normal law. A
    cluster that spans segments counts in each. This is for means and rates, with the losses of true probabilities, for
    auc (Obuchowski's variance), slope, intercept and citl (the sandwich), uncertainty, unc, unc_log and metrics of your
    own; of several classes for accuracy, brier, log_loss and epistemic losses. The laws of all others are those of
    independent rows, so that they have no interval.

    References
    ----------
    Silva Filho, T. et al. (2023). Classifier calibration: a survey on how to assess and improve predicted class
    probabilities. Machine Learning 112, 3211-3260. https://doi.org/10.1007/s10994-023-06336-7

    Diaconis, P. and Zabell, S. (1991). Closed form summation for classical distributions: variations on a theme of De
    Moivre. Statistical Science 6, 284-302. https://doi.org/10.1214/ss/1177011699

    Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data. Survey Methodology 24, 193-201.

    Efron, B. and Tibshirani, R. J. (1993). An introduction to the bootstrap. Chapman & Hall. Chapter 11.

    Obuchowski, N. A. (1997). Nonparametric analysis of clustered ROC curve data. Biometrics 53, 567-578.
    https://doi.org/10.2307/2533958

    Examples
    --------
    >>> import polars as pl
    >>> import calframe
    >>> flights = pl.DataFrame({"carrier": ["AA", "AA", "UA", "UA"], "late": [1, 0, 1, 0], "p": [0.8, 0.4, 0.5, 0.5]})
    >>> calframe.metrics(flights, label="late", score="p", by="carrier", metrics=["rate", "gap", "brier"])
    shape: (2, 7)
    ┌─────────┬─────┬───────────┬──────┬─────┬───────┬──────┐
    │ carrier ┆ n   ┆ n_missing ┆ rate ┆ gap ┆ brier ┆ note │
    │ ---     ┆ --- ┆ ---       ┆ ---  ┆ --- ┆ ---   ┆ ---  │
    │ str     ┆ i64 ┆ i64       ┆ f64  ┆ f64 ┆ f64   ┆ str  │
    ╞═════════╪═════╪═══════════╪══════╪═════╪═══════╪══════╡
    │ AA      ┆ 2   ┆ 0         ┆ 0.5  ┆ 0.1 ┆ 0.1   ┆ null │
    │ UA      ┆ 2   ┆ 0         ┆ 0.5  ┆ 0.0 ┆ 0.25  ┆ null │
    └─────────┴─────┴───────────┴──────┴─────┴───────┴──────┘
    """
    check_level(confidence_level)
    check_interval(interval, confidence_level)
    check_cluster(cluster, confidence_level)
    check_clip(clip)
    check_floor(floor)
    check_smoother(smoother)
    check_resamples(n_resamples)
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
        posterior=posterior,
        cluster=cluster,
    )
    view = view_of(roles, notion)
    asked = chosen_metrics(metrics, several_classes=view == "vectors", posterior=bool(roles.posterior))
    request = Request(
        asked=asked,
        level=confidence_level,
        clustered=cluster is not None,
        options=Options(
            smoother=smoother,
            floor=floor,
            clip=clip,
            rate_interval=interval or "wilson",
            n_resamples=int(n_resamples),
            seed=seed_of(rng),
        ),
        choice=BinChoice.from_arguments(bins, strategy=strategy, closed=closed),
    )
    bounds = request.choice.fixed if request.reading("bins", "vectors") else None
    if bounds is not None and request.reading("vectors"):
        bounds.check_covering()
    table = open_table(data, roles, reserved=reserved_names(), bins=bounds, view=view)

    def closed_result(groups: Groups, found: Measured) -> nw.DataFrame[Any]:
        warn_empty_categories(table, groups)
        warn_infinite(_infinite(found, request), {None: found.impossible})
        note: Column = notes(groups, found, request, counts_rows=table.roles.counts_rows)
        columns = {**count_columns(table, groups), **result_columns(found, request), "note": note}
        return closed_frame(table, groups, columns)

    def schema() -> dict[str, Any]:
        columns = count_types(table) | dict.fromkeys(request.columns(), float) | {"note": str}
        return dict(polars_schema(table, columns))

    if request.needs_rows:
        rows, _ = clean_rows(table)
        return table.digest(
            rows, lambda rows: closed_result(*measured_rows(table, rows, request)), schema=schema, engine=engine
        )
    return table.summarise(
        cells_of(table, request),
        lambda cells: closed_result(*measured_cells(table, cells, request)),
        schema=schema,
        engine=engine,
    )


def _infinite(found: Measured, request: Request) -> list[str]:
    """Return the losses of ours that are infinite."""
    losses = [metric.name for metric in request.asked if not metric.posterior and not metric.own_terms]
    return [name for name in losses if np.isinf(found.values[name]).any()]
