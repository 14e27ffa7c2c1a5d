"""Columns whose names polars takes for patterns are columns like any other, in every verb."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import calframe
from calframe._results import records, rounded
from tests._tables import Maker

VERBS: dict[str, dict[str, Any]] = {
    "metrics": {},
    "curve": {},
    "fit": {"method": "platt"},
    "test": {"n_resamples": 20},
    "compare": {"score": ["p", "q"]},
    "audit": {},
    "report": {},
    "selective": {},
    "decide": {"cost_fp": 1.0, "cost_fn": 2.0},
    "diagnose": {"n_resamples": 99},
}


@pytest.mark.parametrize("library", ["polars", "pandas", "polars[lazy]"])
@pytest.mark.parametrize("verb", VERBS)
def test_names_that_are_patterns_are_names(verb: str, library: str) -> None:
    def found(name: str) -> Any:
        columns = {name: ["a", "b", "b", None] * 60, "y": [0, 1, 1, 0] * 60, "p": [0.3, 0.6] * 120, "q": [0.5] * 240}
        asked = {"label": "y", "score": "p", "by": name, **VERBS[verb]}
        result = getattr(calframe, verb)(Maker(library)(columns), **asked)
        if not hasattr(result, "_repr_html_") or verb == "metrics":
            frame = result.collect() if isinstance(result, pl.LazyFrame) else result
            return json.dumps(rounded(records(frame))).replace(json.dumps(name), '"key"')
        assert repr(result)
        assert getattr(result, "_repr_html_", str)() is not None
        return json.dumps(rounded(result.to_dict())).replace(name, "key")

    plain = found("key")
    for name in ("*", "^.*$", "^g$"):
        assert found(name) == plain, name
