"""Audits: every segment against the rows themselves, and verdicts, tests and intervals against statsmodels."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint, proportions_ztest

from calframe import ArgumentError, CalframeError, CalframeWarning, ColumnClashError, EmptyTableError, SegmentError
from calframe._audit import Audit, audit
from tests._claims import verdict
from tests._tables import Maker, approx, rows

CORRECTIONS = {
    "holm": "holm",
    "bonferroni": "bonferroni",
    "benjamini_hochberg": "fdr_bh",
    "benjamini_yekutieli": "fdr_by",
}


def audited(data: Any, by: Any = "g", **arguments: Any) -> Audit:
    return audit(data, **{"label": "y", "score": "p", "by": by, "n_resamples": 20, **arguments})


def table_of(found: Audit) -> list[dict[str, Any]]:
    columns = rows(found.table)
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def named(found: Audit) -> dict[str, dict[str, Any]]:
    return {row["segment"]: row for row in table_of(found)}


def groups(*segments: tuple[Any, int, int, float]) -> pl.DataFrame:
    """Return a table of segments given as (value, rows, positives, score)."""
    parts = {"g": [], "y": [], "p": []}
    for value, n, positives, score in segments:
        parts["g"] += [value] * n
        parts["y"] += [1] * positives + [0] * (n - positives)
        parts["p"] += [score] * n
    return pl.DataFrame(parts, schema_overrides={"p": pl.Float64})


def drawn(n: int, *, seed: int = 0) -> dict[str, list[Any]]:
    """Return columns of rows whose scores are too high in the west."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(2, 3, n), 3)
    region = rng.choice(["north", "west", "missing"], n)
    label = rng.random(n) < np.where(region == "west", score**1.4, score)
    return {
        "y": label.astype(int).tolist(),
        "p": score.tolist(),
        "region": [None if name == "missing" else str(name) for name in region],
        "kind": rng.integers(0, 3, n).tolist(),
        "new": (rng.random(n) < 0.3).tolist(),
    }


def test_every_segment_is_the_rows_that_it_names(make: Maker) -> None:
    columns = drawn(1500)
    columns["p"][:7] = [None] * 7
    found = audited(make(columns), ["region", "kind", "new"])
    assert type(found.table) is (pl.DataFrame if make.lazy else make.result)
    assert type(found.disparities) is type(found.table)
    y, p = np.array(columns["y"]), np.array(columns["p"], dtype=float)
    seen = set()
    for row in table_of(found):
        parts = dict(part.split("=") for part in row["segment"].split(" & "))
        inside = np.ones(len(y), dtype=bool)
        for name, text in parts.items():
            inside &= np.array(["(missing)" if value is None else str(value) for value in columns[name]]) == text
            assert str(row[name]) == text or (row[name] is None and text == "(missing)")
        assert all(row[name] is None for name in {"region", "kind", "new"} - set(parts))
        assert (row["depth"], row["columns"]) == (len(parts), " & ".join(parts))
        used = inside & ~np.isnan(p)
        assert (row["n"], row["n_missing"]) == (used.sum(), (inside & np.isnan(p)).sum())
        assert [row["rate"], row["mean_score"]] == approx([y[used].mean(), p[used].mean()])
        assert row["net"] == approx(float((p[used] - y[used]).sum()), rel=1e-9)
        seen.add(row["segment"])
    # 3 + 3 + 2 values and 9 + 6 + 6 pairs, each once
    assert len(seen) == len(table_of(found)) == 29


def test_depth_counts_the_columns_crossed() -> None:
    data, by = pl.DataFrame(drawn(600)), ["region", "kind", "new"]
    counts = {depth: len(audited(data, by, depth=depth).table) for depth in (1, 2, 3, 9)}
    assert counts == {1: 8, 2: 29, 3: 29 + 18, 9: 29 + 18}


def exact(k: int, n: int, rate: float) -> float:
    """Return twice the smaller tail of the binomial law."""
    return min(1.0, 2 * min(stats.binom.cdf(k, n, rate), stats.binom.sf(k - 1, n, rate)))


@pytest.mark.parametrize("correction", list(CORRECTIONS))
def test_verdicts_follow_from_intervals_and_p_values_of_statsmodels(correction: Any) -> None:
    sizes = [(1000, 0.53), (1000, 0.562), (1000, 0.44), (10_000, 0.518), (400, 0.52), (100, 0.55), (90, 0.9)]
    data = groups(*((f"s{i}", n, n // 2, score) for i, (n, score) in enumerate(sizes)))
    found = audited(data, correction=correction, ecce=False)
    judged = [f"g=s{i}" for i, (n, _) in enumerate(sizes) if n >= 100]
    raw = [exact(n // 2, n, score) for n, score in sizes if n >= 100]
    adjusted = multipletests(raw, method=CORRECTIONS[correction])[1]
    level = 1 - 0.95 ** (1 / len(judged))
    by_name = named(found)
    for name, (n, score), pvalue, corrected in zip(judged, sizes, raw, adjusted, strict=False):
        row = by_name[name]
        low, high = proportion_confint(n // 2, n, alpha=level, method="beta")
        assert [row["simultaneous_low"], row["simultaneous_high"]] == approx([score - high, score - low])
        low, high = proportion_confint(n // 2, n, alpha=0.05, method="wilson")
        assert [row["gap_low"], row["gap_high"]] == approx([score - high, score - low])
        assert [row["pvalue"], row["pvalue_adjusted"]] == approx([pvalue, corrected], rel=1e-9)
        assert verdict(row, tolerance=0.03, alpha=0.05) == row["verdict"].split("_")[0].replace("leans", "lean")
    assert by_name["g=s6"]["verdict"] == "few"
    assert by_name["g=s6"]["note"] == "not judged: fewer than 100 effective rows"


def test_gaps_are_compared_with_all_other_rows() -> None:
    # With one score for all rows the difference of gaps is that of rates, and where half of all rows are positive, so
    # that there is no skewness, the test is the pooled z test of these.
    data = groups(("a", 400, 180, 0.3), ("b", 600, 330, 0.3), ("c", 500, 240, 0.3))
    found = named(audited(data))
    row = found["g=a"]
    assert row["gap_to_rest"] == approx(570 / 1100 - 0.45)
    low, high = confint_proportions_2indep(570, 1100, 180, 400, method="newcomb", compare="diff")
    assert [row["gap_to_rest_low"], row["gap_to_rest_high"]] == approx([low, high], rel=1e-9)
    assert row["pvalue_to_rest"] == approx(proportions_ztest([180, 570], [400, 1100])[1], rel=1e-9)
    raw = [found[f"g={name}"]["pvalue_to_rest"] for name in "abc"]
    adjusted = [found[f"g={name}"]["pvalue_to_rest_adjusted"] for name in "abc"]
    assert adjusted == approx(multipletests(raw, method="holm")[1].tolist(), rel=1e-9)


def test_the_comparison_of_rare_events_is_nearly_exact_where_the_rest_is_large() -> None:
    # The rate of a million other rows is known: P(K >= 36) and P(K <= 36) of 1,000 rows. The z test says 0.0003.
    data = groups(("a", 1000, 36, 0.02), ("b", 1_000_000, 20_000, 0.02))
    row = named(audited(data, ecce=False))["g=a"]
    assert row["pvalue_to_rest"] == pytest.approx(exact(36, 1000, 0.02), rel=0.1)
    assert row["pvalue_to_rest"] > 3 * proportions_ztest([36, 20_000], [1000, 1_000_000])[1]


@pytest.mark.parametrize("reference", ["b", {"g": "b"}])
def test_gaps_are_compared_with_a_reference_group(reference: Any) -> None:
    data = groups(("a", 400, 180, 0.3), ("b", 600, 320, 0.3), ("c", 500, 150, 0.3))
    found = named(audited(data, reference=reference))
    assert found["g=a"]["gap_to_reference"] == approx(320 / 600 - 0.45)
    assert found["g=a"]["pvalue_to_reference"] == approx(proportions_ztest([180, 320], [400, 600])[1], rel=1e-9)
    assert (found["g=b"]["gap_to_reference"], found["g=b"]["pvalue_to_reference"]) == (None, None)
    assert found["g=b"]["note"] == "no other rows to compare with"


def test_a_segment_is_compared_with_the_part_of_the_reference_group_that_is_not_its_own() -> None:
    columns = drawn(2000)
    found = named(audited(pl.DataFrame(columns), ["region", "new"], reference={"region": None}))
    y, p = np.array(columns["y"]), np.array(columns["p"])
    new, missing = np.array(columns["new"]), np.array([name is None for name in columns["region"]])

    def gap(where: Any) -> float:
        return float(p[where].mean() - y[where].mean())

    assert found["new=True"]["gap_to_reference"] == approx(gap(new) - gap(missing & ~new), rel=1e-9)
    part = found["region=(missing) & new=True"]["gap_to_reference"]
    assert part == approx(gap(missing & new) - gap(missing & ~new), rel=1e-9)


def test_text_is_not_missing(make: Maker) -> None:
    columns = {
        "g": ["nan", None, "a", "a", "(missing)", ""],
        "y": [1, 0, 1, 0, 1, 0],
        "p": [0.7, 0.2, 0.9, 0.1, 0.5, 0.5],
    }
    found = named(audited(make(columns)))
    assert {name: row["n"] for name, row in found.items()} == {
        "g=nan": 1,
        "g=(missing) 2": 1,
        "g=a": 2,
        "g=(missing)": 1,
        "g=(empty)": 1,
    }


def test_columns_that_read_the_same_when_joined_stay_apart(make: Maker) -> None:
    long = "a" * 60
    columns = {"s": ["a_b", "a", long, long], "t": ["c", "b_c", "x", "y"], "y": [1, 0, 1, 0], "p": [0.7, 0.2, 0.9, 0.1]}
    found = [row for row in table_of(audited(make(columns), ["s", "t"])) if row["depth"] == 2]
    assert sorted((row["s"], row["t"], row["n"]) for row in found) == [
        ("a", "b_c", 1),
        ("a_b", "c", 1),
        (long, "x", 1),
        (long, "y", 1),
    ]


def test_missing_categories_are_counted_and_empty_ones_named() -> None:
    category = pd.Categorical(["a", "a", "b", None], categories=["a", "b", "z"])
    data = pd.DataFrame({"g": category, "y": [1, 0, 1, 0], "p": [0.7, 0.2, 0.9, 0.1]})
    with pytest.warns(CalframeWarning, match="declares categories that no row has: 'z'"):
        found = audited(data)
    assert {name: row["n"] for name, row in named(found).items()} == {"g=a": 2, "g=b": 1, "g=(missing)": 1}
    assert found.to_dict()["convention"]["empty_categories"] == {"g": ["z"]}


def test_errors_that_cancel_over_all_rows_are_found() -> None:
    # Ten rows of score 0.5 in each of two segments, 7 and 3 of them positive, as often as a verdict needs
    found = audited(groups(("a", 1000, 700, 0.5), ("b", 1000, 300, 0.5)), n_resamples=99)
    assert (found.overall["gap"], found.overall["verdict"]) == (0.0, "within")
    assert {name: (row["gap"], row["verdict"]) for name, row in named(found).items()} == {
        "g=a": (approx(-0.2), "under"),
        "g=b": (approx(0.2), "over"),
    }
    assert found.verdict == "action needed"
    assert found.headline.startswith("On average the scores are within tolerance, but g a is understated by 20")


def test_cumulative_errors_are_in_units_of_sigma() -> None:
    # Along the scores of the segment: sums of label - score are 10 x (1 - 0.2) = 8, then 8 - 10 x 0.8 = 0, so that the
    # mean is right; sigma^2 = 20 x 0.16 = 3.2.
    data = groups(("a", 10, 10, 0.2), ("a", 10, 0, 0.8))
    row = named(audited(data))["g=a"]
    assert (row["gap"], row["ecce"]) == (approx(0.0), approx(8 / 3.2**0.5))


def test_counting_weights_are_rows() -> None:
    columns = drawn(900)
    columns["w"] = np.random.default_rng(1).integers(0, 4, 900).tolist()
    data = pl.DataFrame(columns)
    repeated = data.filter(pl.col("w") > 0).select(pl.all().repeat_by("w").explode())
    by, same = (
        ["region", "kind"],
        ["rate", "gap_low", "simultaneous_high", "gap_shrunken", "gap_to_rest", "pvalue", "ecce"],
    )
    weighed = named(audited(data, by, weight="w", weight_kind="frequency"))
    once = named(audited(repeated, by))
    for name, row in once.items():
        assert [weighed[name][column] for column in same] == approx([row[column] for column in same], rel=1e-9)
        assert (weighed[name]["weight_sum"], weighed[name]["pvalue_to_rest"]) == (
            row["n"],
            approx(row["pvalue_to_rest"], rel=1e-9),
        )


def test_importance_weights_count_as_effective_rows() -> None:
    # Weights of 1 and 3 in turn: (sum w)^2 / sum w^2 = 2000^2 / 5000 = 800 of 1,000 rows.
    data = groups(("a", 1000, 500, 0.56), ("b", 1000, 500, 0.5)).with_columns(w=pl.Series([1.0, 3.0] * 1000))
    row = named(audited(data, weight="w"))["g=a"]
    low, high = proportion_confint(400, 800, alpha=0.05, method="wilson")
    assert [row["gap_low"], row["gap_high"]] == approx([0.56 - high, 0.56 - low])
    scaled = named(audited(data.with_columns(pl.col("w") * 1000), weight="w"))["g=a"]
    assert [scaled[name] for name in ("ecce", "gap_shrunken", "pvalue_to_rest")] == approx(
        [row[name] for name in ("ecce", "gap_shrunken", "pvalue_to_rest")], rel=1e-9
    )


def test_the_order_of_rows_never_matters() -> None:
    data = pl.DataFrame(drawn(1200))
    shuffled = data.sample(fraction=1.0, shuffle=True, seed=3)
    first, second = (audited(each, ["region", "kind", "new"]) for each in (data, shuffled))
    for ours, theirs in zip(table_of(first), table_of(second), strict=True):
        assert {k: approx(v, rel=1e-9) for k, v in ours.items()} == theirs


def test_worst_segments_come_first() -> None:
    data = groups(
        ("fine", 10_000, 5000, 0.5),
        ("small", 300, 150, 0.7),
        ("large", 3000, 1500, 0.6),
        ("lean", 1000, 500, 0.55),
        ("open", 200, 100, 0.5),
        ("few", 20, 10, 0.9),
    )
    found = audited(data)
    assert rows(found.table)["g"] == ["large", "small", "lean", "open", "fine", "few"]
    assert [row["net"] for row in table_of(found)][:2] == approx([300.0, 60.0], rel=1e-9)


def test_numbers_of_fewer_than_five_rows_are_not_shown() -> None:
    found = named(audited(groups(("a", 4, 1, 0.5), ("b", 5, 1, 0.5))))
    row = found["g=a"]
    told = {"depth", "columns", "segment", "g", "n", "n_missing", "verdict", "note"}
    assert {name for name, value in row.items() if value is not None} == told
    assert row["note"] == "fewer than 5 rows: no numbers shown"
    assert found["g=b"]["rate"] == 0.2


def test_segments_without_usable_rows_stay() -> None:
    data = pl.DataFrame({"g": ["a", "a", "b"], "y": [None, None, 1], "p": [0.5, 0.2, 0.4]})
    row = named(audited(data))["g=a"]
    assert (row["n"], row["n_missing"], row["rate"], row["verdict"]) == (0, 2, None, "few")
    assert row["note"] == "no usable rows"


def test_a_table_without_rows_is_refused() -> None:
    empty = pa.table({"g": pa.array([], pa.string()), "y": pa.array([], pa.int64()), "p": pa.array([], pa.float64())})
    for data in (empty, pl.DataFrame(empty), empty.to_pandas(), duckdb.connect().from_arrow(empty)):
        with pytest.raises(EmptyTableError, match="the table has no rows"):
            audited(data)


def test_logits_are_read_as_probabilities() -> None:
    columns = drawn(800)
    data = pl.DataFrame(columns).filter(pl.col("p").is_between(0.001, 0.999))
    logits = data.with_columns((pl.col("p") / (1 - pl.col("p"))).log())
    plain, linked = (
        named(audited(each, "region", link=link)) for each, link in ((data, "probability"), (logits, "logit"))
    )
    for name, row in plain.items():
        assert linked[name]["gap"] == approx(row["gap"], rel=1e-9)
        assert linked[name]["ecce"] == pytest.approx(row["ecce"], rel=1e-6)


def test_results_are_plain_data_that_fit_a_terminal() -> None:
    found = audited(pl.DataFrame({**drawn(500), "wide": ["日本語\n" * 30, "b"] * 250}), ["region", "kind", "wide"])
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (data["kind"], data["schema_version"], len(data["table"])) == ("audit", 1, len(found.table))
    for line in repr(found).split("\n"):
        assert sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line) <= 80
    assert "<table>" in found._repr_html_()
    chart = found.plot(width=700).to_dict()
    assert "region=west" in json.dumps(chart)
    for wrong in (0, 2.5, 3.0, True):
        with pytest.raises(ArgumentError, match=f"most must be a whole number of 1 or more; got {wrong}"):
            found.plot(most=wrong)
    with pytest.raises(ArgumentError, match="width must be a number of pixels"):
        found.plot(width=1)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"by": []}, ArgumentError, "an audit needs by="),
        ({"by": None}, ArgumentError, "an audit needs by="),
        ({"by": "n"}, ColumnClashError, "segment column 'n' has the name of a result column"),
        ({"score": ["p", "y"]}, ArgumentError, "one column of probabilities"),
        ({"score": {"a": "p", "b": "y"}}, ArgumentError, "Make a 0/1 column for one class"),
        ({"depth": 0}, ArgumentError, "depth must be a whole number of 1 or more; got 0"),
        ({"min_rows": 4}, ArgumentError, "min_rows must be a whole number of 5 or more; got 4"),
        ({"numeric_bins": 1}, ArgumentError, "numeric_bins must be a whole number from 2 to 100; got 1"),
        *(
            ({name: wrong}, ArgumentError, f"{name} must be a whole number .*; got {wrong}")
            for name in ("depth", "min_rows", "numeric_bins", "max_segments", "n_resamples")
            for wrong in (100.0, True)
        ),
        ({"correction": "hoolm"}, ArgumentError, "Did you mean 'holm'"),
        ({"tolerance": 3}, ArgumentError, "tolerance is a gap between 0 and 1"),
        ({"max_segments": 1}, SegmentError, "'g' has 2 distinct values, more than max_segments=1"),
        (
            {"by": ["g", "h"], "max_segments": 5},
            SegmentError,
            r"6 and more at depth 2, above max_segments=5.*'g' 2, 'h' 2",
        ),
        (
            {"reference": "west"},
            ArgumentError,
            "reference value 'west' does not occur in column 'g'.*Did you mean 'West'",
        ),
        (
            {"reference": {"h": 1}},
            ArgumentError,
            r"reference names 'h', which is not among the segment columns by=\['g'\]",
        ),
        ({"reference": {}}, ArgumentError, "names no group"),
        ({"by": ["g", "h"], "reference": "West"}, ArgumentError, "does not say of which column"),
        ({"label": "p"}, CalframeError, "label"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: type[Exception], match: str) -> None:
    data = pl.DataFrame({"g": ["West", "East"], "h": ["a", "b"], "n": ["x", "y"], "y": [0, 1], "p": [0.2, 0.8]})
    with pytest.raises(error, match=match):
        audited(data, **{"by": "g", **arguments})


def test_what_never_happens_though_scores_expect_it_is_judged() -> None:
    # 200 rows of score 0.75, all positive: 50 negatives are expected, so that none of them is news
    rows_of = pl.DataFrame({"y": [1] * 200, "p": 0.75, "g": "a"})
    [row] = audit(rows_of, label="y", score="p", by="g").table.iter_rows(named=True)
    assert (row["verdict"], row["note"]) == ("under", "no other rows to compare with")
    few = audit(rows_of.with_columns(p=pl.lit(0.96)), label="y", score="p", by="g").table  # 8 are expected
    assert few["verdict"].to_list() == ["few"]
    assert few["note"][0].startswith("gap not judged: fewer than 10 of one outcome, seen or expected")
