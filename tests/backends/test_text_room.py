"""Texts that kernels make: how much they may take is asked before it is taken, and fewer rows at once take less."""

from __future__ import annotations

import locale
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.batches import batch_of, schema_of
from support.evaluation import columns_of
from whole.test_memory_promise import peak_of

import bireme as bm
from bireme.backends.native import NativeKernels, _kernels, pool_quota
from bireme.config import PROCESS_BYTES
from bireme.data import types as t
from bireme.errors import ConversionFault, DataError, OutOfRoom, TooMuchAtOnce
from bireme.operators import sinks
from bireme.plan import functions
from bireme.plan.expr import Expr, Literal
from bireme.units import MIB

LONG = "x" * 1_000_000
S, L = t.STRING, t.INT64


@pytest.fixture
def little() -> Iterator[None]:
    """Kernels have 16 MiB each, and nothing above."""
    quota = pool_quota()
    quota.set(0, 0)
    quota.hold_to(1, 16 * MIB)
    yield
    quota.hold_to(0, 0)
    quota.set(0, 0)


def program(function: str, types: list[t.DataType], *constants: Any) -> Any:
    literals: list[Expr] = [Literal(each, S if isinstance(each, str) else L) for each in constants]
    expr = functions.scalar(function, [*columns_of(schema_of(types)), *literals])
    return NativeKernels().program(schema_of(types), predicate=None, exprs=[expr], names=["x"])


MADE: list[tuple[str, list[t.DataType], list[Any], tuple[Any, ...]]] = [
    ("repeat", [S], ["abc"], (1_000_000,)),
    ("lpad", [S], ["abc"], (2_000_000, "xy")),
    ("rpad", [S], ["é"], (2_000_000, "é")),
    ("replace", [S], [LONG], ("x", "abc")),
    ("concat", [S, S], [LONG, LONG], ()),
    ("concat_ws", [S, S], [LONG, LONG], ("-",)),
    ("regexp_replace", [S], [LONG], ("x", "abc", "g")),
    ("reverse", [S], [LONG], ()),
    ("upper", [S], [LONG], ()),
    ("hex", [S], [LONG], ()),
    ("url_encode", [S], [LONG], ()),
    ("translate", [S], [LONG], ("x", "é")),
]


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize(("function", "types", "values", "constants"), MADE, ids=[made[0] for made in MADE])
def test_many_long_texts_are_refused_and_a_few_are_made(
    function: str, types: list[t.DataType], values: list[Any], constants: tuple[Any, ...]
) -> None:
    made = program(function, types, *constants)
    rows = [batch_of([[value] * count for value in values], types, count) for count in (40, 1)]
    _kernels.start_meter()
    with pytest.raises(TooMuchAtOnce, match="some rows take"):
        made.run(rows[0])
    # Blocks are up to a fifth larger than what was asked for.
    assert _kernels.metered_peak() <= 20 * MIB
    assert made.run(rows[1]).num_rows == 1


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("function", ["levenshtein", "damerau_levenshtein"])
def test_tables_of_single_texts_are_part_of_it(function: str) -> None:
    made = program(function, [S, S])
    assert made.run(batch_of([["kitten"], ["sitting"]], [S, S], 1)).column(0).to_pylist() == [3]
    with pytest.raises(TooMuchAtOnce):
        made.run(batch_of([[LONG], [LONG[:-1] + "é"]], [S, S], 1))


def test_a_share_is_always_there_and_more_as_far_as_it_is_free() -> None:
    assert _kernels.may_have(1 << 50, 0)
    quota = pool_quota()
    quota.set(64 * MIB, 0)
    quota.hold_to(100 * MIB, 16 * MIB)
    assert _kernels.may_have(16 * MIB, 0)
    assert not _kernels.may_have(100 * MIB, 0)
    in_use = _kernels.pool_statistics()[0]
    # Half of the limit is for all shares together.
    assert _kernels.may_have(50 * MIB - in_use - 4096, 1 << 40)
    assert not _kernels.may_have(51 * MIB, 0)
    del quota
    assert _kernels.may_have(1 << 50, 0)


def test_texts_that_become_longer_and_longer_do_not_pile_up() -> None:
    """Of each vector of rows only the longest so far is in memory."""
    rows = 24 * 1024
    lengths = np.arange(rows) // 1024 * 40
    repeated = functions.scalar("repeat", columns_of(schema_of([S, L])))
    expr = functions.scalar("length", [functions.scalar("upper", [repeated])])
    made = NativeKernels().program(schema_of([S, L]), predicate=None, exprs=[expr], names=["x"])
    batch = pa.record_batch([pa.array(["ab"] * rows), pa.array(lengths)], names=["c0", "c1"])
    _kernels.start_meter()
    assert made.run(batch).column(0).to_pylist() == (2 * lengths).tolist()
    assert _kernels.metered_peak() <= 10 * MIB


# --------------------------------------------------------------------------------------------- whole queries

_TABLE = pa.table({"i": np.arange(3_000), "s": [f"text {each}" for each in range(3_000)]})


def test_long_texts_of_many_rows_are_computed_of_fewer_at_once() -> None:
    with bm.connect(threads=2, memory_limit=64 * MIB) as session:
        session.register("t", _TABLE)
        frame = session.sql("select sum(length(repeat(s, 20000))) as n, count(*) as c from t")
        assert frame.collect().to_pylist() == [{"n": 20_000 * sum(map(len, _TABLE["s"].to_pylist())), "c": 3_000}]
        assert "fewer rows at once" in frame.explain(analyze=True)


@pytest.mark.parametrize(
    "text",
    [
        "select repeat(s, 90000000) as x from t where i < 3",
        "select length(lpad(s, 400000000 + i, 'x')) as x from t where i < 3",
        "select replace(repeat(s, 1000000), 'e', repeat(s, 1000)) as x from t where i < 3",
        "select range(i * 1000) as x from t",
        "select list_resize([i], 10000000) as x from t",
    ],
)
def test_what_does_not_fit_is_named_and_the_next_query_is_answered(text: str) -> None:
    with bm.connect(threads=2, memory_limit=64 * MIB) as session:
        session.register("t", _TABLE)
        with pytest.raises((OutOfRoom, DataError), match=r"takes?|makes|elements"):
            session.sql(text).collect()
        assert session.sql("select count(*) as c from t where length(s) > 8").collect().to_pylist() == [{"c": 2_000}]


def test_what_a_task_makes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "_MADE_BYTES_MIN", 64 * MIB)
    with bm.connect(threads=2, memory_limit=64 * MIB) as session:
        session.register("t", _TABLE)
        with pytest.raises(OutOfRoom, match="what a task makes takes"):
            session.sql("select repeat(s, 20000) as x from t").collect()
        largest = session.sql("select max(repeat(s, 20000)) as x from t").collect()["x"][0].as_py()
        assert largest == "text 9" * 20_000


def test_the_promise_holds_while_texts_are_long(tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(_TABLE, tmp_path / "t.parquet", row_group_size=1_000)
    texts = [
        "select sum(length(repeat(s, 20000))) as n from t",
        "select max(length(regexp_replace(repeat(s, 5000), 't', 'longer', 'g'))) as n from t",
        "select sum(len(range(i * 100))) as n from t",
    ]
    assert peak_of(texts, tmp_path, 64 * MIB, tables=tmp_path) <= 64 * MIB * 11 // 10 + PROCESS_BYTES


# ------------------------------------------------------------------------------------------------ odd input


def test_decimals_that_lie_at_multiples_of_8_only() -> None:
    """As in Arrow files that are read where they lie."""
    values = [-(10**37), 5, 10**37, 0, 12]
    raw = b"".join(each.to_bytes(16, "little", signed=True) for each in values)
    for shift in (0, 8):
        memory = pa.allocate_buffer(len(raw) + 64)
        start = -memory.address % 16 + shift
        memoryview(memory).cast("B")[start : start + len(raw)] = raw
        array = pa.Array.from_buffers(pa.decimal128(38, 0), len(values), [None, memory.slice(start, len(raw))])
        with bm.connect(threads=1) as session:
            session.register("d", pa.table({"d": array, "k": [1, 2, 1, 2, 1]}))
            found = session.sql("select d, d - 1 as e, -d as n, d::varchar as v from d").collect()
            groups = session.sql("select d, count(*) as c, sum(k) as s from d group by d order by d").collect()
        assert [int(each) for each in found["e"].to_pylist()] == [each - 1 for each in values]
        assert [int(each) for each in found["n"].to_pylist()] == [-each for each in values]
        assert found["v"].to_pylist() == list(map(str, values))
        assert [int(each) for each in groups["d"].to_pylist()] == sorted(values)


BYTES = [b"\xff", b"a\xe9", b"\xf0\x9f", b"\x80\x80", b"", b"abc\xc3", "é".encode(), b"\xe2\x82a"]
OF_TEXTS = [
    ("hamming", 2), ("levenshtein", 2), ("damerau_levenshtein", 2), ("jaccard", 2), ("jaro_similarity", 2),
    ("jaro_winkler_similarity", 2), ("contains", 2), ("position", 2), ("trim", 2), ("replace", 3), ("translate", 3),
    ("concat_ws", 3), ("reverse", 1), ("strip_accents", 1), ("unicode", 1), ("length", 1), ("upper", 1), ("hex", 1),
    ("url_encode", 1), ("md5", 1), ("regexp_escape", 1), ("nfc_normalize", 1),
]  # fmt: skip


@pytest.mark.parametrize(("function", "count"), OF_TEXTS, ids=[function for function, _ in OF_TEXTS])
def test_bytes_that_are_no_text_are_never_read_past(function: str, count: int) -> None:
    """Whatever comes of it; what lies behind a text shows under the address sanitizer."""
    rows = [[one, other, third] for one in BYTES for other in BYTES for third in BYTES[:: 3 if count == 3 else 9]]
    arrays = []
    for column in list(zip(*rows, strict=True))[:count]:
        ends = np.cumsum([0, *map(len, column)]).astype(np.int32)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(column))]
        arrays.append(pa.Array.from_buffers(pa.string(), len(column), buffers))
    made = program(function, [S] * count)
    batch = pa.record_batch(arrays, names=[f"c{index}" for index in range(count)])
    for row in range(batch.num_rows):
        try:
            assert made.run(batch.slice(row, 1)).num_rows == 1
        except (DataError, UnicodeDecodeError, pa.ArrowInvalid):
            continue


def test_a_format_of_very_many_parts() -> None:
    form = "%d " * 200_000
    made = program("strptime", [S], form)
    with pytest.raises(ConversionFault):
        made.run(batch_of([["1 " * 200_000 + "x"]], [S], 1))


@pytest.mark.parametrize("template", ["{:.2f}", "{:e}", "{:g}", "{}", "{:010.3f}"])
def test_numbers_in_writing_do_not_depend_on_the_locale(template: str) -> None:
    expr = functions.scalar("format", [Literal(template, S), *columns_of(schema_of([t.FLOAT64]))])
    made = NativeKernels().program(schema_of([t.FLOAT64]), predicate=None, exprs=[expr], names=["x"])
    batch = batch_of([[1.5, -1e300, 2e-7]], [t.FLOAT64], 3)
    before = made.run(batch).column(0).to_pylist()
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
        except locale.Error:
            continue
        try:
            assert made.run(batch).column(0).to_pylist() == before
        finally:
            locale.setlocale(locale.LC_NUMERIC, "C")
