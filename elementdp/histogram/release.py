"""The clustered histogram of Section 3.2 (eqn:histogram-mechanism) for a table of events, as sums of counts."""

import math
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elementdp import __version__
from elementdp.elements import Partition
from elementdp.errors import ArgumentError, at_least
from elementdp.histogram.budget import Ledger, Spent, Split
from elementdp.histogram.discovery import Threshold, discover
from elementdp.histogram.element_rule import element_rule
from elementdp.histogram.ingest import Codes, Columns, Progress, ingest
from elementdp.histogram.noise import AddNoise, Integers, exact_noise, scale_for, seeded_noise
from elementdp.histogram.projection import Ball, Groups
from elementdp.histogram.radius import RHO_GRID, STEPS, RadiusSearch, balance, groups_above
from elementdp.histogram.spill import PART_BYTES, Spill
from elementdp.histogram.tables import BATCH_ROWS, Table, as_text, open_events
from elementdp.privacy import Guarantee, Relation

_NOISE_STEP = 1 << 14


@dataclass(frozen=True)
class PrivateHistogram:
    """A histogram that may leave the house, and what it promises.

    ``histogram`` has the columns ``item``, ``count`` and ``noise``: sums over users, each group's counts within ρ, plus
    noise of the standard deviation given (so a count may be negative). For averages divide by the number of users if
    that is public; the number of users seen in the table is not. A seeded release promises nothing: ε = ∞, δ = 1.
    """

    histogram: pa.Table
    guarantee: Guarantee
    element: str
    rho: float
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
            "noise": "rounded Gaussian, seeded" if self.seeded else "exact discrete Gaussian (OpenDP)",
            "items": "discovered privately" if self.discovered else "public list",
            "spent": [vars(one) | unpromised for one in self.spent],
            "elementdp": __version__,
        }


def private_histogram(
    table: Table,
    *,
    user: str,
    item: str,
    element: str | Partition | Callable[[str], Hashable],
    epsilon: float,
    delta: float,
    count: str | None = None,
    domain: Sequence[str] | None = None,
    rho: float | None = None,
    ignore_unknown_items: bool = False,
    max_items_per_element: int = 100,
    split: Split | None = None,
    seed: int | None = None,
    progress: Progress = lambda stage, share: None,
    batch_rows: int = BATCH_ROWS,
    part_bytes: int = PART_BYTES,
) -> PrivateHistogram:
    """The histogram of ``item``, (ε, δ)-private for one element of one user, whatever the table holds.

    ``table`` is a CSV, TSV, JSON lines or Parquet file, a pandas frame or an Arrow table, one event a row (or ``count``
    events). ``element`` is a column, ``"domain"`` (of a URL), ``"item"``, ``"user"`` (user-level privacy), or a public
    partition or function of items (to str, int or bytes). ``domain`` lists the items publicly; without it they are
    discovered privately, each group naming at most ``max_items_per_element``. ``rho`` bounds a group's ℓ2 norm and must
    not be read off the data; without it, it is chosen privately. ``split`` says which share of the budget these two
    stages get.

    Memory holds one batch, one part of the table on disk (``part_bytes``) and the items, never the events.
    An error message may quote the table: it is for the table's owner and not covered by the guarantee.
    """
    if ignore_unknown_items and domain is None:
        raise ArgumentError(
            "ignore_unknown_items",
            ignore_unknown_items,
            "given with a public list of items (domain, --domain) only: without one no item is unknown",
        )
    ledger = Ledger(epsilon, delta, split or Split(), discovers=domain is None, chooses_radius=rho is None)
    ball = None if rho is None else Ball.of(rho)
    public = None if domain is None else _public(domain)
    if seed is not None:
        warnings.warn(
            "a seeded release is for testing only: whoever knows the seed can take the noise off", stacklevel=2
        )
    add_noise = exact_noise if seed is None else seeded_noise(at_least("seed", seed, 0))
    events = open_events(table, at_least("batch_rows", batch_rows, 1))
    rule = element_rule(element, user, item, events)
    threshold = None
    if public is not None:
        rule.check(public.items)
    else:
        threshold = Threshold.of(
            ledger.mu_for("discovery"), ledger.threshold_delta, max_items_per_element, one_item=rule.alone
        )

    with Spill(pa.string() if public is None else pa.int64(), part_bytes=part_bytes) as spill:
        ingest(
            events,
            Columns(user, item, count),
            rule,
            spill,
            public,
            ignore_unknown_items=ignore_unknown_items,
            progress=progress,
        )
        codes = public
        if codes is None:
            assert threshold is not None
            codes = discover(spill, threshold, add_noise, progress)
            _pay_discovery(ledger, threshold)
        data = _Data(spill, codes, rule.single(codes.items))
        if ball is None:
            ball = _private_ball(data, ledger, add_noise, progress)
        sums = data.sums(ball, progress)

    scales = data.scales(ball, ledger.mu_for("release"))
    noise = scales / ball.grid
    widest = ball.sensitivity(one_item=bool(data.single.all()))
    spent = Spent("release", ledger.mu_for("release"), 0.0, widest / ball.grid, float(noise.max(initial=0.0)))
    ledger.pay(spent, grid_scale=float(scales.min(initial=math.inf)), coordinates=len(scales))
    ledger.check()
    noisy = _with_noise(sums, scales, add_noise, progress)
    promised = (epsilon, delta) if seed is None else (math.inf, 1.0)
    return PrivateHistogram(
        histogram=_table(codes.items, noisy / ball.grid, noise),
        guarantee=Guarantee(*promised, rule.unit, Relation.REPLACE),
        element=rule.words,
        rho=ball.rho,
        spent=tuple(ledger.spent),
        discovered=public is None,
        seeded=seed is not None,
    )


def _with_noise(sums: Integers, scales: NDArray[np.float64], add_noise: AddNoise, progress: Progress) -> Integers:
    """Noise of each item's own scale; exact noise takes its time, so a long list is done bit by bit."""
    noisy, done = np.empty_like(sums), 0
    for scale in np.unique(scales).tolist():
        places = np.flatnonzero(scales == scale)
        for some in np.array_split(places, range(_NOISE_STEP, len(places), _NOISE_STEP)):
            noisy[some] = add_noise(sums[some], scale)
            done += len(some)
            progress("adding noise", done / len(sums))
    return noisy


def _table(items: Sequence[str], counts: NDArray[np.float64], noise: NDArray[np.float64]) -> pa.Table:
    digits = max(0, math.ceil(2 - math.log10(noise.min(initial=1e9))))  # digits far below the noise say nothing
    columns = {"item": pa.array(items, pa.string()), "count": np.round(counts, digits), "noise": noise}
    return pa.table(columns)


@dataclass(frozen=True)
class _Data:
    """The groups on disk, seen on the items of ``codes`` only; ``single`` marks those alone in their element."""

    spill: Spill
    codes: Codes
    single: NDArray[np.bool_]

    def groups(self, stage: str, progress: Progress) -> Iterator[Groups]:
        progress(stage, 0.0)
        for share, part in self.spill.shares():
            items = part.column("item").combine_chunks()
            places = self.codes.of(items) if pa.types.is_string(items.type) else items.to_numpy()
            keys, units = part.column("key").to_numpy(), part.column("units").to_numpy()
            known = places >= 0
            single = known & self.single[places] if len(self.single) else known
            for rows, apart in ((single, True), (known & ~single, False)):
                groups = Groups.of(keys[rows], places[rows], units[rows])
                yield groups.apart() if apart else groups
            progress(stage, share)

    def sums(self, ball: Ball, progress: Progress) -> Integers:
        """The projected counts of each item, summed over groups, in steps of the ball's grid."""
        total = np.zeros(len(self.codes.items), dtype=np.int64)
        for groups in self.groups("adding up", progress):
            np.add.at(total, groups.items, groups.project(ball))
        return total

    def scales(self, ball: Ball, mu: float) -> NDArray[np.float64]:
        """The noise of each item that costs μ, in steps of the ball's grid."""
        alone, shared = (scale_for(ball.sensitivity(one_item=one), mu) for one in (True, False))
        return np.where(self.single, alone, shared)


def _public(domain: Sequence[str]) -> Codes:
    if isinstance(domain, str):
        raise ArgumentError("domain", domain, "a list of items")
    values = list(domain)
    if not values:
        raise ArgumentError("domain", domain, "a list of at least one item")
    try:  # as the table's own items are read: 7.0 is written 7
        items = as_text(pa.array(values, from_pandas=True)).to_pylist()
    except (pa.ArrowException, UnicodeError, OverflowError) as error:
        raise ArgumentError("domain", f"a list that is not ({error})", "a list of items of one kind") from error
    if None in items:
        raise ArgumentError("domain", values[items.index(None)], "a list of items, none of them missing")
    return Codes(list(dict.fromkeys(items)))


def _pay_discovery(ledger: Ledger, rule: Threshold) -> None:
    grid = rule.ball.grid
    spent = Spent(
        "discovery", ledger.mu_for("discovery"), ledger.threshold_delta, rule.sensitivity / grid, rule.scale / grid
    )
    ledger.pay(spent, grid_scale=rule.scale, coordinates=2 * rule.most_items)


def _private_ball(data: _Data, ledger: Ledger, add_noise: AddNoise, progress: Progress) -> Ball:
    """ρ by :mod:`elementdp.histogram.radius`, on the items of the release."""
    search = RadiusSearch.of(ledger.mu_for("radius"))
    above = np.zeros(len(RHO_GRID), dtype=np.int64)
    for groups in data.groups("choosing rho", progress):
        above += groups_above(groups.norms())
    unit = Ball.of(1.0)
    wanted = balance(data.scales(unit, ledger.mu_for("release")) / unit.grid)
    spent = Spent("choice of rho", ledger.mu_for("radius"), 0.0, math.sqrt(STEPS), search.noise)
    ledger.pay(spent, grid_scale=search.scale, coordinates=STEPS)
    return Ball.of(search.choose(above, wanted, add_noise))
