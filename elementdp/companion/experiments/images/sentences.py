"""The sentences of Sections 4.3 and 4.4 against recorded runs; what a run of this size does not decide stays open."""

import math
from collections.abc import Sequence

import numpy as np

from elementdp.companion.experiments.bars import Z_95
from elementdp.companion.experiments.images.comparison import (
    chain,
    decided,
    legend_epsilon,
    lengths,
    name,
    relative,
    repeated,
)
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.variants import Accounting, Schedule, Variant, noise_for
from elementdp.companion.experiments.sentence import Sentence
from elementdp.privacy import Unit
from elementdp.privacy.digits import rounded_down

NEARLY = 0.02
"""Accuracies this close we call nearly equal."""

FAR = 0.15
"""How far behind every user-level curve of Figure 5 is said to be."""

PRINTED, TRUE, PAIRS = Accounting.PRINTED, Accounting.TRUE, Accounting.PAIRS
ELEMENT, USER = Unit.ELEMENT, Unit.USER

OURS = (
    ("element level with pairs sampled beats user level.", (PAIRS, ELEMENT), (TRUE, USER)),
    ("sampling pairs beats sampling users.", (PAIRS, ELEMENT), (TRUE, ELEMENT)),
    ("user level beats element level with users sampled.", (TRUE, USER), (TRUE, ELEMENT)),
)
"""What we say at the same true ε, and who is then better than whom."""


def photos_sentences(results: Sequence[RunResult], tests: int, fair: Sequence[RunResult] = ()) -> list[Sentence]:
    """Section 4.3's sentences, then ours about equal true ε; ``tests`` photos measured each accuracy.

    Ours compare units, so they go by ``fair`` results, each at its own rate, at every ε that has them.
    """
    rows = [*papers_photos(results, tests), legend_epsilon(results)]
    for epsilon in sorted({one.epsilon for one in results if math.isfinite(one.epsilon)}):
        own = [one for one in fair if one.epsilon == epsilon]
        among = own or results
        most = max((one.k for one in among if one.accounting == PAIRS and one.epsilon == epsilon), default=0)
        pairs = find(among, PAIRS, ELEMENT, epsilon, most)
        size = (most, pairs.clusters) if pairs else (0, 0)
        rows += [
            chain(_ours(epsilon, bool(own)) + said, [find(among, *which, epsilon, *size) for which in both], tests,
                  repaired=True)
            for said, *both in OURS
        ]  # fmt: skip
    return rows


def papers_photos(results: Sequence[RunResult], tests: int, *, whole: bool = False) -> list[Sentence]:
    """What Section 4.3 expects of its figure and says of it; ``whole`` runs are as long as the paper's."""
    shown = sorted(
        (one for one in results if one.accounting == PRINTED or not one.private), key=lambda one: one.reached
    )
    lowest = [one for one in shown if one.unit == USER and one.epsilon == 1.0]
    others = [one for one in shown if one not in lowest]
    printed = [one for one in shown if one.unit == ELEMENT and one.epsilon == 3.0]
    fine = max((one.clusters for one in printed), default=0)
    coarse = min((one.clusters for one in printed), default=0)
    diverse = sorted((one for one in printed if one.clusters == fine), key=lambda one: -one.k)
    both = sorted({one.k for one in printed if one.clusters == coarse} & {one.k for one in diverse})
    k = both[-1] if both and coarse < fine else 0
    ends = [others[0] if others else None, lowest[-1] if lowest else None]
    sizes = [find(results, PRINTED, ELEMENT, 3.0, k, clusters) if k else None for clusters in (fine, coarse)]
    said = "User-level privacy with ε = 1 is substantially worse than any other method."
    rises, gains_on = "Element-level accuracy rises with the", "Element level gains on user level as"

    def gain(k: int, clusters: int) -> tuple[RunResult | None, RunResult | None]:
        element, user = (find(results, PRINTED, unit, 3.0, k, clusters) for unit in (ELEMENT, USER))
        return element, user

    compared = [one.k for one in diverse if gain(one.k, fine)[1] is not None]
    gains = [gain(k, clusters) for clusters in (fine, coarse)] if k else []
    return [
        chain(said, ends, tests, whole=whole),
        chain(f"{rises} diversity of a user's images.", diverse, tests, whole=whole),
        chain(f"{rises} number of clusters.", sizes, tests, whole=whole),
        relative(f"{gains_on} users get more diverse.", [gain(k, fine) for k in compared], tests),
        relative(f"{gains_on} the number of clusters grows.", gains, tests),
    ]


def other_photos(users: int, k: Sequence[int], q: float = 0.01, steps: int = 40_000) -> list[Sentence]:
    """What Section 4.3 says beside its figure: of the noise, and of data sets larger than its own."""
    schedule = Schedule(100, q, steps)
    noise = [noise_for(Variant(PRINTED, ELEMENT, 3.0, count, 500, users), schedule) for count in k]
    counts = " and for ".join(str(count) for count in k)
    return [
        Sentence(
            "The noise relative to a user's contribution falls linearly in the number of elements of the user.",
            f"σ is {noise[0]:.3g} for {counts} elements",
            max(noise) <= min(noise) * (1 + 1e-9),
            more="the contribution of k elements has norm at most kρ, and attains it if all agree in direction; as "
            f"printed, ε = 3, T = {steps:,}, q = {q:g}",
        ),
        Sentence(
            "Internet-scale data are several times larger, which suggests strong utility with satisfactory privacy.",
            f"an outlook: all runs here have n = {users:,} users",
            None,
        ),
    ]


def find(
    results: Sequence[RunResult], accounting: Accounting, unit: Unit, epsilon: float, k: int = 0, clusters: int = 0
) -> RunResult | None:
    """The first such result; k or K of 0 matches any."""
    wanted = (str(accounting), str(unit), epsilon)
    for one in results:
        same = (one.accounting, one.unit, one.epsilon) == wanted
        if same and k in (0, one.k) and clusters in (0, one.clusters):
            return one
    return None


def _ours(epsilon: float, own_rates: bool) -> str:
    return f"At the same true ε = {epsilon:g}, " + ("each at its own rate, " if own_rates else "all at one rate, ")


def cifar_sentences(results: Sequence[RunResult], fair: Sequence[RunResult] = ()) -> list[Sentence]:
    """Section 4.4's sentences, then ours about equal true ε, by ``fair`` results, each at its own rate, if any."""
    ks = sorted({one.k for one in results})
    ns = sorted({one.users for one in results})
    most, few = ks[-1], ks[0]
    few_users = _all(results, PRINTED, ELEMENT, most, ns[0]) if len(ns) > 1 else []
    few_elements = _all(results, PRINTED, ELEMENT, few, ns[-1]) if few != most else []
    printed = _all(results, PRINTED, ELEMENT, most, ns[-1])
    return [
        repeated("As the sample size n grows, the accuracy improves.", printed, few_users),
        repeated("Fewer elements a user, worse performance.", printed, few_elements),
        legend_epsilon(results),
        *(
            repeated(
                _ours(3.0, bool(fair)) + said,
                *(_all(fair or results, *which, most, ns[-1]) for which in both),
                repaired=True,
            )
            for said, *both in OURS
        ),
    ]


def gap_sentences(results: Sequence[RunResult], trained: float, spread: float, *, whole: bool) -> list[Sentence]:
    """What Section 4.4 says of the distance to the network ``trained`` without privacy, for runs of one setting.

    ``spread`` is the standard deviation from run to run. Unless that network was trained for the ``whole`` of the
    paper's length it may still get better: then a gap can only grow, and too small a one decides nothing.
    """
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for one in results:
        if one.private:
            groups.setdefault((one.unit, one.accounting), []).append(one)
    found = []
    for (unit, accounting), some in groups.items():
        gap = float(np.mean([one.reached for one in some])) - trained
        bar = Z_95 * spread * math.sqrt(1 + 1 / len(some))
        text = f"{100 * gap:+.1f} ± {100 * bar:.1f} points"
        more = f"{name(some[0])}: true ε ≥ {rounded_down(some[0].true_low)}, {lengths(some)}; without privacy at "
        more += f"{100 * trained:.1f} %" + ("" if whole else " or more: it was not trained for as long")
        if unit == USER:
            said = f"All user-level runs are at least {100 * FAR:.0f} points worse than non-private training."
            found.append(Sentence(said, text, decided(-gap - FAR, bar, whole), more=more))
        elif accounting in (PRINTED, PAIRS):
            said = "With ε = 3, n = 8,000 and 30 of 100 elements, element level is nearly equal to non-private training"
            said += " (as printed)." if accounting == PRINTED else ", at a true ε with pairs sampled."
            apart = decided(-gap - NEARLY, bar, False)
            holds = False if apart else True if whole and gap + NEARLY > bar else None
            more += f"; nearly is within {100 * NEARLY:.0f} points"
            found.append(Sentence(said, text, holds, accounting == PAIRS, more))
        if (unit, accounting) == (ELEMENT, PAIRS):
            found.append(_trains(trained + gap, bar, more))
    return found


def _trains(reached: float, bar: float, more: str) -> Sentence:
    said = "It is possible to train a neural network with element-level privacy."
    return Sentence(said, f"{100 * reached:.1f} %, where chance has 10 %", decided(reached - 0.1, bar, True), more=more)


def _all(results: Sequence[RunResult], accounting: Accounting, unit: Unit, k: int, users: int) -> list[RunResult]:
    """Every repetition of a variant at ε = 3."""
    wanted = (str(accounting), str(unit), 3.0, k, users)
    return [one for one in results if (one.accounting, one.unit, one.epsilon, one.k, one.users) == wanted]
