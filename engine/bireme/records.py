"""Classes of named fields: the standard library's `dataclass`, for classes that are made whenever a process starts.

Rule: what it makes is the same to readers, type checkers and the functions of `dataclasses`; fewer options are offered.
The standard one writes and compiles up to eight functions for each class, which for all of bireme takes as long as a
small query with its planning. Here `__init__` is compiled when the first object is made, and the other functions, which
are seldom called, are the same for all classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final

_FACTORY: Final = object()
_POST_INIT: Final = "__post_init__"


def _record(
    cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True, kw_only: bool = False
) -> Any:
    """The decorator."""
    if cls is None:
        return lambda declared: _made(declared, frozen, eq, kw_only)
    return _made(cls, frozen, eq, kw_only)


def _made(declared: type, frozen: bool, eq: bool, kw_only: bool) -> type:
    """The class with slots for the fields it declares, after those of its bases."""
    own = dict(vars(declared))
    fields: dict[str, dataclasses.Field[Any]] = {}
    for base in reversed(declared.__mro__[1:]):
        fields.update(getattr(base, "__dataclass_fields__", {}))
    inherited = set(fields)
    for name, annotation in own.get("__annotations__", {}).items():
        if not annotation.startswith("ClassVar"):
            fields[name] = _field(name, annotation, own.pop(name, dataclasses.MISSING), kw_only)
    for name in ("__dict__", "__weakref__"):
        own.pop(name, None)
    own["__slots__"] = tuple([name for name in fields if name not in inherited])
    own["__dataclass_fields__"] = fields
    own.setdefault("__match_args__", tuple([name for name, each in fields.items() if each.init and not each.kw_only]))
    own.setdefault("__repr__", _represented)
    if eq:
        own.setdefault("__eq__", _equal)
        own.setdefault("__hash__", _hashed if frozen else None)
        own["_values"] = staticmethod(_values_of(fields))
    if frozen:
        own["__setattr__"], own["__delattr__"] = _refuse_setting, _refuse_deleting
        own["__getstate__"], own["__setstate__"] = _state, _restore  # for copies
    made = type(declared)(declared.__name__, declared.__bases__, own)
    made.__qualname__ = declared.__qualname__
    if "__init__" not in own:
        made.__init__ = _compiled_when_called(made, fields)  # type: ignore[misc]
    return made


def _field(name: str, annotation: str, default: Any, kw_only: bool) -> dataclasses.Field[Any]:
    made: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
    made.name, made.type, made.kw_only = name, annotation, kw_only
    made._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
    return made  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------------------------- the constructor


def _compiled_when_called(cls: type, fields: dict[str, dataclasses.Field[Any]]) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made = _constructor(cls, fields)
        cls.__init__ = made  # type: ignore[misc]
        made(self, *args, **kwargs)

    return __init__


def _constructor(cls: type, fields: dict[str, dataclasses.Field[Any]]) -> Callable[..., None]:
    names: dict[str, Any] = {"_FACTORY": _FACTORY}
    first: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    setting: Any = cls.__setattr__
    refuses = setting is not object.__setattr__
    for name, each in fields.items():
        value = name
        if refuses:
            names[f"_set_{name}"] = getattr(cls, name).__set__
        if each.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = each.default_factory
            value = f"_make_{name}() if {name} is _FACTORY else {name}" if each.init else f"_make_{name}()"
            parameter = f"{name}=_FACTORY"
        elif each.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = each.default
            parameter = f"{name}=_default_{name}"
            value = name if each.init else f"_default_{name}"
        elif each.init:
            parameter = name
        else:
            continue
        if each.init:
            (named if each.kw_only else first).append(parameter)
        lines.append(f"    _set_{name}(self, {value})" if refuses else f"    self.{name} = {value}")
    if hasattr(cls, _POST_INIT):
        lines.append(f"    self.{_POST_INIT}()")
    parameters = ", ".join(["self", *first, *(["*", *named] if named else [])])
    exec("\n".join([f"def __init__({parameters}):", *(lines or ["    pass"])]), names)
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


# -------------------------------------------------------------------------------------------- other functions


def _values_of(fields: dict[str, dataclasses.Field[Any]]) -> Callable[[Any], Any]:
    compared = [name for name, each in fields.items() if each.compare]
    return attrgetter(*compared) if compared else lambda _: ()


def _equal(self: Any, other: Any) -> Any:
    return self._values(self) == self._values(other) if other.__class__ is self.__class__ else NotImplemented


def _hashed(self: Any) -> int:
    return hash(self._values(self))


@recursive_repr()
def _represented(self: Any) -> str:
    shown = [f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _refuse_setting(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deleting(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _record
