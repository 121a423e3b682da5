"""Equal nodes are one object while somebody holds it, also for threads that make them at once; others go in time."""

from __future__ import annotations

import threading
from typing import Any

from bireme.data import node
from bireme.data.types import BOOL, INT64, STRING
from bireme.plan.expr import Call, Column, Expr, Literal


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
    held = chain(100, 8000)
    for mark in range(1, 400):
        assert chain(200, 8000 + mark) is not None
    assert len(node._TABLE) < 3 * node._NODES_KEPT
    node.drop_unused()
    assert (Column, 8000, INT64) in node._TABLE
    assert not any((Column, 8000 + mark, INT64) in node._TABLE for mark in range(1, 400))
    assert chain(100, 8000) is held


def test_large_values_are_not_kept_for_long() -> None:
    texts = [f"{number}{'x' * 1_000_000}" for number in range(50)]
    for text in texts:
        assert Literal(text, STRING).value == text
    held = sum([(Literal, text, STRING, str) in node._TABLE for text in texts])
    assert held * 1_000_000 <= 2 * node._NODES_KEPT * node._BYTES_PER_NODE


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
