"""Queries with subqueries in every form, at every place, with every kind of correlation: the product of small lists.

The tables `o`, `i`, `j` hold NULLs, repeated keys and keys that meet nothing. Some products mean nothing to DuckDB
either; a test that asks it for the answer leaves those out.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

OUTER = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6, 7], pa.int64()),
        "a": pa.array([1, 1, 2, None, 3, None, 9], pa.int64()),
        "b": pa.array([10, None, 20, 5, None, 30, 10], pa.int64()),
        "s": pa.array(["x", "y", None, "x", "z", "", "x"]),
    }
)
INNER = pa.table(
    {
        "k": pa.array([1, 1, 2, None, 3, 3, 4, None], pa.int64()),
        "v": pa.array([10, 20, None, 5, 10, None, 30, 10], pa.int64()),
        "w": pa.array([1, 2, 3, 4, 5, 6, 7, 8], pa.int64()),
    }
)
SIDE = pa.table({"k": pa.array([1, 2, 2, None, 5], pa.int64()), "u": pa.array([1, None, 3, 4, 5], pa.int64())})
TABLES = {"o": OUTER, "i": INNER, "j": SIDE}

# FROM and WHERE of a subquery over `i` (and more), waiting for columns of `o` in different ways.
SOURCES = {
    "none": "i WHERE i.w > 2",
    "nothing": "i WHERE i.w > 100",
    "equal": "i WHERE i.k = o.a",
    "equal_null": "i WHERE i.k IS NOT DISTINCT FROM o.a",
    "equal_sum": "i WHERE i.k + 1 = o.a",
    "equal_outer_sum": "i WHERE i.k = o.a + 1",
    "equal_two": "i WHERE i.k = o.a AND i.v = o.b",
    "less": "i WHERE i.k < o.a",
    "unequal": "i WHERE i.k <> o.a",
    "equal_less": "i WHERE i.k = o.a AND i.v < o.b",
    "equal_reused": "i WHERE i.k = o.a AND i.w > o.a + 1",
    "either": "i WHERE i.k = o.a OR i.v = o.b",
    "outer_only": "i WHERE o.b > 10",
    "outer_null": "i WHERE i.k = o.a AND o.b IS NULL",
    "inner_join": "i JOIN j ON i.k = j.k WHERE j.u < o.b",
    "inner_join_on": "i JOIN j ON i.k = j.k AND i.w > o.a WHERE j.k = o.a",
    "both_sides": "(SELECT * FROM i WHERE i.k = o.a) i JOIN (SELECT * FROM j WHERE j.k = o.a) j ON i.w >= j.u",
    "left_join": "i LEFT JOIN j ON i.k = j.k WHERE i.k = o.a",
    "left_join_on": "i LEFT JOIN j ON i.k = j.k AND j.u < o.b",
    "left_join_right": "i LEFT JOIN (SELECT * FROM j WHERE j.u <= o.a) j ON i.k = j.k WHERE i.w > 2",
    "right_join": "(SELECT * FROM j WHERE j.k = o.a) j RIGHT JOIN i ON i.k = j.k",
    "full_join": "(SELECT * FROM i WHERE i.k = o.a) i FULL JOIN (SELECT * FROM j WHERE j.u <= o.b) j ON i.k = j.k",
    "union": "(SELECT k, v, w FROM i WHERE i.k = o.a UNION ALL SELECT k, u, 1 FROM j WHERE j.k = o.a) i",
    "union_mixed": "(SELECT k, v, w FROM i WHERE i.k = o.a UNION ALL SELECT k, u, 1 FROM j WHERE j.u < o.b) i",
    "union_half": "(SELECT k, v, w FROM i UNION SELECT k, u, 1 FROM j WHERE j.u < o.b) i",
    "grouped": "(SELECT k, max(v) AS v, count(*) AS w FROM i WHERE i.w > o.a GROUP BY k) i",
    "grouped_equal": "(SELECT k, max(v) AS v, count(*) AS w FROM i WHERE i.k = o.a GROUP BY k) i",
    "grouped_having": "(SELECT 1 AS k, max(v) AS v, count(*) AS w FROM i WHERE i.k = o.a HAVING count(*) <> 1) i",
    "distinct": "(SELECT DISTINCT k, v, 1 AS w FROM i WHERE i.k = o.a) i",
    "sets": "(SELECT k, max(v) AS v, count(*) AS w FROM i WHERE i.k = o.a GROUP BY GROUPING SETS ((k), ())) i",
    "limited": "(SELECT k, v, w FROM i WHERE i.k = o.a ORDER BY w DESC LIMIT 1) i",
    "limited_less": "(SELECT k, v, w FROM i WHERE i.w > o.a ORDER BY w LIMIT 2 OFFSET 1) i",
    "windowed": "(SELECT k, v, row_number() OVER (ORDER BY w DESC) AS w FROM i WHERE i.k <= o.a) i",
    "projected": "(SELECT i.k, o.b AS v, i.w + o.a AS w FROM i) i WHERE i.k = o.a",
    "nested_exists": "i WHERE EXISTS (SELECT 1 FROM j WHERE j.k = i.k AND j.u >= o.a)",
    "nested_skipping": "i WHERE i.w > 1 AND EXISTS (SELECT 1 FROM j WHERE j.u = o.a)",
    "nested_in": "i WHERE i.k = o.a AND i.v NOT IN (SELECT j.u FROM j WHERE j.k = o.a)",
    "nested_scalar": "i WHERE i.w > (SELECT count(*) FROM j WHERE j.k = i.k AND j.u < o.b)",
    "nested_deep": "i WHERE i.k IN (SELECT j.k FROM j WHERE j.u > (SELECT min(w) FROM i AS i2 WHERE i2.k = o.a))",
    "lateral": "i, LATERAL (SELECT max(u) AS m FROM j WHERE j.k = i.k AND j.u <> o.b) l WHERE i.k = o.a",
    "values": "(VALUES (o.a, o.b, 1), (2, 20, 2)) i(k, v, w)",
}
# A condition, for each of the sources in place of {}.
CONDITIONS = {
    "exists": "EXISTS (SELECT 1 FROM {})",
    "in": "o.b IN (SELECT i.v FROM {})",
    "in_sum": "o.a IN (SELECT i.w + coalesce(o.b, 0) FROM {})",
    "in_pair": "(o.a, o.b) IN (SELECT i.k, i.v FROM {})",
    "less_any": "o.b < ANY (SELECT i.v FROM {})",
    "unequal_any": "o.b <> ANY (SELECT i.v FROM {})",
    "greater_all": "o.b > ALL (SELECT i.v FROM {})",
    "equal_all": "o.b = ALL (SELECT i.v FROM {})",
    "count": "o.a > (SELECT count(*) FROM {})",
    "count_value": "(SELECT count(i.v) FROM {}) = 0",
    "sum": "(SELECT sum(i.v) FROM {}) > o.a",
    "coalesced": "coalesce((SELECT max(i.v) + 1 FROM {}), o.b) > 10",
    "in_count": "o.a IN (SELECT count(*) FROM {})",
    "first": "(SELECT i.w FROM {} ORDER BY i.w LIMIT 1) > 1",
}
# A whole query for each condition in place of {}.
PLACES = {
    "where": "SELECT id FROM o WHERE {}",
    "where_not": "SELECT id FROM o WHERE NOT ({})",
    "or": "SELECT id FROM o WHERE {} OR s = 'x'",
    "not_or": "SELECT id FROM o WHERE NOT ({} OR s = 'x')",
    "and_not": "SELECT id FROM o WHERE id < 6 AND NOT ({} AND s IS NOT NULL)",
    "select": "SELECT id, {} FROM o",
    "case": "SELECT id, CASE WHEN {} THEN 'yes' WHEN s = 'x' THEN 'maybe' END FROM o",
    "is_null": "SELECT id FROM o WHERE ({}) IS NULL",
    "aggregate": "SELECT s, count(*) FILTER (WHERE {}), max(CASE WHEN {} THEN id END) FROM o GROUP BY s",
    "inner_on": "SELECT id, j.k FROM o JOIN j ON o.a = j.k AND {}",
    "left_on": "SELECT id, j.k FROM o LEFT JOIN j ON o.a = j.k AND {}",
    "order": "SELECT id FROM o ORDER BY {}, id",
}


def nested_queries() -> Iterator[tuple[str, str]]:
    """Every query, with a name that says what it is made of."""
    for place, query in PLACES.items():
        for condition, test in CONDITIONS.items():
            for source, text in SOURCES.items():
                yield f"{place}-{condition}-{source}", query.replace("{}", test.replace("{}", text))
