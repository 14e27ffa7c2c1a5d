"""Penalised multinomial logistic regression of one segment, by Newton's method with conjugate gradients.

The coefficients of class a stand in row a: the slopes of all log scores, or of the class's own one only, then the
constant. Matrices of rows stand classes first, so that a step over the rows runs along the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from calframe._typing import Floats, Ints

Gauge: TypeAlias = Callable[[Floats], Floats]

_BLOCK = 2**17  # numbers of a pass at a time: their temporaries stay in the cache
_ROUNDS = 100  # 5 to 15 are usual; nearly separable rows need about one for each unit of their largest predictor
_PRODUCTS = 250  # of the Hessian with a vector in one round; 10 to 30 are usual
_DONE = 1e-22  # squared Newton decrement, about twice the loss left: the step that comes of it is below rounding
_NEARLY = 1e-15  # below, a decrement that is not a quarter of the one before is rounding
_TAIL = 1e-10  # below, Newton's iteration converges quadratically, or never
_LINEAR = 0.02  # ratio of two decrements that no quadratic convergence has
_FAR = 0.5  # what a step moves some predictor by where there is no maximum: about 1 each round
_OVER = 0.25  # slope after a step, as a share of that before it, that is too steep upwards
_LARGE = 0.01  # squared Newton decrement of steps that may raise the objective, if they go too far
_TRIALS = 100  # of parts of a step; 1 is usual
_SHORTER = 100.0  # what the shortest part is divided by where it goes too far
_UNDER = 0.75  # slope after a part of a step, as a share of that before it, that is still too steep downwards
_CLOSE = 1.5  # ratio of two steps between which none is searched for
_LOOSE = 0.1  # relative error of the first Newton directions
_JITTER = 1e-10  # relative, keeps what is solved for the preconditioner regular
_LEAST = 1e-16  # the same, relative to the largest of all
_WORK = 2e9  # multiplications that the preconditioner of one round may cost
_SAME = 1e-12  # eigenvalue of scaled second moments that is 0 to rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Rows of a segment, classes first.

    Attributes
    ----------
    features : ndarray of shape (n_classes + 1, n_rows)
        The log scores, and ones.
    label : ndarray of int64, shape (n_rows,)
        The class that happened.
    share : ndarray of shape (n_rows,)
        Weights, of sum 1.
    smooth : ndarray of shape (n_rows,)
        The share e of the uniform distribution in the target ``(1 - e) y + e / K`` of a row.
    diagonal : bool
        Whether a class has a slope of its own log score only.
    """

    features: Floats
    label: Ints
    share: Floats
    smooth: Floats
    diagonal: bool

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.features) - 1

    def blocks(self) -> Iterator[slice]:
        """Give the rows block by block."""
        many = max(_BLOCK // len(self.features), 1)
        for begin in range(0, len(self.label), many):
            yield slice(begin, begin + many)

    def predictor(self, theta: Floats, cut: slice) -> Floats:
        """Return the linear predictor of each class in the rows of a block."""
        if not self.diagonal:
            product: Floats = theta @ self.features[:, cut]
            return product
        out = self.features[:-1, cut] * theta[:, :1]
        out += theta[:, 1:]
        return out

    def collected(self, values: Floats, cut: slice) -> Floats:
        """Return ``sum_r v_ar x_r`` of each class over the rows of a block, the transpose of `predictor`."""
        if not self.diagonal:
            product: Floats = values @ self.features[:, cut].T
            return product
        own = np.einsum("ar,ar->a", values, self.features[:-1, cut])
        return np.stack([own, values.sum(axis=1)], axis=1)

    def reach(self, theta: Floats) -> float:
        """Return the most by which coefficients move the predictors of two classes of a row against each other."""
        return max(float(np.ptp(self.predictor(theta, cut), axis=0).max()) for cut in self.blocks())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Penalty:
    """``sum strength (theta - centre)^2``, each of the shape of the coefficients."""

    strength: Floats
    centre: Floats

    def plus(self, other: Self) -> Self:
        """Return the sum of two penalties, without the constant that their centres make."""
        strength = self.strength + other.strength
        pull = self.strength * self.centre + other.strength * other.centre
        centre = np.divide(pull, strength, out=np.zeros_like(pull), where=strength > 0)
        return type(self)(strength=strength, centre=centre)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Minimum:
    """Where the iteration ended, and whether that is the minimum; if not, there is none, or it is too far out."""

    theta: Floats
    converged: bool


def identity(classes: int, *, diagonal: bool) -> Floats:
    """Return the coefficients that leave scores alone."""
    slopes = np.ones((classes, 1)) if diagonal else np.eye(classes)
    return np.hstack([slopes, np.zeros((classes, 1))])


def normal_form(theta: Floats) -> Floats:
    """Return the coefficients of the same map whose constants, and off-diagonal slopes of one score, have sum 0.

    A constant that is added to the slopes of one score in all classes, or to all constants, changes no probability.
    This takes from each column its off-diagonal mean; so a temperature stays ``I / T``.

    Examples
    --------
    >>> normal_form(np.array([[2.0, 1.0, 3.0], [1.0, 2.0, 1.0]])).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]]
    """
    classes, out = len(theta), theta.copy()
    out[:, -1] -= out[:, -1].mean()
    if theta.shape[1] == classes + 1:
        slopes = out[:, :-1]
        slopes -= (slopes.sum(axis=0) - np.diagonal(slopes)) / (classes - 1)
    return out


def projected(theta: Floats) -> Floats:
    """Return the nearest coefficients in normal form: as `normal_form`, with the diagonal left alone."""
    out = normal_form(theta)
    if theta.shape[1] == len(theta) + 1:
        np.fill_diagonal(out, np.diagonal(theta))
    return out


@np.errstate(over="ignore", invalid="ignore")
def minimised(rows: Rows, penalty: Penalty, start: Floats, gauge: Gauge = projected) -> Minimum:
    """Minimise ``sum_r share_r CE(target_r, softmax(predictor_r)) + penalty`` among coefficients of a gauge.

    The objective is convex. A step is kept unless the objective rises steeply after it; then a part is searched for,
    of at least ``log(1 + d) / d`` of it, where d is what all of it moves any predictor by: that never oversteps. Where
    there is no minimum, Newton's steps go on to move some predictor by about 1 a round while what is gained falls by a
    constant factor: so it is told from convergence, which is quadratic.

    Parameters
    ----------
    rows : Rows
        The rows of a segment.
    penalty : Penalty
        Added to the mean loss.
    start : ndarray
        Coefficients of the gauge to begin at.
    gauge : callable
        An orthogonal projection on a subspace of coefficients that holds each map at least once.

    References
    ----------
    Nocedal, J. and Wright, S. J. (2006). Numerical Optimization, 2nd edition, chapter 7.
    https://doi.org/10.1007/978-0-387-40065-5
    """
    chance, theta, before = np.empty((rows.classes, len(rows.label))), start, np.inf
    gradient = gauge(_gradient(rows, penalty, theta, chance))
    for _ in range(_ROUNDS):
        step = _direction(rows, penalty, gauge, chance, gradient)
        decrement = -float((gradient * step).sum())
        slow = _LINEAR * before < decrement < _TAIL and not penalty.strength.all()
        if not np.isfinite(decrement) or (slow and rows.reach(step) > _FAR) or _no_end(rows, penalty, chance):
            break
        if decrement <= _DONE or before / 4.0 < decrement < _NEARLY:
            return Minimum(theta=theta + step, converged=True)
        before = decrement
        theta, gradient = _searched(rows, penalty, gauge, chance, theta, step, decrement)
    return Minimum(theta=theta, converged=False)


def told_apart(rows: Rows) -> bool:
    """Return whether the rows tell all coefficients apart, up to those that make the same map.

    They do not where some log score is a constant or, for full matrices, a linear function of the others; that is so
    with fewer distinct rows than coefficients.
    """
    moments = np.zeros((len(rows.features), len(rows.features)))
    for cut in rows.blocks():
        here = rows.features[:, cut]
        moments += (here * rows.share[cut]) @ here.T
    if rows.diagonal:
        apart, count = np.eye(rows.classes) - 1.0 / rows.classes, rows.classes
        cross = apart * moments[:-1, -1]
        moments = np.block([[apart * moments[:-1, :-1], cross.T], [cross, np.eye(count)]])
    scale = np.sqrt(np.diagonal(moments))
    if (scale == 0.0).any():
        return False
    return bool(np.linalg.eigvalsh(moments / scale / scale[:, None])[0] > _SAME)


def _no_end(rows: Rows, penalty: Penalty, chance: Floats) -> bool:
    """Return whether each row is fitted so well that larger coefficients fit all of them ever better.

    If no coefficients separate the rows, some row has a loss of at least log 2.
    """
    if penalty.strength.any() or rows.smooth.any():
        return False
    with np.errstate(divide="ignore"):
        loss = -np.log(chance[rows.label, np.arange(len(rows.label))])
    return bool(rows.share @ loss < rows.share.min() * np.log(2.0))


def _searched(
    rows: Rows, penalty: Penalty, gauge: Gauge, chance: Floats, base: Floats, step: Floats, decrement: float
) -> tuple[Floats, Floats]:
    """Return the coefficients after a step, or a part of it, and the gradient there; write `chance`."""
    size, low, high, most = 1.0, 0.0, np.inf, _OVER * min(decrement, _LARGE)
    for _ in range(_TRIALS):
        theta = base + size * step
        gradient = gauge(_gradient(rows, penalty, theta, chance))
        slope = float((gradient * step).sum())
        if slope > most:
            high = size
            if size <= low:  # where Newton's direction was not to be had
                low /= _SHORTER
            elif low == 0.0:
                reach = rows.reach(step)
                low = float(np.log1p(reach) / reach)
        elif slope < -_UNDER * decrement and _CLOSE * size < high < np.inf:
            low = size
        else:
            break
        size = float(np.sqrt(low * high)) if high > _CLOSE * low else low
    return theta, gradient


def _gradient(rows: Rows, penalty: Penalty, theta: Floats, chance: Floats) -> Floats:
    """Return the gradient of the objective, and write the probabilities of the classes to `chance`."""
    total = 2.0 * penalty.strength * (theta - penalty.centre)
    for cut in rows.blocks():
        here = rows.predictor(theta, cut)
        here -= here.max(axis=0)
        np.exp(here, out=here)
        here /= here.sum(axis=0)
        chance[:, cut] = here
        share, smooth = rows.share[cut], rows.smooth[cut]
        here *= share
        here -= share * smooth / rows.classes
        here[rows.label[cut], np.arange(here.shape[1])] -= share * (1.0 - smooth)
        total += rows.collected(here, cut)
    return total


def _curved(rows: Rows, penalty: Penalty, chance: Floats, vector: Floats) -> Floats:
    """Return the Hessian of the objective times a vector of coefficients."""
    total = 2.0 * penalty.strength * vector
    for cut in rows.blocks():
        here = rows.predictor(vector, cut)
        here -= np.einsum("ar,ar->r", here, chance[:, cut])
        here *= chance[:, cut]
        here *= rows.share[cut]
        total += rows.collected(here, cut)
    return total


def _direction(rows: Rows, penalty: Penalty, gauge: Gauge, chance: Floats, gradient: Floats) -> Floats:
    """Return Newton's direction, the closer the nearer the minimum, by preconditioned conjugate gradients."""
    inverse = _preconditioner(rows, penalty, chance)

    def eased(vector: Floats) -> Floats:
        return gauge(np.matmul(inverse, vector[:, :, None])[:, :, 0])

    step, residual = np.zeros_like(gradient), -gradient
    direction = easy = eased(residual)
    size = first = float((residual * easy).sum())
    for _ in range(min(2 * gradient.size, _PRODUCTS)):
        if size <= min(_LOOSE**2, first) * first:
            break
        image = gauge(_curved(rows, penalty, chance, direction))
        curvature = float((direction * image).sum())
        if curvature <= 0.0:  # to rounding; then downhill is better than nowhere
            return step if step.any() else direction
        step = step + size / curvature * direction
        residual = residual - size / curvature * image
        easy = eased(residual)
        size, old = float((residual * easy).sum()), size
        direction = easy + size / old * direction
    return step


def _preconditioner(rows: Rows, penalty: Penalty, chance: Floats) -> Floats:
    """Return the inverse of each class's own block of the Hessian."""
    many, width = len(rows.label), penalty.strength.shape[1]
    stride = max(int(many * rows.classes * width**2 / _WORK), 1)
    features, share = rows.features[:, ::stride], rows.share[::stride]
    blocks = np.empty((rows.classes, width, width))
    for number, (own, p) in enumerate(zip(rows.features[:-1, ::stride], chance[:, ::stride], strict=True)):
        here = np.stack([own, np.ones_like(own)]) if rows.diagonal else features
        blocks[number] = (here * (p * (1.0 - p) * share)) @ here.T
    blocks *= stride
    each = np.arange(width)
    blocks[:, each, each] += 2.0 * penalty.strength
    diagonal = blocks[:, each, each]
    blocks[:, each, each] += _JITTER * diagonal + max(_LEAST * float(diagonal.max()), np.finfo(np.float64).tiny)
    return np.linalg.inv(blocks).astype(np.float64, copy=False)
