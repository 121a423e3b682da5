"""TABLESAMPLE, USING SAMPLE and LIMIT n%: parts of the rows of a relation, which keep their order.

Rows are numbered as they come, and a hash of the number and the seed tells which are taken: equal seeds take equal
rows of a table, on every backend and however the query runs. Without a seed it is 0.
"""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Final

from bireme.data.types import FLOAT64, INT64, UINT64
from bireme.errors import ClauseFault, Unsupported
from bireme.frontend.sql.constants import number, row_count
from bireme.frontend.sql.context import Block
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.plan import functions
from bireme.plan.expr import WHOLE_PARTITION, Column, Expr, Literal, SortKey, WindowCall
from bireme.plan.relation import Filter, Project, Rel, Sort, Window
from bireme.plan.tree import all_columns

_METHODS: Final = frozenset({"RESERVOIR", "BERNOULLI", "SYSTEM"})
_HASHES: Final = 1 << 64


def sampled(relation: Rel, node: Node, block: Block) -> Rel:
    """Some rows of a relation: a number of them, or each with a probability."""
    check_arguments(node, {"method", "size", "percent", "seed"})
    args = node.args
    method = "" if args.get("method") is None else args["method"].name.upper()
    if method not in _METHODS:
        raise Unsupported(f"{method} samples are not supported; there are RESERVOIR, BERNOULLI and SYSTEM")
    # The parser's word for none is None in one form of a sample, False in another.
    seed = row_count(args["seed"], "REPEATABLE", block) or 0 if args.get("seed") else 0
    if args.get("size") is not None:
        if method == "BERNOULLI":
            raise ClauseFault("a BERNOULLI sample takes a percentage; RESERVOIR takes a number of rows")
        return _some(relation, row_count(args["size"], "a sample", block) or 0, seed)
    share = percentage(args.get("percent"), "a sample", block) or Decimal(0)
    return _share(relation, share, seed) if method == "RESERVOIR" else _each(relation, share, seed)


def percentage(node: Node | None, clause: str, block: Block) -> Decimal | None:
    """A constant from 0 to 100; None for NULL."""
    if node is None:
        raise ClauseFault(f"{clause} needs a size")
    value = number(node, clause, block)
    if value is not None and not 0 <= value <= 100:
        fault = ClauseFault(f"{clause} takes a percentage from 0 to 100, not {value}")
        raise located(fault, node, block.statement.text)
    return value


def first_share(relation: Rel, percent: Decimal, offset: int) -> Rel:
    """So many of a hundred rows, a part of one being none, after the first `offset`."""
    place, rows = _places(relation, (), "row_number", "count_star")
    start = Literal(offset, INT64)
    behind = functions.scalar("subtract", (place[1], start))
    wanted = functions.scalar("le", (behind, _part(rows[1], percent, "floor")))
    return _kept(relation, (place, rows), functions.scalar("and", (functions.scalar("gt", (place[1], start)), wanted)))


def _some(relation: Rel, count: int, seed: int) -> Rel:
    """So many rows, those of the least hashes, in their old order."""
    (place,) = _places(relation, (), "row_number")
    numbered = _windowed(relation, (place,))
    least = Sort(numbered, (SortKey(_hash(place[1], seed)), SortKey(place[1])), count)
    return _without(Sort(least, (SortKey(place[1]),)), relation)


def _share(relation: Rel, percent: Decimal, seed: int) -> Rel:
    """So many rows of a hundred, those of the least hashes."""
    (place,) = _places(relation, (), "row_number")
    numbered = _windowed(relation, (place,))
    rank, rows = _places(numbered, (SortKey(_hash(place[1], seed)), SortKey(place[1])), "row_number", "count_star")
    wanted = functions.scalar("le", (rank[1], _part(rows[1], percent, "round")))
    return _without(_kept(numbered, (rank, rows), wanted), relation)


def _each(relation: Rel, percent: Decimal, seed: int) -> Rel:
    """Each row with a probability."""
    if percent == 100:
        return relation
    (place,) = _places(relation, (), "row_number")
    below = Literal(int(percent * _HASHES / 100), UINT64)
    return _kept(relation, (place,), functions.scalar("lt", (_hash(place[1], seed), below)))


_Numbered = tuple[WindowCall, Column]


def _places(relation: Rel, order: tuple[SortKey, ...], *names: str) -> list[_Numbered]:
    """Windows over all rows, and the columns that they will be; only the first is of an order."""
    width = len(relation.schema.fields)
    found = []
    for index, name in enumerate(names):
        call = functions.window(name, ())
        window = WindowCall(call, (), () if index else order, WHOLE_PARTITION)
        found.append((window, Column(width + index, call.type)))
    return found


def _windowed(relation: Rel, places: tuple[_Numbered, ...]) -> Rel:
    return Window(relation, tuple([call for call, _ in places]), tuple([f"place{i}" for i in range(len(places))]))


def _kept(relation: Rel, places: tuple[_Numbered, ...], condition: Expr) -> Rel:
    return _without(Filter(_windowed(relation, places), condition), relation)


def _without(more: Rel, relation: Rel) -> Rel:
    """The columns of `relation` alone."""
    return Project(more, all_columns(relation.schema), relation.schema.names)


def _part(rows: Expr, percent: Decimal, rounding: str) -> Expr:
    # In this order, in doubles, as in DuckDB: whether 100 % * 7 / 100 is 7 depends on it.
    share = functions.scalar("multiply", (Literal(float(percent) / 100, FLOAT64), functions.cast(rows, FLOAT64)))
    return functions.scalar(rounding, (share,))


def _hash(place: Expr, seed: int) -> Expr:
    """A hash of a row's number, of other bits for each seed."""
    bits = int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest()) >> 1
    return functions.scalar("hash", (functions.scalar("xor", (place, Literal(bits, INT64))),))
