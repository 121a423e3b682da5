"""Programs of every backend: filters, lazy branches, three-valued logic, row counts, sliced and encoded inputs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import EVERY_TYPE, batches, corner_batch, schema_of
from support.drawn import drawn
from support.duck import Duck, values_of
from support.evaluation import check_against_backend, check_against_duck, columns_of

from bireme.backends.base import Kernels
from bireme.backends.reference import ReferenceKernels
from bireme.data import types as t
from bireme.data.record import plain
from bireme.data.schema import Schema
from bireme.errors import DataError, DomainFault, Overflow
from bireme.plan import functions
from bireme.plan.expr import Column, Expr, Literal

A, B = Column(0, t.INT32), Column(1, t.INT32)


def integer(value: int | None) -> Literal:
    return Literal(value, t.INT32)


def ints(**columns: list[int | None]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.int32()) for values in columns.values()], names=list(columns))


def run(backend: Kernels, batch: pa.RecordBatch, exprs: list[Expr], predicate: Expr | None = None) -> pa.RecordBatch:
    names = [f"x{index}" for index in range(len(exprs))]
    program = backend.program(Schema.from_arrow(batch.schema), predicate=predicate, exprs=exprs, names=names)
    answer = program.run(batch)
    assert answer.schema.names == names
    return answer


def values(backend: Kernels, batch: pa.RecordBatch, expr: Expr, predicate: Expr | None = None) -> list[Any]:
    return values_of(plain(run(backend, batch, [expr], predicate).column(0)))


# ------------------------------------------------------------------------------------------------ filters


def test_only_true_rows_are_kept(backend: Kernels) -> None:
    batch = ints(a=[1, 2, None, 3], b=[0, 5, 5, None])
    assert values(backend, batch, A, functions.scalar("<", [A, B])) == [2]


@pytest.mark.parametrize("truth", [True, False, None])
def test_a_constant_predicate(backend: Kernels, truth: bool | None) -> None:
    batch = ints(a=[1, None], b=[1, 1])
    assert values(backend, batch, A, Literal(truth, t.BOOL)) == ([1, None] if truth else [])


def test_rows_are_counted_without_columns(backend: Kernels) -> None:
    batch = ints(a=[1, 2, None, 3], b=[0, 5, 5, None])
    assert run(backend, batch, [], functions.scalar(">", [A, integer(1)])).num_rows == 2
    assert run(backend, batch, []).num_rows == 4
    none = pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([])))
    assert values(backend, none, integer(7)) == [7, 7, 7]
    assert run(backend, none, []).num_rows == 3


def test_a_batch_without_rows(backend: Kernels) -> None:
    batch = ints(a=[], b=[])
    exprs = [functions.scalar("+", [A, B]), functions.case([(functions.scalar(">", [A, B]), A)], None), integer(1)]
    answer = run(backend, batch, exprs, functions.scalar("=", [A, B]))
    assert answer.num_rows == 0
    assert answer.schema.types == [pa.int32()] * 3


def test_an_error_in_a_row_that_the_predicate_drops_is_none(backend: Kernels) -> None:
    batch = ints(a=[10, 20], b=[0, 5])
    quotient = functions.scalar("//", [A, B])
    assert values(backend, batch, quotient, functions.scalar("<>", [B, integer(0)])) == [4]
    with pytest.raises(DomainFault, match="divi"):
        values(backend, batch, quotient)


# --------------------------------------------------------------------------------------------- lazy parts


def test_case_evaluates_a_branch_only_for_its_rows(backend: Kernels) -> None:
    batch = ints(a=[10, 20, 30, None], b=[0, 5, None, 0])
    quotient = functions.scalar("//", [A, B])
    guarded = functions.case([(functions.scalar("=", [B, integer(0)]), integer(-1))], quotient)
    assert values(backend, batch, guarded) == [-1, 4, None, -1]
    later = functions.case(
        [(functions.scalar("=", [B, integer(0)]), integer(0)), (functions.scalar(">", [quotient, integer(3)]), A)], None
    )
    assert values(backend, batch, later) == [0, 20, None, 0]


def test_coalesce_evaluates_an_argument_only_where_needed(backend: Kernels) -> None:
    batch = ints(a=[1, None], b=[0, 5])
    expr = functions.scalar("coalesce", [A, functions.scalar("//", [integer(10), B])])
    assert values(backend, batch, expr) == [1, 2]


def test_and_and_or_stop_at_what_decides(backend: Kernels) -> None:
    batch = ints(a=[10, 20], b=[0, 5])
    large = functions.scalar(">", [functions.scalar("//", [A, B]), integer(3)])
    assert values(backend, batch, functions.scalar("and", [functions.scalar("<>", [B, integer(0)]), large])) == [
        False,
        True,
    ]
    assert values(backend, batch, functions.scalar("or", [functions.scalar("=", [B, integer(0)]), large])) == [
        True,
        True,
    ]


# --------------------------------------------------------------------------------------- IN, CASE and NULL


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=str(kind)) for kind in (t.INT32, t.STRING, t.FLOAT64, t.decimal(15, 2), t.DATE)]
)
@pytest.mark.parametrize("with_null", [False, True])
def test_in_list_as_in_duckdb(backend: Kernels, duck: Duck, kind: t.DataType, with_null: bool) -> None:
    batch = corner_batch([kind, kind], rows_max=60)
    column, other = columns_of(schema_of([kind, kind]))
    items: list[Expr] = [other, functions.cast(Literal("1", t.STRING), kind) if kind is not t.DATE else other]
    items += [Literal(None, kind)] if with_null else []
    constant = f"cast('1' as {kind})" if kind is not t.DATE else "c1"
    sql = f"c0 in (c1, {constant}{', null' if with_null else ''})"
    check_against_duck(backend, duck, functions.in_list(column, items), sql, batch)


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in EVERY_TYPE])
def test_case_gives_values_of_every_type(other: Kernels, reference: ReferenceKernels, kind: t.DataType) -> None:
    types = [t.BOOL, kind, kind]
    batch = corner_batch(types, rows_max=120)
    condition, one, two = columns_of(schema_of(types))
    check_against_backend(other, reference, functions.case([(condition, one)], two), batch)
    check_against_backend(other, reference, functions.case([(condition, one)], None), batch)
    check_against_backend(other, reference, functions.scalar("coalesce", [one, two]), batch)


# ---------------------------------------------------------------------------------------- layouts of input


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in EVERY_TYPE])
def test_columns_pass_through_unchanged(backend: Kernels, kind: t.DataType) -> None:
    batch = corner_batch([kind])
    for piece in (batch, batch.slice(1), batch.slice(2, 5), batch.slice(0, 0)):
        got = run(backend, piece, columns_of(schema_of([kind]))).column(0)
        assert got.type == piece.column(0).type
        assert repr(values_of(got)) == repr(values_of(piece.column(0)))


TEXT, NUMBER, PRICE, DAY = (
    Column(index, kind) for index, kind in enumerate((t.STRING, t.INT64, t.decimal(15, 2), t.DATE))
)
MIXED: list[Expr] = [
    functions.scalar("like", [TEXT, Literal("%a%", t.STRING)]),
    functions.scalar("||", [TEXT, TEXT]),
    functions.scalar("=", [TEXT, Literal("ab", t.STRING)]),
    functions.in_list(TEXT, [Literal("a", t.STRING), Literal("日本語", t.STRING)]),
    functions.scalar("length", [TEXT]),
    functions.scalar("substring", [TEXT, Literal(2, t.INT32), Literal(2, t.INT32)]),
    functions.case([(functions.scalar(">", [TEXT, Literal("b", t.STRING)]), TEXT)], Literal("small", t.STRING)),
    functions.scalar("greatest", [TEXT, Literal("b", t.STRING)]),
    functions.scalar("+", [PRICE, Literal(1, t.INT32)]),
    functions.scalar("*", [PRICE, functions.scalar("-", [Literal(1, t.INT32), PRICE])]),
    functions.scalar("year", [DAY]),
    functions.cast(NUMBER, t.STRING),
    functions.cast(PRICE, t.FLOAT64),
    functions.scalar("is_null", [TEXT]),
    functions.scalar("hash", [TEXT, NUMBER, PRICE, DAY]),
    functions.scalar("upper", [TEXT]),
]


@drawn(40)
@given(data=st.data())
def test_drawn_batches_agree(other: Kernels, reference: ReferenceKernels, data: st.DataObject) -> None:
    """Sliced batches with dictionary-encoded texts, several expressions at once, behind a filter."""
    batch = data.draw(batches([TEXT.type, NUMBER.type, PRICE.type, DAY.type], few=data.draw(st.booleans())))
    exprs = data.draw(st.lists(st.sampled_from(MIXED), min_size=1, max_size=5))
    predicate = data.draw(st.none() | st.sampled_from([expr for expr in MIXED if expr.type is t.BOOL]))
    try:
        wanted = run(reference, batch, exprs, predicate)
    except DataError as error:
        with pytest.raises(type(error)):
            run(other, batch, exprs, predicate)
        return
    got = run(other, batch, exprs, predicate)
    assert got.num_rows == wanted.num_rows
    for one, other in zip(got.columns, wanted.columns, strict=True):
        assert plain(one).type == plain(other).type
        assert values_of(plain(one)) == values_of(plain(other))


def test_overflow_names_operation_and_type(backend: Kernels) -> None:
    largest = ints(a=[2**31 - 1], b=[1])
    with pytest.raises(Overflow, match=r"(?i)add.*integer|integer.*add"):
        values(backend, largest, functions.scalar("+", [A, B]))
    with pytest.raises(Overflow, match=r"(?i)multipl"):
        values(backend, ints(a=[2**30], b=[4]), functions.scalar("*", [A, B]))
