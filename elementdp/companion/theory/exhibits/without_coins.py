"""What the page on training without coins shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from elementdp.audit import attack
from elementdp.companion.exhibit import Exhibit
from elementdp.companion.style import LOOKS, PALETTE
from elementdp.privacy import (
    Correlation,
    FixedOrder,
    RandomAllocation,
    Sampler,
    SubsampledGaussian,
    account,
    calibrate,
    delta_at,
    promise,
    proved_better,
    rounded_down,
    rounded_up,
)

USERS, ORDER, CORRELATED = "users sampled", "fixed order", "fixed order, correlated noise"
ALLOCATED, PAIRS = "pairs allocated", "pairs sampled"
LOOKS_OF_WAYS = {
    USERS: LOOKS["element, users sampled"],
    ORDER: LOOKS["element, fixed order"],
    CORRELATED: LOOKS["element, correlated noise"],
    PAIRS: LOOKS["element, pairs sampled"],
    ALLOCATED: LOOKS["element, pairs allocated"],
}
"""How each way is drawn, here and where experiments are compared."""


@dataclass(frozen=True)
class Work:
    """The same work for all ways: each user, or pair, is seen ``epochs`` times, or so often on average."""

    epochs: int
    batches: int
    delta: float

    def run(self, way: str, sigma: float, bands: int = 1) -> SubsampledGaussian | FixedOrder | RandomAllocation:
        """The run that does this work in one of the ways."""
        steps = self.epochs * self.batches
        if way in (ORDER, CORRELATED):
            correlation = Correlation.optimised(bands if way == CORRELATED else 1, steps, self.batches)
            return FixedOrder(sigma, steps, self.batches, correlation=correlation)
        if way == ALLOCATED:
            return RandomAllocation(sigma, steps, self.batches)
        sampler = Sampler.POISSON_USERS if way == USERS else Sampler.POISSON_PAIRS
        return SubsampledGaussian(sampler, sigma, 1 / self.batches, steps)

    def promised(self, way: str, sigma: float, bands: int) -> float:
        """The ε to promise if sums of all steps so far are disturbed as much as by independent noise of ``sigma``."""
        if way == CORRELATED:  # the error at equal privacy is that of so much more noise at equal error
            steps = self.epochs * self.batches
            return promise(
                self.run(ORDER, sigma / Correlation.optimised(bands, steps, self.batches).error(steps, self.batches)),
                self.delta,
            ).epsilon
        return promise(self.run(way, sigma), self.delta).epsilon

    def effective_noise(self, way: str, epsilon: float, bands: int) -> float:
        """The σ of independent noise that disturbs the sums of all steps so far as much, at ``epsilon``."""
        steps = self.epochs * self.batches
        sigma = calibrate(self.run(ORDER if way == CORRELATED else way, 1.0), epsilon, self.delta).sigma
        if way != CORRELATED:
            return sigma
        return sigma * Correlation.optimised(bands, steps, self.batches).error(steps, self.batches)


def _against_epochs(
    ways: Sequence[str], epochs: Sequence[int], value: Callable[[str, int], float], axis: Axes
) -> dict[str, list[float]]:
    """Draw one curve a way, and return them."""
    curves = {way: [value(way, count) for count in epochs] for way in ways}
    for way, found in curves.items():
        look = LOOKS_OF_WAYS[way]
        axis.loglog(epochs, found, color=look.colour, ls=look.dash, marker=look.marker, label=way)
    axis.set_xticks(list(epochs), [str(count) for count in epochs])
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.minorticks_off()
    axis.set_xlabel("epochs E")
    axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.18), ncols=2, frameon=False)
    return curves


def epsilon_against_epochs(epochs: Sequence[int], batches: int, sigma: float, delta: float, bands: int) -> Exhibit:
    """The ε to promise at equal noise and equal work."""
    figure, axis = plt.subplots()
    ways = tuple(LOOKS_OF_WAYS)
    curves = _against_epochs(
        ways, epochs, lambda way, count: Work(count, batches, delta).promised(way, sigma, bands), axis
    )
    axis.set_ylabel("ε to promise")
    return Exhibit(
        name="fig-epsilon-epochs",
        figure=figure,
        alt=f"ε against epochs, both logarithmic, for {', '.join(ways)}. At {epochs[-1]} epochs: "
        + ", ".join(f"{way} {curves[way][-1]:.3g}" for way in ways)
        + ".",
        caption=f"ε at δ = {delta:g} for one element replaced, users with any number of elements; σ = {sigma:g}, "
        f"{batches} batches, or rate 1/{batches}. Noise that is correlated over {bands} steps disturbs the "
        "sums of all steps so far as much as the others'.",
        header=["epochs", *ways],
        rows=[(count, *(rounded_up(curves[way][i]) for way in ways)) for i, count in enumerate(epochs)],
    )


def noise_against_epochs(epochs: Sequence[int], batches: int, epsilon: float, delta: float, bands: int) -> Exhibit:
    """The noise in the sums of all steps so far, at equal ε and equal work."""
    figure, axis = plt.subplots()
    ways = tuple(LOOKS_OF_WAYS)
    curves = _against_epochs(
        ways, epochs, lambda way, count: Work(count, batches, delta).effective_noise(way, epsilon, bands), axis
    )
    axis.set_ylabel("effective noise σ")
    ratios = [together / pairs for together, pairs in zip(curves[CORRELATED], curves[PAIRS], strict=True)]
    coins = [allocated / pairs for allocated, pairs in zip(curves[ALLOCATED], curves[PAIRS], strict=True)]
    gains = [together / alone for together, alone in zip(curves[CORRELATED], curves[ORDER], strict=True)]
    return Exhibit(
        name="fig-noise-epochs",
        figure=figure,
        alt=f"Effective noise against epochs, both logarithmic, for {', '.join(ways)}. At {epochs[-1]} epochs: "
        + ", ".join(f"{way} {curves[way][-1]:.3g}" for way in ways)
        + ".",
        caption=f"The σ of independent noise that disturbs prefix sums as much, at ε = {epsilon:g} and δ = {delta:g} "
        f"for one element replaced; {batches} batches, or rate 1/{batches}; correlated over {bands} steps.",
        header=["epochs", *ways],
        rows=[(count, *(f"{curves[way][i]:.3g}" for way in ways)) for i, count in enumerate(epochs)],
        numbers={
            "coins-gain": f"{min(gains):.2f} to {max(gains):.2f}",
            "coins-short": f"{min(ratios):.2g} to {max(ratios):.2g}",
            "coins-allocated": f"{min(coins):.2f} to {max(coins):.2f}",
            "coins-bands": bands,
        },
    )


def which_is_better(work: Work, sigma: float, epsilons: Sequence[float]) -> Exhibit:
    """δ of sampled users over δ of the fixed order against ε, and where a proof says which is smaller."""
    users, order = work.run(USERS, sigma), work.run(ORDER, sigma)
    assert isinstance(users, SubsampledGaussian)
    ratio = [delta_at(users, e).estimate / delta_at(order, e).estimate for e in epsilons]
    says = [proved_better(users, e) for e in epsilons]
    figure, axis = plt.subplots()
    axis.semilogy(epsilons, ratio, color=PALETTE["blue"])
    axis.axhline(1.0, color=PALETTE["grey"], ls=":")
    for answer, colour, label in (
        (Sampler.POISSON_USERS, "orange", "proved: sampling users is better"),
        (Sampler.FIXED_ORDER, "brown", "proved: the fixed order is better"),
    ):
        marked = [(e, r) for e, r, said in zip(epsilons, ratio, says, strict=True) if said is answer]
        if marked:
            axis.plot(*zip(*marked, strict=True), ls="", marker="o", ms=4, color=PALETTE[colour], label=label)
    axis.set(xlabel="ε", ylabel="δ, users sampled / fixed order")
    axis.legend()
    crossing = next((e for e, r in zip(epsilons, ratio, strict=True) if r >= 1), float("nan"))
    silent = [e for e, said in zip(epsilons, says, strict=True) if said is None]
    return Exhibit(
        name="fig-which-is-better",
        figure=figure,
        alt=f"The ratio of both δ against ε rises from {ratio[0]:.3g} to {ratio[-1]:.3g} and passes 1 near ε = "
        f"{crossing:.3g}.",
        caption=f"E = {work.epochs} visits, {work.batches} batches, σ = {sigma:g}; below 1 sampling users is better. "
        "Points carry a proof.",
        numbers={
            "coins-crossing": f"{crossing:.2g}",
            "coins-silent": f"between ε = {silent[0]:.2g} and {silent[-1]:.2g}" if silent else "nowhere",
        },
    )


def attacked(work: Work, sigma: float, bands: int, trials: int, rng: np.random.Generator) -> Exhibit:
    """What an attack on the ways without a coin in every step proves, beside the promise."""
    rows = []
    for way in (ORDER, CORRELATED, ALLOCATED):
        run = work.run(way, sigma, bands)
        found = attack(run, work.delta, trials=trials, rng=rng)
        band = account(run, work.delta)
        rows.append((way, rounded_down(found.low), rounded_up(band.up), "yes" if found.low <= band.up else "no"))
    return Exhibit(
        name="tab-attack",
        caption=f"An attack on {trials:,} runs with E = {work.epochs}, {work.batches} batches and σ = {sigma:g}, at "
        f"δ = {work.delta:g}: ε is at least what it proves, with confidence 99.9 %.",
        header=["way", "ε the attack proves", "ε promised", "in order"],
        rows=rows,
    )


def runs_table(finals: Mapping[str, tuple[float, float, float]], epsilon: float, delta: float) -> Exhibit:
    """Noise, ε and test accuracy of live runs, by way."""
    return Exhibit(
        name="tab-coins-runs",
        caption=f"Live runs at a true ε = {epsilon:g} for one element, data replaced by any other, δ = {delta:.2g}; "
        "one seed, synthetic stand-in data.",
        header=["way", "σ", "ε proved", "test accuracy"],
        rows=[(way, f"{s:.3g}", rounded_up(e), f"{accuracy:.1%}") for way, (s, e, accuracy) in finals.items()],
    )
