"""Names cut to a width: within it, whole where they fit, and never two the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from calframe._words._lines import distinct

LETTERS = st.text("ab é日", min_size=0, max_size=30)  # one of them takes two columns


@given(st.lists(LETTERS, max_size=12), st.integers(8, 20))
def test_names_fit_and_stay_apart(names: list[str], width: int) -> None:
    found = distinct(names, width)
    assert all(cell_len(name) <= width for name in found)  # rich counts columns by its own table
    assert len(set(zip(names, found, strict=True))) == len(set(names)) == len(set(found))
    assert all(short == name for short, name in zip(found, names, strict=True) if cell_len(name) <= width)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["model_for_carrier_AA", "model_for_carrier_UA"], ["mode…r_AA", "mode…r_UA"]),
        (["AA_model_of_carriers", "UA_model_of_carriers"], ["AA_m…iers", "UA_m…iers"]),
        (["model_1_of_carriers", "model_2_of_carriers"], ["model_1…s", "model_2…s"]),
        (["A of model 12 goes", "A of model 34 goes", "B of model 12 goes"], ["A…2 goes", "A…4 goes", "B…2 goes"]),
        (["carriers_1_of_model", "carriers_2_of_model"], ["carr…odel", "car…del 2"]),
        (["carriers____1_model", "carriers____2_model"], ["…_1_model", "…_2_model"]),
        (["x" * 12, "x" * 13, "x" * 12], ["xxxx…xxxx", "xxx…xxx 2", "xxxx…xxxx"]),
        (["two\nlines", "two lines", "two\rlines"], ["two lines 2", "two lines", "two lines 3"]),
    ],
)
def test_the_cut_is_where_names_agree(names: list[str], expected: list[str]) -> None:
    assert distinct(names, 11 if "\n" in names[0] else 9) == expected
