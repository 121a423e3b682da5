"""Every type through the whole engine: carried, grouped, joined and sorted, with extreme values, against DuckDB."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bireme as bm

DAYS = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 12, 31), None]
MOMENTS = [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59), datetime.datetime(1969, 12, 31)]
COLUMNS: dict[str, pa.Array] = {
    "truth": pa.array([True, False, None, True]),
    "int8": pa.array([-128, 127, None, 127], pa.int8()),
    "int64": pa.array([-(2**63), 2**63 - 1, None, 2**63 - 1], pa.int64()),
    "uint8": pa.array([0, 255, None, 255], pa.uint8()),
    "uint64": pa.array([0, 2**64 - 1, None, 2**63], pa.uint64()),
    "float32": pa.array([math.nan, -math.inf, None, -0.0], pa.float32()),
    "float64": pa.array([math.nan, 1e308, None, 0.0]),
    "decimal18": pa.array([Decimal("9" * 16 + ".99"), Decimal("-1.10"), None, Decimal("0")], pa.decimal128(18, 2)),
    "decimal38": pa.array([Decimal("9" * 38), Decimal("-" + "9" * 38), None, Decimal("0")], pa.decimal128(38, 0)),
    "text": pa.array(["", "äöü日本" * 50, None, ""]),
    "text_view": pa.array(["", "a" * 5000, None, "a"], pa.string_view()),
    "words": pa.array(["", "a", None, "a"]).dictionary_encode(),
    "bytes": pa.array([b"", b"\x00", None, b"\xff"]),
    "day": pa.array(DAYS[:2] + DAYS[3:] + DAYS[:1]),
    "clock": pa.array([datetime.time(0), datetime.time(23, 59, 59, 999999), None, datetime.time(0)], pa.time64("us")),
    "seconds": pa.array([MOMENTS[0], MOMENTS[1], None, MOMENTS[2]], pa.timestamp("s")),
    "micros": pa.array([MOMENTS[0], MOMENTS[1], None, MOMENTS[2]], pa.timestamp("us")),
    "instant": pa.array([MOMENTS[0], MOMENTS[1], None, MOMENTS[2]], pa.timestamp("us", "UTC")),
    "all_null": pa.nulls(4, pa.int64()),
}
NESTED: dict[str, pa.Array] = {
    "list": pa.array([[1, None], [], None, [1, None]], pa.list_(pa.int64())),
    "struct": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": None}, {"x": 1, "y": "a"}]),
    "pairs": pa.array([[("a", 1)], None, [], [("a", None)]], pa.map_(pa.string(), pa.int64())),
}
TABLE = pa.table({"id": pa.array(range(4), pa.int32()), **COLUMNS, **NESTED})
CARRIED = [
    "select id, {0} from t order by id desc",
    "select {0} from t where id > 1 order by id",
    "select a.id, b.{0} from t a left join t b on a.id = b.id + 1 order by a.id",
    "select id from t where {0} is null order by id",
    "select id, {0} from t where {0} is not null order by id limit 2 offset 1",
    "select count({0}), count(*) from t",
    "select id, case when id > 1 then {0} end as c from t order by id",
    "select {0} from t where false",
]
COMPARED = [
    "select {0}, count(*) from t group by {0} order by {0}",
    "select count(distinct {0}), min({0}), max({0}) from t",
    "select a.id, b.id from t a join t b on a.{0} = b.{0} order by 1, 2",
    "select a.id, b.id from t a full join t b on a.{0} = b.{0} and a.id <> b.id order by 1, 2",
    "select a.id, b.id from t a, t b where a.{0} < b.{0} order by 1, 2",
    "select id from t order by {0} desc nulls last, id",
    "select id from t where {0} in (select {0} from t where id > 0) order by id",
    "select id from t where {0} is not distinct from (select {0} from t where id = 3) order by id",
    "select id, rank() over (order by {0} nulls first) from t order by id",
    "select {0} from t except select {0} from t where id = 1 order by 1",
]


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("arrow", TABLE)
        connection.execute("create table t as from arrow")
        yield connection


@pytest.fixture(scope="module", params=["memory", "small row groups", "no statistics"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[bm.Session]:
    with bm.connect(threads=1, memory_limit="256MiB") as session:
        session.register("t", _stored(request.param, tmp_path_factory.mktemp("types")))
        yield session


def _stored(how: str, folder: Path) -> Any:
    path = folder / "t.parquet"
    if how == "memory":
        return TABLE
    if how == "small row groups":
        pq.write_table(TABLE, path, row_group_size=3)
    else:
        pq.write_table(TABLE, path, write_statistics=False, use_dictionary=False, data_page_version="2.0")
    return path


@pytest.mark.parametrize("query", CARRIED + COMPARED)
def test_types(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    for name in COLUMNS if query in COMPARED else TABLE.column_names[1:]:
        text = query.format(name)
        assert _rows(session.sql(text).collect()) == _rows(oracle.sql(text).to_arrow_table()), text


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*[[_plain(value) for value in column.to_pylist()] for column in table.columns], strict=True))


def _plain(value: Any) -> Any:
    """A value that is equal where SQL says so: NaN is NaN, decimals have no trailing zeros."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    return value.astimezone(datetime.UTC) if isinstance(value, datetime.datetime) and value.tzinfo else value


def test_weeks_and_days_between(oracle: duckdb.DuckDBPyConnection) -> None:
    text = """
        select date_diff('week', d, date '2020-01-06'), date '2020-01-06' - d, date '2020-01-06' - date '2019-01-01'
        from (values (date '1992-02-29'), ('2020-01-05'), ('2020-01-07'), ('1969-12-31')) v(d) order by d
    """
    with bm.connect(threads=1) as session:
        assert _rows(session.sql(text).collect()) == _rows(oracle.sql(text).to_arrow_table())


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_times_of_one_day_in_every_unit(backend: str) -> None:
    """Mixed units meet in the finest; casts to coarser ones cut off."""
    nanoseconds = [0, 1_500, 3_600_000_000_000, 86_399_999_999_999, None]
    steps = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
    kinds = {"s": pa.time32("s"), "ms": pa.time32("ms"), "us": pa.time64("us"), "ns": pa.time64("ns")}
    counts = {unit: [None if n is None else n // step for n in nanoseconds] for unit, step in steps.items()}
    table = pa.table({unit: pa.array(values, kinds[unit]) for unit, values in counts.items()})
    with bm.connect(threads=1, backend=backend) as session:
        session.register("t", table)
        for left in steps:
            assert session.sql(f"select cast({left} as time) as x, hour({left}) as h from t").collect().to_pylist() == [
                {"x": None, "h": None}
                if n is None
                else {"x": _time_of(n // steps[left] * steps[left] // 1000), "h": n // (3600 * 10**9)}
                for n in nanoseconds
            ]
            for right in steps:
                found = session.sql(f"select {left} < {right} as less, {left} = {right} as same from t").collect()
                assert found.to_pylist() == [
                    {"less": None, "same": None} if n is None else {"less": ours < theirs, "same": ours == theirs}
                    for n in nanoseconds
                    for ours, theirs in [(_cut(n, steps[left]), _cut(n, steps[right]))]
                ]
            found = session.sql(f"select count(*) as n from t where {left} >= time '01:00:00'").collect()
            assert found.to_pydict() == {"n": [2]}


def _cut(nanoseconds: int | None, step: int) -> int:
    return 0 if nanoseconds is None else nanoseconds // step * step


def _time_of(microseconds: int) -> datetime.time:
    return (datetime.datetime.min + datetime.timedelta(microseconds=microseconds)).time()


_MOMENTS_NS = [
    1_577_876_399_999_999_999, 1_577_836_799_123_456_789, -1, -999_999_999, 0, 1, 999, 1_000, -1_000, -1_001, None,
    -(10**18), 10**18 + 999,
]  # fmt: skip


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize(
    "call",
    [
        *(f"{part}(x)" for part in ("year", "month", "day", "hour", "minute", "second", "microsecond", "dayname")),
        *("last_day(x)", "epoch(x)", "epoch_us(x)", "epoch_ms(x)", "time_bucket(interval '1 hour', x)", "julian(x)"),
        *("date_trunc('minute', x)", "datediff('second', x, timestamp '2020-01-01')", "strftime('%c %f', x)"),
        *("age(x, timestamp '2020-01-01')", "date_part(['hour', 'second'], x)"),
    ],
)
def test_nanoseconds_are_cut_off(backend: str, call: str) -> None:
    """What lies within a microsecond is in the same second, minute and year as that microsecond's start."""
    micros = pa.array([None if n is None else n // 1000 for n in _MOMENTS_NS], pa.timestamp("us"))
    table = pa.table({"x": pa.array(_MOMENTS_NS, pa.timestamp("ns")), "u": micros})
    with bm.connect(threads=1, backend=backend) as session:
        session.register("t", table)
        found = session.sql(f"select {call} as n, {call.replace('x', 'u')} as u from t").collect()
        assert found.column("n").to_pylist() == found.column("u").to_pylist()
        exact = session.sql("select epoch_ns(x) as n, strftime(x, '%n') as f from t").collect()
        assert exact.column("n").to_pylist() == _MOMENTS_NS
        assert exact.column("f").to_pylist() == [None if n is None else f"{n % 10**9:09}" for n in _MOMENTS_NS]


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_a_text_beside_a_time_keeps_its_nanoseconds(backend: str) -> None:
    table = pa.table({"x": pa.array([86_399_123_456_789, 86_399_123_456_000, 1, None], pa.time64("ns"))})
    with bm.connect(threads=1, backend=backend) as session:
        session.register("t", table)
        for condition, expected in (
            ("x = '23:59:59.123456789'", 1),
            ("x in ('23:59:59.123456789', '00:00:00.000000001')", 2),
            ("x > '23:59:59.123456'", 1),
            ("x = '23:59:59.123456789'::time_ns", 1),
            ("x::varchar = '23:59:59.123456789'", 1),
            ("x = x::varchar::time_ns", 3),
        ):
            found = session.sql(f"select count(*) as n from t where {condition}").collect()
            assert found.to_pydict() == {"n": [expected]}, condition


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("target", ["time", "time_ns"])
def test_the_time_of_a_timestamp(backend: str, target: str) -> None:
    day, step = 86_400 * 10**9, 1000 if target == "time" else 1
    columns = {
        unit: pa.array([None if n is None else n // ticks for n in _MOMENTS_NS], pa.timestamp(unit))
        for unit, ticks in (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))
    }
    with bm.connect(threads=1, backend=backend) as session:
        session.register("t", pa.table(columns))
        for unit, ticks in (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)):
            found = session.sql(f"select {unit}::{target} as x from t").collect().column("x")
            expected = [None if n is None else n // ticks * ticks % day // step for n in _MOMENTS_NS]
            assert found.cast(pa.int64()).to_pylist() == expected, unit
