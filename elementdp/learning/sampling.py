"""Which groups one step sees: the three samplers, and none."""

import numpy as np
import torch

from elementdp.errors import ArgumentError
from elementdp.learning.data import Groups, Indices
from elementdp.privacy import Sampler


def users_per_step(q: float, n_users: int) -> int:
    """m = qn for fixed-size sampling; it has to be a whole number, or the rate counted is not the rate used."""
    m = round(q * n_users)
    if m < 1 or abs(q * n_users - m) > 1e-6:
        raise ArgumentError(
            "q", q, f"a whole number of users out of n = {n_users} for fixed-size sampling, m/{n_users}"
        )
    return m


def draw(sampler: Sampler, q: float, groups: Groups, n_users: int, generator: torch.Generator) -> Indices:
    """The groups of one step. Users without data are drawn like all others; they have nothing to add."""
    everyone = np.arange(len(groups))
    if sampler is Sampler.NONE:
        return everyone
    if sampler is Sampler.POISSON_PAIRS:
        coins = torch.rand(len(groups), generator=generator, dtype=torch.float64).numpy()
        return everyone[coins < q]
    if sampler is Sampler.POISSON_USERS:
        present = torch.rand(n_users, generator=generator, dtype=torch.float64).numpy() < q
    else:
        present = np.zeros(n_users, dtype=bool)
        present[torch.randperm(n_users, generator=generator)[: users_per_step(q, n_users)].numpy()] = True
    return everyone[present[groups.user]]
