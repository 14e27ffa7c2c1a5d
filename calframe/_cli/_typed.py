"""What was typed: options that would be dropped without a word are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
from click.core import ParameterSource

from calframe._words._numbers import listed


def check_typed(context: click.Context, typed: Sequence[str]) -> None:
    """Refuse what would be dropped without a word: all but the last value of an option that takes one.

    So is what a weight means, where there is none.

    Parameters
    ----------
    context
        That of the command.
    typed
        What stands behind its name.

    Raises
    ------
    click.UsageError
        Whatever the values are: two that are the same are refused, too.
    """
    *_, order = context.command.make_parser(context).parse_args(list(typed))
    if any(isinstance(one, click.Option) and one.is_eager for one in order):
        return  # help was asked for
    for option in dict.fromkeys(order):
        many = order.count(option)
        if many > 1 and isinstance(option, click.Option) and not (option.multiple or option.is_flag or option.count):
            name = max(option.opts, key=len)
            msg = f"{name} takes one value and is given {many} times; leave one, or run the command once for each."
            raise click.UsageError(msg, context)
    names = {one.name for one in order}
    if "weight_kind" in names and "weight" not in names:
        msg = "--weight-kind says what --weight means; add that, or leave it out."
        raise click.UsageError(msg, context)


def refuse_idle(needed: Mapping[str, bool], unless: str) -> None:
    """Raise if options were typed that nothing reads, also where they say what is the default.

    Parameters
    ----------
    needed
        Names of parameters, and whether anything in this run reads them.
    unless
        What would read them.

    Raises
    ------
    click.UsageError
        Names the options, and what they are for.
    """
    context = click.get_current_context()
    idle = [f"--{name.replace('_', '-')}" for name, read in needed.items() if not read and was_typed(context, name)]
    if idle:
        does, it = ("does", "it") if len(idle) == 1 else ("do", "them")
        msg = f"{listed(idle)} {does} nothing without {unless}; add that, or leave {it} out."
        raise click.UsageError(msg, context)


def was_typed(context: click.Context, name: str) -> bool:
    """Return whether a parameter stands in the command line, be it with its default."""
    return context.get_parameter_source(name) == ParameterSource.COMMANDLINE
