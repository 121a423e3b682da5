"""Quantiles at several fractions, deviations from the median, summaries of lists, and lists read from texts."""

from __future__ import annotations

import duckdb
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import BiremeError, ConversionFault, DomainFault, NameFault, TypeFault

TABLES = (
    """create table n as select * from (values (1, 10, 1.5, 1.5::double, 'x', date '2020-01-01', [1, 2, null]),
    (2, 20, 2.25, 'nan', 'y', date '2020-01-09', []), (2, null, -3, 'inf', 'x', null, null), (3, 30, null, null, null,
    date '1969-12-31', [null]), (null, 40, 4.75, -0.5, 'y', date '2021-12-31', [7, 7, 9, -4]),
    (null, null, null, null, null, null, [5])) v(a, b, x, f, s, d, l)""",
    "create table e (a int, s varchar)",
    """create table w as select * from (values ('[x]'), (null), ('[]'), ('[y, null]'), ('["a,b", ''c'']')) v(s)""",
)
QUERIES = [
    "select quantile_cont(b, [0.25, 0.5, 1]), quantile_disc(b, [0.25, 0.5, 1]), quantile(b, [0.1]) from n",
    "select quantile_cont(f, [0, 0.5, 1.0]), quantile_disc(s, [0.5]), quantile_disc(d, [0.1, 0.9]) from n",
    "select s, quantile_cont(b, [0.25, 0.5]), string_agg(b::varchar, ',' order by b), sum(a) from n group by s",
    "select quantile_cont(d, [0.4, 0.6]), quantile_cont(x, [0.5, 0]) from n",
    "select quantile_cont(b, [0.25]) filter (where b > 100), quantile_disc(b, [0.1, 0.9]) filter (where a = 2) from n",
    "select percentile_cont([0.1, 0.9]) within group (order by b), quantile_cont(b, [0.5])[1] + 1 from n",
    "select quantile_cont(a, [0.5]), mad(a) from e",
    "select s, quantile_cont(a, [0.5]), mad(a) from e group by s",
    "select s, quantile_cont(b, [0.5, 0.9]), mad(b) from n group by rollup(s) order by s nulls first, 3 desc",
    "select approx_quantile(i, 0.5), approx_quantile(i, [0.1, 0.9]) from range(101) t(i)",
    "select mad(b), mad(f), mad(a), mad(b) filter (where b > 100) from n",
    "select s, mad(b), mad(b) filter (where a > 1), median(b) from n group by s",
    "select mad(i) from range(1001) t(i) where i % 7 <> 3",
    "select list_skewness([1, 2, 9]), list_mad([1, 2, 9]), list_kurtosis([1, 2, 3, 9]), list_kurtosis_pop([1, 5, 9])",
    "select list_skewness([1, 1, 1]), list_skewness([1, 2]), list_kurtosis([1, 2, 3]), list_kurtosis_pop([]::int[])",
    "select list_entropy(['a', null, 'b', 'b']), list_entropy([]::int[]), list_entropy(null::int[])",
    "select list_mad([null]::int[]), list_mad([1, 2]), list_mad(['inf'::double, 1, 2]), list_mad([1.5, 2.25, -3])",
    "select list_mad(l), list_entropy(l), list_skewness(l), list_approx_count_distinct(l) from n",
    "select list_aggr(l, 'mad'), list_aggr(l, 'entropy'), list_aggr(l, 'skewness'), array_aggr(l, 'sem') from n",
    "select list_transform([[1, 2], [3, 9, 9]], lambda x: list_mad(x))",
    "select '[1,2]'::int[], '[1, null, NULL, 3]'::int[], '[]'::int[], '[ ]'::int[], ' [1] '::int[], '[1.5]'::int[]",
    "select '[,1]'::varchar[], '[1,,2]'::varchar[], '[a b,  c ]'::varchar[], '[1,]'::varchar[], '[,]'::varchar[]",
    """select $$['a', "b,c", 'it''s']$$::varchar[], $$['it\\'s']$$::varchar[], $$["a\\"b"]$$::varchar[]""",
    "select '[[1],[2,3],null]'::int[][], '[a, [b, c]]'::varchar[], '[(a,b), {c,d}]'::varchar[]",
    """select '[null]'::varchar[], '[''null'']'::varchar[], '[""]'::varchar[], '[2020-01-01]'::date[]""",
    "select '[true,f]'::bool[], '[inf, nan]'::double[], '[1 day]'::interval[]::varchar",
    "select try_cast('[1,x,null]' as int[]), try_cast('[[1,x],[2]]' as int[][]), try_cast('zz' as int[])",
    "select try_cast('' as int[]), try_cast('{1,2}' as int[]), try_cast('[1]x' as int[]), try_cast('[(1]' as int[])",
    """select '[ab\\,c]'::varchar[], '[a"b,c"d]'::varchar[], $$['a'b]$$::varchar[], '[{"a":1}]'::varchar[]""",
    """select try_cast($$[ 'a ' , b' ]$$ as varchar[]), $$[ 'a ' , " b" ]$$::varchar[], $$['a',[ 'b' ]]$$::varchar[]""",
    "select s::varchar[], len(s::varchar[]) from w",
    "select s from w where 'x' in s::varchar[]",
    "select l::varchar::int[], l::varchar::double[], [l, null]::varchar::int[][] from n",
    "select [['a,b', null], ['[']]::varchar::varchar[][]",
]


@pytest.mark.parametrize("query", QUERIES)
def test_query(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


@pytest.mark.parametrize(
    ("query", "kind", "words"),
    [
        ("select histogram(a) from n", NameFault, "not offered; group by"),
        ("select list_histogram([1])", NameFault, "not offered"),
        ("select quantile_cont(a, [0.5, null]) from n", TypeFault, "list of constants"),
        ("select quantile_cont(a, [a]) from n", TypeFault, "list of constants"),
        ("select quantile_cont(a, []) from n", TypeFault, "list of constants"),
        ("select quantile_cont(a, [0.5, 1.5]) from n", DomainFault, "from 0 to 1"),
        ("select mad(s) from n", TypeFault, "mad"),
        ("select '[1,x]'::int[]", ConversionFault, "'x'"),
        ("select '[1'::int[]", ConversionFault, "'[1'"),
        ("select s::int[] from w", ConversionFault, "to integer"),
    ],
)
def test_what_is_refused(session: bm.Session, query: str, kind: type[BiremeError], words: str) -> None:
    with pytest.raises(kind) as raised:
        session.sql(query).collect()
    assert words in str(raised.value)
