"""Partial pooling: the coefficients of each segment are shrunk towards what the segments have in common.

Empirical Bayes: the coefficients of the segments are draws from one normal distribution, which is estimated from all
segments. A segment with many rows keeps its own fit, one with few follows the others, and one that has no fit of its
own (one class, separable, one score) has a finite one, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calframe._fitting._bounds import within, without
from calframe._fitting._empirical_bayes import (
    Estimate,
    Family,
    congruent,
    counted_share,
    detectable_variance,
    estimated,
    posterior_covariance,
)
from calframe._fitting._fitted import Outcome
from calframe._kernels._newton import Prior, Regression, derivatives, maximum_likelihood
from calframe._typing import Bools, Floats, Ints

_COLLINEAR = 1e-12  # what the other features leave of the square of one is rounding
_LIGHTEST = 1e-4  # of the largest weight, in the mean squares that features are scaled by: else one row might be all


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
        return none_pooled(len(regression.starts), len(bounds), outcome)
    complete, _ = maximum_likelihood(_as_one(flat))
    one_map = within(_as_one(regression), back @ complete, bounds, None)[:, 0]
    if not np.isfinite(one_map).all():  # separable along another direction than the first feature
        return none_pooled(len(regression.starts), len(bounds), Outcome.SEPARABLE)
    counted, family = _counted(regression), _Regressions(regression=_counted(flat), complete=complete[:, 0])

    def bounded(free: Floats, prior: Prior) -> Floats:
        values = within(counted, free, bounds, prior)
        return np.where(_lost(values), np.maximum(free, bounds[:, None]), values)

    found = estimated(family, complete[:, 0], len(regression.starts))
    fit = shrunk(family, found, back, bounds, bounded, one_map)
    fixed = (fit.mean < bounds) & fit.no_spread
    return _at_bound(regression, fit, bounds, fixed) if fixed.any() else fit


def shrunk(
    family: Family,
    found: Estimate,
    back: Floats,
    lower: Floats,
    bounded: Callable[[Floats, Prior], Floats],
    complete: Floats,
) -> Pooled:
    """Return the coefficients of what was found, within their bounds.

    Parameters
    ----------
    family, found
        Segments, and the prior and modes of theirs.
    back : ndarray of shape (n_features, n_features)
        What makes coefficients of the family's.
    lower : ndarray of shape (n_features,)
        The least coefficients.
    bounded : callable
        Of the modes and the prior: the modes that are not below.
    complete : ndarray of shape (n_features,)
        Complete pooling.
    """
    forth = np.asarray(np.linalg.inv(back), dtype=np.float64)
    prior = Prior(mean=back @ found.mean, precision=forth.T @ np.linalg.inv(found.spread) @ forth)
    values = bounded(back @ found.values, prior)
    covariance = posterior_covariance(family.information(forth @ values), found.spread)
    at_bound = (values == lower[:, None]).any(axis=0)
    fit = Pooled(
        values=values,
        covariance=congruent(back.T, covariance),
        outcome=np.where(at_bound, Outcome.BOUND, Outcome.FINE).astype(np.int64),
        mean=prior.mean,
        spread=back @ found.spread @ back.T,
        detectable=np.sqrt(detectable_variance(congruent(forth, found.information))),
        complete=complete,
        rounds=found.rounds,
    )
    parts = (fit.values, fit.covariance, fit.mean, fit.spread)
    known = all(bool(np.isfinite(part).all()) for part in parts)
    return fit if known else none_pooled(values.shape[1], len(lower), Outcome.SEPARABLE)


def _counted(regression: Regression) -> Regression:
    """Return the regressions with weights that count; see `counted_share`."""
    share = counted_share(regression.positive + regression.negative, regression.starts)
    if (share == 1.0).all():
        return regression
    return replace(regression, positive=share * regression.positive, negative=share * regression.negative)


def _at_bound(regression: Regression, found: Pooled, lower: Floats, fixed: Bools) -> Pooled:
    """Pool again, with one coefficient at its bound in all segments: one that complete pooling has there, if any."""
    there = fixed & (found.complete == lower)
    j = int(np.argmax(there if there.any() else fixed))
    if len(lower) == 1:
        return all_held(found, lower)
    rest = with_known(pooled(without(regression, j, float(lower[j])), lower=np.delete(lower, j)), j, float(lower[j]))
    return replace(
        rest,
        outcome=np.full_like(rest.outcome, Outcome.BOUND),
        complete=found.complete,
        rounds=found.rounds + rest.rounds,
    )


def all_held(found: Pooled, lower: Floats) -> Pooled:
    """Return the fit with its one coefficient at its bound in all segments."""
    same = np.zeros_like(found.covariance)
    values, outcome = np.full_like(found.values, lower[0]), np.full_like(found.outcome, Outcome.BOUND)
    return replace(found, values=values, covariance=same, outcome=outcome, mean=lower, spread=same[..., 0])


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
class _Regressions:
    """Regressions as a `Family`, with the fit of all rows as one."""

    regression: Regression
    complete: Floats

    def modes(self, start: Floats, prior: Prior) -> tuple[Floats, Floats]:
        """Return the modes; a segment whose mode rounding hides says nothing, and has that of the prior."""
        theta, information = maximum_likelihood(self.regression, start=start, prior=prior)
        lost = _lost(theta)
        if lost.any():
            theta[:, lost], information[..., lost] = _found_anew(self.regression.only(lost), self.complete, prior)
        return theta, information

    def information(self, theta: Floats) -> Floats:
        """Return the Fisher information."""
        return derivatives(self.regression, theta)[1]


def _found_anew(regression: Regression, complete: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """Return modes found from another start, with features for which the prior is standard normal."""
    size, many = len(complete), len(regression.starts)
    forth = np.asarray(np.linalg.cholesky(prior.precision), dtype=np.float64).T
    root = np.asarray(np.linalg.inv(forth))
    columns = [np.ones(len(regression.positive)) if x is None else x for x in regression.features]
    features = tuple(np.sum([root[i, j] * columns[i] for i in range(size)], axis=0) for j in range(size))
    standard = Prior(mean=forth @ prior.mean, precision=np.eye(size))
    start = np.repeat((forth @ complete)[:, None], many, axis=1)
    theta, information = maximum_likelihood(replace(regression, features=features), start=start, prior=standard)
    theta, information = root @ theta, congruent(forth, information)
    lost = _lost(theta)
    return np.where(lost, prior.mean[:, None], theta), np.where(lost, 0.0, information)


def _lost(theta: Floats) -> Bools:
    """Return which segments have a coefficient that is no number."""
    return np.asarray(~np.isfinite(theta).all(axis=0))


def _as_one(regression: Regression) -> Regression:
    """Return the regression of all rows as one segment."""
    return replace(regression, starts=np.array([0]))


def none_pooled(many: int, size: int, outcome: Outcome) -> Pooled:
    """Return that all rows together have no finite fit."""
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
    weight = unit_weights(regression.positive + regression.negative)
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


def unit_weights(weight: Floats) -> Floats:
    """Return weights of sum 1, none of which is tiny beside another."""
    raised = np.maximum(weight / weight.max(), _LIGHTEST)
    return np.asarray(raised / raised.sum())


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
