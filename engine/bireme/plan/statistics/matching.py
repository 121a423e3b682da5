"""How many rows joins give, and what their columns look like.

Values of two columns that are compared are taken to come from one domain, of which the larger side holds all and each
row an arbitrary one (Selinger et al. 1979); keys of several columns are counted as tuples, since their columns are
hardly ever independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from bireme.data.node import replaced
from bireme.plan import tree
from bireme.plan.expr import Expr
from bireme.plan.relation import Join, JoinKind, Rel
from bireme.plan.statistics import expression, predicate
from bireme.plan.statistics.column import ColumnEstimate, Within, equality, matched_domains, remaining

if TYPE_CHECKING:
    from bireme.plan.statistics.estimator import Estimator

# An anti join that should keep nothing is still taken to keep one row in a hundred.
_ANTI_SHARE_MIN: Final = 0.01
# Kinds that pad rows without a partner with NULL on the left, and on the right.
_PADS_LEFT: Final = frozenset({JoinKind.RIGHT, JoinKind.FULL})
_PADS_RIGHT: Final = frozenset({JoinKind.LEFT, JoinKind.SINGLE, JoinKind.FULL})


def key_share(
    estimator: Estimator, left: Rel, right: Rel, left_keys: Sequence[Expr], right_keys: Sequence[Expr]
) -> float:
    """The share of all pairs of rows whose keys are equal."""
    share = 1.0
    for left_key, right_key in zip(left_keys, right_keys, strict=True):
        share *= equality(estimator.expression(left, left_key), estimator.expression(right, right_key))
    if len(left_keys) < 2:
        return share
    return share * key_correction(estimator, left, right, left_keys, right_keys)


def key_correction(
    estimator: Estimator, left: Rel, right: Rel, left_keys: Sequence[Expr], right_keys: Sequence[Expr]
) -> float:
    """By how much more pairs of rows agree in several columns than if these were independent; at least 1."""
    columns_left = [estimator.expression(left, key) for key in left_keys]
    columns_right = [estimator.expression(right, key) for key in right_keys]
    pairs = list(zip(columns_left, columns_right, strict=True))
    same = all(one.origin is not None and one.origin == other.origin for one, other in pairs)
    if not same and any(column.unique for column in (*columns_left, *columns_right)):
        return 1.0  # one column is the key; what the others add is a filter
    independent = math.prod([matched_domains(one, other) for one, other in pairs])
    of_left, of_right = estimator.origin_tuples(columns_left), estimator.origin_tuples(columns_right)
    if of_left is None or of_right is None:
        return 1.0  # columns of several tables
    # What refers to a key has no more tuples than that, whatever a sample says.
    keys = [found.distinct for found in (of_left, of_right) if found.unique]
    chosen = min(keys) if keys else max(of_left.distinct, of_right.distinct)
    return max(1.0, independent / max(chosen, 1.0))


def covered(
    estimator: Estimator,
    left: Rel,
    right: Rel,
    left_keys: Sequence[Expr],
    right_keys: Sequence[Expr],
    residual_share: float,
) -> float:
    """The share of left rows that have a match on the right."""
    right_rows = estimator.rows(right)
    if right_rows <= 0:
        return 0.0
    if not left_keys:
        return 1.0 if residual_share >= 1 else 1 - math.exp(right_rows * math.log1p(-residual_share))
    pairs = key_share(estimator, left, right, left_keys, right_keys)
    if pairs <= 0:
        return 0.0
    present = min(estimator.tuples(right, right_keys), right_rows)
    found = min(1.0, present * pairs)
    if residual_share >= 1:
        return found
    # Each left row with a partner has as many as there are right rows a key; one that passes is enough.
    return found * (1 - math.pow(1 - residual_share, max(1.0, right_rows / max(present, 1.0))))


def residual_share(estimator: Estimator, left: Rel, right: Rel, residual: Expr | None) -> float:
    """How often the residual of a join is TRUE for a pair of rows with equal keys."""
    if residual is None:
        return 1.0
    pair = Join(left, right, JoinKind.INNER)
    return predicate.share(estimator, pair, residual)


def join_rows(estimator: Estimator, rel: Join) -> float:
    """How many rows a join gives."""
    left, right = estimator.rows(rel.left), estimator.rows(rel.right)
    residual = residual_share(estimator, rel.left, rel.right, rel.residual)
    match rel.kind:
        case JoinKind.INNER:
            return left * right * residual * key_share(estimator, rel.left, rel.right, rel.left_keys, rel.right_keys)
        case JoinKind.MARK | JoinKind.SINGLE:
            return left
        case JoinKind.SEMI:
            return left * covered(estimator, rel.left, rel.right, rel.left_keys, rel.right_keys, residual)
        case JoinKind.ANTI:
            return left * anti_share(covered(estimator, rel.left, rel.right, rel.left_keys, rel.right_keys, residual))
    pairs = left * right * residual * key_share(estimator, rel.left, rel.right, rel.left_keys, rel.right_keys)
    rows = pairs
    if rel.kind in (JoinKind.LEFT, JoinKind.FULL):
        rows += left * (1 - covered(estimator, rel.left, rel.right, rel.left_keys, rel.right_keys, residual))
    if rel.kind in (JoinKind.RIGHT, JoinKind.FULL):
        rows += right * (1 - covered(estimator, rel.right, rel.left, rel.right_keys, rel.left_keys, residual))
    return rows


def anti_share(found: float) -> float:
    """The share of left rows that an anti join keeps when `found` of them have a match."""
    return max(1 - found, _ANTI_SHARE_MIN)


def join_column(estimator: Estimator, rel: Join, index: int) -> ColumnEstimate:
    """What a column of a join looks like: as on its side, less the values whose rows found no partner."""
    width = len(rel.left.schema.fields)
    if index >= width and rel.kind is JoinKind.MARK:
        return expression.BOOLEAN
    on_left = index < width
    side, at = (rel.left, index) if on_left else (rel.right, index - width)
    column = estimator.column(side, at)
    rows, before = estimator.rows(rel), estimator.rows(side)
    distinct, within = column.distinct, column.within
    partner = _partner(rel, on_left, at)
    if partner is not None and rel.kind in (JoinKind.INNER, JoinKind.SEMI):
        other = estimator.expression(rel.right if on_left else rel.left, partner)
        distinct = min(distinct, other.distinct)
        if rel.kind is JoinKind.SEMI and other.origin is not None:
            within = Within(other.origin, other.distinct)
        elif within is None:
            within = other.within
    if rows < before:
        distinct = min(distinct, remaining(column.distinct, before, rows))
    nulls = column.null_share
    if rel.kind in (_PADS_LEFT if on_left else _PADS_RIGHT) and rows > 0:
        nulls = max(nulls, 1 - min(1.0, _matched_rows(estimator, rel) / rows))
    changed = expression.with_distinct(column, distinct)
    if nulls == column.null_share and within is column.within:
        return changed
    return replaced(changed, null_share=nulls, within=within)


def _partner(rel: Join, on_left: bool, at: int) -> Expr | None:
    """What the column is compared with, when it is a key itself."""
    own, other = (rel.left_keys, rel.right_keys) if on_left else (rel.right_keys, rel.left_keys)
    for key, partner in zip(own, other, strict=True):
        if key.__class__ is tree.Column and key.index == at:  # type: ignore[attr-defined]
            return partner
    return None


def _matched_rows(estimator: Estimator, rel: Join) -> float:
    residual = residual_share(estimator, rel.left, rel.right, rel.residual)
    share = key_share(estimator, rel.left, rel.right, rel.left_keys, rel.right_keys)
    return estimator.rows(rel.left) * estimator.rows(rel.right) * residual * share
