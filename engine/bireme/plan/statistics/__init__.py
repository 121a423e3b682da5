"""Estimates of what relations give: rows, distinct counts, ranges, shares of NULL, row sizes; and certain bounds.

`estimator.Estimator` is the entry. Estimates decide how fast a plan is, never what it gives; the only figures a
rewrite may rely on are in `bounds`.
"""

from bireme.plan.statistics.cache import StatisticsCache
from bireme.plan.statistics.estimator import Estimator

__all__ = ["Estimator", "StatisticsCache"]
