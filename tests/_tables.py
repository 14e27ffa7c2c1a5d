"""The same rows in every library, and results as plain lists."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calframe

LIBRARIES = ("pandas", "pandas[nullable]", "pandas[pyarrow]", "polars", "polars[lazy]", "pyarrow", "duckdb")

_RESULTS = {"polars[lazy]": pl.LazyFrame, "pyarrow": pa.Table, "polars": pl.DataFrame, "duckdb": pl.DataFrame}


@dataclass(frozen=True)
class Maker:
    """Makes tables of one library from columns: lists (None is null), or NumPy arrays where the type matters."""

    library: str

    def __call__(self, columns: Mapping[str, Any]) -> Any:
        return getattr(self, f"_{self.library.translate(str.maketrans('[', '_', ']'))}")(dict(columns))

    @property
    def lazy(self) -> bool:
        """Whether nothing may be read before the user collects."""
        return self.library == "polars[lazy]"

    @property
    def result(self) -> type:
        """What a verb returns for such a table."""
        return _RESULTS.get(self.library, pd.DataFrame)

    @staticmethod
    def _pandas(columns: dict[str, Any]) -> pd.DataFrame:
        return pd.DataFrame(columns)

    @staticmethod
    def _pandas_nullable(columns: dict[str, Any]) -> pd.DataFrame:
        # pd.array first: a list of integers with a None would become floats on the way
        return pd.DataFrame({name: pd.array(values) for name, values in columns.items()}).convert_dtypes()

    @staticmethod
    def _pandas_pyarrow(columns: dict[str, Any]) -> pd.DataFrame:
        return pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype)

    @staticmethod
    def _polars(columns: dict[str, Any]) -> pl.DataFrame:
        return pl.DataFrame(columns, strict=False)

    @staticmethod
    def _polars_lazy(columns: dict[str, Any]) -> pl.LazyFrame:
        return pl.LazyFrame(columns, strict=False)

    @staticmethod
    def _pyarrow(columns: dict[str, Any]) -> pa.Table:
        return pa.table(columns)

    @staticmethod
    def _duckdb(columns: dict[str, Any]) -> duckdb.DuckDBPyRelation:
        return duckdb.connect().from_arrow(pa.table(columns))


def rows(frame: Any) -> dict[str, list[Any]]:
    """Return a result as lists: null, NaN, NA and NaT are None, infinities stay."""
    eager = _eager(frame)
    if isinstance(eager, pa.Table):
        columns = eager.to_pydict()
    elif isinstance(eager, pl.DataFrame):
        columns = eager.to_dict(as_series=False)
    else:
        columns = {name: eager[name].tolist() for name in eager.columns}
    return {name: [_plain(value) for value in values] for name, values in columns.items()}


def types(frame: Any) -> dict[str, Any]:
    """Return the column types of a result, in the words that all libraries share."""
    return dict(nw.from_native(_eager(frame)).collect_schema())


def column(frame: Any, name: str) -> list[Any]:
    """Return one column of a result."""
    return rows(frame)[name]


def value(make: Maker, columns: Mapping[str, Any], metric: str, **arguments: Any) -> Any:
    """Return one metric of a whole table."""
    (found,) = column(measure(make, columns, metrics=metric, **arguments), metric)
    return found


def measure(make: Maker, columns: Mapping[str, Any], **arguments: Any) -> Any:
    """Call ``metrics`` with label y and score p, collected if lazy."""
    return _eager(calframe.metrics(make(columns), **{"label": "y", "score": "p", **arguments}))


def refuses(make: Maker, columns: Any, error: type[Exception], match: str, *, reads: bool, **arguments: Any) -> None:
    """Assert that ``metrics`` raises: at the call, or at ``collect()`` where it must read values of a lazy table."""
    data = make(columns) if isinstance(columns, Mapping) else columns
    arguments = {"label": "y", "score": "p", **arguments}
    if make.lazy and reads:
        plan = calframe.metrics(data, **arguments)
        with pytest.raises(error, match=match):
            plan.collect()
    else:
        with pytest.raises(error, match=match):
            calframe.metrics(data, **arguments)


def arrow(values: list[Any], kind: pa.DataType) -> Any:
    """Return a pandas array that Arrow holds."""
    return pd.array(values, dtype=pd.ArrowDtype(kind))


def objects(*values: Any) -> np.ndarray:
    """Return Python objects as pandas holds them, none of them converted."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def approx(values: Any, *, rel: float = 1e-12) -> Any:
    """Compare at the accuracy that sums in another order leave."""
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [approx(each, rel=rel) for each in values]
    return pytest.approx(values, rel=rel, abs=rel) if isinstance(values, float | int) else values


def _eager(frame: Any) -> Any:
    return frame.collect() if isinstance(frame, pl.LazyFrame) else frame


def _plain(value: Any) -> Any:
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    return value.to_pydatetime() if isinstance(value, pd.Timestamp) else value
