"""The verdicts on post-processing, group privacy and composition, and that their checks can come out otherwise."""

from dataclasses import replace
from fractions import Fraction

import pytest

from elementdp.companion.claims import Effort, Verdict, entry
from elementdp.companion.claims.checks import properties


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("post-processing", Verdict.HOLDS),
        ("group-privacy", Verdict.HOLDS_LOOSELY),
        ("composition", Verdict.NEEDS_REPAIR),
    ],
)
def test_verdicts(claim, verdict, seed):
    assert entry(claim, Effort.SMOKE, seed).verdict is verdict


def test_post_processing_would_be_refuted_if_it_were_false(monkeypatch):
    # A "post-processing" that peeks at which law it is given is not one.
    peek = iter(range(10**6))
    monkeypatch.setattr(properties, "garble", lambda law, kernel: {next(peek): Fraction(1)})
    with pytest.raises(Exception, match="needs a gap"):
        entry("post-processing", Effort.SMOKE)


def test_composition_would_survive_with_the_right_delta(monkeypatch):
    def repaired(parts, delta0):
        return replace(original(parts, delta0), delta=min(1.0, delta0 + sum(part.delta for part in parts)))

    original = properties.compose_advanced_as_printed
    monkeypatch.setattr(properties, "compose_advanced_as_printed", repaired)
    assert entry("composition", Effort.SMOKE).verdict is Verdict.HOLDS
