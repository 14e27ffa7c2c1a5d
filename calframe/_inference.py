"""The verb `test`: could right scores have shown this, segment by segment."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from calframe._binning import BinChoice
from calframe._closing import warn_empty_categories
from calframe._errors import ArgumentError
from calframe._hypotheses import Plan, check_idle, check_max, groups_asked, methods_asked
from calframe._measures import chosen_metrics, known_metrics, metric_names, reserved_names
from calframe._nearest import nearest
from calframe._nulls import uses_label
from calframe._options import (
    check_alpha,
    check_choice,
    check_clip,
    check_floor,
    check_resamples,
    check_smoother,
    seed_of,
)
from calframe._registry import Metric, Options
from calframe._results import SCHEMA_VERSION, html_table, json_ready, records, to_polars
from calframe._roles import Roles, WeightKind
from calframe._table import open_table, view_of
from calframe._tested import found_by, judged
from calframe._tested_tables import GROUP_COLUMNS, groups_table_of, rejected_lines, table_of
from calframe._testing._draws import Inequality, Side
from calframe._testing._found import Correction
from calframe._testing._groups import Df
from calframe._testing._kernel import KernelLaw
from calframe._typing import Closed, Invalid, Json, Link, Names, Score, Smoother, Strategy
from calframe._words._lines import wrapped
from calframe._words._listing import in_clusters
from calframe._words._numbers import listed
from calframe._words._numbers import pvalue as shown

_COLUMNS = ("method", "hypothesis", "n", "n_groups", "statistic", "df", "pvalue", "pvalue_se", "law", "pvalue_adjusted")
_RESERVED = frozenset({*_COLUMNS, "n_missing", "n_invalid", "weight_sum", "reject", "note", "model"})
_WIDTH = 80
_NEAR = 0.5  # how alike the letters of two names must be for one to be meant by the other


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TestResult:
    """What tests of the hypothesis that scores are right say of each segment.

    Attributes
    ----------
    table : DataFrame
        One row per segment (and model), method and hypothesis: the segment columns, ``model`` if there are several,
        ``method``, ``hypothesis``, ``n``, ``n_missing``, ``n_groups`` (of the test of Hosmer and Lemeshow),
        ``statistic``, ``df``, ``pvalue``, ``pvalue_se`` (Monte Carlo standard error), ``law`` (where the p-value comes
        from), ``pvalue_adjusted`` (over all segments and models of the same method and hypothesis), ``reject``
        (``pvalue_adjusted <= alpha``; null where nothing may be decided) and ``note``.
    groups : DataFrame or None
        The groups of Hosmer and Lemeshow, where that was tested, one row per segment (and model) and group, of several
        classes one a class: the segment columns, ``model``, ``bin`` (the group, from 0; one without rows has no number
        and no row), ``class``, ``lower`` and ``upper`` (edges of the score, of several classes of ``1 - p`` of the
        first; ``upper`` belongs to the group, and the lowest edge to the first),
        ``n``, ``weight_sum`` (with weights), ``mean_score``, ``observed`` and ``expected`` (positives, or rows of the
        class: as many as their weights say). The statistic is the sum of ``(O - E)^2 / (E (1 - E / n))``, with
        ``weight_sum`` for n where there are weights; of several classes of ``(O - E)^2 / E``.
    by : tuple of str
        The segment columns.
    methods : tuple of str
        What was tested.
    notes : tuple of str
        What is to be said of the tests together.
    convention : dict
        How the table was read and tested.
    """

    __test__ = False  # no test of pytest's

    table: Any
    groups: Any
    by: tuple[str, ...]
    methods: tuple[str, ...]
    notes: tuple[str, ...]
    convention: Json

    def to_dict(self) -> Json:
        """Return the result as JSON-ready data with a schema version."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "test",
            "by": list(self.by),
            "methods": list(self.methods),
            "notes": list(self.notes),
            "convention": json_ready(self.convention),
            "table": records(self.table),
            "groups": None if self.groups is None else records(self.groups),
        }

    def __repr__(self) -> str:
        """Say how many of the tests reject, and which."""
        frame = to_polars(self.table)
        rejected, decided = int(frame["reject"].sum() or 0), len(frame) - frame["reject"].null_count()
        named = self.methods[0] if len(self.methods) == 1 else f"{len(self.methods)} methods"
        named += f" {self.convention['statistic']}" if named == "resampling" else ""
        many = f"{rejected:,} of {decided:,} rejected" if decided else "nothing decided"
        shows = ".table" if self.groups is None else ".table, .groups"
        said = f"<TestResult: {named}, {many} at {self.convention['alpha']:g}; {shows}>"
        lines = rejected_lines(frame.to_dicts(), self.by)
        notes = [*self.notes, *in_clusters(self.convention)]
        return "\n".join([said, *lines, *(line for note in notes for line in wrapped(note, _WIDTH))])

    def _repr_html_(self) -> str:
        table = to_polars(self.table)
        words = [pl.Series(name, map(shown, table[name]), dtype=pl.String) for name in ("pvalue", "pvalue_adjusted")]
        caption = f"Tests of right scores, {self.convention['correction']} over segments"
        return html_table(table.with_columns(words), caption=caption)


def test(
    data: Any,
    *,
    label: str,
    score: Score,
    method: str | Sequence[str] = "resampling",
    statistic: str = "ece",
    by: Names | None = None,
    weight: str | None = None,
    cluster: str | None = None,
    positive: Any = None,
    link: Link = "probability",
    classes: Sequence[Any] | None = None,
    bins: int | Sequence[float] | Literal["auto"] | None = None,
    strategy: Strategy | None = None,
    closed: Closed = "left",
    df: Df = "external",
    alternative: Side | None = None,
    kernel_law: KernelLaw = "resampled",
    n_resamples: int = 1000,
    inequality: Inequality = ">=",
    rng: int | np.random.Generator | None = 0,
    correction: Correction = "holm",
    alpha: float = 0.05,
    smoother: Smoother = "loess",
    floor: float = 1e-12,
    clip: float | None = None,
    invalid: Invalid = "raise",
    weight_kind: WeightKind = "importance",
    engine: Any = None,
    progress: Callable[[float], None] | None = None,
) -> TestResult:
    """Test whether right scores could have shown this, segment by segment.

    Under the hypothesis each label happens with the probability that its score says. A large p-value is no proof of
    right scores: how far off they may still be is what intervals and `calframe.audit` say.

    Parameters
    ----------
    data : table
        As in `calframe.metrics`.
    label, score, by, weight, positive, link, classes, invalid, weight_kind, engine
        As in `calframe.metrics`.
    cluster : str, optional
        The column that tells apart what is independent, such as persons: rows of one value are not taken as
        independent; each row without a value is a cluster of its own. Their labels are drawn together: see the notes.
    method : str or list of str, default "resampling"
        - ``"resampling"``: draws labels from the scores, any measure (`statistic`)
        - ``"spiegelhalter"``: is the Brier score what right scores give; two-sided
        - ``"hosmer_lemeshow"``: counts in groups of like scores; of several classes that of Fagerland, Hosmer, Bofin,
          in groups of ``1 - p`` of the first class
        - ``"ecce"``, ``"ks"``: range, and largest value, of the cumulative differences of label and score
        - ``"cox"``: likelihood ratios of intercept 0 and slope 1: jointly, intercept at slope 1, slope
        - ``"gap"``: is the rate the mean score; two-sided
        - ``"corp"``: CORP's miscalibration, by drawing labels
        - ``"kernel"``: squared kernel calibration error, of any number of classes (`kernel_law`)
    statistic : str, default "ece"
        The measure of the test by resampling: any that `calframe.metrics` knows and that depends on the labels.
    bins : int, list of float or "auto", optional
        Bins of `statistic`, by default 15; groups of Hosmer and Lemeshow, by default 10.
    strategy : {"uniform", "quantile"}, optional
        How they are placed: bins by equal width, groups between quantiles, if nothing is said.
    closed : {"left", "right"}, default "left"
        The side of a bin of `statistic` that belongs to it; groups are closed on the right.
    df : {"external", "internal"}, default "external"
        Degrees of freedom of Hosmer and Lemeshow: the number of groups, for scores of a model fitted on other rows; or
        two less, for the rows it was fitted on. The latter rejects right scores in 8 to 19 % of cases.
    alternative : {"greater", "less", "two-sided"}, optional
        Which values of `statistic` are evidence. By default errors of calibration "greater", auc and accuracy "less",
        all else "two-sided": the Brier score of an under-confident model is smaller than that of right scores.
    kernel_law : {"resampled", "asymptotic", "block", "distribution_free"}, default "resampled"
        Law of the kernel test: see the notes.
    n_resamples : int, default 1000
        Draws, where labels are drawn; for small p-values there are as many more as the number of segments asks for: see
        the notes; up to ten times as many where the normal law of a sum is doubtful and they are cheap. Where even so
        nothing could be rejected, ``reject`` is null and a note says so.
    inequality : {">=", ">"}, default ">="
        ``p = (1 + #{T* >= T}) / (1 + n_resamples)``, or the plain share ``#{T* > T} / n_resamples``, which can be 0.
    rng : int, numpy.random.Generator or None, default 0
        Their seed; None for fresh entropy.
    correction : str, default "holm"
        ``"holm"`` and ``"bonferroni"`` hold the chance of one false rejection among all segments and models,
        ``"benjamini_hochberg"`` and (whatever the dependence) ``"benjamini_yekutieli"`` the expected share of false
        ones, ``"max"`` (of "resampling" and "corp") draws the largest standardised statistic of all segments together;
        ``"none"`` adjusts nothing.
    alpha : float, default 0.05
        The level of ``reject``.
    smoother, floor, clip
        As in `calframe.metrics`.
    progress : callable, optional
        Told, after each lot of draws, which share of the work that was.

    Returns
    -------
    TestResult
        With ``.table``, ``.groups`` (of Hosmer and Lemeshow) and ``.to_dict()``.

    Raises
    ------
    CalframeError
        If columns, labels, scores or arguments are not what they must be; also where a method cannot take weights.

    Notes
    -----
    Positives of equal scores are Binomial under the hypothesis; those of a bin are drawn as the Binomial with their
    mean and variance (with weights not for "mce", the gap of the smallest bins). So resampling costs cells, not rows:
    bins, or distinct scores for "corp" and statistics of those, which therefore take long where scores are continuous.
    Brier score, log loss and gap have a normal law with known moments. With weights a drawn label counts with its
    weight, and the statistic of each draw is weighted, too; where weights differ that are worth fewer than 1,000 rows
    (of at most 100,000), every label is drawn by itself.

    The least p-value of 1,000 draws is 1 / 1001, which among more than 50 segments Holm's correction does not let
    reject. So with more, segments whose first p-value is at most 0.005 are drawn anew, ``2 m / alpha`` times for m
    segments (twice that two-sided, at most 100,000), and theirs is the p-value of these draws alone: sequential
    sampling, which holds its level.

    A law for many rows is not taken at its word. Where it is doubtful (one row moves the sum by more than a fifth of
    its standard deviation; the variance of Hosmer and Lemeshow's statistic exceeds that of its law by 12 %; fewer than
    40 rows of a class are expected), and the p-value below 0.1, labels are drawn, or the p-value is worked out exactly
    ("gap"), and ``law`` says so; so they are where the law of Cox, or of Hosmer and Lemeshow, says less than 0.005 for
    fewer than 100 expected events of a segment, or of a group. Where the draws do not surely say more than 0.005, nor
    less than the law, ``pvalue`` stays what the law says, and nothing is rejected that is not by the p-values of the
    draws, adjusted; the note says which are shown. How often labels are drawn depends on the number of segments, so
    these p-values may, too, within the error of draws. With fewer than 25 rows such a p-value decides nothing, and
    ``reject`` is null; drawing (``"resampling"``, ``"corp"``, ``"kernel"``) and exact p-values (of "gap", where rows
    count once) hold their level for any number.

    Clusters: two rows of one share the luck of their labels with a chance that is estimated from the residuals of all
    such pairs of the segment, 1 for copies of a row and 0 on average for independent rows. Labels are drawn so, row by
    row; Brier score, log loss and gap keep their normal law, with that variance, where no cluster moves the sum by more
    than a fifth of its standard deviation. So 20 copies of each row give the p-value of one. Of several classes, and of
    whole vectors, all p-values are drawn so (of each row up to 32 others of its cluster are looked at); by the kernel
    test of up to 2,000 rows.

    Kernel: of up to 2,000 rows all pairs count, ``"resampled"`` by drawing labels, ``"asymptotic"`` by a bootstrap of
    the limit law; of more, and with ``"block"``, the normal law of pairs in a fixed random order;
    ``"distribution_free"`` is a bound that rarely rejects.

    References
    ----------
    Silva Filho, T., Song, H., Perello-Nieto, M., Santos-Rodriguez, R., Kull, M. and Flach, P. (2023). Classifier
    calibration: a survey on how to assess and improve predicted class probabilities. Machine Learning 112, 3211-3260.
    https://doi.org/10.1007/s10994-023-06336-7

    Phipson, B. and Smyth, G. K. (2010). Permutation P-values should never be zero. Statistical Applications in Genetics
    and Molecular Biology 9(1), 39. https://doi.org/10.2202/1544-6115.1585

    Besag, J. and Clifford, P. (1991). Sequential Monte Carlo p-values. Biometrika 78, 301-304.
    https://doi.org/10.1093/biomet/78.2.301

    Westfall, P. H. and Young, S. S. (1993). Resampling-Based Multiple Testing. Wiley.

    Examples
    --------
    Fifty rows of score 0.01 that are all positive: no draw comes as far.

    >>> import polars as pl
    >>> import calframe
    >>> rows = pl.DataFrame({"y": [1] * 50, "p": [0.01] * 50})
    >>> found = calframe.test(rows, label="y", score="p", n_resamples=99)
    >>> found
    <TestResult: resampling ece, 1 of 1 rejected at 0.05; .table>
      statistic 0.99, p 0.010
    >>> found.table["pvalue"].to_list()
    [0.01]
    """
    methods = methods_asked(method)
    metric = _metric(
        statistic,
        roles := Roles.from_arguments(
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
        ),
    )
    _check_options(df, alternative, kernel_law, inequality, correction, alpha, n_resamples, progress)
    check_floor(floor)
    check_clip(clip)
    check_smoother(smoother)
    check_max(correction, methods)
    check_idle(methods, statistic=statistic, alternative=alternative, df=df, kernel_law=kernel_law)
    plan = Plan(
        methods=methods,
        metric=metric,
        options=Options(smoother=smoother, floor=floor, clip=clip),
        choice=BinChoice.from_arguments(15 if bins is None else bins, strategy=strategy or "uniform", closed=closed),
        groups=groups_asked(bins, strategy, methods),
        df=df,
        kernel_law=kernel_law,
        side=alternative,
        n_resamples=int(n_resamples),
        seed=seed_of(rng),
        inequality=inequality,
        correction=correction,
        alpha=float(alpha),
        progress=progress,
    )
    in_groups = "hosmer_lemeshow" in methods
    taken = reserved_names() | _RESERVED | set(GROUP_COLUMNS if in_groups else ())
    table = open_table(data, roles, reserved=taken, bins=plan.edges, view=view_of(roles, None))
    groups, found, rows = found_by(table, plan, engine=engine)
    warn_empty_categories(table, groups)
    judgements, notes = judged(found, plan)
    return TestResult(
        table=table_of(table, groups, judgements, plan.alpha),
        groups=groups_table_of(table, groups, rows) if in_groups else None,
        by=roles.by,
        methods=methods,
        notes=notes,
        convention={"label": label, **roles.convention(), **plan.convention(), "closed": closed},
    )


test.__test__ = False  # type: ignore[attr-defined]  # an imported one is no test of pytest's


def _metric(statistic: Any, roles: Roles) -> Metric:
    """Return the measure of the test by resampling, or raise if labels do not move it."""
    several = roles.multiclass
    name = "classwise_ece" if several and statistic == "ece" else statistic
    if not isinstance(name, str) or name not in metric_names():
        known = [each.name for each in known_metrics(several_classes=several).values() if uses_label(each)]
        msg = f"statistic={name!r} is not known{_meant(name, known)}. It may be any metric that depends on the labels."
        raise ArgumentError(msg)
    if several and name not in known_metrics(several_classes=True):
        msg = (
            f"statistic={name!r} is about one column of scores. Test each class by itself, with its column as score= "
            "and positive= naming it, or take a measure of several classes, like 'classwise_ece'."
        )
        raise ArgumentError(msg)
    metric = chosen_metrics([name], several_classes=several)[0]
    if not uses_label(metric):
        msg = f"statistic={name!r} does not depend on the labels, so there is nothing to test; take another measure."
        raise ArgumentError(msg)
    return metric


def _meant(name: Any, known: Sequence[str]) -> str:
    """Say which names are near; nothing where none is."""
    if not isinstance(name, str):
        return ""
    near = [nearest(name, known), *difflib.get_close_matches(name.lower(), known, n=3, cutoff=_NEAR)]
    names = [repr(one) for one in dict.fromkeys(near) if one is not None]
    return f"; near it are {listed(names)}" if names else ""


def _check_options(
    df: Any,
    alternative: Any,
    kernel_law: Any,
    inequality: Any,
    correction: Any,
    alpha: Any,
    n_resamples: Any,
    progress: Any,
) -> None:
    check_choice("df", df, get_args(Df))
    if alternative is not None:
        check_choice("alternative", alternative, get_args(Side))
    check_choice("kernel_law", kernel_law, get_args(KernelLaw))
    check_choice("inequality", inequality, get_args(Inequality))
    check_choice("correction", correction, get_args(Correction))
    check_resamples(n_resamples)
    if not (progress is None or callable(progress)):
        msg = f"progress must be a function that takes a share, such as print; got {progress!r}."
        raise ArgumentError(msg)
    check_alpha(alpha)
