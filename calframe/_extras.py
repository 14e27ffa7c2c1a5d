"""Further metrics of the segments of a report, beside the numbers that its verdicts are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from calframe._binning import BinChoice, Bins
from calframe._closing import keys_as_text, unique_names
from calframe._errors import ArgumentError
from calframe._measures._own import own_metrics
from calframe._measuring import Request, cells_of, measured_cells, measured_rows
from calframe._reading import read_rows
from calframe._registry import Metric, Options
from calframe._roles import Roles
from calframe._segments import ECE_BINS
from calframe._table import open_table
from calframe._verdicts import SHOWN_ROWS


def check_extras(asked: Sequence[Metric], taken: Sequence[str]) -> None:
    """Raise if a metric of the user's own has the name of a column that reports have for something else."""
    for metric in asked:
        if metric.name in taken and metric.name in own_metrics():
            msg = (
                f"metric {metric.name!r} has the name of a column that every report has; register it under another "
                "name to see it there."
            )
            raise ArgumentError(msg)


def extra_metrics(data: Any, roles: Roles, asked: Sequence[Metric], *, level: float, engine: Any) -> pl.DataFrame:
    """Return one row a segment: its name under ``segment``, then each metric with the ends of its interval.

    Segments of fewer than 5 rows are named, but their numbers are not told.
    """
    bins = Bins.of_count(ECE_BINS, closed="left")
    table, choice = open_table(data, roles), BinChoice(fixed=bins)
    clustered = table.cluster is not None
    request = Request(asked=tuple(asked), level=level, clustered=clustered, options=Options(), choice=choice)
    if request.needs_rows:
        groups, found = measured_rows(table, read_rows(table, engine=engine), request)
    else:
        groups, found = measured_cells(table, table.collect(cells_of(table, request), engine=engine), request)
    names = unique_names(list(keys_as_text(table, groups, table.keys[0]))) if table.keys else ("All rows",)
    told = (groups.n >= SHOWN_ROWS) if table.keys else np.ones(len(groups), dtype=np.bool_)
    values = {name: np.where(told, found.values[name], np.nan) for name in request.columns()}
    return pl.DataFrame({"segment": names, **values}).with_columns(pl.col(pl.Float64).fill_nan(None))
