"""The clustered histogram of Section 3.2 (Equation (9)) for a table of events, as sums of counts."""

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from elementdp import __version__
from elementdp.elements import Partition
from elementdp.errors import ArgumentError, at_least
from elementdp.histogram.bad_rows import RowPolicy
from elementdp.histogram.budget import Budget, Ledger, Spent
from elementdp.histogram.clipping import Clipped
from elementdp.histogram.discovery import Threshold
from elementdp.histogram.element_rule import ElementRule, element_rule
from elementdp.histogram.engine import Columns, Engine, EventSource
from elementdp.histogram.item_columns import NUMBERS, item_columns, with_item_columns
from elementdp.histogram.item_hash import ItemHash
from elementdp.histogram.items import Discovery, ItemList
from elementdp.histogram.local import LocalEngine
from elementdp.histogram.noise import AddNoise, exact_noise, seeded_noise
from elementdp.histogram.projection import GridBall
from elementdp.histogram.spark import SparkEngine, is_spark_frame
from elementdp.histogram.stages import ListedGroups, clipped_share, discovered_items, noisy_table, private_ball
from elementdp.histogram.values import BoundedValue
from elementdp.privacy import Guarantee, Relation

ElementLike = str | Partition | Callable[[Any], Hashable]
"""A column, ``"domain"``, ``"item"``, ``"user"``, or a public partition or function of items (to str, int or bytes).

An item of several columns is the tuple of its cells, each a text.
"""


@dataclass(frozen=True)
class PrivateHistogram:
    """A histogram that may leave the house, and what it promises.

    ``histogram`` has the columns ``item``, ``count``, ``noise``, ``low`` and ``high``: sums over users, each group's
    counts within ρ, plus noise of the standard deviation given (so a count may be negative), and the interval that
    covers the noise in 95 of 100 cases. The interval does not cover what the bound ρ removed: see ``clipped``. Items of
    several columns have these instead of ``item``; with a ``value`` there are also ``sum``, ``sum_noise``, ``sum_low``
    and ``sum_high``. For averages divide by the number of users if that is public; the number of users seen in the
    table is not. A seeded release promises nothing: ε = ∞, δ = 1.

    Attributes:
        histogram: an Arrow table, one row an item.
        guarantee: (ε, δ), what is protected (unit) and against which change (relation).
        element: what an element is, in words.
        user_column: the column that names the user.
        rho: the bound on the ℓ2 norm of one group's counts.
        clipped: a private estimate of the share of all weight that this bound removed.
        spent: what each stage of the release cost.
        discovered: whether the items were discovered privately.
        seeded: whether the noise was seeded, for tests.
        processing: what was done to the counts after the noise, in words.
        value: the column that was added up beside the counts, and its range.

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
    user_column: str
    rho: float
    clipped: Clipped | None
    spent: tuple[Spent, ...]
    discovered: bool
    seeded: bool
    processing: tuple[str, ...] = ()
    value: BoundedValue | None = None

    @property
    def item_columns(self) -> tuple[str, ...]:
        """The columns of ``histogram`` that name the item."""
        return tuple(name for name in self.histogram.column_names if name not in NUMBERS)

    def top(self, number: int) -> "PrivateHistogram":
        """The items with the largest noisy counts only: post-processing, which costs no privacy.

        Chosen because they are large, their counts are too large on average.
        """
        at_least("top", number, 1)
        table = self.histogram.sort_by([("count", "descending")]).slice(0, number)
        words = f"only the {number} largest noisy counts, which are too large on average for being chosen"
        return replace(self, histogram=table, processing=(*self.processing, words))

    def nonnegative(self) -> "PrivateHistogram":
        """Negative counts raised to 0: post-processing, after which sums of counts are too large on average."""
        table = self.histogram
        for name in ("count", "low", "high"):
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, pa.array(np.maximum(table.column(name).to_numpy(), 0.0)))
        words = "negative counts raised to 0, so that sums of counts are too large on average"
        return replace(self, histogram=table, processing=(*self.processing, words))

    def as_json(self) -> dict[str, Any]:
        """The guarantee and how it was come by, for the file that carries it."""
        unpromised = {"mu": None, "delta": None} if self.seeded else {}
        return {
            "statement": str(self.guarantee) if not self.seeded else "NONE: seeded noise, for testing only",
            "unit": self.guarantee.unit.words,
            "element": self.element,
            "user_column": self.user_column,
            "relation": self.guarantee.relation.words,
            "epsilon": None if self.seeded else self.guarantee.epsilon,
            "delta": None if self.seeded else self.guarantee.delta,
            "rho": self.rho,
            "value": None if self.value is None else vars(self.value) | {"words": self.value.words()},
            "clipped": None if self.clipped is None else vars(self.clipped) | {"words": self.clipped.words()},
            "intervals": "low and high cover the noise in 95 of 100 cases, not what the bound rho removed",
            "noise": "rounded Gaussian, seeded" if self.seeded else "discrete Gaussian, by tables in 128 bits",
            "items": "discovered privately" if self.discovered else "public list",
            "post-processing": list(self.processing),
            "spent": [vars(one) | unpromised for one in self.spent],
            "elementdp": __version__,
        }


def private_histogram(
    table: object,
    *,
    user: str,
    item: str | Sequence[str],
    element: ElementLike,
    privacy: Budget,
    count: str | BoundedValue | None = None,
    items: Iterable[object] | Discovery | None = None,
    rho: float | None = None,
    policy: RowPolicy | None = None,
    engine: Engine | None = None,
) -> PrivateHistogram:
    """The histogram of ``item``, (ε, δ)-private for one element of one user, whatever the table holds.

    Args:
        table: one event a row. Files (CSV, TSV, JSON lines or Parquet, also .gz and .zst: a path, a folder, a pattern
            or a list of these), a Spark DataFrame, or anything with ``__arrow_c_stream__``: a frame of pandas or
            polars, an Arrow table, reader or dataset.
        user: the column that names the user.
        item: the column that names the item counted, or several that name it together.
        element: what is protected: a column, ``"domain"`` (of a URL), ``"item"``, ``"user"`` (user-level privacy), or
            a public partition or function of items (to str, int or bytes).
        privacy: the (ε, δ) to spend, and the shares of the stages.
        count: a column of how often an event counts; without it, each counts once. With a :class:`BoundedValue` each
            counts once, and the sum of a column is released beside the counts.
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
    (1, 1e-06)-DP for one element of one user (data replaced by any other; no sampling)
    """
    value, often = (count, None) if isinstance(count, BoundedValue) else (None, count)
    columns = Columns(user, item_columns(item), often, value)
    plan = _Plan.of(privacy, items, rho, policy or RowPolicy(), columns)
    source = (engine or _engine_for(table)).open(table)
    rule = element_rule(element, user, item, source.names, source.source)
    return plan.released(source, columns, rule)


def heavy_hitters(
    table: object,
    *,
    user: str,
    item: str | Sequence[str],
    privacy: Budget,
    items: Iterable[object] | Discovery | None = None,
    policy: RowPolicy | None = None,
    engine: Engine | None = None,
) -> PrivateHistogram:
    """How many users have each item (Equation (7)), element-level private with each item an element.

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
    warnings.warn("a seeded release is for testing only: whoever knows the seed can take the noise off", stacklevel=4)
    return seeded_noise(privacy.seed)


@dataclass(frozen=True)
class _Plan:
    """What a release asks for, checked before a table is opened."""

    privacy: Budget
    public: ItemList | None
    discovery: Discovery
    ball: GridBall | None
    policy: RowPolicy
    add_noise: AddNoise

    @classmethod
    def of(
        cls,
        privacy: Budget,
        items: Iterable[object] | Discovery | None,
        rho: float | None,
        policy: RowPolicy,
        columns: Columns,
    ) -> "_Plan":
        discovery = items if isinstance(items, Discovery) else Discovery()
        public = None if items is None or isinstance(items, Discovery) else ItemList.public(items, len(columns.items))
        if policy.unknown_items == "drop" and public is None:
            raise ArgumentError(
                "ignore_unknown_items",
                True,
                "given with a public list of items (items, --domain) only: without one no item is unknown",
            )
        plan = cls(privacy, public, discovery, None if rho is None else GridBall.of(rho), policy, _noise(privacy))
        plan.ledger()
        return plan

    def ledger(self) -> Ledger:
        """The budget, nothing of it spent."""
        return Ledger(self.privacy, discovers=self.public is None, chooses_radius=self.ball is None)

    def threshold(self, ledger: Ledger, rule: ElementRule) -> Threshold | None:
        """The threshold of discovery; a public list needs none, and its items must have elements."""
        if self.public is not None:
            rule.check(self.public.items)
            return None
        most = self.discovery.max_items_per_element
        return Threshold.of(ledger.mu_for("discovery"), ledger.threshold_delta, most, one_item=rule.alone)

    def released(self, source: EventSource, columns: Columns, rule: ElementRule) -> PrivateHistogram:
        """The stages, one after the other."""
        ledger, add_noise = self.ledger(), self.add_noise
        threshold = self.threshold(ledger, rule)
        hashing = ItemHash.secret() if self.privacy.seed is None else ItemHash.seeded(self.privacy.seed)
        with source.grouped(columns, rule, self.public, self.policy, hashing) as groups:
            listed = self.public if threshold is None else discovered_items(groups, threshold, ledger, add_noise)
            assert listed is not None
            shared = rule.shared_by(listed.items)
            data = ListedGroups(groups, listed, shared, whole=columns.count is None, value=columns.value)
            ball = self.ball or private_ball(data, ledger, add_noise)
            sums = data.sums(ball)
        histogram = noisy_table(data, sums, ball, ledger, add_noise)
        clipped = clipped_share(data, sums, histogram, ball, ledger, add_noise)
        seeded = self.privacy.seed is not None
        promised = (math.inf, 1.0) if seeded else (self.privacy.epsilon, self.privacy.delta)
        return PrivateHistogram(
            histogram=with_item_columns(histogram, columns.items),
            guarantee=Guarantee(*promised, rule.unit, Relation.REPLACE),
            element=rule.words,
            user_column=columns.user,
            rho=ball.rho,
            clipped=clipped,
            spent=tuple(ledger.spent),
            discovered=self.public is None,
            seeded=seeded,
            value=columns.value,
        )
