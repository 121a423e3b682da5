"""Whatever order joins are put in, they give the same rows: DuckDB computes both plans and compares."""

from __future__ import annotations

import random
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ir_to_sql import to_sql
from support.planning import catalog_of, context_over, parquet_tables
from support.rows import difference
from support.tpc_data import query_texts, tpch_folder

from bireme.data.types import BOOL, INT32, INT64, STRING
from bireme.frontend.sql import bind_sql
from bireme.plan import tree
from bireme.plan.expr import Aggregation, Call, Cast, Column, Literal
from bireme.plan.optimize import RULES
from bireme.plan.relation import Aggregate, Filter, Join, JoinKind, Project, Rel, Scan, Union
from bireme.plan.rules.order_joins import order_joins
from bireme.plan.rules.order_joins_build import apply_local, build
from bireme.plan.rules.order_joins_graph import extract, is_region
from bireme.plan.rules.order_joins_search import given_order
from bireme.plan.rules.order_joins_sizes import GraphSizes
from bireme.storage.arrow_table import open_arrow

_NAMES = ("a", "b", "c")


def _tables():
    """Four tables of small numbers, with NULLs and repeated rows; one is empty."""
    numbers = random.Random(4)
    found = {}
    for table, rows in (("p", 5), ("q", 7), ("r", 4), ("none", 0)):
        columns = {name: [numbers.choice([None, 0, 1, 2, 3]) for _ in range(rows)] for name in _NAMES}
        found[table] = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    return found


@dataclass
class World:
    connection: duckdb.DuckDBPyConnection
    sources: dict

    def scan(self, table):
        source = self.sources[table]
        return Scan(table, source.version, source.schema, tuple(range(len(source.schema.fields))))

    def rows(self, plan):
        return self.connection.execute(to_sql(plan)).fetchall()


@pytest.fixture(scope="module")
def world():
    data = _tables()
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        for name, table in data.items():
            connection.register(name, table)
        yield World(connection, {name: open_arrow(table) for name, table in data.items()})


# Tables whose rows one drawn plan may multiply: products of more would take the oracle minutes.
_MULTIPLIED_MAX = 4


class Plans:
    """Draws plans over the tables."""

    def __init__(self, draw, world):
        self.draw = draw
        self.world = world
        self.multiplied = 0

    def relation(self, depth) -> Rel:
        if depth == 0:
            self.multiplied += 1
            return self.leaf()
        kind = self.draw(
            st.sampled_from(["inner", "inner", "inner", "left", "right", "full", "semi", "anti", "mark", "single"])
        )
        left = self.relation(depth - 1)
        if self.multiplied >= _MULTIPLIED_MAX and kind in ("inner", "left", "right", "full"):
            kind = "semi"
        right = self.grouped() if kind == "single" else self.relation(self.draw(st.integers(0, min(1, depth - 1))))
        rel: Rel = self.join(left, right, JoinKind(kind))
        if self.draw(st.integers(0, 3)) == 0:
            rel = Filter(rel, self.condition(rel, 0, len(rel.schema)))
        if self.draw(st.integers(0, 3)) == 0:
            rel = self.projected(rel)
        return rel

    def leaf(self) -> Rel:
        if self.draw(st.integers(0, 5)) == 0:
            return self.grouped()
        scan = self.world.scan(self.draw(st.sampled_from(["p", "q", "r", "p", "q", "r", "none"])))
        return Filter(scan, self.condition(scan, 0, 3)) if self.draw(st.booleans()) else scan

    def grouped(self) -> Rel:
        scan = self.world.scan(self.draw(st.sampled_from(["p", "q", "r"])))
        total = Aggregation("max", (Column(1, INT64),), INT64)
        return Aggregate(scan, (Column(0, INT64),), (total,), ("a", "most"))

    def column(self, rel, low, high):
        chosen = [at for at in range(low, high) if rel.schema[at].type is INT64]
        return Column(self.draw(st.sampled_from(chosen)), INT64)

    def condition(self, rel, low, high):
        function = self.draw(st.sampled_from(["eq", "ne", "lt", "le", "is_null", "is_not_distinct"]))
        first = self.column(rel, low, high)
        if function == "is_null":
            return Call("is_null", (first,), BOOL)
        other = (
            self.column(rel, low, high) if self.draw(st.booleans()) else Literal(self.draw(st.integers(0, 3)), INT64)
        )
        return Call(function, (first, other), BOOL)

    def projected(self, rel) -> Rel:
        columns = [self.column(rel, 0, len(rel.schema)) for _ in range(self.draw(st.integers(2, 4)))]
        columns.append(Call("add", (columns[0], columns[1]), INT64))
        return Project(rel, tuple(columns), tuple(f"x{at}" for at in range(len(columns))))

    def join(self, left, right, kind) -> Rel:
        keys = 1 if kind is JoinKind.SINGLE else self.draw(st.integers(0 if kind is JoinKind.INNER else 1, 2))
        left_keys = tuple(self.column(left, 0, len(left.schema)) for _ in range(keys))
        right_keys = tuple(
            Column(0, INT64) if kind is JoinKind.SINGLE else self.column(right, 0, len(right.schema))
            for _ in range(keys)
        )
        null_aware = kind in (JoinKind.ANTI, JoinKind.MARK) and keys == 1 and self.draw(st.booleans())
        null_equal = 0 if null_aware else self.draw(st.integers(0, keys))
        residual = None
        if not null_aware and self.draw(st.booleans()):
            both = Join(left, right, JoinKind.INNER)
            residual = self.condition(both, 0, len(both.schema))
        return Join(left, right, kind, left_keys, right_keys, residual, null_equal, null_aware)


def check_same(world, plan, changed):
    assert changed.schema.types == plan.schema.types
    assert changed.schema.names == plan.schema.names
    assert difference(world.rows(plan), world.rows(changed)) is None


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_the_chosen_order_gives_the_same_rows(world, data):
    plan = Plans(data.draw, world).relation(data.draw(st.integers(1, 4)))
    ordered = order_joins(plan, context_over(world.sources))
    check_same(world, plan, ordered)
    assert order_joins(ordered, context_over(world.sources)) is ordered


def drawn_shape(data, graph):
    """Any order that gives attachments what they need, cross products included."""
    needs = [unit.attachment.needs if unit.attachment else 0 for unit in graph.units]
    parts = [(1 << unit, unit) for unit in range(len(needs)) if not needs[unit]]
    waiting = [unit for unit in range(len(needs)) if needs[unit]]
    while len(parts) > 1 or waiting:
        moves = [
            ("attach", at, unit) for at, (mask, _) in enumerate(parts) for unit in waiting if not needs[unit] & ~mask
        ]
        moves += [("join", a, b) for a in range(len(parts)) for b in range(len(parts)) if a != b]
        kind, first, second = data.draw(st.sampled_from(moves))
        mask, shape = parts[first]
        if kind == "attach":
            waiting.remove(second)
            parts[first] = (mask | 1 << second, (shape, second))
        else:
            other_mask, other = parts[second]
            made = (mask | other_mask, (shape, other))
            parts = [part for at, part in enumerate(parts) if at not in (first, second)] + [made]
    return parts[0][1]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_any_order_gives_the_same_rows(world, data):
    plan = Plans(data.draw, world).relation(data.draw(st.integers(1, 4)))
    if not is_region(plan):
        return
    graph = extract(plan, lambda rel: rel)
    apply_local(graph)
    sizes = GraphSizes(graph, context_over(world.sources).estimates)
    order = given_order(sizes, drawn_shape(data, graph))
    check_same(world, plan, build(graph, order, plan.schema.names))


def test_a_plan_without_joins_is_returned_itself(world):
    plan = Filter(world.scan("p"), Call("is_null", (Column(0, INT64),), BOOL))
    assert order_joins(plan, context_over(world.sources)) is plan


def test_a_full_join_stays_whole_and_its_sides_are_ordered_apart(world):
    cross = Join(world.scan("p"), world.scan("q"), JoinKind.INNER)
    full = Join(cross, world.scan("r"), JoinKind.FULL, (Column(0, INT64),), (Column(0, INT64),))
    ordered = order_joins(full, context_over(world.sources))
    assert isinstance(ordered, Join)
    assert ordered.kind is JoinKind.FULL


def table(connection, name, query):
    connection.execute(f"CREATE TABLE {name} AS {query}")
    return open_arrow(connection.sql(f"FROM {name}").to_arrow_table())


_SALES = """SELECT i AS id, i // 4 AS basket, i % 500 AS item, i % 7 AS shop, i % 50 AS quantity
FROM range(20000) t(i)"""


@pytest.fixture(scope="module")
def shop():
    """Sales of items in shops: a big table, two that it refers to, and orders of which few are large."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        sources = {
            "sale": table(connection, "sale", _SALES),
            "item": table(connection, "item", "SELECT i AS item, i % 10 AS kind FROM range(500) t(i)"),
            "shop": table(connection, "shop", "SELECT i AS shop FROM range(7) t(i)"),
            "basket": table(connection, "basket", "SELECT i AS basket FROM range(5000) t(i)"),
        }
        yield World(connection, sources)


def equal(rel, index, value):
    return Filter(rel, Call("eq", (Column(index, INT64), Literal(value, INT64)), BOOL))


def joined(left, right, left_key, right_key, kind=JoinKind.INNER):
    return Join(left, right, kind, (Column(left_key, INT64),), (Column(right_key, INT64),))


def joins(plan):
    return [rel for rel in tree.relations(plan) if isinstance(rel, Join)]


def tables_of(rel):
    return {scan.table for scan in tree.relations(rel) if isinstance(scan, Scan)}


def test_the_selective_table_is_joined_first(shop):
    sale, item, shops = shop.scan("sale"), equal(shop.scan("item"), 1, 3), shop.scan("shop")
    plan = joined(joined(sale, shops, 3, 0), item, 2, 0)
    ordered = order_joins(plan, context_over(shop.sources))
    assert tables_of(joins(ordered)[0]) == {"sale", "item"}
    assert tables_of(joins(ordered)[0].right) == {"item"}
    check_same(shop, plan, ordered)


def test_a_semi_join_that_keeps_little_is_applied_to_its_table_alone(shop):
    most = Aggregation("max", (Column(4, INT64),), INT64)
    baskets = Aggregate(shop.scan("sale"), (Column(1, INT64),), (most,), ("basket", "most"))
    large = equal(baskets, 0, 17)
    plan = joined(joined(shop.scan("sale"), shop.scan("basket"), 1, 0), large, 5, 0, JoinKind.SEMI)
    ordered = order_joins(plan, context_over(shop.sources))
    first = joins(ordered)[0]
    assert first.kind is JoinKind.SEMI
    assert "sale" not in tables_of(first.left)
    check_same(shop, plan, ordered)


def test_a_grouping_is_reduced_to_the_groups_that_are_met(shop):
    total = Aggregation("max", (Column(4, INT64),), INT64)
    groups = Aggregate(shop.scan("sale"), (Column(2, INT64),), (total,), ("item", "most"))
    plan = joined(equal(shop.scan("item"), 0, 3), groups, 0, 0, JoinKind.LEFT)
    ordered = order_joins(plan, context_over(shop.sources))
    inside = [join for join in joins(ordered) if join.kind is JoinKind.SEMI]
    assert [tables_of(join.left) for join in inside] == [{"sale"}]
    check_same(shop, plan, ordered)
    assert order_joins(ordered, context_over(shop.sources)) is ordered


def test_what_two_regions_happen_to_share_is_ordered_in_each(shop):
    both = joined(shop.scan("sale"), shop.scan("shop"), 3, 0)
    count = (Aggregation("count_star", (), INT64),)
    one, other = (Aggregate(joined(both, equal(shop.scan("item"), 0, at), 2, 0), (), count, ("n",)) for at in (1, 2))
    plan = Union((one, other))
    ordered = order_joins(plan, context_over(shop.sources))
    assert all(tables_of(join) == {"sale", "item"} for join in joins(ordered) if tables_of(join.left) == {"sale"})
    check_same(shop, plan, ordered)


def test_a_relation_read_twice_stays_one(shop):
    pair = joined(shop.scan("sale"), equal(shop.scan("item"), 1, 3), 2, 0)
    plan = joined(pair, pair, 0, 0)
    ordered = order_joins(plan, context_over(shop.sources))
    outer = joins(ordered)[-1]
    assert outer.left is outer.right
    check_same(shop, plan, ordered)


@pytest.fixture(scope="module")
def notes():
    """Texts of which only those that belong to a known kind are numbers."""
    with duckdb.connect() as connection:
        sources = {
            "note": table(connection, "note", "SELECT i AS id, i % 2 AS kind, if(i % 2 = 0, i::varchar, 'x') AS s "
            "FROM range(1000) t(i)"),
            "known": table(connection, "known", "SELECT 0 AS kind"),
            "value": table(connection, "value", "SELECT i AS v FROM range(5000) t(i)"),
        }  # fmt: skip
        yield World(connection, sources)


def number(index):
    return Cast(Column(index, STRING), INT64)


def test_what_may_fail_is_not_asked_of_rows_that_a_join_drops(notes):
    sound = Join(notes.scan("note"), notes.scan("known"), JoinKind.INNER, (Column(1, INT64),), (as_bigint(0),))
    positive = Filter(sound, Call("lt", (Literal(5, INT64), number(2)), BOOL))
    keyed = Join(sound, notes.scan("value"), JoinKind.INNER, (number(2),), (Column(0, INT64),))
    kept = Join(sound, notes.scan("value"), JoinKind.SEMI, (number(2),), (Column(0, INT64),))
    for plan in (positive, keyed, kept):
        ordered = order_joins(plan, context_over(notes.sources))
        casting = [rel for rel in tree.relations(ordered) if any(asks_number(expr) for expr in tree.operands(rel))]
        assert casting
        assert all(tables_of(rel) >= {"note", "known"} for rel in casting)
        check_same(notes, plan, ordered)


def as_bigint(index):
    return Cast(Column(index, INT32), INT64)


def asks_number(expr):
    return any(isinstance(part, Cast) and part.arg.type is STRING for part in tree.walk(expr))


@pytest.fixture(scope="module")
def tpch():
    return parquet_tables(tpch_folder())


@pytest.mark.parametrize("name", query_texts("tpch"))
def test_the_order_of_an_ordered_plan_is_kept(tpch, name):
    context = context_over(tpch)
    plan = bind_sql(query_texts("tpch")[name], catalog_of(tpch))
    for rule in RULES[: RULES.index(order_joins) + 1]:
        plan = rule(plan, context)
    assert order_joins(plan, context_over(tpch)) is plan


def test_a_hundred_relations_are_ordered(shop):
    plan: Rel = shop.scan("sale")
    for _ in range(99):
        plan = joined(plan, shop.scan("sale"), 0, 0)
    ordered = order_joins(plan, context_over(shop.sources))
    assert len(joins(ordered)) == 99
    assert 10_000 < context_over(shop.sources).estimates.rows(ordered) < 40_000


def test_the_smaller_side_is_built(shop):
    plan = joined(shop.scan("shop"), shop.scan("sale"), 0, 3)
    ordered = order_joins(plan, context_over(shop.sources))
    assert tables_of(joins(ordered)[0].right) == {"shop"}
    check_same(shop, plan, ordered)
