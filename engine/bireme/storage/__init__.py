"""Ranged reads of sources, and the spill store."""
