"""The `.calib` namespace: the functions under another name, with no state, and no hold on the frame."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import re
import weakref
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pytest

import calframe
from calframe import ColumnNotFoundError, ScoreError
from calframe._namespaces import register
from tests._tables import Maker, approx, rows

KINDS = ["pandas", "pandas[nullable]", "pandas[pyarrow]", "polars", "polars[lazy]"]
CLASSES = [pd.DataFrame, pl.DataFrame, pl.LazyFrame]
LABELLED = ["metrics", "curve", "report", "fit", "cross_fit", "validate", "test", "drift", "selective", "decide"]
LABELLED += ["audit", "compare", "diagnose"]
VERBS = [*LABELLED, "shift_prior", "apply", "answer_confidence", "parse_confidence"]
ROWS = {"y": [1, 0, 1, 0] * 50, "p": [0.8, 0.3, 0.6, 0.4] * 50, "g": ["a", "a", "b", "b"] * 50}


@pytest.fixture(params=KINDS)
def frame(request: pytest.FixtureRequest) -> Any:
    return Maker(request.param)(ROWS)


# The functions under another name


@pytest.mark.parametrize(
    ("verb", "arguments", "table_of"),
    [
        ("metrics", {"by": "g", "metrics": "all", "bins": 10, "confidence_level": 0.9}, lambda found: found),
        ("curve", {"by": "g", "bins": 4, "closed": "right"}, lambda found: found.table),
        ("report", {"by": ["g"], "tolerance": 0.05}, lambda found: found.table),
    ],
)
def test_a_method_is_the_function(
    frame: Any, verb: str, arguments: dict[str, Any], table_of: Callable[[Any], Any]
) -> None:
    method = getattr(frame.calib, verb)(label="y", score="p", **arguments)
    function = getattr(calframe, verb)(frame, label="y", score="p", **arguments)
    assert type(method) is type(function)
    assert type(table_of(method)) is type(table_of(function))
    searched = {
        "_low": 1e-6,
        "high": 1e-6,
    }  # ends that a search finds; sums differ in their last digits from run to run
    expected = {
        name: approx(values, rel=searched.get(name[-4:], 1e-12)) for name, values in rows(table_of(function)).items()
    }
    assert rows(table_of(method)) == expected


def test_a_lazy_frame_stays_lazy() -> None:
    assert isinstance(pl.LazyFrame(ROWS).calib.metrics(label="y", score="p"), pl.LazyFrame)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_method_shows_the_signature_and_the_help_of_its_function(kind: Any, verb: str) -> None:
    method, function = getattr(kind(ROWS).calib, verb), getattr(calframe, verb)
    mine, theirs = inspect.signature(method), inspect.signature(function)
    assert list(mine.parameters.values()) == list(theirs.parameters.values())[1:]
    assert mine.return_annotation == theirs.return_annotation
    mine_said, theirs_said = (inspect.getdoc(part) or "" for part in (method, function))
    table_said = re.search(r"data : table\n(?:    .*\n)+", theirs_said)
    assert table_said is not None
    assert mine_said == theirs_said.replace(table_said[0], "")  # which a method does not take
    assert ("\nlabel" in mine_said) == (verb not in {"apply", "answer_confidence", "parse_confidence"})
    assert method.__name__ == verb


def test_a_metric_that_is_taken_for_a_method(frame: Any) -> None:
    with pytest.raises(AttributeError, match=r"'auc' is no method of a table; .*\.calib\.metrics\(.*metrics='auc'\)"):
        frame.calib.auc(label="y", score="p")
    with pytest.raises(AttributeError, match=r"no attribute 'plot'"):
        frame.calib.plot()


@pytest.mark.parametrize("verb", LABELLED)
def test_an_unknown_option_is_refused_by_name(frame: Any, verb: str) -> None:
    with pytest.raises(TypeError, match=r"got an unexpected keyword argument 'bin'"):
        getattr(frame.calib, verb)(label="y", score="p", bin=10)


@pytest.mark.parametrize("verb", LABELLED)
def test_arguments_are_named(frame: Any, verb: str) -> None:
    with pytest.raises(TypeError, match="positional argument"):
        getattr(frame.calib, verb)("y", "p")
    with pytest.raises(TypeError, match=r"missing .*required keyword-only argument.* 'score'"):
        getattr(frame.calib, verb)(label="y")


def test_errors_are_those_of_the_function(frame: Any) -> None:
    with pytest.raises(ColumnNotFoundError, match="'q'"):
        frame.calib.metrics(label="y", score="q")
    with pytest.raises(ScoreError, match=r"1\.8"):
        (frame.assign(p=1.8) if isinstance(frame, pd.DataFrame) else frame.with_columns(p=pl.lit(1.8))).calib.curve(
            label="y", score="p"
        )


# No state


def test_an_edit_in_place_is_seen() -> None:
    # https://github.com/pandas-dev/pandas/pull/18827: (.01 + .04) / 2, then (.25 + .04) / 2
    first, second = 0.025, 0.145
    table = pd.DataFrame({"label": [1, 0], "score": [0.9, 0.2]})
    kept = table.calib
    assert brier(kept) == pytest.approx(first, rel=1e-12)
    table.loc[0, "score"] = 0.5
    assert brier(kept) == pytest.approx(second, rel=1e-12)
    assert brier(table.calib) == pytest.approx(second, rel=1e-12)
    frame = pl.DataFrame({"label": [1, 0], "score": [0.9, 0.2]})
    kept = frame.calib
    assert brier(kept) == pytest.approx(first, rel=1e-12)
    frame[0, "score"] = 0.5
    assert brier(kept) == pytest.approx(second, rel=1e-12)
    assert brier(frame.calib) == pytest.approx(second, rel=1e-12)


def brier(namespace: Any) -> float:
    [found] = rows(namespace.metrics(label="label", score="score", metrics="brier"))["brier"]
    return found


def test_new_and_lost_columns_are_seen() -> None:
    table = pd.DataFrame({"y": [1, 0]})
    with pytest.raises(ColumnNotFoundError, match="'p'"):
        table.calib.metrics(label="y", score="p")
    table["p"] = [0.5, 0.5]
    assert rows(table.calib.metrics(label="y", score="p"))["n"] == [2]
    frame = pl.DataFrame({"y": [1, 0], "p": [0.5, 0.5]})
    assert rows(frame.calib.metrics(label="y", score="p"))["n"] == [2]
    frame.drop_in_place("p")
    with pytest.raises(ColumnNotFoundError, match="'p'"):
        frame.calib.metrics(label="y", score="p")


def test_a_namespace_can_hold_nothing_of_its_own(frame: Any) -> None:
    frame.calib.metrics(label="y", score="p")
    assert {name for name in vars(frame.calib) if not name.startswith("_")} == set()
    assert sorted(name for name in dir(frame.calib) if not name.startswith("_")) == sorted(VERBS)


def test_two_frames_do_not_meet() -> None:
    one, two = pl.DataFrame(ROWS), pl.DataFrame(ROWS).head(8)
    first, second = one.calib, two.calib
    assert rows(first.metrics(label="y", score="p"))["n"] == [200]
    assert rows(second.metrics(label="y", score="p"))["n"] == [8]


# No hold on the frame


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("collect", [True, False], ids=["collected", "by count"])
def test_a_frame_dies_when_nobody_needs_it(kind: str, collect: bool) -> None:  # noqa: FBT001
    table = Maker(kind)(ROWS)
    table.calib.metrics(label="y", score="p")
    found = [table.calib.curve(label="y", score="p"), table.calib.report(label="y", score="p")]
    there = weakref.ref(table)
    del table
    if collect:
        gc.collect()
    assert there() is None
    assert [each.table is not None for each in found] == [True, True]


def test_a_temporary_can_be_asked() -> None:
    for kind in KINDS:
        assert rows(Maker(kind)(ROWS).calib.metrics(label="y", score="p"))["n"] == [200]


@pytest.mark.parametrize("kind", KINDS)
def test_a_namespace_outlives_its_frame(kind: str) -> None:
    kept = Maker(kind)(ROWS).calib
    gc.collect()
    assert rows(kept.metrics(label="y", score="p"))["n"] == [200]


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table))])  # noqa: S301
def test_a_frame_that_was_asked_is_copied_and_pickled_as_before(frame: Any, way: Callable[[Any], Any]) -> None:
    if isinstance(frame, pl.LazyFrame):
        frame.calib.metrics(label="y", score="p").collect()
        assert rows(copy.deepcopy(frame)) == rows(frame)
        return
    frame.calib.metrics(label="y", score="p")
    found = way(frame)
    assert rows(found) == rows(frame)
    assert rows(found.calib.metrics(label="y", score="p"))["n"] == [200]


def test_nothing_is_added_to_a_frame(frame: Any) -> None:
    before = rows(frame)
    frame.calib.metrics(label="y", score="p", by="g")
    frame.calib.report(label="y", score="p", by="g")
    assert rows(frame) == before


# Registration


def test_registering_twice_is_quiet_and_changes_nothing() -> None:
    before = [kind.calib for kind in CLASSES]
    register()
    register()
    assert [kind.calib is found for kind, found in zip(CLASSES, before, strict=True)] == [True] * 3


def test_series_have_no_namespace() -> None:
    for other in (pd.Series, pl.Series):
        assert not hasattr(other([1]), "calib")


def test_frames_of_a_subclass_have_it_too() -> None:
    class Table(pd.DataFrame):
        @property
        def _constructor(self) -> type:
            return Table

    assert rows(Table(ROWS).calib.metrics(label="y", score="p"))["n"] == [200]
