"""How often an audit errs: intervals of the largest difference, and alarms on calibrated tables. Run it alone.

    python tests/simulations/audit.py [--replicates 1000] [--tables 400] [--seed 1] [--parts balanced] [--output FILE]

Lines of kind "disparity" give the share of intervals (nominal 95 %) that hold the true largest difference of gaps, or
the true smallest ratio, of segments drawn from known rates. Lines of kind "search" give the share of calibrated tables
with an alarm at 5 % anywhere: "adjusted" after the search over all segments, "smallest" by the smallest of the
unadjusted p-values, which is what peers report. Lines of kind "power" give the same where the true chances of one
crossing are off by 0.7 in logit, up for low scores and down for high ones. Lines of kind "gap" give the share of
calibrated tables in which some gap, or some gap to the rest, is called off at 5 % by its adjusted p-value, or some
verdict is a lean or a clear gap; those of kind "clusters" the same where rows are not independent. Each share has its
Monte Carlo standard error. With ``--parts`` the lines of these parts replace those in the file, and the others stay as
they are.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, from anywhere

import numpy as np
import polars as pl

import calframe
from calframe._auditing._gaps import SegmentSums, compared, judged
from calframe._kernels._binned import starts_of
from calframe._testing._disparities import largest_gap_difference, smallest_ratio
from calframe._testing._search import SearchCells, SearchLaw, resampled_search, search_bound
from calframe._typing import Floats
from calframe._verdicts import Rules

RESULTS = Path(__file__).with_name("audit.csv")
LEVEL = 0.95
KINDS = ("equal", "one off", "spread")
_BINS = 384
_N_RESAMPLES = 199


RULES = Rules(tolerance=0.03, alpha=1.0 - LEVEL)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the result."""

    kind: str
    measure: str
    segments: int
    n: int
    world: str
    law: str
    share: float
    standard_error: float
    replicates: int


def true_rates(segments: int, rate: float, kind: str) -> Floats:
    """Return true rates of segments whose score is `rate`."""
    rates = np.full(segments, rate)
    if kind == "one off":
        rates[0] = min(2.0 * rate + 0.02, 0.9)
    if kind == "spread":
        rates = np.linspace(0.5 * rate, min(1.5 * rate, 0.95), segments)
    return rates


def disparity_coverage(segments: int, n: int, rate: float, kind: str, *, replicates: int, seed: int) -> Iterator[Line]:
    """Give the coverage of the true largest difference of gaps, and of the true smallest ratio."""
    rng = np.random.default_rng([seed, segments, n, int(rate * 1000), KINDS.index(kind)])
    score, rows, true = np.full(segments, rate), np.full(segments, float(n)), true_rates(segments, rate, kind)
    seen = rng.binomial(n, true, size=(replicates, segments)) / n
    truths = {"gap": float(true.max() - true.min()), "ratio": float(true.min() / true.max())}
    works = {"gap": largest_gap_difference, "ratio": smallest_ratio}
    for measure, work in works.items():
        held = 0
        for row in seen:
            found = work(row, score, rows, level=LEVEL)
            held += math.isnan(found.value) or found.low - 1e-9 <= truths[measure] <= found.high + 1e-9
        yield _line("disparity", measure, segments, n, f"{kind}, rate {rate:g}", "", held / replicates, replicates)


Scores = Callable[[np.random.Generator, int], Floats]

SCORES: dict[str, Scores] = {
    "balanced": lambda rng, n: rng.beta(2, 3, n),
    "2 % positive": lambda rng, n: np.clip(rng.beta(1, 49, n), 1e-4, 1.0 - 1e-9),
    "six tied scores": lambda rng, n: rng.choice([0.05, 0.1, 0.2, 0.4, 0.6, 0.9], n),
}


def alarms(
    shape: tuple[int, int],
    n: int,
    scores: str,
    law: SearchLaw,
    *,
    tables: int,
    seed: int,
    weighted: bool = False,
    off: float = 0.0,
) -> Iterator[Line]:
    """Give the share of tables with an alarm anywhere among two columns of segments and their crossing.

    `off` shifts the logit of the true chance in one crossing, up below the middle score and down above it.
    """
    first, second = shape
    crossings = np.arange(first * second)
    families = [crossings // second]
    if second > 1:
        families += [first + crossings % second, first + second + crossings]
    segments = int(families[-1].max()) + 1
    rng = np.random.default_rng([seed, first, second, n, list(SCORES).index(scores), int(weighted)])
    adjusted, smallest = 0, 0
    for _ in range(tables):
        cells = _cells(rng, len(crossings), n, SCORES[scores], weighted=weighted, off=off)
        judged = np.ones(segments, dtype=np.bool_)
        if law == "bound":
            found = search_bound(cells, families, judged)
        else:
            found = resampled_search(cells, families, judged, n_resamples=_N_RESAMPLES, rng=rng)
        adjusted += bool(found.pvalue_adjusted.min() <= 1.0 - LEVEL)
        smallest += bool(found.pvalue.min() <= 1.0 - LEVEL)
    world = scores + (", weighted" if weighted else "")
    kind = "power" if off else "search"
    yield _line(kind, "adjusted", segments, n, world, law, adjusted / tables, tables)
    yield _line(kind, "smallest", segments, n, world, law, smallest / tables, tables)


def gap_alarms(segments: int, n: int, rate: float, *, tables: int, seed: int) -> Iterator[Line]:
    """Give the share of calibrated tables with an adjusted p-value below 5 %, of the gap and of that to the rest.

    "verdict" is the share with a lean or a clear gap.
    """
    rng = np.random.default_rng([seed, segments, n, int(rate * 1000)])
    rows = np.full(segments, float(n))
    reached = {"gap": 0, "gap to rest": 0, "verdict": 0}
    for _ in range(tables):
        label = rng.binomial(n, rate, segments).astype(np.float64)
        sums = SegmentSums(n=rows, count=rows, weight=rows, squared=rows, label=label, score=rows * rate)
        found, other = judged(sums, RULES), compared(sums, sums.whole(rows > 0).without(sums), RULES)
        for measure, pvalue in (("gap", found.pvalue_adjusted), ("gap to rest", other.pvalue_adjusted)):
            reached[measure] += bool(np.nanmin(pvalue, initial=1.0) < RULES.alpha)
        reached["verdict"] += not set(found.verdict) <= {"within", "unsure", "few"}
    for measure, count in reached.items():
        yield _line("gap", measure, segments, n, f"rate {rate:g}", "", count / tables, tables)


def clustered_table(
    rng: np.random.Generator, *, segments: int, clusters: int, size: int, shared: float, rate: float
) -> pl.DataFrame:
    """Return right scores whose rows have the luck of their cluster with a chance; clusters reach over segments."""
    place = np.arange(segments * clusters * size)
    cluster = place // size % clusters
    score = np.clip(rng.beta(2.0, 2.0 * (1.0 - rate) / rate, len(place)), 1e-4, 1.0)
    luck = np.where(rng.random(len(place)) < shared, rng.random(clusters)[cluster], rng.random(len(place)))
    return pl.DataFrame(
        {"g": place // (size * clusters), "c": cluster, "p": score, "y": (luck < score).astype(np.int64)}
    )


def clustered_alarms(*, tables: int, seed: int) -> Iterator[Line]:
    """Give the share of right tables with a lean or a clear gap where clusters share their luck."""
    for rate, (clusters, size), shared in product((0.5, 0.1), ((20, 20), (50, 20), (200, 5)), (0.0, 0.3, 1.0)):
        rng, reached = np.random.default_rng([seed, clusters, int(rate * 10), int(shared * 10)]), [0, 0, 0]
        for _ in range(tables):
            data = clustered_table(rng, segments=8, clusters=clusters, size=size, shared=shared, rate=rate)
            found = calframe.audit(data, label="y", score="p", by="g", cluster="c", tolerance=0.001)
            reached[0] += not set(found.table["verdict"]) <= {"within", "unsure", "few"}
            reached[1] += bool((found.table["pvalue_to_rest_adjusted"].fill_null(1.0) < 0.05).any())
            reached[2] += found.overall["verdict"] not in {"within", "unsure", "few"}
        for measure, count in zip(("verdict", "gap to rest", "all rows"), reached, strict=True):
            world = f"rate {rate:g}, {clusters} clusters"
            yield _line("clusters", measure, 8, clusters * size, world, f"shared {shared:g}", count / tables, tables)


def _cells(
    rng: np.random.Generator, crossings: int, n: int, scores: Scores, *, weighted: bool, off: float
) -> SearchCells:
    score = scores(rng, crossings * n)
    crossing = np.repeat(np.arange(crossings), n)
    logit = np.log(score / (1.0 - score))
    shift = np.where(crossing == 0, np.where(logit < np.median(logit), off, -off), 0.0)
    label = (rng.random(len(score)) < 1.0 / (1.0 + np.exp(-logit - shift))).astype(np.float64)
    weight = rng.uniform(0.5, 2.0, len(score)) if weighted else np.ones(len(score))
    place = np.clip(np.floor((logit + 12.0) * 16.0), 0, _BINS - 1).astype(np.int64)
    key = crossing * _BINS + place
    order = np.argsort(key, kind="stable")
    starts = starts_of(np.unique(key, return_counts=True)[1])

    def added(values: Floats) -> Floats:
        return np.add.reduceat(values[order], starts)

    spread = score * (1.0 - score)
    used = key[order][starts]
    return SearchCells(
        crossing=used // _BINS,
        bin=used % _BINS,
        weight=added(weight),
        label=added(weight * label),
        score=added(weight * score),
        variance=added(weight * spread),
        squared_variance=added(weight**2 * spread),
    )


def _line(kind: str, measure: str, segments: int, n: int, world: str, law: str, share: float, replicates: int) -> Line:
    error = math.sqrt(max(share * (1.0 - share), 1e-12) / replicates)
    return Line(kind, measure, segments, n, world, law, round(share, 5), round(error, 5), replicates)


def disparities(segments: int, *, replicates: int, seed: int) -> Iterator[Line]:
    """Give the lines of one number of segments."""
    for n in (50, 200, 2000):
        for rate in (0.02, 0.1, 0.5):
            for kind in KINDS:
                yield from disparity_coverage(segments, n, rate, kind, replicates=replicates, seed=seed)


def searches(scores: str, *, tables: int, seed: int) -> Iterator[Line]:
    """Give the lines of one kind of scores."""
    half = tables // 2
    yield from alarms((6, 7), 150, scores, "resampling", tables=half, seed=seed)  # 55 segments
    yield from alarms((64, 1), 150, scores, "resampling", tables=half, seed=seed)
    for n in (50, 200, 2000):
        yield from alarms((64, 1), n, scores, "bound", tables=tables, seed=seed)
    yield from alarms((30, 30), 150, scores, "bound", tables=half, seed=seed)  # 960 segments
    yield from alarms((1000, 1), 100, scores, "bound", tables=half, seed=seed)


def gaps(*, tables: int, seed: int) -> Iterator[Line]:
    """Give the lines of gaps: few events are the hard cases, also too few to be judged mostly."""
    for segments, times in ((64, 5), (1000, 1)):
        for n, rate in ((100, 0.5), (2000, 0.5), (200, 0.1), (250, 0.02), (500, 0.02), (2000, 0.02), (1000, 0.98)):
            yield from gap_alarms(segments, n, rate, tables=times * tables, seed=seed)


def others(*, tables: int, seed: int) -> Iterator[Line]:
    """Give the lines of weighted tables, and those of power."""
    yield from alarms((64, 1), 200, "balanced", "bound", tables=tables, seed=seed, weighted=True)
    yield from alarms((64, 1), 150, "balanced", "resampling", tables=tables // 2, seed=seed, weighted=True)
    laws: tuple[SearchLaw, ...] = ("resampling", "bound")
    for law in laws:
        yield from alarms((6, 7), 500, "balanced", law, tables=tables // 4, seed=seed, off=0.7)


def main() -> None:
    """Run the parts asked for and write their lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parts", nargs="*")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    seed, draws = given.seed, {"tables": given.tables, "seed": given.seed}
    parts: dict[str, Callable[[], Iterator[Line]]] = {
        f"disparity {segments}": partial(disparities, segments, replicates=given.replicates, seed=seed)
        for segments in (2, 8, 40)
    }
    parts |= {scores: partial(searches, scores, **draws) for scores in SCORES}
    parts["gaps"] = partial(gaps, **draws)
    parts["clusters"] = partial(clustered_alarms, **draws)
    parts["others"] = partial(others, **draws)
    kept: dict[str, list[dict[str, str]]] = {name: [] for name in parts}
    if given.output.exists():
        with given.output.open(newline="") as file:
            for row in csv.DictReader(file):
                kept[row["part"]].append(row)
    for name in given.parts or parts:
        kept[name] = [
            {"part": name} | {key: str(value) for key, value in asdict(line).items()} for line in parts[name]()
        ]
    with given.output.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["part", *(field.name for field in fields(Line))], lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for rows in kept.values() for row in rows)


if __name__ == "__main__":
    main()
