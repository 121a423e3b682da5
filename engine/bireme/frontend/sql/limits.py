"""LIMIT, OFFSET and FETCH: how many rows of a query stay, which is known when it is bound."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sqlglot import expressions as exp

from bireme.errors import Unsupported
from bireme.frontend.sql.constants import row_count, rows_wanted
from bireme.frontend.sql.context import Block
from bireme.frontend.sql.samples import first_share, percentage
from bireme.frontend.sql.syntax import Node, check_arguments, is_all
from bireme.plan.expr import SortKey
from bireme.plan.relation import Limit, Rel, Sort
from bireme.records import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """The rows that LIMIT and OFFSET leave."""

    limit: int | None
    offset: int
    percent: Decimal | None = None

    @property
    def is_all(self) -> bool:
        return self.limit is None and self.offset == 0 and self.percent is None


def bind_range(node: Node, block: Block) -> Range:
    """LIMIT or FETCH, and OFFSET, of a query."""
    offset: int | None = 0
    clause = node.args.get("offset")
    if clause is not None:
        check_arguments(clause, {"expression"})
        offset = rows_wanted(clause.args["expression"], "OFFSET", block)
    clause = node.args.get("limit")
    if clause is None:
        return Range(None, offset or 0)
    if clause.__class__ is exp.Fetch:
        return Range(_fetched(clause, block), offset or 0)
    check_arguments(clause, {"expression", "limit_options"})
    expression = clause.args["expression"]
    if _is_percent(clause.args.get("limit_options")):
        return Range(None, offset or 0, percentage(expression, "LIMIT", block))
    return Range(None if is_all(expression) else rows_wanted(expression, "LIMIT", block), offset or 0)


def _fetched(clause: Node, block: Block) -> int | None:
    check_arguments(clause, {"direction", "count", "limit_options"})
    if _is_percent(clause.args.get("limit_options")):
        raise Unsupported("FETCH with PERCENT is not supported; write LIMIT n%")
    count = clause.args.get("count")
    return 1 if count is None else row_count(count, "FETCH", block)


def _is_percent(options: Node | None) -> bool:
    """Whether LIMIT is of so many of a hundred rows."""
    if options is None:
        return False
    if options.__class__ is not exp.LimitOptions or options.args.get("with_ties"):
        raise Unsupported("LIMIT and FETCH WITH TIES are not supported; filter by rank() in QUALIFY")
    check_arguments(options, {"percent", "with_ties", "rows"})
    return bool(options.args.get("percent"))


def sorted_rows(relation: Rel, keys: Sequence[SortKey], rows: Range) -> Rel:
    """The rows in order, and only those that the range leaves."""
    if rows.percent is not None:
        return first_share(Sort(relation, tuple(keys)) if keys else relation, rows.percent, rows.offset)
    if keys:
        return Sort(relation, tuple(keys), rows.limit, rows.offset)
    return relation if rows.is_all else Limit(relation, rows.limit, rows.offset)
