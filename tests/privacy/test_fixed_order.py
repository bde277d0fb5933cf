"""A fixed order of batches: its one Gaussian release, against brute force, dense matrices and closed forms."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from elementdp.errors import ArgumentError, NoGuaranteeError
from elementdp.privacy import (
    Correlation,
    FixedOrder,
    Relation,
    Sampler,
    SubsampledGaussian,
    Unit,
    account,
    calibrate,
    delta_at,
    gaussian_epsilon,
    promise,
    proved_better,
    turning_point,
)

quick = settings(max_examples=40, deadline=None, derandomize=True)


def matrix(correlation: Correlation, steps: int) -> np.ndarray:
    """C, by inverting the banded matrix itself."""
    inverse = np.zeros((steps, steps))
    for band, weight in enumerate(correlation.weights):
        inverse += weight * np.eye(steps, k=-band)
    return np.linalg.inv(inverse)


def patterns(steps: int, apart: int) -> list[list[int]]:
    """Every non-empty set of steps that are at least ``apart`` from each other."""
    found: list[list[int]] = [[]]
    for step in range(steps):
        found += [[*seen, step] for seen in found if not seen or step - seen[-1] >= apart]
    return found[1:]


@pytest.mark.parametrize("steps", [1, 4, 7, 8])
@pytest.mark.parametrize("batches", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "correlation",
    [Correlation(), Correlation.inverse_root(2), Correlation.inverse_root(5), Correlation((1.0, -0.9, -0.05))],
)
def test_no_pattern_of_steps_and_signs_moves_the_sums_further(
    steps: int, batches: int, correlation: Correlation
) -> None:
    run = FixedOrder(1.0, steps, batches, correlation=correlation)
    c = matrix(correlation, steps)
    worst = 0.0
    for seen in patterns(steps, batches):
        signs = np.array(list(itertools.product([-2.0, 2.0], repeat=len(seen))))
        worst = max(worst, float(np.linalg.norm(signs @ c[:, seen].T, axis=1).max()))
    assert worst == pytest.approx(run.mu, rel=1e-12)


@quick
@given(st.integers(0, 2**32 - 1))
def test_directions_and_shorter_changes_do_not_either(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps, batches = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    correlation = Correlation.inverse_root(int(rng.integers(1, 7)))
    changes = rng.normal(size=(steps, 3))
    changes *= 2 * rng.random((steps, 1)) / np.linalg.norm(changes, axis=1, keepdims=True)
    start = int(rng.integers(0, batches))
    changes[np.arange(steps) % batches != start] = 0.0
    moved = np.linalg.norm(matrix(correlation, steps) @ changes)
    assert moved <= FixedOrder(1.0, steps, batches, correlation=correlation).mu * (1 + 1e-12)


@pytest.mark.parametrize(
    ("steps", "batches", "visits"), [(500, 100, 5), (501, 100, 6), (99, 100, 1), (3, 1, 3), (1, 7, 1)]
)
def test_an_epoch_begun_counts_as_whole(steps: int, batches: int, visits: int) -> None:
    run = FixedOrder(4.0, steps, batches)
    assert run.epochs == visits
    exact = gaussian_epsilon(5e-5, 2 * math.sqrt(visits) / 4)
    band = account(run, 5e-5)
    assert band.low <= exact <= band.up
    assert delta_at(run, exact).estimate == pytest.approx(5e-5, rel=1e-6)
    assert account(FixedOrder(4.0, steps, batches, elements_per_user=9), 5e-5) == band


def test_a_whole_user_and_other_relations() -> None:
    user = FixedOrder(40.0, 10, 5, Unit.USER, elements_per_user=7)
    assert user.mu == pytest.approx(2 * 7 * math.sqrt(2) / 40)
    added = FixedOrder(4.0, 10, 5, relation=Relation.ADD_REMOVE)
    assert added.mu == pytest.approx(math.sqrt(2) / 4)
    with pytest.raises(NoGuaranteeError, match="elements_per_user given"):
        FixedOrder(4.0, 10, 5, Unit.USER)
    with pytest.raises(NoGuaranteeError, match="other batches"):
        FixedOrder(4.0, 10, 5, Unit.USER, 7, Relation.ADD_REMOVE)


@pytest.mark.parametrize("weights", [(1.0, 0.5), (1.0, -1.5), (1.0, 0.0, -0.5), (1.0, -0.5, 0.4), (1.0, -1e308, 1e308)])
def test_what_is_not_proved_is_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(NoGuaranteeError, match="decrease"):
        FixedOrder(4.0, 20, 5, correlation=Correlation(weights))


@pytest.mark.parametrize("weights", [(), (2.0,), (1.0, math.nan), (1.0,) * 65])
def test_weights_out_of_range_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(ArgumentError, match="weights"):
        Correlation(weights)


@pytest.mark.parametrize(
    ("change", "name"),
    [({"sigma": 0.0}, "sigma"), ({"steps": 0}, "steps"), ({"batches": 0}, "batches"), ({"unit": "thing"}, "unit")],
)
def test_runs_out_of_range_are_refused_by_name(change: dict[str, float], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        FixedOrder(**{"sigma": 1.0, "steps": 10, "batches": 2, **change})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="FixedOrder"):
        SubsampledGaussian(Sampler.FIXED_ORDER, 1.0)


def test_calibrated_noise_is_the_closed_form() -> None:
    correlation = Correlation.optimised(4, 60, 20)
    for run in (FixedOrder(1.0, 60, 20), FixedOrder(1.0, 60, 20, correlation=correlation)):
        found = calibrate(run, 2.0, 1e-6)
        assert 2.0 * (1 - 1e-3) < account(found, 1e-6).up <= 2.0
        assert gaussian_epsilon(1e-6, run.mu / found.sigma) <= 2.0
        assert promise(found, 1e-6).sampler is Sampler.FIXED_ORDER


@pytest.mark.parametrize("steps", [1, 12, 40])
@pytest.mark.parametrize("batches", [1, 7])
@pytest.mark.parametrize("bands", [1, 3, 8])
def test_the_error_is_that_of_dense_matrices(steps: int, batches: int, bands: int) -> None:
    correlation = Correlation.inverse_root(bands)
    prefix = np.tril(np.ones((steps, steps)))
    seen = np.arange(0, steps, batches)

    def loss(c: np.ndarray) -> float:
        return float(np.linalg.norm(c[:, seen].sum(axis=1)) * np.linalg.norm(prefix @ np.linalg.inv(c)))

    ratio = loss(matrix(correlation, steps)) / loss(np.eye(steps))
    assert correlation.error(steps, batches) == pytest.approx(ratio, rel=1e-10)


@pytest.mark.parametrize(("steps", "batches"), [(200, 50), (300, 300), (64, 1)])
def test_the_optimum_of_two_bands_is_that_of_a_search(steps: int, batches: int) -> None:
    found = Correlation.optimised(2, steps, batches).error(steps, batches)
    tried = [Correlation((1.0, -u)).error(steps, batches) for u in np.linspace(0, 0.999, 400)]
    assert found <= min(tried) * (1 + 1e-5)


def test_a_run_too_long_for_correlated_noise_is_refused_before_the_work() -> None:
    with pytest.raises(ArgumentError, match="steps must be at most 10,000,000 with correlated noise"):
        Correlation.optimised(3, 10**9, 10**6)


@pytest.mark.parametrize("bands", [3, 6, 12])
def test_more_bands_and_optimising_never_hurt(bands: int) -> None:
    steps, batches = 240, 40
    best = Correlation.optimised(bands, steps, batches).error(steps, batches)
    assert best <= Correlation.inverse_root(bands).error(steps, batches)
    assert best <= Correlation.optimised(bands - 1, steps, batches).error(steps, batches) * (1 + 1e-4)
    FixedOrder(1.0, steps, batches, correlation=Correlation.optimised(bands, steps, batches))  # is proved


def test_given_step_sizes_are_what_is_optimised_for() -> None:
    steps, batches = 40, 10
    sizes = 1 / np.arange(1, steps + 1)
    workload = np.tril(np.ones((steps, steps))) * sizes

    def loss(correlation: Correlation) -> float:
        c = matrix(correlation, steps)
        return float(np.linalg.norm(c[:, ::batches].sum(axis=1)) * np.linalg.norm(workload @ np.linalg.inv(c)))

    own = Correlation.optimised(4, steps, batches, lambda k: float(sizes[k - 1]))
    assert loss(own) < loss(Correlation.optimised(4, steps, batches))
    assert loss(own) < loss(Correlation())


@quick
@given(st.floats(0.05, 8), st.floats(0.05, 20))
def test_the_turning_point_is_where_the_second_derivative_vanishes(epsilon: float, w: float) -> None:
    assume(abs(w / turning_point(epsilon) - 1) > 1e-3)
    with mp.workdps(60):

        def delta(square: mp.mpf) -> mp.mpf:
            mu = mp.sqrt(square)
            return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)

        bend = mp.diff(delta, mp.mpf(w), 2)
    assert (bend > 0) == (w < turning_point(epsilon))


@quick
@given(st.integers(1, 40), st.integers(2, 200), st.floats(-0.3, 1.5), st.floats(-2, 1.2))
def test_what_is_proved_better_is_better(visits: int, batches: int, log_sigma: float, log_epsilon: float) -> None:
    sigma, epsilon = 10**log_sigma, 10**log_epsilon
    users = SubsampledGaussian(Sampler.POISSON_USERS, sigma, 1 / batches, visits * batches)
    sampled, ordered = delta_at(users, epsilon), delta_at(FixedOrder(sigma, visits * batches, batches), epsilon)
    says = proved_better(users, epsilon)
    if says is Sampler.FIXED_ORDER:
        assert ordered.low <= sampled.up
    elif says is Sampler.POISSON_USERS:
        assert sampled.low <= ordered.up


def test_both_answers_occur_and_sampling_wins_at_zero() -> None:
    users = SubsampledGaussian(Sampler.POISSON_USERS, 4.0, 0.01, 500)
    assert proved_better(users, 4.55) is Sampler.FIXED_ORDER
    assert proved_better(users, 0.0) is Sampler.POISSON_USERS
    hardly = SubsampledGaussian(Sampler.POISSON_USERS, 25.0, 0.3, 30)  # with δ below 1e-200
    assert proved_better(hardly, 13.0) is not Sampler.POISSON_USERS
    with pytest.raises(ArgumentError, match="samples users"):
        proved_better(SubsampledGaussian(Sampler.POISSON_PAIRS, 4.0, 0.01, 500), 1.0)
