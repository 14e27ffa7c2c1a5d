"""The verdict of a gate for a person: a sentence, and what each rule found, worst first."""

from __future__ import annotations

from collections.abc import Sequence

from calframe._cli._cells import NULL, name_text, number_text, range_text
from calframe._cli._grid import Column, grid
from calframe._cli._judged_view import and_more
from calframe._cli._names import name_column
from calframe._cli._notes import wrapped
from calframe._cli._terminal import takes_style, width
from calframe._gate._rules import Finding, Gate, Rule
from calframe._verdicts import CLEAR, LEANS, lean_note
from calframe._words._lines import distinct, printable
from calframe._words._listing import in_clusters
from calframe._words._numbers import interval, points

_SENTENCE_CELLS = 48  # room of a segment's name in a sentence
_SHOWN = 20  # segments of each rule, worst first
_ORDERS = {"gap": "gap", "drift": "change"}
_MOST = {
    "gap": "Most rows misstated",
    "drift": "Most rows moved",
    "max": "Most beyond, times rows",
    "min": "Most beyond, times rows",
}
_REASONS = {
    "beyond the limit": CLEAR,
    "leaning but maybe within the limit": LEANS,
    "undecided": {"unsure"},
    "of too few rows": {"few"},
}
_MEANINGS = {
    "gap": "mean score minus observed rate, in percentage points",
    "drift": "how far that gap has moved from the reference's, in percentage points",
}


def verdict_lines(gate: Gate) -> list[str]:
    """Say in a line whether the gate holds, and in one more what is not decided.

    Parameters
    ----------
    gate
        What was found.

    Returns
    -------
    list of str
        One line or two, without line breaks.
    """
    many = len(gate.findings)
    checks = f"{many:,} check{'' if many == 1 else 's'}"
    if not (gate.tripped or gate.undecided):
        return [
            f"● Holds: {'the check lies within its limit' if many == 1 else f'all {checks} lie within their limits'}."
        ]
    lines = []
    if gate.tripped:
        first, why = gate.failing[0], _reasons(gate.failing)
        lines.append(
            f"{first.words[0]} {'Fails' if why else 'Broken'}: {len(gate.failing):,} of {checks}{why}. "
            f"{_superlative(first)}: {described(first)}."
        )
    if gate.undecided:
        first = gate.undecided[0]
        how = "undecided" if gate.tripped else "undecided, none broken"
        lines.append(f"○ Can't tell yet: {len(gate.undecided):,} of {checks} {how}. First: {described(first)}.")
    return lines


def described(one: Finding) -> str:
    """Return rule, segment, value and interval of a finding in a few words.

    Parameters
    ----------
    one
        The finding.

    Returns
    -------
    str
        Such as `max-gap 0.03 at region=West: +7.7 pp (+6.1 to +9.4), 4,000 rows, over-predicts`.
    """
    rows = f"{one.n:,} row{'' if one.n == 1 else 's'}"
    value = _value(one, unit=True)
    seen = "" if value == NULL else f"{value} ({_interval(one)}), "
    words = one.words[1]
    said = words[:1].lower() + words[1:]
    return f"{one.rule.text} at {distinct([name_text(one.place)], _SENTENCE_CELLS)[0]}: {seen}{rows}, {said}"


def check_view(gate: Gate, *, alpha: float, cluster: str | None) -> str:
    """Lay out a gate: the verdict, then a table for each rule.

    Parameters
    ----------
    gate
        What was found.
    alpha
        Chance of any false alarm of a rule.
    cluster
        The column of clusters, if there is one.

    Returns
    -------
    str
        The text with a line break at its end, within 80 columns.
    """
    tables = [_table(rule, found, alpha) for rule, found in gate.by_rule()]
    tables += [wrapped(printable(said)) for said in in_clusters({"cluster": cluster}, judged=True)]
    return "\n".join(["".join(map(wrapped, verdict_lines(gate))), *tables])


def cells_of(found: Sequence[Finding]) -> list[tuple[str, str, str, str, str]]:
    """Return segment, value, interval, rows and verdict of findings as text."""
    return [
        (name_text(one.place), _value(one), _interval(one), number_text(one.n), " ".join(one.words)) for one in found
    ]


def meaning(rule: Rule, alpha: float) -> str:
    """Return what the numbers under a rule are."""
    what = _MEANINGS.get(rule.kind, rule.metric)
    order = _ORDERS.get(rule.kind, "how far beyond")
    return (
        f"{rule.text}: {what}; {100 * (1 - alpha):g}% intervals that hold together; worst first: by verdict, then rows "
        f"times {order}"
    )


def leanings(found: Sequence[Finding], alpha: float) -> list[str]:
    """Return what is to be said of the findings that lean, if any do, by the words that stand for it."""
    leaning = {one.words[1].lower(): one for one in found if one.verdict in LEANS}
    said = [
        lean_note([one.verdict], alpha, word=word, what=f"the {_ORDERS.get(one.rule.kind, 'value')}", limit="limit")
        for word, one in leaning.items()
    ]
    return [text for text in said if text is not None]


def _table(rule: Rule, found: Sequence[Finding], alpha: float) -> str:
    shown = cells_of(found[:_SHOWN])
    _, values, intervals, rows, verdicts = zip(*shown, strict=True)
    columns = [
        name_column("segment", [one.place for one in found], shown=len(shown)),
        Column(head=rule.metric if rule.kind != "drift" else "change", cells=values, right=True),
        Column(head="interval", cells=intervals, right=True),
        Column(head="rows", cells=rows, right=True),
        Column(head="verdict", cells=verdicts),
    ]
    text = wrapped(meaning(rule, alpha)) + grid(columns, width=width(), style=takes_style())
    return text + and_more(len(found) - len(shown)) + "".join(map(wrapped, leanings(found, alpha)))


def _reasons(failing: Sequence[Finding]) -> str:
    """Say why checks fail, unless all of them lie beyond their limits."""
    counts = [sum(one.verdict in verdicts for one in failing) for verdicts in _REASONS.values()]
    said = [f"{count:,} {why}" for why, count in zip(_REASONS, counts, strict=True) if count]
    return "" if counts[0] == len(failing) else f" ({', '.join(said)})"


def _superlative(first: Finding) -> str:
    """Say what the first finding of its verdict has most of; nothing of one whose value tells little or is hidden."""
    return _MOST[first.rule.kind] if first.verdict in CLEAR | LEANS else "First"


def _value(one: Finding, *, unit: bool = False) -> str:
    if one.rule.kind in {"gap", "drift"}:
        return points(one.observed, unit=unit and one.observed is not None)
    return number_text(one.observed)


def _interval(one: Finding) -> str:
    if one.rule.kind in {"gap", "drift"}:
        return interval(one.low, one.high)
    return range_text(one.low, one.high)
