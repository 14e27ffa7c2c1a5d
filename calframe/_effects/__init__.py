"""Rows in clusters: by how much metrics scatter more than over independent rows, and samples as wide as that."""
