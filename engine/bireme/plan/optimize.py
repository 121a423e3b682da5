"""From the plan that was asked for to an equal one that is better to run: an ordered tuple of rules.

A rule takes a plan and a context and gives an equal plan; where it changes nothing it gives the same object. What holds
between rules is in `verify`; what each rule does, in its module under `rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bireme.errors import Unsupported
from bireme.plan.context import PlanContext
from bireme.plan.relation import Rel
from bireme.plan.rules.late_columns import late_columns
from bireme.plan.rules.narrow_decimals import narrow_decimals
from bireme.plan.rules.order_aggregates import order_aggregates
from bireme.plan.rules.order_joins import order_joins
from bireme.plan.rules.prune_columns import prune_columns
from bireme.plan.rules.push_filters import push_filters
from bireme.plan.rules.share_sums import share_sums
from bireme.plan.rules.simplify import simplify
from bireme.plan.rules.skip_files import skip_files
from bireme.plan.rules.spell_aggregates import spell_aggregates
from bireme.plan.rules.spell_nested_keys import spell_nested_keys
from bireme.plan.rules.spell_windows import spell_windows
from bireme.plan.rules.split_distinct import split_distinct
from bireme.plan.rules.stated_answers import stated_answers
from bireme.plan.rules.unnest import unnest

Rule = Callable[[Rel, PlanContext], Rel]

RULES: Final[tuple[Rule, ...]] = (
    spell_nested_keys,
    unnest,
    simplify,
    push_filters,
    spell_aggregates,
    spell_windows,
    split_distinct,
    order_aggregates,
    share_sums,
    order_joins,
    skip_files,
    prune_columns,
    stated_answers,
    narrow_decimals,
    late_columns,
)


def optimize(plan: Rel, context: PlanContext) -> Rel:
    """The plan after all rules; raises Unsupported, with advice, for what no rule can prepare to run."""
    try:
        for rule in RULES:
            plan = rule(plan, context)
    except RecursionError:
        raise Unsupported(
            "the query is nested too deeply to be planned; run a part of it first and register what it gives as a table"
        ) from None
    return plan
