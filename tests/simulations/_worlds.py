"""The populations that samples are drawn from: how scores are spread, and which chance each score really has.

A world has a law of scores and a truth. Its population is a fine table of scores with the share of rows at each (exact
integration by Gauss-Legendre nodes in 30 equal panels, whose edges hold every bin edge and 1/2; a tied world has its
eleven scores themselves), so that true values need no sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
Scores = Literal["beta", "rare", "ties"]
Truth = Literal["calibrated", "shifted", "steep"]

SCORES: tuple[Scores, ...] = ("beta", "rare", "ties")
TRUTHS: tuple[Truth, ...] = ("calibrated", "shifted", "steep")
BINS = 15
EDGES = np.arange(BINS + 1) / BINS
SLOPE = 1.5  # of the true logit in that of the score, where the scores should be steeper
SHIFT = {"beta": 0.65, "rare": -0.65, "ties": 0.65}  # of the logit: about 0.15 in the middle; rare events stay rare
CENTRE = {"beta": 0.5, "rare": 0.02, "ties": 0.5}  # where the steep truth crosses the scores
LAW = {"beta": stats.beta(2, 3), "rare": stats.beta(1, 49), "ties": stats.beta(2, 3)}  # ties: rounded to 0.1
_NODES = 64


@dataclass(frozen=True, slots=True)
class World:
    """A law of scores and a truth."""

    scores: Scores
    truth: Truth

    def chance(self, score: Floats) -> Floats:
        """Return the true chance of a positive at each score; a certain score is right."""
        if self.truth == "calibrated":
            return score
        with np.errstate(divide="ignore"):
            logit = special.logit(score)
        if self.truth == "shifted":
            return special.expit(logit + SHIFT[self.scores])
        middle = special.logit(CENTRE[self.scores])
        return special.expit(middle + SLOPE * (logit - middle))

    def draw(self, rows: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return scores and labels of so many rows."""
        a, b = LAW[self.scores].args
        score = rng.beta(a, b, rows)
        if self.scores == "ties":
            score = np.round(score, 1)
        return score, (rng.random(rows) < self.chance(score)).astype(np.float64)


WORLDS = tuple(World(scores, truth) for scores, truth in product(SCORES, TRUTHS))


@dataclass(frozen=True, slots=True)
class Population:
    """A table of scores with their share of the rows and their true chance, and the bin of each."""

    score: Floats
    share: Floats
    chance: Floats
    bin: NDArray[np.int64]

    def mean(self, values: Floats) -> float:
        """Return a mean over the population."""
        return float(self.share @ values)

    def by_bin(self, values: Floats) -> Floats:
        """Return the mean of values in each bin; 0 in a bin that no score falls into."""
        weight = np.bincount(self.bin, self.share, BINS)
        sums = np.bincount(self.bin, self.share * values, BINS)
        return np.divide(sums, weight, out=np.zeros(BINS), where=weight > 0)

    @property
    def bin_share(self) -> Floats:
        """The share of the rows in each bin."""
        return np.bincount(self.bin, self.share, BINS)


@cache
def population(world: World) -> Population:
    """Return the population of a world."""
    law = LAW[world.scores]
    if world.scores == "ties":
        score = np.arange(11) / 10
        share = np.diff(law.cdf(np.concatenate([[-1.0], score[:-1] + 0.05, [2.0]])))
    else:
        node, weight = np.polynomial.legendre.leggauss(_NODES)
        panel = 1 / (2 * BINS)
        score = (np.arange(2 * BINS)[:, None] * panel + (node + 1) / 2 * panel).ravel()
        share = np.tile(weight / 2 * panel, 2 * BINS) * law.pdf(score)
    return Population(score, share, world.chance(score), bin_of(score))


def bin_of(score: Floats) -> NDArray[np.int64]:
    """Return the bin of each score; the last one holds 1."""
    return np.minimum(np.searchsorted(EDGES, score, side="right") - 1, BINS - 1)
