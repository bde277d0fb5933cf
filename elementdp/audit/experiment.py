"""The audit of user sampling against pair sampling: what an attack proves, what is promised, what was printed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from elementdp.audit.attack import Target, attack
from elementdp.errors import positive
from elementdp.privacy.accountant import account, claimed
from elementdp.privacy.band import Band
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.guarantee import Sampler


@dataclass(frozen=True)
class Audited:
    """One number of elements per user; ``users`` and ``pairs`` are what the attack proves under each sampler."""

    elements: int
    users: float
    pairs: float
    promised_users: Band
    promised_pairs: Band
    claimed: float


def audit(
    q: float,
    sigma: float,
    steps: int,
    delta: float,
    *,
    elements: Sequence[int] = (1, 2, 8, 30),
    trials: int,
    rng: np.random.Generator,
) -> list[Audited]:
    """Attack both samplers for each number of elements, beside the promise of the accountant and the printed ε."""
    pairs = SubsampledGaussian(Sampler.POISSON_PAIRS, sigma=sigma, q=q, steps=steps)
    promised_pairs, printed = account(pairs, delta), claimed(pairs, delta)
    return [
        Audited(
            elements=k,
            users=attack(Target(Sampler.POISSON_USERS, q, sigma, steps, k), delta, trials=trials, rng=rng).low,
            pairs=attack(Target(Sampler.POISSON_PAIRS, q, sigma, steps, k), delta, trials=trials, rng=rng).low,
            promised_users=account(
                SubsampledGaussian(Sampler.POISSON_USERS, sigma=sigma, q=q, steps=steps, elements_per_user=k), delta
            ),
            promised_pairs=promised_pairs,
            claimed=printed,
        )
        for k in elements
    ]


def noise_as_printed(q: float, steps: int, epsilon: float, delta: float) -> float:
    """The σ at which the paper would print ``epsilon``: for re-enacting its settings, which leave σ open."""
    positive("epsilon", epsilon)

    def excess(log_sigma: float) -> float:
        run = SubsampledGaussian(Sampler.POISSON_USERS, sigma=math.exp(log_sigma), q=q, steps=steps)
        return math.log(claimed(run, delta) / epsilon)

    low, high = -1.0, 1.0
    while excess(low) < 0:
        low -= 1
    while excess(high) > 0:
        high += 1
    return math.exp(float(brentq(excess, low, high, xtol=1e-6)))
