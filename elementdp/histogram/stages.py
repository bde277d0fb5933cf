"""The stages of a release, each a private query with its budget paid: items, ρ, counts, and what clipping took."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elementdp.histogram.budget import Ledger, Spent
from elementdp.histogram.clipping import LEVELS, Clipped, ClippingQuery
from elementdp.histogram.discovery import Threshold, discover
from elementdp.histogram.engine import GroupedEvents, Measure
from elementdp.histogram.items import ItemList
from elementdp.histogram.noise import AddNoise, Integers, scale_for
from elementdp.histogram.projection import GridBall, GroupCounts
from elementdp.histogram.radius import RadiusSearch, balance

_COVERS_95 = NormalDist().inv_cdf(0.975)
"""Standard deviations on either side that hold the noise in 95 of 100 releases."""


@dataclass(frozen=True)
class ListedGroups:
    """The groups, seen on the items of a list only.

    ``shared`` has for each item how many of the list may lie in its element; ``whole``: all counts are whole numbers.
    """

    groups: GroupedEvents
    listed: ItemList
    shared: NDArray[np.int64]
    whole: bool

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Whether an item is alone in its element."""
        return self.shared <= 1

    @property
    def most_items(self) -> int:
        """K: the most items of one element."""
        return int(self.shared.max(initial=1))

    def add_up(self, measure: Measure, stage: str) -> Integers:
        """The sum of ``measure`` over all groups."""
        return self.groups.add_up(measure, self.listed, self.alone, stage)

    def sums(self, ball: GridBall) -> tuple[Integers, Integers]:
        """The projected counts of each item, summed over groups, in steps of the ball's grid; and the weight lost."""
        query = ClippingQuery(ball, self.most_items, 0.0)
        size = len(self.listed)

        def projected(groups: GroupCounts) -> Integers:  # goes to other machines: it must not hold the table
            total = np.zeros(size, dtype=np.int64)
            np.add.at(total, groups.items, groups.project(ball))
            return np.concatenate([total, query.measure(groups)])

        both = self.add_up(projected, "adding up")
        return both[:size], both[size:]

    def scales(self, ball: GridBall, mu: float) -> NDArray[np.float64]:
        """The noise of each item that costs μ, in steps of the ball's grid."""
        alone, shared = (scale_for(ball.sensitivity(one_item=one), mu) for one in (True, False))
        return np.where(self.alone, alone, shared)


def discovered_items(groups: GroupedEvents, rule: Threshold, ledger: Ledger, add_noise: AddNoise) -> ItemList:
    """The items by :mod:`elementdp.histogram.discovery`."""
    found = discover(groups, rule, add_noise)
    grid = rule.naming.ball.grid
    spent = Spent(
        "discovery", ledger.mu_for("discovery"), ledger.threshold_delta, rule.sensitivity / grid, rule.scale / grid
    )
    ledger.pay(spent, grid_scale=rule.scale, coordinates=2 * rule.naming.most_items)
    return found


def private_ball(data: ListedGroups, ledger: Ledger, add_noise: AddNoise) -> GridBall:
    """ρ by :mod:`elementdp.histogram.radius`, on the items of the release."""
    search = RadiusSearch.of(ledger.mu_for("radius"), data.most_items, whole=data.whole)
    above = data.add_up(search.measure, "choosing rho")
    unit = GridBall.of(1.0)
    wanted = balance(data.scales(unit, ledger.mu_for("release")) / unit.grid)
    moved = math.sqrt(search.steps) * search.bound / search.unit
    spent = Spent("choice of rho", ledger.mu_for("radius"), 0.0, moved, search.noise)
    ledger.pay(spent, grid_scale=search.scale, coordinates=search.steps)
    return GridBall.of(search.choose(above, wanted, add_noise))


def noisy_table(data: ListedGroups, sums: Integers, ball: GridBall, ledger: Ledger, add_noise: AddNoise) -> pa.Table:
    """The sums with noise of each item's own scale, once the ledger has found that the budget allows it."""
    scales = data.scales(ball, ledger.mu_for("release"))
    noise = scales / ball.grid
    widest = ball.sensitivity(one_item=bool(data.alone.all()))
    spent = Spent("release", ledger.mu_for("release"), 0.0, widest / ball.grid, float(noise.max(initial=0.0)))
    ledger.pay(spent, grid_scale=float(scales.min(initial=math.inf)), coordinates=len(scales))
    ledger.check()
    noisy = np.empty_like(sums)
    for scale in np.unique(scales).tolist():
        places = np.flatnonzero(scales == scale)
        noisy[places] = add_noise(sums[places], scale)
    digits = max(0, math.ceil(2 - math.log10(noise.min(initial=1e9))))  # digits far below the noise say nothing
    counts = np.round(noisy / ball.grid, digits)
    low, high = (np.round(counts + side * _COVERS_95 * noise, digits) for side in (-1, 1))
    names = pa.array(data.listed.items, pa.string())
    return pa.table({"item": names, "count": counts, "noise": noise, "low": low, "high": high})


def clipped_share(
    data: ListedGroups, lost: Integers, histogram: pa.Table, ball: GridBall, ledger: Ledger, add_noise: AddNoise
) -> Clipped | None:
    """The share of the weight that the projection removed, if the split of the budget pays for it."""
    if not (mu := ledger.mu_for("clipping")):
        return None
    query = ClippingQuery.of(ball, data.most_items, mu)
    spent = Spent("clipped share", mu, 0.0, math.sqrt(len(LEVELS)), query.noise)
    ledger.pay(spent, grid_scale=query.scale, coordinates=len(LEVELS))
    ledger.check()
    kept, noise = (histogram.column(name).to_numpy() for name in ("count", "noise"))
    return query.estimate(lost, float(kept.sum()), float(np.sqrt(np.square(noise).sum())), add_noise)
