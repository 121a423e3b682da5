"""The part of the seam to kernels that joins are about: tables of build rows, how they are made, and how a stream meets
them. The rest, and what all of it means, is in `base`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bireme.backends.scans import KeyFilter
from bireme.data.schema import Schema
from bireme.plan.expr import Expr
from bireme.plan.range_keys import RangeBound
from bireme.plan.relation import JoinKind


class JoinTable(Protocol):
    """The build side's keys, to be looked up."""

    # What of it runs in another backend, and why: one line each.
    fallbacks: tuple[str, ...]

    @property
    def rows(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def has_null_key(self) -> bool:
        """Whether a build row has a NULL among its keys that are not null-equal."""
        ...

    @property
    def is_unique(self) -> bool:
        """Whether no key occurs twice, so that a row has one match at the most. False where that is not known."""
        ...

    @property
    def form(self) -> str:
        """How keys are found, in words, for explain."""
        ...

    def match(self, keys: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
        """All equal pairs as two int64 arrays (probe row, build row), in the order of probe rows, then build rows."""
        ...

    def contains(self, keys: pa.RecordBatch) -> pa.BooleanArray:
        """For each probe row whether it has an equal build row; never NULL."""
        ...

    def key_filter(self) -> KeyFilter | None:
        """The filter for these keys, made by the first call (so not on the loop), or None where there can be none."""
        ...

    @property
    def has_ranges(self) -> bool:
        """Whether probers find rows by bounds as well."""
        ...

    def index_ranges(self, keys: pa.RecordBatch, ranges: pa.RecordBatch, *, is_bounded_above: bool) -> None:
        """Asks for that, before anyone probes, where the backend has it: `ranges` has the values of
        `plan.range_keys.RangeKeys` of all rows, `keys` those that the table was built of.
        """
        ...


class KeyFilterBuild(Protocol):
    """A filter of keys that are not kept: made of what `add` gets, in any order and on many threads, in `nbytes`."""

    @property
    def nbytes(self) -> int: ...

    def add(self, keys: pa.RecordBatch) -> None:
        """Takes keys; taking the same ones again changes nothing."""
        ...

    def finish(self) -> KeyFilter | None:
        """The filter for all keys, or None where there can be none. Once; nothing is added afterwards."""
        ...


class JoinBuild(Protocol):
    """A join table under construction, from parts that come in any order on many threads.

    All `add`s come before `start`. A call that raises MemoryError or OutOfRoom has changed nothing, or may be made
    again.
    """

    def add(self, sequence: int, keys: Sequence[pa.RecordBatch], columns: Sequence[pa.RecordBatch]) -> None:
        """Rows of the build side and their keys. What is built has rows in the order of their sequence numbers, and
        within one in the order in which they were added.
        """
        ...

    def give_back(self) -> list[tuple[int, pa.RecordBatch]]:
        """All rows that were added, with their sequence numbers; it is as new then."""
        ...

    def start(self, threads: int) -> int:
        """At least one batch has come, and so many threads may work; returns how many calls of `work` are of use."""
        ...

    def work(self) -> tuple[JoinTable, pa.RecordBatch] | None:
        """Works until nothing is left to begin. The one call that ends all gives the table and all rows."""
        ...


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """How a stream meets a join table: `plan.physical.ProbeStep` with everything resolved.

    `matched` has an entry per build row, which pairs set; None where nobody asks. With `bounds`, for which a table has
    to have ranges, pairs are those within them; of each row they come in the order of the first range key.
    """

    kind: JoinKind
    key_count: int
    null_equal_count: int
    null_aware: bool
    residual: Expr | None
    stream: Schema
    build: Schema
    left_output: tuple[int, ...]
    right_output: tuple[int, ...]
    names: tuple[str, ...]
    matched: npt.NDArray[np.bool_] | None
    bounds: tuple[RangeBound, ...] = ()


class Prober(Protocol):
    """A stream's way through a join. Many threads may call at once. `keys` has the keys, then each bound's value."""

    def run(self, stream: pa.RecordBatch, keys: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """What the rows become, in their order, in pieces of bounded size."""
        ...

    def mark_matches(self, stream: pa.RecordBatch, keys: pa.RecordBatch) -> None:
        """Only sets the entries of `matched`."""
        ...
