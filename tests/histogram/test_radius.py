"""The private choice of ρ: its queries move by one, and without noise it minimises the bound it is meant to."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.histogram.noise import seeded_noise
from elementdp.histogram.radius import RHO_GRID, STEPS, RadiusSearch, balance, groups_above

NORMS = st.lists(st.floats(0, 1e6), max_size=40)


def test_grid_is_searched_within_its_steps() -> None:
    assert list(RHO_GRID) == sorted(RHO_GRID)
    assert len(RHO_GRID) <= 2**STEPS


@given(NORMS, st.floats(0, 1e9))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_one_group_moves_each_query_by_at_most_one(norms: list[float], other: float) -> None:
    before = groups_above(np.array(norms))
    for neighbour in ([*norms, other], [*norms[1:], other], norms[1:]):
        assert np.abs(groups_above(np.array(neighbour)) - before).max() <= 1


@given(NORMS, st.floats(0.1, 20))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_without_noise_the_choice_minimises_bias_plus_noise(norms: list[float], slope: float) -> None:
    quiet = RadiusSearch(scale=0.0)
    values = np.array(norms)
    chosen = quiet.choose(groups_above(values), slope, lambda value, scale: value)

    def bound(rho: float) -> float:
        return float(np.maximum(values - rho, 0).sum() + slope * rho)

    # The derivative changes sign at the chosen ρ, so the best of the grid is there or one step below.
    place = RHO_GRID.index(chosen)
    near = RHO_GRID[max(0, place - 1) : place + 1]
    assert min(map(bound, near)) == pytest.approx(min(map(bound, RHO_GRID)))


def test_search_costs_its_mu() -> None:
    search = RadiusSearch.of(0.07)
    assert STEPS / search.noise**2 == pytest.approx(0.07**2)
    asked: list[float] = []

    def spy(values: np.ndarray, scale: float) -> np.ndarray:
        asked.append(scale)
        return values

    search.choose(groups_above(np.full(1000, 40.0)), 10.0, spy)
    assert len(asked) <= STEPS
    assert set(asked) == {search.scale}


def test_noisy_choice_is_near_the_quiet_one_when_groups_are_many() -> None:
    norms = np.random.default_rng(0).lognormal(2.0, 1.0, 200_000)
    wanted = balance(np.full(300, 5.0))
    assert wanted == pytest.approx(300 * 5 * math.sqrt(2 / math.pi))
    quiet = RadiusSearch(scale=0.0).choose(groups_above(norms), wanted, lambda value, scale: value)
    search = RadiusSearch.of(0.07)
    for seed in range(20):
        assert 0.5 <= search.choose(groups_above(norms), wanted, seeded_noise(seed)) / quiet <= 2


def test_noise_alone_seldom_drives_rho_away() -> None:
    """No group above ρ = 1: the choice is 1 unless one of six steps errs by three deviations, P < 6·0.00135."""
    search = RadiusSearch.of(0.07)
    nothing = groups_above(np.ones(500))
    away = sum(search.choose(nothing, 0.0, seeded_noise(seed)) > 1.0 for seed in range(1000))
    assert away <= 20
