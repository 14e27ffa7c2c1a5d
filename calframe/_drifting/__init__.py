"""Calibration over time: rows read once by time, then periods, references, numbers and the sentence about them."""
