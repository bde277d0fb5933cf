"""The ledger: every statement of the paper, its check and the verdict that check just computed."""

from elementdp.companion.claims.catalogue import CATALOGUE, Statement
from elementdp.companion.claims.ledger import Check, Effort, Entry, check, entry, ledger
from elementdp.companion.claims.verdict import Fact, Finding, Gap, Role, Verdict

__all__ = [
    "CATALOGUE",
    "Check",
    "Effort",
    "Entry",
    "Fact",
    "Finding",
    "Gap",
    "Role",
    "Statement",
    "Verdict",
    "check",
    "entry",
    "ledger",
]
