"""Registering checks, running them, and the entries that come out."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TypeVar

from elementdp.companion.claims.catalogue import CATALOGUE
from elementdp.companion.claims.store import Store
from elementdp.companion.claims.verdict import CheckError, Finding, Severity, Verdict
from elementdp.errors import one_of


class Effort(StrEnum):
    """How hard a check works: the book's three profiles."""

    SMOKE = "smoke"
    QUICK = "quick"
    PAPER = "paper"


Check = Callable[..., Finding]
"""A check takes the effort, a seed, and the statement to try (by default the paper's), and returns what it found."""

_checks: dict[str, Check] = {}
_Registered = TypeVar("_Registered", bound=Check)


@dataclass(frozen=True)
class Entry:
    """One line of the ledger; ``number`` is the paper's own, ``label`` the name its source uses."""

    id: str
    number: str
    title: str
    label: str
    statement: str
    verdict: Verdict
    severity: Severity
    evidence: tuple[str, ...]
    repair: str
    section: str

    @property
    def where(self) -> str:
        """Number and label together."""
        return f"{self.number} ({self.label})" if self.label else self.number

    def as_json(self) -> dict[str, object]:
        """The entry as plain JSON values."""
        return asdict(self)


def check(claim: str) -> Callable[[_Registered], _Registered]:
    """Register a function as the check of the catalogued statement ``claim``.

    The function takes effort, seed and the statement to try; the default of the last is what the paper prints.
    """
    one_of("claim", claim, CATALOGUE)

    def register(function: _Registered) -> _Registered:
        known = _checks.get(claim)
        if known is not None and (known.__module__, known.__name__) != (function.__module__, function.__name__):
            raise CheckError(f"two checks for the statement {claim!r}")
        _checks[claim] = function
        return function

    return register


def all_checks() -> dict[str, Check]:
    """Every registered check by the id of its statement; importing the check modules on first use."""
    package = importlib.import_module("elementdp.companion.claims.checks")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(_checks)


def examine(claim: str, effort: Effort | str = Effort.QUICK, seed: int = 0) -> Entry:
    """Run the check of one statement now and return its ledger entry; ``unchecked`` where there is none."""
    one_of("claim", claim, CATALOGUE)
    wanted = Effort(one_of("effort", effort, list(Effort)))
    statement = CATALOGUE[claim]
    function = all_checks().get(claim)
    told = (claim, statement.number, statement.title, statement.label, statement.text)
    if function is None:
        return Entry(*told, Verdict.UNCHECKED, Severity.NONE, (), "", statement.section)
    finding = function(wanted, seed)
    if not finding.settled:
        raise CheckError(f"{claim} does not survive and needs a gap, a repair and a fact that checks the repair")
    evidence = tuple(f"{fact.role}, {'true' if fact.holds else 'false'}: {fact.text}" for fact in finding.facts)
    return Entry(*told, finding.verdict, finding.severity, evidence, finding.repair, statement.section)


def entry(claim: str, effort: Effort | str = Effort.QUICK, seed: int = 0) -> Entry:
    """The ledger entry of one statement: as another page computed it from the same sources, or computed now."""
    one_of("claim", claim, CATALOGUE)
    one_of("effort", effort, list(Effort))
    store = Store.of_this_package()
    found = store.read(claim, str(effort), seed)
    if found is not None:
        kinds = {"verdict": Verdict(found["verdict"]), "severity": Severity(found["severity"])}
        return Entry(**{**found, **kinds, "evidence": tuple(found["evidence"])})
    computed = examine(claim, effort, seed)
    store.write(claim, str(effort), seed, computed.as_json())
    return computed


def ledger(effort: Effort | str = Effort.QUICK, seed: int = 0, only: Iterable[str] = ()) -> list[Entry]:
    """The entries of every statement (or of those in ``only``, each once) in the paper's order."""
    wanted = set(only)
    for claim in wanted:
        one_of("claim", claim, CATALOGUE)
    return [entry(claim, effort, seed) for claim in CATALOGUE if not wanted or claim in wanted]
