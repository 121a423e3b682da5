"""The search finds the cheapest order, over graphs small enough to try every order."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bireme.plan.rules import _orders
from bireme.plan.rules.order_joins_search import BUILD_COST, PROBE_COST, Step, best_order


@dataclass
class DrawnSizes:
    """A graph given by rows of units and shares of edges."""

    single: list[float]
    edges: dict[tuple[int, int], float]
    needs: list[int]
    neighbours: list[int] = field(init=False)

    def __post_init__(self):
        self.neighbours = [0] * self.count
        pairs = [1 << a | 1 << b for a, b in self.edges]
        pairs += [need | 1 << unit for unit, need in enumerate(self.needs) if need]
        for mask in pairs:
            for unit in bits(mask):
                self.neighbours[unit] |= mask & ~(1 << unit)

    @property
    def count(self):
        return len(self.single)

    def rows(self, units):
        rows = math.prod(self.single[unit] for unit in bits(units))
        return max(1.0, rows * math.prod(s for (a, b), s in self.edges.items() if units >> a & 1 and units >> b & 1))

    @property
    def built(self):
        return [100.0 if needs else rows for needs, rows in zip(self.needs, self.single, strict=True)]


def bits(mask):
    return [unit for unit in range(mask.bit_length()) if mask >> unit & 1]


def connected(sizes, units):
    reached = units & -units
    while True:
        grown = reached
        for unit in bits(reached):
            grown |= sizes.neighbours[unit] & units
        if grown == reached:
            return reached == units
        reached = grown


def brute_force(sizes, units, known):
    """The least cost over every tree without cross products, or None where there is none."""
    if units in known:
        return known[units]
    best = None
    if units & (units - 1) == 0:
        best = None if sizes.needs[bits(units)[0]] else 0.0
    else:
        for chosen in itertools.product((0, 1), repeat=len(bits(units))):
            left = sum(1 << unit for unit, take in zip(bits(units), chosen, strict=True) if take)
            right = units & ~left
            if not left or not right or not connected(sizes, left) or not connected(sizes, right):
                continue
            if not any(sizes.neighbours[unit] & right for unit in bits(left)):
                continue
            cost = split_cost(sizes, left, right, known)
            if cost is not None and (best is None or cost < best):
                best = cost
    known[units] = best
    return best


def split_cost(sizes, left, right, known):
    left_cost, right_cost = brute_force(sizes, left, known), brute_force(sizes, right, known)
    out = sizes.rows(left | right)
    if left_cost is not None and right_cost is not None:
        small, big = sorted((sizes.rows(left), sizes.rows(right)))
        return left_cost + right_cost + out + BUILD_COST * small + PROBE_COST * big
    unit = right.bit_length() - 1
    if left_cost is None or right != 1 << unit or not sizes.needs[unit] or sizes.needs[unit] & ~left:
        return None
    small, big = sorted((sizes.rows(left), sizes.built[unit]))
    return left_cost + out + BUILD_COST * small + PROBE_COST * big


def check_tree(sizes, step):
    """Every unit occurs once, and every attachment has what it needs on its left."""
    if step.left is None:
        assert step.units.bit_count() == 1
        return
    assert not step.left.units & step.right.units
    assert step.left.units | step.right.units == step.units
    check_tree(sizes, step.left)
    unit = step.right.units.bit_length() - 1
    if step.right.units == 1 << unit and sizes.needs[unit]:
        assert not sizes.needs[unit] & ~step.left.units
    else:
        assert step.left.rows >= step.right.rows
        check_tree(sizes, step.right)


@st.composite
def graphs(draw):
    leaves = draw(st.integers(1, 5))
    attachments = draw(st.integers(0, 2)) if leaves < 5 else draw(st.integers(0, 1))
    rows = [float(draw(st.sampled_from([1, 5, 25, 1000, 150_000, 6_000_000]))) for _ in range(leaves)]
    edges = {}
    for unit in range(1, leaves):
        edges[(draw(st.integers(0, unit - 1)), unit)] = draw(st.sampled_from([1.0, 0.2, 1e-3, 1e-5]))
    for a, b in itertools.combinations(range(leaves), 2):
        if (a, b) not in edges and draw(st.integers(0, 3)) == 0:
            edges[(a, b)] = draw(st.sampled_from([0.5, 1e-2, 1e-4]))
    needs = [0] * leaves
    for _ in range(attachments):
        rows.append(draw(st.sampled_from([0.001, 0.1, 1.0, 4.0])))
        needs.append(draw(st.integers(1, (1 << leaves) - 1)))
    return DrawnSizes(rows, edges, needs)


@settings(max_examples=80, deadline=None)
@given(graphs())
def test_the_exhaustive_search_finds_the_least_cost(sizes):
    everything = (1 << sizes.count) - 1
    found = best_order(sizes)
    check_tree(sizes, found)
    assert found.units == everything
    assert found.cost == pytest.approx(brute_force(sizes, everything, {}))


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_the_greedy_search_gives_a_whole_order(sizes):
    found = best_order(sizes, pair_count_max=0)
    check_tree(sizes, found)
    assert found.units == (1 << sizes.count) - 1
    assert found.cost >= best_order(sizes).cost * (1 - 1e-9)


def test_many_relations_are_ordered_greedily_in_time():
    chain = DrawnSizes([1000.0] * 60, {(unit, unit + 1): 1e-3 for unit in range(59)}, [0] * 60)
    check_tree(chain, best_order(chain, pair_count_max=1000))


def test_a_star_of_ten_is_searched_exhaustively_within_the_limit():
    star = DrawnSizes([6e6] + [10.0 * unit for unit in range(1, 10)], {(0, u): 0.01 for u in range(1, 10)}, [0] * 10)
    found = best_order(star)
    check_tree(star, found)
    assert is_right_deep(found)


def is_right_deep(step: Step) -> bool:
    """Whether one stream meets one built leaf after another."""
    return step.left is None or (step.right.left is None and is_right_deep(step.left))


def test_parts_that_nothing_connects_are_joined_last():
    sizes = DrawnSizes([10.0, 20.0, 3.0], {(0, 1): 0.1}, [0, 0, 0])
    found = best_order(sizes)
    assert found.right.units == 0b100
    assert found.units == 0b111


def test_a_graph_of_more_units_than_a_machine_word_has_bits_is_ordered_whole():
    for count in (63, 64, 65, 130):
        chain = DrawnSizes([1000.0] * count, {(unit, unit + 1): 1e-3 for unit in range(count - 1)}, [0] * count)
        found = best_order(chain, pair_count_max=10)
        check_tree(chain, found)
        assert found.units == (1 << count) - 1


def test_the_last_units_of_a_machine_word_are_searched():
    chain = DrawnSizes([100.0] * 64, {(62, 63): 1e-3, (61, 62): 1e-1}, [0] * 64)
    found = best_order(chain)
    check_tree(chain, found)
    assert found.units == (1 << 64) - 1


def test_what_asking_for_rows_raises_comes_out_of_the_search():
    class Failing(DrawnSizes):
        def rows(self, units):
            if units.bit_count() > 2:
                raise ZeroDivisionError
            return super().rows(units)

    with pytest.raises(ZeroDivisionError):
        best_order(Failing([1.0] * 4, {(unit, unit + 1): 0.5 for unit in range(3)}, [0] * 4))


def product_by_definition(single, classes, factors, units):
    logs = sum(single[unit] for unit in bits(units))
    for members in classes:
        logs -= sum([log for mask, log in members if not mask & ~units][1:])
    logs += sum(log for mask, log in factors if not mask & ~units)
    return max(1.0, math.exp(min(logs, 300.0)))


@pytest.mark.parametrize("count", [5, 64, 70])
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_rows_of_a_set_are_the_product_of_what_is_in_it(count, data):
    logs = st.floats(-20, 20)
    masks = st.integers(0, (1 << count) - 1) | st.sampled_from([1, 3, 1 << (count - 1)])
    single = data.draw(st.lists(logs, min_size=count, max_size=count))
    classes = data.draw(st.lists(st.lists(st.tuples(masks, logs), max_size=3), max_size=3))
    factors = data.draw(st.lists(st.tuples(masks, logs), max_size=3))
    rows = _orders.product(single, classes, factors, 300.0)
    for units in data.draw(st.lists(masks, min_size=1, max_size=5)):
        for _ in range(2):
            assert rows(units) == pytest.approx(product_by_definition(single, classes, factors, units))
