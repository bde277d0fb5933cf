"""The noise for a target where ε is hard to count: enough, nearly the least, and found in few looks."""

import itertools
from dataclasses import replace

import pytest

from elementdp.privacy import Relation, Sampler, SubsampledGaussian, Unit, account, calibrate, promise
from elementdp.privacy.accountant import least_promise

pairs, added = Sampler.POISSON_PAIRS, Relation.ADD_REMOVE
RARE = [  # whole users who seldom take part: ε is near a cliff, and its bound may jump
    (SubsampledGaussian(pairs, 1.0, 3e-7, 12_452, Unit.USER, 3344, added), 1.41, 1e-6),
    (SubsampledGaussian(pairs, 1.0, 2.41e-7, 27_558, Unit.USER, 1542, added), 3.41, 2.38e-11),
    (SubsampledGaussian(pairs, 1.0, 5.11e-6, 10**6, Unit.USER, 140, added), 35.7, 5.31e-11),
]


@pytest.mark.parametrize(("event", "epsilon", "delta"), RARE)
def test_noise_near_a_cliff_is_enough_and_found_in_few_looks(
    event: SubsampledGaussian, epsilon: float, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def counted(run: SubsampledGaussian, at: float, target: float | None = None) -> float:
        looks.append(run.sigma)
        return least_promise(run, at, target)

    monkeypatch.setattr("elementdp.privacy.calibration.least_promise", counted)
    found = calibrate(event, epsilon, delta)
    assert len(looks) <= 20
    band = account(found, delta)
    assert band.low <= band.up <= epsilon
    assert promise(replace(found, sigma=found.sigma / 1.002), delta).epsilon > epsilon


@pytest.mark.parametrize("sigma", [1.0, 1.2, 5.3, 100.0, 1e5, 1e7])
def test_a_user_who_seldom_takes_part_is_between_two_simpler_ones(sigma: float) -> None:
    """Of a user's few shown coins the least is one and the most all of them: pairs with one shift, counted apart."""
    q, size, steps, delta = 5.11e-6, 140, 10**6, 5.31e-11
    band = account(SubsampledGaussian(pairs, sigma, q, steps, Unit.USER, size, added), delta)
    rate = -((1 - q) ** size - 1)
    least = account(SubsampledGaussian(pairs, sigma, rate, steps, relation=added), delta)
    most = account(SubsampledGaussian(Sampler.POISSON_USERS, sigma, rate, steps, Unit.USER, size, added), delta)
    assert least.low <= band.up <= most.up * (1 + 1e-3)
    if sigma > 5:  # then a second coin, which shows once in thousands of times, hardly matters
        assert band.up <= 1.5 * least.up


def test_the_bound_falls_as_noise_grows() -> None:
    event = RARE[0][0]
    ups = [account(replace(event, sigma=sigma), 1e-6).up for sigma in (1.0, 1.49, 1.65, 1.77, 4.97, 5.57)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(ups))
