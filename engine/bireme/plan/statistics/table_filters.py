"""Filters over one table: how many rows pass, by the sample where it can tell.

A sample knows of correlations between columns and of any function; metadata knows of ranges that a sample of blocks
misses; rules of thumb know of neither. Which of them answers is decided here, condition by condition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from bireme.plan import tree
from bireme.plan.expr import Call, Column, Expr, InList, Literal, OuterColumn, ScalarSubquery
from bireme.plan.relation import Filter, Project, Rel, Scan
from bireme.plan.statistics import predicate
from bireme.plan.statistics.column import Origin
from bireme.plan.statistics.samples import Hits

if TYPE_CHECKING:
    from bireme.plan.statistics.estimator import Estimator

# Fewer hits than this in a sample are blended with what the single conjuncts tell.
_HITS_TRUSTED: Final = 8
_NOT_IN_SAMPLES: Final = (ScalarSubquery, OuterColumn)


class Chain:
    """Filters and projections over one scan: the scan, every conjunct over its columns, the output over its columns."""

    __slots__ = ("conditions", "outputs", "scan")

    def __init__(self, scan: Scan, conditions: tuple[Expr, ...], outputs: tuple[Expr, ...] | None) -> None:
        self.scan = scan
        self.conditions = conditions
        self.outputs = outputs


def chain_of(estimator: Estimator, rel: Rel) -> Chain | None:
    """`rel` taken apart, when it is filters and projections over a scan."""
    match rel:
        case Scan():
            return Chain(rel, (), None)
        case Filter():
            below = estimator.chain(rel.input)
            if below is None:
                return None
            parts = tree.conjuncts(rel.predicate)
            if below.outputs is not None:
                parts = [tree.substitute(part, below.outputs) for part in parts]
            return Chain(below.scan, tuple(dict.fromkeys((*below.conditions, *parts))), below.outputs)
        case Project():
            below = estimator.chain(rel.input)
            if below is None:
                return None
            outputs = below.outputs
            return Chain(
                below.scan,
                below.conditions,
                rel.exprs if outputs is None else tree.substitute(rel.exprs, outputs),
            )
        case _:
            return None


def chain_share(estimator: Estimator, chain: Chain) -> float:
    """The share of a scan's rows that pass all conditions: by the sample together, where one cannot tell by rules."""
    asked: list[Expr] = []
    other: list[Expr] = []
    for condition in chain.conditions:
        outside = _outside_samples(condition) or _follows_file(estimator, chain.scan, condition)
        (other if outside else asked).append(condition)
    share = predicate.conjunction(estimator, chain.scan, other) if other else 1.0
    return share * _sampled_share(estimator, chain.scan, asked) if asked else share


def _outside_samples(condition: Expr) -> bool:
    return any(part.__class__ in _NOT_IN_SAMPLES for part in tree.walk(condition))


def _follows_file(estimator: Estimator, scan: Scan, condition: Expr) -> bool:
    """Whether a condition compares a column with constants that is in the order of the file."""
    match condition:
        case Call(function, (Column(index), Literal()) | (Literal(), Column(index))) if (
            function in predicate.COMPARISONS
        ):
            pass
        case InList(Column(index), items) if all(isinstance(item, Literal) for item in items):
            pass
        case _:
            return False
    origin = Origin(scan.table, scan.version, scan.columns[index])
    return estimator.samples.column(origin).ranged and estimator.samples.follows_file(origin)


def _sampled_share(estimator: Estimator, scan: Scan, conditions: list[Expr]) -> float:
    hits = _sample_hits(estimator, scan, conditions)
    if hits is None:
        return predicate.conjunction(estimator, scan, conditions)
    if hits.whole or hits.selected >= _HITS_TRUSTED:
        return hits.selected / hits.rows
    if len(conditions) == 1:
        alone = predicate.share(estimator, scan, conditions[0])
    else:
        alone = math.prod([_sampled_share(estimator, scan, [condition]) for condition in conditions])
    if hits.selected == 0:
        # Nothing seen in n rows: hardly more than one in n.
        return min(alone, 1.0 / hits.rows) if alone < 0.5 / hits.rows else 0.5 / hits.rows
    trust = hits.selected / _HITS_TRUSTED
    # A conjunction whose parts exclude each other is rarer than their product, one of equivalent parts more common:
    # the few hits still bound it from both sides.
    alone = min(max(alone, hits.selected / hits.rows / 4), 4 * hits.selected / hits.rows)
    return trust * hits.selected / hits.rows + (1 - trust) * alone


def _sample_hits(estimator: Estimator, scan: Scan, conditions: Sequence[Expr]) -> Hits | None:
    """The conditions, over the columns of `scan`, evaluated together on the sample of its table."""
    positions = tree.columns_in(tree.mask_of(conditions))
    moved = [tree.remap(condition, {old: new for new, old in enumerate(positions)}) for condition in conditions]
    together = tree.conjoin(moved)
    assert together is not None
    columns = tuple([scan.columns[position] for position in positions])
    return estimator.samples.hits(scan.table, scan.version, columns, together, scan.schema.select(positions))
