"""Plans as text trees, stable enough to commit: no costs, no identities, nothing that differs from run to run.

A column is written `name#index`, an outer one `outer.#index`. A relation that is read more than once is written
once, as `shared 1`, and referred to after that. Subqueries follow the tree, numbered in order of appearance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bireme.data.schema import Schema
from bireme.errors import EngineBug
from bireme.plan.explain_expr import ExprWriter, format_expr
from bireme.plan.expr import Literal
from bireme.plan.relation import (
    Aggregate,
    Assume,
    DependentJoin,
    Filter,
    Join,
    Limit,
    Project,
    Rel,
    RowNumbers,
    Scan,
    Sort,
    Union,
    Unnest,
    Values,
    Window,
)
from bireme.plan.tree import relations, subplans

__all__ = ["explain", "format_expr"]

_VALUES_SHOWN_MAX: Final = 4


def explain(plan: Rel) -> str:
    """`plan` as lines of text, inputs below and further in than what reads them."""
    return _Writer(plan).text()


class _Writer:
    """Writes one plan; knows which relations are shared and which subqueries were met."""

    def __init__(self, plan: Rel) -> None:
        self._plan = plan
        self._shared = _read_twice(plan)
        self._numbers: dict[Rel, int] = {}
        self._texts = ExprWriter()
        self._lines: list[str] = []

    def text(self) -> str:
        self._relation(self._plan, 0)
        written = 0
        while written < len(self._texts.subqueries):
            plan = list(self._texts.subqueries)[written]
            written += 1
            self._lines.append(f"subquery {written}:")
            assert isinstance(plan, Rel)
            self._relation(plan, 1)
        return "\n".join(self._lines) + "\n"

    def _line(self, depth: int, text: str) -> None:
        self._lines.append(f"{'  ' * depth}{text}")

    def _relation(self, rel: Rel, depth: int) -> None:
        label = ""
        if rel in self._shared:
            if rel in self._numbers:
                self._line(depth, f"shared {self._numbers[rel]}")
                return
            self._numbers[rel] = len(self._numbers) + 1
            label = f"shared {self._numbers[rel]} = "
        self._line(depth, label + self._described(rel))
        for source in rel.inputs:
            self._relation(source, depth + 1)

    def _described(self, rel: Rel) -> str:
        match rel:
            case Scan():
                return self._scan(rel)
            case Values(rows):
                return self._values(rows, rel.schema)
            case Project(source, exprs, names):
                return f"Project {self._texts.named(exprs, names, source.schema)}"
            case Filter(source, predicate):
                return f"Filter {self._texts.expr(predicate, source.schema)}"
            case Join():
                return self._join(rel)
            case DependentJoin(left, right, kind, condition):
                text = f"DependentJoin {kind.value}"
                both = left.schema.concat(right.schema)
                return text if condition is None else f"{text} on {self._texts.expr(condition, both)}"
            case Aggregate():
                return self._aggregate(rel)
            case Window(source, calls, names):
                parts = [f"{self._texts.window(c, source.schema)} as {n}" for c, n in zip(calls, names, strict=True)]
                return f"Window {', '.join(parts)}"
            case Unnest(source, _, lists, _, keeps_empty):
                text = ", ".join([f"{source.schema.names[place]}#{place}" for place in lists])
                return f"Unnest{' outer' if keeps_empty else ''} {text}"
            case Sort(source, keys, limit, offset):
                return f"Sort {self._texts.order(keys, source.schema)}{_cut(limit, offset)}"
            case Limit(_, limit, offset):
                return f"Limit{_cut(limit, offset)}"
            case Union():
                return "Union"
            case RowNumbers():
                return "RowNumbers"
            case Assume(source, one, other):
                names = source.schema.names
                return f"Assume {names[one]}#{one} = {names[other]}#{other}"
        raise EngineBug(f"explain does not know {type(rel).__name__}")

    # ---------------------------------------------------------------------------------------- relations

    def _scan(self, rel: Scan) -> str:
        text = f"Scan {rel.table} [{', '.join(rel.schema.names)}]"
        if not rel.filters:
            return text
        return f"{text} skipping by {' and '.join([self._texts.expr(part, rel.schema) for part in rel.filters])}"

    def _values(self, rows: Sequence[Sequence[Literal]], schema: Schema) -> str:
        shown = [f"({', '.join([self._texts.expr(item, schema) for item in row])})" for row in rows[:_VALUES_SHOWN_MAX]]
        if len(rows) > _VALUES_SHOWN_MAX:
            shown.append(f"… {len(rows)} rows")
        return f"Values [{', '.join(schema.names)}] {', '.join(shown) or 'no rows'}"

    def _join(self, rel: Join) -> str:
        kind = "cross" if rel.kind.value == "inner" and not rel.left_keys and rel.residual is None else rel.kind.value
        parts = []
        for index, (left, right) in enumerate(zip(rel.left_keys, rel.right_keys, strict=True)):
            sign = "is" if index < rel.null_equal_count else "="
            left_text = self._texts.expr(left, rel.left.schema)
            parts.append(f"{left_text} {sign} {self._texts.expr(right, rel.right.schema)}")
        text = f"Join {kind}{' null-aware' if rel.null_aware else ''}"
        if parts:
            text += f" on {' and '.join(parts)}"
        if rel.residual is not None:
            text += f" where {self._texts.expr(rel.residual, rel.left.schema.concat(rel.right.schema))}"
        return text

    def _aggregate(self, rel: Aggregate) -> str:
        schema, width = rel.input.schema, len(rel.keys)
        parts = [
            f"{self._texts.aggregation(call, schema)} as {name}"
            for call, name in zip(rel.aggregates, rel.names[width:], strict=True)
        ]
        text = f"Aggregate {', '.join(parts)}".rstrip()
        if rel.keys:
            text += f" by {self._texts.named(rel.keys, rel.names[:width], schema)}"
        if rel.grouping_sets is not None:
            text += f" sets {', '.join([str(list(each)) for each in rel.grouping_sets])}"
        return text


def _cut(limit: int | None, offset: int) -> str:
    text = "" if limit is None else f" first {limit}"
    return f"{text} after {offset}" if offset else text


def _read_twice(plan: Rel) -> set[Rel]:
    """Relations, other than bare scans, that are read in more than one place."""
    seen: set[Rel] = set()
    twice: set[Rel] = set()
    for rel in relations(plan):
        for source in [*rel.inputs, *subplans(rel)]:
            (twice if source in seen else seen).add(source)
    return {rel for rel in twice if not isinstance(rel, Scan)}
