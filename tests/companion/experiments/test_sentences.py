"""The sentences are settled by the numbers: tables made to obey the paper make them true, others false."""

import math

import pytest

from elementdp.companion.claims import Verdict, entry
from elementdp.companion.experiments import logistic, words
from elementdp.companion.experiments.logistic import LogisticMethod

KS = (1, 10, 100, 1_000)


def word_table(power=1.0, mass=lambda k: k**-0.5, bend=0.0):
    """Ratios that go as (max P(c)²)^power on both sensitivities; ``bend`` adds curvature on the logarithmic scale."""
    points = []
    for k in KS:
        ratio = 50 * mass(k) ** (2 * power) * 10 ** (bend * math.log10(k) ** 4)
        for epsilon in (1.0, 8.0):
            for kind in words.Sensitivity:
                points.append(words.WordsPoint(k, epsilon, str(kind), "validation", 5.0, ratio, 0.01, 9))
    return points, [words.PartitionSummary(k, mass(k), 100.0) for k in KS]


def test_words_as_the_paper_expects_them():
    finer, linear, mass, private, *ours = words.sentences(*word_table(), 2_000)
    assert finer.holds and linear.holds and mass.holds and all(row.holds and row.repaired for row in ours)
    assert not private.holds  # the noise is what it is, whatever the table


@pytest.mark.parametrize(
    ("change", "broken"), [({"power": 0.2}, 2), ({"power": 0.1, "bend": -0.03}, 1), ({"power": -0.5}, 0)]
)
def test_words_otherwise(change, broken):
    assert not words.sentences(*word_table(**change), 2_000)[broken].holds


def test_words_scaling_exponent():
    points, lines = word_table(power=0.3)
    assert words.scaling(points, lines, 1.0) == pytest.approx(0.3)


def logistic_table(element=lambda k, e: 0.5 / (k * e), user=lambda k, e: 5.0 / e, base=lambda k: 0.2 - 0.01 * k):
    """Errors by formula, with small error bars."""
    points = []
    for k in (2, 5, 8):
        for method in LogisticMethod:
            for epsilon in (math.inf,) if method is LogisticMethod.NON_PRIVATE else (0.1, 0.25, 1.0, 8.0):
                kind = element if method.value.startswith("element") else user
                error = base(k) if method is LogisticMethod.NON_PRIVATE else base(k) + kind(k, epsilon)
                points.append(
                    logistic.LogisticPoint(
                        k, str(method), epsilon, 0.1, 1.0, 0.3, 1.0, "last", epsilon, epsilon, error, 1e-4, 9, error
                    )
                )
    return points


def rate(q, epsilon, low):
    return logistic.Rate(2, str(LogisticMethod.ELEMENT_PRINTED), epsilon, q, 1.0, 0.1, low, low + 0.1)


def test_logistic_as_the_paper_expects_it():
    found = logistic.sentences(logistic_table(), [rate(0.1, 1.0, 0.9)])
    assert [row.holds for row in found[:5]] == [True] * 5
    assert all(row.repaired for row in found[5:]) and not any(row.repaired for row in found[:5])


@pytest.mark.parametrize(
    ("table", "rates", "broken"),
    [
        ({"element": lambda k, e: 0.1 + k / e}, [rate(0.1, 1.0, 0.9)], 0),
        ({"user": lambda k, e: 1 / (k * e)}, [rate(0.1, 1.0, 0.9)], 1),
        ({"base": lambda k: 0.1 * k}, [rate(0.1, 1.0, 0.9)], 2),
        ({}, [rate(0.1, 1.0, 0.9), rate(0.02, 1.0, 4.0)], 4),
    ],
)
def test_logistic_otherwise(table, rates, broken):
    assert not logistic.sentences(logistic_table(**table), rates)[broken].holds


@pytest.mark.parametrize("claim", ["exp-histogram", "exp-logistic"])
def test_claims_are_settled(claim):
    found = entry(claim, "smoke", 0)
    assert found.verdict in (Verdict.NEEDS_REPAIR, Verdict.FAILS) and found.repair
    assert any("recorded" in line for line in found.evidence)
