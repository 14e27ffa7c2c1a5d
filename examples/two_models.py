"""Two models side by side, weighted rows, and what missing values do: they are counted, never guessed."""

import pandas as pd

import calframe

table = pd.DataFrame(
    {
        "paid": ["yes", "no", "yes", "no", "yes", None],
        "old": [0.7, 0.4, 0.8, 0.2, None, 0.5],
        "new": [0.9, 0.1, 0.7, 0.3, 0.6, 0.5],
        "branch": ["north", "north", "north", "south", "south", "south"],
        "clients": [120, 80, 60, 90, 30, 10],
    }
)

found = calframe.metrics(
    table,
    label="paid",
    positive="yes",
    score=["old", "new"],
    by="branch",
    weight="clients",
    metrics=["rate", "mean_score", "gap", "brier"],
)
print(found.round(3).to_string(index=False))
