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
from elementdp.histogram.radius import RATIO_UNITS, RadiusSearch, balance
from elementdp.histogram.values import BoundedValue

_COVERS_95 = NormalDist().inv_cdf(0.975)
"""Standard deviations on either side that hold the noise in 95 of 100 releases."""


@dataclass(frozen=True)
class Sums:
    """Sums over groups: counts and values by item, in steps of the ball's grid, and the weight lost at each level."""

    counts: Integers
    values: Integers
    lost: Integers


@dataclass(frozen=True)
class ListedGroups:
    """The groups, seen on the items of a list only.

    ``shared`` has for each item how many of the list may lie in its element; ``whole``: all counts are whole numbers;
    ``value``: the column that is added up beside the counts.
    """

    groups: GroupedEvents
    listed: ItemList
    shared: NDArray[np.int64]
    whole: bool
    value: BoundedValue | None = None

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

    def sums(self, ball: GridBall) -> Sums:
        """The projected counts (and values) of each item, summed over groups; and the weight lost."""
        query = ClippingQuery(ball, self.most_items, 0.0)
        size, valued = len(self.listed), self.value is not None

        def projected(groups: GroupCounts) -> Integers:  # goes to other machines: it must not hold the table
            total = np.zeros((1 + valued, size), dtype=np.int64)
            added = groups.project_both(ball) if groups.values is not None else [groups.project(ball)]
            for row, steps in zip(total, added, strict=False):
                np.add.at(row, groups.items, steps)
            return np.concatenate([*total, query.measure(groups)])

        found = self.add_up(projected, "adding up")
        return Sums(found[:size], found[size : -len(LEVELS)], found[-len(LEVELS) :])

    def scales(self, ball: GridBall, mu: float) -> NDArray[np.float64]:
        """The noise of each item that costs μ, in steps of the ball's grid."""
        valued = self.value is not None
        alone, shared = (scale_for(ball.sensitivity(one_item=one, valued=valued), mu) for one in (True, False))
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
    unit, mu = GridBall.of(1.0), ledger.mu_for("radius")
    wanted = balance(data.scales(unit, ledger.mu_for("release")) / unit.grid)
    search = RadiusSearch.of(mu, data.most_items, wanted, whole=data.whole)
    above = data.add_up(search.measure, "choosing rho")
    noise = search.widest.scale / RATIO_UNITS
    spent = Spent("choice of rho", mu, 0.0, mu * noise, noise)  # all steps, as one query with the noise of the widest
    ledger.pay(spent, grid_scale=min(step.scale for step in search.steps), coordinates=len(search.steps))
    return GridBall.of(search.choose(above, add_noise))


def noisy_table(data: ListedGroups, sums: Sums, ball: GridBall, ledger: Ledger, add_noise: AddNoise) -> pa.Table:
    """The sums with noise of each item's own scale, once the ledger has found that the budget allows it."""
    mu = ledger.mu_for("release")
    scales = data.scales(ball, mu)
    noise = scales / ball.grid
    widest = ball.sensitivity(one_item=bool(data.alone.all()), valued=data.value is not None)
    spent = Spent("release", mu, 0.0, widest / ball.grid, float(noise.max(initial=0.0)))
    drawn = len(scales) if data.value is None else 2 * len(scales)
    ledger.pay(spent, grid_scale=float(scales.min(initial=math.inf)), coordinates=drawn)
    ledger.check()
    noisy = np.empty_like(sums.counts)
    for scale in np.unique(scales).tolist():
        places = np.flatnonzero(scales == scale)
        noisy[places] = add_noise(sums.counts[places], scale)
    counts = noisy / ball.grid
    columns = {"item": pa.array(data.listed.items, pa.string()), **_with_interval("count", "", counts, noise)}
    if data.value is not None:
        scale = scale_for(ball.sensitivity(one_item=False, valued=True), mu)
        units = add_noise(sums.values, scale) / ball.grid
        columns |= _with_interval("sum", "sum_", *data.value.sums(counts, noise, units, scale / ball.grid))
    return pa.table(columns)


def _with_interval(
    name: str, prefix: str, noisy: NDArray[np.float64], noise: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Noisy numbers with their noise and the interval that covers it, without digits far below it."""
    digits = max(0, math.ceil(2 - math.log10(noise.min(initial=1e9))))
    shown = np.round(noisy, digits)
    low, high = (np.round(shown + side * _COVERS_95 * noise, digits) for side in (-1, 1))
    return {name: shown, f"{prefix}noise": noise, f"{prefix}low": low, f"{prefix}high": high}


def clipped_share(
    data: ListedGroups, sums: Sums, histogram: pa.Table, ball: GridBall, ledger: Ledger, add_noise: AddNoise
) -> Clipped | None:
    """The share of the weight that the projection removed, if the split of the budget pays for it."""
    if not (mu := ledger.mu_for("clipping")):
        return None
    query = ClippingQuery.of(ball, data.most_items, mu)
    spent = Spent("clipped share", mu, 0.0, math.sqrt(len(LEVELS)), query.noise)
    ledger.pay(spent, grid_scale=query.scale, coordinates=len(LEVELS))
    ledger.check()
    kept, noise = (histogram.column(name).to_numpy() for name in ("count", "noise"))
    return query.estimate(sums.lost, float(kept.sum()), float(np.sqrt(np.square(noise).sum())), add_noise)
