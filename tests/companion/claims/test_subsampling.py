"""The verdicts on subsampling and the moments accountant, and that their checks can come out otherwise."""

from fractions import Fraction

import pytest

from elementdp.audit.sampled import poisson_pairs
from elementdp.companion.claims import Effort, Verdict, entry
from elementdp.companion.claims.checks import subsampling
from elementdp.companion.claims.verdict import CheckError


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("claim", ["subsampling", "moments-accountant"])
def test_both_fail_and_are_repaired(claim, seed):
    found = entry(claim, Effort.SMOKE, seed)
    assert found.verdict is Verdict.FAILS
    assert "pair" in found.repair


def test_the_two_routes_must_agree(monkeypatch):
    monkeypatch.setattr(subsampling, "identity_odds", lambda odds, elements, rate: Fraction(1))
    with pytest.raises(CheckError, match="disagree"):
        entry("subsampling", Effort.SMOKE)


def test_the_repair_is_really_checked(monkeypatch):
    """With half the promised amplification the pairs are still right; with twice of it the repair is refused."""
    monkeypatch.setattr(subsampling, "poisson_pairs", lambda rate: poisson_pairs(1 - (1 - rate) / 2))
    with pytest.raises(CheckError, match="repaired statement fails"):
        entry("subsampling", Effort.SMOKE)
