"""The counterexamples to the subsampling corollary by enumeration, by hand and by closed form; and the repair."""

from fractions import Fraction
from itertools import product

import pytest

from elementdp.audit.finite import delta, worst_odds
from elementdp.audit.sampled import (
    claimed_odds,
    element_neighbours,
    fixed_users,
    identity_odds,
    identity_pair,
    leaky,
    poisson_pairs,
    poisson_users,
    respond_to_all,
    show_size,
    subsampled,
    worst_case,
    worst_delta,
)

HALF = Fraction(1, 2)
VALUES = (None, 0, 1)


@pytest.mark.parametrize("sampler", [poisson_users(Fraction(1, 3)), fixed_users(2), poisson_pairs(Fraction(1, 3))])
def test_weights_add_up(sampler):
    assert sum(weight for weight, _ in sampler(((0, 1), (1, None), (0, 0)))) == 1


def test_fixed_size_draws_every_user_equally_often():
    drawn = [part for _, part in fixed_users(2)(((0,), (1,), (None,)))]
    assert len(drawn) == 3
    assert all(len(part) == 2 for part in drawn)


def test_by_hand():
    """One user, two yes-or-no elements, one coin of q = 1/2, truth with odds 3 to 1: 40/64 against 16/64."""
    run = subsampled(respond_to_all(Fraction(3)), poisson_users(HALF, emptied=True))
    yes, no = run(((1, 1),)), run(((0, 1),))
    assert yes[(1, 1)] == Fraction(9, 16) / 2 + Fraction(1, 16) / 2 == Fraction(10, 32)
    assert no[(1, 1)] == Fraction(3, 16) / 2 + Fraction(1, 16) / 2 == Fraction(4, 32)
    assert worst_odds(yes, no) == Fraction(5, 2) > claimed_odds(Fraction(3), HALF) == 2


@pytest.mark.parametrize("elements", [1, 2, 3, 4])
@pytest.mark.parametrize("odds", [Fraction(3), Fraction(6, 5)])
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 3)])
def test_closed_form(elements, odds, rate):
    one, other = identity_pair(elements)
    poisson = subsampled(respond_to_all(odds), poisson_users(rate, emptied=True))
    assert worst_odds(poisson(one[:1]), poisson(other[:1])) == identity_odds(odds, elements, rate)
    n = rate.denominator  # one of n users drawn, all others alike
    fixed = subsampled(respond_to_all(odds), fixed_users(1))
    crowd = [(*sample, *[sample[1]] * (n - 2)) for sample in (one, other)]
    assert worst_odds(fixed(crowd[0]), fixed(crowd[1])) == identity_odds(odds, elements, rate)
    exceeds = identity_odds(odds, elements, rate) > claimed_odds(odds, rate)
    assert exceeds == (elements > 1)
    assert identity_odds(odds, elements, rate) < odds


def test_the_size_of_the_sample_alone_undoes_amplification():
    run = subsampled(show_size(Fraction(3)), poisson_users(Fraction(1, 10)))
    assert worst_odds(run(((0,),)), run(((1,),))) == 3


@pytest.mark.parametrize("odds", [Fraction(3), Fraction(11, 10)])
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 10)])
def test_pair_sampling_meets_the_printed_level_everywhere(odds, rate):
    samples = list(product(product(VALUES, repeat=3), repeat=1)) + list(product(product(VALUES, repeat=1), repeat=2))
    assert worst_case(respond_to_all(odds), samples, VALUES) == odds
    assert worst_case(subsampled(respond_to_all(odds), poisson_pairs(rate)), samples, VALUES) == claimed_odds(
        odds, rate
    )
    leaking = subsampled(leaky(respond_to_all(odds), Fraction(1, 50)), poisson_pairs(rate))
    assert worst_delta(leaking, samples, VALUES, claimed_odds(odds, rate)) <= rate / 50


def test_user_sampling_keeps_epsilon_and_scales_delta():
    base = leaky(respond_to_all(Fraction(3)), Fraction(1, 50))
    assert delta(base(((0, 1),)), base(((1, 1),)), Fraction(3)) == Fraction(1, 50)
    run = subsampled(base, poisson_users(Fraction(1, 4)))
    assert delta(run(((0, 1),)), run(((1, 1),)), Fraction(3)) == Fraction(1, 200)


def test_neighbours_differ_in_one_element():
    around = list(element_neighbours(((0, 1), (None, 1)), VALUES))
    assert len(around) == 4 * 2
    assert ((1, 1), (None, 1)) in around
