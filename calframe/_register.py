"""The verb `register_metric`: a metric of the user's own beside the shipped ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import narwhals
import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from calframe._errors import ArgumentError
from calframe._measures import CLASS_METRICS, METRICS, metric_names, reserved_names
from calframe._measures._own import add_metric, mean_metric, sums_metric
from calframe._options import is_real
from calframe._registry import Row, Term
from calframe._typing import Direction, Floats

_OFFERED = "row.score, row.label and row.chance"
_EXPRESSIONS = "which are expressions: methods work on them, such as .abs(), and narwhals.when(...), not abs(...) or if"
_ARRAYS = "which are arrays of one number a segment, by name, as in sums['weight']"
_TRIED = {"used": [1.0] * 4, "score": [0.25, 0.75, 0.5, 0.875], "label": [0.0, 1.0, 1.0, 0.0]}  # of a small table


def register_metric(
    name: str,
    row: Term | None = None,
    *,
    terms: Mapping[str, Term] | None = None,
    value: Callable[[Mapping[str, Floats]], Floats] | None = None,
    summary: str,
    low: float = -math.inf,
    high: float = math.inf,
    direction: Direction = "none",
    formula: str = "",
    source: str = "",
    undefined: str = "",
    replace: bool = False,
) -> None:
    """Add a metric of your own: the mean of something over the rows, or a function of such sums.

    From then on `metrics` and `report` know it by its name, on every kind of table, with segments, weights, several
    models, the classes of ``notion=`` and intervals. It lasts as long as the Python process.

    Parameters
    ----------
    name : str
        Its name, which is that of its column: letters, digits and underscores, as of a variable, and no column of
        results or metric by another case, such as ``"N"`` or ``"Rate"``.
    row : callable, optional
        For a weighted mean: a function of a row to a number or truth value, as a narwhals expression. It is given the
        row's ``score`` (a probability) and ``label`` (0.0 or 1.0) as attributes, and ``chance``, the probability given
        to what happened.
    terms : mapping of str to callable, optional
        For anything else: several such functions by name. Each is multiplied by the row weight and summed up.
    value : callable, optional
        With `terms`: from the sums by name, ``"weight"`` among them, arrays of one value a segment, to the metric, an
        array as long. Doubling all of them must not change it, as doubling all weights must not.
    summary : str
        What it measures, in one line.
    low, high : float
        The range of its values, to which intervals are cut.
    direction : {"lower", "higher", "zero", "one", "none"}, default "none"
        Which values are better.
    formula, source, undefined : str
        Its definition, where it comes from, and why it can be undefined where there are rows.
    replace : bool, default False
        Put it in the place of one that was registered under this name before.

    Raises
    ------
    ArgumentError
        If the name is taken or no name, or the functions do not do what they must.

    Notes
    -----
    Both kinds of function are tried on a small table first. Those of a row must say of each row what they say of it
    alone; where one has no value on a row (null or NaN), the metric of its segment is null.

    Intervals are normal, with the variance by the delta method: ``n / (n - 1) sum_i (g . x_i)^2``, where ``x_i`` is
    what row i adds to the sums (weight included), g the gradient of `value`, and n the (effective) number of rows. They
    are good for many rows, and poor near the ends of the range.

    Examples
    --------
    >>> import polars as pl
    >>> import calframe
    >>> calframe.register_metric(
    ...     "absolute_error",
    ...     lambda row: (row.score - row.label).abs(),
    ...     summary="mean absolute distance of score and label",
    ...     low=0,
    ...     high=1,
    ...     direction="lower",
    ...     replace=True,
    ... )
    >>> rain = pl.DataFrame({"rain": [1, 0, 0, 1], "p": [0.8, 0.4, 0.1, 0.9]})
    >>> calframe.metrics(rain, label="rain", score="p", metrics=["absolute_error"]).select("n", "absolute_error")
    shape: (1, 2)
    ┌─────┬────────────────┐
    │ n   ┆ absolute_error │
    │ --- ┆ ---            │
    │ i64 ┆ f64            │
    ╞═════╪════════════════╡
    │ 4   ┆ 0.2            │
    └─────┴────────────────┘
    """
    _check_range(low, high)
    about: dict[str, Any] = {
        "summary": summary,
        "low": float(low),
        "high": float(high),
        "direction": direction,
        "formula": formula,
        "source": source,
        "undefined": undefined,
    }
    _check_free(name)
    if row is not None and terms is None and value is None:
        _sums_tried({"row": row})
        metric = mean_metric(name, row, **about)
    elif row is None and terms and value is not None:
        _check_kinds(terms, value)
        _check_value(value, _sums_tried(terms))
        metric = sums_metric(name, dict(terms), value, **about)
    else:
        msg = "give either row, a function of a row whose mean is the metric, or terms and value together."
        raise ArgumentError(msg)
    add_metric(metric, taken={**METRICS, **CLASS_METRICS}, replace=replace)


def _check_free(name: Any) -> None:
    """Raise if results have a column of that name which is no metric, such as ``n``, ``gap_low`` or, by case, ``N``."""
    if not isinstance(name, str):
        return
    names = [name, f"{name}_low", f"{name}_high"]
    if name == "all" or (name not in metric_names() and not reserved_names().isdisjoint(names)):
        msg = f"{name!r} has a meaning of its own in results and arguments; choose another name."
        raise ArgumentError(msg)
    folded = {taken.casefold(): taken for taken in ("all", *reserved_names())}
    for made in names:
        taken = folded.get(made.casefold(), made)
        if taken != made:
            msg = (
                f"{name!r} would make a name that differs from {taken!r} only by case, and some engines do not tell "
                "such names apart; choose another name."
            )
            raise ArgumentError(msg)


def _check_kinds(terms: Any, value: Any) -> None:
    if not isinstance(terms, Mapping) or not callable(value):
        msg = f"terms must be a dict of functions by name, and value a function; got {terms!r} and {value!r}."
        raise ArgumentError(msg)


def _sums_tried(terms: Mapping[str, Term]) -> dict[str, Floats]:
    """Return the sums over a small table, one a row and one over all, or raise if a function cannot be used."""
    table = nw.from_native(pl.DataFrame(_TRIED))
    chance = nw.when(nw.col("label") == 1.0).then(nw.col("score")).otherwise(1.0 - nw.col("score"))
    score, label = nw.col("score"), nw.col("label")
    row = Row(
        used=nw.col("used"),
        score=score,
        label=label,
        chance=chance,
        possible=chance > 0.0,
        surprise=chance.log() * -1.0,
        weight=None,
        frequency=False,
    )
    sums = {"weight": np.append(np.ones(len(table)), len(table))}
    given: Mapping[str, Any] = terms  # users pass other things than annotations say
    for name, term in given.items():
        _check_term(name, term)
        with _explained(name, _OFFERED, _EXPRESSIONS):
            found = term(row)
        if not isinstance(found, narwhals.Expr):
            msg = f"{name!r} must give an expression made of {_OFFERED}; got {type(found).__name__}."
            raise ArgumentError(msg)
        values = _tried(name, found, table)
        sums[name] = np.append(values, values.sum())
    return sums


def _tried(name: str, term: Any, table: nw.DataFrame[Any]) -> Floats:
    """Return the values of a term on each row, the same as on that row alone."""
    with _explained(name, _OFFERED, _EXPRESSIONS):
        together = _evaluated(name, table, term)
        alone = [_evaluated(name, table[i : i + 1], term)[0] for i in range(len(table))]
    if not np.array_equal(together, alone, equal_nan=True):
        msg = (
            f"{name!r} must say of each row what it says of that row alone; here other rows matter, as in mean, rank "
            "or shift."
        )
        raise ArgumentError(msg)
    return together


@contextmanager
def _explained(name: str, offered: str, how: str) -> Iterator[None]:
    """Turn whatever stops a function of the user into one error that says what the function is given, and how it is."""
    try:
        yield
    except ArgumentError:
        raise
    except Exception as error:
        cause = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        msg = f"{name!r} cannot be computed ({cause}); it is given {offered}, {how}."
        raise ArgumentError(msg) from error


def _evaluated(name: str, table: nw.DataFrame[Any], term: Any) -> Floats:
    column = table.with_columns(_cf_tried=term).get_column("_cf_tried")
    if not column.dtype.is_numeric() and column.dtype != nw.Boolean:
        msg = f"{name!r} must give a number or a truth value for each row; it gives values of type {column.dtype}."
        raise ArgumentError(msg)
    return np.asarray(column.cast(nw.Float64).fill_null(math.nan).to_numpy(), dtype=np.float64)


def _check_term(name: Any, term: Any) -> None:
    if not callable(term):
        msg = f"{name!r} must be a function of a row, such as lambda row: row.score - row.label; got {term!r}."
        raise ArgumentError(msg)
    if name == "weight":
        msg = "a term cannot be called 'weight': that is the sum of the row weights, which value is always given."
        raise ArgumentError(msg)


def _check_value(value: Callable[[Mapping[str, Floats]], Any], sums: Mapping[str, Floats]) -> None:
    """Raise unless a function of sums gives a number a segment, whatever the unit of the weights."""
    with np.errstate(all="ignore"), _explained("value", f"the sums {', '.join(map(repr, sums))}", _ARRAYS):
        once, twice = (np.asarray(value({name: unit * of for name, of in sums.items()})) for unit in (1.0, 2.0))
    if once.dtype.kind not in "biuf" or once.shape != sums["weight"].shape:
        made = once if once.shape else once.item()
        msg = f"value must give an array of one number a segment; of {len(sums['weight'])} segments it made {made!r}."
        raise ArgumentError(msg)
    if not np.allclose(once, twice, rtol=1e-6, atol=1e-12, equal_nan=True):
        msg = (
            "value must not change when all weights are doubled, and all sums with them; divide by the sum 'weight', "
            "or take other ratios of sums."
        )
        raise ArgumentError(msg)


def _check_range(low: Any, high: Any) -> None:
    if not (is_real(low) and is_real(high) and low < high):
        msg = f"low and high must be numbers, low below high; got {low!r} and {high!r}."
        raise ArgumentError(msg)
