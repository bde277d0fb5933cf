"""Corners of the box, for every sampler, unit and relation: large swings, rare participation, little noise."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.privacy import (
    Knowledge,
    Relation,
    Sampler,
    SubsampledGaussian,
    Unit,
    account,
    delta_at,
    gaussian_epsilon,
    worst_case,
)

fixed, pairs = Sampler.FIXED_USERS, Sampler.POISSON_PAIRS


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (SubsampledGaussian(fixed, 1.99, 0.769, 537, Unit.USER, 30), 6e-8),  # a loss that is constant one way round
        (SubsampledGaussian(fixed, 1.56, 2.62e-5, 8091, Unit.USER, 30), 3.4e-10),  # absence has a chance below 1e-40
        (SubsampledGaussian(fixed, 3.0142572230654503, 9.147923334285989e-4, 2, Unit.USER, 30), 5.67e-12),  # a cliff
        (SubsampledGaussian(Sampler.POISSON_USERS, 0.5, 0.3, 40_000, elements_per_user=7), 1e-6),  # participation shows
    ],
)
def test_no_adversary_beats_the_bound(event: SubsampledGaussian, delta: float) -> None:
    """The adversaries exist and the bounds are proved, by different computations: a band out of order is an error."""
    band = account(event, delta)
    assert band.low <= band.up
    at = delta_at(event, band.estimate)
    assert at.low <= at.up


def test_a_whole_user_under_very_much_noise_is_nearly_gaussian() -> None:
    """The 500 coins of a step move its mean by 25, on average, and the noise hides by how much more or less."""
    event = SubsampledGaussian(pairs, 1e5, 0.05, 400, Unit.USER, 500, Relation.ADD_REMOVE)
    band = account(event, 1e-5)
    assert band.low <= gaussian_epsilon(1e-5, 25 * 20 / 1e5) * 1.05
    assert gaussian_epsilon(1e-5, 25 * 20 / 1e5) <= band.up <= gaussian_epsilon(1e-5, 500 * 20 / 1e5)


def test_curves_of_rough_laws_are_answered() -> None:
    """δ(0) of rare and unmistakable participation: at most T·q, and nearly that."""
    event = SubsampledGaussian(pairs, 0.179, 6e-6, 92)
    at = delta_at(event, 0.0)
    assert 0.95 * 92 * 6e-6 <= at.low <= at.up
    assert at.low <= 92 * 6e-6


def test_a_whole_user_with_little_noise_has_the_loss_of_the_binomial_pair() -> None:
    """With very many steps the loss is normal: its moments for a mixture of M + 1 normals are plain sums."""
    size, q, sigma, steps, delta = 5, 0.2155, 0.17, 141_488, 4.4e-5
    z = np.linspace(-3, size + 3, 400_001)
    parts = [
        math.log(math.comb(size, j) * q**j * (1 - q) ** (size - j)) - (z - j) ** 2 / (2 * sigma**2)
        for j in range(size + 1)
    ]
    log_first = np.logaddexp.reduce(parts, axis=0)
    mass, loss = np.exp(log_first), log_first + z**2 / (2 * sigma**2)
    mean = float(mass @ loss / mass.sum())
    spread = math.sqrt(float(mass @ (loss - mean) ** 2 / mass.sum()))
    expected = steps * mean - NormalDist().inv_cdf(delta) * math.sqrt(steps) * spread
    event = SubsampledGaussian(pairs, sigma, q, steps, Unit.USER, size, relation=Relation.ADD_REMOVE)
    band = account(event, delta)
    assert band.low <= 1.002 * expected
    assert 0.998 * expected <= band.up <= 1.05 * expected


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    st.sampled_from([Sampler.POISSON_USERS, fixed, pairs]),
    st.sampled_from(Unit),
    st.sampled_from(Relation),
    st.sampled_from([1, 2, 30]),
    st.floats(-1, 4),
    st.floats(-6, 0),
    st.sampled_from([1, 40]),
    st.floats(-12, -0.5),
)
def test_every_combination_has_an_answer_below_that_without_sampling(
    sampler: Sampler,
    unit: Unit,
    relation: Relation,
    size: int,
    log_sigma: float,
    log_q: float,
    steps: int,
    log_delta: float,
) -> None:
    if sampler is fixed and unit is Unit.USER:
        relation = Relation.REPLACE
    event = SubsampledGaussian(sampler, 10**log_sigma, min(1.0, 10**log_q), steps, unit, size, relation)
    delta = 10**log_delta
    band, worst = account(event, delta), worst_case(event)
    assert 0 <= band.low <= band.up
    if worst.knowledge is not Knowledge.COUNTED:
        assert band.up <= gaussian_epsilon(delta, worst.change * math.sqrt(steps) / event.sigma) * (1 + 1e-3) + 1e-6
