"""Is a map worth it: verdicts on rows that maps have not seen, against an independent computation."""

from __future__ import annotations

import json
import math
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import calframe
from calframe import ArgumentError, CalframeError, CalframeWarning, ColumnClashError
from tests._tables import approx, rows

CLASSES = {"a": "a", "b": "b", "c": "c"}


def drawn(n: int = 300, *, seed: int = 0, power: float = 2.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.03, 0.97, n)
    columns = {"y": (rng.random(n) < score**power).astype(int), "p": score, "w": rng.uniform(0.5, 2.0, n)}
    return pl.DataFrame(columns | {"g": [f"s{i}" for i in rng.integers(0, 3, n)], "t": np.arange(n) // 3})


def validated(data: Any, **arguments: Any) -> calframe.Validation:
    return calframe.validate(data, **{"label": "y", "score": "p", **arguments})


def only(found: calframe.Validation, column: str, *, scope: str = "all") -> list[Any]:
    table = rows(found.table)
    return [value for value, where in zip(table[column], table["scope"], strict=True) if where == scope]


def interval(gain: Any, weight: Any, *, comparisons: int, level: float = 0.95) -> list[float]:
    """Return the weighted mean of differences and its normal interval at Šidák's level."""
    mean = np.average(gain, weights=weight)
    effective = weight.sum() ** 2 / (weight**2).sum()
    z = stats.norm.ppf(0.5 + level ** (1.0 / comparisons) / 2.0)
    half = z * math.sqrt(np.average((gain - mean) ** 2, weights=weight) / (effective - 1.0))
    return [mean, mean - half, mean + half]


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("loss", ["brier", "log_loss"])
def test_improvements_are_paired_means_out_of_fold(loss: str, weight: str | None) -> None:
    data, methods = drawn(), ["platt", "beta"]
    found = validated(data, methods=methods, by="g", loss=loss, weight=weight)
    y, p = data["y"].to_numpy(), data["p"].to_numpy()
    w = np.ones(len(y)) if weight is None else data["w"].to_numpy()

    def losses(score: Any) -> Any:
        return (score - y) ** 2 if loss == "brier" else -np.log(np.where(y == 1, score, 1.0 - score))

    table = pl.DataFrame(found.table)
    for method in methods:
        out = calframe.cross_fit(data, label="y", score="p", method=method, by="g", weight=weight)
        gain = losses(p) - losses(out["p_calibrated"].to_numpy())
        for segment in (None, "s0", "s1", "s2"):
            mine = np.ones(len(y), dtype=bool) if segment is None else (data["g"] == segment).to_numpy()
            expected = interval(gain[mine], w[mine], comparisons=2 if segment is None else 6)
            row = table.filter((pl.col("method") == method) & pl.col("g").eq_missing(pl.lit(segment))).to_dicts()[0]
            got = [row["improvement"], row["improvement_low"], row["improvement_high"]]
            assert got == approx(expected, rel=1e-9)
            assert row["n"] == mine.sum()
            after = np.average(losses(out["p_calibrated"].to_numpy())[mine], weights=w[mine])
            assert row[f"{loss}_after"] == approx(after, rel=1e-9)


def test_several_classes_have_intervals() -> None:
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([1.0, 1.0, 1.0], 300)
    place = np.array([rng.choice(3, p=row**2 / (row**2).sum()) for row in shares])
    data = pl.DataFrame({"y": ["abc"[i] for i in place], **{name: shares[:, i] for i, name in enumerate("abc")}})
    for loss in ("brier", "log_loss"):
        found = validated(data, score=CLASSES, methods=["temperature", "vector"], loss=loss)
        out = calframe.cross_fit(data, label="y", score=CLASSES, method="temperature")
        after = out.select("p_calibrated_a", "p_calibrated_b", "p_calibrated_c").to_numpy()
        happened = np.eye(3)[place]
        if loss == "brier":
            gain = ((shares - happened) ** 2).sum(axis=1) - ((after - happened) ** 2).sum(axis=1)
        else:
            gain = np.log(after[happened == 1.0]) - np.log(shares[happened == 1.0])
        got = [only(found, f"improvement{end}")[0] for end in ("", "_low", "_high")]
        assert got == approx(interval(gain, np.ones(300), comparisons=2), rel=1e-9)
        assert found.best == "temperature"


def test_a_planted_leak_is_caught() -> None:
    # 60 segments of 40 rows of pure noise: isotonic fits of their own take much off the Brier score in sample
    rng = np.random.default_rng(2)
    score = rng.uniform(0.2, 0.8, 2400)
    table = {"y": (rng.random(2400) < score).astype(int), "p": score, "g": np.repeat(np.arange(60), 40)}
    data = pl.DataFrame(table)
    own = {"method": "isotonic", "by": "g", "pooling": "none"}
    inside = calframe.fit(data, label="y", score="p", **own).apply(data)
    fitted, scores = inside["p_calibrated"].to_numpy(), data["p"].to_numpy()
    gain = (scores - table["y"]) ** 2 - (fitted - table["y"]) ** 2
    assert interval(gain, np.ones(2400), comparisons=1)[1] > 0.01  # clearly better, it seems
    found = validated(data, methods=[own])
    assert found.best is None
    assert only(found, "verdict") == ["worse"]


def test_a_map_judged_on_its_own_rows_gets_no_verdict() -> None:
    data = drawn()
    the_map = calframe.fit(data, label="y", score="p", method="platt")
    with pytest.warns(CalframeWarning, match="platt map was fitted on these very rows"):
        found = validated(data.sample(fraction=1.0, shuffle=True, seed=1), methods=[the_map])
    assert (found.best, only(found, "verdict")) == (None, ["fitted on these rows"])
    other = validated(drawn(seed=9), methods=[the_map])  # warnings are errors
    assert (other.methods, other.best) == (("platt (fitted)",), "platt (fitted)")


def test_a_map_of_another_score_is_refused() -> None:
    the_map = calframe.fit(drawn().rename({"p": "q"}), label="y", score="q", method="platt")
    with pytest.raises(ArgumentError, match=r"platt map was fitted on score \['q'\], and score= is 'p'"):
        validated(drawn().with_columns(q=pl.col("p")), methods=[the_map])


def test_calibrated_scores_need_no_map() -> None:
    # 40 tables of calibrated scores, three methods each: no more than 1 in 20 may be called better. With 40 tables
    # the Monte Carlo error of a share of 1/20 is 0.034; seeds are fixed, and maps of noise lose a little on average.
    better = 0
    for seed in range(40):
        found = validated(drawn(150, seed=seed, power=1.0))
        better += found.best is not None
    assert better <= 4


def test_few_rows_have_no_verdict() -> None:
    data = drawn(60).with_columns(g=pl.Series(["few"] * 12 + ["many"] * 48))
    found = validated(data, methods=["platt"], by="g", pooling="complete")
    assert only(found, "verdict", scope="segment")[0] == "too few rows"
    one_class = validated(data.with_columns(y=pl.lit(0)), methods=["platt"])
    assert only(one_class, "verdict") == ["too few rows"]


def test_an_infinite_log_loss_is_worse() -> None:
    data = pl.DataFrame({"y": [0, 1] * 30, "p": np.linspace(0.01, 0.99, 60)})
    data = data.with_columns(y=pl.when(pl.col("p") < 0.1).then(pl.int_range(pl.len()) == 2).otherwise(pl.col("y") > 0))
    found = validated(data, methods=["isotonic", {"method": "isotonic", "epsilon": 0.01}], loss="log_loss")
    assert only(found, "improvement")[0] == only(found, "improvement_high")[0] == -math.inf
    assert only(found, "verdict")[0] == "worse"
    assert math.isfinite(only(found, "improvement")[1])
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["rows"][0]["improvement"] == "-Infinity"
    certain = data.with_columns(p=pl.when(pl.int_range(pl.len()) == 2).then(0.0).otherwise(pl.col("p")))
    repaired = validated(certain, methods=["platt"], loss="log_loss")
    assert (only(repaired, "improvement"), only(repaired, "verdict")) == ([math.inf], ["better"])


def test_the_lost_resolution_of_a_histogram_is_shown() -> None:
    data = drawn(2000, power=1.0)
    found = validated(data, methods=[{"method": "histogram", "bins": 2}, "platt"])
    before, after = only(found, "resolution_before"), only(found, "resolution_after")
    assert after[0] < 0.85 * before[0]  # of a linear rate half a bin's variance is lost: 1/4 of all
    assert after[1] > 0.9 * before[1]


def test_rows_of_the_first_fold_by_time_are_not_judged() -> None:
    assert only(validated(drawn(), methods=["platt"], time="t"), "n") == [240]


def test_rows_without_a_label_or_with_invalid_scores_are_not_judged() -> None:
    data = drawn().with_columns(
        y=pl.when(pl.int_range(pl.len()) > 2).then(pl.col("y")),
        p=pl.when(pl.int_range(pl.len()) < 290).then(pl.col("p")).otherwise(2.0),
    )
    assert only(validated(data, methods=["platt"], invalid="drop"), "n") == [287]


def test_every_library_gives_the_same() -> None:
    data = drawn()
    expected = rows(validated(data, by="g").table)
    for table in (data.to_pandas().set_index("w", drop=False), data.to_arrow(), data.lazy()):
        found = validated(table, by="g")
        assert rows(found.table) == {name: approx(values, rel=1e-9) for name, values in expected.items()}
        assert isinstance(found.table, pl.DataFrame if isinstance(table, pl.LazyFrame) else type(table))


def test_logits_and_named_labels() -> None:
    data = drawn()
    plain = only(validated(data, methods=["platt"]), "improvement")
    odds = data.with_columns(p=(pl.col("p") / (1.0 - pl.col("p"))).log())
    assert only(validated(odds, methods=["platt"], link="logit"), "improvement") == approx(plain, rel=1e-8)
    named = data.with_columns(y=pl.when(pl.col("y") == 1).then(pl.lit("yes")).otherwise(pl.lit("no")))
    assert only(validated(named, methods=["platt"], positive="yes"), "improvement") == approx(plain)


def test_methods_have_names() -> None:
    data = drawn()
    pair = ["platt", {"method": "platt", "target_smoothing": True}]
    assert validated(data, methods=pair).methods == ("platt", "platt(target_smoothing=True)")
    assert validated(data, methods={"first": "platt", "second": {"method": "beta"}}).methods == ("first", "second")
    assert (
        validated(data, methods="platt").methods == validated(data, methods={"method": "platt"}).methods == ("platt",)
    )


def test_it_says_what_to_take() -> None:
    found = validated(drawn(1000), methods=["platt", "isotonic"], by="g")
    lines = repr(found).splitlines()
    assert lines[0] == f"<Validation: take {found.best!r}>"
    assert max(map(len, lines)) <= 80
    verdicts = found.table.filter(scope="segment", method=found.best)["verdict"]
    better, worse = (int((verdicts == one).sum()) for one in ("better", "worse"))
    assert lines[4:] == [
        f"  of {len(verdicts)} segments with it: {better} better, {worse} worse; the rest is not clear. See .table",
        "  one map for all segments: partial pooling needs 5 or more",
    ]
    none = validated(drawn(100, power=1.0), methods={"a name that is much too long for its line": "identity"})
    assert repr(none).startswith("<Validation: none is clearly worth it>")
    assert max(map(len, repr(none).splitlines())) <= 80


def test_segments_without_maps_of_their_own_are_noted() -> None:
    data = drawn(400).with_columns(six=pl.int_range(pl.len()) % 6)  # g has three segments
    few = "one map for all segments: partial pooling needs 5 or more"
    methods = {
        "partly": "platt",
        "wanted": {"method": "platt", "pooling": "complete"},
        "own": {"method": "platt", "pooling": "none"},
        "same": "identity",
        "without": {"method": "platt", "by": None},
    }
    table = validated(data, methods=methods, by="g").table
    said = {"partly": few, "wanted": "one map for all segments", "own": None}
    said |= {"same": "one map for all segments", "without": "one map for all segments"}
    for name, note in said.items():
        assert table.filter(method=name)["note"].to_list() == [None, note, note, note]
    shown = repr(validated(data, methods=methods, by="g")).splitlines()
    assert f"  {few} (partly)" in shown
    assert "  one map for all segments (wanted, same, without)" in shown
    fitted = calframe.fit(drawn(seed=9), label="y", score="p", method="platt", by="g")
    assert only(validated(data, methods=[fitted], by="g"), "note", scope="segment") == ["one map for all segments"] * 3
    own = validated(data, methods=["platt"], by="six")
    assert only(own, "note", scope="segment") == [None] * 6
    # of five segments one lies in the last fold alone, so that the maps of this fold have four to learn from
    rare = drawn(400).with_columns(pl.int_range(pl.len()).alias("i"))
    rare = rare.with_columns(g=pl.when(pl.col("i") >= 360).then(4).otherwise(pl.col("i") % 4), f=pl.col("i") // 100)
    assert set(only(validated(rare, methods=["platt"], by="g", folds="f"), "note", scope="segment")) == {
        "one map for all segments in 1 of 4 folds: partial pooling needs 5 or more"
    }


def test_long_notes_go_on_in_the_next_line() -> None:
    methods = {f"a method of some length {i}": "identity" for i in range(5)} | {"own": "platt"}
    shown = repr(validated(drawn(60), methods=methods, by="g", pooling="none"))
    names = ", ".join(list(methods)[:5])
    assert f"one map for all segments ({names})" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80


TWO_CLASSES = {
    "numbers": {"label": "y", "score": {0: "q", 1: "p"}},
    "names": {"label": "named", "score": {"no": "q", "yes": "p"}},
    "vectors": {"label": "y", "score": "v", "classes": [0, 1]},
    "logits": {"label": "named", "score": {"no": "zq", "yes": "zp"}, "link": "logit"},
}


@pytest.mark.parametrize("roles", TWO_CLASSES.values(), ids=list(TWO_CLASSES))
@pytest.mark.parametrize("loss", ["brier", "log_loss"])
def test_two_classes_are_the_second_against_the_first(roles: dict[str, Any], loss: str) -> None:
    data = drawn().with_columns(q=1.0 - pl.col("p"), zp=pl.col("p").log(), zq=(1.0 - pl.col("p")).log())
    data = data.with_columns(v=pl.concat_list("q", "p"), named=pl.when(pl.col("y") == 1).then(pl.lit("yes")))
    data = data.with_columns(pl.col("named").fill_null("no"))
    steps = {"method": "isotonic", "interpolation": "step"}  # straight lines would be those of logits
    given = {"methods": ["platt", steps, "venn_abers"], "by": "g", "loss": loss}
    expected = validated(data, **given)
    for table in (data, data.to_pandas(), data.to_arrow(), data.lazy()):
        found = validated(table, **given, **roles)
        assert rows(found.table) == {name: approx(values, rel=1e-7) for name, values in rows(expected.table).items()}


def test_maps_of_two_classes_are_judged() -> None:
    data = drawn().with_columns(q=1.0 - pl.col("p"))
    other = drawn(seed=9).with_columns(q=1.0 - pl.col("p"))
    for method in ("platt", "venn_abers"):
        one = calframe.fit(other, label="y", score="p", method=method)
        two = calframe.fit(other, label="y", score={0: "q", 1: "p"}, method=method)
        expected = only(validated(data, methods=[one]), "improvement")
        assert only(validated(data, score={0: "q", 1: "p"}, methods=[two]), "improvement") == approx(expected)


def test_judged_rows_may_have_no_positive_one() -> None:
    data = drawn(60).with_columns(
        y=pl.when((pl.col("y") == 1) & (pl.col("t") < 8)).then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    found = validated(data, methods=["platt"], positive="yes", time="t", folds=2)
    assert only(found, "verdict") == ["too few rows"]


def test_html_is_escaped() -> None:
    data = drawn(100).with_columns(g=pl.lit("<script>"))
    page = validated(data, methods={"<b>": "platt"}, by="g")._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page


def test_json_holds_the_table() -> None:
    found = validated(drawn(), methods=["platt"], by="g").to_dict()
    assert (found["kind"], found["by"], found["methods"], found["loss"]) == ("validation", ["g"], ["platt"], "brier")
    assert [row["g"] for row in found["rows"]] == [None, "s0", "s1", "s2"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"methods": []}, "methods= is empty; name at least one method"),
        ({"methods": 3}, r"methods= takes a list, such as \['platt', 'isotonic'\]; got 3"),
        ({"methods": [3]}, "methods= takes names, mappings with a 'method', or fitted maps; got 3"),
        ({"methods": ["platt", "platt"]}, "methods= has 'platt' twice; name them apart"),
        ({"methods": {1: "beta", "1": "platt"}}, "methods= has '1' twice; name them apart"),
        ({"methods": ["plat"]}, "Did you mean 'platt'"),
        ({"methods": [{"method": "platt", "weight": "w"}]}, "weight= is the same for all methods"),
        ({"loss": "briers"}, "Did you mean 'brier'"),
        ({"confidence_level": 95}, "confidence_level must lie between 0 and 1"),
        ({"confidence_level": None}, "confidence_level must lie between 0 and 1"),
        ({"folds": 1}, "folds must be a whole number"),
        ({"by": 1}, r"by= takes the name of a column \(a str\); got int"),
        ({"by": ["g", 2]}, r"by= takes the name of a column \(a str\); got int"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        validated(drawn(40), **arguments)


def test_wrong_tables() -> None:
    with pytest.raises(ColumnClashError, match="segment column 'verdict' has the name of a result column"):
        validated(drawn(40).rename({"g": "verdict"}), by="verdict")
    with pytest.raises(CalframeError, match=r"validate\(\) needs the rows in memory or a polars LazyFrame; got Duck"):
        validated(duckdb.from_arrow(pa.table({"y": [0, 1], "p": [0.2, 0.7]})))
    with pytest.raises(CalframeError, match="the table has no rows"):
        validated(pd.DataFrame({"y": [], "p": []}))
