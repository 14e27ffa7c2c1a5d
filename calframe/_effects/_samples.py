"""Samples that are as wide as if clusters had taken rows away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calframe._kernels._binned import sizes_of
from calframe._registry import Cells, Sample, Scored, Tallied
from calframe._typing import Floats


def inflated(sample: Sample, effect: Floats, *, own: Sequence[str] = ()) -> Sample:
    """Return a sample whose variances are larger by a factor for each segment: the effect of clusters.

    `own` are sums of squares that only one metric has.
    """
    if isinstance(sample, Tallied):
        tally = sample.tally
        by = tally.spread(effect)
        wide = replace(tally, squared=tally.squared * by, squared_positive=tally.squared_positive * by)
        return Tallied(tally=wide, is_logit=sample.is_logit, options=sample.options)
    if isinstance(sample, Scored):
        vectors = sample.vectors
        return replace(sample, vectors=replace(vectors, squared=vectors.squared * effect[vectors.segment]))
    assert isinstance(sample, Cells)  # noqa: S101  for the type checker: no other sample is made here
    by = np.repeat(effect, sizes_of(sample.starts, len(sample.sums["w"])))
    sums = {
        name: values * by if name.startswith("w2") or name in own else values for name, values in sample.sums.items()
    }
    return Cells(starts=sample.starts, sums=sums, options=sample.options)
