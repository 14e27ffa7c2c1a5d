"""The `.calib` namespace on polars expressions: measures as aggregates of elementary sums, no Python in the plan."""

from calframe._expr._namespace import CalibExpressions

__all__ = ["CalibExpressions"]
