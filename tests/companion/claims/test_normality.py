"""The verdict on Theorem 1, fact by fact."""

from elementdp.companion.claims import Role, Verdict
from elementdp.companion.claims.checks.normality import normality
from elementdp.companion.claims.ledger import Effort


def test_theorem_holds_and_four_slips_are_found() -> None:
    finding = normality(Effort.SMOKE, 0)
    assert finding.verdict is Verdict.NEEDS_REPAIR
    printed = list(finding.of(Role.PRINTED))
    broken = [fact.text for fact in printed if not fact.holds]
    assert len(broken) == 4
    for words in ("plus signs", "recursion lemma", "√(k/n)", "leaves Θ"):
        assert sum(words in text for text in broken) == 1
    for words in ("logistic regression", "robust regression", "times the sandwich", "relative distance", "five lemmas"):
        assert sum(words in fact.text for fact in printed if fact.holds) == 1
