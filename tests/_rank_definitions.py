"""Measures of order, of equal scores and of isotonic fits by their definitions, in exact rational arithmetic."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction

Row = tuple[int, float]  # label, score; every row counts once
Counted = tuple[Fraction, int, int]  # score, rows, positives


def by_score(rows: Sequence[Row]) -> list[Counted]:
    """Return the distinct scores, ascending, with their rows and positives."""
    found: dict[Fraction, list[int]] = defaultdict(list)
    for label, score in rows:
        found[Fraction(score)].append(label)
    return [(score, len(labels), sum(labels)) for score, labels in sorted(found.items())]


def auc(rows: Sequence[Row]) -> float | None:
    """Return how often a positive outranks a negative, ties half."""
    highs, lows = ([score for label, score in rows if label == wanted] for wanted in (1, 0))
    if not highs or not lows:
        return None
    won = sum((Fraction(int(p > q)) + Fraction(int(p == q), 2) for p in highs for q in lows), Fraction())
    return float(won / (len(highs) * len(lows)))


def cumulative(rows: Sequence[Row]) -> list[Fraction]:
    """Return C_0 = 0, C_1, ... over the distinct scores."""
    found = [Fraction()]
    for score, n, positive in by_score(rows):
        found.append(found[-1] + (positive - n * score) / len(rows))
    return found


def isotonic(rows: Sequence[Row]) -> list[tuple[Fraction, int, int]]:
    """Return the isotonic rate at each distinct score, by the max-min formula, with its rows and positives."""
    cells = by_score(rows)

    def mean(first: int, last: int) -> Fraction:
        part = cells[first : last + 1]
        return Fraction(sum(k for _, _, k in part), sum(n for _, n, _ in part))

    count = range(len(cells))
    fits = [max(min(mean(a, b) for b in count if b >= i) for a in count if a <= i) for i in count]
    return [(fit, n, positive) for fit, (_, n, positive) in zip(fits, cells, strict=True)]


def brier(cells: Sequence[Counted]) -> Fraction:
    total = sum(n for _, n, _ in cells)
    return sum((k * (1 - p) ** 2 + (n - k) * p**2 for p, n, k in cells), Fraction()) / total


def log_loss(cells: Sequence[Counted]) -> float:
    """Return the log loss of scores that may be as near to 0 as they like."""
    return math.fsum(_cross(k, p) + _cross(n - k, 1 - p) for p, n, k in cells) / sum(n for _, n, _ in cells)


def aurc(rows: Sequence[Row], *, perfect: bool = False) -> float:
    """Return the mean risk of the k most confident rows over all orders of ties, or with every error last."""
    wrong: dict[float, list[int]] = defaultdict(list)
    for label, score in rows:
        wrong[max(score, 1.0 - score)].append(int((score >= 0.5) != label))
    groups = [wrong[confidence] for confidence in sorted(wrong, reverse=True)]
    if perfect:
        groups = [[error] for error in sorted(error for group in groups for error in group)]
    seen, errors, risks = 0, Fraction(), Fraction()
    for group in groups:
        for k in range(1, len(group) + 1):
            risks += (errors + Fraction(k * sum(group), len(group))) / (seen + k)
        seen, errors = seen + len(group), errors + sum(group)
    return float(risks / seen)


def _log(p: Fraction) -> float:
    return math.log1p(float(p - 1)) if p > Fraction(1, 2) else math.log(float(p))


def _cross(times: int, p: Fraction) -> float:
    if times == 0:
        return 0.0
    return math.inf if p == 0 else -times * _log(p)


def _entropy(cells: Sequence[Counted]) -> float:
    return log_loss([(Fraction(k, n), n, k) for _, n, k in cells])


def _whole(rows: Sequence[Row]) -> list[Counted]:
    return [(Fraction(sum(y for y, _ in rows), len(rows)), len(rows), sum(y for y, _ in rows))]


def _refinement(rows: Sequence[Row]) -> float:
    return float(brier([(Fraction(k, n), n, k) for _, n, k in by_score(rows)]))


DEFINED: dict[str, Callable[[Sequence[Row]], float | None]] = {
    "auc": auc,
    "ecce_r": lambda rows: float(max(cumulative(rows)) - min(cumulative(rows))),
    "ecce_mad": lambda rows: float(max(map(abs, cumulative(rows)))),
    "calibration_loss": lambda rows: float(
        sum((n * (p - Fraction(k, n)) ** 2 for p, n, k in by_score(rows)), Fraction()) / len(rows)
    ),
    "refinement_loss": _refinement,
    "calibration_loss_log": lambda rows: log_loss(by_score(rows)) - _entropy(by_score(rows)),
    "refinement_loss_log": lambda rows: _entropy(by_score(rows)),
    "mcb": lambda rows: float(brier(by_score(rows)) - brier(isotonic(rows))),
    "dsc": lambda rows: float(brier(_whole(rows)) - brier(isotonic(rows))),
    "unc": lambda rows: float(brier(_whole(rows))),
    "mcb_log": lambda rows: log_loss(by_score(rows)) - log_loss(isotonic(rows)),
    "dsc_log": lambda rows: _entropy(_whole(rows)) - log_loss(isotonic(rows)),
    "unc_log": lambda rows: _entropy(_whole(rows)),
    "aurc": aurc,
    "eaurc": lambda rows: aurc(rows) - aurc(rows, perfect=True),
}
