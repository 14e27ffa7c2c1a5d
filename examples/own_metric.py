"""A metric of your own: what wrong decisions cost, per segment, with weights and intervals like any other."""

import narwhals as nw

import calframe

COST_OF_A_MISS, COST_OF_AN_ALARM = 5.0, 1.0
THRESHOLD = COST_OF_AN_ALARM / (COST_OF_AN_ALARM + COST_OF_A_MISS)  # alarm where the expected cost of a miss is larger

calframe.register_metric(
    "cost",
    lambda row: (
        nw.when(row.score >= THRESHOLD).then((1.0 - row.label) * COST_OF_AN_ALARM).otherwise(row.label * COST_OF_A_MISS)
    ),
    summary="mean cost of a decision at the threshold that the costs imply",
    low=0,
    high=COST_OF_A_MISS,
    direction="lower",
)

flights = calframe.demo_table()
found = calframe.metrics(flights, label="y", score="p_gbm", by="origin", metrics=["gap", "cost"], confidence_level=0.95)
print(found.select("origin", "n", "gap", "cost", "cost_low", "cost_high"))
