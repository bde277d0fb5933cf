"""The ledger: every statement of the paper, its check and the verdict that check computed."""

from elementdp.companion.claims.catalogue import CATALOGUE, Statement
from elementdp.companion.claims.ledger import Check, Effort, Entry, all_checks, check, entry, examine, ledger
from elementdp.companion.claims.verdict import Fact, Finding, Gap, Role, Severity, Verdict

__all__ = [
    "CATALOGUE",
    "Check",
    "Effort",
    "Entry",
    "Fact",
    "Finding",
    "Gap",
    "Role",
    "Severity",
    "Statement",
    "Verdict",
    "all_checks",
    "check",
    "entry",
    "examine",
    "ledger",
]
