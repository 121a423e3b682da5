"""Operators and predicates: columns, arithmetic, comparison, logic, CASE, CAST, LIKE, IN over a list.

Each handler binds the parts of one type of syntax node and builds the call through `plan.functions`, which knows the
types. Literals are in `literals`, named functions in `calls`, subqueries in `subquery`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlglot import expressions as exp

from bireme.data.types import BOOL, STRING, Kind
from bireme.errors import ClauseFault, NameFault, SyntaxFault, Unsupported
from bireme.frontend.sql.context import Context
from bireme.frontend.sql.members import compared_with_each, in_, quantifier
from bireme.frontend.sql.statement import Handler
from bireme.frontend.sql.subquery import row
from bireme.frontend.sql.syntax import Node, check_arguments, located
from bireme.frontend.sql.type_syntax import data_type
from bireme.plan import functions
from bireme.plan.expr import Expr, Literal
from bireme.plan.tree import FALSE


def part(node: Node, name: str, context: Context) -> Expr:
    """Binds a required part of a node; the parser lets some through that are missing."""
    value = node.args.get(name)
    if not isinstance(value, Node):
        raise SyntaxFault("something is missing here")
    return context.bind(value)


def column(node: Node, context: Context) -> Expr:
    args = node.args
    name = args["this"]
    if name.__class__ is not exp.Identifier:
        if name.__class__ is exp.Star:
            raise ClauseFault("a star can only stand alone in a select list, or in count(*)")
        raise Unsupported("only plain names of columns are supported")
    catalog, schema, relation = args.get("catalog"), args.get("db"), args.get("table")
    if relation is None and schema is None and catalog is None:
        return context.column(name.args["this"].lower(), None, node)
    around = [part for part in (catalog, schema, relation) if part is not None]
    return path([part.name for part in (*around, name)], node, context)


def numbered_column(node: Node, context: Context) -> Expr:
    """`#1`."""
    return context.numbered(int(node.args["this"].args["this"]), node)


def path(names: Sequence[str], node: Node, context: Context) -> Expr:
    """`relation.column.field…` or `column.field…`."""
    value, rest = context.dotted(names, node)
    for field in rest:
        value = field_named(value, field)
    return value


def field_named(value: Expr, name: str) -> Expr:
    """The field of a struct."""
    if value.type.kind is not Kind.STRUCT:
        raise NameFault(f"only a struct has fields, such as '{name}', and this is {value.type}")
    return functions.scalar("struct_extract", (value, Literal(name, STRING)))


def paren(node: Node, context: Context) -> Expr:
    return part(node, "this", context)


def binary(function: str) -> Callable[[Node, Context], Expr]:
    def bind_binary(node: Node, context: Context) -> Expr:
        return functions.scalar(function, (part(node, "this", context), part(node, "expression", context)))

    return bind_binary


def unary(function: str) -> Callable[[Node, Context], Expr]:
    def bind_unary(node: Node, context: Context) -> Expr:
        return functions.scalar(function, (part(node, "this", context),))

    return bind_unary


def comparison(function: str) -> Callable[[Node, Context], Expr]:
    def bind_comparison(node: Node, context: Context) -> Expr:
        left, right = node.args["this"], node.args["expression"]
        if left.__class__ in _COMPARISONS:
            raise SyntaxFault("comparisons cannot be chained; write a < b AND b < c, or put one in parentheses")
        each = quantifier(right)
        if each is not None:
            return compared_with_each(left, function, each, context)
        if left.__class__ is exp.Tuple or right.__class__ is exp.Tuple:
            return _compare_rows(left, function, right, context)
        return functions.scalar(function, (part(node, "this", context), part(node, "expression", context)))

    return bind_comparison


_ROW_COMPARISONS: Final = {
    "eq": ("is_not_distinct", "and"),
    "is_not_distinct": ("is_not_distinct", "and"),
    "ne": ("is_distinct", "or"),
    "is_distinct": ("is_distinct", "or"),
}


def _compare_rows(left: Node, function: str, right: Node, context: Context) -> Expr:
    """Rows compare as values do in DuckDB: their NULLs are equal to each other, and greater than anything else."""
    lefts, rights = row(left, context), row(right, context)
    if len(lefts) != len(rights):
        raise ClauseFault(f"a row of {len(lefts)} is compared with a row of {len(rights)}")
    if function not in _ROW_COMPARISONS:
        return _order_rows(lefts, function, rights)
    each, joined = _ROW_COMPARISONS[function]
    return connect(joined, [functions.scalar(each, pair) for pair in zip(lefts, rights, strict=True)])


def _order_rows(lefts: Sequence[Expr], function: str, rights: Sequence[Expr]) -> Expr:
    """The first columns that differ decide."""
    less = function in ("lt", "le")
    decided: Expr = Literal(function in ("le", "ge"), BOOL)
    for pair in reversed(list(zip(lefts, rights, strict=True))):
        a, b = pair if less else pair[::-1]
        # Whether a comes before b, with NULL behind all values.
        before = functions.scalar("and", (functions.scalar("is_not_null", (a,)), functions.scalar("is_null", (b,))))
        before = functions.scalar("or", (before, functions.scalar("coalesce", (functions.scalar("lt", (a, b)), FALSE))))
        differ = functions.scalar("is_distinct", pair)
        decided = functions.case([(differ, before)], decided)
    return decided


def connect(function: str, operands: Sequence[Expr]) -> Expr:
    """AND or OR of any number of operands."""
    return operands[0] if len(operands) == 1 else functions.scalar(function, operands)


def connector(function: str) -> Callable[[Node, Context], Expr]:
    def bind_connector(node: Node, context: Context) -> Expr:
        # Chains lean to the left and can be thousands long: walk them without recursion.
        kind = node.__class__
        operands: list[Node] = []
        while node.__class__ is kind:
            check_arguments(node, {"this", "expression"})
            operands.append(node.args["expression"])
            node = node.args["this"]
        operands.append(node)
        return connect(function, [context.bind(operand) for operand in reversed(operands)])

    return bind_connector


def negation(node: Node, context: Context) -> Expr:
    inner = node.args["this"]
    if inner.__class__ is exp.Is:
        check_arguments(inner, _IS)
        return _is(inner, context, not inner.args.get("negate"))
    return functions.scalar("not", (part(node, "this", context),))


_IS: Final = frozenset({"this", "expression", "negate"})


def is_(node: Node, context: Context) -> Expr:
    return _is(node, context, bool(node.args.get("negate")))


def _is(node: Node, context: Context, negated: bool) -> Expr:
    what = node.args["expression"]
    if what.__class__ is exp.Null:
        function = "is_not_null" if negated else "is_null"
    elif what.__class__ is exp.Boolean:
        function = f"is_{'not_' if negated else ''}{'true' if what.args['this'] else 'false'}"
    else:
        raise Unsupported("IS takes NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
    return functions.scalar(function, (part(node, "this", context),))


def between(node: Node, context: Context) -> Expr:
    return functions.between(part(node, "this", context), part(node, "low", context), part(node, "high", context))


def like(function: str) -> Callable[[Node, Context], Expr]:
    def bind_like(node: Node, context: Context) -> Expr:
        return _like(function, node, context, ())

    return bind_like


def _like(function: str, node: Node, context: Context, escape: tuple[Expr, ...]) -> Expr:
    pattern = node.args["expression"]
    if pattern.__class__ in (exp.Any, exp.All, exp.Tuple):
        raise Unsupported("LIKE ANY and LIKE ALL are not supported; combine several LIKE with OR and AND")
    matched = functions.scalar(function, (part(node, "this", context), context.bind(pattern), *escape))
    return functions.scalar("not", (matched,)) if node.args.get("negate") else matched


_LIKE: Final = frozenset({"this", "expression", "negate"})
_LIKES: Final = {exp.Like: "like", exp.ILike: "ilike"}


def escape(node: Node, context: Context) -> Expr:
    inner = node.args["this"]
    function = _LIKES.get(inner.__class__)
    if function is None:
        raise SyntaxFault("ESCAPE belongs to LIKE or ILIKE")
    check_arguments(inner, _LIKE)
    return _like(function, inner, context, (part(node, "expression", context),))


def case(node: Node, context: Context) -> Expr:
    args = node.args
    operand = context.bind(args["this"]) if args.get("this") is not None else None
    branches = []
    for branch in args["ifs"]:
        check_arguments(branch, {"this", "true"})
        condition = part(branch, "this", context)
        if operand is not None:
            condition = functions.scalar("eq", (operand, condition))
        branches.append((condition, part(branch, "true", context)))
    otherwise = args.get("default")
    if not branches:
        raise SyntaxFault("CASE has no WHEN")
    return functions.case(branches, None if otherwise is None else context.bind(otherwise))


def if_(node: Node, context: Context) -> Expr:
    branches = [(part(node, "this", context), part(node, "true", context))]
    return functions.case(branches, part(node, "false", context) if node.args.get("false") is not None else None)


def cast(safe: bool) -> Callable[[Node, Context], Expr]:
    def bind_cast(node: Node, context: Context) -> Expr:
        to = node.args["to"]
        if to.__class__ is exp.DataType and to.args["this"] is exp.DType.JSON:
            return _json(part(node, "this", context), safe)
        try:
            kind = data_type(to)
        except Unsupported as error:
            located(error, to, context.statement.text)
            raise
        return functions.cast(part(node, "this", context), kind, safe)

    return bind_cast


def _json(value: Expr, safe: bool) -> Expr:
    """A text in JSON stays a text, and is well formed from here on."""
    if value.type is not STRING:
        raise Unsupported(f"only texts can be read as JSON, not {value.type}")
    if not safe:
        return functions.scalar("json_checked", [value])
    return functions.case([(functions.scalar("json_valid", [value]), value)], None)


_COMPARISONS: Final[dict[type[Node], str]] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
}
_BINARY: Final = frozenset({"this", "expression"})
_THIS: Final = frozenset({"this"})


def _calls(
    kinds: dict[type[Node], str], make: Callable[[str], Any], known: frozenset[str]
) -> dict[type[Node], Handler]:
    return {kind: (make(function), known) for kind, function in kinds.items()}


HANDLERS: Final[dict[type[Node], Handler]] = {
    exp.Column: (column, frozenset({"this", "table", "db", "catalog"})),
    exp.PositionalColumn: (numbered_column, _THIS),
    exp.Paren: (paren, _THIS),
    **_calls(_COMPARISONS, comparison, _BINARY),
    **_calls({exp.NullSafeEQ: "is_not_distinct", exp.NullSafeNEQ: "is_distinct"}, comparison, _BINARY),
    **_calls({exp.And: "and", exp.Or: "or"}, connector, _BINARY),
    **_calls({exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.IntDiv: "int_divide"}, binary, _BINARY),
    **_calls(
        {exp.Mod: "modulo", exp.Pow: "power", exp.RegexpLike: "regexp_matches", exp.SimilarTo: "regexp_full_match"},
        binary,
        _BINARY,
    ),
    **_calls(
        {
            exp.BitwiseAnd: "bitwise_and",
            exp.BitwiseOr: "bitwise_or",
            exp.BitwiseLeftShift: "shift_left",
            exp.BitwiseRightShift: "shift_right",
            exp.StartsWith: "starts_with",
            exp.Glob: "glob",
        },
        binary,
        _BINARY,
    ),
    exp.JSONExtract: (binary("json_extract"), _BINARY | {"only_json_types"}),
    exp.JSONExtractScalar: (binary("json_extract_string"), _BINARY | {"only_json_types", "scalar_only"}),
    exp.BitwiseNot: (unary("bitwise_not"), _THIS),
    exp.Div: (binary("divide"), _BINARY | {"typed", "safe"}),
    exp.DPipe: (binary("concat_op"), _BINARY | {"safe"}),
    exp.Abs: (unary("abs"), _THIS),
    exp.Not: (negation, _THIS),
    exp.Is: (is_, _IS),
    exp.Between: (between, frozenset({"this", "low", "high"})),
    **_calls({exp.Like: "like", exp.ILike: "ilike"}, like, _LIKE),
    exp.Escape: (escape, _BINARY),
    exp.Case: (case, frozenset({"this", "ifs", "default"})),
    exp.If: (if_, frozenset({"this", "true", "false"})),
    exp.Cast: (cast(safe=False), frozenset({"this", "to"})),
    exp.TryCast: (cast(safe=True), frozenset({"this", "to", "safe"})),
    exp.In: (in_, frozenset({"this", "query", "expressions", "field"})),
}
