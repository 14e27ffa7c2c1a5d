"""What the marks of a chart mean, in words: the same for a report's captions and for a chart by itself."""

from __future__ import annotations

from typing import Final, TypeAlias

from calframe._words._numbers import plural, tolerance

Marks: TypeAlias = tuple[tuple[str, str], ...]  # a kind of mark and what it means

SPARSE: Final = 25  # rows; of fewer a rate has a standard error of up to a tenth and more, and its mark is faint
SHORT_LINE: Final = 100  # rows; a curve of fewer is drawn thin and faint


def forest_marks(*, level: str, comparisons: int, zone: float) -> str:
    """Explain the marks of a forest plot; `level` such as "95%", `zone` the tolerance."""
    return (
        f"Dot: gap between what the scores said and what happened. Thick line: {level} interval; thin line: the same, "
        f"widened for {plural(comparisons, 'comparison')}; an arrowhead: it goes on beyond the axis. Grey zone: the "
        f"{tolerance(zone)} tolerance."
    )


def curve_marks(level: str | None) -> Marks:
    """Explain the marks of a reliability diagram of bins."""
    share = f"{level} of dots" if level else "most dots"
    return (
        ("Shaded band", f"Where {share} would land if the scores were right. A dot inside it is no evidence."),
        ("Coloured dot", "Outside the band: orange, it happens less often than said; blue, more often."),
        _on_a_dot(level),
    )


def _on_a_dot(level: str | None) -> tuple[str, str]:
    return (
        "Line on a dot",
        f"{level} interval for the observed rate in that bin." if level else "Interval of its rate.",
    )


def line_marks(level: str | None) -> Marks:
    """Explain the marks of a reliability diagram of one line."""
    share = f"{level} of such lines" if level else "most such lines"
    return (
        ("Shaded band", f"Where {share} would run at a score if the scores were right."),
        ("Coloured line", "Outside the band: orange, it happens less often than said; blue, more often."),
        ("Around it", f"{level} interval for the rate." if level else "Interval of the rate."),
    )


def overlay_marks(level: str | None) -> Marks:
    """Explain the marks of several curves of bins."""
    return (
        _on_a_dot(level),
        ("Faint dot", f"Fewer than {SPARSE} rows."),
    )


def lines_marks(level: str | None, *, ribbons: bool) -> Marks:
    """Explain the marks of several curves that are lines."""
    ribbon = (("Around a line", f"{level} interval for the rate." if level else "Interval of the rate."),)
    return (*(ribbon if ribbons else ()), ("Faint line", f"A curve of fewer than {SHORT_LINE} rows."))


def joined(marks: Marks) -> str:
    """Return the marks as one text."""
    return " ".join(f"{kind}: {text[0].lower()}{text[1:]}" for kind, text in marks)
