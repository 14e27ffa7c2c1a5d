"""Tests of the hypothesis that scores are right: NumPy and SciPy, every segment in one pass."""
