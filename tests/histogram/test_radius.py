"""The private choice of ρ: queries that move by their bounds at most, and a choice near the best ρ."""

import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.histogram.noise import seeded_noise
from elementdp.histogram.projection import GroupCounts
from elementdp.histogram.radius import RATIO_UNITS, RadiusSearch, balance

VECTORS = st.lists(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=4), max_size=12)


def groups(vectors: list[list[float]]) -> GroupCounts:
    keys = np.repeat(np.arange(len(vectors), dtype=np.uint64), [len(vector) for vector in vectors])
    items = np.array([place for vector in vectors for place in range(len(vector))], dtype=np.int64)
    counts = np.array([count for vector in vectors for count in vector], dtype=float)
    return GroupCounts.sorted(keys, items, counts, np.ones(len(keys), dtype=bool))


def exact(values: np.ndarray, scale: float) -> np.ndarray:
    """No noise, for what the search does without."""
    return values


@pytest.mark.parametrize("whole", [False, True])
def test_grid_is_searched_within_its_steps(whole: bool) -> None:
    search = RadiusSearch.of(0.1, 4, 10.0, whole=whole)
    assert list(search.grid) == sorted(search.grid)
    assert len(search.grid) == 2 ** len(search.steps)
    assert search.grid[0] <= (1.0 if whole else 1e-9)
    assert search.grid[-1] >= 1e9


@given(VECTORS, st.lists(st.floats(1e-9, 1e9), max_size=4), st.floats(0.01, 100))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_one_group_moves_each_query_by_at_most_its_bound(
    vectors: list[list[float]], other: list[float], wanted: float
) -> None:
    """Whatever the noise makes the search ask, the step that asks there has noise for what a group can move."""
    search = RadiusSearch.of(0.5, 4, wanted, whole=False)
    before = search.measure(groups(vectors))
    for neighbour in ([*vectors, other], [*vectors[1:], other], vectors[1:]):
        moved = np.abs(search.measure(groups([vector for vector in neighbour if vector])) - before)
        for path in ((up,) * len(search.steps) for up in (False, True)):
            check_path(search, moved, path)
        check_path(search, moved, [place % 2 == 0 for place in range(len(search.steps))])


def check_path(search: RadiusSearch, moved: np.ndarray, path: Sequence[bool]) -> None:
    low, high = 0, len(search.grid) - 1
    for step, up in zip(search.steps, path, strict=True):
        middle = (low + high) // 2
        assert moved[middle] <= step.bound
        low, high = (middle + 1, high) if up else (low, middle)
    assert low == high


def test_the_bound_is_reached_by_a_group_of_equal_counts() -> None:
    search = RadiusSearch.of(0.5, 4, 1e6, whole=True)
    assert {step.bound for step in search.steps} == {2 * RATIO_UNITS}
    assert search.measure(groups([[5.0] * 4]))[0] == 2 * RATIO_UNITS


def test_more_items_than_an_element_has_are_cut() -> None:
    """Two groups whose hashes collide look like one with too many items."""
    search = RadiusSearch.of(0.5, 2, 1e6, whole=True)
    assert search.measure(groups([[1.0] * 4]))[0] == search.widest.bound <= math.sqrt(2) * RATIO_UNITS


@given(VECTORS, st.floats(0.1, 20))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_without_noise_the_choice_minimises_bias_plus_noise(vectors: list[list[float]], slope: float) -> None:
    search = RadiusSearch.of(1e6, 4, slope, whole=False)
    chosen = search.choose(search.measure(groups(vectors)), exact)

    def bound(rho: float) -> float:
        lost = (sum(v) * max(0.0, 1 - rho / math.hypot(*v)) for v in vectors)
        return sum(lost) + slope * rho

    # The derivative changes sign at the chosen ρ, so the best of the grid is there or one step below.
    place = search.grid.index(chosen)
    near = search.grid[max(0, place - 1) : place + 1]
    assert min(map(bound, near)) == pytest.approx(min(map(bound, search.grid)), rel=1e-4)


@pytest.mark.parametrize("wanted", [0.0, 40.0, 1e6])
def test_search_costs_its_mu(wanted: float) -> None:
    search = RadiusSearch.of(0.07, 9, wanted, whole=True)
    asked: list[float] = []

    def spy(values: np.ndarray, scale: float) -> np.ndarray:
        asked.append(scale)
        return values

    search.choose(search.measure(groups([[40.0]] * 1000)), spy)
    assert asked == [step.scale for step in search.steps]
    assert sum((step.bound / step.scale) ** 2 for step in search.steps) == pytest.approx(0.07**2)


def test_cutting_ratios_takes_nothing_from_groups_of_equal_counts() -> None:
    """Where noise hides S, ratios are cut: groups of the largest ratio go through once they would without the cut."""
    largest, wanted = 4, 20.0
    cut, noise_alone = (RadiusSearch.of(0.3, largest**2, one, whole=True).steps for one in (wanted, 0.0))
    assert {step.bound for step in noise_alone} == {RATIO_UNITS}
    assert any(RATIO_UNITS < step.bound < largest * RATIO_UNITS for step in cut)
    for step, quiet in zip(cut, noise_alone, strict=True):
        seen = step.bound / (largest * RATIO_UNITS)  # the part of their D that the step sees
        assert step.wanted / seen <= max(wanted, largest * quiet.wanted) * (1 + 1e-5)


def test_noise_alone_seldom_drives_rho_away() -> None:
    """No group above ρ = 1: noise makes ρ too large by little on average, though one step can make it 2¹⁶ times that.

    Eight steps with a risk of 3 in 100 each; the mean over the seeds is checked without its wildest hundredth, since a
    step that is wrong once in ten thousand times would decide it.
    """
    search = RadiusSearch.of(0.07, 1, 0.0, whole=True)
    nothing = search.measure(groups([[1.0]] * 500))
    chosen = np.sort([search.choose(nothing, seeded_noise(seed)) for seed in range(1000)])
    assert chosen[:990].mean() <= 1 + 0.03 * len(search.steps)


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
    setting = radius.Setting(radius.KINDS[kind](np.random.default_rng(0), 0.2), 1.0)
    assert float(np.mean(setting.ratios(5))) <= radius.BAR


def test_a_step_needs_a_number_of_groups_and_any_choice_half_as_many() -> None:
    """The two numbers of "What no search can see", which hold for ε = 1 with twenty items."""
    radius = benchmark()
    heavy, without = (
        radius.Setting(radius.some_bots(share, 20)(np.random.default_rng(0), 1.0), 1.0) for share in (0.003, 0.0)
    )
    assert radius.least_heavy(heavy, without) == 41
    step = RadiusSearch.of(heavy.mu("radius"), 20, 0.0, whole=True).steps[0]
    assert step.bound == RATIO_UNITS
    assert round(step.wanted) == 86
