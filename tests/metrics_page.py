"""Writes METRICS.md and the table of measures in README.md from what each metric says of itself.

Run ``python -m tests.metrics_page`` at the top of the checkout.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from calframe._measures import CLASS_METRICS, METRICS
from calframe._registry import Metric

ROOT = Path(__file__).parents[1]
PAGE, README = ROOT / "METRICS.md", ROOT / "README.md"
COMMAND = "python -m tests.metrics_page"
BETTER = {"lower": "lower", "higher": "higher", "zero": "0", "one": "1", "none": ""}

# The worked tables: the metrics of one column of scores on the first, those of whole score vectors on the second.
BINARY = {
    "y": [1, 0, 0, 1, 1, 1],
    "p": [0.1, 0.1, 0.5, 0.9, 0.9, 0.9],
    "posterior": [0.2, 0.2, 0.4, 0.8, 0.8, 0.8],
}
CLASSES = {
    "y": ["a", "c", "b", "b"],
    "a": [0.6, 0.6, 0.2, 0.4],
    "b": [0.3, 0.3, 0.7, 0.4],
    "c": [0.1, 0.1, 0.1, 0.2],
    "posterior a": [0.5, 0.5, 0.3, 0.3],
    "posterior b": [0.3, 0.3, 0.6, 0.5],
    "posterior c": [0.2, 0.2, 0.1, 0.2],
}
BINS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Measures of one kind, and what is to be said of all of them."""

    title: str
    about: str
    names: tuple[str, ...]
    several_classes: bool = False

    @property
    def metrics(self) -> list[Metric]:
        known = CLASS_METRICS if self.several_classes else METRICS
        return [known[name] for name in self.names]

    @property
    def link(self) -> str:
        return f"METRICS.md#{self.title.lower().replace(' ', '-')}"


FAMILIES = (
    Family(
        title="Means and rates",
        about="Plain sums over rows. No bins, no fit.",
        names=(
            *("rate", "mean_score", "gap", "ratio", "accuracy", "brier", "brier_skill", "log_loss"),
            "sharpness",
        ),
    ),
    Family(
        title="Binned errors",
        about="Gaps between mean score and rate over bins (`bins=`, `strategy=`, `closed=`). The ece of right scores "
        "is not 0 but about `ece_expected`: the fewer rows, the larger.",
        names=("ece", "mce", "rmsce", "ace", "ece_sweep", "ece_expected", "ece_debiased"),
    ),
    Family(
        title="Parts of a loss",
        about="Each set adds up to brier: over bins reliability − resolution + uncertainty + within_bin, also with the "
        "corrected ones, over equal scores calibration_loss + refinement_loss, by isotonic regression mcb − dsc + unc. "
        "Those in `_log` add up to log_loss in the same way.",
        names=(
            *("reliability", "resolution", "uncertainty", "within_bin"),
            *("reliability_corrected", "resolution_corrected", "uncertainty_corrected"),
            *("calibration_loss", "refinement_loss", "calibration_loss_log", "refinement_loss_log"),
            *("mcb", "dsc", "unc", "mcb_log", "dsc_log", "unc_log"),
        ),
    ),
    Family(
        title="Order and rank",
        about="What the order of the scores tells. No bins.",
        names=("auc", "ecce_r", "ecce_mad", "aurc", "eaurc"),
    ),
    Family(
        title="Smooth and fitted",
        about="Distances from smooth curves (`smoother=` for ici, e50, e90 and emax), and lines fitted to logits.",
        names=(
            *("smece", "ici", "e50", "e90", "emax"),
            *("slope", "intercept", "citl", "slope_se", "intercept_se", "citl_se"),
        ),
    ),
    Family(
        title="True probabilities",
        about="For simulations, where the true probabilities are known: `posterior=` names their column.",
        names=("irreducible_loss", "epistemic_loss", "irreducible_loss_log", "epistemic_loss_log"),
    ),
    Family(
        title="Several classes",
        about="Of whole score vectors: `score=` is a mapping of classes to columns, or one column of vectors with "
        "`classes=`. Those from confidence_ece to skce are there for one column of scores p, too: its classes are the "
        "positive one with p and the other with 1 − p. For all other measures of one column, "
        '`notion="classwise"` takes each class against the rest, `notion="confidence"` the largest score.',
        names=(
            *("accuracy", "brier", "log_loss", "confidence_ece", "confidence_mce", "classwise_ece", "classwise_mce"),
            *("toplabel_ece", "full_ece", "skce", "calibration_loss", "refinement_loss", "calibration_loss_log"),
            *("refinement_loss_log", "aurc", "eaurc"),
            *("irreducible_loss", "epistemic_loss", "irreducible_loss_log", "epistemic_loss_log"),
        ),
        several_classes=True,
    ),
)


def bound(value: float) -> str:
    """Return an end of a range as text."""
    if math.isinf(value):
        return "-inf" if value < 0 else "inf"
    return "ln 2" if value == math.log(2) else f"{value:g}"


def page() -> str:
    """Return METRICS.md."""
    return "\n".join(_lines()) + "\n"


def readme_table() -> str:
    """Return the table of README.md."""
    rows = [f"| [{family.title}]({family.link}) | {', '.join(family.names)} |" for family in FAMILIES]
    return "\n".join(["| family | measures |", "|---|---|", *rows])


def main() -> None:
    """Write the page and the table."""
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
    text = README.read_text(encoding="utf-8")
    text = re.sub(r"(?<=\n)\| family \|.*?(?=\n\n)", lambda _: readme_table(), text, count=1, flags=re.DOTALL)
    README.write_text(text, encoding="utf-8", newline="\n")


def _lines() -> Iterator[str]:
    yield from (
        "# Measures",
        "",
        f"Every measure of `calframe.metrics`, in its own words: `{COMMAND}` writes this page, a test keeps it true.",
        "",
        "- y is the outcome, 0 or 1 (of several classes the one that happened), p the score, w the weight of a row: 1",
        "  without `weight=`. Sums run over the rows of a segment, b over bins; a bar is a weighted mean.",
        "- *better* says which values are: lower or higher ones, or those near 0 or 1; nothing where none are.",
        "- *interval*: whether `confidence_level=` puts one beside the value.",
        f"- *example*: the value on one of these tables with `bins={BINS}`, which the tests work from the definition.",
        "",
        "One column of scores, for all families but the last:",
        "",
        *_table_of(BINARY),
        "",
        "Three classes, for the last:",
        "",
        *_table_of(CLASSES),
        "",
    )
    for family in FAMILIES:
        yield from (f"## {family.title}", "", family.about, "", *_family(family), "")
    yield from (
        "Your own measure: `calframe.register_metric`. A measure that is undefined on a segment is null there, and the",
        "`note` column says why.",
    )


def _table_of(columns: Mapping[str, list[float] | list[int] | list[str]]) -> Iterator[str]:
    for number, (name, values) in enumerate(columns.items()):
        yield _row([name, *map(str, values)])
        if number == 0:
            yield _row(["---"] * (len(values) + 1))


def _family(family: Family) -> Iterator[str]:
    heads = ("measure", "what it is", "convention and source", "range", "better", "interval", "example")
    yield _row(list(heads))
    yield _row(["---"] * len(heads))
    for metric in family.metrics:
        ends = [bound(end).replace("-", "−").replace("inf", "∞") for end in (metric.low, metric.high)]
        yield _row(
            [
                f"`{metric.name}`",
                f"{metric.summary}<br>`{metric.formula}`",
                "<br>".join(_said(metric)),
                " to ".join(ends),
                BETTER[metric.direction],
                "yes" if metric.interval else "",
                metric.example,
            ]
        )


def _said(metric: Metric) -> Iterator[str]:
    if metric.convention:
        yield metric.convention
    if metric.undefined:
        yield f"null: {metric.undefined}"
    text, _, url = metric.source.partition(", https://")
    for mark, code in zip("<>()", ("%3C", "%3E", "%28", "%29"), strict=True):
        url = url.replace(mark, code)
    yield f"[{text}](https://{url})" if url else text


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


if __name__ == "__main__":
    main()
