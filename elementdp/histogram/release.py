"""The clustered histogram of Section 3.2 (eqn:histogram-mechanism) for a table of events, as sums of counts."""

import math
import warnings
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elementdp import __version__
from elementdp.elements import Partition
from elementdp.errors import ArgumentError
from elementdp.histogram.bad_rows import RowPolicy
from elementdp.histogram.budget import Budget, Ledger, Spent
from elementdp.histogram.clipping import LEVELS, Clipped, ClippingQuery
from elementdp.histogram.discovery import Threshold, discover
from elementdp.histogram.element_rule import element_rule
from elementdp.histogram.engine import Columns, Engine, GroupedEvents, Measure
from elementdp.histogram.items import Discovery, ItemList
from elementdp.histogram.local import LocalEngine
from elementdp.histogram.noise import AddNoise, Integers, exact_noise, scale_for, seeded_noise
from elementdp.histogram.projection import GridBall, GroupCounts
from elementdp.histogram.radius import RadiusSearch, balance
from elementdp.histogram.spark import SparkEngine, is_spark_frame
from elementdp.privacy import Guarantee, Relation

ElementLike = str | Partition | Callable[[str], Hashable]
"""A column, ``"domain"``, ``"item"``, ``"user"``, or a public partition or function of items (to str, int or bytes)."""


@dataclass(frozen=True)
class PrivateHistogram:
    """A histogram that may leave the house, and what it promises.

    ``histogram`` has the columns ``item``, ``count``, ``noise``, ``low`` and ``high``: sums over users, each group's
    counts within ρ, plus noise of the standard deviation given (so a count may be negative), and the interval that
    covers the noise in 95 of 100 cases. The interval does not cover what the bound ρ removed: see ``clipped``. For
    averages divide by the number of users if that is public; the number of users seen in the table is not. A seeded
    release promises nothing: ε = ∞, δ = 1.

    Attributes:
        histogram: an Arrow table, one row an item.
        guarantee: (ε, δ), what is protected (unit) and against which change (relation).
        element: what an element is, in words.
        rho: the bound on the ℓ2 norm of one group's counts.
        clipped: a private estimate of the share of all weight that this bound removed.
        spent: what each stage of the release cost.
        discovered: whether the items were discovered privately.
        seeded: whether the noise was seeded, for tests.

    >>> table = pa.table({"user": ["ann", "bob", "bob"], "word": ["tea", "tea", "milk"]})
    >>> result = private_histogram(
    ...     table, user="user", item="word", element="item", privacy=Budget(1, 1e-6), items=["tea", "milk"], rho=1
    ... )
    >>> result.histogram.column_names, result.rho
    (['item', 'count', 'noise', 'low', 'high'], 1.0)
    """

    histogram: pa.Table
    guarantee: Guarantee
    element: str
    rho: float
    clipped: Clipped | None
    spent: tuple[Spent, ...]
    discovered: bool
    seeded: bool

    def as_json(self) -> dict[str, Any]:
        """The guarantee and how it was come by, for the file that carries it."""
        unpromised = {"mu": None, "delta": None} if self.seeded else {}
        return {
            "statement": str(self.guarantee) if not self.seeded else "NONE: seeded noise, for testing only",
            "unit": self.guarantee.unit.words,
            "element": self.element,
            "relation": self.guarantee.relation.words,
            "epsilon": None if self.seeded else self.guarantee.epsilon,
            "delta": None if self.seeded else self.guarantee.delta,
            "rho": self.rho,
            "clipped": None if self.clipped is None else vars(self.clipped) | {"words": self.clipped.words()},
            "intervals": "low and high cover the noise in 95 of 100 cases, not what the bound rho removed",
            "noise": "rounded Gaussian, seeded" if self.seeded else "discrete Gaussian, by tables in 128 bits",
            "items": "discovered privately" if self.discovered else "public list",
            "spent": [vars(one) | unpromised for one in self.spent],
            "elementdp": __version__,
        }


def private_histogram(
    table: object,
    *,
    user: str,
    item: str,
    element: ElementLike,
    privacy: Budget,
    count: str | None = None,
    items: Iterable[object] | Discovery | None = None,
    rho: float | None = None,
    policy: RowPolicy | None = None,
    engine: Engine | None = None,
) -> PrivateHistogram:
    """The histogram of ``item``, (ε, δ)-private for one element of one user, whatever the table holds.

    Args:
        table: a CSV, TSV, JSON lines or Parquet file, a pandas frame, an Arrow table or a Spark DataFrame, one event
            a row.
        user: the column that names the user.
        item: the column that names the item counted.
        element: what is protected: a column, ``"domain"`` (of a URL), ``"item"``, ``"user"`` (user-level privacy), or
            a public partition or function of items (to str, int or bytes).
        privacy: the (ε, δ) to spend, and the shares of the stages.
        count: a column of how often an event counts; without it, each counts once.
        items: the public list of items. Without one (or with a :class:`Discovery`) they are discovered privately.
            Never list the items found in the table: the list would give away what only one user has.
        rho: the bound on the ℓ2 norm of one group's counts. It must not be read off the table; without it, it is
            chosen privately.
        policy: what becomes of rows that cannot be counted.
        engine: where the grouping is done: Spark for a Spark DataFrame, else this machine, unless another is given.

    Returns:
        The counts with their noise, the guarantee, and what each stage spent.

    Raises:
        ArgumentError: an argument out of range; it is named before the table is read.
        TableError: the table cannot be read or has a bad row. The message may quote the table: it is for the table's
            owner and is not covered by the guarantee.
        NoGuaranteeError: the stages would cost more than (ε, δ).

    >>> table = pa.table({"user": ["ann", "ann", "bob"], "url": ["a.org/1", "a.org/2", "b.org"]})
    >>> sites = ["a.org/1", "a.org/2", "b.org"]
    >>> budget = Budget(epsilon=1, delta=1e-6)
    >>> result = private_histogram(
    ...     table, user="user", item="url", element="domain", privacy=budget, items=sites, rho=2
    ... )
    >>> result.histogram["item"].to_pylist() == sites
    True
    >>> print(result.guarantee)
    (1, 1e-06)-DP for one element of one user (replace)
    """
    public = None if items is None or isinstance(items, Discovery) else ItemList.public(items)
    rules = policy or RowPolicy()
    if rules.unknown_items == "drop" and public is None:
        raise ArgumentError(
            "ignore_unknown_items",
            True,
            "given with a public list of items (items, --domain) only: without one no item is unknown",
        )
    ledger = Ledger(privacy, discovers=public is None, chooses_radius=rho is None)
    ball = None if rho is None else GridBall.of(rho)
    add_noise = _noise(privacy)
    source = (engine or _engine_for(table)).open(table)
    rule = element_rule(element, user, item, source.names, source.source)
    threshold = None
    if public is not None:
        rule.check(public.items)
    else:
        named = items if isinstance(items, Discovery) else Discovery()
        threshold = Threshold.of(
            ledger.mu_for("discovery"), ledger.threshold_delta, named.max_items_per_element, one_item=rule.alone
        )
    with source.grouped(Columns(user, item, count), rule, public, rules) as groups:
        listed = public if threshold is None else _discovered(groups, threshold, ledger, add_noise)
        assert listed is not None
        data = _Listed(groups, listed, rule.shared_by(listed.items), whole=count is None)
        ball = ball or _private_ball(data, ledger, add_noise)
        sums, lost = data.sums(ball)
    histogram = _noisy_table(data, sums, ball, ledger, add_noise)
    return PrivateHistogram(
        histogram=histogram,
        guarantee=Guarantee(*_promised(privacy), rule.unit, Relation.REPLACE),
        element=rule.words,
        rho=ball.rho,
        clipped=_clipped(data, lost, histogram, ball, ledger, add_noise),
        spent=tuple(ledger.spent),
        discovered=public is None,
        seeded=privacy.seed is not None,
    )


def heavy_hitters(
    table: object,
    *,
    user: str,
    item: str,
    privacy: Budget,
    items: Iterable[object] | Discovery | None = None,
    policy: RowPolicy | None = None,
    engine: Engine | None = None,
) -> PrivateHistogram:
    """How many users have each item (eqn:heavy-hitters-mech), element-level private with each item an element.

    This is :func:`private_histogram` with ρ = 1: a user who has an item, however often, adds one to its count.

    >>> table = pa.table({"user": ["ann", "ann", "bob"], "word": ["tea", "tea", "milk"]})
    >>> result = heavy_hitters(table, user="user", item="word", privacy=Budget(1, 1e-6), items=["tea", "milk"])
    >>> result.element, result.rho
    ('each word', 1.0)
    """
    return private_histogram(
        table,
        user=user,
        item=item,
        element="item",
        privacy=privacy,
        items=items,
        rho=1.0,
        policy=policy,
        engine=engine,
    )


def _engine_for(table: object) -> Engine:
    """Spark for a table of Spark's, this machine for any other."""
    return SparkEngine() if is_spark_frame(table) else LocalEngine()


def _noise(privacy: Budget) -> AddNoise:
    if privacy.seed is None:
        return exact_noise
    warnings.warn("a seeded release is for testing only: whoever knows the seed can take the noise off", stacklevel=3)
    return seeded_noise(privacy.seed)


def _promised(privacy: Budget) -> tuple[float, float]:
    return (privacy.epsilon, privacy.delta) if privacy.seed is None else (math.inf, 1.0)


@dataclass(frozen=True)
class _Listed:
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
        return both[: len(self.listed)], both[len(self.listed) :]

    def scales(self, ball: GridBall, mu: float) -> NDArray[np.float64]:
        """The noise of each item that costs μ, in steps of the ball's grid."""
        alone, shared = (scale_for(ball.sensitivity(one_item=one), mu) for one in (True, False))
        return np.where(self.alone, alone, shared)


def _discovered(groups: GroupedEvents, rule: Threshold, ledger: Ledger, add_noise: AddNoise) -> ItemList:
    """The items by :mod:`elementdp.histogram.discovery`, paid for."""
    found = discover(groups, rule, add_noise)
    grid = rule.naming.ball.grid
    spent = Spent(
        "discovery", ledger.mu_for("discovery"), ledger.threshold_delta, rule.sensitivity / grid, rule.scale / grid
    )
    ledger.pay(spent, grid_scale=rule.scale, coordinates=2 * rule.naming.most_items)
    return found


def _private_ball(data: _Listed, ledger: Ledger, add_noise: AddNoise) -> GridBall:
    """ρ by :mod:`elementdp.histogram.radius`, on the items of the release."""
    search = RadiusSearch.of(ledger.mu_for("radius"), data.most_items, whole=data.whole)
    above = data.add_up(search.measure, "choosing rho")
    unit = GridBall.of(1.0)
    wanted = balance(data.scales(unit, ledger.mu_for("release")) / unit.grid)
    moved = math.sqrt(search.steps) * search.bound / search.unit
    spent = Spent("choice of rho", ledger.mu_for("radius"), 0.0, moved, search.noise)
    ledger.pay(spent, grid_scale=search.scale, coordinates=search.steps)
    return GridBall.of(search.choose(above, wanted, add_noise))


def _clipped(
    data: _Listed, lost: Integers, histogram: pa.Table, ball: GridBall, ledger: Ledger, add_noise: AddNoise
) -> Clipped | None:
    """The share of the weight that the projection removed, if the split of the budget pays for it."""
    if not (mu := ledger.mu_for("clipping")):
        return None
    query = ClippingQuery.of(ball, data.most_items, mu)
    ledger.pay(
        Spent("clipped share", mu, 0.0, math.sqrt(len(LEVELS)), query.noise),
        grid_scale=query.scale,
        coordinates=len(LEVELS),
    )
    ledger.check()
    kept, noise = (histogram.column(name).to_numpy() for name in ("count", "noise"))
    return query.estimate(lost, float(kept.sum()), float(np.sqrt(np.square(noise).sum())), add_noise)


def _noisy_table(data: _Listed, sums: Integers, ball: GridBall, ledger: Ledger, add_noise: AddNoise) -> pa.Table:
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
    low, high = (np.round(counts + side * 1.96 * noise, digits) for side in (-1, 1))
    names = pa.array(data.listed.items, pa.string())
    return pa.table({"item": names, "count": counts, "noise": noise, "low": low, "high": high})
