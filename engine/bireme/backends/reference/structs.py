"""Functions of structs on columns: whole columns become fields, and fields columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bireme.data.types import to_arrow
from bireme.plan.expr import Call, Literal

Evaluator = Callable[[Call, list[pa.Array]], pa.Array]


def _pack(call: Call, args: list[pa.Array]) -> pa.Array:
    kind = to_arrow(call.type)
    fields = list(kind)
    arrays = [arg if arg.type == field.type else arg.cast(field.type) for arg, field in zip(args, fields, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _extract(call: Call, args: list[pa.Array]) -> pa.Array:
    place = call.args[1]
    assert isinstance(place, Literal)
    assert isinstance(place.value, int)
    return field_at(args[0], place.value)


def field_at(structs: pa.Array, place: int) -> pa.Array:
    """A field as a column, NULL where the struct is."""
    return pc.struct_field(structs, [place])


FUNCTIONS: Final[dict[str, Evaluator]] = {"struct_pack": _pack, "struct_extract": _extract}
