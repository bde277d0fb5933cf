"""How much weight the projection removed, estimated privately: the noise of a count does not tell.

A group with counts v loses x = ‖v‖₁(1 − ρ/‖v‖₂)₊. In units of ρ√K, K the most items of one element, it is cut at each
of a few public levels M: y = min(x/(ρ√K), M)/M lies in [0, 1] whatever the group holds. So neighbours, who differ in
one group, differ by at most 1 in Σy at each level and by √levels in all (ℓ2), which is what the noise is scaled to. A
low level has little noise, a high one sees more of the heaviest groups; the one with the largest sure loss is taken,
which is post-processing.
"""

import math
from dataclasses import dataclass

import numpy as np

from elementdp.histogram.noise import AddNoise, Integers, scale_for
from elementdp.histogram.projection import GridBall, GroupCounts

LEVELS = (1.0, 8.0, 64.0, 512.0)
_GRID = 1 << 30
_SPREAD = 2.52
"""Standard deviations beyond which the noise of one of the four levels or the total lies in 6 of 100 cases at most."""


@dataclass(frozen=True)
class Clipped:
    """The share of all weight that the projection removed, and an interval for it.

    The interval covers the noise of this estimate in 94 of 100 cases. It does not cover weight that single groups hold
    beyond ``limit``: the true share can be larger than ``high`` if there are such groups.
    """

    share: float
    low: float
    high: float
    limit: float

    def words(self) -> str:
        """What it means for whoever reads the counts."""
        about = f"about {self.share:.0%} of the weight (between {self.low:.0%} and {self.high:.0%})"
        unseen = f"what a single group held beyond {self.limit:.3g} is not counted in this"
        if self.low > 0.02:
            more = f"a larger rho keeps more and adds more noise; {unseen}"
            return f"the counts are too low: the bound rho removed {about}; {more}"
        if self.high > 0.1:
            return f"the bound rho removed {about}, too few groups to tell whether the counts are too low; {unseen}"
        return f"the bound rho removed little: {about}; {unseen}"


@dataclass(frozen=True)
class ClippingQuery:
    """The query for one ball: ``scale`` is the noise at each level, in steps of 1/2³⁰."""

    ball: GridBall
    most_items: int
    scale: float

    @classmethod
    def of(cls, ball: GridBall, most_items: int, mu: float) -> "ClippingQuery":
        """The query that costs μ."""
        return cls(ball, max(1, most_items), scale_for(float(_GRID), mu / math.sqrt(len(LEVELS))))

    @property
    def noise(self) -> float:
        """The standard deviation of each Σy."""
        return self.scale / _GRID

    def measure(self, groups: GroupCounts) -> Integers:
        """Σy at each level, in steps."""
        lost = groups.totals() * np.maximum(1 - self.ball.rho / groups.norms(), 0.0) / self._unit
        steps = [np.floor(np.minimum(lost / level, 1.0) * _GRID).astype(np.int64).sum() for level in LEVELS]
        return np.array(steps, dtype=np.int64)

    def estimate(self, lost: Integers, kept: float, kept_noise: float, add_noise: AddNoise) -> Clipped:
        """The share removed, from the exact sums ``lost`` and the released total ``kept`` with its noise."""
        noisy = add_noise(lost, self.scale) / _GRID * np.array(LEVELS) * self._unit
        errors = self.noise * np.array(LEVELS) * self._unit
        sure = noisy - _SPREAD * errors
        best = int(np.argmax(sure)) if sure.max() > 0 else 0
        removed, spread = max(0.0, float(noisy[best])), _SPREAD * float(errors[best])
        low = _share(max(0.0, removed - spread), kept + _SPREAD * kept_noise)
        high = _share(removed + spread, kept - _SPREAD * kept_noise)
        return Clipped(_share(removed, kept), low, high, LEVELS[best] * self._unit)

    @property
    def _unit(self) -> float:
        return self.ball.rho * math.sqrt(self.most_items)


def _share(removed: float, kept: float) -> float:
    """removed/(removed + kept); where noise has made the kept weight negative, nothing is known to be kept."""
    return removed / (removed + max(kept, 0.0)) if removed > 0 else 0.0
