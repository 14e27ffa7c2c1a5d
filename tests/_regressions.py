"""Rows for logistic regressions, and their peer."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import statsmodels.api as sm
from scipy.special import expit

from calframe._kernels._logistic import CitlFit, CoxFit, logit
from calframe._kernels._tally import Tally
from calframe._typing import Floats


def tally_of(segment: Any, score: Any, label: Any, weight: Any = None, *, frequency: bool = False) -> Tally:
    """Make a tally of rows, in any order."""
    segment, score, label = np.asarray(segment), np.asarray(score, float), np.asarray(label, float)
    order = np.lexsort((score, segment))
    segment, score, label = segment[order], score[order], label[order]
    w = np.ones(len(score)) if weight is None else np.asarray(weight, float)[order]
    new = np.append(True, (np.diff(segment) != 0) | (np.diff(score) != 0))
    cells = np.flatnonzero(new)
    add = [np.add.reduceat(v, cells) for v in (np.ones(len(score)), w, w * label, w * w, w * w * label)]
    rows, weights, positive, squared, squared_positive = add
    if weight is None or frequency:
        squared, squared_positive = weights, positive
    return Tally(
        starts=np.flatnonzero(np.append(True, np.diff(segment[cells]) != 0)),
        score=score[cells],
        rows=rows,
        weight=weights,
        positive=positive,
        squared=squared,
        squared_positive=squared_positive,
    )


def one(score: Any, label: Any, weight: Any = None, *, frequency: bool = False) -> Tally:
    return tally_of(np.zeros(len(score), int), score, label, weight, frequency=frequency)


def same(found: CoxFit | CitlFit, expected: CoxFit | CitlFit, *, rtol: float = 1e-9) -> None:
    assert found.status.tolist() == expected.status.tolist()
    for field in fields(expected):
        a, b = getattr(found, field.name), getattr(expected, field.name)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=field.name)


def glm(label: Floats, *columns: Floats, offset: Floats | None = None, weight: Any = None, robust: bool = False) -> Any:
    # statsmodels
    model = sm.GLM(label, np.column_stack(columns), sm.families.Binomial(), offset=offset, var_weights=weight)
    return model.fit(tol=1e-14, maxiter=100, cov_type="HC0" if robust else "nonrobust")


def rows_of(seed: int, *, segments: int = 12) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    segment = np.sort(rng.integers(0, segments, 60 * segments))
    score = np.round(rng.beta(1.0, 1.5, len(segment)), 2 + seed % 2)  # ties
    label = rng.random(len(segment)) < expit(rng.normal(0, 0.5, segments)[segment] + 0.7 * logit(score, 0.01))
    return segment, score, label.astype(float)
