"""Partial pooling: the coefficients of each segment are shrunk towards what the segments have in common.

Empirical Bayes: the coefficients of the segments are draws from one normal distribution, which is estimated from all
segments. A segment with many rows keeps its own fit, one with few follows the others, and one that has no fit of its
own (one class, separable, one score) has a finite one, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calframe._fitting._bounds import within, without
from calframe._fitting._fitted import Outcome
from calframe._kernels._newton import Prior, Regression, derivatives, maximum_likelihood, solved
from calframe._typing import Bools, Floats, Ints

_START = 0.25  # variance of the coefficients at first, of features with mean 0 and variance 1
_LEAST = 1e-8  # their least variance
_TESTED = 1.6448536269514722  # normal quantile of 95 %: how far chance alone seems to spread the segments
_SAME = 1e-6  # a change of the prior, relative to its spread or to what chance makes of it, that is none
_INNER = 50  # steps on the summaries between two passes over the rows
_ROUNDS = 50  # passes over the rows; 4 to 8 are usual
_COLLINEAR = 1e-12  # what the other features leave of the square of one is rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pooled:
    """Coefficients of each segment, and the normal distribution that they are shrunk to.

    Attributes
    ----------
    values : ndarray of shape (n_features, n_segments)
        The mode of the posterior density within the bounds.
    covariance : ndarray of shape (n_features, n_features, n_segments)
        Of the posterior distribution, given Sigma and whatever the bounds: ``V + V P C P V`` with
        ``V = (H + P)^-1``, H the Fisher information at the values, ``P = Sigma^-1``, and ``C = (sum H V P)^-1``, the
        variance of the estimated mu.
    outcome : ndarray of int64, shape (n_segments,)
        `Outcome`: FINE, or BOUND where a value is at its bound. Where all rows together have no finite fit, that of
        all rows for every segment, and everything else is NaN.
    mean : ndarray of shape (n_features,)
        The mean of the prior; it may lie below a bound.
    spread : ndarray of shape (n_features, n_features)
        The covariance Sigma of the prior.
    detectable : ndarray of shape (n_features,)
        The standard deviation between segments that chance alone seldom (one time in twenty) makes the data show.
    complete : ndarray of shape (n_features,)
        Complete pooling: the fit of all rows as one segment, within the bounds.
    rounds : int
        Passes of the prior over the rows.
    """

    values: Floats
    covariance: Floats
    outcome: Ints
    mean: Floats
    spread: Floats
    detectable: Floats
    complete: Floats
    rounds: int

    @property
    def standard_deviation(self) -> Floats:
        """The posterior standard deviation of each value, shape (n_features, n_segments)."""
        variance: Floats = np.einsum("jjs->js", self.covariance)
        return np.sqrt(variance)

    @property
    def no_spread(self) -> Bools:
        """Which coefficients differ between segments by no more than chance makes them, shape (n_features,)."""
        return np.asarray(np.sqrt(np.diag(self.spread)) < self.detectable)


def pooled(regression: Regression, *, lower: Floats | None = None) -> Pooled:
    """Fit each segment with a normal prior that is estimated from all segments.

    With ``theta_g ~ N(mu, Sigma)`` the coefficients of segment g are those of largest posterior density, and mu and
    Sigma those of largest marginal likelihood, the log likelihood of a segment being replaced by its second-order
    expansion there (Laplace): with Fisher information H and ``b = H theta + Sigma^-1 (theta - mu)`` the posterior has
    covariance ``V = (H + Sigma^-1)^-1`` and mean ``m = V (b + Sigma^-1 mu)``, and at the maximum
    ``mu = mean m`` and ``Sigma = mean ((m - mu) (m - mu)' + V)``. Each segment counts the same in these means. Passes
    over the rows alternate with steps of the EM algorithm on b and H alone, its parameter-expanded form, which is
    fast for a small spread as well.

    The iteration works on features with mean 0, variance 1 and no correlation over all rows, where Sigma starts as
    0.25 times the identity and has eigenvalues of at least 1e-8. So the prior is the same, whatever linear
    combinations of features it is written in, and coefficients of features as collinear as those of the beta map have
    the correlations that the data tell.

    Weights are counts of rows: twice the weights is twice the rows, and less shrinkage.

    Parameters
    ----------
    regression : Regression
        The first feature rises with the score. A constant, if there is one, is the last.
    lower : ndarray of shape (n_features,), optional
        Least values of the coefficients, -inf where there is none. Where the mode lies below, it is the mode within
        the bounds. The prior itself is estimated without them; but a coefficient whose mean lies below its bound with
        no detectable spread is at its bound in all segments.

    References
    ----------
    Morris, C. N. (1983). Parametric empirical Bayes inference: theory and applications. Journal of the American
    Statistical Association 78, 47-55. https://doi.org/10.1080/01621459.1983.10477920
    Liu, C., Rubin, D. B. and Wu, Y. N. (1998). Parameter expansion to accelerate EM: the PX-EM algorithm. Biometrika
    85, 755-770. https://doi.org/10.1093/biomet/85.4.755

    Examples
    --------
    Five segments with ten rows of each class or nearly so, and one with two positives only: it follows the others.

    >>> positive, rows = np.array([5.0, 4.0, 6.0, 5.0, 5.0, 2.0]), np.array([10.0, 10.0, 10.0, 10.0, 10.0, 2.0])
    >>> counts = Regression(starts=np.arange(6), positive=positive, negative=rows - positive, features=(None,))
    >>> fit = pooled(counts)
    >>> bool(fit.no_spread[0]), bool(np.abs(fit.values[0] - fit.complete[0]).max() < 0.05)
    (True, True)
    """
    bounds = np.full(len(regression.features), -np.inf) if lower is None else np.asarray(lower, dtype=np.float64)
    outcome, flat, back = _together(regression)
    if outcome != Outcome.FINE:
        return _none(regression, outcome)
    complete, _ = maximum_likelihood(_as_one(flat))
    if not np.isfinite(complete).all():  # separable along another direction than the first feature
        return _none(regression, Outcome.SEPARABLE)
    found = _estimated(flat, back, complete)
    values = within(regression, found.values, bounds, found.prior)
    at_bound = (values == bounds[:, None]).any(axis=0)
    fit = Pooled(
        values=values,
        covariance=_covariance(flat, back, values, found),
        outcome=np.where(at_bound, Outcome.BOUND, Outcome.FINE).astype(np.int64),
        mean=found.prior.mean,
        spread=found.spread,
        detectable=found.detectable,
        complete=within(_as_one(regression), back @ complete, bounds, None)[:, 0],
        rounds=found.rounds,
    )
    fixed = (fit.mean < bounds) & fit.no_spread
    return _at_bound(regression, fit, bounds, fixed) if fixed.any() else fit


def _at_bound(regression: Regression, found: Pooled, lower: Floats, fixed: Bools) -> Pooled:
    """Pool again, with one coefficient at its bound in all segments: one that complete pooling has there, if any."""
    there = fixed & (found.complete == lower)
    j = int(np.argmax(there if there.any() else fixed))
    if len(lower) == 1:
        same = np.zeros_like(found.covariance)
        values, outcome = np.full_like(found.values, lower[0]), np.full_like(found.outcome, Outcome.BOUND)
        return replace(found, values=values, covariance=same, outcome=outcome, mean=lower, spread=same[..., 0])
    rest = with_known(pooled(without(regression, j, float(lower[j])), lower=np.delete(lower, j)), j, float(lower[j]))
    return replace(
        rest,
        outcome=np.full_like(rest.outcome, Outcome.BOUND),
        complete=found.complete,
        rounds=found.rounds + rest.rounds,
    )


def with_known(fit: Pooled, feature: int, value: float) -> Pooled:
    """Return the fit with a coefficient more, which has one known value in all segments."""

    def wider(matrix: Floats) -> Floats:
        return np.insert(np.insert(matrix, feature, 0.0, axis=0), feature, 0.0, axis=1)

    return replace(
        fit,
        values=np.insert(fit.values, feature, value, axis=0),
        covariance=wider(fit.covariance),
        mean=np.insert(fit.mean, feature, value),
        spread=wider(fit.spread),
        detectable=np.insert(fit.detectable, feature, np.inf),
        complete=np.insert(fit.complete, feature, value),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Estimate:
    """The unbounded modes, and the prior that they were found with."""

    values: Floats
    prior: Prior
    spread: Floats
    detectable: Floats
    rounds: int


def _estimated(regression: Regression, back: Floats, complete: Floats) -> _Estimate:
    """Return prior and unbounded modes, found with features that are not correlated and written in the given ones."""
    size, many, forth = len(back), len(regression.starts), _inverted(back)
    mean, spread = complete[:, 0], _START * np.eye(size)
    theta, rounds, change = np.repeat(complete, many, axis=1), 0, np.inf
    while rounds < _ROUNDS:
        rounds += 1
        prior = Prior(mean=mean, precision=_inverted(spread))
        theta, information = maximum_likelihood(regression, start=theta, prior=prior)
        linear = np.einsum("ijs,js->is", information, theta) + prior.precision @ (theta - mean[:, None])
        scale = _chance(information)
        before = mean, spread
        for _ in range(_INNER):
            new = _expanded_step(linear, information, mean, spread)
            change, (mean, spread) = _change((mean, spread), new, scale), new
            if change <= _SAME:
                break
        if _change(before, (mean, spread), scale) <= _SAME:
            break
        theta = _posterior_mean(linear, information, mean, _inverted(spread))[0]
    raw = np.einsum("ji,jks,kl->ils", forth, information, forth)
    return _Estimate(
        values=back @ theta,
        prior=Prior(mean=back @ before[0], precision=forth.T @ prior.precision @ forth),
        spread=back @ before[1] @ back.T,
        detectable=np.sqrt(_chance(raw)),
        rounds=rounds,
    )


def _covariance(regression: Regression, back: Floats, values: Floats, found: _Estimate) -> Floats:
    """Return the posterior covariance of the values; see `Pooled`. The regression is on uncorrelated features."""
    _, information = derivatives(regression, _inverted(back) @ values)
    precision = back.T @ found.prior.precision @ back
    inner = _inverse(information + precision[..., None])
    follows = np.einsum("ijs,jk->iks", inner, precision)
    known = np.einsum("ijs,jks->ik", information, follows)
    total = inner + np.einsum("ijs,jk,lks->ils", follows, _inverted(known), follows)
    out: Floats = np.einsum("ij,jks,lk->ils", back, total, back)
    return out


def _expanded_step(linear: Floats, information: Floats, mean: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Return the next mean and covariance of the prior, by a step of the parameter-expanded EM algorithm.

    With ``theta = mu + A u`` and ``u ~ N(0, Sigma)``, mu and A are those that maximise the expected log likelihood,
    Sigma is the mean second moment of u, and ``A Sigma A'`` the next covariance.
    """
    size = len(mean)
    posterior, covariance = _posterior_mean(linear, information, mean, _inverted(spread))
    shift = posterior - mean[:, None]
    known = np.concatenate([np.ones((1, shift.shape[1])), shift])
    second = known[:, None] * known
    second[1:, 1:] += covariance
    wide, many = size + 1, shift.shape[1]
    system = information.reshape(-1, many) @ second.reshape(-1, many).T
    system = system.reshape(size, size, wide, wide).transpose(0, 2, 1, 3).reshape(size * wide, -1)
    best = np.linalg.solve(system, (linear @ known.T).ravel()).reshape(size, wide)
    found = best[:, 1:] @ second[1:, 1:].mean(axis=2) @ best[:, 1:].T
    values, vectors = np.linalg.eigh((found + found.T) / 2.0)
    least = _LEAST * max(1.0, float(values[-1]))  # also relative: its inverse is to be one in floating point
    return best[:, 0], (vectors * np.maximum(values, least)) @ vectors.T


def _posterior_mean(linear: Floats, information: Floats, mean: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """Return mean and covariance of the coefficients, from the summaries ``b`` and H of each segment."""
    covariance = _inverse(information + precision[..., None])
    return np.einsum("ijs,js->is", covariance, linear + (precision @ mean)[:, None]), covariance


def _change(before: tuple[Floats, Floats], after: tuple[Floats, Floats], scale: Floats) -> float:
    """Return the largest change of a prior, relative to its spread and to what chance makes of none."""
    width = np.sqrt(np.diag(after[1]) + np.minimum(scale, _START))
    return float(
        max(
            np.abs((after[0] - before[0]) / width).max(),
            np.abs((after[1] - before[1]) / width / width[:, None]).max(),
        )
    )


def _chance(information: Floats) -> Floats:
    """Return the variance between segments that chance seldom exceeds where there is none.

    With h the information on a coefficient, the others being unknown, a segment's fit has variance 1 / h, and the
    weighted estimate of the variance between segments has, where it is 0, the standard error ``sqrt(2 / sum h^2)``.
    """
    variance: Floats = np.einsum("jjs->js", _inverse(information))
    squares = np.nan_to_num(1.0 / variance, nan=0.0, posinf=0.0) ** 2
    with np.errstate(divide="ignore"):
        return np.asarray(_TESTED * np.sqrt(2.0 / squares.sum(axis=1)))


def _inverse(matrix: Floats) -> Floats:
    """Return the inverse of each positive definite matrix; NaN where it is singular."""
    size, many = matrix.shape[1:]
    return solved(matrix, np.repeat(np.eye(size)[:, :, None], many, axis=2))


def _inverted(matrix: Floats) -> Floats:
    """Return the inverse of one matrix."""
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _as_one(regression: Regression) -> Regression:
    """Return the regression of all rows as one segment."""
    return replace(regression, starts=np.array([0]))


def _none(regression: Regression, outcome: Outcome) -> Pooled:
    """Return that all rows together have no finite fit."""
    size, many = len(regression.features), len(regression.starts)
    one = np.full(size, np.nan)
    return Pooled(
        values=np.full((size, many), np.nan),
        covariance=np.full((size, size, many), np.nan),
        outcome=np.full(many, outcome, dtype=np.int64),
        mean=one,
        spread=np.full((size, size), np.nan),
        detectable=one,
        complete=one,
        rounds=0,
    )


def _together(regression: Regression) -> tuple[Outcome, Regression, Floats]:
    """Return whether all rows together have a fit, and uncorrelated features ``X B`` with the matrix B."""
    outcome = _outcome(regression)
    columns: list[Floats | None] = list(regression.features)
    back = np.eye(len(columns))
    weight = regression.positive + regression.negative
    weight = weight / weight.sum()
    for j in reversed(range(len(columns) if outcome == Outcome.FINE else 0)):
        x = columns[j]
        if x is None:
            continue
        before = _product(weight, x, x)
        for k in range(len(columns) - 1, j, -1):
            other = columns[k]
            share = _product(weight, x, other)
            x = x - (share if other is None else share * other)
            back[:, j] -= share * back[:, k]
        length = _product(weight, x, x)
        if not length > _COLLINEAR * before:
            return Outcome.ONE_SCORE, regression, back
        columns[j] = x / np.sqrt(length)
        back[:, j] /= np.sqrt(length)
    return outcome, replace(regression, features=tuple(columns)), back


def _product(weight: Floats, x: Floats, y: Floats | None) -> float:
    """Return ``sum w x y``."""
    return float((weight * x).sum() if y is None else (weight * x * y).sum())


def _outcome(regression: Regression) -> Outcome:
    """Return whether all rows together have a finite fit, as far as the first feature tells."""
    yes, no = regression.positive > 0, regression.negative > 0
    x = regression.features[0]
    if not (yes.any() and no.any()):
        return Outcome.ONE_CLASS
    if x is None:
        return Outcome.FINE
    if x.min() == x.max():
        return Outcome.ONE_SCORE
    least, most = ([float(f(x[yes])), float(f(x[no]))] for f in (np.min, np.max))
    if regression.features[-1] is not None:  # without a constant only 0 can lie between the classes
        least, most = [min(low, 0.0) for low in least], [max(high, 0.0) for high in most]
    return Outcome.SEPARABLE if most[1] <= least[0] or most[0] <= least[1] else Outcome.FINE
