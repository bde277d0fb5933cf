"""What right guesses prove: against the integral itself, and against guessers that are as good as ε allows."""

import math

import mpmath
import numpy as np
import pytest

from elementdp.audit.guessing import epsilon_from_guesses
from elementdp.errors import ArgumentError


@pytest.mark.parametrize(("right", "guesses"), [(10, 10), (24, 26), (300, 400), (1800, 2000)])
def test_the_evidence_is_just_enough_at_the_bound(right: int, guesses: int) -> None:
    epsilon = epsilon_from_guesses(right, guesses, 0.95)
    share = 1 / (1 + mpmath.exp(-epsilon))
    wrong = guesses - right

    def gain(p: mpmath.mpf) -> mpmath.mpf:
        return (p / share) ** right * ((1 - p) / (1 - share)) ** wrong

    peak = mpmath.mpf(right) / guesses
    mean = mpmath.quad(gain, [share, (share + peak) / 2, peak, (1 + peak) / 2, 1]) / (1 - share)
    assert float(mean) == pytest.approx(20, rel=1e-6)


def test_few_or_poor_guesses_prove_nothing() -> None:
    assert epsilon_from_guesses(0, 0) == 0
    assert epsilon_from_guesses(3, 3) == 0
    assert epsilon_from_guesses(500, 1000) == 0


def test_looking_after_every_guess_stays_within_the_confidence() -> None:
    rng, epsilon, games = np.random.default_rng(5), 0.8, 300
    right = np.cumsum(rng.random((games, 60)) < 1 / (1 + math.exp(-epsilon)), axis=1)
    fooled = sum(any(epsilon_from_guesses(int(r), k + 1) > epsilon for k, r in enumerate(game)) for game in right)
    assert fooled <= 0.05 * games + 3 * math.sqrt(0.05 * 0.95 * games)


def test_more_right_guesses_prove_more() -> None:
    proved = [epsilon_from_guesses(right, 200) for right in range(120, 201, 10)]
    assert proved == sorted(proved)
    assert proved[-1] > proved[0]


@pytest.mark.parametrize(("right", "guesses"), [(-1, 3), (4, 3)])
def test_counts_that_cannot_be(right: int, guesses: int) -> None:
    with pytest.raises(ArgumentError, match="right"):
        epsilon_from_guesses(right, guesses)
