"""Score cells for cumulative errors: equal steps of the logit, so that rare events have cells, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import narwhals.stable.v2 as nw
import numpy as np

from calframe._auditing._finest import Finest
from calframe._binning import Bins
from calframe._testing._search import SearchCells

_STEPS = 16  # a unit of logit: cells are 0.016 wide at 0.5, and 0.0006 at 0.01
_WIDEST = 12.0  # logits beyond it share the outermost cells; 0 and 1 have their own
_MOST = int(2 * _WIDEST * _STEPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogitBins(Bins):
    """Bins of equal width in the logit of the score."""

    @classmethod
    def usual(cls) -> Self:
        """Return the bins of cumulative errors."""
        logits = np.arange(1, _MOST) / _STEPS - _WIDEST
        inner = 1.0 / (1.0 + np.exp(-logits))
        return cls(edges=(0.0, *inner.tolist(), 1.0), uniform=False, closed="left")

    def index(self, score: nw.Expr, *, narrow: nw.Expr | bool) -> nw.Expr:  # noqa: ARG002  no edge is a short decimal
        """Return the bin of each score: 0 for a score of 0, the last for one of 1, between them by the logit."""
        inside = (score > 0.0) & (score < 1.0)
        share = nw.when(inside).then(score).otherwise(0.5)
        step = (((share / (1.0 - share)).log() + _WIDEST) * _STEPS).floor().clip(0.0, _MOST - 1.0) + 1.0
        certain = nw.when(score >= 1.0).then(_MOST + 1.0).otherwise(0.0)
        return nw.when(inside).then(step).otherwise(certain).cast(nw.Int32)


def search_cells(finest: Finest) -> SearchCells:
    """Return the cells of all crossings that hold rows."""
    sums = finest.cells.sums
    filled = sums["w"] > 0
    return SearchCells(
        crossing=finest.crossing()[filled],
        bin=finest.bin[filled],
        weight=sums["w"][filled],
        label=sums["wy"][filled],
        score=sums["wp"][filled],
        variance=sums["variance"][filled],
        squared_variance=sums["w2_variance"][filled],
    )
