"""Aliases and choices that several floors share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

Closed: TypeAlias = Literal["left", "right"]
Strategy: TypeAlias = Literal["uniform", "quantile"]
Smoother: TypeAlias = Literal["loess", "loess_direct", "lowess"]
Notion: TypeAlias = Literal["confidence", "classwise"]
Seed: TypeAlias = "int | np.random.Generator | None"
RateInterval: TypeAlias = Literal["wilson", "clopper_pearson", "jeffreys"]
Invalid: TypeAlias = Literal["raise", "drop"]
Link: TypeAlias = Literal["probability", "logit"]
Direction: TypeAlias = Literal["lower", "higher", "zero", "one", "none"]
VerdictName: TypeAlias = Literal["over", "under", "leans_over", "leans_under", "within", "unsure", "few"]
Tone: TypeAlias = Literal["over", "under", "ok", "none"]
TestMethod: TypeAlias = Literal[
    "resampling", "spiegelhalter", "hosmer_lemeshow", "ecce", "ks", "cox", "gap", "corp", "kernel"
]
TEST_METHODS: tuple[TestMethod, ...] = get_args(TestMethod)

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Names: TypeAlias = str | Sequence[str]
Score: TypeAlias = str | Sequence[str] | Mapping[Any, str]
Json: TypeAlias = dict[str, Any]
Spec: TypeAlias = Mapping[str, Any]
