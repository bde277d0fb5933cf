"""What an answer says about one element, against Bayes' rule written out."""

from fractions import Fraction

import pytest

from elementdp.companion.theory.inference import all_or_none, independent_belief, knowing_the_rest, odds_moved


@pytest.mark.parametrize("elements", [1, 2, 4])
def test_the_three_beliefs(elements):
    odds = Fraction(2)
    assert odds_moved(knowing_the_rest(elements), odds) == odds
    assert odds_moved(independent_belief(elements), odds) == odds
    assert odds_moved(all_or_none(elements), odds) == odds**elements


def test_a_half_known_friend_by_hand():
    # Elements agree with probability 3/4. After "yes, yes" at odds 3 the four cases weigh 3/8·9, 1/8·3, 1/8·3, 3/8·1.
    belief = {(1, 1): Fraction(3, 8), (1, 0): Fraction(1, 8), (0, 1): Fraction(1, 8), (0, 0): Fraction(3, 8)}
    assert odds_moved(belief, Fraction(3)) == Fraction(3 * 9 + 3, 3 + 3)
