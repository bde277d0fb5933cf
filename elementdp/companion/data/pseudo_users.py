"""Pseudo-users: n users with m images each from k of K elements, for image sets that come without users."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elementdp.errors import ArgumentError, at_least

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PseudoUsers:
    """Who holds what: entry i says that ``user[i]`` holds image ``image[i]``, which lies in ``element[i]``."""

    user: Indices
    image: Indices
    element: Indices
    users: int

    @property
    def elements_each(self) -> Indices:
        """How many distinct elements each user has."""
        width = int(self.element.max()) + 1
        pairs = np.unique(self.user * width + self.element)
        return np.bincount(pairs // width, minlength=self.users)


def pseudo_users(elements: Indices, n: int, m: int, k: int, rng: np.random.Generator) -> PseudoUsers:
    """n users × m images from k distinct elements each; ``elements[j]`` is the element of image j.

    A user's k elements are drawn uniformly among the elements that have images, one image of each is certain, the
    other m - k are spread over the k at random. Images are drawn from their element with replacement: users share
    images, and a user may hold one twice. The paper says "on average k"; here every user has exactly k.
    """
    at_least("n", n, 1)
    at_least("m", m, 1)
    present, sizes = np.unique(elements, return_counts=True)
    if not at_least("k", k, 1) <= min(m, len(present)):
        raise ArgumentError("k", k, f"at most m = {m} and the {len(present)} elements that have images")
    order = np.argsort(elements, kind="stable")
    starts = np.cumsum(sizes) - sizes
    # The k smallest of random keys are a uniform k-subset.
    chosen = np.argpartition(rng.random((n, len(present))), k - 1, axis=1)[:, :k]
    counts = 1 + rng.multinomial(m - k, np.full(k, 1 / k), size=n)
    place = np.repeat(chosen.ravel(), counts.ravel())
    within = np.floor(rng.random(n * m) * sizes[place]).astype(np.int64)
    return PseudoUsers(np.repeat(np.arange(n), m), order[starts[place] + within], present[place], n)
