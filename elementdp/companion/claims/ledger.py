"""Registering checks, running them, and the entries that come out."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from elementdp.companion.claims.catalogue import CATALOGUE
from elementdp.companion.claims.verdict import CheckError, Finding, Verdict
from elementdp.errors import one_of


class Effort(StrEnum):
    """How hard a check works: the book's three profiles."""

    SMOKE = "smoke"
    QUICK = "quick"
    PAPER = "paper"


Check = Callable[[Effort, int], Finding]
"""A check takes the effort and a seed, and returns what it found."""

_checks: dict[str, Check] = {}


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    id: str
    where: str
    statement: str
    verdict: Verdict
    evidence: tuple[str, ...]
    repair: str
    section: str

    def as_json(self) -> dict[str, object]:
        """The entry as plain JSON values."""
        return asdict(self)


def check(claim: str) -> Callable[[Check], Check]:
    """Register a function as the check of the catalogued statement ``claim``."""
    one_of("claim", claim, CATALOGUE)

    def register(function: Check) -> Check:
        if claim in _checks and _checks[claim].__module__ != function.__module__:
            raise CheckError(f"two checks for the statement {claim!r}")
        _checks[claim] = function
        return function

    return register


def checks() -> dict[str, Check]:
    """Every registered check by the id of its statement; importing the check modules on first use."""
    package = importlib.import_module("elementdp.companion.claims.checks")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(_checks)


def entry(claim: str, effort: Effort | str = Effort.QUICK, seed: int = 0) -> Entry:
    """Run the check of one statement now and return its ledger entry; ``unchecked`` where there is none."""
    one_of("claim", claim, CATALOGUE)
    statement = CATALOGUE[claim]
    function = checks().get(claim)
    if function is None:
        return Entry(claim, statement.where, statement.text, Verdict.UNCHECKED, (), "", statement.section)
    finding = function(Effort(one_of("effort", effort, list(Effort))), seed)
    evidence = tuple(f"{fact.role}, {'true' if fact.holds else 'false'}: {fact.text}" for fact in finding.facts)
    return Entry(claim, statement.where, statement.text, finding.verdict, evidence, finding.repair, statement.section)


def ledger(effort: Effort | str = Effort.QUICK, seed: int = 0, only: Iterable[str] = ()) -> list[Entry]:
    """Run every check (or those of ``only``) and return the entries in the paper's order."""
    wanted = list(only) or list(CATALOGUE)
    return [entry(claim, effort, seed) for claim in wanted]
