"""Example 3: what a partition into elements does to θ*, to the risk's formula and to the variance in a GLM."""

from collections.abc import Sequence

import numpy as np

from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Finding, Gap, printed, repaired
from elementdp.companion.theory.glm import (
    misspecified_population,
    partition_effect,
    printed_risk,
    tied_optimum,
    tied_users,
    wellspecified_population,
)
from elementdp.companion.theory.users import UserPopulation, iid_users

COVARIATES = {"one element": (0,) * 8, "two": (0, 0, 0, 0, 0, 0, 1, 1), "four": (0, 0, 1, 1, 2, 2, 3, 3)}
"""Partitions of four covariates, two labels each."""
BY_LABEL = (0, 1, 0, 1, 0, 1, 0, 1)
"""A partition that looks at the label."""
MIXED, TRIPLES = {1: 0.5, 3: 0.5}, {3: 1.0}
"""Users with one or three data points, and users with three."""


@check("glm")
def glm(
    effort: Effort,
    seed: int,
    partitions: Sequence[Sequence[int]] = (*COVARIATES.values(), BY_LABEL),
    independent: bool = False,
) -> Finding:
    """The first claim: no partition moves θ*; ``independent`` asks for labels that follow the model."""
    well, bad = wellspecified_population(), misspecified_population()
    moved = [
        float(np.abs(partition_effect(iid_users(well, MIXED, np.array(c))).optimum - well.optimum).max())
        for c in partitions
    ]
    pooled, tied = tied_users(0.1, split=True), tied_users(0.1, split=False)
    rng = np.random.default_rng(seed)
    random = [iid_users(well, MIXED, np.repeat(rng.integers(4, size=4), 2)) for _ in range(8)]
    drift = max(float(np.abs(users.optimum - well.optimum).max()) for users in random)
    missed = [partition_effect(iid_users(bad, MIXED, np.array(c))).optimum for c in COVARIATES.values()]
    wrong = max(float(np.linalg.norm(optimum - missed[0])) for optimum in missed)
    facts = [
        printed(
            f"well specified, labels independent given their own covariates: {len(moved)} partitions move θ* by "
            + ", ".join(f"{value:.2g}" for value in moved)
            + (" (the last looks at the label)." if BY_LABEL in partitions else "."),
            max(moved) < 1e-9,
        )
    ]
    if not independent:
        facts.append(
            printed(
                "a logistic model that is right for a random data point (θ = 0), where users with one point say yes "
                f"more often than users with three: one element per point gives θ* = {float(pooled.optimum[0]):.1g}, "
                f"one element for all {float(tied.optimum[0]):.4g} (closed form {tied_optimum(0.1):.4g}).",
                abs(float(tied.optimum[0]) - float(pooled.optimum[0])) < 1e-9,
            )
        )
    facts.append(
        repaired(
            f"with every label's mean right given all the user's covariates, eight random partitions of the covariates "
            f"move θ* by at most {drift:.0e}; misspecified, θ* moves by up to {wrong:.3g} between three of them.",
            drift < 1e-9 and wrong > 1e-3,
        )
    )
    return Finding(
        tuple(facts),
        repair="θ* stays for partitions of the covariates (not of the labels) if, given all of a user's covariates, "
        "each label's mean is the model's at its own covariate.",
        gap=Gap.ASSUMPTION,
    )


def uneven_users() -> UserPopulation:
    """Two kinds of users: one point in element 0 and four in element 1; or a single point in element 0."""
    well = wellspecified_population()
    return UserPopulation(
        well.loss,
        well.x[[0, 2, 2, 4, 6, 6]],
        np.array([1.0, 1.0, -1.0, 1.0, -1.0, -1.0]),
        np.array([0, 0, 0, 0, 0, 1]),
        np.array([0, 1, 1, 1, 1, 0]),
        np.array([0.5, 0.5]),
    )


@check("glm-risk")
def glm_risk(effort: Effort, seed: int, one_law: bool = False) -> Finding:
    """The second claim, a formula for R_el; ``one_law`` asks for points drawn independently from one law."""
    theta = np.array([0.2, -0.4])
    rng, well = np.random.default_rng(seed), wellspecified_population()
    random = [iid_users(well, MIXED, np.repeat(rng.integers(4, size=4), 2)) for _ in range(8)]
    same = max(abs(printed_risk(users, theta) - users.risk(theta)) for users in random)
    tied, uneven, at = tied_users(0.1, split=False), uneven_users(), np.array([0.7])
    point = abs(printed_risk(tied, at, "point") - tied.risk(at))
    user = abs(printed_risk(uneven, theta, "user") - uneven.risk(theta))
    free = (
        f"if X is any data point it is off by {point:.3g} where users with many points differ from users with few; if "
        f"X is a random data point of a random user, by {user:.3g} where some users hold one point and others five."
    )
    held = f"with data points drawn independently from one law it is off by at most {same:.0e} for eight partitions."
    return Finding(
        (
            printed(held, same < 1e-12) if one_law else printed(free, max(point, user) < 1e-12),
            repaired(held, same < 1e-12),
        ),
        repair="The formula needs the user's data points to be independent draws of one law, the same for users with "
        "many points as for users with few.",
        gap=Gap.ASSUMPTION,
    )


@check("glm-variance")
def glm_variance(effort: Effort, seed: int, directions: tuple[str, ...] = ("down", "up")) -> Finding:
    """The third claim: a finer partition can lower the asymptotic variance, or raise it (``directions``)."""
    well = wellspecified_population()
    mixed, triples = (
        [partition_effect(iid_users(well, sizes, np.array(c))).variance for c in COVARIATES.values()]
        for sizes in (MIXED, TRIPLES)
    )
    change = [finer / group[0] - 1 for group in (mixed, triples) for finer in group[1:]]
    seen = {"down": min(change) < -1e-6, "up": max(change) > 1e-6, "always down": max(change) < 0}
    return Finding(
        (
            printed(
                "asymptotic variance (trace) with 1, 2, 4 elements: users with one or three data points "
                + ", ".join(f"{v:.4g}" for v in mixed)
                + "; users with three "
                + ", ".join(f"{v:.4g}" for v in triples)
                + ".",
                all(seen[direction] for direction in directions),
            ),
        )
    )
