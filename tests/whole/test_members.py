"""IN, ANY and ALL of lists, and lists that nothing tells the type of, against DuckDB."""

from __future__ import annotations

from itertools import product

import duckdb
import pytest
from support.two_engines import check

import bireme as bm
from bireme.errors import SyntaxFault, TypeFault, Unsupported

TABLES = (
    """create table n as select * from (values (1, 1.5, [1, 2, null], [date '2020-01-01'], ['x'],
    [1.5, 'nan'::double], 'x'),
    (2, 'nan'::double, []::int[], []::date[], [], [], 'y'), (null, null, null, null, null, null, null),
    (3, 2.5, [3], null, ['x', null], null, 'z'), (2, 0, [null]::int[], [null]::date[], [null]::text[],
    [null]::double[], 'x'), (null, 1, [2, 2], [date '2021-01-01', null], ['y', 'y'], [2.5], null))
    v(a, f, l, ds, w, fs, s)""",
    "create table e (a int, l int[], s varchar)",
)
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
SIDES = (
    ("a", "l"),
    ("f", "fs"),
    ("s", "w"),
    ("a + 1", "[2, 3]"),
    ("a", "[2, null]"),
    ("a", "[]::int[]"),
    ("null::int", "l"),
    ("2.0", "l"),
    ("l", "[[3], [1, 2, null]]"),
)
QUERIES = [
    "select a in l, a not in l, s in w, f in fs, f in ['nan'::double] from n",
    "select 1 in [1, 2], 1 in [null], 1 in [2, null], 1 in [], null in [1], null in [null] from n",
    "select a in range(3), s in 'xyz', a in l[1:1], s in l::varchar[], a in [[1, 2], [3]][1] from n",
    "select * from n where a in l and a is not null",
    "select a from n where not a in [1, 2] or s in ['y']",
    "select [1] in [[1]], [1] in ([1], [2]), {'a': 1} in [{'a': 1}], {'a': 1} = any([{'a': 1}, null])",
    "select (a, s) = any([(1, 'x'), (3, 'z')]) from n",
    "select case when a in [1, 2] then 'y' end, count(*) filter (where a in [1, 2]) from n group by all",
    "select a, [y for y in l if y in [1, 3]], [y for y in [1, 2]] from n",
    "select (select max(x) from unnest(n.l) u(x) where x in n.l) from n",
    "select a = some(l), a = some([1, 2]), a = any(null::int[]), a <> all(null::int[]) from n",
    "select a = any(l), a in l from e",
    "select d in [date '2020-01-01'] from (select unnest(ds) d from n)",
    "select coalesce(ds, []), coalesce([null], ds), ifnull(ds, [null]), if(a = 1, [], w) from n",
    "select case when a = 1 then [] else ds end, case when a = 1 then [null] else ['x'] end from n",
    "select [] || [1], [1] || [], [] || [], ['a'] || [], ['a'] || [null] || [], list_concat(null, [], ['a'])",
    "select list_concat([], ['a']), list_concat([null], ['a']), array_concat([[]], [['a']]), [[]] || [[1]]",
    "select list_append([], 'a'), list_prepend('a', []), list_append([null], date '2020-01-01')",
    "select list_contains([], 'a'), list_position([null], 'a'), list_contains([null], 'a'), [1, 2] || null",
    "select [[], ['a']], [[null], ['a']], [null, ['a']], [[], [[], ['a']]], flatten([[], ['a']]), flatten([[]])",
    "select [] = ['a'], [null] = [null], [] = [], ['a'] > [], [null] > ['z'], [] is distinct from ['a']",
    "select greatest([], ['a'], [null]), least([null], [1]), [] in (['a'], []), nullif(['a'], [])",
    "select list_has_any(['a'], [null]), list_has_all(['a'], [null]), list_intersect(['a'], [null])",
    "select []::varchar[], [null]::date[], []::int[][], [[], null]::date[][], try_cast([] as date[])",
    "select [null]::varchar[] || ['x'], [[]]::varchar[][] || [['a']]",
    "select [] union all select ['a']",
    "select [null] union all select [date '2020-01-01']",
    "select [] as k union all select null union all select ['x'] order by 1",
    "select [] as k union select [1.5] union select [2] order by 1",
    "select [] as k except select ['x']",
    "select [[]] union all select [['x'], null]",
    "select [] as k union all by name select 1 as z, ['x'] as k",
    "select {'a': [], 'b': 1} as k union all select {'a': ['x'], 'b': 2}",
    "select ds from n union all select []",
    "select x from (values ([], 1), (['a'], 2), (null, 3)) v(x, y) order by y",
    "select * from (values ([]), ([null])) v(x)",
    "select distinct [] as k from n union select [null]",
    "select list([]), max([]), min([null]) from n",
    "select unnest([]), unnest([null]), list_transform([], lambda x: x + 1), list_sum([]), array_to_string([], ',')",
]


@pytest.mark.parametrize("query", QUERIES)
def test_query(query: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    check(query, session, oracle)


@pytest.mark.parametrize(("value", "elements"), SIDES)
def test_any_and_all_of_a_list(
    value: str, elements: str, session: bm.Session, oracle: duckdb.DuckDBPyConnection
) -> None:
    forms = [f"{value} {each} {word}({elements})" for each, word in product(COMPARISONS, ("any", "all"))]
    check(f"select {', '.join(forms)} from n", session, oracle)
    for form in forms:
        check(f"select a from n where {form}", session, oracle)


@pytest.mark.parametrize(
    ("query", "kind", "words", "marked"),
    [
        ("select a = any(s) from n", TypeFault, "not varchar", "a = any(s)"),
        ("select a in s from n", TypeFault, "contains", "a in s"),
        ("select a in f from n", TypeFault, "not double", "a in f"),
        ("select a in [1, 2 from n", SyntaxFault, "opened and not closed", "["),
        ("select a in [1, zz] from n", Exception, "zz", "zz"),
        ("select a in () from n", SyntaxFault, "at least one", "a in ()"),
        ("select s like any(w) from n", Unsupported, "LIKE ANY", "s like any(w)"),
        ("select coalesce(ds, [1]) from n", TypeFault, "mixes", "coalesce(ds, [1])"),
        ("select []::varchar[] || [1]", TypeFault, "mixes", "|| [1]"),
    ],
)
def test_what_is_refused(session: bm.Session, query: str, kind: type[Exception], words: str, marked: str) -> None:
    with pytest.raises(kind) as raised:
        session.sql(query)
    assert words in raised.value.message
    place = raised.value.position
    start = query.index(marked)
    assert start <= place.start < place.end <= start + len(marked)
