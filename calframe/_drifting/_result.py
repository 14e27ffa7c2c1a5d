"""What `drift` finds."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from calframe._drifting._alarms import Alarm, alarm_words, betting_words, first_alarms
from calframe._drifting._course import Since
from calframe._drifting._drawn import empty_words
from calframe._drifting._frames import by_series, plain
from calframe._drifting._panels import Shown, panels
from calframe._drifting._story import headline, reference_words, segments_words
from calframe._drifting._view import periods_view, psi_words
from calframe._kernels._corrections import Correction
from calframe._options import check_choice, check_width
from calframe._periods import Every
from calframe._results import SCHEMA_VERSION, html_table, json_ready, records, to_polars
from calframe._typing import Json
from calframe._words._listing import in_clusters
from calframe._words._numbers import plural, rows, short

if TYPE_CHECKING:
    import altair as alt

_LINE_WIDTH = 78


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
        "leans_over", "leans_under", "within", "unsure", "few": fewer than 100 effective rows); ``ece``,
        ``ece_expected`` (what right scores would show by chance), ``brier`` (lower is better) = ``reliability`` -
        ``resolution`` + ``uncertainty`` + ``within_bin``. Against the reference: ``psi``, ``psi_expected`` (about what
        the same distribution would show by chance with so many rows: a psi of that size is no drift) and
        ``psi_empty_bins``, ``wasserstein`` (mean distance that scores moved), ``ks`` (largest distance of the
        distribution functions; of all these 0 is no change), ``gap_change`` (the gap less that of the reference) with
        ``gap_change_low`` and ``gap_change_high``, and ``gap_change_simultaneous_low`` and
        ``gap_change_simultaneous_high``, which hold over all periods and segments of a model. P-values, each followed
        by ``_adjusted`` over periods and segments: ``psi_pvalue`` and ``ks_pvalue`` (scores are distributed as in the
        reference; ``ks_law`` "exact" or "limit"), ``gap_change_pvalue`` (the gap is that of the reference, whatever
        that is), ``gap_pvalue`` (the gap is 0: the test behind the verdict, adjusted over the periods with rows
        enough). ``note`` says what is null, and why.
    parts : DataFrame
        One row per compared row of `table` and ``measure`` ("gap", "brier"): its value in the ``reference``, what
        ``score_mix``, ``class_prior`` and the ``rest`` added, in that order, and its ``current`` value. They add up.
    monitor : DataFrame
        One row per segment, model and batch: ``time``, ``n``, ``n_clusters``? (how many clusters were not
        seen before: these alone are bet on, each as one row), ``log_e_value`` (natural logarithm) and ``e_value`` (1 is
        no evidence, more is evidence against the scores; infinite from a row on with score 0 and label 1, or score 1
        and label 0, unless ``clip=`` kept scores from 0 and 1), ``log_e_value_max`` (largest so far), ``alarm``
        (whether that has reached `alarm_at`), ``log_detector`` and ``detector_alarm`` of the e-detector.
    course : polars.DataFrame
        One row per model and period over all segments: ``model`` (null for a single one), ``period``, ``label``, ``n``,
        ``rate``, ``mean_score``, ``gap`` with both intervals, ``state`` ("over" or "under" where the simultaneous
        interval leaves out 0, of periods with rows enough; else "in") and ``verdict``.
    headline, about_segments, about_reference : str or None
        Sentences: how all rows together stand over time; in how many segments a period is off (None without segments);
        whether the reference is itself off (None where it is not known to be).
    since : tuple of Since
        For each model that has one, the unbroken run of marked periods to the end.
    reference : str
        What periods were compared with.
    reference_periods : tuple of str
        The labels of the periods of the reference; none where it is rolling or a table.
    reference_gap : polars.DataFrame
        What the reference is like itself, over all segments: ``model``, ``n``, ``gap``, ``gap_low``, ``gap_high``,
        ``verdict``; one row a model, none for a rolling reference.
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
        Rows used, rows with something missing, rows left out by ``invalid="drop"``; of several models, those of the
        one with the most rows used.
    n_undated : int
        Of these used rows, those that have no time: they are in no period.
    n_empty : int
        Periods between the first and the last in which there is no row: they are in no table.
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
    reference_periods: tuple[str, ...]
    reference_gap: pl.DataFrame
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
    n_empty: int
    tolerance: float
    alpha: float
    correction: Correction
    alarm_at: float
    run_length: float
    convention: Json

    @property
    def headline(self) -> str | None:
        """One sentence a model: since when scores have been off, or when they were, or that they never clearly were.

        It says so where no period has rows enough to be judged. None without a time column.
        """
        return self.told(option='every="{}"')

    def told(self, *, option: str) -> str | None:
        """Return the headline; `option` is how the length of a period is asked for."""
        if self.time is None:
            return None
        since = {one.model: one for one in self.since}
        said = [
            headline(
                self._course_of(model),
                since.get(model),
                every=self.every,
                tolerance=self.tolerance,
                model=model,
                option=option,
            )
            for model in self.models()
        ]
        text = f"{'. '.join(said)}."
        return f"All rows together: {text[:1].lower()}{text[1:]}" if self.by else text

    @property
    def about_segments(self) -> str | None:
        """In how many segments a period is off, and which is the worst; None without segments or a time column."""
        if self.time is None or not self.by:
            return None
        each = by_series(plain(self.table, "period"), self.keys)
        named = [
            (", ".join(f"{short(key)} {_named(value)}" for key, value in zip(self.keys, values, strict=True)), part)
            for values, part in each
        ]
        total = plural(len(each), "segment") if self.keys == self.by else f"{len(each):,} series (segment and model)"
        return f"{segments_words(named, self.labels(), total=total)}."

    @property
    def about_reference(self) -> str | None:
        """What must be known of the reference: that its own gap is not 0; None where nothing is found."""
        said = [reference_words(self.reference, row) for row in self.reference_gap.iter_rows(named=True)]
        text = "; ".join(words for words in said if words)
        return f"{text[:1].upper()}{text[1:]}." if text else None

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the tables that name a series: segment columns, and ``model`` where a list was given."""
        return (*self.by, *(("model",) if None not in self.models() else ()))

    def plot(self, *, model: str | None = None, segments: bool = False, width: int = 760) -> alt.TopLevelMixin:
        """Draw the gap of each period with its intervals and rows: one panel a model, or a segment and model.

        Parameters
        ----------
        model : str, optional
            The score column, where there are several; by default each has its panel.
        segments : bool, default False
            Whether each segment has its panel, up to a dozen in all; by default all segments are taken together.
        width : int, default 760
            Width of the chart in pixels.

        Returns
        -------
        altair.Chart
            In a light theme of fixed colours. A dot is coloured where its simultaneous interval, the thin line, leaves
            out 0; ▲ and ▼ stand at a period that is clearly off, △ and ▽ at one that leans, by its verdict. A period
            without rows has an empty place, and the line is broken there. ``chart.save("drift.svg")`` and ``.png`` need
            nothing from the network; a page does, unless it is saved with ``chart.save("drift.html", inline=True)``.
        """
        from calframe._charts import standalone, timelines  # noqa: PLC0415  altair loads only when a chart is asked for

        check_width(width)
        if model is not None:
            check_choice("model", model, self.scores)
        made = panels(self._shown(), model=model, segments=segments)
        chart: alt.TopLevelMixin = standalone(timelines(made, tolerance=self.tolerance, width=width))
        return chart

    def to_dict(self) -> Json:
        """Return the result as JSON-ready data with a schema version."""
        counts = ("n", "n_missing", "n_invalid", "n_undated", "n_empty")
        plain_fields = (
            "about_segments",
            "about_reference",
            "reference",
            "label",
            "time",
            "every",
            "time_zone",
            *counts,
        )
        chosen = ("tolerance", "alpha", "correction", "alarm_at", "run_length")
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "drift",
            "headline": self.headline,
            **{name: getattr(self, name) for name in (*plain_fields, *chosen)},
            "reference_periods": list(self.reference_periods),
            "by": list(self.by),
            "scores": list(self.scores),
            "convention": json_ready(self.convention),
            "reference_gap": records(self.reference_gap),
            "table": records(plain(self.table, "period")),
            "parts": records(plain(self.parts, "period")),
            "monitor": records(self.monitor),
            "course": records(self.course),
        }

    def __repr__(self) -> str:
        """Say what was found, in a few lines."""
        lines = [f"<Drift: {self._size()}; .table, .parts, .monitor, .plot()>"]
        told = (self.headline, self.about_segments, self.about_reference)
        for text in (*told, *self._counted(), *in_clusters(self.convention, judged=True)):
            lines += textwrap.wrap(text or "", _LINE_WIDTH, initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)

    def _shown(self) -> Shown:
        """Return what there is to draw."""
        return Shown(
            table=plain(self.table, "period"),
            course=self.course,
            models=dict(zip(self.scores, self.models(), strict=True)),
            by=self.by,
            alarms={} if self.time is None else self.alarms(),
            every=self.every,
            reference=self.reference,
            reference_periods=self.reference_periods,
            n_empty=self.n_empty,
            tolerance=self.tolerance,
            alpha=self.alpha,
        )

    def alarms(self) -> dict[tuple[Any, ...], Alarm]:
        """Return since when the monitor of each series sounds, by the values of `keys`."""
        zone = self.time_zone if self.convention["batch"] == "time" else None  # days are those of the zone already
        return first_alarms(to_polars(self.monitor), self.keys, zone=zone)

    def models(self) -> tuple[str | None, ...]:
        """Return the score columns as tables name them: None where a single one was given by itself."""
        return self.scores if "model" in to_polars(self.table).columns else (None,)

    def labels(self) -> dict[Any, str]:
        """Return what each period is called, by its first day."""
        return dict(self.course.select("period", "label").iter_rows())

    def _course_of(self, model: str | None) -> pl.DataFrame:
        return self.course if model is None else self.course.filter(pl.col("model") == model)

    def _size(self) -> str:
        return f"{plural(self.course['period'].n_unique(), 'period')} from {rows(self.n)}"

    def _counted(self) -> list[str]:
        """Count what differs from the reference, alarms, and what is in no period."""
        tested = to_polars(self.table)["gap_change_pvalue_adjusted"].drop_nulls()
        differ = f"gap differs from that of {self.reference:.30} in {(tested <= self.alpha).sum():,}"
        none = f"no gap could be tested against that of {self.reference:.30}"
        said = [f"{differ} of {plural(len(tested), 'test')}" if len(tested) else none] if self.course.height else []
        alarms = self.alarms().values()
        said += ["; ".join(filter(None, [alarm_words(alarms), betting_words(alarms)]))]
        said += [empty_words(self.n_empty).removesuffix(".")] if self.n_empty else []
        return said + ([f"{rows(self.n_undated)} without a time, in no period"] if self.n_undated else [])

    def _repr_html_(self) -> str:
        table = plain(self.table, "period")
        view = periods_view(table, self.labels(), alpha=self.alpha)
        names = {name: f"{name} " if name in view.columns else name for name in self.keys}
        shown = pl.DataFrame({**{alias: table.get_column(name) for name, alias in names.items()}, **view.to_dict()})
        said = [
            self.headline or f"Drift: {self._size()}.",
            self.about_segments,
            self.about_reference,
            f"{'; '.join(self._counted())}.",
            *in_clusters(self.convention, judged=True),
        ]
        said.append(psi_words(table, alpha=self.alpha))
        return html_table(shown, caption=" ".join(text for text in said if text))


def _named(value: Any) -> str:
    return "(missing)" if value is None else short(str(value))
