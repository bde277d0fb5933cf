"""Checks of the training part: the element-level loss, Algorithm 1, the private iteration."""

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Finding, Gap, printed, repaired, tight
from elementdp.privacy import Sampler

Floats = NDArray[np.float64]


def averaged(losses: list[Floats]) -> float:
    """eqn:element-loss for one user: the mean loss of every non-empty element, added up."""
    return float(sum(np.mean(values) for values in losses if len(values)))


@check("element-loss")
def element_loss(
    effort: Effort, seed: int, combine: Callable[[list[Floats]], float] = averaged, bounded: bool = False
) -> Finding:
    """Replace one element of a user at random, many times; then with an unbounded loss, by one far point."""
    trials = {Effort.SMOKE: 200, Effort.QUICK: 2_000, Effort.PAPER: 20_000}[effort]
    worst, repeat, routes = _loss_moves(trials, seed, combine)
    facts = [
        printed(
            f"Losses in [0, 1], up to 39 points in the changed element, {trials} random neighbours: the user's loss "
            f"moved by at most {worst:.4g}.",
            worst <= 1 + 1e-12,
        ),
        printed(f"Repeating every point three times moved it by {repeat:.2g}.", repeat < 1e-12),
    ]
    if not bounded:
        far = [10.0**k for k in (1, 3, 6)]
        moved = [combine([np.array([x * x / 2])]) for x in far]  # ½(θ - x)² at θ = 0, against no data
        facts.append(
            printed(
                "With the square loss ½(θ-x)², which is not bounded, one point at x = "
                + ", ".join(f"{x:g}" for x in far)
                + " in an element moved it by "
                + ", ".join(f"{value:.3g}" for value in moved)
                + ": averaging alone does not make the loss insensitive.",
                max(moved) <= 1,
            )
        )
    largest, _, _ = _loss_moves(trials, seed, averaged)
    return Finding(
        (
            *facts,
            repaired(
                f"If 0 ≤ ℓ ≤ B, ℓ_el moves by at most B whatever the number of points; largest seen {largest:.4g} B, "
                f"and the engine's ℓ_el agrees with the definition to {routes:.1g}.",
                largest <= 1 + 1e-12 and routes < 1e-12,
            ),
        ),
        repair="Averaging makes the loss insensitive to how many points an element holds. To any change of an element "
        "it is insensitive (by at most B) only if the loss lies in [0, B]; training gets its bound from clipping each "
        "element's gradient to ρ instead, which needs no bound on the loss.",
        gap=Gap.ASSUMPTION,
    )


def _loss_moves(trials: int, seed: int, combine: Callable[[list[Floats]], float]) -> tuple[float, float, float]:
    """The most a changed element, or repeated points, move a user's loss; and how far the engine is from ℓ_el."""
    import torch

    from elementdp.learning import element_loss as by_engine

    rng = np.random.default_rng(seed)
    worst = repeat = routes = 0.0
    for _ in range(trials):
        sizes = rng.integers(0, 40, 6)
        other = rng.integers(0, 40)
        extreme = rng.integers(0, 2)
        before = [rng.random(size) for size in sizes]
        before[0] = np.full(sizes[0], float(extreme))
        after = [np.full(other, 1.0 - extreme), *before[1:]]
        worst = max(worst, abs(combine(before) - combine(after)))
        repeat = max(repeat, abs(combine([np.repeat(x, 3) for x in before]) - combine(before)))
        rows, elements = np.concatenate(before), np.repeat(np.arange(6), sizes)
        found = by_engine(torch.from_numpy(rows), np.zeros(len(rows), dtype=int), elements, 1)
        routes = max(routes, abs(float(found[0]) - averaged(before)))
    return worst, repeat, routes


@check("alg-1")
def algorithm_1(effort: Effort, seed: int, multiples: tuple[float, float] = (2.0, 2.0)) -> Finding:
    """Element and global sensitivity of Algorithm 1 in units of ρ and (K∧M)ρ: random neighbours, and extremal ones."""
    rng = np.random.default_rng(seed)
    trials = {Effort.SMOKE: 30, Effort.QUICK: 300, Effort.PAPER: 3_000}[effort]
    rho, clusters, most = 0.7, 5, 4
    element = everything = routes = 0.0
    for _ in range(trials):
        theta = rng.normal(size=3)
        users = [_random_user(rng, clusters, most) for _ in range(2)]
        changed = {**users[0], 0: users[1].get(0, np.zeros((0, 4)))}
        sums = [_update(theta, user, rho) for user in (*users, changed)]
        routes = max(routes, float(np.abs(sums[0] - _update_by_engine(theta, users[0], rho)).max()))
        element = max(element, float(np.linalg.norm(sums[0] - sums[2])))
        everything = max(everything, float(np.linalg.norm(sums[0] - sums[1])))
    theta = np.zeros(3)
    up = np.array([[10.0, 0.0, 0.0, -10.0]])  # gradient of ½(θᵀx - y)² at 0: -yx
    down = np.array([[10.0, 0.0, 0.0, 10.0]])
    one = float(np.linalg.norm(_update(theta, {0: up}, rho) - _update(theta, {0: down}, rho)))
    every = [dict.fromkeys(range(min(clusters, most)), data) for data in (up, down)]
    total = float(np.linalg.norm(_update(theta, every[0], rho) - _update(theta, every[1], rho)))
    stated = multiples[0] * rho, multiples[1] * min(clusters, most) * rho
    return Finding(
        (
            printed(
                f"Users that differ in one element, {trials} random pairs and opposite gradients: the update moved by "
                f"at most {max(element, one):.4g}, stated {stated[0]:.4g}; the engine agrees with a by-hand update to "
                f"{routes:.1g}.",
                max(element, one) <= stated[0] * (1 + 1e-9) and routes < 1e-9,
                promised_delta=0.0,
            ),
            printed(
                f"Users that differ in everything (K = {clusters}, M = {most}): at most {max(everything, total):.4g}, "
                f"stated {stated[1]:.4g}.",
                max(everything, total) <= stated[1] * (1 + 1e-9),
                promised_delta=0.0,
            ),
            tight(
                f"Opposite gradients attain {one / stated[0]:.4g} and {total / stated[1]:.4g} of the stated bounds.",
                math.isclose(one, stated[0], rel_tol=1e-9) and math.isclose(total, stated[1], rel_tol=1e-9),
            ),
        )
    )


def _random_user(rng: np.random.Generator, clusters: int, most: int) -> dict[int, Floats]:
    """At most ``most`` points (x, y), some of them huge, in random clusters."""
    points = rng.normal(size=(rng.integers(1, most + 1), 4)) * 10.0 ** rng.integers(-2, 4)
    labels = rng.integers(0, clusters, len(points))
    return {int(k): points[labels == k] for k in np.unique(labels)}


def _update(theta: Floats, user: dict[int, Floats], rho: float) -> Floats:
    """Algorithm 1 by hand for ½(θᵀx - y)² and Θ = R^d, as a gradient (the sign that the iteration subtracts)."""
    total = np.zeros_like(theta)
    for points in user.values():
        if len(points):
            x, y = points[:, :-1], points[:, -1]
            delta = ((x @ theta - y)[:, None] * x).mean(0)
            total += delta * min(1.0, rho / max(float(np.linalg.norm(delta)), 1e-300))
    return total


def _update_by_engine(theta: Floats, user: dict[int, Floats], rho: float) -> Floats:
    import torch
    from torch import nn

    from elementdp.learning import Batch, GroupClipper

    model = nn.Linear(len(theta), 1, bias=False, dtype=torch.float64)
    model.weight.data = torch.from_numpy(theta.copy())[None]
    rows = torch.from_numpy(np.concatenate(list(user.values())))
    batch = Batch.of(rows[:, :-1], rows[:, -1], [len(points) for points in user.values()])
    found = GroupClipper(model, lambda out, y: 0.5 * (out[:, 0] - y).square(), rho)(batch)
    return np.asarray(found.gradients[0][0].numpy())


@check("private-sgd")
def private_sgd(effort: Effort, seed: int, sign: int = 1) -> Finding:
    """ℓ = ½(θ-x)², one user with one point: Algorithm 1's Δ = sign·(θ⁺-θ)/α is subtracted, as Equation (15) says."""
    alpha, steps, start = 0.1, 20, 1.0
    closed = {1: (1 + alpha) ** steps, -1: (1 - alpha) ** steps}
    reached = {side: _descend(side, alpha, steps, start) for side in (1, -1)}
    engine = _run_engine(start, alpha, steps)
    bias = _sampling_bias(np.random.default_rng(seed))
    outside, inside = _excursions(effort, seed)
    return Finding(
        (
            printed(
                f"{steps} steps without noise take the risk of ½(θ-x)² from {start**2 / 2:.3g} to "
                f"{reached[sign] ** 2 / 2:.3g}; closed form {closed[sign] ** 2 / 2:.3g}.",
                reached[sign] ** 2 < start**2,
            ),
            repaired(
                f"With Δ = (θ-θ⁺)/α the same steps reach {reached[-1] ** 2 / 2:.3g}; closed form ½(1-α)^(2T) = "
                f"{closed[-1] ** 2 / 2:.3g}, the engine {engine**2 / 2:.3g}.",
                math.isclose(reached[-1], closed[-1], rel_tol=1e-9) and math.isclose(engine, closed[-1], rel_tol=1e-9),
            ),
            repaired(
                f"The direction is unbiased for the gradient of the empirical element risk when nothing is clipped: "
                f"over all samples of 4 users, Poisson and fixed-size, the mean is off by {bias:.1g}.",
                bias < 1e-12,
            ),
            repaired(
                f"The noise is added outside the projection: {outside:.0%} of noisy iterates left Θ = [-1, 1]; "
                f"projecting them again (post-processing, no cost) left {inside:.0%} outside.",
                inside == 0 and outside > 0,
            ),
        ),
        repair="Take Δ_k = (θ₀-θ⁺_k)/α in Algorithm 1 (or add instead of subtract in the iteration), and project onto "
        "Θ again after the noise. Clipping, sensitivity and privacy are the same for both signs.",
        gap=Gap.WORDING,
    )


def _descend(sign: int, alpha: float, steps: int, start: float) -> float:
    """θ after steps of Equation (15) with Δ = sign·(θ⁺-θ)/α, the data at 0."""
    theta = start
    for _ in range(steps):
        ahead = theta - alpha * theta  # Algorithm 1's θ⁺
        theta = theta - alpha * sign * (ahead - theta) / alpha
    return theta


def _run_engine(start: float, alpha: float, steps: int) -> float:
    import torch
    from torch import nn

    from elementdp.learning import Noise, Plan, UserData, train

    model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
    model.weight.data.fill_(start)
    one = torch.ones(1, 1, dtype=torch.float64)
    data = UserData.of(one, torch.zeros(1, dtype=torch.float64), [0], [0], 1)
    train(
        model,
        data,
        loss=lambda out, y: 0.5 * (out[:, 0] - y).square(),
        privacy=Noise(0.0),
        plan=Plan(steps, rho=math.inf, sampler=Sampler.NONE, step_size=alpha),
        progress=False,
        seed=0,
    )
    return float(model.weight.detach()[0, 0])


def _sampling_bias(rng: np.random.Generator) -> float:
    """Exact means over all samples of four users, against the mean over users."""
    users = rng.normal(size=(4, 2))
    q = 0.5
    poisson = sum(
        np.prod([q if b else 1 - q for b in coins]) * np.array(coins) @ users / (q * 4)
        for coins in itertools.product((0, 1), repeat=4)
    )
    pairs = list(itertools.combinations(range(4), 2))
    fixed = sum(users[list(pair)].sum(0) / (q * 4) for pair in pairs) / len(pairs)
    return float(max(np.abs(poisson - users.mean(0)).max(), np.abs(fixed - users.mean(0)).max()))


def _excursions(effort: Effort, seed: int) -> tuple[float, float]:
    """Shares of iterates outside [-1, 1], without and with a projection after the noise."""
    rng = np.random.default_rng([seed, 1])
    steps = {Effort.SMOKE: 500, Effort.QUICK: 5_000, Effort.PAPER: 50_000}[effort]
    alpha, sigma, shares = 0.5, 1.0, []
    noise = rng.normal(size=steps)
    for again in (False, True):
        theta, left = 0.9, 0
        for z in noise:
            ahead = np.clip(theta - alpha * (theta - 0.9), -1, 1)
            theta = theta - alpha * ((theta - ahead) / alpha + sigma * z)
            theta = float(np.clip(theta, -1, 1)) if again else theta
            left += abs(theta) > 1
        shares.append(left / steps)
    return shares[0], shares[1]
