"""The sentences of Sections 4.3 and 4.4 against recorded runs; what a run of this size does not decide stays open."""

import math
from collections.abc import Sequence

from elementdp.companion.experiments.images.comparison import (
    MISSING,
    chain,
    gap,
    legend_epsilon,
    lengths,
    name,
    repeated,
)
from elementdp.companion.experiments.images.running import RunResult
from elementdp.companion.experiments.images.variants import Accounting
from elementdp.companion.experiments.sentence import Sentence
from elementdp.privacy import Unit
from elementdp.privacy.digits import rounded_down

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


def papers_photos(results: Sequence[RunResult], tests: int) -> list[Sentence]:
    """What Section 4.3 says of its figure."""
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
    return [
        chain("User-level privacy with ε = 1 is substantially worse than any other method.", ends, tests),
        chain("Element-level accuracy rises with the diversity of a user's images.", diverse, tests),
        chain("Element-level accuracy rises with the number of clusters.", sizes, tests),
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
        _gaps(results),
        _near(printed, results),
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


def gap_sentences(results: Sequence[RunResult]) -> list[Sentence]:
    """What Section 4.4 says of the distance to non-private training, for runs of one setting."""
    found = [_gaps(results)]
    for accounting in (PRINTED, PAIRS):
        mine = [one for one in results if one.accounting == accounting and one.unit == ELEMENT]
        found += [_near(mine, results)] if mine else []
    return found


def _all(results: Sequence[RunResult], accounting: Accounting, unit: Unit, k: int, users: int) -> list[RunResult]:
    """Every repetition of a variant at ε = 3."""
    wanted = (str(accounting), str(unit), 3.0, k, users)
    return [one for one in results if (one.accounting, one.unit, one.epsilon, one.k, one.users) == wanted]


def _gaps(results: Sequence[RunResult]) -> Sentence:
    """A gap to non-private training that is still learning says nothing about fully trained networks."""
    said = "Every user-level curve is at least 15 points worse than non-private training."
    variants: dict[tuple[object, ...], list[RunResult]] = {}
    for one in results:
        if one.unit == USER and one.private:
            variants.setdefault((one.accounting, one.epsilon, one.k, one.users), []).append(one)
    gaps = {name(some[0]) + f", n = {some[0].users:,}": gap(some, results) for some in variants.values()}
    known = {which: found[0] for which, found in gaps.items() if found is not None}
    if not known:
        return Sentence(said, MISSING, None)
    behind = sum(value <= -0.15 for value in known.values())
    nearest, furthest = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
    found = (
        f"{behind} of {len(known)} such curves are after {lengths(results)}; from {100 * known[furthest]:+.1f} "
        f"points ({furthest}) to {100 * known[nearest]:+.1f} ({nearest})"
    )
    return Sentence(said, found, None)


def _near(mine: Sequence[RunResult], results: Sequence[RunResult]) -> Sentence:
    said = "With ε = 3, n = 8,000 and 30 of 100 elements, element level is nearly equal to non-private training."
    found = gap(mine, results) if mine else None
    if found is None:
        return Sentence(said, MISSING, None)
    mean, bar = found
    text = f"{100 * mean:+.1f}" + ("" if math.isnan(bar) else f" ± {100 * bar:.1f}")
    after = f"after {lengths(mine)}, where the true ε is ≥ {rounded_down(mine[0].true_low)}"
    return Sentence(said, f"{text} points {after}", None)
