"""Can these predicted probabilities be believed: where, for whom, since when, and what to do about it."""

from calframe._conventions import conventions
from calframe._curve import Curve, curve
from calframe._demo import demo_table
from calframe._errors import (
    ArgumentError,
    CalframeError,
    CalframeWarning,
    ColumnClashError,
    ColumnNotFoundError,
    EmptyTableError,
    LabelError,
    ScoreError,
    SegmentError,
    WeightError,
)
from calframe._metrics import metrics
from calframe._namespaces import register
from calframe._register import register_metric
from calframe._verb_report import Report, report
from calframe._version import __version__

__all__ = [
    "ArgumentError",
    "CalframeError",
    "CalframeWarning",
    "ColumnClashError",
    "ColumnNotFoundError",
    "Curve",
    "EmptyTableError",
    "LabelError",
    "Report",
    "ScoreError",
    "SegmentError",
    "WeightError",
    "__version__",
    "conventions",
    "curve",
    "demo_table",
    "metrics",
    "register_metric",
    "report",
]

register()
del register
