"""What answering only where a model is confident buys, in lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calframe._words._lines import wrapped
from calframe._words._listing import SHOWN, WIDTH, key_name, listing
from calframe._words._numbers import number, percent
from calframe._words._thresholds import threshold

_COVERAGES = (0.25, 0.5, 0.75, 1.0)
_MOST_TARGETS = 6
_NAME_WIDTH = 32
_ROUNDING = 1e-9

Row = Mapping[str, Any]


def for_whom(*, clustered: bool) -> str:
    """Say which rows a threshold is shown to hold for."""
    return f"for independent {'clusters of ' if clustered else ''}rows like these"


def target_lines(targets: Sequence[Row], asked: Sequence[float], keys: Sequence[str]) -> list[str]:
    """Say for each target from which confidence on it holds, those first where it does not, or least is answered."""
    lines = []
    for target in asked[:_MOST_TARGETS]:
        rows = [row for row in targets if row["target_accuracy"] == target]
        if len(rows) == 1:
            said = wrapped(f"accuracy {target:g}: {_held(rows[0]) or rows[0]['note']}", WIDTH - 2)
            lines += [f"  {line}" for line in said]
            continue
        held = sum(row["threshold"] is not None for row in rows)
        lines.append(f"  accuracy {target:g}: a threshold holds in {held:,} of {len(rows):,} curves")
        worst = sorted(rows, key=lambda row: row["coverage"] or 0.0)[: max(SHOWN // len(asked), 2)]
        names = [key_name(row[key] for key in keys) for row in worst]
        texts = [_held(row) or str(row["note"]).partition(":")[0] for row in worst]
        lines += listing(names, texts, total=len(rows), place=".targets", width=_NAME_WIDTH)
    return lines


def _held(row: Row) -> str | None:
    """Say from which confidence on a target holds; None where the note says more of why it does not."""
    if row["threshold"] is None:
        return "no threshold is shown to hold" if str(row["note"]).startswith("no threshold") else None
    return f"from confidence {threshold(row['threshold'])} up, {percent(row['coverage'])} of rows"


def coverage_lines(points: Sequence[Row], worst: Sequence[Row], keys: Sequence[str], *, total: int) -> list[str]:
    """Say the accuracy of the most confident rows, and the area under the risk-coverage curve, curve by curve."""
    curves: dict[tuple[Any, ...], list[Row]] = {}
    for point in points:
        curves.setdefault(tuple(point[key] for key in keys), []).append(point)
    names = ["accuracy of the most confident"]
    texts = ["".join(f"{coverage:>8.0%}" for coverage in _COVERAGES) + "       AURC"]
    for row in worst:
        key = tuple(row[name] for name in keys)
        names.append(key_name(key) if keys else "all rows")
        texts.append("".join(f"{percent(one):>8}" for one in _accuracies(curves[key])) + f"{number(row['aurc']):>11}")
    return listing(names, texts, total=total + 1, place=".summary", width=_NAME_WIDTH) if worst else []


def _accuracies(curve: Sequence[Row]) -> list[float]:
    """Return the accuracy at each coverage, or the next one above: rows of equal confidence are answered together."""
    return [
        next(point["accuracy"] for point in curve if point["coverage"] >= coverage - _ROUNDING)
        for coverage in _COVERAGES
    ]
