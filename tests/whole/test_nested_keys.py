"""Lists and structs compared, sorted, grouped, joined and counted, against DuckDB."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.two_engines import check

import bireme as bm
from bireme.backends.reference.order_keys import FUNCTIONS
from bireme.data.types import BINARY, from_arrow, to_arrow
from bireme.errors import TypeFault
from bireme.plan.expr import Call, Column

TABLES = (
    """create table u as select * from (values (1, [1, 2]::bigint[], {'a': 1, 'b': 'x'}), (2, [1, null], {'a': 1,
    'b': null}), (3, [1], null), (4, null, {'a': null, 'b': 'x'}), (5, [], {'a': 1, 'b': ''}), (6, [null], {'a': 2,
    'b': 'é'}), (7, [0, 5], {'a': 1, 'b': 'x'}), (8, [1, 2], {'a': -1, 'b': 'x' || chr(0) || 'y'}), (9, null, null))
    t(i, l, s)""",
    """create table w as select date '2020-01-01' + (i * 37 % 5)::int as d, timestamp '1960-01-01 10:00:00' +
    interval (i % 3) hour as t, ['0.0', '-0.0', 'nan', '-inf', '1.5', '-2.5', 'inf', null][i % 8 + 1]::double as f,
    (i * 7 % 4 - 2)::decimal(20, 3) / 7 as q, i % 2 = 0 as b, (i % 3)::ubigint + 9223372036854775807 as u,
    (i % 4 - 1.5)::decimal(38, 1) as h, ('\\x00' || (i % 3))::blob as x from range(24) r(i)""",
)

QUERIES = [
    "select l from u order by l, i",
    "select l from u order by l desc, i",
    "select l, i from u order by l desc nulls first, i",
    "select s from u order by s, i",
    "select s from u order by s desc, i",
    "select [1,null] < [1,2], [1,null] > [1,2], [1] < [1,null], [null] = [null], [1] = null, [] < [null], "
    "[1,2] <> [1,null], [1] is distinct from null, [1] = [1.0]",
    "select min(l), max(l), count(distinct l), arg_min(i, l), arg_max(l, i), min(s), max(s), count(distinct "
    "s), count(l) from u",
    "select l, count(*), sum(i) from u group by l order by l",
    "select s, count(*), max(l) from u group by s order by s",
    "select l, s, count(*) from u group by rollup(l, s) order by l nulls first, s nulls first, 3",
    "select distinct l from u order by l",
    "select distinct s, l from u order by l, s",
    "select [1] in ([1],[2]), [1] in (select [1]), [3] = any(select [1]), [3] > all(select [1]), [1] not in "
    "(select null::int[])",
    "select greatest([1],[2]), least({'a':1},{'a':0}), nullif([1],[1]), greatest(l, [1,2]::bigint[]) from u",
    "select a.i, b.i from u a join u b on a.l = b.l order by 1, 2",
    "select a.i, b.i from u a left join u b on a.s = b.s and a.i < b.i order by 1, 2",
    "select a.i, b.i from u a join u b on a.l < b.l order by 1, 2",
    "select count(*) from u a join u b using (l)",
    "select i from u where l in (select l from u where i < 3) order by i",
    "select i from u where l not in (select l from u where i < 3 and l is not null) order by i",
    "select i from u where l = [1, 2] or s = {'a': 1, 'b': 'x'} order by i",
    "select i from u where l between [1] and [1, 5] order by i",
    "select l from u intersect select l from u where i > 2 order by l",
    "select l from u except select l from u where i > 2 order by l",
    "select s from u union select s from u order by s",
    "select i, row_number() over (partition by l order by i) as r, rank() over (order by s) as k from u order by i",
    "select i, min(l) over (order by i), max(s) over (), count(distinct l) over () from u order by i",
    "select i, lag(l) over (order by l, i) from u order by i",
    "select list(l order by l desc, i), list(i order by s, i), first(l order by l) from u",
    "select list_sort(list(distinct l)) from u",
    "select distinct on (l) l, i from u order by l, i",
    "select l is distinct from [1, 2], l is not distinct from null, s is distinct from null from u order by i",
    "select case l when [1, 2] then 'x' when null then 'y' else 'z' end from u order by i",
    "select i, (select count(*) from u b where b.l = u.l) from u order by i",
    "select (select max(l) from u)",
    "select list_sort([[2],[1,null],[1]]), list_contains([[1]], [1]), list_min([[2],[1]]), list_max([{'a': "
    "1},{'a': 2}]), list_position([[1], [null]], [null])",
    "select list_sort([[2],[1,null],[1], null], 'DESC'), list_sort(list_distinct([[1],[1],[null],null])), "
    "list_unique([{'a': null},{'a': null}])",
    "select list_has_any([[1]], [[1], [2]]), list_has_all([{'a': 1}], [{'a': 1}]), list_intersect([[1],[2]], [[2]])",
    "select [d], count(*) from w group by [d] order by 1",
    "select {'d': d, 't': t, 'f': f, 'q': q, 'b': b, 'u': u, 'h': h, 'x': x} as k, count(*) from w group by k "
    "order by k",
    "select [f] from w order by [f]",
    "select [f] = [f], [f] < [0::double], [h] > [0] from w order by f",
    "select i from u where s > {'a': 1, 'b': 'x'} order by i",
    "select mode(l) from (values ([1]), ([2, 3]), ([2, 3])) t(l)",
    "select t.k, count(*) from (select struct_pack(a := i % 2, b := l) as k from u) t group by t.k order by "
    "t.k limit 3",
    "select l from u order by l limit 2 offset 1",
    "select count(*) from (select distinct u from u)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


@pytest.mark.parametrize(
    "query",
    [
        "select [interval '1 day'] = [interval '1 day']",
        "select 1 order by [interval '1 day']",
        "select [1] = [date '2000-01-01']",
        "select quantile_disc(l, 0.5) from u",
    ],
)
def test_what_cannot_be_compared_is_said(query: str, session: bm.Session) -> None:
    with pytest.raises(TypeFault):
        session.sql(query).collect()


VALUES = st.lists(
    st.none()
    | st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            "d": st.none() | st.integers(1 - 10**38, 10**38 - 1).map(Decimal),
            "f": st.none() | st.floats().map(lambda value: value + 0.0 if value == value else math.nan),
            "t": st.none() | st.text(alphabet="\x00\x01aé\U0001f40d", max_size=3),
            "l": st.none() | st.lists(st.none() | st.lists(st.none() | st.booleans(), max_size=2), max_size=3),
        }
    ),
    max_size=8,
)
_KIND = from_arrow(
    pa.struct(
        [
            ("n", pa.int64()), ("d", pa.decimal128(38, 0)), ("f", pa.float64()), ("t", pa.string()),
            ("l", pa.list_(pa.list_(pa.bool_()))),
        ]
    )
)  # fmt: skip


def _rank(value: Any) -> Any:
    """Ordered as values are; NULL behind them, and NaN behind numbers."""
    if isinstance(value, list | dict):
        parts = [value[name] for name in "ndftl"] if isinstance(value, dict) else value
        return tuple([(part is None, () if part is None else _rank(part)) for part in parts])
    if isinstance(value, str):
        return value.encode()
    return (value != value, 0 if value != value else value)


@settings(max_examples=30, deadline=None)
@given(VALUES)
def test_blobs_are_ordered_as_values_and_lead_back(values: list[Any]) -> None:
    array = pa.array(values, to_arrow(_KIND))
    call = Call("order_key", (Column(0, _KIND),), BINARY)
    blobs = FUNCTIONS["order_key"](call, [array])
    back = FUNCTIONS["of_order_key"](Call("of_order_key", (Column(0, BINARY),), _KIND), [blobs])
    assert repr(back.to_pylist()) == repr(array.to_pylist())
    present = [value for value in values if value is not None]
    pairs = sorted(zip([blob for blob in blobs.to_pylist() if blob is not None], map(_rank, present), strict=True))
    assert [rank for _, rank in pairs] == sorted(map(_rank, present))
