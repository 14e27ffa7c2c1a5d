"""What maps are fitted on: numbers of every type are read as the nearest floats, or refused by name."""

from __future__ import annotations

import decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calframe
from calframe._errors import ColumnNotFoundError, LabelError
from tests._tables import Maker


def test_numbers_that_floats_do_not_tell_apart_are_no_classes(make: Maker) -> None:
    long = [2**53 + 1, 2**53 + 3, 2**60 + 1]
    data = make({"y": long, "a": [0.2] * 3, "b": [0.3] * 3, "c": [0.5] * 3})
    with pytest.raises(
        LabelError, match=r"the classes .* hold numbers too long to be compared as such; cast the label"
    ):
        calframe.fit(data, label="y", score=dict(zip(long, "abc", strict=True)), method="temperature")
    with pytest.raises(LabelError, match="label column 'y' has 3 values"):
        calframe.fit(data, label="y", score="a", method="temperature")


def test_decimals_are_read_as_the_nearest_floats() -> None:
    # Python's float(Decimal) is the nearest float; pyarrow's own cast is another one in a quarter of these
    texts = [f"{value:.25f}" for value in np.random.default_rng(0).uniform(size=60)] + ["0." + "9" * 25]
    scores, y = [decimal.Decimal(text) for text in texts], [0, 1] * 30 + [1]
    arrow = pa.table({"p": pa.array(scores, type=pa.decimal128(38, 25)), "y": y})
    want = calframe.fit(
        pl.DataFrame({"p": [float(p) for p in scores], "y": y}), label="y", score="p", method="isotonic"
    )
    for table in (arrow, pl.DataFrame(arrow), pd.DataFrame({"p": scores, "y": y}), duckdb.connect().from_arrow(arrow)):
        assert calframe.fit(table, label="y", score="p", method="isotonic").mark == want.mark


def test_names_that_are_no_text_are_told_from_those_that_are() -> None:
    said = r"no column '1' for label=: the table has 1, a name of type int, not text\. Rename its columns, for example"
    with pytest.raises(ColumnNotFoundError, match=said):
        calframe.fit(pd.DataFrame({0: [0.25, 0.5], 1: [0, 1]}), label="1", score="0")


def test_labels_of_other_values_are_an_error_also_where_invalid_rows_are_dropped() -> None:
    table = pl.DataFrame({"y": [0, 1, 7], "p": [0.2, 0.4, 0.6]})
    with pytest.raises(LabelError, match="label column 'y' has 3 values"):
        calframe.fit(table, label="y", score="p", invalid="drop")
