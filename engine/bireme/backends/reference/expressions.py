"""Evaluates expressions over the columns of a batch; the meaning of the lazy ones is here.

CASE, COALESCE, AND and OR evaluate an argument only for the rows that need it, so that it fails for no other row. What
the other functions do is in the modules beside this one, by family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference import (
    arithmetic,
    comparison,
    encodings,
    json_texts,
    lambdas,
    list_parts,
    list_summaries,
    lists,
    made_lists,
    maps,
    numeric,
    order_keys,
    paths,
    patterns,
    structs,
    temporal,
    text,
    text_lists,
    time_spans,
)
from bireme.backends.reference.casts import CastColumn, cast_array
from bireme.backends.reference.keys import Rows
from bireme.backends.reference.values import repeated
from bireme.backends.reference.vectors import Bools, bools, from_bools, nulls_of
from bireme.data import arrays
from bireme.data.record import plain
from bireme.data.types import BOOL, DataType, to_arrow
from bireme.errors import EngineBug, Unsupported
from bireme.plan.expr import Call, Case, Cast, Column, Expr, InList, Lambda, Literal, Parameter
from bireme.plan.physical import Scalar

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]

FUNCTIONS: Final[dict[str, Evaluator]] = {
    **arithmetic.FUNCTIONS,
    **comparison.FUNCTIONS,
    **encodings.FUNCTIONS,
    **json_texts.FUNCTIONS,
    **list_parts.FUNCTIONS,
    **made_lists.FUNCTIONS,
    **text_lists.FUNCTIONS,
    **list_summaries.FUNCTIONS,
    **lists.FUNCTIONS,
    **maps.FUNCTIONS,
    **numeric.FUNCTIONS,
    **order_keys.FUNCTIONS,
    **paths.FUNCTIONS,
    **patterns.FUNCTIONS,
    **structs.FUNCTIONS,
    **temporal.FUNCTIONS,
    **text.FUNCTIONS,
    **time_spans.FUNCTIONS,
}
_LAZY: Final = frozenset({"and", "or", "coalesce"})


def check_supported(expr: Expr) -> None:
    """Raises Unsupported, naming it, for an expression that `Scope` cannot evaluate."""
    match expr:
        case Call(function, args):
            if function not in FUNCTIONS and function not in _LAZY and function not in lambdas.FUNCTIONS:
                raise Unsupported(f"the function {function} is not implemented; rewrite the query without it")
            parts: Sequence[Expr] = args
        case Cast(arg):
            parts = (arg,)
        case Case(branches, default):
            parts = (*(part for branch in branches for part in branch), default)
        case InList(arg, items):
            parts = (arg, *items)
        case Lambda(_, body):
            parts = (body,)
        case Column() | Literal() | Scalar() | Parameter():
            parts = ()
        case _:
            raise EngineBug(f"{type(expr).__name__} reached a backend; it should be gone after unnesting")
    for part in parts:
        check_supported(part)


class Scope:
    """The columns that expressions are evaluated over; equal subexpressions are evaluated once.

    Inside of lambdas, `parameters` are known, too. `cast` casts parts of nested values.
    """

    def __init__(
        self,
        columns: Sequence[pa.Array],
        rows: int,
        parameters: Mapping[Parameter, pa.Array] | None = None,
        cast: CastColumn | None = None,
    ) -> None:
        self._cast = cast
        self._columns = columns
        self._rows = rows
        self._parameters = parameters or {}
        self._known: dict[Expr, pa.Array] = {each: values for each, values in self._parameters.items()}  # noqa: C416

    def evaluate(self, expr: Expr) -> pa.Array:
        """The values of `expr`, one a row, not dictionary-encoded."""
        known = self._known.get(expr)
        if known is None:
            known = self._known[expr] = self._compute(expr)
        return known

    def _compute(self, expr: Expr) -> pa.Array:
        match expr:
            case Column(index):
                return plain(self._columns[index])
            case Literal(value, kind):
                return repeated(value, kind, self._rows)
            case Call(("and" | "or") as function, args):
                return self._junction(args, stop=function == "or")
            case Call("coalesce", args, kind):
                return self._coalesce(args, kind)
            case Call(function, (_, Lambda() as given, *_)):
                return lambdas.FUNCTIONS[function](self, expr, given)
            case Call(function, args, kind):
                if not args:
                    raise EngineBug(f"{function} without arguments reached a backend")
                return FUNCTIONS[function](expr, [self.evaluate(arg) for arg in args])
            case Cast(arg, kind, safe):
                return cast_array(self.evaluate(arg), arg.type, kind, safe, self._cast)
            case Case(branches, default, kind):
                return self._case(branches, default, kind)
            case InList(arg, items):
                return self._in_list(arg, items)
            case _:
                raise EngineBug(f"{type(expr).__name__} reached a backend")

    def _narrowed(self, rows: Rows) -> Scope:
        """The same columns at some rows."""
        return self.at(rows, {})

    def at(self, rows: Rows, parameters: Mapping[Parameter, pa.Array]) -> Scope:
        """The same columns and parameters at some rows, which may come repeatedly, and further `parameters`."""
        positions = arrays.from_numpy(np.asarray(rows, np.int64))
        around = {parameter: values.take(positions) for parameter, values in self._parameters.items()}
        return Scope(_TakenLazily(self._columns, positions), len(rows), {**around, **parameters}, self._cast)

    def merged(self, parts: list[tuple[Rows, pa.Array]], kind: DataType) -> pa.Array:
        """A column of the values of `parts`, each at its rows, and NULL elsewhere."""
        return _merged(parts, self._rows, kind) if parts else pa.nulls(self._rows, to_arrow(kind))

    def _junction(self, args: tuple[Expr, ...], stop: bool) -> pa.Array:
        """AND (`stop` FALSE) or OR (`stop` TRUE): an argument equal to `stop` decides, else a NULL one."""
        decided = np.zeros(self._rows, np.bool_)
        unknown = np.zeros(self._rows, np.bool_)
        for arg in args:
            rows = np.flatnonzero(~decided)
            values = self._evaluate_at(arg, rows)
            missing = nulls_of(values)
            decided[rows] = (bools(values) == stop) & ~missing
            unknown[rows] |= missing
        return from_bools(decided == stop, unknown & ~decided)

    def _evaluate_at(self, arg: Expr, rows: Rows) -> pa.Array:
        return self.evaluate(arg) if len(rows) == self._rows else self._narrowed(rows).evaluate(arg)

    def _coalesce(self, args: tuple[Expr, ...], kind: DataType) -> pa.Array:
        parts: list[tuple[Rows, pa.Array]] = []
        rows = np.arange(self._rows)
        for arg in args:
            values = self._evaluate_at(arg, rows)
            missing = nulls_of(values)
            parts.append((rows[~missing], values.filter(arrays.from_numpy(~missing))))
            rows = rows[missing]
        return _merged(parts, self._rows, kind)

    def _case(self, branches: tuple[tuple[Expr, Expr], ...], default: Expr, kind: DataType) -> pa.Array:
        parts: list[tuple[Rows, pa.Array]] = []
        rows = np.arange(self._rows)
        for condition, value in branches:
            if len(rows) == 0:
                break
            chosen = bools(self._evaluate_at(condition, rows))
            parts.append((rows[chosen], self._evaluate_at(value, rows[chosen])))
            rows = rows[~chosen]
        parts.append((rows, self._evaluate_at(default, rows)))
        return _merged(parts, self._rows, kind)

    def _in_list(self, arg: Expr, items: tuple[Expr, ...]) -> pa.Array:
        value = self.evaluate(arg)
        found = np.zeros(self._rows, np.bool_)
        unknown = nulls_of(value)
        for item in items:
            other = self.evaluate(item)
            found |= bools(comparison.equal(value, other))
            unknown = unknown | nulls_of(other)
        return from_bools(found, unknown & ~found)


class _TakenLazily(Sequence[pa.Array]):
    """Columns at some rows, each taken when first asked for."""

    def __init__(self, columns: Sequence[pa.Array], rows: pa.Array) -> None:
        self._columns = columns
        self._rows = rows
        self._taken: dict[int, pa.Array] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: int) -> pa.Array:  # type: ignore[override]
        taken = self._taken.get(index)
        if taken is None:
            taken = self._taken[index] = self._columns[index].take(self._rows)
        return taken


def _merged(parts: list[tuple[Rows, pa.Array]], rows: int, kind: DataType) -> pa.Array:
    """One column of the parts' values, each at its rows; NULL where no part has the row."""
    arrow = to_arrow(kind)
    if len(parts) == 1 and len(parts[0][0]) == rows:
        return parts[0][1]
    together = pa.concat_arrays([values if values.type == arrow else values.cast(arrow) for _, values in parts])
    source = np.full(rows, -1, np.int64)
    source[np.concatenate([at for at, _ in parts])] = np.arange(len(together))
    return together.take(arrays.from_numpy(np.asarray(source, np.int64), missing=source < 0))


def kept_rows(predicate: Expr, columns: Sequence[pa.Array], rows: int, cast: CastColumn | None = None) -> Rows:
    """The rows for which `predicate` is TRUE; its conjuncts are evaluated in turn, each for the rows still kept."""
    conjuncts = predicate.args if isinstance(predicate, Call) and predicate.function == "and" else (predicate,)
    kept = np.arange(rows)
    scope = Scope(columns, rows, cast=cast)
    for conjunct in conjuncts:
        chosen: Bools = bools(scope._evaluate_at(conjunct, kept))
        kept = kept[chosen]
    assert predicate.type is BOOL
    return kept
