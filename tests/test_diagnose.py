"""Patterns of wrong scores: the tests and numbers behind them by their definitions, and sentences that are true."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.stats.proportion import proportion_confint

import calframe
from calframe import ArgumentError, ColumnClashError, EmptyTableError
from calframe._diagnose import Diagnosis, diagnose
from calframe._kernels._logistic import cox_fit
from calframe._kernels._tally import Tally
from calframe._testing._curvature import curve_test, line_test
from calframe._testing._draws import Drawing
from tests._tables import Maker, approx, rows, types
from tests.simulations import diagnose as simulation

POLARS = Maker("polars")
PATTERNS = {"none found", "within tolerance", "says too much", "says too little", "over-confident", "under-confident"}
PATTERNS |= {"crossing", "collapse", "extreme", "not decided"}


def found(columns: Any, make: Maker = POLARS, **arguments: Any) -> Diagnosis:
    return diagnose(make(columns), **{"label": "y", "score": "p", **arguments})


def only(columns: Any, **arguments: Any) -> dict[str, Any]:
    (row,) = found(columns, **arguments).table.to_dicts()
    return row


def counts(*cells: tuple[float, int, int]) -> dict[str, list[Any]]:
    """Return rows from scores with positives and negatives."""
    return {
        "p": [score for score, yes, no in cells for _ in range(yes + no)],
        "y": [label for _, yes, no in cells for label in [1] * yes + [0] * no],
    }


def drawn(n: int = 600, *, seed: int = 0) -> dict[str, Any]:
    """Return rows with ties, two models, weights and segments."""
    rng = np.random.default_rng(seed)
    score = np.where(rng.random(n) < 0.5, rng.integers(0, 11, n) / 10, rng.random(n))
    return {
        "y": (rng.random(n) < score**2).astype(int).tolist(),
        "p": score.tolist(),
        "q": np.round(rng.random(n), 1).tolist(),
        "w": rng.choice([0.5, 1.0, 2.5], n).tolist(),
        "k": rng.choice([1, 2, 3], n).tolist(),
        "g": rng.choice(["a", "b", "c"], n).tolist(),
    }


# Each pattern on a table that shows it, made by hand

SHOWN = {
    "none found": (counts((0.2, 20, 80), (0.5, 50, 50), (0.8, 80, 20)), None),
    "within tolerance": (counts((0.2, 21_000, 79_000), (0.5, 51_000, 49_000), (0.8, 81_000, 19_000)), None),
    "says too much": (counts((0.4, 20, 80), (0.6, 36, 64), (0.8, 60, 40)), "platt"),
    "says too little": (counts((0.2, 40, 60), (0.4, 64, 36), (0.6, 80, 20)), "platt"),
    "over-confident": (counts((0.1, 30, 70), (0.5, 50, 50), (0.9, 70, 30)), "temperature"),
    "under-confident": (counts((0.3, 10, 90), (0.5, 50, 50), (0.7, 90, 10)), "temperature"),
    "crossing": (counts((0.2, 50, 50), (0.4, 20, 80), (0.6, 80, 20), (0.8, 50, 50)), "isotonic"),
    "collapse": (counts((0.49, 60, 90), (0.51, 90, 60)), "platt"),
    "extreme": (counts((0.999, 60, 40), (0.6, 60, 40), (0.3, 30, 70)), "isotonic"),
    "not decided": (counts((0.9, 20, 20)), None),
}


@pytest.mark.parametrize("pattern", list(SHOWN))
def test_each_pattern_on_a_table_that_shows_it(pattern: str) -> None:
    columns, method = SHOWN[pattern]
    row = only(columns)
    assert (row["pattern"], row["map"]) == (pattern, method)
    assert set(SHOWN) == PATTERNS


def test_the_map_that_fits_repairs_the_pattern() -> None:
    for pattern, (columns, method) in SHOWN.items():
        if method is not None:
            table = pl.DataFrame(columns)
            better = calframe.fit(table, label="y", score="p", method=method).apply(table)
            row = only(better.to_dict(as_series=False), score="p_calibrated")
            assert row["pattern"] in {"none found", "within tolerance", "collapse"}, pattern


def test_an_intercept_asks_for_platt() -> None:
    # logits -2.2, 0, 2.2 with rates 0.2, 0.35, 0.6: slope about 0.4, level below 0
    row = only(counts((0.1, 40, 160), (0.5, 70, 130), (0.9, 120, 80)))
    assert row["pattern"] in {"over-confident", "says too much"}
    assert row["intercept_high"] < 0
    assert row["map"] == "platt"


def test_reversed_scores_have_no_map() -> None:
    row = only(counts((0.2, 80, 20), (0.5, 50, 50), (0.8, 20, 80)))
    assert (row["pattern"], row["map"]) == ("over-confident", None)
    assert row["slope_high"] < 0
    assert "higher scores come true less often" in row["note"]


def test_separated_outcomes_have_no_slope() -> None:
    row = only(counts((0.3, 0, 100), (0.7, 100, 0)))
    assert (row["pattern"], row["map"], row["slope"]) == ("under-confident", "isotonic", None)
    assert "without bound" in row["sentence"]
    reverse = only(counts((0.3, 100, 0), (0.7, 0, 100)))
    assert (reverse["pattern"], reverse["map"]) == ("over-confident", None)


def test_no_positive_where_many_are_expected() -> None:
    row = only(counts((0.8, 0, 200), (0.9, 0, 200)))
    assert row["pattern"] == "says too much"
    assert row["note"] == "only one outcome: no line can be fitted"


def test_right_scores_that_do_not_differ_need_no_map() -> None:
    row = only(counts((0.5, 100, 100)))
    assert (row["pattern"], row["map"], row["band_share"], row["n_scores"]) == ("collapse", None, 1.0, 1)
    assert row["sentence"].startswith("100.0 % of 200 rows have scores of 0.5, and 50.0 % of these come true")


def test_collapse_is_about_odds() -> None:
    # rare, and calibrated: within 0.1 of each other, but their odds differ twentyfold
    assert only(counts((0.005, 25, 4975), (0.1, 500, 4500)))["pattern"] == "none found"


def test_few_rows_are_never_called_fine() -> None:
    sentence = only(counts((0.5, 45, 45)))["sentence"]
    assert sentence == "Can't tell yet from 90 rows: 100 are needed, and of each outcome 10."
    rare = only(counts((0.001, 2, 4998)))
    assert rare["pattern"] == "not decided"
    assert "5,000 rows" in rare["sentence"]
    open_ = only(counts((0.2, 20, 80), (0.5, 50, 50), (0.8, 80, 20)))["sentence"]
    assert open_.endswith("so a gap of 3.0 points is not ruled out.")
    sure = only(counts((0.2, 2000, 8000), (0.5, 5000, 5000), (0.8, 8000, 2000)))["sentence"]
    assert sure.endswith(", within 3.0 points.")


# Tests and numbers by their definitions


def tallied(z: Any, y: Any, w: Any = None) -> Tally:
    """Return a tally of rows of distinct scores."""
    order = np.argsort(z)
    p, y = special.expit(z)[order], np.asarray(y, dtype=float)[order]
    w = np.ones(len(p)) if w is None else np.asarray(w)[order]
    starts = np.array([0])
    parts = {"weight": w, "positive": w * y, "squared": w * w, "squared_positive": w * w * y}
    return Tally(starts=starts, score=p, rows=np.ones(len(p)), **parts)


@pytest.mark.parametrize("weighted", [False, True])
def test_line_by_matrices(*, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    z = rng.uniform(-2.0, 2.0, 2_000)
    y, w = (
        rng.random(2_000) < special.expit(0.9 * z + 0.1),
        rng.uniform(0.5, 1.5, 2_000) if weighted else np.ones(2_000),
    )
    result = line_test(tallied(z, y, w), Drawing(n_resamples=20, rng=rng), floor=1e-12)
    x, p = np.column_stack([np.ones_like(z), z]), special.expit(z)
    score, spread = x.T @ (w * (y - p)), (x * (w**2 * p * (1 - p))[:, None]).T @ x
    statistic = score @ np.linalg.solve(spread, score)  # U' V^-1 U, whatever the basis
    assert result.statistic.tolist() == approx([statistic])
    assert result.pvalue.tolist() == approx([stats.chi2.sf(statistic, 2)])


def test_curvature_is_the_score_test_of_statsmodels() -> None:
    rng = np.random.default_rng(2)
    z = rng.uniform(-2.0, 2.0, 2_000)
    y = (rng.random(2_000) < special.expit(0.5 * z + 0.15 * z**2)).astype(float)
    tally = tallied(z, y)
    result = curve_test(tally, cox_fit(tally), Drawing(n_resamples=20, rng=rng), floor=1e-12)
    model = GLM(y, np.column_stack([np.ones_like(z), z]), family=Binomial())
    fit = model.fit()
    information = (fit.fittedvalues * (1 - fit.fittedvalues))[np.argsort(z)]
    place = np.empty_like(z)
    place[np.argsort(z)] = (2 * information.cumsum() - information) / information.sum() - 1
    bends = np.column_stack([special.eval_legendre(k, place) for k in (2, 3)])
    statistic, pvalue, df = model.score_test(fit.params, exog_extra=bends)
    assert (result.statistic.tolist(), result.df.tolist()) == (approx([float(np.squeeze(statistic))], rel=1e-6), [df])
    assert result.pvalue.tolist() == approx([float(np.squeeze(pvalue))], rel=1e-6)


def test_curvature_needs_three_scores() -> None:
    rng = np.random.default_rng(0)
    for scores, df in ((2, np.nan), (3, 1.0), (4, 2.0), (9, 2.0)):
        many = np.full(scores, 400.0)
        tally = Tally.of_counts(np.array([0]), np.linspace(0.2, 0.8, scores), many, np.linspace(100, 300, scores))
        result = curve_test(tally, cox_fit(tally), Drawing(n_resamples=20, rng=rng), floor=1e-12)
        np.testing.assert_array_equal(result.df, [df])


@pytest.mark.parametrize("weight", [None, "w"])
def test_gap_and_line_are_those_of_metrics(make: Maker, weight: str | None) -> None:
    columns = drawn()
    arguments: dict[str, Any] = {"score": ["p", "q"], "by": "g", "weight": weight}
    result = rows(found(columns, make, **arguments).table)
    names = ["gap", "slope", "intercept", "citl"]
    peer = rows(calframe.metrics(POLARS(columns), label="y", metrics=names, confidence_level=0.95, **arguments))
    for name in ("g", "model", "n", "n_missing"):
        assert result[name] == peer[name]
    for name in names:
        for end in ("", "_low", "_high"):
            assert result[name + end] == approx(peer[name + end])


@pytest.mark.parametrize("weight", [None, "w"])
def test_shares_row_by_row(weight: str | None) -> None:
    columns = drawn()
    row = only(columns, weight=weight, extreme=0.1)
    p, y = np.array(columns["p"]), np.array(columns["y"])
    w = np.ones(len(p)) if weight is None else np.array(columns["w"])
    there = (p <= 0.1) | (p >= 0.9)
    wrong, said = np.where(p <= 0.1, y, 1 - y), np.minimum(p, 1 - p)
    assert row["extreme_n"] == there.sum()
    assert row["extreme_share"] == approx(w[there].sum() / w.sum())
    error = np.average(wrong[there], weights=w[there])
    assert (row["extreme_error"], row["extreme_expected"]) == (
        approx(error),
        approx(np.average(said[there], weights=w[there])),
    )
    effective = w[there].sum() ** 2 / (w[there] ** 2).sum()
    low, high = proportion_confint(error * effective, effective, method="wilson")
    assert (row["extreme_error_low"], row["extreme_error_high"]) == (approx(low), approx(high))
    z = special.logit(np.clip(p, 1e-12, 1 - 1e-12))
    shares = {s: w[(z >= s) & (z <= s + np.log(1.5) + 1e-9)].sum() / w.sum() for s in np.unique(z)}
    assert row["band_share"] == approx(max(shares.values()))
    inside = (p >= row["band_low"]) & (p <= row["band_high"])
    assert (w[inside].sum() / w.sum(), np.average(y[inside], weights=w[inside])) == (
        approx(row["band_share"]),
        approx(row["band_rate"]),
    )
    for side, sign in (("over", 1), ("under", -1)):
        part = (p >= row[f"{side}_from"]) & (p <= row[f"{side}_to"])
        assert row[f"{side}_n"] == part.sum()
        assert row[f"{side}_gap"] == approx(np.average(p[part] - y[part], weights=w[part]))
        assert row[f"{side}_gap_low"] <= row[f"{side}_gap"] <= row[f"{side}_gap_high"], sign


def test_fifths_by_hand() -> None:
    # five scores of 100 rows each: the third says most too much, the fifth most too little
    row = only(counts((0.1, 10, 90), (0.3, 25, 75), (0.5, 30, 70), (0.7, 75, 25), (0.8, 95, 5)))
    assert (row["over_from"], row["over_to"], row["over_n"]) == (0.5, 0.5, 100)
    assert (row["under_from"], row["under_to"], row["under_n"]) == (0.8, 0.8, 100)
    assert (row["over_gap"], row["under_gap"]) == (approx(0.2), approx(-0.15))
    level = 0.95**0.2  # Sidak
    low, high = proportion_confint(30, 100, alpha=1 - level, method="wilson")
    assert (row["over_gap_low"], row["over_gap_high"]) == (approx(0.5 - high), approx(0.5 - low))


def test_adjusted_over_all_tests_of_all_segments() -> None:
    parts = [
        pl.DataFrame(SHOWN[name][0]).with_columns(g=pl.lit(name)) for name in ("none found", "extreme", "crossing")
    ]
    table = diagnose(pl.concat(parts), label="y", score="p", by="g", correction="bonferroni").table
    names = ["pvalue_line", "pvalue_curve", "pvalue_extreme"]
    plain = table.select(names).to_numpy()
    many = np.isfinite(plain).sum()
    after = table.select(f"{name}_adjusted" for name in names).to_numpy()
    known = np.isfinite(plain) & (after <= 0.05)
    assert known.any()
    assert after[known].tolist() == approx(np.minimum(many * plain[known], 1).tolist())


def test_the_order_of_rows_does_not_matter() -> None:
    frame = pl.DataFrame(drawn())
    arguments: dict[str, Any] = {"label": "y", "score": "p", "by": "g", "weight": "w"}
    one, other = (diagnose(each, **arguments) for each in (frame, frame.sample(fraction=1.0, shuffle=True, seed=1)))
    assert rows(one.table) == {name: approx(values) for name, values in rows(other.table).items()}


def test_weight_2_is_the_row_twice() -> None:
    frame = pl.DataFrame(drawn())
    twice = frame.select(pl.all().repeat_by("k")).explode(pl.all(), empty_as_null=True)
    one = rows(found(frame.to_dict(as_series=False), weight="k", weight_kind="frequency").table)
    other = rows(diagnose(twice, label="y", score="p").table)
    same = [name for name in other if not name.endswith("n") and name not in ("n_missing", "sentence", "note")]
    assert {name: one[name] for name in same} == {name: approx(other[name]) for name in same}


def test_importance_weights_of_one_size_change_nothing() -> None:
    columns = drawn()
    plain, weighted = only(columns), only({**columns, "w": [3.0] * len(columns["y"])}, weight="w")
    assert {name: weighted[name] for name in plain} == {name: approx(value) for name, value in plain.items()}


# Tables


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [({}, []), ({"by": "g"}, ["g"]), ({"score": ["q", "p"], "by": ["k", "g"]}, ["k", "g", "model"])],
)
def test_columns_come_in_order_and_keep_their_types(make: Maker, arguments: dict[str, Any], keys: list[str]) -> None:
    result = found(drawn(), make, **arguments)
    assert isinstance(result.table, pl.DataFrame if make.lazy else make.result)
    kinds = types(result.table)
    assert list(kinds)[: len(keys) + 4] == [*keys, "n", "n_missing", "pattern", "map"]
    assert list(kinds)[-2:] == ["sentence", "note"]
    same = rows(found(drawn(), **arguments).table)
    assert rows(result.table) == {name: approx(values) for name, values in same.items()}


def test_missing_rows_and_empty_segments_are_counted(make: Maker) -> None:
    good = SHOWN["over-confident"][0]
    n = len(good["y"])
    columns = {
        "y": [*good["y"], None, 1, 1],
        "p": [*good["p"], 0.5, None, 0.5],
        "g": [*["a"] * n, "a", "b", None],
    }
    result = rows(found(columns, make, by="g").table)
    assert (result["g"], result["n"], result["n_missing"]) == (["a", "b", None], [n, 0, 1], [1, 1, 0])
    assert result["pattern"] == ["over-confident", "not decided", "not decided"]
    assert (result["sentence"][1], result["note"][1]) == ("No usable rows.", "no usable rows")
    nothing = rows(found({"y": [None, 1], "p": [0.5, None]}, make).table)
    assert (nothing["n"], nothing["pattern"], nothing["gap"]) == ([0], ["not decided"], [None])


def test_rows_of_weight_0_are_in_the_note() -> None:
    columns = {**drawn(), "w": [0.0, *[1.0] * 599]}
    assert only(columns, weight="w")["note"].endswith("1 row of weight 0 left out")


def test_float32_edges() -> None:
    p = np.array([0.05] * 60 + [0.95] * 60, dtype=np.float32)  # 0.05 is above, 0.95 below its float64 neighbour
    table = pl.DataFrame({"p": p, "y": [1, 0] * 60})
    assert diagnose(table, label="y", score="p", extreme=0.05).table["extreme_n"].to_list() == [120]


@pytest.mark.parametrize("link", ["probability", "logit"])
def test_logits(link: Any) -> None:
    columns = SHOWN["over-confident"][0]
    if link == "logit":
        columns = {**columns, "p": special.logit(columns["p"]).tolist()}
    assert only(columns, link=link)["pattern"] == "over-confident"


# Several classes


def of_classes(n: int = 3_000, *, sharpen: float = 1.0) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    z = rng.normal(size=(n, 3)) * 1.5
    label = (special.softmax(z, axis=1).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 2)
    scores = special.softmax(sharpen * z, axis=1)
    return pl.DataFrame(
        {"y": np.array(["cat", "dog", "eel"])[label], **{f"p{i}": scores[:, i] for i in range(3)}}
    ).with_columns(top=pl.max_horizontal("p0", "p1", "p2"))


CLASSES = {"cat": "p0", "dog": "p1", "eel": "p2"}


def test_confidence_is_the_largest_score_against_whether_it_was_right() -> None:
    table = of_classes(sharpen=3.0)
    result = diagnose(table, label="y", score=CLASSES, notion="confidence")
    (row,) = result.table.to_dicts()
    names = np.array(list(CLASSES))[table.select("p0", "p1", "p2").to_numpy().argmax(axis=1)]
    plain = diagnose(table.with_columns(right=table["y"] == pl.Series(names)), label="right", score="top").table
    for name in ("gap", "slope", "pvalue_line", "extreme_share", "band_share"):
        assert row[name] == approx(plain[name][0])
    assert row["pattern"] == plain["pattern"][0] != "none found"
    assert row["gap"] > 0.1
    right = diagnose(of_classes(), label="y", score=CLASSES, notion="confidence").table
    assert right["pattern"].to_list() == ["none found"]


def test_sharpened_classes_want_a_temperature() -> None:
    (row,) = diagnose(of_classes(sharpen=1.6), label="y", score=CLASSES, notion="confidence").table.to_dicts()
    assert (row["pattern"], row["map"]) == ("says too much", "temperature")
    assert "are right: says too much by" in row["sentence"]


def test_several_classes_need_a_notion() -> None:
    with pytest.raises(ArgumentError, match=r"diagnose takes one score a row; .* notion='confidence'"):
        diagnose(of_classes(), label="y", score=CLASSES)
    with pytest.raises(ArgumentError, match=r"notion must be .*'confidence'.*; got 'classwise'"):
        diagnose(of_classes(), label="y", score=CLASSES, notion="classwise")  # type: ignore[arg-type]


# What sentences say is true


def _claimed(sentence: str) -> list[float]:
    """Return the numbers of a sentence."""
    text = sentence.replace("\N{MINUS SIGN}", "-").replace(",", "")
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]


def check_sentence(  # noqa: C901  one branch a pattern
    row: dict[str, Any], p: Any, y: Any, *, alpha: float = 0.05, tolerance: float = 0.03
) -> None:
    """Assert that a pattern and its sentence are true for the rows, counted anew."""
    pattern, said, n = row["pattern"], row["sentence"], len(p)
    positive = int(np.sum(y))
    assert pattern in PATTERNS
    if said.startswith("Can't tell yet from"):
        expected = [np.sum(p), n - np.sum(p)]
        assert n < 100 or min(max(positive, expected[0]), max(n - positive, expected[1])) < 10 + 1e-6
        assert (pattern, row["map"], _claimed(said)) == ("not decided", None, [n, 100, 10])
        return
    gap = np.mean(p) - np.mean(y)
    low, high = proportion_confint(positive, n, alpha=alpha, method="wilson")
    ends = np.array([gap, np.mean(p) - high, np.mean(p) - low])
    adjusted = [row[f"pvalue_{name}_adjusted"] for name in ("line", "curve", "extreme")]
    assert pattern in ("none found", "collapse") or min(one for one in adjusted if one is not None) <= alpha
    assert f"{n:,} rows" in said or pattern == "crossing"
    if pattern in ("none found", "within tolerance"):
        assert row["map"] is None
        assert ("ruled out" in said) == (ends[1] < -tolerance or ends[2] > tolerance)
        shown = _claimed(said)
        shown = shown[-4:-1] if said.startswith("No") else shown[-3:]
        assert shown == pytest.approx(100 * ends, abs=0.051)
    elif pattern.startswith("says"):
        sign = 1 if pattern.endswith("much") else -1
        assert sign * ends[1] > 0 < sign * ends[2]
        claimed = [100 * np.mean(p), 100 * np.mean(y), n, *sorted(100 * sign * ends)]
        shown = _claimed(said)
        assert [*shown[:3], *sorted(shown[3:])] == pytest.approx(claimed, abs=0.051)
    elif pattern.endswith("-confident") and row["slope"] is not None:
        side = (row["slope_high"] < 1, row["slope_low"] > 1)
        assert side == (pattern == "over-confident", pattern == "under-confident")
        shown = [row["slope"], row["slope_low"], row["slope_high"]]
        assert _claimed(said)[1:4] == pytest.approx(shown, abs=0.0051)
    elif pattern == "collapse":
        inside = (p >= row["band_low"]) & (p <= row["band_high"])
        assert np.mean(inside) >= 0.9 - 1e-9
        assert min(y[inside].sum(), (1 - y)[inside].sum()) >= 10
        assert _claimed(said)[0] == pytest.approx(100 * np.mean(inside), abs=0.051)
        assert f"{100 * np.mean(y[inside]):,.1f} % of these" in said
    elif pattern == "extreme":
        there = (p <= 0.01 + 1e-12) | (p >= 0.99 - 1e-12)
        error = np.where(p <= 0.5, y, 1 - y)[there].mean()
        assert np.mean(there) >= 0.25
        assert error - np.minimum(p, 1 - p)[there].mean() >= tolerance - 1e-12
        assert _claimed(said)[0] == pytest.approx(100 * np.mean(there), abs=0.051)
        assert f"{100 * error:,.1f} % (" in said
    elif pattern == "crossing" and "say too much" in said:
        for side, sign in (("over", 1), ("under", -1)):
            part = (p >= row[f"{side}_from"]) & (p <= row[f"{side}_to"])
            off = sign * np.mean(p[part] - y[part])
            assert off > 0
            assert f"by {100 * off:,.1f} points (" in said
            assert f"({int(part.sum()):,} row" in said


@st.composite
def tables(draw: Any) -> tuple[Any, Any]:
    """Draw scores and labels: ties, extremes, narrow bands, one class, few rows and many."""
    n = draw(st.sampled_from([1, 7, 99, 100, 150, 400, 3_000]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread, mean = draw(st.sampled_from([0.0, 0.05, 1.0, 3.0, 30.0])), draw(st.sampled_from([-5.0, -1.0, 0.0, 2.0]))
    z = rng.normal(mean, spread, n)
    p = special.expit(z)
    if draw(st.booleans()):
        p = np.round(p, draw(st.sampled_from([0, 1, 2])))
    bend = draw(st.sampled_from(["right", "shift", "slope", "wave", "all", "none", "reverse"]))
    chance = {
        "right": p,
        "shift": special.expit(z - 1.0),
        "slope": special.expit(0.4 * z),
        "wave": special.expit(z + 2.0 * np.sin(2.0 * z)),
        "all": np.ones(n),
        "none": np.zeros(n),
        "reverse": 1.0 - p,
    }[bend]
    return p, (rng.random(n) < chance).astype(int)


@given(tables())
@settings(max_examples=150, deadline=None)
def test_sentences_are_true(table: tuple[Any, Any]) -> None:
    p, y = table
    result = found({"p": p, "y": y}, n_resamples=50)
    (row,) = result.table.to_dicts()
    check_sentence(row, p, y)
    assert all(len(line) <= 80 for line in repr(result).splitlines())
    json.dumps(result.to_dict(), allow_nan=False)


@given(tables())
@settings(max_examples=30, deadline=None)
def test_values_lie_where_they_can(table: tuple[Any, Any]) -> None:
    p, y = table
    (row,) = found({"p": p, "y": y}, n_resamples=50).table.to_dicts()
    for name in ("rate", "band_share", "extreme_share", "band_rate"):
        assert 0.0 <= row[name] <= 1.0
    for name in ("gap", "over_gap", "under_gap"):
        assert row[f"{name}_low"] - 1e-12 <= row[name] <= row[f"{name}_high"] + 1e-12
    assert row["band_low"] <= row["band_high"]
    for name in ("line", "curve", "extreme"):
        plain, after = row[f"pvalue_{name}"], row[f"pvalue_{name}_adjusted"]
        assert after is None or plain - 1e-12 <= after <= 1.0


@pytest.mark.parametrize("pattern", list(SHOWN))
def test_sentences_of_the_tables_that_show_patterns(pattern: str) -> None:
    columns = SHOWN[pattern][0]
    check_sentence(only(columns), np.array(columns["p"]), np.array(columns["y"]))


def test_sentences_in_words() -> None:
    assert only(SHOWN["says too much"][0])["sentence"] == (
        "Scores average 60.0 %, and 38.7 % of 300 rows come true: says too much by 21.3 points (15.7 to 26.7)."
    )
    assert only(SHOWN["extreme"][0])["sentence"] == (
        "33.3 % of 300 rows have scores up to 0.01 or from 0.99 on; 40.0 % (30.9 to 49.8) of these are wrong, where "
        "the scores say 0.1 %."
    )
    assert only(SHOWN["crossing"][0])["sentence"].startswith("Scores of 0.8 (100 rows) say too much by 30.0 ")


# How often


@pytest.mark.parametrize("world", list(simulation.RIGHT))
@pytest.mark.parametrize("n", [100, 500])
def test_right_scores_show_no_pattern(world: str, n: int) -> None:
    """At most 5 % of tables, and two Monte Carlo errors; theory."""
    rng = np.random.default_rng(4)
    values = simulation.numbers(simulation.RIGHT[world], n, 300, rng, simulation.STRICT)
    for segments in (1, 10):
        share, _ = simulation.share_found(values, segments, simulation.STRICT)
        assert share <= 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / (300 / segments))


@pytest.mark.parametrize("world", list(simulation.WRONG))
def test_wrong_scores_show_their_pattern(world: str) -> None:
    """Nine tables of ten: up to 5 % of straight ones are taken for bent, the level of the test of curvature."""
    pattern, drawn_from = simulation.WRONG[world]
    tables = 60 if world.startswith("slope") else 20  # the others are hardly ever missed
    values = simulation.numbers(drawn_from, 1_000, tables, np.random.default_rng(5), simulation.RULES)
    each = [{name: column[i : i + 1] for name, column in values.items()} for i in range(tables)]
    assert np.mean([simulation.named(one, simulation.RULES)[0] == pattern for one in each]) >= 0.9


# Results and errors


def test_result() -> None:
    parts = [pl.DataFrame(columns).with_columns(g=pl.lit(name)) for name, (columns, _) in SHOWN.items()]
    result = diagnose(pl.concat(parts), label="y", score="p", by="g")
    assert repr(result).splitlines()[0] == f"<Diagnosis: {result.n:,} rows; .table, .to_dict()>"
    assert "  1 of 10: crossing" in repr(result)
    assert all(len(line) <= 80 for line in repr(result).splitlines())
    assert "says too much by 21.3 points" in result._repr_html_()
    kept = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (kept["schema_version"], kept["kind"], len(kept["table"])) == (1, "diagnosis", 10)
    assert kept["convention"]["tolerance"] == 0.03


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"tolerance": 3}, r"tolerance is a gap between 0 and 1.*got 3"),
        ({"alpha": 0.7}, r"alpha must lie between 0 and 0.5.*got 0.7"),
        ({"extreme": 0.4}, r"extreme must lie in \[0, 0.25\].*got 0.4"),
        ({"correction": "max"}, r"correction must be .*; got 'max'"),
        ({"n_resamples": 1}, r"n_resamples must be a whole number from 20.*got 1"),
        ({"rng": -1}, r"rng must be a whole number.*got -1"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        found(drawn(), **arguments)


def test_wrong_tables() -> None:
    with pytest.raises(ColumnClashError, match="pattern"):
        found({**drawn(), "pattern": [1] * 600}, by="pattern")
    with pytest.raises(EmptyTableError, match="no rows"):
        found({"y": pl.Series([], dtype=pl.Int64), "p": pl.Series([], dtype=pl.Float64)})
