"""Stars of a select list: `*` and `t.*` with EXCLUDE, REPLACE and RENAME, or like a pattern, spelled out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlglot import expressions as exp

from bireme.data.types import Kind
from bireme.errors import ClauseFault, NameFault, TypeFault, Unsupported
from bireme.frontend.sql import name_tests
from bireme.frontend.sql.context import Context, Item
from bireme.frontend.sql.syntax import Node, check_arguments
from bireme.plan import functions
from bireme.plan.expr import Column, Expr
from bireme.plan.functions.structs import row_fields

_PATTERNS: Final[dict[type[Node], str]] = {
    exp.Like: "like", exp.ILike: "ilike", exp.SimilarTo: "regexp_full_match", exp.Glob: "glob",
}  # fmt: skip


class _Place(NamedTuple):
    """A column that a star stands for: where its own relation has it, and where its value is (USING moves it)."""

    name: str
    own: int
    position: int


def is_star(node: Node) -> bool:
    """Whether this is `*` or `t.*`."""
    return node.__class__ is exp.Star or (node.__class__ is exp.Column and node.args.get("this").__class__ is exp.Star)


def star_of(node: Node) -> Node | None:
    """The star of an item of a select list, such as `* LIKE 'a%'`; None where it is of another kind."""
    if node.__class__ is exp.Not:
        node = node.args["this"]
    if node.__class__ in _PATTERNS:
        node = node.args["this"]
    return node if is_star(node) else None


def expand(node: Node, context: Context) -> Iterator[Item]:
    """The columns that a star stands for."""
    star = star_of(node)
    assert star is not None
    items = _starred(star, context)
    if node is star:
        yield from items
    else:
        yield from _matching(node, items)


def _matching(node: Node, items: Iterable[Item]) -> Iterator[Item]:
    """`* LIKE pattern` and its like: the columns whose names match."""
    wanted = True
    if node.__class__ is exp.Not:
        node, wanted = node.args["this"], False
    check_arguments(node, {"this", "expression", "negate"})
    pattern = node.args["expression"]
    if pattern.__class__ is not exp.Literal or not pattern.args.get("is_string"):
        raise Unsupported("the pattern behind a star must be a constant text")
    wanted = wanted is not bool(node.args.get("negate"))
    yield from _like(items, _PATTERNS[node.__class__], str(pattern.args["this"]), wanted)


def _like(items: Iterable[Item], function: str, pattern: str, wanted: bool) -> Iterator[Item]:
    found = 0
    for item in items:
        if name_tests.matches(function, item.name, pattern) is wanted:
            found += 1
            yield item
    if not found:
        raise NameFault(f"no column of this star is {'' if wanted else 'not '}like {pattern!r}")


def _starred(node: Node, context: Context) -> Iterable[Item]:
    star = node
    if node.__class__ is exp.Column:
        check_arguments(node, {"this", "table"})
        star = node.args["this"]
    table = node.args.get("table") if node is not star else None
    if table is not None and context.scope.source(table.name.lower()) is None:
        value = context.known(table.name.lower(), None, exp.Column(this=table))
        if value is not None:
            return _fields(value, table.name, star, node)
    check_arguments(star, {"except_", "replace", "rename", "ilike"})
    items = _changed(_places(node, context), star, node, context)
    pattern = star.args.get("ilike")
    if pattern is None:
        return items
    if pattern.__class__ is not exp.Literal:
        raise Unsupported("the pattern behind a star must be a constant text")
    return _like(items, "ilike", str(pattern.args["this"]), True)


def _changed(places: list[_Place], star: Node, node: Node, context: Context) -> Iterator[Item]:
    """The columns after EXCLUDE, REPLACE and RENAME."""
    excluded = [each for part in star.args.get("except_") or () for each in _meant(part, "EXCLUDE", places, context)]
    replaced = [
        (each, part)
        for new, part in _pairs(star, "replace")
        for each in _meant(exp.column(new), "REPLACE", places, context)
    ]
    renamed = [(each, new) for new, part in _pairs(star, "rename") for each in _meant(part, "RENAME", places, context)]
    _refuse_twice([*excluded, *[each for each, _ in replaced], *[each for each, _ in renamed]], places)
    values, names = dict(replaced), dict(renamed)
    for place in _without(places, set(excluded), context):
        if place.own in values:
            yield Item(place.name, context.bind(values[place.own]), node)
            continue
        column = Column(place.position, context.scope.types[place.position])
        if context.columns is not None:
            context.columns.setdefault(column, node)
        yield Item(names.get(place.own, place.name), column, node)


def _refuse_twice(meant: Sequence[int], places: Sequence[_Place]) -> None:
    repeated = {own for own in meant if meant.count(own) > 1}
    if repeated:
        name = next(place.name for place in places if place.own in repeated)
        raise ClauseFault(f"the lists behind a star name '{name}' twice")


def _without(places: list[_Place], excluded: set[int], context: Context) -> Iterator[_Place]:
    """The columns but for those excluded; where one that USING shows goes, the other one of its name comes."""
    freed = {place.name.lower() for place in places if place.own in excluded and place.position >= 0}
    for place in places:
        if place.own in excluded:
            continue
        if place.position >= 0:
            yield place
        elif place.name.lower() in freed:
            freed.discard(place.name.lower())
            yield place._replace(position=place.own)


def _fields(value: Expr, name: str, star: Node, node: Node) -> Iterator[Item]:
    """The fields of a column that is a struct."""
    check_arguments(star, frozenset())
    if value.type.kind is not Kind.STRUCT:
        raise TypeFault(f"a star takes the fields of a struct, and '{name}' is {value.type}")
    for field, part in row_fields(value):
        yield Item(field, part, node)


_HIDDEN: Final = -1


def _places(node: Node, context: Context) -> list[_Place]:
    """The columns of all relations, or of one; those that USING has merged into another have no position."""
    scope = context.scope
    table = node.args.get("table") if node.__class__ is exp.Column else None
    if table is None:
        if not scope.sources:
            raise ClauseFault("SELECT * needs a FROM clause")
        return [_Place(name, own, _HIDDEN if place is None else place) for name, own, place in scope.star_places()]
    source = scope.source(table.name.lower())
    if source is None:
        hint = functions.suggest(table.name, [known.alias for known in scope.sources])
        raise NameFault(f"there is no relation '{table.name}' here{hint}")
    return [_Place(name, index, index) for index, name in enumerate(source.names, start=source.offset)]


def _meant(node: Any, clause: str, places: Sequence[_Place], context: Context) -> list[int]:
    """The columns that a name behind a star means, by where their relations have them."""
    if node.__class__ not in (exp.Column, exp.Identifier):
        raise ClauseFault(f"{clause} takes names of columns")
    table = node.args.get("table") if node.__class__ is exp.Column else None
    name = node.name.lower()
    found = [place.own for place in places if place.name.lower() == name]
    if table is not None:
        source = context.scope.source(table.name.lower())
        own = None if source is None else source.find(name)
        found = [] if own is None else [place for place in found if place == own]
        name = f"{table.name}.{node.name}"
    if not found:
        raise NameFault(f"{clause}: there is no column '{name}'{functions.suggest(name, [p.name for p in places])}")
    return found


def _pairs(star: Node, clause: str) -> list[tuple[str, Any]]:
    pairs = []
    for node in star.args.get(clause) or ():
        if node.__class__ is not exp.Alias:
            raise ClauseFault(f"{clause.upper()} takes … AS name")
        pairs.append((node.args["alias"].name, node.args["this"]))
    return pairs
