"""Kernels that find no memory: every operator ends right or with a named error, and the session runs the next query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bireme as bm
from bireme.backends.native import NativeKernels, _kernels
from bireme.errors import OutOfRoom
from bireme.session.session import Session

ROWS = 20_000
# Which buffer finds no memory, counted from the start of a query.
PLACES = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987)

QUERIES = {
    "filter": "select k, v * 2 as w, s || '!' as t from t where v % 3 = 1 order by k",
    "like": "select count(*) as n from t where s like '%7%' and s not like '1%'",
    "case": "select sum(case when v > 100 then v else -v end) as x, max(coalesce(n, 0)) as y from t",
    "groups": "select g, count(*) as c, sum(v) as s, min(s) as a, max(n) as b from t group by g order by g",
    "many groups": "select k, s, sum(v) as x from t group by k, s order by k",
    "distinct": "select count(distinct s) as a, count(distinct g) as b from t",
    "moments": "select g, round(avg(v), 6) as a, round(stddev(v), 6) as b from t group by g order by g",
    "inner join": "select t.k, u.w from t join u on t.g = u.g where t.v < 200 order by t.k, u.w",
    "outer join": "select t.g, count(u.w) as c from t left join u on t.n = u.g group by t.g order by t.g",
    "full join": "select count(*) as c, count(t.k) as a, count(u.g) as b from t full join u on t.k = u.w",
    "semi join": "select count(*) as c from t where g in (select g from u where w < 50)",
    "anti join": "select count(*) as c from t where not exists (select 1 from u where u.w = t.k)",
    "null-aware anti join": "select count(*) as c from t where g not in (select g + 90 from u)",
    "cross join": "select sum(t.v * u.w) as x from t cross join (select w from u limit 3) u where t.k < 100",
    "sort": "select s, v from t order by v desc, s",
    "top-n": "select s, v from t order by v desc, s limit 7",
    "window": (
        "select k, sum(v) over (partition by g order by k) as x, row_number() over (order by s) as r from t order by k"
    ),
    "first of keys": "select g, v, k from t qualify rank() over (partition by g order by v, k) <= 3 order by 1, 2, 3",
    "quantiles": "select g, median(v) as m, quantile_disc(k, 0.3) as q, sum(n) as s from t group by g order by g",
    "union": "select g from t union select w from u order by 1",
    "except": "select k from t except select w from u order by 1",
    "limit": "select count(*) as c from (select k from t limit 1234)",
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("allocation_failures")
    keys = [(index * 7919) % ROWS for index in range(ROWS)]
    columns = {
        "k": pa.array(keys, pa.int64()),
        "g": pa.array([key % 97 for key in keys], pa.int32()),
        "v": pa.array([key % 1013 for key in keys], pa.int64()),
        "n": pa.array([key % 31 if key % 5 else None for key in keys], pa.int32()),
        "s": pa.array([str(key * 31) for key in keys]),
    }
    pq.write_table(pa.table(columns), folder / "t.parquet", row_group_size=6_000)
    few = {"g": pa.array(range(300), pa.int32()), "w": pa.array([index * 3 for index in range(300)], pa.int64())}
    pq.write_table(pa.table(few), folder / "u.parquet")
    with bm.connect(threads=2) as session:
        session.register("t", str(folder / "t.parquet"))
        session.register("u", str(folder / "u.parquet"))
        yield session
    _kernels.fail_allocation(0)


@pytest.fixture
def failing() -> Iterator[None]:
    yield
    _kernels.fail_allocation(0)


@pytest.mark.usefixtures("failing")
def test_the_buffer_that_is_counted_off_finds_no_memory() -> None:
    batch = pa.record_batch([pa.array(range(1_000))], names=["k"])
    _kernels.fail_allocation(1)
    with pytest.raises(OutOfRoom):
        NativeKernels().take(batch, pa.array(range(1_000)))
    assert NativeKernels().take(batch, pa.array(range(1_000))).equals(batch)


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize("name", QUERIES)
def test_a_buffer_that_finds_no_memory(opened: Session, name: str) -> None:
    text = QUERIES[name]
    expected = opened.sql(text).collect()
    for place in PLACES:
        _kernels.fail_allocation(place)
        try:
            with suppress(OutOfRoom):
                assert opened.sql(text).collect().equals(expected)
        finally:
            _kernels.fail_allocation(0)
        statistics = opened.statistics()
        assert (statistics.queries, statistics.waiting_for_room, statistics.tasks_running) == (0, 0, 0)
        assert statistics.bytes_held == dict.fromkeys(statistics.bytes_held, 0)
        assert statistics.reservations == 0
    assert opened.sql(text).collect().equals(expected)
