"""The normal distribution that the coefficients of all segments are drawn from, by a Laplace EM algorithm.

It knows no likelihood: a `Family` gives the mode of each segment under a prior, and the information on it. All
iterations are written in coordinates where the prior is standard normal, so that no weight and no spread overflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calframe._kernels._binned import segment_sum, spread
from calframe._kernels._newton import Prior, inverses
from calframe._typing import Floats, Ints

SUREST = 1e12  # a segment of more weight counts as one of this: its values are known to 1e-6 or better
_START = 0.25  # variance of the coefficients at first, of features with mean 0 and variance 1
_LEAST, _MOST = 1e-8, 1e8  # their least and largest variance
_QUANTILE = 1.6448536269514722  # normal quantile of 95 %: how far chance alone seems to spread the segments
_SAME = 1e-6  # a change of the prior, relative to its spread or to what chance makes of it, that is none
_INNER = 50  # steps on the summaries between two passes over the rows
_ROUNDS = 50  # passes over the rows; 4 to 8 are usual
_GROWTH = 16.0  # what a variance grows by at most between two passes: an expansion holds near its point
_FAR = 16.0  # how far the mean moves at most between two passes, in standard deviations
_KNOWN = 1e10  # information, beside a prior's of 1, beyond which more makes no difference
_ROUNDING = 1e-15  # what is less, relatively, is rounding
_NOTHING = 1e-200  # so that there is something to divide by
_DAMPED = 1e-12  # what the steps are held back by, relatively: where nothing is known they stay


class Family(Protocol):
    """Segments with a log likelihood each, of coefficients of the same meaning."""

    def modes(self, start: Floats, prior: Prior) -> tuple[Floats, Floats]:
        """Return the coefficients of largest posterior density, all finite, and their Fisher information.

        Shapes are (n_features, n_segments) and (n_features, n_features, n_segments).
        """

    def information(self, theta: Floats) -> Floats:
        """Return the Fisher information at some coefficients."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """The modes of all segments, and the prior that they were found with.

    Attributes
    ----------
    values : ndarray of shape (n_features, n_segments)
        The modes.
    information : ndarray of shape (n_features, n_features, n_segments)
        The Fisher information there.
    mean : ndarray of shape (n_features,)
        The mean of the prior.
    spread : ndarray of shape (n_features, n_features)
        Its covariance.
    rounds : int
        Passes over the rows.
    """

    values: Floats
    information: Floats
    mean: Floats
    spread: Floats
    rounds: int


def estimated(family: Family, complete: Floats, segments: int) -> Estimate:
    """Return the prior of largest marginal likelihood, and the modes with it.

    Passes over the rows alternate with steps of the parameter-expanded EM algorithm on the second-order expansion of
    each log likelihood. Between two passes no variance grows more than sixteenfold, and no mean moves by more than 16
    standard deviations.

    Parameters
    ----------
    family : Family
        Of coefficients of features whose mean square is about 1.
    complete : ndarray of shape (n_features,)
        The fit of all rows as one segment, where the mean begins.
    segments : int
        How many there are.
    """
    mean, covariance = complete, _START * np.eye(len(complete))
    theta, rounds = np.repeat(complete[:, None], segments, axis=1), 0
    while True:
        rounds += 1
        prior = Prior(mean=mean, precision=np.asarray(np.linalg.inv(covariance)))
        theta, information = family.modes(theta, prior)
        linear = np.einsum("ijs,js->is", information, theta) + prior.precision @ (theta - mean[:, None])
        before, scale = (mean, covariance), detectable_variance(information)
        mean, covariance = _settled(linear, information, before, scale)
        if rounds == _ROUNDS or _change(before, (mean, covariance), scale) <= _SAME:
            return Estimate(values=theta, information=information, mean=before[0], spread=before[1], rounds=rounds)
        root = _root(covariance)
        theta = mean[:, None] + root @ _posterior(linear, information, mean, root)[0]


def posterior_covariance(information: Floats, covariance: Floats) -> Floats:
    """Return ``V + V P C P V`` of each segment, P being the inverse of the covariance; see `Pooled`."""
    root = _root(covariance)
    nothing = np.zeros(information.shape[1:])
    _, given, inner, _ = _posterior(nothing, information, np.zeros(len(root)), root)
    values, vectors = np.linalg.eigh(_symmetric(np.einsum("ijs,jks->ik", inner, given)))
    least = max(_ROUNDING * float(values[-1]), _NOTHING)
    of_mean = (vectors / np.maximum(values, least)) @ vectors.T
    total = given + np.einsum("ijs,jk,kls->ils", given, of_mean, given)
    return congruent(root.T, total)


def detectable_variance(information: Floats) -> Floats:
    """Return the variance between segments that chance seldom exceeds where there is none.

    With h the information on a coefficient, the others being unknown, a segment's fit has variance 1 / h, and the
    weighted estimate of the variance between segments has, where it is 0, the standard error ``sqrt(2 / sum h^2)``.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        variance: Floats = np.einsum("jjs->js", inverses(information))
        squares = np.nan_to_num(1.0 / variance, nan=0.0, posinf=0.0) ** 2
        return np.asarray(_QUANTILE * np.sqrt(2.0 / squares.sum(axis=1)))


def congruent(root: Floats, matrix: Floats) -> Floats:
    """Return ``L' M L`` of each symmetric matrix M."""
    half = np.tensordot(root, matrix, axes=(0, 0))
    return np.asarray(np.tensordot(root, half, axes=(0, 1)), dtype=np.float64)


def counted_share(weight: Floats, starts: Ints) -> Floats:
    """Return, for each row, the share of its weight that counts: so much that no segment has more than `SUREST`."""
    total = segment_sum(weight, starts)
    return spread(SUREST / np.maximum(total, SUREST), starts, len(weight))


def _settled(
    linear: Floats, information: Floats, before: tuple[Floats, Floats], scale: Floats
) -> tuple[Floats, Floats]:
    """Return mean and covariance of the prior after steps on the summaries ``b`` and H of each segment."""
    found, root = before, np.linalg.inv(_root(before[1]))
    for _ in range(_INNER):
        new = _expanded_step(linear, information, *found)
        growth = float(np.linalg.eigvalsh(_symmetric(root @ new[1] @ root.T))[-1])
        part = min((_GROWTH - 1.0) / max(growth - 1.0, _NOTHING), _FAR / max(_moved(before, new, scale), _NOTHING))
        if part < 1.0:
            return before[0] + part * (new[0] - before[0]), before[1] + part * (new[1] - before[1])
        found, change = new, _change(found, new, scale)
        if change <= _SAME:
            break
    return found


def _expanded_step(linear: Floats, information: Floats, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Return the next mean and covariance of the prior, by a step of the parameter-expanded EM algorithm.

    With ``theta = mu + L (m + A u)``, L a root of the covariance and ``u ~ N(nu, S)``, m and A are those that maximise
    the expected log likelihood, nu and S the mean of u and its covariance. So the next mean is ``mu + L (m + A nu)``
    and the next covariance ``L A S A' L'``. m and A are held back towards 0 and I, by which the likelihood still rises.
    """
    size, root = len(mean), _root(covariance)
    shift, given, inner, right = _posterior(linear, information, mean, root)
    known = np.concatenate([np.ones((1, shift.shape[1])), shift])
    second = known[:, None] * known
    second[1:, 1:] += given
    wide, many = size + 1, shift.shape[1]
    system = inner.reshape(-1, many) @ second.reshape(-1, many).T
    system = system.reshape(size, size, wide, wide).transpose(0, 2, 1, 3).reshape(size * wide, -1)
    held = _DAMPED * np.diag(system) + _NOTHING
    stay = np.eye(size, wide, 1).ravel()
    best = np.linalg.solve(system + np.diag(held), (right @ known.T).ravel() + held * stay).reshape(size, wide)
    centre, bent = shift.mean(axis=1), root @ best[:, 1:]
    moment = second[1:, 1:].mean(axis=2) - centre[:, None] * centre
    values, vectors = np.linalg.eigh(_symmetric(bent @ moment @ bent.T))
    least = _LEAST * np.clip(values[-1], 1.0, _MOST)  # also relative: its inverse is to be one in floating point
    return mean + root @ best[:, 0] + bent @ centre, (vectors * np.clip(values, least, _MOST)) @ vectors.T


def _posterior(
    linear: Floats, information: Floats, mean: Floats, root: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean and covariance of the coefficients, and the information and its linear term that they come from.

    All where the prior is standard normal. A segment of more information than `_KNOWN` has it reduced to that, its own
    estimate staying what it is: so no sum is lost in rounding beside it.
    """
    inner = congruent(root, information)
    right = root.T @ (linear - np.einsum("ijs,j->is", information, mean))
    share = _KNOWN / np.maximum(np.einsum("iis->s", inner), _KNOWN)
    inner, right = inner * share, right * share
    given = inverses(inner + np.eye(len(mean))[..., None])
    return np.einsum("ijs,js->is", given, right), given, inner, right


def _change(before: tuple[Floats, Floats], after: tuple[Floats, Floats], scale: Floats) -> float:
    """Return the largest change of a prior, relative to its spread and to what chance makes of none."""
    width = _width(after, scale)
    return max(_moved(before, after, scale), float(np.abs((after[1] - before[1]) / width / width[:, None]).max()))


def _moved(before: tuple[Floats, Floats], after: tuple[Floats, Floats], scale: Floats) -> float:
    """Return by how many standard deviations the mean of a prior has moved."""
    return float(np.abs((after[0] - before[0]) / _width(after, scale)).max())


def _width(prior: tuple[Floats, Floats], scale: Floats) -> Floats:
    return np.asarray(np.sqrt(np.diag(prior[1]) + np.minimum(scale, _START)))


def _root(covariance: Floats) -> Floats:
    """Return the L with ``L L'`` the covariance."""
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


def _symmetric(matrix: Floats) -> Floats:
    """Return a matrix without what rounding makes of its two halves."""
    return (matrix + matrix.T) / 2.0
