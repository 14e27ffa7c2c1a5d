"""Honest intervals of binned errors, found by inverting a test along a path of hypotheses.

An error summed over bins is never negative, so chance alone lifts it: its plug-in value and its bootstrap both sit too
high, and an interval around them misses a small true error nearly always. Here an error is kept in the interval when
bins with that error would as easily show what was seen. The hypotheses form a path with one parameter: at shift ``z``
the rate ``q_b(z)`` of every bin is an end of its own Wilson interval of that ``z``,

- for ``z > 0`` the end nearest to the centre of the bin, its mean score (the score itself once the interval holds it),
- for ``z < 0`` the end farthest from it,

and ``z = 0`` is what was seen. Where ``T`` is the error seen and ``T*`` the error that rows drawn with the rates
``q(z)`` would show, the lower end is the error of ``q(z)`` at the greatest ``z`` with ``P(T* >= T) = alpha / 2``, and
the upper end that at the least ``z`` with ``P(T* >= T) = 1 - alpha / 2``. For one bin of many rows these are the ends
of Wilson's interval. The lower end is 0 just where the test of no error at all does not reject.

Two things make the upper end of an absolute error honest with many bins. Gaps within two standard errors of 0 cannot
be told apart, and of all errors that would show the same ``T`` the one with equally large gaps is largest; so on the
way to the upper end no gap is taken as smaller than ``2 - z`` standard errors. And where less is seen than chance
alone shows, the upper end is that of a sample at the chance level: a lucky sample must not claim more than an average
one.

No error by weight is smaller than the gap of the means, so neither is its upper end than the largest gap in Wilson's
interval: where a rare outcome was never seen, the law of ``T*`` has hardly any variance near what was seen.

The law of ``T*`` needs no draws: its mean, variance and third cumulant are sums over the bins, and the Pearson type
III law (a shifted Gamma) with these three stands for it. So the ends are the same every time, and those of a segment
do not depend on which others are there.

References
----------
Imhof, J. P. (1961). Computing the distribution of quadratic forms in normal variables. Biometrika 48, 419-426.
https://doi.org/10.1093/biomet/48.3-4.419 (the three-cumulant law after Pearson).
Cowan, G., Cranmer, K., Gross, E. and Vitells, O. (2011). Power-constrained limits.
https://doi.org/10.48550/arXiv.1105.3166
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._bin_laws import Bins, Law, folded_law, spread_law, square_law
from calframe._kernels._binned import chunk_bounds, effective_rows, ranges, ratio, segment_count, segment_sum, starts_of
from calframe._kernels._intervals import largest_gap, normal_quantile
from calframe._typing import Bools, Floats, Ints

_ALIKE = 2.0  # standard errors within which absolute gaps are taken as equally large, for the upper end
_FURTHEST = 1e8  # shifts beyond it stand for the scores themselves
_CHUNK = 2**17  # bins worked on at a time, in whole segments
_STEPS = 14  # of the search for an end, once it is between two shifts of the grid
_CLOSE = 1e-9  # relative distance of what is searched for at which the search stops
_ULPS = 1e-12  # errors that differ by less are equal but for rounding
_LEAST_SKEW = 1e-5  # below it a Gamma law is normal
_INWARD = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 0.875, 1.0)  # shifts from far to near, see `_Path`
_OUTWARD = tuple(u for u in reversed(_INWARD) if u >= 0.0)

LawOf: TypeAlias = Callable[[Bins, Floats], Law]
Interval: TypeAlias = tuple[Floats, Floats]


def absolute_error_interval(
    weight: Floats,
    score: Floats,
    label: Floats,
    squared: Floats,
    starts: Ints,
    *,
    level: float,
    shares: Floats | None = None,
) -> Interval:
    """Return an interval for ``sum_b share_b |gap_b|`` per segment: the ECE, or with equal shares the ACE.

    Parameters
    ----------
    weight, score, label : ndarray of shape (n_cells,)
        Sums of the weight ``w``, of weight times score and of weight times label in each bin.
    squared : ndarray of shape (n_cells,)
        Sum of ``w^2`` (of ``w`` where weights count rows).
    starts : ndarray of shape (n_segments,)
        The first cell of each segment.
    level : float
        Confidence level in (0, 1).
    shares : ndarray of shape (n_cells,), optional
        What each bin counts; only ratios within a segment matter, and a bin without weight counts nothing. By default
        the weight, whose chance variation from sample to sample is then allowed for.

    Returns
    -------
    low, high : ndarray of shape (n_segments,)
        The ends, NaN in a segment without weight. The plug-in value may lie above `high`: chance lifts it.

    Examples
    --------
    A hundred rows of score 0.3 with 40 positives might well be calibrated; a thousand with 400 are not:

    >>> weight = np.array([100.0, 1000.0])
    >>> low, high = absolute_error_interval(weight, 0.3 * weight, 0.4 * weight, weight, np.array([0, 1]), level=0.99)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.061]), array([0.229, 0.14 ]))
    """
    sums = (weight, label, squared, starts)
    low, high = _interval(folded_law, *sums, level=level, centre=score, shares=shares, least=_ALIKE)
    if shares is None:
        high = np.maximum(high, _gap(weight, score, label, squared, starts, level=level))
    return low, high


def reliability_interval(
    weight: Floats, score: Floats, label: Floats, squared: Floats, starts: Ints, *, level: float
) -> Interval:
    """Return an interval for Murphy's reliability, ``sum_b share_b gap_b^2`` by weight, per segment.

    Parameters as in `absolute_error_interval`.

    Examples
    --------
    >>> weight = np.array([1000.0])
    >>> low, high = reliability_interval(weight, 0.3 * weight, 0.4 * weight, weight, np.array([0]), level=0.99)
    >>> low.round(4), high.round(4)
    (array([0.0037]), array([0.0197]))
    """
    low, high = _interval(square_law, weight, label, squared, starts, level=level, centre=score)
    return low, np.maximum(high, _gap(weight, score, label, squared, starts, level=level) ** 2)


def root_mean_square_interval(
    weight: Floats, score: Floats, label: Floats, squared: Floats, starts: Ints, *, level: float
) -> Interval:
    """Return an interval for the root mean square error, ``sqrt(sum_b share_b gap_b^2)``, per segment.

    That is what the debiased L2 error estimates too. Parameters as in `absolute_error_interval`; the ends are the
    roots of those of `reliability_interval`.
    """
    low, high = reliability_interval(weight, score, label, squared, starts, level=level)
    return np.sqrt(low), np.sqrt(high)


def resolution_interval(weight: Floats, label: Floats, squared: Floats, starts: Ints, *, level: float) -> Interval:
    """Return an interval for Murphy's resolution, ``sum_b share_b (rate_b - rate)^2`` by weight, per segment.

    Parameters as in `absolute_error_interval`; the hypotheses move the rates of the bins from and to the rate of the
    segment, equal ones in turn up and down. The lower end is 0 just where equal rates in all bins are not rejected.
    Rows in a single bin say nothing of the others, and have no interval.

    Examples
    --------
    >>> weight = np.array([500.0, 500.0])
    >>> low, high = resolution_interval(weight, np.array([100.0, 200.0]), weight, np.array([0]), level=0.9)
    >>> low.round(4), high.round(4)
    (array([0.0059]), array([0.0151]))
    """
    low, high = _interval(spread_law, weight, label, squared, starts, level=level)
    several = segment_count(weight > 0.0, starts) > 1
    return np.where(several, low, np.nan), np.where(several, high, np.nan)


def _interval(
    law_of: LawOf,
    weight: Floats,
    label: Floats,
    squared: Floats,
    starts: Ints,
    *,
    level: float,
    centre: Floats | None = None,
    shares: Floats | None = None,
    least: float | None = None,
) -> Interval:
    """Return the ends of every segment, found in chunks of whole segments."""
    keep = weight > 0.0
    count = segment_count(keep, starts)
    there = count > 0
    low, high = np.full((2, len(starts)), np.nan)
    if there.any():
        bins = _bins(weight, label, squared, centre, shares, keep=keep, sizes=count[there])
        parts = (bins.part(*bounds) for bounds in chunk_bounds(bins.starts, len(bins.share), _CHUNK))
        ends = [_both_ends(part, law_of, least, level=level) for part in parts]
        low[there], high[there] = (np.concatenate(side) for side in zip(*ends, strict=True))
    return low, high


def _gap(weight: Floats, score: Floats, label: Floats, squared: Floats, starts: Ints, *, level: float) -> Floats:
    """Return the largest gap of the means that is not rejected; no error by weight is smaller than that."""
    total = segment_sum(weight, starts)
    mean, rate = (ratio(segment_sum(each, starts), total) for each in (score, label))
    return largest_gap(mean, rate, effective_rows(total, segment_sum(squared, starts)), level=level)


def _bins(
    weight: Floats,
    label: Floats,
    squared: Floats,
    centre: Floats | None,
    shares: Floats | None,
    *,
    keep: Bools,
    sizes: Ints,
) -> Bins:
    """Return the bins with weight; without a centre the rates are compared with that of their segment."""
    starts = starts_of(sizes)
    weight, label, squared = weight[keep], label[keep], squared[keep]
    total = segment_sum(weight, starts)
    share = weight if shares is None else shares[keep]
    middle = np.repeat(segment_sum(label, starts) / total, sizes) if centre is None else centre[keep] / weight
    sampled = total / segment_sum(squared, starts) * total
    return Bins(
        starts=starts,
        sizes=sizes,
        share=share / np.repeat(segment_sum(share, starts), sizes),
        rate=np.clip(label / weight, 0.0, 1.0),
        centre=np.clip(middle, 0.0, 1.0),
        rows=weight / squared * weight,
        total=sampled if shares is None else np.full_like(total, np.inf),
    )


def _directed(bins: Bins, z: float) -> Bins:
    """Return the bins with the way that each rate goes to move apart from the others.

    Either all go to the farther ends of their intervals, as a bin of few rows must to differ, or away from the rate of
    the segment, as bins must that already differ as much as can be: whatever moves them farther apart. Of rates that
    are equal every other one goes down.
    """
    off = np.where(np.abs(bins.rate - bins.centre) > _ULPS, bins.rate - bins.centre, 0.0)
    order = np.lexsort((bins.rows, bins.share, off, bins.spread(np.arange(len(bins.sizes)))))
    odd = np.empty(len(off), dtype=bool)
    odd[order] = ranges(np.zeros_like(bins.sizes), bins.sizes) % 2 == 1
    low, high = _wilson_ends(bins.rate, bins.rows, np.full(len(off), z))
    equal = (off == 0.0) & odd
    farther, away = (high - bins.centre >= bins.centre - low) & ~equal, (off >= 0.0) & ~equal
    reached = [spread_law(bins, np.where(up, high, low)).value for up in (farther, away)]
    return replace(bins, up=np.where(bins.spread(reached[0] >= reached[1]), farther, away))


def _both_ends(bins: Bins, law_of: LawOf, least: float | None, *, level: float) -> Interval:
    tail = (1.0 - level) / 2.0
    seen, chance = law_of(bins, bins.rate).value, law_of(bins, bins.centre)
    furthest = normal_quantile(level)
    if law_of is spread_law:
        bins = _directed(bins, furthest)
    path = _Path(bins=bins, law_of=law_of, furthest=furthest)
    low = path.end(seen, quantile=1.0 - tail, grid=_OUTWARD, sign=-1.0)
    path = replace(path, least=least)
    high = path.end(np.maximum(seen, chance.mean), quantile=tail, grid=_INWARD, sign=1.0)
    return np.where(low <= _ULPS**2, 0.0, low), np.maximum(low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Path:
    """The hypotheses, and the search along them.

    A hypothesis is named by its place from -1 to 1, which stands for the shift: ``u`` times `furthest` below 0, where
    every bin at the far end of its interval is far enough, and ``u / (1 - u)`` above 0, up to the scores themselves.
    """

    bins: Bins
    law_of: LawOf
    furthest: float
    least: float | None = None

    def law(self, place: Floats) -> Law:
        """Return the law at a place on the path, one for each segment."""
        near = np.maximum(place, 0.0)
        with np.errstate(divide="ignore"):
            shift = np.where(place < 0.0, place * self.furthest, near / (1.0 - near))
        return self.law_of(self.bins, _rates(self.bins, self.bins.spread(shift), self.least))

    def end(self, seen: Floats, *, quantile: float, grid: tuple[float, ...], sign: float) -> Floats:
        """Return the error at the first place where the quantile of the law is no longer above (below) `seen`.

        The grid runs from too large (too small) errors inwards. Between two places of it the search goes on by regula
        falsi with the Illinois rule. A segment that is done stays as it is, so that the others do not matter.
        """

        def excess(place: Floats) -> tuple[Floats, Floats]:
            law = self.law(place)
            return sign * (_quantile(law, quantile) - seen), law.value

        outer = np.full(len(seen), grid[0])
        above, value = excess(outer)
        done = above <= _ULPS
        bracket = _Bracket(outer=outer, inner=outer, above=above, below=above)
        found = done
        for place in grid[1:]:
            trial = np.full(len(seen), place)
            distance, _ = excess(trial)
            bracket = bracket.stepped(trial, distance, found=found)
            found = found | (distance <= 0.0)
            if found.all():
                break
        for _ in range(_STEPS):
            trial = bracket.secant()
            distance, there = excess(trial)
            value = np.where(done, value, there)
            done = done | (np.abs(distance) <= _CLOSE * seen)
            if done.all():
                break
            bracket = bracket.narrowed(trial, distance)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bracket:
    """Two places on the path for each segment, and how far outside (inside) what was seen the quantile there lies."""

    outer: Floats
    inner: Floats
    above: Floats
    below: Floats

    def stepped(self, trial: Floats, distance: Floats, *, found: Bools) -> _Bracket:
        """Return the bracket after a step of the grid; where an end was found before, as it is."""
        outside = ~found & (distance > 0.0)
        return _Bracket(
            outer=np.where(outside, trial, self.outer),
            inner=np.where(found, self.inner, trial),
            above=np.where(outside, distance, self.above),
            below=np.where(found, self.below, distance),
        )

    def secant(self) -> Floats:
        """Return where a straight line between both would cross."""
        fall = self.above - self.below
        part = np.where(fall > 0.0, self.above / np.where(fall > 0.0, fall, 1.0), 0.0)
        return self.outer + (self.inner - self.outer) * part

    def narrowed(self, trial: Floats, distance: Floats) -> _Bracket:
        """Return the bracket with one place moved to the trial, and half the distance of one that stays again."""
        outside = distance > 0.0
        return _Bracket(
            outer=np.where(outside, trial, self.outer),
            inner=np.where(outside, self.inner, trial),
            above=np.where(outside, distance, self.above / 2.0),
            below=np.where(outside, self.below / 2.0, distance),
        )


def _rates(bins: Bins, shift: Floats, least: float | None) -> Floats:
    """Return the rate of each bin at a shift."""
    centre = bins.centre
    low, high = _wilson_ends(bins.rate, bins.rows, np.minimum(np.abs(shift), _FURTHEST))
    near = np.where(shift > _FURTHEST, centre, np.clip(centre, low, high))
    up = high - centre >= centre - low if bins.up is None else bins.up
    rate = np.where(shift < 0.0, np.where(up, high, low), near)
    if least is None:
        return rate
    off = bins.rate - centre
    above = np.where(np.abs(off) > _ULPS, off > 0.0, centre < 0.5)
    low, high = _wilson_ends(centre, bins.rows, np.maximum(least - shift, 0.0))
    alike = np.where(above, high, low)
    return np.where(np.abs(alike - centre) > np.abs(rate - centre), alike, rate)


def _wilson_ends(rate: Floats, rows: Floats, z: Floats) -> Interval:
    """Return the ends of Wilson's interval, with a quantile for each bin."""
    pull = z * z / rows
    half = z * np.sqrt((rate * (1.0 - rate) + 0.25 * pull) / rows)
    low = (rate + 0.5 * pull - half) / (1.0 + pull)
    high = (rate + 0.5 * pull + half) / (1.0 + pull)
    return np.clip(low, 0.0, rate), np.clip(high, rate, 1.0)


def _quantile(law: Law, share: float) -> Floats:
    """Return the quantile of the Pearson type III law with the given cumulants."""
    spread = np.sqrt(law.variance)
    skew = np.nan_to_num(ratio(law.third, spread**3))
    bent = np.maximum(np.abs(skew), _LEAST_SKEW)
    shape = 4.0 / bent**2
    wanted = np.where(skew < 0.0, 1.0 - share, share)
    standard = (special.gammaincinv(shape, wanted) - shape) / np.sqrt(shape)
    out: Floats = law.mean + np.where(skew < 0.0, -spread, spread) * standard
    return out
