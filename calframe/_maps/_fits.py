"""From what a table holds to a map: the pooled curve, those of the segments, and what each segment takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from calframe._fitting._fitted import Outcome
from calframe._fitting._linear import FLATTEST
from calframe._kernels._building import as_one
from calframe._kernels._logistic import rows_at_ends
from calframe._maps._class_methods import ClassMethod
from calframe._maps._fit_options import FitOptions
from calframe._maps._forms import Curve, Form, Linear, OneVersusRest, Softmax
from calframe._maps._methods import Method, Sample, identity
from calframe._maps._reading import Named, Rows, Scores
from calframe._maps._segments import Segments
from calframe._notes import at_ends
from calframe._typing import Bools, Ints

Pooling: TypeAlias = Literal["none", "partial", "complete"]

FEWEST = 5  # segments from which on their spread can be told
_NOTES = {
    Outcome.SEPARABLE: "scores separate the classes",
    Outcome.ONE_CLASS: "only one class",
    Outcome.ONE_SCORE: "only one score",
    Outcome.FEW: "fewer rows than parameters",
}
_OPEN = _NOTES | {Outcome.ONE_SCORE: "scores do not tell all parameters apart"}  # of maps of several classes
_FLATTEST = f"the flatter the better: the temperature is held at its most, {FLATTEST:g}"
_BOUND = "held at the flattest that never falls as scores rise"
_POOLED = "takes the pooled map"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """A fitted form with its segments.

    Attributes
    ----------
    form : Form
        The pooled map, and those of the segments that have one of their own.
    segments : Segments
        The segments.
    pooling : {"none", "partial", "complete"}
        What was done.
    notes : tuple of str
        What is to be said of the whole.
    """

    form: Form
    segments: Segments
    pooling: Pooling
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Curves:
    """The pooled map, those of the segments read, how their fits went, and which of them can be used."""

    pooled: Any
    own: Any
    outcome: Ints
    usable: Bools


def fitted_scores(scores: Scores, method: Method, options: FitOptions, pooling: Pooling) -> Fitted:
    """Fit the map of a table with one score a row."""
    pooling, notes = _possible(scores.named, pooling)
    read = _as_read(scores, method)
    whole, said = _whole_curve(read, method, options)
    notes += said
    if method.logarithms and options.on == "logit" and scores.logits is scores.tally:
        notes += _at_ends(int(rows_at_ends(scores.whole, options.floor).sum()), options.floor)
    if pooling == "complete":
        return Fitted(form=whole, segments=Segments.none(), pooling=pooling, notes=notes)
    found = _curves(scores.named, read, method, options, pooling, whole)
    kept = np.flatnonzero(found.usable)
    form = found.pooled.and_also(found.own.only(kept)) if len(kept) else found.pooled
    return Fitted(form=form, segments=_segments(scores.named, found), pooling=pooling, notes=notes)


def fitted_classes(
    scores: tuple[Scores, ...], classes: tuple[Any, ...], method: Method, options: FitOptions, pooling: Pooling
) -> Fitted:
    """Fit a binary map for each class against the rest."""
    pooling, notes = _possible(scores[0].named, pooling)
    scores = tuple(replace(one, logits=one.tally) for one in scores)  # a map is applied to the share of each class
    forms, parts = [], []
    for name, one in zip(classes, scores, strict=True):
        read = _as_read(one, method)
        whole, said = _whole_curve(read, method, options)
        notes += tuple(f"class {name!r}: {text}" for text in said)
        if pooling == "complete":
            forms.append(whole)
            continue
        found = _curves(one.named, read, method, options, pooling, whole)
        both = found.pooled.and_also(found.own) if found.usable.any() else found.pooled
        forms.append(both.only(np.append(0, np.where(found.usable, np.arange(1, len(found.usable) + 1), 0))))
        parts.append(found)
    form = OneVersusRest(classes=tuple(forms))
    if pooling == "complete":
        return Fitted(form=form, segments=Segments.none(), pooling=pooling, notes=notes)
    segments = _segments(scores[0].named, replace(parts[0], usable=np.ones_like(parts[0].usable)))
    texts = [list[str]() for _ in segments.note]
    for name, one, part in zip(classes, scores, parts, strict=True):
        for i, text in enumerate(_segments(one.named, part).note):
            if text is not None:
                texts[i].append(f"class {name!r}: {text}")
    return Fitted(
        form=form,
        segments=replace(segments, note=tuple("; ".join(text) or None for text in texts)),
        pooling=pooling,
        notes=notes,
    )


def fitted_vectors(rows: Rows, method: ClassMethod, options: FitOptions, pooling: Pooling) -> Fitted:
    """Fit a map of whole score vectors."""
    pooling, notes = _possible(rows.named, pooling)
    together = replace(rows.vectors, starts=np.zeros(1, dtype=np.int64))
    whole, outcome = method.fit(together, options)
    first = Outcome(int(outcome[0]))
    if method.name != "identity" and not rows.is_logit:
        notes += _at_ends(int((rows.vectors.scores.min(axis=1) < options.floor).sum()), options.floor)
    if first == Outcome.BOUND:
        notes += (_FLATTEST,)
    elif first != Outcome.FINE:
        notes += (f"all rows together: {_OPEN[first]}; {method.without}",)
    if pooling == "complete":
        return Fitted(form=whole, segments=Segments.none(), pooling=pooling, notes=notes)
    there = np.zeros(len(rows.vectors), dtype=bool)
    there[rows.named.read] = True
    fit = method.pool if pooling == "partial" and method.pool is not None else method.fit_own
    own, outcome = fit(rows.vectors.only(there), options)
    usable = np.isin(outcome, (Outcome.FINE, Outcome.BOUND))
    kept = np.flatnonzero(usable)
    found = _Curves(pooled=whole, own=own, outcome=outcome, usable=usable)
    form = whole.and_also(own.only(kept)) if len(kept) else whole
    return Fitted(form=form, segments=_segments(rows.named, found), pooling=pooling, notes=notes)


def _possible(named: Named, pooling: Pooling) -> tuple[Pooling, tuple[str, ...]]:
    """Return the pooling that there are segments for, and what is to be said of that."""
    if not named.keys or pooling == "complete":
        return "complete", ()
    known = len(named.read)
    if pooling == "partial" and known < FEWEST:
        has = f"{known} segment{'s have' if known != 1 else ' has'} rows"
        return "complete", (f"partial pooling needs {FEWEST} segments or more; {has}, so all take the pooled map",)
    return pooling, ()


def _as_read(scores: Scores, method: Method) -> Sample:
    """Return the scores as a method reads them."""
    if method.reads == "logit" and scores.logits is not scores.tally:
        return Sample(tally=scores.logits, is_logit=True, whole=as_one(scores.logits))
    return Sample(tally=scores.tally, is_logit=False, whole=scores.whole)


def _whole_curve(read: Sample, method: Method, options: FitOptions) -> tuple[Curve, tuple[str, ...]]:
    """Return the curve of all rows; without a finite fit it leaves scores as they are."""
    curve, outcome = method.fit(replace(read, tally=read.whole), options)
    found = Outcome(int(outcome[0]))
    if found == Outcome.FINE:
        return curve, ()
    if found == Outcome.BOUND:
        return curve, (_bound(curve),)
    if method.always:
        return curve, (f"all rows together: {_NOTES[found]}",)
    return identity(1), (f"all rows together: {_NOTES[found]}, so no fit is finite; scores are left as they are",)


def _curves(named: Named, read: Sample, method: Method, options: FitOptions, pooling: Pooling, whole: Curve) -> _Curves:
    """Fit the segments."""
    there = np.zeros(len(read.tally), dtype=bool)
    there[named.read] = True
    sample = replace(read, tally=read.tally.only(there))
    if pooling == "partial" and method.pool is not None:
        own, outcome, pooled = method.pool(sample, options)
        whole, usable = whole if pooled is None else pooled, np.isin(outcome, (Outcome.FINE, Outcome.BOUND))
    else:
        own, outcome = method.fit(sample, options)
        usable = np.isin(outcome, [int(each) for each in method.usable])
    if getattr(own, "features", None) != getattr(whole, "features", None):  # all rows together have no finite fit
        usable = np.zeros_like(usable)
    return _Curves(pooled=whole, own=own, outcome=outcome, usable=usable)


def _segments(named: Named, found: _Curves) -> Segments:
    """Return the segments; those without a map of their own take the pooled one."""
    kept = np.flatnonzero(found.usable)
    curve = np.zeros(len(found.usable) + 1, dtype=np.int64)
    curve[kept] = np.arange(1, len(kept) + 1)
    texts = np.full(len(found.usable) + 1, f"no usable rows: {_POOLED}", dtype=object)
    for one in Outcome:
        for usable in (False, True):
            mine = np.flatnonzero((found.outcome == one) & (found.usable == usable))
            texts[mine] = _note(one, has_curve=usable)
    for i in np.flatnonzero(found.usable & (found.outcome == Outcome.BOUND)):
        texts[i] = _bound(found.own, int(i))
    order = np.full(int(named.place.max(initial=-1)) + 1, -1)
    order[np.sort(named.read)] = np.arange(len(named.read))
    at = np.where(named.place >= 0, order[named.place], -1)
    return Segments(
        keys=named.keys,
        curve=curve[at],
        n=named.n,
        low=named.low,
        high=named.high,
        note=tuple(texts[at].tolist()),
    )


def _bound(curve: Any, place: int = 0) -> str:
    """Return which values of a curve are the least that never fall, or the most of a temperature."""
    if not isinstance(curve, Linear) or curve.names == ("temperature",):
        return _FLATTEST if isinstance(curve, Linear | Softmax) else _BOUND
    least = [name for name, value in zip(curve.names, curve.values[:, place], strict=True) if value == 0.0]
    is_least = f"{' and '.join(least)} {'is' if len(least) == 1 else 'are'} 0, the least for a map that never falls"
    return is_least if least else _BOUND


def _at_ends(rows: int, floor: float) -> tuple[str, ...]:
    """Return what is to be said of rows with a probability of 0, or 1."""
    return (at_ends(rows, floor),) if rows else ()


def _note(outcome: Outcome, *, has_curve: bool) -> str | None:
    if outcome in (Outcome.FINE, Outcome.BOUND):
        return None if has_curve else _POOLED
    return _NOTES[outcome] + ("" if has_curve else f": {_POOLED}")
