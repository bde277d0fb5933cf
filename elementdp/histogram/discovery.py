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
from scipy.special import ndtri

from elementdp.histogram.engine import GroupedEvents
from elementdp.histogram.items import ItemList
from elementdp.histogram.naming import Naming
from elementdp.histogram.noise import AddNoise, discrete_tail, scale_for
from elementdp.histogram.projection import GridBall


@dataclass(frozen=True)
class Threshold:
    """Noise and threshold of a discovery, in steps of the unit ball's grid."""

    naming: Naming
    sensitivity: float
    scale: float
    value: int

    @classmethod
    def of(cls, mu: float, delta: float, most_items: int, *, one_item: bool) -> "Threshold":
        """The least threshold that the proof above allows, for noise of sensitivity/μ."""
        naming = Naming(GridBall.of(1.0), 1 if one_item else most_items, one_item)
        sensitivity = naming.ball.sensitivity(one_item=one_item)
        scale = scale_for(sensitivity, mu)
        sizes = np.arange(1, naming.most_items + 1)
        each = -np.expm1(np.log1p(-delta) / sizes)
        reach = np.array([naming.heaviest(size) for size in sizes.tolist()])
        value = math.ceil(np.max(reach - scale * ndtri(each))) + 2
        rule = cls(naming, sensitivity, scale, value)
        if rule.delta() > delta:  # floating point may be short by 10⁻¹³ of the scale or so
            rule = replace(rule, value=rule.value + math.ceil(scale * 2**-30))
        assert rule.delta() <= delta
        return rule

    def delta(self) -> float:
        """δ_τ: the largest probability that one group's own items are released, over the number of its items."""
        sizes = range(1, self.naming.most_items + 1)
        tails = (discrete_tail(self.value - self.naming.heaviest(size), self.scale) for size in sizes)
        return max(-math.expm1(t * math.log1p(-tail)) for t, tail in enumerate(tails, start=1))


def discover(events: GroupedEvents, rule: Threshold, add_noise: AddNoise) -> ItemList:
    """The items released, in order of the alphabet (the order of the table would be a leak too)."""
    weighed = events.item_weights(rule.naming)
    found = [items[add_noise(weights, rule.scale) >= rule.value] for items, weights in weighed]
    return ItemList(sorted(events.item_texts(np.concatenate(found)) if found else []))
