"""Options that several commands share, each with its meaning, unit and default."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])
Decorator: TypeAlias = Callable[[Any], Any]


def pairs(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Read `NAME=COLUMN`, given once for each class."""
    named: dict[str, str] = {}
    for value in values:
        name, equals, column = value.partition("=")
        if not (name and equals and column):
            msg = f"{value!r} is not a class and its column, such as cat=p_cat."
            raise click.BadParameter(msg)
        if name in named or column in named.values():
            msg = f"class {name!r} or column {column!r} is named twice; each class has a column of its own."
            raise click.BadParameter(msg)
        named[name] = column
    if len(named) == 1:
        msg = f"{values[0]!r} is the only class; name them all. For one column of probabilities use --score."
        raise click.BadParameter(msg)
    return named


def resamples(says: str) -> Decorator:
    """Make the option `--resamples`; `says` is what the draws are for."""
    return click.option(
        "--resamples",
        type=click.IntRange(20, 1_000_000),
        default=1000,
        show_default=True,
        metavar="NUMBER",
        help=says,
    )


def alpha(says: str, *, kind: Any = float) -> Decorator:
    """Make the option `--alpha`; `says` is what its level means, `kind` which ones are taken."""
    return click.option("--alpha", type=kind, default=0.05, show_default=True, metavar="LEVEL", help=says)


def confidence_level(says: str, *, default: float | None = 0.95) -> Decorator:
    """Make the option `--confidence-level`; `says` is what has that level."""
    return click.option(
        "--confidence-level",
        type=float,
        default=default,
        show_default=default is not None,
        metavar="LEVEL",
        help=says,
    )


def interval(says: str) -> Decorator:
    """Make the option `--interval`; `says` is what it is an interval of, and its default."""
    return click.option(
        "--interval",
        type=click.Choice(["wilson", "clopper_pearson", "jeffreys"]),
        help=f"Kind of interval of {says}",
    )


def output_file(says: str, *, required: bool = False) -> Decorator:
    """Make the option `--output`; `says` is what is written, and its default."""
    return click.option(
        "-o", "--output", required=required, type=click.Path(path_type=Path), metavar="FILE", help=f"Write {says}"
    )


def json_output(says: str) -> Decorator:
    """Make the option `--json`; `says` is what is written."""
    return click.option(
        "--json",
        "json_output",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"Write {says} to this file (.json) as well; - prints it, and nothing else. Default: no such file.",
    )


ALL = "all"
EACH_VALUE = "one a value, of numbers too"

FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True)
LABEL = click.option(
    "--label",
    required=True,
    metavar="COLUMN",
    help="Column of what happened: 0/1, -1/+1, true/false, or any two values with --positive.",
)
SCORE = click.option(
    "--score",
    multiple=True,
    metavar="COLUMN",
    help="Column of predicted probabilities, from 0 to 1; repeat it to set models side by side. Needed, unless "
    "--class names the columns.",
)
SCORES = click.option(
    "--score",
    multiple=True,
    required=True,
    metavar="COLUMN",
    help="Column of predicted probabilities, from 0 to 1 (or see --link); repeat it to set models side by side.",
)
ONE_SCORE = click.option(
    "--score", required=True, metavar="COLUMN", help="Column of predicted probabilities, from 0 to 1 (or see --link)."
)
CLASS = click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="NAME=COLUMN",
    callback=pairs,
    help="One class of several: its value in the label, and the column of its probability. Repeat it for every class, "
    "in place of --score; of two classes the second is the positive one. Default: two classes, and --score.",
)
STRATEGY = click.option(
    "--strategy",
    type=click.Choice(["uniform", "quantile"]),
    default="uniform",
    show_default=True,
    help="How a number of bins is placed: with equal width, or with about equal weight in each segment.",
)
CLOSED = click.option(
    "--closed",
    type=click.Choice(["left", "right"]),
    default="left",
    show_default=True,
    help="Which side of a bin belongs to it: a score on an edge goes up with left, down with right.",
)
RESAMPLES = resamples("How often intervals that need it draw the rows anew.")
SEED = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="NUMBER",
    help="Where those draws start: the same number gives the same result.",
)
BY = click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help=f"Column that makes segments, {EACH_VALUE}; repeat it for more. Default: no segments.",
)
WEIGHT = click.option(
    "--weight",
    metavar="COLUMN",
    help="Column of row weights, 0 or above: weight 2 counts a row twice (in intervals see --weight-kind; give "
    "importances a mean of 1). Default: every row counts once.",
)
WEIGHT_KIND = click.option(
    "--weight-kind",
    type=click.Choice(["importance", "frequency"]),
    default="importance",
    show_default=True,
    help="What a weight means in intervals and tests: how much a row counts, or how many rows it stands for.",
)
POSITIVE = click.option("--positive", metavar="VALUE", help="Label value that counts as positive. Default: 1 or true.")
LINK = click.option(
    "--link",
    type=click.Choice(["probability", "logit"]),
    default="probability",
    show_default=True,
    help="What the score column holds: probabilities from 0 to 1, or their log-odds, ln(p / (1 - p)).",
)
FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "md"]),
    help="How to print the table: rounded (table, md) or with every digit (csv, json). Default: table.",
)
INVALID = click.option(
    "--invalid",
    type=click.Choice(["raise", "drop"]),
    default="raise",
    show_default=True,
    help="What to do with scores outside 0 to 1 and weights below 0: stop, or leave these rows out and count them.",
)
TIME = click.option(
    "--time",
    metavar="COLUMN",
    help="Column of dates or times (as text: 2013-12-31, 2013-12-31T08:00), for the course over time. Default: no "
    "course.",
)
ZONE = click.option(
    "--time-zone",
    metavar="ZONE",
    help="Time zone in which days begin, such as Europe/Paris. Default: that of the column.",
)
TOLERANCE = click.option(
    "--tolerance",
    type=float,
    default=0.03,
    show_default=True,
    metavar="GAP",
    help="Largest gap between mean score and observed rate that does no harm; 0.03 is 3 percentage points.",
)
ALPHA = alpha("Accepted chance of any false alarm, over all segments together.")
PERIOD = click.option(
    "--every",
    type=click.Choice(["1d", "1w", "1mo", "1q", "1y", "auto"]),
    default="1mo",
    show_default=True,
    callback=lambda _context, _option, value: None if value == "auto" else value,
    help="Length of a period: day, week, month, quarter or year. A period needs 100 rows to be judged. `auto`: the "
    "longest that gives at least six; a longer one that gives at least two where most would have fewer rows.",
)
REFERENCE = click.option(
    "--reference",
    metavar="PERIOD",
    help="Periods that the others are compared with: `first`, a name (Jan 2024), a date in it, a month (2024-01), a "
    "year, or two of these with .. between (2024-01..2024-06). Default: the first third of the periods.",
)
SMOOTHER = click.option(
    "--smoother",
    type=click.Choice(["loess", "loess_direct", "lowess"]),
    default="loess",
    show_default=True,
    help="The smooth curve behind the metrics ici, e50, e90 and emax: R's loess, the same fitted at each score, or R's "
    "lowess.",
)
CLIP = click.option(
    "--clip",
    type=float,
    metavar="PROBABILITY",
    help="Keep scores this far from 0 and 1 in the log loss, such as 1e-15. Default: as they are; it can be infinite.",
)
FLOOR = click.option(
    "--floor",
    type=float,
    default=1e-12,
    show_default=True,
    metavar="PROBABILITY",
    help="Keep scores this far from 0 and 1 in slope, intercept, citl and Cox's test, which need log-odds.",
)
CLUSTER = click.option(
    "--cluster",
    metavar="COLUMN",
    help="Column that says which rows belong together, such as those of one person: they are not taken as independent. "
    "Default: every row by itself.",
)


def correction(*names: str) -> Decorator:
    """Make the option `--correction`.

    Parameters
    ----------
    *names
        What it can be besides the usual ones.

    Returns
    -------
    callable
        The decorator.
    """
    usual = ["holm", "bonferroni", "benjamini_hochberg", "benjamini_yekutieli", *names, "none"]
    return click.option(
        "--correction",
        type=click.Choice(usual),
        default="holm",
        show_default=True,
        metavar="NAME",
        help=f"How p-values are adjusted for their number: {', '.join(usual[:-1])} or none.",
    )


def options(*decorators: Decorator) -> Callable[[_Command], _Command]:
    """Attach arguments and options to a command in the order in which its help shows them.

    Parameters
    ----------
    *decorators
        What `click.argument` and `click.option` made.

    Returns
    -------
    callable
        One decorator for the function behind the command.
    """

    def attach(command: _Command) -> _Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return attach


def notion(says: str) -> Decorator:
    """Make the option `--notion`.

    Parameters
    ----------
    says
        How its help ends, with its default.

    Returns
    -------
    callable
        The decorator.
    """
    return click.option(
        "--notion",
        type=click.Choice(["confidence", "classwise"]),
        help="What to make of several classes: the largest score against whether its class happened, or each class "
        f"against the rest. {says}",
    )


def bins(default: str | None, *, says: str) -> Decorator:
    """Make the option `--bins`.

    Parameters
    ----------
    default
        What is used where it is not given.
    says
        How its help says that.

    Returns
    -------
    callable
        The decorator; `read_bins` reads what was typed.
    """
    return click.option(
        "--bins",
        default=default,
        metavar="NUMBER|EDGES|auto",
        help="Number of bins of the score, their edges with commas (0,0.1,0.5,1), or `auto`: bins of equal weight, in "
        f"each segment as many as the cube root of its rows. {says}",
    )


def read_bins(text: str) -> int | list[float] | Literal["auto"]:
    """Read the value of `--bins`.

    Parameters
    ----------
    text
        What was typed.

    Returns
    -------
    int, list of float, or "auto"
        As the functions take it.

    Raises
    ------
    click.BadParameter
        If it is none of them.
    """
    if text == "auto":
        return "auto"
    try:
        return [float(edge) for edge in text.split(",")] if "," in text else int(text)
    except ValueError:
        msg = f"{text!r} is neither a whole number nor `auto` nor edges with commas, such as 0,0.1,0.5,1."
        raise click.BadParameter(msg, param_hint="'--bins'") from None


def read_reference(text: str | None) -> str | tuple[str, ...] | None:
    """Read the value of `--reference`.

    Parameters
    ----------
    text
        What was typed.

    Returns
    -------
    str, tuple of two str, or None
        As the functions take it.
    """
    return tuple(part.strip() for part in text.split("..", 1)) if text is not None and ".." in text else text


def read_metrics(names: tuple[str, ...]) -> list[str] | str | None:
    """Read what `--metric` names, each time it is given.

    Parameters
    ----------
    names
        What was typed.

    Returns
    -------
    list of str, "all" or None
        As the functions take it.
    """
    return ALL if ALL in names else list(names) or None
