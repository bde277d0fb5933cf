"""Counts of users, sensitivities by brute force, ordering loss and exact misordering against enumeration."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import ndtr
from scipy.stats import multinomial

from elementdp.companion.theory.counting import heavy_hitters, indicator_sensitivity, item_users, ordering_loss
from elementdp.companion.theory.ordering import (
    difference_law,
    expected_ordering_loss,
    misorder_probability,
    misorder_probability_by_conditioning,
    printed_gamma,
    repaired_gamma,
)
from elementdp.elements import Partition, element_sensitivity, global_sensitivity
from elementdp.errors import ArgumentError
from elementdp.privacy import Unit


@pytest.mark.parametrize(("m", "d"), [(1, 2), (2, 3), (2, 4), (3, 3)])
def test_sensitivities_by_brute_force(m: int, d: int) -> None:
    space = [dict(enumerate(x)) for x in product(range(m + 1), repeat=d) if sum(x) <= m]
    present = lambda x: [float(x[j] > 0) for j in range(d)]  # noqa: E731
    assert element_sensitivity(present, space, Partition.identity()) == indicator_sensitivity(Unit.ELEMENT, m, d)
    assert global_sensitivity(present, space) == pytest.approx(indicator_sensitivity(Unit.USER, m, d))
    exactly_m = [x for x in space if sum(x.values()) == m]
    assert element_sensitivity(present, exactly_m, Partition.identity()) == 0


def test_counts_and_noise_at_both_levels() -> None:
    rng = np.random.default_rng(0)
    counts = csr_array(rng.multinomial(5, np.full(4000, 1 / 4000), size=30))
    users = np.count_nonzero(counts.toarray(), axis=0)
    assert np.array_equal(item_users(counts), users)
    element = heavy_hitters(counts, 1.0, 1e-6, Unit.ELEMENT, rng)
    user = heavy_hitters(counts, 1.0, 1e-6, Unit.USER, rng, m=5)
    assert user.noise_sd == pytest.approx(math.sqrt(10) * element.noise_sd)
    assert np.std(element.value - users) == pytest.approx(element.noise_sd, rel=0.05)
    with pytest.raises(ArgumentError, match="distinct items"):
        heavy_hitters(counts, 1.0, 1e-6, Unit.USER, rng, m=1)
    with pytest.raises(ArgumentError, match="user-level"):
        heavy_hitters(counts, 1.0, 1e-6, Unit.USER, rng)


def test_ordering_loss_counts_wrong_pairs() -> None:
    p = np.array([0.5, 0.3, 0.2])
    assert ordering_loss(np.array([3.0, 2.0, 1.0]), p, 0.05) == 0
    assert ordering_loss(np.array([1.0, 2.0, 3.0]), p, 0.05) == 3
    assert ordering_loss(np.array([1.0, 2.0, 3.0]), p, 0.15) == 2
    assert ordering_loss(np.array([1.0, 2.0, 3.0]), p, 0.25) == 1


@pytest.mark.parametrize("sigma", [0.0, 0.7])
def test_misordering_by_full_enumeration(sigma: float) -> None:
    n, m, p = 2, 3, np.array([0.4, 0.25, 0.35])
    users = [x for x in product(range(m + 1), repeat=3) if sum(x) == m]
    weight = {x: multinomial.pmf(x, m, p) for x in users}
    brute = 0.0
    for pair in product(users, repeat=n):
        gap = sum((x[0] > 0) - (x[1] > 0) for x in pair)
        below = float(gap < 0) if sigma == 0 else float(ndtr(-gap / (math.sqrt(2) * sigma)))
        brute += math.prod(weight[x] for x in pair) * below
    assert misorder_probability(0.4, 0.25, n, m, sigma) == pytest.approx(brute, rel=1e-10)
    assert misorder_probability_by_conditioning(0.4, 0.25, n, m, sigma) == pytest.approx(brute, rel=1e-10)
    assert difference_law(0.4, 0.25, m).sum() == pytest.approx(1.0)


def test_expected_loss_adds_all_pairs() -> None:
    p = np.array([0.1, 0.1, 0.05, 0.02])
    pairs = [(a, b) for i, a in enumerate(p) for b in p[i + 1 :] if a - b >= 0.04]
    direct = sum(misorder_probability(a, b, 50, 4, 2.0) for a, b in pairs)
    assert expected_ordering_loss(p, 50, 4, 2.0, 0.04) == pytest.approx(direct)


def test_expected_loss_agrees_with_simulation() -> None:
    rng = np.random.default_rng(0)
    n, m, sigma, gamma = 60, 4, 1.5, 0.03
    p = np.array([0.3, 0.2, 0.2, 0.15, 0.1, 0.05])
    losses = []
    for _ in range(1500):
        counts = (rng.multinomial(m, p, size=n) > 0).sum(axis=0) + rng.normal(scale=sigma, size=6)
        losses.append(ordering_loss(counts, p, gamma))
    standard_error = np.std(losses) / math.sqrt(len(losses))
    assert abs(np.mean(losses) - expected_ordering_loss(p, n, m, sigma, gamma)) < 4 * standard_error


def test_gammas_differ_by_the_lost_factor() -> None:
    # where the sampling term rules, repaired/printed is √(4·96·m/(2·144)) = √(4m/3)
    n, m, d, t, p1 = 10**12, 100, 1000, 1.0, 1 / 200
    assert repaired_gamma(n, m, d, t, 0.0, p1) / printed_gamma(n, m, d, t, 0.0, p1) == pytest.approx(
        math.sqrt(4 * m / 3)
    )
    with pytest.raises(ArgumentError, match="t"):
        printed_gamma(n, m, d, 0.0, 0.0, p1)
