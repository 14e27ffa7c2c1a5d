"""A metric is data: its name, range and direction, what it reads, and the arithmetic that finishes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

import narwhals.stable.v2 as nw

from calframe._kernels._binned import segment_sum
from calframe._kernels._tally import Tally
from calframe._kernels._vectors import Vectors
from calframe._typing import Direction, Floats, Ints, RateInterval, Smoother

T = TypeVar("T")
Reads: TypeAlias = Literal["sums", "bins", "tally", "ranks", "vectors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user may set about the metrics themselves.

    Attributes
    ----------
    smoother : {"loess", "loess_direct", "lowess"}
        How ici, e50, e90 and emax smooth.
    floor : float
        How far from 0 and 1 scores stay where their logit is taken.
    clip : float or None
        How far from 0 and 1 they stay in a log loss.
    rate_interval : {"wilson", "clopper_pearson", "jeffreys"}
        The interval of the rate.
    n_resamples, seed : int
        How often an interval resamples, and with which seed.
    """

    smoother: Smoother = "loess"
    floor: float = 1e-12
    clip: float | None = None
    rate_interval: RateInterval = "wilson"
    n_resamples: int = 1000
    seed: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """What the metrics of some segments are computed from.

    Attributes
    ----------
    options : Options
        What the user has set.
    """

    options: Options = field(default_factory=Options)
    _known: dict[Callable[..., Any], Any] = field(default_factory=dict, init=False, repr=False)

    def shared(self, work: Callable[[Any], T]) -> T:
        """Return ``work(self)``, done once however many metrics ask for it."""
        if work not in self._known:
            self._known[work] = work(self)
        found: T = self._known[work]
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells(Sample):
    """Sums of row terms in each cell (segment x bin), in segment order.

    Attributes
    ----------
    starts : ndarray of int64
        The first cell of each segment.
    sums : mapping of str to ndarray
        The sums of each term, one value a cell.
    """

    starts: Ints
    sums: Mapping[str, Floats]

    def total(self, term: str) -> Floats:
        """Return the sum of a term over each segment."""
        return segment_sum(self.sums[term], self.starts)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tallied(Sample):
    """The distinct scores of some segments.

    Attributes
    ----------
    tally : Tally
        At distinct scores; for a metric that reads ranks, at distinct values of the raw column.
    is_logit : bool
        Whether those are logits rather than probabilities.
    """

    tally: Tally
    is_logit: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Scored(Sample):
    """The score vectors of some segments.

    Attributes
    ----------
    vectors : Vectors
        One row a prediction, one column a class.
    bin_of : callable
        Scores to their bins, counted from 0.
    n_bins : int
        The number of bins; 0 where each table of scores makes bins of equal weight for itself, `quantiles` of them.
    quantiles : int or None
        The number of bins of equal weight; None for the automatic number.
    posterior : ndarray or None
        The true class probabilities, where they are known.
    surprise : ndarray or None
        The log loss of each row, where it was taken from logits.
    """

    vectors: Vectors
    bin_of: Callable[[Floats], Ints]
    n_bins: int
    quantiles: int | None = None
    posterior: Floats | None = None
    surprise: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The private columns of a row, as expressions that term builders combine.

    Attributes
    ----------
    used : narwhals.Expr
        1 for a row that is used, else 0.
    score, label : narwhals.Expr
        Probability and 0/1 label; both 0 for a row that is not used.
    chance : narwhals.Expr
        Probability given to what happened.
    possible, surprise : narwhals.Expr
        Whether the log loss of the row is finite, and the log loss where it is (else 0).
    weight : narwhals.Expr or None
        Row weight; None where every row counts once.
    frequency : bool
        Whether weight 2 is the row twice in variances too.
    posterior : narwhals.Expr or None
        The true probability of the positive class, where it is known.
    """

    used: nw.Expr
    score: nw.Expr
    label: nw.Expr
    chance: nw.Expr
    possible: nw.Expr
    surprise: nw.Expr
    weight: nw.Expr | None
    frequency: bool
    posterior: nw.Expr | None = None

    def times(self, value: nw.Expr) -> nw.Expr:
        """Return a value times the row's weight."""
        return value if self.weight is None else self.weight * value

    def squared(self, value: nw.Expr) -> nw.Expr:
        """Return a value times the square of the weight, as variances need it."""
        if self.weight is None:
            return value
        return self.weight * value if self.frequency else self.weight * self.weight * value


Term: TypeAlias = Callable[[Row], nw.Expr]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric.

    Attributes
    ----------
    name : str
        Its name, and that of its column.
    summary : str
        What it measures, in one line.
    low, high : float
        The range of its values.
    direction : {"lower", "higher", "zero", "one", "none"}
        Which values are better.
    value : callable
        A `Sample` to one value a segment; NaN where undefined.
    reads : {"sums", "bins", "tally", "ranks", "vectors"}
        What that sample holds: sums over a segment or over its bins (`Cells`), distinct scores or distinct values of
        the raw column (`Tallied`), or whole score vectors (`Scored`).
    terms : tuple of str
        The row terms whose sums it reads, besides ``n`` and ``w``.
    undefined : str
        Why it can be undefined where there are rows.
    interval : callable, optional
        A sample and a confidence level to the ends of an interval; None where no honest one is known.
    interval_terms : tuple of str
        What the interval reads besides.
    interval_needs : str
        What it takes where a segment has a value and no interval.
    posterior : bool
        Whether it needs the true probabilities.
    formula, source : str
        Its definition in one line, and where it comes from, with a DOI where there is one.
    convention : str
        The choices that its definition leaves open and that other tools make differently.
    example : str
        Its value on the worked table that METRICS.md shows: exactly where there is a closed form, and rounded.
    own_terms : mapping of str to callable
        Row terms that only this metric has.
    logarithms : bool
        Whether it is a fit to logits, which scores of 0 and 1 pull most.
    counts_rows : bool
        Whether a unit of weight is a row in it, so that the scale of importance weights matters.
    """

    name: str
    summary: str
    low: float
    high: float
    direction: Direction
    value: Callable[[Any], Floats]
    reads: Reads = "sums"
    terms: tuple[str, ...] = ()
    undefined: str = ""
    interval: Callable[[Any, float], tuple[Floats, Floats]] | None = None
    interval_terms: tuple[str, ...] = ()
    interval_needs: str = "more rows"
    posterior: bool = False
    formula: str = ""
    source: str = ""
    convention: str = ""
    example: str = ""
    own_terms: Mapping[str, Term] = field(default_factory=dict)
    logarithms: bool = False
    counts_rows: bool = False
