"""The counterexample by hand, and the attack that page and ledger share."""

from fractions import Fraction

import pytest

from elementdp.companion.claims import Effort, entry
from elementdp.companion.claims.checks.subsampling import (
    SAMPLED_PAIRS,
    SAMPLED_USERS,
    attacked,
    exact_ratios,
    fixed_size_ratios,
)


def test_one_coin_two_bits_by_hand():
    # (yes, yes) has probability 10/32 if the secret is yes and 4/32 if not; a coin per element gives 2.
    assert (
        exact_ratios(2, Fraction(3), SAMPLED_USERS.hidden) == [2, Fraction(5, 2)] == fixed_size_ratios(2, Fraction(3))
    )
    assert exact_ratios(2, Fraction(3), SAMPLED_PAIRS.hidden) == [2, 2]


def test_page_and_ledger_show_the_same_attack():
    found = attacked(Effort.SMOKE, 0)
    line = next(line for line in entry("moments-accountant", "smoke").evidence if "Attack on" in line)
    assert all(f"{row.users:.3g} (k = {row.elements})" in line for row in found)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_verdict_does_not_depend_on_the_seed(seed):
    assert entry("moments-accountant", "smoke", seed).verdict == "fails"
