"""What the page on subsampling shows."""

import math
from collections.abc import Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

from elementdp.audit.experiment import Audited
from elementdp.audit.mixtures import Mixture, leading_coefficient, renyi, user_sampled
from elementdp.companion.exhibit import Exhibit
from elementdp.companion.style import LOOKS, NEIGHBOURS, PRINTED, plain_ticks, power_of_ten
from elementdp.companion.theory.symmetrised import DIRECTIONS, composed_epsilon, curves, step_pair
from elementdp.privacy import (
    Sampler,
    SubsampledGaussian,
    account,
    claimed,
    printed_renyi,
    rounded_down,
    rounded_up,
)

USERS, PAIRS = LOOKS["element, users sampled"], LOOKS["element, pairs sampled"]
ORDER = 8.0
"""The Rényi order at which single steps are compared."""


def two_densities(q: float = 0.3, sigma: float = 2.0) -> Exhibit:
    """One step for both values of the secret, without and with nine other elements."""
    figure, axes = plt.subplots(1, 2, figsize=(6.0, 3.0), sharey=True)
    x = np.linspace(-8, 18, 600)
    for axis, others in zip(axes, (0, 9), strict=True):
        for secret, look in zip((1, -1), NEIGHBOURS, strict=True):
            density = np.exp(user_sampled(q, sigma, others, secret).log_density(x))
            axis.plot(x, density, color=look.colour, ls=look.dash, label=f"secret = {secret:+d}")
        axis.set(title=f"other elements add r = {others}", xlabel="output of one step")
    axes[0].set_ylabel("density")
    axes[0].legend()
    return Exhibit(
        name="fig-two-pairs",
        figure=figure,
        alt="Two panels of densities for the two values of the secret. With r = 0 both curves are one hump and nearly "
        "agree; with r = 9 each has a second hump far right, and the second humps are visibly shifted.",
        caption="What one step shows for each value of the secret. With r = 0, the printed pair, participation is "
        "hidden under the common hump. With r = 9, nine other elements, outputs on the right come from steps with the "
        f"user, and have no common part. So that this can be seen, q = {q:g} and σ = {sigma:g}.",
    )


def level_against_others(q: float, sigma: float) -> Exhibit:
    """The Rényi level of one step over the printed one, against what the user's other elements add."""
    base, others = printed_renyi(ORDER, q, sigma), np.linspace(0, 20, 41)
    levels = [renyi(user_sampled(q, sigma, r, 1), user_sampled(q, sigma, r, -1), ORDER) / base for r in others]
    limit = math.log1p(q * math.expm1(2 * ORDER * (ORDER - 1) / sigma**2)) / (ORDER - 1) / base
    near = [r for r, level in zip(others, levels, strict=True) if level > 0.99 * limit]
    reached = f"from r = {near[0]:g} on is within one percent of" if near else f"at r = {others[-1]:g} is below"
    figure, axis = plt.subplots(figsize=(6.0, 3.2))
    axis.semilogy(others, levels, color=USERS.colour, label="true level, others add r")
    axis.axhline(limit, color=USERS.colour, ls="-.", label="participation revealed, r → ∞")
    axis.axhline(1, color=PRINTED.colour, ls=PRINTED.dash, label="printed")
    axis.set(xlabel="sum r of the user's other elements, in units of ρ", ylabel="Rényi level / printed")
    axis.legend()
    return Exhibit(
        name="fig-level-against-r",
        figure=figure,
        alt=f"The true Rényi level divided by the printed one starts at {levels[0]:.3g} for r = 0 and {reached} the "
        f"limit {limit:.3g}.",
        caption=f"The more a user's other elements add, the more one step gives away: up to {limit:,.0f} times the "
        f"printed Rényi level. Order {ORDER:g}, q = {q:g}, σ = {sigma:g}.",
        numbers={"limit-factor": f"{limit:,.0f}"},
    )


def claimed_against_true(run: SubsampledGaussian, delta: float, bounds: Sequence[int]) -> Exhibit:
    """ε as claimed and as it is, against the public bound M on a user's elements."""
    stated, revealed = claimed(run, delta), account(run, delta)
    bands = [account(replace(run, elements_per_user=bound), delta) for bound in bounds]
    pairs = account(replace(run, sampler=Sampler.POISSON_PAIRS), delta)
    figure, axis = plt.subplots(figsize=(6.0, 4.6))
    axis.fill_between(bounds, [b.low for b in bands], [b.up for b in bands], color=USERS.colour, alpha=0.25, lw=0)
    ups = [b.up for b in bands]
    label = "true, users sampled (band)"
    axis.plot(bounds, ups, USERS.dash, color=USERS.colour, marker=USERS.marker, label=label)
    axis.axhline(revealed.up, color=USERS.colour, ls="-.", label="true, any number of elements")
    axis.axhline(stated, color=PRINTED.colour, ls=PRINTED.dash, label="claimed in the paper")
    axis.axhline(pairs.up, color=PAIRS.colour, ls=PAIRS.dash, label="true, pairs sampled")
    axis.set(xscale="log", yscale="log", xlabel="most elements M of a user", ylabel=f"ε at δ = {power_of_ten(delta)}")
    axis.set_xticks(bounds, [str(bound) for bound in bounds])
    axis.minorticks_off()
    plain_ticks(axis.yaxis)
    figure.legend(loc="outside lower center", ncols=1)
    above = [bound for bound, band in zip(bounds, bands, strict=True) if band.low > stated]
    broken = (
        f"from M = {above[0]} on even the lower end of our band exceeds the claim"
        if above
        else "for none of the M shown does the lower end of our band exceed the claim"
    )
    return Exhibit(
        name="fig-claimed-against-true",
        figure=figure,
        alt=f"ε against M. The claimed value {stated:.2f} and the pair-sampling value {pairs.up:.2f} are flat. The "
        f"true value for sampled users starts at {bands[0].up:.2f} and rises to {bands[-1].up:.2f}; for any number of "
        f"elements it is {revealed.up:.2f}.",
        caption=f"With users sampled, the true ε grows with the elements of a user, up to {rounded_up(revealed.up)}, "
        f"while the claim stays the same. With (user, element) pairs sampled it is at most {rounded_up(pairs.up)} for "
        f"every user. The shaded band is between a proved lower and a proved upper bound; T = {run.steps} steps, "
        f"q = {run.q:g}, σ = {run.sigma:g}.",
        header=("M", "true ε from", "to", "claimed ε", "pairs sampled"),
        rows=[(bound, band.low, band.up, stated, pairs.up) for bound, band in zip(bounds, bands, strict=True)],
        numbers={
            "sub-claimed": f"{stated:.3g}",
            "sub-true": rounded_up(revealed.up),
            "sub-pairs": rounded_up(pairs.up),
            "sub-first": broken,
            "inverse-root": f"{1 / math.sqrt(run.q):.3g}",
        },
    )


def symmetrised_table(q: float, sigma: float, bound: int, steps: int, delta: float) -> Exhibit:
    """The two directions and the symmetrised pair: one step's excess, and ε of T steps by the text's own recipe."""
    gamma = 0.9
    excess = curves(*step_pair(0.05, 2.0, 2.0), np.array([gamma]))
    run = SubsampledGaussian(Sampler.POISSON_USERS, sigma, q, steps, elements_per_user=bound)
    band = account(run, delta)
    found = {name: composed_epsilon(q, sigma, bound, steps, delta, name) for name in DIRECTIONS}
    return Exhibit(
        name="tab-symmetrised",
        caption=f"q = {q:g}, σ = {sigma:g}, T = {steps}, M = {bound}, δ = {delta:g}: T-fold products by chords and a "
        f"Fourier transform, beside the accountant's band",
        header=("pair", f"curve at γ = {gamma:g} minus 1 - γ (q = 0.05, σ = 2, M = 2)", "ε of T steps", "accountant"),
        rows=[
            (name, abs(float(excess[name][0] - (1 - gamma))), found[name], told)
            for name, told in zip(DIRECTIONS, (f"at least {band.low:.4g}", "", f"at most {band.up:.4g}"), strict=True)
        ],
        numbers={
            "sym-worse": f"{max(found[name] for name in DIRECTIONS[:2]):.3f}",
            "sym-proved": f"{found['symmetrised']:.3f}",
            "sym-missed": f"{float(excess['B against A'][0] - (1 - gamma)):.4f}",
        },
    )


def attack_picture(found: Sequence[Audited], run: SubsampledGaussian, delta: float, effort: tuple[int, str]) -> Exhibit:
    """What the attack proves on sampled users and on sampled pairs, beside the claim and our bounds."""
    (trials, confidence), places = effort, np.arange(len(found))
    figure, axis = plt.subplots(figsize=(6.0, 4.6))
    axis.plot(places, [a.promised_users.up for a in found], "v-", color=USERS.colour, label="users sampled, our ε")
    for look, proved, name in ((USERS, [a.users for a in found], "users"), (PAIRS, [a.pairs for a in found], "pairs")):
        axis.plot(
            places, proved, ":", color=look.colour, marker=look.marker, label=f"{name} sampled, the attack proves"
        )
    axis.axhline(found[0].claimed, color=PRINTED.colour, ls=PRINTED.dash, label="claimed in the paper")
    axis.set(xlabel="elements of the attacked user", ylabel=f"ε at δ = {power_of_ten(delta)}")
    axis.set_xticks(places, [str(a.elements) for a in found])
    figure.legend(loc="outside lower center", ncols=1)
    broken = [a.elements for a in found if a.users > a.claimed]
    passed = sum((a.users > a.promised_users.up) + (a.pairs > a.promised_pairs.up) for a in found)
    return Exhibit(
        name="fig-audit",
        figure=figure,
        alt=f"Lower bounds proved by the attack for {', '.join(str(a.elements) for a in found)} elements. On sampled "
        f"users "
        f"they go from {found[0].users:.2f} to {found[-1].users:.2f}; {len(broken)} of {len(found)} pass the claimed "
        f"{found[0].claimed:.2f}. On sampled pairs {sum(a.pairs > a.claimed for a in found)} of {len(found)} do.",
        caption=f"The attack refutes the printed guarantee where it proves more than the dashed line: in {len(broken)} "
        f"of {len(found)} settings with users sampled. Our own bounds are passed by {passed} of {2 * len(found)} "
        f"attacks. q = {run.q:g}, σ = {run.sigma:g}, T = {run.steps}, {trials:,} runs a side, confidence {confidence}.",
        header=("elements k", "attack proves ε ≥", "our ε", "claimed ε", "attack on pairs proves", "our ε for pairs"),
        rows=[(a.elements, a.users, a.promised_users.up, a.claimed, a.pairs, a.promised_pairs.up) for a in found],
        numbers={
            "audit-claimed": f"{found[0].claimed:.3g}",
            "audit-best": rounded_down(max(a.users for a in found)),
            "audit-broken": f"for k = {', '.join(map(str, broken))} elements" if broken else "for no k shown",
            "audit-pairs": rounded_up(max(a.pairs for a in found)),
            "audit-trials": f"{trials:,}",
            "audit-confidence": confidence,
        },
    )


def display_rows(sigma: float) -> list[tuple[float, float, float, float]]:
    """q, ε_α/(αq²) of the printed pair, its limit, and the printed coefficient."""
    return [
        (q, printed_renyi(ORDER, q, sigma) / (ORDER * q**2), leading_coefficient(sigma), 1 / ((1 - q) * sigma**2))
        for q in (1e-2, 1e-3, 1e-4)
    ]


def fixed_size_rows(q: float) -> list[tuple[float, float, float, float]]:
    """σ, the Rényi level of one fixed-size step with one element a user, the printed one, and their ratio."""
    rows = []
    for sigma in (2.0, 4.0, 8.0):
        drawn, never = Mixture((0.0, 2.0), (1 - q, q), sigma), Mixture((0.0,), (1.0,), sigma)
        fixed, paper = renyi(drawn, never, ORDER), printed_renyi(ORDER, q, sigma)
        rows.append((sigma, fixed, paper, fixed / paper))
    return rows
