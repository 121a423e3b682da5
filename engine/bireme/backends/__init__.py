"""Columnar kernels behind one protocol."""
