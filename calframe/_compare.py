"""The verb `compare`: two models on the same rows, per segment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import polars as pl

from calframe._binning import BinChoice, Bins
from calframe._closing import warn_empty_categories, warn_infinite
from calframe._comparing._found import Comparing
from calframe._comparing._models import Models
from calframe._comparing._pairs import Pairs
from calframe._comparing._tables import table_of
from calframe._errors import ArgumentError
from calframe._kernels._corrections import Correction
from calframe._measures import reserved_names
from calframe._options import (
    check_alpha,
    check_choice,
    check_clip,
    check_floor,
    check_level,
    check_resamples,
    check_smoother,
    check_whole,
    check_width,
    seed_of,
)
from calframe._registry import Metric, Options
from calframe._results import SCHEMA_VERSION, html_table, json_ready, records, to_polars
from calframe._roles import WeightKind
from calframe._testing._draws import more_draws
from calframe._testing._found import draws_needed
from calframe._typing import Closed, Invalid, Json, Link, Names, Seed, Smoother, Strategy
from calframe._words._lines import distinct, fitted, wrapped
from calframe._words._listing import in_clusters
from calframe._words._numbers import pvalue

if TYPE_CHECKING:
    import altair as alt

_RESERVED = {
    "metric",
    "first",
    "second",
    "difference",
    "low",
    "high",
    "pvalue",
    "pvalue_adjusted",
    "better",
    "law",
}
_SHOWN = 12
_WIDTH, _NAME_WIDTH, _MODEL_WIDTH = 80, 22, 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Two models on the same rows.

    Attributes
    ----------
    table : frame
        One row per segment and metric, in the library of the input (polars where that was lazy or remote): the keys,
        ``metric``, ``n`` (rows where both scores are there), ``n_missing``, ``n_invalid``?, ``weight_sum``?, ``first``
        and ``second`` (the value of each model on those rows), ``difference`` (second minus first), ``low`` and
        ``high`` (its interval), ``pvalue`` (two-sided, that there is no difference), ``pvalue_adjusted`` (for all rows
        of the table), ``better`` (the name of the clearly better model; null where neither is), ``law`` ("t",
        "delong" or "exchange": where the p-value comes from) and ``note``.
    first, second : str
        The score columns, or the names of the models, in the order of the difference.
    by, metrics : tuple of str
        The segment columns, and what was compared.
    notes : tuple of str
        What is to be said of all rows together.
    convention : dict
        How the table was read and compared; ``direction`` says of each metric which values are good: "lower",
        "higher", "zero", "one" or "none".
    """

    table: Any
    first: str
    second: str
    by: tuple[str, ...]
    metrics: tuple[str, ...]
    notes: tuple[str, ...]
    convention: Json

    def to_dict(self) -> Json:
        """Return the comparison as JSON-ready data with a schema version."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "comparison",
            "first": self.first,
            "second": self.second,
            "by": list(self.by),
            "metrics": list(self.metrics),
            "notes": list(self.notes),
            "convention": json_ready(self.convention),
            "table": records(self.table),
        }

    def plot(self, *, width: int = 900, most: int = 36) -> alt.TopLevelMixin:
        """Draw the differences with their intervals, a panel a metric.

        Parameters
        ----------
        width : int, default 900
            Width of the chart in pixels.
        most : int, default 36
            Most segments drawn, in the order of the table.

        Returns
        -------
        altair.Chart
            A line is the interval of one difference by itself; a full dot has a clearly better model.
            ``chart.save("comparison.svg")`` and ``.png`` need nothing from the network; a page does, unless it is saved
            with ``chart.save("comparison.html", inline=True)``.
        """
        from calframe._comparing._drawn import difference_chart  # noqa: PLC0415  altair loads only for a chart

        check_width(width)
        check_whole("most", most, 1)
        chart: alt.TopLevelMixin = difference_chart(
            to_polars(self.table),
            by=self.by,
            metrics=self.metrics,
            models=(self.first, self.second),
            direction=self.convention["direction"],
            width=width,
            most=most,
        )
        return chart

    def __repr__(self) -> str:
        """Say of each row which model is better, as far as that is clear."""
        table = to_polars(self.table)
        short = dict(zip(both := (self.first, self.second), distinct(both, _MODEL_WIDTH), strict=True))
        count = f"{len(table):,} difference{'s'[: len(table) != 1]}"
        lines = [f"<Comparison: {short[self.second]} minus {short[self.first]}, {count}>"]
        for row in table.head(_SHOWN).iter_rows(named=True):
            keys = [*("(missing)" if row[name] is None else str(row[name]) for name in self.by), row["metric"]]
            ends = "no interval" if row["low"] is None else f"{row['low']:+.4f} to {row['high']:+.4f}"
            value = "–" if row["difference"] is None else f"{row['difference']:+.4f}"
            said = "not clear" if row["better"] is None else f"{short[row['better']]} better"
            lines.append(f"  {fitted(' '.join(keys), _NAME_WIDTH)} {value:>9} ({ends})  {said}")
        if len(table) > _SHOWN:
            lines.append(f"  {len(table) - _SHOWN:,} more in .table")
        notes = [*self.notes, *in_clusters(self.convention)]
        return "\n".join([*lines, *(line for note in notes for line in wrapped(note, _WIDTH))])

    def _repr_html_(self) -> str:
        table = to_polars(self.table)
        words = [pl.Series(name, map(pvalue, table[name]), dtype=pl.String) for name in ("pvalue", "pvalue_adjusted")]
        caption = "; ".join([f"{self.second} minus {self.first}, on the same rows", *self.notes])
        return html_table(table.with_columns(words), caption=caption)


def compare(
    data: Any,
    *,
    label: str,
    score: Sequence[str] | Sequence[Mapping[Any, str]] | Mapping[str, Mapping[Any, str]],
    classes: Sequence[Any] | None = None,
    metrics: Names | None = None,
    by: Names | None = None,
    weight: str | None = None,
    weight_kind: WeightKind = "importance",
    cluster: str | None = None,
    positive: Any = None,
    link: Link = "probability",
    bins: int | Sequence[float] | Literal["auto"] = 15,
    strategy: Strategy = "uniform",
    closed: Closed = "left",
    confidence_level: float = 0.95,
    correction: Correction = "holm",
    alpha: float = 0.05,
    n_resamples: int = 1000,
    rng: Seed = 0,
    invalid: Invalid = "raise",
    clip: float | None = None,
    floor: float = 1e-12,
    smoother: Smoother = "loess",
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Compare two models on the same rows.

    Answers "is the second better than the first, where, and how sure is that?". Both are measured on the rows where
    both scores are there. What a row says of one goes with what it says of the other, so that their difference is known
    far better than either value.

    Parameters
    ----------
    data : table
        See `metrics`. The columns used are read into memory.
    label, by, weight, weight_kind, positive, link, bins, strategy, closed, invalid, clip, floor, smoother
        See `metrics`.
    score : list of two str, mapping, or list of two mappings
        The score columns of the first and of the second model; a difference is second minus first. For more models
        call once for each pair, or each against the first. Models of several classes are a mapping of two names, each
        to a mapping of classes to columns, ``{"old": {"cat": "p_cat", "dog": "p_dog"}, "new": {"cat": "q_cat", "dog":
        "q_dog"}}``, or a list of two such mappings, which are called "first" and "second". Both have the same classes;
        of two the second is the positive one, and the table is one of two outcomes.
    classes : list, optional
        The classes, in their order, where each of two score columns holds lists, arrays or structs of probabilities.
    metrics : str or list of str, optional
        Names of metrics, see `metrics`, or ``"all"``: every one but skce, which takes minutes and is to be named.
        Default: brier, log_loss, auc, ece. For three classes or more: brier, log_loss, accuracy, confidence_ece.
    cluster : str, optional
        Column that says which rows are not independent, such as those of one person; each row without a value is a
        cluster of its own.
    confidence_level : float, default 0.95
        Level of each interval by itself.
    correction : {"holm", "bonferroni", "benjamini_hochberg", "benjamini_yekutieli", "none"}, default "holm"
        How p-values are adjusted for their number, over all segments and metrics.
    alpha : float, default 0.05
        Where the adjusted p-value is above it, neither model is called better.
    n_resamples : int, default 1000
        How often the models change places where no closed law fits; for small p-values as often as the number of
        segments and metrics asks for: see the notes. Where even so no model could be called better, the note says
        so.
    rng : int, numpy.random.Generator or None, default 0
        Seed of the resamples; None for fresh entropy.
    progress : callable, optional
        Told, after each lot of draws, which share of the work that was.

    Returns
    -------
    Comparison
        With ``.table`` and ``.to_dict()``.

    Raises
    ------
    CalframeError
        If columns, labels, scores or arguments are not what they must be; the message says what to do.

    Notes
    -----
    law "t"
        Measures that are functions of sums over rows (brier, log_loss, accuracy, gap, ratio, your own): Student's test
        and interval of the mean of paired differences, by the variance of weighted rows, or of sums of clusters; of
        ratio, brier_skill, sharpness and the like by their slopes (the delta method), of accuracy with two rows added.
        Of several classes brier, log_loss and accuracy are such means, too.
    law "delong"
        auc: DeLong's variance from placement values, by ranks, with Obuchowski's sums over clusters; the normal law.
    law "exchange"
        Everything else, and the two above where fewer than 20 rows carry the difference (of accuracy 50) or a class has
        fewer than 20, too few for these laws. In each of `n_resamples` draws the two scores of a row, or its two whole
        vectors (those of all rows of a cluster together), change places with probability one half; the p-value is (1 +
        the draws with at least as large a difference) / (1 + n_resamples). It is exact where the models are
        exchangeable, whatever the measure and however few the rows. Among more than 50 p-values 1 / 1001 is too large
        to say anything, so there those that are at most 0.005 are drawn anew, ``2 m / alpha`` times for m segments and
        metrics, and theirs is the p-value of these draws alone, which holds its level. What it rejects is that the
        models are alike; models that differ in other ways can differ in a measure by its bias alone, so a model is
        better only if the interval says so, too.

    With the models the other way round and the same seed, differences and ends of intervals change their sign, and
    p-values are the same.

    In a table of 20,000 rows or more, a hundred or more whose scores lie in the same two bins are not drawn one by one:
    their sums have the normal law with the mean and the covariance that exchanges give them. Measures of bins so cost
    cells; those of all scores in order or of fitted curves (ici, e50, e90, emax, smece, slope, intercept, citl) are
    worked out anew in each draw: of 60,000 rows that takes some ten seconds, of ici and its like a minute. So are those
    of whole score vectors, of 10,000 rows and five classes in some seconds; skce, which looks at pairs of rows, takes
    minutes, and above 2,000 rows may have other blocks of rows than in `metrics`.

    Intervals of everything else combine those that `metrics` gives each model, by the distances of their ends from
    median-unbiased estimates (Zou's recovery of variances), with the correlation of the values over 200 resamples of
    rows; where either interval reaches 0, the value is noise, so its distance from 0 is added in full. A bootstrap of
    the difference itself does not do: chance lifts the error of the better model most, so that its interval misses the
    truth where one model is right and the other is not. Being honest of each model, these intervals may leave out the
    difference seen, and hold more than their level where both models are right; of slope and citl with few events, and
    of resolution, they hold less (simulations: .77 to .86 of a nominal .90). A measure without an interval in
    `metrics`, such as mce, has none here, and the note says so; measures of scores in order have none where a class has
    fewer than 5 rows. Clusters make each interval as wide as if all rows of one were alike; skce has none then.

    ``better`` goes by the direction of the measure, and needs both an adjusted p-value of at most `alpha` and an
    interval without 0. Of measures that are best at a value (gap, citl, intercept: 0; ratio, slope: 1) the models must
    also clearly lie on different distances from it, and measures without a direction have no better model.

    References
    ----------
    DeLong, E. R., DeLong, D. M. and Clarke-Pearson, D. L. (1988). Comparing the areas under two or more correlated
    receiver operating characteristic curves. Biometrics 44, 837-845. https://doi.org/10.2307/2531595

    Sun, X. and Xu, W. (2014). Fast implementation of DeLong's algorithm for comparing the areas under correlated
    receiver operating characteristic curves. IEEE Signal Processing Letters 21, 1389-1393.
    https://doi.org/10.1109/LSP.2014.2337313

    Zou, G. Y. (2007). Toward using confidence intervals to compare correlations. Psychological Methods 12, 399-413.
    https://doi.org/10.1037/1082-989X.12.4.399

    Examples
    --------
    >>> import calframe
    >>> table = calframe.cross_fit(calframe.demo_table(), label="y", score="p_gbm", method="platt")
    >>> calframe.compare(table, label="y", score=["p_gbm", "p_calibrated"], metrics=["brier", "gap"])
    <Comparison: p_calibrated minus p_gbm, 2 differences>
      brier                    -0.0195 (-0.0206 to -0.0184)  p_calibrated better
      gap                      -0.0928 (-0.0936 to -0.0920)  p_calibrated better

    Two models of three classes, in columns of vectors:

    >>> import polars as pl
    >>> old = [[0.5, 0.4, 0.1], [0.4, 0.5, 0.1], [0.3, 0.4, 0.3], [0.3, 0.2, 0.5]] * 25
    >>> new = [[0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.2, 0.6, 0.2], [0.4, 0.2, 0.4]] * 25
    >>> polls = pl.DataFrame({"vote": ["left", "left", "centre", "right"] * 25, "old": old, "new": new})
    >>> calframe.compare(polls, label="vote", score=["old", "new"], classes=["left", "centre", "right"])
    <Comparison: new minus old, 4 differences>
      brier                    -0.1500 (-0.1887 to -0.1113)  new better
      log_loss                 -0.1855 (-0.2343 to -0.1367)  new better
      accuracy                 +0.0000 (-0.1372 to +0.1372)  not clear
      confidence_ece           +0.1250 (+0.0240 to +0.2146)  not clear
    """
    check_level(confidence_level, required=True)
    check_alpha(alpha)
    _check_options(correction, n_resamples, progress)
    check_clip(clip)
    check_floor(floor)
    check_smoother(smoother)
    models = Models.from_arguments(
        score,
        classes,
        label=label,
        by=by,
        weight=weight,
        positive=positive,
        link=link,
        invalid=invalid,
        weight_kind=weight_kind,
        cluster=cluster,
    )
    asked = models.chosen(metrics)
    choice = BinChoice.from_arguments(bins, strategy=strategy, closed=closed)
    pairs = Pairs.of_table(data, models, reserved=reserved_names() | _RESERVED, bins=_bounds(choice, asked))
    warn_empty_categories(pairs.table, pairs.groups)
    options = Options(smoother=smoother, floor=floor, clip=clip, n_resamples=int(n_resamples), seed=seed_of(rng))
    needed = draws_needed(len(pairs.present) * len(asked), correction, alpha)
    further = more_draws(options.n_resamples, needed)
    comparing = Comparing(
        pairs=pairs, choice=choice, options=options, level=confidence_level, further=further, done=progress
    )
    found = comparing.all_of(asked) if len(pairs.present) else []
    endless = [one.metric.name for one in found if one.endless.any()]
    if endless:
        warn_infinite(endless, dict(zip(models.names, pairs.impossible(), strict=True)))
    draws = (options.n_resamples, further)
    table, notes = table_of(pairs, asked, found, models=models.names, correction=correction, alpha=alpha, draws=draws)
    return Comparison(
        table=table,
        first=models.names[0],
        second=models.names[1],
        by=models.roles[0].by,
        metrics=tuple(metric.name for metric in asked),
        notes=notes,
        convention={
            "label": label,
            **models.convention(),
            **choice.convention(),
            "closed": closed,
            "direction": {metric.name: metric.direction for metric in asked},
            "confidence_level": float(confidence_level),
            "correction": correction,
            "alpha": float(alpha),
            "n_resamples": options.n_resamples,
            "rng": options.seed,
            "smoother": smoother,
            "floor": floor,
            "clip": clip,
        },
    )


def _check_options(correction: Any, n_resamples: Any, progress: Any) -> None:
    check_choice("correction", correction, get_args(Correction))
    check_resamples(n_resamples)
    if not (progress is None or callable(progress)):
        msg = f"progress must be a function that takes a share, such as print; got {progress!r}."
        raise ArgumentError(msg)


def _bounds(choice: BinChoice, asked: Sequence[Metric]) -> Bins | None:
    """Return the bins that every score must lie in; None where no metric has bins with edges known beforehand."""
    read = {metric.reads for metric in asked}
    if choice.fixed is None or not read & {"bins", "vectors"}:
        return None
    if "vectors" in read:
        choice.fixed.check_covering()
    return choice.fixed
