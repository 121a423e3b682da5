"""What is known of each function, and the usual ways to bind one.

The functions themselves are in the modules beside this one, by family; the tables of all of them in `tables`. `bind` of
an entry checks and coerces arguments and gives the typed expression of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from bireme.data.choice import Choice
from bireme.data.types import STRING, DataType
from bireme.errors import TypeFault
from bireme.plan.expr import Aggregation, Call, Expr, Lambda, Literal
from bireme.plan.functions.casting import coerce, is_coercible
from bireme.records import dataclass

Args = tuple[Expr, ...]
Overload = tuple[tuple[DataType, ...], DataType]


class NullRule(Choice):
    """When a function gives NULL.

    STRICT: exactly where an argument is NULL. ADDS: there, and possibly elsewhere. ANY: only where an argument is,
    though not always (AND, OR). ALL: exactly where every argument is. NEVER: nowhere.
    """

    STRICT = "strict"
    ADDS = "adds"
    ANY = "any"
    ALL = "all"
    NEVER = "never"


class Volatility(Choice):
    """IMMUTABLE: equal arguments give equal results, so a call may be folded, shared and moved. VOLATILE: not so."""

    IMMUTABLE = "immutable"
    VOLATILE = "volatile"


class Body(Protocol):
    """A lambda as it was written, with so many parameters: it is typed when these have types."""

    @property
    def width(self) -> int: ...

    def typed(self, types: Sequence[DataType]) -> Lambda: ...


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A scalar function. `fails` says whether a call can raise a DataError for some values of its arguments, so that it
    must not be moved to rows that did not reach it. `signatures` are for messages and the catalog. `bind_lambda` is for
    functions of which one argument is a lambda; it is given the other ones.
    """

    name: str
    bind: Callable[[Args], Expr]
    signatures: tuple[str, ...]
    doc: str
    aliases: tuple[str, ...] = ()
    nulls: NullRule = NullRule.STRICT
    fails: bool = False
    volatility: Volatility = Volatility.IMMUTABLE
    bind_lambda: Callable[[Args, Body], Expr] | None = None


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate, or a function of windows only.

    `ignores_distinct` and `ignores_order` are whether those change nothing.
    """

    name: str
    bind: Callable[[Args], Aggregation]
    signatures: tuple[str, ...]
    doc: str
    aliases: tuple[str, ...] = ()
    ignores_distinct: bool = False
    ignores_order: bool = True


def wrong_arguments(name: str, args: Args, signatures: Sequence[str]) -> TypeFault:
    """The error for arguments that no signature takes."""
    given = ", ".join("null" if is_null(arg) else str(arg.type) for arg in args)
    return TypeFault(f"{name}({given}) does not exist; {name} is {' or '.join(signatures)}")


def is_null(expr: Expr) -> bool:
    """Whether this is the constant NULL."""
    return isinstance(expr, Literal) and expr.value is None


def signature(name: str, overload: Overload) -> str:
    """How a signature shows, as in `left(varchar, bigint) → varchar`."""
    return f"{name}({', '.join(map(str, overload[0]))}) → {overload[1]}"


def overloaded(
    name: str,
    doc: str,
    *overloads: Overload,
    aliases: tuple[str, ...] = (),
    nulls: NullRule = NullRule.STRICT,
    fails: bool = False,
) -> ScalarFunction:
    """A function of fixed parameter types: the overload that needs the fewest casts, the first of several."""
    signatures = tuple(signature(name, overload) for overload in overloads)
    exact: Final = dict(overloads)

    def bind(args: Args) -> Expr:
        result = exact.get(tuple([arg.type for arg in args]))
        if result is not None:
            return Call(name, args, result)
        params, result = choose(name, overloads, args, signatures)
        return Call(name, tuple([coerce(arg, kind) for arg, kind in zip(args, params, strict=True)]), result)

    return ScalarFunction(name, bind, signatures, doc, aliases, nulls, fails)


def choose(name: str, overloads: Sequence[Overload], args: Args, signatures: Sequence[str]) -> Overload:
    """The overload for these arguments; TypeFault where none fits, or where a string constant fits several alike."""
    fitting = []
    for overload in overloads:
        params = overload[0]
        if len(params) == len(args) and all(map(is_coercible, args, params)):
            casts = sum(arg.type is not kind for arg, kind in zip(args, params, strict=True))
            fitting.append((casts, overload))
    if not fitting:
        raise wrong_arguments(name, args, signatures)
    fewest = min(casts for casts, _ in fitting)
    best = [overload for casts, overload in fitting if casts == fewest]
    for index, arg in enumerate(args):
        if isinstance(arg, Literal) and arg.type is STRING and len({overload[0][index] for overload in best}) > 1:
            raise TypeFault(f"{name} takes several types in place of the text {arg.value!r}; write its type before it")
    return best[0]
