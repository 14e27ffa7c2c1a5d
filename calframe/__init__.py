"""Can these predicted probabilities be believed: where, for whom, since when, and what to do about it."""

from calframe._apply import apply
from calframe._conventions import conventions
from calframe._cross_fit import cross_fit
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
from calframe._fit import fit
from calframe._maps._map import CalibrationMap
from calframe._maps._saved import load_map
from calframe._metrics import metrics
from calframe._namespaces import register
from calframe._prior import shift_prior
from calframe._register import register_metric
from calframe._validate import Validation, validate
from calframe._verb_report import Report, report
from calframe._version import __version__

__all__ = [
    "ArgumentError",
    "CalframeError",
    "CalframeWarning",
    "CalibrationMap",
    "ColumnClashError",
    "ColumnNotFoundError",
    "Curve",
    "EmptyTableError",
    "LabelError",
    "Report",
    "ScoreError",
    "SegmentError",
    "Validation",
    "WeightError",
    "__version__",
    "apply",
    "conventions",
    "cross_fit",
    "curve",
    "demo_table",
    "fit",
    "load_map",
    "metrics",
    "register_metric",
    "report",
    "shift_prior",
    "validate",
]

register()
del register
