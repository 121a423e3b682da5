"""A filter and projection that runs in C++ as far as there are kernels, and in the reference backend where not.

Rule: what the reference computes comes to the native program as a further column, and only for rows that the rest of
the predicate keeps, so that it fails for no row that does not count. A CASE with a part that has no kernel and may fail
goes to the reference as a whole, because only there its branches stay lazy. Every such detour is listed in `fallbacks`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

import pyarrow as pa

from bireme.backends import base
from bireme.backends.native import _kernels
from bireme.backends.native.formats import format_of
from bireme.backends.native.lowering import Lowering, Missing
from bireme.data.record import record_batch, select
from bireme.data.schema import Schema
from bireme.plan.expr import Call, Case, Cast, Column, Expr
from bireme.plan.functions import can_fail
from bireme.plan.tree import all_columns, conjoin, conjuncts, operands, walk

Reference = Callable[[Schema, Expr | None, Sequence[Expr], Sequence[str]], base.Program]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What one choice of kernels leads to.

    `filter_by` is None unless something runs in the reference; then rows are filtered by it, then by
    `reference_filter`, and `reference_columns` are appended, before `kernels` computes the outputs. `passed` says for
    each output which column it is, or None where it is computed.
    """

    kernels: _kernels.Program
    filter_by: _kernels.Program | None
    reference_filter: base.Program | None
    reference_columns: base.Program | None
    passed: tuple[int | None, ...]
    fallbacks: tuple[str, ...]


class NativeProgram:
    """A compiled filter and projection. Any number of threads may run it."""

    def __init__(
        self,
        schema: Schema,
        *,
        predicate: Expr | None,
        exprs: Sequence[Expr],
        names: Sequence[str],
        reference: Reference,
    ) -> None:
        self._schema = schema
        self._conjuncts = tuple(conjuncts(predicate))
        self._exprs = tuple(exprs)
        self._names = tuple(names)
        self._reference = reference
        # Outputs of types without vectors (intervals, nested ones) are columns, and taken by position.
        self._by_position = any(format_of(expr.type) is None for expr in self._exprs)
        self._only_columns = not self._conjuncts and all(isinstance(expr, Column) for expr in self._exprs)
        self._fast = self._compile(ascii_only=True)
        self._any_text: _Compiled | None = None

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """Those known from the start, and those that the data made necessary so far."""
        if self._any_text is None:
            return self._fast.fallbacks
        return tuple(dict.fromkeys(self._fast.fallbacks + self._any_text.fallbacks))

    def run(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._only_columns:
            return select(batch, [expr.index for expr in self._exprs if isinstance(expr, Column)], self._names)
        try:
            return self._run(self._fast, batch)
        except _kernels.NeedsReference:
            if self._any_text is None:
                self._any_text = self._compile(ascii_only=False)
            return self._run(self._any_text, batch)

    # ------------------------------------------------------------------------------------------- running

    def _run(self, compiled: _Compiled, batch: pa.RecordBatch) -> pa.RecordBatch:
        if compiled.filter_by is not None:
            rows, everything, _, selection = compiled.filter_by.run(batch, False)
            if not everything:
                batch = _take(batch, pa.array(selection))
        if compiled.reference_filter is not None:
            batch = compiled.reference_filter.run(batch)
        source = batch
        if compiled.reference_columns is not None:
            further = compiled.reference_columns.run(batch)
            both = [*batch.columns, *further.columns]
            source = record_batch(both, [""] * len(both), batch.num_rows)
        rows, everything, exported, selection = compiled.kernels.run(source, True)
        made = iter(pa.record_batch(exported).columns)
        positions = pa.array(selection) if self._by_position and not everything else None
        arrays: list[pa.Array] = []
        for expr, column in zip(self._exprs, compiled.passed, strict=True):
            if column is None:
                arrays.append(next(made))
            elif everything:
                arrays.append(source.column(column))
            elif format_of(expr.type) is None:
                arrays.append(source.column(column).take(positions))
            else:
                arrays.append(_with_dictionary(next(made), source.column(column)))
        return record_batch(arrays, self._names, rows)

    # ----------------------------------------------------------------------------------------- compiling

    def _compile(self, *, ascii_only: bool) -> _Compiled:
        native, referred, missing = self._split_conjuncts(ascii_only)
        substitutes = self._reference_parts(ascii_only, missing)
        detour = bool(referred or substitutes)
        kernels = self._projection(() if detour else native, substitutes, ascii_only)
        parts = list(substitutes)
        passed = [e.index if isinstance(e, Column) else substitutes.get(e) for e in self._exprs]
        return _Compiled(
            kernels=kernels,
            filter_by=self._filter(native, ascii_only) if detour and native else None,
            reference_filter=self._reference_filter(referred),
            reference_columns=self._reference(self._schema, None, parts, [""] * len(parts)) if parts else None,
            passed=tuple(passed),
            fallbacks=tuple(dict.fromkeys(missing)),
        )

    def _reference_filter(self, referred: Sequence[Expr]) -> base.Program | None:
        if not referred:
            return None
        return self._reference(self._schema, conjoin(referred), all_columns(self._schema), self._schema.names)

    def _split_conjuncts(self, ascii_only: bool) -> tuple[tuple[Expr, ...], tuple[Expr, ...], list[str]]:
        """The conjuncts that have kernels, those that do not, and why not."""
        native, referred, missing = [], [], []
        lowering = Lowering(_kernels.Program(), substitutes={}, ascii_only=ascii_only)
        for conjunct in self._conjuncts:
            try:
                lowering.node(conjunct)
            except Missing as error:
                referred.append(conjunct)
                missing.append(str(error))
            else:
                native.append(conjunct)
        return tuple(native), tuple(referred), missing

    def _reference_parts(self, ascii_only: bool, missing: list[str]) -> dict[Expr, int]:
        """The parts of outputs that the reference computes, with the columns in which they will come."""
        substitutes: dict[Expr, int] = {}
        for expr in self._exprs:
            while not isinstance(expr, Column) and expr not in substitutes:
                lowering = Lowering(_kernels.Program(), substitutes=substitutes, ascii_only=ascii_only)
                try:
                    lowering.output(expr)
                    break
                except Missing as error:
                    missing.append(str(error))
                    substitutes[_boundary(expr, error.expr, substitutes)] = len(self._schema) + len(substitutes)
        return substitutes

    def _projection(
        self, conjuncts: Sequence[Expr], substitutes: dict[Expr, int], ascii_only: bool
    ) -> _kernels.Program:
        program = _kernels.Program()
        lowering = Lowering(program, substitutes=substitutes, ascii_only=ascii_only)
        program.set_predicate([lowering.node(conjunct) for conjunct in conjuncts])
        program.set_outputs([lowering.output(expr) for expr in self._exprs if format_of(expr.type) is not None])
        return program

    def _filter(self, conjuncts: Sequence[Expr], ascii_only: bool) -> _kernels.Program:
        program = _kernels.Program()
        lowering = Lowering(program, substitutes={}, ascii_only=ascii_only)
        program.set_predicate([lowering.node(conjunct) for conjunct in conjuncts])
        return program


def predicate_kernels(schema: Schema, predicate: Expr) -> _kernels.Program | None:
    """The predicate as kernels alone, whatever the text in the data, or None where it needs the reference."""
    program = _kernels.Program()
    lowering = Lowering(program, substitutes={}, ascii_only=False)
    try:
        program.set_predicate([lowering.node(conjunct) for conjunct in conjuncts(predicate)])
    except Missing:
        return None
    return program


def _boundary(root: Expr, missing: Expr, known: Container[Expr]) -> Expr:
    """What goes to the reference for `missing`: it, or as little around it as has a type that can come back.

    Where it may fail, that is the outermost lazy expression around it. What is `known` to go there hides what is in it.
    """
    path = _path(root, missing, known)
    if not path:
        return root  # a part that lowering made up
    if _may_fail(missing):
        for part in path[:-1]:
            if isinstance(part, Case) or (isinstance(part, Call) and part.function == "coalesce"):
                return part
    for part in reversed(path):
        if format_of(part.type) is not None and not isinstance(part, Column):
            return part
    return root


def _path(root: Expr, wanted: Expr, known: Container[Expr]) -> list[Expr]:
    """The expressions from `root` down to `wanted` outside of `known` ones; empty where it is not there."""
    if root is wanted:
        return [root]
    for operand in operands(root):
        below = [] if operand in known else _path(operand, wanted, known)
        if below:
            return [root, *below]
    return []


def _may_fail(expr: Expr) -> bool:
    return any(
        (isinstance(part, Call) and can_fail(part)) or (isinstance(part, Cast) and not part.safe) for part in walk(expr)
    )


def _take(batch: pa.RecordBatch, positions: pa.Array) -> pa.RecordBatch:
    if batch.num_columns == 0:
        return record_batch([], [], len(positions))
    return batch.take(positions)


def _with_dictionary(made: pa.Array, column: pa.Array) -> pa.Array:
    """Codes that left the kernels as plain integers, with the dictionary of the column they come from."""
    if not isinstance(column, pa.DictionaryArray):
        return made
    return pa.DictionaryArray.from_arrays(made, column.dictionary, safe=False)
