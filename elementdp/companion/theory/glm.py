"""The example on generalized linear models: what a partition does to θ*, to the information and to the variance."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from elementdp.companion.theory.losses import FloatArray, Logistic
from elementdp.companion.theory.population import Population
from elementdp.companion.theory.users import UserPopulation
from elementdp.errors import one_of


@dataclass(frozen=True, eq=False)
class PartitionEffect:
    """What the element-level risk of one partition estimates, and how well."""

    optimum: FloatArray  # θ*
    information: float  # trace of ∇²R_el(θ*)
    variance: float  # trace of H⁻¹Σ_elH⁻¹, the asymptotic variance of the non-private estimator


def partition_effect(users: UserPopulation) -> PartitionEffect:
    """θ*, information and asymptotic variance of eqn:element-risk, all exact."""
    return PartitionEffect(
        users.optimum, float(np.trace(users.hessian)), float(np.trace(users.sandwich(users.user_scatter)))
    )


def printed_risk(users: UserPopulation, theta: FloatArray, pick: str = "point") -> float:
    """Σ_k p_k E[ℓ(θ; X, Y) | X ∈ c_k], p_k = P(a user has data in c_k), as the example states R_el.

    ``pick`` says who X is, which the example does not: ``point``, any data point with equal chance; ``user``, a random
    data point of a random user.
    """
    one_of("pick", pick, ("point", "user"))
    mass = users.p[users.owner]
    if pick == "user":
        mass = mass / np.bincount(users.owner)[users.owner]
    losses = users.loss.value(users.x @ theta, users.y)
    total = 0.0
    for k in np.unique(users.element):
        inside = users.element == k
        present = float(users.p[np.unique(users.owner[inside])].sum())
        total += present * float(mass[inside] @ losses[inside] / mass[inside].sum())
    return total


def misspecified_population() -> Population:
    """Labels on four designs whose log odds are no linear function of x: no θ is right, and θ* is a compromise."""
    design = np.array([[1.0, -1.5], [1.0, -0.5], [1.0, 0.5], [1.0, 1.5]])
    return _labelled(design, np.array([0.2, 0.7, 0.4, 0.9]))


def wellspecified_population(theta: tuple[float, float] = (0.3, 0.8)) -> Population:
    """The same four designs with log odds θᵀx."""
    design = np.array([[1.0, -1.5], [1.0, -0.5], [1.0, 0.5], [1.0, 1.5]])
    return _labelled(design, expit(design @ np.asarray(theta)))


def _labelled(design: FloatArray, chance: FloatArray) -> Population:
    x = np.repeat(design, 2, axis=0)
    y = np.tile([1.0, -1.0], len(design))
    p = np.where(y > 0, np.repeat(chance, 2), 1 - np.repeat(chance, 2)) / len(design)
    return Population(Logistic(), x, y, p)


def tied_users(gap: float, *, split: bool) -> UserPopulation:
    """Users whose labels depend on how much data they hold, though a random data point follows a logistic model.

    Half the users hold one point, half three points at x = 1 (an intercept); the former's log odds are higher. Over
    all data points P(Y=1) = 1/2, so the model is right with θ = 0. ``split`` puts each of the three in an element
    of its own, otherwise one element holds all.
    """
    one = 0.5 + 3 * gap
    three = 0.5 - gap  # (one + 3·three)/4 = 1/2: pooled over data points the odds are even
    owner: list[int] = []
    element: list[int] = []
    y: list[float] = []
    mass: list[float] = []
    for size, chance in ((1, one), (3, three)):
        for labels in np.ndindex(*(2,) * size):
            signs = [2.0 * label - 1 for label in labels]
            owner += [len(mass)] * size
            element += list(range(size)) if split else [0] * size
            y += signs
            mass.append(0.5 * float(np.prod([chance if sign > 0 else 1 - chance for sign in signs])))
    return UserPopulation(
        Logistic(), np.ones((len(y), 1)), np.array(y), np.array(owner), np.array(element), np.array(mass)
    )


def tied_optimum(gap: float) -> float:
    """θ* of :func:`tied_users` with one element, in closed form: every user counts once, so log odds of 1/2 + gap."""
    return float(logit(0.5 + gap))
