"""Plans survive being saved: what is read back is the very same object; what is not a plan is refused by name."""

from __future__ import annotations

import contextlib
import datetime
import json
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.planning import catalog_of, context_over, parquet_tables
from support.random_plans import plans
from support.tpc_data import query_texts, tpch_folder

from bireme.data.ids import EdgeId, PipelineId
from bireme.data.schema import Schema
from bireme.data.tier import Tier
from bireme.data.types import BINARY, BOOL, DATE, FLOAT64, INT64, INTERVAL, STRING, TIME, TIMESTAMP, Field, decimal
from bireme.errors import ArgumentFault
from bireme.frontend.sql import bind_sql
from bireme.plan.expr import Call, Column, Interval, Literal
from bireme.plan.hint import Hint
from bireme.plan.optimize import optimize
from bireme.plan.physical import Dag, Edge, EmitSink, Pipeline, ValuesSource
from bireme.plan.relation import Project, Values
from bireme.plan.wire import from_json, to_json


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans())
def test_a_plan_comes_back_as_the_same_object(plan) -> None:
    assert from_json(to_json(plan)) is plan


def test_tpch_comes_back_before_and_after_rules() -> None:
    sources = parquet_tables(tpch_folder())
    catalog, context = catalog_of(sources), context_over(sources)
    for text in query_texts("tpch").values():
        bound = bind_sql(text, catalog)
        assert from_json(to_json(bound)) is bound
        optimized = optimize(bound, context)
        assert from_json(to_json(optimized)) is optimized


@pytest.mark.parametrize(
    "literal",
    [
        Literal(None, INT64),
        Literal(True, BOOL),
        Literal(-(2**63), INT64),
        Literal(float("nan"), FLOAT64),
        Literal(float("-inf"), FLOAT64),
        Literal(-0.0, FLOAT64),
        Literal(Decimal("-123.4500"), decimal(38, 4)),
        Literal("é\u2028\x00'\"", STRING),
        Literal(b"\x00\xff", BINARY),
        Literal(datetime.date(1969, 12, 31), DATE),
        Literal(datetime.time(23, 59, 59, 999999), TIME),
        Literal(datetime.datetime(1, 1, 1, 0, 0, 0, 1), TIMESTAMP),
        Literal(Interval(-14, 3, 10**15), INTERVAL),
    ],
)
def test_constants_come_back(literal: Literal) -> None:
    assert from_json(to_json(literal)) is literal


def test_a_dag_comes_back_equal() -> None:
    schema = Schema((Field("a", INT64, False),))
    source = ValuesSource(((Literal(1, INT64),),))
    hint = Hint(home=Tier.PINNED, rows_expected=7)
    pipeline = Pipeline(PipelineId(0), "values", source, (), EmitSink(EdgeId(3)), (), (schema,), hint)
    edge = Edge(EdgeId(3), "result", schema, (PipelineId(0),), (), ordered=True)
    dag = Dag((pipeline,), (edge,), EdgeId(3), schema)
    assert from_json(to_json(dag)) == dag


def test_what_is_shared_is_written_once() -> None:
    sources = parquet_tables(tpch_folder())
    plan = bind_sql(query_texts("tpch")["q21"], catalog_of(sources))
    nodes = json.loads(to_json(plan))["nodes"]
    assert len({json.dumps(node) for node in nodes}) == len(nodes)
    assert sum(node["class"] == "Scan" for node in nodes) == 4


# ------------------------------------------------------------------------------------------ bad input

GOOD = to_json(Literal(7, INT64))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be JSON"),
        ("{", "must be JSON"),
        ("[" * 100_000, "must be JSON"),
        ("7", "not a saved plan"),
        ("{}", "not a saved plan"),
        (GOOD.replace('"version":1', '"version":2'), "version 2"),
        (GOOD.replace('"nodes":', '"knots":'), "no list of nodes"),
        (GOOD.replace("Literal", "Numeral"), "no node called 'Numeral'"),
        (GOOD.replace('"value":7', '"values":7'), "has the fields value, type"),
        (GOOD.replace('"value":7', '"value":[7]'), "field value of Literal cannot be"),
        (GOOD.replace('"root":{"node":1}', '"root":{"node":2}'), "no node 2"),
        (GOOD.replace('"type":{"node":0}', '"type":{"node":1}'), "no node 1 before it"),
        (GOOD.replace('"is":"INT64"', '"is":"INT65"'), "no 'Kind' called 'INT65'"),
        (GOOD.replace('"value":7', '"value":{"decimal":"seven"}'), "not a decimal"),
        (GOOD.replace('"value":7', '"value":{"date":7}'), "not a date"),
        (GOOD.replace('"value":7', '"value":{"money":7}'), "no kind of value called 'money'"),
        (GOOD.replace('"is":"INT64"', '"is":"DECIMAL"'), "DataType cannot be made"),
    ],
)
def test_what_is_not_a_plan_is_refused(text: str, message: str) -> None:
    assert text != GOOD
    with pytest.raises(ArgumentFault, match=message):
        from_json(text)


def _values(document) -> list:
    """Every place of a document where a value can be changed: pairs of container and key."""
    found = []
    pending = [document]
    while pending:
        each = pending.pop()
        items = each.items() if isinstance(each, dict) else enumerate(each)
        for key, value in items:
            found.append((each, key))
            if isinstance(value, dict | list):
                pending.append(value)
    return found


@pytest.mark.parametrize("name", ["", "Scan", "sum"])
def test_a_function_that_is_none_is_an_argument_fault(name: str) -> None:
    schema = Schema((Field("a", INT64),))
    call = Call("negate", (Column(0, INT64),), INT64)
    document = json.loads(to_json(Project(Values((), schema), (call,), ("x",))))
    (entry,) = [entry for entry in document["nodes"] if entry["class"] == "Call"]
    entry["fields"]["function"] = name
    with pytest.raises(ArgumentFault):
        from_json(json.dumps(document))


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_damage_is_an_argument_fault_or_another_plan(data) -> None:
    document = json.loads(to_json(data.draw(plans(2))))
    container, key = data.draw(st.sampled_from(_values(document)))
    container[key] = data.draw(
        st.sampled_from([None, True, -1, 10**6, "", "Scan", [], [[]], {}, {"node": 0}, {"node": 5}, {"float": "x"}])
    )
    with contextlib.suppress(ArgumentFault):
        from_json(json.dumps(document))
