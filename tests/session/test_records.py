"""Records are what the standard library's dataclasses are, whatever they are asked."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, ClassVar

import pytest

from bireme import records

MAKERS = [records.dataclass, dataclasses.dataclass]


def classes(make: Any) -> dict[str, Any]:
    """The same declarations by one of the makers."""

    @make(frozen=True, slots=True)
    class Point:
        """Two numbers."""

        x: int
        y: float = 2.0
        SCALE: ClassVar[int] = 3

        @property
        def total(self) -> float:
            return self.x + self.y

    @make(slots=True)
    class Bag:
        name: str
        items: list[int] = dataclasses.field(default_factory=list)
        hidden: int = dataclasses.field(default=7, repr=False, compare=False)

    @make(frozen=True, slots=True, kw_only=True)
    class Named:
        a: int = 1
        b: str

    @make(frozen=True, slots=True, eq=False)
    class Single:
        value: int

    @make(frozen=True, slots=True)
    class Derived(Point):
        z: int = 9

    @make(frozen=True, slots=True)
    class Prepared:
        given: int
        twice: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", 2 * self.given)

    @make(slots=True)
    class Empty:
        pass

    made = [Point, Bag, Named, Single, Derived, Prepared, Empty]
    return {each.__name__: each for each in made}


OURS, STANDARD = classes(records.dataclass), classes(dataclasses.dataclass)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Point", (1,), {}), ("Point", (1, 3.5), {}), ("Point", (), {"y": 1.0, "x": 4}), ("Point", (), {}),
    ("Point", (1, 2, 3), {}), ("Point", (1,), {"z": 1}), ("Point", (1,), {"x": 1}), ("Bag", ("a",), {}),
    ("Bag", ("a", [1]), {"hidden": 3}), ("Named", (), {"b": "x"}), ("Named", ("x",), {}), ("Named", (), {"a": 2}),
    ("Single", (1,), {}), ("Derived", (1,), {}), ("Derived", (1, 2.0, 3), {}), ("Prepared", (4,), {}),
    ("Prepared", (4, 8), {}), ("Empty", (), {}), ("Empty", (1,), {}),
]  # fmt: skip


def outcome(known: dict[str, Any], call: tuple[str, tuple[Any, ...], dict[str, Any]]) -> Any:
    """What a call gives, as far as one can compare it between two classes of one name."""
    name, args, kwargs = call
    cls = known[name]
    try:
        made = cls(*args, **kwargs)
    except TypeError as error:
        return str(error).replace(cls.__qualname__, name)
    again = cls(*args, **kwargs)
    fields = [(each.name, each.type, each.init, each.repr, each.kw_only) for each in dataclasses.fields(cls)]
    try:
        hashes = hash(made) == hash(again)
    except TypeError:
        hashes = None
    equal = (made == again, made == 1, made != again)
    with_same = dataclasses.replace(made, **{fields[0][0]: 5}) if fields and name != "Empty" else made
    return repr(made), repr(with_same), repr(copy.copy(made)), fields, hashes, equal, cls.__match_args__, cls.__doc__


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_objects_are_those_of_a_dataclass(call: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
    ours, standard = outcome(OURS, call), outcome(STANDARD, call)
    if isinstance(ours, tuple) and call[0] in ("Point", "Bag", "Derived"):
        assert ours[:7] == standard[:7]
    else:
        assert ours[:-1] == standard[:-1]


@pytest.mark.parametrize("known", [OURS, STANDARD], ids=["ours", "standard"])
def test_frozen_fields_and_slots(known: dict[str, Any]) -> None:
    point = known["Point"](1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    with pytest.raises((AttributeError, TypeError)):
        point.other = 2
    assert (point.x, point.total, point.SCALE, dataclasses.is_dataclass(point)) == (1, 3.0, 3, True)
    bag = known["Bag"]("a")
    bag.items.append(1)
    assert (known["Bag"]("b").items, bag.items, bag.hidden) == ([], [1], 7)
    with pytest.raises(AttributeError):
        bag.other = 1
    assert known["Point"](1) != known["Derived"](1)
    match known["Derived"](4, 5.0, 6):
        case known_case if (known_case.x, known_case.z) == (4, 6):
            pass
        case _:
            pytest.fail("the fields of the base come first")
