"""Engines side by side: the same queries over the same files, answers checked, times compared."""
