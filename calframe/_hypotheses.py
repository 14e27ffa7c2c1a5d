"""Tests by name: what may be asked of which table, and how it is set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calframe._binning import BinChoice, Bins
from calframe._errors import ArgumentError
from calframe._kernels._equal_mass import automatic_count
from calframe._kernels._ranked import quantile_bins
from calframe._kernels._tally import Tally
from calframe._kernels._vectors import Vectors
from calframe._measures import METRICS
from calframe._nulls import Null, side_of
from calframe._options import check_choice
from calframe._registry import Metric, Options
from calframe._table import Table
from calframe._testing._draws import Drawing, Inequality, Side
from calframe._testing._found import Correction, draws_needed
from calframe._testing._group_rows import GroupRows
from calframe._testing._groups import Df, edges_around, quantile_groups
from calframe._testing._kernel import KernelLaw
from calframe._typing import TEST_METHODS, Floats, Ints, Json

OF_CLASSES = ("resampling", "hosmer_lemeshow", "kernel")
STREAMS: Mapping[str, int] = {
    "resampling": 0,
    "spiegelhalter": 1,
    "hosmer_lemeshow": 2,
    "ecce": 3,
    "ks": 4,
    "cox": 5,
    "gap": 6,
    "corp": 7,
    "kernel": 8,
}
"""The number that makes the draws of each method its own; a new method takes a new one, for results depend on it."""
ALWAYS_DRAWN = ("resampling", "corp")  # every draw of which is told to `progress`
COUNTS_ONLY = {
    "hosmer_lemeshow": "its law is that of counts of rows",
    "cox": "likelihood ratios are those of counts of rows",
}
_OPTIONS: Mapping[str, tuple[str, Any]] = {  # which method reads them, and what they are if nothing is said
    "statistic": ("resampling", "ece"),
    "alternative": ("resampling", None),
    "kernel_law": ("kernel", "resampled"),
    "df": ("hosmer_lemeshow", "external"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be tested, and how.

    Attributes
    ----------
    methods : tuple of str
        The tests, in order.
    metric : Metric
        The measure of the test by resampling.
    options : Options
        What the user has set about measures.
    choice : BinChoice
        The bins of that measure.
    groups : BinChoice
        The groups of Hosmer and Lemeshow.
    df : {"external", "internal"}
        Their degrees of freedom.
    kernel_law : str
        The law of the kernel test.
    side : {"greater", "less", "two-sided"} or None
        Which values of the measure are evidence; None for what it is by itself.
    n_resamples : int
        How often labels are drawn, at least.
    seed : int
        The seed of the draws.
    inequality : {">=", ">"}
        How draws are counted.
    correction : str
        How p-values are adjusted.
    alpha : float
        The level.
    progress : callable or None
        Told which share of the drawing is done.
    narrow : bool
        Whether scores are float32, so that edges are rounded as they are.
    """

    methods: tuple[str, ...]
    metric: Metric
    options: Options
    choice: BinChoice
    groups: BinChoice
    df: Df
    kernel_law: KernelLaw
    side: Side | None
    n_resamples: int
    seed: int
    inequality: Inequality
    correction: Correction
    alpha: float
    progress: Callable[[float], None] | None
    narrow: bool = False

    def of_width(self, *, narrow: bool) -> Plan:
        """Return the same for scores of float32, or of float64."""
        return replace(self, narrow=narrow)

    def convention(self) -> Json:
        """Return the settings as results state them."""
        return {
            "statistic": self.metric.name,
            "alternative": self.side_of("resampling"),
            **self.choice.convention(),
            "groups": self.groups.convention(),
            **{name: getattr(self, name) for name in ("df", "kernel_law", "n_resamples", "inequality")},
            "rng": self.seed,
            **{name: getattr(self, name) for name in ("correction", "alpha")},
            **{name: getattr(self.options, name) for name in ("smoother", "floor", "clip")},
        }

    @property
    def edges(self) -> Bins | None:
        """The edges that some test reads, outside which no score may lie."""
        if "resampling" in self.methods and self.metric.reads in ("bins", "vectors"):
            return self.choice.fixed
        return self.groups.fixed if "hosmer_lemeshow" in self.methods else None

    @property
    def keep(self) -> bool:
        """Whether draws are kept, for a correction over segments."""
        return self.correction == "max"

    def drawing(self, method: str, *, segments: int) -> Drawing:
        """Return how a method draws: what it draws does not depend on the other methods asked for."""
        needed = draws_needed(segments, self.correction, self.alpha) if self.inequality == ">=" else 0
        drawing = Drawing(
            n_resamples=self.n_resamples,
            rng=generator(self.seed, method),
            inequality=self.inequality,
            further=0 if self.keep else needed,
        )
        telling = [one for one in self.methods if one in ALWAYS_DRAWN]
        return replace(drawing, done=self.progress).part(1.0 / len(telling)) if method in telling else drawing

    def side_of(self, method: str) -> Side:
        """Return which values of the measure asked for, or of CORP's, are evidence."""
        return "greater" if method == "corp" else self.side or side_of(self.metric)

    def null(self, method: str, drawing: Drawing) -> Null:
        """Return how a measure is held against right scores: the one asked for, or CORP's."""
        metric = METRICS["mcb"] if method == "corp" else self.metric
        return Null(metric=metric, options=self.options, side=self.side_of(method), drawing=drawing, keep=self.keep)

    def bins_of(self, tally: Tally) -> Ints:
        """Return the bin of each cell of a tally."""
        fixed = self.choice.fixed
        if fixed is not None:
            return fixed.find(tally.score, narrow=self.narrow)
        total = tally.total(tally.weight)
        count = self.choice.quantiles
        asked = automatic_count(total) if count is None else np.full(len(tally), count)
        return quantile_bins(tally.weight, tally.starts, asked)

    @property
    def vector_groups(self) -> tuple[int, Callable[[Floats], Ints] | None]:
        """How many groups of whole vectors there are, and which is that of a score; None for those of quantiles."""
        fixed = self.groups.fixed
        return (self._quantiles, None) if fixed is None else (fixed.count, self.groups.finder(narrow=False))

    def groups_of(self, tally: Tally) -> Ints:
        """Return the group of each cell of a tally."""
        fixed = self.groups.fixed
        if fixed is not None:
            return fixed.find(tally.score, narrow=self.narrow)
        return quantile_groups(tally, self._quantiles)

    def group_rows(self, tally: Tally) -> GroupRows:
        """Return the groups of a tally, line by line."""
        fixed = self.groups.fixed

        def edges(cells: Ints) -> tuple[Floats, Floats]:
            if fixed is None:
                return edges_around(tally, self._quantiles, cells)
            place = fixed.find(tally.score[cells], narrow=self.narrow)
            return fixed.lower()[place], fixed.upper()[place]

        return GroupRows.of_tally(tally, self.groups_of(tally), edges)

    def vector_group_rows(self, vectors: Vectors) -> GroupRows:
        """Return the groups of whole vectors, line by line."""
        fixed, (count, bin_of) = self.groups.fixed, self.vector_groups
        edges = None if fixed is None else np.asarray(fixed.edges)
        return GroupRows.of_vectors(vectors, count=count, bin_of=bin_of, edges=edges)

    @property
    def _quantiles(self) -> int:
        return self.groups.quantiles or 10


def generator(seed: int, method: str) -> np.random.Generator:
    """Return the source of the draws of a method, which no other method draws from."""
    return np.random.default_rng([seed, STREAMS[method]])


def methods_asked(method: Any) -> tuple[str, ...]:
    """Return the tests that are named, or raise."""
    asked = (method,) if isinstance(method, str) else method
    if not isinstance(asked, Sequence):
        msg = f"method must be a name or a list of names, such as 'resampling'; got {method!r}."
        raise ArgumentError(msg)
    if not asked:
        msg = f"method= is empty; name at least one of {', '.join(map(repr, TEST_METHODS))}."
        raise ArgumentError(msg)
    for one in asked:
        check_choice("method", one, TEST_METHODS)
    return tuple(dict.fromkeys(asked))


def check_idle(methods: Sequence[str], **given: Any) -> None:
    """Raise if an option is set that none of the methods reads."""
    for name, value in given.items():
        method, default = _OPTIONS[name]
        if value != default and method not in methods:
            msg = f"{name}={value!r} is read by method={method!r} alone; got method={', '.join(map(repr, methods))}."
            raise ArgumentError(msg)


def check_max(correction: Correction, methods: tuple[str, ...]) -> None:
    """Raise if a correction by the largest statistic is asked of tests without draws."""
    drawn = [one for one in methods if one not in ("resampling", "corp")]
    if correction == "max" and drawn:
        msg = f"correction='max' draws the largest statistic, which method={drawn[0]!r} has not; take 'holm'."
        raise ArgumentError(msg)


def groups_asked(bins: Any, strategy: Any, methods: tuple[str, ...]) -> BinChoice:
    """Return the groups of Hosmer and Lemeshow; edges and equal width where they are asked for."""
    if "hosmer_lemeshow" not in methods or bins is None:
        return BinChoice.from_arguments(10, strategy=strategy or "quantile", closed="right")
    edges = not isinstance(bins, int | np.integer | str)
    return BinChoice.from_arguments(bins, strategy=strategy or ("uniform" if edges else "quantile"), closed="right")


def check_plan(table: Table, plan: Plan) -> None:
    """Raise unless the methods are for such a table, and take its weights and clusters."""
    if table.view == "vectors":
        _check_classes(plan)
    if table.weighted:
        _check_weights(table, plan)
    if table.cluster is not None:
        _check_clusters(plan)


def _check_classes(plan: Plan) -> None:
    wrong = [method for method in plan.methods if method not in OF_CLASSES]
    if wrong:
        listed = ", ".join(map(repr, OF_CLASSES))
        msg = f"method={wrong[0]!r} is for one score a row; of several classes take {listed}."
        raise ArgumentError(msg)


def _check_weights(table: Table, plan: Plan) -> None:
    if "kernel" in plan.methods:
        msg = "method='kernel' takes no weights: it takes pairs of rows. Repeat the rows, or take another method."
        raise ArgumentError(msg)
    counted = [method for method in plan.methods if method in COUNTS_ONLY]
    if counted and table.roles.weight_kind == "importance":
        msg = (
            f"method={counted[0]!r} takes no importance weights: {COUNTS_ONLY[counted[0]]}. Take another method, or "
            "pass weight_kind='frequency' if the weights are numbers of equal rows."
        )
        raise ArgumentError(msg)


def _check_clusters(plan: Plan) -> None:
    if "kernel" in plan.methods and plan.kernel_law != "resampled":
        msg = (
            f"kernel_law={plan.kernel_law!r} is for independent rows; with cluster= labels are drawn, so leave "
            "kernel_law= out."
        )
        raise ArgumentError(msg)
    if plan.keep:
        msg = "correction='max' draws segments as independent, which clusters need not be; take 'holm'."
        raise ArgumentError(msg)
