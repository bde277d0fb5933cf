"""Composition and group privacy of (ε, δ) guarantees."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.errors import ArgumentError
from elementdp.privacy import (
    Guarantee,
    Relation,
    Sampler,
    Unit,
    compose_advanced,
    compose_advanced_as_printed,
    compose_basic,
    compose_optimal,
    compose_optimal_epsilon,
    group,
)

quick = settings(max_examples=40, deadline=None, derandomize=True)
parts = st.lists(st.tuples(st.floats(0, 2), st.floats(0, 0.2)), min_size=1, max_size=6)


def promises(pairs: list[tuple[float, float]]) -> list[Guarantee]:
    return [Guarantee(epsilon, delta, Unit.ELEMENT) for epsilon, delta in pairs]


def enumerated(pairs: list[tuple[float, float]], epsilon: float) -> float:
    """δ(ε) of the product of the worst mechanisms: four outcomes each, every product enumerated."""
    laws = []
    for eps, delta in pairs:
        truth = math.exp(eps) / (1 + math.exp(eps))
        laws.append(
            [
                (delta, 0.0),
                ((1 - delta) * truth, (1 - delta) * (1 - truth)),
                ((1 - delta) * (1 - truth), (1 - delta) * truth),
                (0.0, delta),
            ]
        )
    products = (np.prod(np.array(outcome), axis=0) for outcome in itertools.product(*laws))
    return math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in products)


@quick
@given(parts, st.floats(0, 8))
def test_optimal_composition_by_enumeration(pairs: list[tuple[float, float]], epsilon: float) -> None:
    assert compose_optimal(promises(pairs), epsilon=epsilon).delta == pytest.approx(
        enumerated(pairs, epsilon), abs=1e-9
    )


@quick
@given(parts, st.floats(-9, -0.5))
def test_optimal_is_below_every_proved_rule(pairs: list[tuple[float, float]], log_delta0: float) -> None:
    for rule in (compose_basic(promises(pairs)), compose_advanced(promises(pairs), 10**log_delta0)):
        assert compose_optimal(promises(pairs), epsilon=rule.epsilon).delta <= rule.delta + 1e-12


def test_printed_advanced_form_promises_too_much() -> None:
    """k = 1, ε = 0: the printed δ/2 + δ₀ is below the total variation δ that one (0, δ) mechanism may have."""
    one = promises([(0.0, 0.1)])
    printed = compose_advanced_as_printed(one, 1e-6)
    assert printed.epsilon == 0
    assert printed.delta < compose_optimal(one, epsilon=0.0).delta == pytest.approx(0.1)


@pytest.mark.parametrize("count", [1, 30, 500])
def test_optimal_epsilon_is_where_the_curve_crosses(count: int) -> None:
    many = promises([(0.1, 1e-8)] * count)
    found = compose_optimal_epsilon(many, delta=1e-5)
    assert compose_optimal(many, epsilon=found.epsilon).delta <= 1e-5
    if found.epsilon > 0:
        assert compose_optimal(many, epsilon=found.epsilon * 0.999).delta > 1e-5


def test_unreachable_delta_is_infinite_and_many_different_parts_are_refused() -> None:
    assert compose_optimal_epsilon(promises([(0.1, 0.2)]), delta=0.1).epsilon == math.inf
    different = [(0.1 + 0.01 * math.sqrt(prime), 0.0) for prime in range(2, 30)]
    with pytest.raises(ArgumentError, match="parts"):
        compose_optimal(promises(different), epsilon=0.1)


@quick
@given(st.floats(0, 3), st.floats(0, 1e-3), st.integers(1, 12))
def test_group_privacy_keeps_the_sum(epsilon: float, delta: float, size: int) -> None:
    one = Guarantee(epsilon, delta, Unit.ELEMENT)
    kept = group(one, size)
    assert kept.epsilon == size * epsilon
    step = 0.0
    for _ in range(size):  # one neighbour after the other: P ≤ e^ε P' + δ, k times
        step = math.exp(epsilon) * step + delta
    assert kept.delta == pytest.approx(min(1.0, step), rel=1e-9)
    assert kept.delta <= size * math.exp((size - 1) * epsilon) * delta * (1 + 1e-12)  # as printed


def test_parts_must_speak_of_one_unit() -> None:
    mixed = [Guarantee(1, 0, Unit.ELEMENT), Guarantee(1, 0, Unit.USER)]
    with pytest.raises(ArgumentError, match="parts"):
        compose_basic(mixed)
    with pytest.raises(ArgumentError, match="parts"):
        compose_basic([mixed[0], Guarantee(1, 0, Unit.ELEMENT, Relation.ADD_REMOVE)])
    with pytest.raises(ArgumentError, match="parts"):
        compose_basic([])


@pytest.mark.parametrize(
    "rule",
    [
        compose_basic,
        lambda parts: compose_advanced(parts, 1e-6),
        lambda parts: compose_advanced_as_printed(parts, 1e-6),
        lambda parts: compose_optimal(parts, epsilon=1.0),
        lambda parts: compose_optimal_epsilon(parts, delta=0.1),
    ],
)
def test_a_composition_names_every_sampler_of_its_parts(rule: Callable[[list[Guarantee]], Guarantee]) -> None:
    users, pairs, none = (
        Guarantee(0.5, 1e-6, Unit.ELEMENT, sampler=sampler)
        for sampler in (Sampler.POISSON_USERS, Sampler.POISSON_PAIRS, Sampler.NONE)
    )
    assert rule([users, users]).sampler is Sampler.POISSON_USERS
    both = rule([pairs, users])
    assert both.sampler == rule([users, pairs]).sampler == (Sampler.POISSON_USERS, Sampler.POISSON_PAIRS)
    assert all(sampler.words in str(both) for sampler in both.samplers)
    assert set(rule([both, none, users]).samplers) == {Sampler.POISSON_USERS, Sampler.POISSON_PAIRS, Sampler.NONE}


@pytest.mark.parametrize("delta", [1e-15, 1e-18, 1e-40])
def test_a_tiny_delta_is_not_rounded_to_none(delta: float) -> None:
    """Failures of chance δ each cannot vanish: with 3 parts at least 2δ and at most 3δ are left, whatever ε."""
    parts = promises([(0.1, delta)] * 3)
    assert 2 * delta <= compose_optimal(parts, epsilon=1.0).delta <= 3.001 * delta
    assert 3 * delta <= compose_advanced(parts, delta).delta <= 4.001 * delta
    assert compose_optimal_epsilon(parts, delta=delta).epsilon == math.inf
    assert compose_optimal_epsilon(parts, delta=4 * delta).epsilon <= 0.3 * (1 + 1e-12)


def test_extreme_guarantees_compose_without_overflow() -> None:
    none = promises([(math.inf, 0.0), (1.0, 0.0)])
    assert compose_optimal(none, epsilon=1.0).delta == 1
    assert compose_optimal(promises([(1.0, 1.0)]), epsilon=2.0).delta == 1
    assert compose_advanced_as_printed(promises([(800.0, 0.5)]), 1e-6).delta == 1e-6  # 0.5/(1 + e^800)
    far = Guarantee(1.0, 1e-310, Unit.ELEMENT)  # e^1499 such δ are far more than 1, though δ·e^700 is not
    assert group(far, 1500).delta == 1


@quick
@given(st.floats(1e-300, 1.0))
def test_a_group_of_one_promises_no_less_than_its_member_and_hardly_more(delta: float) -> None:
    found = group(Guarantee(1.0, delta, Unit.ELEMENT), 1).delta
    assert delta <= found <= delta * (1 + 1e-9)
