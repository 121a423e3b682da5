"""Any plan back to DuckDB SQL: what the text computes is what the plan says, so DuckDB can judge binder and rules.

Every relation becomes a SELECT whose columns are called c0, c1, …; nothing is merged or simplified. `to_sql` gives the
statement for a whole plan, its columns under their own names.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import count

from bireme.data.types import DataType, Kind
from bireme.plan.expr import (
    Aggregation,
    Bound,
    BoundKind,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Expr,
    Frame,
    InList,
    Interval,
    Literal,
    OuterColumn,
    QuantifiedSubquery,
    Quantifier,
    ScalarSubquery,
    SortKey,
    WindowCall,
)
from bireme.plan.functions.conversion import is_row
from bireme.plan.relation import (
    Aggregate,
    Assume,
    DependentJoin,
    Filter,
    Join,
    JoinKind,
    Limit,
    Project,
    Rel,
    RowNumbers,
    Scan,
    Sort,
    Union,
    Unnest,
    Values,
    Window,
)

# Gives the text of the column at a position.
Namer = Callable[[int], str]
# The columns of the operators around, innermost last.
Around = tuple[Namer, ...]

_OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "int_divide": "//", "modulo": "%", "eq": "=",
    "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "is_distinct": "IS DISTINCT FROM",
    "is_not_distinct": "IS NOT DISTINCT FROM", "concat_op": "||", "and": "AND", "or": "OR",
    "bitwise_and": "&", "bitwise_or": "|", "shift_left": "<<", "shift_right": ">>",
}  # fmt: skip
_PREFIXES = {"not": "NOT", "negate": "-", "bitwise_not": "~"}
_TESTS = {
    "is_null": "IS NULL", "is_not_null": "IS NOT NULL", "is_true": "IS TRUE", "is_not_true": "IS NOT TRUE",
    "is_false": "IS FALSE", "is_not_false": "IS NOT FALSE",
}  # fmt: skip
_NAMES = {
    "position": "strpos", "count_star": "count", "is_nan": "isnan", "is_inf": "isinf", "is_finite": "isfinite",
    "bitwise_xor": "xor",
}  # fmt: skip
_INTEGER_COUNTS = frozenset({"lpad", "rpad"})
_UNFRAMED = frozenset(
    {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"}
)  # fmt: skip
_JOINS = {JoinKind.INNER: "INNER", JoinKind.LEFT: "LEFT", JoinKind.RIGHT: "RIGHT", JoinKind.FULL: "FULL"}
_NEGATED = {"eq": "<>", "ne": "=", "lt": ">=", "le": ">", "gt": "<=", "ge": "<"}


def to_sql(plan: Rel) -> str:
    """The statement that computes `plan`, in its order, its columns named as in its schema."""
    fields = plan.schema.fields
    columns = ", ".join(f"c{index} AS {quoted(field.name)}" for index, field in enumerate(fields))
    return f"SELECT {columns or '*'} FROM ({_Printer().relation(plan, ())}) AS result"


def quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def type_name(kind: DataType) -> str:
    """The type as DuckDB writes it."""
    if kind.kind is Kind.NULL:
        return '"NULL"'
    if kind.kind is Kind.TIMESTAMP:
        return "TIMESTAMPTZ" if kind.zone else {"us": "TIMESTAMP"}.get(kind.unit, f"TIMESTAMP_{kind.unit.upper()}")
    if kind.kind is Kind.DECIMAL and (kind.precision, kind.scale) == (38, 0):
        return "HUGEINT"  # what DuckDB itself has where we have decimal(38,0)
    return str(kind)


def literal(expr: Literal) -> str:
    value, kind = expr.value, expr.type
    if value is None:
        return "NULL" if kind.kind is Kind.NULL else f"CAST(NULL AS {type_name(kind)})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, Interval):
        text = f"{value.months} months {value.days} days {value.nanoseconds // 1000} microseconds"
        return f"CAST('{text}' AS INTERVAL)"
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    if isinstance(value, str):
        text = value.replace("'", "''")
        return f"'{text}'"
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return f"CAST('{value.isoformat()}' AS {type_name(kind)})"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS {type_name(kind)})"
    shown = format(value, "f") if isinstance(value, Decimal) else str(value)
    return f"CAST('{shown}' AS {type_name(kind)})"


class _Printer:
    def __init__(self) -> None:
        self._aliases = count()

    def relation(self, rel: Rel, around: Around) -> str:
        return _RELATIONS[type(rel)](self, rel, around)

    def source(self, rel: Rel, around: Around) -> tuple[str, Namer]:
        """A relation as an item of FROM, and how its columns are called."""
        alias = f"t{next(self._aliases)}"
        return f"({self.relation(rel, around)}) AS {alias}", _columns_of(alias)

    # ------------------------------------------------------------------------------------- relations

    def scan(self, rel: Scan, around: Around) -> str:
        fields = [rel.table_schema.fields[position] for position in rel.columns]
        columns = _select_list([quoted(field.name) for field in fields])
        inner = f"SELECT {columns} FROM {quoted(rel.table)}"
        if not rel.filters:
            return inner
        predicates = [self.expr(part, _columns_of("scanned"), around) for part in rel.filters]
        return f"SELECT * FROM ({inner}) AS scanned WHERE {' AND '.join(predicates)}"

    def row_numbers(self, rel: RowNumbers, around: Around) -> str:
        fields = [rel.input.table_schema.fields[position] for position in rel.input.columns]
        columns = _select_list([*[quoted(field.name) for field in fields], "row_number() OVER () - 1"])
        inner = f"SELECT {columns} FROM {quoted(rel.input.table)}"
        if not rel.input.filters:
            return inner
        predicates = [self.expr(part, _columns_of("scanned"), around) for part in rel.input.filters]
        return f"SELECT * FROM ({inner}) AS scanned WHERE {' AND '.join(predicates)}"

    def assume(self, rel: Assume, around: Around) -> str:
        return f"SELECT * FROM {self.source(rel.input, around)[0]}"

    def values(self, rel: Values, around: Around) -> str:
        fields = rel.row_schema.fields
        if not rel.rows:
            empty = [f"CAST(NULL AS {type_name(field.type)})" for field in fields]
            return f"SELECT {_select_list(empty)} WHERE FALSE"
        return " UNION ALL ".join(f"SELECT {_select_list([literal(cell) for cell in row])}" for row in rel.rows)

    def project(self, rel: Project, around: Around) -> str:
        source, name = self.source(rel.input, around)
        return f"SELECT {_select_list([self.expr(expr, name, around) for expr in rel.exprs])} FROM {source}"

    def filter(self, rel: Filter, around: Around) -> str:
        source, name = self.source(rel.input, around)
        return f"SELECT * FROM {source} WHERE {self.expr(rel.predicate, name, around)}"

    def join(self, rel: Join, around: Around) -> str:
        left, left_name = self.source(rel.left, around)
        right, right_name = self.source(rel.right, around)
        width = len(rel.left.schema.fields)
        name = _side_by_side(left_name, right_name, width)
        pairs = [
            (self.expr(a, left_name, around), self.expr(b, right_name, around))
            for a, b in zip(rel.left_keys, rel.right_keys, strict=True)
        ]
        selecting = [f"({a} IS NOT DISTINCT FROM {b})" for a, b in pairs[: rel.null_equal_count]]
        if rel.residual is not None:
            selecting.append(self.expr(rel.residual, name, around))
        compared = [f"({a} = {b})" for a, b in pairs[rel.null_equal_count :]]
        if not rel.null_aware:
            selecting, compared = selecting + compared, []
        return _joined(
            rel.kind, _Sides(left, right, left_name, right_name, width, _width(rel.right)), selecting, compared
        )

    def dependent_join(self, rel: DependentJoin, around: Around) -> str:
        left, left_name = self.source(rel.left, around)
        right, right_name = self.source(rel.right, (*around, left_name))
        width = len(rel.left.schema.fields)
        name = _side_by_side(left_name, right_name, width)
        selecting = [] if rel.condition is None else [self.expr(rel.condition, name, around)]
        sides = _Sides(left, f"LATERAL {right}", left_name, right_name, width, _width(rel.right))
        if rel.kind in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK, JoinKind.SINGLE):
            sides.right = right
        compared = [selecting.pop()] if rel.kind is JoinKind.MARK and selecting else []
        return _joined(rel.kind, sides, selecting, compared)

    def aggregate(self, rel: Aggregate, around: Around) -> str:
        source, name = self.source(rel.input, around)
        keys = [f"{self.expr(key, name, around)} AS k{index}" for index, key in enumerate(rel.keys)]
        keyed = f"SELECT {', '.join(['*', *keys])} FROM {source}"
        inner = _columns_of("keyed")
        calls = [f"CAST({self.aggregation(call, inner, around)} AS {type_name(call.type)})" for call in rel.aggregates]
        if rel.grouping_sets is None:
            return _grouped("keyed", f"({keyed}) AS keyed", rel, range(len(rel.keys)), calls)
        alias = f"g{next(self._aliases)}"
        parts = [
            _grouped("keyed", f"{alias} AS keyed", rel, chosen, [*calls, f"CAST({number} AS BIGINT)"])
            for number, chosen in enumerate(rel.grouping_sets)
        ]
        return f"WITH {alias} AS MATERIALIZED ({keyed}) " + " UNION ALL ".join(f"({part})" for part in parts)

    def unnest(self, rel: Unnest, around: Around) -> str:
        source, name = self.source(rel.input, around)
        longest = f"greatest(0, {', '.join([f'len({name(place)})' for place in rel.lists])})"
        lists = [name(place) for place in rel.lists]
        if rel.has_ordinality:
            lists.append(f"range(1, {longest} + 1)")
        if rel.keeps_empty:
            lists = [f"CASE WHEN {longest} = 0 THEN [NULL] ELSE {each} END" for each in lists]
        columns = [*[name(place) for place in rel.kept], *[f"unnest({each})" for each in lists]]
        return f"SELECT {_select_list(columns)} FROM {source}"

    def window(self, rel: Window, around: Around) -> str:
        source, name = self.source(rel.input, around)
        width = len(rel.input.schema.fields)
        calls = [
            f"CAST({self.window_call(call, name, around)} AS {type_name(call.call.type)}) AS c{index}"
            for index, call in enumerate(rel.calls, start=width)
        ]
        return f"SELECT {', '.join(['*', *calls])} FROM {source}"

    def sort(self, rel: Sort, around: Around) -> str:
        source, name = self.source(rel.input, around)
        keys = ", ".join(self.sort_key(key, name, around) for key in rel.keys)
        order = f" ORDER BY {keys}" if keys else ""
        return f"SELECT * FROM {source}{order}{_range(rel.limit, rel.offset)}"

    def limit(self, rel: Limit, around: Around) -> str:
        source, _ = self.source(rel.input, around)
        return f"SELECT * FROM {source}{_range(rel.limit, rel.offset)}"

    def union(self, rel: Union, around: Around) -> str:
        parts = []
        for source in rel.sources:
            item, _ = self.source(source, around)
            parts.append(f"(SELECT * FROM {item})")
        return " UNION ALL ".join(parts)

    # ----------------------------------------------------------------------------------- expressions

    def expr(self, expr: Expr, name: Namer, around: Around) -> str:
        match expr:
            case Column(index):
                return name(index)
            case OuterColumn(depth, index):
                return around[-depth](index)
            case Literal():
                return literal(expr)
            case Call():
                return self.call(expr, name, around)
            case Cast(arg, kind, safe):
                return f"{'TRY_CAST' if safe else 'CAST'}({self.expr(arg, name, around)} AS {type_name(kind)})"
            case Case(branches, default):
                parts = [
                    f"WHEN {self.expr(condition, name, around)} THEN {self.expr(value, name, around)}"
                    for condition, value in branches
                ]
                return f"CASE {' '.join(parts)} ELSE {self.expr(default, name, around)} END"
            case InList(arg, items):
                listed = ", ".join(self.expr(item, name, around) for item in items)
                return f"({self.expr(arg, name, around)} IN ({listed}))"
            case ScalarSubquery(plan):
                return f"(SELECT c0 FROM {self.source(plan, (*around, name))[0]})"
            case Exists(plan):
                return f"EXISTS (SELECT 1 FROM {self.source(plan, (*around, name))[0]})"
            case QuantifiedSubquery():
                return self.quantified(expr, name, around)
        raise AssertionError(f"no SQL for {type(expr).__name__}")

    def call(self, call: Call, name: Namer, around: Around) -> str:
        function = call.function
        args = [self.expr(arg, name, around) for arg in call.args]
        if function == "struct_pack" and not is_row(call.type):
            names = [child.name.replace("'", "''") for child in call.type.children]
            fields = [f"'{field}': {arg}" for field, arg in zip(names, args, strict=True)]
            return "{" + ", ".join(fields) + "}"
        if function == "struct_pack":
            return f"row({', '.join(args)})"
        if function in _OPERATORS:
            return f"({f' {_OPERATORS[function]} '.join(args)})"
        if function in _PREFIXES:
            return f"({_PREFIXES[function]} {args[0]})"
        if function in _TESTS:
            return f"({args[0]} {_TESTS[function]})"
        if function in ("like", "ilike"):
            escape = f" ESCAPE {args[2]}" if len(args) > 2 else ""
            return f"({args[0]} {function.upper()} {args[1]}{escape})"
        if function in _INTEGER_COUNTS:
            args[1] = f"CAST({args[1]} AS INTEGER)"
        return f"{_NAMES.get(function, function)}({', '.join(args)})"

    def quantified(self, expr: QuantifiedSubquery, name: Namer, around: Around) -> str:
        operands = [self.expr(operand, name, around) for operand in expr.operands]
        source, column = self.source(expr.plan, (*around, name))
        if len(operands) == 1:
            operator = _OPERATORS[expr.comparison]
            return f"({operands[0]} {operator} {expr.quantifier.name} (SELECT {column(0)} FROM {source}))"
        # Rows: the three-valued OR (ANY) or AND (ALL) over the rows of the plan, spelled out.
        equal = " AND ".join(f"({operand} = {column(index)})" for index, operand in enumerate(operands))
        holds = f"({equal})" if expr.comparison == "eq" else f"(NOT ({equal}))"
        found = holds if expr.quantifier is Quantifier.ANY else f"(NOT {holds})"
        text = _three_valued(source, [], [found])
        return text if expr.quantifier is Quantifier.ANY else f"(NOT {text})"

    def aggregation(self, call: Aggregation, name: Namer, around: Around) -> str:
        args = ", ".join(self.expr(arg, name, around) for arg in call.args)
        if call.function == "count_star":
            args = "*"
        distinct = "DISTINCT " if call.distinct else ""
        order = f" ORDER BY {', '.join(self.sort_key(key, name, around) for key in call.order)}" if call.order else ""
        keeps = f" FILTER (WHERE {self.expr(call.filter, name, around)})" if call.filter is not None else ""
        return f"{_NAMES.get(call.function, call.function)}({distinct}{args}{order}){keeps}"

    def window_call(self, call: WindowCall, name: Namer, around: Around) -> str:
        function = self.aggregation(call.call, name, around)
        if call.ignore_nulls:
            opening, _, closing = function.rpartition(")")
            function = f"{opening} IGNORE NULLS){closing}"
        parts = []
        if call.partition:
            parts.append(f"PARTITION BY {', '.join(self.expr(key, name, around) for key in call.partition)}")
        if call.order:
            parts.append(f"ORDER BY {', '.join(self.sort_key(key, name, around) for key in call.order)}")
        if call.call.function not in _UNFRAMED:
            parts.append(_frame(call.frame))
        return f"{function} OVER ({' '.join(parts)})"

    def sort_key(self, key: SortKey, name: Namer, around: Around) -> str:
        text = self.expr(key.expr, name, around)
        if isinstance(key.expr, Literal):
            text = f"({text} || '')" if key.expr.type.kind is Kind.STRING else f"({text})"
        return f"{text} {'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


class _Sides:
    """Both sides of a join as items of FROM."""

    def __init__(
        self, left: str, right: str, left_name: Namer, right_name: Namer, left_width: int, right_width: int
    ) -> None:
        self.left, self.right = left, right
        self.left_columns = [left_name(index) for index in range(left_width)]
        self.right_columns = [right_name(index) for index in range(right_width)]


def _joined(kind: JoinKind, sides: _Sides, selecting: Sequence[str], compared: Sequence[str]) -> str:
    """A join: of the right rows for which all of `selecting` hold, whether `compared` holds is three-valued."""
    left = _select_list(sides.left_columns)
    where = " AND ".join([*selecting, *compared]) or "TRUE"
    if kind in _JOINS:
        both = _select_list(sides.left_columns + sides.right_columns)
        return f"SELECT {both} FROM {sides.left} {_JOINS[kind]} JOIN {sides.right} ON {where}"
    mark = _three_valued(sides.right, selecting, compared)
    if kind is JoinKind.MARK:
        return f"SELECT {_select_list([*sides.left_columns, mark])} FROM {sides.left}"
    if kind is JoinKind.SEMI:
        return f"SELECT {left} FROM {sides.left} WHERE {mark}"
    if kind is JoinKind.ANTI:
        return f"SELECT {left} FROM {sides.left} WHERE ({mark}) IS FALSE"
    packed = ", ".join(f"f{index} := {column}" for index, column in enumerate(sides.right_columns)) or "f := 1"
    inner = f"SELECT {left}, (SELECT struct_pack({packed}) FROM {sides.right} WHERE {where}) AS s FROM {sides.left}"
    width = len(sides.left_columns)
    columns = [f"c{index}" for index in range(width)]
    columns += [f"s.f{index}" for index in range(len(sides.right_columns))]
    return f"SELECT {_select_list(columns)} FROM ({inner}) AS single"


def _three_valued(source: str, selecting: Sequence[str], compared: Sequence[str]) -> str:
    """The OR of `compared` over the rows of `source` for which `selecting` holds; EXISTS without `compared`."""
    kept = " AND ".join(selecting) or "TRUE"
    if not compared:
        return f"EXISTS (SELECT 1 FROM {source} WHERE {kept})"
    matched = f"({' AND '.join(compared)})"
    return (
        f"CASE WHEN EXISTS (SELECT 1 FROM {source} WHERE {kept} AND {matched}) THEN TRUE"
        f" WHEN EXISTS (SELECT 1 FROM {source} WHERE {kept} AND {matched} IS NULL) THEN NULL ELSE FALSE END"
    )


def _grouped(alias: str, source: str, rel: Aggregate, chosen: Sequence[int], calls: Sequence[str]) -> str:
    keys = [
        f"{alias}.k{index}" if index in chosen else f"CAST(NULL AS {type_name(key.type)})"
        for index, key in enumerate(rel.keys)
    ]
    columns = _select_list([*keys, *calls], nothing="count(*)")
    by = f" GROUP BY {', '.join(f'{alias}.k{index}' for index in chosen)}" if chosen else ""
    if not by and not calls:
        columns = columns.replace("count(*) AS nothing", "any_value(1) AS nothing") if not keys else columns
        return f"SELECT {columns} FROM {source} HAVING count(*) >= 0" if keys else f"SELECT {columns} FROM {source}"
    return f"SELECT {columns} FROM {source}{by}"


def _select_list(texts: Sequence[str], nothing: str = "NULL") -> str:
    """Columns called c0, c1, …; SQL has no relation without columns, so one stands for none."""
    return ", ".join(f"{text} AS c{index}" for index, text in enumerate(texts)) or f"{nothing} AS nothing"


def _columns_of(alias: str) -> Namer:
    return lambda index: f"{alias}.c{index}"


def _side_by_side(left: Namer, right: Namer, width: int) -> Namer:
    return lambda index: left(index) if index < width else right(index - width)


def _width(rel: Rel) -> int:
    return len(rel.schema.fields)


def _range(limit: int | None, offset: int) -> str:
    text = "" if limit is None else f" LIMIT {limit}"
    return f"{text} OFFSET {offset}" if offset else text


def _frame(frame: Frame) -> str:
    exclusion = f"EXCLUDE {frame.exclusion.value.upper()}"
    return f"{frame.unit.value.upper()} BETWEEN {_bound(frame.start)} AND {_bound(frame.end)} {exclusion}"


def _bound(bound: Bound) -> str:
    if bound.kind in (BoundKind.PRECEDING, BoundKind.FOLLOWING):
        assert bound.offset is not None
        return f"{literal(bound.offset)} {bound.kind.value.upper()}"
    return bound.kind.value.upper()


_RELATIONS: dict[type[Rel], Callable[[_Printer, object, Around], str]] = {
    Scan: _Printer.scan,
    RowNumbers: _Printer.row_numbers,
    Assume: _Printer.assume,
    Values: _Printer.values,
    Project: _Printer.project,
    Filter: _Printer.filter,
    Join: _Printer.join,
    DependentJoin: _Printer.dependent_join,
    Aggregate: _Printer.aggregate,
    Unnest: _Printer.unnest,
    Window: _Printer.window,
    Sort: _Printer.sort,
    Limit: _Printer.limit,
    Union: _Printer.union,
}
