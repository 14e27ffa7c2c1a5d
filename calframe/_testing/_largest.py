"""The largest statistic of all segments together, as a correction for their number."""

from __future__ import annotations

import numpy as np

from calframe._testing._draws import Side
from calframe._testing._found import Found
from calframe._typing import Floats


def adjusted_by_largest(found: Found, *, side: Side) -> Floats:
    """Return p-values adjusted over segments: how often the largest standardised statistic drawn reaches that seen.

    Each segment's statistic is standardised by the mean and the standard deviation of its draws, so that no segment
    counts more than another. Draws without a value reach nothing, for nothing is rejected without one. Where draws do
    not vary the p-value is its own.

    References
    ----------
    Westfall, P. H. and Young, S. S. (1993). Resampling-Based Multiple Testing. Wiley.
    """
    draws = found.draws
    if draws is None:
        return found.least
    finite, known = np.isfinite(draws), ~np.isnan(found.statistic)
    many = np.maximum(finite.sum(axis=0), 1)
    mean = np.where(finite, draws, 0.0).sum(axis=0) / many
    spread = np.sqrt((np.where(finite, draws - mean, 0.0) ** 2).sum(axis=0) / many)
    moving = spread > 0.0
    out = np.where(finite.all(axis=0), found.least, np.minimum(found.least * known.sum(), 1.0))
    if not moving.any():
        return out
    sign = {"greater": np.positive, "less": np.negative, "two-sided": np.abs}[side]
    standard = sign((draws[:, moving] - mean[moving]) / spread[moving])
    far = np.where(np.isnan(standard), -np.inf, standard).max(axis=1)
    seen = sign((found.statistic[moving] - mean[moving]) / spread[moving])
    reached = len(far) - np.searchsorted(np.sort(far), seen - 1e-9, side="left")
    out[moving] = np.maximum((1.0 + reached) / (1.0 + len(far)), found.least[moving])
    return out
