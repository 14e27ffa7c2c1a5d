"""Log scores of probability vectors, the targets they are fitted to, and softmax maps that are applied to them.

Matrices stand classes first here, ``(n_classes, n_rows)``: that is how contiguous score columns lie in memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calframe._kernels._logistic import FLOOR
from calframe._kernels._vectors import Vectors
from calframe._typing import Floats, Ints

BLOCK = 2**17  # numbers of a pass at a time: their temporaries stay in the cache


def log_scores(scores: Floats, *, is_logit: bool = False, floor: float = FLOOR) -> Floats:
    """Return ``z = ln p`` of each class, classes first.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
        Probabilities, or logits.
    is_logit : bool
        Whether they are logits. Then ``p = softmax(logits)``, so that a constant added to a row changes nothing.
    floor : float
        ``z = ln max(p, floor)`` for probabilities. The logarithm of a softmax needs no floor; only a logit of minus
        infinity does, and has ``ln floor``, or the smallest z of its row if that is less.

    Returns
    -------
    ndarray of shape (n_classes, n_rows)

    Examples
    --------
    >>> log_scores(np.array([[0.0, 0.25, 0.75]])).round(4).tolist()
    [[-27.631], [-1.3863], [-0.2877]]
    >>> log_scores(np.array([[-np.inf, 7.0, 7.0 + np.log(3.0)]]), is_logit=True).round(4).tolist()
    [[-27.631], [-1.3863], [-0.2877]]
    """
    out = np.empty(scores.shape[::-1])
    _write_log_scores(out, scores, is_logit=is_logit, floor=floor)
    return out


def shifted_scores(scores: Floats, *, is_logit: bool, floor: float) -> Floats:
    """Return the log scores less the largest of each row; of logits without what a normalisation rounds off."""
    out = np.empty(scores.shape[::-1])
    _write_log_scores(out, scores, is_logit=is_logit, floor=floor, normalised=False)
    out -= out.max(axis=0)
    return out


def features_of(scores: Floats, *, is_logit: bool, floor: float) -> Floats:
    """Return the log scores with a row of ones below them."""
    out = np.ones((scores.shape[1] + 1, len(scores)))
    _write_log_scores(out[:-1], scores, is_logit=is_logit, floor=floor)
    return out


def smooth_shares(vectors: Vectors, *, smoothing: bool | float) -> Floats:
    """Return the share e of the uniform distribution in the target ``(1 - e) y + e / K`` of each row.

    Parameters
    ----------
    vectors : Vectors
        Rows.
    smoothing : bool or float
        False: 0. A number: that. True: ``K / (N_y + K)``, with N_y the weight in the segment of the class that
        happened. Then the target of that class is ``(N_y + 1) / (N_y + K)``, with two classes as Platt has it.

    References
    ----------
    Platt, J. (1999). Probabilistic outputs for support vector machines and comparisons to regularized likelihood
    methods. Advances in Large Margin Classifiers, 61-74.
    Szegedy, C. et al. (2016). Rethinking the Inception architecture for computer vision. CVPR 2016.
    https://doi.org/10.1109/CVPR.2016.308
    """
    if smoothing is not True:
        return np.full(len(vectors.label), float(smoothing))
    cell = vectors.segment * vectors.classes + vectors.label
    total: Floats = np.bincount(cell, weights=vectors.weight)[cell]
    return vectors.classes / (total + vectors.classes)


def apply_softmax(
    scores: Floats,
    slopes: Floats,
    intercepts: Floats,
    segment: Ints,
    *,
    is_logit: bool = False,
    floor: float = FLOOR,
) -> Floats:
    """Return ``softmax(W z + b)`` of each row, with the W and b of its segment.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_classes)
        Probabilities or logits, as in `log_scores`.
    slopes : ndarray of shape (n_segments, n_classes, n_classes)
        W, from the log scores in columns to the classes in rows.
    intercepts : ndarray of shape (n_segments, n_classes)
        b.
    segment : ndarray of int, shape (n_rows,)
        The segment of each row, in any order.
    is_logit, floor
        As in `log_scores`.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)
        Probabilities; columns are contiguous, and each row sums to 1 to rounding.

    Examples
    --------
    >>> cooled = apply_softmax(
    ...     np.array([[0.8, 0.1, 0.1]]), np.eye(3)[None] / 3.0, np.zeros((1, 3)), np.array([0])
    ... )  # at the temperature 3
    >>> cooled.round(12)
    array([[0.5 , 0.25, 0.25]])
    """
    classes = scores.shape[1]
    by_score = np.ascontiguousarray(slopes.transpose(2, 1, 0))
    constants = np.ascontiguousarray(intercepts.T)

    def predictor(z: Floats, here: Ints) -> Floats:
        if (here == here[0]).all():
            product: Floats = slopes[here[0]] @ z
            product += constants[:, here[:1]]
            return product
        out = constants[:, here]
        for number in range(classes):
            out += by_score[number][:, here] * z[number]
        return out

    return _mapped(scores, segment, predictor, is_logit=is_logit, floor=floor)


def apply_temperature(
    scores: Floats, temperature: Floats, segment: Ints, *, is_logit: bool = False, floor: float = FLOOR
) -> Floats:
    """Return ``softmax(z / T)`` of each row, with the T of its segment; otherwise as `apply_softmax`.

    Examples
    --------
    >>> apply_temperature(np.array([[0.8, 0.1, 0.1]]), np.array([3.0]), np.array([0])).round(12)
    array([[0.5 , 0.25, 0.25]])
    """

    def predictor(z: Floats, here: Ints) -> Floats:
        z -= z.max(axis=0)
        z /= temperature[here]
        return z

    return _mapped(scores, segment, predictor, is_logit=is_logit, floor=floor)


def softmax(predictor: Floats) -> Floats:
    """Return the softmax over classes, written over its argument."""
    predictor -= predictor.max(axis=0)
    np.exp(predictor, out=predictor)
    predictor /= predictor.sum(axis=0)
    return predictor


def _mapped(
    scores: Floats, segment: Ints, predictor: Callable[[Floats, Ints], Floats], *, is_logit: bool, floor: float
) -> Floats:
    rows, classes = scores.shape
    out, many = np.empty((classes, rows)), max(BLOCK // classes, 1)
    for begin in range(0, rows, many):
        cut = slice(begin, begin + many)
        z = log_scores(scores[cut], is_logit=is_logit, floor=floor)
        out[:, cut] = softmax(predictor(z, segment[cut]))
    return out.T


def _write_log_scores(out: Floats, scores: Floats, *, is_logit: bool, floor: float, normalised: bool = True) -> None:
    rows, classes = scores.shape
    many = max(BLOCK // classes, 1)
    for begin in range(0, rows, many):
        cut = slice(begin, begin + many)
        here = out[:, cut]
        if is_logit:
            here[:] = scores[cut].T
            _log_softmax(here, floor, normalised=normalised)
        else:
            np.maximum(scores[cut].T, floor, out=here)
            np.log(here, out=here)


def _log_softmax(logits: Floats, floor: float, *, normalised: bool) -> None:
    """Turn logits into log probabilities in place, or these plus what makes the largest 0; none of them infinite."""
    top = logits.max(axis=0)
    for number in np.flatnonzero(np.isinf(top)):  # several at infinity share
        logits[:, number] = np.where(logits[:, number] == top[number], 0.0, -np.inf)
        top[number] = 0.0
    logits -= top
    total = np.log(np.exp(logits).sum(axis=0))
    if normalised:
        logits -= total
        total[:] = 0.0
    lost = np.isneginf(logits)
    if lost.any():
        least = np.minimum(np.min(logits, axis=0, where=~lost, initial=0.0), np.log(floor) + total)
        np.copyto(logits, least, where=lost)
