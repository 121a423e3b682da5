"""Joins of a FROM clause: kinds, ON, USING and NATURAL, and derived tables that read what stands left of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sqlglot import expressions as exp

from bireme.data.types import INT64
from bireme.errors import ClauseFault, NameFault, QueryError, Unsupported
from bireme.frontend.asof import Nearness, asof_join, asof_join_where
from bireme.frontend.sql import tables
from bireme.frontend.sql.context import Block, Context
from bireme.frontend.sql.correlation import deepen
from bireme.frontend.sql.join_conditions import split, split_asof
from bireme.frontend.sql.scope import Scope
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.frontend.sql.tables import Bound
from bireme.plan import functions, tree
from bireme.plan.expr import WHOLE_PARTITION, Column, Expr, SortKey, WindowCall
from bireme.plan.relation import DependentJoin, Join, JoinKind, Project, Rel, RowNumbers, Scan, Sort, Window

_JOIN: Final = frozenset({"this", "on", "using", "method", "side", "kind"})
_SIDES: Final = {"": JoinKind.INNER, "LEFT": JoinKind.LEFT, "RIGHT": JoinKind.RIGHT, "FULL": JoinKind.FULL}
_FILTERING: Final = {"SEMI": JoinKind.SEMI, "ANTI": JoinKind.ANTI}
_LEFT_ONLY: Final = (JoinKind.SEMI, JoinKind.ANTI)
_DEPENDENT: Final = frozenset({JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI})


def from_clause(node: Node, block: Block) -> Bound:
    """The relation that a SELECT reads."""
    from_ = node.args.get("from_")
    if from_ is None:
        if node.args.get("joins"):
            raise ClauseFault("a join without FROM")
        return Bound(tables.ONE_ROW, Scope([], ()))
    check_arguments(from_, {"this"})
    return _with_joins(joined(from_.args["this"], block), node.args.get("joins") or (), block)


def joined(node: Node, block: Block) -> Bound:
    """A relation of FROM with the joins that the parser has hung on it (those in parentheses)."""
    inner, alone = node.args.get("joins"), node
    if inner and node.__class__ is not exp.Table:
        alone = node.copy()
        alone.set("joins", None)
    bound = tables.relation(alone, block)
    return _with_joins(bound, inner, block) if inner else bound


def _with_joins(left: Bound, nodes: Sequence[Node], block: Block) -> Bound:
    for node, *further in _items(nodes):
        try:
            left = _join(left, node, further, block)
        except QueryError as error:
            located(error, node, block.statement.text)
            raise
    return left


def _items(nodes: Sequence[Node]) -> list[list[Node]]:
    """The joins one by one; behind a comma with those that follow it, for a comma binds weaker than a JOIN."""
    items: list[list[Node]] = []
    for node in nodes:
        if items and _is_comma(items[-1][0]) and not _is_comma(node):
            items[-1].append(node)
        else:
            items.append([node])
    return items


def _join(left: Bound, node: Node, further: Sequence[Node], block: Block) -> Bound:
    """`left` joined with a relation, on which the joins `further` have been done before."""
    check_arguments(node, _JOIN)
    args = node.args
    kind, method = _kind(node)
    right, dependent = _right_side(left, args["this"], further, block)
    if dependent and kind not in _DEPENDENT:
        raise ClauseFault(f"the right side of a {kind.name} JOIN cannot read the left side")
    using = args.get("using")
    if method == "NATURAL":
        names = _common_names(left.scope, right.scope)
    elif using:
        names = [item.name.lower() for item in using]
    else:
        names = None
    if names is not None:
        if dependent:
            raise Unsupported("USING and NATURAL with a LATERAL join are not supported; write ON")
        return _join_using(left, right, kind, names, method)
    scope = left.scope.beside(right.scope)
    on = args.get("on")
    condition = None
    if on is not None:
        context = Context(block, scope, "JOIN … ON")
        condition = functions.truth(context.bind(on), "ON")
    if method == "ASOF":
        made = _asof(left, right, kind, condition, dependent=dependent)
        return Bound(made, left.scope if kind in _LEFT_ONLY else scope)
    if method == "POSITIONAL":
        if dependent:
            raise Unsupported("the right side of a POSITIONAL JOIN cannot read the left side")
        return Bound(_by_position(left.relation, right.relation), scope)
    if condition is None and str(args.get("kind")).upper() != "CROSS" and not _is_comma(node):
        raise ClauseFault(f"{'' if kind is JoinKind.INNER else kind.name + ' '}JOIN needs ON or USING")
    shown = left.scope if kind in _LEFT_ONLY else scope
    if dependent:
        return Bound(DependentJoin(left.relation, right.relation, kind, condition), shown)
    return Bound(join(left.relation, right.relation, kind, condition, left.scope.width), shown)


def _is_comma(node: Node) -> bool:
    # The parser gives all other joins this argument, if only with None.
    return "pivots" not in node.args


def _kind(node: Node) -> tuple[JoinKind, str]:
    method, side, kind = [str(node.args.get(name) or "").upper() for name in ("method", "side", "kind")]
    if method not in ("", "NATURAL", "ASOF", "POSITIONAL"):
        raise Unsupported(f"{method} JOIN is not supported")
    if kind in _FILTERING:
        if side not in ("", "LEFT"):
            raise Unsupported(f"{side} {kind} JOIN is not supported; exchange the two sides")
        return _FILTERING[kind], method
    if kind not in ("", "INNER", "OUTER", "CROSS") or side not in _SIDES:
        raise Unsupported(f"{side} {kind} JOIN is not supported".replace("  ", " "))
    if kind == "CROSS" and (node.args.get("on") is not None or node.args.get("using") or method or side):
        raise ClauseFault("a CROSS JOIN takes no condition")
    return _SIDES[side], method


def _right_side(left: Bound, node: Node, further: Sequence[Node], block: Block) -> tuple[Bound, bool]:
    """Binds the right side, and tells whether it reads columns of the left one."""
    is_named = node.__class__ is exp.Table and node.args["this"].__class__ is exp.Identifier
    if is_named and not further and not node.args.get("joins"):
        return tables.relation(node, block), False
    around = Context(block, left.scope, "LATERAL")
    inside = Block(block.statement, around, block.tables)
    right = _with_joins(joined(node, inside), further, inside)
    if around.captured:
        return right, True
    if inside.reach:
        return right._replace(relation=deepen(right.relation, -1)), False
    return right, False


def _common_names(left: Scope, right: Scope) -> list[str]:
    lefts = {name.lower() for name, _ in left.star()}
    names = [name.lower() for name, _ in right.star() if name.lower() in lefts]
    if not names:
        raise NameFault("NATURAL JOIN: the two sides have no column of the same name; use CROSS JOIN for all pairs")
    return list(dict.fromkeys(names))


def _asof(left: Bound, right: Bound, kind: JoinKind, condition: Expr | None, *, dependent: bool) -> Rel:
    """ASOF JOIN … ON: equalities, one inequality of a value of each side, and other conditions."""
    if dependent:
        raise Unsupported("the right side of an ASOF JOIN cannot read the left side")
    width = left.scope.width
    by = split_asof(condition, width)
    if by.holds is None:
        return asof_join(
            left.relation, right.relation, by.keys, by.near, kind, null_equal_count=by.null_equal_count,
            tests=by.tests, residual=by.residual,
        )  # fmt: skip
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        raise Unsupported(f"an ASOF {kind.name} JOIN takes conditions of one side each beside its equalities")
    alike, keys = by.keys[: by.null_equal_count], by.keys[by.null_equal_count :]
    parts = [functions.scalar("is_not_distinct", (a, tree.shift(b, width))) for a, b in alike]
    parts += [tree.shift(test, width) for test in by.tests]
    holds = tree.conjoin([*parts, by.holds, *tree.conjuncts(by.residual)])
    assert holds is not None
    return asof_join_where(left.relation, right.relation, keys, by.near, kind, holds)


def _by_position(left: Rel, right: Rel) -> Rel:
    """Rows of equal number beside each other; the shorter side is filled up with NULLs."""

    lefts, rights = _numbered_by_table(left), _numbered_by_table(right)
    if lefts is None or rights is None:
        lefts, rights = _numbered(left), _numbered(right)
    keys = [(Column(len(side.schema), INT64),) for side in (left, right)]
    joined = Join(lefts, rights, JoinKind.FULL, keys[0], keys[1])
    width = len(left.schema)
    number = functions.scalar("coalesce", (Column(width, INT64), Column(len(joined.schema) - 1, INT64)))
    ordered = Sort(joined, (SortKey(number),))
    return tree.select(ordered, [*range(width), *range(width + 1, len(joined.schema) - 1)])


def _numbered(rel: Rel) -> Rel:
    number = WindowCall(functions.window("row_number", ()), (), (), WHOLE_PARTITION)
    return Window(rel, (number,), ("number",))


def _numbered_by_table(rel: Rel) -> Rel | None:
    """The same rows with the numbers that they have in their table, if they are all rows of one: no row has to wait."""
    if isinstance(rel, Scan):
        return RowNumbers(rel)
    numbered = _numbered_by_table(rel.input) if isinstance(rel, Project) else None
    if numbered is None or not isinstance(rel, Project):
        return None
    return Project(numbered, (*rel.exprs, Column(len(numbered.schema) - 1, INT64)), (*rel.names, "number"))


def _join_using(left: Bound, right: Bound, kind: JoinKind, names: Sequence[str], method: str) -> Bound:
    width = left.scope.width
    lefts, rights = [], []
    for name in names:
        lefts.append(_using_column(left.scope, name, "left"))
        rights.append(_using_column(right.scope, name, "right"))
    compared = [functions.compared(pair, equality=True, place="USING") for pair in zip(lefts, rights, strict=True)]
    keys = [(a, b) for a, b in compared]
    left_keys, right_keys = tuple([a for a, _ in keys]), tuple([b for _, b in keys])
    if method == "ASOF":
        # The last column is the one that is compared by >=.
        near = Nearness(*keys[-1], "ge")
        made: Rel = asof_join(left.relation, right.relation, keys[:-1], near, kind)
    else:
        made = Join(left.relation, right.relation, kind, left_keys, right_keys)
    if kind in _LEFT_ONLY:
        return Bound(made, left.scope)
    scope = left.scope.beside(right.scope)
    scope = replace(scope, merged=dict(scope.merged), shown=dict(scope.shown))
    extra: list[Expr] = []
    for name, a, b in zip(names, lefts, rights, strict=True):
        common = a.index
        if kind is JoinKind.RIGHT:
            common = b.index + width
        elif kind is JoinKind.FULL:
            common = scope.width + len(extra)
            extra.append(functions.scalar("coalesce", (a, Column(b.index + width, b.type))))
        _merge(scope, name, a.index, b.index + width, common)
    if extra:
        types = scope.types + tuple([expr.type for expr in extra])
        columns = [Column(index, kind_) for index, kind_ in enumerate(scope.types)]
        labels = [f"c{index}" for index in range(len(types))]
        made = Project(made, (*columns, *extra), tuple(labels))
        scope = replace(scope, types=types)
    return Bound(made, scope)


def _merge(scope: Scope, name: str, left: int, right: int, common: int) -> None:
    """Makes `common` the meaning of the plain name; the column stands where the left one stood."""
    scope.merged[name] = common
    # Where a join before this one has merged the column already, `left` is what is shown somewhere else.
    places = [place for place, shown in scope.shown.items() if shown == left] or [left]
    for place in places:
        scope.shown[place] = common
    scope.shown[right] = None


def _using_column(scope: Scope, name: str, side: str) -> Column:
    index = scope.find(name)
    if index is None:
        raise NameFault(f"USING: the {side} side has no column '{name}'{scope.hint(name)}")
    return Column(index, scope.types[index])


def join(left: Rel, right: Rel, kind: JoinKind, condition: Expr | None, width: int) -> Rel:
    """A join whose condition is split into key pairs, one side each, and the rest; `width` columns are left ones."""
    pairs, rest = split(condition, width)
    left_keys, right_keys = tuple([a for a, _ in pairs]), tuple([b for _, b in pairs])
    return Join(left, right, kind, left_keys, right_keys, tree.conjoin(rest))
