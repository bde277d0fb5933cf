"""How a verdict follows from facts. Nobody writes a verdict down: it is computed from what a check measured."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from elementdp.errors import ElementdpError


class Verdict(StrEnum):
    """What became of a statement of the paper."""

    HOLDS = "holds"
    HOLDS_LOOSELY = "holds, loosely"
    NEEDS_REPAIR = "needs a repair"
    FAILS = "fails"
    UNCHECKED = "unchecked"


class Role(StrEnum):
    """What a fact speaks about."""

    PRINTED = "printed"  # an instance of the statement as printed; false is a counterexample
    TIGHT = "tight"  # the printed bound gives (almost) nothing away; false makes a true statement loose
    REPAIRED = "repaired"  # an instance of the repaired statement; it has to hold


class Gap(StrEnum):
    """What separates a printed statement that does not survive from the true one beside it."""

    TYPO = "typo"
    CONSTANT = "constant"
    ASSUMPTION = "missing assumption"
    SUBSTANCE = "substance"  # the statement's message is wrong, not its bookkeeping


class CheckError(ElementdpError):
    """A check that contradicts itself: its repaired statement failed, or it decides nothing."""


@dataclass(frozen=True)
class Fact:
    """One thing a check computed, in words with its numbers, and whether it came out as its role requires."""

    role: Role
    text: str
    holds: bool


@dataclass(frozen=True)
class Finding:
    """What one run of a check established."""

    facts: tuple[Fact, ...]
    repair: str = ""
    gap: Gap | None = None

    def __post_init__(self) -> None:
        if not any(fact.role is Role.PRINTED for fact in self.facts):
            raise CheckError("a check needs at least one fact about the printed statement")
        broken = [fact.text for fact in self.of(Role.REPAIRED) if not fact.holds]
        if broken:
            raise CheckError("the repaired statement fails too: " + "; ".join(broken))
        if not self.survives and not (self.gap and self.repair and any(self.of(Role.REPAIRED))):
            raise CheckError("a printed statement that fails needs a gap, a repair and a fact that checks the repair")

    def of(self, role: Role) -> Iterable[Fact]:
        """The facts with this role."""
        return (fact for fact in self.facts if fact.role is role)

    @property
    def survives(self) -> bool:
        """Whether every instance of the printed statement came out true."""
        return all(fact.holds for fact in self.of(Role.PRINTED))

    @property
    def verdict(self) -> Verdict:
        """The verdict these facts amount to."""
        if self.survives:
            tight = all(fact.holds for fact in self.of(Role.TIGHT))
            return Verdict.HOLDS if tight else Verdict.HOLDS_LOOSELY
        return Verdict.FAILS if self.gap is Gap.SUBSTANCE else Verdict.NEEDS_REPAIR
