"""`calframe test`: could right scores have shown this."""

from __future__ import annotations

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
from calframe._typing import TEST_METHODS

if TYPE_CHECKING:
    from calframe._inference import TestResult

_METHOD = click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(TEST_METHODS),
    metavar="NAME",
    help=f"Test; repeat it for more: {', '.join(TEST_METHODS)}. Default: resampling, which draws labels from the "
    "scores.",
)
_STATISTIC = click.option(
    "--statistic",
    default="ece",
    show_default=True,
    metavar="METRIC",
    help="Measure of the test by resampling: any metric that depends on the labels.",
)
_BINS = given.bins(None, says="Default: 15 for the statistic, 10 groups of Hosmer and Lemeshow.")
_STRATEGY = click.option(
    "--strategy",
    type=click.Choice(["uniform", "quantile"]),
    help="How a number of them is placed: with equal width, or with about equal weight. Default: bins uniform, groups "
    "quantile.",
)
_DF = click.option(
    "--df",
    type=click.Choice(["external", "internal"]),
    default="external",
    show_default=True,
    help="Degrees of freedom of Hosmer and Lemeshow: for scores of a model fitted on other rows, or on these.",
)
_ALTERNATIVE = click.option(
    "--alternative",
    type=click.Choice(["greater", "less", "two-sided"]),
    help="Which values of the statistic are evidence. Default: greater for errors, less for auc and accuracy, "
    "two-sided for all else.",
)
_KERNEL_LAW = click.option(
    "--kernel-law",
    type=click.Choice(["resampled", "asymptotic", "block", "distribution_free"]),
    default="resampled",
    show_default=True,
    metavar="NAME",
    help="Law of the kernel test: resampled, asymptotic, block or distribution_free.",
)
_RESAMPLES = given.resamples(
    "How often labels are drawn; for small p-values of many segments as much more as they ask for."
)
_INEQUALITY = click.option(
    "--inequality",
    type=click.Choice([">=", ">"]),
    default=">=",
    show_default=True,
    help="p = (1 + draws that come as far) / (1 + draws), or the plain share of draws that come further.",
)
_ALPHA = given.alpha("An adjusted p-value up to this rejects.")


@click.command("test", short_help="Test whether right scores could have shown this.")
@given.options(
    *(given.FILES, given.LABEL, given.SCORE, given.CLASS, given.BY, given.WEIGHT, given.CLUSTER, _METHOD, _STATISTIC),
    *(_ALPHA, given.correction("max"), _ALTERNATIVE, _BINS, _STRATEGY, given.CLOSED, _DF, _KERNEL_LAW, _RESAMPLES),
    *(_INEQUALITY, given.SEED, given.SMOOTHER, given.CLIP, given.FLOOR, given.POSITIVE, given.LINK, given.INVALID),
    *(given.WEIGHT_KIND, output_option("the tests"), given.FORMAT),
)
def test(*, files: tuple[str, ...], output: Path | None, form: str | None, **arguments: Any) -> None:
    """Test, segment by segment of FILE, whether scores that are right could have shown this.

    A small p-value says that they hardly could. A large one is no proof of right scores: how far off they may still be
    is what `calframe audit` says. FILE is Parquet, CSV, TSV, Arrow/Feather, NDJSON or JSON, told by its suffix; several
    files of one format and globs make one table, and `-` reads CSV from standard input. Only the columns named here are
    read. As JSON the result holds the groups of Hosmer and Lemeshow, too.

    Example: calframe test preds.parquet --label late --score p --by carrier --method spiegelhalter --method cox
    """
    check_scores(arguments["score"], arguments["classes"], None)
    check_given(output, form, files)
    found = _computed(files, **arguments)
    from calframe._cli._inference_view import test_view  # noqa: PLC0415  rich is for tables, not for --help

    give(found, test_view, output=output, form=form)


test.__test__ = False  # type: ignore[attr-defined]  # no test of pytest's


def _computed(files: tuple[str, ...], *, positive: str | None, **arguments: Any) -> TestResult:
    from calframe._inference import test as compute  # noqa: PLC0415  --help need not load it

    label, score, classes, by, weight = (arguments.pop(name) for name in ("label", "score", "classes", "by", "weight"))
    bins, columns = arguments.pop("bins"), [*score, *classes.values()]
    with reading(files), waiting("Testing") as progress:
        table = open_input(files, label=label, scores=columns, by=by, weight=weight, cluster=arguments["cluster"])
        return compute(
            table,
            label=label,
            score=score_argument(table, label=label, scores=score, classes=classes),
            by=list(by) or None,
            weight=weight,
            method=list(arguments.pop("methods")) or "resampling",
            bins=None if bins is None else given.read_bins(bins),
            n_resamples=arguments.pop("resamples"),
            rng=arguments.pop("seed"),
            positive=label_value(table, label=label, text=positive),
            progress=summed(progress),
            **arguments,
        )
