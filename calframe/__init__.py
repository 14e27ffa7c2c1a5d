"""Can these predicted probabilities be believed: where, for whom, since when, and what to do about it."""

from calframe._apply import apply
from calframe._audit import Audit, audit
from calframe._compare import Comparison, compare
from calframe._confidence import answer_confidence, parse_confidence
from calframe._conventions import conventions
from calframe._cross_fit import cross_fit
from calframe._curve import Curve, curve
from calframe._decide import Decisions, decide
from calframe._demo import demo_table
from calframe._diagnose import Diagnosis, diagnose
from calframe._drift import drift
from calframe._drifting._result import Drift
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
from calframe._inference import TestResult, test
from calframe._maps._map import CalibrationMap
from calframe._maps._saved import load_map
from calframe._metrics import metrics
from calframe._namespaces import register
from calframe._prior import shift_prior
from calframe._register import register_metric
from calframe._selective import Selective, selective
from calframe._validate import Validation, validate
from calframe._verb_report import Report, report
from calframe._version import __version__

__all__ = [
    "ArgumentError",
    "Audit",
    "CalframeError",
    "CalframeWarning",
    "CalibrationMap",
    "ColumnClashError",
    "ColumnNotFoundError",
    "Comparison",
    "Curve",
    "Decisions",
    "Diagnosis",
    "Drift",
    "EmptyTableError",
    "LabelError",
    "Report",
    "ScoreError",
    "SegmentError",
    "Selective",
    "TestResult",
    "Validation",
    "WeightError",
    "__version__",
    "answer_confidence",
    "apply",
    "audit",
    "compare",
    "conventions",
    "cross_fit",
    "curve",
    "decide",
    "demo_table",
    "diagnose",
    "drift",
    "fit",
    "load_map",
    "metrics",
    "parse_confidence",
    "register_metric",
    "report",
    "selective",
    "shift_prior",
    "test",
    "validate",
]

register()
del register
