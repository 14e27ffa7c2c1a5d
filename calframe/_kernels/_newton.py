"""Logistic regressions, those of all segments in one Newton iteration.

One pass over the cells gives the gradient and the Fisher information of every segment, so a round costs one pass
however many segments there are. Segments that are done leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calframe._kernels._binned import segment_max, segment_sum, sizes_of, starts_of
from calframe._typing import Bools, Floats, Ints

_BLOCK = 2**17  # cells of a pass at a time: their temporaries stay in the cache
_FAR = 700.0  # exp() of it is still finite
_FREE = 1.5  # full steps that move no predictor further always gain: exp(u) - 1 - u < u^2
_CUT = 8.0  # what a step that oversteps is divided by
_DONE = 1e-7  # no predictor moved further in the last step: by quadratic convergence all are exact to rounding
_NEARLY = 1e-3  # below, a step that is not half the one before is rounding: no more is to be had
_ROUNDS = 200  # 4 to 10 are usual; nearly separable segments need about one for each unit of their largest predictor
_SINGULAR = 1e-13  # what elimination leaves of a diagonal element is rounding
_SHRINK = 0.75  # unfinished segments are moved together when no more than this share of the cells is theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """Logistic regressions on cells, one a segment: ``logit P(positive) = offset + sum_j theta_j x_j``.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_segments,)
        The first cell of each segment; every segment has a cell.
    positive, negative : ndarray of shape (n_cells,)
        Weight of the positives and of the negatives.
    features : tuple of ndarray or None
        The x_j. None stands for the constant 1, and is cheapest as the last. Centre what lies far from 0.
    offset : ndarray or None
        A known part of the predictor.
    """

    starts: Ints
    positive: Floats
    negative: Floats
    features: tuple[Floats | None, ...]
    offset: Floats | None = None

    @property
    def sizes(self) -> Ints:
        """The number of cells of each segment."""
        return sizes_of(self.starts, len(self.positive))

    def only(self, keep: Bools) -> Self:
        """Return the regressions of some of the segments."""
        if keep.all():
            return self
        sizes = self.sizes
        cells, kept = np.flatnonzero(np.repeat(keep, sizes)), sizes[keep]
        return replace(
            self,
            starts=starts_of(kept),
            positive=self.positive[cells],
            negative=self.negative[cells],
            features=tuple(x if x is None else x[cells] for x in self.features),
            offset=self.offset if self.offset is None else self.offset[cells],
        )

    def blocks(self) -> Iterator[tuple[slice, slice, Ints]]:
        """Give the cells block by block, each with its segments and where they begin in it; long segments are cut."""
        count = len(self.positive)
        for begin in range(0, count, _BLOCK):
            end = min(begin + _BLOCK, count)
            first = int(np.searchsorted(self.starts, begin, side="right")) - 1
            last = int(np.searchsorted(self.starts, end, side="left"))
            yield slice(begin, end), slice(first, last), np.maximum(self.starts[first:last] - begin, 0)

    def chances(self, theta: Floats, cells: slice, segments: slice, begins: Ints) -> tuple[Floats, Floats]:
        """Return the fitted P(positive) and P(negative) in the cells of a block, both to full relative precision."""
        sizes = sizes_of(begins, cells.stop - cells.start)
        terms = [
            _times(np.repeat(value[segments], sizes), x, cells) for value, x in zip(theta, self.features, strict=True)
        ]
        odds = terms[0]
        for term in terms[1:] if self.offset is None else [*terms[1:], self.offset[cells]]:
            odds += term
        np.minimum(odds, _FAR, out=odds)
        np.exp(odds, out=odds)
        no = np.add(odds, 1.0)
        np.divide(1.0, no, out=no)
        odds *= no
        return odds, no


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """A normal distribution of the coefficients, the same for every segment.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Its mean.
    precision : ndarray of shape (n_features, n_features)
        The inverse of its covariance.
    """

    mean: Floats
    precision: Floats

    def added(self, theta: Floats, gradient: Floats, information: Floats) -> tuple[Floats, Floats]:
        """Return both with those of its log density, ``P (mean - theta)`` and P, in each segment."""
        return gradient + self.precision @ (self.mean[:, None] - theta), information + self.precision[..., None]

    def given(self, feature: int, value: float) -> Self:
        """Return the distribution of the other coefficients where one is known."""
        rest = np.delete(self.precision, feature, axis=0)
        inner, outer = np.delete(rest, feature, axis=1), rest[:, feature]
        shift = np.linalg.solve(inner, outer * (value - self.mean[feature]))
        return type(self)(mean=np.delete(self.mean, feature) - shift, precision=inner)


def maximum_likelihood(
    regression: Regression, *, start: Floats | None = None, prior: Prior | None = None
) -> tuple[Floats, Floats]:
    """Return the coefficients of largest likelihood, or of largest posterior density, and their Fisher information.

    Newton's iteration. A step is kept if it cannot have lost: no predictor moved by more than 1.5, or the gradient
    still points along the step. Else it is cut, at most to ``log(1 + d) / d`` of its length, where d bounds what all
    of it moves any predictor by: that never oversteps. So the iteration converges, without a look at the likelihood
    itself, from every start where the information is not singular to rounding.

    Parameters
    ----------
    regression : Regression
        With a finite maximum in every segment: both classes, neither separable nor collinear. With a prior every
        segment has one.
    start : ndarray of shape (n_features, n_segments), default zeros
        Where to begin.
    prior : Prior, optional
        The sum of the log likelihood and its log density is made largest.

    Returns
    -------
    coefficients : ndarray of shape (n_features, n_segments)
        NaN where no finite maximum was reached.
    information : ndarray of shape (n_features, n_features, n_segments)
        ``sum w p (1 - p) x x'``, without the prior; NaN as well.

    References
    ----------
    Sun, T. and Tran-Dinh, Q. (2019). Generalized self-concordant functions: a recipe for Newton-type methods.
    Mathematical Programming 178, 145-213. https://doi.org/10.1007/s10107-018-1282-4

    Examples
    --------
    Three positives and one negative: the constant is ln 3, and its information 4 (3/4) (1/4).

    >>> one = Regression(starts=np.array([0]), positive=np.array([3.0]), negative=np.array([1.0]), features=(None,))
    >>> coefficients, information = maximum_likelihood(one)
    >>> coefficients.round(9), information.round(9)
    (array([[1.09861229]]), array([[[0.75]]]))
    """
    shape = (len(regression.features), len(regression.starts))
    theta = np.zeros(shape) if start is None else start
    found, information = np.full(shape, np.nan), np.full((shape[0], *shape), np.nan)
    left, span, settled = np.arange(shape[1]), _span(regression), np.zeros(shape[1], bool)
    base, step, share, least, reach = theta, np.zeros(shape), *np.ones((2, shape[1])), np.full(shape[1], np.inf)
    with np.errstate(all="ignore"):  # what is not finite comes back as NaN
        for _ in range(_ROUNDS if shape[1] else 0):
            slope, curvature = derivatives(regression, theta)
            gradient, total = (slope, curvature) if prior is None else prior.added(theta, slope, curvature)
            over = (share > least) & ((gradient * step).sum(axis=0) < 0.0)
            base, step = np.where(over, base, theta), np.where(over, step, solved(total, gradient))
            before, reach = reach, (np.abs(step) * span).sum(axis=0)
            least = np.where(reach > _FREE, np.log1p(reach) / reach, 1.0)
            share = np.maximum(np.where(over, share / _CUT, 1.0), least)
            theta = base + share * step
            done = (reach <= _DONE) | ((reach <= _NEARLY) & (reach > before / 2.0))
            known = ~settled & done
            found[:, left[known]], information[..., left[known]] = theta[:, known], curvature[..., known]
            settled |= done | np.isnan(reach)
            if settled.all():
                break
            if regression.sizes[~settled].sum() <= _SHRINK * len(regression.positive):
                more = ~settled
                regression, left, span, settled = regression.only(more), left[more], span[:, more], settled[more]
                theta, base, step, share, least, reach = (
                    v[..., more] for v in (theta, base, step, share, least, reach)
                )
    return found, information


def crossed(regression: Regression, theta: Floats, weigh: Callable[[Floats, Floats, slice], Floats]) -> Floats:
    """Return ``sum v x x'`` of each segment, v being `weigh` of the fitted P(positive), P(negative) and the cells."""
    total = np.zeros((len(theta), *theta.shape))
    for block in regression.blocks():
        _add_crossed(total, regression, weigh(*regression.chances(theta, *block), block[0]), *block)
    return total


def solved(matrix: Floats, right: Floats) -> Floats:
    """Solve symmetric positive definite systems, one a segment; NaN where a matrix is singular to rounding.

    Parameters
    ----------
    matrix : ndarray of shape (n, n, n_segments)
        Only the upper triangle is read.
    right : ndarray of shape (n, n_segments) or (n, m, n_segments)
        Right-hand sides.

    Examples
    --------
    >>> solved(np.array([[[2.0], [1.0]], [[1.0], [3.0]]]), np.array([[5.0], [10.0]])).tolist()
    [[1.0], [3.0]]
    """
    upper, out, size = matrix.copy(), right.astype(np.float64), len(matrix)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for j in range(size):
            upper[j, j] = np.where(upper[j, j] > _SINGULAR * matrix[j, j], upper[j, j], np.nan)
            for i in range(j + 1, size):
                share = upper[j, i] / upper[j, j]
                upper[i, i:] -= share * upper[j, i:]
                out[i] -= share * out[j]
        for j in reversed(range(size)):
            for k in range(j + 1, size):
                out[j] -= upper[j, k] * out[k]
            out[j] /= upper[j, j]
    return out


def inverses(matrix: Floats) -> Floats:
    """Return the inverse of each positive definite matrix; NaN where it is singular."""
    size, many = matrix.shape[1:]
    return solved(matrix, np.repeat(np.eye(size)[:, :, None], many, axis=2))


def derivatives(regression: Regression, theta: Floats) -> tuple[Floats, Floats]:
    """Return the gradient of the log-likelihood and the Fisher information of each segment."""
    gradient, information = np.zeros(theta.shape), np.zeros((len(theta), *theta.shape))
    for block in regression.blocks():
        cells, segments, begins = block
        yes, no = regression.chances(theta, *block)
        positive, negative = regression.positive[cells], regression.negative[cells]
        residual = positive * no
        residual -= negative * yes
        for j, x in enumerate(regression.features):
            gradient[j, segments] += segment_sum(_times(residual, x, cells), begins)
        yes *= no
        yes *= positive + negative
        _add_crossed(information, regression, yes, *block)
    return gradient, information


def _add_crossed(
    total: Floats, regression: Regression, values: Floats, cells: slice, segments: slice, begins: Ints
) -> None:
    """Add ``sum v x x'`` of a block, both triangles."""
    features = regression.features
    for j, x in enumerate(features):
        here = _times(values, x, cells)
        for k in range(j, len(features)):
            total[j, k, segments] += segment_sum(_times(here, features[k], cells), begins)
            total[k, j, segments] = total[j, k, segments]


def _times(values: Floats, x: Floats | None, cells: slice) -> Floats:
    return values if x is None else values * x[cells]


def _span(regression: Regression) -> Floats:
    """Return the largest absolute value of each feature in each segment."""
    starts = regression.starts
    ones = np.ones(len(starts))
    return np.array([ones if x is None else segment_max(np.abs(x), starts) for x in regression.features])
