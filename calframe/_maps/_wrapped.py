"""A classifier with a calibration map behind it, for code that expects `predict_proba`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from calframe._errors import ArgumentError, ColumnNotFoundError
from calframe._maps._applying import new_columns
from calframe._maps._map import CalibrationMap
from calframe._source import opened
from calframe._typing import Floats


@dataclass(kw_only=True, eq=False)  # not frozen: scikit-learn's pipelines set attributes on their steps
class MappedClassifier:
    """A fitted classifier whose probabilities go through a calibration map.

    It is fitted already and stays as it is: scikit-learn's `clone` and its own `fit` return the same object, so that it
    can be scored and cross-validated like `sklearn.frozen.FrozenEstimator`.

    Attributes
    ----------
    classifier : object
        A fitted classifier with `predict_proba` and `classes_`, as those of scikit-learn.
    map : CalibrationMap
        A map that was fitted on its probabilities: those of the positive class, or of all classes.
    positive : object
        The class whose probability the map takes, where the map has one score; None for the one that it was fitted on.
    """

    classifier: Any
    map: CalibrationMap
    positive: Any = None

    def __post_init__(self) -> None:
        """Raise unless the classifier is fitted, and has the classes of the map."""
        for name in ("predict_proba", "classes_"):
            found = getattr(self.classifier, name, None)
            if found is None or (name == "classes_" and not (hasattr(found, "__len__") and len(found))):
                kind = self.classifier if isinstance(self.classifier, type) else type(self.classifier)
                msg = (
                    "wrap takes a fitted classifier with predict_proba and classes_, as those of scikit-learn; this "
                    f"{kind.__name__} has no {name}{': fit it first' if name == 'classes_' else ''}."
                )
                raise ArgumentError(msg)
        self._places()

    @property
    def classes_(self) -> Any:
        """The classes, in the order of the columns of `predict_proba`: that of the classifier."""
        return np.asarray(self.classifier.classes_)

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803  scikit-learn's name
        """Return the calibrated probabilities, shape (n_rows, n_classes).

        Parameters
        ----------
        X : array or frame
            What the classifier takes. If the map has segments, a frame with their columns, which the classifier gets
            only if it was fitted with them.
        """
        frame = self._frame(X)
        raw = np.asarray(self.classifier.predict_proba(X if frame is None else self._features(X, frame)))
        places = self._places()
        if raw.ndim != 2 or raw.shape[1] != len(places):
            shape = "x".join(map(str, raw.shape))
            msg = f"the map is for {len(places)} classes, and predict_proba gives an array of shape {shape}."
            raise ArgumentError(msg)
        out = opened(self.map.apply(self._table(raw[:, places], frame), name=_FREE))
        names = new_columns(self.map, _FREE)[: len(places) if len(places) > 2 else 1]
        found = np.column_stack([out.get_column(name).to_numpy() for name in names])
        calibrated = np.empty(raw.shape)
        calibrated[:, places] = found if len(names) > 1 else np.hstack([1.0 - found, found])
        return calibrated

    def predict(self, X: Any) -> Any:  # noqa: N803  scikit-learn's name
        """Return the class of the largest calibrated probability of each row, of equal ones the first."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803  scikit-learn's name
        """Return the accuracy of `predict`: the share, by weight, of rows whose class is that of `y`."""
        found, wanted = self.predict(X), np.asarray(y)
        if wanted.shape != found.shape:
            shape = "x".join(map(str, wanted.shape))
            msg = f"y must hold one class for each of the {len(found)} rows of X; it has shape {shape}."
            raise ArgumentError(msg)
        return float(np.average(found == wanted, weights=sample_weight))

    def fit(self, X: Any = None, y: Any = None, **fit_params: Any) -> Self:  # noqa: ARG002, N803  scikit-learn's names
        """Return the same object: classifier and map are fitted already, and no argument changes them."""
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002  scikit-learn's signature
        """Return classifier, map and positive class, without the parameters of the classifier."""
        return {"classifier": self.classifier, "map": self.map, "positive": self.positive}

    def set_params(self, **params: Any) -> Self:
        """Raise if there is something to set: wrap another classifier instead."""
        if params:
            msg = f"a wrapped classifier has nothing to set, got {', '.join(params)}; take map.wrap(classifier) anew."
            raise ArgumentError(msg)
        return self

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags  # noqa: PLC0415  only scikit-learn asks for them

        own = getattr(self.classifier, "__sklearn_tags__", None)
        tags = Tags(estimator_type=None, target_tags=TargetTags(required=True)) if own is None else own()
        return replace(tags, estimator_type="classifier", classifier_tags=tags.classifier_tags or ClassifierTags())

    def _places(self) -> list[int]:
        """Return which columns of `predict_proba` are those of the map's classes, the positive one last."""
        theirs, ours = _listed(self.classifier.classes_), _listed(self.map.classes)
        if len(theirs) != (len(ours) or 2):
            named = f" {ours}" if ours else ""
            msg = (
                f"the map is for {len(ours) or 2} classes{named}, and the classifier has {len(theirs)}: {theirs}. Wrap "
                "the classifier whose probabilities the map was fitted on."
            )
            raise ArgumentError(msg)
        if not ours:
            place = self._positive_place(theirs)
            return [1 - place, place]
        if self.positive is not None:
            msg = f"positive={self.positive!r} is for a map of one score, and this one has the classes {ours}."
            raise ArgumentError(msg)
        if any(one not in theirs for one in ours):
            msg = (
                f"the map has the classes {ours}, and the classifier {theirs}; fit the map with the classifier's own "
                "names of the classes."
            )
            raise ArgumentError(msg)
        return [theirs.index(one) for one in ours]

    def _positive_place(self, theirs: list[Any]) -> int:
        positive = self.map.positive if self.positive is None else self.positive
        if positive is None and 1 in theirs and set(theirs) <= {0, 1, -1}:
            positive = 1  # as in a label of these values
        if positive in theirs:
            return theirs.index(positive)
        if positive is None:
            known = "the map does not say which label value is positive"
        elif self.positive is None:
            known = f"the map takes the probability of {positive!r}, which is none of the classifier's classes {theirs}"
        else:
            known = f"positive={positive!r} is none of the classifier's classes {theirs}"
        msg = f"{known}; pass positive=, the one of {theirs} whose probability the map was fitted on."
        raise ArgumentError(msg)

    def _frame(self, X: Any) -> nw.DataFrame[Any] | None:  # noqa: N803  scikit-learn's name
        """Return X as a frame with the segment columns, where the map has segments."""
        by = self.map.by
        if not by:
            return None
        msg = f"the map has segments by {', '.join(by)}; pass X as a frame in memory with these columns."
        try:
            frame = opened(X)
        except ArgumentError as error:
            raise ArgumentError(msg) from error
        if not isinstance(frame, nw.DataFrame):
            raise ArgumentError(msg)
        for name in by:
            if name not in frame.columns:
                available, use = [str(column) for column in frame.columns], "which the map takes as a segment"
                raise ColumnNotFoundError.from_name(name, role="by", available=available, use=use)
        return frame

    def _features(self, X: Any, frame: nw.DataFrame[Any]) -> Any:  # noqa: N803  scikit-learn's name
        """Return X without the segment columns that the classifier was not fitted with, as far as it tells."""
        by = self.map.by
        names, count = (getattr(self.classifier, name, None) for name in ("feature_names_in_", "n_features_in_"))
        if names is not None:
            extra = [name for name in by if name not in set(names)]
        else:
            extra = list(by) if count == len(frame.columns) - len(by) else []
        return frame.drop(extra).to_native() if extra else X

    def _table(self, raw: Floats, frame: nw.DataFrame[Any] | None) -> Any:
        """Return what the map is applied to: the scores, of probabilities in its order of classes, and segments."""
        the_map = self.map
        if the_map.link == "logit":
            with np.errstate(divide="ignore"):
                raw = np.log(raw.astype(np.float64))
            if not the_map.classes:
                raw = raw[:, 1:] - raw[:, :1]
        names = the_map.scores
        scores = {names[0]: raw} if the_map.vector else dict(zip(names, raw[:, -len(names) :].T, strict=True))
        if frame is None:
            return pl.DataFrame(scores)
        keys = [name for name in the_map.by if name not in scores]
        if frame.implementation.is_pandas():
            columns = {name: list(values) if the_map.vector else values for name, values in scores.items()}
            return frame.to_native()[keys].assign(**columns)
        return pl.DataFrame({name: frame.get_column(name).to_polars() for name in keys} | scores)


def _listed(classes: Any) -> list[Any]:
    """Return classes as a list of plain values, or raise if they are those of several outcomes."""
    if any(np.ndim(one) for one in classes):
        msg = f"wrap takes a classifier of one outcome; the classes_ of this one are those of {len(classes)}."
        raise ArgumentError(msg)
    return [one.item() if isinstance(one, np.generic) else one for one in classes]


_FREE = "_cf_mapped"
