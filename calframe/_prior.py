"""The verb `shift_prior`: scores moved from one class prior to another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from calframe._errors import ArgumentError, LabelError
from calframe._maps._forms import Linear, Softmax
from calframe._maps._map import CalibrationMap
from calframe._maps._segments import Segments
from calframe._metrics import metrics
from calframe._options import is_real
from calframe._results import to_polars
from calframe._roles import Roles
from calframe._typing import Floats, Link

_FLOOR = 1e-300  # a score of exactly 0 has no odds
_SUM = 1e-6  # priors may miss 1 by so much


def shift_prior(
    data: Any,
    *,
    score: str | Mapping[Any, str],
    prior: float | Mapping[Any, float],
    base: float | Mapping[Any, float] | None = None,
    label: str | None = None,
    positive: Any = None,
    weight: str | None = None,
    link: Link = "probability",
    classes: Sequence[Any] | None = None,
    name: str = "p_shifted",
) -> Any:
    """Return a table with scores moved to a new class prior.

    Where only the share of each class changes, and not what its members look like, the odds of every score change by
    the same factor, ``(prior / (1 - prior)) / (base / (1 - base))``.

    Parameters
    ----------
    data : table
        As in `calframe.apply`.
    score : str or mapping
        Column of the scores; of several classes a mapping of each class to its column.
    prior : float or mapping
        The rate of positives where the scores will be used; of several classes a mapping of each to its share.
    base : float or mapping, optional
        That where the scores are right now. By default the rate in `data`, which `label` then tells.
    label, positive, weight : optional
        As in `calframe.metrics`, for the rate in `data`. With a LazyFrame or relation this runs one small aggregate.
    link : {"probability", "logit"}, default "probability"
        What the score columns hold; the new column is a probability.
    classes : sequence, optional
        The classes of a score column that holds vectors.
    name : str, default "p_shifted"
        The column to add; of several classes ``<name>_<class>`` for each.

    Returns
    -------
    table
        Of the same kind, rows in the same order.

    Raises
    ------
    CalframeError
        If priors are not between 0 and 1, or columns and scores are not what they must be.

    Notes
    -----
    To move the scores and keep a threshold t is to keep the scores and move the threshold: with f the factor of the
    odds, ``p_shifted > t`` just where ``p > t / (t + f (1 - t))``. For t = 1/2 that is ``r / (r + r')``, the formula of
    Silva Filho et al. (2023), section 2.1, with r and r' the odds of `base` and `prior` (positives per negative), not
    their rates: from 0.5 to 0.1 it is 1 / (1 + 1/9) = 0.9.

    Scores of 0 and 1 have no odds: they are taken as 1e-300, and as that far from 1, and move by as little.

    References
    ----------
    Saerens, M., Latinne, P. and Decaestecker, C. (2002). Adjusting the outputs of a classifier to new a priori
    probabilities: a simple procedure. Neural Computation 14, 21-41. https://doi.org/10.1162/089976602753284446

    Silva Filho, T. et al. (2023). Classifier calibration: a survey on how to assess and improve predicted class
    probabilities. Machine Learning 112, 3211-3260. https://doi.org/10.1007/s10994-023-06336-7

    Examples
    --------
    From one positive in two to one in ten, the odds shrink by 9:

    >>> import polars as pl
    >>> import calframe
    >>> calframe.shift_prior(pl.DataFrame({"p": [0.5, 0.9]}), score="p", base=0.5, prior=0.1)
    shape: (2, 2)
    ┌─────┬───────────┐
    │ p   ┆ p_shifted │
    │ --- ┆ ---       │
    │ f64 ┆ f64       │
    ╞═════╪═══════════╡
    │ 0.5 ┆ 0.1       │
    │ 0.9 ┆ 0.5       │
    └─────┴───────────┘
    """
    roles = Roles.from_arguments(label=label or "", score=score, positive=positive, link=link, classes=classes)
    if roles.several:
        msg = f"shift_prior takes the scores of one model; score= names {len(roles.scores)}. Call it for each."
        raise ArgumentError(msg)
    if (base is None) == (label is None):
        both = "" if label is None else "; both are given"
        msg = f"shift_prior takes base=, the rate where scores are right now, or label= with the rate of a table{both}."
        raise ArgumentError(msg)
    if label is None and not (positive is None and weight is None):
        msg = "positive= and weight= are for the rate in the table, and base= is given; leave them out, or base=."
        raise ArgumentError(msg)
    if base is None:
        base = _rates(data, roles, weight)
    after, before = (_shares(given, role, roles) for given, role in ((prior, "prior"), (base, "base")))
    odds = np.log(after) - np.log(before)
    if len(odds) > 2:
        form: Any = Softmax(weight=np.eye(len(odds))[None], shift=odds[None])
    else:
        values = np.array([[1.0], [odds[1] - odds[0]]])
        errors = np.full_like(values, np.nan)
        form = Linear(features=("logit", "one"), names=("slope", "intercept"), values=values, errors=errors)
    return CalibrationMap(
        method="prior_shift",
        options={"prior": after.tolist(), "base": before.tolist()},
        label=label or "",
        scores=roles.scores,
        classes=roles.classes,
        vector=roles.vector,
        by=(),
        pooling="complete",
        link=link,
        floor=_FLOOR,
        n=0,
        n_missing=0,
        n_invalid=0,
        notes=(),
        mark="",
        form=form,
        segments=Segments.none(),
    ).apply(data, name=name)


def _rates(data: Any, roles: Roles, weight: str | None) -> Any:
    """Return the shares of the classes in a table."""
    given: dict[str, Any] = {"label": roles.label, "weight": weight, "link": roles.link}
    if not roles.classes:
        found = metrics(data, score=roles.scores[0], positive=roles.positive, metrics="rate", **given)
    else:
        score: Any = roles.scores[0] if roles.vector else dict(zip(roles.classes, roles.scores, strict=True))
        given |= {"classes": list(roles.classes)} if roles.vector else {}
        found = metrics(data, score=score, notion="classwise", metrics="rate", **given)
    rates = to_polars(found.collect() if isinstance(found, pl.LazyFrame) else found)["rate"].to_list()
    if not all(rate is not None and 0.0 < rate < 1.0 for rate in rates):
        msg = f"label column {roles.label!r} has no row of some class, which no factor brings back; pass base=."
        raise LabelError(msg)
    return dict(zip(roles.classes, rates, strict=True)) if roles.classes else rates[0]


def _shares(given: Any, role: str, roles: Roles) -> Floats:
    """Return the share of each class, that of the positive one last."""
    if not roles.classes or (len(roles.classes) == 2 and is_real(given)):
        if not (is_real(given) and 0.0 < given < 1.0):
            msg = f"{role} must be a rate between 0 and 1, for example 0.1; got {given!r}."
            raise ArgumentError(msg)
        return np.array([1.0 - float(given), float(given)])
    if not isinstance(given, Mapping) or set(given) != set(roles.classes):
        msg = f"{role} must give each of the classes {list(roles.classes)} its share; got {given!r}."
        raise ArgumentError(msg)
    shares = [given[one] for one in roles.classes]
    if not all(is_real(share) and share > 0.0 for share in shares) or not math.isclose(sum(shares), 1.0, abs_tol=_SUM):
        msg = f"the shares of {role} must be above 0 and add up to 1; got {dict(given)!r}."
        raise ArgumentError(msg)
    found = np.array(shares, dtype=np.float64)
    return np.asarray(found / found.sum())
