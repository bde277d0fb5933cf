"""The verdicts on private normality and on the GLM example, fact by fact."""

from elementdp.companion.claims import Role, Verdict
from elementdp.companion.claims.checks.private_estimation import glm, private_normality
from elementdp.companion.claims.ledger import Effort


def test_the_law_holds_and_the_privacy_of_elements_does_not() -> None:
    finding = private_normality(Effort.SMOKE, 0)
    assert finding.verdict is Verdict.FAILS
    broken = [fact.text for fact in finding.of(Role.PRINTED) if not fact.holds]
    assert [text[:11] for text in broken] == ["an instance", "(i) with us"]
    assert len(list(finding.of(Role.REPAIRED))) == 2


def test_glm_needs_its_assumptions() -> None:
    finding = glm(Effort.SMOKE, 0)
    assert finding.verdict is Verdict.NEEDS_REPAIR
    assert [fact.holds for fact in finding.of(Role.PRINTED)] == [True, True, False, False, False]
