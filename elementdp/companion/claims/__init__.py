"""The ledger: every statement of the paper, its check and the verdict that check computed."""

from elementdp.companion.claims.catalogue import CATALOGUE
from elementdp.companion.claims.ledger import Effort, Entry, all_checks, check, entry, examine, ledger
from elementdp.companion.claims.verdict import Fact, Finding, Gap, Role, Severity, Verdict
