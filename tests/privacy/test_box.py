"""The box: ε from 1e-3 to 1e3, δ down to 1e-12, q from 1e-6 to 1, σ from 0.1 to 1e4, against other routes.

One step: fifty digits. Many steps, unbounded users: the mixture, term by term. Many steps, pairs: dp-accounting,
between its optimistic and its pessimistic answer, so that its own error is accounted for; and it must be small.
"""

import math
from dataclasses import replace

import mpmath as mp
import pytest
from accounting_oracles import one_step, revealed
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from elementdp.privacy import (
    Band,
    Relation,
    Sampler,
    SubsampledGaussian,
    account,
    claimed,
    delta_at,
    gaussian_epsilon,
    revealed_delta,
    revealed_epsilon,
)

pairs = Sampler.POISSON_PAIRS
log_q, log_sigma, log_delta, log_epsilon = st.floats(-6, 0), st.floats(-1, 4), st.floats(-12, -0.5), st.floats(-3, 3)


def walk(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, derandomize=True)


def wide(band: Band, at: Band | None = None) -> bool:
    """Wider than promised; where the curve is flat ε is ill-conditioned, and then δ is known."""
    return band.gap > 1e-3 and (at is None or at.gap > 1e-3)


@walk(30)
@given(log_q.filter(lambda x: x < -1e-3), log_sigma, log_epsilon, st.booleans())
def test_one_step_to_fifty_digits(log_q: float, log_sigma: float, log_epsilon: float, added: bool) -> None:
    q, sigma, epsilon = 10**log_q, 10**log_sigma, 10**log_epsilon
    change = 1 if added else 2
    exact = one_step(epsilon, q, 1, change, sigma)
    if added:  # the other direction: H_γ(B‖A) = 1 − γ + γ·H_{1/γ}(A‖B)
        with mp.workdps(60):
            gamma = mp.exp(mp.mpf(epsilon))
            exact = max(exact, 1 - gamma + gamma * one_step(-epsilon, q, 1, change, sigma))
    delta = float(exact)
    if not 1e-12 < delta < 0.99:
        return
    event = SubsampledGaussian(pairs, sigma, q, relation=Relation.ADD_REMOVE if added else Relation.REPLACE)
    at, band = delta_at(event, epsilon), account(event, delta)
    assert at.low <= delta <= at.up
    assert band.low <= epsilon <= band.up
    assert not wide(band, at)


@walk(30)
@given(log_q, log_sigma, st.integers(1, 25), log_epsilon)
def test_unbounded_users_are_the_mixture(log_q: float, log_sigma: float, steps: int, log_epsilon: float) -> None:
    q, sigma, epsilon = min(1 - 1e-9, 10**log_q), 10**log_sigma, 10**log_epsilon
    exact = float(revealed(epsilon, q, sigma, steps))
    event = SubsampledGaussian(Sampler.POISSON_USERS, sigma, q, steps)
    assert delta_at(event, epsilon) == revealed_delta(epsilon, q, sigma, steps)
    assert delta_at(event, epsilon).low <= exact <= delta_at(event, epsilon).up
    if 1e-12 < exact < 0.99:
        band = account(event, exact)
        assert band == revealed_epsilon(exact, q, sigma, steps)
        assert band.low <= epsilon <= band.up
        assert not wide(band, delta_at(event, epsilon))


def theirs(q: float, sigma: float, steps: int, delta: float, interval: float) -> tuple[float, float]:
    """dp-accounting's optimistic and pessimistic ε of the printed pair, on a lattice of step ``interval``."""
    ends = []
    for pessimistic in (False, True):
        law = pld.from_gaussian_mechanism(
            sigma,
            sampling_prob=q,
            value_discretization_interval=interval,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
            neighboring_relation=pld.NeighborRel.REPLACE_ONE,
        )
        ends.append(float(law.self_compose(steps).get_epsilon_for_delta(delta)))
    return ends[0], ends[1]


@walk(25)
@given(st.floats(-3, -0.05), st.floats(-0.2, 2), st.floats(0.3, 3), log_delta)
def test_many_steps_against_dp_accounting(log_q: float, log_sigma: float, log_steps: float, log_delta: float) -> None:
    q, sigma, steps, delta = 10**log_q, 10**log_sigma, round(10**log_steps), 10**log_delta
    band = account(SubsampledGaussian(pairs, sigma, q, steps), delta)
    interval = band.up / (500 * math.sqrt(steps))  # its error is of second order in this
    if band.up < 1e-3 or (20 / sigma + 2 / sigma**2 + 2 * band.up) / interval > 3e5:  # its lattice would be too long
        return
    assert not wide(band)
    low, up = theirs(q, sigma, steps, delta, interval)
    assert low <= band.up * (1 + 1e-9)
    assert band.low <= up * (1 + 1e-9)
    assert up == pytest.approx(band.estimate, rel=2e-3)  # pessimistic, it is second order: it has to be that near


@walk(30)
@given(log_q, log_sigma, st.floats(0, 5.5), log_delta, st.sampled_from(Relation))
def test_stable_narrow_and_monotone(
    log_q: float, log_sigma: float, log_steps: float, log_delta: float, relation: Relation
) -> None:
    q, sigma, steps, delta = min(1.0, 10**log_q), 10**log_sigma, round(10**log_steps), 10**log_delta
    event = SubsampledGaussian(pairs, sigma, q, steps, relation=relation)
    band = account(event, delta)
    change = 2 if relation is Relation.REPLACE else 1
    assert 0 <= band.low <= band.up <= gaussian_epsilon(delta, change * math.sqrt(steps) / sigma) * (1 + 1e-3)
    if not 1e-3 < band.up < 1e3:
        return
    assert not wide(band, delta_at(event, band.estimate) if wide(band) else None)
    for less in (
        replace(event, sigma=sigma * 1.1),
        replace(event, q=q * 0.9),
        replace(event, steps=max(1, steps // 2)),
        replace(event, relation=Relation.ADD_REMOVE),
    ):
        assert account(less, delta).low <= band.up
    assert account(event, min(0.9, 2 * delta)).low <= band.up
    if relation is Relation.REPLACE:  # for pair sampling the printed value is a true bound
        assert band.low <= claimed(event, delta) * (1 + 1e-9)
