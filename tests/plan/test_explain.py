"""How plans look as text: stable, without costs, with shared parts and subqueries once."""

from __future__ import annotations

from support.nested_queries import TABLES

from bireme.data.schema import Schema
from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import bind_sql
from bireme.plan.explain import explain, format_expr

CATALOG = TableCatalog({name: ("1", Schema.from_arrow(table.schema)) for name, table in TABLES.items()})


def text_of(sql: str) -> str:
    return explain(bind_sql(sql, CATALOG))


def test_a_plan_is_a_tree_of_lines() -> None:
    query = "SELECT s, count(*) AS n FROM o WHERE a > 1 AND b IS NULL GROUP BY s ORDER BY n DESC LIMIT 3"
    assert text_of(query) == (
        "Sort n#1 desc first 3\n"
        "  Project [key0#0 as s, agg0#1 as n]\n"
        "    Aggregate count_star() as agg0 by [s#3 as key0]\n"
        "      Filter (a#1 > 1) and (b#2 is null)\n"
        "        Scan o [id, a, b, s]\n"
    )


def test_a_shared_relation_is_written_once() -> None:
    text = text_of("WITH t AS (SELECT a, sum(b) AS n FROM o GROUP BY a) SELECT * FROM t AS x JOIN t AS y ON x.a = y.n")
    assert text.count("Aggregate") == 1
    assert text.count("shared 1 = ") == 1
    assert text.count("shared 1\n") == 1


def test_subqueries_follow_the_tree() -> None:
    text = text_of("SELECT id FROM o WHERE a IN (SELECT k FROM i WHERE w = o.b) OR b = (SELECT max(v) FROM i)")
    head, first, second = text.split("subquery ")[0], *text.split("\nsubquery ")[1:]
    assert head.startswith("Project")
    assert first.startswith("1:\n")
    assert "outer.#2" in first
    assert second.startswith("2:\n")


def test_every_node_of_random_plans_can_be_written() -> None:
    text = text_of(
        "SELECT id, row_number() OVER (PARTITION BY s ORDER BY a DESC NULLS FIRST) FROM o "
        "LEFT JOIN LATERAL (SELECT k FROM i WHERE i.k = o.a) l ON true UNION ALL VALUES (1, 2) OFFSET 1"
    )
    for word in ("Window row_number()", "DependentJoin left", "Union", "Values", "after 1", "desc nulls first"):
        assert word in text


def test_a_column_beyond_the_schema_does_not_fail() -> None:
    plan = bind_sql("SELECT a + 1 FROM o", CATALOG)
    assert format_expr(plan.exprs[0], Schema(())) == "?#1 + 1"  # type: ignore[attr-defined]
