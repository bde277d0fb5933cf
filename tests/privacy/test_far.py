"""Very many elements a user: answered in closed form, in order, and in agreement with the lattice where both can."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from elementdp.privacy import Relation, Sampler, SubsampledGaussian, Unit, account, delta_at, revealed_epsilon

quick = settings(max_examples=12, deadline=None, derandomize=True)
samplers = st.sampled_from([Sampler.POISSON_USERS, Sampler.FIXED_USERS, Sampler.POISSON_PAIRS])


@quick
@given(
    samplers,
    st.sampled_from(list(Unit)),
    st.sampled_from(list(Relation)),
    st.floats(3, 6),
    st.floats(-2, 3),
    st.floats(-5, -0.2),
    st.floats(0, 6),
    st.floats(-10, -2),
)
def test_users_with_many_elements_have_an_answer_that_says_something(
    sampler: Sampler,
    unit: Unit,
    relation: Relation,
    log_size: float,
    log_sigma: float,
    log_q: float,
    log_steps: float,
    log_delta: float,
) -> None:
    assume(not (sampler is Sampler.FIXED_USERS and unit is Unit.USER and relation is Relation.ADD_REMOVE))
    size, steps, delta = int(10**log_size), int(10**log_steps), 10**log_delta
    run = SubsampledGaussian(sampler, 10**log_sigma, 10**log_q, steps, unit, size, relation)
    band = account(run, delta)
    assert 0 <= band.low <= band.up < math.inf
    if unit is Unit.USER and sampler is not Sampler.POISSON_PAIRS and size / run.sigma > 100 and band.up > 0:
        assert band.low > 0.5 * band.up
    if band.low > 0:
        at = delta_at(run, band.low * (1 - 1e-6))
        assert at.up >= delta * (1 - 1e-3)


@pytest.mark.parametrize(
    ("sampler", "relation"), [("poisson-users", r) for r in Relation] + [("fixed-users", "replace")]
)
def test_closed_forms_and_lattice_meet(sampler: str, relation: str) -> None:
    """Just below and just above the swing from which on no lattice is tried, ε grows as the squared swing does."""
    size = 400 if sampler == "poisson-users" else 200

    def run(sigma: float) -> SubsampledGaussian:
        return SubsampledGaussian(Sampler(sampler), sigma, 0.01, 1000, Unit.USER, size, Relation(relation))

    near, far = account(run(10.1), 1e-6), account(run(9.9), 1e-6)
    assert near.gap < 1e-3  # by the lattice
    growth = (10.1 / 9.9) ** 2
    assert far.low <= near.up * growth * 1.01
    assert near.low * growth <= far.up * 1.01
    assert far.gap < 0.2


def test_an_element_whose_user_shows_is_as_if_participation_was_told() -> None:
    run = SubsampledGaussian(Sampler.POISSON_USERS, 2.0, 0.01, 500, elements_per_user=10**5)
    assert account(run, 1e-6) == revealed_epsilon(1e-6, 0.01, 2.0, 500)


@pytest.mark.parametrize("size", [63, 300])
def test_pair_sampled_users_with_more_elements_have_no_less(size: int) -> None:
    """Rounding counts up must not lose the order: more elements, and more noise, move ε the right way."""
    run = SubsampledGaussian(Sampler.POISSON_PAIRS, 200.0, 0.4, 50, Unit.USER, size)
    more = SubsampledGaussian(Sampler.POISSON_PAIRS, 200.0, 0.4, 50, Unit.USER, 2 * size)
    assert account(run, 1e-6).low <= account(more, 1e-6).up
    whole = account(SubsampledGaussian(Sampler.NONE, 200.0, 1.0, 50, Unit.USER, 2 * size), 1e-6)
    assert account(more, 1e-6).low <= whole.up
