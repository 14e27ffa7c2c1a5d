"""The verb `curve`: the reliability curve behind the numbers, with intervals and a consistency band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from calframe._binning import Bins
from calframe._cells import Groups, cells_plan, read_groups
from calframe._closing import Column, closed_frame, warn_empty_categories
from calframe._kernels._intervals import rate_interval
from calframe._kernels._null import central_part
from calframe._metrics_builtin import reserved_names
from calframe._options import check_choice, check_interval, check_level, check_strategy
from calframe._results import SCHEMA_VERSION, html_table, json_ready, records, to_polars
from calframe._roles import Roles, WeightKind
from calframe._table import Table, open_table
from calframe._typing import Closed, Floats, Ints, Invalid, Json, Link, Names, RateInterval, Strategy

if TYPE_CHECKING:
    import altair as alt

CurveMethod: TypeAlias = Literal["binned"]

_COLUMNS = ("bin", "lower", "upper", "mean_score", "rate", "rate_low", "rate_high", "band_low", "band_high")
_TERMS = ("wp", "wy", "w2", "variance", "w2_variance")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A reliability curve.

    Attributes
    ----------
    table : frame
        One row per segment, model and non-empty bin, in the library of the input (polars where that was lazy):
        the keys, ``model``?, ``bin`` (from 0), ``lower``, ``upper`` (edges), ``n`` (rows), ``weight_sum``?,
        ``mean_score``, ``rate``, ``gap`` (mean_score - rate), ``rate_low``, ``rate_high`` (interval of the rate),
        ``band_low``, ``band_high`` (where the rate of right scores would lie).
    by : tuple of str
        The segment columns.
    scores : tuple of str
        The score columns.
    label : str
        The label column.
    n, n_missing, n_invalid : int
        Rows used, rows with something missing, and rows left out by ``invalid="drop"``, over all models.
    bins : tuple of float
        The edges.
    closed : {"left", "right"}
        The side of a bin that belongs to it.
    confidence_level : float
        The level of intervals and band.
    interval : {"wilson", "clopper_pearson", "jeffreys"}
        The interval of the rate.
    roles : dict
        How the columns were read: positive value, link, invalid rows, weights.
    method : {"binned"}
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
    confidence_level: float
    interval: RateInterval
    roles: Json
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
            nothing from the network; for a page that does not either, ``chart.save("curve.html", inline=True)``.
        """
        from calframe._charts import reliability_curves  # noqa: PLC0415  altair loads only when a chart is asked for

        table = to_polars(self.table)
        keys = [name for name in (*self.by, "model") if name in table.columns]
        chart: alt.TopLevelMixin = reliability_curves(table, keys=keys, width=width)
        return chart

    def to_dict(self) -> Json:
        """Return the curve as JSON-ready data with a schema version."""
        convention = {
            "method": self.method,
            "bins": list(self.bins),
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
        bins, used = (
            f"{count:,} {noun}{'' if count == 1 else 's'}" for count, noun in ((rows, "bin"), (self.n, "row"))
        )
        return f"<Curve: {bins} from {used}; .table, .plot(), .to_dict()>"

    def _repr_html_(self) -> str:
        return html_table(self.table, caption=f"Reliability curve of {', '.join(self.scores)}, {self.n:,} rows")


def curve(
    data: Any,
    *,
    label: str,
    score: Names,
    by: Names | None = None,
    weight: str | None = None,
    method: CurveMethod = "binned",
    bins: int | Sequence[float] = 15,
    strategy: Strategy = "uniform",
    closed: Closed = "left",
    confidence_level: float = 0.95,
    interval: RateInterval | None = None,
    positive: Any = None,
    link: Link = "probability",
    invalid: Invalid = "raise",
    weight_kind: WeightKind = "importance",
    engine: Any = None,
) -> Curve:
    """Draw up the reliability curve: the rate of positives among rows with about the same score.

    The query runs at once, on the table's own engine; only segments x bins sums reach Python.

    Parameters
    ----------
    data : table
        See `metrics`.
    label, score, by, weight, positive, link, invalid, weight_kind, engine
        See `metrics`.
    method : {"binned"}, default "binned"
        How the curve is made: means within score bins.
    bins : int or list of float, default 15
        Number of bins of equal width on [0, 1], or their edges.
    strategy : {"uniform"}, default "uniform"
        How a number of bins is placed.
    closed : {"left", "right"}, default "left"
        The side of a bin that belongs to it.
    confidence_level : float, default 0.95
        Level in (0, 1) of the intervals of the rates and of the consistency band, each bin by itself.
    interval : {"wilson", "clopper_pearson", "jeffreys"}, optional
        Interval of a rate; Wilson by default. With weights, at (sum w)^2 / sum w^2 rows.

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
    The consistency band holds the rate that right scores would show: the central region of the Binomial matched to
    the mean and variance of the positives in the bin, exact where the scores of a bin are equal. A rate inside the
    band is no evidence against the scores; the interval around a rate answers another question, where the true rate
    lies.

    References
    ----------
    Bröcker, J. and Smith, L. A. (2007). Increasing the reliability of reliability diagrams. Weather and Forecasting
    22, 651-661. https://doi.org/10.1175/WAF993.1

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
    check_strategy(strategy)
    check_level(confidence_level, required=True)
    check_interval(interval, confidence_level)
    binned = Bins.from_argument(bins, closed=closed)
    chosen: RateInterval = interval or "wilson"
    roles = Roles.from_arguments(
        label=label,
        score=score,
        by=by,
        weight=weight,
        positive=positive,
        link=link,
        invalid=invalid,
        weight_kind=weight_kind,
    )
    table = open_table(data, roles, reserved=reserved_names() | set(_COLUMNS), bins=binned)
    groups = read_groups(table, table.collect(cells_plan(table, _TERMS, bins=binned), engine=engine), _TERMS)
    warn_empty_categories(table, groups)
    return Curve(
        table=_curve_table(table, groups, binned, confidence_level, chosen),
        by=roles.by,
        scores=roles.scores,
        label=label,
        n=int(groups.n.sum()),
        n_missing=int(groups.n_missing.sum()),
        n_invalid=int(groups.n_invalid.sum()),
        bins=binned.edges,
        closed=closed,
        confidence_level=confidence_level,
        interval=chosen,
        roles=roles.convention(),
    )


def _curve_table(table: Table, groups: Groups, bins: Bins, level: float, interval: RateInterval) -> Any:
    """Return the table of non-empty bins in the user's library."""
    filled = np.flatnonzero(groups.cells.sums["n"] > 0)
    sums = {name: values[filled] for name, values in groups.cells.sums.items()}
    index = groups.bin[filled]
    n: Ints = np.rint(sums["n"]).astype(np.int64)
    columns: dict[str, Column] = {"bin": index, "lower": bins.lower()[index], "upper": bins.upper()[index], "n": n}
    if table.weighted:
        columns["weight_sum"] = sums["w"]
    columns |= bin_columns(sums, level=level, interval=interval)
    segment = np.searchsorted(groups.cells.starts, filled, side="right") - 1
    return closed_frame(table, groups, columns, segment=segment).to_native()


def bin_columns(sums: dict[str, Floats], *, level: float, interval: RateInterval) -> dict[str, Column]:
    """Return what a curve says of each bin, from its sums.

    Parameters
    ----------
    sums : dict of str to ndarray
        Sums ``w``, ``wp``, ``wy``, ``w2``, ``variance`` and ``w2_variance`` of non-empty bins.
    level : float
        Confidence level of interval and band.
    interval : {"wilson", "clopper_pearson", "jeffreys"}
        Interval of the rate.
    """
    weight, score, rate = sums["w"], sums["wp"] / sums["w"], sums["wy"] / sums["w"]
    low, high = rate_interval(rate, weight**2 / sums["w2"], level=level, method=interval)
    band = central_part(weight, sums["wp"], sums["variance"], sums["w2_variance"], level=level)
    return {
        "mean_score": score,
        "rate": rate,
        "gap": score - rate,
        "rate_low": low,
        "rate_high": high,
        "band_low": band[0],
        "band_high": band[1],
    }
