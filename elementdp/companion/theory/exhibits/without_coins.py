"""What the page on training without coins shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from elementdp.audit import attack
from elementdp.companion.exhibit import Exhibit
from elementdp.companion.style import INK, LOOKS, PALETTE
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


def marks(way: str, ring: float = 10) -> dict[str, Any]:
    """The marker of a way; allocated pairs are so close to sampled ones that theirs is a ring around the other."""
    look = LOOKS_OF_WAYS[way]
    found: dict[str, Any] = {"color": look.colour, "marker": look.marker}
    if way == ALLOCATED:
        found |= {"markersize": ring, "markerfacecolor": "none", "markeredgewidth": 1.6}
    return found


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
        axis.loglog(epochs, found, ls=LOOKS_OF_WAYS[way].dash, label=way, **marks(way))
    axis.set_xticks(list(epochs), [str(count) for count in epochs])
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.minorticks_off()
    axis.set_xlabel("epochs E")
    axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.18), ncols=2, frameon=False)
    return curves


def epsilon_against_epochs(epochs: Sequence[int], batches: int, sigma: float, delta: float, bands: int) -> Exhibit:
    """The ε to promise at equal noise and equal work."""
    figure, axis = plt.subplots(figsize=(6.0, 4.4))
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
        caption=f"At equal noise and {epochs[-1]} epochs, ε goes from {min(each[-1] for each in curves.values()):.3g} "
        f"to {max(each[-1] for each in curves.values()):.3g} with the way. One element replaced, users with any number "
        f"of elements; δ = {delta:g}, σ = {sigma:g}, {batches} batches, or rate 1/{batches}. Noise that is correlated "
        f"over {bands} steps is scaled to disturb the sums of all steps so far as much as independent noise.",
        header=["epochs", *ways],
        rows=[(count, *(rounded_up(curves[way][i]) for way in ways)) for i, count in enumerate(epochs)],
    )


def noise_against_epochs(epochs: Sequence[int], batches: int, epsilon: float, delta: float, bands: int) -> Exhibit:
    """The noise in the sums of all steps so far, at equal ε and equal work."""
    figure, axis = plt.subplots(figsize=(6.0, 4.4))
    ways = tuple(LOOKS_OF_WAYS)
    curves = _against_epochs(
        ways, epochs, lambda way, count: Work(count, batches, delta).effective_noise(way, epsilon, bands), axis
    )
    axis.set_ylabel("effective noise σ")
    return Exhibit(
        name="fig-noise-epochs",
        figure=figure,
        alt=f"Effective noise against epochs, both logarithmic, for {', '.join(ways)}. At {epochs[-1]} epochs: "
        + ", ".join(f"{way} {curves[way][-1]:.3g}" for way in ways)
        + ".",
        caption=f"Users sampled take {_factors(curves[USERS], curves[PAIRS])} times the noise of pairs sampled, and a "
        f"fixed order with correlated noise {_factors(curves[CORRELATED], curves[PAIRS])} times; pairs allocated take "
        f"about the same. ε = {epsilon:g} at δ = {delta:g}, one element replaced, users with any number of elements; "
        f"{batches} batches, or rate 1/{batches}. Correlated noise (over {bands} steps) is given as the σ of "
        "independent noise that disturbs the sums of all steps so far as much.",
        header=["epochs", *ways],
        rows=[(count, *(f"{curves[way][i]:.3g}" for way in ways)) for i, count in enumerate(epochs)],
        numbers={
            "coins-gain": _factors(curves[CORRELATED], curves[ORDER]),
            "coins-short": _factors(curves[CORRELATED], curves[PAIRS]),
            "coins-allocated": _factors(curves[ALLOCATED], curves[PAIRS]),
            "coins-order": _factors(curves[ORDER], curves[PAIRS]),
            "coins-users": _factors(curves[USERS], curves[PAIRS]),
            "coins-bands": bands,
        },
    )


_DRAWN = {
    USERS: ("a coin for each user in each step", "the user, or the server"),
    ORDER: ("nothing", "nobody"),
    CORRELATED: ("nothing", "nobody; the server keeps some past noise, as secret as the data"),
    PAIRS: ("a coin for each pair in each step", "whoever holds the pair"),
    ALLOCATED: ("one of the steps for each pair in each epoch", "whoever holds the pair"),
}


def what_ways_need(noise: Exhibit) -> Exhibit:
    """The noise of each way, from :func:`noise_against_epochs`, beside what the way needs."""
    keys = {USERS: "users", ORDER: "order", CORRELATED: "short", ALLOCATED: "allocated"}
    factors = {way: noise.numbers[f"coins-{key}"] for way, key in keys.items()}
    return Exhibit(
        name="tab-coins-needs",
        caption="What each way takes and needs. What is drawn has to stay hidden from everybody who sees a release.",
        header=["way", "noise over that of pairs sampled", "what is drawn", "who draws it"],
        rows=[(way, factors.get(way, "1"), *_DRAWN[way]) for way in LOOKS_OF_WAYS],
    )


def _factors(ones: Sequence[float], others: Sequence[float]) -> str:
    """The range of the factors between two curves."""
    found = [one / other for one, other in zip(ones, others, strict=True)]
    return f"{min(found):.2f} to {max(found):.2f}"


def noise_by_rate(rates: Sequence[float], curves: Mapping[str, Sequence[float]], users: int, about: str) -> Exhibit:
    """The noise over the users of a step against the rate, by way; ``about`` says what is the same for all."""
    figure, axis = plt.subplots(figsize=(6.0, 4.2))
    relative = {way: [one / (q * users) for one, q in zip(found, rates, strict=True)] for way, found in curves.items()}
    for way, found in relative.items():
        axis.loglog(rates, found, ls=LOOKS_OF_WAYS[way].dash, label=way, **marks(way))
    axis.set_xticks(list(rates), [f"{q:g}" for q in rates])
    axis.minorticks_off()
    axis.set(xlabel="sampling rate q, or one over the batches", ylabel="noise over users in a step, σ/(qn)")
    figure.legend(loc="outside lower center", ncols=1)
    ends = "; ".join(f"{way} from {found[0]:.2g} to {found[-1]:.2g}" for way, found in relative.items())
    return Exhibit(
        name="fig-howto-noise",
        figure=figure,
        alt=f"Noise over the users of a step against the rate, both logarithmic; it falls for every way: {ends}.",
        caption=f"The larger the rate, the less noise for each user of a step, whatever the sampler; {about}.",
        header=["q", *curves],
        rows=[(f"{q:g}", *(f"{found[i]:.3g}" for found in curves.values())) for i, q in enumerate(rates)],
        fold="The noise σ behind this figure",
    )


def which_is_better(work: Work, sigma: float, epsilons: Sequence[float]) -> Exhibit:
    """δ of sampled users over δ of the fixed order against ε, and where a proof says which is smaller."""
    users, order = work.run(USERS, sigma), work.run(ORDER, sigma)
    assert isinstance(users, SubsampledGaussian)
    ratio = [delta_at(users, e).estimate / delta_at(order, e).estimate for e in epsilons]
    says = [proved_better(users, e) for e in epsilons]
    figure, axis = plt.subplots()
    axis.semilogy(epsilons, ratio, color=INK)
    axis.axhline(1.0, color=PALETTE["grey"], ls=":")
    for answer, way, label in (
        (Sampler.POISSON_USERS, USERS, "proved: sampling users is better"),
        (Sampler.FIXED_ORDER, ORDER, "proved: the fixed order is better"),
    ):
        marked = [(e, r) for e, r, said in zip(epsilons, ratio, says, strict=True) if said is answer]
        if marked:
            axis.plot(*zip(*marked, strict=True), ls="", markersize=5, label=label, **marks(way))
    axis.set(xlabel="ε", ylabel="δ, users sampled / fixed order")
    axis.legend()
    crossing = next((e for e, r in zip(epsilons, ratio, strict=True) if r >= 1), float("nan"))
    silent = [e for e, said in zip(epsilons, says, strict=True) if said is None]
    return Exhibit(
        name="fig-which-is-better",
        figure=figure,
        alt=f"The ratio of both δ against ε rises from {ratio[0]:.3g} to {ratio[-1]:.3g} and passes 1 near ε = "
        f"{crossing:.3g}.",
        caption=f"Sampling users is better below ε = {crossing:.2g}, and the fixed order beyond it. The δ of sampled "
        f"users over that of the fixed order, at equal ε; {work.epochs} visits, {work.batches} batches, σ = {sigma:g}. "
        "Marked points have a proof.",
        numbers={
            "coins-crossing": f"{crossing:.2g}",
            "coins-silent": f"between ε = {silent[0]:.2g} and {silent[-1]:.2g}" if silent else "nowhere",
        },
    )


def attacked(work: Work, sigma: float, bands: int, trials: int, rng: np.random.Generator) -> Exhibit:
    """What an attack on the ways without a coin in every step proves, beside the promise."""
    rows, shares = [], []
    for way in (ORDER, CORRELATED, ALLOCATED):
        run = work.run(way, sigma, bands)
        found = attack(run, work.delta, trials=trials, rng=rng)
        band = account(run, work.delta)
        shares.append(found.low / band.up)
        rows.append((way, rounded_down(found.low), rounded_up(band.up), "yes" if found.low <= band.up else "no"))
    return Exhibit(
        name="tab-attack",
        caption=f"An attack proves {min(shares):.0%} to {max(shares):.0%} of the promised ε, with confidence 99.9 %. "
        f"{trials:,} runs with E = {work.epochs}, {work.batches} batches and σ = {sigma:g}, at δ = {work.delta:g}.",
        header=["way", "ε the attack proves", "ε promised", "promise kept"],
        rows=rows,
        numbers={"coins-attack": f"{min(shares):.0%} to {max(shares):.0%}"},
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
