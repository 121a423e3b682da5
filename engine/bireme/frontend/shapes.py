"""Methods of frames that are made of others, and those that turn columns into rows and back.

`Frame` has the methods that everything is made of; what Polars' users know beside those is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from bireme.data.types import STRING, DataType, Kind
from bireme.errors import ArgumentFault, TypeFault
from bireme.frontend import joining
from bireme.frontend.arguments import column_name, column_names, elements, row_count
from bireme.frontend.expression import Expression, col, count
from bireme.frontend.expression_tree import Place
from bireme.frontend.literal import literal
from bireme.frontend.resolve import find_column
from bireme.plan import functions
from bireme.plan.expr import Column, Expr, Literal
from bireme.plan.functions.structs import row_fields
from bireme.plan.relation import Project, Rel, Union, Unnest
from bireme.plan.tree import all_columns

if TYPE_CHECKING:
    from bireme.frontend.frame import Frame

_ROW = Expression(Place("row_number"))
_ROWS = Expression(Place("count_star"))
_AGGREGATES = ("sum", "min", "max", "mean", "median", "first", "last", "count", "len", "std", "var")


class ShapeMethods:
    """What `Frame` offers beside what it is made of."""

    __slots__ = ()
    _plan: Rel

    if TYPE_CHECKING:

        def _with(self, plan: Rel, *others: Frame) -> Frame: ...
        def filter(self, *predicates: Any) -> Frame: ...
        def select(self, *exprs: Any, **named: Any) -> Frame: ...
        def with_columns(self, *exprs: Any, **named: Any) -> Frame: ...
        def slice(self, offset: int, length: int | None = None) -> Frame: ...
        def sort(self, by: Any, *more_by: Any, descending: bool = False, nulls_last: bool = False) -> Frame: ...
        def group_by(self, *keys: Any, **named: Any) -> Any: ...

    # ------------------------------------------------------------------------------------------------- rows

    def tail(self, n: int = 5) -> Frame:
        """The last `n` rows."""
        wanted = row_count(n, "tail()")
        return self._from_end(wanted, None) if wanted else self.slice(0, 0)

    def last(self) -> Frame:
        """The last row."""
        return self.tail(1)

    def first(self) -> Frame:
        """The first row."""
        return self.slice(0, 1)

    def _from_end(self, offset: int, length: int | None) -> Frame:
        """`length` rows from the one that has `offset` rows from itself to the end."""
        start = _ROWS - offset
        begun = start < _ROW
        return self.filter(begun if length is None else begun & (start + length >= _ROW))

    def with_row_index(self, name: str = "index", offset: int = 0) -> Frame:
        """The number of each row, from `offset`, in a column before the others."""
        return self.select((_ROW - 1 + offset).alias(column_name(name, "with_row_index()")), col("*"))

    def reverse(self) -> Frame:
        """The rows from the last to the first."""
        return self.sort(_ROW, descending=True)

    def gather_every(self, n: int, offset: int = 0) -> Frame:
        """Every `n`-th row from `offset` on."""
        every = row_count(n, "gather_every()")
        if every == 0:
            raise ArgumentFault("gather_every() takes a distance of at least 1")
        place = _ROW - 1 - row_count(offset, "gather_every()")
        return self.filter((place >= 0) & (place._call("modulo", every) == 0))

    def top_k(self, k: int, *, by: Any) -> Frame:
        """The `k` rows with the greatest values, greatest first."""
        return self.sort(by, descending=True, nulls_last=True).slice(0, row_count(k, "top_k()"))

    def bottom_k(self, k: int, *, by: Any) -> Frame:
        """The `k` rows with the least values, least first."""
        return self.sort(by, nulls_last=True).slice(0, row_count(k, "bottom_k()"))

    def remove(self, *predicates: Any) -> Frame:
        """The rows for which not all predicates are TRUE."""
        if not predicates:
            raise ArgumentFault("remove() needs a predicate, such as bm.col('x') > 1")
        return self.filter(*[~_all(predicates)._call("coalesce", False)])

    def drop_nulls(self, subset: str | Iterable[str] | None = None) -> Frame:
        """The rows without NULL in `subset` (all columns if not given)."""
        names = self._names(subset, "drop_nulls()")
        return self.filter(*[col(name).is_not_null() for name in names])

    def drop_nans(self, subset: str | Iterable[str] | None = None) -> Frame:
        """The rows without NaN in `subset` (all columns of floats if not given)."""
        schema = self._plan.schema
        floats = [field.name for field in schema if field.type.is_float]
        names = floats if subset is None else column_names(subset, "drop_nans()")
        return self.filter(True, *[col(name).is_nan()._call("coalesce", False)._call("not") for name in names])

    def _names(self, subset: str | Iterable[str] | None, call: str) -> list[str]:
        return list(self._plan.schema.names) if subset is None else column_names(subset, call)

    def pipe(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """`function` of this frame."""
        return function(self, *args, **named)

    def lazy(self) -> Frame:
        """This frame: all are lazy."""
        return self._with(self._plan)

    # ---------------------------------------------------------------------------------------------- columns

    def fill_null(self, value: Any) -> Frame:
        """With `value` in place of NULL, in the columns whose type it goes with."""
        kind = literal(value).type
        names = [field.name for field in self._plan.schema if _goes_with(field.type, kind)]
        return self.with_columns(*[col(name).fill_null(value) for name in names])

    def fill_nan(self, value: Any) -> Frame:
        """With `value` in place of NaN."""
        floats = [field.name for field in self._plan.schema if field.type.is_float]
        return self.with_columns(*[col(name).fill_nan(value).alias(name) for name in floats])

    def null_count(self) -> Frame:
        """How many values are NULL, by column; one row."""
        return self._each(lambda column: column.null_count())

    def _each(self, summary: Callable[[Expression], Expression]) -> Frame:
        return self.select(*[summary(col(name)).alias(name) for name in self._plan.schema.names])

    def sum(self) -> Frame:
        """The sum of each column; one row."""
        return self._each(lambda column: column.sum())

    def mean(self) -> Frame:
        return self._each(lambda column: column.mean())

    def median(self) -> Frame:
        return self._each(lambda column: column.median())

    def min(self) -> Frame:
        return self._each(lambda column: column.min())

    def max(self) -> Frame:
        return self._each(lambda column: column.max())

    def std(self, ddof: int = 1) -> Frame:
        return self._each(lambda column: column.std(ddof))

    def var(self, ddof: int = 1) -> Frame:
        return self._each(lambda column: column.var(ddof))

    def quantile(self, quantile: float, interpolation: str = "nearest") -> Frame:
        return self._each(lambda column: column.quantile(quantile, interpolation))

    def join_asof(
        self,
        other: Any,
        *,
        on: str | None = None,
        left_on: str | Expression | None = None,
        right_on: str | Expression | None = None,
        by: str | Iterable[str] | None = None,
        by_left: str | Iterable[str] | None = None,
        by_right: str | Iterable[str] | None = None,
        strategy: str = "backward",
        suffix: str = "_right",
        allow_exact_matches: bool = True,
    ) -> Frame:
        """Each row with the row of `other` that is nearest by `on`, among those with equal `by`: the last that is not
        greater ("backward"), or the first that is not less ("forward").
        """
        if not isinstance(other, type(self)):
            raise ArgumentFault(f"join_asof() takes another frame, not {type(other).__name__}")
        places = (on, on) if on is not None else (left_on, right_on)
        keys = (by, by) if by is not None else (by_left, by_right)
        plans = self._plan, other._plan
        made = joining.join_asof(*plans, places, keys, strategy, suffix, allow_exact=allow_exact_matches)
        frame: Any = other
        return self._with(made, frame)

    # ---------------------------------------------------------------------------------------- rows and back

    def explode(self, columns: str | Iterable[str], *more_columns: str) -> Frame:
        """A row for each element of the lists in `columns`; empty lists and NULL give one row of NULL."""
        names = [*column_names(columns, "explode()"), *more_columns]
        schema = self._plan.schema
        places = tuple([find_column(schema, name) for name in names])
        if not places:
            raise ArgumentFault("explode() needs a column of lists")
        for place in places:
            if schema[place].type.kind is not Kind.LIST:
                raise TypeFault(f"explode() takes columns of lists, and {schema[place].name!r} is {schema[place].type}")
        kept = tuple([index for index in range(len(schema)) if index not in places])
        made = Unnest(self._plan, kept, places, tuple([schema.names[place] for place in places]), True)
        order = [*kept, *places]
        columns_made = all_columns(made.schema)
        exprs = tuple([columns_made[order.index(index)] for index in range(len(schema))])
        return self._with(Project(made, exprs, schema.names))

    def unnest(self, columns: str | Iterable[str], *more_columns: str) -> Frame:
        """The fields of structs as columns, in the place of each struct."""
        schema = self._plan.schema
        places = [find_column(schema, name) for name in [*column_names(columns, "unnest()"), *more_columns]]
        names, exprs = [], []
        for place, column in enumerate(all_columns(schema)):
            if place in places and column.type.kind is not Kind.STRUCT:
                raise TypeFault(f"unnest() takes columns of structs, and {schema[place].name!r} is {column.type}")
            for name, expr in row_fields(column) if place in places else [(schema[place].name, column)]:
                names.append(name)
                exprs.append(expr)
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise ArgumentFault(f"unnest() gives two columns called {repeated!r}; rename one of them first")
        return self._with(Project(self._plan, tuple(exprs), tuple(names)))

    def unpivot(
        self,
        on: str | Iterable[str] | None = None,
        *,
        index: str | Iterable[str] | None = None,
        variable_name: str = "variable",
        value_name: str = "value",
    ) -> Frame:
        """A row for each value of the columns `on` (all but `index` if not given), with the name of its column."""
        schema = self._plan.schema
        kept = [find_column(schema, name) for name in ([] if index is None else column_names(index, "unpivot()"))]
        if on is None:
            turned = [place for place in range(len(schema)) if place not in kept]
        else:
            turned = [find_column(schema, name) for name in column_names(on, "unpivot()")]
        if not turned:
            raise ArgumentFault("unpivot() needs columns to turn into rows")
        kind = functions.common_type([schema[place].type for place in turned])
        names = (*[schema.names[place] for place in kept], variable_name, value_name)
        sources: list[Rel] = []
        for place in turned:
            value = functions.coerce(Column(place, schema[place].type), kind)
            own: list[Expr] = [Column(each, schema[each].type) for each in kept]
            sources.append(Project(self._plan, (*own, Literal(schema.names[place], STRING), value), names))
        return self._with(sources[0] if len(sources) == 1 else Union(tuple(sources)))

    def pivot(
        self,
        on: str,
        *,
        on_columns: Iterable[Any],
        index: str | Iterable[str],
        values: str,
        aggregate_function: str = "first",
    ) -> Frame:
        """A column for each of the values `on_columns` of `on`, with the aggregate of `values` for each `index`."""
        if aggregate_function not in _AGGREGATES:
            raise ArgumentFault(
                f"aggregate_function must be one of {', '.join(_AGGREGATES)}, not {aggregate_function!r}"
            )
        wanted = elements(on_columns, "pivot()", "the values of `on` that become columns")
        if not wanted:
            raise ArgumentFault("pivot() needs the values of `on` that become columns")
        summaries = []
        for value in wanted:
            matches = col(on).is_null() if value is None else col(on) == value
            base = count() if aggregate_function == "len" else getattr(col(values), aggregate_function)()
            summaries.append(base.filter(matches).alias(str(value)))
        return self.group_by(*column_names(index, "pivot()")).agg(*summaries)  # type: ignore[no-any-return]


def _all(predicates: tuple[Any, ...]) -> Expression:
    first, *others = predicates
    for each in others:
        first = first & each
    return first  # type: ignore[no-any-return]


def _goes_with(kind: DataType, given: DataType) -> bool:
    return given.is_numeric if kind.is_numeric else kind is given
