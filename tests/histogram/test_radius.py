"""The private choice of ρ: its queries move by √K at most, it minimises what it should, and comes near the best ρ."""

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.histogram.noise import seeded_noise
from elementdp.histogram.projection import GroupCounts
from elementdp.histogram.radius import RadiusSearch, balance, rho_grid

VECTORS = st.lists(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=4), max_size=12)


def groups(vectors: list[list[float]]) -> GroupCounts:
    keys = np.repeat(np.arange(len(vectors), dtype=np.uint64), [len(vector) for vector in vectors])
    items = np.array([place for vector in vectors for place in range(len(vector))], dtype=np.int64)
    counts = np.array([count for vector in vectors for count in vector], dtype=float)
    return GroupCounts.sorted(keys, items, counts, np.ones(len(keys), dtype=bool))


def quiet(most_items: int = 4, *, whole: bool = False) -> RadiusSearch:
    return RadiusSearch(rho_grid(whole=whole), most_items, 0.0)


@pytest.mark.parametrize("whole", [False, True])
def test_grid_is_searched_within_its_steps(whole: bool) -> None:
    search = quiet(whole=whole)
    assert list(search.grid) == sorted(search.grid)
    assert len(search.grid) <= 2**search.steps
    assert search.grid[0] <= (1.0 if whole else 1e-9)
    assert search.grid[-1] >= 1e9


@given(VECTORS, st.lists(st.floats(1e-9, 1e9), max_size=4))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_one_group_moves_each_query_by_at_most_the_bound(vectors: list[list[float]], other: list[float]) -> None:
    search = quiet()
    before = search.measure(groups(vectors))
    for neighbour in ([*vectors, other], [*vectors[1:], other], vectors[1:]):
        after = search.measure(groups([vector for vector in neighbour if vector]))
        assert np.abs(after - before).max(initial=0) <= search.bound
    assert search.bound <= math.sqrt(4) * search.unit


def test_the_bound_is_reached_by_a_group_of_equal_counts() -> None:
    search = quiet()
    assert search.measure(groups([[5.0] * 4]))[0] == search.bound


def test_more_items_than_an_element_has_are_cut() -> None:
    """Two groups whose hashes collide look like one with too many items."""
    search = quiet(most_items=2)
    assert search.measure(groups([[1.0] * 4]))[0] == search.bound


@given(VECTORS, st.floats(0.1, 20))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_without_noise_the_choice_minimises_bias_plus_noise(vectors: list[list[float]], slope: float) -> None:
    search = quiet()
    chosen = search.choose(search.measure(groups(vectors)), slope, lambda values, scale: values)

    def bound(rho: float) -> float:
        lost = (sum(v) * max(0.0, 1 - rho / math.hypot(*v)) for v in vectors)
        return sum(lost) + slope * rho

    # The derivative changes sign at the chosen ρ, so the best of the grid is there or one step below.
    place = search.grid.index(chosen)
    near = search.grid[max(0, place - 1) : place + 1]
    assert min(map(bound, near)) == pytest.approx(min(map(bound, search.grid)), rel=1e-4)


def test_search_costs_its_mu() -> None:
    search = RadiusSearch.of(0.07, 9, whole=True)
    assert search.steps * 9 / search.noise**2 == pytest.approx(0.07**2)
    asked: list[float] = []

    def spy(values: np.ndarray, scale: float) -> np.ndarray:
        asked.append(scale)
        return values

    search.choose(search.measure(groups([[40.0]] * 1000)), 10.0, spy)
    assert len(asked) <= search.steps
    assert set(asked) == {search.scale}


def test_noise_alone_seldom_drives_rho_away() -> None:
    """No group above ρ = 1: a choice above the last steps' reach needs a step that errs by three deviations."""
    search = RadiusSearch.of(0.07, 1, whole=True)
    nothing = search.measure(groups([[1.0]] * 500))
    away = sum(search.choose(nothing, 0.0, seeded_noise(seed)) > 2.0**4 for seed in range(1000))
    assert away <= 3 * 0.00135 * 1000 + 10


def test_balance_is_the_expected_absolute_noise() -> None:
    assert balance(np.full(300, 5.0)) == pytest.approx(300 * 5 * math.sqrt(2 / math.pi))


def benchmark() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "histogram_radius.py"
    spec = importlib.util.spec_from_file_location("histogram_radius", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["hundreds of items a group", "one item a group", "weights of 1e-7", "weights of 1e9"])
def test_the_choice_is_near_the_best_in_hindsight(kind: str) -> None:
    radius = benchmark()
    table = radius.KINDS[kind](np.random.default_rng(0), 0.2)
    assert float(np.median(radius.ratios(table, 1.0, 5))) <= radius.BAR
