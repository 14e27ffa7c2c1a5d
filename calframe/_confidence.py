"""The verbs `answer_confidence` and `parse_confidence`: what a language model says of its answers, as probabilities."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import narwhals.stable.v2 as nw
import pandas as pd
import polars as pl

from calframe._answers._agreement import of_questions, of_samples, samples_in
from calframe._answers._arguments import check_arguments, named_options
from calframe._answers._columns import read_column, shares_among
from calframe._answers._frames import check_columns, series_of, texts_in, with_made
from calframe._answers._statements import UNREAD, faults, read
from calframe._answers._tokens import Logs, of_options, of_tokens, options_in
from calframe._answers._words import WORDS, scale_of
from calframe._errors import ArgumentError, ScoreError, counted, warn
from calframe._options import check_choice, is_real
from calframe._source import opened
from calframe._typing import Invalid, Names

Method: TypeAlias = Literal["sum", "mean", "first", "choice", "agreement"]

_TEXT = "statement"  # the column of texts that come without a table
_TOPS = (100, 10)  # scales that are asked about, the usual one first


def parse_confidence(
    data: Any,
    *,
    column: str | None = None,
    name: str = "confidence",
    scale: float = 1.0,
    words: Mapping[str, float] | None = None,
) -> Any:
    """Return a table with the probability that each statement of confidence says.

    "I am 85% sure" is 0.85, "five out of ten" 0.5, "between 70% and 80%" 0.75, "almost certain" 0.95, "90% sure I am
    wrong" 0.1; a refusal, a year or a count is null.

    Parameters
    ----------
    data : table
        A pandas or polars DataFrame, polars LazyFrame or pyarrow Table. Also a Series or a list of texts, which make
        a table of their own, polars for a list.
    column : str, optional
        The column of statements, texts or numbers; needed with a table. Each distinct text is read once.
    name : str, default "confidence"
        The column to add; ``<name>_read`` is added beside it.
    scale : float, default 1
        What full confidence is in numbers without a unit: with ``scale=100``, 85 is 0.85. A text that names its own
        scale ("7 on a scale of 1 to 10") goes before.
    words : mapping of str to float, optional
        Phrases of letters and spaces, and what they mean, in place of the default scale, whose
        main phrases Notes list.

    Returns
    -------
    table
        Of the same kind, rows in the same order, a LazyFrame lazy, with two new columns:

        - ``<name>``: float64 in [0, 1], null where no probability is said;
        - ``<name>_read``: text, how it was read: "percent", "decimal", "fraction", "range" or "words"; or why it is
          null: "missing" (null or NaN), "refusal" ("N/A", "I can't say"), "none" (no confidence in it), "out of range"
          ("150% sure", 362880) or "ambiguous" (statements that contradict each other). Group by it to count.

    Warns
    -----
    CalframeWarning
        If statements could not be read, with the counts, and the `scale` by which numbers could; with ``scale=100`` if
        numbers below 1, as 0.7, stand beside larger ones; of a LazyFrame when it is collected.

    Raises
    ------
    CalframeError
        If the column is missing or holds neither texts nor numbers, the table has a column of a new name already, or
        an option is not what it must be.

    Notes
    -----
    A number is a confidence if it is bound to a word such as sure, confident or confidence, else to one such as chance
    or probability, else if it stands alone in its clause ("Paris, 85%"); the first of these that occurs decides, and
    two different values there are "ambiguous". Numbers with anything else ("3 apples", "20% of voters", "answer: 42")
    are none. Of a range it is the midpoint, of "at least 90%" or "under 5%" the bound; "10% chance that I am wrong",
    "90% sure this is wrong" and "20% unsure" are turned around, "odds of 3 to 1" are 0.75, and k of a scale to m is
    k / m. "90% sure it is false" may be an answer: that, "90% sure I might be wrong", "no 90% chance" and "wrong to say
    I am 90% sure" are "ambiguous". A number from 11 to 100 behind such a word is a percentage ("Confidence: 85",
    "Confidence: 92.5"); 85 alone is one only with ``scale=100``.

    Words count where no number does. The default scale has the medians of Fagen-Ulmschneider's survey, whose phrases
    Tian et al. (2023) offer to models (almost certain 0.95, highly likely 0.9, very good chance 0.8, we believe 0.75,
    probable 0.7, probably 0.7, likely 0.7, better than even 0.6, about even 0.5, probably not 0.25, unlikely 0.2, doubt
    0.2, little chance 0.1, improbable 0.1, highly unlikely 0.05, almost no chance 0.02), Kent's (1964) ends (certain
    1, impossible 0), and uncertain 0.4 and possible 0.37 after Lichtenstein and Newman (1967). Conventions of
    calframe's own (sure 1, definitely 1, no doubt 1, in all likelihood 0.85, confident 0.8, high 0.8, good chance 0.7,
    medium 0.5, toss-up 0.5, unsure 0.4, maybe 0.37, low 0.2, little confidence 0.2, slim chance 0.1, no chance 0).
    What is not on the scale is made of what is: "very" and its like halve the distance to 0 or 1 (Mosteller and Youtz
    1990), "fairly" and its like that to 0.5, "not" is one minus it (not sure 0.4), "not very" 0.2, "not at all" 0.05,
    "not unlikely" is fairly likely, "medium to high" the midpoint; "probably wrong" is turned around. A negation
    reaches its word across verbs such as feel or seem; one that stands elsewhere in the clause ("nobody is sure"), "not
    impossible", and one thing said of another ("I'm sure it's unlikely") are "ambiguous".

    English only, small slips in spelling allowed; the reading of any other text is "none" unless it holds a bare
    number. Of texts of more than 4,000 letters the last 4,000 are read.

    References
    ----------
    Lin, S., Hilton, J. and Evans, O. (2022). Teaching models to express their uncertainty in words.
    https://doi.org/10.48550/arXiv.2205.14334

    Tian, K. et al. (2023). Just ask for calibration. https://doi.org/10.48550/arXiv.2305.14975

    Kent, S. (1964). Words of estimative probability. Studies in Intelligence 8 (4), 49-65.

    Lichtenstein, S. and Newman, J. R. (1967). Empirical scaling of common verbal phrases associated with numerical
    probabilities. Psychonomic Science 9, 563-564. https://doi.org/10.3758/BF03327890

    Mosteller, F. and Youtz, C. (1990). Quantifying probabilistic expressions. Statistical Science 5, 2-12.
    https://doi.org/10.1214/ss/1177012242

    Examples
    --------
    >>> import polars as pl
    >>> import calframe
    >>> said = pl.DataFrame({"said": ["I am 85% sure", "Answer: 42. Confidence: 7/10", "very likely"]})
    >>> calframe.parse_confidence(said, column="said")
    shape: (3, 3)
    ┌──────────────────────────────┬────────────┬─────────────────┐
    │ said                         ┆ confidence ┆ confidence_read │
    │ ---                          ┆ ---        ┆ ---             │
    │ str                          ┆ f64        ┆ str             │
    ╞══════════════════════════════╪════════════╪═════════════════╡
    │ I am 85% sure                ┆ 0.85       ┆ percent         │
    │ Answer: 42. Confidence: 7/10 ┆ 0.7        ┆ fraction        │
    │ very likely                  ┆ 0.85       ┆ words           │
    └──────────────────────────────┴────────────┴─────────────────┘
    """
    if not (is_real(scale) and 0.0 < scale < math.inf):
        msg = f"scale must be what full confidence is in numbers without a unit: 1, 10 or 100; got {scale!r}."
        raise ArgumentError(msg)
    words = WORDS if words is None else words
    if not isinstance(words, Mapping) or faults(words):
        wrong = faults(words) if isinstance(words, Mapping) else words
        msg = (
            "words must map phrases to probabilities, for example {'very likely': 0.9}; phrases are letters and "
            f"spaces, or they would never be read; got {wrong!r}."
        )
        raise ArgumentError(msg)
    schema = {name: pl.Float64(), f"{name}_read": pl.String()}
    data, column = _as_table(data, column, schema)
    frame = opened(data)
    check_columns(frame.collect_schema().names(), {column: "column"}, list(schema))
    _check_statements(column, frame.collect_schema()[column])
    known = scale_of(tuple(words.items()))

    def readings(series: pl.Series, top: float) -> pl.DataFrame:
        return read_column(series, lambda text: read(text, known, top), top)

    def make(rows: pl.DataFrame) -> pl.DataFrame:
        found = readings(rows.to_series(), float(scale))
        counts = dict(found.get_column("how").value_counts().iter_rows())
        large = rows.to_series().filter(found.get_column("how") == "out of range")
        fitting = [top for top in _TOPS if top > scale and readings(large, top).get_column("value").count()]
        hint = f" Numbers out of {fitting[0]}? Pass scale={fitting[0]}." if fitting else ""
        if scale == _TOPS[0]:
            _warn_of_shares(shares_among(rows.to_series(), found, lambda text: read(text, known, 1.0), scale), scale)
        _warn("parse_confidence", {how: counts.get(how, 0) for how in UNREAD}, found.height, hint)
        return found.rename(dict(zip(found.columns, schema, strict=True)))

    return with_made(data, [column], make, schema)


def _as_table(data: Any, column: str | None, new: Collection[str]) -> tuple[Any, str]:
    """Return a table and the name of its column of statements; a Series or a list makes a table."""
    if isinstance(data, list | tuple):
        return pl.DataFrame({column or _TEXT: series_of(pd.Series(data, dtype=object))}), column or _TEXT
    series = nw.from_native(data, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        column = str(column or (series.name if series.name not in {None, "", *new} else _TEXT))
        return series.alias(column).to_frame().to_native(), column
    opened(data)  # refuses what is no table
    if column is None:
        msg = "column= names the column that holds the statements."
        raise ArgumentError(msg)
    return data, column


def _check_statements(column: str, dtype: Any) -> None:
    if not (isinstance(dtype, nw.String | nw.Categorical | nw.Enum | nw.Object | nw.Unknown) or dtype.is_numeric()):
        msg = f"column {column!r} has type {dtype}; statements of confidence are texts or numbers."
        raise ScoreError(msg)


def _warn(verb: str, counts: Mapping[str, int], rows: int, hint: str = "") -> None:
    """Warn of rows without a confidence, unless all of them hold a null."""
    if sum(counts.values()) > counts.get("missing", 0):
        listed = ", ".join(f"{count:,} {why}" for why, count in counts.items() if count)
        warn(f"{verb} found no confidence in {sum(counts.values()):,} of {counted(rows)}: {listed}.{hint}")


def _warn_of_shares(shares: pl.Series, scale: float) -> None:
    """Warn of numbers that look like probabilities in a column of percentages."""
    if len(shares):
        warn(
            f"parse_confidence took numbers below 1 in {counted(len(shares))}, for example {shares[0]!r}, as out of "
            f"{scale:g}, like the larger ones. Probabilities? Parse those rows with scale=1."
        )


def answer_confidence(
    data: Any,
    *,
    column: str | None = None,
    method: Method = "sum",
    options: Sequence[str] | Mapping[str, str] | None = None,
    chosen: str | None = None,
    each: bool = False,
    by: Names | None = None,
    answer: str | None = None,
    smoothing: float = 0.0,
    normalize: bool = True,
    base: float = math.e,
    name: str = "confidence",
    invalid: Invalid = "raise",
) -> Any:
    """Return a table with one confidence per answer, from log-probabilities or from sampled answers.

    Parameters
    ----------
    data : table
        A pandas or polars DataFrame, polars LazyFrame or pyarrow Table.
    column : str, optional
        Log-probabilities of the tokens of each answer, a list a row; for "agreement" the sampled answers, a list of
        texts a row, or with `by` one text a row; for "choice" a struct or list of the options' log-probabilities.
    method : {"sum", "mean", "first", "choice", "agreement"}, default "sum"
        - "sum": exp of the sum, the probability of the whole answer; longer answers have less of it;
        - "mean": exp of the mean, the geometric mean per token, which does not depend on length;
        - "first": the probability of the first token, for answers that it decides ("yes", "no", a letter);
        - "choice": the probability of one option, renormalised over the options given (a softmax);
        - "agreement": the share of the sampled answers that say the same (self-consistency).
    options : sequence of str or mapping of str to str, optional
        For "choice": the columns of log-probabilities, named like the options, or a mapping of each option to its
        column. With `column` the names of the options in it: fields of a struct, or a list's values in their order.
    chosen : str, optional
        For "choice": the column of the option chosen. By default the most probable one, the first of equal ones.
    each : bool, default False
        For "choice": add ``<name>_<option>`` for each option too; these sum to 1.
    by : str or sequence of str, optional
        For "agreement" in tables of one row per sample: the question. Each row gets the share of its own answer.
    answer : str, optional
        For "agreement" of lists: the column of the answer whose share is wanted. By default that of the most frequent
        sample, the first sampled of equally frequent ones.
    smoothing : float, default 0
        For "agreement": a, with which the share is (count + a) / (samples + a (distinct answers + 1)), the last for
        an answer not sampled; 1 is Laplace's rule, and no answer then has 0 or 1.
    normalize : bool, default True
        For "agreement": compare answers in lower case, Unicode NFKC, with single spaces and without quotes, markup
        and stops around them. False compares them as they are.
    base : float, default e
        The base of the logarithm; natural logarithms by default, as language models give them.
    name : str, default "confidence"
        The column to add. "choice" without `chosen` and "agreement" of lists without `answer` also add
        ``<name>_answer``, the answer that it is the confidence of.
    invalid : {"raise", "drop"}, default "raise"
        Log-probabilities more than 1e-6 above 0 are an error, or make their row null.

    Returns
    -------
    table
        Of the same kind, rows in the same order, a LazyFrame lazy, with the new columns: float64 in [0, 1], text for
        the answer. Null where a list is null or empty or holds a null or NaN that is used, an option has no
        log-probability, all options have -inf, the choice is no option, or nothing was sampled. Samples that are null
        or empty are no samples. A token of -inf makes 0.

    Warns
    -----
    CalframeWarning
        If rows that are not null have no confidence, with the counts; of a LazyFrame when it is collected.

    Raises
    ------
    CalframeError
        If a column is missing or of the wrong type, the table has a column of a new name already, an option is for
        another method, or log-probabilities are above 0.

    References
    ----------
    Kadavath, S. et al. (2022). Language models (mostly) know what they know.
    https://doi.org/10.48550/arXiv.2207.05221

    Malinin, A. and Gales, M. (2021). Uncertainty estimation in autoregressive structured prediction.
    https://doi.org/10.48550/arXiv.2002.07650

    Wang, X. et al. (2023). Self-consistency improves chain of thought reasoning in language models.
    https://doi.org/10.48550/arXiv.2203.11171

    Examples
    --------
    Two tokens of probability 1/2, and one of 0.9:

    >>> import math
    >>> import polars as pl
    >>> import calframe
    >>> tokens = pl.DataFrame({"logprobs": [[math.log(0.5)] * 2, [math.log(0.9)]]})
    >>> calframe.answer_confidence(tokens, column="logprobs")["confidence"].round(3).to_list()
    [0.25, 0.9]
    >>> calframe.answer_confidence(tokens, column="logprobs", method="mean")["confidence"].round(3).to_list()
    [0.5, 0.9]

    >>> samples = pl.DataFrame({"answers": [["Paris", "paris.", "Lyon", "Paris"]]})
    >>> calframe.answer_confidence(samples, column="answers", method="agreement").drop("answers")
    shape: (1, 2)
    ┌────────────┬───────────────────┐
    │ confidence ┆ confidence_answer │
    │ ---        ┆ ---               │
    │ f64        ┆ str               │
    ╞════════════╪═══════════════════╡
    │ 0.75       ┆ Paris             │
    └────────────┴───────────────────┘
    """
    check_choice("method", method, get_args(Method))
    check_choice("invalid", invalid, get_args(Invalid))
    check_arguments(method, options=options, chosen=chosen, each=each, by=by, answer=answer, smoothing=smoothing,
                    normalize=normalize, base=base)  # fmt: skip
    names = opened(data).collect_schema().names()
    logs = Logs(place=f"column {column!r}", base=float(base), drop=invalid == "drop")
    if method == "choice":
        return _choices(data, column, options, chosen, each=each, name=name, logs=logs)
    if column is None:
        held = "the sampled answers" if method == "agreement" else "the lists of log-probabilities"
        msg = f"column= names the column that holds {held}."
        raise ArgumentError(msg)
    if method == "agreement":
        return _agreements(data, column, by, answer, smoothing=float(smoothing), normalize=normalize, name=name)

    def make(frame: pl.DataFrame) -> pl.DataFrame:
        value, counts = of_tokens(frame.get_column(column), method, logs)
        _warn("answer_confidence", counts, frame.height)
        return pl.DataFrame({name: value})

    check_columns(names, {column: "column"}, [name])
    return with_made(data, [column], make, {name: pl.Float64()})


def _choices(
    data: Any, column: str | None, options: Any, chosen: str | None, *, each: bool, name: str, logs: Logs
) -> Any:
    """Return a table with the probability of an option among all."""
    names, columns = named_options(options)
    used = {} if chosen is None else {chosen: "chosen"}
    used |= dict.fromkeys(columns if column is None else [column], "options" if column is None else "column")
    new = [name] + [f"{name}_answer"] * (chosen is None) + [f"{name}_{one}" for one in names] * each
    check_columns(opened(data).collect_schema().names(), used, new)

    def make(frame: pl.DataFrame) -> pl.DataFrame:
        if column is None:
            held = pl.DataFrame({one: frame.get_column(at) for one, at in zip(names, columns, strict=True)})
        else:
            held = options_in(frame.get_column(column), names, column)
        picked = None if chosen is None else texts_in(frame.get_column(chosen), "chosen=")
        shares, counts = of_options(held, names, picked, logs)
        _warn("answer_confidence", counts, frame.height)
        first = ["_cf_share", "_cf_answer"] if chosen is None else ["_cf_share"]
        shares = shares.select(*first, *shares.columns[: len(names)] * each)
        return shares.rename(dict(zip(shares.columns, new, strict=True)))

    schema = {one: pl.String() if one == f"{name}_answer" else pl.Float64() for one in new}
    return with_made(data, list(used), make, schema)


def _agreements(
    data: Any, column: str, by: Names | None, answer: str | None, *, smoothing: float, normalize: bool, name: str
) -> Any:
    """Return a table with the share of sampled answers that agree."""
    keys = [] if by is None else [by] if isinstance(by, str) else list(by)
    new = [name] + [f"{name}_answer"] * (by is None and answer is None)
    used = {column: "column"} | dict.fromkeys(keys, "by") | ({} if answer is None else {answer: "answer"})
    check_columns(opened(data).collect_schema().names(), used, new)

    def make(frame: pl.DataFrame) -> pl.DataFrame:
        if keys:
            samples = texts_in(frame.get_column(column), "column=")
            share, counts = of_questions(frame, samples, keys, smoothing=smoothing, normalize=normalize)
            found = pl.DataFrame({name: share})
        else:
            answers = None if answer is None else texts_in(frame.get_column(answer), "answer=")
            samples = samples_in(frame.get_column(column), column)
            shares, counts = of_samples(samples, answers, smoothing=smoothing, normalize=normalize)
            found = shares.select(shares.columns[: len(new)]).rename(dict(zip(shares.columns, new, strict=False)))
        _warn("answer_confidence", counts, frame.height)
        return found

    return with_made(data, list(used), make, dict(zip(new, [pl.Float64(), pl.String()], strict=False)))
