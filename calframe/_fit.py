"""The verb `fit`: a calibration map from a prediction table, for thousands of segments at once."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from calframe._binning import BinChoice
from calframe._errors import ArgumentError
from calframe._maps._class_methods import CLASS_METHODS, ClassMethod
from calframe._maps._fit_options import FitOptions, Free, Interpolation, Kind, On, check_options
from calframe._maps._fits import Fitted, Pooling, fitted_classes, fitted_scores, fitted_vectors
from calframe._maps._map import CalibrationMap, head_of
from calframe._maps._methods import METHODS, Method
from calframe._maps._reading import Counts, read_scores, read_vectors
from calframe._maps._rows import RESERVED
from calframe._options import check_choice, check_floor
from calframe._roles import Roles, WeightKind
from calframe._table import Table, open_table
from calframe._typing import Closed, Invalid, Link, Names, Strategy

_ONE_VERSUS_REST = "ovr_"
_FAR = 2.0  # a mean weight from 1, as a factor
_OF_METHODS = sorted(
    {name for each in METHODS.values() for name in each.options}
    | {name for each in CLASS_METHODS.values() for name in each.options}
)


def fit(
    data: Any,
    *,
    label: str,
    score: str | Mapping[Any, str],
    method: str = "beta",
    by: Names | None = None,
    pooling: Pooling | None = None,
    weight: str | None = None,
    positive: Any = None,
    link: Link = "probability",
    invalid: Invalid = "raise",
    weight_kind: WeightKind = "importance",
    classes: Sequence[Any] | None = None,
    floor: float = 1e-12,
    target_smoothing: bool | float = False,
    parameters: Free = "abm",
    on: On = "logit",
    interpolation: Interpolation = "linear",
    centred: bool = False,
    epsilon: float | None = None,
    bins: int | Sequence[float] | str = 15,
    strategy: Strategy = "uniform",
    closed: Closed = "left",
    laplace: float = 0.0,
    off_diagonal: float = 0.0,
    intercept: float = 0.0,
    normalised: bool = False,
    reference_row: bool = False,
    kind: Kind = "matrix",
    engine: Any = None,
) -> CalibrationMap:
    """Fit a calibration map: what a score should have been, learned from outcomes, for each segment.

    A map is fitted on rows with outcomes and then applied to scores without, see `calframe.apply`. Thousands of
    segments are fitted at once, from their distinct scores; small ones are shrunk towards the pooled map.

    Parameters
    ----------
    data : table
        A prediction table: pandas or polars DataFrame, polars LazyFrame, pyarrow Table, or any table that narwhals
        opens lazily, such as a DuckDB relation. Only sums by segment and distinct score leave a remote engine.
    label : str
        Column of the outcome: bool, 0/1 or -1/+1; of several classes, the class.
    score : str or mapping
        Column of the scores of one model; of several classes a mapping of each class to its column, or one column of
        vectors with `classes`.
    method : str, default "beta"
        With one score a row (or two classes), with p the score and z = ln p - ln(1 - p):

        ============  =================================================================================  =======
        method        the map                                                                            pools
        ============  =================================================================================  =======
        identity      p itself                                                                           no
        platt         expit(slope z + intercept), slope >= 0; ``on="score"`` puts the score in z's       yes
                      place
        temperature   expit(z / T), T > 0                                                                yes
        beta          expit(a ln p - b ln(1 - p) + c), a, b >= 0; ``parameters="am"``: a = b,            yes
                      ``"ab"``: 1/2 stays 1/2
        isotonic      the non-decreasing step function of least squares; straight lines join its steps   yes
                      unless ``interpolation="step"``
        histogram     the rate of the bin; an empty bin keeps the score                                  yes
        spline        expit of a natural cubic spline of z that never decreases                          no
        venn_abers    isotonic fits with one more row of either class at the score: ``_low`` and         no
                      ``_high``, and high / (1 - low + high)
        ============  =================================================================================  =======

        With several classes, with z = ln p of each class:

        ============  =================================================================================
        method        the map
        ============  =================================================================================
        identity      p itself
        temperature   softmax(z / T), T > 0; the only one of these that pools, beside those of ovr_
        vector        softmax(w z + b), a w and b for each class
        matrix        softmax(W z + b)
        dirichlet     the same, with ``off_diagonal`` times the squares of W outside its diagonal and
                      ``intercept`` times those of b added to the mean loss (ODIR)
        structured    a temperature, then the matrix (or with ``kind="vector"`` the vector) held near
                      the identity, the more so the fewer rows there are
        ovr_platt ... any binary method for each class against the rest; divided by the sum
        ============  =================================================================================

        All but structured, histogram, isotonic, venn_abers and spline are maximum likelihood, unless a penalty or
        smoothed targets are asked for.
    by : str or sequence of str, optional
        Columns whose combinations are segments with maps of their own. Rows with a null key, and segments that were
        not seen, take the pooled map, which is fitted to all rows.
    pooling : {"none", "partial", "complete"}, optional
        ``"partial"``, the default where the method can: the parameters of the segments are taken as draws from one
        normal distribution, estimated from all of them (empirical Bayes), so that a segment with many rows keeps its
        own fit and one with few follows the others. isotonic and histogram then take their shape from all rows and
        bend it by a slope and an intercept a segment, see the notes. With fewer than five segments it is
        ``"complete"``, and the map says so. ``"none"``: each segment alone; one that has no finite fit (one class, one
        score, scores that separate the classes, fewer rows than parameters) takes the pooled map, and its note says
        so. ``"complete"``: segments are ignored.
    weight : str, optional
        Column of row weights: 0, or between 1e-100 and 1e100; weight 2 is the row twice. What depends on the number of
        rows (partial pooling, smoothed targets, ``laplace``, standard errors) takes weights as that: give importance
        weights a mean of 1.
    positive : object, optional
        The label value that counts as positive, where the label does not tell.
    link : {"probability", "logit"}, default "probability"
        What the score columns hold. Logits are read as they are, and isotonic joins its points by straight lines in
        them; histogram alone has bins of the probabilities they stand for. Of several classes one-vs-rest maps read
        probabilities.
    invalid : {"raise", "drop"}, default "raise"
        What to do with scores outside [0, 1] or wrong weights: raise, or leave them out and count them. A label of
        another value is an error either way.
    weight_kind : {"importance", "frequency"}, default "importance"
        Whether weights are importances or counts of rows. The map is the same; a note says if partial pooling got
        importances whose mean is far from 1.
    classes : sequence, optional
        The classes of a score column that holds vectors, in their order.
    floor : float, default 1e-12
        How far from 0 a probability stays in a logarithm.
    target_smoothing : bool or float, default False
        For platt, temperature, beta, spline, vector, matrix and dirichlet: True takes Platt's targets
        (N+ + 1) / (N+ + 2) and 1 / (N- + 2) in place of labels, a number e between 0 and 1 the targets
        (1 - e) y + e / K.
    parameters : {"abm", "am", "ab"}, default "abm"
        Which parameters of beta are free, m being where it is 1/2.
    on : {"logit", "score"}, default "logit"
        What platt is linear in.
    interpolation : {"linear", "step"}, default "linear"
        How isotonic joins its blocks. Step: the rate of a block holds from its first score on.
    centred : bool, default False
        Let isotonic join blocks at their mean scores, so that it rises strictly.
    epsilon : float, optional
        Clip isotonic to [epsilon, 1 - epsilon]; a 0 or 1 makes the log loss of one surprise infinite.
    bins, strategy, closed
        The bins of histogram, as in `calframe.metrics`.
    laplace : float, default 0
        Rows of either class added to each bin of histogram; 1 is Laplace's rule.
    off_diagonal, intercept : float, default 0
        The penalties of dirichlet.
    normalised : bool, default False
        Divide them by the numbers of terms, K (K - 1) and K.
    reference_row : bool, default False
        Subtract the last row of W and b before the penalty.
    kind : {"matrix", "vector"}, default "matrix"
        The kind of structured map.
    engine : str or polars object, optional
        Passed to polars when it collects.

    Returns
    -------
    CalibrationMap
        With ``.table``, ``.summary()``, ``.plot()``, ``.apply(data)``, ``.save(path)``, ``.to_expr()`` and
        ``.to_sql(dialect)``.

    Raises
    ------
    CalframeError
        If columns, labels, scores, weights or arguments are not what they must be; the message says what to do.

    Notes
    -----
    Numbers judged on the rows that a map was fitted on are too good. `calframe.cross_fit` gives every row a score from
    a map that has not seen it, and `calframe.validate` says whether a map is worth it.

    No map reverses the order of scores, but histogram may, unless it pools partially. Where the best fit would, the
    best one that does not is taken, and the note says so.

    With partial pooling, isotonic and histogram are logit P = intercept + slope c(p), slope >= 0, with c the logit of
    the method's own curve of all rows, joined and binned as its options say. There each block or bin has the rate
    (K + s) / (N + 2 s), with N its weight, K that of its positives and s ``laplace`` or else 1/2, so that c is finite;
    rates that fall are pooled, by isotonic regression with weights N + 2 s. A bin without rows keeps the score within
    the rates of the bins beside it; beyond the outermost blocks, or bins with rows, c is constant. ``epsilon`` clips P.
    The pooled map has the slope and the intercept that are nearest to the ``"complete"`` map (least Kullback-Leibler
    divergence from the rates of its blocks or bins). It is that map only as far as the halves that were added let it:
    a rate of 0 or 1 has no finite logit. It is exactly that map where laplace is given, each bin has rows, and no rate
    falls; the rows that laplace adds to a bin are shared by the segments, as they share its weight.

    References
    ----------
    Silva Filho, T. et al. (2023). Classifier calibration: a survey on how to assess and improve predicted class
    probabilities. Machine Learning 112, 3211-3260. https://doi.org/10.1007/s10994-023-06336-7

    Kull, M., Silva Filho, T. and Flach, P. (2017). Beyond sigmoids: how to obtain well-calibrated probabilities from
    binary classifiers with beta calibration. Electronic Journal of Statistics 11, 5052-5080.
    https://doi.org/10.1214/17-EJS1338SI

    Kull, M. et al. (2019). Beyond temperature scaling: obtaining well-calibrated multiclass probabilities with
    Dirichlet calibration. NeurIPS 2019. https://doi.org/10.48550/arXiv.1910.12656

    Morris, C. N. (1983). Parametric empirical Bayes inference: theory and applications. Journal of the American
    Statistical Association 78, 47-55. https://doi.org/10.1080/01621459.1983.10477920

    Examples
    --------
    Scores of 0.2 and 0.8 that came true in 1 of 10 and 9 of 10 cases were too cautious:

    >>> import polars as pl
    >>> import calframe
    >>> score, late = [0.2] * 10 + [0.8] * 10, [1] + [0] * 9 + [1] * 9 + [0]
    >>> found = calframe.fit(pl.DataFrame({"late": late, "p": score}), label="late", score="p", method="temperature")
    >>> found
    <CalibrationMap: temperature, from 20 rows; .table, .apply(data), .save(path)>
    >>> found.apply(pl.DataFrame({"p": [0.2, 0.5, 0.8]}))
    shape: (3, 2)
    ┌─────┬──────────────┐
    │ p   ┆ p_calibrated │
    │ --- ┆ ---          │
    │ f64 ┆ f64          │
    ╞═════╪══════════════╡
    │ 0.2 ┆ 0.1          │
    │ 0.5 ┆ 0.5          │
    │ 0.8 ┆ 0.9          │
    └─────┴──────────────┘
    """
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
    )
    if roles.several:
        msg = (
            f"fit takes the scores of one model; score= names {len(roles.scores)}. Fit each, with a score= of its own."
        )
        raise ArgumentError(msg)
    chosen = _method(method, several=roles.multiclass)
    given = dict(locals())
    used = {name: given[name] for name in chosen.options}
    _check_unused(method, chosen, {name: given[name] for name in _OF_METHODS})
    check_floor(floor)
    check_options(**used)
    found, counts, positive = _fitted(
        data,
        roles,
        method,
        _pooling(pooling, method, chosen),
        FitOptions(
            floor=floor,
            target_smoothing=target_smoothing,
            parameters=parameters,
            on=on,
            interpolation=interpolation,
            centred=centred,
            epsilon=epsilon,
            choice=BinChoice.from_arguments(bins, strategy=strategy, closed=closed),
            laplace=laplace,
            off_diagonal=off_diagonal,
            intercept=intercept,
            normalised=normalised,
            reference_row=reference_row,
            kind=kind,
        ),
        engine=engine,
    )
    return CalibrationMap(
        method=method,
        options=used,
        label=label,
        scores=roles.scores,
        classes=roles.classes,
        positive=positive,
        vector=roles.vector,
        by=found.segments.by,
        pooling=found.pooling,
        link=link,
        floor=floor,
        n=counts.n,
        n_missing=counts.n_missing,
        n_invalid=counts.n_invalid,
        low=counts.low,
        high=counts.high,
        notes=counts.notes + _weight_notes(counts, found, roles) + found.notes,
        mark=counts.mark,
        form=found.form,
        segments=found.segments,
        _native=head_of(data),
    )


def _method(name: Any, *, several: bool) -> Method | ClassMethod:
    """Return the method of a name, for scores of one class or of several."""
    if not several:
        check_choice("method", name, METHODS)
        return METHODS[name]
    allowed = [*CLASS_METHODS, *(f"{_ONE_VERSUS_REST}{one}" for one in METHODS if one != "identity")]
    if name in METHODS and name not in CLASS_METHODS:
        msg = f"method={name!r} is for one score a row; for several classes take 'ovr_{name}', or one of {allowed}."
        raise ArgumentError(msg)
    check_choice("method", name, allowed)
    return CLASS_METHODS[name] if name in CLASS_METHODS else METHODS[name.removeprefix(_ONE_VERSUS_REST)]


def _pooling(asked: Any, name: str, method: Method | ClassMethod) -> Pooling:
    """Return how segments are pooled: partially where the method can, unless something else is asked for."""
    pools = method.pool is not None
    if asked is not None:
        check_choice("pooling", asked, get_args(Pooling))
    if name == "identity" and asked != "partial":  # the same in all segments
        return "complete"
    if asked is None:
        return "partial" if pools else "none"
    if asked == "partial" and not pools:
        known: Mapping[str, Method | ClassMethod] = METHODS if isinstance(method, Method) else CLASS_METHODS
        able = [f"{one!r}" for one, each in known.items() if each.pool is not None]
        msg = f"method={name!r} has no partial pooling; pass pooling='none' or 'complete', or take {', '.join(able)}."
        raise ArgumentError(msg)
    pooling: Pooling = asked
    return pooling


def _check_unused(name: str, method: Method | ClassMethod, given: Mapping[str, Any]) -> None:
    """Raise if an argument differs from its default and the method does not take it."""
    for argument, value in given.items():
        default = inspect.signature(fit).parameters[argument].default
        if argument in method.options or (type(value) is type(default) and value == default):
            continue
        takes = f" It takes {', '.join(method.options)}." if method.options else ""
        msg = f"{argument}= is not used with method={name!r}; leave it out, got {value!r}.{takes}"
        raise ArgumentError(msg)


def _fitted(
    data: Any, roles: Roles, method: str, pooling: Pooling, options: FitOptions, *, engine: Any
) -> tuple[Fitted, Counts, Any]:
    """Return what was fitted, the counts of rows, and the label value that counts as positive."""
    if not roles.multiclass:
        bins = options.choice.fixed if method == "histogram" else None
        table = open_table(data, roles, reserved=RESERVED, view="second" if roles.classes else "score", bins=bins)
        counts, scores = read_scores(table, engine=engine)
        return fitted_scores(scores[0], METHODS[method], options, pooling), counts, _positive(table)
    if method in CLASS_METHODS:
        counts, rows = read_vectors(open_table(data, roles, reserved=RESERVED, view="vectors"), engine=engine)
        _check_rows(counts, roles, CLASS_METHODS[method], options)
        return fitted_vectors(rows, CLASS_METHODS[method], options, pooling), counts, None
    counts, scores = read_scores(open_table(data, roles, reserved=RESERVED, view="classwise"), engine=engine)
    binary = METHODS[method.removeprefix(_ONE_VERSUS_REST)]
    return fitted_classes(scores, roles.classes, binary, options, pooling), counts, None


def _weight_notes(counts: Counts, found: Fitted, roles: Roles) -> tuple[str, ...]:
    """Return what is to be said of weights that partial pooling takes as numbers of rows."""
    is_count = roles.weight is None or roles.weight_kind == "frequency"
    if is_count or found.pooling != "partial" or 1.0 / _FAR < counts.mean_weight < _FAR:
        return ()
    mean = f"{counts.mean_weight:.3g}"
    return (f"partial pooling takes weights as numbers of rows; their mean is {mean}, that of importances should be 1",)


def _positive(table: Table) -> Any:
    """Return the label value that counts as positive; None where classes are named."""
    if table.classes is not None:
        return None
    value = table.label.positive
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_rows(counts: Counts, roles: Roles, method: ClassMethod, options: FitOptions) -> None:
    fewest = method.fewest(len(roles.classes), options)
    if counts.n < fewest:
        penalty = " or off_diagonal= above 0" if "off_diagonal" in method.options else ""
        msg = (
            f"method={method.name!r} of {len(roles.classes)} classes has {fewest} parameters, and the table "
            f"{counts.n} rows. Give it more rows, take method='temperature' or 'structured'{penalty}."
        )
        raise ArgumentError(msg)
