"""What the page on mechanisms shows."""

import math
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.style import LOOKS, PALETTE, PRINTED, REPAIRED, power_of_ten
from elementdp.companion.theory.counting import gaussian_average, laplace_average, paper_variance, wasted_variance
from elementdp.privacy import Unit, gaussian_delta

DASHES = ("-", "--", "-.", ":")
REFERENCE: dict[str, Any] = {"color": PALETTE["grey"], "lw": 1, "ls": (0, (1, 1))}
"""A thin line to compare with."""


def conversions(orders: Sequence[int], delta: float, best: Sequence[float], coins: Sequence[float]) -> Exhibit:
    """δ at the printed ε′ of a Rényi guarantee: as printed, by the best closed form, and for the worst two coins."""
    figure, axes = plt.subplots()
    axes.loglog(orders, np.full(len(orders), delta), PRINTED.dash, color=PRINTED.colour, label="as printed")
    axes.loglog(orders, best, REPAIRED.dash, color=REPAIRED.colour, marker=REPAIRED.marker, label="best closed form")
    axes.loglog(orders, coins, color=PALETTE["grey"], ls=":", marker="s", label="worst pair of coins")
    axes.set(xlabel="Rényi order α", ylabel="δ at the printed ε′")
    axes.legend()
    middle = len(orders) // 2
    return Exhibit(
        name="fig-rdp-conversion",
        figure=figure,
        alt=f"The printed δ is flat at {delta:g}; the best closed form falls from {best[0]:.2g} at α = {orders[0]} to "
        f"{best[-1]:.2g} at α = {orders[-1]}, and the worst pair of coins comes to {coins[-1] / best[-1]:.2f} of it.",
        caption="The printed conversion allows a larger δ than a \\((1, \\alpha)\\)-Rényi private mechanism can have "
        "at the printed \\(\\varepsilon'\\). The coins are a lower bound on every conversion.",
        numbers={"conversion-order": orders[middle], "conversion-waste": f"{delta / best[middle]:.0f}"},
    )


def wasted(deltas: Sequence[float]) -> Exhibit:
    """The printed variance over the least variance that is private."""
    grid = np.geomspace(0.05, 20, 60)
    figure, axes = plt.subplots()
    ratios = [[wasted_variance(epsilon, delta) for epsilon in grid] for delta in deltas]
    for place, (delta, ratio) in enumerate(zip(deltas, ratios, strict=True)):
        axes.semilogx(grid, ratio, ls=DASHES[place % 4], color=PRINTED.colour, label=f"δ = {power_of_ten(delta)}")
    least, most = min(map(min, ratios)), max(map(max, ratios))
    axes.axhline(1, **REFERENCE)
    axes.axvline(1, **REFERENCE)
    axes.set(xlabel="ε", ylabel="printed variance / least variance", ylim=(0.9, None))
    axes.legend()
    ends = [f"{wasted_variance(grid[0], d):.2f} to {wasted_variance(grid[-1], d):.2f} at δ = {d:g}" for d in deltas]
    return Exhibit(
        name="fig-gaussian-waste",
        figure=figure,
        alt="Printed over least variance against ε, with a small jump at ε = 1 where the 1/ε term comes in. From ε = "
        f"{grid[0]:g} to {grid[-1]:g}: {'; '.join(ends)}.",
        caption=f"The variance of the paper's formula is {least:.2f} to {most:.2f} times the least that is private. "
        "The jump is the term \\(1\\{\\varepsilon>1\\}/\\varepsilon\\).",
        numbers={"waste": f"{wasted_variance(1.0, 1e-6):.2f}"},
    )


def broken_promises(epsilons: Sequence[float] = (0.25, 0.5, 1.0)) -> Exhibit:
    """What the printed variance delivers against what it promises, for δ near one."""
    asked = np.geomspace(1e-4, 0.5, 200)
    figure, axes = plt.subplots()
    for epsilon, dash in zip(epsilons, DASHES, strict=False):
        got = [1 - gaussian_delta(epsilon, paper_variance(epsilon, 1 - one) ** -0.5) for one in asked]
        seen = np.where(np.array(got) > 1e-6, got, np.nan)
        axes.loglog(asked, seen, ls=dash, color=PRINTED.colour, label=f"ε = {epsilon:g}")
    axes.loglog(asked, asked, **REFERENCE, label="what was promised")
    axes.set(xlabel="1 − δ asked for", ylabel="1 − δ delivered", ylim=(1e-6, 2))
    axes.legend()
    return Exhibit(
        name="fig-gaussian-failure",
        figure=figure,
        alt="One minus the exact δ against one minus the δ asked for: above the diagonal for moderate δ, below it once "
        "δ is close enough to 1; the crossing comes first for ε = 1.",
        caption="For δ close to 1 the printed formula fails: below the dotted diagonal it delivers a larger δ than it "
        "promises.",
    )


def average_errors(users: Sequence[int], words: int, repeats: int, rng: np.random.Generator) -> Exhibit:
    """Predicted and measured error of private averages of the number of distinct words, at ε = 1 and δ = 1e-6."""
    element, user = LOOKS["element, pairs sampled"], LOOKS["user"]
    figure, axes = plt.subplots()
    rows = []
    for label, unit, kind, look, dash in (
        ("user, Gaussian", Unit.USER, "Gaussian", user, user.dash),
        ("element, Gaussian", Unit.ELEMENT, "Gaussian", element, element.dash),
        ("element, Laplace", Unit.ELEMENT, "Laplace", element, ":"),
    ):
        sensitivity = words if unit is Unit.USER else 1
        for n in users:
            values = rng.integers(1, words + 1, size=n).astype(float)
            draws = [
                gaussian_average(values, sensitivity, 1.0, 1e-6, unit, rng)
                if kind == "Gaussian"
                else laplace_average(values, sensitivity, 1.0, unit, rng)
                for _ in range(repeats)
            ]
            measured = math.sqrt(np.mean([(draw.value - values.mean()) ** 2 for draw in draws]))
            rows.append((label, n, draws[0].noise_sd, measured))
        mine = [row for row in rows if row[0] == label]
        axes.loglog(users, [row[2] for row in mine], color=look.colour, ls=dash, label=label)
        axes.loglog(users, [row[3] for row in mine], color=look.colour, ls="none", marker=look.marker)
    axes.set(xlabel="users n", ylabel="root mean squared error")
    axes.legend()
    return Exhibit(
        name="fig-average-error",
        figure=figure,
        alt="Error of a private average against n, predicted lines and measured markers on them, falling as 1/n; the "
        f"user-level line is {words} times above the element-level Gaussian one.",
        caption=f"With Gaussian noise, user level takes {words} times as much as element level. Lines: predicted "
        f"noise. Markers: measured over {repeats} releases of simulated users with up to {words} words.",
        header=("mechanism", "n", "noise predicted", "error measured"),
        rows=rows,
    )
