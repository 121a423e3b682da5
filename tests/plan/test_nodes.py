"""Equal nodes are one object while somebody holds it, also for threads that make them at once; others go in time."""

from __future__ import annotations

import math
import threading
import weakref
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bireme.data import node
from bireme.data.node import column_positions, relations, relations_among, relations_outside_subqueries
from bireme.data.schema import Schema
from bireme.data.types import BOOL, FLOAT64, INT64, STRING, DataType, Field, Kind, decimal
from bireme.plan.expr import Call, Column, Expr, Literal, OuterColumn, ScalarSubquery, SortKey
from bireme.plan.relation import DependentJoin, Filter, Join, JoinKind, Limit, Rel, Union, Values
from bireme.plan.tree import column_mask, columns_in, equal, mask_of, remap, shift, substitute, with_inputs

# As in native/nodes/table.hpp.
_NODES_KEPT = 16_384
_BYTES_PER_NODE = 256


def chain(length: int, mark: int) -> Expr:
    expr: Expr = Column(mark, INT64)
    for _ in range(length):
        expr = Call("negate", (expr,), INT64)
    return expr


def test_an_equal_node_is_found_again() -> None:
    held = chain(20, 7001)
    assert chain(20, 7001) is held
    assert chain(20, 7002) is not held


def test_left_out_arguments_are_the_defaults() -> None:
    assert Column(1, type=INT64) is Column(1, INT64)
    assert Call("eq", (Column(1, INT64),), BOOL) is Call(function="eq", args=(Column(1, INT64),), type=BOOL)


def test_a_wrong_call_names_the_fields() -> None:
    for call in [
        lambda: Column(1),
        lambda: Column(1, INT64, 2),
        lambda: Column(1, INT64, index=1),
        lambda: Column(x=1),
    ]:
        with pytest.raises(TypeError, match="Column takes index, type"):
            call()
    with pytest.raises(TypeError, match="no nodes of its own"):
        Expr()


def test_nodes_do_not_change() -> None:
    held = Column(1, INT64)
    with pytest.raises(AttributeError, match="Column is immutable: 'index' cannot be set"):
        held.index = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="Column is immutable: 'index' cannot be deleted"):
        del held.index
    assert held.index == 1


def test_constants_that_only_compare_equal_are_not_one() -> None:
    values: list[Any] = [
        0,
        0.0,
        -0.0,
        False,
        1,
        1.0,
        True,
        Decimal(1),
        "1",
        b"1",
        None,
        math.nan,
        (1,),
        (True,),
        (1.0,),
    ]
    assert len({id(Literal(value, INT64)) for value in values}) == len(values)
    assert all(Literal(value, INT64) is Literal(value, INT64) for value in values)
    assert Literal(float("nan"), FLOAT64) is Literal(math.nan, FLOAT64)


def test_what_nobody_holds_leaves_the_table() -> None:
    held = chain(100, 8000)
    node.drop_unused()
    before = node.node_count()
    lost = [weakref.ref(chain(200, 8000 + mark)) for mark in range(1, 400)]
    assert node.node_count() < 3 * (before + _NODES_KEPT)
    node.drop_unused()
    assert node.node_count() <= before
    assert not any(each() is not None for each in lost)
    assert chain(100, 8000) is held


def test_large_values_are_not_kept_for_long() -> None:
    kept = [weakref.ref(Literal(f"{number}{'x' * 1_000_000}", STRING)) for number in range(50)]
    held = sum([each() is not None for each in kept])
    assert held * 1_000_000 <= 2 * _NODES_KEPT * _BYTES_PER_NODE


def test_columns_that_are_read_are_known_at_any_position() -> None:
    wide = equal(Column(3, INT64), Column(200, INT64))
    assert column_mask(wide) == 1 << 3 | 1 << 200
    assert column_mask(shift(wide, 60)) == 1 << 63 | 1 << 260
    assert remap(shift(wide, 60), {63: 3, 260: 200}) is wide
    assert substitute(wide, {3: Column(200, INT64), 200: Column(3, INT64)}) is equal(
        Column(200, INT64), Column(3, INT64)
    )
    assert column_mask(Literal(1, INT64)) == 0


def test_nodes_of_a_tuple_are_changed_one_by_one() -> None:
    one, two, three = Column(1, INT64), Column(2, INT64), Literal(3, INT64)
    exprs = (equal(one, two), three, two)
    assert remap(exprs, {1: 5, 2: 70}) == (equal(Column(5, INT64), Column(70, INT64)), three, Column(70, INT64))
    assert shift(exprs, 4) == (equal(Column(5, INT64), Column(6, INT64)), three, Column(6, INT64))
    assert substitute(exprs, [three, two, one]) == (equal(two, one), three, one)
    keys = (SortKey(two, True), SortKey(one))
    assert remap(keys, {1: 2, 2: 1}) == (SortKey(one, True), SortKey(two))
    assert mask_of(keys) == 0b110
    assert remap(exprs, {1: 1, 2: 2}) is exprs
    assert remap((), {}) == ()
    for change in (remap, shift, substitute, node.map_subplans):
        with pytest.raises(TypeError, match="'x' is not a node"):
            change("x", 1)  # type: ignore[type-var, arg-type]
        with pytest.raises(TypeError, match="two arguments are needed, and 1 are given"):
            change(exprs)  # type: ignore[call-arg]


def test_a_class_of_nodes_that_is_derived_in_python_is_one_of_nodes() -> None:
    class Odd(Column):
        pass

    with pytest.raises(TypeError, match="has no nodes of its own"):
        Odd(1, INT64)


def test_columns_among_expressions_are_known_by_their_positions() -> None:
    exprs = (Column(70, INT64), Literal(1, INT64), equal(Column(1, INT64), Column(1, INT64)), Column(0, BOOL))
    assert column_positions(exprs) == (70, None, None, 0)
    assert column_positions(()) == ()
    with pytest.raises(TypeError, match="is not a tuple"):
        column_positions(list(exprs))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="1 is not a node"):
        column_positions((1,))  # type: ignore[arg-type]


def test_relations_of_some_classes_are_found_also_in_subqueries() -> None:
    inner = Limit(Values(((Literal(1, INT64),),), Schema((Field("a", INT64),))), 1)
    outer = Filter(inner.input, equal(ScalarSubquery(inner, INT64), Column(0, INT64)))
    assert relations(outer) == [inner.input, inner, outer]
    assert relations_outside_subqueries(outer) == [inner.input, outer]
    assert relations_among(outer, {Limit, Filter}) == [inner, outer]
    assert relations_among(outer, ()) == []
    with pytest.raises(TypeError, match="1 is not a node"):
        relations_among(1, {Limit})  # type: ignore[arg-type]


def test_plans_of_subqueries_are_changed_in_each_node_of_a_tuple() -> None:
    plan, other = (Values(((Literal(each, INT64),),), Schema((Field("a", INT64),))) for each in (1, 2))
    subquery = ScalarSubquery(plan, INT64)
    exprs = (equal(subquery, Column(0, INT64)), Column(1, INT64))
    changed = (equal(ScalarSubquery(other, INT64), Column(0, INT64)), Column(1, INT64))
    assert node.map_subplans(exprs, {plan: other}.__getitem__) == changed
    assert node.map_subplans(exprs, lambda same: same) is exprs
    with pytest.raises(KeyError):
        node.map_subplans(exprs, {}.__getitem__)


def test_what_is_used_is_found_again_while_others_are_dropped() -> None:
    stop = threading.Event()
    lost: list[int] = []

    def use(mark: int) -> None:
        while not stop.is_set():
            held = chain(30, mark)
            for _ in range(20):
                if chain(30, mark) is not held:
                    lost.append(mark)

    threads = [threading.Thread(target=use, args=(8500 + number % 2,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        node.drop_unused()
    stop.set()
    for thread in threads:
        thread.join()
    assert not lost


def test_threads_that_make_one_node_at_once_get_one_object() -> None:
    start = threading.Barrier(4)
    made: list[list[Any]] = [[] for _ in range(4)]

    def make(found: list[Any]) -> None:
        start.wait()
        for mark in range(3000):
            found.append(Column(9000 + mark // 2, INT64))

    threads = [threading.Thread(target=make, args=(found,)) for found in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for nodes in zip(*made, strict=True):
        assert all(each is nodes[0] for each in nodes)


def test_a_union_may_read_fewer_relations_and_others_as_many_as_they_do() -> None:
    rows = [Values(((Literal(number, INT64),),), Schema((Field("x", INT64),))) for number in range(3)]
    union = Union(tuple(rows))
    assert with_inputs(union, rows) is union
    assert with_inputs(union, rows[:2]) is Union(tuple(rows[:2]))
    with pytest.raises(ValueError, match="reads 1 relations, and is given 2"):
        with_inputs(Limit(rows[0], 1), rows[:2])


@given(st.sets(st.integers(0, 200)))
def test_the_positions_in_a_mask_are_those_of_its_bits(positions: set[int]) -> None:
    mask = sum(1 << position for position in positions)
    assert columns_in(mask) == sorted(positions)
    assert mask_of([Column(position, INT64) for position in positions]) == mask
    assert mask_of(iter([Call("negate", (Column(position, INT64),), INT64) for position in positions])) == mask


def test_what_is_no_mask_is_refused() -> None:
    for wrong, error in [(-1, ValueError), (1.5, TypeError), ("1", TypeError)]:
        with pytest.raises(error):
            columns_in(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        mask_of([1])  # type: ignore[list-item]


def test_calls_of_an_associative_function_are_flattened_without_repetitions() -> None:
    a, b, c = [Column(index, BOOL) for index in range(3)]
    other = Call("or", (a, Call("and", (b, c), BOOL)), BOOL)
    nested = Call("and", (a, Call("and", (b, a, Call("and", (other, b), BOOL)), BOOL)), BOOL)
    assert node.flattened(nested, "and") == [a, b, other]
    assert node.flattened(other, "and") == [other]
    assert node.flattened(a, "and") == [a]


def test_a_relation_is_read_twice_where_two_relations_or_subqueries_read_it() -> None:
    rows = Values(((Literal(1, INT64),),), Schema((Field("x", INT64),)))
    limit = Limit(rows, 1)
    asking = Filter(Limit(limit, 5), equal(Column(0, INT64), ScalarSubquery(limit, INT64)))
    assert node.read_twice(asking) == {limit}
    assert node.read_twice(Union((rows, limit, limit))) == {rows, limit}
    assert node.read_twice(Union((rows, limit, limit)), {Limit}) == {limit}
    assert node.read_twice(Limit(limit, 2)) == frozenset()


def test_each_of_many_relations_is_visited_once() -> None:
    rows = Values(((Literal(1, INT64),),), Schema((Field("x", INT64),)))
    branches: list[Rel] = [Limit(Limit(rows, number), 1) for number in range(1, 500)]
    plan = Union(tuple(branches * 2))
    assert len(node.relations(plan)) == len(set(node.relations(plan))) == 2 * 499 + 2
    assert node.read_twice(plan) == {rows, *branches}
    visited: list[Rel] = []

    def visit(rel: Rel) -> Rel:
        visited.append(rel)
        return rel

    assert node.map_relations(plan, visit) is plan
    assert visited == node.relations(plan)


def test_joins_and_what_is_read_for_each_row_are_known_of_all_that_reads_them() -> None:
    rows = Values(((Literal(1, INT64),),), Schema((Field("x", INT64),)))
    joined, dependent = Join(rows, rows, JoinKind.INNER), DependentJoin(rows, rows, JoinKind.INNER)
    outer = DependentJoin(rows, Filter(rows, equal(Column(0, INT64), OuterColumn(1, 0, INT64))), JoinKind.INNER)
    asking = Filter(rows, equal(Column(0, INT64), ScalarSubquery(Limit(rows, 1), INT64)))
    plans = [
        rows,
        joined,
        dependent,
        outer,
        asking,
        Filter(rows, equal(Column(0, INT64), ScalarSubquery(joined, INT64))),
    ]
    for made in (lambda plan: plan, lambda plan: Limit(Union((rows, plan)), 1)):
        assert [node.holds_join(made(plan)) for plan in plans] == [False, True, False, False, False, True]
        assert [node.holds_dependent(made(plan)) for plan in plans] == [False, False, True, True, True, True]
        assert [node.holds_outer(made(plan)) for plan in plans] == [plan is outer for plan in plans]


def test_nested_types_are_known_of_all_that_reads_them() -> None:
    lists = DataType(Kind.LIST, children=(Field("", INT64),))
    rows = [Values(((Literal(None, kind),),), Schema((Field("x", kind),))) for kind in (INT64, lists)]
    assert [node.holds_nested(each) for each in (INT64, lists, *rows)] == [False, True, False, True]
    assert node.holds_nested(Limit(Union(tuple(rows)), 1))
    assert not node.holds_nested(Limit(rows[0], 1))


def test_long_decimals_are_known_of_all_that_reads_them() -> None:
    long, short = decimal(19, 2), decimal(18, 2)
    rows = [Values(((Literal(None, kind),),), Schema((Field("x", kind),))) for kind in (short, long)]
    assert [node.holds_decimal128(each) for each in (short, long, *rows)] == [False, True, False, True]
    assert node.holds_decimal128(Limit(Union(tuple(rows)), 1))
    assert not node.holds_decimal128(Limit(rows[0], 1))
    assert node.holds_decimal128(Call("is_null", (ScalarSubquery(rows[1], INT64),), BOOL))
    assert node.holds_decimal128(Schema((Field("x", DataType(Kind.LIST, children=(Field("", long),))),)))
