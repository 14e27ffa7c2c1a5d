"""The `.calib` namespace on pandas and polars frames, sugar over the functions, and on polars expressions."""

from __future__ import annotations

import functools
import inspect
import re
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import pandas as pd
import polars as pl

from calframe._apply import apply
from calframe._audit import audit
from calframe._compare import compare
from calframe._confidence import answer_confidence, parse_confidence
from calframe._cross_fit import cross_fit
from calframe._curve import curve
from calframe._decide import decide
from calframe._diagnose import diagnose
from calframe._drift import drift
from calframe._expr import CalibExpressions
from calframe._fit import fit
from calframe._inference import test
from calframe._measures import metric_names
from calframe._metrics import metrics
from calframe._prior import shift_prior
from calframe._selective import selective
from calframe._validate import validate
from calframe._verb_report import report

NAME = "calib"
_DATA = re.compile(r"^    data : table\n(?:        .*\n)+", re.MULTILINE)  # the parameter that a method does not take


def _method(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Return a verb as a method: the same arguments without the table."""

    @functools.wraps(verb)
    def method(self: CalibNamespace, *positional: Any, **arguments: Any) -> Any:
        return verb(self._table(), *positional, **arguments)

    method.__doc__ = _DATA.sub("", verb.__doc__ or "")
    signature = inspect.signature(verb)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[own, *list(signature.parameters.values())[1:]]
    )
    return method


class CalibNamespace:
    """What calframe can do with a table of predictions: each method is the function of the same name.

    polars keeps a namespace object on its frame. A strong reference back would be a cycle that keeps whole tables
    alive, so this holds a weak one, and a cheap clone in case the frame itself is gone.
    """

    def __init__(self, frame: Any) -> None:
        self._reference = weakref.ref(frame)
        self._clone = frame.copy(deep=False) if isinstance(frame, pd.DataFrame) else frame.clone()

    metrics = _method(metrics)
    curve = _method(curve)
    test = _method(test)
    compare = _method(compare)
    audit = _method(audit)
    drift = _method(drift)
    report = _method(report)
    fit = _method(fit)
    apply = _method(apply)
    cross_fit = _method(cross_fit)
    validate = _method(validate)
    selective = _method(selective)
    decide = _method(decide)
    diagnose = _method(diagnose)
    shift_prior = _method(shift_prior)
    answer_confidence = _method(answer_confidence)
    parse_confidence = _method(parse_confidence)

    def __getattr__(self, name: str) -> NoReturn:
        """Say how a metric is asked for, where one is taken for a method."""
        msg = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in metric_names():
            msg = f"{name!r} is no method of a table; ask for it by .calib.metrics(label=, score=, metrics={name!r})."
        raise AttributeError(msg)

    def _table(self) -> Any:
        frame = self._reference()
        return self._clone if frame is None else frame


def register() -> None:
    """Put `.calib` on pandas DataFrame, polars DataFrame, LazyFrame and Expr; again does nothing."""
    for owner, registering, namespace in (
        (pd.DataFrame, pd.api.extensions.register_dataframe_accessor, CalibNamespace),
        (pl.DataFrame, pl.api.register_dataframe_namespace, CalibNamespace),
        (pl.LazyFrame, pl.api.register_lazyframe_namespace, CalibNamespace),
        (pl.Expr, pl.api.register_expr_namespace, CalibExpressions),
    ):
        if not _is_ours(getattr(owner, NAME, None), namespace):
            registering(NAME)(namespace)


def _is_ours(found: object, namespace: type) -> bool:
    return getattr(found, "__module__", None) == namespace.__module__
