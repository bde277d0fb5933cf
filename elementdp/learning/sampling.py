"""Which groups one step sees: the three samplers, and none."""

import numpy as np

from elementdp.errors import ArgumentError
from elementdp.learning.data import Groups, Indices
from elementdp.learning.randomness import Stream
from elementdp.privacy import Sampler


def users_per_step(q: float, n_users: int) -> int:
    """m = qn for fixed-size sampling; it has to be a whole number, or the rate counted is not the rate used."""
    m = round(q * n_users)
    if m < 1 or abs(q * n_users - m) > 1e-6:
        raise ArgumentError(
            "q", q, f"a whole number of users out of n = {n_users} for fixed-size sampling, m/{n_users}"
        )
    return m


def heads(count: int, q: float, stream: Stream) -> Indices:
    """Which of ``count`` independent coins of rate q fall on heads, ascending.

    For a small q the gaps between heads are drawn instead, which are geometric: work for qn numbers, not for n.
    """
    if q > 0.1:
        return np.flatnonzero(stream.uniform(count) < q)
    found: list[Indices] = []
    last = -1
    while last < count:
        size = 16 + int(1.1 * q * (count - last))
        gaps = 1 + np.floor(np.log1p(-stream.uniform(size)) / np.log1p(-q)).astype(np.int64)
        places = last + np.cumsum(gaps)
        found.append(places[places < count])
        last = int(places[-1])
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def draw(sampler: Sampler, q: float, groups: Groups, n_users: int, stream: Stream) -> Indices:
    """The groups of one step. Users without data are drawn like all others; they have nothing to add."""
    everyone = np.arange(len(groups))
    if sampler is Sampler.NONE:
        return everyone
    if sampler is Sampler.POISSON_PAIRS:
        return heads(len(groups), q, stream)
    present = np.zeros(n_users, dtype=bool)
    if sampler is Sampler.POISSON_USERS:
        present[heads(n_users, q, stream)] = True
    else:
        lots = np.argsort(stream.words(n_users), kind="stable")
        present[lots[: users_per_step(q, n_users)]] = True
    return everyone[present[groups.user]]
