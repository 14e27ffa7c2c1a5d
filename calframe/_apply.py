"""The verb `apply`: a table with the calibrated column that a map makes of its scores."""

from __future__ import annotations

from typing import Any

from calframe._errors import ArgumentError
from calframe._maps._map import CalibrationMap


def apply(data: Any, map: Any, *, name: str = "p_calibrated") -> Any:  # noqa: A002  the contract's name
    """Return a table with what a calibration map makes of its scores.

    Parameters
    ----------
    data : table
        A pandas or polars DataFrame, polars LazyFrame, pyarrow Table or DuckDB relation with the columns that the map
        was fitted on; no label is needed. For other engines the map writes the query: ``map.to_sql("spark")``.
    map : CalibrationMap
        From `calframe.fit` or `calframe.load_map`.
    name : str, default "p_calibrated"
        The column to add. A map of several classes adds ``<name>_<class>`` for each, in the order of the classes;
        Venn-Abers also adds ``<name>_low`` and ``<name>_high``.

    Returns
    -------
    table
        Of the same kind, with its rows in the same order and all its columns; a LazyFrame or relation stays lazy. Where
        the score is null or NaN the new column is null.

    Raises
    ------
    CalframeError
        If a column is missing or has the wrong type, the table has a column of that name already, or scores are no
        probabilities; of a lazy table the last of these comes when it is collected.

    Examples
    --------
    Of the scores 0.9 and 0.1 three of four were right, so the temperature is 2:

    >>> import polars as pl
    >>> import calframe
    >>> rows = pl.DataFrame({"p": [0.9] * 4 + [0.1] * 4, "y": [1, 1, 1, 0, 1, 0, 0, 0]})
    >>> found = calframe.fit(rows, label="y", score="p", method="temperature")
    >>> calframe.apply(pl.DataFrame({"id": [7, 8], "p": [0.9, None]}), found)
    shape: (2, 3)
    ┌─────┬──────┬──────────────┐
    │ id  ┆ p    ┆ p_calibrated │
    │ --- ┆ ---  ┆ ---          │
    │ i64 ┆ f64  ┆ f64          │
    ╞═════╪══════╪══════════════╡
    │ 7   ┆ 0.9  ┆ 0.75         │
    │ 8   ┆ null ┆ null         │
    └─────┴──────┴──────────────┘
    """
    if not isinstance(map, CalibrationMap):
        msg = f"map= takes a CalibrationMap, from calframe.fit or calframe.load_map; got {type(map).__name__}."
        raise ArgumentError(msg)
    return map.apply(data, name=name)
