"""Row terms: what is added up over the rows of a cell, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import narwhals.stable.v2 as nw

from calframe._registry import Row, Term


def product(row: Row, first: Term, second: Term) -> nw.Expr:
    """Return the product of two terms as a variance sums it: the weight squared, or once where it counts rows."""
    both = first(row) * second(row)
    if row.weight is None or not row.frequency:
        return both
    return nw.when(row.weight > 0.0).then(both / row.weight).otherwise(0.0)


def products(names: Sequence[str], own: Mapping[str, Term]) -> dict[str, Term]:
    """Return the products of terms two by two, under names such as ``wp*wy``; ``w`` is the weight."""
    return {f"{a}*{b}": partial(_named_product, a, b, own) for i, a in enumerate(names) for b in names[i:]}


def _named_product(first: str, second: str, own: Mapping[str, Term], row: Row) -> nw.Expr:
    terms: Mapping[str, Term] = {**TERMS, **own, "w": lambda row: row.times(row.used)}
    return product(row, terms[first], terms[second])


def _right_side(row: Row) -> nw.Expr:
    return (row.score >= 0.5) == (row.label == 1.0)


def _true_chance(row: Row) -> nw.Expr:
    posterior = _posterior(row)
    return nw.when(row.label == 1.0).then(posterior).otherwise(1.0 - posterior)


def _posterior(row: Row) -> nw.Expr:
    return row.used if row.posterior is None else row.posterior


def _true_surprise(row: Row) -> nw.Expr:
    chance = _true_chance(row)
    return nw.when((chance > 0.0) & (row.used == 1.0)).then(chance).otherwise(1.0).log() * -1.0


TERMS: Mapping[str, Term] = {
    "w2": lambda row: row.squared(row.score * 0.0 + 1.0),
    "wy": lambda row: row.times(row.label),
    "wp": lambda row: row.times(row.score),
    "square": lambda row: row.times((row.score - row.label) * (row.score - row.label)),
    "w2_square": lambda row: row.squared((row.score - row.label) * (row.score - row.label)),
    "w2_residual": lambda row: row.squared(row.label - row.score),
    "w2_score": lambda row: row.squared(row.score),
    "fourth": lambda row: row.times((row.score - row.label) ** 4),
    "variance": lambda row: row.times(row.score * (1.0 - row.score)),
    "w2_variance": lambda row: row.squared(row.score * (1.0 - row.score)),
    "centred": lambda row: row.times((row.score - 0.5) * row.used),
    "centred_square": lambda row: row.times((row.score - 0.5) * (row.score - 0.5) * row.used),
    "centred_cube": lambda row: row.times((row.score - 0.5) ** 3 * row.used),
    "centred_fourth": lambda row: row.times((row.score - 0.5) ** 4 * row.used),
    "right": lambda row: row.times(nw.when(_right_side(row)).then(row.used).otherwise(0.0)),
    "surprise": lambda row: row.times(row.surprise),
    "surprise_square": lambda row: row.times(row.surprise * row.surprise),
    "impossible": lambda row: nw.when(row.possible).then(0.0).otherwise(1.0),
    "positive_square": lambda row: row.times((1.0 - row.score) * (1.0 - row.score) * row.label),
    "positive_fourth": lambda row: row.times((1.0 - row.score) ** 4 * row.label),
    "true_variance": lambda row: row.times(_posterior(row) * (1.0 - _posterior(row))),
    "true_fourth": lambda row: row.times((_posterior(row) - row.label) ** 4),
    "true_surprise_square": lambda row: row.times(_true_surprise(row) * _true_surprise(row)),
    "gain_square": lambda row: row.times(((row.score - row.label) ** 2 - (_posterior(row) - row.label) ** 2) ** 2),
    "gain_log_square": lambda row: row.times((row.surprise - _true_surprise(row)) ** 2),
    "true_square": lambda row: row.times((_posterior(row) - row.label) * (_posterior(row) - row.label)),
    "true_surprise": lambda row: row.times(_true_surprise(row)),
    "true_impossible": lambda row: nw.when((_true_chance(row) <= 0.0) & (row.used == 1.0)).then(1.0).otherwise(0.0),
}
"""Each is 0 on a row that is not used. ``n`` (used rows) and ``w`` (weight) are always there."""
