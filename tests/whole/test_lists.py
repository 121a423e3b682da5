"""Lists: literals, elements, functions and casts, against DuckDB."""

from __future__ import annotations

import duckdb
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import ClauseFault, DomainFault, NameFault, OutOfRoom, TypeFault

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
    "select try_cast(s as int[]), try_cast([w, i::varchar] as int[]), try_cast(l as tinyint[]), "
    "try_cast([[w], null, ['1']] as double[][]), try_cast([{'a': w, 'b': i}] as struct(a int, b varchar)[]), "
    "l::tinyint[], x::float[], [[i], null]::varchar[][] from t",
    "select coalesce(l, [0]), case when i % 2 = 0 then [i] else [i, null] end from t",
    "select i from t where list_contains(l, 4) or l is null or len(s) > 3",
    "select [1, 2] union all select [3.5]",
    "select list(l order by i), first(l order by i desc), count(l) from t",
    "select i, l[2] as e from t order by l[2] desc nulls first, i",
    "select list_sum(d) = 1234567890123456789012345678904.0, list_avg(d) "
    "from (select [1234567890123456789012345678901.5, 2.5]::decimal(38, 1)[] as d)",
    "select l[:-:(i - 3)], l[:3:(i - 3)], l[:-:-2], l[i:-:(3 - i)] from t where i <> 3",
    "select list_sum([9223372036854775807, 9223372036854775807]), list_avg([true::int, 4]), list_sum([1.5::float])",
    "select list_var_samp([1e301, -1e301]), list_stddev_pop([1e301, 1e301]), list_median([1::hugeint, 2])",
    "select list_avg([9007199254740993, 0, 0]::bigint[])",
    "select list_aggr([1,2,null,3], 'sum'), list_aggregate([1,2], 'avg'), array_aggr([1], 'count'), "
    "list_aggr([1,2], 'string_agg', '|'), list_aggr([1.5,2], 'max'), list_aggr([1,2], 'min')",
    "select typeof(list_stddev_samp([1,2])), typeof(list_median([1,2])), typeof(list_mode(['a'])), "
    "typeof(list_product([1]))",
    "select list_median([date '2020-01-01', date '2020-01-03']), list_median(['a','b','c']), "
    "list_median([1.5,2.5,null]), list_stddev_pop([1,2]), list_var_samp([1]), list_stddev_samp([]::int[]), "
    "list_avg([]::int[]), list_mode([2,1,1,2]), list_mode([null]::int[]), list_any_value([]::int[]), "
    "list_bool_or([false,null]), list_bool_and([]::bool[]), list_string_agg([]::varchar[]), "
    "list_string_agg([1,2]), list_product([]::int[])",
    "select list_aggr([1,2],'stddev'), list_aggr([1,2],'variance'), list_aggr(['a','b'],'string_agg'), "
    "list_aggr([3,1,2], 'first'), list_aggr([1,2], 'mean'), list_sem([1,2,4])",
    "select list_zip([1,2],['a']), list_zip([1],[2],[3]), list_zip([1,2],['a'], true), array_zip([1],[2])",
    "select list_where([1,2,3],[true,false,true]), list_where([1,2],[true]), "
    "list_where([1,2],[true,true,true,false,true])",
    "select list_resize([1,2,3],5), list_resize([1,2,3],5,0), list_resize([1,2,3],1), list_resize([1],null), "
    "list_resize([1], 0), array_resize([1],2,9)",
    "select list_select([10,20,30],[1,3]), list_select([10,20],[3,0,-1]), array_select([1],[1])",
    "select list_grade_up([3,1,2]), list_grade_up([3,null,2], 'DESC', 'NULLS FIRST'), list_grade_up([[2],[1]])",
    "select [1,2,3,4,5][1:5:2], [1,2,3,4,5][:-:2], [1,2,3,4,5][-1:1:-1], [1,2,3][:-:-1], "
    "list_slice([1,2,3,4],1,4,3), [1,2,3,4][4:1:-2], [1,2,3,4][-3:-1:2], [1,2,3,4][1:9:2], [1,2,3,4][2:1:1], "
    "[1,2,3,4][2:3:-1], [1,2,3,4][0:4:2]",
    "select [1,2] && [2,3], [1,2] @> [1], [1] <@ [1,2], [1,2] && null",
    "select list_inner_product([1,2],[3,4]), list_dot_product([1.0,2],[3,4]), "
    "list_cosine_similarity([1,2],[3,4]), list_distance([1,2],[3,4]), list_cosine_distance([1.0,2],[3,4]), "
    "list_negative_inner_product([1,2],[3,4])",
    "select list_cosine_similarity([0,0],[3,4]), list_distance([]::double[],[]::double[]), "
    "list_inner_product([]::double[], []::double[]), list_cosine_similarity([]::double[],[]::double[]), "
    "list_distance(null, [1.0])",
    "select list_distance([1::float],[2::float]), array_pop_back([]::int[]), array_pop_front([1,2]), "
    "array_pop_back([1,2])",
    "select list_median(l), list_mode(l), list_stddev_pop(l), list_any_value(s), list_string_agg(s), "
    "list_aggr(l, 'sum'), list_median(x), list_product(l) from t",
    "select list_zip(l, s), list_zip(l, s, i % 2 = 0), list_where(l, [true, false, true, true, true]), "
    "list_select(l, [i, 1]), list_resize(l, i), list_resize(s, i, 'é') from t",
    "select l, i, list_contains(l, nullif(i, 3)), list_contains(nullif(l, [1]), nullif(i, 1)) from t",
    "select l, e, list_contains(l, e), list_has(l, null), not list_contains(l, e) from (values ([]::int[], null), "
    "([1], null), ([null], null), (null, null), ([1, null], 2), ([], 1), (null, 1)) t(l, e) where list_contains(l, e) "
    "is null or not list_contains(l, e)",
    "select list_contains([], null), list_contains([]::int[], 1), list_contains([1], null), list_contains(null, 1)",
    "select l[:i], l[:i:1], l[:t.i], l[:len(s)], l[:i - 1:2], l[:i:-1], ([1, 2, 3])[:i], [x for x in l][:i] from t "
    "where i > 0",
    "select list_sort([interval 1 day, interval 1 hour, null, interval 1 month]), list_reverse_sort([interval 1 day, "
    "interval 2 hour]), list_grade_up([interval 1 day, interval 1 hour])",
    # One interval may be longer than another of a larger unit, and as long as one of several.
    "select list_sort([interval 31 day, interval 1 month]), list_grade_up([interval 30 hour, interval 1 day]), "
    "list_min([interval 1 day, interval 30 hour]), list_max([interval 1 month, interval 31 day])",
    "select list_contains([interval 1 day], interval 24 hour), list_position([interval 0 day, interval 1 month], "
    "interval 30 day), list_has_any([interval 1 day], [interval 24 hour]), "
    "list_has_all([interval 24 hour], [interval 1 day])",
    "select l[1:4:2], l[4:1:-1], l[i:-1:i], s[:-:2], list_grade_up(l), list_grade_up(x, 'DESC'), l && [i], l "
    "@> [null, 2], [4] <@ l from t where i > 0",
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


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("select list_aggr([1], 'foo')", NameFault),
        ("select list_where([1], [null]::boolean[])", DomainFault),
        ("select list_select([1], [null]::bigint[])", DomainFault),
        ("select list_distance([1], [1, 2])", DomainFault),
        ("select list_distance([1], [null]::int[])", DomainFault),
        ("select [1, 2][1:2:0]", DomainFault),
        ("select list_resize([1], 100000000)", OutOfRoom),
        ("select list_transform([[1]], lambda x: unnest(x))", ClauseFault),
    ],
)
def test_faults_have_names(query: str, error: type[Exception], session: bm.Session) -> None:
    with pytest.raises(error):
        session.sql(query).collect()
