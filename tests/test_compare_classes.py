"""The verb `compare` on models of several classes, and by measures of whole score vectors."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import special, stats

import calframe
from calframe import ArgumentError, ColumnNotFoundError, ScoreError
from calframe._compare import compare
from calframe._measures import CLASS_METRICS, METRICS
from tests._tables import Maker, approx, rows

CLASSES = ("a", "b", "c")
OLD, NEW = ({name: f"{letter}_{name}" for name in CLASSES} for letter in "pq")
MODELS = {"old": OLD, "new": NEW}
COMPARED = [name for name, metric in CLASS_METRICS.items() if not metric.posterior]
MEANS = ("brier", "log_loss", "accuracy")
WHOLE = [name for name, metric in METRICS.items() if metric.reads == "vectors"]
NUMBERS = ("first", "second", "difference", "low", "high", "pvalue")
Matrix = NDArray[np.float64]


def drawn(n: int, *, seed: int = 0, alike: bool = False, share: float = 0.6) -> pl.DataFrame:
    """Return rows of two models of three classes: the first knows the truth, or both only a part of it."""
    rng = np.random.default_rng(seed)
    truth, *noise = rng.normal(size=(3, n, len(CLASSES)))
    first, second = (share * truth + math.sqrt(1.0 - share**2) * each for each in noise)
    scores = [special.softmax(each, axis=1) for each in (first if alike else truth, second)]
    chance = special.softmax(truth, axis=1).cumsum(axis=1)
    label = (rng.random((n, 1)) > chance[:, :-1]).sum(axis=1)
    columns = {f"{letter}_{name}": scores[i][:, j] for i, letter in enumerate("pq") for j, name in enumerate(CLASSES)}
    return pl.DataFrame(
        {
            "y": [CLASSES[i] for i in label],
            **columns,
            "w": rng.integers(1, 4, n),
            "g": rng.choice(["u", "v"], n),
        }
    )


def matrices(table: pl.DataFrame) -> tuple[Matrix, Matrix, NDArray[np.int64]]:
    """Return the vectors of both models and the place of the class that happened."""
    first, second = (table.select(model.values()).to_numpy() for model in (OLD, NEW))
    return first, second, np.array([CLASSES.index(name) for name in table["y"]])


def one(data: Any, metric: str = "brier", score: Any = None, **arguments: Any) -> dict[str, Any]:
    """Return the row of one metric of a whole table."""
    table = compare(data, label="y", score=MODELS if score is None else score, metrics=metric, **arguments).table
    (row,) = pl.DataFrame(table).iter_rows(named=True)
    return dict(row)


def losses(scores: Matrix, label: NDArray[np.int64], metric: str) -> Matrix:
    """Return the loss of each row by its definition."""
    happened = np.eye(len(CLASSES))[label]
    if metric == "brier":
        return np.asarray(((scores - happened) ** 2).sum(axis=1))
    return np.asarray(-np.log((scores * happened).sum(axis=1)))


# --- means of rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["brier", "log_loss"])
def test_losses_are_compared_by_students_paired_test(metric: str) -> None:
    table = drawn(150, seed=1)
    first, second, label = matrices(table)
    expected = stats.ttest_rel(losses(second, label, metric), losses(first, label, metric))  # scipy
    ends = expected.confidence_interval(0.9)
    found = one(table, metric, confidence_level=0.9)
    assert (found["law"], found["better"]) == ("t", "old")
    assert found["pvalue"] == pytest.approx(expected.pvalue, rel=1e-9)
    assert [found["low"], found["high"]] == pytest.approx([ends.low, ends.high], rel=1e-9)


def test_rows_that_all_agree_do_not_show_that_accuracies_are_equal() -> None:
    found = one(drawn(60, seed=2).with_columns(pl.col(OLD[name]).alias(NEW[name]) for name in CLASSES), "accuracy")
    # Agresti and Min (2005): with two rows added, one half each way, z sqrt(1 / 62) / sqrt(62)
    half = stats.norm.ppf(0.975) / 62
    assert [found["low"], found["high"]] == pytest.approx([-half, half], rel=1e-12)
    assert (found["difference"], found["pvalue"], found["law"]) == (0.0, 1.0, "exchange")


def test_a_loss_from_logits_is_exact_where_probabilities_round_to_0() -> None:
    logits = {name: [800.0, 0.0, 0.0] * 10 if name == "a" else [0.0] * 30 for name in CLASSES}
    table = pl.DataFrame({"y": ["b", "a", "c"] * 10, **{f"p_{name}": logits[name] for name in CLASSES}})
    table = table.with_columns(pl.lit(0.0).alias(f"q_{name}") for name in CLASSES)
    found = one(table, "log_loss", link="logit")
    # by hand: 800 where a is sure and b happens, ln 3 elsewhere
    assert found["first"] == pytest.approx((800.0 + 2.0 * math.log(3.0)) / 3.0, rel=1e-12)
    assert found["second"] == pytest.approx(math.log(3.0), rel=1e-12)
    assert found["pvalue"] < 0.05


def test_an_infinite_loss_says_nothing_of_the_difference() -> None:
    gone = pl.DataFrame({"y": "a", "q_a": 0.0, "q_b": 0.5, "q_c": 0.5, "p_a": 0.2, "p_b": 0.4, "p_c": 0.4})
    table = pl.concat([drawn(60, seed=3), gone], how="diagonal")
    with pytest.warns(calframe.CalframeWarning, match=r"1 row of model 'new' gives probability 0 .*clip="):
        found = one(table, "log_loss")
    assert (found["second"], found["difference"]) == (math.inf, math.inf)
    assert (found["low"], found["high"], found["pvalue"], found["better"], found["law"]) == (None,) * 5
    assert "clip=" in found["note"]
    assert one(table, "log_loss", clip=1e-6)["pvalue"] is not None


@pytest.mark.parametrize("metric", [*MEANS, "confidence_ece"])
def test_three_copies_are_a_row_of_weight_3(metric: str) -> None:
    table = drawn(80, seed=4).with_columns(w=3)
    counted = one(table, metric, weight="w", weight_kind="frequency", n_resamples=200)
    plain = one(pl.concat([table] * 3), metric, n_resamples=200)
    same = NUMBERS if metric in MEANS else NUMBERS[:3]  # nor do draws come in the same order
    assert [counted[name] for name in same] == pytest.approx([plain[name] for name in same], rel=1e-9)


@pytest.mark.parametrize("metric", MEANS)
def test_five_copies_in_a_cluster_say_as_much_as_one(metric: str) -> None:
    table = drawn(400, seed=5).with_row_index("who")
    alone, many = one(table, metric), one(pl.concat([table] * 5), metric, cluster="who")
    assert alone["law"] == many["law"] == "t"
    same = ("first", "second", "pvalue", *(() if metric == "accuracy" else ("low", "high")))
    assert [many[name] for name in same] == pytest.approx([alone[name] for name in same], rel=1e-7)


def test_swapped_models_mirror_each_other() -> None:
    table = drawn(250, seed=6)
    for metric in (*MEANS, "confidence_ece", "classwise_ece", "aurc"):
        found = one(table, metric, n_resamples=50)
        turned = one(table, metric, {"new": NEW, "old": OLD}, n_resamples=50)
        assert [turned["first"], turned["second"]] == pytest.approx([found["second"], found["first"]], rel=1e-12)
        assert turned["better"] == found["better"]
        assert turned["pvalue"] == found["pvalue"]
        mirrored = [-turned["high"], -turned["low"]]
        assert mirrored == pytest.approx([found["low"], found["high"]], rel=0.0, abs=1e-12)


# --- exchanges of whole vectors -------------------------------------------------------------------------------------


def binned(score: Matrix, happened: Matrix, bins: int = 5) -> float:
    """Return the expected calibration error of one column by its definition."""
    place = np.minimum((score * bins).astype(int), bins - 1)
    parts = [abs((score - happened)[place == k].sum()) for k in range(bins)]
    return sum(parts) / len(score)


def confidence_ece(scores: Matrix, label: NDArray[np.int64]) -> float:
    return binned(scores.max(axis=1), (scores.argmax(axis=1) == label).astype(float))


def classwise_ece(scores: Matrix, label: NDArray[np.int64]) -> float:
    return float(np.mean([binned(scores[:, k], (label == k).astype(float)) for k in range(len(CLASSES))]))


def all_exchanges(table: pl.DataFrame, measure: Callable[..., float], units: Sequence[int]) -> float:
    """Return the share of all exchanges of units whose difference is at least as large as that seen."""
    first, second, label = matrices(table)
    differences = []
    for change in itertools.product([False, True], repeat=len(set(units))):
        moved = np.array(change)[np.unique(units, return_inverse=True)[1]][:, None]
        differences.append(
            measure(np.where(moved, first, second), label) - measure(np.where(moved, second, first), label)
        )
    return float(np.mean(np.abs(differences) >= abs(differences[0]) * (1.0 - 1e-9)))


@pytest.mark.parametrize("measure", [confidence_ece, classwise_ece])
@pytest.mark.parametrize("kind", ["rows", "clusters", "counts"])
def test_exchanges_are_those_of_all_ways_to_exchange_rows(measure: Callable[..., float], kind: str) -> None:
    table = drawn(8, seed={"rows": 7, "clusters": 8, "counts": 25}[kind]).with_columns(
        w=pl.Series([1, 2, 1, 1, 2, 1, 1, 1])
    )
    arguments: dict[str, Any] = {"n_resamples": 20_000, "bins": 5, "rng": 3}
    each = table
    units: Sequence[int] = range(8)
    if kind == "clusters":
        table = table.with_columns(who=pl.Series([0, 0, 1, 2, 3, 4, 5, 5]))
        units, arguments["cluster"] = table["who"].to_list(), "who"
    if kind == "counts":
        each = table.select(pl.all().repeat_by("w").explode())
        units = range(len(each))
        arguments |= {"weight": "w", "weight_kind": "frequency"}
    expected = all_exchanges(each, measure, units)  # 2^8 ways, 2^6 of clusters, 2^10 of counts
    assert 0.05 < expected < 0.95
    found = one(table, measure.__name__, **arguments)
    assert found["difference"] == pytest.approx(measure(*matrices(each)[1:]) - measure(*matrices(each)[::2]), rel=1e-9)
    error = math.sqrt(expected * (1.0 - expected) / 20_000)
    assert found["pvalue"] == pytest.approx(expected, abs=4.0 * error)


def test_models_that_are_alike_are_found_to_differ_at_the_level_stated() -> None:
    tables, size = 300, 25
    table = drawn(tables * size, seed=9, alike=True).with_columns(g=pl.int_range(tables * size) % tables)
    found = compare(
        table, label="y", score=MODELS, by="g", metrics="confidence_ece", n_resamples=99, correction="none"
    ).table
    rejected = (found["pvalue"] <= 0.05).mean()
    assert isinstance(rejected, float)
    assert rejected <= 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / tables)
    assert (found["pvalue"] <= 0.5).mean() > 0.3  # nor are p-values all large


@pytest.mark.parametrize("weights", [{}, {"weight": "w"}, {"weight": "w", "weight_kind": "frequency"}])
def test_logits_change_places_with_their_losses(weights: dict[str, Any]) -> None:
    table = drawn(50, seed=10)
    logits = table.with_columns(pl.col(*OLD.values(), *NEW.values()).log())
    asked = {"n_resamples": 100, **weights}
    for metric in ("calibration_loss_log", "classwise_ece"):  # the first reads the losses
        found, expected = one(logits, metric, link="logit", **asked), one(table, metric, **asked)
        assert [found[name] for name in NUMBERS] == [approx(expected[name], rel=1e-9) for name in NUMBERS]


def test_the_order_of_rows_does_not_matter() -> None:
    table = drawn(120, seed=11)
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=1)
    for metric in ("brier", "confidence_ece", "skce"):
        before, after = (one(each, metric, n_resamples=50) for each in (table, shuffled))
        assert [after[name] for name in NUMBERS] == [approx(before[name], rel=1e-9) for name in NUMBERS]


def test_draws_are_made_anew_where_there_are_many_comparisons() -> None:
    table = drawn(2_000, seed=12).with_columns(h=pl.int_range(2_000) % 40)
    sure = [
        pl.when(pl.col("h") == 0).then(float(name == "a")).otherwise(column).alias(column)
        for name, column in NEW.items()
    ]
    asked: dict[str, Any] = {"by": "h", "metrics": "confidence_ece", "n_resamples": 399}
    found = compare(table.with_columns(sure), label="y", score=MODELS, **asked).table
    # 40 comparisons ask for 2 * 40 / 0.05 draws: the least p-value is 1 / 1601
    assert found["pvalue"][0] == pytest.approx(1.0 / 1601.0)
    assert found["better"][0] == "old"


def test_progress_adds_up_to_the_whole() -> None:
    told: list[float] = []
    compare(drawn(60, seed=13), label="y", score=MODELS, metrics=["confidence_ece", "aurc"], progress=told.append)
    assert sum(told) == pytest.approx(1.0)


# --- what stands in the table ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", COMPARED)
def test_values_are_those_of_metrics_on_the_common_rows(metric: str) -> None:
    table = drawn(200, seed=14).with_columns(
        p_a=pl.when(pl.int_range(pl.len()) % 7 != 0).then("p_a"),
        q_c=pl.when(pl.int_range(pl.len()) % 5 != 0).then("q_c"),
    )
    common = table.drop_nulls()
    arguments: dict[str, Any] = {"by": "g", "weight": "w", "metrics": metric, "bins": 4}
    found = compare(table, label="y", score=MODELS, n_resamples=20, **arguments).table
    for column, score in (("first", OLD), ("second", NEW)):
        expected = calframe.metrics(common, label="y", score=score, **arguments)
        assert found[column].to_list() == pytest.approx(expected[metric].to_list(), rel=1e-9, abs=1e-12)
        assert found["n"].to_list() == expected["n"].to_list()
    assert found["n_missing"].sum() == len(table) - len(common)


def test_every_library_gives_the_same_table_in_its_own_kind(make: Maker) -> None:
    columns = drawn(40, seed=15).to_dict(as_series=False)
    found = compare(make(columns), label="y", score=MODELS, by="g", n_resamples=20)
    assert isinstance(found.table, pl.DataFrame if make.lazy else make.result)
    expected = compare(pl.DataFrame(columns), label="y", score=MODELS, by="g", n_resamples=20)
    table, wanted = rows(found.table), rows(expected.table)
    assert table["metric"] == ["brier", "log_loss", "accuracy", "confidence_ece"] * 2
    for name in NUMBERS:
        assert table[name] == [approx(value, rel=1e-9) for value in wanted[name]]


@pytest.mark.parametrize("kind", ["list", "array", "struct", "pandas"])
def test_columns_of_vectors_are_mappings_otherwise_put(kind: str) -> None:
    table = drawn(60, seed=16)
    dtype = pl.Array(pl.Float64, 3) if kind == "array" else pl.List(pl.Float64)
    held = {
        name: pl.struct(pl.col(column).alias(c) for c, column in model.items())
        if kind == "struct"
        else pl.concat_list(model.values()).cast(dtype)
        for name, model in MODELS.items()
    }
    vectors: Any = table.select("y", "g", **held)
    vectors = vectors.to_pandas() if kind == "pandas" else vectors
    found = compare(vectors, label="y", score=["old", "new"], classes=CLASSES, by="g", n_resamples=50)
    expected = compare(table, label="y", score=MODELS, by="g", n_resamples=50)
    assert (found.first, found.second) == ("old", "new")
    assert rows(found.table) == {name: [approx(x) for x in column] for name, column in rows(expected.table).items()}


def test_two_classes_are_a_binary_table_of_the_second() -> None:
    table = drawn(150, seed=17).select(
        y=pl.when(pl.col("y") == "a").then(pl.lit("yes")).otherwise(pl.lit("no")), a="p_a", b="q_a"
    )
    table = table.with_columns(rest_a=1.0 - pl.col("a"), rest_b=1.0 - pl.col("b"))
    models = [{"no": "rest_a", "yes": "a"}, {"yes": "b", "no": "rest_b"}]
    asked: dict[str, Any] = {"metrics": ["brier", "log_loss", "auc", "ece", "mcb", "toplabel_ece"], "n_resamples": 20}
    found = compare(table, label="y", score=models, **asked)
    binary = compare(table, label="y", score=["a", "b"], positive="yes", **asked)
    assert (found.first, found.second) == ("first", "second")
    assert found.table.drop("better").equals(binary.table.drop("better"))
    assert found.convention["classes"] == ["no", "yes"]


@pytest.mark.parametrize("metric", WHOLE)
def test_binary_columns_are_vectors_of_two_classes(metric: str) -> None:
    table = drawn(120, seed=18).select(y=(pl.col("y") == "a").cast(pl.Int8), a="p_a", b="q_a")
    found = one(table, metric, ["a", "b"], bins=7, n_resamples=50)
    expected = [calframe.metrics(table, label="y", score=name, metrics=metric, bins=7)[metric][0] for name in "ab"]
    assert [found["first"], found["second"]] == pytest.approx(expected, rel=1e-9)
    assert (found["law"], 0.0 < found["pvalue"] <= 1.0) == ("exchange", True)


def test_float32_scores_meet_the_edges_that_a_person_sees_beside_float64_ones() -> None:
    table = pl.DataFrame({"y": [0, 1, 1, 1, 0] * 4, "a": [0.3, 0.7, 0.9, 0.6, 0.1] * 4}).with_columns(b="a")
    narrow = table.with_columns(pl.col("b").cast(pl.Float32))
    for metric in ("confidence_ece", "classwise_ece", "toplabel_ece", "full_ece"):
        for closed in ("left", "right"):
            found = one(narrow, metric, ["a", "b"], bins=10, closed=closed, n_resamples=20)
            expected = calframe.metrics(narrow, label="y", score="b", metrics=metric, bins=10, closed=closed)
            assert found["second"] == pytest.approx(expected[metric][0], abs=1e-7)


def test_vectors_that_are_none_are_refused_or_counted() -> None:
    table = drawn(30, seed=19).with_columns(q_a=pl.when(pl.int_range(pl.len()) == 3).then(5.0).otherwise("q_a"))
    with pytest.raises(ScoreError, match=r"^model 'new': the probabilities of a row must .* worst in row 3"):
        one(table)
    found = one(table, invalid="drop")
    assert (found["n"], found["n_missing"], found["n_invalid"]) == (29, 0, 1)


def test_measures_without_an_honest_interval_say_so() -> None:
    table = drawn(60, seed=20).with_columns(who=pl.int_range(60) // 2)
    assert one(table, "classwise_mce", n_resamples=20)["note"] == (
        "no interval for classwise_mce: none is known to be honest"
    )
    assert "more than 2,000 rows" in one(table, "skce", n_resamples=20)["note"]
    assert one(table, "skce", cluster="who", n_resamples=20)["note"] == (
        "no interval for skce: it needs independent rows"
    )
    by_weight = one(table, "full_ece", n_resamples=20, bins="auto")
    assert (by_weight["first"], by_weight["pvalue"]) == (None, None)
    assert by_weight["note"].startswith("full_ece: bins of equal weight are not defined")


def test_intervals_are_wider_where_rows_stand_in_clusters() -> None:
    table = drawn(200, seed=21)
    copies = pl.concat([table.with_row_index("who")] * 4)
    for metric in ("confidence_ece", "classwise_ece", "aurc"):
        alone, many = one(table, metric, n_resamples=50), one(copies, metric, cluster="who", n_resamples=50)
        plain = one(copies, metric, n_resamples=50)
        width, wide, narrow = (each["high"] - each["low"] for each in (alone, many, plain))
        assert wide == pytest.approx(width, rel=0.05)
        assert narrow < 0.75 * wide


# --- the result object ----------------------------------------------------------------------------------------------


def test_names_of_models_stand_in_every_form_of_the_result() -> None:
    table, asked = drawn(400, seed=22), {"metrics": ["brier", "confidence_ece"], "n_resamples": 20}
    found = compare(table, label="y", score=MODELS, by="g", **asked)
    said = found.to_dict()
    assert (said["first"], said["second"]) == (found.first, found.second) == ("old", "new")
    assert said["convention"]["classes"] == list(CLASSES)
    assert said["convention"]["columns"] == {"old": ["p_a", "p_b", "p_c"], "new": ["q_a", "q_b", "q_c"]}
    assert said["convention"]["direction"]["confidence_ece"] == "lower"
    assert len(json.loads(json.dumps(said, allow_nan=False))["table"]) == 4
    assert repr(found).splitlines()[0] == "<Comparison: new minus old, 4 differences>"
    assert "old better" in repr(found)
    assert "new minus old" in found._repr_html_()
    assert "new minus old" in json.dumps(found.plot().to_dict())
    assert table.calib.compare(label="y", score=MODELS, by="g", **asked).table.equals(found.table)


def test_all_metrics_but_the_slow_one_can_be_asked_for_at_once() -> None:
    found = compare(drawn(60, seed=23), label="y", score=[OLD, NEW], metrics="all", n_resamples=20)
    assert found.table["metric"].to_list() == [name for name in COMPARED if name != "skce"]


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "match"),
    [
        (OLD, r"got a mapping, which is one model of several classes\. For two such models give each a name, such as"),
        ({"old": OLD, "new": "q_a"}, r"model 'new' is 'q_a'\. Name the column of each class"),
        ([OLD, "q_a"], r"model 2 is 'q_a'"),
        ({"old": OLD}, r"two models of several classes; score= holds 1\."),
        ([OLD, NEW, NEW], r"score= holds 3\..*once for each pair"),
        ({1: OLD, 2: NEW}, r"must name models by a text; got 1\."),
        ({"old": OLD, "new": {"a": "q_a", "b": "q_b", "d": "q_c"}}, r"only 'old' has 'c' and only 'new' has 'd'\."),
        ([OLD, {"a": "q_a", "b": "q_b"}], r"only 'first' has 'c'\. Give each class a column of either model"),
        ({"old": OLD, "new": OLD}, r"the same column for both models.*name two different models"),
        ({"old": OLD, "new": {"a": "q_a", "b": "q_a", "c": "q_c"}}, r"gives two classes one column"),
    ],
)
def test_models_that_cannot_be_compared_get_one_clear_error(score: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        one(drawn(20), score=score)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"classes": CLASSES}, ArgumentError, r"classes= goes with one column of vectors"),
        ({"score": "v", "classes": CLASSES}, ArgumentError, r"list of two columns of class probabilities.*got 1: 'v'"),
        ({"score": ["p_a"], "classes": CLASSES}, ArgumentError, r"got 1: \['p_a'\]"),
        ({"score": ["p_a", "p_a"], "classes": CLASSES}, ArgumentError, r"same column for both models"),
        ({"score": {"old": OLD, "new": {**NEW, "a": "zz"}}}, ColumnNotFoundError, r"no column 'zz' for score="),
        ({"positive": "a"}, ArgumentError, r"positive='a' is for one column of probabilities"),
        ({"metric": "auc"}, ArgumentError, r"'auc' is about one column of scores.*class by class"),
        ({"metric": "epistemic_loss"}, ArgumentError, r"needs the true probabilities, which only the verb metrics"),
        ({"metric": "briar"}, ArgumentError, r"Did you mean 'brier'"),
        ({"metric": "confidence_ece", "bins": [0.1, 1.0]}, ArgumentError, r"must reach from 0 to 1"),
    ],
)
def test_wrong_input_gets_one_clear_error(arguments: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        one(drawn(20), **arguments)
