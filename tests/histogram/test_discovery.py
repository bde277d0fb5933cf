"""Private discovery: the threshold's δ in closed form and by simulation, the sensitivity by enumeration."""

import itertools
import math

import mpmath as mp
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from elementdp.errors import ArgumentError
from elementdp.histogram.bad_rows import RowPolicy
from elementdp.histogram.discovery import Threshold, discover
from elementdp.histogram.element_rule import element_rule
from elementdp.histogram.engine import Columns
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.items import Discovery
from elementdp.histogram.local import LocalEngine
from elementdp.histogram.noise import seeded_noise
from elementdp.histogram.projection import GroupCounts
from elementdp.histogram.text import hash_strings

Rows = list[tuple[int, str]]


def no_noise(values: np.ndarray, scale: float) -> np.ndarray:
    return values


def groups(rows: Rows) -> GroupCounts:
    items = hash_strings(pa.array([row[1] for row in rows], pa.string()))
    return GroupCounts.of(np.array([row[0] for row in rows], dtype=np.uint64), items.view(np.int64))


def weights(rows: Rows, rule: Threshold) -> dict[str, int]:
    names = sorted({row[1] for row in rows})
    texts = dict(zip(hash_strings(pa.array(names, pa.string())).tolist(), names, strict=True))
    totals: dict[str, int] = {}
    for item, weight in zip(*(column.tolist() for column in rule.naming.weights(groups(rows))), strict=True):
        totals[texts[item]] = totals.get(texts[item], 0) + weight
    return totals


@pytest.mark.parametrize("delta", [1e-12, 5e-7, 0.01])
@pytest.mark.parametrize("most", [1, 7, 100])
def test_threshold_pays_exactly_its_delta(delta: float, most: int) -> None:
    rule = Threshold.of(0.1, delta, most, one_item=False)
    with mp.workdps(40):
        leaks = []
        for size in range(1, most + 1):
            reach = mp.floor(mp.sqrt(mp.mpf(2) ** 60 / size))
            tail = mp.erfc((rule.value - reach - 1) / mp.mpf(rule.scale) / mp.sqrt(2)) / 2
            leaks.append(1 - (1 - tail) ** size)
        assert 0.9999 * delta <= max(leaks) <= delta
    assert rule.delta() == pytest.approx(float(max(leaks)), rel=1e-6)


def test_heaviest_weight_is_what_the_projection_gives() -> None:
    rule = Threshold.of(0.1, 1e-6, 100, one_item=False)
    for size in (1, 2, 3, 50, 100):
        found = weights([(1, f"item {k}") for k in range(size)], rule)
        assert len(found) == size
        assert rule.naming.heaviest(size) - 1 <= max(found.values()) <= rule.naming.heaviest(size)


def test_sensitivity_by_enumeration() -> None:
    """All neighbours of a small sample: one group names any of the subsets of four items instead."""
    rule = Threshold.of(0.1, 1e-6, 3, one_item=False)
    items = "abcd"
    subsets = [s for size in range(5) for s in itertools.combinations(items, size)]
    others: Rows = [(2, "a"), (2, "b"), (3, "d")]
    vectors = [weights(others + [(1, item) for item in subset], rule) for subset in subsets]
    dense = np.array([[vector.get(item, 0) for item in items] for vector in vectors], dtype=float)
    furthest = max(np.linalg.norm(x - y) for x, y in itertools.combinations(dense, 2))
    assert furthest == pytest.approx(rule.sensitivity, rel=1e-8)
    assert furthest <= rule.sensitivity


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcdefghij")), max_size=40),
    st.sets(st.sampled_from("abcdefghij")),
    st.integers(1, 4),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_one_group_moves_weights_within_the_sensitivity_and_names_few(rows: Rows, other: set[str], most: int) -> None:
    rule = Threshold.of(0.1, 1e-6, most, one_item=False)
    neighbour = [row for row in rows if row[0] != 0] + [(0, item) for item in sorted(other)]
    x, y = weights(rows, rule), weights(neighbour, rule)
    assert sum((x.get(item, 0) - y.get(item, 0)) ** 2 for item in x.keys() | y.keys()) <= 2 * rule.naming.ball.radius**2
    fresh = x.keys() - y.keys()
    assert len(fresh) <= most
    assert all(x[item] <= rule.naming.heaviest(len(fresh)) for item in fresh)


def test_one_item_elements_move_by_one_weight() -> None:
    rule = Threshold.of(0.1, 1e-6, 100, one_item=True)
    both = weights([(1, "a"), (1, "b")], rule)  # groups whose hashes collided: still bounded one by one
    assert both == {"a": rule.naming.ball.radius, "b": rule.naming.ball.radius}
    assert rule.sensitivity == rule.naming.ball.radius
    assert rule.naming.most_items == 1


def test_common_items_are_found_in_order_and_rare_ones_are_not() -> None:
    rows = [(f"user {key}", word) for key in range(2000) for word in ("zebra", "ant")] + [("another", "secret")]
    users, words = zip(*rows, strict=True)
    rule = Threshold.of(0.5, 1e-6, 10, one_item=False)
    source = LocalEngine(batch_rows=300, part_bytes=1 << 10).open(pa.table({"user": users, "word": words}))
    element = element_rule("user", "user", "word", source.names, source.source)
    with source.grouped(Columns("user", ("word",)), element, None, RowPolicy(), ItemHash.seeded(0)) as events:
        assert discover(events, rule, no_noise).items == ["ant", "zebra"]


def test_a_group_of_its_own_is_released_no_more_often_than_its_delta() -> None:
    delta, runs, size = 0.2, 4000, 5
    rule = Threshold.of(1.0, delta, size, one_item=False)
    add_noise = seeded_noise(0)
    leaks = 0
    weight = rule.naming.heaviest(size)
    for _ in range(runs):
        leaks += bool((add_noise(np.full(size, weight), rule.scale) >= rule.value).any())
    low = binomtest(leaks, runs).proportion_ci(0.9999, method="exact").low
    assert low <= delta
    assert leaks / runs > delta / 20  # the bound is not vacuous: some number of items comes near it


@pytest.mark.parametrize("most", [0, -3, 1.5])
def test_bad_number_of_items(most: float) -> None:
    with pytest.raises(ArgumentError, match="max_items_per_element"):
        Discovery(most)  # type: ignore[arg-type]
    assert math.isfinite(Threshold.of(0.1, 1e-6, 1, one_item=False).value)
