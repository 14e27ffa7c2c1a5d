"""How often labels are drawn: enough to reject among many segments, and said where it is not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import calframe
from calframe._errors import ArgumentError
from calframe._hypotheses import STREAMS, generator
from calframe._kernels._tally import Tally
from calframe._testing import _regressions
from calframe._testing._draws import Drawing, law_of, positives, staged
from calframe._testing._found import BEYOND, BOTH_BEYOND, Found
from calframe._typing import TEST_METHODS
from tests._inference import CLASSES, class_table, drawn, one

SEGMENTS = 100


def wrong(segments: int = SEGMENTS) -> pl.DataFrame:
    """Return segments of 40 rows of score 0.2 that are all positive."""
    return pl.DataFrame({"y": 1, "p": 0.2, "q": 0.5, "g": [i for i in range(segments) for _ in range(40)]})


def test_each_method_draws_from_a_source_of_its_own() -> None:
    assert sorted(STREAMS) == sorted(TEST_METHODS)
    assert len({generator(0, method).random() for method in STREAMS}) == len(STREAMS)


@pytest.mark.parametrize("method", ["resampling", "corp"])
def test_many_segments_are_rejected_without_asking_for_more_draws(method: str) -> None:
    # of 2 m / alpha = 4,000 draws none comes as far: p = 1 / 4001, and Holm's first step is 100 of it
    table = calframe.test(wrong(), label="y", score="p", by="g", method=method).table
    assert set(table["pvalue"]) == {1 / 4001}
    assert table["pvalue_adjusted"].to_list() == pytest.approx([100 / 4001] * SEGMENTS)
    assert table["reject"].all()
    assert table["note"].is_null().all()


def test_draws_that_can_reject_nothing_are_said() -> None:
    # 1 / 101 of 100 segments is 0.99 by Holm and Bonferroni; 1 / 101 itself by Benjamini and Hochberg
    asked = {"label": "y", "score": "p", "by": "g", "n_resamples": 100}
    found = calframe.test(wrong(), **asked)
    assert found.table["reject"].is_null().all()
    assert set(found.table["note"]) == set(found.notes) == set(found.to_dict()["notes"])
    assert found.notes[0].startswith("100 draws cannot reject among 100 comparisons, whatever the scores")
    assert "nothing decided" in repr(found)
    assert "cannot reject among 100" in repr(found)
    assert max(map(len, repr(found).splitlines())) <= 80
    assert calframe.test(wrong(), **asked, correction="benjamini_hochberg").table["reject"].all()
    assert calframe.test(wrong(), **asked | {"n_resamples": 400}).table["reject"].all()  # which ask for more


def test_models_are_told_apart_among_many_segments() -> None:
    # all 40 rows of each segment differ by the same, so that models are exchanged
    scores = {"label": "y", "score": ["p", "q"], "by": "g", "metrics": "ece"}
    assert set(calframe.compare(wrong(), **scores).table["better"]) == {"q"}
    found = calframe.compare(wrong(), **scores, n_resamples=100)
    assert found.table["better"].is_null().all()
    assert set(found.table["note"].str.contains("100 draws cannot reject among 100 comparisons")) == {True}
    assert "cannot reject" in repr(found)


def test_pvalues_of_two_stages_hold_their_level() -> None:
    # theory: what is seen is one more draw, so that P(p <= a) is at most a, and little less
    rng, many = np.random.default_rng(3), 20_000
    seen = rng.random((2, many))

    def draws(where: Any, how: Drawing) -> Any:
        for _ in range(how.n_resamples // 20):
            yield slice(None), rng.random((2, 20, int(where.sum())))

    drawing = Drawing(n_resamples=100, rng=rng, further=1000)
    pvalue, _ = staged(seen, draws, side="greater", drawing=drawing)
    assert pvalue.min() == 1 / 101  # 1 / 101 is above the 0.005 that asks for more
    drawing = Drawing(n_resamples=400, rng=rng, further=2000)
    pvalue, _ = staged(seen, draws, side="greater", drawing=drawing)
    for level in (0.001, 0.0025, 0.004, 0.01, 0.05):
        rate = float((pvalue <= level).mean())
        assert 0.5 * level < rate <= level + 3.0 * math.sqrt(level / (2 * many)), level


def test_the_note_says_which_pvalues_are_shown() -> None:
    # the law says 1e-9; of 999 draws none came as far. Alone 0.001 rejects, among 100 it does not
    for many, note, adjusted in ((1, BOTH_BEYOND, 1e-9), (100, BEYOND, 0.1)):
        found = Found.of_law(np.full(many, 6.0), np.full(many, 1e-9), "normal")
        settled = found.settled(
            np.ones(many, dtype=bool), lambda where: (np.full(where.sum(), 0.001),) * 2, floor=0.001
        )
        values, noted = settled.adjusted("holm", 0.05)
        assert set(noted.note) == {note}
        assert values[0] == pytest.approx(adjusted)


def test_few_rows_are_decided_by_an_exact_gap() -> None:
    # by hand: three rows of score 0.1 that are positive have probability 0.001, and twice that is the p-value
    found = one(pl.DataFrame({"y": [1, 1, 1], "p": [0.1] * 3}), method="gap")
    assert (found["law"], found["reject"], found["note"]) == ("exact", True, None)
    assert found["pvalue"] == pytest.approx(0.002)
    assert one(pl.DataFrame({"y": [1, 0], "p": [0.5] * 2}), method="gap")["reject"] is False
    assert one(pl.DataFrame({"y": [1, 0], "p": [0.6] * 2}), statistic="brier")["reject"] is False  # drawn


def test_one_fit_a_draw_does_for_all_three_hypotheses(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []
    fit = _regressions.cox_fit
    monkeypatch.setattr(_regressions, "cox_fit", lambda *given, **more: fits.append(1) or fit(*given, **more))
    data = drawn(120).with_columns(c=pl.int_range(120) // 2)
    table = calframe.test(data, label="y", score="p", method="cox", cluster="c", n_resamples=50).table
    assert len(table) == 3
    assert len(fits) == 2  # of what was seen, and of all draws


@pytest.mark.parametrize("method", ["kernel", "hosmer_lemeshow", "resampling"])
def test_the_order_of_rows_of_several_classes_does_not_matter(method: str) -> None:
    data = class_table(60)
    found, other = (
        one(each, score=CLASSES, method=method, n_resamples=200)
        for each in (data, data.sample(fraction=1.0, shuffle=True, seed=1))
    )
    assert found["pvalue"] == other["pvalue"]


@pytest.mark.parametrize("bins", [15, "auto"])
@pytest.mark.parametrize("weight", [7.0, 0.1, 1e-90])
def test_equal_weights_are_none(weight: float, bins: Any) -> None:
    data = drawn(60, digits=1)
    found = one(data.with_columns(w=pl.lit(weight)), weight="w", bins=bins, n_resamples=200)
    assert found["pvalue"] == one(data, bins=bins, n_resamples=200)["pvalue"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": None}, "method must be a name or a list of names.*got None"),
        ({"progress": 3}, "progress must be a function.*got 3"),
        ({"statistic": "eec"}, "statistic='eec' is not known; near it are 'ece'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        one(drawn(30), **arguments)


def test_drawn_positives_have_the_binomial_law() -> None:
    # cells of one row are drawn another way than those of several; by the law of each: binom.pmf
    rows, score = np.array([1.0, 4.0, 1.0, 1.0, 9.0]), np.array([0.0, 0.2, 0.7, 1.0, 0.95])
    tally = Tally.of_counts(np.array([0]), score, rows, positive=rows * score)
    many = 20_000
    drawn = positives(law_of(tally), tally.weight, many, np.random.default_rng(8))
    for j, (size, chance) in enumerate(zip(rows, score, strict=True)):
        shares = np.bincount(drawn[:, j].astype(int), minlength=int(size) + 1) / many
        right = stats.binom.pmf(np.arange(size + 1), size, chance)
        assert np.all(np.abs(shares - right) <= 4.0 * np.sqrt(right * (1.0 - right) / many) + 1e-12), j
    assert np.abs(np.corrcoef(drawn[:, [1, 2, 4]].T) - np.eye(3)).max() < 4.0 / np.sqrt(many)
