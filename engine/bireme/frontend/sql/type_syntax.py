"""Types as the parser gives them, turned into ours. What names of types there are is in `plan.functions`."""

from __future__ import annotations

from typing import Any, Final

from sqlglot.expressions import DataType as TypeSyntax
from sqlglot.expressions import DType

from bireme.data import types as t
from bireme.errors import Unsupported
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan import functions

_PLAIN: Final[dict[Any, t.DataType]] = {
    DType.BOOLEAN: t.BOOL, DType.TINYINT: t.INT8, DType.SMALLINT: t.INT16, DType.INT: t.INT32, DType.BIGINT: t.INT64,
    DType.UTINYINT: t.UINT8, DType.USMALLINT: t.UINT16, DType.UINT: t.UINT32, DType.UBIGINT: t.UINT64,
    DType.INT128: t.HUGEINT, DType.FLOAT: t.FLOAT32, DType.DOUBLE: t.FLOAT64, DType.TEXT: t.STRING,
    DType.VARCHAR: t.STRING, DType.VARBINARY: t.BINARY, DType.DATE: t.DATE, DType.TIME: t.TIME,
    DType.TIMESTAMP: t.TIMESTAMP, DType.TIMESTAMPNTZ: t.TIMESTAMP, DType.TIMESTAMPTZ: t.timestamp("us", "UTC"),
    DType.TIMESTAMP_S: t.timestamp("s"), DType.TIMESTAMP_MS: t.timestamp("ms"), DType.TIMESTAMP_NS: t.timestamp("ns"),
    DType.INTERVAL: t.INTERVAL,
}  # fmt: skip


def data_type(node: Node) -> t.DataType:
    """The type that a syntax node names."""
    if node.__class__ is not TypeSyntax:
        raise Unsupported("only names of types are supported here")
    check_arguments(node, ("this", "expressions", "nested"))
    parameters = node.args.get("expressions")
    if not parameters:
        plain = _PLAIN.get(node.args["this"])
        if plain is not None:
            return plain
    return functions.parse_type(node.sql(dialect="duckdb"))
