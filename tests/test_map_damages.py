"""Damaged files: whatever field has whatever value, a map is refused with that field's name, or gives probabilities."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe
from calframe._errors import CalframeError, ColumnNotFoundError, ScoreError, SegmentError
from tests._fitted_maps import BINARY, SEVERAL, binary_map, class_map, fresh

ODD: tuple[Any, ...] = (
    None, True, False, "", "x", "1", 0, 1, -1, 2, 7, 99, 2**53, 10**30, -(10**30), 0.0, -0.0, 0.5, 1.0, -0.25, 1.5,
    5e-324, 1e-300, 1e100, 1e308, -1e308, math.nan, math.inf, -math.inf, [], [None], ["x"], [0.5], [[0.5]], [1, 2], {},
    {"form": "points"},
)  # fmt: skip
WAYS = 2  # of each field, chosen at random
CASES = [*BINARY, *(f"{case}, classes" for case in SEVERAL)]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every field, and of the first, middle and last item of every list."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from places(item, (*path, name))
    elif isinstance(value, list):
        for i in sorted({0, len(value) // 2, len(value) - 1}) if value else ():
            yield from places(value[i], (*path, i))


def damages(value: Any, rng: np.random.Generator) -> Iterator[Any]:
    """Yield what may become of a value."""
    for i in rng.choice(len(ODD), WAYS, replace=False):
        yield ODD[i]
    if isinstance(value, list) and value:
        yield value[:-1]
        yield value[::-1]
        yield [*value, value[0]]
        yield value[0]
    if isinstance(value, int | float):
        yield -value
        yield value * 1e9


def damaged(record: dict[str, Any], rng: np.random.Generator) -> Iterator[tuple[tuple[Any, ...], Any, dict[str, Any]]]:
    """Yield records with one damage each, with its path and what was put there; of a field left out, nothing."""
    for *inside, last in places(record):
        made = record
        for step in inside:
            made = made[step]
        for value in damages(made[last], rng):
            changed = copy.deepcopy(record)
            target = changed
            for step in inside:
                target = target[step]
            target[last] = value
            yield (*inside, last), value, changed
        changed = copy.deepcopy(record)
        target = changed
        for step in inside:
            target = target[step]
        del target[last]
        yield (*inside, last), ..., changed


def loaded(path: Path) -> calframe.CalibrationMap | CalframeError:
    """Return the map of a file, or the error that refuses it; any other error is raised."""
    try:
        return calframe.load_map(path)
    except CalframeError as error:
        return error


@pytest.mark.parametrize("case", CASES)
def test_a_damaged_map_is_refused_or_gives_probabilities(case: str, tmp_path: Path) -> None:
    rng, name, several = np.random.default_rng([*case.encode()]), case.removesuffix(", classes"), "classes" in case
    link = ("probability", "logit")[CASES.index(case) % 2]
    found = (class_map if several else binary_map)(name, ("g",), link)
    table = pl.DataFrame(fresh(several=several, link=link), strict=False)
    path, refused, total = tmp_path / "map.json", 0, 0
    for place, value, record in damaged(found.to_dict(), rng):
        path.write_text(json.dumps(record), encoding="utf-8")
        total += 1
        read = loaded(path)
        if isinstance(read, CalframeError):
            assert "map.json' is " in str(read), (place, value)
            refused += 1
            continue
        assert "CalibrationMap" in repr(read)
        assert read.table.height, (place, value)
        try:
            made = calframe.apply(table, read)
        except (ColumnNotFoundError, ScoreError, SegmentError):  # it is a map of other columns now
            assert place[0] in ("scores", "by", "segments", "link", "classes"), (place, value)
            continue
        for column in made.columns[table.width :]:
            assert made[column].drop_nulls().is_between(0.0, 1.0).all(), (place, value)
    assert refused > total / 3


@pytest.mark.parametrize(
    ("case", "path", "value", "said"),
    [
        ("isotonic", ("form", "y", 0), 7, "form.y must be probabilities, within [0, 1]"),
        ("isotonic", ("form", "starts", 1), 1e308, "form.starts must be a list of whole numbers; it has 1e+308"),
        ("venn_abers", ("form", "high", "y", 0), -1, "form.high.y must be probabilities, within [0, 1]"),
        ("temperature", ("form", "values", 0, 0), -1, "form.values has a temperature below 0"),
        ("temperature", ("form", "values", 0, 0), 0, "form.values has a temperature that is not above 0"),
        ("platt", ("floor",), 2, "floor must lie between 2.3e-308 and 0.5"),
        ("platt", ("floor",), "x", "floor must be a number; it is 'x'"),
        ("platt", ("link",), "logitt", "link='logitt' is not known. Did you mean 'logit'?"),
        ("platt", ("pooling",), "xx", "pooling must be one of 'complete', 'none', 'partial'; got 'xx'"),
        ("platt", ("method",), "foo", "method must be one of"),
        ("platt", ("n",), 1e308, "n must be a whole number; it is 1e+308"),
        ("platt", ("low",), "x", "low must be a number; it is 'x'"),
        ("platt", ("scores",), [], "scores must name 1 column"),
        ("platt", ("by",), [], "by must be the names of the keys of segments"),
        ("isotonic", ("form", "side"), [], "form.side must be one of 'left', 'right'; it is []"),
        ("platt", ("segments", "curve", 0), 1e308, "segments.curve must be a list of whole numbers; it has 1e+308"),
        ("platt", ("segments", "n", 0), 10**30, "segments.n has a number that is too large"),
        ("platt", ("segments", "note", 0), 1, "segments.note[0] must be text; it is 1"),
    ],
)
def test_the_error_names_the_field(case: str, path: tuple[Any, ...], value: Any, said: str, tmp_path: Path) -> None:
    record = binary_map(case, ("g",)).to_dict()
    inside: Any = record
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    (tmp_path / "map.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(CalframeError, match=re.escape(f"map.json' is a damaged calibration map ({said}")):
        calframe.load_map(tmp_path / "map.json")
