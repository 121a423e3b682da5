"""Lists: literals, elements, functions and casts, against DuckDB."""

from __future__ import annotations

import duckdb
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import TypeFault

TABLES = (
    """create table t as select i as i, case i when 0 then null when 1 then []::bigint[]
    else [i, 2 - i, null, i * i] end as l, case when i < 2 then null else ['a,b', 's' || i, null] end as s,
    case when i % 3 = 0 then null else 'x' || i || ',y' || (i % 2) || ',' end as w,
    [(i / 4)::double, 'nan'::double, null] as x from range(8) r(i)""",
)

QUERIES = [
    "select [1, 2, 3], [i, 7], [i, null], [1, 2.5], [[1], [2, 3]], [['a'], null], list_value('a', 'b') from t",
    "select l[1], l[-1], l[9], l[0], l[i], l[1:2], l[2:], l[:-2], l[-2:-1], l[3:1], s[2] from t",
    "select len(l), length(s), array_length(l), list_count(l), list_unique(l), len([]) from t",
    "select list_contains(l, 4), contains(l, 3), list_has(s, 'a,b'), list_contains(x, 'nan'::double) from t",
    "select list_position(l, 4), list_position(l, null), list_indexof(s, 's3') from t",
    "select list_sum(l), list_avg(l), list_min(l), list_max(l), list_min(s), list_max(x), list_sum(x[:1]) from t",
    "select list_first(l), list_last(l), list_reverse(l), list_reverse(s) from t",
    "select list_sort(l), list_sort(s), list_sort(x), list_reverse_sort(l), list_sort(l, 'DESC', 'NULLS FIRST') from t",
    "select list_sort(list_distinct(l)), list_sort(list_intersect(l, [4, 9, 4])) from t",
    "select list_has_any(l, [4, 9]), list_has_all(l, [null, 2]), list_has_any(s, ['s3']) from t",
    "select l || [7], [i] || l, list_append(l, 8), list_prepend(0, l), list_concat(l, l), list_cat(l, [2.5]) from t",
    "select array_to_string(s, '|'), array_to_string(l, ','), array_to_string([null]::int[], ',') from t",
    "select flatten([l, [1]]), flatten([[1], null, []]) from t",
    "select range(i), range(1, i), range(i, 0, -2), generate_series(1, i), range(3) from t",
    "select string_split(w, ','), string_split(w, ''), string_split(w, 'zz'), string_split_regex(w, '[0-9],') from t",
    "select regexp_extract_all(w, '[xy]([0-9])'), regexp_extract_all(w, '([xy])([0-9])', 2) from t",
    "select l::varchar, s::varchar, x::varchar, [[1], null]::varchar, ['it''s', '', 'null', ' a']::varchar from t",
    "select l::double[], l::varchar[], ['1', null]::int[], try_cast(['1', 'x'] as int[])[1] from t where i > 8",
    "select coalesce(l, [0]), case when i % 2 = 0 then [i] else [i, null] end from t",
    "select i from t where list_contains(l, 4) or l is null or len(s) > 3",
    "select [1, 2] union all select [3.5]",
    "select list(l order by i), first(l order by i desc), count(l) from t",
    "select i, l[2] as e from t order by l[2] desc nulls first, i",
]


@pytest.mark.parametrize("query", QUERIES)
def test_as_in_duckdb(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


@pytest.mark.parametrize(
    "query",
    [
        "select [1, 'a', date '2000-01-01']",
        "select list_contains(1, 2)",
        "select list_sum(['a'])",
        "select flatten([1])",
        "select list_sort([1], 'UP')",
        "select [1] || 2.5 || 'x'",
    ],
)
def test_wrong_types_are_refused_at_the_call(query: str, session: bm.Session) -> None:
    with pytest.raises(TypeFault):
        session.sql(query)
