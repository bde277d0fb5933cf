"""What the pages on definitions and properties show."""

import math
from collections.abc import Sequence
from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

from elementdp.audit.composition import optimal_delta_equal
from elementdp.audit.finite import Distribution
from elementdp.audit.programs import sharp_group_delta, worst_group_delta
from elementdp.companion.exhibit import Exhibit
from elementdp.companion.style import INK, NEIGHBOURS, PALETTE, PRINTED, REPAIRED
from elementdp.companion.theory.inference import all_or_none, independent_belief, knowing_the_rest, odds_moved
from elementdp.elements import Partition, sample_distance
from elementdp.privacy import Guarantee, Unit
from elementdp.privacy.composition import (
    compose_advanced,
    compose_advanced_as_printed,
    compose_basic,
    compose_optimal_epsilon,
)


def side_information(counts: Sequence[int] = (1, 2, 3, 5), odds: Fraction = Fraction(3)) -> Exhibit:
    """How far an answer moves the odds of one element, for people who knew different things before."""
    people = (knowing_the_rest, independent_belief, all_or_none)
    return Exhibit(
        name="tab-side-information",
        caption=f"The most by which the answers multiply the odds of “has element 1”, exactly; e^ε = {odds}, so group "
        "privacy allows 3^k for k elements",
        header=("elements k", "knew all the others", "believed them independent", "knew: all or none", "group privacy"),
        rows=[(k, *(odds_moved(belief(k), odds) for belief in people), odds**k) for k in counts],
        numbers={"side-ten": f"{math.exp(10):,.0f}"},
    )


def renyi_orders(said: Distribution, never: Distribution) -> Exhibit:
    """The Rényi divergence of one mechanism at every order, between the average and the worst log ratio."""
    orders = np.concatenate([1 + np.logspace(-3, 0, 30), np.logspace(np.log10(2.05), 2.5, 60)])
    p, q = (np.array([float(value) for value in law.values()]) for law in (said, never))
    exponents = np.log(q) + orders[:, None] * np.log(p / q)
    curve = np.logaddexp.reduce(exponents, axis=1) / (orders - 1)
    average, worst = float(np.sum(p * np.log(p / q))), float(np.max(np.log(p / q)))
    figure, axes = plt.subplots()
    axes.semilogx(orders, curve, label="Rényi divergence", color=INK)
    axes.axhline(average, color=PALETTE["grey"], linestyle=":", label="average log ratio (order 1)")
    axes.axhline(worst, color=PALETTE["grey"], linestyle="--", label="worst log ratio")
    axes.set(xlabel="order α", ylabel="divergence")
    axes.legend()
    return Exhibit(
        name="fig-renyi-orders",
        figure=figure,
        alt=f"The Rényi divergence rises from {average:.3f} at order 1 towards the worst log likelihood ratio "
        f"{worst:.3f}.",
        caption="The Rényi divergence grows with the order, from the average log ratio to the worst one. Here it is "
        "that of the mechanism that answers yes, no or nothing.",
    )


def coarser_distances(pairs: Sequence[tuple[list[dict[str, int]], list[dict[str, int]]]]) -> Exhibit:
    """Distances between random samples under three elements and with two of them merged."""
    coarse = Partition.from_labels({"a": "ab", "b": "ab", "c": "c"})
    fine_found = np.array([sample_distance(x, y, Partition.identity()) for x, y in pairs])
    coarse_found = np.array([sample_distance(x, y, coarse) for x, y in pairs])
    figure, axes = plt.subplots(figsize=(6, 3.2))
    sns.histplot(
        {"three elements": fine_found, "two of them merged": coarse_found},
        discrete=True, multiple="dodge", shrink=0.8, palette=[one.colour for one in NEIGHBOURS], alpha=1, ax=axes,
    )  # fmt: skip
    axes.set(xlabel="distance between two samples of four users", ylabel="pairs of samples")
    axes.set_xticks(range(int(fine_found.max()) + 1))
    rose = int((coarse_found > fine_found).sum())
    return Exhibit(
        name="fig-coarser",
        figure=figure,
        alt=f"Histogram of distances for {len(pairs)} random pairs of samples. Merging two of three elements moves the "
        f"distances down, from a mean of {fine_found.mean():.2f} to {coarse_found.mean():.2f}.",
        caption=f"Merging elements brings samples closer (it raised {rose} of {len(pairs)} distances), so the same "
        "guarantee covers more.",
        header=("partition", "mean distance"),
        rows=[("three elements", float(fine_found.mean())), ("two merged", float(coarse_found.mean()))],
    )


def group_growth(epsilon: float, distances: Sequence[int], small: float = 1e-6) -> Exhibit:
    """How δ grows with the number of changed elements: printed, sharp, and the worst chain there is."""
    worst = [worst_group_delta(d, epsilon, small) / small for d in distances]
    sharp = [sharp_group_delta(d, epsilon, small) / small for d in distances]
    printed = [d * math.exp((d - 1) * epsilon) for d in distances]
    figure, axes = plt.subplots()
    axes.semilogy(distances, printed, PRINTED.dash, label="printed: $D e^{(D-1)\\varepsilon}$", color=PRINTED.colour)
    label = "sharp: $(e^{D\\varepsilon}-1)/(e^{\\varepsilon}-1)$"
    axes.semilogy(distances, sharp, REPAIRED.dash, label=label, color=REPAIRED.colour)
    axes.semilogy(distances, worst, "o", label="worst chain, linear program", color=INK)
    axes.set(xlabel="changed elements $D$", ylabel="δ at $D\\varepsilon$, in units of δ")
    axes.legend()
    loss = printed[-1] / sharp[-1]
    return Exhibit(
        name="fig-group-privacy",
        figure=figure,
        alt="Three curves of the growth of δ with the number of changed elements. The linear program's points lie on "
        f"the sharp curve or below it; the printed curve is above it, by a factor {loss:.2f} at D = {distances[-1]}.",
        caption=f"The printed factor for group privacy is true, and it is {loss:.3g} times the sharp one at "
        f"D = {distances[-1]} changed elements (ε = {epsilon:g}).",
    )


def composed_levels(counts: Sequence[int], part: tuple[float, float], slack: float) -> Exhibit:
    """ε of k mechanisms by four rules, and the δ really needed at the printed ε over the printed δ."""
    rows = []
    for k in counts:
        parts = [Guarantee(*part, Unit.ELEMENT)] * k
        stated, repaired = compose_advanced_as_printed(parts, slack), compose_advanced(parts, slack)
        best = compose_optimal_epsilon(parts, delta=slack + k * part[1])
        needed = optimal_delta_equal(stated.epsilon, *part, k) / stated.delta
        rows.append((k, compose_basic(parts).epsilon, stated.epsilon, repaired.epsilon, best.epsilon, needed))
    columns = np.array(rows).T
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.0, 3.4))
    for values, name, colour, dash in zip(
        columns[1:5],
        ("basic", "printed", "repaired", "optimal"),
        (PALETTE["grey"], PRINTED.colour, REPAIRED.colour, INK),
        (":", PRINTED.dash, REPAIRED.dash, "-."),
        strict=True,
    ):
        left.loglog(columns[0], values, label=name, color=colour, ls=dash)
    left.set(xlabel="mechanisms $k$", ylabel="ε of the composition", title="loose in ε")
    figure.legend(loc="outside lower center", ncols=4)
    right.semilogx(columns[0], columns[5], color=PRINTED.colour, ls=PRINTED.dash, marker=PRINTED.marker, ms=3)
    right.axhline(1, color=PALETTE["grey"], ls=":")
    right.set(xlabel="mechanisms $k$", ylabel="true δ / printed δ", title="false above the line", ylim=(0, None))
    last, first = rows[-1], rows[0]
    return Exhibit(
        name="fig-composition",
        figure=figure,
        alt="Left: ε against the number of mechanisms; the printed curve lies above the repaired one, which lies "
        "above the "
        f"optimal one. Right: the δ really needed at the printed ε over the printed δ: from {first[5]:.2f} to "
        f"{last[5]:.2f}.",
        caption=f"The printed composition is loose in ε and false in δ. Left: at k = {last[0]} the printed ε is "
        f"{last[2] / last[4]:.3g} times the optimal one; “repaired” is the smaller of both parts of the theorem. "
        f"Right: above the dotted line the printed guarantee is false. Each mechanism is ({part[0]:g}, "
        f"{part[1]:g})-private; δ₀ = {slack:g}.",
        header=("k", "basic ε", "printed ε", "repaired ε", "optimal ε", "true δ / printed δ"),
        rows=rows,
        numbers={
            "ratio-last": f"{last[5]:.3g}",
            "k-last": last[0],
            "printed-loose": f"{last[2] / last[4]:.3g}",
            "repaired-loose": f"{last[3] / last[4]:.3g}",
        },
    )
