"""Functions of texts in JSON against DuckDB: drawn documents and paths, written in every way, and what is malformed."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.batches import schema_of
from support.drawn import drawn
from support.duck import Duck, difference, values_of

import bireme as bm
from bireme.backends.base import Kernels
from bireme.data import types as t
from bireme.errors import ConversionFault, DomainFault, QueryError
from bireme.plan import functions
from bireme.plan.expr import Column

DOC, PATH = Column(0, t.STRING), Column(1, t.STRING)
OF_PATHS = "json_extract", "json_extract_string", "json_value", "json_type", "json_array_length", "json_exists"
OF_TEXTS = "json", "json_type", "json_array_length", "json_valid"
PATHS = [
    *("", "$", "a", "a.b", "$.a", "$.a.b", '$."a.b"', "$.b[0]", "$.b[-1]", "$[0]", "$[-1]", "$[1][0]", "$[#-1]"),
    *("/a", "/a/0", "/0", "/1/b", "/a~1b", "/m~0n", "/-1", "é", "$.é", "$.a b", "$.b[99]", "$.b[-99]", "$[18]"),
    *("$. a", "$[#-2].a"),
]  # fmt: skip
KEYS = st.sampled_from(["a", "b", "a.b", "a/b", "m~n", "é", "0", "1", "a b", "", 'q"', "\n"])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.sampled_from([0, -1, 1 << 63, 1 << 64, -(1 << 63), -(1 << 63) - 1]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e20, 1e21, 1e-6, 1e-7, -0.0, 5e-324, 1.5e300, 100.0, 12345678.125, 0.1]),
    st.text(max_size=6),
    st.sampled_from(['"', "\\", "/", "\b\f\n\r\t", "\x01\x1f\x7f", "😀", "ü" * 9, "a,]}"]),
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A document, written as people and programs do."""
    value = draw(VALUES)
    indent = draw(st.sampled_from([None, 0, 2]))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=indent)
    around = draw(st.sampled_from(["", " ", "\n\t\r "]))
    return f"{around}{text}{around}"


def evaluated(backend: Kernels, batch: pa.RecordBatch, exprs: dict[str, Any]) -> pa.RecordBatch:
    names = list(exprs)
    program = backend.program(
        schema_of((t.STRING, t.STRING)[: batch.num_columns]), predicate=None, exprs=list(exprs.values()), names=names
    )
    return program.run(batch)


@drawn(60)
@given(rows=st.lists(st.tuples(texts(), st.sampled_from(PATHS)) | st.just((None, "$")), min_size=1, max_size=12))
def test_parts_as_in_duckdb(backend: Kernels, duck: Duck, rows: list[tuple[str | None, str]]) -> None:
    batch = pa.record_batch([pa.array([row[place] for row in rows], pa.string()) for place in (0, 1)], ["c0", "c1"])
    calls = {name: functions.scalar(name, [DOC, PATH]) for name in OF_PATHS}
    calls |= {f"{name}1": functions.scalar(name, [DOC]) for name in OF_TEXTS}
    sql = [f"{name}(c0, c1)" for name in OF_PATHS] + [f"{name}(c0)" for name in OF_TEXTS]
    wanted = list(zip(*duck.query(f"select {', '.join(sql)} from t", batch), strict=True))
    got = evaluated(backend, batch, calls)
    for name, column, values in zip(calls, got.columns, wanted, strict=True):
        found = difference(values_of(column), list(values))
        assert not found, f"{name}: {found} of {rows}"


SPELLINGS = [
    *("[1,]", '{"a":1,}', "[NaN, -Infinity, inf]", "[-0, -0.0, 0.1e1, 1E5, 1e400, -1.5e-7]", '{"a":1,"a":2}'),
    *('["\\ud83d\\ude00"]', '{"\\u0061":3}', "  7  ", '"x"', "null", '{"a":{"b":[true,false,null]}}', "[[],{}]"),
    *('["\\/\\u00e9"]', "[nan]"),
    *('[ "a\\\\" , "," ]', '{"a" : [ 1 , 2 , ] , }'),
]  # fmt: skip
MALFORMED = [
    *("", "  ", "{", "[", "[1", "[1 2]", "{a:1}", "{'a':1}", '{"a"}', '{"a":}', "[1] x", "01", "+1", ".5", "1.", "1e"),
    *("-", "tru", '"', '"\\x"', '"\\u12"', '["\\ud83d"]', '["\\ude00"]', '"a\nb"', "[,]", "{,}", "nul", "[1]]", "//c"),
    *("[1,,2]", '{"a":1 "b":2}'),
]  # fmt: skip


@pytest.mark.parametrize("text", SPELLINGS)
def test_every_spelling_as_in_duckdb(backend: Kernels, duck: Duck, text: str) -> None:
    paths = ["$", "$.a", "$[0]", "$[1]", "$[2]", "$[-1]", "$.a.b[1]"]
    batch = pa.record_batch([pa.array([text] * len(paths)), pa.array(paths)], ["c0", "c1"])
    calls = {name: functions.scalar(name, [DOC, PATH]) for name in OF_PATHS}
    wanted = duck.query(f"select {', '.join(f'{name}(c0, c1)' for name in OF_PATHS)} from t", batch)
    got = evaluated(backend, batch, calls)
    assert [tuple(row.values()) for row in got.to_pylist()] == [tuple(row) for row in wanted]


@pytest.mark.parametrize("text", MALFORMED)
def test_what_is_malformed_is_an_error(backend: Kernels, duck: Duck, text: str) -> None:
    batch = pa.record_batch([pa.array([text, None])], ["c0"])
    assert duck.query("select json_valid(c0) from t", batch)[0][0] is False
    assert evaluated(backend, batch, {"v": functions.scalar("json_valid", [DOC])}).column(0).to_pylist() == [
        False,
        None,
    ]
    for name in ("json", "json_type", "json_checked"):
        with pytest.raises(ConversionFault, match="no JSON"):
            evaluated(backend, batch, {"v": functions.scalar(name, [DOC])})


@pytest.mark.parametrize("depth", [150, 250, 100_000])
def test_deep_texts_are_parts_or_errors(backend: Kernels, depth: int) -> None:
    batch = pa.record_batch([pa.array(["[" * depth + "]" * depth])], ["c0"])
    call = {"v": functions.scalar("json_valid", [DOC])}
    assert evaluated(backend, batch, call).column(0).to_pylist() == [depth <= 200]


@pytest.mark.parametrize("path", ["$a", "$.", "$[", "$[]", "$[x]", "$[*]", "$.*", "$..a", '$."a', "$.a.", "$[#]"])
def test_paths_that_are_none_are_errors(backend: Kernels, path: str) -> None:
    batch = pa.record_batch([pa.array(["[]"]), pa.array([path])], ["c0", "c1"])
    with pytest.raises(DomainFault, match="path"):
        evaluated(backend, batch, {"v": functions.scalar("json_extract", [DOC, PATH])})
    with bm.connect() as session, pytest.raises(QueryError, match="path"):
        session.sql(f"select json_extract('[]', '{path}')")


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("select doc->'a'->'b'->0 from t", ["1", None]),
        ("select doc->>'$.a.b[-1]' from t", ["x", None]),
        ("select (doc->>'n')::int + 1 from t", [6, None]),
        ("select doc->'x.y' from t", ["7", None]),
        ("select count(*) from t where doc->>'n' = '5'", [1]),
        ("select json_extract_path_text(doc, '/a/b/1') from t", ["x", None]),
        ("select ('{\"k\": ' || 3 || '}')::json->>'k'", ["3"]),
        ("select try_cast('{' as json)", [None]),
        ("select doc->'a'->'b'->>-1 from t", ["x", None]),
        ("select list_transform([1, 2], x -> x + 1)", [[2, 3]]),
    ],
)
def test_arrows_in_sql(sql: str, wanted: list[Any]) -> None:
    with bm.connect() as session:
        session.register("t", pa.table({"doc": ['{"a": {"b": [1, "x"]}, "n": 5, "x.y": 7}', None]}))
        assert session.sql(sql).collect().column(0).to_pylist() == wanted


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select 5->'a'", "json_extract"),
        ("select '{'::json", "no JSON"),
        ("select 5::json", "only texts"),
        ("select '[1]'->'$[*]'", "several places"),
        ("select json_extract('{}')", "json_extract"),
    ],
)
def test_refusals_in_sql(sql: str, message: str) -> None:
    with bm.connect() as session, pytest.raises((QueryError, ConversionFault), match=message):
        session.sql(sql).collect()
