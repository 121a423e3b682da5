"""The entrance: parameters, other dialects, names of results, what is shared, and the catalog."""

from __future__ import annotations

import datetime
import itertools
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import duckdb
import pytest
from support import null_tables
from support.ir_to_sql import to_sql
from support.rows import difference

from bireme.data.schema import Schema
from bireme.data.types import FLOAT64, HUGEINT, INT32, INT64, STRING, Field, decimal
from bireme.errors import ArgumentFault, NameFault, SyntaxFault, Unsupported
from bireme.frontend.catalog import Table, TableCatalog
from bireme.frontend.sql import bind_sql
from bireme.plan import tree
from bireme.plan.expr import Call, Literal
from bireme.plan.relation import Aggregate, Filter, Project, Rel, Scan, Values


@pytest.fixture(scope="module")
def connection():
    with null_tables.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def catalog(connection: duckdb.DuckDBPyConnection) -> TableCatalog:
    return null_tables.catalog(connection)


def literals(plan: Rel) -> list[Literal]:
    return [
        part
        for rel in tree.relations(plan)
        for expr in tree.operands(rel)
        for part in tree.walk(expr)
        if isinstance(part, Literal)
    ]


def test_texts_are_read_on_several_threads_and_after_faults(catalog: TableCatalog) -> None:
    def reads(number: int) -> bool:
        text = f"SELECT a + {number} AS x{number} FROM t WHERE s = 'y{number}'"
        expected = bind_sql(text, catalog)
        for _ in range(20):
            with pytest.raises(SyntaxFault):
                bind_sql(f"SELECT ((a + {number} FROM t", catalog)
            if bind_sql(text, catalog) is not expected or expected.schema.names != (f"x{number}",):
                return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(reads, range(16)))


class _Changing:
    """A catalog of one table that is another one whenever it is asked for."""

    def __init__(self) -> None:
        self.versions = itertools.count()

    def find(self, name: str) -> Table | None:
        return Table(name, f"version{next(self.versions)}", Schema((Field("a", INT64),)))

    def names(self) -> list[str]:
        return []

    def values(self, plan: Rel) -> list[object]:
        return []


def test_a_statement_sees_one_version_of_a_table() -> None:
    plan = bind_sql("SELECT x.a FROM t AS x, t AS y WHERE EXISTS (SELECT * FROM t)", _Changing())
    assert {rel.version for rel in tree.relations(plan) if isinstance(rel, Scan)} == {"version0"}


def test_question_marks_take_values_in_the_order_of_the_text(catalog: TableCatalog) -> None:
    plan = bind_sql("SELECT ? AS x FROM t WHERE a = ? AND s = (SELECT ? AS w)", catalog, parameters=[7, 1, "one"])
    assert plan is bind_sql("SELECT 7 AS x FROM t WHERE a = 1 AND s = (SELECT 'one' AS w)", catalog)


def test_a_parameter_may_be_cast_at_once(catalog: TableCatalog) -> None:
    plan = bind_sql("SELECT ?::bigint AS x, ? AS y", catalog, parameters=[7, "z"])
    assert plan is bind_sql("SELECT 7::bigint AS x, 'z' AS y", catalog)


def test_a_limit_may_be_larger_than_any_table(catalog: TableCatalog) -> None:
    assert bind_sql(f"SELECT a FROM t LIMIT {10**30}", catalog).schema.names == ("a",)


def test_numbers_and_names_of_parameters(catalog: TableCatalog) -> None:
    wanted = bind_sql("SELECT 'x' AS x FROM t WHERE a = 1", catalog)
    assert bind_sql("SELECT $2 AS x FROM t WHERE a = $1", catalog, parameters=[1, "x"]) is wanted
    assert (
        bind_sql("SELECT $word AS x FROM t WHERE a = $number", catalog, parameters={"number": 1, "word": "x"}) is wanted
    )


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, INT32), (-(2**31) + 1, INT32), (2**40, INT64), (2**70, HUGEINT), (1.5, FLOAT64), ("x", STRING),
        (Decimal("1.50"), decimal(3, 2)), (Decimal("1E+3"), decimal(4, 0)), (Decimal("0.001"), decimal(3, 3)),
    ],
)  # fmt: skip
def test_types_of_parameters(catalog: TableCatalog, value: object, kind: object) -> None:
    plan = bind_sql("SELECT ? AS x", catalog, parameters=[value])
    assert plan.schema[0].type is kind


@pytest.mark.parametrize(
    "value", [None, True, b"ab", datetime.date(2020, 1, 1), datetime.time(1, 2), datetime.datetime.now()]
)
def test_values_of_parameters_are_kept(catalog: TableCatalog, value: object) -> None:
    plan = bind_sql("SELECT ? AS x", catalog, parameters=[value])
    assert isinstance(plan, Project)
    assert isinstance(plan.exprs[0], Literal)
    assert plan.exprs[0].value == value


@pytest.mark.parametrize(
    ("text", "parameters", "words"),
    [
        ("SELECT ?", None, "no values are given"),
        ("SELECT ?, ?", [1], "parameter 2"),
        ("SELECT $0", [1], "parameter 0"),
        ("SELECT ?", [1, 2], "has 1 parameters, and 2 values"),
        ("SELECT 1", [1], "has 0 parameters"),
        ("SELECT $name", {"other": 1}, "'name'"),
        ("SELECT $name", [1], "a sequence is given"),
        ("SELECT ?", [object()], "cannot be a object"),
        ("SELECT ?", [Decimal("NaN")], "cannot be a Decimal"),
    ],
)
def test_wrong_parameters(catalog: TableCatalog, text: str, parameters: object, words: str) -> None:
    with pytest.raises(ArgumentFault, match=words):
        bind_sql(text, catalog, parameters=parameters)


@pytest.mark.parametrize(
    ("dialect", "text", "same"),
    [
        ("postgres", "SELECT a::text FROM t", "SELECT CAST(a AS TEXT) FROM t"),
        ("mysql", "SELECT `a` FROM `t` LIMIT 1, 2", 'SELECT "a" FROM "t" LIMIT 2 OFFSET 1'),
        ("bigquery", "SELECT SAFE_CAST(s AS INT64) AS n FROM t", "SELECT TRY_CAST(s AS BIGINT) AS n FROM t"),
        ("spark", "SELECT a FROM t ORDER BY a DESC", "SELECT a FROM t ORDER BY a DESC"),
    ],
)
def test_other_dialects(
    catalog: TableCatalog, connection: duckdb.DuckDBPyConnection, dialect: str, text: str, same: str
) -> None:
    expected = connection.execute(same).fetchall()
    actual = connection.execute(to_sql(bind_sql(text, catalog, dialect=dialect))).fetchall()
    assert difference(expected, actual) is None


def test_wrong_dialects(catalog: TableCatalog) -> None:
    with pytest.raises(ArgumentFault, match="unknown SQL dialect"):
        bind_sql("SELECT 1", catalog, dialect="klingon")
    with pytest.raises(SyntaxFault):
        bind_sql("SELECT `a FROM t", catalog, dialect="mysql")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT A, t.B, s AS Name FROM t", ("a", "b", "Name")),
        ("SELECT sum( a ),  count(*) , a+1 FROM t GROUP BY a", ("sum( a )", "count(*)", "a+1")),
        ("SELECT CASE WHEN a = 1 THEN 2 END, CAST(a AS bigint), a IS NULL, -a FROM t", None),
        ("SELECT (SELECT max(c) FROM u WHERE u.a = t.a), extract(year FROM d) FROM t", None),
        ("SELECT DISTINCT upper(s) FROM t", ("upper(s)",)),
        ("SELECT * FROM (VALUES (1, 2))", ("col0", "col1")),
        ('SELECT a AS "Ä ö" FROM t UNION SELECT 1', ("Ä ö",)),
        ("SELECT a, a FROM t", ("a", "a")),
    ],
)
def test_names_of_results(catalog: TableCatalog, text: str, names: tuple[str, ...] | None) -> None:
    found = bind_sql(text, catalog).schema.names
    if names is None:
        inside = text.removeprefix("SELECT ").removesuffix(" FROM t")
        assert ", ".join(found) == inside
    else:
        assert found == names


def test_equal_texts_are_one_plan_and_common_tables_are_shared(catalog: TableCatalog) -> None:
    text = "WITH q AS (SELECT a, sum(b) AS n FROM t GROUP BY a) SELECT * FROM q x JOIN q y ON x.n = y.n"
    plan = bind_sql(text, catalog)
    assert bind_sql(f"  {text} -- again", catalog) is plan
    aggregates = [rel for rel in tree.relations(plan) if isinstance(rel, Aggregate)]
    assert len(aggregates) == 1


def test_a_query_keeps_the_version_of_its_tables() -> None:
    schema = Schema((Field("a", INT32),))
    plans = [bind_sql("SELECT a FROM x", TableCatalog({"X": (version, schema)})) for version in ("1", "2")]
    scans = [rel for plan in plans for rel in tree.relations(plan) if isinstance(rel, Scan)]
    assert [(scan.table, scan.version) for scan in scans] == [("X", "1"), ("X", "2")]


def test_tables_of_a_catalog_are_found_without_regard_to_case() -> None:
    catalog = TableCatalog({"Orders": ("1", Schema(()))})
    table = catalog.find("ORDERS")
    assert table is not None
    assert table.name == "Orders"
    assert catalog.find("orders2") is None
    assert list(catalog.names()) == ["Orders"]


def test_a_dotted_name_is_asked_of_the_catalog() -> None:
    catalog = TableCatalog({"main.x": ("1", Schema((Field("a", INT32),)))})
    assert bind_sql("SELECT x.a FROM main.x", catalog).schema.names == ("a",)
    with pytest.raises(NameFault, match=r"other\.x"):
        bind_sql("SELECT a FROM other.x", catalog)


def test_constants_are_values(catalog: TableCatalog) -> None:
    plan = bind_sql("VALUES (1, 'a'), (-2, NULL)", catalog)
    assert isinstance(plan, Values)
    assert [[cell.value for cell in row] for row in plan.rows] == [[1, "a"], [-2, None]]


def test_long_conditions_are_flat(catalog: TableCatalog) -> None:
    plan = bind_sql("SELECT a FROM t WHERE a = 1 AND (b = 2 AND s = 'x') AND d IS NULL", catalog)
    assert isinstance(plan, Project)
    assert isinstance(plan.input, Filter)
    assert isinstance(plan.input.predicate, Call)
    assert len(plan.input.predicate.args) == 4


@pytest.mark.parametrize(
    "text", ["DROP TABLE t", "CREATE TABLE x AS SELECT 1", "PRAGMA x", "SET a = 1", "EXPLAIN SELECT 1"]
)
def test_only_queries_are_bound(catalog: TableCatalog, text: str) -> None:
    with pytest.raises(Unsupported, match="only queries"):
        bind_sql(text, catalog)


def test_aliases_that_build_on_each_other_are_bound_once(catalog: TableCatalog) -> None:
    chain = ", ".join(f"x{i} + x{i} + x{i} AS x{i + 1}" for i in range(40))
    plan = bind_sql(f"SELECT a AS x0, {chain} FROM t", catalog)
    assert len(plan.schema) == 41
