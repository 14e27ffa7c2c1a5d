"""What `.calib` offers on a polars expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import polars as pl

from calframe._binning import Bins
from calframe._errors import ArgumentError
from calframe._expr._bins import index, is_probability, own_number
from calframe._expr._rows import ColumnOrExpr, Rows
from calframe._maps._map import CalibrationMap
from calframe._measures import metric_names
from calframe._options import check_clip
from calframe._typing import Closed


class CalibExpressions:
    """Calibration measures of a score column, as polars expressions.

    Measures are aggregates: they work in ``select``, ``group_by(...).agg`` and ``.over``, eager, lazy and streaming,
    and give the numbers of `calframe.metrics`. They are made of sums that polars runs itself, and keep the name of
    the score column; several score columns give one column each.

    Notes
    -----
    A row with a null or NaN label, score or weight, or with weight 0, is used nowhere. Where no row is left the
    result is null.

    An expression cannot stop a query with an error of its own. Where `calframe.metrics` would, the whole result (of
    that group) is NaN instead, never a number that looks right: where a score lies outside [0, 1] or outside given
    bin edges, a label is none of true, false, 0, 1 and -1 or labels of 0 and -1 meet in one group, or a weight is
    negative, infinite, below 1e-100 or above 1e100. Text is refused by polars; a label of two other values becomes
    one by comparison, for example ``pl.col("outcome") == "late"``.

    Examples
    --------
    >>> import polars as pl
    >>> import calframe
    >>> flights = pl.DataFrame({"carrier": ["AA", "AA", "UA", "UA"], "late": [1, 0, 1, 0], "p": [0.8, 0.4, 0.5, 0.5]})
    >>> score = pl.col("p").calib
    >>> flights.group_by("carrier").agg(gap=score.gap("late"), brier=score.brier("late")).sort("carrier")
    shape: (2, 3)
    ┌─────────┬─────┬───────┐
    │ carrier ┆ gap ┆ brier │
    │ ---     ┆ --- ┆ ---   │
    │ str     ┆ f64 ┆ f64   │
    ╞═════════╪═════╪═══════╡
    │ AA      ┆ 0.1 ┆ 0.1   │
    │ UA      ┆ 0.0 ┆ 0.25  │
    └─────────┴─────┴───────┘
    """

    def __init__(self, expr: pl.Expr) -> None:
        self._own = own_number(expr)  # not `expr` itself: polars keeps this object on it, which would be a cycle
        self._given = expr.fill_null(pl.lit(None))  # the same values, of whatever type

    def __getattr__(self, name: str) -> NoReturn:
        """Say where the measures are that no expression has."""
        msg = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in metric_names():
            offered = ", ".join(method for method in vars(CalibExpressions) if not method.startswith("_"))
            msg = (
                f"no expression gives {name!r}: on an expression .calib has {offered}; every metric is in "
                f"calframe.metrics(data, label=, score=, metrics={name!r})."
            )
        raise AttributeError(msg)

    def brier(self, label: ColumnOrExpr, *, weight: ColumnOrExpr | None = None) -> pl.Expr:
        """Return the Brier score, the weighted mean of (score - label)^2.

        Parameters
        ----------
        label : str or polars.Expr
            Column of the outcome: bool, 0/1 or -1/+1. A name is taken as it is, never as a pattern.
        weight : str or polars.Expr, optional
            Column of row weights: 0, or between 1e-100 and 1e100. By default every row counts once.

        Returns
        -------
        polars.Expr
            Float64, 0 to 1; lower is better. Null without usable rows, NaN where a row is invalid.

        References
        ----------
        Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly Weather Review 78,
        1-3. https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2

        Examples
        --------
        >>> import polars as pl
        >>> import calframe
        >>> pl.DataFrame({"y": [True, False], "p": [0.8, 0.4]}).select(pl.col("p").calib.brier("y")).item()
        0.1
        """
        rows = Rows.from_columns(self._own, label, weight)
        return rows.mean((rows.score - rows.label) * (rows.score - rows.label))

    def log_loss(
        self, label: ColumnOrExpr, *, weight: ColumnOrExpr | None = None, clip: float | None = None
    ) -> pl.Expr:
        """Return the log loss, the weighted mean of -ln(probability of what happened), in nats.

        Parameters
        ----------
        label : str or polars.Expr
            Column of the outcome: bool, 0/1 or -1/+1. A name is taken as it is, never as a pattern.
        weight : str or polars.Expr, optional
            Column of row weights: 0, or between 1e-100 and 1e100. By default every row counts once.
        clip : float, optional
            Keep scores this far from 0 and 1. By default nothing is clipped.

        Returns
        -------
        polars.Expr
            Float64, 0 to infinity; lower is better. Infinite, without a warning, where a score of 0 or 1 is wrong.
            Null without usable rows, NaN where a row is invalid.

        Raises
        ------
        ArgumentError
            If `clip` is not a small distance.

        References
        ----------
        Good, I. J. (1952). Rational decisions. Journal of the Royal Statistical Society B 14, 107-114.
        https://doi.org/10.1111/j.2517-6161.1952.tb00104.x

        Examples
        --------
        >>> import polars as pl
        >>> import calframe
        >>> sure = pl.DataFrame({"y": [1, 0], "p": [0.5, 1.0]})
        >>> sure.select(free=pl.col("p").calib.log_loss("y"), held=pl.col("p").calib.log_loss("y", clip=0.25))
        shape: (1, 2)
        ┌──────┬──────────┐
        │ free ┆ held     │
        │ ---  ┆ ---      │
        │ f64  ┆ f64      │
        ╞══════╪══════════╡
        │ inf  ┆ 1.039721 │
        └──────┴──────────┘
        """
        check_clip(clip)
        rows = Rows.from_columns(self._own, label, weight)
        score = rows.score if clip is None else rows.score.clip(clip, 1.0 - clip)
        chance = pl.when(rows.label == 1.0).then(score).otherwise(1.0 - score)
        return rows.mean(chance.log() * -1.0)

    def gap(self, label: ColumnOrExpr, *, weight: ColumnOrExpr | None = None) -> pl.Expr:
        """Return the gap, mean score minus observed rate.

        Parameters
        ----------
        label : str or polars.Expr
            Column of the outcome: bool, 0/1 or -1/+1. A name is taken as it is, never as a pattern.
        weight : str or polars.Expr, optional
            Column of row weights: 0, or between 1e-100 and 1e100. By default every row counts once.

        Returns
        -------
        polars.Expr
            Float64, -1 to 1; 0 is perfect, above 0 the scores say too much. Null without usable rows, NaN where a
            row is invalid.

        Examples
        --------
        >>> import polars as pl
        >>> import calframe
        >>> flights = pl.DataFrame({"carrier": ["AA", "AA", "UA"], "late": [1, 0, 0], "p": [0.75, 0.5, 0.25]})
        >>> flights.with_columns(gap=pl.col("p").calib.gap("late").over("carrier"))["gap"].to_list()
        [0.125, 0.125, 0.25]
        """
        rows = Rows.from_columns(self._own, label, weight)
        return rows.mean(rows.gap())

    def ece(
        self,
        label: ColumnOrExpr,
        *,
        bins: int | Sequence[float] = 15,
        closed: Closed = "left",
        weight: ColumnOrExpr | None = None,
    ) -> pl.Expr:
        """Return the expected calibration error, the mean absolute gap over the bins, by weight.

        Each bin is a sum of its own, so the time grows with their number: for hundreds `calframe.metrics` is faster.
        Right scores do not have an ece of 0; what they show by chance is ``ece_expected`` of `calframe.metrics`.

        Parameters
        ----------
        label : str or polars.Expr
            Column of the outcome: bool, 0/1 or -1/+1. A name is taken as it is, never as a pattern.
        bins : int or list of float, default 15
            Number of bins of equal width on [0, 1], or their edges.
        closed : {"left", "right"}, default "left"
            The side of a bin that belongs to it; the outermost bin is closed on both sides. Edges are k / M exactly;
            for a Float32 column they are first rounded to Float32.
        weight : str or polars.Expr, optional
            Column of row weights: 0, or between 1e-100 and 1e100. By default every row counts once.

        Returns
        -------
        polars.Expr
            Float64, 0 to 1; lower is better. Null without usable rows, NaN where a row is invalid.

        Raises
        ------
        ArgumentError
            If `bins` or `closed` is not one of those allowed.

        References
        ----------
        Naeini, M. P., Cooper, G. F. and Hauskrecht, M. (2015). Obtaining well calibrated probabilities using Bayesian
        binning. AAAI 29, 2901-2907. https://doi.org/10.1609/aaai.v29i1.9602

        Examples
        --------
        >>> import polars as pl
        >>> import calframe
        >>> scores = pl.DataFrame({"y": [1, 0, 1, 1], "p": [0.25, 0.25, 0.75, 0.75]})
        >>> scores.select(pl.col("p").calib.ece("y", bins=2)).item()
        0.25
        """
        binned = _bins(bins, closed)
        rows = Rows.from_columns(self._own, label, weight, bins=binned)
        return rows.mean_gap(binned)

    def mce(
        self,
        label: ColumnOrExpr,
        *,
        bins: int | Sequence[float] = 15,
        closed: Closed = "left",
        weight: ColumnOrExpr | None = None,
    ) -> pl.Expr:
        """Return the maximum calibration error, the largest absolute gap of a bin.

        Parameters
        ----------
        label : str or polars.Expr
            Column of the outcome: bool, 0/1 or -1/+1. A name is taken as it is, never as a pattern.
        bins : int or list of float, default 15
            Number of bins of equal width on [0, 1], or their edges.
        closed : {"left", "right"}, default "left"
            The side of a bin that belongs to it; the outermost bin is closed on both sides. Edges are k / M exactly;
            for a Float32 column they are first rounded to Float32.
        weight : str or polars.Expr, optional
            Column of row weights: 0, or between 1e-100 and 1e100. By default every row counts once.

        Returns
        -------
        polars.Expr
            Float64, 0 to 1; lower is better. Null without usable rows, NaN where a row is invalid.

        Raises
        ------
        ArgumentError
            If `bins` or `closed` is not one of those allowed.

        References
        ----------
        Naeini, M. P., Cooper, G. F. and Hauskrecht, M. (2015). Obtaining well calibrated probabilities using Bayesian
        binning. AAAI 29, 2901-2907. https://doi.org/10.1609/aaai.v29i1.9602

        Examples
        --------
        >>> import polars as pl
        >>> import calframe
        >>> scores = pl.DataFrame({"y": [1, 0, 1, 0], "p": [0.25, 0.25, 0.75, 0.5]})
        >>> scores.select(pl.col("p").calib.mce("y", bins=2)).item()
        0.25
        """
        binned = _bins(bins, closed)
        rows = Rows.from_columns(self._own, label, weight, bins=binned)
        return rows.largest_gap(binned)

    def bin(self, bins: int | Sequence[float] = 15, *, closed: Closed = "left") -> pl.Expr:
        """Return the bin of each score, the one that `calframe.metrics` and `calframe.curve` put it in.

        Parameters
        ----------
        bins : int or list of float, default 15
            Number of bins of equal width on [0, 1], or their edges.
        closed : {"left", "right"}, default "left"
            The side of a bin that belongs to it; the outermost bin is closed on both sides. Edges are k / M exactly;
            for a Float32 column they are first rounded to Float32.

        Returns
        -------
        polars.Expr
            Int32, 0 to M - 1; null where the score is null, NaN, outside [0, 1] or outside the edges.

        Raises
        ------
        ArgumentError
            If `bins` or `closed` is not one of those allowed.

        Examples
        --------
        >>> import polars as pl
        >>> import calframe
        >>> pl.DataFrame({"p": [0.0, 0.3, 1.0, None]}).select(pl.col("p").calib.bin(10)).to_series().to_list()
        [0, 3, 9, None]
        """
        binned = _bins(bins, closed)
        return index(pl.when(is_probability(self._own, binned)).then(self._own), binned)

    def apply(self, map: Any) -> pl.Expr:  # noqa: A002  the name that calframe.apply has
        """Return what a calibration map makes of each score; the map's own segment columns tell the segment.

        Parameters
        ----------
        map : CalibrationMap
            From `calframe.fit` or `calframe.load_map`, with one score a row.

        Returns
        -------
        polars.Expr
            Float64 under the name of the score column; null where it is null or NaN.

        Raises
        ------
        CalframeError
            If the map is one of several classes; when the query runs, if a score is no number, or no probability.

        Examples
        --------
        >>> import polars as pl
        >>> import calframe
        >>> rows = pl.DataFrame({"p": [0.9] * 4 + [0.1] * 4, "y": [1, 1, 1, 0, 1, 0, 0, 0]})
        >>> found = calframe.fit(rows, label="y", score="p", method="temperature")
        >>> new = pl.DataFrame({"q": [0.5, 0.9]})
        >>> new.select(pl.col("q").calib.apply(found)).to_series().round(12).to_list()
        [0.5, 0.75]
        """
        if not isinstance(map, CalibrationMap):
            msg = f"map= takes a CalibrationMap, from calframe.fit or calframe.load_map; got {type(map).__name__}."
            raise ArgumentError(msg)
        return map.to_expr(score=self._given)

    def logit(self) -> pl.Expr:
        """Return the log odds of each probability, ln(p / (1 - p)).

        Returns
        -------
        polars.Expr
            Float64; -inf at 0, inf at 1. Null stays null; NaN outside [0, 1], as of any logarithm.

        Examples
        --------
        >>> import polars as pl
        >>> import calframe
        >>> pl.DataFrame({"p": [0.0, 0.5, 1.0]}).select(pl.col("p").calib.logit()).to_series().to_list()
        [-inf, 0.0, inf]
        """
        score = self._own.cast(pl.Float64)
        return (score / (1.0 - score)).log()

    def expit(self) -> pl.Expr:
        """Return the probability of each log odds, 1 / (1 + exp(-x)), without overflow; undoes `logit`.

        Returns
        -------
        polars.Expr
            Float64, 0 to 1. Null stays null and NaN stays NaN.

        Examples
        --------
        >>> import polars as pl
        >>> import calframe
        >>> pl.DataFrame({"x": [-1000.0, 0.0, 1000.0]}).select(pl.col("x").calib.expit()).to_series().to_list()
        [0.0, 0.5, 1.0]
        """
        logit = self._own.cast(pl.Float64)
        tail = (logit.abs() * -1.0).exp()  # never overflows
        return pl.when(logit < 0.0).then(tail).otherwise(1.0) / (tail + 1.0)


def _bins(bins: Any, closed: Closed) -> Bins:
    """Read ``bins=``; bins that follow from the scores need them all before the first sum."""
    if isinstance(bins, str) and bins == "auto":
        msg = "bins='auto' is not for expressions, whose edges are known beforehand; calframe.metrics takes it."
        raise ArgumentError(msg)
    return Bins.from_argument(bins, closed=closed)
