"""What is left of plans after columns are pruned, distinct aggregates split, and shared relations named."""

from __future__ import annotations

import pytest
from support.nested_queries import TABLES

from bireme.data.schema import Schema
from bireme.errors import Unsupported
from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import bind_sql
from bireme.plan.context import PlanContext
from bireme.plan.relation import Aggregate, Join, Project, Rel, Scan, Union, Window
from bireme.plan.rules.prune_columns import prune_columns
from bireme.plan.rules.share import shared
from bireme.plan.rules.simplify import simplify
from bireme.plan.rules.split_distinct import split_distinct
from bireme.plan.rules.unnest import unnest
from bireme.plan.tree import relations

CATALOG = TableCatalog({name: ("1", Schema.from_arrow(table.schema)) for name, table in TABLES.items()})


def _unasked(*_: object):
    raise AssertionError("these rules ask nothing of tables")


def pruned(text: str) -> Rel:
    context = PlanContext(_unasked, _unasked)
    plan = bind_sql(text, CATALOG)
    for rule in (unnest, simplify, split_distinct, prune_columns):
        plan = rule(plan, context)
    return plan


def scans(plan: Rel) -> list[tuple[str, ...]]:
    return sorted(rel.schema.names for rel in relations(plan) if isinstance(rel, Scan))


def of(plan: Rel, kind: type[Rel]) -> list[Rel]:
    return [rel for rel in relations(plan) if isinstance(rel, kind)]


# -------------------------------------------------------------------------------------------- pruning


def test_scans_read_what_is_asked_for() -> None:
    assert scans(pruned("SELECT b FROM o WHERE a > 1")) == [("a", "b")]
    assert scans(pruned("SELECT o.b FROM o JOIN i ON o.a = i.k")) == [("a", "b"), ("k",)]


def test_a_count_reads_no_column() -> None:
    plan = pruned("SELECT count(*) FROM o")
    assert scans(plan) == [()]
    assert pruned("SELECT 1 FROM (SELECT count(*) FROM o) t").inputs[0].schema.fields == ()


def test_only_the_root_keeps_its_names() -> None:
    plan = pruned("SELECT z AS y FROM (SELECT x AS z FROM (SELECT a AS x, b FROM o) t) u WHERE z > 1")
    assert plan.schema.names == ("y",)
    assert len(of(plan, Project)) == 1


def test_a_join_gives_only_what_is_read_above() -> None:
    plan = pruned("SELECT x.b FROM o x JOIN o y ON x.a = y.a JOIN i ON y.b = i.v")
    upper = next(rel for rel in reversed(of(plan, Join)) if rel is not of(plan, Join)[0])
    assert len(upper.inputs[0].schema) == 2


def test_unread_aggregates_and_windows_are_not_computed() -> None:
    (grouped,) = of(pruned("SELECT n FROM (SELECT a, count(*) AS n, sum(b) AS t FROM o GROUP BY a) g"), Aggregate)
    assert len(grouped.aggregates) == 1  # type: ignore[attr-defined]
    text = "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY a) AS n FROM o) w"
    assert of(pruned(text), Window) == []


def test_branches_of_a_union_give_the_same_columns() -> None:
    plan = pruned("SELECT x FROM (SELECT a AS x, b FROM o UNION ALL SELECT v, k FROM i) u")
    (union,) = of(plan, Union)
    assert [source.schema.types for source in union.inputs] == [union.schema.types] * 2
    assert scans(plan) == [("a",), ("v",)]


def test_each_reader_of_a_scan_reads_its_own_columns() -> None:
    assert scans(pruned("SELECT x.b, y.s FROM o x JOIN o y ON x.id = y.id")) == [("id", "b"), ("id", "s")]


def test_a_relation_that_runs_once_gives_what_any_reader_needs() -> None:
    text = (
        "WITH c AS (SELECT k, sum(v) AS t, max(w) AS m, min(w) AS unread FROM i GROUP BY k) "
        "SELECT x.t, y.m FROM c x JOIN c y ON x.k = y.k"
    )
    plan = pruned(text)
    (grouped,) = of(plan, Aggregate)
    assert len(grouped.aggregates) == 2  # type: ignore[attr-defined]
    assert len(shared(plan)) == 1


# -------------------------------------------------------------------------------------------- sharing


def test_scans_and_filters_are_run_by_each_reader() -> None:
    assert not shared(pruned("SELECT 1 FROM (SELECT * FROM o WHERE a > 1) x, (SELECT * FROM o WHERE a > 1) y"))


def test_what_a_subquery_reads_may_be_shared_with_the_plan() -> None:
    text = "WITH c AS (SELECT k, sum(v) AS t FROM i GROUP BY k) SELECT k FROM c WHERE t = (SELECT max(t) FROM c)"
    assert len(shared(pruned(text))) == 1


# ------------------------------------------------------------------------------- distinct and sets


def test_one_distinct_argument_takes_two_groupings() -> None:
    plan = pruned("SELECT s, count(DISTINCT a), sum(b), count(*) FROM o GROUP BY s")
    assert len(of(plan, Aggregate)) == 2
    assert of(plan, Join) == []


def test_distinct_arguments_that_differ_are_joined_on_the_keys() -> None:
    plan = pruned("SELECT s, count(DISTINCT a), count(DISTINCT b), avg(b) FROM o GROUP BY s")
    joined = of(plan, Join)
    assert len(joined) == 2
    assert all(join.null_equal_count == 1 for join in joined)  # type: ignore[attr-defined]


def test_distinct_means_nothing_to_the_least() -> None:
    assert len(of(pruned("SELECT min(DISTINCT a), max(DISTINCT b) FROM o"), Aggregate)) == 1


def test_grouping_sets_become_a_union_over_one_input() -> None:
    plan = pruned("SELECT s, a, sum(b) FROM o JOIN i ON o.a = i.k GROUP BY ROLLUP (s, a)")
    (union,) = of(plan, Union)
    assert len(union.inputs) == 3
    assert len(of(plan, Join)) == 1
    assert len(shared(plan)) == 1


def test_a_filter_on_an_aggregate_that_sees_null_is_named() -> None:
    with pytest.raises(Unsupported, match="FILTER"):
        pruned("SELECT first(a) FILTER (WHERE b > 1) FROM o")
