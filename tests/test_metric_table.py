"""The table of metrics in the docstring of `metrics` says of each metric what the metric says of itself."""

import re
from collections.abc import Mapping

import pytest

import calframe
from calframe._measures import CLASS_METRICS, DEFAULT_CLASS_METRICS, DEFAULT_METRICS, METRICS
from calframe._registry import Metric
from tests.metrics_page import BETTER, FAMILIES, bound

TEXT = calframe.metrics.__doc__ or ""
WORDS = " ".join(TEXT.split())
END = r"-?[\d.]+|-?inf|ln 2"
ROW = re.compile(
    rf"^    (?P<name>[a-z_0-9]+) +(?P<low>{END}) to (?P<high>{END}) +(?P<better>lower|higher|0|1)? +\S", re.MULTILINE
)
HEAD = re.compile(r"^    \*(?P<title>[a-z ]+)\*$", re.MULTILINE)
PARTS = dict(zip(HEAD.findall(TEXT), HEAD.split(TEXT)[2::2], strict=True))
ROWS = {title: {found["name"]: found for found in ROW.finditer(part)} for title, part in PARTS.items()}
EVERY = [
    pytest.param(family.title.lower(), metric, id=f"{family.title}-{metric.name}")
    for family in FAMILIES
    for metric in family.metrics
]


def test_every_metric_has_a_line_and_no_other() -> None:
    assert {title: list(rows) for title, rows in ROWS.items()} == {
        family.title.lower(): list(family.names) for family in FAMILIES
    }


@pytest.mark.parametrize(("title", "metric"), EVERY)
def test_range_and_direction_are_those_of_the_metric(title: str, metric: Metric) -> None:
    row = ROWS[title][metric.name]
    assert (row["low"], row["high"]) == (bound(metric.low), bound(metric.high))
    assert (row["better"] or "") == BETTER[metric.direction]


@pytest.mark.parametrize(("known", "usual"), [(METRICS, DEFAULT_METRICS), (CLASS_METRICS, DEFAULT_CLASS_METRICS)])
def test_the_defaults_are_named_in_order(known: Mapping[str, Metric], usual: tuple[str, ...]) -> None:
    assert set(usual) <= set(known)
    assert f": {', '.join(usual)}." in WORDS


def test_what_is_said_of_one_column_of_vectors_is_so() -> None:
    both = [name for name in CLASS_METRICS if METRICS.get(name) is CLASS_METRICS[name]]
    assert f"Those from {both[0]} to {both[-1]} are there for one column of scores p, too" in WORDS
    listed = list(CLASS_METRICS)
    assert listed[listed.index(both[0]) : listed.index(both[-1]) + 1] == both
