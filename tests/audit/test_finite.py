"""Finite mechanisms in fractions, against linear programs, hand computations and brute force over events."""

from fractions import Fraction
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.audit.finite import (
    canonical_pair,
    checked,
    compose,
    delta,
    garble,
    hockey_stick,
    independent,
    mixture,
    randomised_response,
    renyi_moment,
    worst_odds,
)
from elementdp.audit.programs import garbling_distance, hockey_stick_program, sharp_group_delta, worst_group_delta
from elementdp.errors import ArgumentError

quick = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def laws(draw, outcomes=4, low=0):
    counts = draw(st.lists(st.integers(low, 9), min_size=outcomes, max_size=outcomes).filter(any))
    return {z: Fraction(c, sum(counts)) for z, c in enumerate(counts)}


odds = st.fractions(min_value=1, max_value=5, max_denominator=8)


@quick
@given(laws(), laws(), odds)
def test_hockey_stick_is_the_worst_event(p, q, ratio):
    events = chain.from_iterable(combinations(range(4), size) for size in range(5))
    brute = max(sum((p[z] - ratio * q[z] for z in event), Fraction(0)) for event in events)
    assert hockey_stick(p, q, ratio) == brute
    assert hockey_stick_program(p, q, float(ratio)) == pytest.approx(float(brute), abs=1e-12)


@quick
@given(laws(), laws(), odds)
def test_every_pair_is_a_garbling_of_the_canonical_one(p, q, ratio):
    need = delta(p, q, ratio)
    assert garbling_distance(canonical_pair(ratio, need), (p, q)) < 1e-9
    if need > Fraction(1, 50):  # a less revealing canonical pair must not do
        assert garbling_distance(canonical_pair(ratio, need * Fraction(1, 2)), (p, q)) > 1e-4


@quick
@given(laws(), laws(), st.lists(laws(outcomes=3), min_size=4, max_size=4), odds)
def test_garbling_never_raises_delta(p, q, kernel, ratio):
    out = garble(p, kernel.__getitem__), garble(q, kernel.__getitem__)
    assert all(sum(law.values()) == 1 for law in out)
    assert delta(*out, ratio) <= delta(p, q, ratio)


def test_randomised_response_and_products():
    p, q = randomised_response(1, Fraction(3)), randomised_response(0, Fraction(3))
    assert p == {1: Fraction(3, 4), 0: Fraction(1, 4)}
    assert worst_odds(p, q) == 3
    assert worst_odds(independent(p, p), independent(q, q)) == 9
    assert delta(p, q, Fraction(1)) == Fraction(1, 2)
    assert worst_odds(*canonical_pair(Fraction(3), Fraction(1, 10))) is None


@pytest.mark.parametrize("leak", [Fraction(0), Fraction(1, 7)])
def test_canonical_pair_needs_exactly_its_delta(leak):
    p, q = map(checked, canonical_pair(Fraction(5, 2), leak))
    assert delta(p, q, Fraction(5, 2)) == leak
    assert delta(p, q, Fraction(100)) == leak
    assert delta(p, q, Fraction(2)) > leak


@quick
@given(laws(outcomes=3, low=1), laws(outcomes=3, low=1), laws(outcomes=2, low=1), laws(outcomes=2, low=1))
def test_independent_moments_multiply(p, q, a, b):
    joint_p, joint_q = compose(p, lambda _: a), compose(q, lambda _: b)
    assert renyi_moment(joint_p, joint_q, 3) == renyi_moment(p, q, 3) * renyi_moment(a, b, 3)


def test_mixture_and_refusal():
    assert mixture([(Fraction(1, 3), {"a": Fraction(1)}), (Fraction(2, 3), {"b": Fraction(1)})])["b"] == Fraction(2, 3)
    with pytest.raises(ArgumentError, match="add up to 1"):
        checked({"a": Fraction(1, 2)})


@pytest.mark.parametrize("distance", [1, 2, 4, 7])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_group_delta_is_the_geometric_sum_while_small(distance, epsilon):
    assert worst_group_delta(distance, epsilon, 1e-6) == pytest.approx(
        sharp_group_delta(distance, epsilon, 1e-6), rel=1e-6
    )


def test_group_delta_saturates_below_the_sum():
    assert worst_group_delta(6, 1.0, 0.2) <= 1 < sharp_group_delta(6, 1.0, 0.2)
