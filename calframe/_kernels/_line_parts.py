"""What single rows add to the logistic regressions on the logit of the score, for variances by clusters of rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import added
from calframe._typing import Floats, Ints


def line_parts(
    z: Floats, label: Floats, weight: Floats, fit: Mapping[str, Floats], segment: Ints, segments: int
) -> dict[str, Floats]:
    """Return what each row adds to `slope`, `intercept` and `citl`: its score, times the inverse information.

    Parameters
    ----------
    z, label, weight : ndarray of shape (n_rows,)
        The logit of each row, its label, 0 or 1, and its weight.
    fit : mapping of str to ndarray
        The three estimates, at each row.
    segment : ndarray of int64, shape (n_rows,)
        The segment of each row, of so many `segments`.

    Examples
    --------
    Four of ten rows at logit 0, six of ten at ln 4: those that happened at logit 0 pull the intercept up.

    >>> z, label = np.repeat([0.0, np.log(4.0)], 10), np.tile(np.arange(10) < 4, 2).astype(float)
    >>> label[14:16] = 1.0
    >>> fit = {"slope": np.full(20, 0.5849625), "intercept": np.full(20, -0.4054651), "citl": np.full(20, -0.6931472)}
    >>> parts = line_parts(z, label, np.ones(20), fit, np.zeros(20, dtype=np.int64), 1)
    >>> [round(float(parts[name][0]), 4) for name in ("slope", "intercept", "citl")]
    [-0.1803, 0.25, 0.15]
    """

    def total(values: Floats) -> Floats:
        return added(segment, values, segments)[segment]

    with np.errstate(invalid="ignore", divide="ignore"):
        chance = special.expit(fit["intercept"] + fit["slope"] * z)
        inner = weight * chance * (1.0 - chance)
        whole = total(inner)
        centre = total(inner * z) / whole
        off = z - centre
        residual = weight * (label - chance)
        slope = residual * off / total(inner * off**2)
        large = special.expit(fit["citl"] + z)
        return {
            "slope": slope,
            "intercept": residual / whole - centre * slope,
            "citl": weight * (label - large) / total(weight * large * (1.0 - large)),
        }
