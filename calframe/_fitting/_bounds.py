"""Least values of coefficients: the optimum on the face of the bounds where the unbounded one violates them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calframe._kernels._newton import Prior, Regression, derivatives, maximum_likelihood
from calframe._typing import Floats


def within(regression: Regression, theta: Floats, lower: Floats, prior: Prior | None) -> Floats:
    """Return the coefficients of largest likelihood, or posterior density, that are not below their bounds.

    Of the bounds that the unbounded optimum violates, one at least is active: both functions are concave. So a bound
    is tried after the other, the other coefficients being fitted with that one fixed, and within their own bounds.
    That is the optimum if the gradient along the fixed one does not lead back inside.

    Parameters
    ----------
    regression : Regression
        Any number of features.
    theta : ndarray of shape (n_features, n_segments)
        The unbounded optimum.
    lower : ndarray of shape (n_features,)
        The bounds, -inf where there is none.
    prior : Prior or None
        Of all segments.

    Examples
    --------
    Three of four at feature 0 and one of four at feature 1: the slope would be negative.

    >>> x, four = np.array([0.0, 1.0]), np.array([3.0, 1.0])
    >>> falls = Regression(starts=np.array([0]), positive=four, negative=four[::-1], features=(x, None))
    >>> free, _ = maximum_likelihood(falls)
    >>> free.round(6).tolist(), within(falls, free, np.array([0.0, -np.inf]), None).round(6).tolist()
    ([[-2.197225], [1.098612]], [[0.0], [0.0]])
    """
    below = theta < lower[:, None]
    out, unsettled = theta.copy(), np.asarray(below.any(axis=0))
    for j in range(len(lower)):
        todo = unsettled & below[j]
        if not todo.any():
            continue
        here = regression.only(todo)
        found = _fixed(here, j, lower, prior)
        gradient, information = derivatives(here, found)
        if prior is not None:
            gradient, _ = prior.added(found, gradient, information)
        kept = (gradient[j] <= 0.0) | ~below[j + 1 :, todo].any(axis=0)
        settled = np.flatnonzero(todo)[kept]
        out[:, settled] = found[:, kept]
        unsettled[settled] = False
    return out


def _fixed(regression: Regression, feature: int, lower: Floats, prior: Prior | None) -> Floats:
    """Return the optimum with one coefficient at its bound."""
    if len(lower) == 1:
        return np.full((1, len(regression.starts)), lower[0])
    rest, others = without(regression, feature, float(lower[feature])), np.delete(lower, feature)
    known = None if prior is None else prior.given(feature, float(lower[feature]))
    theta, _ = maximum_likelihood(rest, prior=known)
    return np.insert(within(rest, theta, others, known), feature, lower[feature], axis=0)


def without(regression: Regression, feature: int, value: float) -> Regression:
    """Return the regressions on the other features, the coefficient of one being known."""
    x = regression.features[feature]
    others = regression.features[:feature] + regression.features[feature + 1 :]
    if value == 0.0:
        return replace(regression, features=others)
    shift = np.full(len(regression.positive), value) if x is None else value * x
    return replace(
        regression, features=others, offset=shift if regression.offset is None else regression.offset + shift
    )
