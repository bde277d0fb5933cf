"""What the image experiments decide before they run: the paper's legends, sizes, and what is tuned."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from elementdp.companion.experiments.images.tuning import Ladder, ladders
from elementdp.companion.experiments.images.variants import (
    WITHOUT_COINS,
    Accounting,
    Schedule,
    Variant,
    accountings,
    non_private,
)
from elementdp.errors import ArgumentError, at_least, one_of, positive, probability
from elementdp.privacy import Unit

Legend = tuple[tuple[str, float, int, int], ...]
"""Curves of a figure: what (element, user or non-private), ε, k, and K (Figure 4) or n (Figure 5)."""

PHOTOS_LEGEND: Legend = (
    ("non-private", math.inf, 100, 500),
    ("element", 3.0, 100, 500),
    ("non-private", math.inf, 30, 50),
    ("element", 3.0, 30, 50),
    ("element", 3.0, 30, 500),
    ("element", 1.0, 100, 500),
    ("element", 3.0, 5, 500),
    ("element", 1.0, 30, 50),
    ("user", 3.0, 30, 50),
    ("user", 3.0, 100, 500),
    ("element", 1.0, 30, 500),
    ("user", 3.0, 30, 500),
    ("element", 1.0, 5, 500),
    ("user", 1.0, 100, 500),
    ("user", 1.0, 30, 500),
    ("user", 1.0, 30, 50),
)
"""The 16 curves of Figure 4's legend, from the best to the worst as printed."""

CIFAR_LEGEND: Legend = tuple(
    (what, epsilon, k, n)
    for what in ("element", "user")
    for epsilon in (3.0, 1.0)
    for n in (8_000, 2_000)
    for k in (30, 5)
)
"""The curves of Figure 5. The figure itself is not in the source of the paper; the caption names these choices."""


@dataclass(frozen=True, kw_only=True)
class ImagePlan(ABC):
    """What is run. The defaults are the paper's where it says; q, ρ, α and what is tuned are our choice."""

    legend: Legend
    rhos: tuple[float, ...]
    step_sizes: tuple[float, ...]  # α for updates of length 1
    tuning_steps: int
    images: int = 100  # m
    steps: int = 40_000  # T
    evaluations: int = 40
    repetitions: int = 1
    until: int = 0  # steps, or their work, after which runs end with the noise of all T; 0: they do not
    rate_factors: tuple[float, ...] = (1.0,)  # multiples of q tried for every variant, for equal work

    def __post_init__(self) -> None:
        for name in ("images", "steps", "tuning_steps", "evaluations", "repetitions"):
            at_least(name, getattr(self, name), 1)
        at_least("until", self.until, 0)
        for name in ("rhos", "step_sizes", "rate_factors", "legend"):
            if not getattr(self, name):
                raise ArgumentError(name, (), "at least one value")
        for name in ("rhos", "step_sizes", "rate_factors"):
            for value in getattr(self, name):
                positive(name, value)

    @abstractmethod
    def schedule(self, variant: Variant) -> Schedule:
        """What decides the accounting, before rates are tuned."""

    @abstractmethod
    def variants(self) -> list[Variant]:
        """Every curve of the legend with every accounting it can have."""

    def counted(self, ways: Sequence[str]) -> list[Variant]:
        """The curves that are counted in these ways (none named: :meth:`variants`).

        The ways without coins are not in the paper's legend: they are for the curves of it that sample pairs.
        """
        variants = self.variants()
        if not ways:
            return variants
        for way in ways:
            one_of("accounting", way, [str(known) for known in Accounting])
        found = [one for one in variants if str(one.accounting) in ways]
        coinless = [way for way in WITHOUT_COINS if str(way) in ways]
        pairs = [one for one in variants if one.accounting is Accounting.PAIRS]
        found += [replace(one, accounting=way) for one in pairs for way in coinless]
        if not found:
            raise ArgumentError("accounting", tuple(ways), "a way in which a curve of the legend is counted")
        return found

    def compared(self) -> list[Variant]:
        """What a page compares: element level with pairs sampled, user level, both at a true ε, and no privacy."""
        kinds = {(Accounting.NONE, Unit.ELEMENT), (Accounting.PAIRS, Unit.ELEMENT), (Accounting.TRUE, Unit.USER)}
        return [one for one in self.variants() if (one.accounting, one.unit) in kinds]

    def choices(self, variant: Variant) -> list[Ladder]:
        """What is tried for a variant."""
        return ladders(variant, self.rhos, self.step_sizes)


@dataclass(frozen=True, kw_only=True)
class PhotosPlan(ImagePlan):
    """What is run for Figure 4."""

    users: int = 8_000  # n
    q: float = 0.01
    rhos: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)
    step_sizes: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    tuning_steps: int = 2_000
    legend: Legend = PHOTOS_LEGEND

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("users", self.users, 1)
        probability("q", self.q, low_open=True)

    def schedule(self, variant: Variant) -> Schedule:
        """The same for every variant."""
        return Schedule(self.images, self.q, self.steps)

    def variants(self) -> list[Variant]:
        """Every curve of the legend with every accounting it can have."""
        found: list[Variant] = []
        for what, epsilon, k, clusters in self.legend:
            if what == "non-private":
                found.append(non_private(k, clusters, self.users))
            else:
                found += accountings(Unit(what), epsilon, k, clusters, self.users)
        return found


@dataclass(frozen=True, kw_only=True)
class CifarPlan(ImagePlan):
    """What is run for Figure 5."""

    clusters: int = 100  # K
    users_a_step: float = 20.0  # qn
    rhos: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    step_sizes: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    tuning_steps: int = 1_000
    legend: Legend = CIFAR_LEGEND

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("clusters", self.clusters, 1)
        positive("users_a_step", self.users_a_step)

    def schedule(self, variant: Variant) -> Schedule:
        """The expected number of users a step is the same for every n."""
        return Schedule(self.images, min(1.0, self.users_a_step / variant.users), self.steps)

    def variants(self) -> list[Variant]:
        """Every curve of the legend with every accounting it can have, the non-private ones first."""
        pairs = dict.fromkeys((k, n) for _, _, k, n in self.legend)
        found = [non_private(k, self.clusters, n) for k, n in pairs]
        for what, epsilon, k, n in self.legend:
            found += accountings(Unit(what), epsilon, k, self.clusters, n)
        return found
