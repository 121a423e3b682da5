"""Plans as JSON and back: saved on one machine, replayed on another.

Any node can be written (relations, expressions, types, steps of pipelines), and whole Dags. The text is a list of
nodes, each after those it holds, so what is shared stays shared; reading it back on the same process gives the very
same objects. Fields are written by name. What is read is checked, field by field, against the declared types, and a
relation against `verify`: a text that is not a plan is an ArgumentFault.
"""

from __future__ import annotations

import datetime
import json
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import cache
from typing import Any, Final

from bireme.data import schema, tier
from bireme.data import types as data_types
from bireme.data.node import Node
from bireme.errors import ArgumentFault, EngineBug
from bireme.plan import expr, hint, physical, range_keys, relation, top_per_key, window_order
from bireme.plan.expr import Interval
from bireme.plan.functions import null_rule
from bireme.plan.relation import Rel
from bireme.plan.verify import Stage, verify

VERSION: Final = 1
_FORMAT: Final = "bireme plan"
_MODULES: Final = (data_types, schema, tier, expr, relation, hint, physical, range_keys, top_per_key, window_order)


def _declared(wanted: Callable[[type], bool]) -> dict[str, type]:
    """The classes that the modules of plans define, by name."""
    found: dict[str, type] = {}
    for module in _MODULES:
        for value in vars(module).values():
            if not (isinstance(value, type) and value.__module__ == module.__name__ and wanted(value)):
                continue
            if found.setdefault(value.__name__, value) is not value:
                raise EngineBug(f"two classes of plans are called {value.__name__}")
    return found


_CLASSES: Final = _declared(lambda each: is_dataclass(each) or (issubclass(each, Node) and bool(each.field_names())))
_ENUMS: Final = _declared(lambda each: issubclass(each, Enum))


def to_json(root: object) -> str:
    """`root`, a node or a Dag, as JSON."""
    writer = _Writer()
    top = writer.value(root)
    return json.dumps(
        {"format": _FORMAT, "version": VERSION, "nodes": writer.nodes, "root": top}, separators=(",", ":")
    )


def from_json(text: str, change: Callable[[Any], Any] | None = None) -> Any:
    """What `to_json` wrote, with `change` applied to each node as it is made, inputs first.

    Raises ArgumentFault, saying what is wrong with it, for any other text.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentFault(f"a saved plan must be JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise ArgumentFault("this JSON is not a saved plan of bireme")
    if document.get("version") != VERSION:
        raise ArgumentFault(
            f"this plan is in version {document.get('version')!r} of the format, and {VERSION} is what is read here"
        )
    return _read(document, change)


# ------------------------------------------------------------------------------------------- writing


class _Writer:
    """Numbers nodes as it meets them."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self._numbers: dict[Any, int] = {}

    def value(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, Enum):
            return {"enum": type(value).__name__, "is": value.name}
        if isinstance(value, int):
            return value
        if isinstance(value, tuple) and not isinstance(value, Interval):
            return [self.value(item) for item in value]
        if isinstance(value, Node) or is_dataclass(value):
            return {"node": self._number(value)}
        return _write_scalar(value)

    def _number(self, node: Any) -> int:
        key = node if isinstance(node, Node) else id(node)
        number = self._numbers.get(key)
        if number is None:
            kind = type(node)
            if _CLASSES.get(kind.__name__) is not kind:
                raise EngineBug(f"{kind.__name__} is not part of a plan")
            written = {name: self.value(getattr(node, name)) for name in _field_names(kind)}
            self.nodes.append({"class": kind.__name__, "fields": written})
            number = self._numbers[key] = len(self.nodes) - 1
        return number


def _write_scalar(value: Any) -> dict[str, Any]:
    match value:
        case float():
            return {"float": repr(value)}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": value.hex()}
        case datetime.datetime():
            return {"datetime": value.isoformat()}
        case datetime.date():
            return {"date": value.isoformat()}
        case datetime.time():
            return {"time": value.isoformat()}
        case Interval():
            return {"interval": list(value)}
    raise EngineBug(f"a value of {type(value).__name__} is not part of a plan")


_SCALARS: Final[dict[str, Callable[[Any], Any]]] = {
    "float": float,
    "decimal": Decimal,
    "bytes": bytes.fromhex,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "interval": lambda parts: Interval(*[_whole(part) for part in parts]),
}


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value


# ------------------------------------------------------------------------------------------- reading


def _read(document: dict[str, Any], change: Callable[[Any], Any] | None) -> Any:
    made: list[Any] = []
    written = document.get("nodes")
    if not isinstance(written, list):
        raise ArgumentFault("this saved plan has no list of nodes")
    for number, entry in enumerate(written):
        try:
            node = _node(entry, made)
            made.append(node if change is None else change(node))
        except ArgumentFault as fault:
            raise ArgumentFault(f"node {number} of this saved plan is broken: {fault.message}") from None
    root = _value(document.get("root"), made)
    if isinstance(root, Rel):
        try:
            verify(root, Stage.BOUND)
        except (EngineBug, LookupError, ValueError, TypeError, AttributeError) as error:
            # Schemas are derived for the check, and that expects functions and columns that there are.
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ArgumentFault(f"this saved plan does not make sense: {reason}") from None
    return root


def _node(entry: Any, made: list[Any]) -> Any:
    if not isinstance(entry, dict) or not isinstance(entry.get("fields"), dict):
        raise ArgumentFault("it is not a class with fields")
    name = entry.get("class")
    kind = _CLASSES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ArgumentFault(f"there is no node called {name!r}")
    declared = _hints(kind)
    if entry["fields"].keys() != declared.keys():
        raise ArgumentFault(f"{name} has the fields {', '.join(declared)}")
    values = {field: _value(value, made) for field, value in entry["fields"].items()}
    for field, value in values.items():
        if not _fits(value, declared[field]):
            raise ArgumentFault(f"the field {field} of {name} cannot be {_short(value)}")
    try:
        node = kind(**values)
        if isinstance(node, data_types.DataType):
            data_types.to_arrow(node)
        if isinstance(node, expr.Call):
            _must_be_known(node.function)
    except (TypeError, ValueError, LookupError) as error:
        raise ArgumentFault(f"{name} cannot be made: {error}") from None
    return node


def _must_be_known(function: str) -> None:
    try:
        null_rule(function)
    except KeyError:
        raise ValueError(f"there is no function {function!r}") from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _value(value: Any, made: list[Any]) -> Any:
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, list):
        return tuple([_value(item, made) for item in value])
    if isinstance(value, dict):
        if value.keys() == {"node"}:
            number = value["node"]
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(made):
                raise ArgumentFault(f"there is no node {number!r} before it")
            return made[number]
        if value.keys() == {"enum", "is"}:
            return _member(value["enum"], value["is"])
        if len(value) == 1:
            return _scalar(*value.popitem())
    raise ArgumentFault(f"{_short(value)} is not a value of a plan")


def _member(name: Any, member: Any) -> Any:
    kind: Any = _ENUMS.get(name) if isinstance(name, str) else None
    if kind is None or not isinstance(member, str) or member not in kind.__members__:
        raise ArgumentFault(f"there is no {name!r} called {member!r}")
    return kind[member]


def _scalar(name: str, text: Any) -> Any:
    read = _SCALARS.get(name)
    if read is None:
        raise ArgumentFault(f"there is no kind of value called {name!r}")
    try:
        return read(text)
    except (ValueError, TypeError, InvalidOperation) as error:
        raise ArgumentFault(f"{_short(text)} is not a {name}: {error}") from None


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The declared types of a class's fields."""
    resolved = typing.get_type_hints(kind)
    return {name: resolved[name] for name in _field_names(kind)}


def _field_names(kind: Any) -> Sequence[str]:
    return kind.field_names() if issubclass(kind, Node) else [field.name for field in fields(kind)]


def _fits(value: Any, declared: Any) -> bool:
    """Whether a value is of a declared type."""
    origin = typing.get_origin(declared)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, each) for each in typing.get_args(declared))
    if origin is tuple:
        parts = typing.get_args(declared)
        if not isinstance(value, tuple) or isinstance(value, Interval):
            return False
        if len(parts) == 2 and parts[1] is Ellipsis:
            return all(_fits(item, parts[0]) for item in value)
        return len(value) == len(parts) and all(map(_fits, value, parts))
    if isinstance(declared, typing.NewType):
        return _fits(value, declared.__supertype__)
    if declared is None or declared is type(None):
        return value is None
    if declared is Any:
        return True
    if declared in (int, float):
        return isinstance(value, declared) and not isinstance(value, bool | Enum)
    return isinstance(value, declared)
