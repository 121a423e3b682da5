"""The functions of the engine: names, type rules, coercions and casts, shared by SQL, DataFrame and rules.

The only place that should build `Call`, `Cast`, `Aggregation` and `WindowCall` from anything a user wrote. Meaning on
values is in the backends; this package fixes the vocabulary they implement and the types they see.
"""

from __future__ import annotations

from bireme.plan.functions.casting import (
    cast,
    coerce,
    common_type,
    is_castable,
    is_coercible,
    unify,
    widens,
)
from bireme.plan.functions.comparison import between, case, compared, conjunction, in_list, truth
from bireme.plan.functions.naming import suggest
from bireme.plan.functions.registry import Body, NullRule, Volatility
from bireme.plan.functions.tables import (
    aggregate,
    can_fail,
    catalog,
    is_aggregate,
    is_scalar,
    is_window,
    null_rule,
    scalar,
    window,
    with_lambda,
)
from bireme.plan.functions.type_names import parse_type

__all__ = [
    "Body",
    "NullRule",
    "Volatility",
    "aggregate",
    "between",
    "can_fail",
    "case",
    "cast",
    "catalog",
    "coerce",
    "common_type",
    "compared",
    "conjunction",
    "in_list",
    "is_aggregate",
    "is_castable",
    "is_coercible",
    "is_scalar",
    "is_window",
    "null_rule",
    "parse_type",
    "scalar",
    "suggest",
    "truth",
    "unify",
    "widens",
    "window",
    "with_lambda",
]
