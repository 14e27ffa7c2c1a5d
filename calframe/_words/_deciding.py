"""What acting by scores costs and saves, in lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calframe._words._lines import wrapped
from calframe._words._listing import SHOWN, WIDTH, key_name, listing
from calframe._words._numbers import MINUS, number

_NAME_WIDTH = 24

Row = Mapping[str, Any]


def lines_of_one(row: Row) -> list[str]:
    """Say what acting by the scores of one curve costs, and what it saves against acting on all or on none."""
    cost, everyone, none, lost = (
        f"{row[name]:.4g}" for name in ("cost", "cost_all", "cost_none", "miscalibration_cost")
    )
    low, high = (f"{row[name]:.4g}" for name in ("cost_low", "cost_high"))
    saved, least, most = (number(row[name]) for name in ("saved", "saved_low", "saved_high"))
    decided = {"cheaper": "surely cheaper", "dearer": "surely dearer", None: "not decided"}[_decided(row)]
    against = wrapped(f"saved against the cheaper of both {saved} ({least} to {most}): {decided}", WIDTH - 2)
    return [
        f"  cost per row {cost} ({low} to {high})",
        f"  acting on all {everyone}, on none {none}",
        *(f"  {line}" for line in against),
        f"  isotonic recalibration would have saved {lost} a row here",
    ]


def lines_of_many(rows: Sequence[Row], keys: Sequence[str], *, level: str) -> list[str]:
    """Say what is known to cost least in each segment and by each model, those first where the score loses most."""
    if not rows:
        return ["  no row can be used"]
    found = [_decided(row) for row in rows]
    counts = wrapped(
        f"the score against the cheaper of all and none, at {level} each: surely cheaper (saved_low > 0) in "
        f"{found.count('cheaper'):,} of {len(rows):,} curves, surely dearer (saved_high < 0) in "
        f"{found.count('dearer'):,}, not decided in {found.count(None):,}",
        WIDTH - 2,
    )
    lines = [f"  {line}" for line in counts]
    worst = sorted(rows, key=lambda row: row["n"] * row["saved"])[:SHOWN]
    names = [key_name(row[key] for key in keys) for row in worst]
    lines += [
        "  for each: what costs least, what the score saves a row (interval), and what",
        "  a row costs without it, acting on all or on none, whichever is cheaper:",
    ]
    return lines + listing(
        names, [_costs_least(row) for row in worst], total=len(rows), place=".table", width=_NAME_WIDTH
    )


def _decided(row: Row) -> str | None:
    """Say whether the score is shown to be cheaper, or dearer, than the cheaper of acting on all and on none."""
    if row["saved_low"] > 0.0:
        return "cheaper"
    return "dearer" if row["saved_high"] < 0.0 else None


def _costs_least(row: Row) -> str:
    other = "none" if row["cost_none"] <= row["cost_all"] else "all"
    way = {"cheaper": "by the score", "dearer": f"act on {other}", None: "not decided"}[_decided(row)]
    saved, low, high = (f"{row[name]:.3g}".replace("-", MINUS) for name in ("saved", "saved_low", "saved_high"))
    return f"{way:<12}  {saved} ({low} to {high}), {other} {row[f'cost_{other}']:.3g}"
