"""Wrong queries: each names its fault, points at the place, and hints at what was probably meant."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import null_tables

from bireme.errors import (
    ArgumentFault,
    ClauseFault,
    NameFault,
    QueryError,
    SyntaxFault,
    TypeFault,
    Unsupported,
)
from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import bind_sql

# The text with the marked part between ‹ and ›, the kind of fault, and words that its message has.
WRONG = [
    ("SELECT a bb ‹cc› FROM t", SyntaxFault, ""),
    ("SELECT a FROM t ‹WHERE›", SyntaxFault, "missing"),
    ("SELECT 'abc", SyntaxFault, "opened and not closed"),
    ('SELECT ‹"›abc FROM t', SyntaxFault, "quoted name"),
    ("SELECT 1 ‹/*› no end", SyntaxFault, "comment"),
    ("SELECT ‹(›1 FROM t", SyntaxFault, "opened and not closed"),
    ("SELECT 1‹)› FROM t", SyntaxFault, "closes nothing"),
    ("SELECT CAST‹(›a AS integer FROM t", SyntaxFault, "opened and not closed"),
    ("SELECT ‹0x10›", SyntaxFault, "not a number"),
    ("SELECT a,‹,› b FROM t", SyntaxFault, "missing before this comma"),
    ("SELECT replace(s, 'o',‹,› 'x') FROM t", SyntaxFault, "missing before this comma"),
    ("SELECT CASE WHEN a = 1 b ‹END› FROM t", SyntaxFault, "no THEN"),
    ("SELECT a FROM t WHERE a IN (‹'1' '2'›)", SyntaxFault, "comma"),
    ("SELECT interval 1 day + ‹5›", SyntaxFault, "its own INTERVAL"),
    ("SELECT interval ‹5› FROM t", SyntaxFault, "needs a unit"),
    ("SELECT a FROM t ‹'x'›", SyntaxFault, "behind a name"),
    ("SELECT d + ‹1 month› FROM t", SyntaxFault, "INTERVAL 1 month"),
    ("SELECT a FROM t WHERE ‹1 < a < 3›", SyntaxFault, "AND"),
    ("SELECT a FROM t ‹GROUP BY›", SyntaxFault, "at least one key"),
    ("SELECT sum(a) OVER (‹PARTITION BY› ORDER BY a) FROM t", SyntaxFault, "at least one key"),
    ("SELECT a BETWEEN ‹1 2› FROM t", SyntaxFault, "operator"),
    ("SELECT a FROM t ‹*›", SyntaxFault, ""),
    ("SELECT 1; SELECT 2", SyntaxFault, "one query at a time"),
    ("", SyntaxFault, "empty"),
    ("-- nothing", SyntaxFault, "empty"),
    ("‹INSERT› INTO t VALUES (1)", Unsupported, "only queries"),
    ("‹SELEC› a FROM t", Unsupported, "SELEC"),
    ("SELECT ‹bx› FROM t, u", NameFault, "no column 'bx'"),
    ("SELECT ‹t.zz› FROM t", NameFault, "'t' has no column 'zz'"),
    ("SELECT ‹word.a› FROM t AS words", NameFault, 'did you mean "words"'),
    ("WITH totals AS (SELECT 1) SELECT * FROM ‹total›", NameFault, 'did you mean "totals"'),
    ("SELECT ‹totl› FROM (SELECT a AS total FROM t)", NameFault, 'did you mean "total"'),
    ("SELECT ‹a› FROM t, u", NameFault, "t.a or u.a"),
    ("SELECT ‹a›", NameFault, "no relation"),
    ("SELECT ‹flor(a)› FROM t", NameFault, 'did you mean "floor"'),
    ("SELECT * FROM t ‹JOIN u USING (zz)›", NameFault, "left side has no column 'zz'"),
    ("SELECT * FROM v ‹NATURAL JOIN w›", NameFault, "CROSS JOIN"),
    ("SELECT sum(a) OVER win FROM t WINDOW wins AS ()", NameFault, 'did you mean "wins"'),
    ("SELECT * EXCLUDE (zz) FROM t", NameFault, "EXCLUDE"),
    ("WITH x AS (SELECT 1), ‹x› AS (SELECT 2) SELECT * FROM x", NameFault, "twice"),
    ("SELECT * FROM t‹, t›", NameFault, "two relations"),
    ("WITH unused AS (SELECT ‹zz› FROM t) SELECT 1", NameFault, "zz"),
    ("SELECT x + 1 AS y, ‹y2› FROM t", NameFault, "y2"),
    ("SELECT a AS k, b AS k FROM t ORDER BY ‹k›", NameFault, "more than once"),
    ("SELECT a AS k, b AS k FROM t WHERE ‹k› = 1", NameFault, "more than once"),
    ("SELECT ‹d > 5› FROM t", TypeFault, "date"),
    ("SELECT sum(s) FROM t", TypeFault, "varchar"),
    ("SELECT ‹a + s› FROM t", TypeFault, "integer + varchar"),
    ("SELECT a FROM t WHERE ‹s›", TypeFault, "WHERE needs a condition"),
    ("SELECT a FROM t WHERE ‹a IN (SELECT s FROM u)›", TypeFault, "subquery"),
    ("SELECT CASE WHEN a = 1 THEN d ELSE a END FROM t", TypeFault, "CASE"),
    ("SELECT a FROM t WHERE ‹sum(a)› > 1", ClauseFault, "use HAVING"),
    ("SELECT a FROM t JOIN u ON ‹max(t.a)› = u.a", ClauseFault, "JOIN"),
    ("SELECT sum(‹max(a)›) FROM t", ClauseFault, "inside an aggregate"),
    ("SELECT sum(‹rank()› OVER ()) FROM t", ClauseFault, "inside an aggregate"),
    ("SELECT a FROM t WHERE ‹row_number()› OVER () = 1", ClauseFault, "QUALIFY"),
    ("SELECT ‹rank()› FROM t", ClauseFault, "OVER"),
    ("SELECT ‹a›, sum(b) FROM t", ClauseFault, "GROUP BY"),
    ("SELECT ‹b› FROM t GROUP BY a", ClauseFault, "'b' must be in GROUP BY"),
    ("SELECT a FROM t GROUP BY a HAVING ‹b› > 1", ClauseFault, "'b' must be in GROUP BY"),
    ("SELECT a FROM t GROUP BY a ORDER BY ‹b›", ClauseFault, "'b' must be in GROUP BY"),
    ("SELECT a FROM t GROUP BY ‹5›", ClauseFault, "1 columns"),
    ("SELECT a FROM t GROUP BY ‹0›", ClauseFault, "1 columns"),
    ("SELECT sum(a) FROM t GROUP BY ‹1›", ClauseFault, "aggregate"),
    ("SELECT a FROM t ORDER BY ‹2›", ClauseFault, "1 columns"),
    ("SELECT a FROM t ORDER BY ‹'a'›", ClauseFault, "constant"),
    ("SELECT DISTINCT a FROM t ORDER BY b", ClauseFault, "DISTINCT"),
    ("SELECT grouping(b) FROM t GROUP BY a", ClauseFault, "grouping()"),
    ("SELECT a FROM t QUALIFY a = 1", ClauseFault, "window function"),
    ("SELECT a FROM t UNION SELECT a, c FROM u", ClauseFault, "1 and 2 columns"),
    ("SELECT a FROM t WHERE ‹a IN (SELECT a, c FROM u)›", ClauseFault, "2 columns"),
    ("SELECT ‹(SELECT a, c FROM u)› FROM t", ClauseFault, "one column"),
    ("SELECT a FROM t LIMIT -‹1›", ClauseFault, "negative"),
    ("SELECT a FROM t LIMIT ‹1.5›", ClauseFault, "whole number"),
    ("VALUES (1, 2), (3)", ClauseFault, "different numbers"),
    ("SELECT * FROM (SELECT a FROM t) ‹q(x, y)›", ClauseFault, "1 columns"),
    ("SELECT * FROM t ‹JOIN u›", ClauseFault, "ON or USING"),
    ("SELECT * FROM t ‹LEFT JOIN u›", ClauseFault, "ON or USING"),
    ("SELECT sum(a) OVER (ROWS BETWEEN CURRENT ROW AND ‹1› PRECEDING) FROM t", ClauseFault, "frame"),
    ("SELECT sum(a) OVER (RANGE 1 PRECEDING) FROM t", ClauseFault, "ORDER BY of one"),
    ("SELECT sum(a) OVER (ROWS -1 PRECEDING) FROM t", ClauseFault, "negative"),
    ("SELECT upper(DISTINCT s) FROM t", ClauseFault, "DISTINCT goes with aggregates"),
    ("SELECT upper(s) OVER () FROM t", ClauseFault, "takes no OVER"),
    ("SELECT t.a FROM t, (SELECT 1 AS o) q RIGHT JOIN LATERAL (SELECT q.o) l ON true", ClauseFault, "left side"),
    ("WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT * FROM ‹x›) SELECT * FROM x", Unsupported, "RECURSIVE"),
    ("SELECT a FROM t WHERE (SELECT ‹max(t.a)› FROM u) > 1", ClauseFault, "use HAVING"),
    ("SELECT t.a FROM t, LATERAL (SELECT ‹max(t.a)›) l", ClauseFault, "LATERAL"),
    ("SELECT (SELECT ‹sum(max(t.a))› FROM u) FROM t", ClauseFault, "of the outer query"),
    ("SELECT ‹b›, (SELECT max(t.a)) FROM t", ClauseFault, "'b' must be in GROUP BY"),
    ("SELECT rank() OVER (ORDER BY a) AS k, (SELECT ‹k›) FROM t", ClauseFault, "no subquery beside it"),
    ("SELECT ‹main.t.zz› FROM t", NameFault, "'t' has no column 'zz'"),
    ("SELECT ‹main.x.a› FROM main.t x", NameFault, "write x.a"),
    ("SELECT ‹main.z.a› FROM t", NameFault, "no relation 'z'"),
    ("SELECT * FROM ‹main.tt›", NameFault, "no table 'main.tt'"),
    ("SELECT * FROM ‹other.t›", NameFault, "no table 'other.t'"),
    ("SELECT * FROM ‹read_csv('x')›", Unsupported, "table function"),
    ("SELECT * FROM t ‹ASOF FULL JOIN v ON t.a = v.a›", ClauseFault, "one inequality"),
    ("SELECT a FROM t LIMIT (SELECT ‹2›)", Unsupported, "nothing can run here"),
    ("SELECT a FROM t WHERE b IN (SELECT c FROM u LIMIT ‹t.a›)", Unsupported, "query around it"),
    ("SELECT #7 FROM t", NameFault, "FROM has 6"),
    ("SELECT * EXCLUDE (a, b, a) FROM t", ClauseFault, "name 'a' twice"),
    ("SELECT * EXCLUDE (a) REPLACE (b + 1 AS b, 1 AS a) FROM t", ClauseFault, "name 'a' twice"),
    ("SELECT a FROM t ORDER BY true", ClauseFault, "no effect"),
    ("SELECT ‹rank(ORDER BY a)› OVER () FROM t", SyntaxFault, "missing"),
    ("SELECT ‹lead(a ORDER BY b) OVER ()› FROM t", Unsupported, "order the window"),
    ("SELECT a FROM t TABLESAMPLE ‹150%›", ClauseFault, "from 0 to 100"),
    ("SELECT a FROM t TABLESAMPLE ‹BERNOULLI (3 ROWS)›", ClauseFault, "RESERVOIR"),
    ("SELECT a FROM t LIMIT ‹150›%", ClauseFault, "from 0 to 100"),
    ("SELECT a FROM t LIMIT ‹-1›%", ClauseFault, "from 0 to 100"),
    ("SELECT a FROM t WHERE a = ?", ArgumentFault, "no values are given"),
]


@pytest.fixture(scope="module")
def catalog() -> TableCatalog:
    with null_tables.connect() as connection:
        return null_tables.catalog(connection)


def fault(text: str, catalog: TableCatalog, **options: object) -> QueryError:
    with pytest.raises(QueryError) as raised:
        bind_sql(text, catalog, **options)
    return raised.value


@pytest.mark.parametrize(("marked", "kind", "words"), WRONG)
def test_a_wrong_query_says_what_and_where(
    catalog: TableCatalog, marked: str, kind: type[QueryError], words: str
) -> None:
    text = marked.replace("‹", "").replace("›", "")
    error = fault(text, catalog)
    assert type(error) is kind, error
    assert words in error.message
    if "‹" not in marked:
        return
    assert error.position is not None, error
    found = text[error.position.start : error.position.end]
    assert found
    assert marked.index("‹") <= error.position.start, f"{found!r} is marked"
    assert error.position.end <= marked.index("›") - 1, f"{found!r} is marked"
    assert "^" in str(error)


def test_line_and_column_are_those_of_the_text(catalog: TableCatalog) -> None:
    error = fault("SELECT a,\n       zz\nFROM t", catalog)
    assert str(error).splitlines()[1:] == ["line 2:8         zz", "                 ^^"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda depth: "SELECT " + "(" * depth + "1" + ")" * depth, "nested too deeply"),
        (lambda depth: "SELECT " + "abs(" * depth + "1" + ")" * depth, "nested too deeply"),
        (lambda depth: "SELECT * FROM " + "(SELECT * FROM " * depth + "t" + ") q" * depth, "nested too deeply"),
        (lambda depth: "SELECT " + " + ".join(["1"] * depth), "nested too deeply"),
        (lambda depth: "SELECT " + "- " * depth + "1", "nested too deeply"),
        (lambda depth: "SELECT " + "NOT " * depth + "true", "nested too deeply"),
        (lambda depth: "SELECT " + "CASE WHEN true THEN " * depth + "1" + " END" * depth, "nested too deeply"),
    ],
)
def test_what_is_nested_too_deeply_is_a_named_fault(
    catalog: TableCatalog, change: Callable[[int], str], words: str
) -> None:
    assert words in fault(change(2000), catalog).message


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t WHERE " + " OR ".join(f"a = {n}" for n in range(1000)),
        "SELECT a FROM t WHERE " + " AND ".join(f"a <> {n}" for n in range(1000)),
        "SELECT a FROM t WHERE a IN (" + ", ".join(str(n) for n in range(5000)) + ")",
        " UNION ALL ".join(f"SELECT {n} AS n" for n in range(300)),
        "VALUES " + ", ".join(f"({n})" for n in range(1500)),
        "SELECT " + ", ".join(f"a AS a{n}" for n in range(1000)) + " FROM t",
    ],
)
def test_what_is_only_long_is_fine(catalog: TableCatalog, text: str) -> None:
    assert bind_sql(text, catalog).schema
