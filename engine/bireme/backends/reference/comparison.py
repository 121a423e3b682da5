"""Comparisons, tests for NULL and truth, greatest and least."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from bireme.backends.reference.keys import order_codes
from bireme.backends.reference.vectors import Bools, Numbers, any_null, bools, from_bools, nulls_of
from bireme.plan.expr import Call

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]


def equal(left: pa.Array, right: pa.Array) -> pa.Array:
    """Three-valued equality."""
    first, second = order_codes([left, right])
    return from_bools(first == second, any_null([left, right]))


def same(left: pa.Array, right: pa.Array) -> Bools:
    """Equality in which NULL equals NULL and nothing else."""
    first, second = order_codes([left, right])
    gone, gone_too = nulls_of(left), nulls_of(right)
    return np.where(gone | gone_too, gone & gone_too, first == second)


def _comparison(compare: Callable[[Numbers, Numbers], Bools]) -> Evaluator:
    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        left, right = order_codes(args)
        return from_bools(compare(left, right), any_null(args))

    return evaluate


def _is_distinct(call: Call, args: list[pa.Array]) -> pa.Array:
    return from_bools(~same(*args))


def _is_not_distinct(call: Call, args: list[pa.Array]) -> pa.Array:
    return from_bools(same(*args))


def _test(test: Callable[[Bools, Bools], Bools]) -> Evaluator:
    """A test of (truth, missing) that is never NULL."""

    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        missing = nulls_of(args[0])
        truth = bools(args[0]) if pa.types.is_boolean(args[0].type) else np.zeros(len(args[0]), np.bool_)
        return from_bools(test(truth, missing))

    return evaluate


def _not(call: Call, args: list[pa.Array]) -> pa.Array:
    return from_bools(~bools(args[0]), nulls_of(args[0]))


def _extreme(better: Callable[[Numbers, Numbers], Bools]) -> Evaluator:
    """greatest and least: of the values that are not NULL, the first that no other is better than."""

    def evaluate(call: Call, args: list[pa.Array]) -> pa.Array:
        codes = order_codes(args)
        best, chosen, gone = codes[0], np.zeros(len(args[0]), np.int64), nulls_of(args[0])
        for index, code in enumerate(codes[1:], start=1):
            missing = nulls_of(args[index])
            takes = ~missing & (gone | better(code, best))
            best = np.where(takes, code, best)
            chosen = np.where(takes, index, chosen)
            gone = gone & missing
        rows = len(args[0])
        return pa.concat_arrays(args).take(pa.array(chosen * rows + np.arange(rows), pa.int64()))

    return evaluate


FUNCTIONS: Final[dict[str, Evaluator]] = {
    "eq": _comparison(lambda left, right: left == right),
    "ne": _comparison(lambda left, right: left != right),
    "lt": _comparison(lambda left, right: left < right),
    "le": _comparison(lambda left, right: left <= right),
    "gt": _comparison(lambda left, right: left > right),
    "ge": _comparison(lambda left, right: left >= right),
    "is_distinct": _is_distinct,
    "is_not_distinct": _is_not_distinct,
    "not": _not,
    "is_null": _test(lambda truth, missing: missing),
    "is_not_null": _test(lambda truth, missing: ~missing),
    "is_true": _test(lambda truth, missing: truth & ~missing),
    "is_not_true": _test(lambda truth, missing: ~truth | missing),
    "is_false": _test(lambda truth, missing: ~truth & ~missing),
    "is_not_false": _test(lambda truth, missing: truth | missing),
    "greatest": _extreme(lambda candidate, best: candidate > best),
    "least": _extreme(lambda candidate, best: candidate < best),
}
