"""Expressions of the DataFrame API before they meet a frame: names, constants and functions, no types.

Types, coercions and errors come when a frame takes an expression (`resolve`), at that very call. The functions are
those of SQL (`plan.functions`); methods that Polars has and SQL means differently say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bireme.errors import ArgumentFault
from bireme.frontend.arguments import column_name, column_names, elements
from bireme.frontend.expression_math import MathMethods
from bireme.frontend.expression_places import PlaceMethods
from bireme.frontend.expression_summaries import SummaryMethods
from bireme.frontend.expression_tree import (
    Choice,
    Constant,
    Conversion,
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
    conjunction,
    describe,
    map_parts,
)
from bireme.frontend.literal import data_type, literal
from bireme.plan.expr import Literal

if TYPE_CHECKING:
    from bireme.frontend.namespaces import StringNamespace
    from bireme.frontend.namespaces_of_values import DateTimeNamespace, ListNamespace, StructNamespace


def tree_of(value: Any, *, strings_are_columns: bool = False) -> Tree:
    """The tree of an expression, or of a plain value as a constant."""
    if isinstance(value, Expression):
        return value._tree
    if isinstance(value, str) and strings_are_columns:
        return Named(value)
    return Constant(literal(value))


class Expression(MathMethods, SummaryMethods, PlaceMethods):
    """A column, a constant, or something computed from them; immutable. Made by `col` and `lit`."""

    __slots__ = ("_tree",)
    __hash__ = object.__hash__

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def __repr__(self) -> str:
        return f"<bireme expression {describe(self._tree)}>"

    def __bool__(self) -> bool:
        raise ArgumentFault("an expression has no truth value; combine conditions with & | ~ instead of and, or, not")

    def _made(self, tree: Tree) -> Expression:
        return Expression(tree)

    def _given(self, value: Any) -> Tree:
        return tree_of(value)

    def _swapped(self, name: str, other: Any) -> Expression:
        return Expression(Function(name, (tree_of(other), self._tree)))

    def __add__(self, other: Any) -> Expression:
        return self._call("add", other)

    def __radd__(self, other: Any) -> Expression:
        return self._swapped("add", other)

    def __sub__(self, other: Any) -> Expression:
        return self._call("subtract", other)

    def __rsub__(self, other: Any) -> Expression:
        return self._swapped("subtract", other)

    def __mul__(self, other: Any) -> Expression:
        return self._call("multiply", other)

    def __rmul__(self, other: Any) -> Expression:
        return self._swapped("multiply", other)

    def __truediv__(self, other: Any) -> Expression:
        return self._call("divide", other)

    def __rtruediv__(self, other: Any) -> Expression:
        return self._swapped("divide", other)

    def __floordiv__(self, other: Any) -> Expression:
        return _floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Expression:
        return _floor_divide(Expression(tree_of(other)), self)

    def __mod__(self, other: Any) -> Expression:
        return _floor_modulo(self, other)

    def __rmod__(self, other: Any) -> Expression:
        return _floor_modulo(Expression(tree_of(other)), self)

    def __pow__(self, other: Any) -> Expression:
        return self._call("power", other)

    def __rpow__(self, other: Any) -> Expression:
        return self._swapped("power", other)

    def __neg__(self) -> Expression:
        return self._call("negate")

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._call("eq", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._call("ne", other)

    def __lt__(self, other: Any) -> Expression:
        return self._call("lt", other)

    def __le__(self, other: Any) -> Expression:
        return self._call("le", other)

    def __gt__(self, other: Any) -> Expression:
        return self._call("gt", other)

    def __ge__(self, other: Any) -> Expression:
        return self._call("ge", other)

    def __and__(self, other: Any) -> Expression:
        return self._call("and", other)

    def __rand__(self, other: Any) -> Expression:
        return self._swapped("and", other)

    def __or__(self, other: Any) -> Expression:
        return self._call("or", other)

    def __ror__(self, other: Any) -> Expression:
        return self._swapped("or", other)

    def __invert__(self) -> Expression:
        return self._call("not")

    def alias(self, name: str) -> Expression:
        """The same values under another name."""
        return Expression(Renamed(self._tree, column_name(name, "alias()")))

    def cast(self, dtype: Any, *, strict: bool = True) -> Expression:
        """Converts to a type (a name such as 'decimal(15,2)', a Python or an Arrow type); what does not convert is an
        error, or NULL where `strict` is False.
        """
        return Expression(Conversion(self._tree, data_type(dtype), not strict))

    def is_in(self, values: Iterable[Any]) -> Expression:
        """Whether the value is one of `values`; three-valued, as SQL's IN."""
        items = elements(values, "is_in()", "a list of values (for one value use ==, for a frame a semi join)")
        return Expression(Membership(self._tree, tuple([tree_of(value) for value in items])))

    def is_between(self, lower_bound: Any, upper_bound: Any, closed: str = "both") -> Expression:
        """Whether the value lies between two; `closed` says which of them count: both, left, right or none."""
        if closed not in ("both", "left", "right", "none"):
            raise ArgumentFault(f"closed must be 'both', 'left', 'right' or 'none', not {closed!r}")
        above = self._call("ge" if closed in ("both", "left") else "gt", lower_bound)
        return above._call("and", self._call("le" if closed in ("both", "right") else "lt", upper_bound))

    def between(self, lower: Any, upper: Any) -> Expression:
        """Whether lower <= value <= upper."""
        return self.is_between(lower, upper)

    def is_null(self) -> Expression:
        return self._call("is_null")

    def is_not_null(self) -> Expression:
        return self._call("is_not_null")

    def eq_missing(self, other: Any) -> Expression:
        """Equality in which NULL equals NULL."""
        return self._call("is_not_distinct", other)

    def ne_missing(self, other: Any) -> Expression:
        """Inequality in which NULL equals NULL."""
        return self._call("is_distinct", other)

    def fill_null(self, value: Any) -> Expression:
        return self._call("coalesce", value)

    def filter(self, *predicates: Any) -> Expression:
        """The aggregate over only the rows for which all predicates are TRUE."""
        if not isinstance(self._tree, Summary) or self._tree.filter is not None or not predicates:
            raise ArgumentFault(
                "filter() goes behind one aggregate, with a predicate: col('x').sum().filter(col('y') > 0)"
            )
        condition = conjunction([tree_of(predicate) for predicate in predicates])
        return Expression(Summary(self._tree.function, self._tree.args, self._tree.distinct, condition))

    def over(self, *partition_by: Any, order_by: Any = None, descending: bool = False) -> Expression:
        """The aggregates in this expression over the rows with the same keys, and places (`shift`, `cum_sum`, …) among
        those; `order_by` is the order that places, `first` and `last` see.
        """
        partition = tuple([tree_of(key, strings_are_columns=True) for key in partition_by])
        keys = () if order_by is None else (order_by if isinstance(order_by, (list, tuple)) else (order_by,))
        order = tuple([(tree_of(key, strings_are_columns=True), descending, True) for key in keys])
        made = _over(self._tree, partition, order)
        if made == self._tree:
            raise ArgumentFault("over() goes behind an aggregate, such as col('x').sum().over('key')")
        return Expression(made)

    @property
    def str(self) -> StringNamespace:
        """Functions of texts."""
        from bireme.frontend.namespaces import StringNamespace

        return StringNamespace(self)

    @property
    def list(self) -> ListNamespace:
        """Functions of lists."""
        from bireme.frontend.namespaces_of_values import ListNamespace

        return ListNamespace(self)

    @property
    def struct(self) -> StructNamespace:
        """The fields of structs."""
        from bireme.frontend.namespaces_of_values import StructNamespace

        return StructNamespace(self)

    @property
    def dt(self) -> DateTimeNamespace:
        """Functions of dates and times."""
        from bireme.frontend.namespaces_of_values import DateTimeNamespace

        return DateTimeNamespace(self)


def _over(tree: Tree, partition: tuple[Tree, ...], order: Order) -> Tree:
    if isinstance(tree, Summary | Place):
        return Over(tree, partition, order)
    return tree if isinstance(tree, Over) else map_parts(tree, lambda part: _over(part, partition, order))


def _signs_differ(rest: Expression, divisor: Expression) -> Expression:
    return (rest != 0) & ((rest < 0) != (divisor < 0))


def _floor_modulo(value: Expression, divisor: Any) -> Expression:
    """The remainder with the divisor's sign, as in Python and Polars; SQL's has the dividend's."""
    by = Expression(tree_of(divisor))
    rest = value._call("modulo", by)
    return when(_signs_differ(rest, by)).then(rest + by).otherwise(rest)


def _floor_divide(value: Expression, divisor: Any) -> Expression:
    """The quotient rounded down, as in Python and Polars; SQL's `//` rounds towards zero."""
    by = Expression(tree_of(divisor))
    quotient = value._call("int_divide", by)
    return when(_signs_differ(value._call("modulo", by), by)).then(quotient - 1).otherwise(quotient)


def col(name: str | Sequence[str], *more: str) -> Expression:
    """A column by name; several at once with more names or a list, all with `col('*')`."""
    names = [*column_names(name, "col()"), *[column_name(each, "col()") for each in more]]
    if not names:
        raise ArgumentFault("col() needs a column name")
    if names == ["*"]:
        return all_columns()
    return Expression(Named(names[0]) if len(names) == 1 else Several(tuple(names)))


def all_columns() -> Expression:
    """All columns of the frame."""
    return Expression(Several(None))


def exclude(*names: str) -> Expression:
    """All columns of the frame but these."""
    return Expression(Several(None, names))


def lit(value: Any, dtype: Any = None) -> Expression:
    """A constant; with `dtype`, converted to that type."""
    constant = Expression(Constant(literal(value)))
    return constant if dtype is None else constant.cast(dtype)


def element() -> Expression:
    """An element of the list that `list.eval()` or `list.filter()` goes over."""
    return Expression(Element())


def count() -> Expression:
    """How many rows there are."""
    return Expression(Summary("count_star", ()))


class When:
    """A condition that waits for its value."""

    __slots__ = ("_branches", "_condition")

    def __init__(self, branches: tuple[tuple[Tree, Tree], ...], condition: Tree) -> None:
        self._branches = branches
        self._condition = condition

    def then(self, value: Any) -> Then:
        """The value where the condition is TRUE; a text is a constant, as everywhere but in `select`."""
        return Then((*self._branches, (self._condition, tree_of(value))))


class Then(Expression):
    """Branches so far; as an expression, NULL where none applies."""

    __slots__ = ("_branches",)

    def __init__(self, branches: tuple[tuple[Tree, Tree], ...]) -> None:
        from bireme.data.types import NULL

        super().__init__(Choice(branches, Constant(Literal(None, NULL))))
        self._branches = branches

    def when(self, *predicates: Any) -> When:
        return When(self._branches, _condition(predicates))

    def otherwise(self, value: Any) -> Expression:
        return Expression(Choice(self._branches, tree_of(value)))


def when(*predicates: Any) -> When:
    """Starts a choice: `when(condition).then(value).otherwise(value)`."""
    return When((), _condition(predicates))


def _condition(predicates: tuple[Any, ...]) -> Tree:
    if not predicates:
        raise ArgumentFault("when() needs a condition")
    return conjunction([tree_of(predicate) for predicate in predicates])
