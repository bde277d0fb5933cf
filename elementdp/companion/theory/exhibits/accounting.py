"""What the page on accounting shows: the paper's own training settings, as claimed, in truth, and repaired."""

from collections.abc import Sequence
from dataclasses import replace

import matplotlib.pyplot as plt

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.style import LOOKS, PALETTE, PRINTED, plain_ticks
from elementdp.companion.theory.paper_settings import PAPER_SETTINGS
from elementdp.privacy import Band, Sampler, account, calibrate, rounded_down, rounded_up

USERS, PAIRS = LOOKS["element, users sampled"], LOOKS["element, pairs sampled"]
_DASHES = ("-", "--", "-.", (0, (5, 1)))


SETTINGS = dict(zip(("Flickr", "CIFAR 8000", "CIFAR 2000", "logistic"), PAPER_SETTINGS, strict=True))
"""Sections 4.2 to 4.4 by the names of this page."""


def paper_settings(names: Sequence[str], targets: Sequence[float], q: float) -> Exhibit:
    """One row a setting and claimed ε: what it is for users with at most K∧m elements, for any, and with pairs."""
    alike: dict[tuple[int, int, int], list[str]] = {}  # the accountant cannot tell them apart
    for name in names:
        alike.setdefault((SETTINGS[name].users, SETTINGS[name].steps, SETTINGS[name].elements), []).append(name)
    rows = []
    for group in alike.values():
        setting = SETTINGS[group[0]]
        for target in targets:
            run = setting.as_printed(q, target)
            bounded = account(run, setting.delta)
            anyone = account(replace(run, elements_per_user=None), setting.delta)
            pairs = account(replace(run, sampler=Sampler.POISSON_PAIRS, elements_per_user=None), setting.delta)
            rows.append((", ".join(group), target, run.sigma, setting.elements, f"{bounded:.3g}", anyone.up, pairs.up))
    last = [row for row in rows if names[-1] in row[0].split(", ")][-1]
    return Exhibit(
        name="tab-paper-settings",
        caption=f"What the paper's settings claim and what is true at q = {q:g}, for one element of one user replaced, "
        "at δ = n^-1.1",
        header=("setting", "claimed", "σ", "M", "true, M", "true, any", "pairs sampled"),
        rows=rows,
        numbers={
            "acc-name": names[-1],
            "acc-claimed": f"{last[1]:g}",
            "acc-band": last[4],
            "acc-bound": last[3],
            "acc-repaired": rounded_up(last[6]),
            "acc-q": f"{q:g}",
        },
    )


def true_against_rate(targets: Sequence[float], rates: Sequence[float], bounds: Sequence[int]) -> Exhibit:
    """The true ε of Flickr runs whose claim is constant, against the rate, for several bounds M."""
    setting = SETTINGS["Flickr"]
    runs = {(target, q): setting.as_printed(q, target) for target in targets for q in rates}
    bands: dict[tuple[float, float, int | None], Band] = {
        (*at, bound): account(replace(run, elements_per_user=bound), setting.delta)
        for at, run in runs.items()
        for bound in (*bounds, None)
    }
    figure, axes = plt.subplots(1, len(targets), figsize=(6.0, 4.2), squeeze=False, sharex=True)
    for axis, target in zip(axes[0], targets, strict=True):
        for i, bound in enumerate(bounds):
            width, dash = 1.0 + 0.6 * i, _DASHES[i % len(_DASHES)]
            some = [bands[target, q, bound] for q in rates]
            low, up = [b.low for b in some], [b.up for b in some]
            axis.fill_between(rates, low, up, color=USERS.colour, alpha=0.2, lw=0)
            axis.plot(rates, up, color=USERS.colour, lw=width, ls=dash, label=f"M = {bound}")
        anyone = [bands[target, q, None].up for q in rates]
        axis.plot(rates, anyone, color=USERS.colour, ls=":", marker=".", label="any number")
        axis.axhline(target, color=PRINTED.colour, ls=PRINTED.dash, label="claimed")
        axis.set(xscale="log", yscale="log", xlabel="sampling rate q", title=f"claimed ε = {target:g}")
        plain_ticks(axis.yaxis)
    axes[0][0].set_ylabel("true ε, users sampled")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    high, ends = targets[-1], (rates[0], rates[-1])
    told = "; ".join(
        f"M = {bound}, at most " + " to ".join(f"{bands[high, q, bound].up:.3g}" for q in ends) for bound in bounds
    )
    small, large = bands[high, rates[0], bounds[-1]], bands[targets[0], rates[-1], bounds[0]]
    met = large.up <= targets[0]
    return Exhibit(
        name="fig-true-against-rate",
        figure=figure,
        alt="True ε against the sampling rate for the Flickr settings, one panel for each claimed value, one curve for "
        f"each M. Under a claim of {high:g}, from q = {rates[0]:g} to {rates[-1]:g}: {told}.",
        caption=f"Whether a claim is harmless depends on q and on M. Under a claim of {high:g} the true ε of users "
        f"with {bounds[-1]} elements is at least {rounded_down(small.low)} at q = {rates[0]:g}; under a claim of "
        f"{targets[0]:g} that of users with {bounds[0]} is at most {rounded_up(large.up)} at q = {rates[-1]:g}. Flickr "
        f"settings (n = {setting.users:,}, T = {setting.steps:,}), with the noise set at each q so that the claim is "
        "constant. Bands lie between proved lower and upper bounds.",
        numbers={
            "acc-small-q": f"{rates[0]:g}",
            "acc-small-true": rounded_down(small.low),
            "acc-large-q": f"{rates[-1]:g}",
            "acc-large-true": rounded_up(large.up),
            "acc-large-met": "is met, since the looseness of the Rényi route leaves room"
            if met
            else "is not yet shown to be met",
            "acc-large-sigma": f"{runs[targets[0], rates[-1]].sigma:.3g}",
            "acc-few": bounds[0],
            "acc-many": bounds[-1],
            "acc-target-low": f"{targets[0]:g}",
            "acc-target-high": f"{high:g}",
        },
    )


def price(target: float, rates: Sequence[float]) -> Exhibit:
    """The noise for a true ε over the noise of the printed formula, Flickr settings."""
    setting = SETTINGS["Flickr"]
    found: dict[Sampler, list[float]] = {Sampler.POISSON_USERS: [], Sampler.POISSON_PAIRS: []}
    for q in rates:
        run = setting.as_printed(q, target)
        for sampler, factors in found.items():
            factors.append(
                calibrate(replace(run, sampler=sampler, elements_per_user=None), target, setting.delta).sigma
                / run.sigma
            )
    users, pairs = found.values()
    figure, axis = plt.subplots(figsize=(6.0, 4.0))
    label = "users sampled, any number of elements"
    axis.loglog(rates, users, USERS.dash, color=USERS.colour, marker=USERS.marker, label=label)
    axis.loglog(rates, [q**-0.5 for q in rates], color=PALETTE["grey"], lw=1, label="$1/\\sqrt{q}$")
    axis.loglog(rates, pairs, PAIRS.dash, color=PAIRS.colour, marker=PAIRS.marker, label="pairs sampled")
    axis.set(xlabel="sampling rate q", ylabel="σ needed / σ in the paper")
    axis.set_xticks(rates, [f"{q:g}" for q in rates])
    axis.minorticks_off()
    plain_ticks(axis.yaxis)
    figure.legend(loc="outside lower center", ncols=1)
    low, high = f"{min(pairs):.2f}", f"{max(pairs):.2f}"
    cost = f"{low} times" if low == high else f"{low} to {high} times"
    return Exhibit(
        name="fig-price",
        figure=figure,
        alt=f"Noise needed for a true ε = {target:g} over the noise of the printed formula. With sampled users it is "
        f"{users[0]:.3g} times at q = {rates[0]:g} and {users[-1]:.3g} times at q = {rates[-1]:g}, beside a dotted "
        f"line one over the root of q; with sampled pairs it is {cost} throughout.",
        caption=f"To make ε = {target:g} true takes {users[0]:.3g} times the noise of the paper's formula at "
        f"q = {rates[0]:g} if users are sampled, and {cost} if pairs are sampled and counted exactly. Flickr settings.",
        header=("q", "users sampled", "pairs sampled"),
        rows=list(zip(rates, users, pairs, strict=True)),
        numbers={"price-users": f"{users[0]:.3g}", "price-pairs": rounded_up(max(pairs))},
    )
