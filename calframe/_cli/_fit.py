"""`calframe fit`: a calibration map from a table with outcomes, as a file."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import click

from calframe._cli import _options as given
from calframe._cli._files import reading
from calframe._cli._input import check_scores, open_input, score_argument
from calframe._cli._output import check_target, file_size, put
from calframe._cli._terminal import emit, waiting
from calframe._cli._text import label_value
from calframe._cli._typed import was_typed
from calframe._fit import fit as compute
from calframe._maps._class_methods import CLASS_METHODS
from calframe._maps._fit_options import Free
from calframe._maps._fits import Pooling
from calframe._maps._map import CalibrationMap
from calframe._maps._methods import METHODS

_SUFFIXES = (".json",)
_PLATT = "platt"

_SCORE = click.option(
    "--score",
    multiple=True,
    metavar="COLUMN",
    help="Column of predicted probabilities, from 0 to 1 (or see --link). Needed, unless --class names the columns.",
)
_METHOD = click.option(
    "--method",
    default="beta",
    show_default=True,
    metavar="NAME",
    help="How the map is made. One score: beta, platt, temperature, isotonic, histogram, spline, venn_abers or "
    "identity. Three classes or more: temperature, vector, matrix, dirichlet, structured or identity, or ovr_ and a "
    "method for one score, such as ovr_beta, for each class against the rest.",
)
_POOLING = click.option(
    "--pooling",
    type=click.Choice(list(get_args(Pooling))),
    help="How segments are fitted: each alone (none), small ones shrunk towards the pooled map (partial), or all "
    "together (complete). Default: partial where the method can, else none.",
)
_PARAMETERS = click.option(
    "--parameters",
    type=click.Choice(list(get_args(Free))),
    default="abm",
    show_default=True,
    help="Which parameters of beta are free: all three, one slope and the midpoint, or two slopes.",
)
_INTERPOLATION = click.option(
    "--interpolation",
    type=click.Choice(["linear", "step"]),
    default="linear",
    show_default=True,
    help="How isotonic joins its blocks: by straight lines, or by steps.",
)
_EPSILON = click.option(
    "--epsilon",
    type=click.FloatRange(0.0, 0.5, min_open=True, max_open=True),
    metavar="PROBABILITY",
    help="Keep what isotonic gives this far from 0 and 1, such as 0.001: a 0 or 1 makes the log loss of one surprise "
    "infinite. Default: as it is.",
)
_BINS = given.bins("15", says="Only for histogram. Default: 15.")
_SMOOTHING = click.option(
    "--target-smoothing",
    metavar="platt|SHARE",
    help="Soften the labels that the likelihood fits see: Platt's targets, or mixed with this share of equal chances, "
    "such as 0.05. Default: labels as they are.",
)
_OFF_DIAGONAL = click.option(
    "--off-diagonal",
    type=click.FloatRange(min=0.0),
    default=0.0,
    show_default=True,
    metavar="PENALTY",
    help="Penalty of dirichlet on the squares of its matrix outside the diagonal, added to the mean loss.",
)
_INTERCEPT = click.option(
    "--intercept",
    type=click.FloatRange(min=0.0),
    default=0.0,
    show_default=True,
    metavar="PENALTY",
    help="Penalty of dirichlet on the squares of its intercepts.",
)
_OUTPUT = given.output_file("the map to this file (.json), for `calframe apply` and calframe.load_map.", required=True)


@click.command("fit", short_help="Fit a calibration map, one curve a segment.")
@given.options(
    *(given.FILES, given.LABEL, _SCORE, given.CLASS, given.BY, given.WEIGHT, _METHOD, _POOLING, _PARAMETERS),
    *(_INTERPOLATION, _EPSILON, _BINS, given.STRATEGY, given.CLOSED, _SMOOTHING, _OFF_DIAGONAL, _INTERCEPT),
    *(given.POSITIVE, given.LINK, given.INVALID, given.WEIGHT_KIND, _OUTPUT),
)
def fit(*, files: tuple[str, ...], output: Path, **arguments: Any) -> None:
    """Fit a calibration map to FILE: what its scores should have been, learned from what happened.

    The map goes to a file, and `calframe apply` uses it on scores whose outcome is not known yet. Numbers judged on the
    rows that a map was fitted to are too good: judge it on other rows, in Python by calframe.validate.

    FILE is Parquet, CSV, TSV, Arrow/Feather, NDJSON or JSON, told by its suffix; several files of one format and globs
    make one table, and `-` reads CSV from standard input. Only the columns named here are read.

    Example: calframe fit preds.parquet --label late --score p --by carrier -o maps.json
    """
    check_scores(arguments["score"], arguments["classes"], None)
    _check_method(arguments["method"], arguments)
    check_target(output, suffixes=_SUFFIXES, sources=files, option="--output")
    found = _computed(files, **arguments)
    put(output, found.save)
    _print(found, by=arguments["by"])
    click.echo(f"Wrote {output} ({file_size(output)}).", err=True)


def _check_method(method: str, names: Iterable[str]) -> None:
    """Refuse options of other methods, also where they say what is the default."""
    context = click.get_current_context()
    takers = {
        name: [one for one, each in {**METHODS, **CLASS_METHODS}.items() if name in _options(one)] for name in names
    }
    mine = method.removeprefix("ovr_")
    for name, methods in takers.items():
        if was_typed(context, name) and methods and mine not in methods:
            *first, last = methods
            listed = f"{', '.join(first)} or {last}" if first else last
            msg = f"--{name.replace('_', '-')} goes with --method {listed}, not with {method}; leave it out."
            raise click.UsageError(msg, context)


def _options(method: str) -> set[str]:
    """Return the options of a method, of one score or of several classes."""
    return {name for each in (METHODS, CLASS_METHODS) if method in each for name in each[method].options}


def _computed(
    files: tuple[str, ...], *, positive: str | None, target_smoothing: str | None, bins: str, **arguments: Any
) -> CalibrationMap:
    label, score, classes, by, weight = (arguments.pop(name) for name in ("label", "score", "classes", "by", "weight"))
    with reading(files), waiting("Fitting the map"):
        table = open_input(files, label=label, scores=[*score, *classes.values()], by=by, weight=weight)
        scores: Any = score_argument(table, label=label, scores=score, classes=classes)
        return compute(
            table,
            label=label,
            score=scores,
            by=list(by) or None,
            weight=weight,
            bins=given.read_bins(bins),
            target_smoothing=_smoothing(target_smoothing),
            positive=label_value(table, label=label, text=positive),
            **arguments,
        )


def _smoothing(text: str | None) -> bool | float:
    if text is None or text == _PLATT:
        return text is not None
    with suppress(ValueError):
        if 0.0 < (share := float(text)) < 1.0:
            return share
    msg = f"{text!r} is neither `platt` nor a share between 0 and 1, such as 0.05."
    raise click.BadParameter(msg, param_hint="'--target-smoothing'")


def _print(found: CalibrationMap, *, by: tuple[str, ...]) -> None:
    from calframe._cli._fit_view import fit_view  # noqa: PLC0415  rich is for results, not for --help

    emit(fit_view(found, by=by))
