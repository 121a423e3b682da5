"""Expressions of the DataFrame API meet a frame's schema: names become positions, everything gets its type.

Aggregates go where the call wants them: `Grouped` collects those of `group_by().agg()`, `RowWise` makes window
functions over the whole frame of those that stand among columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from bireme.data.schema import Schema
from bireme.data.types import BOOL, STRING, DataType
from bireme.errors import ArgumentFault, NameFault, TypeFault, Unsupported
from bireme.frontend.expression import tree_of
from bireme.frontend.expression_tree import (
    Choice,
    Constant,
    Conversion,
    EachElement,
    Element,
    Function,
    Membership,
    Named,
    Order,
    Over,
    Place,
    Renamed,
    Several,
    Summary,
    Tree,
    describe,
    map_parts,
    parts,
)
from bireme.plan import functions
from bireme.plan.expr import (
    WHOLE_PARTITION,
    Aggregation,
    Column,
    Expr,
    Lambda,
    Literal,
    Parameter,
    SortKey,
    WindowCall,
)

# Each level takes a few frames of Python's stack.
_DEPTH_MAX: Final = 250


def find_column(schema: Schema, name: str) -> int:
    """The position of the column called `name`; exactly, else without regard to case. NameFault otherwise."""
    exact = [index for index, field in enumerate(schema.fields) if field.name == name]
    found = exact or schema.positions(name)
    if len(found) == 1:
        return found[0]
    if found:
        raise NameFault(f"the name {name!r} stands for {len(found)} columns of this frame; rename one of them first")
    raise NameFault(f"no column {name!r} in this frame{functions.suggest(name, schema.names)}")


def trees(exprs: Iterable[Any], named: dict[str, Any], schema: Schema) -> list[tuple[str, Tree]]:
    """The arguments of select and its siblings as (name, tree) pairs; `Several` and lists are spread out."""
    found: list[tuple[str, Tree]] = []
    for value in exprs:
        if isinstance(value, (list, tuple)):
            found += trees(value, {}, schema)
            continue
        found += [
            (output_name(tree), tree) for tree in _spread(shallow(tree_of(value, strings_are_columns=True)), schema)
        ]
    for name, value in named.items():
        found.append((name, _packed(shallow(tree_of(value, strings_are_columns=True)), schema)))
    return found


def shallow(tree: Tree) -> Tree:
    """The same tree, where it is not nested deeper than what follows can walk. Raises Unsupported."""
    level = [tree]
    for _ in range(_DEPTH_MAX):
        # Shared parts once: loops that double an expression are not seen twice as often by each level.
        level = list({id(part): part for parent in level for part in parts(parent)}.values())
        if not level:
            return tree
    raise Unsupported(
        f"an expression is nested more than {_DEPTH_MAX} levels deep; compute a part of it with with_columns() first"
    )


def _spread(tree: Tree, schema: Schema) -> list[Tree]:
    """One tree for each of the columns that `Several` inside it stands for; the tree itself where there is none."""
    tree = _packed(tree, schema)
    several = several_in(tree)
    if several is None:
        return [tree]
    names = several.names
    if names is None:
        gone = {schema[find_column(schema, name)].name for name in several.excluded}
        names = tuple([name for name in schema.names if name not in gone])
    return [_replaced(tree, several, Named(name)) for name in names]


def _packed(tree: Tree, schema: Schema) -> Tree:
    """The same tree, in whose structs each column that `Several` stands for is a field."""
    if several_in(tree) is None:
        return tree
    tree = map_parts(tree, lambda part: _packed(part, schema))
    if not isinstance(tree, Function) or tree.name != "struct_pack":
        return tree
    fields: list[Tree] = []
    for name, value in zip(tree.args[::2], tree.args[1::2], strict=True):
        if several_in(value) is None:
            fields += [name, value]
            continue
        for each in _spread(value, schema):
            fields += [Constant(Literal(output_name(each), STRING)), each]
    return Function(tree.name, tuple(fields))


def several_in(tree: Tree) -> Several | None:
    """What stands for several columns in `tree`, if anything does."""
    if isinstance(tree, Several):
        return tree
    return next((found for part in parts(tree) if (found := several_in(part)) is not None), None)


def _replaced(tree: Tree, old: Tree, new: Tree) -> Tree:
    return new if tree == old else map_parts(tree, lambda part: _replaced(part, old, new))


def output_name(tree: Tree) -> str:
    """The name of a column without an alias: that of its leftmost column, as in Polars, else its text."""
    if isinstance(tree, Renamed):
        return tree.name
    if isinstance(tree, Named):
        return tree.name
    if isinstance(tree, Summary) and not tree.args:
        return "len"
    for part in parts(tree):
        if (name := _leftmost(part)) is not None:
            return name
    return "literal" if isinstance(tree, Constant) else describe(tree)


def _leftmost(tree: Tree) -> str | None:
    if isinstance(tree, Named):
        return tree.name
    if isinstance(tree, Renamed):
        return tree.name
    return next((name for part in parts(tree) if (name := _leftmost(part)) is not None), None)


def has_summary(tree: Tree) -> bool:
    """Whether an aggregate stands in `tree` outside of `over`."""
    return isinstance(tree, Summary) or (not isinstance(tree, Over) and any(has_summary(part) for part in parts(tree)))


def reads_rows(tree: Tree) -> bool:
    """Whether `tree` reads a column outside of an aggregate."""
    if isinstance(tree, Named | Over | Place):
        return True
    return not isinstance(tree, Summary) and any(reads_rows(part) for part in parts(tree))


class Resolver:
    """Resolves trees against a schema; subclasses say what an aggregate becomes."""

    def __init__(self, schema: Schema, elements: list[Parameter] | None = None) -> None:
        self.schema = schema
        self.elements: list[Parameter] = [] if elements is None else elements

    def resolve(self, tree: Tree) -> Expr:
        match tree:
            case Named(name):
                index = find_column(self.schema, name)
                return Column(index, self.schema[index].type)
            case Constant(value):
                return value
            case Function(name, args):
                return _applied(name, [self.resolve(arg) for arg in args])
            case EachElement(name, values, body):
                return functions.with_lambda(name, [self.resolve(values)], _Body(self, body))
            case Element():
                if not self.elements:
                    raise ArgumentFault("element() stands for an element of a list only inside of list.eval()")
                return self.elements[-1]
            case Conversion(arg, kind, safe):
                return functions.cast(self.resolve(arg), kind, safe)
            case Choice():
                return self._choice(tree)
            case Membership():
                return self._membership(tree)
            case Renamed(arg, _):
                return self.resolve(arg)
            case Summary():
                return self.summary(tree)
            case Place():
                return self.place(tree)
            case Over():
                return self.over(tree)
            case Several():
                raise ArgumentFault("several columns cannot stand where one value is needed")

    def _choice(self, tree: Choice) -> Expr:
        branches = [(self.predicate(condition), self.resolve(value)) for condition, value in tree.branches]
        return functions.case(branches, self.resolve(tree.default))

    def _membership(self, tree: Membership) -> Expr:
        arg = self.resolve(tree.arg)
        items = [self.resolve(item) for item in tree.items]
        # SQL has no empty list; nothing is in it.
        return functions.in_list(arg, items) if items else Literal(False, BOOL)

    def predicate(self, tree: Tree) -> Expr:
        expr = self.resolve(tree)
        if expr.type is not BOOL and not isinstance(expr, Literal):
            raise TypeFault(f"a condition must be boolean, but {describe(tree)} is {expr.type}")
        return functions.truth(expr, "a condition")

    def aggregation(self, tree: Summary) -> Aggregation:
        """The aggregate with its arguments over the rows of this schema."""
        if any(has_summary(arg) for arg in tree.args):
            raise Unsupported(f"{describe(tree)}: an aggregate of an aggregate; aggregate twice, in two steps")
        rows = Scalars(self.schema)
        args = [rows.resolve(arg) for arg in tree.args]
        condition = None if tree.filter is None else rows.predicate(tree.filter)
        return functions.aggregate(tree.function, args, distinct=tree.distinct, filter=condition)

    def summary(self, tree: Summary) -> Expr:
        raise NotImplementedError

    def place(self, tree: Place) -> Expr:
        raise NotImplementedError

    def over(self, tree: Over) -> Expr:
        raise NotImplementedError


class _Body:
    """What is computed of each element of a list."""

    width = 1

    def __init__(self, resolver: Resolver, tree: Tree) -> None:
        if any(isinstance(part, Summary | Place | Over) for part in _all_parts(tree)):
            raise Unsupported(f"{describe(tree)}: of an element alone; for the list, use list.sum() and the like")
        self._resolver = resolver
        self._tree = tree

    def typed(self, types: Sequence[DataType]) -> Lambda:
        elements = self._resolver.elements
        parameter = Parameter(len(elements), 0, types[0])
        elements.append(parameter)
        try:
            body = self._resolver.resolve(self._tree)
        finally:
            elements.pop()
        return Lambda((parameter,), body, body.type)


def _all_parts(tree: Tree) -> Iterator[Tree]:
    yield tree
    for part in parts(tree):
        yield from _all_parts(part)


def _applied(name: str, args: list[Expr]) -> Expr:
    """The function; `+` joins texts, as in Python and Polars, where SQL has `||`."""
    if name == "add" and all(arg.type is STRING for arg in args):
        name = "concat_op"
    return functions.scalar(name, args)


class Scalars(Resolver):
    """Where no aggregate may stand."""

    def summary(self, tree: Summary) -> Expr:
        raise ArgumentFault(f"the aggregate {describe(tree)} cannot stand here; compute it in agg() or select() first")

    def place(self, tree: Place) -> Expr:
        raise ArgumentFault(f"{describe(tree)} cannot stand here; compute it in with_columns() first")

    def over(self, tree: Over) -> Expr:
        raise ArgumentFault(f"{describe(tree)} cannot stand here; compute it in with_columns() first")


class RowWise(Resolver):
    """Among the columns of rows: an aggregate is one over the whole frame, repeated on every row.

    `calls` are the window functions to append to the frame; expressions refer to them behind its columns.
    """

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self.calls: list[WindowCall] = []

    def summary(self, tree: Summary) -> Expr:
        return self._call(WindowCall(self.aggregation(tree), (), (), WHOLE_PARTITION))

    def place(self, tree: Place) -> Expr:
        return self._place(tree, (), ())

    def over(self, tree: Over) -> Expr:
        partition = tuple([Scalars(self.schema).resolve(key) for key in tree.partition])
        if isinstance(tree.inner, Place):
            return self._place(tree.inner, partition, tree.order)
        return self._call(WindowCall(self.aggregation(tree.inner), partition, self._keys(tree.order), WHOLE_PARTITION))

    def _keys(self, order: Order) -> tuple[SortKey, ...]:
        rows = Scalars(self.schema)
        return tuple([SortKey(rows.resolve(key), down, first) for key, down, first in order])

    def _place(self, tree: Place, partition: tuple[Expr, ...], order: Order) -> Expr:
        args = [Scalars(self.schema).resolve(arg) for arg in tree.args]
        call = functions.window(tree.function, args)
        keys = self._keys(tree.order or order)
        return self._call(WindowCall(call, partition, keys, tree.frame, tree.ignore_nulls))

    def _call(self, call: WindowCall) -> Expr:
        if call not in self.calls:
            self.calls.append(call)
        return Column(len(self.schema) + self.calls.index(call), call.call.type)


class Grouped(Resolver):
    """Above a grouping: keys and aggregates become its columns, anything else must be made of them."""

    def __init__(self, schema: Schema, keys: list[Expr], key_names: list[str]) -> None:
        super().__init__(schema)
        self._keys = keys
        self._key_names = key_names
        self.aggregations: list[Aggregation] = []

    def resolve(self, tree: Tree) -> Expr:
        if isinstance(tree, Named):
            return self._key(tree)
        if not has_summary(tree) and reads_rows(tree) and not isinstance(tree, Over):
            expr = Scalars(self.schema, self.elements).resolve(tree)
            if expr in self._keys:
                return Column(self._keys.index(expr), expr.type)
        return super().resolve(tree)

    def _key(self, tree: Named) -> Expr:
        if tree.name in self._key_names:
            index = self._key_names.index(tree.name)
            return Column(index, self._keys[index].type)
        position = find_column(self.schema, tree.name)
        column = Column(position, self.schema[position].type)
        if column not in self._keys:
            raise ArgumentFault(
                f"column {tree.name!r} is neither a key nor aggregated; choose a value with .first(), .max(), …"
            )
        return Column(self._keys.index(column), column.type)

    def summary(self, tree: Summary) -> Expr:
        call = self.aggregation(tree)
        if call not in self.aggregations:
            self.aggregations.append(call)
        return Column(len(self._keys) + self.aggregations.index(call), call.type)

    def place(self, tree: Place) -> Expr:
        raise Unsupported(f"{describe(tree)} inside agg(); compute it in with_columns() before or after the grouping")

    def over(self, tree: Over) -> Expr:
        raise Unsupported(f"{describe(tree)} inside agg(); compute it in with_columns() before or after the grouping")
