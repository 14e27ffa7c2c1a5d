"""The chart of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from calframe._charts import names_of, standalone
from calframe._charts._differences import differences
from calframe._words._lines import distinct
from calframe._words._numbers import number, pvalue, rows

GOOD = {"lower": "lower is better", "higher": "higher is better", "zero": "best at 0", "one": "best at 1"}
_NAME_WIDTH = 24  # columns of a model's name beside its line


def difference_chart(
    table: pl.DataFrame,
    *,
    by: Sequence[str],
    metrics: Sequence[str],
    models: tuple[str, str],
    direction: Mapping[str, str],
    width: int,
    most: int,
) -> Any:
    """Draw the differences of a comparison, and say which model they are of."""
    shown = table.head(most * len(metrics))
    segments = list(dict.fromkeys(shown[list(by)].rows())) if by else [()]
    names = dict(zip(segments, names_of(segments)[0] if by else ["all rows"], strict=True))
    short = dict(zip(models, distinct(models, _NAME_WIDTH), strict=True))
    sides = {models[0]: "first", models[1]: "second", None: "neither"}
    keys = shown[list(by)].rows() if by else [()] * shown.height
    described = [
        {
            "segment": names[key],
            "side": sides[row["better"]],
            "said": "no value" if row["difference"] is None else _said(row["better"], short),
            "description": _description(names[key], row, short),
        }
        for key, row in zip(keys, shown.iter_rows(named=True), strict=True)
    ]
    texts = pl.DataFrame(described, schema=dict.fromkeys(("segment", "side", "said", "description"), pl.String))
    drawn = pl.concat([shown.select("metric", "difference", "low", "high"), texts], how="horizontal")
    heads = [(name, f"{name} ({GOOD[direction[name]]})" if direction[name] in GOOD else name) for name in metrics]
    caption = f"Difference: {short[models[1]]} minus {short[models[0]]}, on the same rows"
    return standalone(differences(drawn, heads=heads, width=width), caption=caption, width=width)


def _said(better: str | None, short: Mapping[str, str]) -> str:
    return "not clear" if better is None else f"{short[better]} better"


def _description(segment: str, row: Mapping[str, Any], short: Mapping[str, str]) -> str:
    if row["difference"] is None:
        return f"{segment}, {row['metric']}: no value."
    ends = "" if row["low"] is None else f" (interval {number(row['low'])} to {number(row['high'])})"
    return (
        f"{segment}, {row['metric']}: difference {number(row['difference'])}{ends}, adjusted p "
        f"{pvalue(row['pvalue_adjusted'])}, {rows(row['n'])}: {_said(row['better'], short)}."
    )
