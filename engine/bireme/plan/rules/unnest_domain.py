"""What a correlated plan becomes on its way up: a plan without outer columns, and keys that tie it to the outer row.

Two ways give a plan the value of an outer column. Where a predicate says that the outer value equals an inner one, the
inner one stands for it, and no join is needed. Otherwise the plan is joined with the *domain*: the distinct values that
the outer rows have (Neumann and Kemper 2015).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bireme.data.types import BOOL
from bireme.plan.expr import Call, Case, Column, Expr, Literal, OuterColumn
from bireme.plan.nullable import is_nullable
from bireme.plan.relation import Aggregate, Join, JoinKind, Project, Rel, Values
from bireme.plan.rules.unnest_apply import OuterColumns, replace_outer
from bireme.plan.tree import TRUE, all_columns, columns_in, filtered, is_call, mask_of, select, walk
from bireme.records import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """`term`, over the outer row, equals column `position`: as SQL compares if `strict`, else with NULL like NULL."""

    term: Expr
    position: int
    strict: bool


@dataclass(frozen=True, slots=True)
class Pushed:
    """A correlated plan, made independent of the outer row.

    The original gives, for an outer row, the rows of `rel` whose keys match it and for which all of `residual` (over
    outer columns and columns of `rel`) are TRUE. The first `width` columns are the original's. Where `default` is
    given, the original has one row for each outer row, and where `rel` has none, it is `default` (over outer columns).
    """

    rel: Rel
    width: int
    keys: tuple[Key, ...] = ()
    residual: tuple[Expr, ...] = ()
    default: tuple[Expr, ...] | None = None
    at_most_one: bool = False

    def known(self) -> dict[OuterColumn, Expr]:
        """The outer columns that a column of `rel` stands for."""
        found: dict[OuterColumn, Expr] = {}
        for key in self.keys:
            if isinstance(key.term, OuterColumn):
                found.setdefault(key.term, self.column(key.position))
        return found

    def column(self, position: int) -> Column:
        return Column(position, self.rel.schema.fields[position].type)

    def extras(self) -> list[int]:
        """The columns behind the original's that keys and residual need."""
        used = {key.position for key in self.keys} | set(columns_in(mask_of(self.residual)))
        return sorted(position for position in used if position >= self.width)


def outer_in(exprs: Iterable[Expr]) -> OuterColumns:
    """The outer columns of the nearest level in expressions without correlated subqueries."""
    return frozenset([part for expr in exprs for part in walk(expr) if isinstance(part, OuterColumn)])


def term_over(term: Expr, positions: dict[OuterColumn, int] | None = None) -> Expr:
    """A term over the outer row as an expression over a relation that has its columns (at `positions`)."""
    moved = {part: Column(part.index if positions is None else positions[part], part.type) for part in outer_in([term])}
    return replace_outer(term, dict(moved))


def settled(pushed: Pushed) -> Pushed:
    """`pushed` without keys that are lists and the like: they stand for outer columns where `cover` put them, but are
    never compared, since the number of the outer row, which is a key beside them, says as much.
    """
    keys = tuple([key for key in pushed.keys if not key.term.type.is_nested])
    return pushed if len(keys) == len(pushed.keys) else replace(pushed, keys=keys)


class Domain:
    """The distinct values of outer rows; `left` gives the outer rows.

    Where its column `number` is different in every row, that goes along with all others: for lists and other values
    that cannot be compared.
    """

    def __init__(self, left: Rel, number: int | None = None) -> None:
        self.left = left
        self._number = None if number is None else OuterColumn(1, number, left.schema.fields[number].type)

    def _columns(self, wanted: Iterable[OuterColumn]) -> list[OuterColumn]:
        numbered = () if self._number is None else (self._number,)
        return sorted({*wanted, *numbered}, key=lambda column: column.index)

    def of(self, columns: list[OuterColumn]) -> Rel:
        """The values of `columns` that outer rows have, each once."""
        chosen = select(self.left, [column.index for column in columns])
        if self._number is not None:
            return chosen
        return Aggregate(chosen, all_columns(chosen.schema), (), chosen.schema.names)

    def cover(self, pushed: Pushed, needed: Iterable[OuterColumn], *, always: bool = False) -> Pushed:
        """`pushed` where a column stands for each of the `needed` outer columns.

        With `always`, the domain is joined even if inner columns could stand for them.
        """
        wanted = set(needed)
        if not always and wanted <= pushed.known().keys():
            return pushed
        wanted |= outer_in(pushed.residual)
        for key in pushed.keys:
            wanted |= outer_in([key.term])
        columns = self._columns(wanted)
        domain, base = self.of(columns), len(pushed.rel.schema)
        positions = {column: index for index, column in enumerate(columns)}
        keys = tuple([Key(column, base + index, False) for index, column in enumerate(columns)])
        if isinstance(pushed.rel, Values) and len(pushed.rel.rows) == 1 and base == 0:
            return replace(pushed, rel=domain, keys=keys)
        ties = sorted(settled(pushed).keys, key=lambda key: key.strict)
        joined: Rel = Join(
            pushed.rel,
            domain,
            JoinKind.INNER,
            tuple([pushed.column(key.position) for key in ties]),
            tuple([term_over(key.term, positions) for key in ties]),
            None,
            sum(not key.strict for key in ties),
        )
        covered = replace(pushed, rel=joined, keys=keys, residual=())
        parts = [replace_outer(part, covered.known()) for part in pushed.residual]
        return replace(covered, rel=filtered(joined, parts))

    def materialize(self, pushed: Pushed) -> Pushed:
        """`pushed` without `default`: its rows are made, one for each value of the domain."""
        if pushed.default is None:
            return pushed
        wanted = outer_in([*pushed.default, *[key.term for key in pushed.keys]])
        columns = self._columns(wanted)
        domain = self.of(columns)
        positions = {column: index for index, column in enumerate(columns)}
        ties = sorted(settled(pushed).keys, key=lambda key: key.strict)
        source, marker = with_marker(pushed)
        joined = Join(
            domain,
            source,
            JoinKind.LEFT,
            tuple([term_over(key.term, positions) for key in ties]),
            tuple([pushed.column(key.position) for key in ties]),
            None,
            sum(not key.strict for key in ties),
        )
        defaults = [term_over(value, positions) for value in pushed.default]
        values = padded(pushed, defaults, len(columns), marker)
        names = (*pushed.rel.schema.names[: pushed.width], *domain.schema.names)
        rel = Project(joined, (*values, *all_columns(domain.schema)), names)
        keys = tuple([Key(column, pushed.width + index, False) for index, column in enumerate(columns)])
        return settled(replace(pushed, rel=rel, keys=keys, default=None))


def with_marker(pushed: Pushed) -> tuple[Rel, int | None]:
    """The plan to join from the right so that rows without a match are told, and where the column that tells is."""
    assert pushed.default is not None
    fields = pushed.rel.schema.fields
    if all(_is_null(value) or not fields[index].nullable for index, value in enumerate(pushed.default)):
        return pushed.rel, None
    columns = all_columns(pushed.rel.schema)
    return Project(pushed.rel, (*columns, TRUE), (*pushed.rel.schema.names, "matched")), len(columns)


def padded(pushed: Pushed, defaults: list[Expr], offset: int, marker: int | None) -> list[Expr]:
    """The original's columns after a left join that has them from position `offset` on, defaults filled in."""
    assert pushed.default is not None
    values: list[Expr] = []
    for index, field in enumerate(pushed.rel.schema.fields[: pushed.width]):
        value: Expr = Column(offset + index, field.type)
        if not _is_null(defaults[index]):
            if marker is None:
                value = Call("coalesce", (value, defaults[index]), field.type)
            else:
                matched = Call("is_not_null", (Column(offset + marker, BOOL),), BOOL)
                value = Case(((matched, value),), defaults[index], field.type)
        values.append(value)
    return values


def _is_null(value: Expr) -> bool:
    return isinstance(value, Literal) and value.value is None


def relaxed(pushed: Pushed) -> Pushed:
    """`pushed` with keys that may all be compared with NULL equal to NULL: rows whose strict keys are NULL are gone."""
    strict = [key.position for key in pushed.keys if key.strict]
    schema = pushed.rel.schema
    tests = [
        Call("is_not_null", (pushed.column(position),), BOOL) for position in strict if schema.fields[position].nullable
    ]
    keys = tuple([Key(key.term, key.position, False) for key in pushed.keys])
    return replace(pushed, rel=filtered(pushed.rel, tests), keys=keys)


def as_equality(part: Expr) -> tuple[Expr, Expr, bool] | None:
    """An inner expression, an outer term and whether NULL matches nothing, where `part` says that the two are equal."""
    if not (is_call(part, "eq") or is_call(part, "is_not_distinct")):
        return None
    assert isinstance(part, Call)
    for inner, term in (part.args, part.args[::-1]):
        terms = outer_in([term])
        if terms and not outer_in([inner]) and mask_of([inner]) and not mask_of([term]):
            return inner, term, part.function == "eq"
    return None


def never_null(term: Expr, left: Rel) -> bool:
    """Whether a term is never NULL over the rows of `left`."""
    return not is_nullable(term_over(term), left.schema)
