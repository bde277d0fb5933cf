"""The hierarchical model of Section 4.2: element centres, users with k of K elements, logistic labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elementdp.errors import ArgumentError, at_least
from elementdp.privacy import paper_delta


@dataclass(frozen=True)
class Design:
    """The sizes of the simulation; the defaults are the paper's."""

    users: int = 1_000  # n
    points: int = 50  # m, data points a user
    dimension: int = 10  # d
    elements: int = 10  # K, element centres in all
    steps: int = 200  # T

    def __post_init__(self) -> None:
        for name in ("users", "points", "dimension", "elements", "steps"):
            at_least(name, getattr(self, name), 1)

    @property
    def delta(self) -> float:
        """The paper's δ for this number of users."""
        return paper_delta(self.users)


@dataclass(frozen=True)
class ClipGroups:
    """Data grouped into the units that are clipped one by one: ``signed[g, i]`` is y·x, ``weight`` its share 1/|B|.

    Logistic loss depends on (x, y) through y·x alone. ClipGroups are sorted by size; empty places have weight 0.
    """

    signed: NDArray[np.float32]  # groups × places × d
    weight: NDArray[np.float32]  # groups × places
    size: NDArray[np.int64]  # groups
    user: NDArray[np.int64]  # groups
    users: int


@dataclass(frozen=True)
class SimulatedUsers:
    """One draw of the whole model."""

    x: NDArray[np.float64]  # n × m × d
    y: NDArray[np.float64]  # n × m, ±1
    element: NDArray[np.int64]  # n × m, the cluster each point was drawn around
    theta: NDArray[np.float64]  # θ*

    def by_element(self) -> ClipGroups:
        """One group for each (user, element) pair with data: Algorithm 1's batches."""
        return self._grouped(self.element)

    def by_user(self) -> ClipGroups:
        """One group a user: Algorithm 1 with the one-cluster partition, K = 1."""
        return self._grouped(np.zeros_like(self.element))

    def _grouped(self, label: NDArray[np.int64]) -> ClipGroups:
        n, m, d = self.x.shape
        pair = (np.arange(n)[:, None] * (label.max() + 1) + label).ravel()
        keys, group, size = np.unique(pair, return_inverse=True, return_counts=True)
        order = np.argsort(group, kind="stable")
        place = np.arange(n * m) - np.repeat(np.cumsum(size) - size, size)
        signed = np.zeros((len(keys), size.max(), d), dtype=np.float32)
        weight = np.zeros((len(keys), size.max()), dtype=np.float32)
        signed[group[order], place] = (self.y[..., None] * self.x).reshape(-1, d)[order]
        weight[group[order], place] = 1.0 / size[group[order]]
        by_size = np.argsort(size, kind="stable")
        return ClipGroups(signed[by_size], weight[by_size], size[by_size], (keys // (label.max() + 1))[by_size], n)


def draw(design: Design, k: int, rng: np.random.Generator) -> SimulatedUsers:
    """Centres and θ* uniform on the sphere; each user gets k of the K elements; X = C + uniform on the sphere."""
    if not 1 <= at_least("k", k, 1) <= design.elements:
        raise ArgumentError("k", k, f"at most the number of elements, {design.elements}")
    n, m, d = design.users, design.points, design.dimension
    centres = sphere(rng, (design.elements, d))
    theta = sphere(rng, (d,))
    own = np.argsort(rng.random((n, design.elements)), axis=1)[:, :k]
    element = np.take_along_axis(own, rng.integers(0, k, size=(n, m)), axis=1)
    x = centres[element] + sphere(rng, (n, m, d))
    y = np.where(rng.random((n, m)) < 1.0 / (1.0 + np.exp(-x @ theta)), 1.0, -1.0)
    return SimulatedUsers(x, y, element, theta)


def sphere(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Uniform on the unit sphere along the last axis."""
    normal = rng.normal(size=shape)
    unit: NDArray[np.float64] = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    return unit
