"""Numerical kernels: NumPy and SciPy only, arrays in, arrays out, all segments in one pass.

A segment is a run of cells; `starts` holds the position of the first cell of each, and no segment is empty.
"""
