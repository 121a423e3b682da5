"""What verify must complain about, one broken plan each."""

from __future__ import annotations

import pytest
from support.nested_queries import TABLES

from bireme.data.schema import Schema
from bireme.data.types import BOOL, HUGEINT, INT32, INT64, STRING, Field, list_of
from bireme.errors import EngineBug
from bireme.plan.expr import (
    Aggregation,
    Call,
    Case,
    Column,
    Exists,
    Expr,
    InList,
    Lambda,
    Literal,
    OuterColumn,
    Parameter,
    ScalarSubquery,
    SortKey,
)
from bireme.plan.relation import (
    Aggregate,
    DependentJoin,
    Filter,
    Join,
    JoinKind,
    Limit,
    Project,
    Rel,
    Scan,
    Sort,
    Union,
    Values,
)
from bireme.plan.tree import TRUE, select
from bireme.plan.verify import Stage, verify

SCHEMA = Schema.from_arrow(TABLES["i"].schema)
SCAN = Scan("i", "1", SCHEMA, (0, 1, 2))
K, V = Column(0, INT64), Column(1, INT64)
SUM = Aggregation("sum", (V,), HUGEINT)
LIST = Call("list_value", (K,), list_of(INT64))
OUTER, INNER = Parameter(0, 0, INT64), Parameter(1, 0, INT64)


def each(parameter: Parameter, body: Expr) -> Expr:
    return Call("list_transform", (LIST, Lambda((parameter,), body, body.type)), list_of(body.type))


NESTED = each(OUTER, each(INNER, Call("add", (OUTER, INNER), INT64)))


def test_a_sound_plan_passes_every_stage() -> None:
    plan: Rel = Project(SCAN, (NESTED,), ("a",))
    for stage in Stage:
        verify(plan, stage, like=plan)
    plan = Sort(Filter(Aggregate(SCAN, (K,), (SUM,), ("k", "sum")), TRUE), (SortKey(K),))
    for stage in Stage:
        verify(plan, stage, like=plan)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Filter(SCAN, Call("eq", (Column(3, INT64), K), BOOL)), "column 3 is read of 3"),
        (Filter(SCAN, Call("eq", (Column(1, INT32), Column(1, INT32)), BOOL)), "of type bigint, not integer"),
        (Filter(SCAN, K), "has type bigint"),
        (Filter(SCAN, Call("eq", (K, Literal(1, INT32)), BOOL)), "eq compares"),
        (Filter(SCAN, Call("and", (TRUE, K), BOOL)), "and is given"),
        (Filter(SCAN, InList(K, (Literal("a", STRING),))), "item of an InList"),
        (Project(SCAN, (K,), ("a", "b")), "1 columns and 2 names"),
        (Project(SCAN, (Case(((TRUE, K),), Literal(None, INT32), INT64),), ("a",)), "value of a Case"),
        (Project(SCAN, (Literal("7", INT64),), ("a",)), "not a value of type bigint"),
        (Project(SCAN, (ScalarSubquery(SCAN, INT64),), ("a",)), "scalar subquery of type"),
        (Join(SCAN, SCAN, JoinKind.INNER, (K,), ()), "keys of a Join"),
        (Join(SCAN, SCAN, JoinKind.INNER, (K,), (K,), None, 2), "2 null-equal"),
        (Join(SCAN, SCAN, JoinKind.SEMI, (K,), (K,), None, 0, True), "null-aware Join is semi"),
        (Aggregate(SCAN, (K,), (SUM,), ("k",)), "2 columns and 1 names"),
        (Aggregate(SCAN, (K,), (), ("k",), ((1,),)), "grouping set names a key"),
        (Union((SCAN, select(SCAN, [0]))), "inputs of a Union"),
        (Union(()), "no inputs"),
        (Limit(SCAN, -1), "limit of -1"),
        (Values(((Literal(1, INT32),),), Schema((Field("a", INT64),))), "row of Values"),
        (Scan("i", "1", SCHEMA, (3,)), "does not have"),
        (Project(SCAN, (OUTER,), ("a",)), "parameter 0 of level 0"),
        (Project(SCAN, (each(OUTER, Parameter(0, 1, INT64)),), ("a",)), "parameter 1 of level 0"),
        (Project(SCAN, (each(OUTER, each(INNER, Parameter(2, 0, INT64))),), ("a",)), "parameter 0 of level 2"),
        (Project(SCAN, (each(INNER, each(Parameter(2, 0, INT64), OUTER)),), ("a",)), "parameter 0 of level 0"),
        (Filter(SCAN, Call("eq", (OuterColumn(1, 0, INT64), K), BOOL)), "1 levels out, of 0"),
    ],
)
def test_a_broken_plan_is_described(plan: Rel, message: str) -> None:
    with pytest.raises(EngineBug, match=message):
        verify(plan, Stage.BOUND)


@pytest.mark.parametrize(
    ("plan", "stage", "message"),
    [
        (Filter(SCAN, Exists(SCAN)), Stage.UNNESTED, "Exists is left"),
        (DependentJoin(SCAN, SCAN, JoinKind.INNER), Stage.UNNESTED, "DependentJoin is left"),
        (
            Aggregate(SCAN, (), (Aggregation("sum", (V,), HUGEINT, True),), ("a",)),
            Stage.OPTIMIZED,
            "sum is still DISTINCT",
        ),
        (
            Aggregate(SCAN, (), (Aggregation("sum", (V,), HUGEINT, False, TRUE),), ("a",)),
            Stage.OPTIMIZED,
            "still has a FILTER",
        ),
        (Aggregate(SCAN, (K,), (SUM,), ("k", "a"), ((0,),)), Stage.OPTIMIZED, "still has grouping sets"),
    ],
)
def test_later_stages_demand_more(plan: Rel, stage: Stage, message: str) -> None:
    verify(plan, Stage(stage - 1))
    with pytest.raises(EngineBug, match=message):
        verify(plan, stage)


def test_columns_must_stay() -> None:
    renamed = Project(SCAN, (K, V, Column(2, INT64)), ("k", "v", "x"))
    with pytest.raises(EngineBug, match="columns are called"):
        verify(renamed, Stage.BOUND, like=SCAN)
    with pytest.raises(EngineBug, match="columns have types"):
        verify(select(SCAN, [0]), Stage.BOUND, like=SCAN)
