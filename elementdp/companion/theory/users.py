"""Users who contribute several data points, sorted into elements: eqn:element-loss and eqn:element-risk, exactly."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from elementdp.companion.theory.losses import FloatArray, Logistic, MarginLoss
from elementdp.companion.theory.population import Population
from elementdp.errors import ArgumentError, at_least

_IntArray = NDArray[np.int_]


@dataclass(frozen=True, eq=False)
class UserPopulation:
    """Users of J kinds with probabilities p; data point i is (x_i, y_i), held by kind owner_i in element element_i."""

    loss: MarginLoss
    x: FloatArray
    y: FloatArray
    owner: _IntArray
    element: _IntArray
    p: FloatArray

    def __post_init__(self) -> None:
        if not len(self.x) == len(self.y) == len(self.owner) == len(self.element):
            raise ArgumentError("x", self.x.shape, "one row per data point, like y, owner and element")
        if set(self.owner.tolist()) != set(range(len(self.p))):
            raise ArgumentError("owner", self.owner, f"the numbers 0..{len(self.p) - 1}, each holding some data")
        if np.any(self.p < 0) or not np.isclose(self.p.sum(), 1):
            raise ArgumentError("p", self.p, "a probability vector")

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.x.shape[1])

    @cached_property
    def pair(self) -> _IntArray:
        """The number of the (kind, element) pair each data point belongs to."""
        return np.asarray(self._pairs[1])

    @cached_property
    def pair_owner(self) -> _IntArray:
        """The kind of user each pair belongs to."""
        return np.asarray(self._pairs[0][:, 0])

    @cached_property
    def share(self) -> FloatArray:
        """1/card{x_i ∈ c_k}: what a data point counts in its element's average (eqn:element-loss)."""
        return np.asarray(1 / np.bincount(self.pair)[self.pair])

    @cached_property
    def _pairs(self) -> tuple[_IntArray, _IntArray]:
        key = np.stack([self.owner, self.element], axis=1)
        rows, inverse = np.unique(key, axis=0, return_inverse=True)
        return rows, inverse.reshape(-1)

    @cached_property
    def optimum(self) -> FloatArray:
        """θ* = argmin of the element-level risk (eqn:element-risk)."""
        mass = self.p[self.owner] * self.share
        return Population(self.loss, self.x, self.y, mass / mass.sum()).minimiser()

    def risk(self, theta: FloatArray) -> float:
        """R_el(θ)."""
        return float(self.p[self.owner] * self.share @ self.loss.value(self.x @ theta, self.y))

    def pair_gradients(self, theta: FloatArray) -> FloatArray:
        """∇ of each pair's average loss, one row a pair."""
        rows = (self.share * self.loss.slope(self.x @ theta, self.y))[:, None] * self.x
        out = np.zeros((len(self.pair_owner), self.dimension))
        np.add.at(out, self.pair, rows)
        return out

    @cached_property
    def hessian(self) -> FloatArray:
        """H = ∇²R_el(θ*)."""
        c = self.p[self.owner] * self.share * self.loss.curve(self.x @ self.optimum, self.y)
        return np.asarray((self.x * c[:, None]).T @ self.x)

    @cached_property
    def user_scatter(self) -> FloatArray:
        """Σ_el = cov(∇ℓ_el(θ*; X)): what one sampled user brings."""
        g = np.zeros((len(self.p), self.dimension))
        np.add.at(g, self.pair_owner, self.pair_gradients(self.optimum))
        return np.asarray((g * self.p[:, None]).T @ g)

    @cached_property
    def pair_scatter(self) -> FloatArray:
        """S_pair = E Σ_k g_k g_kᵀ at θ*: what the pairs of one user bring when each is sampled on its own."""
        g = self.pair_gradients(self.optimum)
        return np.asarray((g * self.p[self.pair_owner][:, None]).T @ g)

    @cached_property
    def element_lipschitz(self) -> float:
        """The smallest ρ that never clips: the largest |x| times the loss's own Lipschitz constant."""
        return float(np.linalg.norm(self.x, axis=1).max()) * self.loss.lipschitz

    def sandwich(self, middle: FloatArray) -> FloatArray:
        """H⁻¹ M H⁻¹."""
        inverse = np.linalg.inv(self.hessian)
        return np.asarray(inverse @ middle @ inverse)


def iid_users(population: Population, sizes: Mapping[int, float], clusters: _IntArray) -> UserPopulation:
    """All users with M independent data points from ``population``, M drawn from ``sizes``, enumerated.

    ``clusters`` gives the element of each atom of the population; it may depend on x alone or on y too.
    """
    atoms = len(population.p)
    if len(clusters) != atoms:
        raise ArgumentError("clusters", clusters, f"one element for each of the {atoms} atoms")
    owner: list[int] = []
    atom: list[int] = []
    mass: list[float] = []
    for size, chance in sizes.items():
        at_least("sizes", size, 1)
        for kind in product(range(atoms), repeat=size):
            owner += [len(mass)] * size
            atom += kind
            mass.append(chance * float(np.prod(population.p[list(kind)])))
    index = np.array(atom)
    return UserPopulation(
        population.loss, population.x[index], population.y[index], np.array(owner), clusters[index], np.array(mass)
    )


def example_users(tilt: tuple[float, float, float] = (3.0, 3.0, 3.0)) -> UserPopulation:
    """Logistic regression over three elements, with a taste that ties a user's labels together.

    Two users in three hold one data point in each element, the others two points in the first. A user's
    taste is +1 or -1 and adds taste times ``tilt`` to the log odds in each element: tilts of one sign make
    a user's elements pull together, tilts of opposite sign apart.
    """
    at = np.array([[3.0, 0.6], [2.7, -1.8], [0.9, 3.0]])
    odds = at @ np.array([0.2, -0.15])
    x: list[FloatArray] = []
    y: list[float] = []
    owner: list[int] = []
    element: list[int] = []
    mass: list[float] = []
    for elements, chance in (((0, 1, 2), 2 / 3), ((0, 0), 1 / 3)):
        held = list(elements)
        for labels in product((1.0, -1.0), repeat=len(held)):
            shift = np.outer([1.0, -1.0], np.asarray(tilt)[held])
            likely = expit(np.asarray(labels) * (odds[held] + shift)).prod(axis=1)
            x += [at[k] for k in held]
            y += labels
            owner += [len(mass)] * len(held)
            element += held
            mass.append(chance * float(likely.mean()))
    return UserPopulation(Logistic(), np.array(x), np.array(y), np.array(owner), np.array(element), np.array(mass))
