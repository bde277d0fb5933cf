"""T-fold accountants against an inverted transform, and what follows from them; the box is in ``test_box``."""

import math

import pytest
from accounting_oracles import inverted

from elementdp.errors import ArgumentError
from elementdp.privacy import (
    Relation,
    Sampler,
    SubsampledGaussian,
    Unit,
    account,
    calibrate,
    claimed,
    delta_at,
    promise,
)

pairs = Sampler.POISSON_PAIRS


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "delta"),
    [
        (0.01, 8.0, 40_000, 5e-5),
        (0.05, 2.0, 300, 1e-12),
        (0.2, 20.0, 5_000, 1e-9),
        (0.5, 1.0, 60, 1e-6),
        (0.01, 1.0, 5_000, 1e-6),
    ],
)
def test_printed_pair_against_the_inverted_transform(q: float, sigma: float, steps: int, delta: float) -> None:
    band = account(SubsampledGaussian(pairs, sigma, q, steps), delta)
    assert band.gap <= 1e-3
    assert inverted(band.low, q, 1, 2, sigma, steps, swap=False) >= delta * (1 - 1e-7)
    assert inverted(band.up, q, 1, 2, sigma, steps, swap=False) <= delta * (1 + 1e-7)
    at = delta_at(SubsampledGaussian(pairs, sigma, q, steps), band.estimate)
    assert at.gap <= 1e-3
    assert at.low <= inverted(band.estimate, q, 1, 2, sigma, steps, swap=False) <= at.up


@pytest.mark.parametrize(("q", "sigma", "steps", "delta"), [(0.02, 3.0, 4_000, 1e-7), (0.3, 2.0, 200, 1e-10)])
def test_added_or_removed_is_the_worse_direction(q: float, sigma: float, steps: int, delta: float) -> None:
    band = account(SubsampledGaussian(pairs, sigma, q, steps, relation=Relation.ADD_REMOVE), delta)
    assert band.gap <= 1e-3
    for end, sign in ((band.low, 1), (band.up, -1)):
        worse = max(inverted(end, q, 1, 1, sigma, steps, swap=swap) for swap in (False, True))
        assert sign * (worse / delta - 1) >= -1e-6


def test_whole_user_is_the_printed_pair_with_less_noise() -> None:
    user = SubsampledGaussian(Sampler.POISSON_USERS, 12.0, 0.05, 50, unit=Unit.USER, elements_per_user=6)
    assert account(user, 1e-6) == account(SubsampledGaussian(pairs, 2.0, 0.05, 50), 1e-6)
    assert claimed(user, 1e-6) == claimed(SubsampledGaussian(pairs, 2.0, 0.05, 50), 1e-6)


def test_whole_user_under_pair_sampling_is_bracketed() -> None:
    """One step, M = 3: the binomial pair by a plain sum over outcomes lies in the band, and the band is narrow."""
    import numpy as np

    q, sigma, epsilon = 0.1, 4.0, 0.1
    z = np.linspace(-60, 60, 200_001)
    weights = [math.comb(3, j) * q**j * (1 - q) ** (3 - j) for j in range(4)]

    def law(sign: int) -> np.ndarray:
        return sum(w * np.exp(-((z - sign * j) ** 2) / (2 * sigma**2)) for j, w in enumerate(weights))

    scale = (z[1] - z[0]) / (sigma * math.sqrt(2 * math.pi))
    shown = float(np.maximum(law(1) - math.exp(epsilon) * law(-1), 0).sum() * scale)
    band = delta_at(SubsampledGaussian(pairs, sigma, q, 1, Unit.USER, 3), epsilon)
    assert band.low <= shown * (1 + 1e-6)
    assert shown <= band.up * (1 + 1e-6)
    assert band.low >= 0.99 * shown


def test_the_claim_is_too_small_for_sampled_users_and_true_for_sampled_pairs() -> None:
    users = SubsampledGaussian(Sampler.POISSON_USERS, 8.0, 0.01, 40_000, elements_per_user=30)
    assert claimed(users, 5e-5) < account(users, 5e-5).low / 5
    repaired = SubsampledGaussian(pairs, 8.0, 0.01, 40_000, elements_per_user=30)
    assert account(repaired, 5e-5).up < claimed(repaired, 5e-5) == claimed(users, 5e-5)


@pytest.mark.parametrize("sampler", ["poisson-pairs", "poisson-users", "fixed-users"])
@pytest.mark.parametrize("bound", [None, 4])
def test_calibrated_noise_is_the_smallest(sampler: str, bound: int | None) -> None:
    start = SubsampledGaussian(Sampler(sampler), 1.0, 0.02, 500, elements_per_user=bound)
    found = calibrate(start, 1.5, 1e-6)
    assert promise(found, 1e-6).epsilon <= 1.5
    slightly_less = SubsampledGaussian(Sampler(sampler), found.sigma * 0.998, 0.02, 500, elements_per_user=bound)
    assert promise(slightly_less, 1e-6).epsilon > 1.5


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-3, math.nan])
def test_bad_delta_is_named(delta: float) -> None:
    with pytest.raises(ArgumentError, match="delta"):
        account(SubsampledGaussian(pairs, 1.0, 0.1), delta)
