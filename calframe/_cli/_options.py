"""Options that several commands share, each with its meaning, unit and default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])
Decorator: TypeAlias = Callable[[Any], Any]

FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True)
LABEL = click.option(
    "--label",
    required=True,
    metavar="COLUMN",
    help="Column of what happened: 0/1, -1/+1, true/false, or any two values with --positive.",
)
BY = click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Column that makes segments; repeat it for more. Default: no segments.",
)
WEIGHT = click.option(
    "--weight",
    metavar="COLUMN",
    help="Column of row weights, 0 or more; weight 2 counts a row twice. Default: 1 a row.",
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
    help="What the score column holds: probabilities from 0 to 1, or their log-odds.",
)
INVALID = click.option(
    "--invalid",
    type=click.Choice(["raise", "drop"]),
    default="raise",
    show_default=True,
    help="What to do with scores outside 0 to 1 and weights below 0: stop, or leave these rows out and count them.",
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
