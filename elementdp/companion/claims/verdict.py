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


class Severity(StrEnum):
    """What goes wrong for someone who trusts the statement as printed, from least to most."""

    NONE = "none"
    WORDING = "wording"  # a sign, a caption, a label: the reader corrects it
    CONSTANT = "constant"  # a factor is off and nobody's privacy depends on it
    ASSUMPTION = "assumption missing"  # true in fewer cases than it says
    CONCLUSION = "conclusion false"  # the message is wrong, and it is not about privacy
    PRIVACY = "privacy broken"  # people get less than they are promised


class Role(StrEnum):
    """What a fact speaks about."""

    PRINTED = "printed"  # an instance of the statement as printed; false is a counterexample
    TIGHT = "tight"  # the printed bound gives (almost) nothing away; false makes a true statement loose
    REPAIRED = "repaired"  # an instance of the repaired statement; it has to hold
    REMARK = "remark"  # how the statement is read, or what its proof says; it decides nothing


class Gap(StrEnum):
    """What separates a printed statement that does not survive from the true one beside it."""

    WORDING = "wording"
    CONSTANT = "constant"
    ASSUMPTION = "assumption missing"
    SUBSTANCE = "conclusion false"  # the statement's message is wrong, not its bookkeeping


LARGEST_PROMISE = 0.5
"""A promise whose δ is above this promises nobody anything: breaking it breaks no one's privacy."""


class CheckError(ElementdpError):
    """A check that contradicts itself: its repaired statement failed, or it decides nothing."""


@dataclass(frozen=True)
class Fact:
    """One thing a check computed, in words with its numbers, and whether it came out as its role requires.

    ``promised_delta`` is given when the fact holds a promise to people against what they get: the δ of that promise,
    0 for pure and Rényi promises.
    """

    role: Role
    text: str
    holds: bool
    promised_delta: float | None = None

    @property
    def breaks_a_promise(self) -> bool:
        """Whether people get less than the printed statement promises them."""
        promised = self.promised_delta is not None and self.promised_delta <= LARGEST_PROMISE
        return self.role is Role.PRINTED and promised and not self.holds


def printed(text: str, holds: bool, *, promised_delta: float | None = None) -> Fact:
    """An instance of the printed statement; false is a counterexample."""
    return Fact(Role.PRINTED, text, bool(holds), promised_delta)


def tight(text: str, holds: bool) -> Fact:
    """Whether the printed bound gives (almost) nothing away."""
    return Fact(Role.TIGHT, text, bool(holds))


def repaired(text: str, holds: bool) -> Fact:
    """An instance of the repaired statement; it has to hold."""
    return Fact(Role.REPAIRED, text, bool(holds))


@dataclass(frozen=True)
class Finding:
    """What one run of a check established; ``gap`` and ``repair`` are for a printed statement that does not survive."""

    facts: tuple[Fact, ...]
    repair: str = ""
    gap: Gap | None = None

    def __post_init__(self) -> None:
        if not any(fact.role is Role.PRINTED for fact in self.facts):
            raise CheckError("a check needs at least one fact about the printed statement")
        broken = [fact.text for fact in self.of(Role.REPAIRED) if not fact.holds]
        if broken:
            raise CheckError("the repaired statement fails too: " + "; ".join(broken))

    def of(self, role: Role) -> Iterable[Fact]:
        """The facts with this role."""
        return (fact for fact in self.facts if fact.role is role)

    @property
    def survives(self) -> bool:
        """Whether every instance of the printed statement came out true."""
        return all(fact.holds for fact in self.of(Role.PRINTED))

    @property
    def settled(self) -> bool:
        """Whether nothing is left open: a statement that does not survive has a gap, a repair and its check."""
        return self.survives or bool(self.gap and self.repair and any(self.of(Role.REPAIRED)))

    @property
    def verdict(self) -> Verdict:
        """The verdict these facts amount to; a refuted statement without a known repair fails."""
        if self.survives:
            close = all(fact.holds for fact in self.of(Role.TIGHT))
            return Verdict.HOLDS if close else Verdict.HOLDS_LOOSELY
        return Verdict.FAILS if self.gap in (Gap.SUBSTANCE, None) else Verdict.NEEDS_REPAIR

    @property
    def severity(self) -> Severity:
        """What goes wrong for someone who trusts the statement: a broken promise first, else the kind of gap."""
        if self.survives:
            return Severity.NONE
        if any(fact.breaks_a_promise for fact in self.facts):
            return Severity.PRIVACY
        return Severity((self.gap or Gap.SUBSTANCE).value)
