"""Items discovered privately: those whose noisy weight passes a threshold that a single group can hardly reach.

The set of items read off the data is itself a leak: a URL only one person ever visited is in it because that person
is. So an item is named only if enough groups have it.

**The mechanism.** A group, that is one element of one user, names at most L of its items (the L first in a fixed
pseudo-random order of its own) and gives each the weight ⌊G/√t⌋, t their number: its vector has norm at most G, and is
the projection of its 0/1 vector onto the unit ball (Gopi et al., *Differentially private set union*, 2020). The
weights of all groups are added up; each item named by some group gets discrete Gaussian noise of scale σ; items at τ
or above are released, their weights are not.

**The proof.** Let x, x' be neighbours: one group differs. Let C be the items named in both, A those named only in x:
at most t of them, only the changed group names them, each of weight at most w(t) = ⌊√(G²/t)⌋. Whether any of A is
released is independent of what is released of C, and happens with probability at most

    max over t ≤ L of 1 − (1 − P[X ≥ τ − w(t)])^t ≤ δ_τ   (X discrete Gaussian),

which is how τ is chosen; likewise for x'. Given that nothing of A (of x' nothing of its own) is released, both
outputs are thresholdings of noisy weights on C, which differ by at most √2·G in ℓ2 (by G if L = 1 and elements are
single items: then C has one coordinate to differ in). So this and all later stages together are Gaussian-private on an
event of probability 1 − δ_τ under both (flip a coin to make the two probabilities equal), and on its complement
anything may happen: P(x) ≤ δ_τ + (1 − δ_τ)·(e^ε P_C(x') + δ) ≤ e^ε P(x') + δ + δ_τ.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import ndtri

from elementdp.errors import at_least
from elementdp.histogram.ingest import Codes, Progress
from elementdp.histogram.noise import AddNoise, discrete_tail, scale_for
from elementdp.histogram.projection import Ball, Groups
from elementdp.histogram.spill import Spill, hash_strings, mix


@dataclass(frozen=True)
class Threshold:
    """Noise and threshold of a discovery, in steps of the unit ball's grid."""

    ball: Ball
    most_items: int
    one_item: bool
    sensitivity: float
    scale: float
    value: int

    @classmethod
    def of(cls, mu: float, delta: float, most_items: int, *, one_item: bool) -> "Threshold":
        """The least threshold that the proof above allows, for noise of sensitivity/μ."""
        most = 1 if one_item else at_least("max_items_per_element", most_items, 1)
        ball = Ball.of(1.0)
        sensitivity = ball.sensitivity(one_item=one_item)
        scale = scale_for(sensitivity, mu)
        sizes = np.arange(1, most + 1)
        each = -np.expm1(np.log1p(-delta) / sizes)
        reach = np.array([heaviest(ball, size) for size in sizes.tolist()])
        value = math.ceil(np.max(reach - scale * ndtri(each))) + 2
        rule = cls(ball, most, one_item, sensitivity, scale, value)
        if rule.delta() > delta:  # floating point may be short by 10⁻¹³ of the scale or so
            rule = replace(rule, value=rule.value + math.ceil(scale * 2**-30))
        assert rule.delta() <= delta
        return rule

    def delta(self) -> float:
        """δ_τ: the largest probability that one group's own items are released, over the number of its items."""
        tails = (discrete_tail(self.value - heaviest(self.ball, t), self.scale) for t in range(1, self.most_items + 1))
        return max(-math.expm1(t * math.log1p(-tail)) for t, tail in enumerate(tails, start=1))


def heaviest(ball: Ball, size: int) -> int:
    """The largest weight that each of ``size`` items of one group can have."""
    return math.isqrt(ball.radius**2 // size)


def named(part: pa.Table, most_items: int, *, one_item: bool) -> tuple[Groups, pa.Array]:
    """What each group of a part names: at most ``most_items`` of its items, once each; and the items, sorted."""
    words = part.column("item").unique().sort()
    codes = pc.index_in(part.column("item"), value_set=words).to_numpy().astype(np.int64)
    groups = Groups.of(part.column("key").to_numpy(), codes, part.column("units").to_numpy()).presence()
    if one_item:
        return groups.apart(), words
    if (groups.sizes > most_items).any():
        lottery = mix(groups.keys, hash_strings(words)[groups.items])
        order = np.lexsort((groups.items, lottery, groups.keys))
        rank = np.arange(len(order)) - np.repeat(groups.starts, groups.sizes)
        chosen = np.zeros(len(order), dtype=bool)
        chosen[order[rank < most_items]] = True
        groups = groups.keep(chosen)
    return groups, words


def discover(events: Spill, rule: Threshold, add_noise: AddNoise, progress: Progress) -> Codes:
    """The items released, in order of the alphabet (the order of the table would be a leak too)."""
    found: list[str] = []
    progress("discovering items", 0.0)
    with Spill(pa.string(), part_bytes=events.part_bytes) as weights:
        for share, part in events.shares():
            groups, words = named(part, rule.most_items, one_item=rule.one_item)
            total = np.zeros(len(words), dtype=np.int64)
            np.add.at(total, groups.items, groups.project(rule.ball))
            seen = np.flatnonzero(total)
            words = words.take(pa.array(seen))
            weights.add(hash_strings(words), words, total[seen])
            progress("discovering items", share / 2)
        for share, part in weights.shares():
            sums = part.group_by("item").aggregate([("units", "sum")])
            noisy = add_noise(sums.column("units_sum").to_numpy(), rule.scale)
            found += sums.column("item").filter(pa.array(noisy >= rule.value)).to_pylist()
            progress("discovering items", (1 + share) / 2)
    return Codes(sorted(found))
