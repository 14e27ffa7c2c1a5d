"""The verb `diagnose`: what is the matter with scores, in a word and in numbers, and the map that fits it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from calframe._closing import warn_empty_categories
from calframe._diagnose_tables import DIAGNOSE_COLUMNS, REVERSED, diagnose_table
from calframe._errors import ArgumentError
from calframe._kernels._corrections import Correction
from calframe._measures import reserved_names
from calframe._options import check_choice, check_resamples, is_real, seed_of
from calframe._results import SCHEMA_VERSION, counted_once, html_table, json_ready, records, to_polars
from calframe._roles import Roles, WeightKind
from calframe._table import open_table, view_of
from calframe._testing._patterns import Rules, within
from calframe._typing import Invalid, Json, Link, Names, Score, Seed
from calframe._verdicts import MIN_EVENTS, MIN_ROWS, check_tolerance
from calframe._words._lines import wrapped
from calframe._words._listing import SHOWN, key_columns, key_name, listing, scored_by, size
from calframe._words._numbers import points
from calframe._words._numbers import tolerance as written

DiagnosedNotion: TypeAlias = Literal["confidence"]

_LONGEST = 78  # columns of a line of text, less its indent
_NAME_WIDTH = 27


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Diagnosis:
    """What is the matter with scores, segment by segment.

    Attributes
    ----------
    table : frame
        One row per segment and model, in the library of the input (polars where that was lazy or remote). Columns:

        the keys, ``model``?, ``n``, ``n_missing``, ``n_invalid``?, ``weight_sum``?
            As of `calframe.metrics`.
        ``pattern``, ``map``
            The pattern, one of those below, and the method of `calframe.fit` that fits it; null where no map does.
        ``rate``, ``mean_score``, ``gap``, ``gap_low``, ``gap_high``
            The observed rate, the mean score, and mean score less rate with its interval, in [-1, 1]; 0 is perfect.
        ``slope``, ``intercept``, ``citl`` (each with ``_low``, ``_high``)
            The calibration line in log-odds, and the intercept at slope 1. 1, 0 and 0 are perfect.
        ``over_from``, ``over_to``, ``over_n``, ``over_gap``, ``over_gap_low``, ``over_gap_high``
            The fifth of the rows, by score, that most surely says too much: its scores, rows, and gap. The intervals
            of the five fifths hold together.
        ``under_from``, ..., ``under_gap_high``
            The same for the fifth that most surely says too little.
        ``beyond_line``
            The largest gap, either way, that the calibration line leaves in a fifth of the rows; 0 is perfect.
        ``n_scores``, ``band_low``, ``band_high``, ``band_share``, ``band_rate``
            The number of distinct scores; the scores that no two odds of differ by more than a factor of 1.5 and that
            most rows have, their share of the rows, and the rate among them.
        ``extreme_n``, ``extreme_share``, ``extreme_expected``, ``extreme_error`` (with ``_low``, ``_high``)
            How many rows have extreme scores, their share, how often these say that they are wrong, and how often
            they are.
        ``pvalue_line``, ``pvalue_curve``, ``pvalue_extreme`` (each with ``_adjusted``)
            Of the tests of intercept 0 and slope 1, of curvature beyond the line, and of errors of extreme scores.
        ``sentence``, ``note``
            The pattern in a sentence; what is missing or undefined.
    by : tuple of str
        The segment columns.
    scores : tuple of str
        The score columns.
    label : str
        The label column.
    n, n_missing, n_invalid : int
        Rows used, rows with something missing, and rows left out by ``invalid="drop"``; of several models those of the
        one that uses most rows.
    notion : {"confidence"} or None
        Of which scores this is.
    alpha, tolerance, extreme : float
        What decides.
    correction : str
        How p-values are adjusted.
    n_resamples : int
        How often labels are drawn where they are, at least.
    roles : dict
        How the columns were read: positive value, link, invalid rows, weights, clusters.
    notes : tuple of str
        What is to be said of all segments together.
    """

    table: Any
    by: tuple[str, ...]
    scores: tuple[str, ...]
    label: str
    n: int
    n_missing: int
    n_invalid: int
    notion: DiagnosedNotion | None
    alpha: float
    tolerance: float
    extreme: float
    correction: Correction
    n_resamples: int
    roles: Json
    notes: tuple[str, ...]

    def to_dict(self) -> Json:
        """Return the result as JSON-ready data with a schema version."""
        convention = {
            "notion": self.notion,
            "alpha": self.alpha,
            "tolerance": self.tolerance,
            "extreme": self.extreme,
            "correction": self.correction,
            "n_resamples": self.n_resamples,
            **json_ready(self.roles),
        }
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "diagnosis",
            "label": self.label,
            "scores": list(self.scores),
            "by": list(self.by),
            "n": self.n,
            "n_missing": self.n_missing,
            "n_invalid": self.n_invalid,
            "notes": list(self.notes),
            "convention": convention,
            "table": records(self.table),
        }

    def __repr__(self) -> str:
        """Say what was found: in a sentence, or segment by segment, the worst first."""
        table = to_polars(self.table)
        keys = key_columns(self.by, table.columns)
        head = f"<Diagnosis: {size(self.n, self.scores, keys)}; .table, .to_dict()>"
        rows = table.to_dicts()
        if len(rows) != 1:
            return "\n".join([head, *_listed(rows, keys, self.tolerance), *self._noted()])
        (row,) = rows
        fit = "" if row["map"] is None else f" Map that fits: {row['map']}."
        lines = wrapped(f"{row['pattern']}: {row['sentence']}{fit}", _LONGEST)
        return "\n".join([head, *(f"  {line}" for line in lines), *self._noted()])

    def _noted(self) -> list[str]:
        return [f"  {line}" for note in self.notes for line in wrapped(f"note: {note}", _LONGEST)]

    def _repr_html_(self) -> str:
        table = to_polars(self.table)
        keys = key_columns(self.by, table.columns)
        shown = table[[*keys, "n", "n_missing", "pattern", "map", "sentence", "note"]]
        return html_table(shown, caption=f"What is the matter with {scored_by(self.scores, keys)}")


def _listed(rows: list[Json], keys: Sequence[str], tolerance: float) -> list[str]:
    """Say how many segments show each pattern, and of the worst ones what would repair them."""
    seen = Counter(_shown(rows, tolerance)).most_common()
    counted = ", ".join(f"{count:,} {pattern}" for pattern, count in seen)
    counts = wrapped(f"{counted}; what each shows is a sentence in .table", _LONGEST)
    worst = sorted(rows, key=_harm)[:SHOWN]
    names = ["", *(key_name(row[key] for key in keys) for row in worst)]
    texts = [f"{'':16} {'gap pp':>6} {'rows':>11}  map"]
    for row in worst:
        gap = points(row["gap"], unit=False)
        fit = "none: reversed" if _is_turned(row) else row["map"] or "–"
        texts.append(f"{row['pattern']:<16} {gap:>6} {row['n']:>11,}  {fit}")
    listed = listing(names, texts, total=len(rows) + 1, place=".table", width=_NAME_WIDTH)
    return [*(f"  {line}" for line in counts), *listed]


def _shown(rows: list[Json], tolerance: float) -> list[str]:
    """Return patterns, and where none is found whether the gap is shown to be small, as the sentence says, too."""
    ends = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in ("gap_low", "gap_high")}
    none = {
        True: f"none found (within {written(tolerance)})",
        False: f"none found ({written(tolerance)} not ruled out)",
    }
    inside = within(ends, tolerance).tolist()
    return [
        none[small] if row["pattern"] == "none found" else f"{row['pattern']}{' (reversed)' if _is_turned(row) else ''}"
        for row, small in zip(rows, inside, strict=True)
    ]


def _is_turned(row: Json) -> bool:
    """Return whether the sentence says that higher scores come true less often."""
    return REVERSED in (row["note"] or "") and row["sentence"].startswith("Higher scores ")


def _harm(row: Json) -> tuple[int, float]:
    """Order segments: by whether something is the matter, and by the rows that their worst fifth misstates."""
    off = max(row["over_gap"] or 0.0, -(row["under_gap"] or 0.0))
    calm = {"not decided": 1, "within tolerance": 2, "none found": 3}
    return calm.get(row["pattern"], 0), -off * row["n"]


def diagnose(
    data: Any,
    *,
    label: str,
    score: Score,
    by: Names | None = None,
    weight: str | None = None,
    cluster: str | None = None,
    notion: DiagnosedNotion | None = None,
    classes: Sequence[Any] | None = None,
    alpha: float = 0.05,
    tolerance: float = 0.03,
    extreme: float = 0.01,
    correction: Correction = "holm",
    n_resamples: int = 1000,
    rng: Seed = 0,
    positive: Any = None,
    link: Link = "probability",
    invalid: Invalid = "raise",
    weight_kind: WeightKind = "importance",
    engine: Any = None,
) -> Diagnosis:
    """Name what is the matter with scores, segment by segment, with the numbers behind it and the map that fits it.

    Answers "in what way is this model wrong, and what would repair it?". The query runs at once: of a table in memory
    it reads label, score and weight of the rows, of a remote engine their sums by distinct score (with clusters rows).

    Parameters
    ----------
    data : table
        See `metrics`.
    label, score, by, weight, classes, positive, link, invalid, weight_kind, engine
        See `metrics`.
    cluster : str, optional
        The column that tells apart what is independent, such as persons: rows of one value share their luck, a row
        without a value is a cluster of its own. Intervals, tests and patterns then go by clusters, each segment's.
    notion : {"confidence"}, optional
        Of what: the largest score of a row against whether its class happened, which is needed for three classes or
        more; by default the score itself.
    alpha : float, default 0.05
        The chance, with "holm" or "bonferroni" at most, that a test finds something in any segment of right scores
        (a collapse is described, not tested); intervals are at ``1 - alpha``, each by itself. In (0, 0.5).
    tolerance : float, default 0.03
        The error of a score, as a difference of probabilities in (0, 1), that does not matter. Where outcomes are rare,
        choose a smaller one: scores of 0.01 are never 0.03 too low by saying 0.
    extreme : float, default 0.01
        Scores up to it, and from ``1 - extreme`` on, are extreme. In [0, 0.25].
    correction : {"holm", "bonferroni", "benjamini_hochberg", "benjamini_yekutieli", "none"}, default "holm"
        How p-values are adjusted, over all tests of all segments and models.
    n_resamples : int, default 1000
        How often labels are drawn where the law of a test is doubtful; for small p-values as much more as the number of
        tests asks for (as in `calframe.test`), of curvature up to 10,000 draws. If that is too few to find
        anything, the pattern is "not decided" and a note says so.
    rng : int, numpy.random.Generator or None, default 0
        Their seed; None for fresh entropy.

    Returns
    -------
    Diagnosis
        With ``.table`` and ``.to_dict()``.

    Raises
    ------
    CalframeError
        As `metrics`, at once for every kind of table, and if arguments are not what they must be.

    See Also
    --------
    calframe.curve : The reliability curve that shows the pattern.
    calframe.validate : What maps improve on rows they were not fitted on, which settles the choice.

    Notes
    -----
    The pattern is the first of these that holds. "Found" means an adjusted p-value of at most `alpha`.

    1. ``"not decided"``: fewer than 100 (effective) rows, or 10 of an outcome, neither seen nor expected.
    2. ``"extreme"``: at least a quarter of the scores are extreme, and these are found to be wrong too often, by
       `tolerance` or more. Map: isotonic.
    3. ``"collapse"``: at least 90 % of the scores have odds within a factor of 1.5, although the outcomes among them
       vary. It is said of right scores, too: then they hardly tell rows apart, and there is no map. Where the slope is
       above 1, or the gap not 0, by their intervals: Platt, beta where curvature is found, too.
    4. ``"none found"``: neither the line, nor curvature, nor errors of extreme scores are found. The sentence says how
       large the gap may still be, and a printed result counts segments whose gap is shown to be within `tolerance`
       apart from those where such a gap is not ruled out.
    5. ``"within tolerance"``: something is found, but the interval of the gap lies inside `tolerance`, and so does the
       gap of every fifth of the rows.
    6. ``"crossing"``: curvature is found, the line leaves a gap of at least `tolerance` in a fifth of the rows, and
       one fifth says too much, another too little, by `tolerance` or more and with intervals that leave out 0. Map:
       isotonic.
    7. ``"over-confident"``, ``"under-confident"``: the line is found, the interval of its slope is below, or above, 1,
       and it crosses the diagonal among the middle 90 % of the scores (or the interval of the gap holds 0). Map:
       temperature, Platt where the interval of the intercept leaves out 0, beta where curvature is found, too.
    8. ``"says too much"``, ``"says too little"``: the line (or what 2 or 6 look for) is found, and the interval of the
       gap is above, or below, 0. Map: Platt, beta where curvature is found, too.
    9. ``"not decided"``: something is found, but not what.

    The sentence says what the pattern is about, and the gap besides where its interval leaves out 0; it begins with the
    gap where that is clear, its interval wholly beyond `tolerance`. Where nothing is found although that interval
    leaves out 0, it says so with the adjusted p-value of the line. The slope is added to ``"says too much"`` and
    ``"says too little"`` where its interval leaves out 1.

    With ``notion="confidence"`` the map of 3, 7 and 8 is temperature, and of several classes that of 2 and 6 is taken
    for each class against the rest. Where the interval of the slope is below 0, there is no map: higher scores come
    true less often, and where the line is found the sentence begins with that and says "reversed"; the pattern keeps
    its name, such as ``"over-confident"``, whose slope is then below 0. Isotonic maps of fewer than 1,000 rows are
    rough; `calframe.validate` tells whether they help. Where the slope is right, `calframe.shift_prior` moves scores by
    their odds alone.

    Line and curvature have score tests; the law of the first holds for importance weights, too. Where a law for many
    rows is doubtful, and the p-value below 0.1, labels are drawn from the scores, or from the fitted line. These draws,
    and so such p-values, depend on which segments are diagnosed together. With clusters the tests are those of
    `calframe.test`, whose clusters share their luck; variances of the line, and the rows behind every interval and the
    limits of 1 and 3, go by a design effect, and by Student's t for few clusters. So 20 copies of a row are one.

    References
    ----------
    Cox, D. R. (1958). Two further applications of a model for binary regression. Biometrika 45, 562-565.
    https://doi.org/10.1093/biomet/45.3-4.562

    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks. ICML.
    https://doi.org/10.48550/arXiv.1706.04599

    Niculescu-Mizil, A. and Caruana, R. (2005). Predicting good probabilities with supervised learning. ICML.
    https://doi.org/10.1145/1102351.1102430

    Silva Filho, T. et al. (2023). Classifier calibration: a survey on how to assess and improve predicted class
    probabilities. Machine Learning 112, 3211-3260. https://doi.org/10.1007/s10994-023-06336-7

    Examples
    --------
    Of 100 scores of 0.2 forty come true, and of 100 scores of 0.8 sixty:

    >>> import polars as pl
    >>> import calframe
    >>> answers = pl.DataFrame({"p": [0.2] * 100 + [0.8] * 100, "y": [1] * 40 + [0] * 60 + [1] * 60 + [0] * 40})
    >>> calframe.diagnose(answers, label="y", score="p")
    <Diagnosis: 200 rows; .table, .to_dict()>
      over-confident: Scores lie too far apart in 200 rows: slope 0.29 (0.09 to
      0.50) in log-odds, where 1 is right. Map that fits: temperature.
    """
    _check(notion, alpha, tolerance, extreme, correction, n_resamples)
    roles = Roles.from_arguments(
        label=label,
        score=score,
        by=by,
        weight=weight,
        positive=positive,
        link=link,
        invalid=invalid,
        weight_kind=weight_kind,
        classes=classes,
        cluster=cluster,
    )
    view = view_of(roles, notion)
    if view == "vectors":
        msg = (
            "diagnose takes one score a row; for several classes pass notion='confidence' (the largest score against "
            "whether its class happened), or the column of one class and a label that says whether it happened."
        )
        raise ArgumentError(msg)
    rules = Rules(
        alpha=float(alpha),
        tolerance=float(tolerance),
        extreme=float(extreme),
        correction=correction,
        min_rows=MIN_ROWS,
        min_events=MIN_EVENTS,
    )
    table = open_table(data, roles, reserved=reserved_names() | DIAGNOSE_COLUMNS, view=view)
    groups, found, notes = diagnose_table(table, rules, int(n_resamples), seed_of(rng), engine=engine)
    warn_empty_categories(table, groups)
    models = groups.keys.get_column("_cf_model").to_list() if roles.several else None
    n, n_missing, n_invalid = counted_once(models, groups.n, groups.n_missing, groups.n_invalid)
    return Diagnosis(
        table=found,
        by=roles.by,
        scores=roles.scores,
        label=label,
        n=n,
        n_missing=n_missing,
        n_invalid=n_invalid,
        notion=notion,
        alpha=rules.alpha,
        tolerance=rules.tolerance,
        extreme=rules.extreme,
        correction=correction,
        n_resamples=int(n_resamples),
        roles=roles.convention(),
        notes=notes,
    )


def _check(notion: Any, alpha: Any, tolerance: Any, extreme: Any, correction: Any, n_resamples: Any) -> None:
    if notion is not None:
        check_choice("notion", notion, get_args(DiagnosedNotion))
    check_tolerance(tolerance, alpha)
    if not (is_real(extreme) and 0.0 <= extreme <= 0.25):
        msg = (
            f"extreme must lie in [0, 0.25], for example 0.01 for scores up to 0.01 and from 0.99 on; got {extreme!r}."
        )
        raise ArgumentError(msg)
    check_choice("correction", correction, get_args(Correction))
    check_resamples(n_resamples)
