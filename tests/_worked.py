"""The worked tables by definition: rational arithmetic where the definition allows it, written without the package."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from tests import _vector_definitions as vectors
from tests._exact_fits import exact

HALF = Fraction(1, 2)
Row = tuple[int, Fraction]  # label, score
Pair = tuple[int, tuple[Fraction, ...]]  # class that happened, scores


def exactly(values: Sequence[float]) -> list[Fraction]:
    """Return numbers as they are written, not as floating point rounds them."""
    return [Fraction(str(value)) for value in values]


def mean(values: Sequence[Any]) -> Fraction:
    return Fraction(sum(values, Fraction())) / len(values)


def log_loss(chances: Sequence[Fraction]) -> float:
    return -math.fsum(math.log(chance) for chance in chances) / len(chances)


def binary(columns: Mapping[str, Sequence[Any]]) -> dict[str, float]:
    """Return every metric of one column of scores, over two bins of equal width."""
    rows = list(zip(columns["y"], exactly(columns["p"]), strict=True))
    true = list(zip(columns["y"], exactly(columns["posterior"]), strict=True))
    cells = distinct(rows)
    floats = [(float(p), float(len(ys)), float(sum(ys))) for p, ys in cells.items()]
    found = {**means(rows), **posterior(rows, true), **exact(floats), **murphy(rows), **binned(rows), **swept(rows)}
    found |= {**cumulative(rows), **abstaining([(int((p >= HALF) == y), max(p, 1 - p)) for y, p in rows])}
    found |= {**smoothed(cells), **lines(rows), "auc": auc(rows), "smece": smece(rows), **notions(two_classes(rows))}
    del found["loss"], found["loss_log"]
    return {name: float(value) for name, value in found.items()}


def several(columns: Mapping[str, Sequence[Any]]) -> dict[str, float]:
    """Return every metric of vectors of three classes a, b and c, over two bins of equal width."""
    label = ["abc".index(name) for name in columns["y"]]
    rows, true = (
        list(zip(label, zip(*(exactly(columns[before + name]) for name in "abc"), strict=True), strict=True))
        for before in ("", "posterior ")
    )
    weighted = [(y, p, 1) for y, p in rows]
    parts = vectors.by_equal_vector(weighted)
    found = {
        "accuracy": vectors.accuracy(weighted),
        "brier": vectors.brier(weighted),
        "log_loss": log_loss([p[y] for y, p in rows]),
        "irreducible_loss": vectors.brier([(y, q, 1) for y, q in true]),
        "irreducible_loss_log": log_loss([q[y] for y, q in true]),
        **notions(rows),
        **abstaining([(int(vectors.top(p) == y), max(p)) for y, p in rows]),
    }
    for end in ("", "_log"):
        for part in ("calibration", "refinement"):
            found[f"{part}_loss{end}"] = parts[f"{part}{end}"]
        found[f"epistemic_loss{end}"] = found[f"{'log_loss' if end else 'brier'}"] - found[f"irreducible_loss{end}"]
    return {name: float(value) for name, value in found.items()}


# ---------------------------------------------------------------- sums over rows
def means(rows: Sequence[Row]) -> dict[str, Any]:
    rate, score = mean([y for y, _ in rows]), mean([p for _, p in rows])
    brier = mean([(p - y) ** 2 for y, p in rows])
    return {
        "rate": rate,
        "mean_score": score,
        "gap": score - rate,
        "ratio": score / rate,
        "accuracy": mean([int((p >= HALF) == y) for y, p in rows]),
        "brier": brier,
        "brier_skill": 1 - brier / (rate * (1 - rate)),
        "log_loss": log_loss([p if y else 1 - p for y, p in rows]),
        "sharpness": mean([(p - score) ** 2 for _, p in rows]),
    }


def posterior(rows: Sequence[Row], true: Sequence[Row]) -> dict[str, Any]:
    loss, best = means(rows), means(true)
    return {
        "irreducible_loss": best["brier"],
        "epistemic_loss": loss["brier"] - best["brier"],
        "irreducible_loss_log": best["log_loss"],
        "epistemic_loss_log": loss["log_loss"] - best["log_loss"],
    }


# ---------------------------------------------------------------- bins
def halves(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of [0, 1/2) and of [1/2, 1], where there are any."""
    parts = ([row for row in rows if row[1] < HALF], [row for row in rows if row[1] >= HALF])
    return [part for part in parts if part]


def gap_of(rows: Sequence[Row]) -> Fraction:
    return mean([p - y for y, p in rows])


def rate_of(rows: Sequence[Row]) -> Fraction:
    return mean([y for y, _ in rows])


def noise(rows: Sequence[Row]) -> Fraction:
    """Return what chance adds to the squared gap of a bin: nothing where it has one row."""
    return rate_of(rows) * (1 - rate_of(rows)) / (len(rows) - 1) if len(rows) > 1 else Fraction()


def binned(rows: Sequence[Row]) -> dict[str, Any]:
    bins, n = halves(rows), len(rows)
    gaps = [abs(gap_of(part)) for part in bins]
    left = sum(len(part) * (gap**2 - noise(part)) for part, gap in zip(bins, gaps, strict=True) if len(part) > 1)
    return {
        "ece": sum(len(part) * gap for part, gap in zip(bins, gaps, strict=True)) / n,
        "mce": max(gaps),
        "rmsce": math.sqrt(sum(len(part) * gap**2 for part, gap in zip(bins, gaps, strict=True)) / n),
        "ace": mean(gaps),
        "ece_debiased": math.sqrt(max(left / n, Fraction())),
        "ece_expected": math.fsum(map(chance_gap, bins)) / n,
    }


def chance_gap(rows: Sequence[Row]) -> float:
    """Return E|K - E K| of the Binomial that has the mean and (stretched) the variance of the rarer outcome."""
    hits = sum((p for _, p in rows), Fraction())
    rarer, variance = min(hits, len(rows) - hits), sum(p * (1 - p) for _, p in rows)
    size = math.floor(rarer / (1 - variance / rarer) + HALF)
    chance = rarer / size
    law = [math.comb(size, k) * chance**k * (1 - chance) ** (size - k) for k in range(size + 1)]
    spread = sum(share * abs(k - rarer) for k, share in enumerate(law))
    return float(spread) * math.sqrt(variance / (size * chance * (1 - chance)))


def murphy(rows: Sequence[Row]) -> dict[str, Any]:
    bins, n, rate = halves(rows), len(rows), rate_of(rows)
    reliability = sum(len(part) * gap_of(part) ** 2 for part in bins) / n
    resolution = sum(len(part) * (rate_of(part) - rate) ** 2 for part in bins) / n
    within = Fraction()
    for part in bins:
        score, often = mean([p for _, p in part]), rate_of(part)
        within += sum((p - score) ** 2 - 2 * (p - score) * (y - often) for y, p in part) / n
    added = sum(len(part) * noise(part) for part in bins) / n
    return {
        "reliability": reliability,
        "resolution": resolution,
        "uncertainty": rate * (1 - rate),
        "within_bin": within,
        "reliability_corrected": reliability - added,
        "resolution_corrected": resolution - added + noise(rows),
        "uncertainty_corrected": rate * (1 - rate) * n / (n - 1),
    }


def distinct(rows: Sequence[Row]) -> dict[Fraction, list[int]]:
    """Return the labels at each score, ascending."""
    return {score: [y for y, p in rows if p == score] for score in sorted({p for _, p in rows})}


def swept(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the error over the last number of bins before the rates are first out of order."""
    last = [rows]
    for count in range(2, len(distinct(rows)) + 1):
        parts: dict[int, list[Row]] = {}
        for y, p in rows:
            middle = sum(s < p for _, s in rows) + Fraction(sum(s == p for _, s in rows), 2)
            parts.setdefault(math.floor(count * middle / len(rows)), []).append((y, p))
        bins = [parts[number] for number in sorted(parts)]
        if any(rate_of(one) > rate_of(other) for one, other in pairwise(bins)):
            break
        last = bins
    return {"ece_sweep": sum(len(part) * abs(gap_of(part)) for part in last) / len(rows)}


# ---------------------------------------------------------------- order
def auc(rows: Sequence[Row]) -> Fraction:
    pairs = [(p, q) for y, p in rows for z, q in rows if y > z]
    return mean([(p > q) + HALF * (p == q) for p, q in pairs])


def cumulative(rows: Sequence[Row]) -> dict[str, Any]:
    path = [Fraction(), *(sum(y - p for y, p in rows if p <= end) / len(rows) for end in distinct(rows))]
    return {"ecce_r": max(path) - min(path), "ecce_mad": max(map(abs, path))}


def abstaining(rows: Sequence[tuple[int, Fraction]]) -> dict[str, Any]:
    """Return the mean risk of the k most confident of (right, confidence): tied rows are equally likely to be taken."""
    n, risks = len(rows), []
    for k in range(1, n + 1):
        edge = sorted((confidence for _, confidence in rows), reverse=True)[k - 1]
        above = [1 - right for right, confidence in rows if confidence > edge]
        tied = [1 - right for right, confidence in rows if confidence == edge]
        risks.append((sum(above) + (k - len(above)) * mean(tied)) / k)
    errors = sum(1 - right for right, _ in rows)
    best = [Fraction(max(k - (n - errors), 0), k) for k in range(1, n + 1)]
    return {"aurc": mean(risks), "eaurc": mean(risks) - mean(best)}


# ---------------------------------------------------------------- smooth and fitted
def smoothed(cells: Mapping[Fraction, Sequence[int]]) -> dict[str, Any]:
    """Return distances from a curve that passes through the rate of each of three scores.

    Each score is a vertex of loess for so few rows, and no neighbourhood holds a fourth score, so its local quadratic
    has at least as many coefficients as points and meets them all.
    """
    assert len(cells) == 3
    away = sorted(abs(p - mean(ys)) for p, ys in cells.items() for _ in ys)
    return {"ici": mean(away), "e50": median(away), "e90": type_7(away, Fraction(9, 10)), "emax": max(away)}


def type_7(values: Sequence[Fraction], q: Fraction) -> Fraction:
    position = (len(values) - 1) * q
    low = math.floor(position)
    return values[low] + (position - low) * (values[low + 1] - values[low])


def smece(rows: Sequence[Row]) -> float:
    """Return the sigma that its smoothed residual has for an integral, from images of the kernel on a fine grid."""
    at = (np.arange(20_000) + 0.5) / 20_000

    def integral(sigma: float) -> float:
        field = np.zeros_like(at)
        for y, p in rows:
            images = (2 * m + sign * float(p) for m in range(-3, 4) for sign in (1, -1))
            field += (y - float(p)) * sum(norm.pdf(at, image, sigma) for image in images)
        return float(np.abs(field).mean()) / len(rows)

    return float(brentq(lambda sigma: integral(sigma) - sigma, 0.01, 1.0))


def lines(rows: Sequence[Row]) -> dict[str, Any]:
    """Return logistic lines, from their score equations."""
    fitted = {Fraction(1, 10): Fraction(1, 3), Fraction(1, 2): Fraction(2, 3), Fraction(9, 10): Fraction(8, 9)}
    unit = {Fraction(1, 10): -1, Fraction(1, 2): 0, Fraction(9, 10): 1}  # logits, in units of ln 9
    # The fit has logits -ln 2, ln 2, 3 ln 2: a line. Its residuals are orthogonal to the constant and to the logits.
    assert sum(y - fitted[p] for y, p in rows) == sum((y - fitted[p]) * unit[p] for y, p in rows) == 0
    # their information: sums of weights q (1 - q) times powers of the logits
    zero, one, two = (sum(fitted[p] * (1 - fitted[p]) * unit[p] ** k for _, p in rows) for k in (0, 1, 2))
    determinant = zero * two - one**2

    def excess(u: float) -> float:
        return math.fsum(float(p) * u / (1 - float(p) + float(p) * u) - y for y, p in rows)

    odds = brentq(excess, 1e-3, 1e3, xtol=1e-14)  # by which all odds are multiplied
    moved = [float(p) * odds / (1 - float(p) + float(p) * odds) for _, p in rows]
    return {
        "slope": 2 * math.log(2) / math.log(9),
        "intercept": math.log(2),
        "slope_se": math.sqrt(zero / determinant) / math.log(9),
        "intercept_se": math.sqrt(two / determinant),
        "citl": math.log(odds),
        "citl_se": 1 / math.sqrt(math.fsum(q * (1 - q) for q in moved)),
    }


# ---------------------------------------------------------------- score vectors
def two_classes(rows: Sequence[Row]) -> list[Pair]:
    """Return rows of one score as vectors: the positive class, then the other."""
    return [(1 - y, (p, 1 - p)) for y, p in rows]


def notions(rows: Sequence[Pair]) -> dict[str, Any]:
    weighted = [(y, p, 1) for y, p in rows]
    top = vectors.confidence_rows(weighted)
    errors = vectors.classwise(weighted, _half, vectors.binary_ece)
    return {
        "confidence_ece": vectors.binary_ece(top, _half),
        "confidence_mce": vectors.binary_mce(top, _half),
        "classwise_ece": mean(errors),
        "classwise_mce": max(vectors.classwise(weighted, _half, vectors.binary_mce)),
        "toplabel_ece": vectors.toplabel_ece(weighted, _half),
        "full_ece": vectors.full_ece(weighted, _half),
        "skce": vectors.skce(rows),
    }


def _half(score: Any) -> int:
    return int(score >= HALF)


# ---------------------------------------------------------------- examples as they are written
_SIGNS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}
_FUNCTIONS = {"sqrt": math.sqrt, "ln": math.log, "exp": math.exp}


def written(example: str) -> Iterator[tuple[float, float]]:
    """Give the numbers that an example states, each with how far off it may be: a closed form, and four decimals."""
    form, _, rounded = example.partition("≈")
    if form.strip():
        yield float(_evaluated(form)), 1e-12
    if rounded.strip():
        yield float(_evaluated(rounded)), 0.5e-4


def _evaluated(form: str) -> Any:
    for sign, code in {"−": "-", "·": "*", "√": "sqrt"}.items():
        form = form.replace(sign, code)
    return _node(ast.parse(form.strip(), mode="eval").body)


def _node(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return Fraction(str(number))
        case ast.UnaryOp(op=sign, operand=one):
            return _SIGNS[type(sign)](_node(one))
        case ast.BinOp(left=one, op=sign, right=other):
            return _SIGNS[type(sign)](_node(one), _node(other))
        case ast.Call(func=ast.Name(id=name), args=[one]):
            return _FUNCTIONS[name](_node(one))
    msg = f"an example holds numbers, signs, √, ln and exp; got {ast.unparse(node)!r}"
    raise ValueError(msg)
