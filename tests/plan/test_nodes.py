"""Equal nodes are one object while somebody holds it, also for threads that make them at once; others are forgotten."""

from __future__ import annotations

import threading
from typing import Any

from bireme.data import node
from bireme.data.types import BOOL, INT64
from bireme.plan.expr import Call, Column, Expr


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


def test_what_nobody_holds_leaves_the_table() -> None:
    before = len(node._TABLE)
    for mark in range(20):
        assert chain(500, 8000 + mark) is not None
    held = chain(1, 8100)
    assert held is not None
    assert len(node._TABLE) <= before + 2


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
