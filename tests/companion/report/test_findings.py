"""The findings of the first page agree with the accountant, whatever the setting."""

from dataclasses import replace
from fractions import Fraction

import pytest

from elementdp.companion.report import findings
from elementdp.privacy import Sampler, account, claimed


@pytest.mark.parametrize("setting", findings.PAPER_SETTINGS, ids=lambda setting: setting.words)
def test_a_run_as_printed_claims_the_epsilon_it_was_made_for(setting: findings.PaperSetting) -> None:
    run = setting.as_printed(0.02, 3.0)
    assert claimed(run, setting.delta) == pytest.approx(3.0, rel=1e-4)
    assert run.elements_per_user == setting.elements


def test_one_coin_is_beaten_from_two_elements_on() -> None:
    for elements in (1, 2, 3):
        coin = findings.one_coin(elements)
        by_hand = (1 + Fraction(3) ** elements) / (1 + Fraction(3) ** (elements - 1))
        assert coin.exact == by_hand
        assert (coin.exact > coin.printed) == (elements > 1)


def test_the_repaired_noise_keeps_the_promise_and_less_does_not() -> None:
    setting = findings.PAPER_SETTINGS[-1]
    cost = findings.repair(setting, 0.05, 3.0)
    printed = setting.as_printed(0.05, 3.0)
    pairs = replace(printed, sampler=Sampler.POISSON_PAIRS, sigma=cost.pairs * printed.sigma)
    assert account(pairs, setting.delta).up <= 3.0 < account(replace(pairs, sigma=0.98 * pairs.sigma), setting.delta).up
    assert cost.pairs < cost.users


def test_gains_lie_within_points_and_have_a_spread() -> None:
    for own_rates in (False, True):
        found = findings.gains(3.0, own_rates=own_rates)
        assert -100 < found.least <= found.most < 100
        assert found.half_width > 0
        assert found.settings >= 1
