"""The reference group of an audit: which crossings belong to it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calframe._auditing._crossings import Levels
from calframe._errors import ArgumentError
from calframe._typing import Bools

_SHOWN = 12  # values named in an error


def check_reference(reference: Any, by: Sequence[str]) -> dict[str, Any]:
    """Return the value of each column that makes the reference group; none where no reference is asked for.

    Parameters
    ----------
    reference : mapping of str to object, object or None
        As given; a plain value is one of the only segment column.
    by : sequence of str
        The segment columns.
    """
    if reference is None:
        return {}
    if not isinstance(reference, Mapping):
        if len(by) != 1:
            msg = (
                f"reference={reference!r} does not say of which column; with several segment columns pass a mapping, "
                f"for example reference={{{by[0]!r}: {reference!r}}}."
            )
            raise ArgumentError(msg)
        return {by[0]: reference}
    if not reference:
        msg = "reference={} names no group; leave it out to compare with all other rows."
        raise ArgumentError(msg)
    for column in reference:
        if column not in by:
            msg = f"reference names {column!r}, which is not among the segment columns by={list(by)}."
            raise ArgumentError(msg)
    return dict(reference)


def reference_group(reference: Mapping[str, Any], levels: Sequence[Levels]) -> Bools:
    """Return which finest crossings belong to the reference group: those with all its values."""
    inside = np.ones(len(levels[0].codes), dtype=np.bool_)
    for level in levels:
        if level.column in reference:
            inside &= level.codes == _place(level, reference[level.column])
    if not inside.any():
        named = " & ".join(f"{column}={value!r}" for column, value in reference.items())
        msg = f"reference {named} has no row; each of its values occurs, but never together."
        raise ArgumentError(msg)
    return inside


def _place(level: Levels, value: Any) -> int:
    """Return the place of a value, given as it is or by its name."""
    for place, known in enumerate(level.values.to_list()):
        if known is None or value is None:
            found = known is None and value is None
        else:
            found = type(known) is type(value) and known == value
        if found:
            return place
    if value is not None and str(value) in level.names:
        return level.names.index(str(value))
    near = difflib.get_close_matches(str(value), level.names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(map(repr, level.names[:_SHOWN])) + (", …" if len(level.names) > _SHOWN else "")
    msg = f"reference value {value!r} does not occur in column {level.column!r}, which has {shown}.{hint}"
    raise ArgumentError(msg)
