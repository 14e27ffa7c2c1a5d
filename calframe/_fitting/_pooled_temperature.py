"""Partial pooling of the temperature of several classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calframe._fitting._cooling import Cooling, cooling_of
from calframe._fitting._empirical_bayes import counted_share, estimated
from calframe._fitting._fitted import Outcome
from calframe._fitting._log_scores import smooth_shares
from calframe._fitting._pooling import Pooled, all_held, none_pooled, shrunk, unit_weights
from calframe._fitting._softmax import FLATTEST
from calframe._kernels._binned import sizes_of
from calframe._kernels._logistic import FLOOR
from calframe._kernels._newton import Prior
from calframe._kernels._vectors import Vectors
from calframe._typing import Bools, Floats, Ints

_LOWER = np.array([1.0 / FLATTEST])
_FLAT = Prior(mean=np.zeros(1), precision=np.zeros((1, 1)))  # none
_GAINS = 1.5  # full steps that move no log score further always gain: exp(u) - 1 - u < u^2
_DONE = 1e-7  # no log score moved further in the last step: by quadratic convergence all are exact to rounding
_ROUNDS = 200  # 4 to 10 are usual
_SHRINK = 0.75  # unfinished segments are moved together when no more than this share of the rows is theirs


def pooled_temperature(
    vectors: Vectors, *, is_logit: bool = False, floor: float = FLOOR, smoothing: bool | float = False
) -> Pooled:
    """Fit ``softmax(b_g z)`` in each segment, with ``b_g ~ N(mu, sigma^2)`` and mu and sigma from all segments.

    The values are the inverse temperatures ``b = 1 / T``, at least 1/1000. All is as in
    `calframe._fitting._pooling.pooled`, with z scaled so that, centred in each row, it has the mean square 1/4: then
    two classes give what the logit as the one feature gives there.

    Parameters
    ----------
    vectors, is_logit, floor, smoothing
        As in `calframe._fitting._softmax.temperature`.

    Returns
    -------
    Pooled
        Of one value a segment. Where all rows together have no finite fit, NaN, and the outcome of all: SEPARABLE, each
        row gives no class more than the one that happened, or none less; ONE_SCORE, it gives all the same.

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks. ICML 2017.
    https://doi.org/10.48550/arXiv.1706.04599
    Morris, C. N. (1983). Parametric empirical Bayes inference: theory and applications. Journal of the American
    Statistical Association 78, 47-55. https://doi.org/10.1080/01621459.1983.10477920

    Examples
    --------
    Of four rows at (0.8, 0.1, 0.1) two are of the first class in five segments, and all four in the sixth. Alone those
    have T = 3 and T = 0. But segments of four rows may differ so much by chance: all have that of 14 in 24 rows,
    ``T = ln 8 / ln 2.8``.

    >>> rows = Vectors(
    ...     starts=np.arange(0, 24, 4),
    ...     scores=np.array([[0.8, 0.1, 0.1]] * 24, order="F"),
    ...     label=np.array([0, 0, 1, 2] * 5 + [0] * 4),
    ...     weight=np.ones(24),
    ...     squared=np.ones(24),
    ... )
    >>> (1.0 / pooled_temperature(rows).values[0]).round(2)
    array([2.02, 2.02, 2.02, 2.02, 2.02, 2.02])
    """
    smooth = smooth_shares(vectors, smoothing=smoothing)
    cooling, unit = cooling_of(vectors, smooth, is_logit=is_logit, floor=floor)
    outcome = _outcome(cooling)
    if outcome != Outcome.FINE:
        return none_pooled(len(unit), 1, outcome)
    family = _Coolings(cooling=cooling, unit=unit)
    scale = 0.5 / family.root_mean_square()  # of a mean square of 1/4
    family = replace(family, unit=unit * scale)
    whole, _ = family.as_one().modes(np.zeros((1, 1)), _FLAT)
    if not np.isfinite(whole).all():
        return none_pooled(len(unit), 1, Outcome.SEPARABLE)
    counted = replace(cooling, weight=cooling.weight * counted_share(cooling.weight, cooling.starts))
    family = replace(family, cooling=counted)
    found = estimated(family, whole[:, 0], len(unit))
    complete = np.maximum(scale * whole[:, 0], _LOWER)
    fit = shrunk(family, found, np.array([[scale]]), _LOWER, lambda free, _: np.maximum(free, _LOWER), complete)
    return all_held(fit, _LOWER) if fit.no_spread[0] and fit.mean[0] < _LOWER[0] else fit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Coolings:
    """Rows as a `Family` of one coefficient, which times the unit of a segment is the 1 / T of its `Cooling`."""

    cooling: Cooling
    unit: Floats

    @property
    def sizes(self) -> Ints:
        """The number of rows of each segment."""
        return sizes_of(self.cooling.starts, len(self.cooling.weight))

    def root_mean_square(self) -> float:
        """Return that of the log scores times their units, centred in each row."""
        rows = self.cooling.z.std(axis=0) * np.repeat(self.unit, self.sizes)
        return float(np.sqrt((unit_weights(self.cooling.weight) * rows**2).sum()))

    def as_one(self) -> Self:
        """Return all rows as one segment."""
        largest = self.unit.max()
        share = np.repeat(self.unit / largest, self.sizes)
        one = self.cooling
        whole = Cooling(starts=np.zeros(1, np.int64), z=one.z * share, target=one.target * share, weight=one.weight)
        return type(self)(cooling=whole, unit=np.array([largest]))

    def modes(self, start: Floats, prior: Prior) -> tuple[Floats, Floats]:
        """Return the modes: Newton's iteration, with steps that never overstep where they are not known to gain."""
        found = np.full((2, start.shape[1]), np.nan)
        here, left, theta = self, np.arange(start.shape[1]), start[0]
        for _ in range(_ROUNDS):
            slope, curvature = here.derivatives(theta)
            slope, total = (each[0] for each in prior.added(theta[None], slope[None], curvature[None, None]))
            step = slope / total[0]
            reach = np.abs(step) * here.unit
            theta = theta + step * np.where(reach > _GAINS, np.log1p(reach) / np.maximum(reach, _GAINS), 1.0)
            found[:, left] = theta, curvature
            more = reach > _DONE
            if not more.any():
                break
            if here.sizes[more].sum() <= _SHRINK * len(here.cooling.weight):
                here, left, theta = here.only(more), left[more], theta[more]
        return found[:1], found[1:, None]

    def information(self, theta: Floats) -> Floats:
        """Return minus the second derivatives of the log likelihood."""
        return self.derivatives(theta[0])[1][None, None]

    def derivatives(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the first derivative of the log likelihood, and minus the second."""
        slope, curvature = self.cooling.derivatives(theta * self.unit)
        return -slope * self.unit, np.maximum(curvature, 0.0) * self.unit**2

    def only(self, keep: Bools) -> Self:
        """Return some of the segments."""
        return type(self)(cooling=self.cooling.only(keep), unit=self.unit[keep])


def _outcome(cooling: Cooling) -> Outcome:
    """Return whether all rows together have a finite fit, of 1 / T of either sign."""
    lowest = cooling.z.min(axis=0)
    if (lowest == 0.0).all():
        return Outcome.ONE_SCORE
    one_sided = (cooling.target == 0.0).all() or (cooling.target == lowest).all()
    return Outcome.SEPARABLE if one_sided else Outcome.FINE
