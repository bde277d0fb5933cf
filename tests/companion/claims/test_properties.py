"""Where the checks of Corollaries 2.1 to 2.3 stand on their own numbers."""

from fractions import Fraction

from elementdp.companion.claims.checks.properties import printed_group_delta, worst_chain


def test_the_worst_chain_by_hand():
    # e^ε = 2, δ = 1/100, D = 2: P₀ = δ(1 + 2), P₁ = δ, P₂ = 0, so the ends need 3/100 and the printed bound says 4/100.
    close, ends = worst_chain(2, Fraction(2), Fraction(1, 100))
    assert close
    assert ends == Fraction(3, 100)
    assert printed_group_delta(2, 0.0, 0.01) == 0.02
