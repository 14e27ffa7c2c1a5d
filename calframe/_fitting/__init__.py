"""Fits of calibration maps, those of all segments at once: tallies and score matrices in, parameters and knots out."""
