"""`calframe.report(cluster=)`: the page of rows that are not independent."""

import datetime as dt

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import calframe

ROLES = {"label": "y", "score": "p"}


def singles(size: int = 1500) -> pl.DataFrame:
    """Return right scores, each row a cluster of its own by `id`."""
    rng = np.random.default_rng(1)
    score = rng.beta(2, 2, size).round(2)
    return pl.DataFrame(
        {
            "y": (rng.random(size) < score).astype(int),
            "p": score,
            "id": np.arange(size),
            "day": [dt.date(2024, 1 + i % 6, 1 + i % 28) for i in range(size)],
            "g": rng.choice(["a", "b", "c"], size),
        }
    )


@pytest.mark.parametrize("options", [{}, {"by": "g"}, {"by": "g", "time": "day"}])
def test_twenty_copies_of_each_row_say_what_one_copy_says(options: dict[str, str]) -> None:
    # rows that are the same tell nothing new; without clusters the gap of a segment is taken for a real one
    once = singles()
    one, many = (calframe.report(data, **ROLES, **options, cluster="id") for data in (once, pl.concat([once] * 20)))
    counts = ("n", "net", "positives", "weight_sum", "n_missing", "rows_needed")
    told = [name for name in one.table.columns if name not in {*counts, "design_effect"}]
    assert_frame_equal(one.table.select(told), many.table.select(told), abs_tol=1e-11)
    assert (one.verdict, one.headline) == (many.verdict, many.headline)
    curves = [found.findings.curve.drop("n") for found in (one, many)]
    assert_frame_equal(*curves, abs_tol=1e-11)
    assert one.findings.chance.mean == pytest.approx(many.findings.chance.mean)
    assert one.findings.chance.pvalue == many.findings.chance.pvalue
    plain = calframe.report(pl.concat([once] * 20), **ROLES, **options)
    assert plain.verdict != many.verdict


def test_the_page_says_what_is_not_independent() -> None:
    found = calframe.report(singles(), **ROLES, by="g", time="day", cluster="id")
    page = found.to_html()
    assert "clusters of id" in page
    assert "Rows of one id share their luck: the effective number of clusters is 1,500" in page
    assert "cluster=&#39;id&#39;" in page or "cluster='id'" in page
    assert found.table.filter(pl.col("column") == "")["n_clusters"].item() == pytest.approx(1500)


def test_a_cluster_that_is_all_leaves_nothing_decided() -> None:
    found = calframe.report(singles().with_columns(id=pl.lit(1)), **ROLES, by="g", time="day", cluster="id")
    assert found.ok is None
    assert found.table["design_effect"].null_count() == found.table.height
    assert "there is a single one: nothing is decided" in found.to_html()
    assert set(found.table["verdict"]) == {"few"}
