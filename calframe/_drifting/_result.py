"""What `drift` finds."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from calframe._drifting._course import Since
from calframe._drifting._frames import plain
from calframe._kernels._corrections import Correction
from calframe._options import check_choice, check_width
from calframe._periods import Every
from calframe._results import SCHEMA_VERSION, html_table, json_ready, records, to_polars
from calframe._typing import Json

if TYPE_CHECKING:
    import altair as alt

_LINE_WIDTH = 78
_DIGITS = 1  # of percentage points, where a period is described
_TAGS = {"over": "too high", "under": "too low", "in": ""}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drift:
    """Calibration over time.

    Attributes
    ----------
    table : DataFrame
        One row per segment, model and period, in the library of the input (polars where that was lazy or remote). The
        keys, ``model``?, ``period`` (its first day; a datetime in pandas; null without a time column), ``n``,
        ``n_missing``, ``n_invalid``?, ``weight_sum``?, ``rate``, ``mean_score``, ``gap`` (mean_score - rate: 0 is
        right, above 0 the scores are too high) with ``gap_low`` and ``gap_high``, and ``simultaneous_low`` and
        ``simultaneous_high``, which hold over all periods and segments of a model; ``verdict`` ("over", "under",
        "leans_over", "leans_under", "within", "unsure", "few": fewer than 100 rows); ``ece``, ``ece_expected`` (what
        right scores would show by chance), ``brier`` (lower is better) = ``reliability`` - ``resolution`` +
        ``uncertainty`` + ``within_bin``. Against the reference: ``psi`` and ``psi_empty_bins``, ``wasserstein`` (mean
        distance that scores moved), ``ks`` (largest distance of the distribution functions; of all four 0 is no
        change), ``gap_change``. P-values, raw and adjusted over periods and segments: ``ks_pvalue`` (same scores;
        ``ks_law`` "exact" or "limit"), ``pvalue`` (the gap is that of the reference), ``gap_pvalue`` (the gap is 0).
        ``note`` says what is null, and why.
    parts : DataFrame
        One row per compared row of `table` and ``measure`` ("gap", "brier"): its value in the ``reference``, what
        ``score_mix``, ``class_prior`` and the ``rest`` added, in that order, and its ``current`` value. They add up.
    monitor : DataFrame
        One row per segment, model and batch: ``time``, ``n``, ``log_e_value`` (natural logarithm) and ``e_value`` (1 is
        no evidence, more is evidence against the scores), ``log_e_value_max`` (largest so far), ``alarm`` (whether that
        has reached `alarm_at`), ``log_detector`` and ``detector_alarm`` of the e-detector.
    course : polars.DataFrame
        One row per model and period over all segments: ``model`` (null for a single one), ``period``, ``label``, ``n``,
        ``rate``, ``mean_score``, ``gap`` with both intervals, ``state`` ("over" or "under" where the simultaneous
        interval leaves out 0, else "in") and ``verdict``.
    since : tuple of Since
        For each model that has one, the unbroken run of marked periods to the end.
    reference : str
        What periods were compared with.
    by, scores : tuple of str
        The segment and the score columns.
    label : str
        The label column.
    time : str or None
        The time column.
    every : str
        Length of a period.
    time_zone : str or None
        The zone of the days; None for the zone of the column, or wall time.
    n, n_missing, n_invalid : int
        Rows used, rows with something missing, rows left out by ``invalid="drop"``, over all models.
    n_undated : int
        Rows used that have no time: they are in no period.
    tolerance, alpha : float
        As given.
    correction : str
        As given.
    alarm_at : float
        The e-value at which the monitor sounds.
    run_length : float
        The value at which the e-detector sounds.
    convention : dict
        How scores were binned and columns read.
    """

    table: Any
    parts: Any
    monitor: Any
    course: pl.DataFrame
    since: tuple[Since, ...]
    reference: str
    by: tuple[str, ...]
    scores: tuple[str, ...]
    label: str
    time: str | None
    every: Every
    time_zone: str | None
    n: int
    n_missing: int
    n_invalid: int
    n_undated: int
    tolerance: float
    alpha: float
    correction: Correction
    alarm_at: float
    run_length: float
    convention: Json

    @property
    def headline(self) -> str | None:
        """One sentence a model about the run to the end; None where there is none."""
        return ". ".join(since.sentence() for since in self.since) + "." if self.since else None

    def plot(self, *, model: str | None = None, width: int = 760) -> alt.TopLevelMixin:
        """Draw the gap of each period over all segments, with its interval and the rows of each.

        Parameters
        ----------
        model : str, optional
            The score column, where there are several; by default the first.
        width : int, default 760
            Width of the chart in pixels.

        Returns
        -------
        altair.Chart
            In a light theme of fixed colours. Dots are coloured where the simultaneous interval leaves out 0.
        """
        from calframe._charts import standalone, timeline  # noqa: PLC0415  altair loads only when a chart is asked for

        check_width(width)
        if model is not None:
            check_choice("model", model, self.scores)
        frame = self.course
        if len(self.scores) > 1:
            frame = frame.filter(pl.col("model") == (model or self.scores[0]))
        chart: alt.TopLevelMixin = standalone(timeline(drawn(frame), tolerance=self.tolerance, width=width))
        return chart

    def to_dict(self) -> Json:
        """Return the result as JSON-ready data with a schema version."""
        plain_fields = ("reference", "label", "time", "every", "time_zone", "n", "n_missing", "n_invalid", "n_undated")
        chosen = ("tolerance", "alpha", "correction", "alarm_at", "run_length")
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "drift",
            "headline": self.headline,
            **{name: getattr(self, name) for name in (*plain_fields, *chosen)},
            "by": list(self.by),
            "scores": list(self.scores),
            "convention": json_ready(self.convention),
            "table": records(plain(self.table, "period")),
            "parts": records(plain(self.parts, "period")),
            "monitor": records(self.monitor),
            "course": records(self.course),
        }

    def __repr__(self) -> str:
        """Say what was found, in a few lines."""
        lines = [f"<Drift: {self._size()}; .table, .parts, .monitor, .plot()>"]
        if self.headline:
            lines += textwrap.wrap(self.headline, _LINE_WIDTH, initial_indent="  ", subsequent_indent="    ")
        return "\n".join([*lines, *(f"  {line}" for line in self._counted())])

    def _size(self) -> str:
        periods = self.course["period"].n_unique()
        return f"{_number(periods, 'period')} from {_number(self.n, 'row')}"

    def _counted(self) -> list[str]:
        """Count what differs from the reference, and alarms."""
        table = plain(self.table, "period")
        tested = table["pvalue_adjusted"].drop_nulls()
        differ = f"{(tested < self.alpha).sum()} of {_number(len(tested), 'test')}"
        said = [f"gap differs from that of {self.reference:.30} in {differ}", *self._alarms()]
        return said + ([f"{_number(self.n_undated, 'row')} without a time, in no period"] if self.n_undated else [])

    def _alarms(self) -> list[str]:
        monitor = to_polars(self.monitor)
        keys = [name for name in (*self.by, "model") if name in monitor.columns]
        last = monitor.group_by(keys).agg(pl.col("alarm").any()) if keys else monitor.select(pl.col("alarm").any())
        return [f"monitor: {_number(int(last['alarm'].sum()), 'alarm')} in {len(last):,} series"]

    def _repr_html_(self) -> str:
        return html_table(self.table, caption=self.headline or f"Drift: {self._size()}")


def drawn(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the course as the chart takes it."""
    points = [(pl.col(name) * 100).round(_DIGITS) for name in ("gap", "gap_low", "gap_high")]
    known = pl.format("{}: gap {} points, {} to {}, {} rows", pl.col("label"), *points, pl.col("n"))
    return frame.select(
        pl.col("period").cast(pl.String),
        "label",
        "gap",
        low="gap_low",
        high="gap_high",
        n="n",
        state="state",
        tag=pl.col("state").replace_strict(_TAGS, return_dtype=pl.String),
        description=pl.coalesce(known, pl.format("{}: {} rows", pl.col("label"), pl.col("n"))),
    )


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
