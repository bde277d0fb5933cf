"""The checks on Proposition 3, fact by fact."""

from elementdp.companion.claims import Effort, Role
from elementdp.companion.claims.checks.private_estimation import private_normality, private_normality_user


def test_the_law_holds_for_sampled_users_and_is_no_instance() -> None:
    finding = private_normality(Effort.SMOKE, 0)
    broken = [fact.text for fact in finding.of(Role.PRINTED) if not fact.holds]
    assert len(broken) == 1
    assert broken[0].startswith("an instance")


def test_the_user_level_claim_is_tried_with_both_samplers() -> None:
    tried = [fact.text for fact in private_normality_user(Effort.SMOKE, 0).facts]
    assert len(tried) == 2
    assert {text.split(",")[0] for text in tried} == {"Poisson sampling of users", "fixed-size sampling of users"}
