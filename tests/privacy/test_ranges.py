"""Beyond the tested box a run is refused by name; at its edge the answers are still in order."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from accounting_oracles import one_step

from elementdp.errors import ArgumentError
from elementdp.privacy import (
    LeastNoiseWarning,
    Sampler,
    SubsampledGaussian,
    account,
    calibrate,
    delta_at,
    gaussian_delta,
    gaussian_epsilon,
)


@pytest.mark.parametrize(
    ("name", "values"),
    [("steps", {"steps": 10**11}), ("sigma", {"sigma": 1e-5}), ("sigma", {"sigma": 1e9}), ("q", {"q": 1e-12}),
     ("elements_per_user", {"elements_per_user": 10**9})],
)  # fmt: skip
def test_what_is_not_tested_is_refused_by_name(name: str, values: dict[str, float]) -> None:
    with pytest.raises(ArgumentError, match=name):
        SubsampledGaussian(**{"sampler": Sampler.POISSON_PAIRS, "sigma": 1.0, "q": 0.1, **values})  # type: ignore[arg-type]


def test_epsilon_grows_with_the_number_of_steps_up_to_the_edge() -> None:
    runs = [SubsampledGaussian(Sampler.POISSON_PAIRS, 8.0, 0.01, 10**power) for power in range(0, 10)]
    bands = [account(run, 1e-5) for run in runs]
    for earlier, later in itertools.pairwise(bands):
        assert 0 <= earlier.low <= earlier.up
        assert earlier.low <= later.up
    # Telling who takes part can only hurt, so the sampled run stays below the Gaussian one of all the steps.
    mu = 2 * math.sqrt(runs[-1].steps) / runs[-1].sigma
    assert 1 < bands[-1].low <= mu**2 / 2 + mu * math.sqrt(2 * math.log(1e5))


def test_noise_that_cannot_be_had_is_refused_and_little_is_returned_at_the_edge() -> None:
    with pytest.raises(ArgumentError, match="epsilon"):
        calibrate(SubsampledGaussian(Sampler.POISSON_USERS, 1.0, 0.5, 10**6), 1e-9, 1e-12)
    with pytest.warns(LeastNoiseWarning, match=r"sigma = 0\.01 is the least noise .* epsilon = 0, within 100000"):
        lax = calibrate(SubsampledGaussian(Sampler.POISSON_PAIRS, 1.0, 1e-6, 1), 1e5, 0.5)
    assert account(lax, 0.5).up <= 1e5


@pytest.mark.parametrize(("epsilon", "mu"), [(1e-6, 1e-6), (1e-9, 3e-6), (0.0, 1e-7), (3e-5, 5e-6), (1e-4, 9.9e-6)])
def test_the_gaussian_curve_keeps_its_digits_for_tiny_shifts(epsilon: float, mu: float) -> None:
    with mp.workdps(60):
        e, m = mp.mpf(epsilon), mp.mpf(mu)
        exact = mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)
        assert gaussian_delta(epsilon, mu) == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize(
    ("q", "sigma", "epsilon"), [(0.01, 1.0, 9.0), (0.01, 1.0, 12.0), (0.01, 1.0, 20.0), (0.3, 2.0, 7.0)]
)
def test_an_epsilon_hardly_ever_reached_has_a_tiny_delta(q: float, sigma: float, epsilon: float) -> None:
    """The curve beyond every loss that matters, against quadrature: a bound of one would be true and useless."""
    band = delta_at(SubsampledGaussian(Sampler.POISSON_PAIRS, sigma, q), epsilon)
    assert band.low <= one_step(epsilon, q, 1, 2, sigma) <= band.up < 1e-40


def test_narrow_numbers_count_as_what_they_are() -> None:
    plain = SubsampledGaussian(Sampler.POISSON_PAIRS, float(np.float32(1.1)), float(np.float32(0.01)), 3_000)
    narrow = SubsampledGaussian(Sampler.POISSON_PAIRS, np.float32(1.1), np.float32(0.01), np.int16(3_000))  # type: ignore[arg-type]
    assert account(narrow, 1e-6) == account(plain, 1e-6)
    mu = 2 * math.sqrt(100) / float(np.float32(1.1))
    alone = account(SubsampledGaussian(Sampler.NONE, np.float32(1.1), steps=100), 1e-6)  # type: ignore[arg-type]
    assert alone.low <= gaussian_epsilon(1e-6, mu) <= alone.up
