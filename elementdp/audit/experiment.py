"""The audit of user sampling against pair sampling: what an attack proves, what is promised, what was printed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from elementdp.audit.attack import attack
from elementdp.privacy import Band, Sampler, SubsampledGaussian, account, claimed


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
    rows = []
    for k in elements:
        by_pairs = replace(pairs, elements_per_user=k)
        by_users = replace(by_pairs, sampler=Sampler.POISSON_USERS)
        rows.append(
            Audited(
                elements=k,
                users=attack(by_users, delta, trials=trials, rng=rng).low,
                pairs=attack(by_pairs, delta, trials=trials, rng=rng).low,
                promised_users=account(by_users, delta),
                promised_pairs=promised_pairs,
                claimed=printed,
            )
        )
    return rows
