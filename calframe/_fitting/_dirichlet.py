"""Dirichlet calibration with off-diagonal and intercept regularisation (ODIR)."""

from __future__ import annotations

import numpy as np

from calframe._fitting._multinomial import Penalty, Rows, projected
from calframe._fitting._softmax import SoftmaxMaps, Solution, fitted, refuse_scarce, solved
from calframe._kernels._logistic import FLOOR
from calframe._kernels._vectors import Vectors
from calframe._typing import Floats


def dirichlet(
    vectors: Vectors,
    *,
    off_diagonal: float = 0.0,
    intercept: float = 0.0,
    normalised: bool = False,
    reference_row: bool = False,
    is_logit: bool = False,
    floor: float = FLOOR,
    smoothing: bool | float = False,
) -> SoftmaxMaps:
    """Fit ``softmax(W ln p + b)`` in each segment, by the mean loss and a penalty.

    The objective is ``mean NLL + off_diagonal sum_{i != j} W_ij^2 + intercept sum_j b_j^2``, the mean by weight. The
    diagonal is free, so that temperature scaling costs nothing. It is minimised by Newton's method until rounding.

    Parameters
    ----------
    vectors : Vectors
        Rows, with probabilities or logits.
    off_diagonal, intercept : float
        Strengths of the two penalties. Both 0 are maximum likelihood, which is matrix scaling.
    normalised : bool
        Divide `off_diagonal` by ``K (K - 1)`` and `intercept` by K, the numbers of terms, as dirichletcal does with
        ``reg_norm=True`` and as the paper writes it.
    reference_row : bool
        Subtract the last row of W, and the last b, from all of them before the penalty, as dirichletcal does unless
        told otherwise. That map depends on which class is the last, and the identity is not free.
    is_logit, floor, smoothing
        As in `calframe._fitting._softmax.temperature`.

    Returns
    -------
    SoftmaxMaps
        W and b in the form given there, with any reference row, too.

    Raises
    ------
    TooFewRowsError
        If there are more parameters than rows in some segment, and no penalty on W.

    References
    ----------
    Kull, M., Perello-Nieto, M., Kängsepp, M., Silva Filho, T., Song, H. and Flach, P. (2019). Beyond temperature
    scaling: obtaining well-calibrated multiclass probabilities with Dirichlet calibration. NeurIPS 2019.
    https://doi.org/10.48550/arXiv.1910.12656

    Examples
    --------
    A table at temperature 3 needs no more than the diagonal, which is free:

    >>> rows = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]] * 4, order="F"),
    ...     label=np.array([0, 1, 2, 0, 1, 2, 1, 2, 0, 2, 0, 1]),
    ...     weight=np.ones(12),
    ...     squared=np.ones(12),
    ... )
    >>> fit = dirichlet(rows, off_diagonal=0.01, intercept=0.01)
    >>> np.abs(fit.slopes[0] - np.eye(3) / 3.0).max() < 1e-9
    np.True_
    """
    if off_diagonal == 0.0:
        refuse_scarce(vectors, "matrix")
    classes = vectors.classes
    penalty = _odir(
        classes,
        off_diagonal / (classes * (classes - 1) if normalised else 1),
        intercept / (classes if normalised else 1),
    )
    gauge = _without_last if reference_row else projected

    def solve(_: int, rows: Rows, start: Floats) -> Solution:
        return solved(rows, penalty, start - start[-1] if reference_row else start, strict=False, gauge=gauge)

    return fitted(vectors, solve, diagonal=False, is_logit=is_logit, floor=floor, smoothing=smoothing)


def _odir(classes: int, off_diagonal: float, intercept: float) -> Penalty:
    strength = np.full((classes, classes + 1), off_diagonal)
    strength[:, -1] = intercept
    np.fill_diagonal(strength, 0.0)
    return Penalty(strength=strength, centre=np.zeros(strength.shape))


def _without_last(theta: Floats) -> Floats:
    """Return coefficients with 0 in the last row."""
    out = theta.copy()
    out[-1] = 0.0
    return out
