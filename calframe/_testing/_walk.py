"""Tests on how far sums of label less score wander from 0 along the scores: their range and their largest value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calframe._kernels._binned import segment_max
from calframe._kernels._ranked import ecce, ecce_mad_pvalue, ecce_range_pvalue
from calframe._kernels._tally import Tally
from calframe._testing._draws import Drawing, resampled
from calframe._testing._found import Found
from calframe._testing._sums import CERTAIN
from calframe._typing import Bools, Floats

_FEW_SCORES, _TIED = 50, 4  # so few distinct scores, of so many rows each, stay within the range of Brownian motion
_BELOW = 0.5  # a p-value that is too large by a few distinct scores may stand for one of 0.05
_FAR = 0.2  # what one row may move the sum by, in standard deviations, for the law of Brownian motion


def kuiper(tally: Tally, drawing: Drawing) -> Found:
    """Test with the range of the cumulative differences, in units of its standard deviation.

    The law is that of the range of Brownian motion, which few rows and few distinct scores stay below.

    References
    ----------
    Arrieta-Ibarra, I., Gujral, P., Tannen, J., Tygert, M. and Xu, C. (2022). Metrics of calibration for probabilistic
    predictions. Journal of Machine Learning Research 23(351). https://doi.org/10.48550/arXiv.2205.09680
    """
    return _tested(tally, range_ratio, ecce_range_pvalue, drawing)


def kolmogorov_smirnov(tally: Tally, drawing: Drawing) -> Found:
    """Test with the largest cumulative difference, in units of its standard deviation; as `kuiper`."""
    return _tested(tally, largest_ratio, ecce_mad_pvalue, drawing)


def _tested(
    tally: Tally, ratio: Callable[[Tally], Floats], pvalue: Callable[[Floats], Floats], drawing: Drawing
) -> Found:
    seen = ratio(tally)
    found = Found.of_law(seen, pvalue(seen), "brownian").noted(np.isnan(seen), CERTAIN)

    def redraw(where: Bools) -> tuple[Floats, Floats]:
        return resampled(tally.only(where), ratio, seen[where], side="greater", drawing=drawing)

    floor = drawing.least("greater")
    found = found.of_many(tally.total(tally.rows)).settled(_moved(tally), redraw, floor=floor)
    return found.settled(_tied(tally), redraw, floor=floor, below=_BELOW)


def range_ratio(tally: Tally) -> Floats:
    found = ecce(tally)
    return _in_sigmas(found.range, found.sigma)


def largest_ratio(tally: Tally) -> Floats:
    found = ecce(tally)
    return _in_sigmas(found.largest, found.sigma)


def _in_sigmas(value: Floats, sigma: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):  # infinite where a certain row is wrong and none has spread
        found: Floats = value / sigma
    return found


def _moved(tally: Tally) -> Bools:
    """Return where one row moves the sum far."""
    chance = tally.score * (1.0 - tally.score)
    spread = np.sqrt(tally.total(tally.squared * chance))
    row = np.where(chance > 0.0, tally.squared / tally.weight * np.maximum(tally.score, 1.0 - tally.score), 0.0)
    return np.asarray(segment_max(row, tally.starts) > _FAR * spread)


def _tied(tally: Tally) -> Bools:
    return np.asarray((tally.sizes < _FEW_SCORES) & (_TIED * tally.sizes <= tally.total(tally.rows)))
