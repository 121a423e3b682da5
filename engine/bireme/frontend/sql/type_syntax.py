"""Types as the parser gives them, turned into ours. What names of types there are is in `plan.functions`."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import expressions as exp

from bireme.data import types as t
from bireme.data.types import DataType, Field, Kind
from bireme.errors import Unsupported
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan import functions
from bireme.plan.functions.maps import map_of

_D: Final = exp.DType
_PLAIN: Final[dict[Any, DataType]] = {
    _D.BOOLEAN: t.BOOL, _D.TINYINT: t.INT8, _D.SMALLINT: t.INT16, _D.INT: t.INT32, _D.BIGINT: t.INT64,
    _D.UTINYINT: t.UINT8, _D.USMALLINT: t.UINT16, _D.UINT: t.UINT32, _D.UBIGINT: t.UINT64,
    _D.INT128: t.HUGEINT, _D.FLOAT: t.FLOAT32, _D.DOUBLE: t.FLOAT64, _D.TEXT: t.STRING,
    _D.VARCHAR: t.STRING, _D.VARBINARY: t.BINARY, _D.DATE: t.DATE, _D.TIME: t.TIME,
    _D.TIMESTAMP: t.TIMESTAMP, _D.TIMESTAMPNTZ: t.TIMESTAMP, _D.TIMESTAMPTZ: t.timestamp("us", "UTC"),
    _D.TIMESTAMP_S: t.timestamp("s"), _D.TIMESTAMP_MS: t.timestamp("ms"), _D.TIMESTAMP_NS: t.timestamp("ns"),
    _D.INTERVAL: t.INTERVAL,
}  # fmt: skip


def data_type(node: Node) -> DataType:
    """The type that a syntax node names."""
    if node.__class__ is not exp.DataType:
        raise Unsupported("only names of types are supported here")
    check_arguments(node, {"this", "expressions", "nested"})
    name, parameters = node.args["this"], node.args.get("expressions")
    if not parameters:
        plain = _PLAIN.get(name)
        if plain is not None:
            return plain
    if name is _D.ARRAY and parameters and len(parameters) == 1:
        return DataType(Kind.LIST, children=(Field("item", data_type(parameters[0])),))
    if name is _D.STRUCT and parameters:
        return DataType(Kind.STRUCT, children=tuple([_field(parameter) for parameter in parameters]))
    if name is _D.MAP and parameters and len(parameters) == 2:
        return map_of(*map(data_type, parameters))
    if not isinstance(name, exp.DType) or not all(
        parameter.__class__ is exp.DataTypeParam for parameter in parameters or ()
    ):
        raise Unsupported("this type is not supported")
    numbers = [_number(parameter) for parameter in parameters or ()]
    text = name.value.lower()
    return functions.parse_type(f"{text}({','.join(numbers)})" if numbers else text)


def _field(node: Node) -> Field:
    """`name type` in the parentheses of STRUCT."""
    if node.__class__ is not exp.ColumnDef:
        raise Unsupported("a field of a STRUCT is a name and a type")
    check_arguments(node, {"this", "kind"})
    return Field(node.name, data_type(node.args["kind"]))


def _number(parameter: Node) -> str:
    check_arguments(parameter, {"this"})
    number = parameter.args["this"]
    if number.__class__ is not exp.Literal or number.args.get("is_string"):
        raise Unsupported("the parameters of a type are numbers")
    return str(number.args["this"])
