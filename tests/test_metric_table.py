"""The table of metrics in the docstring of `metrics` says of each metric what the metric says of itself."""

import math
import re

import pytest

import calframe
from calframe._metrics_builtin import DEFAULT_METRICS, METRICS

BETTER = {"lower": "lower", "higher": "higher", "zero": "0", "one": "1", "none": ""}
ROW = re.compile(
    r"^    (?P<name>[a-z_]+) +(?P<low>-?[\d.inf]+) to (?P<high>[\d.inf]+) +(?P<better>lower|higher|0|1)? +\S",
    re.MULTILINE,
)
ROWS = {found["name"]: found for found in ROW.finditer(calframe.metrics.__doc__ or "")}


def text(value: float) -> str:
    return ("-inf" if value < 0 else "inf") if math.isinf(value) else f"{value:g}"


def test_every_metric_has_a_line_and_no_other() -> None:
    assert list(ROWS) == list(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_range_and_direction_are_those_of_the_metric(name: str) -> None:
    metric, row = METRICS[name], ROWS[name]
    assert (row["low"], row["high"]) == (text(metric.low), text(metric.high))
    assert (row["better"] or "") == BETTER[metric.direction]


def test_the_default_is_named_in_order() -> None:
    assert f"Default: {', '.join(DEFAULT_METRICS)}." in " ".join((calframe.metrics.__doc__ or "").split())
