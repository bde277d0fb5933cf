"""No check that cannot fail: every check is handed a wrong statement and a right one, and its verdict turns."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from elementdp.audit.finite import hockey_stick
from elementdp.audit.mixtures import leading_coefficient
from elementdp.audit.programs import sharp_group_delta
from elementdp.audit.sampled import claimed_odds
from elementdp.companion.claims import CATALOGUE, Effort, Verdict, all_checks
from elementdp.companion.claims.checks import (
    definitions,
    experiments,
    f_privacy,
    glm,
    heavy_hitters,
    histograms,
    mechanisms,
    normality,
    normality_lemmas,
    private_estimation,
    properties,
    subsampling,
    training,
)
from elementdp.companion.theory.counting import paper_variance
from elementdp.companion.theory.inference import all_or_none, independent_belief, knowing_the_rest
from elementdp.companion.theory.ordering import printed_gamma, repaired_gamma
from elementdp.companion.theory.private import step_scatter
from elementdp.elements import Partition, user_distance
from elementdp.privacy import Sampler, mironov, printed_renyi
from elementdp.privacy.composition import compose_advanced

TRUE, FALSE = {Verdict.HOLDS, Verdict.HOLDS_LOOSELY}, {Verdict.NEEDS_REPAIR, Verdict.FAILS}
PAIRS, USERS, FIXED = Sampler.POISSON_PAIRS, Sampler.POISSON_USERS, Sampler.FIXED_USERS


def single_outcome(p, q, odds):
    """Not the worst event but the worst outcome."""
    return max(max(p[z] - odds * q[z], Fraction(0)) for z in p)


def divided_by_the_order(p, q, orders):
    """1/α where the definition has 1/(α-1)."""
    return definitions.renyi_curve(p, q, orders) * (orders - 1) / orders


def in_the_given_order(a, b):
    """Users compared place by place, without the best matching."""
    return sum(user_distance(x, y, Partition.identity()) for x, y in zip(a, b, strict=True))


def half(variance):
    return lambda epsilon, delta: variance(epsilon, delta) / 2


def optimistic(parts, free):
    """Advanced composition with half of √(2Σε² log(1/δ₀))."""
    told = compose_advanced(parts, free)
    return replace(told, epsilon=told.epsilon / 2)


def other_scatter(users, sampler):
    return step_scatter(users, USERS if sampler is PAIRS else PAIRS)


one_word_away = (["yo", "bro"] * 3, ["yo"] * 4 + ["bro"] * 3)
fewer_rows = histograms.BiasLemma(lambda m, p, t: 3 * m * p + t, 3.0)
WRONG_THEN_RIGHT = {
    "side-information": (
        {"together": all_or_none},
        {"knows": knowing_the_rest, "independent": independent_belief},
    ),
    "figure-1": ((["yo"], ["bro"]), one_word_away),
    "def-dp": (single_outcome, hockey_stick),
    "def-rdp": (divided_by_the_order, definitions.renyi_curve),
    "rdp-to-dp": (lambda e, a, d: e + math.log(1 / d) / (2 * a), mironov),
    "gaussian-mech": (half(mechanisms.cautious_variance), mechanisms.cautious_variance),
    "def-element": (in_the_given_order, definitions.listed_distance),
    "post-processing": (True, False),
    "group-privacy": (lambda d, e, x: d * x, sharp_group_delta),
    "composition-basic": (max, lambda a, b: a + b),
    "composition-advanced": (optimistic, compose_advanced),
    "composition-renyi": (max, lambda a, b: a * b),
    "subsampling": (
        replace(subsampling.SAMPLED_PAIRS, odds=lambda odds, q: claimed_odds(odds, q * q)),
        subsampling.SAMPLED_PAIRS,
    ),
    "moments-accountant": (
        replace(subsampling.PAIR_SAMPLED_SUM, level=lambda *at: printed_renyi(*at) / 2),
        subsampling.PAIR_SAMPLED_SUM,
    ),
    "moments-display": (lambda sigma: 0.9 * leading_coefficient(sigma), leading_coefficient),
    "moments-rule": (USERS, PAIRS),
    "f-privacy": (("composition", "subsampling"), f_privacy.COROLLARIES[:3]),
    "basic-mech": (mechanisms.BasicNoise(lambda n: 1 / n**2), mechanisms.AVERAGED_NOISE),
    "heavy-hitters-privacy": (
        heavy_hitters.CountingNoise(lambda e, a: a / (4 * e), mechanisms.cautious_variance),
        heavy_hitters.EXACT_COUNTING,
    ),
    "heavy-hitters-user": (lambda m: m / 2, lambda m: 2 * m),
    "heavy-hitters-loss": (lambda a, b: a >= b, lambda a, b: a < b),
    "heavy-hitters-utility": (lambda *at: printed_gamma(*at) / 2, repaired_gamma),
    "histogram-privacy": (lambda words: 0.5, lambda words: min(words, 2)),
    "histogram-utility": (replace(histograms.REPAIRED_ERROR, sides=1.0), histograms.REPAIRED_ERROR),
    "histogram-user": (1.2, math.sqrt(2)),
    "histogram-rate": (lambda m, p, n: (m * p) ** 2, histograms.printed_bracket),
    "element-loss": ((lambda losses: float(sum(map(sum, losses))), True), (training.averaged, True)),
    "normality": (
        replace(normality.REPAIRED_LAW, weights=lambda g: (1.0, 1 / g, 1 / g**2)),
        normality.REPAIRED_LAW,
    ),
    "alg-1": ((1.0, 1.0), (2.0, 2.0)),
    "private-sgd": (1, -1),
    "sgd-privacy": (FIXED, PAIRS),
    "sgd-user-privacy": ((FIXED,), (USERS,)),
    "sgd-rate": (USERS, PAIRS),
    "private-normality": (
        private_estimation.PrivateLaw(other_scatter, project_once=True),
        private_estimation.PrivateLaw(project_once=True),
    ),
    "private-element": (USERS, PAIRS),
    "private-user": (0.5, 4.0),
    "noise-factor": (USERS, PAIRS),
    "glm": (((glm.BY_LABEL,), True), (tuple(glm.COVARIATES.values()), True)),
    "glm-risk": (False, True),
    "glm-variance": (("always down",), ("down", "up")),
    "exp-histogram": (experiments.Experiment(False, False), experiments.Experiment(True, False)),
    "exp-logistic": (experiments.Experiment(False, False), experiments.Experiment(True, False)),
    "exp-flickr": (experiments.Experiment(False, False), experiments.Experiment(True, False)),
    "exp-cifar": (experiments.Experiment(False, False), experiments.Experiment(True, False)),
    "indicator-lemma": (lambda a, b, c: a * b, lambda a, b, c: a + b - c),
    "order-lemma": (lambda *at: heavy_hitters.printed_tail(*at) ** 4, heavy_hitters.printed_tail),
    "binomial-lemma": ((1.1, 2.0), (2.0, 2.0)),
    "bias-lemma": (fewer_rows, replace(histograms.PRINTED_BIAS_LEMMA, base=3.0)),
    "good-event": (True, False),
    "recursion-lemma": (normality_lemmas.Recursion(2.0, noise=False), normality_lemmas.Recursion(2.0, noise=True)),
    "remainder-lemma": (0.0, 0.5),
    "local-lemma": (0.0, 0.5),
    "model-lemma": (0.0, 0.5),
    "matrix-lemma": (0.0, 0.5),
}
SEVERAL = {"element-loss", "glm"}  # checks whose statement has two parts


def test_every_statement_has_a_wrong_and_a_right_form():
    assert set(WRONG_THEN_RIGHT) == set(CATALOGUE) == set(all_checks())


@pytest.mark.parametrize("claim", WRONG_THEN_RIGHT)
def test_the_verdict_turns(claim):
    wrong, right = (form if claim in SEVERAL else (form,) for form in WRONG_THEN_RIGHT[claim])
    check = all_checks()[claim]
    assert check(Effort.SMOKE, 0, *wrong).verdict in FALSE
    assert check(Effort.SMOKE, 0, *right).verdict in TRUE


def test_a_missing_factor_is_found_in_the_middle_of_the_range_too():
    assert all_checks()["gaussian-mech"](Effort.SMOKE, 0, lambda e, d: 0.4 * paper_variance(e, d)).verdict in FALSE
    assert (
        all_checks()["group-privacy"](Effort.SMOKE, 0, properties.printed_group_delta).verdict is Verdict.HOLDS_LOOSELY
    )
