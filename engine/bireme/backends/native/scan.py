"""Scans in C++: decoding, filtering, runtime filters, late decoding and projection in one call a task.

Rule: conjuncts and runtime filters that have kernels shrink the rows while columns are decoded. What has no kernel
runs afterwards, over the rows that are left, as a `NativeProgram` would run it, and is listed in `fallbacks`. How rows
are found is in native/scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bireme.backends import base
from bireme.backends.native import _kernels
from bireme.backends.native.codecs import decompress
from bireme.backends.native.formats import format_of
from bireme.backends.native.lowering import Lowering, Missing
from bireme.backends.native.program import NativeProgram, Reference
from bireme.data import arrays
from bireme.data.encoded import EncodedRows, MadeColumn
from bireme.data.record import record_batch
from bireme.data.schema import Schema
from bireme.data.types import DataType
from bireme.errors import EngineBug
from bireme.plan.expr import Call, Column, Expr, InList
from bireme.plan.tree import column_mask, columns_in, conjoin, conjuncts, mask_of, remap

# Guesses at the share of rows that conjuncts keep; they only order the steps of the first task.
_KEPT_GUESS: Final = {"eq": 0.1, "is_null": 0.1, "like": 0.2, "starts_with": 0.1, "contains": 0.2, "ne": 0.9}
_KEPT_ELSE: Final = 0.4
_BOUNDS_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class _Compiled:
    """`rest` is what runs after the plan, over the columns that it gives; without it the plan gives the outputs.

    Equal outputs are made once: `places` are those of the outputs among the columns that the plan gives, None where
    they are the same.
    """

    plan: _kernels.ScanPlan
    rest: NativeProgram | None
    places: tuple[int, ...] | None
    names: tuple[str, ...]


class NativeScan:
    """A compiled scan. Any number of threads may run it."""

    def __init__(
        self,
        schema: Schema,
        *,
        predicate: Expr | None,
        exprs: Sequence[Expr],
        names: Sequence[str],
        filters: Sequence[base.RowFilter],
        is_late: bool,
        has_row_numbers: bool,
        bound_columns: Sequence[int],
        reference: Reference,
    ) -> None:
        self._schema = schema
        self._conjuncts = tuple(conjuncts(predicate))
        self._exprs = tuple(exprs)
        self._names = tuple(names)
        self._filters = tuple(filters)
        self._is_late = is_late
        self._has_row_numbers = has_row_numbers
        self._bound_columns = tuple(bound_columns)
        self._bounds: dict[tuple[Expr, bool], _kernels.Program | None] = {}
        self._reference = reference
        self.takes_batches = all(format_of(field.type) is not None for field in schema)
        self._fast = self._compile(ascii_only=True)
        self._any_text: _Compiled | None = None

    @property
    def fallbacks(self) -> tuple[str, ...]:
        notes: list[str] = []
        for compiled in (self._fast, self._any_text):
            if compiled is None:
                continue
            if compiled.rest is not None:
                notes += compiled.rest.fallbacks
            for row_filter, is_off in zip(self._filters, compiled.plan.switched_off(), strict=True):
                if is_off:
                    notes.append(f"the filter by {row_filter.label} drops too little and was switched off")
            if compiled.plan.bound_was_switched_off():
                notes.append("the bound of the top-n drops too little and was switched off")
        return tuple(dict.fromkeys(notes))

    def run(
        self, rows: EncodedRows, buffers: Sequence[pa.Buffer], rows_max: int, bound: Expr | None = None
    ) -> tuple[list[pa.RecordBatch], base.ScanCounts]:
        columns: list[Any] = [*_located(rows, buffers)]
        if self._has_row_numbers:
            first, count = _hull(rows.ranges)
            numbers = np.arange(rows.first_row + first, rows.first_row + first + count, dtype=np.int64)
            columns.append((arrays.from_numpy(numbers), first, rows.chunks[0].rows))
        try:
            return self._run_any_text(columns, rows.ranges, rows_max, bound)
        except _kernels.DamagedColumn as error:
            raise base.ColumnFault(*error.args) from None
        except _kernels.UnreadColumn as error:
            raise base.ColumnUnread(*error.args) from None

    def run_batch(
        self, batch: pa.RecordBatch, bound: Expr | None = None
    ) -> tuple[list[pa.RecordBatch], base.ScanCounts]:
        return self._run_any_text(batch.columns, ((0, batch.num_rows),), batch.num_rows, bound)

    def _run_any_text(
        self, columns: list[Any], ranges: Sequence[tuple[int, int]], rows_max: int, bound: Expr | None
    ) -> tuple[list[pa.RecordBatch], base.ScanCounts]:
        compiled = self._any_text or self._fast
        try:
            return self._run(compiled, columns, ranges, rows_max, bound)
        except _kernels.NeedsReference:
            if self._any_text is None:
                self._any_text = self._compile(ascii_only=False)
            return self._run(self._any_text, columns, ranges, rows_max, bound)

    def _run(
        self,
        compiled: _Compiled,
        columns: list[Any],
        ranges: Sequence[tuple[int, int]],
        rows_max: int,
        bound: Expr | None,
    ) -> tuple[list[pa.RecordBatch], base.ScanCounts]:
        within = None if bound is None else self._bound(bound, ascii_only=compiled is self._fast)
        made, counts = compiled.plan.run(columns, ranges, rows_max, self._is_late, decompress, within)
        batches = []
        for rows, exported, as_they_are in made:
            batch = pa.record_batch(exported)
            if as_they_are:
                given = batch.columns
                for place, column in as_they_are:
                    whole = columns[column]
                    given[place] = whole[0] if isinstance(whole, tuple) else whole
                batch = record_batch(given, batch.schema.names, rows)
            batches.append(self._batch(compiled, rows, batch))
        return batches, base.ScanCounts(*counts)

    def _bound(self, bound: Expr, *, ascii_only: bool) -> _kernels.Program | None:
        """The program of a bound, None where it has no kernels. Bounds come one after the other; the last are kept."""
        at = bound, ascii_only
        if at not in self._bounds:
            if len(self._bounds) >= _BOUNDS_MAX:
                self._bounds = {}
            self._bounds[at] = _predicate([bound], ascii_only)
        return self._bounds.get(at)

    def _batch(self, compiled: _Compiled, rows: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        if compiled.rest is not None:
            return compiled.rest.run(record_batch(batch.columns, compiled.names, rows))
        if compiled.places is None:
            return batch
        return record_batch([batch.column(place) for place in compiled.places], self._names, rows)

    # ----------------------------------------------------------------------------------------- compiling

    def _compile(self, *, ascii_only: bool) -> _Compiled:
        plan = _kernels.ScanPlan([_format(field.type) for field in self._schema])
        referred = self._add_conditions(plan, ascii_only)
        for row_filter in self._filters:
            plan.filter(row_filter.filter, row_filter.columns)
        if self._bound_columns:
            plan.bound(self._bound_columns)
        if not referred:
            projected = self._projected(plan, ascii_only)
            if projected is not None:
                return projected
        return self._with_rest(plan, referred)

    def _add_conditions(self, plan: _kernels.ScanPlan, ascii_only: bool) -> list[Expr]:
        """Adds the conjuncts that have kernels, those over the same columns together; gives the others."""
        together: dict[int, list[Expr]] = {}
        raising: list[Expr] = []
        referred: list[Expr] = []
        probe = _kernels.Program()
        lowering = Lowering(probe, substitutes={}, ascii_only=ascii_only)
        for conjunct in self._conjuncts:
            try:
                node = lowering.node(conjunct)
            except Missing:
                referred.append(conjunct)
                continue
            if probe.can_raise(node):
                raising.append(conjunct)
            else:
                together.setdefault(column_mask(conjunct), []).append(conjunct)
        for mask, parts in together.items():
            _add_condition(plan, mask, parts, ascii_only, can_raise=False)
        for conjunct in raising:
            _add_condition(plan, column_mask(conjunct), [conjunct], ascii_only, can_raise=True)
        return referred

    def _projected(self, plan: _kernels.ScanPlan, ascii_only: bool) -> _Compiled | None:
        """The plan with all outputs; None where one of them has no kernel."""
        distinct = tuple(dict.fromkeys(self._exprs))
        program = _kernels.Program()
        lowering = Lowering(program, substitutes={}, ascii_only=ascii_only)
        try:
            program.set_outputs([lowering.output(expr) for expr in distinct if not isinstance(expr, Column)])
        except Missing:
            return None
        passed = [expr.index if isinstance(expr, Column) else -1 for expr in distinct]
        if len(distinct) == len(self._exprs) and distinct:
            plan.outputs(program, passed, self._names)
            return _Compiled(plan, None, None, self._names)
        plan.outputs(program, passed, [""] * len(passed))
        places = {expr: place for place, expr in enumerate(distinct)}
        return _Compiled(plan, None, tuple([places[expr] for expr in self._exprs]), self._names)

    def _with_rest(self, plan: _kernels.ScanPlan, referred: Sequence[Expr]) -> _Compiled:
        wanted = columns_in(mask_of([*self._exprs, *referred]))
        places = {column: place for place, column in enumerate(wanted)}
        schema = self._schema.select(wanted)
        plan.outputs(_kernels.Program(), wanted, schema.names)
        rest = NativeProgram(
            schema,
            predicate=conjoin([remap(conjunct, places) for conjunct in referred]),
            exprs=[remap(expr, places) for expr in self._exprs],
            names=self._names,
            reference=self._reference,
        )
        return _Compiled(plan, rest, None, schema.names)


def _add_condition(
    plan: _kernels.ScanPlan, mask: int, parts: Sequence[Expr], ascii_only: bool, *, can_raise: bool
) -> None:
    program = _kernels.Program()
    lowering = Lowering(program, substitutes={}, ascii_only=ascii_only)
    program.set_predicate([lowering.node(part) for part in parts])
    kept = 1.0
    for part in parts:
        kept *= _kept_guess(part)
    plan.condition(program, columns_in(mask), can_raise, kept)


def _predicate(parts: Sequence[Expr], ascii_only: bool) -> _kernels.Program | None:
    program = _kernels.Program()
    lowering = Lowering(program, substitutes={}, ascii_only=ascii_only)
    try:
        program.set_predicate([lowering.node(part) for part in parts])
    except Missing:
        return None
    return program


def _kept_guess(conjunct: Expr) -> float:
    if isinstance(conjunct, InList):
        return 0.2
    return _KEPT_GUESS.get(conjunct.function, _KEPT_ELSE) if isinstance(conjunct, Call) else _KEPT_ELSE


def _format(kind: DataType) -> str:
    form = format_of(kind)
    return "n" if form is None else form


# An array of some rows that are decoded, the first of them, and how many there are in all.
_Decoded = tuple[pa.Array, int, int]


def _located(rows: EncodedRows, buffers: Sequence[pa.Buffer]) -> list[_kernels.Chunk | _Decoded]:
    """The chunks with the addresses of their bytes, and what is no chunk as an array of the rows that may be wanted."""
    chunks: list[_kernels.Chunk | _Decoded] = []
    first, count = _hull(rows.ranges)
    for chunk in rows.chunks:
        if isinstance(chunk, MadeColumn):
            chunks.append((chunk.make(buffers, first, count), first, chunk.rows))
            continue
        address = _address(buffers[chunk.buffer], chunk.offset, chunk.length)
        part = None
        if chunk.part is not None:
            first_row, buffer, offset, length = chunk.part
            part = first_row, _address(buffers[buffer], offset, length), length
        chunks.append(
            (chunk.physical, chunk.type_length, chunk.codec, chunk.is_optional, chunk.rows, address, chunk.length,
             chunk.pages, part)
        )  # fmt: skip
    return chunks


def _hull(ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The rows (first, count) that ascending ranges lie in."""
    if not ranges:
        return 0, 0
    first, (last, count) = ranges[0][0], ranges[-1]
    return first, last + count - first


def _address(buffer: pa.Buffer, offset: int, length: int) -> int:
    if offset < 0 or offset + length > buffer.size:
        raise EngineBug(f"a chunk of {length} bytes at {offset} lies outside of its {buffer.size} bytes")
    start: int = buffer.address
    return start + offset
