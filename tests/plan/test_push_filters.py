"""Where filters go and, above all, where they do not; that answers stay is tested on random plans and TPC queries."""

from __future__ import annotations

import pytest
from support.nested_queries import TABLES

from bireme.data.schema import Schema
from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import bind_sql
from bireme.plan.context import PlanContext
from bireme.plan.explain import format_expr
from bireme.plan.raises import may_raise
from bireme.plan.relation import Aggregate, Filter, Join, JoinKind, Limit, Rel, Scan, Sort, Union, Values, Window
from bireme.plan.rules.push_filters import push_filters
from bireme.plan.rules.simplify import simplify
from bireme.plan.rules.unnest import unnest
from bireme.plan.tree import conjuncts, operands, relations

CATALOG = TableCatalog({name: ("1", Schema.from_arrow(table.schema)) for name, table in TABLES.items()})


def _unasked(*_: object):
    raise AssertionError("these rules ask nothing of tables")


def pushed(text: str) -> Rel:
    context = PlanContext(_unasked, _unasked)
    plan = bind_sql(text, CATALOG)
    for rule in (unnest, simplify, push_filters):
        plan = rule(plan, context)
    return plan


def filters_on(plan: Rel, table: str) -> list[str]:
    """The predicates that stand right above the scan of a table, as text."""
    for rel in relations(plan):
        if isinstance(rel, Filter) and isinstance(rel.input, Scan) and rel.input.table == table:
            return sorted(format_expr(part, rel.schema) for part in conjuncts(rel.predicate))
    return []


def joins(plan: Rel) -> list[Join]:
    return [rel for rel in relations(plan) if isinstance(rel, Join)]


def is_above(plan: Rel, upper: type[Rel], lower: type[Rel]) -> bool:
    """Whether a node of one class stands somewhere above one of the other."""
    return any(
        isinstance(rel, upper) and any(isinstance(below, lower) for below in relations(rel) if below is not rel)
        for rel in relations(plan)
    )


def test_a_filter_reaches_the_scan_and_stays_above_it() -> None:
    plan = pushed("SELECT x + 1 FROM (SELECT a AS x, b FROM o) t WHERE x > 3 AND b IS NOT NULL")
    assert filters_on(plan, "o") == ["a#1 > 3", "b#2 is not null"]
    (scan,) = [rel for rel in relations(plan) if isinstance(rel, Scan)]
    assert len(scan.filters) == 2


def test_comparisons_across_a_join_become_keys() -> None:
    (join,) = joins(pushed("SELECT 1 FROM o, i WHERE o.a = i.k AND o.b < i.v AND o.id > 1 AND i.w < 5"))
    assert len(join.left_keys) == 1
    assert join.residual is not None
    assert isinstance(join.left, Filter)
    assert isinstance(join.right, Filter)


def test_what_is_known_of_one_key_is_known_of_the_other() -> None:
    plan = pushed("SELECT 1 FROM o, i WHERE o.a = i.k AND o.a = 3")
    assert filters_on(plan, "o") == ["a#1 = 3"]
    assert filters_on(plan, "i") == ["k#0 = 3"]


def test_a_disjunction_over_both_sides_says_something_of_each() -> None:
    plan = pushed("SELECT 1 FROM o, i WHERE (o.a = 1 AND i.k = 2) OR (o.a = 2 AND i.k = 1)")
    assert filters_on(plan, "o") == ["a#1 in (1, 2)"]
    assert filters_on(plan, "i") == ["k#0 in (2, 1)"]
    assert joins(plan)[0].residual is not None


@pytest.mark.parametrize(
    ("kind", "condition", "expected"),
    [
        ("LEFT", "i.v > 1", JoinKind.INNER),
        ("LEFT", "i.v > 1 OR i.w = 2", JoinKind.INNER),
        ("LEFT", "i.v > 1 OR o.a = 2", JoinKind.LEFT),
        ("LEFT", "i.v IS NULL", JoinKind.LEFT),
        ("LEFT", "i.k IS NULL", JoinKind.ANTI),
        ("LEFT", "coalesce(i.v, 5) > 1", JoinKind.LEFT),
        ("LEFT", "(i.v > 1) IS NOT TRUE", JoinKind.LEFT),
        ("LEFT", "o.a > 1", JoinKind.LEFT),
        ("RIGHT", "o.a > 1", JoinKind.INNER),
        ("FULL", "o.a > 1", JoinKind.LEFT),
        ("FULL", "i.v > 1", JoinKind.LEFT),
        ("FULL", "i.v > 1 AND o.a > 1", JoinKind.INNER),
        ("FULL", "i.v > 1 OR o.a > 1", JoinKind.FULL),
    ],
)
def test_outer_joins_whose_padding_is_dropped(kind: str, condition: str, expected: JoinKind) -> None:
    (join,) = joins(pushed(f"SELECT o.id, i.w FROM o {kind} JOIN i ON o.a = i.k WHERE {condition}"))
    assert join.kind is expected


def test_an_inner_join_above_drops_padding_too() -> None:
    kinds = [join.kind for join in joins(pushed("SELECT 1 FROM o LEFT JOIN i ON o.a = i.k JOIN j ON i.v = j.u"))]
    assert kinds == [JoinKind.INNER, JoinKind.INNER]


def test_a_condition_on_the_preserved_side_stays_in_an_outer_join() -> None:
    (join,) = joins(pushed("SELECT 1 FROM o LEFT JOIN i ON o.a = i.k AND o.b > 1 AND i.v > 2"))
    assert join.residual is not None
    assert not isinstance(join.left, Filter)
    assert isinstance(join.right, Filter)


@pytest.mark.parametrize(
    ("text", "upper"),
    [
        ("SELECT * FROM (SELECT a, b FROM o ORDER BY id LIMIT 3) t WHERE a > 1", Sort),
        ("SELECT * FROM (SELECT a, b FROM o LIMIT 3) t WHERE a > 1", Limit),
        ("SELECT * FROM (SELECT a, sum(b) AS n FROM o GROUP BY a) t WHERE n > 1", Aggregate),
        ("SELECT * FROM (SELECT a, row_number() OVER (PARTITION BY s ORDER BY id) AS n FROM o) t WHERE a = 1", Window),
    ],
)
def test_what_a_filter_does_not_pass(text: str, upper: type[Rel]) -> None:
    assert is_above(pushed(text), Filter, upper)


@pytest.mark.parametrize(
    ("text", "upper"),
    [
        ("SELECT * FROM (SELECT a, sum(b) AS n FROM o GROUP BY a) t WHERE a > 1", Aggregate),
        (
            "SELECT * FROM (SELECT s, row_number() OVER (PARTITION BY s ORDER BY id) AS n FROM o) t WHERE s = 'x'",
            Window,
        ),
        ("SELECT * FROM (SELECT a FROM o UNION ALL SELECT k FROM i) t WHERE a > 1", Union),
        ("SELECT * FROM (SELECT a FROM o ORDER BY id) t WHERE a > 1", Sort),
    ],
)
def test_what_a_filter_passes(text: str, upper: type[Rel]) -> None:
    plan = pushed(text)
    assert not is_above(plan, Filter, upper)
    assert filters_on(plan, "o")


def test_branches_that_a_filter_empties_are_gone() -> None:
    text = "SELECT * FROM (SELECT 'o' AS t, id FROM o UNION ALL SELECT 'i' AS t, w FROM i) u WHERE t = 'i'"
    plan = pushed(text)
    assert {rel.table for rel in relations(plan) if isinstance(rel, Scan)} == {"i"}
    assert isinstance(pushed("SELECT id FROM o WHERE a > 1 AND false"), Values)


# ------------------------------------------------------------------------------------ what may raise


def test_a_cast_that_may_fail_is_not_moved_before_its_guard() -> None:
    text = "SELECT 1 FROM o JOIN i ON o.a = i.k WHERE CAST(o.s AS INTEGER) > 3"
    plan = pushed(text)
    assert filters_on(plan, "o") == []
    (cast,) = [rel for rel in relations(plan) if isinstance(rel, Filter)]
    assert isinstance(cast.input, Join) or is_above(cast, Filter, Join)


def test_a_guard_comes_first() -> None:
    text = "SELECT * FROM (SELECT * FROM o WHERE s <> 'x') t WHERE CAST(s AS INTEGER) > 3"
    upper, lower = [rel for rel in reversed(relations(pushed(text))) if isinstance(rel, Filter)]
    assert may_raise(upper.predicate)
    assert not may_raise(lower.predicate)


def test_try_cast_and_division_move() -> None:
    text = "SELECT 1 FROM o JOIN i ON o.a = i.k WHERE TRY_CAST(o.s AS INTEGER) > 3 AND i.v / i.w > 0.5"
    plan = pushed(text)
    assert len(filters_on(plan, "o")) == 1
    assert len(filters_on(plan, "i")) == 1


def test_arithmetic_of_small_integers_moves_in_a_wider_type() -> None:
    text = "SELECT 1 FROM (SELECT CAST(1 AS INTEGER) AS x, id FROM o) t, i, j WHERE t.x = j.k - 1 AND i.k = t.id"
    plan = pushed(text)
    assert all(not may_raise(expr) for rel in relations(plan) if isinstance(rel, Scan) for expr in operands(rel))


@pytest.mark.parametrize("before", ["", "o.a > 1 AND ", "i.v < 5 AND o.a > 2 AND "])
@pytest.mark.parametrize("behind", ["", " AND o.a < i.v", " AND 10 // i.v = o.a"])
def test_an_equality_that_may_raise_is_a_key_where_pairs_are_tested_by_it_first(before: str, behind: str) -> None:
    plan = pushed(f"SELECT 1 FROM o, i WHERE {before}CAST(o.s AS BIGINT) = i.k{behind}")
    (join,) = joins(plan)
    assert [may_raise(key) for key in join.left_keys] == [True]


@pytest.mark.parametrize("before", ["o.a < i.v AND ", "10 // o.a = 3 AND ", "o.a = i.k AND "])
def test_an_equality_that_may_raise_stays_a_filter_behind_others(before: str) -> None:
    plan = pushed(f"SELECT 1 FROM o, i WHERE {before}CAST(o.s AS BIGINT) = i.k")
    (join,) = joins(plan)
    assert not any(may_raise(key) for key in join.left_keys)
    assert is_above(plan, Filter, Join)


# ------------------------------------------------------------------------------------- shared relations


def test_a_relation_that_one_reader_wants_whole_is_not_filtered_for_another() -> None:
    text = "WITH c AS (SELECT k, sum(v) AS t FROM i GROUP BY k) SELECT * FROM c WHERE k = 1 UNION ALL SELECT * FROM c"
    assert sum(isinstance(rel, Aggregate) for rel in relations(pushed(text))) == 1


def test_a_relation_that_all_readers_filter_is_filtered_for_each() -> None:
    text = (
        "WITH c AS (SELECT k, sum(v) AS t FROM i GROUP BY k) "
        "SELECT * FROM c WHERE k = 1 UNION ALL SELECT * FROM c WHERE k = 2"
    )
    assert sum(isinstance(rel, Aggregate) for rel in relations(pushed(text))) == 2


def test_relations_that_read_each_other_do_not_multiply() -> None:
    parts = ["WITH c0 AS (SELECT k, sum(v) AS t FROM i GROUP BY k)"]
    for level in range(1, 12):
        source = f"SELECT k, t FROM c{level - 1} WHERE t"
        both = f"{source} > {level} UNION ALL {source} < -{level}"
        parts.append(f"c{level} AS (SELECT k, max(t) AS t FROM ({both}) u GROUP BY k)")
    plan = pushed(", ".join(parts) + " SELECT * FROM c11 WHERE k = 1 UNION ALL SELECT * FROM c11 WHERE k = 2")
    assert len(relations(plan)) < 500
