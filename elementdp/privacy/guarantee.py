"""A privacy guarantee as a value: how much, for which unit, under which relation, with which sampler."""

from dataclasses import dataclass
from enum import StrEnum

from elementdp.errors import ArgumentError, nonnegative, probability
from elementdp.privacy.digits import rounded_up


class Unit(StrEnum):
    """What one protected change is allowed to touch.

    >>> [unit.words for unit in Unit]
    ['one element of one user', 'one user']
    """

    ELEMENT = "element"  #: all the data one user has in one cluster (Equation (2))
    USER = "user"  #: all the data of one user

    @property
    def words(self) -> str:
        """The unit as a reader would say it."""
        return {Unit.ELEMENT: "one element of one user", Unit.USER: "one user"}[self]


class Relation(StrEnum):
    """How two neighbouring samples differ in that unit."""

    REPLACE = "replace"  #: the unit's data are exchanged for any other (the paper's relation; n is public)
    ADD_REMOVE = "add-remove"  #: the unit's data are present in one sample and absent from the other

    @property
    def words(self) -> str:
        """The relation as a reader would say it."""
        return {Relation.REPLACE: "data replaced by any other", Relation.ADD_REMOVE: "data added or removed"}[self]


class Sampler(StrEnum):
    """Which part of the sample one step of a mechanism sees.

    >>> print(Sampler.POISSON_PAIRS, "is", Sampler("poisson-pairs").words)
    poisson-pairs is Poisson sampling of (user, element) pairs
    """

    NONE = "none"  #: every user, every step
    POISSON_USERS = "poisson-users"  #: each user with probability q, all elements together (Equation (4))
    FIXED_USERS = "fixed-users"  #: exactly qn users, uniformly, all elements together
    POISSON_PAIRS = "poisson-pairs"  #: each (user, element) pair with probability q, which repairs the count
    FIXED_ORDER = "fixed-order"  #: batches of users, one after the other, again and again, without coins
    ALLOCATED_PAIRS = "allocated-pairs"  #: each (user, element) pair in one random step of each epoch

    @property
    def words(self) -> str:
        """The sampler as a reader would say it."""
        return {
            Sampler.NONE: "no sampling",
            Sampler.POISSON_USERS: "Poisson sampling of users",
            Sampler.FIXED_USERS: "fixed-size sampling of users",
            Sampler.POISSON_PAIRS: "Poisson sampling of (user, element) pairs",
            Sampler.FIXED_ORDER: "batches of users in a fixed order",
            Sampler.ALLOCATED_PAIRS: "(user, element) pairs in one random step of each epoch",
        }[self]


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-differential privacy (Definition 2.1) for a stated unit, relation and sampler.

    A composition whose parts do not share one sampler has them all, each once.

    Args:
        epsilon: at least 0; infinity is a legal, useless guarantee.
        delta: between 0 and 1.
        unit: what is protected.
        relation: how neighbouring samples differ in that unit.
        sampler: which part of the sample a step sees; several for a composition.

    Raises:
        ArgumentError: ``epsilon`` or ``delta`` is out of range.

    >>> print(Guarantee(1.5, 1e-6, Unit.ELEMENT))
    (1.5, 1e-06)-DP for one element of one user (data replaced by any other; no sampling)
    """

    epsilon: float
    delta: float
    unit: Unit
    relation: Relation = Relation.REPLACE
    sampler: Sampler | tuple[Sampler, ...] = Sampler.NONE

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise ArgumentError("epsilon", self.epsilon, ">= 0")
        probability("delta", self.delta)

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        """The samplers of all parts."""
        return (self.sampler,) if isinstance(self.sampler, Sampler) else self.sampler

    def __str__(self) -> str:
        samplers = " in some parts, ".join(sampler.words for sampler in self.samplers)
        return (
            f"({rounded_up(self.epsilon, 4)}, {rounded_up(self.delta)})-DP for {self.unit.words} "
            f"({self.relation.words}; {samplers}{' in others' if len(self.samplers) > 1 else ''})"
        )


@dataclass(frozen=True)
class RenyiGuarantee:
    """(ε, α)-Rényi differential privacy (Definition 2.2) for a stated unit, relation and sampler."""

    epsilon: float
    order: float
    unit: Unit
    relation: Relation = Relation.REPLACE
    sampler: Sampler = Sampler.NONE

    def __post_init__(self) -> None:
        nonnegative("epsilon", self.epsilon)
        if not self.order >= 1:
            raise ArgumentError("order", self.order, ">= 1")

    def __str__(self) -> str:
        return (
            f"({rounded_up(self.epsilon, 4)}, {self.order:.4g})-Rényi DP for {self.unit.words} "
            f"({self.relation.words}; {self.sampler.words})"
        )
