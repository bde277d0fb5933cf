"""The attack: its confidence, its test statistic, and that it decides for and against the right statements."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

from elementdp.audit import attack, clopper_pearson, epsilon_from_rates
from elementdp.audit.attack import components, draw, score
from elementdp.audit.mixtures import gaussian_delta
from elementdp.errors import ArgumentError
from elementdp.privacy import (
    Correlation,
    FixedOrder,
    RandomAllocation,
    Relation,
    Sampler,
    SubsampledGaussian,
    Unit,
    account,
)

USERS, PAIRS = Sampler.POISSON_USERS, Sampler.POISSON_PAIRS


@pytest.mark.parametrize(("hits", "trials"), [(0, 20), (3, 20), (20, 20), (117, 5000)])
def test_clopper_pearson_inverts_the_binomial(hits, trials):
    low, up = clopper_pearson(hits, trials, 0.99)
    if hits:
        assert binom.sf(hits - 1, trials, low) == pytest.approx(0.01, rel=1e-6)
    if hits < trials:
        assert binom.cdf(hits, trials, up) == pytest.approx(0.01, rel=1e-6)
    assert low <= hits / trials <= up


def test_rates_to_epsilon():
    assert epsilon_from_rates(0.5 + 1e-3, 0.05, 1e-3) == pytest.approx(math.log(10))
    assert epsilon_from_rates(0.1, 0.2, 0.0) == 0
    assert epsilon_from_rates(1e-6, 0.0, 1e-5) == 0


def test_score_is_the_log_likelihood_ratio():
    run = SubsampledGaussian(PAIRS, q=0.3, sigma=1.3, steps=4, elements_per_user=3)
    y = np.random.default_rng(0).normal(size=(5, 4))

    def density(secret):
        total = 0.0
        for drawn in range(3):
            for mine in (0, 1):
                chance = binom.pmf(drawn, 2, 0.3) * (0.3 if mine else 0.7)
                total = total + chance * norm.pdf(y, drawn + mine * secret, 1.3)
        return total

    np.testing.assert_allclose(score(run, y), np.log(density(1) / density(-1)).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("sampler", [USERS, PAIRS])
@pytest.mark.parametrize("secret", [1, -1])
def test_draws_have_the_moments_of_the_components(sampler, secret):
    run = SubsampledGaussian(sampler, q=0.2, sigma=1.0, steps=2, elements_per_user=5)
    means, chances = components(run, secret)
    draws = draw(run, secret, 200_000, np.random.default_rng(1))
    mean, second = chances @ means, chances @ (means**2) + 1
    spread = math.sqrt(second - mean**2)
    assert chances.sum() == pytest.approx(1)
    assert draws.mean() == pytest.approx(mean, abs=5 * spread / math.sqrt(draws.size))
    assert draws.var() == pytest.approx(spread**2, rel=0.02)


def test_without_sampling_the_bound_stays_below_the_exact_curve_and_is_not_trivial():
    """q = 1 is a Gaussian release with μ = 2√T/σ: its ε(δ) is known in closed form."""
    run, delta = SubsampledGaussian(USERS, q=1.0, sigma=4.0, steps=4, elements_per_user=3), 0.01
    mu = 2 * math.sqrt(4) / 4
    exact = next(e for e in np.linspace(0, 8, 8001) if gaussian_delta(e, mu) <= delta)
    found = attack(run, delta, trials=100_000, rng=np.random.default_rng(2))
    assert 0.5 * exact < found.low <= exact


def test_an_attack_on_nothing_finds_nothing():
    run = SubsampledGaussian(PAIRS, q=0.001, sigma=50.0, steps=2, elements_per_user=2)
    assert attack(run, 0.0, trials=20_000, rng=np.random.default_rng(3)).low < 0.02


def test_same_seed_same_bound():
    run = SubsampledGaussian(USERS, q=0.1, sigma=2.0, steps=5, elements_per_user=8)
    runs = [attack(run, 1e-3, trials=4000, rng=np.random.default_rng(7)) for _ in range(2)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"sampler": Sampler.FIXED_USERS}, "sampler"),
        ({"elements_per_user": None}, "elements_per_user"),
        ({"unit": Unit.USER}, "run"),
        ({"relation": Relation.ADD_REMOVE}, "run"),
    ],
)
def test_runs_it_does_not_attack_are_refused_by_name(change, name):
    run = replace(SubsampledGaussian(USERS, sigma=1.0, q=0.1, elements_per_user=1), **change)
    with pytest.raises(ArgumentError, match=name):
        attack(run, 0.01, trials=10, rng=np.random.default_rng(0))


@pytest.mark.parametrize("correlation", [Correlation(), Correlation.inverse_root(3), Correlation.optimised(4, 9, 4)])
def test_a_fixed_order_is_attacked_nearly_as_well_as_it_promises(correlation):
    run = FixedOrder(4.0, steps=9, batches=4, correlation=correlation)
    found = attack(run, 0.01, trials=100_000, rng=np.random.default_rng(5))
    assert 0.5 * account(run, 0.01).low < found.low <= account(run, 0.01).up


@pytest.mark.parametrize("steps", [12, 5])
def test_allocated_pairs_are_attacked_nearly_as_well_as_they_promise(steps):
    run = RandomAllocation(1.0, steps=steps, batches=6)
    found = attack(run, 0.01, trials=100_000, rng=np.random.default_rng(5))
    assert 0.5 * account(run, 0.01).low < found.low <= account(run, 0.01).up
    with pytest.raises(ArgumentError, match="replaced"):
        attack(replace(run, relation=Relation.ADD_REMOVE), 0.01, trials=10, rng=np.random.default_rng(0))


def test_the_score_of_a_fixed_order_has_the_moments_of_one_gaussian_release():
    run = FixedOrder(3.0, steps=12, batches=5, correlation=Correlation.inverse_root(4))
    scores = score(run, draw(run, 1, 40_000, np.random.default_rng(6)))
    assert scores.mean() == pytest.approx(run.mu**2 / 2, abs=5 * run.mu / 200)
    assert scores.std() == pytest.approx(run.mu, rel=0.02)
