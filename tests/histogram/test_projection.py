"""The projection onto whole numbers: exact norms, the sensitivity by enumeration, and no dependence on order."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.companion.theory.counting.projection import project
from elementdp.elements import Clusters
from elementdp.errors import ArgumentError
from elementdp.histogram.errors import TableError
from elementdp.histogram.projection import FRACTION_UNITS, GridBall, GroupCounts

COUNTS = st.lists(st.floats(0, 2.0**31, allow_nan=False), min_size=1, max_size=6)


def one_group(counts: list[float]) -> GroupCounts:
    return GroupCounts.of(np.zeros(len(counts), np.uint64), np.arange(len(counts)), *parts(counts))


def parts(counts: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Whole parts, and fractions in their units."""
    values = np.array(counts, dtype=float)
    whole = np.floor(values)
    return whole.astype(np.int64), np.floor((values - whole) * FRACTION_UNITS).astype(np.int64)


def dense(groups: GroupCounts, values: np.ndarray, items: int) -> np.ndarray:
    total = np.zeros(items, dtype=np.int64)
    np.add.at(total, groups.items, values)
    return total


@pytest.mark.parametrize("rho", [0.3, 1.0, math.sqrt(3), 7, 2.0**30])
def test_a_ball_is_as_fine_as_64_bits_allow(rho: float) -> None:
    ball = GridBall.of(rho)
    assert 2**29 < ball.radius <= 2**30
    assert Fraction(ball.radius) / Fraction(ball.grid) <= Fraction(rho)
    assert ball.rho == pytest.approx(rho, rel=2**-29)
    assert ball.sensitivity(one_item=True) == ball.radius
    assert Fraction(ball.sensitivity(one_item=False)) ** 2 >= 2 * ball.radius**2


@pytest.mark.parametrize("rho", [0, -1, math.nan, math.inf, 2.0**41, 2.0**-41])
def test_rho_out_of_range(rho: float) -> None:
    with pytest.raises(ArgumentError, match="rho"):
        GridBall.of(rho)


@given(COUNTS, st.floats(2.0**-10, 2.0**30))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_norm_is_within_the_ball_in_exact_arithmetic(counts: list[float], rho: float) -> None:
    ball = GridBall.of(rho)
    inside = one_group(counts).project(ball).tolist()
    assert all(value >= 0 for value in inside)
    assert sum(value**2 for value in inside) <= ball.radius**2


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.floats(0.5, 60))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_projection_is_the_papers_up_to_the_grid(counts: list[int], rho: float) -> None:
    ball = GridBall.of(rho)
    groups = one_group([float(count) for count in counts])
    ours = dense(groups, groups.project(ball), len(counts)) / ball.grid
    papers = project(np.array([counts], dtype=float), Clusters.single(len(counts)), rho).toarray()[0]
    assert np.all(ours <= papers + 1e-9 * rho)
    assert np.all(papers - ours <= 2.0**-28 * max(rho, 1))


def test_sensitivity_by_enumeration_is_reached_and_not_passed() -> None:
    ball = GridBall.of(2.0)
    space = [list(map(float, counts)) for counts in itertools.product(range(5), repeat=2)]
    projected = [dense(group, group.project(ball), 2) for group in map(one_group, space)]
    furthest = max(np.linalg.norm((x - y).astype(float)) for x, y in itertools.combinations(projected, 2))
    assert furthest == pytest.approx(ball.sensitivity(one_item=False), rel=1e-12)
    alone = [one_group([float(count)]).project(ball).sum() for count in range(5)]
    assert max(alone) - min(alone) == ball.sensitivity(one_item=True)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.floats(0, 1e6)), max_size=30),
    st.randoms(use_true_random=False),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_order_of_rows_and_other_groups_do_not_matter(rows: list[tuple[int, int, float]], random: object) -> None:
    def contributions(rows: list[tuple[int, int, float]]) -> dict[tuple[int, int], int]:
        keys = np.array([row[0] for row in rows], dtype=np.uint64)
        items = np.array([row[1] for row in rows], dtype=np.int64)
        groups = GroupCounts.of(keys, items, *parts([row[2] for row in rows]))
        pairs = zip(groups.keys.tolist(), groups.items.tolist(), strict=True)
        return dict(zip(pairs, groups.project(GridBall.of(3.0)).tolist(), strict=True))

    whole = contributions(rows)
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    relabelled = [(key, 4 - item, count) for key, item, count in shuffled]
    assert {(key, 4 - item): z for (key, item), z in contributions(relabelled).items()} == whole
    for key in {row[0] for row in rows}:
        alone = contributions([row for row in rows if row[0] == key])
        assert alone == {pair: z for pair, z in whole.items() if pair[0] == key}


def test_pairs_are_added_up_and_empty_ones_left_out() -> None:
    keys = np.array([7, 7, 7, 2], dtype=np.uint64)
    groups = GroupCounts.of(keys, np.array([1, 1, 0, 5]), np.array([3, 4, 0, 9]))
    assert groups.keys.tolist() == [2, 7]
    assert groups.items.tolist() == [5, 1]
    assert groups.counts.tolist() == [9, 7]
    assert GroupCounts.none().project(GridBall.of(1.0)).size == 0


ODD = 0x9E3779B97F4A7C15  # items whose products with it agree in the upper bits cannot be told apart by these
NEAR = [(product ^ low) * pow(ODD, -1, 2**64) % 2**64 for product in (0, 5 << 60) for low in range(3)]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(NEAR)), max_size=40))
def test_every_pair_is_there_once_also_where_items_nearly_agree(rows: list[tuple[int, int]]) -> None:
    keys, items = (np.array([row[k] for row in rows], dtype=np.uint64) for k in (0, 1))
    groups = GroupCounts.of(keys, items)
    pairs = list(zip(groups.keys.tolist(), groups.items.tolist(), strict=True))
    assert dict(zip(pairs, groups.counts.tolist(), strict=True)) == Counter(rows)
    assert len(set(pairs)) == len(pairs)
    assert groups.keys.tolist() == sorted(groups.keys.tolist())


def test_a_sum_that_overflows_is_refused() -> None:
    huge = np.full(3, 2**62, dtype=np.int64)
    with pytest.raises(TableError, match="more than 64 bits hold"):
        GroupCounts.of(np.zeros(3, np.uint64), np.zeros(3, np.int64), huge)


def test_pairs_apart_are_bounded_one_by_one() -> None:
    ball = GridBall.of(1.0)
    groups = one_group([3.0, 4.0])
    assert groups.apart().project(ball).tolist() == [ball.radius, ball.radius]
    assert groups.project(ball).tolist() == [math.floor(0.6 * ball.radius), math.floor(0.8 * ball.radius)]


def test_norms_are_the_same_to_the_last_bit_in_any_order() -> None:
    rng = np.random.default_rng(0)
    whole, fraction = rng.integers(1, 1 << 30, 500), rng.integers(0, FRACTION_UNITS, 500)
    keys = np.zeros(500, np.uint64)
    norms = {GroupCounts.of(keys, rng.permutation(500), whole, fraction).norms()[0] for _ in range(50)}
    assert len(norms) == 1


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.floats(1e-7, 1e9)), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_counts_of_any_size_are_added_up_to_a_part_in_a_trillion(rows: list[tuple[int, int, float]]) -> None:
    keys, items = (np.array([row[k] for row in rows]) for k in (0, 1))
    groups = GroupCounts.of(keys.astype(np.uint64), items, *parts([row[2] for row in rows]))
    exact: dict[tuple[int, int], Fraction] = {}
    for key, item, count in rows:
        exact[key, item] = exact.get((key, item), Fraction(0)) + Fraction(count)
    for key, item, count in zip(groups.keys.tolist(), groups.items.tolist(), groups.counts.tolist(), strict=True):
        assert (
            abs(Fraction(count) - exact[key, item]) <= len(rows) * Fraction(1, FRACTION_UNITS) + Fraction(count) / 2**52
        )
