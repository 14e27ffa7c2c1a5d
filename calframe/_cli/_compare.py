"""`calframe compare`: two models on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calframe._cli import _options as given
from calframe._cli._files import reading
from calframe._cli._found import check_given, give, output_option
from calframe._cli._input import check_scores, open_input, score_argument
from calframe._cli._progress import summed
from calframe._cli._terminal import waiting
from calframe._cli._text import label_value

if TYPE_CHECKING:
    from calframe._compare import Comparison

_TWO = 2


def _of_two(
    context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> tuple[dict[str, str], dict[str, str]]:
    """Read `NAME=COLUMN`, given for each class once for the first model, and once more for the second."""
    models: tuple[list[str], list[str]] = ([], [])
    for value in values:
        known = {other.partition("=")[0] for other in models[0]}
        models[value.partition("=")[0] in known].append(value)
    first, second = (given.pairs(context, option, tuple(model)) for model in models)
    return first, second


_SCORE = click.option(
    "--score",
    multiple=True,
    metavar="COLUMN",
    help="Column of predicted probabilities, from 0 to 1, of the first model, and again of the second; a difference is "
    "second minus first. Needed, unless --class names the columns.",
)
_CLASS = click.option(
    "--class",
    "models",
    multiple=True,
    metavar="NAME=COLUMN",
    callback=_of_two,
    help="One class of several: its value in the label, and the column of its probability by the first model. Repeat "
    "it for every class, then for every class with the column of the second model, in place of --score; of two "
    "classes the second is the positive one. Default: two classes, and --score.",
)
_METRIC = click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Metric to compare; repeat it for more, or say `all` (of all but skce, which is slow). Default: brier, "
    "log_loss, auc, ece; of three classes or more brier, log_loss, accuracy, confidence_ece.",
)
_LEVEL = given.confidence_level("Level of each interval by itself, between 0 and 1.")
_ALPHA = given.alpha("Where the adjusted p-value is above it, neither model is called better.")
_RESAMPLES = given.resamples(
    "How often the models change places where no closed law fits; for small p-values of many segments more."
)


@click.command("compare", short_help="Compare two models on the same rows.")
@given.options(
    *(given.FILES, given.LABEL, _SCORE, _CLASS, given.BY, given.WEIGHT, given.CLUSTER, _METRIC, _LEVEL),
    *(
        _ALPHA,
        given.correction(),
        given.bins("15", says="Default: 15."),
        given.STRATEGY,
        given.CLOSED,
        _RESAMPLES,
        given.SEED,
    ),
    *(given.SMOOTHER, given.CLIP, given.FLOOR, given.POSITIVE, given.LINK, given.INVALID, given.WEIGHT_KIND),
    *(output_option("the comparison", drawn=True), given.FORMAT),
)
def compare(*, files: tuple[str, ...], output: Path | None, form: str | None, **arguments: Any) -> None:
    """Compare two models on the same rows of FILE: is the second better, where, and how sure is that.

    Both are measured on the rows where both scores are there. FILE is Parquet, CSV, TSV, Arrow/Feather, NDJSON or JSON,
    told by its suffix; several files of one format and globs make one table, and `-` reads CSV from standard input.
    Only the columns named here are read.

    Example: calframe compare preds.parquet --label late --score p_old --score p_new --by carrier
    """
    _check_two(arguments["score"], *arguments["models"])
    check_given(output, form, files, drawn=True)
    found = _computed(files, **arguments)
    from calframe._cli._compare_view import compare_view  # noqa: PLC0415  rich is for tables, not for --help

    give(found, compare_view, output=output, form=form)


def _check_two(scores: Sequence[str], first: Mapping[str, str], second: Mapping[str, str]) -> None:
    """Refuse a command without two models."""
    check_scores(scores, first, None)
    msg = ""
    if scores and len(scores) != _TWO:
        msg = f"two columns are compared, and --score names {len(scores)}; give it twice."
    elif first and not second:
        msg = "two models are compared, and --class names the columns of one; name each class again for the second."
    if msg:
        raise click.UsageError(msg, click.get_current_context())


def _computed(files: tuple[str, ...], *, positive: str | None, **arguments: Any) -> Comparison:
    from calframe._compare import compare as compute  # noqa: PLC0415  --help need not load it

    label, score, models, by, weight = (arguments.pop(name) for name in ("label", "score", "models", "by", "weight"))
    columns = [*score, *(column for model in models for column in model.values())]
    with reading(files), waiting("Comparing") as progress:
        table = open_input(files, label=label, scores=columns, by=by, weight=weight, cluster=arguments["cluster"])
        return compute(
            table,
            label=label,
            score=list(score) or [score_argument(table, label=label, scores=(), classes=model) for model in models],
            by=list(by) or None,
            weight=weight,
            metrics=given.read_metrics(arguments.pop("metrics")),
            bins=given.read_bins(arguments.pop("bins")),
            n_resamples=arguments.pop("resamples"),
            rng=arguments.pop("seed"),
            positive=label_value(table, label=label, text=positive),
            progress=summed(progress),
            **arguments,
        )
