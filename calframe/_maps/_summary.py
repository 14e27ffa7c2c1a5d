"""A map in words: what it does to each segment, in a sentence by rule, and what it is in a line."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from calframe._maps._forms import Softmax
from calframe._maps._map import CalibrationMap
from calframe._maps._segments import key_text
from calframe._maps._traces import POOLED, ends_of, several, traced
from calframe._results import html_table
from calframe._typing import Floats, Ints

_STEPS = 100  # of the fitted range, along which a map is looked at
_SHOWN = (0.1, 0.5, 0.9)  # shares of the fitted range, and scores that are taken instead
_NEAR = 0.1  # if they are at most this share of the range away
_SMALL = 0.005  # changes below it are none
_SMALL_SHARE = 0.05  # and below this share of the scores, where all of them are near 0 or near 1
_MINOR = 0.1  # share of all changes that stretches may have together and be passed over
_TINY = 0.01  # and one of two stretches
_MIDDLE = (0.4, 0.6)
_FEWEST_DIGITS, _MOST_DIGITS = 2, 6
_LINE = 80  # characters
_SHORTEST = 12  # characters left of the names in a line
_HTML_ROWS = 20
_TAKES = "takes the pooled map"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """What a map does along the fitted range of one segment: scores, and what it makes of them, class by class."""

    at: Floats
    value: Floats
    shown: Floats
    shown_value: Floats
    small: float
    classes: tuple[Any, ...]

    @property
    def change(self) -> Floats:
        """The change, the mean over classes."""
        found: Floats = self.value.mean(axis=1) - self.at
        return found

    @property
    def largest(self) -> float:
        """The largest change of any class, with its sign."""
        changes = (self.value - self.at[:, None]).ravel()
        return float(changes[np.abs(changes).argmax()])


class _Turn(NamedTuple):
    """A stretch of scores that are raised, or lowered: where it begins, and the sum of its changes."""

    raises: bool
    start: float
    size: float


def summary_table(the_map: CalibrationMap, *, rows: int | None = None) -> pl.DataFrame:
    """Return the pooled map and the segments with what the map does to each; at most so many rows."""
    segments = the_map.segments
    place = np.arange(POOLED, len(segments))[:rows]
    courses = _courses(the_map, place)
    texts = [_said(the_map, int(i), course) for i, course in zip(place, courses, strict=True)]
    keys = [pl.concat([pl.Series(key.name, [None], dtype=key.dtype), key]).head(len(place)) for key in segments.keys]
    found = {
        "n": pl.Series([the_map.n, *segments.n.tolist()][: len(place)], dtype=pl.Int64),
        "largest_change": pl.Series([None if one is None else one.largest for one in courses], dtype=pl.Float64),
        "summary": pl.Series(texts, dtype=pl.String),
        "note": pl.Series(["; ".join(the_map.notes) or None, *segments.note][: len(place)], dtype=pl.String),
    }
    return pl.DataFrame({key.name: key for key in keys} | found)


def card(the_map: CalibrationMap) -> str:
    """Return a small HTML table of what the map does."""
    table = summary_table(the_map, rows=_HTML_ROWS)
    beyond = len(the_map.segments) + 1 - len(table)
    keys = [
        pl.Series(name, ["(pooled)", *(key_text(value) for value in table.get_column(name).to_list()[1:])])
        for name in the_map.segments.by
    ]
    more = f"; {beyond:,} more segment{'' if beyond == 1 else 's'} in .summary()" if beyond > 0 else ""
    caption = ". ".join([f"Calibration map of {', '.join(the_map.scores)}: {_what(the_map)}{more}", *the_map.notes])
    return html_table(table.with_columns(keys), caption=caption)


def line(the_map: CalibrationMap) -> str:
    """Return what the map is, in a line of at most 80 characters; names are cut before anything else is."""
    usual = ("; .table, .apply(data), .save(path)", "; .summary()", "")
    for tail in ("; .summary(), .notes", "; .notes", "") if the_map.notes else usual:
        found = f"<CalibrationMap: {_what(the_map)}{tail}>"
        if _width(found) <= _LINE:
            return found
    names = _plain(", ".join(the_map.segments.by))
    room = max(_LINE - (_width(found) - _width(names)), _SHORTEST)
    return f"<CalibrationMap: {_what(the_map, names=_cut(names, room))}>"


def _what(the_map: CalibrationMap, *, names: str | None = None) -> str:
    segments = the_map.segments
    names = _plain(", ".join(segments.by)) if names is None else names
    by = f" by {names}: {_counted(len(segments), 'segment')}" if segments.by else ""
    return f"{the_map.method}{by}, from {_counted(the_map.n, 'row')}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _plain(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def _cut(text: str, room: int) -> str:
    while _width(text) > room - 1:
        text = text[:-1]
    return f"{text}…"


# ---------------------------------------------------------------- along the scores
def _courses(the_map: CalibrationMap, place: Ints) -> list[_Course | None]:
    """Return what the map does along the fitted range of segments; None for those without rows."""
    low, high = ends_of(the_map, place)
    there = np.isfinite(low)
    low, high = low[there], high[there]
    share = np.linspace(0.0, 1.0, _STEPS + 1)
    grid = np.clip(low[:, None] + (high - low)[:, None] * share, low[:, None], high[:, None])
    shown = np.array([_shown(*ends) for ends in zip(low.tolist(), high.tolist(), strict=True)]).reshape(len(low), -1)
    both = np.hstack([grid, shown])
    made = traced(the_map, np.repeat(place[there], both.shape[1]), both.ravel()).value
    value = made.reshape(*both.shape, made.shape[1])
    room = np.minimum(high, 1.0 - low)
    classes = the_map.classes if several(the_map) else ()
    found = (
        _Course(
            at=grid[i],
            value=value[i, : _STEPS + 1],
            shown=shown[i],
            shown_value=value[i, _STEPS + 1 :],
            small=min(_SMALL, _SMALL_SHARE * float(room[i])),
            classes=classes,
        )
        for i in range(len(low))
    )
    return [next(found) if each else None for each in there]


def _shown(low: float, high: float) -> list[float]:
    """Return the three scores that are written out, of which some may be equal."""
    scores = [(share, low + (high - low) * share) for share in _SHOWN]
    return [
        even if low <= even <= high and abs(even - score) <= _NEAR * (high - low) else _inside(score, low, high)
        for even, score in scores
    ]


def _inside(score: float, low: float, high: float) -> float:
    """Round a score, but not out of the range."""
    return min(max(round(score, _digits(score)), low), high)


def _digits(score: float) -> int:
    """Return the decimals that show two figures of a probability, or of what it lacks to 1."""
    room = min(score, 1.0 - score)
    if room <= 0.0:
        return _FEWEST_DIGITS
    return min(max(_FEWEST_DIGITS, 1 + math.ceil(-math.log10(room) - 1e-9)), _MOST_DIGITS)


def _number(score: float) -> str:
    """Return a probability as text, never as a 0 or 1 that it is not."""
    text = f"{score:.{_digits(score)}f}".rstrip("0").rstrip(".")
    least = 10.0**-_MOST_DIGITS
    if text == "0" and score > 0.0:
        return f"< {least:f}"
    return f"> {1.0 - least:f}" if text == "1" and score < 1.0 else text


# ---------------------------------------------------------------- in words
def _said(the_map: CalibrationMap, place: int, course: _Course | None) -> str:
    if place != POOLED and the_map.segments.curve[place] == 0:
        why = (the_map.segments.note[place] or "").removesuffix(_TAKES).removesuffix(": ")
        return f"{_TAKES}: {why}" if why else _TAKES
    if course is None:
        return "no usable rows"
    text = _of_classes(course) if course.classes else _of_scores(course, "scores")
    temperature = the_map.form.temperature if isinstance(the_map.form, Softmax) else None
    if temperature is None:
        return text
    curve = 0 if place == POOLED else the_map.segments.curve[place]
    return f"temperature {temperature[curve]:.3g} {text}"


def _of_scores(course: _Course, what: str) -> str:
    """Return what happens to scores, or to the largest of several."""
    size = float(np.abs(course.change).max())
    if size < course.small:
        return f"leaves {what} {'' if size == 0.0 else 'nearly '}as they are"
    mean = course.value.mean(axis=1)
    if np.ptp(mean) < course.small <= np.ptp(course.at):
        return f"gives all {what} nearly the same, {_number(float(mean.mean()))}"
    pairs = dict(zip(course.shown.tolist(), course.shown_value.mean(axis=1).tolist(), strict=True))
    written = ", ".join(f"{_number(at)} -> {_number(value)}" for at, value in pairs.items())
    return f"{_pattern(course, what)}: {written}"


def _pattern(course: _Course, what: str) -> str:
    """Return where scores are raised and where lowered."""
    turns = _turns(course)
    main = _main(turns)
    mostly = "mostly " if len(main) < len(turns) else ""
    if len(main) == 1:
        every = "all " if float(np.abs(course.change).min()) >= course.small else ""
        return f"{mostly}{'raises' if main[0].raises else 'lowers'} {every}{what}"
    if len(main) > 2:
        return f"raises and lowers {what} by turns"
    across = main[1].start
    if what == "scores" and _MIDDLE[0] <= across <= _MIDDLE[1]:
        return f"{mostly}{'pulls scores towards' if main[0].raises else 'pushes scores away from'} the middle"
    first, then = ("raises", "lowers") if main[0].raises else ("lowers", "raises")
    return f"{mostly}{first} {what} below {_number(across)} and {then} those above"


def _turns(course: _Course) -> list[_Turn]:
    """Return the stretches of changes that are not small."""
    change = course.change
    there = np.flatnonzero(np.abs(change) >= course.small)
    raises = change[there] > 0.0
    first = np.append(0, np.flatnonzero(raises[1:] != raises[:-1]) + 1)
    sizes = np.add.reduceat(np.abs(change[there]), first)
    turns = []
    for i, size in zip(first.tolist(), sizes.tolist(), strict=True):
        between = slice(there[max(i - 1, 0)], there[i] + 1)
        turns.append(_Turn(bool(raises[i]), _crossing(course.at[between], change[between]), size))
    return turns


def _main(turns: list[_Turn]) -> list[_Turn]:
    """Return the stretches that are left when minor ones are passed over."""
    left, lost, total = list(turns), 0.0, sum(turn.size for turn in turns)
    while len(left) > 1:
        i = min(range(len(left)), key=lambda i: left[i].size)
        lost += left[i].size
        if lost > total * (_MINOR if len(left) > 2 else _TINY):
            break
        between = 0 < i < len(left) - 1
        if between:
            left[i - 1] = left[i - 1]._replace(size=left[i - 1].size + left[i + 1].size)
        left[i : i + 1 + between] = []
    return left


def _crossing(at: Floats, change: Floats) -> float:
    """Return the score where changes turn their sign, to two decimals or figures."""
    i = next((i for i in range(len(at) - 1) if change[i] * change[i + 1] <= 0.0), None)
    if i is None:
        return float(at[0])
    share = change[i] / (change[i] - change[i + 1])
    score = float(at[i] + share * (at[i + 1] - at[i]))
    return round(score, _digits(score))


def _of_classes(course: _Course) -> str:
    """Return what happens to the largest probability, and of which class it loses or gains most."""
    text = _of_scores(course, "largest probabilities")
    change = course.value - course.value.mean(axis=1, keepdims=True)
    if len(course.classes) < 2 or float(np.abs(change).max()) < course.small:
        return text
    last = course.shown_value[-1]
    lowest, highest = (
        f"{course.classes[k]!r} -> {_number(float(last[k]))}" for k in (int(last.argmin()), int(last.argmax()))
    )
    return f"{text}; {_number(float(course.shown[-1]))} of class {lowest}, of {highest}"
