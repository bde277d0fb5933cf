"""Users with elements: the element-level risk by hand, the samplers by enumeration, partitions in closed form."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import expit

from elementdp.companion.theory import (
    Logistic,
    NoisySteps,
    UserPopulation,
    example_users,
    iid_users,
    private_averages,
    private_limit,
    step_scatter,
)
from elementdp.companion.theory.glm import (
    misspecified_population,
    partition_effect,
    printed_risk,
    tied_optimum,
    tied_users,
    wellspecified_population,
)
from elementdp.companion.theory.privacy_rates import printed_rate, true_rate
from elementdp.companion.theory.private import SAMPLERS, _without_replacement
from elementdp.privacy import Sampler


def test_element_risk_by_hand() -> None:
    users = UserPopulation(
        Logistic(),
        np.array([[1.0], [2.0], [3.0], [1.0]]),
        np.array([1.0, -1.0, 1.0, 1.0]),
        np.array([0, 0, 0, 1]),
        np.array([5, 5, 7, 5]),
        np.array([0.25, 0.75]),
    )
    t = 0.4
    loss = [math.log(1 + math.exp(-y * x * t)) for x, y in ((1, 1), (2, -1), (3, 1), (1, 1))]
    assert users.risk(np.array([t])) == pytest.approx(0.25 * ((loss[0] + loss[1]) / 2 + loss[2]) + 0.75 * loss[3])
    best = minimize_scalar(
        lambda v: users.risk(np.array([v])), bounds=(-20, 20), method="bounded", options={"xatol": 1e-10}
    )
    assert users.optimum[0] == pytest.approx(best.x, abs=1e-5)


def test_sampled_step_covariances_by_enumeration() -> None:
    """One step on a tiny sample, every coin toss listed: second moments of the three samplers at θ̂ of that sample."""
    rng = np.random.default_rng(0)
    n, elements, m = 4, 2, 2
    g = rng.normal(size=(n, elements, 2))
    g -= g.sum(axis=1).mean(axis=0) / elements  # the sample's mean gradient is 0, as at θ̂_n
    users = g.sum(axis=1)
    q = m / n

    def moment(units: np.ndarray, subsets: list[tuple[tuple[int, ...], float]]) -> np.ndarray:
        total = np.zeros((2, 2))
        for chosen, chance in subsets:
            step = units[list(chosen)].sum(axis=0) / m
            total += chance * np.outer(step, step)
        return total

    def coins(count: int) -> list[tuple[tuple[int, ...], float]]:
        return [
            (chosen, q ** len(chosen) * (1 - q) ** (count - len(chosen)))
            for size in range(count + 1)
            for chosen in itertools.combinations(range(count), size)
        ]

    fixed = [(chosen, 1 / math.comb(n, m)) for chosen in itertools.combinations(range(n), m)]
    pairs = g.reshape(n * elements, 2)
    scatter = users.T @ users / n
    np.testing.assert_allclose(moment(users, coins(n)), (1 - q) * scatter / m, atol=1e-12)
    np.testing.assert_allclose(moment(users, fixed), (1 - q) * n / (n - 1) * scatter / m, atol=1e-12)
    np.testing.assert_allclose(moment(pairs, coins(n * elements)), (1 - q) * (pairs.T @ pairs / n) / m, atol=1e-12)


def test_scatter_of_samplers() -> None:
    together, apart = example_users((3.0, 3.0, 3.0)), example_users((3.0, -3.0, 3.0))
    for users in (together, apart):
        np.testing.assert_allclose(step_scatter(users, Sampler.FIXED_USERS), users.user_scatter)
        # Cauchy-Schwarz: a user's K gradients summed are at most K times their squares summed.
        assert np.linalg.eigvalsh(3 * users.pair_scatter - users.user_scatter).min() > -1e-9
        g = users.pair_gradients(users.optimum)
        mean = users.p[users.pair_owner] @ g
        np.testing.assert_allclose(mean, 0, atol=1e-10)
    np.testing.assert_allclose(together.pair_scatter, apart.pair_scatter, atol=1e-9)
    assert together.user_scatter[0, 0] > together.pair_scatter[0, 0] > apart.user_scatter[0, 0]
    with pytest.raises(ValueError, match="sampler"):
        step_scatter(together, Sampler.NONE)


def test_hypergeometric_counts() -> None:
    rng = np.random.default_rng(0)
    counts = np.tile(np.array([[3], [1], [2]]), (1, 20_000))
    drawn = _without_replacement(counts, 2, rng)
    assert (drawn.sum(axis=0) == 2).all()
    assert (drawn <= counts).all()
    both = ((drawn[0] == 1) & (drawn[2] == 1)).mean()
    assert both == pytest.approx(3 * 2 / math.comb(6, 2), abs=4 * math.sqrt(0.4 * 0.6 / 20_000))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_private_iteration_descends_to_the_optimum(sampler: Sampler) -> None:
    users = example_users((1.0, 1.0, 1.0))
    found = private_averages(
        users, sampler, 400, 4, [50, 1600], NoisySteps(0.25, 0.7, 0.5), 60, np.random.default_rng(1)
    )
    spread = np.sqrt(np.trace(private_limit(users, sampler, 4, 4.0, users.element_lipschitz, 0.5)) / 400)
    assert np.linalg.norm(found[1].mean(axis=0) - users.optimum) < 6 * spread / math.sqrt(60) + 0.02


def test_private_refusals() -> None:
    users, rng = example_users(), np.random.default_rng(0)
    with pytest.raises(ValueError, match="rho"):
        private_averages(users, Sampler.POISSON_USERS, 10, 2, [5], NoisySteps(0.1, 0.7), 2, rng, rho=0.1)
    with pytest.raises(ValueError, match="m must"):
        private_averages(users, Sampler.POISSON_USERS, 10, 20, [5], NoisySteps(0.1, 0.7), 2, rng)


def test_printed_rate_is_the_infimum() -> None:
    for n, sigma in ((100, 1.5), (10_000, 3.0), (10**7, 1.5)):
        m, gamma, delta = 5, 2.0, 1e-5
        slope = gamma * m * m / (n * sigma**2)
        orders = np.geomspace(1e-3, sigma**2 * math.log(n / m), 40_001)
        grid = (slope * (1 + orders) - math.log(delta) / orders).min()
        assert printed_rate(n, m, gamma, sigma, delta) == pytest.approx(grid, rel=1e-6)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(clusters=st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_covariate_partitions_keep_the_optimum(clusters: list[int]) -> None:
    well = wellspecified_population()
    users = iid_users(well, {1: 0.3, 2: 0.7}, np.repeat(clusters, 2))
    np.testing.assert_allclose(users.optimum, [0.3, 0.8], atol=1e-9)
    theta = np.array([-0.3, 0.5])
    for pick in ("point", "user"):
        assert printed_risk(users, theta, pick) == pytest.approx(users.risk(theta), rel=1e-12)


def test_refining_a_partition_never_lowers_the_information() -> None:
    well = wellspecified_population()
    chain = ([0] * 4, [0, 0, 1, 1], [0, 2, 1, 1], [0, 1, 2, 3])
    found = [iid_users(well, {1: 0.5, 3: 0.5}, np.repeat(c, 2)).hessian for c in chain]
    for coarse, fine in itertools.pairwise(found):
        assert np.linalg.eigvalsh(fine - coarse).min() > -1e-12


def test_finest_partition_has_the_variance_of_maximum_likelihood() -> None:
    """Distinct elements for every point: M points a user, so the covariance is the inverse information over E[M]."""
    well = wellspecified_population()
    users = tied = iid_users(well, {1: 1.0}, np.zeros(8, dtype=int))
    np.testing.assert_allclose(users.sandwich(users.user_scatter), np.linalg.inv(well.hessian(well.optimum)), rtol=1e-8)
    assert tied.hessian == pytest.approx(well.hessian(well.optimum))
    triple = iid_users(well, {3: 1.0}, np.zeros(8, dtype=int))
    np.testing.assert_allclose(
        triple.sandwich(triple.user_scatter), np.linalg.inv(well.hessian(well.optimum)) / 3, rtol=1e-8
    )


def test_misspecified_and_label_partitions_move_the_optimum() -> None:
    uneven = np.array([0, 0, 0, 0, 0, 0, 1, 1])
    whole = np.zeros(8, dtype=int)
    bad, well = misspecified_population(), wellspecified_population()
    sizes = {1: 0.5, 3: 0.5}
    moved = (
        partition_effect(iid_users(bad, sizes, uneven)).optimum - partition_effect(iid_users(bad, sizes, whole)).optimum
    )
    assert np.linalg.norm(moved) > 1e-3
    split = partition_effect(iid_users(well, sizes, np.tile([0, 1], 4))).optimum
    assert np.linalg.norm(split - well.optimum) > 1e-3
    single = partition_effect(iid_users(well, {1: 1.0}, np.tile([0, 1], 4))).optimum
    np.testing.assert_allclose(single, well.optimum, atol=1e-9)  # with one point a user no partition matters


def test_tied_users_by_closed_form() -> None:
    for gap in (0.05, 0.1):
        assert tied_users(gap, split=True).optimum[0] == pytest.approx(0.0, abs=1e-9)
        assert tied_users(gap, split=False).optimum[0] == pytest.approx(tied_optimum(gap), abs=1e-9)
        assert expit(tied_optimum(gap)) == pytest.approx(0.5 + gap)


def test_user_sampled_runs_do_not_gain_from_a_crowd() -> None:
    """The ε of sampled users, put back into the binomial mixture of Gaussian curves, written out here."""
    m, gamma, sigma, delta = 5, 1.0, 3.0, 1e-6
    found = []
    for n in (500, 50_000):
        epsilon = true_rate(Sampler.POISSON_USERS, n, m, gamma, sigma, delta)
        counts = np.arange(1, 200)
        mu = 2 * np.sqrt(counts) / sigma
        curve = stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        assert stats.binom.pmf(counts, n, m / n) @ curve == pytest.approx(delta, rel=1e-5)
        assert true_rate(Sampler.FIXED_USERS, n, m, gamma, sigma, delta) == pytest.approx(epsilon)
        found.append(epsilon)
    assert found[1] > 0.99 * found[0]
    pairs = [true_rate(Sampler.POISSON_PAIRS, n, m, gamma, sigma, delta) for n in (500, 50_000)]
    assert pairs[1] < pairs[0] / 5


def test_points_independent_given_their_number_do_not_save_the_printed_risk() -> None:
    # Within each size the labels of tied_users are independent and identically distributed; only the law differs
    # between sizes. So the formula for R_el needs one law for all sizes.
    users, theta = tied_users(0.1, split=False), np.array([0.7])
    for size, chance in ((1, 0.8), (3, 0.4)):
        owners = np.flatnonzero(np.bincount(users.owner) == size)
        for owner in owners:
            yes = int((users.y[users.owner == owner] > 0).sum())
            assert users.p[owner] == pytest.approx(0.5 * chance**yes * (1 - chance) ** (size - yes))
    # One element for all: R_el takes users alike (P(yes) = 0.6), the printed formula data points (P(yes) = 1/2).
    assert users.risk(theta) - printed_risk(users, theta, "point") == pytest.approx(-0.1 * 0.7)
