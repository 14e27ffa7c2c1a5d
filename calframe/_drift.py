"""The verb `drift`: calibration over time, against a reference, with a monitor that may be looked at whenever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from calframe._binning import BinChoice, Bins
from calframe._closing import warn_empty_categories
from calframe._drifting._comparing import Comparison, compared, comparison_columns, notes, parts_of
from calframe._drifting._course import Course, courses
from calframe._drifting._frames import as_dates
from calframe._drifting._monitoring import Alarms, monitor_frame
from calframe._drifting._numbers import Lines, Options, binned_columns, corrected, judged_lines, zero_pvalue
from calframe._drifting._reading import Batch, read, reference_tally
from calframe._drifting._reference import Reference, check_reference
from calframe._drifting._result import Drift
from calframe._errors import ArgumentError
from calframe._kernels._binned import ratio
from calframe._kernels._corrections import Correction
from calframe._options import check_choice, check_clip, is_real
from calframe._periods import Every
from calframe._roles import Roles, WeightKind
from calframe._testing._monitor import RUN_LENGTH
from calframe._typing import Closed, Ints, Invalid, Link, Names, Strategy
from calframe._verdicts import check_tolerance

_TABLE = (
    "period",
    "n",
    "n_missing",
    "n_invalid",
    "weight_sum",
    "rate",
    "mean_score",
    "gap",
    "gap_low",
    "gap_high",
    "simultaneous_low",
    "simultaneous_high",
    "verdict",
    "ece",
    "ece_expected",
    "brier",
    "reliability",
    "resolution",
    "uncertainty",
    "within_bin",
    "psi",
    "psi_empty_bins",
    "wasserstein",
    "ks",
    "ks_pvalue",
    "ks_pvalue_adjusted",
    "ks_law",
    "gap_change",
    "pvalue",
    "pvalue_adjusted",
    "gap_pvalue",
    "gap_pvalue_adjusted",
    "note",
)
_LAWS = {1.0: "exact", 0.0: "limit"}
_MEASURES = ("gap", "brier")
_PARTS = ("measure", "reference", "score_mix", "class_prior", "rest", "current")
_MONITOR = ("time", "log_e_value", "e_value", "log_e_value_max", "alarm", "log_detector", "detector_alarm")
_RESERVED = tuple(dict.fromkeys((*_TABLE, *_PARTS, *_MONITOR, "model")))
_MOST_BINS = 10_000


def drift(
    data: Any,
    *,
    label: str,
    score: str | Sequence[str],
    time: str | None = None,
    every: Every | None = "1mo",
    reference: Any = None,
    window: int = 3,
    by: Names | None = None,
    weight: str | None = None,
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
        Length of a period; weeks begin on Monday. None: the longest that gives at least six.
    reference : optional
        What each period is compared with. None: the first third of the periods. ``"first"``: the first one. A period's
        label such as ``"Jan 2024"``, a date in it, or a pair of dates, both included. ``"rolling"``: the `window`
        periods before it. A second table: all its rows, with the same columns (`time` aside). Periods of the
        reference itself are not compared.
    window : int, default 3
        Periods behind a rolling reference.
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
        is infinite evidence.
    run_length : float, default 10,000
        Batches that pass on average, at least, before the e-detector sounds without a reason.

    Returns
    -------
    Drift
        With ``.table``, ``.parts``, ``.monitor``, ``.course``, ``.headline``, ``.plot()`` and ``.to_dict()``.

    Raises
    ------
    CalframeError
        As `metrics`; and if `reference` names no period, or there is neither a time column nor a second table.

    Notes
    -----
    Intervals of a gap mirror those of the rate, scores held fixed: Wilson's, for verdicts that of Clopper and Pearson.

    The p-value of a gap of 0 comes from the Binomial matched to mean and variance of the positives that the scores say,
    twice the smaller tail. That of the reference's gap predicts the positives of the period, or of the reference where
    its gap is the vaguer one, from the gap of the other; the error of that widens the law. It needs five expected
    positives and negatives on both sides. Weights enter by their squares. With a rolling reference p-values of
    neighbouring periods share rows, which Holm, Bonferroni and Benjamini-Yekutieli allow for.

    ``psi = sum (c - r) ln(c / r)`` over the bins. ``ks_pvalue`` is exact, equal scores included, up to 10,000 pairs of
    rows (``ks_law``); above, it is that of the limit law, an upper bound where scores are equal. Importance weights
    leave it null.

    A change of gap or Brier score has three parts. The curve c of the reference is its scores scaled within each bin so
    that their mean is the rate. ``score_mix`` is what c makes of other scores: expected gap, or Brier score, of the
    period's scores less that of the reference's. ``class_prior`` is what changes as c is moved by odds until its mean
    over the period's scores is the period's rate. ``rest`` is the remainder, another shape of the curve; of the gap
    nothing remains.

    The headline names the first period of a run to the end of which every judged period (100 rows) is marked the same
    way, whose gap as a whole is clearly beyond the tolerance, and where the gap is not one that was always there.

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

    Yurdakul, B. and Naranjo, J. (2020). Statistical properties of the population stability index. Journal of Risk Model
    Validation 14(4), 89-100. https://doi.org/10.21314/JRMV.2020.227

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
      Since Mar 2026 scores run 10.0 points too high on average (0.0 before).
      gap differs from that of Jan 2026 to Feb 2026 in 2 of 2 tests
      monitor: 1 alarm in 1 series
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
    check_reference(reference, time, window)
    check_tolerance(tolerance, alpha)
    check_clip(clip)
    _check_numbers(psi_floor, run_length)
    options = Options(
        bins=BinChoice.from_arguments(bins, strategy=strategy, closed=closed),
        psi_bins=_psi_bins(psi_bins, closed),
        psi_floor=psi_floor,
        tolerance=tolerance,
        alpha=alpha,
        correction=correction,
    )
    roles = Roles.from_arguments(
        label=label,
        score=score,
        by=by,
        weight=weight,
        time=time,
        time_zone=time_zone,
        positive=positive,
        link=link,
        invalid=invalid,
        weight_kind=weight_kind,
    )
    reading = read(data, roles, every=every, batch=batch, reserved=_RESERVED, engine=engine)
    chosen = Reference.from_argument(reference, reading.days.periods, window=window)
    second = reference_tally(reference, roles, reading, engine=engine) if chosen.kind == "table" else None
    lines = Lines.of_reading(reading)
    found = compared(lines, chosen, second, options)
    alarms = Alarms(
        e_value=(1 if correction == "none" else len(reading.first_group)) / alpha, run_length=float(run_length)
    )
    over_time = courses(reading.days, tolerance=tolerance, alpha=alpha)
    warn_empty_categories(reading.by, reading.groups)
    groups = reading.groups
    return Drift(
        table=_table(lines, found, options).to_native(),
        parts=_parts(lines, found).to_native(),
        monitor=monitor_frame(reading, alarms, clip=clip).to_native(),
        course=pl.concat([_named(one) for one in over_time]),
        since=tuple(one.since for one in over_time if one.since is not None),
        reference=chosen.words,
        by=roles.by,
        scores=roles.scores,
        label=label,
        time=time,
        every=reading.days.periods.every,
        time_zone=reading.days.zone,
        n=int(groups.n.sum()),
        n_missing=int(groups.n_missing.sum()),
        n_invalid=int(groups.n_invalid.sum()),
        n_undated=sum(one.undated for one in over_time),
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


def _named(course: Course) -> pl.DataFrame:
    """Return the table of a course behind its model."""
    return course.table.select(pl.lit(course.model, dtype=pl.String).alias("model"), pl.all())


def _psi_bins(bins: Any, closed: Closed) -> Bins | int:
    """Read ``psi_bins=``: how many bins the reference makes, or edges."""
    made = Bins.from_argument(bins, closed=closed)
    if made.uniform and made.count > _MOST_BINS:
        msg = f"psi_bins must be a number from 1 to {_MOST_BINS:,}, or a list of edges; got {bins!r}."
        raise ArgumentError(msg)
    return made.count if made.uniform else made


def _check_numbers(psi_floor: Any, run_length: Any) -> None:
    if psi_floor is not None and not (is_real(psi_floor) and 0.0 < psi_floor < 1.0):
        msg = f"psi_floor is the share that stands for an empty bin, for example 1e-4, or None; got {psi_floor!r}."
        raise ArgumentError(msg)
    if not (is_real(run_length) and run_length > 1.0):
        msg = f"run_length is a number of batches above 1, for example 10_000; got {run_length!r}."
        raise ArgumentError(msg)


def _table(lines: Lines, found: Comparison, options: Options) -> nw.DataFrame[Any]:
    """Return the table of periods in the user's library."""
    judged, tally = judged_lines(lines, options), lines.tally
    columns = _counts(lines)
    columns |= {
        "rate": lines.spread(ratio(tally.total(tally.positive), tally.total(tally.weight))),
        "mean_score": lines.spread(ratio(tally.total(tally.weight * tally.score), tally.total(tally.weight))),
        "gap": judged.gap,
        "gap_low": judged.low,
        "gap_high": judged.high,
        "simultaneous_low": judged.sim_low,
        "simultaneous_high": judged.sim_high,
        "verdict": list(judged.verdict),
    }
    columns |= {name: lines.spread(values) for name, values in binned_columns(lines, options).items()}
    columns |= comparison_columns(lines, found, options)
    columns["ks_law"] = [_LAWS.get(value) for value in columns.pop("ks_exact").tolist()]
    columns["gap_pvalue"] = zero_pvalue(lines)
    for name in ("ks_pvalue", "pvalue", "gap_pvalue"):
        columns[f"{name}_adjusted"] = corrected(lines, columns[name], options)
    columns["note"] = notes(lines, found, columns)
    return _dated(lines, {name: columns[name] for name in _TABLE if name in columns}, lines.series, lines.period)


def _counts(lines: Lines) -> dict[str, Any]:
    groups, roles = lines.reading.groups, lines.reading.table.roles
    columns: dict[str, Any] = {"n": lines.counts(groups.n), "n_missing": lines.counts(groups.n_missing)}
    if roles.invalid == "drop":
        columns["n_invalid"] = lines.counts(groups.n_invalid)
    if roles.weight is not None:
        columns["weight_sum"] = np.nan_to_num(lines.spread(lines.tally.total(lines.tally.weight)))
    return columns


def _parts(lines: Lines, found: Comparison) -> nw.DataFrame[Any]:
    """Return what changes are made of, two rows a compared line."""
    line = np.repeat(found.lines, len(_MEASURES))
    both = parts_of(found)
    columns: dict[str, Any] = {"measure": list(_MEASURES) * len(found.lines)}
    for name in _PARTS[1:]:
        each = [getattr(part, name) for part in both] if both else [np.zeros(0)] * len(_MEASURES)
        columns[name] = np.stack(each, axis=1).ravel()
    return _dated(lines, columns, lines.series[line], lines.period[line])


def _dated(lines: Lines, columns: dict[str, Any], series: Ints, period: Ints) -> nw.DataFrame[Any]:
    """Return columns behind keys, model and period."""
    starts = lines.reading.days.periods.starts
    known = lines.reading.table.roles.time is not None
    text = [starts[place].isoformat() if known else None for place in period.tolist()]
    return as_dates(lines.reading.frame({"period": text, **columns}, series), "period")
