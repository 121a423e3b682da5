"""The lazy DataFrame: each method checks its arguments against the schema and gives a new frame with a new plan.

Nothing runs before `collect` and its siblings. Names and meanings are Polars' where it has them; where SQL and Polars
differ in what an operation means (the sum of nothing, integer sums), SQL's meaning holds, as in the rest of bireme.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bireme.errors import ArgumentFault
from bireme.frontend import joining
from bireme.frontend.arguments import column_name, column_names, elements, one_each, row_count
from bireme.frontend.expression import Expression, tree_of
from bireme.frontend.expression_tree import Constant, Named, Tree, conjunction
from bireme.frontend.literal import data_type
from bireme.frontend.resolve import Grouped, RowWise, Scalars, find_column, has_summary, reads_rows, shallow, trees
from bireme.frontend.runner import Runner
from bireme.frontend.shapes import ShapeMethods
from bireme.plan import functions
from bireme.plan.expr import Aggregation, Column, Expr, SortKey
from bireme.plan.relation import Aggregate, Filter, Limit, Project, Rel, Sort, Union, Window
from bireme.plan.tree import all_columns

if TYPE_CHECKING:
    import pandas
    import polars


class Frame(ShapeMethods):
    """A lazy table: a plan, and the session that can run it. Made by `Session`; immutable."""

    __slots__ = ("_plan", "_runner", "_sources")

    def __init__(self, runner: Runner, plan: Rel, sources: frozenset[object] = frozenset()) -> None:
        self._runner = runner
        self._plan = plan
        # The tables that the plan reads, kept for as long as a frame can still be run.
        self._sources = sources

    def _with(self, plan: Rel, *others: Frame) -> Frame:
        for other in others:
            if other._runner is not self._runner:
                raise ArgumentFault("the frames belong to different sessions; register the data in one of them")
        return Frame(self._runner, plan, self._sources.union(*(other._sources for other in others)))

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.type}" for field in self._plan.schema)
        return f"<bireme frame [{columns}]>"

    # ----------------------------------------------------------------------------------------------- schema

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result; known without running anything."""
        return self._plan.schema.to_result_arrow()

    @property
    def columns(self) -> list[str]:
        return list(self._plan.schema.names)

    def collect_schema(self) -> pa.Schema:
        return self.schema

    # ------------------------------------------------------------------------------------------ row by row

    def filter(self, *predicates: Any) -> Frame:
        """The rows for which all predicates are TRUE."""
        if not predicates:
            raise ArgumentFault("filter() needs a predicate, such as bm.col('x') > 1")
        for predicate in predicates:
            if not isinstance(predicate, (Expression, bool)):
                raise ArgumentFault(f"filter() takes expressions, not {type(predicate).__name__}")
        rows = RowWise(self._plan.schema)
        predicate = rows.predicate(shallow(conjunction([tree_of(each) for each in predicates])))
        filtered = Filter(_windowed(self._plan, rows), predicate)
        return self._with(self._narrowed(filtered) if rows.calls else filtered)

    def select(self, *exprs: Any, **named: Any) -> Frame:
        """The given columns only; with aggregates alone, one row."""
        wanted = trees(exprs, named, self._plan.schema)
        if wanted and any(has_summary(tree) for _, tree in wanted) and not any(reads_rows(tree) for _, tree in wanted):
            return self._with(_aggregated(self._plan, [], [], wanted))
        rows = RowWise(self._plan.schema)
        resolved = tuple([rows.resolve(tree) for _, tree in wanted])
        return self._with(Project(_windowed(self._plan, rows), resolved, _distinct_names([name for name, _ in wanted])))

    def with_columns(self, *exprs: Any, **named: Any) -> Frame:
        """All columns, with those of the same names replaced and new ones appended."""
        wanted = dict(_unique_pairs(trees(exprs, named, self._plan.schema)))
        rows = RowWise(self._plan.schema)
        values = {name: rows.resolve(tree) for name, tree in wanted.items()}
        schema = self._plan.schema
        columns: list[Expr] = [
            values.pop(field.name) if field.name in values else Column(index, field.type)
            for index, field in enumerate(schema)
        ]
        names = (*schema.names, *values)
        return self._with(Project(_windowed(self._plan, rows), (*columns, *values.values()), names))

    def drop(self, *names: str, strict: bool = True) -> Frame:
        """All columns but these."""
        schema = self._plan.schema
        flat = [name for each in names for name in column_names(each, "drop()")]
        known = [name for name in flat if strict or schema.positions(name)]
        gone = {find_column(schema, name) for name in known}
        return self._with(_chosen(self._plan, [index for index in range(len(schema)) if index not in gone]))

    def rename(self, mapping: Mapping[str, str]) -> Frame:
        """The same columns under new names."""
        if not isinstance(mapping, Mapping):
            raise ArgumentFault("rename() takes a mapping from old names to new ones, such as {'old': 'new'}")
        schema = self._plan.schema
        new = {find_column(schema, old): column_name(name, "rename()") for old, name in mapping.items()}
        names = [new.get(index, name) for index, name in enumerate(schema.names)]
        return self._with(Project(self._plan, all_columns(schema), _distinct_names(names)))

    def cast(self, dtypes: Mapping[str, Any] | Any, *, strict: bool = True) -> Frame:
        """Converts all columns, or those named in a mapping, to a type."""
        schema = self._plan.schema
        if isinstance(dtypes, Mapping):
            kinds = {find_column(schema, name): data_type(kind) for name, kind in dtypes.items()}
        else:
            kinds = dict.fromkeys(range(len(schema)), data_type(dtypes))
        columns = [
            functions.cast(column, kinds[index], not strict) if index in kinds else column
            for index, column in enumerate(all_columns(schema))
        ]
        return self._with(Project(self._plan, tuple(columns), schema.names))

    # --------------------------------------------------------------------------------------------- groups

    def group_by(self, *keys: Any, **named: Any) -> GroupBy:
        """Groups rows with equal keys (NULL is equal to NULL); `agg` says what becomes of them."""
        wanted = trees(keys, named, self._plan.schema)
        if not wanted:
            raise ArgumentFault("group_by() needs a key; for one row over everything use select() with aggregates")
        return GroupBy(self, wanted)

    def unique(self, subset: str | Iterable[str] | None = None, *, keep: str = "any") -> Frame:
        """One row for each different combination of values in `subset` (all columns if not given).

        `keep` says which: "any" or "first" the first one in the order of the input, "last" the last.
        """
        if keep not in ("any", "first", "last"):
            raise ArgumentFault(f"keep must be 'any', 'first' or 'last', not {keep!r}")
        schema = self._plan.schema
        names = schema.names if subset is None else column_names(subset, "unique()")
        keys = list(dict.fromkeys(find_column(schema, name) for name in names))
        rest = [index for index in range(len(schema)) if index not in keys]
        function = "last" if keep == "last" else "first"
        columns = all_columns(schema)
        calls = tuple([functions.aggregate(function, [columns[index]]) for index in rest])
        order = [*keys, *rest]
        grouped = Aggregate(
            self._plan, tuple([columns[i] for i in keys]), calls, tuple([schema.names[i] for i in order])
        )
        return self._with(_chosen(grouped, [order.index(index) for index in range(len(schema))]))

    def count(self) -> Frame:
        """The number of values that are not NULL, by column; one row."""
        return self.select(*(Expression(Named(name)).count() for name in self._plan.schema.names))

    # ----------------------------------------------------------------------------------------------- joins

    def join(
        self,
        other: Frame,
        on: str | Expression | Iterable[str | Expression] | None = None,
        how: str = "inner",
        *,
        left_on: str | Expression | Iterable[str | Expression] | None = None,
        right_on: str | Expression | Iterable[str | Expression] | None = None,
        suffix: str = "_right",
        nulls_equal: bool = False,
    ) -> Frame:
        """Joins two frames on equal keys; `how` is inner, left, right, full, semi, anti or cross.

        Columns of `other` whose names are taken get `suffix`; its keys are left out where they repeat the left's (all
        but full joins).
        """
        if not isinstance(other, Frame):
            raise ArgumentFault(
                f"join() takes another frame, not {type(other).__name__}; use session.from_arrow() first"
            )
        return self._with(
            joining.join(self._plan, other._plan, how, on, left_on, right_on, suffix, nulls_equal=nulls_equal), other
        )

    # ----------------------------------------------------------------------------------------------- order

    def sort(
        self,
        by: Any,
        *more_by: Any,
        descending: bool | Iterable[bool] = False,
        nulls_last: bool | Iterable[bool] = False,
    ) -> Frame:
        """The rows in order; equal ones stay in the order of the input. NULLs come first unless `nulls_last`."""
        wanted = trees([by, *more_by], {}, self._plan.schema)
        rows = RowWise(self._plan.schema)
        for _, tree in wanted:
            if isinstance(tree, Constant):
                raise ArgumentFault("sort() takes columns and expressions; a constant orders nothing")
        downs = one_each(descending, len(wanted), "descending")
        lasts = one_each(nulls_last, len(wanted), "nulls_last")
        keys = [
            SortKey(rows.resolve(tree), down, not last)
            for (_, tree), down, last in zip(wanted, downs, lasts, strict=True)
        ]
        ordered = Sort(_windowed(self._plan, rows), tuple(keys))
        return self._with(self._narrowed(ordered) if rows.calls else ordered)

    def head(self, n: int = 5) -> Frame:
        """The first `n` rows."""
        return self.slice(0, row_count(n, "head()"))

    def limit(self, n: int = 5) -> Frame:
        """The first `n` rows."""
        return self.slice(0, row_count(n, "limit()"))

    def slice(self, offset: int, length: int | None = None) -> Frame:
        """`length` rows (all if not given) after the first `offset`, which counts from the end where it is negative."""
        if isinstance(offset, int) and offset < 0:
            return self._from_end(-offset, None if length is None else row_count(length, "slice()"))
        count = None if length is None else row_count(length, "slice()")
        return self._with(Limit(self._plan, count, row_count(offset, "slice()")))

    # --------------------------------------------------------------------------------------------- results

    def collect(self) -> pa.Table:
        """Runs the plan; all rows as a pyarrow table."""
        return self._runner.collect(self._plan)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Runs the plan; rows as they come. Stopping early cancels the rest."""
        return self._runner.batches(self._plan)

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self._runner.batches_async(self._plan)

    def to_arrow(self) -> pa.Table:
        return self.collect()

    def to_pandas(self) -> pandas.DataFrame:
        """Runs the plan; needs pandas."""
        return self.collect().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Runs the plan; needs polars."""
        import polars

        frame = polars.from_arrow(self.collect())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule protocol: other libraries take a frame as it is, batch by batch."""
        reader = pa.RecordBatchReader.from_batches(self.schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def sink_parquet(self, path: str | Path) -> int:
        """Runs the plan into one Parquet file, whole or not at all; returns the number of rows."""
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentFault(f"sink_parquet() takes the path of a file, not {type(path).__name__}")
        return self._runner.sink_parquet(self._plan, Path(path))

    def cache(self) -> Frame:
        """This frame; from now on the session keeps in memory, decoded, the columns that queries read of its tables.

        Nothing is read yet. A file that changes is read anew. `Session.uncache` ends it.
        """
        self._runner.cache(self._plan)
        return self

    def explain(self, *, optimized: bool = True, physical: bool = False, analyze: bool = False) -> str:
        """The plan as text: optimized or as written, with the pipelines, or with what happened when it ran."""
        return self._runner.explain(self._plan, optimized=optimized, physical=physical, analyze=analyze)

    def serialize(self) -> str:
        """The plan as JSON. `Session.deserialize` makes a frame of it again, on any machine that has the tables."""
        from bireme.plan.wire import to_json  # on its first use, like all that few queries need

        return to_json(self._plan)

    def _narrowed(self, plan: Rel) -> Rel:
        """The first columns of `plan`, as many as this frame has: without the window functions appended to it."""
        return _chosen(plan, range(len(self._plan.schema)))


class GroupBy:
    """A frame with its keys, waiting for aggregates."""

    __slots__ = ("_frame", "_keys")

    def __init__(self, frame: Frame, keys: list[tuple[str, Tree]]) -> None:
        rows = Scalars(frame._plan.schema)
        for _, tree in keys:
            rows.resolve(tree)  # errors belong to the call that is wrong
        self._frame = frame
        self._keys = keys

    def agg(self, *aggregates: Any, **named: Any) -> Frame:
        """One row per group: the keys, then the aggregates."""
        wanted = trees(aggregates, named, self._frame._plan.schema)
        plan = _aggregated(
            self._frame._plan, [name for name, _ in self._keys], [tree for _, tree in self._keys], wanted
        )
        return self._frame._with(plan)

    def len(self, name: str = "len") -> Frame:
        """The number of rows in each group."""
        from bireme.frontend.expression import count

        return self.agg(count().alias(name))


def concat(frames: Iterable[Frame]) -> Frame:
    """The rows of all frames, one after the other. Their columns must have the same names, and types that agree."""
    inputs = elements(frames, "concat()", "a list of frames")
    if not inputs:
        raise ArgumentFault("concat() needs at least one frame")
    for frame in inputs:
        if not isinstance(frame, Frame):
            raise ArgumentFault(f"concat() takes frames, not {type(frame).__name__}; use session.from_arrow() first")
    first: Frame = inputs[0]
    schemas = [frame._plan.schema for frame in inputs]
    for schema in schemas[1:]:
        if [name.lower() for name in schema.names] != [name.lower() for name in schemas[0].names]:
            raise ArgumentFault(f"concat() needs frames with the same columns: {schemas[0].names} and {schema.names}")
    kinds = [functions.common_type([schema[index].type for schema in schemas]) for index in range(len(schemas[0]))]
    plans = [_coerced(frame._plan, kinds, schemas[0].names) for frame in inputs]
    return first._with(plans[0] if len(plans) == 1 else Union(tuple(plans)), *inputs[1:])


def _coerced(plan: Rel, kinds: list[Any], names: tuple[str, ...]) -> Rel:
    columns = all_columns(plan.schema)
    exprs = tuple([functions.coerce(column, kind) for column, kind in zip(columns, kinds, strict=True)])
    return plan if exprs == columns and plan.schema.names == names else Project(plan, exprs, names)


def _aggregated(plan: Rel, key_names: list[str], keys: list[Tree], wanted: list[tuple[str, Tree]]) -> Rel:
    """Groups by `keys` and computes `wanted` from keys and aggregates."""
    rows = Scalars(plan.schema)
    key_exprs = [rows.resolve(tree) for tree in keys]
    grouped = Grouped(plan.schema, key_exprs, key_names)
    values = [grouped.resolve(tree) for _, tree in wanted]
    names = (*key_names, *(f"a{index}" for index in range(len(grouped.aggregations))))
    calls: tuple[Aggregation, ...] = tuple(grouped.aggregations)
    aggregate = Aggregate(plan, tuple(key_exprs), calls, names)
    columns = all_columns(aggregate.schema)[: len(keys)]
    return Project(aggregate, (*columns, *values), _distinct_names([*key_names, *(name for name, _ in wanted)]))


def _windowed(plan: Rel, rows: RowWise) -> Rel:
    if not rows.calls:
        return plan
    return Window(plan, tuple(rows.calls), tuple([f"w{index}" for index in range(len(rows.calls))]))


def _chosen(plan: Rel, positions: Iterable[int]) -> Rel:
    columns = list(positions)
    schema = plan.schema
    exprs = tuple([Column(index, schema[index].type) for index in columns])
    return Project(plan, exprs, tuple([schema.names[index] for index in columns]))


def _unique_pairs(pairs: list[tuple[str, Tree]]) -> list[tuple[str, Tree]]:
    _distinct_names([name for name, _ in pairs])
    return pairs


def _distinct_names(names: list[str]) -> tuple[str, ...]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ArgumentFault(f"two columns would be called {name!r}; give one of them another name with .alias()")
        seen.add(name)
    return tuple(names)
