"""P-values of many tests, adjusted for their number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np

from calframe._typing import Floats

Correction: TypeAlias = Literal["holm", "bonferroni", "benjamini_hochberg", "benjamini_yekutieli", "none"]


def adjusted(pvalue: Floats, correction: Correction) -> Floats:
    """Return adjusted p-values; NaN stays and does not count.

    Holm and Bonferroni hold the chance of one false rejection or more, whatever the dependence; Benjamini and Hochberg
    the expected share of false ones among rejections where tests are independent or positively dependent, Benjamini and
    Yekutieli whatever the dependence.

    References
    ----------
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6,
    65-70. https://www.jstor.org/stable/4615733
    Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate: a practical and powerful approach to
    multiple testing. Journal of the Royal Statistical Society B 57, 289-300.
    https://doi.org/10.1111/j.2517-6161.1995.tb02031.x
    Benjamini, Y. and Yekutieli, D. (2001). The control of the false discovery rate in multiple testing under
    dependency. Annals of Statistics 29, 1165-1188. https://doi.org/10.1214/aos/1013699998

    Examples
    --------
    >>> pvalue = np.array([0.01, 0.04, 0.03])
    >>> adjusted(pvalue, "holm").round(6), adjusted(pvalue, "benjamini_hochberg").round(6)
    (array([0.03, 0.06, 0.06]), array([0.03, 0.04, 0.04]))
    """
    out = np.full(pvalue.shape, np.nan)
    known = np.flatnonzero(~np.isnan(pvalue))
    order = known[np.argsort(pvalue[known], kind="stable")]
    out[order] = np.minimum(_WAYS[correction](pvalue[order]), 1.0)
    return out


def _holm(ascending: Floats) -> Floats:
    return np.maximum.accumulate(ascending * np.arange(len(ascending), 0, -1))


def _step_up(ascending: Floats) -> Floats:
    rates = ascending * len(ascending) / np.arange(1, len(ascending) + 1)
    return np.minimum.accumulate(rates[::-1])[::-1]


def _yekutieli(ascending: Floats) -> Floats:
    return _step_up(ascending) * float((1.0 / np.arange(1, len(ascending) + 1)).sum())


_WAYS: Mapping[str, Callable[[Floats], Floats]] = {
    "holm": _holm,
    "bonferroni": lambda ascending: ascending * len(ascending),
    "benjamini_hochberg": _step_up,
    "benjamini_yekutieli": _yekutieli,
    "none": lambda ascending: ascending,
}
