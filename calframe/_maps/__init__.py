"""Calibration maps as data: forms with the parameters of every segment, as polars expressions, SQL and JSON."""
