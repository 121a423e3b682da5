"""Lookups: which scans ask which join tables, and that dropping everything they allow changes no answer."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from support.drawn import drawn
from support.ir_to_sql import to_sql
from support.nested_queries import TABLES, nested_queries
from support.random_plans import plans
from support.rows import difference
from support.tpc_data import query_texts, tables, tpcds_folder, tpch_folder

import bireme as bm
from bireme.data.node import replaced
from bireme.operators.stage import PipelineStage
from bireme.plan import lookups, share_filtered, share_scans
from bireme.plan.physical import Lookup, ScanSource
from bireme.plan.verify_physical import complaints, verify_dag
from bireme.plan.wire import to_json
from bireme.session.planning import Planner

NESTED = list(nested_queries())
STRIDE = 197


class _Asked:
    """A split that gives only the rows that every lookup of its scan knows, and counts what it dropped."""

    dropped = 0

    def __init__(self, split, source: ScanSource, states) -> None:
        self._split = split
        self._known = []
        for lookup in source.lookups:
            built = states.table(lookup.table)
            if None in built.key_columns:
                continue  # a computed key
            rows = zip(*[built.batch.column(column).to_pylist() for column in built.key_columns], strict=True)
            self._known.append((lookup.columns, {row for row in rows if None not in row}))

    def encoded(self) -> str:
        return "a test drops rows"

    def decode(self, buffers):
        for batch in self._split.decode(buffers):
            mask = [True] * batch.num_rows
            for columns, known in self._known:
                rows = zip(*[batch.column(column).to_pylist() for column in columns], strict=True)
                mask = [kept and row in known for kept, row in zip(mask, rows, strict=True)]
            _Asked.dropped += mask.count(False)
            yield batch.filter(pa.array(mask, pa.bool_()))


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every lookup that may be asked is asked, and drops all that it may; every Dag is verified."""
    monkeypatch.setattr(lookups, "_SCANNED_MIN", 0)
    monkeypatch.setattr(lookups, "_KEPT_MAX", 1.0 - 1e-12)
    monkeypatch.setattr(lookups, "_KEPT_MAX_WAITING", 1.0)
    monkeypatch.setattr(lookups, "_WAITING_FACTOR", 0.0)
    monkeypatch.setattr(lookups, "_LOOKUPS_MAX", 99)
    monkeypatch.setattr(share_scans, "_SCANNED_MIN", 0)
    monkeypatch.setattr(share_scans, "_KEPT_MAX", 1.0)
    monkeypatch.setattr(share_filtered, "_SCANNED_MIN", 0)
    monkeypatch.setattr(share_filtered, "_KEPT_MAX", 1.0)
    monkeypatch.setattr(_Asked, "dropped", 0)
    run_split, plan = PipelineStage.run_split, Planner.plan

    def asking(self, split, buffers, sequence, slot):
        return run_split(self, _Asked(split, self._pipeline.source, self._states), buffers, sequence, slot)

    def verified(self, rel):
        made = plan(self, rel)
        verify_dag(made[1])
        return made

    monkeypatch.setattr(PipelineStage, "run_split", asking)
    monkeypatch.setattr(Planner, "plan", verified)


Engines = tuple[duckdb.DuckDBPyConnection, "bm.Session"]


@pytest.fixture
def engines(strict: None) -> Iterator[Engines]:
    with duckdb.connect(config={"threads": 1}) as connection, bm.connect(threads=1) as session:
        for name, table in TABLES.items():
            connection.register(name, table)
            session.register(name, table)
        yield connection, session


def check(engines: Engines, text: str, frame: bm.Frame) -> None:
    expected = engines[0].execute(text).fetchall()
    answer = frame.collect()
    actual = list(zip(*[column.to_pylist() for column in answer.columns], strict=True))
    assert difference(expected, actual) is None, text


def test_nested_queries(engines: Engines) -> None:
    for _, text in NESTED[::STRIDE]:
        try:
            engines[0].execute(text)
        except duckdb.Error:
            continue  # some products mean nothing to DuckDB either
        check(engines, text, engines[1].sql(text))
    assert _Asked.dropped > 10


@drawn(50)
@given(plan=plans(depth=4))
def test_drawn_plans(engines: Engines, plan) -> None:
    if plan.schema.fields:
        check(engines, to_sql(plan), engines[1].deserialize(to_json(plan)))


@pytest.fixture(scope="module")
def tpch() -> Iterator[bm.Session]:
    with bm.connect(threads=2) as session:
        for name, path in tables(tpch_folder()).items():
            session.register(name, path)
        yield session


@pytest.mark.parametrize(
    ("suite", "step"),
    [
        ("tpch", 1),
        ("tpcds", 16),
        pytest.param("tpcds", 1, marks=pytest.mark.slow),
    ],
)
def test_benchmark_queries(strict: None, suite: str, step: int) -> None:
    texts = list(query_texts(suite).values())[::step]
    folder = tpch_folder() if suite == "tpch" else tpcds_folder()
    with bm.connect(threads=2) as asking, bm.connect(threads=2, levers="-runtime_filters") as plain:
        for name, path in tables(folder).items():
            asking.register(name, path)
            plain.register(name, path)
        for text in texts:
            expected, actual = plain.sql(text).collect(), asking.sql(text).collect()
            rows = [list(zip(*[c.to_pylist() for c in t.columns], strict=True)) for t in (expected, actual)]
            assert difference(*rows) is None, text
    assert _Asked.dropped > 10_000


# ---------------------------------------------------------------------------------------------------- choices


def asked(session: bm.Session, text: str) -> dict[str, list[str]]:
    """By table scanned, what its scans look up."""
    found: dict[str, list[str]] = {}
    for line in session.sql(text).explain(physical=True).partition("pipeline 0")[2].splitlines():
        if "scan " in line:
            table = line.partition("scan ")[2].split()[0]
        elif line.startswith("  look up "):
            found.setdefault(table, []).append(line.removeprefix("  look up ").partition(" (~")[0])
    return found


def test_a_selective_build_reaches_scans_that_are_not_joined_with_it(tpch: bm.Session) -> None:
    query = """
        select sum(l_extendedprice) from lineitem, part where p_partkey = l_partkey and p_brand = 'Brand#23'
        and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)"""
    assert asked(tpch, query)["lineitem"] == ["(l_partkey) in table0"]
    plan = tpch.sql(query).explain(physical=True).partition("pipeline 0")[2]
    assert plan.count("scan lineitem") == 1
    assert plan.count("«shared» partition") == 2


def scans_of(session: bm.Session, table: str, text: str) -> int:
    return session.sql(text).explain(physical=True).partition("pipeline 0")[2].count(f"scan {table} ")


def test_what_a_query_and_its_subquery_ask_of_a_table_is_asked_once(tpch: bm.Session) -> None:
    few = "l_shipdate = date '1995-03-01' and l_shipmode = 'AIR'"
    query = f"""
        select l_suppkey, count(*) from lineitem where {few} group by l_suppkey
        having count(*) > (select avg(l_quantity) / 1e9 from lineitem where {{}})"""
    assert scans_of(tpch, "lineitem", query.format(few)) == 1
    assert scans_of(tpch, "lineitem", query.format("l_shipdate = date '1995-03-02'")) == 2
    many = "l_shipmode = 'AIR'"  # keeping so much costs more than finding it again
    assert scans_of(tpch, "lineitem", query.replace(few, many).format(many)) == 2
    late = "l_shipdate = (select max(l_shipdate) from lineitem)"  # not known before the query starts
    assert scans_of(tpch, "lineitem", query.replace(few, late).format(late)) > 1


def test_shared_scans_do_not_wait_for_each_other(strict: None) -> None:
    """The scans of a may share what b's build keeps, or those of b what a's build keeps, but not both."""

    def numbers(count: int, step: int, *names: str) -> pa.Table:
        column = pa.array(range(0, count, step), pa.int64())
        return pa.table(dict.fromkeys(("k", *names), column))

    query = """
        select count(*), sum(z) from c where exists (from a where a.k = c.k and x <> z + 1)
        and exists (from b where b.k = c.k and v <> z + 1) and exists (from a where a.k = c.k and y <> z + 2)
        and exists (from b where b.k = c.k and w <> z + 2)"""
    with bm.connect(threads=2) as session:
        session.register("c", numbers(60_000, 1, "z"))
        session.register("a", numbers(9_000, 3, "x", "y"))
        session.register("b", numbers(9_000, 2, "v", "w"))
        (found,) = session.sql(query).collect().to_pylist()
    assert list(found.values()) == [1_500, sum(range(0, 9_000, 6))]


def test_an_outer_join_keeps_its_rows(tpch: bm.Session) -> None:
    few = "(select c_custkey from customer where c_nationkey = 3) c"
    assert "orders" not in asked(tpch, f"select * from orders left join {few} on o_custkey = c_custkey")
    assert "orders" not in asked(tpch, f"select * from orders full join {few} on o_custkey = c_custkey")
    assert "orders" in asked(tpch, f"select * from orders right join {few} on o_custkey = c_custkey")
    assert "orders" not in asked(
        tpch, f"select * from orders where not exists (from {few} where o_custkey = c_custkey)"
    )
    assert "orders" not in asked(tpch, f"select * from orders where o_custkey not in (select c_custkey from {few})")


def test_a_limit_is_not_reached_around(tpch: bm.Session) -> None:
    few = "(select c_custkey from customer where c_nationkey = 3) c"
    many = "(select * from orders order by o_orderdate, o_orderkey limit 5000) o"
    assert "orders" not in asked(tpch, f"select * from {many} join {few} on o_custkey = c_custkey")


def test_lookups_off(tpch: bm.Session) -> None:
    with bm.connect(threads=1, levers="-runtime_filters") as session:
        for name, path in tables(tpch_folder()).items():
            session.register(name, path)
        assert not asked(session, query_texts("tpch")["q03"])
    assert asked(tpch, query_texts("tpch")["q03"])["lineitem"] == ["(l_orderkey) in table1"]


# ------------------------------------------------------------------------------------------------------ checks


def test_a_broken_lookup_is_found(tpch: bm.Session) -> None:
    dag = tpch._planner.plan(tpch.sql(query_texts("tpch")["q03"])._plan)[1]
    verify_dag(dag)
    index = next(p.id for p in dag.pipelines if isinstance(p.source, ScanSource) and p.source.lookups)

    def broken(lookup: Lookup, after) -> list[str]:
        pipeline = dag.pipelines[index]
        read = pipeline.source
        source = ScanSource(read.table, read.version, read.columns, read.filters, (lookup,))
        changed = [*dag.pipelines]
        changed[index] = replaced(pipeline, source=source, after=after)
        return list(complaints(replaced(dag, pipelines=tuple(changed))))

    right, after = dag.pipelines[index].source.lookups[0], dag.pipelines[index].after
    assert not broken(right, after)
    assert any("does not wait" in each for each in broken(right, ()))
    assert any("nobody builds" in each for each in broken(Lookup("table9", right.columns), after))
    assert any("types" in each for each in broken(Lookup(right.table, (2,)), after))
    assert any("reads columns" in each for each in broken(Lookup(right.table, (99,)), after))
