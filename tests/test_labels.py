"""Labels of every kind and type, and which of their values counts as positive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests._tables import Maker, value


@pytest.mark.parametrize(
    ("labels", "positive", "rate"),
    [
        ([True, False, True, True], None, 0.75),
        ([True, False, True, True], False, 0.25),
        ([True, False, True, True], np.True_, 0.75),
        ([1, 0, 1, 1], None, 0.75),
        ([1, 0, 1, 1], 0, 0.25),
        ([1, 0, 1, 1], True, 0.75),
        ([1.0, 0.0, 1.0, 1.0], None, 0.75),
        ([1, -1, 1, 1], None, 0.75),
        ([1, -1, 1, 1], -1, 0.25),
        ([1, 1, 1, 1], None, 1.0),
        ([0, 0, 0, 0], None, 0.0),
        ([0, 0, 0, 0], 1, 0.0),
        ([-1, -1, -1, -1], None, 0.0),
        ([False, False, False, False], True, 0.0),
        (["yes", "no", "yes", "yes"], "yes", 0.75),
        (["yes", "yes", "yes", "yes"], "yes", 1.0),
        (["1", "0", "1", "1"], 1, 0.75),
        (["", "no", "", ""], "", 0.75),
        ([2, 1, 2, 2], 2, 0.75),
        ([2, 1, 2, 2], 2.0, 0.75),
        ([0.5, 1.5, 0.5, 0.5], 0.5, 0.75),
        (np.array([1, 0, 1, 1], "int8"), None, 0.75),
        (np.array([1, 0, 1, 1], "uint8"), None, 0.75),
        (np.array([1, 0, 1, 1], "uint64"), None, 0.75),
        (np.array([1, 0, 1, 1], "float32"), None, 0.75),
    ],
)
def test_labels_of_every_kind(make: Maker, labels: Any, positive: Any, rate: float) -> None:
    assert value(make, {"y": labels, "p": [0.5] * 4}, "rate", positive=positive) == rate
