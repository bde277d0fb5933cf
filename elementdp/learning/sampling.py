"""Which groups one step sees: the three samplers, none, a fixed order, and a random step of each epoch."""

import numpy as np
from numpy.typing import NDArray

from elementdp.errors import ArgumentError
from elementdp.learning.randomness import Stream
from elementdp.privacy import Sampler

Indices = NDArray[np.int64]


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


def draw(sampler: Sampler, q: float, owner: Indices, n_users: int, stream: Stream) -> Indices:
    """Which groups take part in one step, given the user of each. Users without data are drawn like all others."""
    everyone = np.arange(len(owner))
    if sampler is Sampler.NONE:
        return everyone
    if sampler is Sampler.POISSON_PAIRS:
        return heads(len(owner), q, stream)
    present = np.zeros(n_users, dtype=bool)
    if sampler is Sampler.POISSON_USERS:
        present[heads(n_users, q, stream)] = True
    elif sampler is not Sampler.FIXED_USERS:
        raise ArgumentError("sampler", sampler, "one that draws")
    else:
        lots = np.argsort(stream.words(n_users), kind="stable")
        present[lots[: users_per_step(q, n_users)]] = True
    return everyone[present[owner]]


def dealt(n_users: int, batches: int, stream: Stream) -> Indices:
    """The batch of each user: users in a random order, dealt out in turn, so batches differ by one user at most."""
    found = np.empty(n_users, dtype=np.int64)
    found[np.argsort(stream.words(n_users), kind="stable")] = np.arange(n_users) % batches
    return found


def allocated(count: int, batches: int, stream: Stream) -> Indices:
    """The step of an epoch that each of ``count`` groups enters: uniform, and independent of all others.

    A word has 64 bits, so a step is likelier than another by B/2⁶⁴ of its chance at most.
    """
    return (stream.words(count) % np.uint64(batches)).astype(np.int64)


def bounded(owner: Indices, most: int | None, stream: Stream) -> Indices:
    """The groups that are kept when no user may have more than ``most``: those with the lowest lots of each user.

    Lots do not depend on the data. If one element of a user is replaced, at most one of the kept groups goes and one
    comes in its place: the sum moves by at most 2ρ as before, and the coin of the one is as good as that of the other.
    """
    if most is None or not len(owner):
        return np.arange(len(owner))
    order = np.lexsort((stream.words(len(owner)), owner))
    first = np.flatnonzero(np.r_[True, owner[order][1:] != owner[order][:-1]])
    rank = np.arange(len(owner)) - np.repeat(first, np.diff(np.r_[first, len(owner)]))
    return np.sort(order[rank < most])
