"""The verb `curve`: the reliability curve behind the numbers, with intervals and a consistency band."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import polars as pl

from calframe._binning import BinChoice
from calframe._closing import warn_empty_categories
from calframe._curve_tables import CurveMethod, Drawn, curve_table
from calframe._errors import ArgumentError
from calframe._measures import reserved_names
from calframe._options import check_choice, check_interval, check_level, check_resamples, seed_of
from calframe._results import SCHEMA_VERSION, html_table, json_ready, records, to_polars
from calframe._roles import Roles, WeightKind
from calframe._table import Table, open_table, view_of
from calframe._typing import Closed, Invalid, Json, Link, Names, Notion, RateInterval, Score, Seed, Strategy

if TYPE_CHECKING:
    import altair as alt

_COLUMNS = ("bin", "lower", "upper", "mean_score", "rate", "rate_low", "rate_high", "band_low", "band_high")
_INDEPENDENT = "its intervals and band are for independent rows, those of method='binned' need not be"
_UNUSED = {
    "isotonic": {
        **dict.fromkeys(("bins", "strategy", "closed"), "its steps follow from the scores, without bins"),
        "interval": "its intervals come from resampled rows",
        "cluster": _INDEPENDENT,
    },
    "kernel": {"cluster": _INDEPENDENT},
    "loess": {"interval": "its intervals are normal", "cluster": _INDEPENDENT},
}
_USUAL_BINS = {"binned": 15, "isotonic": 15, "kernel": 100, "loess": 100}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A reliability curve.

    Attributes
    ----------
    table : frame
        One row per segment, model, class and non-empty bin, in the library of the input (polars where that was lazy):
        the keys, ``model``?, ``class``?, ``bin`` (from 0), ``lower``, ``upper`` (edges; of bins of equal weight and of
        isotonic steps the lowest and highest score), ``n`` (rows), ``weight_sum``?, ``mean_score``, ``rate`` (of
        smooth curves the curve at the mean score), ``gap`` (mean_score - rate), ``rate_low``, ``rate_high`` (interval
        of the rate), ``band_low``, ``band_high`` (where the rate of right scores would lie).
    by : tuple of str
        The segment columns.
    scores : tuple of str
        The score columns.
    label : str
        The label column.
    n, n_missing, n_invalid : int
        Rows used, rows with something missing, and rows left out by ``invalid="drop"``, over all models and classes.
    bins : tuple of float
        The edges; empty where the scores of each segment make them.
    closed : {"left", "right"}
        The side of a bin that belongs to it.
    binning : dict
        How bins were made.
    confidence_level : float
        The level of intervals and band.
    interval : {"wilson", "clopper_pearson", "jeffreys"}
        The interval of the rate.
    roles : dict
        How the columns were read: positive value, link, invalid rows, weights, clusters.
    notion : {"confidence", "classwise"} or None
        Of which scores the curve is.
    method : {"binned", "isotonic", "kernel", "loess"}
        How the curve was made.
    """

    table: Any
    by: tuple[str, ...]
    scores: tuple[str, ...]
    label: str
    n: int
    n_missing: int
    n_invalid: int
    bins: tuple[float, ...]
    closed: Closed
    binning: Json
    confidence_level: float
    interval: RateInterval
    roles: Json
    notion: Notion | None = None
    method: CurveMethod = "binned"

    def plot(self, *, width: int = 540) -> alt.TopLevelMixin:
        """Draw the curve: one as a reliability diagram with gap strip and histogram, several over each other.

        Parameters
        ----------
        width : int, default 540
            Width of the chart in pixels.

        Returns
        -------
        altair.Chart
            In a light theme of fixed colours. Nothing global is changed. ``chart.save("curve.svg")`` and ``.png`` need
            nothing from the network; a page does, unless it is saved with ``chart.save("curve.html", inline=True)``.
        """
        from calframe._charts import reliability_curves  # noqa: PLC0415  altair loads only when a chart is asked for

        table = to_polars(self.table)
        keys = [name for name in (*self.by, "model", "class") if name in table.columns]
        chart: alt.TopLevelMixin = reliability_curves(
            table,
            keys=keys,
            width=width,
            method=self.method,
            notion=self.notion,
            edges=bool(self.bins),
            level=f"{100 * self.confidence_level:g}%",
        )
        return chart

    def to_dict(self) -> Json:
        """Return the curve as JSON-ready data with a schema version."""
        convention = {
            "method": self.method,
            "notion": self.notion,
            **json_ready(self.binning),
            "closed": self.closed,
            "confidence_level": self.confidence_level,
            "interval": self.interval,
            **json_ready(self.roles),
        }
        counts = {"n": self.n, "n_missing": self.n_missing, "n_invalid": self.n_invalid}
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "curve",
            "label": self.label,
            "scores": list(self.scores),
            "by": list(self.by),
            **counts,
            "convention": convention,
            "table": records(self.table),
        }

    def __repr__(self) -> str:
        """Return one line that says what the curve holds."""
        rows = len(to_polars(self.table))
        noun = {"binned": "bin", "isotonic": "step"}.get(self.method, "point")
        return f"<Curve: {_counted(rows, noun)} from {self._rows()}; .table, .plot(), .to_dict()>"

    def _repr_html_(self) -> str:
        return html_table(self.table, caption=f"Reliability curve of {', '.join(self.scores)}, {self._rows()}")

    def _rows(self) -> str:
        """Return how many rows there are behind it: those of a class or model once, where all have the same."""
        table = to_polars(self.table)
        key, many = ("class", "classes") if "class" in table.columns else ("model", "models")
        if key not in table.columns or table[key].n_unique() == 1:
            return _counted(self.n, "row")
        each = table.group_by(key).agg(pl.col("n").sum())["n"]
        if each.n_unique() == 1:
            return f"{_counted(int(each[0]), 'row')} x {len(each)} {many}"
        return f"{_counted(self.n, 'row')} of {len(each)} {many}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def curve(
    data: Any,
    *,
    label: str,
    score: Score,
    by: Names | None = None,
    weight: str | None = None,
    cluster: str | None = None,
    method: CurveMethod = "binned",
    notion: Notion | None = None,
    classes: Sequence[Any] | None = None,
    bins: int | Sequence[float] | Literal["auto"] | None = None,
    strategy: Strategy = "uniform",
    closed: Closed = "left",
    confidence_level: float = 0.95,
    interval: RateInterval | None = None,
    n_resamples: int = 1000,
    rng: Seed = 0,
    positive: Any = None,
    link: Link = "probability",
    invalid: Invalid = "raise",
    weight_kind: WeightKind = "importance",
    engine: Any = None,
) -> Curve:
    """Draw up the reliability curve: the rate of positives among rows with about the same score.

    The query runs at once. Binned curves between known edges are summed up on the table's own engine; the other ones
    read label, score and weight of the rows into memory, or of a remote engine their sums by distinct score.

    Parameters
    ----------
    data : table
        See `metrics`.
    label, score, by, weight, classes, positive, link, invalid, weight_kind, engine
        See `metrics`.
    cluster : str, optional
        Column that says which rows are not independent, such as those of one person; a row without a value is a cluster
        of its own. For binned curves only, whose rates stay as they are and whose intervals and band allow for it.
    method : {"binned", "isotonic", "kernel", "loess"}, default "binned"
        How the curve is made. ``"binned"``: means within score bins. ``"isotonic"``: the non-decreasing steps that fit
        best, without any setting (CORP). ``"kernel"``: smoothed as widely as smece smooths. ``"loess"``: the local
        quadratic regression of ici, as R draws it.
    notion : {"confidence", "classwise"}, optional
        Of what: the largest score of a row against whether its class happened, or each class against the rest (one
        curve a class). With one column of scores only the former; by default that column itself. Needed for three
        classes or more.
    bins : int, list of float or "auto", optional
        Number of bins of equal width on [0, 1], their edges, or the cube root of the rows in bins of equal weight.
        By default 15; of kernel and loess curves, whose points lie at the mean scores of bins, 100. Isotonic steps
        take none, nor `strategy` and `closed`.
    strategy : {"uniform", "quantile"}, default "uniform"
        How a number of bins is placed: by equal width, or by equal weight with equal scores kept together.
    closed : {"left", "right"}, default "left"
        The side of a bin that belongs to it.
    confidence_level : float, default 0.95
        Level in (0, 1) of the intervals of the rates and of the consistency band, each point by itself.
    interval : {"wilson", "clopper_pearson", "jeffreys"}, optional
        Interval of a binned or kernel rate, Wilson by default; other curves have their own. With weights, at
        (sum w)^2 / sum w^2 rows.
    n_resamples : int, default 1000
        Resamples behind the regions of an isotonic curve.
    rng : int, numpy.random.Generator or None, default 0
        Their seed; None for fresh entropy.

    Returns
    -------
    Curve
        With ``.table``, ``.plot()`` and ``.to_dict()``.

    Raises
    ------
    CalframeError
        As `metrics`, at once for every kind of table.

    Notes
    -----
    The band holds the rate that right scores would show; a rate inside it is no evidence against the scores. The
    interval around a rate answers another question, where the true rate lies.

    Binned: the band is the central region of the Binomial matched to mean and variance of the positives in the bin,
    exact where its scores are equal. Isotonic: the band and the interval are the central parts of fits to resampled
    rows, whose labels are drawn from the scores themselves, or from the fit. Kernel: both are those of a weighted
    mean. Loess: both are normal, by the weights that the curve gives to the labels; as the quadratics may leave
    [0, 1], rate and interval are cut off there. ici measures the curve as it is, as in R.

    With `cluster`, the effective rows of a bin are divided by a design effect, as those of `metrics` are: of the rate
    for the interval, of the gap for the band. A cluster counts in each bin that it has rows in; one of a single cluster
    has neither interval nor band.

    References
    ----------
    Bröcker, J. and Smith, L. A. (2007). Increasing the reliability of reliability diagrams. Weather and Forecasting
    22, 651-661. https://doi.org/10.1175/WAF993.1

    Dimitriadis, T., Gneiting, T. and Jordan, A. I. (2021). Stable reliability diagrams for probabilistic classifiers.
    PNAS 118, e2016191118. https://doi.org/10.1073/pnas.2016191118

    Błasiok, J. and Nakkiran, P. (2023). Smooth ECE: principled reliability diagrams via kernel smoothing.
    https://doi.org/10.48550/arXiv.2309.12236

    Austin, P. C. and Steyerberg, E. W. (2014). Graphical assessment of internal and external calibration of logistic
    regression models by using loess smoothers. Statistics in Medicine 33, 517-535. https://doi.org/10.1002/sim.5941

    Examples
    --------
    >>> import polars as pl
    >>> import calframe
    >>> flights = pl.DataFrame({"late": [0, 0, 1, 1], "p": [0.1, 0.3, 0.6, 0.8]})
    >>> found = calframe.curve(flights, label="late", score="p", bins=2)
    >>> found
    <Curve: 2 bins from 4 rows; .table, .plot(), .to_dict()>
    >>> found.table.select("bin", "lower", "upper", "n", "mean_score", "rate")
    shape: (2, 6)
    ┌─────┬───────┬───────┬─────┬────────────┬──────┐
    │ bin ┆ lower ┆ upper ┆ n   ┆ mean_score ┆ rate │
    │ --- ┆ ---   ┆ ---   ┆ --- ┆ ---        ┆ ---  │
    │ i64 ┆ f64   ┆ f64   ┆ i64 ┆ f64        ┆ f64  │
    ╞═════╪═══════╪═══════╪═════╪════════════╪══════╡
    │ 0   ┆ 0.0   ┆ 0.5   ┆ 2   ┆ 0.2        ┆ 0.0  │
    │ 1   ┆ 0.5   ┆ 1.0   ┆ 2   ┆ 0.7        ┆ 1.0  │
    └─────┴───────┴───────┴─────┴────────────┴──────┘
    """
    check_choice("method", method, get_args(CurveMethod))
    check_level(confidence_level, required=True)
    check_interval(interval, confidence_level)
    check_resamples(n_resamples)
    _check_unused(method, bins=bins, strategy=strategy, closed=closed, interval=interval, cluster=cluster)
    choice = BinChoice.from_arguments(_USUAL_BINS[method] if bins is None else bins, strategy=strategy, closed=closed)
    drawn = Drawn(
        method=method,
        choice=choice,
        level=confidence_level,
        interval=interval or "wilson",
        n_resamples=int(n_resamples),
        seed=seed_of(rng),
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
    table = _opened(data, roles, notion, choice)
    groups, found = curve_table(table, drawn, engine=engine)
    warn_empty_categories(table, groups)
    return Curve(
        table=found,
        by=roles.by,
        scores=roles.scores,
        label=label,
        n=int(groups.n.sum()),
        n_missing=int(groups.n_missing.sum()),
        n_invalid=int(groups.n_invalid.sum()),
        bins=() if choice.fixed is None or method == "isotonic" else choice.fixed.edges,
        closed=closed,
        binning={} if method == "isotonic" else choice.convention(),
        confidence_level=confidence_level,
        interval=drawn.interval,
        roles=roles.convention(),
        notion=notion,
        method=method,
    )


def _check_unused(method: CurveMethod, **given: Any) -> None:
    """Raise if an argument differs from its default and the method does not use it."""
    for name, why in _UNUSED.get(method, {}).items():
        value = given[name]
        default = inspect.signature(curve).parameters[name].default
        if isinstance(value, str | None) and value == default:
            continue
        msg = f"{name}= is not used with method={method!r}: {why}. Leave it out; got {value!r}."
        raise ArgumentError(msg)


def _opened(data: Any, roles: Roles, notion: Notion | None, choice: BinChoice) -> Table:
    view = view_of(roles, notion)
    if view == "vectors":
        msg = (
            "a curve of several classes needs notion=: 'confidence' for the largest score, 'classwise' for one curve a "
            "class."
        )
        raise ArgumentError(msg)
    return open_table(data, roles, reserved=reserved_names() | set(_COLUMNS), bins=choice.fixed, view=view)
