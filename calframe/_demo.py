"""The table that ships with the package: real flights, real scores, small enough to carry along."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import polars as pl

_COLUMNS = ("carrier", "origin", "date", "y", "p_gbm")
_ORDER = ("date", "origin", "carrier")
_ZSTD_LEVEL = 22  # written once, read often


def demo_table() -> pl.DataFrame:
    """Read the table of New York flights that ships with the package.

    60,000 flights of July to December 2013 with the probability of arriving over 15 minutes late, as a model trained
    on January to June saw it: enough rows for a verdict on most carriers, too few on some.

    Returns
    -------
    polars.DataFrame
        `carrier` and `origin` (text), `date` (date), `y` (Int8: 1 is late, 0 is not) and `p_gbm` (Float64 in [0, 1]),
        in order of date, origin and carrier.

    Examples
    --------
    >>> demo_table().columns
    ['carrier', 'origin', 'date', 'y', 'p_gbm']
    """
    shipped = files("calframe") / "_data" / "flights.parquet"
    return pl.read_parquet(shipped.read_bytes())


def write_demo_table(flights: pl.DataFrame, *, path: Path) -> None:
    """Make the shipped file from a table of flights with scores.

    Keeps every row, five of the columns and the scores as they are, and sorts by day and place, which is easier to
    read and packs better.

    Parameters
    ----------
    flights
        One row per flight with at least `carrier`, `origin`, `date`, `y` and `p_gbm`.
    path
        The Parquet file to write.
    """
    table = flights.select(pl.col("date").cast(pl.Date), pl.exclude("date")).select(_COLUMNS)
    ordered = table.sort(*_ORDER, maintain_order=True)
    ordered.write_parquet(path, compression="zstd", compression_level=_ZSTD_LEVEL, statistics=False)
