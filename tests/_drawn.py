"""Property tests of every metric: how many examples, and what some metrics are like."""

from __future__ import annotations

from hypothesis import Phase, settings

from calframe._measures import METRICS

# Without the phase that explains a failure, which runs it hundreds of times.
some_tables = settings(
    max_examples=16, derandomize=True, deadline=None, phases=(Phase.explicit, Phase.generate, Phase.shrink)
)
few_tables = settings(some_tables, max_examples=6)  # where every metric has its interval, too

# What is about rows that are drawn, as intervals are: importance weights are worth fewer of them.
DRAWN = {"ece_expected", "slope_se", "intercept_se", "citl_se"}
# What counts rows (n - 1 in a variance, the nearest so many, pairs of rows): a unit of weight is a row there.
COUNTING = {"ece_debiased", "ici", "e50", "e90", "emax", "aurc", "eaurc", "skce"} | {
    name for name in METRICS if name.endswith("_corrected")
}
# Fits are iterated until the gain is below rounding, which is soon where it is flat; the spread of equal gains is the
# root of what rounding leaves of 0.
ROUGH = ("slope", "intercept", "citl", "epistemic_loss")
