"""The same on a DuckDB table: the sums are made there, and only segments x bins rows come back.

Needs `pip install 'calframe[duckdb]'`.
"""

import duckdb

import calframe

connection = duckdb.connect()
connection.register("flights", calframe.demo_table().to_arrow())
late = connection.sql("SELECT carrier, y, p_gbm FROM flights WHERE origin = 'JFK'")

found = calframe.metrics(late, label="y", score="p_gbm", by="carrier", metrics=["rate", "gap", "brier"])
print(found)  # a small polars frame
