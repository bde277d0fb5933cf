"""Facts of the checks on Theorem 1 that a closed form or an independent count can confirm."""

import math

import numpy as np
import pytest

from elementdp.companion.claims import Effort, Role
from elementdp.companion.claims.checks.normality import escape_probability, normality
from elementdp.companion.claims.checks.normality_lemmas import bad_row_ceiling, bad_row_floor


def test_theorem_holds_and_three_slips_are_found() -> None:
    finding = normality(Effort.SMOKE, 0)
    broken = [fact.text for fact in finding.of(Role.PRINTED) if not fact.holds]
    assert len(broken) == 3
    for words in ("plus signs", "√(k/n)", "leaves Θ"):
        assert sum(words in text for text in broken) == 1


def test_escape_by_two_routes() -> None:
    closed, integral = escape_probability()
    assert closed == pytest.approx(integral, rel=1e-8)


@pytest.mark.parametrize("n", [20, 100])
def test_bad_rows_by_simulation(n: int) -> None:
    rng, rows = np.random.default_rng(n), 200_000
    squares = rng.random((rows, n)) ** (-2 / 3)  # P(L² > w) = w^(-3/2), mean 3
    share = float((squares.mean(axis=1) > 6).mean())
    error = 5 * math.sqrt(share / rows)
    assert float(bad_row_floor(n)) - error <= share <= bad_row_ceiling(n) + error
