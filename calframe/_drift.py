"""The verb `drift`: calibration over time, against a reference, with a monitor that may be looked at whenever."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import polars as pl

from calframe._binning import BinChoice, Bins
from calframe._closing import warn_empty_categories
from calframe._drifting._comparing import compared
from calframe._drifting._course import Course, courses
from calframe._drifting._monitoring import Alarms, monitor_frame
from calframe._drifting._numbers import Lines, Options
from calframe._drifting._reading import Batch, Reading, read, read_second
from calframe._drifting._reference import Reference, check_reference
from calframe._drifting._references import references
from calframe._drifting._result import Drift
from calframe._drifting._tables import PARTS, TABLE, parts_table, periods_table, reference_table
from calframe._errors import ArgumentError
from calframe._kernels._corrections import Correction
from calframe._options import check_choice, check_clip, is_real
from calframe._periods import Every
from calframe._roles import Roles, WeightKind
from calframe._testing._monitor import RUN_LENGTH
from calframe._typing import Closed, Invalid, Link, Names, Strategy
from calframe._verdicts import Rules, check_tolerance

_MONITOR = (
    "time",
    "n_clusters",
    "log_e_value",
    "e_value",
    "log_e_value_max",
    "alarm",
    "log_detector",
    "detector_alarm",
)
_RESERVED = tuple(dict.fromkeys((*TABLE, *PARTS, *_MONITOR, "model")))
_MOST_BINS = 10_000


def drift(
    data: Any,
    *,
    label: str,
    score: str | Sequence[str],
    time: str | None = None,
    every: Every | None = "1mo",
    reference: Any = None,
    window: int | None = None,
    by: Names | None = None,
    weight: str | None = None,
    cluster: str | None = None,
    time_zone: str | None = None,
    bins: int | Sequence[float] | str = 15,
    strategy: Strategy = "uniform",
    closed: Closed = "left",
    psi_bins: int | Sequence[float] = 10,
    psi_floor: float | None = 1e-4,
    tolerance: float = 0.03,
    alpha: float = 0.05,
    correction: Correction = "holm",
    batch: Batch = "time",
    clip: float | None = None,
    run_length: float = RUN_LENGTH,
    positive: Any = None,
    link: Link = "probability",
    invalid: Invalid = "raise",
    weight_kind: WeightKind = "importance",
    engine: Any = None,
) -> Drift:
    """Follow calibration over time: where it changed, of what the change is made, and whether to be alarmed.

    Parameters
    ----------
    data : table
        See `metrics`. The query runs at once. In memory the rows are read once; a remote engine sums them up by
        segment, time and score.
    label, score, by, weight, positive, link, invalid, weight_kind, engine
        See `metrics`; one or several score columns of a probability.
    time : str, optional
        Column of dates or datetimes. Rows without one are counted in ``n_undated`` and used nowhere. Needed unless
        `reference` is a second table; without it all rows are one period.
    every : {"1mo", "1d", "1w", "1q", "1y"} or None, default "1mo"
        Length of a period; weeks begin on Monday. None: the longest that gives at least six, or a longer
        one that gives at least two where most of these would have fewer than the 100 rows that a period needs to be
        judged.
    reference : optional
        What each period is compared with. None: the first third of the periods. ``"first"``: the first one. A period's
        label such as ``"Jan 2024"``, a date in it, a month (``"2024-01"``), quarter (``"Q1 2024"``) or year (2024), or
        a pair of these, both included. ``"rolling"``: the `window` periods before it. A second table: all its rows,
        with the same columns (`time` aside). Periods of the reference itself are not compared.
    window : int, optional
        Periods behind a rolling reference, by default 3; only there.
    cluster : str, optional
        The column that tells apart what is independent, such as persons or days: rows of one value share their luck,
        a null is a cluster of its own. Intervals, tests, verdicts, the headline and the monitor then go by clusters.
    time_zone : str, optional
        Zone whose days count, such as ``"Europe/Paris"``: a day is local midnight to local midnight, also where clocks
        change. By default days are those of the column: of its own zone if it has one, else of its wall time. Times
        without a zone are taken as UTC if a zone is given. DuckDB keeps the zone in its connection: set it there.
    bins, strategy, closed
        Bins of ece and of the parts of the Brier score, as in `metrics`.
    psi_bins : int or list of float, default 10
        Bins of psi and of the reference's calibration curve: how many of about equal weight the reference makes, equal
        scores kept together (each reaches from above the largest score of the bin below to its own largest score), or
        edges. The outermost bins are open.
    psi_floor : float or None, default 1e-4
        Share that stands for that of an empty bin; with None psi is infinite there.
    tolerance : float, default 0.03
        The gap, either way, that does not matter: for verdicts and the headline.
    alpha : float, default 0.05
        Error rate over all periods and segments together, of the intervals, the headline and the monitor.
    correction : {"holm", "bonferroni", "benjamini_hochberg", "benjamini_yekutieli", "none"}, default "holm"
        How p-values are adjusted, over all periods and segments of a model. With "none" the monitor sounds for each
        series at 1 / alpha, else at the number of series (segments x models) / alpha.
    batch : {"time", "day"}, default "time"
        After what the monitor is looked at: rows of the same time, or of the same local day, are one batch.
    clip : float, optional
        How far from 0 and 1 the monitor keeps scores. By default as they are: a label that its score said could not be
        is infinite evidence. The guarantee stays: right scores that are moved gain nothing.
    run_length : float, default 10,000
        Batches that pass on average, at least, before the e-detector sounds without a reason.

    Returns
    -------
    Drift
        With ``.table``, ``.parts``, ``.monitor``, ``.course``, ``.headline``, ``.plot()`` and ``.to_dict()``. Of its
        p-values ``gap_pvalue`` is about a gap of 0, ``gap_change_pvalue`` about the gap of the reference.

    Raises
    ------
    CalframeError
        As `metrics`; and if `reference` names no period, or there is neither a time column nor a second table.

    Notes
    -----
    Intervals of a gap mirror those of the rate, scores held fixed: Wilson's, for verdicts that of Clopper and Pearson.
    Those of a change of the gap are made of those of both gaps, so that they allow for few events on either side
    (Newcombe 1998, method 10); simultaneous ones use the level of the simultaneous intervals of the gaps.

    ``gap_pvalue`` is twice the smaller tail of the Binomial of the mean score, exact for equal scores and cautious for
    others; it is the test behind the verdict. ``gap_change_pvalue`` predicts the positives of the period, or of the
    reference where its gap is the vaguer one, from the gap of the other; the error of that widens the law. It needs
    five expected positives and negatives on both sides. Weights enter by their squares. With a rolling reference
    p-values of neighbouring periods share rows, which Holm, Bonferroni and Benjamini-Yekutieli allow for.

    ``psi = sum (c - r) ln(c / r)`` over the B bins that are not empty, with shares r of the n rows of the reference and
    c of the m rows of the period (effective ones, with weights). ``psi_expected = (B - 1) (1/n + 1/m)``, and by
    ``psi_pvalue`` psi is so many times chi-squared with B - 1 degrees of freedom; it needs 25 expected rows in each bin
    on both sides. With fewer, chance makes psi somewhat larger still. ``ks_pvalue`` is exact, equal scores included, up
    to 10,000 pairs of rows (``ks_law``); above, it is that of the limit law, an upper bound where scores are equal.
    Importance weights that differ leave both null.

    With clusters the effective rows are divided by the design effect as in `audit`, for periods, references and the run
    to the end each by itself. A period and its reference are taken as independent of each other, which errs to the safe
    side where they share clusters. ``psi_expected`` is then the trace of the covariance of the shares by clusters,
    and psi has the law of that covariance to second order (Rao and Scott 1981); it takes at most 100 `psi_bins`.
    ``ks_pvalue`` goes by the largest design effect of a cumulative share, ``ece_expected`` by that of the gap. The
    monitor bets on a cluster in its first batch alone, where all its rows count as one: what a cluster does later is no
    news, and large clusters tell it little. With days as clusters, ask for ``batch="day"``.

    A change of gap or Brier score has three parts. The curve c of the reference is its scores scaled within each bin so
    that their mean is the rate. ``score_mix`` is what c makes of other scores: expected gap, or Brier score, of the
    period's scores less that of the reference's. ``class_prior`` is what changes as c is moved by odds until its mean
    over the period's scores is the period's rate. ``rest`` is the remainder, another shape of the curve; of the gap
    nothing remains.

    The headline names the first period of a run to the end of which every judged period (100 rows) is marked the same
    way, whose gap as a whole is clearly beyond the tolerance, and where the gap is not one that was always there.
    Periods just before it with too few rows to be judged are in neither average, and it is "or earlier" then. Where
    there is no such run, it says when judged periods were clearly off, and how the latest one is. How many segments
    moved along is told by ``gap_change_pvalue`` of before and since, times the number of periods that the run could
    have begun with, adjusted over segments.

    The monitor bets against "a label is 1 with the probability that its score says, whatever went before": half of the
    stake on shifts and slopes of the logit, half on shifts within ten bins of the score. Scores being right, the chance
    that the e-value ever reaches 1 / alpha is at most alpha, however often one looks; all rows take part, those of the
    reference, too. Importance weights, divided by the largest, are powers of the factors: that keeps the guarantee if
    scores are right whatever the weight, and weakens the evidence. The e-detector finds changes late in a long course
    sooner; what it promises is another thing: at least `run_length` batches between false alarms on average.

    References
    ----------
    Ramdas, A., Grünwald, P., Vovk, V. and Shafer, G. (2023). Game-theoretic statistics and safe anytime-valid
    inference. Statistical Science 38, 576-601. https://doi.org/10.1214/23-STS894

    Shin, J., Ramdas, A. and Rinaldo, A. (2024). E-detectors: a nonparametric framework for sequential change detection.
    The New England Journal of Statistics in Data Science 2, 229-260. https://doi.org/10.51387/23-NEJSDS51

    Newcombe, R. G. (1998). Interval estimation for the difference between independent proportions: comparison of eleven
    methods. Statistics in Medicine 17, 873-890.
    https://doi.org/10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I

    Yurdakul, B. and Naranjo, J. (2020). Statistical properties of the population stability index. Journal of Risk Model
    Validation 14(4), 89-100. https://doi.org/10.21314/JRMV.2020.227

    Rao, J. N. K. and Scott, A. J. (1981). The analysis of categorical data from complex sample surveys: chi-squared
    tests for goodness of fit and independence in two-way tables. Journal of the American Statistical Association 76,
    221-230. https://doi.org/10.1080/01621459.1981.10481633

    Saerens, M., Latinne, P. and Decaestecker, C. (2002). Adjusting the outputs of a classifier to new a priori
    probabilities. Neural Computation 14, 21-41. https://doi.org/10.1162/089976602753284446

    Examples
    --------
    >>> import datetime as dt
    >>> import polars as pl
    >>> import calframe
    >>> months = [dt.date(2026, month, 1) for month in (1, 2, 3, 4) for _ in range(1000)]
    >>> late = [i % 2 == 0 for i in range(2000)] + [i % 5 < 2 for i in range(2000)]
    >>> flights = pl.DataFrame({"late": late, "p": 0.5, "day": months})
    >>> found = calframe.drift(flights, label="late", score="p", time="day")
    >>> found
    <Drift: 4 periods from 4,000 rows; .table, .parts, .monitor, .plot()>
      Since Mar 2026 scores run 10.0 pp too high on average (0.0 pp before).
      gap differs from that of Jan 2026 to Feb 2026 in 2 of 2 tests
      monitor: alarm since 2026-03-01
    >>> found.table.select("period", "n", "gap", "gap_change")
    shape: (4, 4)
    ┌────────────┬──────┬─────┬────────────┐
    │ period     ┆ n    ┆ gap ┆ gap_change │
    │ ---        ┆ ---  ┆ --- ┆ ---        │
    │ date       ┆ i64  ┆ f64 ┆ f64        │
    ╞════════════╪══════╪═════╪════════════╡
    │ 2026-01-01 ┆ 1000 ┆ 0.0 ┆ null       │
    │ 2026-02-01 ┆ 1000 ┆ 0.0 ┆ null       │
    │ 2026-03-01 ┆ 1000 ┆ 0.1 ┆ 0.1        │
    │ 2026-04-01 ┆ 1000 ┆ 0.1 ┆ 0.1        │
    └────────────┴──────┴─────┴────────────┘
    """
    check_choice("batch", batch, get_args(Batch))
    check_choice("correction", correction, get_args(Correction))
    if every is not None:
        check_choice("every", every, get_args(Every))
    behind = check_reference(reference, time, window)
    check_tolerance(tolerance, alpha)
    check_clip(clip)
    _check_numbers(psi_floor, run_length)
    options = Options(
        bins=BinChoice.from_arguments(bins, strategy=strategy, closed=closed),
        psi_bins=_psi_bins(psi_bins, closed),
        psi_floor=psi_floor,
        rules=Rules(tolerance=tolerance, alpha=alpha, correction=correction),
    )
    roles = Roles.from_arguments(
        label=label,
        score=score,
        by=by,
        weight=weight,
        time=time,
        cluster=cluster,
        time_zone=time_zone,
        positive=positive,
        link=link,
        invalid=invalid,
        weight_kind=weight_kind,
    )
    reading = read(data, roles, every=every, batch=batch, reserved=_RESERVED, engine=engine, bins=options.bins.fixed)
    chosen = Reference.from_argument(reference, reading.days.periods, window=behind)
    second = read_second(reference, roles, reading, engine=engine) if chosen.kind == "table" else None
    lines = Lines.of_reading(reading, options.rules)
    found = compared(lines, references(lines, chosen, second), options)
    alarms = Alarms(
        e_value=(1 if correction == "none" else len(reading.first_group)) / alpha, run_length=float(run_length)
    )
    over_time = courses(reading.days, options.rules)
    warn_empty_categories(reading.by, reading.groups)
    return Drift(
        table=periods_table(lines, found, options).to_native(),
        parts=parts_table(lines, found).to_native(),
        monitor=monitor_frame(reading, alarms, clip=clip).to_native(),
        course=pl.concat([_named(one) for one in over_time]),
        since=tuple(one.since for one in over_time if one.since is not None),
        reference=chosen.words,
        reference_periods=chosen.labels,
        reference_gap=reference_table(lines, found, options),
        by=roles.by,
        scores=roles.scores,
        label=label,
        time=time,
        every=reading.days.periods.every,
        time_zone=reading.days.zone,
        **_counted(reading, over_time),
        tolerance=tolerance,
        alpha=alpha,
        correction=correction,
        alarm_at=alarms.e_value,
        run_length=alarms.run_length,
        convention={
            **options.bins.convention(),
            "closed": closed,
            "psi_bins": list(options.psi_bins.edges) if isinstance(options.psi_bins, Bins) else options.psi_bins,
            "psi_floor": psi_floor,
            "batch": batch,
            "clip": clip,
            "reference": chosen.kind,
            **roles.convention(),
        },
    )


def _counted(reading: Reading, over_time: list[Course]) -> dict[str, int]:
    """Count the rows of the table once: those of the model with the most used ones."""
    groups, model = reading.groups, reading.days.model
    used = np.bincount(model, groups.n, minlength=len(over_time))
    most = int(used.argmax())
    counts = {name: int(getattr(groups, name)[model == most].sum()) for name in ("n", "n_missing", "n_invalid")}
    return {**counts, "n_undated": over_time[most].undated, "n_empty": over_time[most].n_empty}


def _named(course: Course) -> pl.DataFrame:
    """Return the table of a course behind its model."""
    return course.table.select(pl.lit(course.model, dtype=pl.String).alias("model"), pl.all())


def _psi_bins(bins: Any, closed: Closed) -> Bins | int:
    """Read ``psi_bins=``: how many bins the reference makes, or edges."""
    try:
        made = Bins.from_argument(bins, closed=closed)
    except ArgumentError as error:
        msg = f"psi_{error}"  # which begins with the name of the other argument
        raise ArgumentError(msg) from error
    if made.uniform and made.count > _MOST_BINS:
        msg = f"psi_bins must be a number from 1 to {_MOST_BINS:,}, or a list of edges; got {bins!r}."
        raise ArgumentError(msg)
    return made.count if made.uniform else made


def _check_numbers(psi_floor: Any, run_length: Any) -> None:
    if psi_floor is not None and not (is_real(psi_floor) and 0.0 < psi_floor < 1.0):
        msg = f"psi_floor is the share that stands for an empty bin, for example 1e-4, or None; got {psi_floor!r}."
        raise ArgumentError(msg)
    if not (is_real(run_length) and 1.0 < run_length < math.inf):
        msg = f"run_length is a number of batches above 1, for example 10_000; got {run_length!r}."
        raise ArgumentError(msg)
