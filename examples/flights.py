"""From a table of predictions to numbers, a curve and a report.

Which airlines get scores that say too much, is that more than chance, and since when? Writes flights.html and
flights_curve.svg into the working directory.
"""

import polars as pl

import calframe

flights = calframe.demo_table()

# One row an airline: the gap with an interval, the calibration error beside what chance alone would show.
by_carrier = flights.calib.metrics(
    label="y",
    score="p_gbm",
    by="carrier",
    metrics=["rate", "gap", "ece", "ece_expected"],
    confidence_level=0.95,
)
columns = ["carrier", "n", "rate", "gap", "gap_low", "gap_high", "ece", "ece_expected"]
print(by_carrier.filter(pl.col("n") >= 1000).sort("gap", descending=True).select(columns))

# The curve behind it: what happened among flights with about the same score.
curve = calframe.curve(flights, label="y", score="p_gbm", by="origin", bins=10)
print(curve.table.select("origin", "n", "mean_score", "rate", "band_low", "band_high").head(3))
curve.plot().save("flights_curve.svg")

# And the page: a verdict against a tolerance of 3 percentage points, what to do, and the evidence.
report = calframe.report(
    flights,
    label="y",
    score="p_gbm",
    by=["carrier", "origin"],
    time="date",
    tolerance=0.03,
    title="Late flights",
)
print(report.headline)
print(report.save("flights.html"))
