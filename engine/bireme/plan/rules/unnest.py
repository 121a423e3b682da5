"""Subqueries and dependent joins leave the plan, if there are any; then `unnest_whole` is loaded, which says how."""

from __future__ import annotations

from bireme.data.node import holds_dependent
from bireme.plan.context import PlanContext
from bireme.plan.relation import Rel


def unnest(plan: Rel, _: PlanContext) -> Rel:
    """`plan` without outer columns and without subqueries, other than scalar ones that wait for nothing."""
    if not holds_dependent(plan):
        return plan
    from bireme.plan.rules.unnest_whole import Unnesting

    return Unnesting().whole(plan)
