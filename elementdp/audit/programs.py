"""Linear programs that decide privacy questions about finite mechanisms: a second route beside enumeration."""

from collections.abc import Hashable

import numpy as np
from scipy.optimize import linprog

from elementdp.audit.finite import Distribution
from elementdp.errors import at_least, nonnegative, positive, probability


def garbling_distance(source: tuple[Distribution, Distribution], target: tuple[Distribution, Distribution]) -> float:
    """How near post-processing can bring one pair of distributions to another.

    The smallest ``Σ|source·K - target|`` over all stochastic kernels K; zero, up to the solver's tolerance, if and
    only if the target pair is a garbling of the source pair (Blackwell's order).
    """
    rows = sorted({outcome for law in source for outcome in law}, key=repr)
    columns = sorted({outcome for law in target for outcome in law}, key=repr)
    m, n = len(rows), len(columns)
    given = np.array([[float(law.get(outcome, 0)) for outcome in rows] for law in source])
    wanted = np.array([[float(law.get(outcome, 0)) for outcome in columns] for law in target])
    # Variables: the kernel K, row by row, then one slack for each entry of the two target laws.
    pushed = np.vstack([np.kron(given[side], np.eye(n)) for side in range(2)])
    slack = np.eye(2 * n)
    result = linprog(
        np.concatenate([np.zeros(m * n), np.ones(2 * n)]),
        A_ub=np.vstack([np.hstack([pushed, -slack]), np.hstack([-pushed, -slack])]),
        b_ub=np.concatenate([wanted.ravel(), -wanted.ravel()]),
        A_eq=np.hstack([np.kron(np.eye(m), np.ones((1, n))), np.zeros((m, 2 * n))]),
        b_eq=np.ones(m),
        bounds=(0, None),
        method="highs",
    )
    return float(result.fun)


def hockey_stick_program(p: Distribution, q: Distribution, odds: float) -> float:
    """max over randomised tests φ of P(φ) - e^ε Q(φ): the hockey-stick divergence as a linear program."""
    outcomes: list[Hashable] = sorted(set(p) | set(q), key=repr)
    gain = np.array([float(p.get(outcome, 0)) - odds * float(q.get(outcome, 0)) for outcome in outcomes])
    return -float(linprog(-gain, bounds=(0, 1), method="highs").fun)


def worst_group_delta(distance: int, epsilon: float, delta: float) -> float:
    """The largest P₀(A) - e^{Dε} P_D(A) over all chains P₀, …, P_D whose neighbours are (ε, δ)-indistinguishable.

    Only the chance of A and of its complement matter, so the chain is a list of D + 1 probabilities.
    """
    at_least("distance", distance, 1)
    nonnegative("epsilon", epsilon)
    probability("delta", delta)
    odds = np.exp(epsilon)
    rows, bounds = [], []
    for step in range(distance):
        for a, b in ((step, step + 1), (step + 1, step)):
            inside = np.zeros(distance + 1)
            inside[a], inside[b] = 1.0, -odds  # P_a(A) ≤ e^ε P_b(A) + δ
            outside = np.zeros(distance + 1)
            outside[a], outside[b] = -1.0, odds  # the same for the complement of A
            rows += [inside, outside]
            bounds += [delta, delta + odds - 1]
    gain = np.zeros(distance + 1)
    gain[0], gain[-1] = 1.0, -np.exp(distance * epsilon)
    result = linprog(-gain, A_ub=np.array(rows), b_ub=np.array(bounds), bounds=(0, 1), method="highs")
    return -float(result.fun)


def sharp_group_delta(distance: int, epsilon: float, delta: float) -> float:
    """δ Σ_{i<D} e^{iε}: what the induction of group privacy really gives, where it is below one."""
    positive("distance", distance)
    return delta * float(np.exp(epsilon * np.arange(distance)).sum())
