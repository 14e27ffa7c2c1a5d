"""Maps where other code expects something of its own: a classifier, or a polars expression."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, get_scorer
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

import calframe
from calframe._errors import ArgumentError, ColumnNotFoundError, ScoreError

RNG = np.random.default_rng(5)
X = RNG.normal(size=(600, 2))
Y = (RNG.random(600) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
MODEL = LogisticRegression(C=1e-3).fit(X, Y)


def test_a_wrapped_classifier_gives_what_the_map_gives() -> None:
    scores = pl.DataFrame({"p": MODEL.predict_proba(X)[:, 1], "y": Y})
    found = calframe.fit(scores, label="y", score="p", method="platt")
    wrapped = found.wrap(MODEL)
    proba = wrapped.predict_proba(X)
    expected = found.apply(scores)["p_calibrated"].to_numpy()
    np.testing.assert_allclose(proba, np.column_stack([1 - expected, expected]), rtol=1e-14)
    assert wrapped.classes_.tolist() == [0, 1]
    assert wrapped.predict(X).tolist() == (expected > 0.5).astype(int).tolist()


def test_a_wrapped_classifier_of_three_classes_and_one_with_segments() -> None:
    label = np.digitize(X[:, 0] + RNG.normal(size=600), [-0.5, 0.5])
    model = LogisticRegression(C=1e-2).fit(X, label)
    columns = {f"p{i}": values for i, values in enumerate(model.predict_proba(X).T)}
    found = calframe.fit(
        pl.DataFrame(columns | {"y": label}), label="y", score={i: f"p{i}" for i in range(3)}, method="temperature"
    )
    proba = found.wrap(model).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-14)
    assert found.wrap(model).predict(X).tolist() == model.predict(X).tolist()  # a temperature changes no order

    frame = pd.DataFrame(X, columns=["a", "b"]).assign(g=np.where(X[:, 1] > 0, "x", "z"))

    class OfFrame:
        classes_ = MODEL.classes_

        def predict_proba(self, frame: pd.DataFrame) -> Any:
            return MODEL.predict_proba(frame[["a", "b"]].to_numpy())

    scores = frame.assign(p=OfFrame().predict_proba(frame)[:, 1], y=Y)
    by_segment = calframe.fit(scores, label="y", score="p", by="g", method="platt", pooling="none")
    found_proba = by_segment.wrap(OfFrame()).predict_proba(frame)[:, 1]
    np.testing.assert_allclose(found_proba, by_segment.apply(scores)["p_calibrated"], rtol=1e-14)
    with pytest.raises(ArgumentError, match="segments by g"):
        by_segment.wrap(MODEL).predict_proba(X)
    with pytest.raises(ArgumentError, match="2 classes"):
        by_segment.wrap(model).predict_proba(X)


class Given:
    """A classifier of given classes and probabilities, and of nothing else."""

    def __init__(self, classes: Any, proba: Any) -> None:
        self.classes_ = classes
        self.proba = proba

    def predict_proba(self, _: Any) -> Any:
        return np.asarray(self.proba)


def halving(label: list[Any], **options: Any) -> calframe.CalibrationMap:
    """Return a map of temperature 2: of the scores 0.9 and 0.1 three of four were right, so 0.9 becomes 3/4."""
    table = pl.DataFrame({"p": [0.9] * 4 + [0.1] * 4, "y": label})
    return calframe.fit(table, label="y", score="p", method="temperature", **options)


def eight(positive: Any, negative: Any) -> list[Any]:
    return [positive] * 3 + [negative, positive] + [negative] * 3


# label of the fit, positive=, the positive value that the map keeps, classes_, the place of the positive one
PAIRS = {
    "0/1": (eight(1, 0), None, 1, np.array([0, 1]), 1),
    "0/1 of floats": (eight(1.0, 0.0), None, 1, np.array([0, 1], dtype=np.int8), 1),
    "0/1 and bool": (eight(1, 0), None, 1, np.array([False, True]), 1),
    "bool and 0/1": (eight(True, False), None, True, np.array([0.0, 1.0]), 1),  # noqa: FBT003
    "bool, false is positive": (eight(False, True), False, False, np.array([0, 1]), 0),  # noqa: FBT003
    "0 is positive": (eight(0, 1), 0, 0, np.array([0, 1]), 0),
    "-1/+1": (eight(1, -1), None, 1, np.array([-1, 1]), 1),
    "other numbers": (eight(2, 7), np.int64(2), 2, np.array([2, 7]), 0),
    "halves": (eight(0.5, 1.5), 0.5, 0.5, [np.float32(0.5), 1.5], 0),
    "text": (eight("late", "ok"), "late", "late", np.array(["late", "ok"]), 0),
    "text of objects": (eight("yes", "no"), np.str_("yes"), "yes", np.array(["no", "yes"], dtype=object), 1),
    "text in a list": (eight("b", "a"), "b", "b", ["a", "b"], 1),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_the_positive_class_is_found_by_its_value(pair: str, tmp_path: Path) -> None:
    label, positive, kept, classes, place = PAIRS[pair]
    found = halving(label, positive=positive)
    again = calframe.load_map(found.save(tmp_path / "map.json"))
    proba = np.empty((2, 2))
    proba[:, place], proba[:, 1 - place] = [0.9, 0.1], [0.1, 0.9]
    for one in (found, again):
        assert (one.positive, type(one.positive)) == (kept, type(kept))
        calibrated = one.wrap(Given(classes, proba)).predict_proba(None)
        np.testing.assert_allclose(calibrated[:, place], [0.75, 0.25], rtol=1e-12)
        np.testing.assert_allclose(calibrated[:, 1 - place], [0.25, 0.75], rtol=1e-12)
        assert one.wrap(Given(classes, proba)).predict(None).tolist() == [classes[place], classes[1 - place]]


def test_a_classifier_whose_positive_class_is_first() -> None:
    label = np.where(Y == 1, "late", "ok")
    model = LogisticRegression(C=1e-3).fit(X, label)
    assert model.classes_.tolist() == ["late", "ok"]
    scores = pl.DataFrame({"p": model.predict_proba(X)[:, 0], "y": label})
    found = calframe.fit(scores, label="y", score="p", positive="late", method="beta")
    expected = found.apply(scores)["p_calibrated"].to_numpy()
    np.testing.assert_array_equal(found.wrap(model).predict_proba(X), np.column_stack([expected, 1 - expected]))


@pytest.mark.parametrize("classes", [["a", "b", "c"], [0, 1, 2], [1.0, 10.0, 2.0], [False, True, 2]])
@pytest.mark.parametrize("method", ["vector", "ovr_isotonic"])
@pytest.mark.parametrize("vector", [False, True])
def test_classes_are_matched_by_their_values(classes: list[Any], method: str, vector: bool) -> None:  # noqa: FBT001
    rng = np.random.default_rng(3)
    proba = rng.dirichlet([1, 2, 3], 90)
    label = [classes[place] for place in rng.integers(0, 3, 90)]
    names = np.asarray(classes)[[2, 0, 1]]  # the map names them in another order, as scalars of NumPy
    columns = {f"p{name}": proba[:, classes.index(name)] for name in names}
    if vector:
        table = pl.DataFrame({"p": np.column_stack(list(columns.values())), "y": np.asarray(label)})
        found = calframe.fit(table, label="y", score="p", classes=names, method=method)
    else:
        table = pl.DataFrame(columns | {"y": np.asarray(label)})
        found = calframe.fit(table, label="y", score=dict(zip(names, columns, strict=True)), method=method)
    assert found.positive is None
    calibrated = found.wrap(Given(classes, proba)).predict_proba(None)
    applied = found.apply(table)
    for name in names:
        np.testing.assert_array_equal(calibrated[:, classes.index(name)], applied[f"p_calibrated_{name}"])


@pytest.mark.parametrize("link", ["probability", "logit"])
@pytest.mark.parametrize("method", ["platt", "venn_abers"])
def test_two_named_classes_are_matched_by_their_values(method: str, link: str) -> None:
    one = MODEL.predict_proba(X)[:, 1]
    scores = {"p_no": 1 - one, "p_yes": one}
    columns = scores if link == "probability" else {name: np.log(values) for name, values in scores.items()}
    table = pl.DataFrame(columns | {"y": np.where(Y == 1, "yes", "no")})
    found = calframe.fit(table, label="y", score={"yes": "p_yes", "no": "p_no"}, method=method, link=link)
    calibrated = found.wrap(Given(["no", "yes"], np.column_stack([1 - one, one]))).predict_proba(None)
    no = found.apply(table)["p_calibrated"].to_numpy()  # the second of the mapping is the positive one
    np.testing.assert_allclose(calibrated, np.column_stack([no, 1 - no]), rtol=1e-14)


def test_a_map_of_logits_takes_those_of_the_probabilities() -> None:
    table = pl.DataFrame({"z": MODEL.decision_function(X), "y": Y})
    found = calframe.fit(table, label="y", score="z", link="logit", method="platt")
    expected = found.apply(table)["p_calibrated"].to_numpy()  # a logistic regression decides by the logit
    np.testing.assert_allclose(found.wrap(MODEL).predict_proba(X)[:, 1], expected, rtol=1e-12)
    assert found.wrap(Given([0, 1], [[1.0, 0.0], [0.0, 1.0]])).predict_proba(None).tolist() == [[1, 0], [0, 1]]


def test_narrow_probabilities_may_miss_1_by_their_own_steps() -> None:
    proba = np.random.default_rng(4).dirichlet(np.ones(3), 90)
    table = pl.DataFrame({f"p{i}": proba[:, i] for i in range(3)} | {"y": np.arange(90) % 3})
    found = calframe.fit(table, label="y", score={i: f"p{i}" for i in range(3)}, method="identity")
    half = (proba * (1 - 1e-3)).astype(np.float16)
    np.testing.assert_array_equal(found.wrap(Given([0, 1, 2], half)).predict_proba(None), half)
    with pytest.raises(ScoreError, match="must add up to 1"):
        found.wrap(Given([0, 1, 2], half.astype(np.float64))).predict_proba(None)


# ------------------------------------------------------------------ what cannot be matched
def test_a_map_that_does_not_say_what_is_positive() -> None:
    def unsaid(found: calframe.CalibrationMap) -> calframe.CalibrationMap:
        return replace(found, positive=None)

    proba = [[0.1, 0.9]]
    assert unsaid(halving(eight(1, 0))).positive is None
    for classes in ([0, 1], [-1, 1], np.array([False, True])):  # these say it, as they do in a label
        calibrated = unsaid(halving(eight(1, 0))).wrap(Given(classes, proba)).predict_proba(None)
        np.testing.assert_allclose(calibrated, [[0.25, 0.75]], rtol=1e-12)
    text = unsaid(halving(eight("late", "ok"), positive="late"))
    for classes in (["late", "ok"], [1, 2], [-1, 0]):
        with pytest.raises(ArgumentError, match="does not say which label value is positive; pass positive=, the one"):
            text.wrap(Given(classes, proba))
    calibrated = text.wrap(Given(["late", "ok"], proba), positive="late").predict_proba(None)
    np.testing.assert_allclose(calibrated, [[0.25, 0.75]], rtol=1e-12)  # late: 0.1 becomes 1/4


def test_classes_of_other_names_are_refused() -> None:
    coded = halving(eight(1, 0))
    with pytest.raises(
        ArgumentError, match=r"of 1, which is none of the classifier's classes \['late', 'ok'\]; pass pos"
    ):
        coded.wrap(Given(np.array(["late", "ok"]), [[0.1, 0.9]]))
    with pytest.raises(ArgumentError, match="none of the classifier's classes"):
        coded.wrap(Given(["0", "1"], [[0.1, 0.9]]))
    with pytest.raises(ArgumentError, match="positive='lat' is none of the classifier's classes"):
        coded.wrap(Given(["late", "ok"], [[0.1, 0.9]]), positive="lat")
    calibrated = coded.wrap(Given(["late", "ok"], [[0.9, 0.1]]), positive="late").predict_proba(None)
    np.testing.assert_allclose(calibrated, [[0.75, 0.25]], rtol=1e-12)
    with pytest.raises(ArgumentError, match=r"for 2 classes, and the classifier has 3: \['a', 'b', 'c'\]"):
        coded.wrap(Given(np.array(["a", "b", "c"]), [[0.1, 0.2, 0.7]]))
    table = pl.DataFrame({"a": [0.1, 0.6], "b": [0.2, 0.3], "c": [0.7, 0.1], "y": ["a", "b"]})
    several = calframe.fit(table, label="y", score={"c": "c", "a": "a", "b": "b"}, method="identity")
    with pytest.raises(ArgumentError, match=r"classes \['c', 'a', 'b'\], and the classifier \[0, 1, 2\]; fit the map"):
        several.wrap(Given(np.arange(3), [[0.1, 0.2, 0.7]]))
    with pytest.raises(ArgumentError, match=r"for 3 classes \['c', 'a', 'b'\], and the classifier has 2"):
        several.wrap(Given(["a", "b"], [[0.3, 0.7]]))
    with pytest.raises(ArgumentError, match="positive='a' is for a map of one score"):
        several.wrap(Given(["a", "b", "c"], [[0.1, 0.2, 0.7]]), positive="a")
    with pytest.raises(ArgumentError, match="for 3 classes, and predict_proba gives an array of shape 1x2"):
        several.wrap(Given(["a", "b", "c"], [[0.3, 0.7]])).predict_proba(None)


def test_what_is_no_fitted_classifier_is_refused_at_once() -> None:
    found = halving(eight(1, 0))
    unfitted = (LogisticRegression(), LogisticRegression, Pipeline, make_pipeline(LogisticRegression()), Given([], []))
    for one in unfitted:
        with pytest.raises(ArgumentError, match="has no classes_: fit it first"):
            found.wrap(one)
    for one, kind in ((found, "CalibrationMap"), (LinearSVC().fit(X, Y), "LinearSVC"), (None, "NoneType")):
        with pytest.raises(ArgumentError, match=f"wrap takes a fitted classifier .+ this {kind} has no predict_proba"):
            found.wrap(one)
    both = RandomForestClassifier(2, random_state=0).fit(X, np.column_stack([Y, Y, Y]))
    with pytest.raises(ArgumentError, match="classifier of one outcome; the classes_ of this one are those of 3"):
        found.wrap(both)


# ------------------------------------------------------------------ segments
FRAME = pd.DataFrame(X, columns=["a", "b"]).assign(
    g=pd.Categorical(np.where(X[:, 1] > 0, "x", "z")), h=np.where(X[:, 0] > 1, np.nan, np.arange(600) % 3)
)
ON_FRAME = LogisticRegression(C=1e-3).fit(FRAME[["a", "b"]], Y)
SCORED = FRAME.assign(p=ON_FRAME.predict_proba(FRAME[["a", "b"]])[:, 1], y=Y)
SEGMENTED = calframe.fit(SCORED, label="y", score="p", by=["g", "h"], method="platt", pooling="none")
EXPECTED = SEGMENTED.apply(SCORED)["p_calibrated"].to_numpy()
FRAMES = {
    "pandas": lambda: FRAME,
    "pandas with one index for all": lambda: FRAME.set_index(np.zeros(600, dtype=int)),
    "polars": lambda: pl.DataFrame({name: FRAME[name].tolist() for name in FRAME}, nan_to_null=True),
    "pyarrow": lambda: pa.Table.from_pandas(FRAME, preserve_index=False),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_classifier_gets_no_segment_column_that_it_was_not_fitted_with(kind: str) -> None:
    frame = FRAMES[kind]()
    np.testing.assert_array_equal(SEGMENTED.wrap(ON_FRAME).predict_proba(frame)[:, 1], EXPECTED)

    class Counting:
        classes_, n_features_in_ = MODEL.classes_, 2

        def predict_proba(self, rows: Any) -> Any:
            return ON_FRAME.predict_proba(rows)

    np.testing.assert_array_equal(SEGMENTED.wrap(Counting()).predict_proba(frame)[:, 1], EXPECTED)


def test_a_classifier_gets_the_segment_columns_that_it_was_fitted_with() -> None:
    rows = FRAME.assign(g=np.where(FRAME["g"] == "x", 0, 1))
    model = LogisticRegression().fit(rows[["a", "b", "g"]], Y)
    scored = rows.assign(p=model.predict_proba(rows[["a", "b", "g"]])[:, 1], y=Y)
    found = calframe.fit(scored, label="y", score="p", by=["h", "g"], method="platt", pooling="none")
    expected = found.apply(scored)["p_calibrated"]
    np.testing.assert_array_equal(found.wrap(model).predict_proba(rows)[:, 1], expected)  # without h
    assert "p" not in rows.columns


@pytest.mark.parametrize("kind", FRAMES)
def test_vectors_and_segments_of_every_kind_of_frame(kind: str) -> None:
    proba = np.random.default_rng(6).dirichlet(np.ones(3), 600)
    table = SCORED.assign(p=list(proba[:, [1, 2, 0]]), y=np.arange(600) % 3)
    found = calframe.fit(table, label="y", score="p", by="g", classes=[1, 2, 0], method="vector")
    expected = found.apply(table)[[f"p_calibrated_{i}" for i in range(3)]]
    np.testing.assert_array_equal(found.wrap(Given([0, 1, 2], proba)).predict_proba(FRAMES[kind]()), expected)


def test_rows_without_the_segment_columns_are_refused() -> None:
    wrapped = SEGMENTED.wrap(ON_FRAME)
    with pytest.raises(ColumnNotFoundError, match="no column 'g', which the map takes as a segment; the table has 'a'"):
        wrapped.predict_proba(FRAME[["a", "b", "h"]])
    with pytest.raises(ColumnNotFoundError, match="no column 'h', which the map takes as a segment"):
        wrapped.predict(pl.DataFrame({"a": [0.1], "b": [0.2], "g": ["x"]}))
    for rows in (X, FRAME["g"], pl.LazyFrame({"g": ["x"], "h": [1]})):
        with pytest.raises(ArgumentError, match="segments by g, h; pass X as a frame in memory with these columns"):
            wrapped.predict_proba(rows)


# ------------------------------------------------------------------ the tools of scikit-learn
def wrapped_model() -> tuple[Any, Any]:
    """Return a wrapped classifier, and the calibrated probabilities that it should give."""
    scores = pl.DataFrame({"p": MODEL.predict_proba(X)[:, 1], "y": Y})
    found = calframe.fit(scores, label="y", score="p", method="beta")
    return found.wrap(MODEL), found.apply(scores)["p_calibrated"].to_numpy()


def test_it_is_a_fitted_classifier_that_stays_as_it_is() -> None:
    wrapped, expected = wrapped_model()
    for one in (wrapped, wrapped.map.wrap(Given([0, 1], MODEL.predict_proba(X)))):  # also around what has no tags
        assert is_classifier(one)
        check_is_fitted(one)
        assert clone(one) is one
        assert one.fit(X, 1 - Y) is one
        np.testing.assert_array_equal(one.predict_proba(X)[:, 1], expected)
    assert wrapped.get_params() == {"classifier": MODEL, "map": wrapped.map, "positive": None}
    assert wrapped.set_params() is wrapped
    with pytest.raises(ArgumentError, match="nothing to set, got classifier; take map"):
        wrapped.set_params(classifier=MODEL)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(wrapped)).predict_proba(X)[:, 1], expected)  # noqa: S301


def test_scikit_learn_is_not_needed() -> None:
    program = (
        "import sys\n"
        "sys.modules['sklearn'] = None\n"
        "import numpy, polars, calframe\n"
        "class Given:\n"
        "    classes_ = [0, 1]\n"
        "    def predict_proba(self, X): return numpy.array([[0.25, 0.75]])\n"
        "rows = polars.DataFrame({'p': [0.2, 0.8], 'y': [0, 1]})\n"
        "wrapped = calframe.fit(rows, label='y', score='p', method='identity').wrap(Given())\n"
        "print(wrapped.predict_proba(None).tolist(), wrapped.score(None, [1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "[[0.25, 0.75]] 1.0\n"


def test_it_is_scored() -> None:
    wrapped, expected = wrapped_model()
    assert get_scorer("neg_brier_score")(wrapped, X, Y) == -brier_score_loss(Y, expected)
    weight = np.arange(600.0)
    assert wrapped.score(X, Y) == pytest.approx(accuracy_score(Y, expected > 0.5), rel=1e-15)
    accuracy = accuracy_score(Y, expected > 0.5, sample_weight=weight)
    assert wrapped.score(X, pl.Series(Y), sample_weight=weight) == pytest.approx(accuracy, rel=1e-15)
    with pytest.raises(ArgumentError, match="one class for each of the 600 rows of X; it has shape 600x1"):
        wrapped.score(X, Y[:, None])


def test_it_is_cross_validated_and_explained() -> None:
    wrapped, expected = wrapped_model()
    parts = np.array_split(np.arange(600), 3)
    folds = [(np.setdiff1d(np.arange(600), part), part) for part in parts]
    scores = cross_val_score(wrapped, X, Y, scoring="neg_brier_score", cv=folds, error_score="raise")
    np.testing.assert_allclose(scores, [-np.mean((expected[part] - Y[part]) ** 2) for part in parts], rtol=1e-12)
    found = cross_val_predict(wrapped, X, Y, cv=folds, method="predict_proba")
    np.testing.assert_array_equal(found[:, 1], expected)
    constant = X * [1.0, 0.0]  # to shuffle a constant changes nothing
    found = permutation_importance(wrapped, constant, Y, scoring="neg_brier_score", n_repeats=3, random_state=0)
    assert found.importances_mean[0] > 0.0 == found.importances_mean[1]
    shuffled = permutation_importance(SEGMENTED.wrap(ON_FRAME), FRAME, Y, scoring="neg_brier_score", random_state=0)
    assert shuffled.importances_mean.shape == (4,)  # of the features, and of the segment columns that the map reads
    assert shuffled.importances_mean[0] > 0.0
    again = CalibratedClassifierCV(wrapped, cv=folds).fit(X, Y)
    assert again.predict_proba(X).shape == (600, 2)
    assert make_pipeline(wrapped).fit(X, Y).score(X, Y) == wrapped.score(X, Y)


def test_an_expression_applies_a_map_to_any_column() -> None:
    rows = pl.DataFrame({"p": MODEL.predict_proba(X)[:, 1], "y": Y, "g": np.where(X[:, 1] > 0, "x", "z")})
    found = calframe.fit(rows, label="y", score="p", by="g", method="platt", pooling="none")
    expected = found.apply(rows)["p_calibrated"]
    other = rows.rename({"p": "q"})
    for frame in (other, other.lazy()):
        out = frame.with_columns(pl.col("q").calib.apply(found)).lazy().collect()
        assert out["q"].to_list() == expected.to_list()
    assert rows.select(found.to_expr().alias("c"))["c"].to_list() == expected.to_list()
    with pytest.raises(ArgumentError, match="CalibrationMap"):
        pl.col("q").calib.apply("beta")
    with pytest.raises((ScoreError, pl.exceptions.ComputeError), match=r"must lie in \[0, 1\]"):
        other.select((pl.col("q") + 1).calib.apply(found))
