"""The binder accounts for every argument of every syntax node: what it does not know it refuses, the rest it reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlglot.parser
from sqlglot import expressions as exp
from support import null_tables
from support.tpc_data import QUERIES as FOLDER

from bireme.errors import QueryError, Unsupported
from bireme.frontend.catalog import TableCatalog
from bireme.frontend.sql import binder
from bireme.frontend.sql.binder import HANDLERS, bind_tree
from bireme.frontend.sql.parse import Parsed, parse
from bireme.frontend.sql.subquery import QUERY_ARGUMENTS

# Arguments that change nothing in what a query means here, and why.
MEANINGLESS = {
    ("Div", "typed"): "says how the dialect divides; ours is DuckDB's",
    ("Div", "safe"): "as above",
    ("DPipe", "safe"): "says that || casts; ours does",
    ("Concat", "coalesce"): "a run of string literals has no NULLs",
    ("CTE", "materialized"): "a matter of speed",
    ("With", "recursive"): "matters where a table reads itself, which is refused by itself",
    ("DataType", "nested"): "follows from the type",
    ("TryCast", "safe"): "what TRY_CAST is",
    ("Cast", "safe"): "set with TRY_CAST only",
    ("Fetch", "direction"): "FIRST and NEXT are synonyms",
    ("LimitOptions", "rows"): "ROW and ROWS are noise words",
    ("Identifier", "quoted"): "names are compared without case, quoted or not, as in DuckDB",
    ("Identifier", "global_"): "tells nothing that the parser sets in DuckDB's dialect",
    ("Identifier", "temporary"): "as above",
    ("Lateral", "outer"): "False without VIEW",
    ("Lateral", "view"): "as above",
    ("Ordered", "nulls_first"): "set by NULLS LAST to what is the default",
    ("Ordered", "desc"): "set by ASC to what is the default",
    ("Placeholder", "kind"): "set in other dialects",
    ("Interval", "fraction_in_string"): "says how fractions of a unit are read, so it matters for these only",
    ("Array", "value_constructor"): "tells ARRAY[query] from ARRAY(query), so it matters for one query only",
    ("Literal", "is_string"): "a string constant is the number where a number is meant",
}
QUERIES = null_tables.small_queries()
MORE = [
    "SELECT a FROM t WHERE a = ?",
    "SELECT a FROM t FETCH FIRST 2 ROWS ONLY",
    "SELECT a FROM t LIMIT ALL",
    "SELECT $$raw$$",
    "SELECT @a FROM t",
]


@pytest.fixture(scope="module")
def catalog() -> TableCatalog:
    with null_tables.connect() as connection:
        return null_tables.catalog(connection)


def binds(parsed: Parsed, catalog: TableCatalog) -> Any:
    asks = any(token.token_type.name == "PLACEHOLDER" for token in parsed.tokens)
    return bind_tree(parsed, catalog, parameters=[1] if asks else None)


def specimens() -> dict[str, tuple[str, int]]:
    """For each type of node that queries have: a query and the node's place in a walk through its tree."""
    found: dict[str, tuple[str, int]] = {}
    for text in [*MORE, *QUERIES]:
        for place, node in enumerate(parse(text).tree.walk()):
            found.setdefault(type(node).__name__, (text, place))
    return found


def mutations() -> list[tuple[str, str]]:
    return [
        (kind, name)
        for kind, (text, place) in specimens().items()
        for name, value in _arguments(text, place).items()
        if not value and (kind, name) not in MEANINGLESS
    ]


def _arguments(text: str, place: int) -> dict[str, Any]:
    node = list(parse(text).tree.walk())[place]
    return {name: node.args.get(name) for name in node.arg_types}


@pytest.mark.parametrize(("kind", "name"), mutations())
def test_an_argument_more_is_never_skipped(catalog: TableCatalog, kind: str, name: str) -> None:
    text, place = specimens_once()[kind]
    plan = binds(parse(text), catalog)
    parsed = parse(text)
    node = list(parsed.tree.walk())[place]
    node.args[name] = exp.Var(this="surprise")
    try:
        changed = binds(parsed, catalog)
    except (QueryError, AttributeError, TypeError, ValueError, KeyError):
        return
    assert changed is not plan, f"{kind}.{name} was skipped"


_SPECIMENS: dict[str, tuple[str, int]] = {}


def specimens_once() -> dict[str, tuple[str, int]]:
    if not _SPECIMENS:
        _SPECIMENS.update(specimens())
    return _SPECIMENS


class Watched(dict[str, Any]):
    """Arguments that remember which of them were read."""

    def __init__(self, args: dict[str, Any]) -> None:
        super().__init__(args)
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)


def unread(text: str, catalog: TableCatalog) -> list[str]:
    parsed = parse(text)
    nodes = list(parsed.tree.walk())
    for node in nodes:
        node.args = Watched(node.args)
    binds(parsed, catalog)
    return [
        f"{type(node).__name__}.{name}"
        for node in nodes
        for name, value in node.args.items()
        if value not in (None, [], False)
        and name not in node.args.read
        and (type(node).__name__, name) not in MEANINGLESS
    ]


# Compiled code reads a dict without asking its methods, so nothing can be watched there; a process of its own, with
# sqlglot's plain modules, watches then (the last test here).
COMPILED = not sqlglot.parser.__file__.endswith(".py")
watchable = pytest.mark.skipif(COMPILED, reason="sqlglot is compiled; a process without that runs this")


@watchable
@pytest.mark.parametrize("text", [*MORE, *QUERIES])
def test_every_argument_that_is_set_is_read(catalog: TableCatalog, text: str) -> None:
    assert unread(text, catalog) == []


@pytest.mark.parametrize("kind", [kind for kind in HANDLERS if kind not in QUERY_ARGUMENTS])
def test_an_unknown_argument_of_an_expression_is_refused_by_name(catalog: TableCatalog, kind: type[exp.Expr]) -> None:
    known = HANDLERS[kind][1]
    for name in kind.arg_types.keys() - known:
        tree = exp.Select(expressions=[kind(**{name: exp.Var(this="surprise")})])
        with pytest.raises(Unsupported):
            bind_tree(Parsed(tree, "SELECT surprise", []), catalog)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t TABLESAMPLE BERNOULLI (3 ROWS)",
        "SELECT a FROM t TABLESAMPLE BUCKET (3)",
        "SELECT a FROM t ORDER BY a FETCH FIRST 10 PERCENT ROWS ONLY",
        "SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES",
        "SELECT a FROM t FOR UPDATE",
        "SELECT count(DISTINCT a) OVER (ORDER BY b ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) FROM t",
        "SELECT quantile_cont(0.5) WITHIN GROUP (ORDER BY a DESC) FROM t",
        "SELECT sum(a IGNORE NULLS) FROM t",
        "SELECT a FROM t GROUP BY DISTINCT a",
        "SELECT * FROM t PIVOT (sum(a) FOR s IN (SELECT s FROM u))",
        "SELECT * FROM t PIVOT (sum(a) FOR s IN (ANY))",
        "SELECT * FROM t PIVOT (sum(a) FOR s IN ('one') DEFAULT ON NULL (0))",
        "SELECT * FROM t PIVOT (sum(a) FOR s IN ('one')) PIVOT (sum(b) FOR a IN (1))",
        "PIVOT t ON s USING sum(a)",
        "SELECT * FROM t AT (VERSION => 1)",
        "SELECT a FROM t BETWEEN SYMMETRIC 1 AND 2",
        "SELECT a BETWEEN SYMMETRIC 3 AND 1 FROM t",
        "SELECT string_agg(s, ',' LIMIT 1) FROM t",
        "SELECT x -> 1 FROM t",
        "SELECT a[1] FROM t",
        "SELECT a FROM t WHERE s COLLATE nocase = 'a'",
        "SELECT a INTO z FROM t",
        "SELECT f(x := 1) FROM t",
        "SELECT a FROM ONLY t",
        "SELECT a FROM t WITH ORDINALITY",
    ],
)
def test_what_is_not_offered_is_refused(catalog: TableCatalog, text: str) -> None:
    with pytest.raises(QueryError) as raised:
        binder.bind_sql(text, catalog)
    assert raised.value.message


@watchable
def test_benchmark_queries_are_read_whole() -> None:
    from support.tpc_data import catalog, query_texts, tpcds_folder, tpch_folder

    assert FOLDER.is_dir()
    for suite, folder in (("tpch", tpch_folder()), ("tpcds", tpcds_folder())):
        known = catalog(folder)
        lost = {name: missed for name, text in query_texts(suite).items() if (missed := unread(text, known))}
        assert not lost


@pytest.mark.skipif(not COMPILED, reason="sqlglot is plain here already")
def test_what_can_only_be_watched_with_plain_modules(tmp_path: Path) -> None:
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(Path(sqlglot.__file__).parent, tmp_path / "sqlglot", ignore=compiled)
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "read"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "is compiled" not in done.stdout
