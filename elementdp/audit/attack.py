"""An attack on the sums of a run (sampled, in a fixed order or allocated), and the lower bound on ε it proves.

The attacker knows every element of every user but one, and sees all T noisy sums. What is known to be there can be
subtracted, except where sampling hides whether it was there: the target user's k - 1 other elements, each of norm ρ
and all in the direction of the unknown one. In units of ρ the unknown element is +1 or -1 and the others add
r = k - 1. A fixed order hides nothing; where pairs are allocated the others are taken as known, since their places are
independent of the unknown one's. The test is Neyman and Pearson's likelihood ratio, so no attack on these
neighbours is stronger.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import logsumexp
from scipy.stats import binom

from elementdp.audit.bounds import EmpiricalEpsilon, clopper_pearson, epsilon_from_rates
from elementdp.errors import ArgumentError, at_least, probability
from elementdp.privacy.allocation import RandomAllocation
from elementdp.privacy.events import SubsampledGaussian
from elementdp.privacy.fixed_order import FixedOrder
from elementdp.privacy.guarantee import Relation, Sampler, Unit

Floats = NDArray[np.float64]
NEGLIGIBLE = 1e-7
"""Components rarer than this are left out of the score, and densities stop at the smallest float: any score makes a
valid attack, and these make none weaker that counts."""


Attacked = SubsampledGaussian | FixedOrder | RandomAllocation


def components(run: SubsampledGaussian, secret: int) -> tuple[Floats, Floats]:
    """One step's mean takes these values with these probabilities, when the secret element is ±1."""
    others = _elements(run) - 1
    if run.sampler is Sampler.POISSON_USERS:
        return np.array([0.0, others + secret]), np.array([1 - run.q, run.q])
    count = np.arange(others + 1.0)
    chance = binom.pmf(count, others, run.q)
    return np.concatenate([count, count + secret]), np.concatenate([(1 - run.q) * chance, run.q * chance])


def draw(run: Attacked, secret: int, trials: int, rng: np.random.Generator) -> Floats:
    """``trials`` independent runs of T steps, one row each; in a fixed order, of a user in the first batch."""
    if isinstance(run, FixedOrder):
        noise = lfilter(run.correlation.weights, [1.0], rng.standard_normal((trials, run.steps)), axis=1)
        return np.asarray(secret * _seen(run) + run.sigma * noise)
    if isinstance(run, RandomAllocation):
        _replaced(run)
        places = rng.integers(run.batches, size=(trials, run.epochs)) + run.batches * np.arange(run.epochs)
        outputs = run.sigma * rng.standard_normal((trials, run.epochs * run.batches))
        np.put_along_axis(outputs, places, np.take_along_axis(outputs, places, 1) + secret, 1)
        return outputs[:, : run.steps]
    shape, others = (trials, run.steps), _elements(run) - 1
    drawn = rng.random(shape) < run.q
    if run.sampler is Sampler.POISSON_USERS:
        mean = drawn * float(others + secret)
    else:
        mean = drawn * float(secret) + rng.binomial(others, run.q, shape)
    return mean + run.sigma * rng.standard_normal(shape)


def score(run: Attacked, outputs: Floats) -> Floats:
    """The log likelihood ratio of +1 against -1, summed over the steps."""
    if isinstance(run, FixedOrder):  # undo the filter: the noise is then independent, and known sums are subtracted
        whitened = lfilter([1.0], run.correlation.weights, np.stack([*outputs, _seen(run)]), axis=1)
        return np.asarray(2 * whitened[:-1] @ whitened[-1] / run.sigma**2)
    if isinstance(run, RandomAllocation):
        return _epoch_scores(run, outputs)
    return np.asarray((_log_density(run, outputs, 1) - _log_density(run, outputs, -1)).sum(axis=-1))


def _log_density(run: SubsampledGaussian, outputs: Floats, secret: int) -> Floats:
    """Up to the normalising constant, which both hypotheses share."""
    total = np.full_like(outputs, np.finfo(float).tiny)
    for mean, chance in zip(*components(run, secret), strict=True):
        if chance > NEGLIGIBLE:
            total += chance * np.exp(-0.5 * ((outputs - mean) / run.sigma) ** 2)
    return np.log(total)


def _epoch_scores(run: RandomAllocation, outputs: Floats) -> Floats:
    """log Σ_i e^{y_i/σ²} − log Σ_i e^{−y_i/σ²} over the steps of each epoch; a step not made shows nothing: ratio 1."""
    missing = run.epochs * run.batches - run.steps
    log_ratio = np.zeros(len(outputs))
    for sign in (1, -1):
        ratios = sign * outputs / run.sigma**2 - 0.5 / run.sigma**2  # log likelihood ratios to an absent element
        whole = np.pad(ratios, ((0, 0), (0, missing))).reshape(len(outputs), run.epochs, run.batches)
        log_ratio += sign * logsumexp(whole, axis=2).sum(axis=1)
    return log_ratio


def _replaced(run: Attacked) -> None:
    """Refuse runs against which this is no attack."""
    if run.unit is not Unit.ELEMENT or run.relation is not Relation.REPLACE:
        raise ArgumentError("run", f"{run.unit}, {run.relation}", "one whose element is replaced")


def _seen(run: FixedOrder) -> Floats:
    """1 in the steps that see the first batch; refuses runs against which this is no attack."""
    _replaced(run)
    return np.asarray(np.arange(run.steps) % run.batches == 0, dtype=float)


def _elements(run: SubsampledGaussian) -> int:
    """How many elements the attacked user has; refuses runs against which this is no attack."""
    if run.sampler not in (Sampler.POISSON_USERS, Sampler.POISSON_PAIRS):
        raise ArgumentError("sampler", str(run.sampler), "poisson-users or poisson-pairs")
    _replaced(run)
    if run.elements_per_user is None:
        raise ArgumentError("elements_per_user", None, "the number of elements of the attacked user")
    return run.elements_per_user


def attack(
    run: Attacked, delta: float, *, trials: int, rng: np.random.Generator, confidence: float = 0.999
) -> EmpiricalEpsilon:
    """Attack ``trials`` copies of ``run`` under each of two neighbours and return the lower bound on ε(δ) this proves.

    The attacked user has as many elements as the run allows. The threshold is chosen on the first half of the runs and
    judged on the other half, so that the confidence of the bound pays for no search.
    """
    at_least("trials", trials, 2)
    probability("delta", delta, high_open=True)
    half = trials // 2
    present = _scores(run, 1, 2 * half, rng)
    absent = _scores(run, -1, 2 * half, rng)
    threshold = _best_threshold(present[:half], absent[:half], delta, confidence)
    hits = int((present[half:] > threshold).sum())
    false_hits = int((absent[half:] > threshold).sum())
    return EmpiricalEpsilon.from_counts(hits, false_hits, half, delta, confidence, threshold)


def _scores(run: Attacked, secret: int, trials: int, rng: np.random.Generator) -> Floats:
    """Scores of many runs, in blocks that fit the cache."""
    block = max(1, 250_000 // run.steps)
    parts = [score(run, draw(run, secret, min(block, trials - start), rng)) for start in range(0, trials, block)]
    return np.concatenate(parts)


def _best_threshold(present: Floats, absent: Floats, delta: float, confidence: float) -> float:
    """The threshold whose confidence bound would be best on these runs."""
    candidates = np.unique(np.quantile(absent, 1 - np.geomspace(0.5, 3 / len(absent), 60)))
    each = 1 - (1 - confidence) / 2

    def promise(threshold: float) -> float:
        low, _ = clopper_pearson(int((present > threshold).sum()), len(present), each)
        _, up = clopper_pearson(int((absent > threshold).sum()), len(absent), each)
        return epsilon_from_rates(low, up, delta)

    return float(max(candidates, key=promise))
