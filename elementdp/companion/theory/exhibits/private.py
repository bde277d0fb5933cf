"""What the page on private estimation shows."""

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.style import INK, LOOKS, PALETTE, power_of_ten
from elementdp.companion.theory.agreement import covariance_agreement, normality_pvalue, simulation_error
from elementdp.companion.theory.glm import (
    PartitionEffect,
    misspecified_population,
    partition_effect,
    printed_risk,
    tied_users,
    wellspecified_population,
)
from elementdp.companion.theory.iteration import NoisySteps
from elementdp.companion.theory.linearised import iteration_covariance
from elementdp.companion.theory.privacy_rates import printed_rate, run
from elementdp.companion.theory.private import private_averages, private_limit, step_noise
from elementdp.companion.theory.users import example_users, iid_users
from elementdp.privacy import Sampler, account, claimed, rounded_up

PRINTED, USERS, PAIRS = (LOOKS[f"element, {name}"] for name in ("as printed", "users sampled", "pairs sampled"))
TILTS = {"together": (3.0, 3.0, 3.0), "apart": (3.0, -3.0, 3.0)}
"""Users whose elements pull together, and users whose elements pull apart."""
SAMPLERS = {
    "coins for users": Sampler.POISSON_USERS,
    "m users exactly": Sampler.FIXED_USERS,
    "coins for pairs": Sampler.POISSON_PAIRS,
}


def sampler_laws(n: int, m: int, replications: int, rng: np.random.Generator) -> Exhibit:
    """The variance of the first coordinate under three samplers for two populations, simulated and predicted."""
    setting, gamma = NoisySteps(0.25, 0.7, 0.5), 0.5
    steps, band, rows = round(gamma * n), simulation_error(replications), []
    figure, axes = plt.subplots(figsize=(6, 4.4))
    for i, (world, tilt) in enumerate(TILTS.items()):
        people = example_users(tilt)
        rho = people.element_lipschitz
        for j, (name, sampler) in enumerate(SAMPLERS.items()):
            average = private_averages(people, sampler, n, m, [steps], setting, replications, rng)[0]
            draws = math.sqrt(n) * (average - people.optimum)
            noise = step_noise(people, sampler, m, rho, setting.sigma)
            inside = iteration_covariance(people.hessian, noise, steps, setting) * n / steps
            finite = people.sandwich(people.user_scatter) + inside
            limit = private_limit(people, sampler, m, gamma, rho, setting.sigma)
            seen, place = float(np.cov(draws.T)[0, 0]), 4 * i + j
            tests = covariance_agreement(draws, finite).pvalue, normality_pvalue(draws)
            rows.append((world, name, seen, float(finite[0, 0]), float(limit[0, 0]), *tests))
            label = name if i == 0 else None
            colour = PAIRS.colour if sampler is Sampler.POISSON_PAIRS else USERS.colour
            axes.errorbar(
                [place], [seen], yerr=[band * seen], color=colour, marker="soD"[j], capsize=4, ls="none", label=label
            )
            axes.plot([place - 0.3, place + 0.3], [finite[0, 0]] * 2, color=PALETTE["grey"], linestyle="-")
    axes.set(xticks=[1, 5], xticklabels=["elements pull together", "elements pull apart"], ylim=(0, None))
    axes.set_ylabel("n × variance, first coordinate")
    figure.legend(loc="outside lower center", ncols=1)
    told = "; ".join(f"{world}, {name}: {seen:.3g} ({finite:.3g})" for world, name, seen, finite, *_ in rows)
    seen_in = {(world, name): value for world, name, value, *_ in rows}
    costs = {world: seen_in[world, "coins for pairs"] / seen_in[world, "coins for users"] for world in TILTS}
    return Exhibit(
        name="fig-sampler-laws",
        figure=figure,
        alt=f"Variance of the first coordinate under three samplers, simulated and (linearised): {told}.",
        caption="How one samples users does not matter; sampling pairs has less variance where a user's elements pull "
        "together, and more where they pull apart. Marks: simulated, with 99% simulation error. Grey bars: the "
        f"linearised law at this n. n = {n}, m = {m}, γ = ½, σ = ½, {replications} runs.",
        header=("elements pull", "sampling", "simulated", "linearised at n", "limit", "p, covariance", "p, normality"),
        rows=rows,
        numbers={f"laws-{world}": f"{cost:.2f}" for world, cost in costs.items()},
    )


def privacy_rate(
    sizes: Sequence[int], bounded_sizes: Sequence[int], m: int, delta: float, sigma: float = 4.0
) -> Exhibit:
    """ε against the number of users: printed, true for sampled users, and repaired."""
    printed = [printed_rate(n, m, 1.0, sigma, delta) for n in sizes]
    users, pairs = (
        [account(run(sampler, n, m, 1.0, sigma, None), delta).up for n in sizes]
        for sampler in (Sampler.POISSON_USERS, Sampler.POISSON_PAIRS)
    )
    ten = [account(run(Sampler.POISSON_USERS, n, m, 1.0, sigma, 10), delta) for n in bounded_sizes]
    figure, axes = plt.subplots(figsize=(6, 4.8))
    look = {"color": USERS.colour, "marker": USERS.marker, "ls": USERS.dash}
    axes.loglog(sizes, users, label="users sampled, any number of elements", **look)
    low, up = [b.low for b in ten], [b.up for b in ten]
    axes.fill_between(bounded_sizes, low, up, color=USERS.colour, alpha=0.35, lw=0, label="users sampled, M = 10")
    axes.loglog(sizes, printed, color=PRINTED.colour, ls=PRINTED.dash, label="printed ε(σ)")
    look = {"color": PAIRS.colour, "marker": PAIRS.marker, "ls": PAIRS.dash}
    axes.loglog(sizes, pairs, label="pairs sampled (repaired)", **look)
    axes.set(xlabel="users n", ylabel=f"element-level ε at δ = {power_of_ten(delta)}")
    figure.legend(loc="outside lower center", ncols=1)
    return Exhibit(
        name="fig-privacy-rate",
        figure=figure,
        alt=f"Element-level epsilon against the number of users. The printed rate falls from {printed[0]:.2g} to "
        f"{printed[-1]:.2g}; with users sampled and no bound on their elements the true value stays at "
        f"{users[-1]:.3g}; with pairs sampled it falls from {pairs[0]:.2g} to {pairs[-1]:.2g}.",
        caption="The printed ε falls as users are added; the true one does not if users are sampled, and does if pairs "
        f"are. m = {m}, γ = 1, σ = {sigma:g}. The band is what is proved, from below and above, for users with at "
        f"most ten elements.",
        numbers={
            "rate-users": f"{sizes[-1]:,}",
            "rate-revealed": f"{users[-1]:.3g}",
            "rate-printed": f"{printed[-1]:.2g}",
            "rate-repaired": f"{pairs[-1]:.2g}",
        },
    )


def measured_constant(levels: Sequence[float], sizes: Sequence[int], m: int, delta: float) -> Exhibit:
    """The O(1) of Proposition 3 (i) once pairs are sampled: true over printed ε, for several σ."""
    rows, ratios = [], {}
    for level in levels:
        true = [account(run(Sampler.POISSON_PAIRS, n, m, 1.0, level, None), delta).up for n in sizes]
        stated = [printed_rate(n, m, 1.0, level, delta) for n in sizes]
        ratios[level] = max(t / f for t, f in zip(true, stated, strict=True))
        rows.append([f"{level:.3g}", *(v for t, f in zip(true, stated, strict=True) for v in (t, t / f))])
    allowed = max((ratio for level, ratio in ratios.items() if level**2 >= 2), default=math.nan)
    return Exhibit(
        name="tab-measured-constant",
        caption=f"Where σ² ≥ 2 the O(1) of the proposition is at most {rounded_up(allowed)}: the true ε with pairs "
        "sampled over the printed ε(σ)",
        header=("σ", *(f"{what}, n = {n:,}" for n in sizes for what in ("true ε", "over ε(σ)"))),
        rows=rows,
        numbers={
            "rate-allowed": rounded_up(allowed),  # a bound: never rounded down
            "rate-breaks": f"{max((level for level, ratio in ratios.items() if ratio > allowed), default=0.0):g}",
        },
    )


def equal_epsilon(n: int, m: int, delta: float, levels: Sequence[float]) -> Exhibit:
    """Limiting variance against ε for the printed and the repaired method, elements pulling together."""
    people = example_users(TILTS["together"])
    best, rho = np.trace(people.sandwich(people.user_scatter)), people.element_lipschitz

    def points(sampler: Sampler, most: int | None, *, stated: bool = False) -> list[tuple[float, float]]:
        found = []
        for level in levels:
            event = run(sampler, n, m, 1.0, level, most)
            epsilon = claimed(event, delta) if stated else account(event, delta).up
            found.append((epsilon, float(np.trace(private_limit(people, sampler, m, 1.0, rho, level)) / best)))
        return sorted(found)

    curves = {
        "printed, ε as claimed": (points(Sampler.POISSON_USERS, None, stated=True), PRINTED.colour, "", "--"),
        "printed, true ε": (points(Sampler.POISSON_USERS, None), USERS.colour, USERS.marker, USERS.dash),
        "printed, true ε, M = 3": (points(Sampler.POISSON_USERS, 3), USERS.colour, "v", "-."),
        "repaired, true ε": (points(Sampler.POISSON_PAIRS, None), PAIRS.colour, PAIRS.marker, PAIRS.dash),
    }
    figure, axes = plt.subplots(figsize=(6, 5))
    for name, (found, colour, marker, dash) in curves.items():
        axes.loglog(*zip(*found, strict=True), color=colour, marker=marker, linestyle=dash, label=name)
    axes.set(xlabel=f"element-level ε at δ = {power_of_ten(delta)}", ylabel="variance / best non-private")
    axes.set_yticks([1.5, 2, 5, 10, 20, 50, 100], ["1.5", "2", "5", "10", "20", "50", "100"])
    axes.minorticks_off()
    figure.legend(loc="outside lower center", ncols=1)
    costs = {name: _at_one(found) for name, (found, *_) in curves.items()}
    stated, true, three, repaired = costs.values()
    return Exhibit(
        name="fig-equal-epsilon",
        figure=figure,
        alt=f"Variance against true epsilon. At epsilon one the printed method claims {stated:.3g} times the best "
        f"variance but needs {true:.3g} times to be true; the repaired one has {repaired:.3g} times.",
        caption="The repaired method has less variance at the ε it really has than the printed one at the ε it claims. "
        f"Limiting variance (trace) over that of the best non-private estimator; n = {n}, m = {m}, γ = 1, elements "
        "pull together.",
        header=("method", "variance / best at ε = 1"),
        rows=list(costs.items()),
        numbers={
            "cost-claimed": f"{stated:.3g}",
            "cost-true": f"{true:.3g}",
            "cost-three": f"{three:.3g}",
            "cost-repaired": f"{repaired:.3g}",
        },
    )


def _at_one(points: Sequence[tuple[float, float]]) -> float:
    """The variance at ε = 1, interpolated on logarithmic scales."""
    logs = np.log(np.array(points))
    return float(np.exp(np.interp(0.0, logs[:, 0], logs[:, 1])))


MIXED, TRIPLES = {1: 0.5, 3: 0.5}, {3: 1.0}
"""Users with one or three points, and users with three."""
PARTITIONS = {
    "one element": (0,) * 8,
    "two, uneven": (0, 0, 0, 0, 0, 0, 1, 1),
    "four": (0, 0, 1, 1, 2, 2, 3, 3),
    "by label": (0, 1, 0, 1, 0, 1, 0, 1),
}
"""Four covariates with two labels each, sorted into elements."""


def partition_effects(sizes: Mapping[int, float], *, right: bool = True) -> dict[str, PartitionEffect]:
    """θ*, information and variance under each partition, for a model that is right or wrong."""
    population = wellspecified_population() if right else misspecified_population()
    return {name: partition_effect(iid_users(population, dict(sizes), np.array(c))) for name, c in PARTITIONS.items()}


def partition_optima() -> Exhibit:
    """Where the element-level risk is smallest."""
    well, bad = partition_effects(MIXED), partition_effects(MIXED, right=False)
    rows = [[name, *("({:.4f}, {:.4f})".format(*group[name].optimum) for group in (well, bad))] for name in PARTITIONS]
    return Exhibit(
        name="tab-partition-optima",
        caption="A right model moves only if labels are split, a wrong one with every partition that reweights: where "
        "the element-level risk is smallest (exact enumeration)",
        header=("partition", "θ*, model right", "θ*, model wrong"),
        rows=rows,
        numbers={"glm-shift": f"{case_control_shift():.4f}"},
    )


def case_control_shift() -> float:
    """log(w₊/w₋), by which weighting the classes moves the intercept."""
    yes = float(wellspecified_population().p[::2].sum())
    shown = {y: sum(c * (1 - (1 - p) ** m) for m, c in MIXED.items()) for y, p in ((1, yes), (-1, 1 - yes))}
    return math.log(shown[1] / yes) - math.log(shown[-1] / (1 - yes))


def partition_picture() -> Exhibit:
    """Variance and information under finer partitions of the covariates."""
    figure, panels = plt.subplots(1, 2, figsize=(6, 3.6))
    names, changes = ["one element", "two, uneven", "four"], []
    for axes, title, sizes in zip(panels, ("one or three points", "three points each"), (MIXED, TRIPLES), strict=True):
        group = partition_effects(sizes)
        base = group["one element"]
        variance = [group[name].variance / base.variance for name in names]
        information = [group[name].information / base.information for name in names]
        axes.plot(range(3), variance, color=INK, marker="s", linestyle="-", label="variance")
        axes.plot(range(3), information, color=PALETTE["sky"], marker="o", linestyle="--", label="information")
        axes.axhline(1, color=PALETTE["grey"], linestyle=":")
        axes.set(title=title, xticks=range(3), xticklabels=["1", "2", "4"], xlabel="elements")
        changes.append(variance)
    panels[0].set_ylabel("relative to one element")
    panels[0].legend()
    tied = {split: tied_users(0.1, split=split) for split in (True, False)}
    at = np.array([0.7])
    gap = abs(printed_risk(tied[False], at, "point") - tied[False].risk(at))
    return Exhibit(
        name="fig-partitions",
        figure=figure,
        alt=f"With users of one or three points the asymptotic variance falls to {changes[0][2]:.2f} of its value as "
        f"elements are split; with three points each it rises to {changes[1][1]:.2f}. The information rises in both.",
        caption="Splitting elements may lower the variance or raise it; the information (the Hessian) rises in either "
        "case, so it alone says nothing. Left: users with few and many points; splitting lets the latter count for "
        "more. Right: all users alike; uneven splitting weights points unequally.",
        numbers={
            "glm-tied": f"{float(tied[False].optimum[0]):.3f}",
            "glm-split": f"{abs(float(tied[True].optimum[0])):.0f}",
            "glm-gap": f"{gap:.2g}",
        },
    )


def two_elements_table() -> Exhibit:
    """Information and variance of four ways to make two elements of four covariates."""
    ways = {"{1,2,3},{4}": [0, 0, 0, 1], "{1,2},{3,4}": [0, 0, 1, 1]}
    ways |= {"{1},{2,3,4}": [0, 1, 1, 1], "{1,2,4},{3}": [0, 0, 1, 0]}
    well, rows = wellspecified_population(), []
    for name, clusters in ways.items():
        found = [partition_effect(iid_users(well, dict(sizes), np.repeat(clusters, 2))) for sizes in (MIXED, TRIPLES)]
        rows.append([name, *(value for one in found for value in (one.information, one.variance))])
    return Exhibit(
        name="tab-two-elements",
        caption="Which of two partitions has more information depends on what is joined, not on how many elements "
        "there are. Two elements, four ways (covariates numbered 1 to 4), for users with one or three points and with "
        "three each; traces, exact",
        header=("elements", "information, 1 or 3", "variance, 1 or 3", "information, 3", "variance, 3"),
        rows=rows,
    )
