"""Every form of subquery, correlated in every way, at every place of a query: parts of texts over `null_tables`."""

from __future__ import annotations

# What is asked of the rows of the subquery; `{inner}` is its FROM and WHERE.
FORMS = {
    "in": "t.a IN (SELECT u.a {inner})",
    "not in": "t.a NOT IN (SELECT u.a {inner})",
    "exists": "EXISTS (SELECT u.a {inner})",
    "not exists": "NOT EXISTS (SELECT u.a {inner})",
    "less any": "t.b < ANY (SELECT u.c / 10 {inner})",
    "greater equal all": "t.b >= ALL (SELECT u.c / 10 {inner})",
    "scalar max": "t.b < (SELECT max(u.c) / 10 {inner})",
    "scalar count": "(SELECT count(u.c) {inner}) = 1",
}
INNERS = {
    "uncorrelated": "FROM u",
    "uncorrelated without NULL": "FROM u WHERE u.a IS NOT NULL",
    "empty": "FROM u WHERE u.c > 1000",
    "equal": "FROM u WHERE u.s = t.s",
    "not equal": "FROM u WHERE u.s <> t.s",
    "less": "FROM u WHERE u.c < t.b * 10 + 1",
    "equal or": "FROM u WHERE u.s = t.s OR u.c = t.b * 10",
    "not distinct": "FROM u WHERE u.s IS NOT DISTINCT FROM t.s",
}
PLACES = {
    "where": "SELECT t.a, t.b, t.s FROM t WHERE {condition}",
    "or": "SELECT t.a, t.b, t.s FROM t WHERE {condition} OR t.b = 20",
    "not": "SELECT t.a, t.b, t.s FROM t WHERE NOT ({condition})",
    "select": "SELECT t.a, t.b, {condition} AS found FROM t",
    "case": "SELECT CASE WHEN {condition} THEN t.b ELSE -1 END AS chosen FROM t",
    "aggregate": "SELECT t.s, sum(CASE WHEN {condition} THEN 1 ELSE 0 END), bool_or({condition}) FROM t GROUP BY t.s",
    "and not": "SELECT t.a, t.b, t.s FROM t WHERE t.b > 5 AND NOT ({condition})",
}


def text_of(form: str, inner: str, place: str) -> str:
    return PLACES[place].format(condition=FORMS[form].format(inner=INNERS[inner]))
