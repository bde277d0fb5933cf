"""The lemma behind the accountants: no data, in any direction, show more than the pair it names."""

import math

import numpy as np
import pytest
from accounting_oracles import densities, one_step
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.errors import ArgumentError, NoGuaranteeError
from elementdp.privacy import (
    Knowledge,
    Relation,
    Sampler,
    SubsampledGaussian,
    Unit,
    account,
    delta_at,
    worst_case,
)

point = st.tuples(st.floats(0, 1), st.floats(0, 2 * math.pi))


def plane_delta(epsilon: float, q: float, sigma: float, means: tuple[np.ndarray, np.ndarray]) -> float:
    """Hockey-stick divergence of (1−q)N(0)+qN(x) against (1−q)N(0)+qN(x') in the plane, by a fine sum."""
    span = sigma * np.linspace(-9, 9, 601)
    width = span[1] - span[0]
    x, y = np.meshgrid(span, span)

    def mixture(mean: np.ndarray) -> np.ndarray:
        here = np.exp(-((x - mean[0]) ** 2 + (y - mean[1]) ** 2) / (2 * sigma**2))
        return ((1 - q) * np.exp(-(x**2 + y**2) / (2 * sigma**2)) + q * here) / (2 * math.pi * sigma**2)

    return float(np.maximum(mixture(means[0]) - math.exp(epsilon) * mixture(means[1]), 0).sum() * width**2)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(point, point, st.floats(0, 2), st.floats(0.05, 0.9), st.floats(0.4, 2), st.sampled_from([0.0, 1.0, 3.0]))
def test_no_direction_beats_the_line(
    first: tuple[float, float], second: tuple[float, float], epsilon: float, q: float, sigma: float, rest: float
) -> None:
    """Changed vectors anywhere in the disc, the user's other vectors summing to ``rest`` along some axis."""
    sigma *= 1 + rest  # keeps the picture inside the grid
    means = tuple(np.array([rest + r * math.cos(a), r * math.sin(a)]) for r, a in (first, second))
    bound = float(one_step(epsilon, q, rest + 1, 2, sigma))
    assert plane_delta(epsilon, q, sigma, means) <= bound + 2e-5  # type: ignore[arg-type]


def product_delta(epsilon: float, laws: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """δ(ε) of two independent steps given as (loss, mass), by the full double sum."""
    (loss1, mass1), (loss2, mass2) = laws
    total = np.add.outer(loss1, loss2)
    return float(mass1 @ np.maximum(-np.expm1(np.minimum(epsilon - total, 0)), 0) @ mass2)


@pytest.mark.parametrize("bound", [2, 4])
@pytest.mark.parametrize("epsilon", [0.1, 0.7])
def test_symmetrised_bound_covers_changing_sides(bound: int, epsilon: float) -> None:
    """Two steps, each either way round: the bound holds for all four, the lower bound is met by one of them."""
    q, sigma = 0.2, 2.0
    u = np.linspace(-9, 9 + bound / sigma, 1500)
    a, b = densities(u, q, bound, 2, sigma)
    width = u[1] - u[0]
    out, back = (a - b, np.exp(a) * width), (b - a, np.exp(b) * width)
    band = delta_at(SubsampledGaussian(Sampler.POISSON_USERS, sigma, q, 2, elements_per_user=bound), epsilon)
    found = {
        name: product_delta(epsilon, laws)
        for name, laws in (("oo", [out, out]), ("ob", [out, back]), ("bb", [back, back]))
    }
    assert max(found.values()) <= band.up * (1 + 1e-4)
    assert band.low <= max(found.values()) * (1 + 1e-4)
    assert band.low >= 0.9 * max(found["oo"], found["bb"])


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize(
    ("sampler", "bound", "swing"), [("poisson-users", 3, 3), ("fixed-users", 1, 2), ("fixed-users", 4, 8)]
)
def test_one_step_is_exact(epsilon: float, sampler: str, bound: int, swing: int) -> None:
    exact = float(one_step(epsilon, 0.1, swing, 2, 1.5))
    band = delta_at(SubsampledGaussian(Sampler(sampler), 1.5, 0.1, 1, elements_per_user=bound), epsilon)
    assert band.low <= exact <= band.up
    assert band.up == pytest.approx(exact, rel=5e-3)


def test_fixed_size_sampling_by_enumeration() -> None:
    """n = 3, m = 1, the others at −1: the law of the sum, enumerated, is the pair with swing 2."""
    q, sigma, epsilon = 1 / 3, 1.0, 0.3
    z = np.linspace(-12, 12, 20001)

    def law(changed: float) -> np.ndarray:
        return sum(np.exp(-((z - mean) ** 2) / 2) for mean in (changed, -1.0, -1.0)) / 3 / math.sqrt(2 * math.pi)

    shown = float(np.maximum(law(1.0) - math.exp(epsilon) * law(-1.0), 0).sum() * (z[1] - z[0]))
    assert shown == pytest.approx(float(one_step(epsilon, q, 2, 2, sigma)), rel=1e-5)
    band = delta_at(SubsampledGaussian(Sampler.FIXED_USERS, sigma, q, 1, elements_per_user=1), epsilon)
    assert band.low <= shown * (1 + 1e-6)
    assert shown <= band.up * (1 + 1e-6)


def test_bounded_elements_lie_between_one_and_unbounded() -> None:
    def up(bound: int | None) -> float:
        return account(SubsampledGaussian(Sampler.POISSON_USERS, 4.0, 0.05, 500, elements_per_user=bound), 1e-6).up

    values = [up(bound) for bound in (1, 2, 5, 20, 80)]
    assert values == sorted(values)
    assert 0.99 * up(None) <= values[-1] <= up(None)


def test_pair_sampling_does_not_care_how_many_elements_a_user_has() -> None:
    pairs = SubsampledGaussian(Sampler.POISSON_PAIRS, 2.0, 0.1, 10, elements_per_user=50)
    assert account(pairs, 1e-5) == account(
        SubsampledGaussian(Sampler.POISSON_USERS, 2.0, 0.1, 10, elements_per_user=1), 1e-5
    )
    assert worst_case(pairs).knowledge is Knowledge.PAIR


def test_unproved_combinations_say_what_is_proved() -> None:
    with pytest.raises(NoGuaranteeError, match="elements_per_user given"):
        account(SubsampledGaussian(Sampler.POISSON_USERS, 1.0, 0.1, unit=Unit.USER), 1e-5)
    grown = SubsampledGaussian(
        Sampler.FIXED_USERS, 1.0, 0.1, unit=Unit.USER, elements_per_user=2, relation=Relation.ADD_REMOVE
    )
    with pytest.raises(NoGuaranteeError, match="sampler poisson-users"):
        account(grown, 1e-5)


@pytest.mark.parametrize(
    ("name", "value"),
    [("sigma", 0.0), ("q", 0.0), ("q", 1.2), ("steps", 0), ("elements_per_user", 0), ("sampler", "all")],
)
def test_bad_events_are_named(name: str, value: object) -> None:
    fields = {"sampler": Sampler.POISSON_USERS, "sigma": 1.0, "q": 0.1, "steps": 3, "elements_per_user": 2, name: value}
    with pytest.raises(ArgumentError, match=name):
        SubsampledGaussian(**fields)  # type: ignore[arg-type]
